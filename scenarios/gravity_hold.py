"""Scenario `gravity_hold`: a constant pose, and the sag of the arm in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.bounds import is_plain
from scenarios.judging.motion_range import middle_and_half
from scenarios.judging.tracking import error_metrics, validity_metrics
from scenarios.metric import Metric
from scenarios.options import option, positive
from scenarios.scenario import TrackingScenario
from scenarios.setup import named_pose
from twin.data.logs.figures import joint_error
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from scenarios.judging.run import TrackingRun
    from twin.data.logs.log import Log
    from twin.physics.trajectories.joint_trajectories import Trajectory

BENT = 0.25
"""Share of the way from the middle of a joint's range to its upper end, in the default pose."""
SETTLED = 1e-9
"""[rad]: largest transient that may remain in the comparison. Observed after 4 s: 5e-15."""
TRANSIENT = 100.0
"""Bound of the transient after the time t, over the largest error times `exp(-decay t)`.

Coupled and repeated poles begin higher than a single one. Observed: up to 6.
"""


class GravityHold(TrackingScenario):
    """Hold a pose from rest, and measure the sag of the arm under each controller.

    What it shows: PD without a model sags until its springs carry the arm. This error can be predicted
    without a simulation: `Kp e = g(q_ref - e)`. PID sags first, then creeps back while its integral takes
    over the weight. Controllers with gravity compensation do not move at all.

    What must hold: the settled arm has the predicted error, and the engine agrees with the model throughout.
    The poles of the loop, linearised about the predicted rest position, give the settling time. If the run is
    too short to settle, or the springs are too soft to carry the arm, the error is reported without a limit.
    """

    pose: str | None = option(
        None, "named pose to hold (default test_3; for a robot without this pose, a bent one)"
    )
    duration: float = option(4.0, "length of the run, in s")

    def __post_init__(self) -> None:
        positive(self.duration, "duration", "s")

    def motion(self, robot: Robot) -> Trajectory:
        """Return the constant pose."""
        from twin.physics.trajectories.joint_trajectories import hold

        return hold(held_pose(robot, self.pose), self.duration)

    def metrics(self, run: TrackingRun) -> tuple[Metric, ...]:
        """Return the tracking error, and the difference of the last error from the predicted one."""
        validity = validity_metrics(run.log)
        return (*error_metrics(run), *settled_metrics(run), *agreement_metrics(run), *validity)


def held_pose(robot: Robot, name: str | None) -> NDArray:
    """Return the joint angles (n,) of the pose to hold, in [rad].

    Args:
        robot: the robot.
        name: name of the pose; `None` for test_3 or, if the robot has no such pose, a bent one. The bent pose
            is `BENT` of the way from the middle of every joint's range to its upper end. In the middle itself
            many arms stand upright and load no joint.
    """
    if name is None and "test_3" not in robot.poses:
        middle, half = middle_and_half(robot)
        return middle + BENT * half
    return named_pose(robot, "test_3" if name is None else name)


def settled_error(log: Log, bandwidth: float) -> NDArray | None:
    """Return the error (n,) at rest, in [rad]; it is zero except under PD.

    Solves `Kp e = g(q_ref - e)`, with `Kp = omega^2 Mbar`, from `e = 0`; `None` if no solution is found.
    """
    if log.controller != "pd":
        return np.zeros(log.robot.n)
    from scipy.optimize import root

    from controllers.gains import diagonal_inertia
    from twin.physics.dynamics.equation_of_motion import gravity_torque

    Mbar, square = diagonal_inertia(log.robot), bandwidth**2
    q_ref = log.q_ref[-1]

    def residual(e: NDArray) -> NDArray:  # acceleration, in [rad/s^2]
        return square * e - gravity_torque(log.robot, q_ref - e) / Mbar

    e = root(residual, np.zeros(log.robot.n), tol=1e-14).x
    return e if np.all(np.abs(residual(e)) <= 0.01 * SETTLED * square) else None


def decay(log: Log, bandwidth: float, settled: NDArray) -> float:
    """Return the decay rate of the slowest part of the transient about the settled error, in [1/s].

    Small motions about the rest position obey `M dd + Kd d + (Kp + G) d = 0` with the stiffness `G = dg/dq`
    of the weight; PID adds `Ki` times the integral of d. The decay is the smallest distance of the poles from
    the imaginary axis, negative if a pole is in the right half-plane. M differs from the Mbar of the gains,
    and it is coupled, so that the poles are not at `-omega`. With gravity compensation there is no transient:
    the decay is infinite.
    """
    if log.controller not in ("pd", "pid"):
        return np.inf
    from controllers.gains import pd_gains, pid_gains
    from twin.physics.dynamics.equation_of_motion import gravity_torque, mass_matrix

    robot, n = log.robot, log.robot.n
    q = log.q_ref[-1] - settled
    h = 1e-6
    G = (gravity_torque(robot, q + h * np.eye(n)) - gravity_torque(robot, q - h * np.eye(n))).T / (2 * h)
    if log.controller == "pd":
        gains = pd_gains(robot, bandwidth)
        forces = [np.diag(gains.Kp) + G, np.diag(gains.Kd)]
    else:
        gains = pid_gains(robot, bandwidth)
        forces = [np.diag(gains.Ki), np.diag(gains.Kp) + G, np.diag(gains.Kd)]
    companion = np.eye(len(forces) * n, k=n)
    companion[-n:] = -np.linalg.solve(mass_matrix(robot, q), np.hstack(forces))
    return -float(np.max(np.linalg.eigvals(companion).real))


def settled_metrics(run: TrackingRun) -> tuple[Metric, ...]:
    """Return the difference of the last error from the predicted one, with a limit if the arm has settled.

    Empty if no rest position can be predicted, as with friction or a user's controller.
    """
    log, loop = run.log, run.loop
    if loop is None or not is_plain(run):
        return ()
    predicted = settled_error(log, loop.bandwidth)
    if predicted is None:
        return ()
    difference = float(np.max(np.abs(joint_error(log)[-1] - predicted)))
    rate, time = decay(log, loop.bandwidth, predicted), float(log.t[-1])
    left = TRANSIENT * float(np.max(np.abs(joint_error(log)))) * float(np.exp(min(-rate * time, 700.0)))
    has_settled = left <= SETTLED
    why = f"predicted without simulation: {np.max(np.abs(predicted)):.3g} rad; "
    why += (
        "the transient has decayed"
        if has_settled
        else f"the transient may not have decayed after {time:g} s at a rate of {rate:.3g}/s"
    )
    return (Metric("last error - predicted one", difference, "rad", SETTLED if has_settled else None, why),)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
