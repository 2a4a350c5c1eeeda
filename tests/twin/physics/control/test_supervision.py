"""The residual observer finds what acts on the arm from its motors alone."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

import controllers
import twin
from twin.physics.control.supervision import (
    ResidualObserver,
    hidden_force,
    lacking_mass,
    residuals,
    thresholds,
)
from twin.physics.robot.quantities import changed

K, T = 60.0, 1e-3
ARM = twin.load("irb140").with_payload(twin.Payload(3.0, [0.05, 0.0, 0.1], np.diag([0.02, 0.02, 0.02])))
TOOL = twin.pose_matrix([0.02, -0.03, 0.15, 1, 0, 0, 0])
PUSH = twin.dynamics.Environment(twin.dynamics.pushes("0.1:0.6 20,-15,30,0.3,0.2,-0.1"), (), TOOL)


class Drift(NamedTuple):
    """Motion in which all joints move all the time, faster and slower."""

    duration: float = 0.8

    def __call__(self, t):
        t = np.asarray(t, float)[..., None]
        a, w = np.array([0.02, 0.03, -0.02, 0.02, 0.03, 0.02]), np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
        v = np.array([0.5, 0.4, -0.5, 0.9, 0.8, -1.0])
        q = -0.2 + v * t + a * np.sin(w * t)
        return q, v + a * w * np.cos(w * t), -a * w**2 * np.sin(w * t)


MOVE = twin.sample_semi_implicit(Drift(), T)


def pushed(robot, plant=twin.AnalyticPlant, law="computed_torque", model=None, environment=PUSH):
    """Return the log of a run under a push."""
    control, made = controllers.make(law, robot if model is None else model), plant(robot)
    try:
        return twin.run_closed_loop(made, control, MOVE, environment=environment)
    finally:
        made.close()


def filtered(log, K):
    """Return `J^T F` (N, n) of the log's wrench, filtered as the observer does."""
    torque = np.einsum("kji,kj->ki", twin.jacobian(log.robot, log.q, log.T_flange_tool), log.wrench)
    found = np.zeros_like(torque)
    for k in range(1, len(found)):
        found[k] = found[k - 1] + min(K * T, 1.0) * (torque[k - 1] - found[k - 1])
    return found


@pytest.mark.parametrize("plant", [twin.AnalyticPlant, twin.Simulation])
@pytest.mark.parametrize(
    ("robot", "K"),
    [(ARM.with_drives("ideal"), K), (ARM.with_drives("rigid"), K), (ARM.with_drives("rigid"), 2000.0)],
    ids=["ideal", "rigid", "unfiltered"],
)
def test_residual_is_the_filtered_torque_of_the_push(robot, K, plant):
    log = pushed(robot, plant)
    assert np.abs(log.qd).min() > 0.05
    assert not log.saturated.any()
    r = residuals(log, robot, K)
    np.testing.assert_allclose(r, filtered(log, K), rtol=0, atol=1e-11)
    assert np.abs(r).max() > 10.0


def test_samples_one_by_one_and_a_whole_log_and_dob_agree_to_the_bit():
    robot = ARM.with_drives("rigid")
    log = pushed(robot, law="dob")
    whole = residuals(log, robot, 100.0)
    np.testing.assert_array_equal(whole, log.law_signals["disturbance"])
    observer, parts = ResidualObserver(robot, 100.0, T), np.split(np.arange(len(log.t)), [1, 2, 6, 300])
    rows = [observer.follow(log.q[part], log.qd[part], log.tau[part]) for part in parts]
    np.testing.assert_array_equal(np.concatenate(rows), whole)


def test_textbook_observer_in_continuous_time_is_off_by_hundredths():
    """De Luca's `r = K (p - p_0 - int(tau + C^T qd - g + r) dt)`, by Euler steps."""
    robot = ARM.with_drives("ideal")
    log = pushed(robot)
    M, C = twin.mass_matrix(robot, log.q), twin.coriolis_matrix(robot, log.q, log.qd)
    p, g = np.einsum("kij,kj->ki", M, log.qd), twin.gravity_torque(robot, log.q)
    rate = log.tau + np.einsum("kji,kj->ki", C, log.qd) - g
    r, integral = np.zeros_like(p), np.zeros(6)
    for k in range(1, len(p)):
        integral += T * (rate[k - 1] + r[k - 1])
        r[k] = K * (p[k] - p[0] - integral)
    assert 0.01 < np.abs(r - filtered(log, K)).max() < 0.5
    assert np.abs(residuals(log, robot, K) - filtered(log, K)).max() < 1e-11


def test_torque_at_a_limit_is_no_residual():
    limited = changed(ARM.with_drives("rigid"), [("torque_limit.1", 41.5)])
    log = pushed(limited)
    assert log.saturated[:, 0].sum() > 50
    assert np.abs(log.qd).min() > 0.05
    np.testing.assert_allclose(residuals(log, limited, K), filtered(log, K), rtol=0, atol=1e-11)


@pytest.mark.parametrize("axis", range(3))
def test_force_that_sticking_joints_hide_is_the_one_that_moves_the_arm(axis):
    """The coupled wrist, which yields first with this tool, sticks by its motors, not by its joints."""
    robot = twin.load("irb140").with_drives("rigid")
    q = np.array([0.3, -0.2, 0.4, 0.5, 0.7, -0.3])
    gravity, long = twin.gravity_torque(robot, q), twin.pose_matrix([0.2, 0.1, 0.5, 1, 0, 0, 0])
    F = np.zeros(6)
    F[axis] = hidden_force(robot, q, long)[axis]
    assert 10.0 < F[axis] < 1000.0
    for share, moves in ((0.999, False), (1.001, True)):
        plant = twin.AnalyticPlant(robot)
        plant.reset(q)
        plant.step(gravity, share * F, long)
        assert bool(np.abs(plant.state()[1]).max() > 1e-9) == moves
    assert hidden_force(robot, [q, q]).shape == (2, 3)
    np.testing.assert_array_equal(hidden_force(robot.with_drives("ideal"), q), np.zeros(3))


def test_a_sticking_joint_hides_at_most_its_static_friction():
    robot = ARM.with_drives("rigid")
    rest = twin.sample(twin.hold([0.2] * 6, 0.4), T)
    law = controllers.make("computed_torque", robot)
    log = twin.run_closed_loop(twin.AnalyticPlant(robot), law, rest, environment=PUSH)
    excess = np.abs(residuals(log, robot, 1.0 / T) - filtered(log, 1.0 / T))
    assert robot.drives is not None
    static = np.abs(robot.drives.friction_matrix.T) @ robot.drives.static
    assert np.max(excess - static) < 1e-9
    assert np.max(excess) > 5.0


def test_wrong_tool_data_and_friction_are_distinguished():
    """A mass is found although friction is wrong, too, and wrong friction alone is no mass."""
    bare, free = twin.load("irb140").with_drives("rigid"), twin.dynamics.Environment()
    rough = changed(bare, [("drives.coulomb", 1.2), ("drives.viscous", 1.2)])
    body = twin.Payload(3.0, (0.05, 0.0, 0.1), 0.02 * np.eye(3))
    for robot, model, expected in (
        (bare.with_payload(body), bare, 3.0), (bare, bare.with_payload(body), -3.0),
        (bare.with_payload(body), rough, 3.0),
    ):  # fmt: skip
        mass, share = lacking_mass(pushed(robot, model=model, environment=free), model)
        assert mass == pytest.approx(expected, abs=0.02)
        assert share > 0.5
    mass, share = lacking_mass(pushed(bare, model=rough, environment=free), rough)
    assert abs(mass) < 0.05
    assert share < 0.2


def test_thresholds_lie_above_free_motion():
    np.testing.assert_allclose(thresholds([10.0, 2.0]), [11.5, 2.7])


def test_friction_of_resting_joints_is_bounded_by_every_combination_of_the_shafts():
    """The wrist of the IRB 140 is coupled, so that friction of one shaft acts on several joints."""
    robot = twin.load("irb140").with_drives("rigid")
    drives = robot.drives
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    largest = np.abs(signs * drives.static @ drives.friction_matrix).max(axis=0)
    assert np.any(largest > 1.01 * drives.static)
    np.testing.assert_allclose(ResidualObserver(robot).parameters[1], largest, rtol=1e-14)
