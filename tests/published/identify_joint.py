"""Identify the elastic joint of axis 1: inertias, friction and stiffness.

What it shows: the experiment of Norrlöf 1999 (section 3.3.2) on the twin of the same robot. Axis 1 of the
IRB 1400 has the rotor, the friction and the spring of Table 3.1. A controller holds axis 1, the other axes
are braked, and a multisine torque is added: around one point, then during a motion to another point. The
motor's torque and speed are recorded at 500 Hz; the noise on the speed is chosen so that the deviations have
the published size. J_m, J_a, f_m and k are estimated from the first experiment, without its beginning, end
and mean; the second experiment validates them. The plant runs in the engine, and the model is discretised
with the engine's steps. `--friction drives` uses the friction and the damped spring of the robot's file
instead: the linear model then estimates Coulomb friction as viscous. `--picture` draws figures 3.4 to 3.6 of
Norrlöf 1999 from these data.

What must hold: every parameter is within 4 standard deviations of the plant's; without noise it is equal to
rounding. On the second experiment, the error of the model is the noise alone, and the braked joints do not
move. With the friction of the drives no linear model is exact, and the figures have no limits.
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
from tests.published import joint_experiment as experiment
from tests.published.joint_experiment import Estimates, picture
from scenarios.judging.tracking import sampled, shown, torque_limit_metric, with_arrays
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log

__all__ = ["VARIANTS", "Config", "metrics", "picture", "run", "suits", "table"]

FRICTION = ("linear", "drives")
SHORTEST = 1.0  # s: shorter data contain hardly one period of the lowest frequencies


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the experiment."""

    robot: str = option(experiment.ROBOT, "name of the robot; the experiment is published for this one only")
    controller: str = option("cascade", "controller that holds axis 1", controllers.NAMES)
    drives: str = option("elastic", "drive model of axis 1; the experiment needs its spring", ("elastic",))
    steps_per_period: int = option(2, "engine steps in a control period; 2 of 1 ms give the published 500 Hz")
    friction: str = option(
        "linear", "friction of axis 1: of the published table (linear), or of the robot's drives", FRICTION
    )
    duration: float = option(2.0, "length of the data of each experiment, in s")
    torque: float = option(0.5, "root mean square of the excitation torque, at the motor, in N m")
    lowest: float = option(0.5, "lowest frequency of the excitation torque, in Hz")
    highest: float = option(40.0, "highest frequency of the excitation torque, in Hz")
    bandwidth: float = option(
        4.0, "bandwidth omega of the controller, in rad/s; low, so as not to counteract the excitation"
    )
    speed_noise: float = option(
        6.0, "standard deviation of the noise on the motor's measured speed, in rad/s"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.drives, "drives for this experiment", ("elastic",))
        one_of(self.friction, "friction", FRICTION)
        for name, unit in (("duration", "s"), ("torque", "N m"), ("lowest", "Hz"), ("highest", "Hz")):
            positive(getattr(self, name), name, unit)
        if not self.duration >= SHORTEST:
            raise ValueError(f"expected a duration of at least {SHORTEST:g} s, got {self.duration}")
        if not self.lowest < self.highest < 0.5 / self.period:
            raise ValueError(
                "expected a lowest frequency below the highest, both below half of the sampling rate, "
                f"{0.5 / self.period:g} Hz, got {self.lowest:g} to {self.highest:g} Hz"
            )
        if not 0 <= self.speed_noise < np.inf:
            raise ValueError(f"expected a speed noise of at least 0 rad/s, got {self.speed_noise}")


VARIANTS = (Config(friction="drives"),)

MOST = 4.0  # standard deviations
ROUND_OFF = 1e-8
"""Largest relative error of an estimate without noise. Observed: 1e-12."""


def suits(robot: Robot) -> bool:
    """Return whether the robot is the one of the published experiment."""
    return robot.name == experiment.ROBOT and robot.drives is not None


def run(config: Config) -> Log:
    """Make both experiments in one run, and estimate the parameters."""
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
    """Return the excitation torque (N,) at the motor, in [N m].

    It differs between the two experiments and is 0 between them. Its frequencies are multiples of the
    inverse of the data's length.
    """
    low, high = (round(f * config.duration) for f in (config.lowest, config.highest))
    sines = partial(experiment.multisine, np.arange(max(1, low), high + 1) / config.duration, config.torque)
    torque, cut = np.zeros(len(t)), round(experiment.CUT / config.period)
    count = round(config.duration / config.period) + 2 * cut
    for first in experiment.starts(config.duration, config.period) - cut:
        torque[first : first + count] = sines(t[:count], rng)
    return torque


def estimates_of(log: Log) -> Estimates:
    """Return the estimates from the log of a run."""
    return experiment.Estimates(*(log.arrays[name] for name in experiment.Estimates._fields))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the errors of the estimates, and of the model's prediction of the second experiment."""
    found = estimates_of(log)
    noise, linear = float(found.noise), bool(found.linear)
    judged = linear and noise > 0
    why = (
        "from the plant's value; 1 of 16,000 estimates with normal errors is beyond 4"
        if judged
        else "without noise, or with nonlinear friction, the errors are not random"
    )
    errors = np.abs(found.values - found.truth) / found.deviations
    measured, model = data(log, 1), found.model_speed[1]
    left = measured - model
    count = len(model)
    size = np.exp(np.mean(np.log(found.deviations / found.values / published_relative_deviations())))
    displacement = np.abs(log.q[:, 1:] - log.q[0, 1:])
    return (
        *(
            Metric(f"{name}: error / its deviation", float(error), "", MOST if judged else None, why)
            for name, error in zip(experiment.NAMES, errors, strict=True)
        ),
        Metric("largest deviation", percent(np.max(found.deviations / found.values)), "%", None,
               "of the parameter; Norrlöf 1999, Table 3.1: 4.3 %"),
        Metric("deviations / those of Table 3.1", float(size), "", None,
               "relative deviations, geometric mean of the four; the noise was chosen for about 1"),
        Metric("without noise: largest relative error", relative(found.clean, found.truth), "",
               ROUND_OFF if linear else None,
               "the model has the engine's steps, so that only rounding is left" if linear
               else "a linear model of a plant with nonlinear friction and damping"),
        Metric("the same in continuous time", relative(found.continuous, found.truth), "", None,
               "by the continuous model, as for a real arm: the effect of the engine's steps"),
        Metric("validation: error / noise", float(np.std(left)) / (noise or 1.0), "" if noise else "rad/s",
               1 + 5 / np.sqrt(2 * count) if judged else None,
               f"1 + 5 / sqrt(2 N) with N = {count} samples: the error is the noise, hardly the parameters"
               if noise else "the error itself, because there is no noise"),
        Metric("validation: fit", percent(1 - np.std(left) / np.std(measured)), "%", None,
               "1 - deviation of the error / deviation of the measured speed, noise included"),
        Metric("largest motion of the braked joints", float(np.max(displacement)), "rad", 0.0,
               "the static friction is larger than every torque on the braked joints"),
        torque_limit_metric(log, "controller and excitation together stay within the motor's torque"),
    )  # fmt: skip


def data(log: Log, which: int) -> NDArray:
    """Return the measured speed (M,) of an experiment, 0 or 1, in [rad/s]."""
    found = estimates_of(log)
    start = int(found.first[which])
    return found.speed[start : start + found.model_speed.shape[1]]


def published_relative_deviations() -> NDArray:
    """Return the deviations (4,) of Table 3.1 over its values."""
    return experiment.PUBLISHED_DEVIATIONS / experiment.PUBLISHED


def percent(share: float | np.floating) -> float:
    """Return a share in percent."""
    return 100.0 * float(share)


def relative(values: NDArray, truth: NDArray) -> float:
    """Return the largest relative error of values."""
    return float(np.max(np.abs(values / truth - 1)))


def table(log: Log) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return Table 3.1 beside the estimates of this run."""
    found = estimates_of(log)
    rows: list[tuple[str, ...]] = [
        ("parameter", "unit", "Table 3.1", "deviation", "estimate", "deviation", "plant", "error")
    ]
    for k, (name, unit) in enumerate(zip(experiment.NAMES, experiment.UNITS, strict=True)):
        numbers = (
            experiment.PUBLISHED[k], experiment.PUBLISHED_DEVIATIONS[k],
            found.values[k], found.deviations[k], found.truth[k],
        )  # fmt: skip
        off = (found.values[k] - found.truth[k]) / found.deviations[k]
        rows.append((name, unit, *(f"{number:.3g}" for number in numbers), f"{off:+.1f} dev."))
    caption = (
        "Norrlöf 1999, Table 3.1, from a real IRB 1400, beside the estimate from this run and the value of "
        "the simulated plant. J_m and f_m are at the motor; J_a and k are 1/118.46 of the arm's, as in the "
        "equations of Norrlöf 1999."
    )
    return caption, tuple(rows)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
