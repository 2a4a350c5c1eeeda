"""Do the motors carry the arm and its rated payload at the speed limits of the joints?

What it shows: of every axis that moves alone at its speed limit, how much of its motor's torque weight and
friction take in the worst pose, how long it takes to get to that speed, and how fast the motor turns then.
Poses are drawn at random over the joints' ranges; the payload is a point 0.080 m beyond the flange and 0.083
m off the last axis, so that every axis feels it. Then all joints swing at once in the engine, as
fast as brings one near its speed limit or a motor to three quarters of its torque. `--picture` draws what
every motor gave over its speed, between the curves of what it can give and the dotted lines of the joint's
speed limit.

What must hold: every motor has torque enough, and turns no faster than it can; on the way no motor is at its
limit. Where the drives are estimated, so is the verdict.
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
from twin.robot.limits import caption_unit
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.sampling import Samples


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the poses and of the motion."""

    drives: str = option(
        "rigid", "what drives the motion has: with friction, with springs too", ("rigid", "elastic")
    )
    states: int = option(10_000, "random poses")
    duration: float = option(2.0, "length of the motion, in s")
    speed_fraction: float = option(0.8, "peak speed of a joint in the motion, as a fraction of its limit")

    def __post_init__(self) -> None:
        super().__post_init__()
        base.one_of(self.drives, "drives of a motion that is to show them", ("rigid", "elastic"))
        positive(self.duration, "duration", "s")
        if not self.states >= 1:
            raise ValueError(f"expected at least 1 for states, got {self.states}")
        if not 0 < self.speed_fraction <= 1:
            raise ValueError(f"expected a speed fraction above 0 and up to 1, got {self.speed_fraction}")


VARIANTS = (Config(speed_fraction=1.0),)

TORQUE_SHARE = 0.75
"""Of its torque, what a motor may need along the reference: the rest is for the feedback."""
SLOWER = 0.95  # times the speed, until the torque will do
SLOWEST = 0.01  # of the speed limits
PER_MINUTE = 60 / (2 * np.pi)  # of a rad/s


def suits(robot: Robot) -> bool:
    """Whether the drives of the robot are known, and its masses."""
    return robot.drives is not None and robot.has_inertia


def run(config: Config) -> Log:
    """Look at every axis by itself, then move all."""
    import twin

    known_drives(twin.load(config.robot))
    loop = closed_loop(config, reference, arms)
    load = drive_load(config.with_plant_changes(loop.plant), config.seed, config.states)
    return with_arrays(follow(config, *loop), **load._asdict())


def arms(robot: Robot, config: Config) -> Arms:
    """The robot with its rated payload, which the controller knows."""
    return Arms(with_rated_payload(config.with_plant_payload(robot)))


def reference(robot: Robot, config: Config) -> Samples:
    """The swings of the loaded robot."""
    return hurried(arms(robot, config).plant, config)


def hurried(robot: Robot, config: Config) -> Samples:
    """The swings at the highest speed at which every motor needs `TORQUE_SHARE` of its torque at most.

    Raises:
        RobotError: there is none.
    """
    from twin.dynamics.equation_of_motion import drive_inverse_dynamics

    swings = joint_tracking.Config(duration=config.duration, speed_fraction=config.speed_fraction)
    while swings.speed_fraction > SLOWEST:
        samples = sampled(config, joint_tracking.trajectory(robot, swings))
        tau = drive_inverse_dynamics(robot, samples.q, samples.qd, samples.qdd)
        if np.all(np.abs(tau) <= TORQUE_SHARE * robot.drive_torque_max):
            return samples
        swings = replace(swings, speed_fraction=SLOWER * swings.speed_fraction)
    raise RobotError(
        f"robot {robot.name!r}: its motors need more than {TORQUE_SHARE:.0%} of their torque to move the arm "
        "and its rated payload at all"
    )


def load_of(log: Log) -> DriveLoad:
    """The load of every axis that a run found."""
    return DriveLoad(*(log.arrays[name] for name in DriveLoad._fields))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Torque and speed of the axis that has least to spare, then how the motion went."""
    load = load_of(log)
    return (
        worst(log, "torque at a speed limit / motor's", load.use, "weight in the worst pose and friction"),
        worst(log, "motor speed at a speed limit / its maximum", load.speed, "gear ratio x that limit"),
        *tracking_metrics(log),
    )


def worst(log: Log, name: str, shares: NDArray, why: str) -> Metric:
    """The largest of the axes' shares (n,), which must be 1 at most."""
    axis = int(np.argmax(shares))
    joint = log.robot.joint_names[axis]
    return Metric(
        name, float(shares[axis]), "", 1.0, f"{why}, the axis moving alone; most on {joint}", f"of {joint}"
    )


def table(log: Log) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """A row an axis: what of its motor's torque is taken, what is left, and how soon it is at its limit."""
    load, unit = load_of(log), caption_unit(log.robot.joint_kinds, "{torque}")
    rows: list[tuple[str, ...]] = [
        ("axis", "weight", "friction", f"limit {unit}", "use", "margin", "rotor", "worst s", "median s")
    ]
    for joint, name in enumerate(log.robot.joint_names):
        torques = (load.gravity[joint], load.friction[joint], load.torque_max[joint])
        shares = (load.use[joint], 1.0 - load.use[joint], load.rotor_share[joint])
        numbers = [f"{torque:.1f}" for torque in torques] + [f"{100 * share:.0f} %" for share in shares]
        rows.append((name, *numbers, *(f"{time:.3f}" for time in load.time[:, joint])))
    told = (
        "Each axis alone at its speed limit, with the rated payload. Weight (in the worst pose) and friction "
        f"are in {unit} at the joint; use is their sum over the limit. Rotor is its share of the inertia in "
        "the median pose; s are the seconds from rest to that speed, in the worst and in the median pose."
    )
    return told, tuple(rows)


def picture(logs: Sequence[Log], path: Path) -> None:
    """Draw the torque of every motor over its speed, under the curve of what it can give.

    Args:
        logs: runs with one robot.
        path: the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot = logs[0].robot
    drives = known_drives(robot)
    rows = -(-robot.n // 3)
    figure = Figure(figsize=(12.0, 3.2 * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    title = f"motors of {robot.name}: torque [N m] over speed [1/min]"
    figure.suptitle(literal(title), fontweight="bold")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for axes in panels[robot.n :]:
        axes.set_axis_off()
    for motor, axes in enumerate(panels[: robot.n]):
        axes.set_title(literal(robot.joint_names[motor]))
        for log in logs:
            speed = log.qd_motor @ drives.motor_matrix[motor]
            axes.plot(PER_MINUTE * speed, log.tau_motor[:, motor], lw=0.9, label=literal(log.controller))
        rated, top = PER_MINUTE * drives.motor_speed_rated[motor], PER_MINUTE * drives.motor_speed_max[motor]
        torque = drives.motor_torque_max[motor]
        if np.isfinite(top) and np.isfinite(torque):
            limit = np.array([[-top, 0.0], [-top, -torque], [rated, -torque], [top, 0.0]])
            for curve in (limit, -limit):
                axes.plot(*curve.T, color="0.35", lw=1.6)
        wanted = PER_MINUTE * abs(drives.ratio[motor]) * robot.qd_max[motor]
        for speed in (-wanted, wanted):
            axes.axvline(speed, color="0.6", lw=0.8, ls=":")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110, format="png")
