"""Scenario `pose_path`: the tool through published poses, or along a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.judging import bounds
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import one_of, option, positive
from scenarios.scenario import TrackingScenario
from scenarios.setup import Sampling, Setup
from twin.base.errors import RecordingError, RobotError
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from twin.physics.trajectories.sampling import Samples
    from twin.physics.trajectories.tool_paths import PosePath as ToolPosePath

TOOL_ROUND_OFF = 2e-15
"""[m] and [1]: rounding of the engine's forward kinematics and of the joint angles after a whole run.

Observed: 1e-15.
"""
KINDS = ("tool", "joints")


@dataclass(frozen=True, eq=False, kw_only=True)
class TourRun(TrackingRun):
    """Run through the published poses of a robot.

    Attributes:
        stop_names: names of the poses at the S stops.
        put_names: names of the P published poses that the tour does not visit.
        put_poses: (P, 7) poses of the engine's flange with the arm set to them.
    """

    stop_names: tuple[str, ...]
    put_names: tuple[str, ...]
    put_poses: NDArray


class PosePath(TrackingScenario):
    """Move the tool through published poses of the robot, or along a recording.

    What it shows: the whole chain from a tool path to the arm. Inverse kinematics on one branch converts tool
    poses to joint angles, speeds and accelerations, and a controller makes the simulated arm follow them. By
    default the tool visits the poses of the tour in the robot's `robot.toml`, on straight lines, at rest in
    each pose. For the IRB 140 these are the poses of the tests 3, 1, 2, 1, 3 of Aliaga 2019, section 3.1.2,
    on the branch of the published joint angles (in the order 1, 2, 3 axis 4 would leave its range). For the
    IRB 1400 they are the example of Norrlöf 1999 and some poses of this project, for the IRB 1600 poses of
    this project. `--csv FILE` reads a timed recording instead, of the tool (columns t,x,y,z,a,b,c,d; seconds,
    metres, unit quaternion with the scalar first, or Euler angles rx,ry,rz) or of the joints (t,q1,...,qn;
    radians), in other units and under other names too: `x[mm]`, `--length-unit mm`, `--columns "t=Time, x=X
    Pos"`. With a `--tool` the tip of the tool moves straight from pose to pose, or along the recording. On
    the tour the arm stops at the same joint angles with any tool, so that the flange reaches the published
    poses.

    What must hold: where the tour stops in a published pose, the engine's tool is in this pose, under
    computed torque to rounding (under other controllers the difference is reported). Forward kinematics at
    the published joint angles gives the published pose. The path begins and ends at the joint angles of the
    tour's ends. Computed torque with an exact model, a reference that obeys the engine's recursion, and a new
    torque in every engine step tracks to 1e-10 rad; otherwise the error stays below the bound of
    `scenarios.judging.bounds`.
    """

    csv: str | None = option(None, "recording to follow instead of the test poses")
    csv_kind: str | None = option(
        None, "part of the recording to follow, if it has both the tool's pose and the joints", choices=KINDS
    )
    columns: str | None = option(None, "names of the recording's columns, as 't=Time, x=X Pos'")
    length_unit: str = option(
        "m", "length unit of the recording's columns without a unit", choices=("m", "mm")
    )
    angle_unit: str = option(
        "rad", "angle unit of the recording's columns without a unit", choices=("rad", "deg")
    )
    time_unit: str = option("s", "time unit of the recording's columns without a unit", choices=("s", "ms"))
    speed: float = option(0.25, "peak speed of the tool between the test poses, in m/s")
    angular_speed: float = option(1.0, "peak angular speed of the tool between the test poses, in rad/s")
    variants = ({"reference": "continuous"}, {"steps_per_period": 2}, {"steps_per_period": 5})
    needs = ("tool",)

    def __post_init__(self) -> None:
        positive(self.speed, "tool speed", "m/s")
        positive(self.angular_speed, "angular speed of the tool", "rad/s")
        if self.csv_kind is not None:
            one_of(self.csv_kind, "kind of recording", KINDS)
        _ = self.reading  # this property checks its settings
        if self.csv is not None and not Path(self.csv).is_file():
            raise RecordingError(f"there is no recording {self.csv!r}")

    @property
    def reading(self) -> dict[str, Any]:
        """Arguments of `twin.read_recording` for the recording."""
        from twin.data.logs.recordings.columns import header_options

        units = {name: getattr(self, name) for name in ("length_unit", "angle_unit", "time_unit")}
        header_options(self.columns, **units)
        return {"kind": self.csv_kind, "columns": self.columns, **units}

    def suits(self, robot: Robot) -> bool:
        """Return whether the robot has a tour of test poses."""
        return bool(robot.tour)

    def reference(self, robot: Robot, sampling: Sampling) -> Samples:
        """Return the joint motion along the recording or the tour, sampled."""
        from twin.data.logs.recordings.motions import recorded_motion
        from twin.data.logs.recordings.recording import read_recording
        from twin.physics.trajectories.joint_paths import joint_path

        T = sampling.T_flange_tool
        if self.csv is not None:
            recording = read_recording(self.csv, robot, **self.reading)
            return sampling.sampled(recorded_motion(robot, recording, T_flange_tool=T))
        path, start = self.tour(robot, sampling), robot.poses[robot.tour[0]]
        return sampling.sampled(joint_path(robot, path, near=start, T_flange_tool=T))

    def tour(self, robot: Robot, sampling: Sampling) -> ToolPosePath:
        """Return the path of the tool through the poses of the robot's tour."""
        from twin.physics.kinematics.forward import forward_kinematics
        from twin.physics.trajectories.tool_paths import through_poses

        if not robot.tour:
            raise RobotError(
                f"robot {robot.name!r} has no [tour] of poses in a robot.toml; give a --csv recording"
            )
        stops = np.array([robot.poses[name] for name in robot.tour])
        poses = forward_kinematics(robot, stops, sampling.T_flange_tool)
        path = through_poses(poses, speed=self.speed, angular_speed=self.angular_speed)
        # The tool arrives in each pose exactly at a sample, so that its pose can be measured there.
        periods = np.ceil(np.diff(path.times) / sampling.period)
        return through_poses(poses, durations=periods * sampling.period)

    def run(self, setup: Setup | None = None) -> TrackingRun:
        """Follow the path; on the tour, also measure the flange in the published poses in the engine."""
        from scenarios.judging.following import follow

        setup = self.checked(setup)
        reference, arms, _ = self.loop(setup)
        if self.csv is not None:
            return follow(setup, reference, arms)
        robot, sampling = arms.plant, setup.sampling(self.needs)
        stops = printed_stops(robot, self.tour(robot, sampling).times, sampling.period)
        put = tuple(name for name in robot.published if name not in stops.values())
        run = follow(setup, reference, arms, stops=tuple(stops))
        poses = tool_when_put(robot, put)
        return TourRun(**vars(run), stop_names=tuple(stops.values()), put_names=put, put_poses=poses)

    def metrics(self, run: TrackingRun) -> tuple[Metric, ...]:
        """Return the tracking error, and for the tour the comparison with the published poses."""
        from twin.data.logs.figures import tool_turn

        angle = Metric(
            "largest tool angle",
            float(np.max(tool_turn(run.log))),
            "rad",
            None,
            "between the tool's orientation and its reference, beside the distance of the largest tool error",
        )
        return (*(tour_metrics(run) if isinstance(run, TourRun) else ()), *tracking_metrics(run), angle)


def printed_stops(robot: Robot, times: NDArray, period: float) -> dict[int, str]:
    """Return the names of the published poses on the tour by the sample of the stop.

    Args:
        robot: the robot.
        times: times of the tour's stops, in [s].
        period: control period, in [s].
    """
    named = zip(np.round(times / period).astype(int).tolist(), robot.tour, strict=True)
    return {sample: name for sample, name in named if name in robot.published}


def tool_when_put(robot: Robot, names: Sequence[str]) -> NDArray:
    """Return the poses (S, 7) of the engine's flange with the arm set to S named poses."""
    from twin.physics.engine.simulation import Simulation
    from twin.physics.rotations.rotations import pose_vector

    if not names:
        return np.zeros((0, 7))
    with Simulation(robot) as simulation:
        poses = []
        for name in names:
            simulation.reset(robot.poses[name])
            poses.append(pose_vector(simulation.tool_pose()))
    return np.array(poses)


def tour_metrics(run: TourRun) -> tuple[Metric, ...]:
    """Return the differences of engine and forward kinematics from the published poses, and the ends."""
    from twin.physics.kinematics.forward import forward_kinematics
    from twin.physics.rotations.rotations import pose_vector

    log, robot = run.log, run.log.robot
    ends = log.q_ref[[0, -1]] - np.array([robot.poses[robot.tour[0]], robot.poses[robot.tour[-1]]])
    poses = np.zeros((0, 7)) if run.stops is None else run.stops.poses
    exact = bounds.is_exact(run)
    what = "tool" if np.array_equal(log.T_flange_tool, np.eye(4)) else "flange"
    largest: dict[str, float] = {}
    for tool, name in zip(poses, run.stop_names, strict=True):
        largest[name] = float(np.maximum(from_printed(robot, name, tool), largest.get(name, 0.0)))
    engine = [
        Metric(
            f"{what} at {name} - printed",
            difference,
            "",
            robot.published[name].tolerance + TOOL_ROUND_OFF if exact else None,
            f"the engine's {what} where the run stops there, position in m and quaternion"
            + (", to the printed digits" if exact else ": error of this controller"),
        )
        for name, difference in largest.items()
    ]
    engine += apart_metrics(run, what)
    engine += [
        Metric(
            f"{what} put at {name} - printed",
            from_printed(robot, name, tool),
            "",
            robot.published[name].tolerance + TOOL_ROUND_OFF,
            f"the engine's {what} with the arm set to its joint angles; the tour does not visit this pose",
        )
        for name, tool in zip(run.put_names, run.put_poses, strict=True)
    ]
    model = [
        Metric(
            f"model at {name} - printed",
            from_printed(robot, name, pose_vector(forward_kinematics(robot, robot.poses[name]))),
            "",
            printed.tolerance,
            "forward kinematics at its joint angles, to the printed digits",
        )
        for name, printed in robot.published.items()
    ]
    return (
        *engine,
        *model,
        Metric(
            "ends of the path - named angles",
            float(np.max(np.abs(ends))),
            "rad",
            1e-12,
            "inverse kinematics of the first and the last pose, on the branch of their joint angles",
        ),
    )


def apart_metrics(run: TourRun, what: str) -> list[Metric]:
    """Return the distance and the angle of the engine's tool from each published pose where the run stops.

    These are the figures of the pose comparator of Aliaga 2019. Their limits follow from the printed digits:
    of three components of the position and of four of the quaternion.
    """
    from twin.data.logs.figures import turn_between

    found = []
    stops = np.zeros((0, 7)) if run.stops is None else run.stops.poses
    for name in dict.fromkeys(run.stop_names):
        printed = run.log.robot.published[name]
        poses = stops[[stop == name for stop in run.stop_names]]
        digit = printed.tolerance + TOOL_ROUND_OFF
        for quantity, values, unit, limit in (
            ("distance", np.linalg.norm(poses[:, :3] - printed.flange[:3], axis=1), "m", np.sqrt(3) * digit),
            ("angle", turn_between(poses[:, 3:], printed.flange[3:]), "rad", 4.0 * np.arcsin(digit)),
        ):
            text = f"{quantity} of the engine's {what} from the printed pose where the run stops there"
            limited = float(limit) if bounds.is_exact(run) else None
            found.append(
                Metric(f"{what} at {name} - printed, {quantity}", float(np.max(values)), unit, limited, text)
            )
    return found


def from_printed(robot: Robot, name: str, pose: NDArray) -> float:
    """Return the largest difference of a pose (7,) from the published one in any component.

    Both signs of the quaternion are equivalent; the nearer one is compared.
    """
    printed = np.asarray(robot.published[name].flange)
    sign = -1.0 if pose[3:] @ printed[3:] < 0 else 1.0
    return float(np.max(np.abs(np.concatenate([pose[:3], sign * pose[3:]]) - printed)))


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
