"""A motion that tells the dynamic parameters of the arm, recorded for identification.

What it shows: all joints move at once, each by a finite Fourier series, from rest to rest. The series are
chosen so that the torques tell the base parameters of arm and drives as well as they can within the ranges,
the speed limits and what the drives give. A robot that has such a motion in a file `excitation.toml` beside
its own makes that one; for others, or other settings, one is optimised first, which takes some seconds. Write
the log with `--log`; sensors are switched on with `--encoder` and `--noise`.

What must hold: the condition number of the regressor of the base parameters is below 1,000, with its rows
over the torques that the drives give and its columns at norm 1: noise in the torques grows by that at most.
The motion keeps the limits, and is tracked as any other one.
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
"""Limit of the condition number; beyond it parameters that act alike are not told apart."""
EVERY = 0.01
"""[s]: between the samples that the figures are computed from."""


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the motion, and of the search for it where none is kept."""

    drives: str = option("rigid", "what drives the arm has, see above", base.MODES)
    duration: float = option(5.0, "period of the slowest harmonic, in s")
    periods: int = option(1, "how often the motion is made")
    harmonics: int = option(5, "number of harmonics of every joint")
    draws: int = option(200, "random motions, of which the best is improved")
    iterations: int = option(60, "of improving it, about 0.1 s each")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.duration, "duration", "s")
        if not 2 <= self.harmonics <= 20:
            raise ValueError(f"expected 2 to 20 harmonics, got {self.harmonics}")
        for name, least in (("periods", 1), ("draws", 1), ("iterations", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"expected at least {least} for {name}, got {getattr(self, name)}")


def suits(robot: Robot) -> bool:
    """Whether the drives of the robot are known, and its masses: what is to be identified."""
    return robot.drives is not None and robot.has_inertia


def reference(robot: Robot, config: Config) -> Samples:
    """The motion of the settings, sampled."""
    return following(kept(config, robot) or optimised(config, robot), config)


def following(motion: FourierMotion, config: Config) -> Samples:
    """A motion as often as the settings want it, sampled."""
    return sampled(config, replace(motion, periods=config.periods))


def run(config: Config) -> Log:
    """Find the motion, and follow it."""
    robot = config.bare_robot()
    motion = kept(config, robot)
    if motion is None:
        motion = optimised(replace(config, progress=part_of(config, 0.0)), robot)
        config = replace(config, progress=part_of(config, 0.5))
    return follow(config, *closed_loop(config, lambda _, settings: following(motion, settings)))


def kept(config: Config, robot: Robot) -> FourierMotion | None:
    """The motion that is kept beside the robot's file, if it is one of these settings and does for it."""
    from twin.identification.excitation import stored_excitation

    motion = stored_excitation(robot)
    if motion is None or (motion.period, motion.a.shape[1]) != (config.duration, config.harmonics):
        return None
    use = motion_use(config.with_plant_payload(robot), *motion(np.arange(0.0, motion.period, EVERY)))
    return motion if use.condition <= CONDITION and max(use[1:]) <= 1 else None


def optimised(config: Config, robot: Robot) -> FourierMotion:
    """The motion that is found with these settings."""
    from twin.identification.excitation import optimal_excitation

    return optimal_excitation(
        config.with_plant_payload(robot), period=config.duration, harmonics=config.harmonics,
        draws=config.draws, iterations=config.iterations, seed=config.seed, progress=config.progress,
    )  # fmt: skip


def part_of(config: Config, begin: float) -> Callable[[float], None] | None:
    """Tells the progress of one half of the work, which begins at a fraction of all."""
    told = config.progress
    return None if told is None else lambda fraction: told(begin + 0.5 * fraction)


def motion_use(robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Use:
    """What a motion takes of the limits and tells of the parameters."""
    from twin.identification.excitation import excitation_use

    return excitation_use(robot, q, qd, qdd)


def metrics(log: Log) -> tuple[Metric, ...]:
    """What the motion tells and takes, and how it was followed."""
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
        Metric("range in use", use.range, "", 1.0, "from the middle of a joint's range to its end, at most"),
        Metric(
            "torque in use", use.torque, "", 1.0, "along the reference, of what a drive gives at standstill"
        ),
        *tracking_metrics(log),
    )
