"""The fastest motion along a path is at a limit nearly everywhere, and agrees with another implementation."""

import sys
import warnings

import numpy as np
import pytest

import twin
from twin.physics.trajectories.fastest_motion import fastest, interval_times, largest_x

ROBOT = twin.load("irb140").with_drives("rigid")


def test_one_axis_with_a_limit_of_acceleration_takes_twice_the_root():
    N, L, most = 50, 1.3, 2.0
    a, b, x = np.ones((N, 2, 1)), np.zeros((N, 2, 1)), np.zeros(N + 1)
    width = np.full(N, L / N)
    assert fastest(width, a, b, -most * a, most * a, np.full(N + 1, 1e9), x) == -1
    assert interval_times(width, x).sum() == pytest.approx(2 * np.sqrt(L / most), abs=1e-11)


@pytest.mark.skipif(sys.platform != "linux", reason="toppra has wheels for Linux only")
def test_the_time_law_agrees_with_another_implementation():
    with warnings.catch_warnings():  # about escape sequences in its docstrings
        warnings.simplefilter("ignore")
        import toppra
        from toppra import algorithm, constraint

    rng = np.random.default_rng(3)
    s = np.linspace(0, 1, 6)
    path = toppra.SplineInterpolator(s, rng.uniform(-1, 1, (6, 6)))
    grid = np.linspace(0, 1, 801)
    speed, acceleration = np.full(6, 3.0), np.full(6, 12.0)
    speeds, accelerations = (np.stack([-one, one], axis=1) for one in (speed, acceleration))
    exact = {"discretization_scheme": constraint.DiscretizationType.Interpolation}
    limits = [
        constraint.JointVelocityConstraint(speeds),
        constraint.JointAccelerationConstraint(accelerations, **exact),
    ]
    profile = algorithm.TOPPRA(limits, path, gridpoints=grid).compute_parameterization(0, 0)[1]
    dq, ddq = path(grid, 1), path(grid, 2)
    ends = [np.stack([one[:-1], one[1:]], axis=1) for one in (dq, ddq)]
    top = np.broadcast_to(acceleration, ends[0].shape).copy()
    x = np.zeros(801)
    x_max = ((speed / np.abs(dq)).min(axis=1)) ** 2
    assert fastest(np.diff(grid), *ends, -top, top, x_max, x) == -1
    theirs = interval_times(np.diff(grid), profile**2).sum()
    assert interval_times(np.diff(grid), x).sum() == pytest.approx(theirs, rel=1e-5)


def test_a_time_optimal_path_of_801_points():
    path = twin.quintic(ROBOT.poses["zero"], ROBOT.poses["test_1"], duration=1.0)(np.linspace(0, 1, 801))[0]
    motion = twin.time_optimal(ROBOT, path)
    q, qd, qdd = motion(np.array([-1.0, 0.0, motion.duration, motion.duration + 1.0]))
    assert np.array_equal(q[[0, 1]], path[[0, 0]])
    assert np.allclose(q[[2, 3]], path[[-1, -1]], rtol=0, atol=1e-12)
    assert np.abs(qd).max() < 1e-6
    assert not qdd[[0, 3]].any()
    t = np.linspace(0, motion.duration, 20001)
    q, qd, qdd = motion(t)
    assert np.abs(np.gradient(q, t, axis=0)[1:-1] - qd[1:-1]).max() < 0.02
    inner = slice(400, -400)
    tau = twin.inverse_dynamics(ROBOT, q[inner], qd[inner], qdd[inner])
    of_motors = np.linalg.solve(ROBOT.drives.coupling.T, tau.T).T
    used = np.abs(of_motors / ROBOT.drives.torque_max).max(axis=1)
    fast = np.abs(qd[inner] / ROBOT.qd_max).max(axis=1)
    assert 0.99 < used.max() <= 1.03
    assert (np.maximum(used, fast) > 0.9).mean() > 0.9  # something is at its limit nearly everywhere
    assert twin.time_optimal(ROBOT, path, share=0.5).duration > 1.1 * motion.duration
    assert twin.time_optimal(ROBOT, path[::-1]).duration == pytest.approx(motion.duration, rel=0.2)


def test_bad_paths_get_a_sentence():
    good = np.linspace(0, 0.1, 30).reshape(5, 6)
    for path, share, message in (
        (good[:3], 1.0, r"with N at least 4, got \(3, 6\)"),
        (0 * good, 1.0, "points 1 and the next are equal"),
        (good, 0.0, "expected a share above 0 and at most 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            twin.time_optimal(ROBOT, path, share=share)


def test_joints_without_speed_limits_leave_the_speed_of_a_path_finite():
    robot = twin.load("manutec_r3")
    assert not np.isfinite(robot.qd_max).any()
    dq = np.array([[[1.0, *[0.0] * (robot.n - 1)]] * 2])
    np.testing.assert_allclose(largest_x(robot, dq), np.full((1, 2), 1e12))
