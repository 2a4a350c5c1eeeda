"""Let go at rest in a pose: who carries the arm's weight?

What it shows: PD without a model sags until its springs carry the arm, by an error that can be predicted
without simulating: `Kp e = g(q_ref - e)`. PID sags first and then creeps back as its integral takes the
weight over. The laws that know gravity do not move at all.

What must hold: once it has settled, the arm is where the prediction says; and all the way there the engine
does what the model predicts. The poles of the loop, linearised about the predicted rest position, tell how
long it takes to settle. A hold that is too short for that, or with springs too soft to carry the arm at all,
is reported without a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios import base
from scenarios.base import Metric, named_pose, option, positive
from scenarios.checks.bounds import ideal_drives
from scenarios.checks.closed_loop import closed_loop
from scenarios.checks.motion_range import middle_and_half
from scenarios.checks.tracking import agreement_metrics, error_metrics, follow, sampled, validity_metrics
from twin.logs.figures import joint_error
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.sampling import Samples


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the hold."""

    pose: str | None = option(
        None, "named pose of the robot to hold (default test_3; where the robot names none, a bent one)"
    )
    duration: float = option(4.0, "how long, in s")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.duration, "duration", "s")


BENT = 0.25
SETTLED = 1e-9
"""[rad]: what may be left of the transient when it is compared. Seen after 4 s: 5e-15."""
TRANSIENT = 100.0
"""What is left of the transient after the time t is at most so many times the largest error times
`exp(-decay t)`: coupled and repeated poles begin higher than a single one. Seen: up to 6."""


def reference(robot: Robot, config: Config) -> Samples:
    """The pose, again and again."""
    from twin.trajectories.joint_trajectories import hold

    return sampled(config, hold(held_pose(robot, config.pose), config.duration))


def run(config: Config) -> Log:
    """Hold the pose."""
    return follow(config, *closed_loop(config, reference))


def held_pose(robot: Robot, name: str | None) -> NDArray:
    """The pose (n,) of that name, in [rad]; `None` for test_3, or for a pose of a robot without that name.

    That one lies `BENT` of the way from the middle of every joint's range to its upper end: in the middle
    many arms stand upright, and weigh on no joint.
    """
    if name is None and "test_3" not in robot.poses:
        middle, half = middle_and_half(robot)
        return middle + BENT * half
    return named_pose(robot, "test_3" if name is None else name)


def settled_error(log: Log) -> NDArray | None:
    """The error that remains once everything is at rest: (n,) in [rad]; PD alone has any.

    Solves `Kp e = g(q_ref - e)`, with `Kp = omega^2 Mbar`; `None` if no such rest is found from `e = 0`.
    """
    if log.controller != "pd":
        return np.zeros(log.robot.n)
    from scipy.optimize import root

    from controllers.gains import diagonal_inertia
    from twin.dynamics.equation_of_motion import gravity_torque

    Mbar, square = diagonal_inertia(log.robot), float(log.arrays["bandwidth"]) ** 2
    q_ref = log.q_ref[-1]

    def missing(e: NDArray) -> NDArray:  # acceleration
        return square * e - gravity_torque(log.robot, q_ref - e) / Mbar

    e = root(missing, np.zeros(log.robot.n), tol=1e-14).x
    return e if np.all(np.abs(missing(e)) <= 0.01 * SETTLED * square) else None


def decay(log: Log, settled: NDArray) -> float:
    """How fast the slowest part of the transient dies away about the settled error, in [1/s].

    Small motions about that rest obey `M dd + Kd d + (Kp + G) d = 0` with the stiffness `G = dg/dq` of the
    weight; PID adds `Ki` times the integral of d. The decay is the least distance of the poles from the
    imaginary axis, negative where they lie beyond it: M differs from the Mbar of the gains, and is coupled,
    so that the poles are not at `-omega`. A law that knows gravity starts at rest: nothing is to die away.
    """
    if log.controller not in ("pd", "pid"):
        return np.inf
    from controllers.gains import pd_gains, pid_gains
    from twin.dynamics.equation_of_motion import gravity_torque, mass_matrix

    robot, bandwidth, n = log.robot, float(log.arrays["bandwidth"]), log.robot.n
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


def metrics(log: Log) -> tuple[Metric, ...]:
    """Tracking error, and the last error - predicted one, limited where the transient had time to end."""
    return (*error_metrics(log), *settled_metrics(log), *agreement_metrics(log), *validity_metrics(log))


def settled_metrics(log: Log) -> tuple[Metric, ...]:
    """The last error - predicted one.

    Nothing where no rest can be predicted, as where friction holds, or under a law that is not ours.
    """
    if not (ideal_drives(log) and log.arrays["known_law"]):
        return ()
    predicted = settled_error(log)
    if predicted is None:
        return ()
    difference = float(np.max(np.abs(joint_error(log)[-1] - predicted)))
    rate, time = decay(log, predicted), float(log.t[-1])
    left = TRANSIENT * float(np.max(np.abs(joint_error(log)))) * float(np.exp(min(-rate * time, 700.0)))
    over = left <= SETTLED
    told = f"{np.max(np.abs(predicted)):.3g} rad predicted without simulating; "
    told += (
        "the transient has died away"
        if over
        else f"not settled for certain: {time:g} s at a decay of {rate:.3g}/s"
    )
    return (Metric("last error - predicted one", difference, "rad", SETTLED if over else None, told),)
