"""The arm as its tool feels it: operational space against the joints' own equations of motion."""

import re

import numpy as np
import pytest

import twin
from tests.support.dh_arms import T_TOOL, states_of, times
from tests.support.laboratory_arms import laboratory_arm
from twin.base.errors import SingularityError
from twin.physics.dynamics.operational_space import operational_space
from twin.physics.robot.robot import Payload


def transposed(A):
    return np.swapaxes(A, -1, -2)


def condition(robot, q, tool):
    """Return the condition number of L^-1 J^T with M = L L^T; the light wrist alone makes it a thousand."""
    J, L = twin.jacobian(robot, q, tool), np.linalg.cholesky(twin.mass_matrix(robot, q))
    return np.linalg.cond(np.linalg.solve(L, transposed(J)))[:, None]


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_operational_space_dynamics_equal_the_equation_of_motion(name):
    robot = twin.load(name).with_payload(Payload(3.0, (0.02, 0.0, 0.05)))
    q, qd, qdd = states_of(robot, 200)
    space = operational_space(robot, q, qd, T_TOOL)
    J, J_dot = twin.jacobian(robot, q, T_TOOL), twin.jacobian_dot(robot, q, qd, T_TOOL)
    Vd = times(J, qdd) + times(J_dot, qd)
    tau = times(transposed(J), times(space.Lambda, Vd) + space.mu + space.p)
    expected = twin.inverse_dynamics(robot, q, qd, qdd)
    size = np.max(np.abs(expected), axis=1, keepdims=True)
    error = np.abs(tau - expected) / size
    rounding = 6 * np.finfo(float).eps  # sums of six products; up to half of it was observed
    assert np.max(error / condition(robot, q, T_TOOL)) < rounding
    assert np.median(np.max(error, axis=1)) < 1e-13


@pytest.mark.parametrize(
    ("name", "task"), [("seven", np.eye(6)), ("youbot", np.eye(6)[:3]), ("seven", np.eye(6)[1:4])]
)
def test_wrenches_accelerate_the_task_and_idle_torques_do_not(name, task):
    robot = laboratory_arm(name)
    q, qd, tau_any = states_of(robot, 12)
    space = operational_space(robot, q, qd, T_TOOL, task)
    m = len(task)
    assert space.J_bar.shape == (12, robot.n, m)
    J = task @ twin.jacobian(robot, q, T_TOOL)
    J_dot = task @ twin.jacobian_dot(robot, q, qd, T_TOOL)
    np.testing.assert_allclose(J @ space.J_bar, np.tile(np.eye(m), (12, 1, 1)), rtol=0, atol=1e-11)
    wanted = np.random.default_rng(2).normal(size=(12, m))
    F = times(space.Lambda, wanted) + space.mu + space.p
    idle = tau_any - times(transposed(J), times(transposed(space.J_bar), tau_any))
    assert np.max(np.abs(idle)) > 0.1
    for extra in (0 * idle, idle):
        # mu and p hold what reaches the task; the rest of C qd + g moves the arm as it likes.
        qdd = twin.forward_dynamics(robot, q, qd, times(transposed(J), F) + extra)
        got = times(J, qdd) + times(J_dot, qd)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-10)


def test_a_lost_direction_is_named(robot):
    q = np.deg2rad([10.0, 20, -30, 40, 0, 50])
    message = r"operational space does not exist: .* singular and cannot accelerate along \((?P<d>.*)\)"
    with pytest.raises(SingularityError, match=message) as told:
        operational_space(robot, q, np.zeros(6))
    direction = [float(x) for x in re.search(message, str(told.value))["d"].split(",")]
    np.testing.assert_allclose(direction @ twin.jacobian(robot, q), 0, rtol=0, atol=2e-3)
    with pytest.raises(SingularityError, match=r"of sample \[1\] does not exist"):
        operational_space(robot, [q + 0.3, q], np.zeros(6))
    task = np.eye(6)[:3]  # the position is free there
    assert operational_space(robot, q, np.zeros(6), None, task).Lambda.shape == (3, 3)
    with pytest.raises(SingularityError, match="6 directions, more than the 5 joints of the arm"):
        operational_space(laboratory_arm("youbot"), np.ones(5), np.ones(5))
    for task in (np.eye(3), np.zeros((0, 6))):
        told = re.escape(f"expected a finite task of shape (m, 6), got {task.shape}")
        with pytest.raises(ValueError, match=told):
            operational_space(robot, q, q, None, task)
