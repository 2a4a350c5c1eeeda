"""A robot in the window under a control law, which a person jogs, teaches, pushes and loads.

The loop is the one of every run, `twin.run_closed_loop`, part by part; only its reference is made as it goes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios.bench import taught_poses
from scenarios.bench.chosen_law import ChosenLaw, LawPanel
from scenarios.bench.jog_panel import JogPanel, joint_ranges
from scenarios.bench.jogging import Follower
from scenarios.bench.watched import LoopView
from twin.control.closed_loop import run_closed_loop
from twin.engine.simulation import Simulation
from twin.errors import DivergenceError, TwinError, describe_error
from twin.logs.log import Log, RunningLog
from twin.robot.robot import Robot
from twin.trajectories.sampling import Samples, sample_semi_implicit

if TYPE_CHECKING:
    from scenarios.base import Config

PART = 0.05  # s, of the run between two looks at the controls
KEPT = 120.0  # s, of the end of the run


@dataclass
class Session:
    """What is left of a time at the bench.

    Attributes:
        robot: what was moved.
        poses: (n,) each, in [rad]: those that were taught.
        log: the last two minutes of the run, since its last restart; `None` if there was none.  Its array
            `touches` has what was done; robot and law are those of the beginning.
        touches: what was done to it: when, in [s], and what.
    """

    robot: Robot
    poses: list[NDArray] = field(default_factory=list)
    log: Log | None = None
    touches: list[tuple[float, str]] = field(default_factory=list)


class FreeBench:
    """A time at the bench.

    Args:
        config: robot, control law, drives, tool, payload.
        start: (n,) where the arm begins, in [rad].
        file: where taught poses are written, if anywhere.
        duration: after which the bench ends by itself, in [s] of the simulation.

    Raises:
        TwinError: there is no display, or no such robot or law.
    """

    def __init__(
        self, config: Config, start: NDArray, file: Path | None = None, duration: float = np.inf
    ) -> None:
        self._config, self._start, self._file, self._duration = config, start, file, duration
        self.session = Session(config.load_robot())
        self._log = RunningLog(max(1, round(KEPT / config.period)))

    def run(self) -> Session:
        """Until the window is closed."""
        config, robot = self._config, self.session.robot
        model = config.controller_model(robot)
        with Simulation(robot, time_step=config.time_step, gui=True) as simulation:
            assert simulation.bench is not None
            self._simulation, self._bench = simulation, simulation.bench
            self._bench.T_flange_tool = config.T_flange_tool
            self._law = ChosenLaw(config, lambda chosen: chosen.control_law(model))
            self._follower = Follower.of(robot, self._start, config.period)
            self._moves: Iterator[Samples] | None = None
            panel = self._bench.panel
            self._jog = JogPanel(self._bench, robot, self._follower, config.T_flange_tool)
            self._keep = panel.button("keep this pose (k)")
            self._go = panel.button("go through kept poses (o)")
            self._again = panel.button("from the start (r)")
            self._laws = LawPanel(self._bench, self._law)
            self._view = LoopView(simulation, config.T_flange_tool)
            self._wanted, self._looked = self._start, time.perf_counter()
            self._asked_again = False
            self._bench.on_picture(self._picture)
            self._begin()
            try:
                while self._follower.k * config.period < self._duration:
                    self._part()
            except TwinError:
                if not self._bench.lost:
                    raise
        self.session.touches = list(self._bench.touches)
        self.session.log = self._joined()
        return self.session

    def _begin(self) -> None:
        """From the start, with the law of the settings."""
        if self._simulation.robot.payload is not self.session.robot.payload:
            self._simulation.change_payload(self.session.robot.payload)
        self._simulation.reset(self._start)
        self._law.choose(self._config)
        self._follower.restart(self._start)
        self._wanted = self._start
        self._follower.k, self._moves, self._asked_again = 0, None, False
        self._log.restart()
        self._laws.rebuild()
        self._jog.rebuild()
        self._view.restart()
        self._bench.say("trouble", "")

    def _part(self) -> None:
        """The next 50 ms of the run."""
        if self._asked_again:
            self._begin()
        samples, period = self._reference(), self._config.period

        def sample(k: int) -> None:
            """The picture is made after the step: it shows where the arm should be then."""
            q, qd, qdd = (series[k] for series in samples[1:])
            self._wanted = q + period * (qd + period * qdd)

        try:
            log = run_closed_loop(
                self._simulation, self._law, samples, part=True, at_sample=sample,
                steps_per_period=self._config.steps_per_period,
            )  # fmt: skip
            self._log.add(log)
        except DivergenceError as error:
            self._bench.say("trouble", f"{error}: press r to begin again")
            self._bench.wait_until(lambda: self._asked_again)

    def _reference(self) -> Samples:
        """The next samples: of the motion through the kept poses, if it is under way, or of jogging."""
        count = max(1, round(PART / self._config.period))
        if self._moves is not None:
            samples = next(self._moves, None)
            if samples is not None:
                return samples
            self._moves = None
            self._jog.rebuild()
        return self._follower.samples(count)

    def _picture(self) -> None:
        """Look at what was pressed, and bring the window up to date."""
        now = time.perf_counter()
        seconds, self._looked = min(now - self._looked, 0.2), now
        key = self._bench.panel.key
        if self._again.pressed() or key("r"):
            self._asked_again = True
        if done := self._laws.act():
            self._bench.touch(done)
        if self._keep.pressed() or key("k"):
            self._keep_pose()
        if self._go.pressed() or key("o"):
            self._go_through()
        if self._moves is None:
            self._jog.act(seconds)
        self._bench.say("law", self._law.description)
        self._view.show(0, self._wanted)

    def _keep_pose(self) -> None:
        """Teach where the reference is going, which is where the sliders are."""
        poses = self.session.poses
        poses.append(self._follower.target.copy())
        self._bench.say("poses", f"{len(poses)} pose{'s' * (len(poses) > 1)} kept")
        if self._file is not None:
            try:
                taught_poses.write(self._file, self.session.robot, poses, self._follower.qd_max)
            except OSError as error:
                self._bench.say("refused", describe_error(error))

    def _go_through(self) -> None:
        if not self._follower.at_rest:
            self._bench.say("refused", "the arm is on its way: stop it (s), or let it arrive")
            return
        trajectory = taught_poses.motion([self._follower.q, *self.session.poses], self._follower.qd_max)
        if trajectory is None:
            self._bench.say("refused", "keep a pose that the arm is not in already")
            return
        self._bench.say("refused", "")
        self._moves = self._cut(sample_semi_implicit(trajectory, self._config.period))

    def _cut(self, motion: Samples) -> Iterator[Samples]:
        """The samples of a motion part by part; the follower stands at its end afterwards."""
        count = max(1, round(PART / self._config.period))
        first = self._follower.k
        for begin in range(0, len(motion.t), count):
            q, qd, qdd = (series[begin : begin + count] for series in motion[1:])
            t = np.arange(first + begin, first + begin + len(q), dtype=np.float64) * self._config.period
            self._follower.k = first + begin + len(q)
            yield Samples(t, q, qd, qdd)
        self._follower.restart(motion.q[-1])

    def _joined(self) -> Log | None:
        """The end of the run as one log."""
        touches = np.array([f"{what} at {t:.3f} s" for t, what in self.session.touches], dtype=str)
        return self._log.log(self._config.T_flange_tool, {"touches": touches})


def start_pose(robot: Robot, name: str | None) -> NDArray:
    """Where the bench begins: a pose by its name, else the zero pose, moved into the ranges of the joints."""
    from scenarios.base import named_pose

    if name is not None:
        return named_pose(robot, name)
    low, high = joint_ranges(robot)
    return np.clip(np.zeros(robot.n), low, high)
