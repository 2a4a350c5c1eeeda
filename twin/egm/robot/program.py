"""Session of an EGM robot that a RAPID program leads: its moves, and guidance by a client between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import Guidance
from twin.egm.guidance.run import Phase, make_guidance
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.robot.egm_instructions import EgmInstructions
from twin.egm.robot.guided_arm import Controller
from twin.egm.robot.session import Session
from twin.errors import RapidError
from twin.logs.log import Log
from twin.logs.program_lines import ProgramLines
from twin.rapid.files import Files
from twin.rapid.functions import functions_for
from twin.rapid.instructions import instructions_for
from twin.rapid.language import Source
from twin.rapid.operator_panel import Operator
from twin.rapid.planning import Limits, plan
from twin.rapid.programs import executed
from twin.rapid.recorder import Move, Pause, Recorder
from twin.rapid.signals import Inputs, Signals
from twin.rapid.targets import Arm, payload_of
from twin.robot.robot import Payload, Robot


@dataclass(frozen=True, eq=False)
class GuidedProgram:
    r"""Program with instructions for EGM.

    Attributes:
        source: modules of the task.
        robot: nominal arm, without a payload.
        controller_for: function that returns the controller for a payload.
        parameters: system parameters of EGM, and settings that the program does not set.
        limits: share of the torque, and settling time, of planned moves.
        main: procedure to begin with.
        inputs: values of inputs by their names, or pairs of a time in [s] and a value.
        operator: answers of the operator, see `twin.rapid.interpret`.
        signal_delay: time after which waits for signals that are not given are answered, in [s].
        home: folder that stands for HOME:.
        signals: types of the controller's signals by their names.
        moves: largest number of moves; `None` for no limit.

    Example:
        >>> import controllers, twin, twin.egm as egm
        >>> robot = twin.load("irb140")
        >>> law = lambda payload: controllers.make("pd", robot.with_payload(payload))
        >>> source = twin.rapid.parse("MODULE M\nPROC guided()\nENDPROC\nENDMODULE")
        >>> egm.GuidedProgram(source, robot, law, main="guided").limits.share
        0.9
    """

    source: Source
    robot: Robot
    controller_for: Callable[[Payload | None], Controller]
    parameters: GuidanceSettings = field(default_factory=GuidanceSettings)
    limits: Limits = field(default_factory=lambda: Limits(0.9))
    main: str = "main"
    inputs: Inputs = field(default_factory=dict)
    operator: Sequence[str] = ()
    signal_delay: float = 0.0
    home: str | Path | None = None
    signals: Mapping[str, str] | None = None
    moves: int | None = None

    def settings(self, start: Floats) -> GuidanceSettings:
        """Return the settings of the first activation, whose mode and SampleRate are those of the session.

        Raises:
            RapidError: the program has a fault before, or activates no guidance.
        """
        scan = _Scan()
        try:
            self.execute(scan, Recorder(Arm(self.robot, start), **self.given()))
        except _Found as found:
            return found.args[0]
        raise RapidError("the program has no EGMActJoint, EGMActPose or EGMActMove: use irb-twin run", "name")

    def given(self) -> dict[str, Any]:
        """Return what a recorder of this program is given."""
        return {
            "signals": Signals(self.inputs, declared=self.signals),
            "operator": Operator(self.operator),
            "files": Files(None if self.home is None else Path(self.home)),
            "signal_delay": self.signal_delay,
            "limit": self.moves,
        }

    def execute(self, leader: Any, recorder: Recorder) -> str:
        """Execute the program; return why it stopped early, "" if it did not."""
        egm = EgmInstructions(self.parameters, leader, recorder)
        instructions = {**instructions_for(recorder), **egm.instructions()}
        functions = {**functions_for(recorder), **egm.functions()}
        return str(executed(self.source, self.main, recorder, instructions, functions))


class _Found(Exception):
    """Settings of the first activation of a program."""


class _Scan:
    """Leader that ends the execution at the first activation."""

    guided = False

    def activate(self, settings: GuidanceSettings, T_flange_tool: Floats, payload: Payload | None) -> None:
        raise _Found(settings)


class _SessionOver(Exception):
    """End of the session before that of the program."""


class _LedRecorder(Recorder):
    """Recorder of a program whose waits pass while a client guides the arm."""

    def __init__(self, session: ProgramSession, program: GuidedProgram, arm: Arm) -> None:
        super().__init__(arm, **program.given())
        self._session = session
        self.most_retries = float("inf")  # a client may start again at any time

    def now(self) -> float:
        """Return the time of the session with the moves that are not made yet, in [s]."""
        return self._session.planned_time()

    def pause(self, pause: Pause) -> None:
        """Wait at once while the arm is guided, otherwise after the moves before."""
        if self._session.guided:
            self._session.wait(pause.seconds)
        else:
            super().pause(pause)

    def add(self, move: Move) -> None:
        """Add a move; refuse it while the arm is guided."""
        if self._session.guided:
            raise RapidError(f"{move.name} while EGM guides the arm: EGMStop must stand before it", "value")
        super().add(move)


class _Mark(NamedTuple):
    """Line of the program that begins at a sample."""

    sample: int
    file: str
    line: int


class ProgramSession(Session):
    """Session that a program leads."""

    def __init__(self, *given: Any, program: GuidedProgram, **named: Any) -> None:
        super().__init__(*given, **named)
        self._program, self._ended, self._reported = program, False, True
        self._planned_arm = Arm(program.robot, self.arm.q)
        self._recorder = _LedRecorder(self, program, self._planned_arm)
        self._payload: Payload | None = None
        self._next: GuidanceSettings | None = None
        self._marks: list[_Mark] = []

    @property
    def guided(self) -> bool:
        """Whether an instruction guides the arm."""
        return self._run is not None

    # ----------------------------------------------------------------------------------------- cycles

    def rehearse(self) -> None:
        """Execute once what is compiled at first use: the arm's blocks are compiled by its constructor."""

    def _lead(self) -> None:
        """Execute the program, and send the final message."""
        fault = None
        try:
            for action in (partial(self._program.execute, self, self._recorder), self._perform):
                try:
                    action()
                except RapidError as error:  # of a move before, if the execution also has one
                    fault = error
            if self._run is not None:
                self._run.stop()
            self._finish_run()
            self._ended = True
            while self._advance():
                pass
        except _SessionOver:
            pass
        if fault is not None:
            raise fault

    def _step(self) -> None:
        """Run a cycle.

        Raises:
            _SessionOver: a stop was requested, or the duration of the session is over.
        """
        if not self._advance():
            raise _SessionOver

    def _start_next_instruction(self) -> bool:
        """Begin the wanted instruction, if any; return False after the end of the program."""
        if self._next is not None and self._robot_motion.rests:
            self.settings, self._next = self._next, None
            self._begin_instruction()
        return not self._ended

    def planned_time(self) -> float:
        """Return the time at which the arm has made the moves that are planned by now, in [s]."""
        recorder, segments = self._recorder, self._planned_arm.segments
        waiting = [event for event in recorder.events if not (isinstance(event, Move) and _is_guided(event))]
        if len(waiting) < len(recorder.events) or not waiting:
            return self.arm.t
        return self.arm.t + plan(self._program.robot, segments, waiting, self._program.limits).time

    def wait(self, seconds: float) -> None:
        """Run cycles for some time, while a client guides the arm."""
        for _ in range(round(seconds / self._cycle)):
            self._step()
            if self._run is None and (fault := self._finish_run()):
                raise RapidError(fault, "refusal")

    # ------------------------------------------------------------------------------------------ moves

    def _perform(self) -> None:
        """Make the planned moves and waits since the last guidance.

        Raises:
            RapidError: a move cannot keep the limits.
        """
        recorder, arm = self._recorder, self._planned_arm
        if not recorder.events:
            return
        if any(isinstance(event, Move) and _is_guided(event) for event in recorder.events):
            raise RapidError("the last EGMMove must end in a fine point", "value")
        planned = plan(self._program.robot, arm.segments, recorder.events, self._program.limits)
        moves = [(start, one.move) for start, one in zip(planned.starts, planned.moves, strict=True)]
        payloads = [payload_of(move.tool, move.settings.load) for _, move in moves]
        begin, period = round(self.arm.t / self.arm.period), self.arm.period
        for start, file, line in sorted((t, one.file, one.line) for t, one in (*moves, *planned.waits)):
            self._marks.append(_Mark(begin + int(np.ceil(start / period - 1e-9)), file, line))
        self._robot_motion.follow(planned.motion)
        recorder.events.clear()
        arm.segments.clear()
        begun = 0
        while not self._robot_motion.rests:
            now = self.arm.t - begin * period
            while begun < len(moves) and planned.starts[begun] <= now + 1e-9:
                self._change_load(payloads[begun])
                begun += 1
            self._step()
        arm.q = self._robot_motion.q.copy()

    def _change_load(self, payload: Payload | None) -> None:
        """Change the payload of the arm, and its controller."""
        if same_payload(payload, self._payload):
            return
        self._payload = payload
        self.arm.change_load(payload, self._program.controller_for(payload))

    # --------------------------------------------------------------------------------------- guidance

    def activate(self, settings: GuidanceSettings, T_flange_tool: Floats, payload: Payload | None) -> None:
        """Make the moves before, and prepare guidance.

        Raises:
            RapidError: another mode or SampleRate than that of the session.
        """
        if (settings.mode, settings.cycle) != (self.settings.mode, self._cycle):
            first, other = (
                f"{mode} every {1e3 * cycle:g} ms"
                for mode, cycle in ((self.settings.mode, self._cycle), (settings.mode, settings.cycle))
            )
            raise RapidError(
                f"guidance of mode {other} after {first}: expected one mode and one SampleRate", "refusal"
            )
        self._perform()
        self._change_load(payload)
        self.use(settings, T_flange_tool)

    def guide(self, settings: GuidanceSettings, place: tuple[str, int]) -> str:
        """Guide the arm, to the end unless the settings do not wait; return a fault, "" for none.

        Args:
            settings: settings of the instruction.
            place: its file and line.
        """
        if self._run is not None:
            raise RapidError("the arm is guided already: EGMStop must stand before", "value")
        self._perform()
        return self._guide(settings, make_guidance(self._program.robot, settings, self._tool), place)

    def guide_along(self, settings: GuidanceSettings, place: tuple[str, int]) -> str:
        """Guide the arm along the last moves, which end with a stop; return a fault, "" for none."""
        events, arm = self._recorder.events, self._planned_arm
        moves = [event for event in events if isinstance(event, Move)]
        path = [move for move in moves if _is_guided(move)]
        first = len(moves) - len(path)
        segments = arm.segments[first:]
        del arm.segments[first:]
        del events[events.index(path[0]) :]
        self._perform()
        motion = plan(self._program.robot, segments, path, self._program.limits).motion
        guidance = make_guidance(self._program.robot, settings, self._tool, motion)
        return self._guide(settings, guidance, place)

    def _guide(self, settings: GuidanceSettings, guidance: Guidance, place: tuple[str, int]) -> str:
        self._guidance, self._next, self._reported = guidance, settings, False
        self._marks.append(_Mark(round(self.arm.t / self.arm.period), *place))
        while self._next is not None:
            self._step()
        return "" if settings.no_wait_cond and settings.mode != "path" else self._finish_run()

    def _finish_run(self) -> str:
        """Run cycles until no instruction guides the arm; return its fault once, "" for none."""
        while self._run is not None:
            self._step()
        self._planned_arm.q = self._robot_motion.q.copy()
        if not self._failed or self._reported:
            return ""
        self._reported = True
        fault = self._faults[-1]
        return f"{fault.name}: {fault.sentence}"

    def stop(self, settings: GuidanceSettings) -> str:
        """Stop the guidance; return a fault, "" for none."""
        if self._run is not None and self._run.phase in (Phase.WAITING, Phase.GUIDED):
            self._run.end(settings)
        return self._finish_run()

    def log(self) -> Log | None:
        """Return the log of the end of the motion, with the lines of the program."""
        log = super().log()
        if log is None:
            return None
        # Their beginnings are counted in samples of the whole run, of which the log may have the end alone.
        samples = round(log.t[0] / self.arm.period) + np.arange(len(log.t))
        return replace(log, program=ProgramLines.of(self._marks, samples))


def _is_guided(move: Move) -> bool:
    """Return whether a client corrects a move: EGMMoveL or EGMMoveC."""
    return move.name.lower().startswith("egm")


def same_payload(one: Payload | None, other: Payload | None) -> bool:
    """Return whether two payloads are equal."""
    if one is None or other is None:
        return one is other
    pairs = ((one.com, other.com), (one.inertia, other.inertia))
    return one.mass == other.mass and all(np.array_equal(a, b) for a, b in pairs)
