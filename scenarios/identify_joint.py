"""The elastic joint of axis 1 from a run: inertias, friction and stiffness with deviations.

What it shows: Norrlöf's experiment (1999, section 3.3.2) on the twin of his robot. Axis 1 of the IRB 1400 has
the rotor, the friction and the spring of his Table 3.1; a control law holds it, the others are braked, and a
torque of many frequencies is added: around one point, then on the way to another. The motor's torque and
speed are recorded at 500 Hz, with noise on the speed that gives deviations of the size of his. From the first
experiment, less its beginning, end and mean, J_m, J_a, f_m and k are estimated; the second validates them.
The plant is the engine's, and the model goes in the same steps. `--friction drives` has the friction and the
damped spring of the robot's file in place of his: Coulomb friction then looks viscous. `--picture` draws his
figures 3.3 to 3.6 from these data.

What must hold: every parameter is within 4 deviations of the plant's, and without noise its equal to
rounding; on the second experiment the model leaves nothing but the noise; and the braked joints did not move.
Where friction is that of the drives, no linear model is right, and figures are reported alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import controllers
from controllers import Controller
from scenarios import base
from scenarios.base import Metric, one_of, option, positive
from scenarios.checks import joint_experiment as experiment
from scenarios.checks.joint_experiment import Estimates, picture
from scenarios.checks.tracking import sampled, shown, with_arrays
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log

__all__ = ["VARIANTS", "Config", "metrics", "picture", "run", "suits", "table"]

FRICTION = ("linear", "drives")
SHORTEST = 1.0  # s: below, the lowest frequencies have hardly a period


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the experiment."""

    robot: str = option(experiment.ROBOT, "name of the robot; the experiment is published of this one")
    controller: str = option("cascade", "control law that holds axis 1", controllers.NAMES)
    drives: str = option("elastic", "what drives axis 1 has: the experiment is about springs", ("elastic",))
    steps_per_period: int = option(2, "engine steps in a control period; 2 of 1 ms make his 500 Hz")
    friction: str = option("linear", "of axis 1: of his table, or of the robot's drives", FRICTION)
    duration: float = option(2.0, "length of the data of each experiment, in s")
    torque: float = option(0.5, "root mean square of the torque that excites, at the motor, in N m")
    lowest: float = option(0.5, "lowest frequency of that torque, in Hz")
    highest: float = option(40.0, "highest frequency of that torque, in Hz")
    bandwidth: float = option(4.0, "omega of the law, in rad/s: low, so that it leaves the excitation alone")
    speed_noise: float = option(
        6.0, "standard deviation of the noise on the motor's measured speed, in rad/s"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.drives, "drives of an experiment on springs", ("elastic",))
        one_of(self.friction, "friction", FRICTION)
        for name, unit in (("duration", "s"), ("torque", "N m"), ("lowest", "Hz"), ("highest", "Hz")):
            positive(getattr(self, name), name, unit)
        if not self.duration >= SHORTEST:
            raise ValueError(f"expected a duration of at least {SHORTEST:g} s, got {self.duration}")
        if not self.lowest < self.highest < 0.5 / self.period:
            raise ValueError(
                "expected frequencies that rise and are below half of the sampling rate, "
                f"{0.5 / self.period:g} Hz, got {self.lowest:g} to {self.highest:g} Hz"
            )
        if not 0 <= self.speed_noise < np.inf:
            raise ValueError(f"expected a speed noise of at least 0 rad/s, got {self.speed_noise}")


VARIANTS = (Config(friction="drives"),)

MOST = 4.0  # deviations
ROUND_OFF = 1e-8
"""Relative, of what is estimated without noise. Seen: 1e-12."""


def suits(robot: Robot) -> bool:
    """Whether it is the robot that the experiment is published of."""
    return robot.name == experiment.ROBOT and robot.drives is not None


def run(config: Config) -> Log:
    """Make both experiments in one run, and estimate."""
    from twin.engine.simulation import Simulation

    linear = config.friction == "linear"
    robot = experiment.plant(config.load_robot(), linear)
    samples = sampled(config, experiment.motion(config.duration))
    rng = np.random.default_rng(config.seed)
    torque = excitation(config, samples.t, rng)
    ratio = 1 / experiment.two_masses(robot).r

    def make(chosen: base.Config) -> Controller:
        return experiment.Excited(
            chosen.control_law(chosen.controller_model(robot)), torque, config.period, ratio
        )

    with Simulation(robot, time_step=config.time_step, gui=config.gui) as simulation:
        log = shown(simulation, config, make, samples)
    found = experiment.estimates(log, linear, config.duration, config.speed_noise, rng)
    return with_arrays(log, excitation=torque, **found._asdict())


def excitation(config: Config, t: NDArray, rng: np.random.Generator) -> NDArray:
    """The torque (N,) that is added at the motor, in [N m]: another one in each experiment, and in between 0.

    Its frequencies are whole ones of the data's length.
    """
    low, high = (round(f * config.duration) for f in (config.lowest, config.highest))
    sines = partial(experiment.multisine, np.arange(max(1, low), high + 1) / config.duration, config.torque)
    torque, cut = np.zeros(len(t)), round(experiment.CUT / config.period)
    count = round(config.duration / config.period) + 2 * cut
    for first in experiment.starts(config.duration, config.period) - cut:
        torque[first : first + count] = sines(t[:count], rng)
    return torque


def estimates_of(log: Log) -> Estimates:
    """What a run found."""
    return experiment.Estimates(*(log.arrays[name] for name in experiment.Estimates._fields))


def metrics(log: Log) -> tuple[Metric, ...]:
    """How far the estimates are from the plant, and how well they tell the second experiment."""
    found = estimates_of(log)
    noise, linear = float(found.noise), bool(found.linear)
    judged = linear and noise > 0
    why = (
        "from the plant's value; beyond 4 is 1 of 16,000 estimates with normal errors"
        if judged
        else "without noise, or with friction that is not linear, errors are no matter of chance"
    )
    errors = np.abs(found.values - found.truth) / found.deviations
    measured, model = data(log, 1), found.model_speed[1]
    left = measured - model
    count = len(model)
    size = np.exp(np.mean(np.log(found.deviations / found.values / his_relative())))
    away = np.abs(log.q[:, 1:] - log.q[0, 1:])
    return (
        *(
            Metric(f"{name}: error / its deviation", float(error), "", MOST if judged else None, why)
            for name, error in zip(experiment.NAMES, errors, strict=True)
        ),
        Metric("largest deviation", percent(np.max(found.deviations / found.values)), "%", None,
               "of the parameter; Norrlöf 1999, Table 3.1: 4.3 %"),
        Metric("deviations / those of Table 3.1", float(size), "", None,
               "relative ones, geometric mean of the four; the noise was chosen for about 1"),
        Metric("without noise: largest relative error", relative(found.clean, found.truth), "",
               ROUND_OFF if linear else None,
               "the model goes in the engine's own steps, so only rounding is left" if linear
               else "what a linear model makes of friction and damping that it does not have"),
        Metric("the same in continuous time", relative(found.continuous, found.truth), "", None,
               "by the model that a real arm wants: what the engine's steps are away from it"),
        Metric("validation: error / noise", float(np.std(left)) / (noise or 1.0), "" if noise else "rad/s",
               1 + 5 / np.sqrt(2 * count) if judged else None,
               f"1 + 5 / sqrt(2 N) of {count} samples: the noise, and hardly a share of the parameters"
               if noise else "there is no noise, so that this is the error itself"),
        Metric("validation: fit", percent(1 - np.std(left) / np.std(measured)), "%", None,
               "1 - what the model leaves over what there was, the noise included"),
        Metric("largest motion of the braked joints", float(np.max(away)), "rad", 0.0,
               "their static friction is above all that acts on them"),
        Metric("samples at the torque limit", float(np.count_nonzero(log.saturated)), "", 0.0,
               "law and excitation together stay within what the motor gives"),
    )  # fmt: skip


def data(log: Log, which: int) -> NDArray:
    """The measured speed (M,) of an experiment, in [rad/s]."""
    found = estimates_of(log)
    start = int(found.first[which])
    return found.speed[start : start + found.model_speed.shape[1]]


def his_relative() -> NDArray:
    """The deviations (4,) of Table 3.1 over its values."""
    return experiment.PUBLISHED_DEVIATIONS / experiment.PUBLISHED


def percent(share: float | np.floating) -> float:
    """A share in percent."""
    return 100.0 * float(share)


def relative(values: NDArray, truth: NDArray) -> float:
    """The largest relative error."""
    return float(np.max(np.abs(values / truth - 1)))


def table(log: Log) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Table 3.1 beside ours."""
    found = estimates_of(log)
    rows: list[tuple[str, ...]] = [
        ("parameter", "unit", "Table 3.1", "deviation", "ours", "deviation", "the twin's", "off by")
    ]
    for k, (name, unit) in enumerate(zip(experiment.NAMES, experiment.UNITS, strict=True)):
        numbers = (
            experiment.PUBLISHED[k], experiment.PUBLISHED_DEVIATIONS[k],
            found.values[k], found.deviations[k], found.truth[k],
        )  # fmt: skip
        off = (found.values[k] - found.truth[k]) / found.deviations[k]
        rows.append((name, unit, *(f"{number:.3g}" for number in numbers), f"{off:+.1f} dev."))
    told = (
        "Norrlöf 1999, Table 3.1, from a real IRB 1400, beside the estimate from this run and what the twin "
        "was given. J_m and f_m are the motor's; J_a and k are 1/118.46 of the arm's, as his equations have "
        "them."
    )
    return told, tuple(rows)
