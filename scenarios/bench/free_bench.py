"""Robot in the window under a controller; the user jogs, teaches, pushes and loads it.

The loop is `twin.run_closed_loop`, as in every run, executed in short parts. The reference of each part is
computed when the part begins.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios.bench.jogging import JogPanel
from scenarios.bench.watched import KEYS, ChosenLaw, LawPanel, LoopView
from twin.base.errors import DivergenceError, TwinError, describe_error
from twin.data.logs.closed_loop import run_closed_loop
from twin.data.logs.log import Log, RunningLog
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.limits import joint_ranges
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import SHOWN
from twin.physics.trajectories.jogging import Follower
from twin.physics.trajectories.joint_trajectories import Trajectory, quintic, sequence
from twin.physics.trajectories.sampling import Samples, sample_semi_implicit

if TYPE_CHECKING:
    from scenarios.setup import Setup
    from twin.physics.robot.robot import Robot
    from twin.studies.cell.cell import Cell

FILE_PERIOD = 0.02  # s, between rows of the file
SAME = 1e-9  # rad: largest difference of equal poses


def motion_through(poses: list[NDArray], qd_max: NDArray) -> Trajectory | None:
    """Return a motion that stops in each pose; `None` if all poses are equal.

    Args:
        poses: joint angles of the poses, (n,) each, in [rad].
        qd_max: (n,) largest speeds, in [rad/s].
    """
    moves = [
        quintic(a, b, qd_max=qd_max) for a, b in pairwise(poses) if np.max(np.abs(b - a), initial=0.0) > SAME
    ]
    return sequence(*moves) if moves else None


def write_poses(path: Path, robot: Robot, poses: list[NDArray], qd_max: NDArray) -> bool:
    """Write the motion as a recording of joints, `t,q1,...`; return False if there is no motion to write.

    Raises:
        OSError: the file cannot be written.
    """
    from twin.data.logs.recordings.recording import joint_recording, write_recording

    trajectory = motion_through(poses, qd_max)
    if trajectory is None:
        return False
    rows = max(2, int(np.ceil(trajectory.duration / FILE_PERIOD)) + 1)
    t = np.linspace(0.0, trajectory.duration, rows)
    write_recording(path, joint_recording(t, trajectory(t)[0], robot))
    return True


def pose_table(robot: Robot, poses: list[NDArray]) -> list[list[str]]:
    """Return a table with a row for each pose, headings first, in degrees or, for prismatic joints, mm."""
    rows = [["pose", *robot.joint_names]]
    for number, q in enumerate(poses, start=1):
        cells = [
            f"{SHOWN[kind][1] * position:.2f} {SHOWN[kind][0]}"
            for position, kind in zip(q, robot.joint_kinds, strict=True)
        ]
        rows.append([str(number), *cells])
    return rows


PART = 0.05  # s: length of a part of the run
LOG_DURATION = 120.0  # s: length of the logged end of the run


@dataclass
class Session:
    """Result of a session at the bench.

    Attributes:
        robot: robot of the session.
        poses: taught poses, (n,) each, in [rad].
        log: last two minutes of the run, since its last restart; `None` if there was no run. Its array
            `touches` has the user's actions; robot and controller are those of the beginning.
        touches: times, in [s], and descriptions of the user's actions.
    """

    robot: Robot
    poses: list[NDArray] = field(default_factory=list)
    log: Log | None = None
    touches: list[tuple[float, str]] = field(default_factory=list)


class FreeBench:
    """Interactive session at the bench.

    Args:
        setup: robot, controller, drives, tool, payload.
        start: (n,) initial joint angles, in [rad].
        file: file for the taught poses; `None` to write none.
        duration: simulated time after which the session ends, in [s].
        cell: what stands around the arm; the window shows the nearest pair.

    Raises:
        TwinError: there is no display, or the robot or controller does not exist.
    """

    def __init__(
        self, setup: Setup, start: NDArray, file: Path | None = None, duration: float = np.inf,
        cell: Cell | None = None,
    ) -> None:  # fmt: skip
        self._setup, self._start, self._file, self._duration = setup, start, file, duration
        self.session = Session(setup.load_robot())
        self._clearance = None
        if cell is not None:
            from twin.studies.cell.clearance import Clearance

            self._clearance = Clearance(self.session.robot, cell)
        self._log = RunningLog(max(1, round(LOG_DURATION / setup.period)))

    def run(self) -> Session:
        """Run the session until the window is closed or the duration ends; return its result."""
        setup, robot = self._setup, self.session.robot
        model = setup.controller_model(robot)
        with Simulation(robot, time_step=setup.time_step, gui=True) as simulation:
            assert simulation.bench is not None
            self._simulation, self._bench = simulation, simulation.bench
            self._bench.T_flange_tool = setup.T_flange_tool
            self._law = ChosenLaw(setup, lambda chosen: chosen.control_law(model))
            self._follower = Follower.of(robot, self._start, setup.period)
            self._moves: Iterator[Samples] | None = None
            panel = self._bench.panel
            self._jog = JogPanel(self._bench, robot, self._follower, setup.T_flange_tool)
            self._bench.add_keys(KEYS)
            self._bench.add_keys("k: teach this pose   o: go through taught poses")
            self._teach = panel.button("teach this pose (k)")
            self._go = panel.button("go through taught poses (o)")
            self._restart = panel.button("restart (r)")
            self._laws = LawPanel(self._bench, self._law)
            self._view = LoopView(simulation, setup.T_flange_tool)
            self._desired, self._last_picture = self._start, time.perf_counter()
            self._restart_requested = False
            self._bench.on_picture(self._picture)
            self._begin()
            try:
                while self._follower.k * setup.period < self._duration:
                    self._part()
            except TwinError:
                if not self._bench.lost:
                    raise
        self.session.touches = list(self._bench.touches)
        self.session.log = self._joined()
        return self.session

    def _begin(self) -> None:
        """Start the run from the initial pose with the controller of the settings."""
        if self._simulation.robot.payload is not self.session.robot.payload:
            self._simulation.change_payload(self.session.robot.payload)
        self._simulation.reset(self._start)
        self._law.choose(self._setup)
        self._follower.restart(self._start)
        self._desired = self._start
        self._follower.k, self._moves, self._restart_requested = 0, None, False
        self._log.restart()
        self._laws.rebuild()
        self._jog.rebuild()
        self._view.restart()
        self._bench.write_line("trouble", "")

    def _part(self) -> None:
        """Run the next part, 50 ms of simulated time."""
        if self._restart_requested:
            self._begin()
        samples, period = self._reference(), self._setup.period

        def sample(k: int) -> None:
            """Store the desired positions after the step, when the picture is drawn."""
            q, qd, qdd = (series[k] for series in samples[1:])
            self._desired = q + period * (qd + period * qdd)

        try:
            log = run_closed_loop(
                self._simulation, self._law, samples, part=True, at_sample=sample,
                steps_per_period=self._setup.steps_per_period,
            )  # fmt: skip
            self._log.add(log)
        except DivergenceError as error:
            self._bench.write_line("trouble", f"{error}: press r to restart")
            self._bench.wait_until(lambda: self._restart_requested)

    def _reference(self) -> Samples:
        """Return the next samples: of a motion through the taught poses, if one is active, or of jogging."""
        count = max(1, round(PART / self._setup.period))
        if self._moves is not None:
            samples = next(self._moves, None)
            if samples is not None:
                return samples
            self._moves = None
            self._jog.rebuild()
        return self._follower.samples(count)

    def _picture(self) -> None:
        """Process the user's input and update the window."""
        now = time.perf_counter()
        seconds, self._last_picture = min(now - self._last_picture, 0.2), now
        key = self._bench.panel.key
        if self._restart.pressed() or key("r"):
            self._restart_requested = True
        if done := self._laws.act():
            self._bench.touch(done)
        if self._teach.pressed() or key("k"):
            self._teach_pose()
        if self._go.pressed() or key("o"):
            self._go_through()
        if self._moves is None:
            self._jog.act(seconds)
        self._bench.write_line("law", self._law.description)
        if self._clearance is not None and (nearest := self._clearance.nearest(self._desired)) is not None:
            near = f"{nearest.names}: {nearest.text}"
            self._bench.write_line("cell", near + (" TOO NEAR" if nearest.clearance < 0 else ""))
        self._view.show(0, self._desired)

    def _teach_pose(self) -> None:
        """Teach the target of the reference, which is the position of the sliders."""
        poses = self.session.poses
        poses.append(self._follower.target.copy())
        self._bench.write_line("poses", f"{len(poses)} pose{'s' * (len(poses) > 1)} taught")
        if self._file is not None:
            try:
                write_poses(self._file, self.session.robot, poses, self._follower.qd_max)
            except OSError as error:
                self._bench.write_line("refused", describe_error(error))

    def _go_through(self) -> None:
        if not self._follower.at_rest:
            self._bench.write_line("refused", "the arm is moving: stop it (s), or wait until it arrives")
            return
        trajectory = motion_through([self._follower.q, *self.session.poses], self._follower.qd_max)
        if trajectory is None:
            self._bench.write_line("refused", "teach a pose that differs from the current one")
            return
        self._bench.write_line("refused", "")
        self._moves = self._cut(sample_semi_implicit(trajectory, self._setup.period))

    def _cut(self, motion: Samples) -> Iterator[Samples]:
        """Yield the samples of a motion in parts; afterwards the follower is at rest at its end."""
        count = max(1, round(PART / self._setup.period))
        first = self._follower.k
        for begin in range(0, len(motion.t), count):
            q, qd, qdd = (series[begin : begin + count] for series in motion[1:])
            t = np.arange(first + begin, first + begin + len(q), dtype=np.float64) * self._setup.period
            self._follower.k = first + begin + len(q)
            yield Samples(t, q, qd, qdd)
        self._follower.restart(motion.q[-1])

    def _joined(self) -> Log | None:
        """Return the end of the run as one log; `None` if there was no run."""
        touches = np.array([f"{what} at {t:.3f} s" for t, what in self.session.touches], dtype=str)
        return self._log.log(self._setup.T_flange_tool, {"touches": touches})


def start_pose(robot: Robot, name: str | None) -> NDArray:
    """Return the initial pose (n,), in [rad]: a named pose, or the zero pose within the joints' ranges."""
    from scenarios.setup import named_pose

    if name is not None:
        return named_pose(robot, name)
    low, high = joint_ranges(robot)
    return np.clip(np.zeros(robot.n), low, high)
