"""Compare the errors of controllers whose model lacks the drives' friction or rotors.

What it shows: all joints of an arm with its rated payload swing to and fro, at a fifth of their speed limits,
with rotors and friction in the drives (`--drives elastic`: with springs in the gears, too). Each controller
follows this motion four times: with the complete drives in its model, without friction, without rotors, and
without drives. (A controller that computes no torque from the model still derives its gains from the model's
inertia.) The first figures are the largest errors of these four runs of the analytic model. The run in the
engine is the one that `--knows` selects. `--picture` draws these errors.

What must hold: computed torque with complete rigid drives in its model tracks to round-off (1e-10 rad),
through every reversal. With every controller model, the engine agrees with the model of the arm and its
drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import controllers
from scenarios import base
from scenarios.base import Metric, one_of, option, positive
from scenarios.checks.closed_loop import Arms, closed_loop
from scenarios.checks.drive_load import known_drives, with_rated_payload
from scenarios.checks.motion_range import cosines
from scenarios.checks.tracking import (
    agreement_metrics,
    error_metrics,
    follow,
    sampled,
    validity_metrics,
    with_arrays,
)
from twin.errors import DivergenceError
from twin.formatting import figure, literal
from twin.logs.views.curves import COLOURS
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory
    from twin.trajectories.sampling import Samples

KNOWS = {
    "all": "knows all",
    "no_friction": "not the friction",
    "no_rotors": "not the rotors",
    "nothing": "knows nothing",
}
"""Parts of the drives in a controller's model: values of `--knows`, and their labels."""


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the motion and of the controller's knowledge of the drives."""

    drives: str = option(
        "rigid", "drive model: with rotors and friction (rigid), plus springs (elastic)", ("rigid", "elastic")
    )
    knows: str = option("all", "parts of the drives in the controller's model, in the engine", tuple(KNOWS))
    duration: float = option(2.0, "length of the motion, in s")
    speed_fraction: float = option(0.2, "peak speed of every joint, as a fraction of its limit")

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.drives, "drives for this scenario", ("rigid", "elastic"))
        one_of(self.knows, "knowledge of the drives", tuple(KNOWS))
        positive(self.duration, "duration", "s")
        if self.model_drives is not None:
            raise ValueError("the drives of the controller's model are set by --knows in this scenario")
        if not 0 < self.speed_fraction <= 1:
            raise ValueError(f"expected a speed fraction above 0 and up to 1, got {self.speed_fraction}")

    @property
    def known_law(self) -> bool:
        """Whether a bound of the tracking error may apply; requires complete drives in the model."""
        return super().known_law and self.knows == "all"

    def controller_model(self, robot: Robot) -> Robot:
        """Return the controller's model, with the parts of the drives that `knows` names."""
        return self.model_with(robot, self.knows)

    def model_with(self, robot: Robot, knows: str) -> Robot:
        """Return the controller's model with these parts of the drives, one of `KNOWS`."""
        return with_known(
            self.with_model_changes(self.with_controller_payload(robot).with_drives("rigid")), knows
        )


SLOWEST, FASTEST = 0.6, 1.1  # Hz, of the first and of the last joint
SIDE_BY_SIDE = controllers.NAMES
VARIANTS = (Config(knows="nothing"), Config(drives="elastic"))


def suits(robot: Robot) -> bool:
    """Return whether the drives and the masses of the robot are known."""
    return robot.drives is not None and robot.has_inertia


def trajectory(robot: Robot, config: Config) -> Trajectory:
    """Return the cosines of the settings."""
    return cosines(robot, config.duration, config.speed_fraction, SLOWEST, FASTEST)


def with_known(robot: Robot, knows: str) -> Robot:
    """Return the robot with these parts of its drives, one of `KNOWS`."""
    drives = known_drives(robot)
    if knows == "nothing":
        return robot.with_drives("ideal")
    less = {"no_friction": drives.without_friction, "no_rotors": drives.without_rotors}
    return robot.with_drives("rigid", less[knows]() if knows in less else drives)


def reference(robot: Robot, config: Config) -> Samples:
    """Return the cosines, sampled."""
    return sampled(config, trajectory(robot, config))


def arms(robot: Robot, config: Config) -> Arms:
    """Return the robot with its rated payload, as plant and as model; the settings reduce the model."""
    return Arms(with_rated_payload(config.with_plant_payload(robot)))


def run(config: Config) -> Log:
    """Follow the motion in the engine, and in the analytic model with each of `KNOWS`."""
    import twin

    known_drives(twin.load(config.robot))
    samples, robot, _ = loop = closed_loop(config, reference, arms)
    log = follow(config, *loop)
    joint_errors, tool_errors = np.transpose([predicted(config, samples, robot, knows) for knows in KNOWS])
    return with_arrays(log, knows=np.array(config.knows), joint_errors=joint_errors, tool_errors=tool_errors)


def predicted(config: Config, samples: Samples, robot: Robot, knows: str) -> tuple[float, float]:
    """Return the largest errors of a joint, in [rad], and of the tool, in [m]; infinite on divergence."""
    from twin.kinematics.forward import forward_kinematics

    q = modelled(config, samples, config.with_plant_changes(robot), config.model_with(robot, knows))
    if q is None:
        return np.inf, np.inf
    tool, desired = (forward_kinematics(robot, angles)[:, :3, 3] for angles in (q, samples.q))
    return (
        float(np.max(np.abs(q - samples.q))),
        float(np.max(np.linalg.norm(tool - desired, axis=1))),
    )


def modelled(config: Config, reference: Samples, robot: Robot, model: Robot) -> NDArray | None:
    """Return the motion (N, n) of the analytic model under a controller with `model`; `None` if it fails."""
    from twin.control.closed_loop import run_closed_loop
    from twin.control.control_law import ControlLaw
    from twin.control.plant import AnalyticPlant
    from twin.control.rollout import run_rollouts

    law, steps = config.control_law(model), config.steps_per_period
    if isinstance(law, ControlLaw):
        rollout = run_rollouts(
            robot, law, reference, time_step=config.time_step, steps_per_period=steps,
            sensors=config.sensors, keep_failures=True,
        )  # fmt: skip
        return None if rollout.failures else rollout.q
    plant = AnalyticPlant(robot, config.time_step)
    try:
        return run_closed_loop(plant, law, reference, steps_per_period=steps, sensors=config.sensors).q
    except DivergenceError:
        return None


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the errors for each of `KNOWS`, then the metrics of the run in the engine."""
    rows = [
        Metric(f"{what} error: {label}", float(value), unit, None, why)
        for what, unit, why in (
            ("joint", "rad", "largest error of any joint, by the analytic model"),
            ("tool", "m", "largest error of the flange's centre, by the analytic model"),
        )
        for label, value in zip(KNOWS.values(), log.arrays[f"{what}_errors"], strict=True)
    ]
    return (
        *rows,
        *error_metrics(log),
        *agreement_metrics(log),
        *validity_metrics(log),
    )


FLOOR = 1e-6
"""Smallest error that is drawn, in [rad] and [m]; smaller ones are round-off, and stand below as numbers."""


def picture(logs: Sequence[Log], path: Path) -> None:
    """Draw the largest errors as points: a group for each of `KNOWS`, with a point for each controller.

    Args:
        logs: runs with one robot, one for each controller.
        path: path of the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(10.5, 7.0), layout="constrained")
    FigureCanvasAgg(made)
    robot = logs[0].robot
    title = f"{robot.name}, {logs[0].drives} drives: errors of controllers by their knowledge of the drives"
    made.suptitle(literal(title), fontweight="bold")
    places, width = np.arange(len(KNOWS)), 0.8 / len(logs)
    for axes, what, unit in zip(
        made.subplots(2, 1, sharex=True), ("joint", "tool"), ("rad", "m"), strict=True
    ):
        axes.set_yscale("log")
        for k, log in enumerate(logs):
            errors, colour = log.arrays[f"{what}_errors"], COLOURS[k % len(COLOURS)]
            where = places + (k - (len(logs) - 1) / 2) * width
            drawn = (errors >= FLOOR) & np.isfinite(errors)
            axes.plot(where[drawn], errors[drawn], "o", ms=9, color=colour, label=literal(log.controller))
            for x, error, above in zip(where, errors, drawn, strict=True):
                style: dict = {"fontsize": 8, "color": colour, "ha": "center", "textcoords": "offset points"}
                if above:
                    axes.annotate(figure(error), (x, error), xytext=(0, 8), **style)
                else:  # at the lower edge, where there is no value
                    at = {"xycoords": ("data", "axes fraction"), "rotation": 90}
                    axes.annotate(figure(error), (x, 0.0), xytext=(0, 5), **style, **at)
        low, high = axes.get_ylim()
        axes.set_ylim(low / 8, high * 1.6)  # room for the numbers below and above the points
        axes.set_ylabel(f"largest {what} error  [{unit}]")
        axes.grid(True, axis="y", color="0.88")
        axes.set_axisbelow(True)
        axes.set_xticks(places, KNOWS.values())
        axes.set_xlim(-0.5, len(KNOWS) - 0.5)
        for edge in places[1:] - 0.5:
            axes.axvline(edge, color="0.8", lw=0.8)
    made.axes[-1].set_xlabel("knowledge of the drives  (numbers at the lower edge are below the scale)")
    handles, labels = made.axes[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    made.savefig(path, dpi=110, format="png")


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))
