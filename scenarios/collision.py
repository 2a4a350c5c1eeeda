"""Scenario `collision`: pushes on the tool, which the motion supervision finds from the motors' torques."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.joint_tracking import JointTracking
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import option, positive
from scenarios.setup import Setup
from twin.physics.robot.robot import Robot

PUSHES = 7  # one in the middle of each seventh of the lap
LENGTH, BELONGS = 0.05, 0.3  # of a push, and time from its begin in which alarms belong to it, in [s]
EXPLAINED = 0.5  # share of the free residual from which wrong tool data explains it


@dataclass(frozen=True, eq=False)
class CollisionRun(TrackingRun):
    """Run of the lap without pushes, with the lap with them.

    Attributes:
        pushed: `twin.Log` of the lap with P pushes.
        model: the controller's model, a `twin.Robot`.
        starts: (P,) samples at which they begin.
    """

    pushed: Any = None
    model: Any = None
    starts: Any = None


class Collision(JointTracking):
    """Push the tool of a moving arm, and find the pushes from the torques of the motors.

    What it shows: motion supervision, as of MotionSup. An observer with the controller's model finds the
    external torques on all joints, the residuals. In a first lap, the cosines of `joint_tracking` without a
    push, they are the errors of the model; the thresholds lie 10 % and 0.5 N m above the largest of them. In
    a second lap the tool is pushed against its motion, in the middle of each seventh of the lap. Friction of
    the model that is 20 % wrong: `--with model.drives.coulomb=1.2`. Wrong tool data: `--payload 3
    --model-payload 0`. The arm goes on where a real one would stop.

    What must hold: each push is found whose torque `J^T F`, as the observer filters it, exceeds threshold and
    free residual together at a joint that moves, and no alarm is false: none is raised beside the pushes
    while the arm moves as in the first lap. Other pushes are only counted, and where no push must be found,
    none is judged. The lap without a push is judged as any motion. A push that moves no sticking joint does
    not change the motors' torques: the force up to which this is possible at rest is reported. Where a mass
    at the flange explains the residual of free motion, it is named: wrong tool data is no collision.
    """

    defaults = {"drives": "rigid"}
    variants = ()
    force: float = option(50.0, "force of each push, in N", motion=False)
    supervision: float = option(100.0, "level in % of the learned thresholds", motion=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.force, "force", "N")
        positive(self.supervision, "level of the supervision", "%")

    def check(self, setup: Setup) -> None:
        """Raise ValueError for another environment."""
        if setup.environment is not None:
            raise ValueError("expected no --push and no --surface: collision makes its own pushes")

    def suits(self, robot: Robot) -> bool:
        """Return whether the drives and the masses of the robot are known."""
        return robot.drives is not None and robot.has_inertia

    def run(self, setup: Setup | None = None) -> TrackingRun:
        """Run the lap without pushes, then with them."""
        from scenarios.judging.following import follow
        from twin.physics.kinematics.forward import jacobian

        setup = self.checked(setup)
        reference, arms, _ = self.loop(setup)
        free = follow(setup, reference, arms)
        if free.is_draw:
            return free
        starts = (len(reference.t) * (np.arange(PUSHES) + 0.5) / PUSHES).astype(int)
        J = jacobian(arms.plant, reference.q[starts], setup.T_flange_tool)[:, :3]
        v = np.einsum("pij,pj->pi", J, reference.qd[starts])
        F = -self.force * v / np.linalg.norm(v, axis=1, keepdims=True)
        rows = zip(reference.t[starts].tolist(), F.tolist(), strict=True)
        push = "; ".join(f"{t}:{t + LENGTH} {x},{y},{z}" for t, (x, y, z) in rows)
        pushed = follow(replace(setup, push=push, gui=False, progress=None), reference, arms).log
        return CollisionRun(**vars(free), pushed=pushed, model=setup.model_of(arms), starts=starts)

    def metrics(self, run: TrackingRun) -> tuple[Metric, ...]:
        """Return what was found and what was not, and what explains the free residual; then the tracking."""
        from scipy.signal import lfilter

        from twin.physics.control import supervision as sup
        from twin.physics.kinematics.forward import jacobian

        if not isinstance(run, CollisionRun):
            return tracking_metrics(run)
        log, T = run.pushed, run.log.time_step * run.log.steps_per_period
        largest = np.abs(sup.residuals(run.log, run.model)).max(axis=0)
        limits = 0.01 * self.supervision * sup.thresholds(largest)
        alarm: NDArray = np.any(np.abs(sup.residuals(log, run.model)) > limits, axis=1)
        # What an exact model would show of the push; the error of the model is as large as in free motion.
        torque = np.einsum("kji,kj->ki", jacobian(log.robot, log.q, log.T_flange_tool), log.wrench)
        shown = lfilter([0.0, sup.BANDWIDTH * T], [1.0, sup.BANDWIDTH * T - 1.0], torque, axis=0)
        certain = np.any((np.abs(shown) > limits + largest) & (np.abs(log.qd) > sup.MOVES), axis=1)
        window = np.minimum(run.starts[:, None] + np.arange(round(BELONGS / T)), len(alarm) - 1)
        found, sure = (series[window].any(axis=1) for series in (alarm, certain))
        delays = T * np.argmax(alarm[window], axis=1)[found]
        alarm[window] = False
        # A joint that sticks after a push shows its friction: only where the arm moves as freely as in the
        # first lap, and did for as long as the filter remembers, is an alarm false.
        other = np.any(np.abs(log.qd - run.log.qd) > sup.MOVES, axis=1)
        alarm &= np.convolve(other, np.ones(round(BELONGS / T)))[: len(other)] < 0.5
        hidden = sup.hidden_force(log.robot, log.q[run.starts], log.T_flange_tool)
        must, (mass, share) = np.sum(sure), sup.lacking_mass(run.log, run.model)
        rows: Any = (
            ("pushes missed", np.sum(sure & ~found), "", 0.0 if must else None, f"of {must} to be found"),
            ("pushes found", np.sum(found), "", None, f"of {PUSHES}"),
            ("longest delay of a found push", max(delays, default=None), "s", None, "until a threshold"),
            (
                "samples with a false alarm",
                np.sum(alarm),
                "",
                0.0,
                "beside the pushes, in the motion of the first lap",
            ),
            ("force that sticking joints hide", np.max(hidden), "N", None, "at rest, in the worst base axis"),
            ("tool data: more than the model", mass, "kg", None, f"explains {share:.0%} of the residual"),
        )
        checks = [Metric(*row) for row in rows if share > EXPLAINED or row[2] != "kg"]
        return (*checks, *tracking_metrics(run))


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
