"""Adaptive control: exact with the true model, faster than its disturbance, and safe from drift."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from controllers.adaptive import FARTHEST, Adaptive, parameters_and_sizes
from scenarios.joint_tracking import JointTracking
from scenarios.setup import Setup
from tests.support.parts_of_an_arm import torques
from twin.physics.control.control_law import Model
from twin.physics.dynamics.regressor import dynamic_parameters, regressor
from twin.physics.robot.evaluation import uncompiled
from twin.physics.trajectories.sampling import Reference, Samples, State, semi_implicit_from_positions

pytestmark = pytest.mark.slow("runs controllers in the engine")

ARM = twin.load("irb140").with_drives("rigid")
PAYLOAD = twin.Payload(6.0, [0.0, 0.0, 0.08], 0.012 * np.eye(3))
MOVE = twin.sample_semi_implicit(twin.quintic([0.1] * 6, [0.5, 0.3, -0.2, 0.6, 0.8, -0.5], 0.8), 1e-3)
STILL = twin.sample_semi_implicit(twin.hold([0.2, 0.3, -0.1, 0.4, 0.5, 0.1], 3.0), 1e-3)


def run(robot, law, reference=MOVE):
    return twin.run_closed_loop(twin.AnalyticPlant(robot), law, reference)


def error(log):
    return np.max(np.abs(log.q - log.q_ref))


@pytest.mark.parametrize("drives", ["ideal", "rigid"])
def test_true_model_needs_no_adaptation(drives):
    robot = ARM.with_drives(drives)
    law = controllers.make("adaptive", robot)
    assert error(run(robot, law)) < 1e-13
    assert np.max(np.abs(law.changes)) < 1e-9


@pytest.mark.parametrize(
    ("settings", "limit"), [({}, 0.007), ({"encoder": True, "speed_cutoff": 100.0}, 0.02)]
)
def test_unknown_payload_of_6_kg_costs_little(settings, limit):
    scenario = JointTracking()
    setup = Setup(controller="adaptive", drives="rigid", payload="6", model_payload="0", **settings)
    run_of_it = scenario.run(setup)
    assert error(run_of_it.log) < limit
    found = {metric.name: metric for metric in scenario.metrics(run_of_it)}
    mass = found["payload that the controller found"]
    assert mass.value == pytest.approx(6.0, abs=0.8)
    assert mass.limit is None


def test_tracking_error_vanishes_while_the_motion_repeats():
    """Without friction and with wrong links, V falls: each lap has a smaller error than the one before."""
    robot = twin.load("two_link")
    angles = 2 * np.pi * np.arange(8001)[:, None] * 1e-3 * [0.5, 1.0]
    q = 0.5 - 0.5 * np.cos(angles)
    reference = semi_implicit_from_positions(q, 1e-3)
    wrong = twin.dynamics.with_dynamic_parameters(robot, 0.6 * dynamic_parameters(robot).values)
    log = run(robot, controllers.make("adaptive", wrong), reference)
    laps = np.abs(log.q - log.q_ref)[:-1].reshape(4, 2000, 2).max(axis=(1, 2))
    assert np.all(np.diff(laps) < 0)
    assert laps[-1] < 0.2 * laps[0]


@pytest.mark.parametrize("name", ["two_link", "irb140"])
def test_estimates_do_not_drift_at_rest(name):
    """A motion that excites nothing: gravity is compensated once, and then nothing changes."""
    robot = ARM if name == "irb140" else twin.load(name).mounted("wall")
    plant = robot.with_payload(PAYLOAD if name == "irb140" else twin.Payload(0.5))
    law = controllers.make("adaptive", robot)
    still = twin.sample_semi_implicit(twin.hold(STILL.q[0, : robot.n], 6.0), 1e-3)
    log = run(plant, law, still)
    added = log.law_signals["adaptation"]
    assert np.max(np.abs(added)) > 1.0
    assert np.max(np.abs(added[-1] - added[-500])) < 1e-2 * np.max(np.abs(added))
    assert np.all(np.abs(log.qd[-500:]) < 2e-3)


def test_joint_that_sticks_does_not_wind_up_the_estimates():
    """Static friction holds the arm a little beside its reference: within the dead zone nothing changes."""
    law = controllers.make("adaptive", ARM)
    start = STILL.q[0] + 2e-4
    log = twin.run_closed_loop(twin.AnalyticPlant(ARM), law, STILL, start=(start, np.zeros(6)))
    assert np.array_equal(log.q[-1], start)  # all joints stick
    assert np.all(law.changes == 0.0)


def test_changes_remain_within_their_bounds():
    law = controllers.make("adaptive", ARM, gain=1e4)
    known, sizes = parameters_and_sizes(ARM)
    noisy = twin.Sensors(noise=1e-3, speed_cutoff=np.inf, seed=1)
    twin.run_closed_loop(twin.AnalyticPlant(ARM.with_payload(PAYLOAD)), law, MOVE, sensors=noisy)
    assert np.any(np.abs(law.changes) > 0.3 * sizes)
    assert np.all(np.abs(law.changes) <= FARTHEST * sizes)
    positive = np.r_[0:60:10, 60:84]
    assert np.all((known + law.changes)[positive] >= -1e-12)


def test_ideal_wrist_with_an_unknown_payload_stays_stable():
    scenario, settings = JointTracking(duration=2.5), {"payload": "6", "model_payload": "0"}
    adaptive = error(scenario.run(Setup(controller="adaptive", **settings)).log)
    plain = error(scenario.run(Setup(**settings)).log)
    assert adaptive < 0.2 * plain


def test_torque_is_the_regressor_form():
    """Against M a + C v + g + rotors + friction + K s of another computation, with friction above Coulomb."""
    law, rng = controllers.make("adaptive", ARM, gain=0.0), np.random.default_rng(3)
    q, qd = rng.uniform(-0.5, 0.5, 6), rng.uniform(0.3, 0.6, 6)
    reference = Reference(*rng.uniform(-1, 1, (3, 6)))
    tau = law(State(0.0, q, qd), reference)
    L, K, _ = law.gains
    v, a = reference.qd + L * (reference.q - q), reference.qdd + L * (reference.qd - qd)
    expected = (
        twin.mass_matrix(ARM, q) @ a
        + twin.coriolis_matrix(ARM, q, qd) @ v
        + twin.gravity_torque(ARM, q)
        + twin.friction_torque(ARM, qd + 1e-3 * a)
        + K * (v - qd)
    )
    np.testing.assert_allclose(tau, expected, rtol=0, atol=0.02)  # the level of friction is that at qd
    without = controllers.make("adaptive", ARM.with_drives("ideal"), gain=0.0, K=K)
    tau = without(State(0.0, q, qd), reference)
    links = expected - ARM.drives.reflected_inertia @ a - twin.friction_torque(ARM, qd + 1e-3 * a)
    np.testing.assert_allclose(tau, links, rtol=0, atol=1e-11)


def test_rollout_equals_the_closed_loop():
    plant, law = ARM.with_payload(PAYLOAD), controllers.make("adaptive", ARM, gain=1.0)
    log, rollout = run(plant, law), twin.run_rollouts(plant, law, MOVE)
    np.testing.assert_allclose(rollout.q, log.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(rollout.law["payload"], log.law_signals["payload"], rtol=0, atol=1e-6)


def test_payload_is_that_of_true_changes():
    """If the changes are those of a payload, or differ in ways that no torque shows, the payload is found."""
    law, before = controllers.make("adaptive", ARM), ARM.inertias
    change = ARM.with_payload(PAYLOAD).inertias - before
    law.memory[2:].reshape(-1)[:60] = change.ravel()
    flange = change[ARM.tree.flange_joint]
    np.testing.assert_allclose(law.payload, flange[:4], rtol=0, atol=1e-9)
    unseen = np.zeros((6, 10))
    unseen[0, 0] = 5.0  # mass of the link that only turns about the vertical: no torque depends on it
    law.memory[2:].reshape(-1)[:60] += unseen.ravel()
    np.testing.assert_allclose(law.payload, flange[:4], rtol=0, atol=1e-9)


def test_gains_are_settings_and_rows():
    assert controllers.settings("adaptive") == ("bandwidth", "period", "L", "K", "gain")
    law = controllers.make("adaptive", ARM, gain=7.0)
    assert list(law.rows) == ["L", "K", "gain"]
    assert np.all(law.rows["gain"] == 7.0)
    for settings, message in (
        ({"gain": -1.0}, "one gain of 0 or more"),
        ({"gain": [1, 2, 3, 4, 5, 6]}, "one gain of 0 or more"),
        ({"K": 0.0}, "expected L and K above 0"),
        ({"L": [1.0, 2.0]}, "expected L to be one number, or one for each of 6 joints"),
    ):
        with pytest.raises(ValueError, match=message):
            controllers.make("adaptive", ARM, **settings)


# The example of Slotine and Li with two links and four parameters, as `integrated` below computes it.

TRUE = np.array([3.34, 0.97, 1.2 * np.cos(np.pi / 6), 1.2 * np.sin(np.pi / 6)])


def example_regressor(q, qd, v, a):
    """Return Y (2, 4) of the horizontal arm for the parameters of `TRUE`."""
    c, s = np.cos(q[1]), np.sin(q[1])
    turning = np.array([[-qd[1], -(qd[0] + qd[1])], [qd[0], 0.0]]) @ v
    row_1 = [a[0], a[1], (2 * a[0] + a[1]) * c + turning[0] * s, (2 * a[0] + a[1]) * s - turning[0] * c]
    row_2 = [0.0, a[0] + a[1], a[0] * c + turning[1] * s, a[0] * s - turning[1] * c]
    return np.array([row_1, row_2])


def motion(t):
    w, size = 2 * np.pi, np.radians([30.0, 45.0])
    return size * (1 - np.cos(w * t)), size * w * np.sin(w * t), size * w**2 * np.cos(w * t)


def integrated(adaptation, *, dt=1e-3, end=3.0, L=20.0, K=100.0, start=(0.0,) * 4):
    """Integrate plant and estimates by RK4; return the errors (N, 2) and the last estimates (4,)."""
    matrix = np.asarray(adaptation)

    def rate(t, x):
        q, qd, estimates = x[:2], x[2:4], x[4:]
        ref = motion(t)
        v, a = ref[1] + L * (ref[0] - q), ref[2] + L * (ref[1] - qd)
        Y = example_regressor(q, qd, v, a)
        tau = Y @ estimates + K * (v - qd)
        zero = np.zeros(2)
        M = np.stack([example_regressor(q, zero, zero, e) @ TRUE for e in np.eye(2)], axis=1)
        qdd = np.linalg.solve(M, tau - example_regressor(q, qd, qd, zero) @ TRUE)
        return np.concatenate([qd, qdd, matrix @ Y.T @ (v - qd)])

    x, errors = np.concatenate([np.zeros(4), start]), []
    for k in range(round(end / dt)):
        t = k * dt
        errors.append(motion(t)[0] - x[:2])
        k1 = rate(t, x)
        k2 = rate(t + dt / 2, x + dt / 2 * k1)
        k3 = rate(t + dt / 2, x + dt / 2 * k2)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + rate(t + dt, x + dt * k3))
    return np.array(errors), x[4:]


def example_arm(pi):
    """Return two level rods of 1 m, of which the parameters `TRUE` are `pi`."""
    robot = replace(twin.load("two_link"), gravity=np.zeros(3))
    values = dynamic_parameters(robot).values.reshape(2, 10) * 0
    values[0, 4:7] = 1e-9
    values[0, 6], values[1, 6] = pi[0] - pi[1], pi[1]
    values[1, 1:3] = pi[2], -pi[3]
    values[:, 0] = 0.0
    return twin.dynamics.with_dynamic_parameters(robot, values.ravel())


def test_law_equals_an_independent_integration_of_the_example():
    """`adaptive` on the example's arm, in steps of 0.1 ms, against RK4 with the same matrix of adaptation."""
    dt, gain, K = 1e-4, 1.0, 100.0
    law = Adaptive(example_arm(0 * TRUE), period=dt, L=20.0, K=K, gain=gain)
    tables = law.parameters[3:].reshape(3 + 4, -1)
    G = tables[0]
    tables[1:3] = [[-np.inf], [np.inf]]  # the example has no bounds
    to_example = np.zeros((4, 20))  # (3.34, ...) from the inertial parameters of the links
    to_example[0, [6, 16]], to_example[1, 16] = 1.0, 1.0
    to_example[2, 11], to_example[3, 12] = 1.0, -1.0
    to_example[0, 10] = 1.0  # the second link's mass at 1 m turns with the first
    adaptation = to_example @ np.diag(G[:20]) @ to_example.T
    expected, _ = integrated(adaptation, dt=dt, end=0.5, K=K)
    t = np.arange(len(expected)) * dt
    reference = Samples(t, *(np.array(rows) for rows in zip(*map(motion, t), strict=True)))
    plant = twin.AnalyticPlant(example_arm(TRUE), dt)
    log = twin.run_closed_loop(plant, law, reference)
    np.testing.assert_allclose(log.q_ref - log.q, expected, rtol=0, atol=2e-4)
    assert np.max(np.abs(expected)) > 0.02


def test_two_pass_regressor_is_what_the_law_uses():
    model, rng = Model.of(ARM, 1e-3), np.random.default_rng(0)
    q, qd, v, a = rng.uniform(-1, 1, (4, 6))
    Y = np.empty((6, 84))
    regressor(model.tree, model.drives, model.gravity, q, qd, v, a, 0.0, Y)
    tau = (
        twin.mass_matrix(ARM.arm, q) @ a + twin.coriolis_matrix(ARM, q, qd) @ v + twin.gravity_torque(ARM, q)
    )
    np.testing.assert_allclose(Y[:, :60] @ ARM.inertias.ravel(), tau, rtol=0, atol=1e-12)


def changes_after(q_error, qd_ref, law):
    """Return the changes after one call at rest."""
    state, zeros = State(0.0, np.zeros(6), np.zeros(6)), np.zeros(6)
    law.reset()
    law(state, Reference(q_error * np.ones(6), qd_ref * np.ones(6), zeros))
    return law.changes.copy()


def test_static_friction_hides_errors_of_slow_joints_up_to_its_level():
    """With a gain K for which the dead zone is narrower than the speeds at which it applies."""
    level = ARM.drives.static
    law = controllers.make("adaptive", ARM, K=level / 0.005)
    assert np.all(ARM.drives.coulomb < 0.9 * level)
    inside = changes_after(0.95 * 0.005 / 20.0, 0.0, law)
    np.testing.assert_array_equal(inside, 0.0)
    outside = changes_after(0.0, 0.015, law)
    fast = changes_after(0.0, 0.025, law)  # nothing can hold a joint that shall move so fast
    assert np.any(outside != 0.0)
    assert np.max(np.abs(fast)) > 3.0 * np.max(np.abs(outside))


def test_springs_are_no_payload(tmp_path):
    """At rest the first torque holds arm and springs, and no payload is found where there is none."""
    beside = torques(tmp_path)
    robot = replace(ARM, tree=replace(ARM.tree, torques=(beside["spring"], beside["cylinder"])))
    robot = uncompiled(robot)
    law = controllers.make("adaptive", robot)
    part = Samples(*(array[:100] for array in STILL))
    log = run(robot, law, part)
    assert error(log) < 1e-13
    np.testing.assert_allclose(law.payload, 0.0, rtol=0, atol=1e-9)
