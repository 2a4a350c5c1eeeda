"""Check that the motors carry the arm and its payload at the joints' speed limits.

What it shows: each axis moves alone at its speed limit. The scenario reports the share of the motor's torque
that weight and friction take in the worst pose, the time to reach that speed, and the motor's speed. Poses
are drawn at random over the joints' ranges; the payload is a point 0.080 m beyond the flange and 0.083 m off
the last axis, so that it loads every axis. Then all joints swing at once in the engine. The speed of the
swing is limited by the first joint near its speed limit or by three quarters of a motor's torque.
`--picture` draws the torque of every motor over its speed, between the curves of its torque limit and the
dotted lines of the joint's speed limit.

What must hold: every motor has enough torque and stays below its maximum speed, and no motor reaches its
torque limit during the motion. Estimated drive data make the verdict an estimate, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios import base, joint_tracking
from scenarios.base import Metric, option, positive
from scenarios.checks.closed_loop import Arms, closed_loop
from scenarios.checks.drive_load import DriveLoad, drive_load, known_drives, with_rated_payload
from scenarios.checks.tracking import follow, sampled, tracking_metrics, with_arrays
from twin.errors import RobotError
from twin.formatting import literal
from twin.logs.views.curves import COLOURS
from twin.robot.limits import caption_unit
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.sampling import Samples


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the poses and of the motion."""

    drives: str = option(
        "rigid", "drive model: with rotors and friction (rigid), plus springs (elastic)", ("rigid", "elastic")
    )
    states: int = option(10_000, "random poses")
    duration: float = option(2.0, "length of the motion, in s")
    speed_fraction: float = option(0.8, "peak speed of a joint in the motion, as a fraction of its limit")

    def __post_init__(self) -> None:
        super().__post_init__()
        base.one_of(self.drives, "drives for this scenario", ("rigid", "elastic"))
        positive(self.duration, "duration", "s")
        if not self.states >= 1:
            raise ValueError(f"expected at least 1 for states, got {self.states}")
        if not 0 < self.speed_fraction <= 1:
            raise ValueError(f"expected a speed fraction above 0 and up to 1, got {self.speed_fraction}")


VARIANTS = (Config(speed_fraction=1.0),)

TORQUE_SHARE = 0.75
"""Largest share of a motor's torque along the reference; the rest is for the feedback."""
SLOWER = 0.95  # factor of the speed from one attempt to the next, until the torque suffices
SLOWEST = 0.01  # smallest share of the speed limits
PER_MINUTE = 60 / (2 * np.pi)  # 1/min in a rad/s


def suits(robot: Robot) -> bool:
    """Return whether the drives and the masses of the robot are known."""
    return robot.drives is not None and robot.has_inertia


def run(config: Config) -> Log:
    """Compute the load of each axis alone, then run the swing of all joints."""
    import twin

    known_drives(twin.load(config.robot))
    loop = closed_loop(config, reference, arms)
    load = drive_load(config.with_plant_changes(loop.plant), config.seed, config.states)
    return with_arrays(follow(config, *loop), **load._asdict())


def arms(robot: Robot, config: Config) -> Arms:
    """Return the robot with its rated payload, as plant and as model."""
    return Arms(with_rated_payload(config.with_plant_payload(robot)))


def reference(robot: Robot, config: Config) -> Samples:
    """Return the swings of the loaded robot."""
    return fastest_swings(arms(robot, config).plant, config)


def fastest_swings(robot: Robot, config: Config) -> Samples:
    """Return the swings at the highest speed at which no motor needs more than `TORQUE_SHARE` of its torque.

    Raises:
        RobotError: there is no such speed.
    """
    from twin.dynamics.equation_of_motion import inverse_dynamics

    swings = joint_tracking.Config(duration=config.duration, speed_fraction=config.speed_fraction)
    while swings.speed_fraction > SLOWEST:
        samples = sampled(config, joint_tracking.trajectory(robot, swings))
        tau = inverse_dynamics(robot, samples.q, samples.qd, samples.qdd)
        if np.all(np.abs(tau) <= TORQUE_SHARE * robot.drive_torque_max):
            return samples
        swings = replace(swings, speed_fraction=SLOWER * swings.speed_fraction)
    raise RobotError(
        f"robot {robot.name!r}: its motors need more than {TORQUE_SHARE:.0%} of their torque to move the arm "
        "and its rated payload at all"
    )


def load_of(log: Log) -> DriveLoad:
    """Return the load of every axis from the log of a run."""
    return DriveLoad(*(log.arrays[name] for name in DriveLoad._fields))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the largest torque and speed of all axes, then the tracking metrics of the motion."""
    load = load_of(log)
    return (
        worst(log, "torque at a speed limit / motor's", load.use, "weight in the worst pose and friction"),
        worst(log, "motor speed at a speed limit / its maximum", load.speed, "gear ratio x that limit"),
        *tracking_metrics(log),
    )


def worst(log: Log, name: str, shares: NDArray, why: str) -> Metric:
    """Return a check that the largest of the axes' shares (n,) is at most 1."""
    axis = int(np.argmax(shares))
    joint = log.robot.joint_names[axis]
    return Metric(
        name,
        float(shares[axis]),
        "",
        1.0,
        f"{why}, the axis moving alone; largest for {joint}",
        f"of {joint}",
    )


def table(log: Log) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return a row for each axis: shares of its motor's torque, and the times to the joint's speed limit."""
    load, unit = load_of(log), caption_unit(log.robot.joint_kinds, "{torque}")
    rows: list[tuple[str, ...]] = [
        ("axis", "weight", "friction", f"limit {unit}", "use", "margin", "rotor", "worst s", "median s")
    ]
    for joint, name in enumerate(log.robot.joint_names):
        torques = (load.gravity[joint], load.friction[joint], load.torque_max[joint])
        shares = (load.use[joint], 1.0 - load.use[joint], load.rotor_share[joint])
        numbers = [f"{torque:.1f}" for torque in torques] + [f"{100 * share:.0f} %" for share in shares]
        rows.append((name, *numbers, *(f"{time:.3f}" for time in load.time[:, joint])))
    caption = (
        "Each axis alone at its speed limit, with the rated payload. Weight (in the worst pose) and friction "
        f"are in {unit} at the joint; use is their sum over the limit. Rotor is the rotor's share of the "
        "inertia in the median pose. The times, in s, are from rest to that speed, in the worst and in the "
        "median pose."
    )
    return caption, tuple(rows)


def picture(logs: Sequence[Log], path: Path) -> None:
    """Draw the torque of every motor over its speed, with the curve of its torque limit.

    Args:
        logs: runs with one robot.
        path: path of the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot = logs[0].robot
    drives = known_drives(robot)
    rows = -(-robot.n // 3)
    figure = Figure(figsize=(12.0, 3.2 * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(literal(f"Motors of {robot.name}: torque over speed"), fontweight="bold")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for axes in panels[robot.n :]:
        axes.set_axis_off()
    for motor, axes in enumerate(panels[: robot.n]):
        axes.set_title(literal(robot.joint_names[motor]))
        for k, log in enumerate(logs):
            speed = log.qd_motor @ drives.motor_matrix[motor]
            name, colour = literal(log.controller), COLOURS[k % len(COLOURS)]
            axes.plot(PER_MINUTE * speed, log.tau_motor[:, motor], lw=1.0, color=colour, label=name)
        rated, top = PER_MINUTE * drives.motor_speed_rated[motor], PER_MINUTE * drives.motor_speed_max[motor]
        torque = drives.motor_torque_max[motor]
        if np.isfinite(top) and np.isfinite(torque):
            limit = np.array([[-top, 0.0], [-top, -torque], [rated, -torque], [top, 0.0]])
            for curve in (limit, -limit):
                axes.plot(*curve.T, color="0.35", lw=1.6, label="limit of the motor")
        joint_limit = PER_MINUTE * abs(drives.ratio[motor]) * robot.qd_max[motor]
        for speed in (-joint_limit, joint_limit):
            axes.axvline(speed, color="0.4", lw=1.0, ls=":", label="speed limit of the joint")
        axes.grid(True, color="0.9")
        axes.set(xlabel="speed  [1/min]", ylabel="torque  [N m]")
    handles, labels = panels[0].get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=len(entries), frameon=False)
    figure.savefig(path, dpi=110, format="png")


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))
