"""Fastest motions along a joint path, against TOPP-RA on the same spline with the same limits.

Ours cuts the intervals, so that torques hold between the points, too.  The row states the largest torque that
both reach there, as a share of the limit.
"""

import warnings
from collections.abc import Iterator

import numpy as np

import twin
from tests.bench.timing import Meter, Row, peer
from twin.physics.robot.robot import Robot


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare on 201 points one way, and on 201 points there and back."""
    with warnings.catch_warnings():  # about escape sequences in its docstrings
        warnings.simplefilter("ignore")
        if peer("toppra") is None:
            return
    start, end = robot.poses["zero"], robot.poses["test_1"]
    s = np.linspace(0.0, 1.0, 201)[:, None]
    one_way = twin.quintic(start, end, duration=1.0)(np.linspace(0.05, 0.95, 201))[0]
    there_and_back = start + 0.7 * (end - start) * np.sin(np.pi * s) + 0.05 * s
    for what, path, goal in (("one way", one_way, 1.0), ("there and back", there_and_back, 2.0)):
        ours, theirs = (lambda path=path: twin.time_optimal(robot, path)), toppra_motion(robot, path)
        shares = [_largest_share(robot, *motion) for motion in (_sampled(ours()), _their_samples(theirs()))]
        yield meter.compare(
            f"fastest motion {what}, torque {shares[0]:.3f}", f"TOPP-RA, torque {shares[1]:.3f}",
            ours, theirs, calls=10, goal=goal,
        )  # fmt: skip


def toppra_motion(robot: Robot, path):
    """Return the function that computes the trajectory of TOPP-RA with its interpolation scheme."""
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    bounds = np.stack([-robot.tau_max, robot.tau_max], axis=1)
    speeds = constraint.JointVelocityConstraint(np.stack([-robot.qd_max, robot.qd_max], axis=1))

    def compute():
        spline = toppra.SplineInterpolator(s, path)
        torques = constraint.JointTorqueConstraint(
            lambda q, qd, qdd: twin.inverse_dynamics(robot, q, qd, qdd), bounds, np.zeros(robot.n),
            discretization_scheme=constraint.DiscretizationType.Interpolation,
        )  # fmt: skip
        solver = algorithm.TOPPRA([speeds, torques], spline, gridpoints=s, solver_wrapper="seidel")
        return solver.compute_trajectory(0.0, 0.0)

    return compute


def _sampled(motion):
    return motion(np.linspace(0.0, motion.duration, 20001)[1:-1])


def _their_samples(trajectory):
    t = np.linspace(0.0, trajectory.duration, 20001)[1:-1]
    return trajectory(t), trajectory(t, 1), trajectory(t, 2)


def _largest_share(robot: Robot, q, qd, qdd) -> float:
    return float(np.max(np.abs(twin.inverse_dynamics(robot, q, qd, qdd)) / robot.tau_max))
