"""Scenario `excitation`: a motion from whose log an arm can be identified."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import at_least, option, positive
from scenarios.scenario import TrackingScenario
from scenarios.setup import Sampling, Setup
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from collections.abc import Callable

    from twin.data.identification.excitation import FourierMotion
    from twin.physics.trajectories.sampling import Samples

CONDITION = 1000.0
"""Limit of the condition number; beyond it, parameters with similar effects cannot be distinguished."""
EVERY = 0.01
"""[s]: period of the samples that the figures are computed from."""


class Excitation(TrackingScenario):
    """Follow an excitation motion, to identify the arm's dynamic parameters from its log.

    What it shows: all joints move at once, each by a finite Fourier series, from rest to rest. The series are
    optimised so that the torques determine the base parameters of arm and drives as well as possible within
    the ranges, the speed limits and the drives' torques. A robot with a file `excitation.toml` beside its own
    file makes the motion of that file. For other robots or other settings, a motion is optimised first, which
    takes some seconds. Write the log with `--log`; add sensors with `--encoder` and `--noise`.

    What must hold: the condition number of the regressor of the base parameters is below 1,000, with its rows
    divided by the drives' torques and its columns scaled to norm 1; it bounds the amplification of torque
    noise. The motion stays within the limits, and the controller tracks it as any other motion.
    """

    defaults = {"drives": "rigid"}
    duration: float = option(5.0, "period of the slowest harmonic, in s")
    periods: int = option(1, "number of periods of the motion")
    harmonics: int = option(5, "number of harmonics of every joint")
    draws: int = option(200, "number of random motions; the best one is the start of the optimisation")
    iterations: int = option(60, "number of iterations of the optimisation, about 0.1 s each")
    needs = ("payload", "seed")

    def __post_init__(self) -> None:
        positive(self.duration, "duration", "s")
        if not 2 <= self.harmonics <= 20:
            raise ValueError(f"expected 2 to 20 harmonics, got {self.harmonics}")
        for name, least in (("periods", 1), ("draws", 1), ("iterations", 0)):
            at_least(getattr(self, name), name, least)

    def suits(self, robot: Robot) -> bool:
        """Return whether the drives and the masses of the robot are known, which are to be identified."""
        return robot.drives is not None and robot.has_inertia

    def reference(self, robot: Robot, sampling: Sampling) -> Samples:
        """Return the stored motion, or else an optimised one, with its number of periods, sampled."""
        loaded = sampling.loaded(robot)
        motion = self.stored(robot, loaded) or self.optimised(loaded, sampling.seed)
        return sampling.sampled(replace(motion, periods=self.periods))

    def stored(self, robot: Robot, loaded: Robot) -> FourierMotion | None:
        """Return the motion of the robot's `excitation.toml`; `None` unless it fits options and limits."""
        from twin.data.identification.excitation import excitation_use, stored_excitation

        motion = stored_excitation(robot)
        if motion is None or (motion.period, motion.a.shape[1]) != (self.duration, self.harmonics):
            return None
        use = excitation_use(loaded, *motion(np.arange(0.0, motion.period, EVERY)))
        return motion if use.condition <= CONDITION and max(use[1:]) <= 1 else None

    def optimised(
        self, loaded: Robot, seed: int, progress: Callable[[float], None] | None = None
    ) -> FourierMotion:
        """Return the motion that the optimisation finds for a robot with its payload."""
        from twin.data.identification.excitation import optimal_excitation

        return optimal_excitation(
            loaded, period=self.duration, harmonics=self.harmonics, draws=self.draws,
            iterations=self.iterations, seed=seed, progress=progress,
        )  # fmt: skip

    def run(self, setup: Setup | None = None) -> TrackingRun:
        """Load or optimise the motion, and follow it."""
        from scenarios.judging.following import follow

        setup = self.checked(setup)
        robot, sampling = setup.nominal_robot(), setup.sampling(self.needs)
        loaded, report = sampling.loaded(robot), setup.progress
        motion = self.stored(robot, loaded)
        if motion is None:  # half of the work
            half = None if report is None else lambda done: report(0.5 * done)
            motion = self.optimised(loaded, sampling.seed, half)
            rest = None if report is None else lambda done: report(0.5 + 0.5 * done)
            setup = replace(setup, progress=rest)
        samples = sampling.sampled(replace(motion, periods=self.periods))
        return follow(setup, samples, self.arms(robot, setup.plant_payload))

    def metrics(self, run: TrackingRun) -> tuple[Metric, ...]:
        """Return the condition number, the shares of the limits, and the tracking metrics."""
        from twin.data.identification.excitation import excitation_use

        log = run.log
        few = slice(None, None, max(1, round(EVERY / (log.time_step * log.steps_per_period))))
        use = excitation_use(log.robot, log.q_ref[few], log.qd_ref[few], log.qdd_ref[few])
        return (
            Metric(
                "condition of the base parameters",
                use.condition,
                "",
                CONDITION,
                "of the regressor along the reference, rows over the drives' torques, columns of norm 1",
            ),
            Metric(
                "range in use", use.range, "", 1.0, "largest share of a joint's range, from middle to end"
            ),
            Metric(
                "torque in use",
                use.torque,
                "",
                1.0,
                "along the reference, over a drive's torque at standstill",
            ),
            *tracking_metrics(run),
        )


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
