"""The inverse of elastic joints leaves the arm no error but that of the samples."""

import numpy as np
import pytest

import controllers
import twin
from controllers.elastic_inverse import twists
from scenarios.joint_tracking import JointTracking
from scenarios.setup import Setup
from tests.support.sample_drives import uncoupled
from twin.base.errors import LimitError
from twin.physics.trajectories.sampling import Reference, State, semi_implicit_from_positions

pytestmark = pytest.mark.filterwarnings("ignore::twin.errors.DriveWarning")

ARM = twin.load("irb140").with_drives("elastic")
QUINTIC = twin.quintic(np.zeros(6), ARM.poses["test_1"], 1.0)


def smooth_to_the_snap(period):
    """Return a motion of ninth order in 1 s, whose first four derivatives vanish at its ends."""
    x = np.clip(np.arange(-1, round(1 / period) + 2) * period, 0, 1)[:, None]
    share = sum(c * x ** (5 + k) for k, c in enumerate([126.0, -420.0, 540.0, -315.0, 70.0]))
    q = share * ARM.poses["test_1"]
    return semi_implicit_from_positions(q[1:-1], period, before=q[0], after=q[-1])


def error(name, reference, period=1e-3):
    law = controllers.make(name, ARM, period=period)
    log = twin.run_closed_loop(twin.AnalyticPlant(ARM, period), law, reference)
    return np.max(np.abs(log.q - log.q_ref))


def test_springs_cost_nothing_any_more():
    assert error("elastic_inverse", smooth_to_the_snap(1e-3)) < 1e-9
    assert error("elastic_inverse", smooth_to_the_snap(2.5e-4), 2.5e-4) < 1e-11
    assert error("elastic_inverse", twin.sample_semi_implicit(QUINTIC, 1e-3)) < 1e-7
    assert error("computed_torque", twin.sample_semi_implicit(QUINTIC, 1e-3)) > 5e-4


def test_twists_transmit_the_torque_in_the_engines_steps():
    K, D, dt = np.array([1e4, np.inf]), np.array([3.0, 0.0]), 1e-3
    t = np.arange(800) * dt
    T = np.stack([5 + 40 * np.sin(2 * t) ** 6, np.ones(800)], axis=1)
    e = twists(T, K, D, dt)
    mean = (e[:-2] + 2 * e[1:-1] + e[2:])[:, 0] / 4
    transmitted = K[0] * mean + D[0] * (e[2:] - e[:-2])[:, 0] / (2 * dt)
    np.testing.assert_allclose(transmitted[5:-5], T[6:-6, 0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(e[0], [5 / K[0], 0.0], rtol=1e-14)
    assert np.all(e[:, 1] == 0.0)


def test_torque_along_the_table_is_its_equation():
    """The motors' feedback accelerates rotors and, on the average, the links at q = 0."""
    arm, rng = uncoupled(ARM), np.random.default_rng(2)
    law, drives = controllers.make("elastic_inverse", arm), arm.drives
    table, (q, qd) = rng.uniform(0.5, 1.0, (4, 6)), rng.uniform(0.1, 0.4, (2, 6))
    (T, theta, thetad, thetadd), (Kp, Kv) = table, law.gains
    feedback = Kv * (thetad - qd) + Kp * (theta - q)
    after = qd + 1e-3 * (thetadd + feedback)
    level = drives.coulomb + (drives.static - drives.coulomb) * np.exp(-((qd / drives.stribeck_speed) ** 2))
    links = np.diag(twin.mass_matrix(ARM.with_drives("ideal"), np.zeros(6)))
    expected = T + links * feedback + drives.reflected_inertia @ (thetadd + feedback)
    expected += level * np.sign(after) + drives.viscous * after
    tau = law(State(0.0, q, qd, np.zeros(6), table), Reference(*np.zeros((3, 6))))
    np.testing.assert_allclose(tau, expected, rtol=1e-12)


@pytest.mark.parametrize("drives", ["ideal", "rigid"])
def test_without_springs_it_is_computed_torque(drives):
    robot, reference = ARM.with_drives(drives), twin.sample_semi_implicit(QUINTIC, 1e-3)
    logs = [
        twin.run_closed_loop(twin.AnalyticPlant(robot), controllers.make(name, robot), reference)
        for name in ("elastic_inverse", "computed_torque")
    ]
    assert np.array_equal(logs[0].q, logs[1].q)


def test_part_of_a_run_is_computed_torque():
    reference = twin.sample_semi_implicit(QUINTIC, 1e-3)
    part = type(reference)(*(array[:50] for array in reference))
    logs = []
    for name in ("elastic_inverse", "computed_torque"):
        plant = twin.AnalyticPlant(ARM)
        plant.reset(reference.q[0])
        logs.append(twin.run_closed_loop(plant, controllers.make(name, ARM), part, part=True))
    assert np.array_equal(logs[0].q, logs[1].q)


def test_rollout_equals_the_closed_loop():
    reference, law = twin.sample_semi_implicit(QUINTIC, 1e-3), controllers.make("elastic_inverse", ARM)
    log = twin.run_closed_loop(twin.AnalyticPlant(ARM), law, reference)
    assert np.array_equal(twin.run_rollouts(ARM, law, reference).q, log.q)


def test_reference_that_jumps_is_refused_with_its_sample():
    q = np.zeros((100, 6))
    q[40:, 2] = 0.1
    with pytest.raises(LimitError, match=r"jumps at t = 0.037 s \(sample 37\): the springs of joint_"):
        error("elastic_inverse", semi_implicit_from_positions(q, 1e-3))


def test_scenario_gives_the_model_its_springs():
    logs = [
        JointTracking(duration=0.5).run(Setup(controller=name, drives="elastic")).log
        for name in ("elastic_inverse", "computed_torque")
    ]
    assert [log.model_drives for log in logs] == ["elastic", "rigid"]
    errors = [np.max(np.abs(log.q - log.q_ref)) for log in logs]
    assert errors[0] < 0.3 * errors[1]
