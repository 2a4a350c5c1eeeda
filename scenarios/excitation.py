"""Follow an excitation motion, to identify the arm's dynamic parameters from its log.

What it shows: all joints move at once, each by a finite Fourier series, from rest to rest. The series are
optimised so that the torques determine the base parameters of arm and drives as well as possible within the
ranges, the speed limits and the drives' torques. A robot with a file `excitation.toml` beside its own file
makes the motion of that file. For other robots or other settings, a motion is optimised first, which takes
some seconds. Write the log with `--log`; add sensors with `--encoder` and `--noise`.

What must hold: the condition number of the regressor of the base parameters is below 1,000, with its rows
divided by the drives' torques and its columns scaled to norm 1; it bounds the amplification of torque noise.
The motion stays within the limits, and the controller tracks it as any other motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scenarios import base
from scenarios.base import Metric, option, positive
from scenarios.checks.closed_loop import closed_loop
from scenarios.checks.tracking import follow, sampled, tracking_metrics
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.identification.excitation import FourierMotion, Use
    from twin.logs.log import Log
    from twin.trajectories.sampling import Samples

CONDITION = 1000.0
"""Limit of the condition number; beyond it, parameters with similar effects cannot be distinguished."""
EVERY = 0.01
"""[s]: period of the samples that the figures are computed from."""


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the motion, and of its optimisation if no motion is stored."""

    drives: str = option(
        "rigid",
        "drive model: torque limits (ideal), plus rotors and friction (rigid), plus springs (elastic)",
        base.MODES,
    )
    duration: float = option(5.0, "period of the slowest harmonic, in s")
    periods: int = option(1, "number of periods of the motion")
    harmonics: int = option(5, "number of harmonics of every joint")
    draws: int = option(200, "number of random motions; the best one is the start of the optimisation")
    iterations: int = option(60, "number of iterations of the optimisation, about 0.1 s each")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.duration, "duration", "s")
        if not 2 <= self.harmonics <= 20:
            raise ValueError(f"expected 2 to 20 harmonics, got {self.harmonics}")
        for name, least in (("periods", 1), ("draws", 1), ("iterations", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"expected at least {least} for {name}, got {getattr(self, name)}")


def suits(robot: Robot) -> bool:
    """Return whether the drives and the masses of the robot are known, which are to be identified."""
    return robot.drives is not None and robot.has_inertia


def reference(robot: Robot, config: Config) -> Samples:
    """Return the motion of the settings, sampled."""
    return repeated(stored(config, robot) or optimised(config, robot), config)


def repeated(motion: FourierMotion, config: Config) -> Samples:
    """Return a motion with the number of periods of the settings, sampled."""
    return sampled(config, replace(motion, periods=config.periods))


def run(config: Config) -> Log:
    """Load or optimise the motion, and follow it."""
    robot = config.bare_robot()
    motion = stored(config, robot)
    if motion is None:
        motion = optimised(replace(config, progress=half_progress(config, 0.0)), robot)
        config = replace(config, progress=half_progress(config, 0.5))
    return follow(config, *closed_loop(config, lambda _, settings: repeated(motion, settings)))


def stored(config: Config, robot: Robot) -> FourierMotion | None:
    """Return the motion of the robot's `excitation.toml`; `None` unless it fits settings and limits."""
    from twin.identification.excitation import stored_excitation

    motion = stored_excitation(robot)
    if motion is None or (motion.period, motion.a.shape[1]) != (config.duration, config.harmonics):
        return None
    use = motion_use(config.with_plant_payload(robot), *motion(np.arange(0.0, motion.period, EVERY)))
    return motion if use.condition <= CONDITION and max(use[1:]) <= 1 else None


def optimised(config: Config, robot: Robot) -> FourierMotion:
    """Return the motion that the optimisation finds with these settings."""
    from twin.identification.excitation import optimal_excitation

    return optimal_excitation(
        config.with_plant_payload(robot), period=config.duration, harmonics=config.harmonics,
        draws=config.draws, iterations=config.iterations, seed=config.seed, progress=config.progress,
    )  # fmt: skip


def half_progress(config: Config, begin: float) -> Callable[[float], None] | None:
    """Return a function that reports the progress of one half of the work, from the fraction `begin` on."""
    report = config.progress
    return None if report is None else lambda fraction: report(begin + 0.5 * fraction)


def motion_use(robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Use:
    """Return the condition number of a motion (N, n) and its shares of the robot's limits."""
    from twin.identification.excitation import excitation_use

    return excitation_use(robot, q, qd, qdd)


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the condition number, the shares of the limits, and the tracking metrics."""
    period = log.time_step * log.steps_per_period
    few = slice(None, None, max(1, round(EVERY / period)))
    use = motion_use(log.robot, log.q_ref[few], log.qd_ref[few], log.qdd_ref[few])
    return (
        Metric(
            "condition of the base parameters",
            use.condition,
            "",
            CONDITION,
            "of the regressor along the reference, rows over the drives' torques, columns of norm 1",
        ),
        Metric("range in use", use.range, "", 1.0, "largest share of a joint's range, from middle to end"),
        Metric(
            "torque in use", use.torque, "", 1.0, "along the reference, over a drive's torque at standstill"
        ),
        *tracking_metrics(log),
    )


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))
