"""Let go at rest in a pose: who carries the arm's weight?

What it shows: PD without a model sags until its springs carry the arm, by an error that can be foretold
without simulating: `Kp e = g(q_ref - e)`. PID sags first and then creeps back as its integral takes the
weight over. The laws that know gravity do not move at all.

What must hold: once it has settled, the arm is where the prediction says; and all the way there the engine
does what the model foretells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scenarios import base
from scenarios.base import Metric, one_of, option, positive
from scenarios.tracking import agreement_metrics, error_metrics, follow, sampled, validity_metrics
from scenarios.tracking_error import joint_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.log import Log


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the hold."""

    pose: str = option("test_3", "named pose of the robot to hold")
    duration: float = option(4.0, "how long, in s")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.duration, "duration", "s")


SETTLED = 1e-9
"""[rad]: what may be left of the transient when it is compared. Seen after 4 s: 5e-15."""


def run(config: Config) -> Log:
    """Hold the pose."""
    from twin.trajectories import hold

    robot = config.load_robot()
    one_of(config.pose, f"pose of {robot.name}", tuple(robot.poses))
    return follow(config, sampled(config, hold(robot.poses[config.pose], config.duration)), robot)


def settled_error(log: Log) -> NDArray:
    """The error that remains once everything is at rest: (n,) in [rad]; PD alone has any.

    Solves `Kp e = g(q_ref - e)`.
    """
    if log.controller != "pd":
        return np.zeros(log.robot.n)
    from scipy.optimize import root

    from controllers.gains import pd_gains
    from twin.dynamics import gravity_torque

    Kp = pd_gains(log.robot, float(log.arrays["bandwidth"])).Kp
    q_ref = log.q_ref[-1]
    return root(lambda e: e - gravity_torque(log.robot, q_ref - e) / Kp, np.zeros(log.robot.n), tol=1e-14).x


def metrics(log: Log) -> tuple[Metric, ...]:
    """Tracking error, and the last error - foretold one."""
    predicted = settled_error(log)
    difference = float(np.max(np.abs(joint_error(log)[-1] - predicted)))
    settled = Metric(
        "last error - foretold one",
        difference,
        "rad",
        SETTLED,
        f"{np.max(np.abs(predicted)):.3g} rad foretold without simulating; the transient has died away",
    )
    return (*error_metrics(log), settled, *agreement_metrics(log), *validity_metrics(log))
