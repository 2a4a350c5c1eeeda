"""Recorder of a task that lives: moves are made, waits last, and notes are lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twin.abb.controller.motion import Path
from twin.abb.controller.triggers import Trigger, triggers_of
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.planning import groups_of
from twin.abb.rapid.recorder import Files, Note, Recorder
from twin.abb.rapid.targets import Arm, Move, Pause
from twin.abb.rapid.values import NUM
from twin.base.errors import RapidError

if TYPE_CHECKING:
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.sockets import RapidSocket
    from twin.abb.controller.tasks import Task

MOST_AHEAD = 10
"""Moves without a stop that are collected before the arm begins with them; others are added later (ours)."""


@dataclass
class Question:
    """Question of a program to the operator: its text, the texts of keys, and the answer when it comes."""

    text: str
    keys: tuple[str, ...]
    answer: str | None = None


class LiveRecorder(Recorder):
    """Recorder of a task that follows the cycles of a virtual controller.

    Attributes:
        controller: the virtual controller.
        task: the task.
        sockets: its open sockets.
    """

    def __init__(self, controller: VirtualController, task: Task, files: Files) -> None:
        arm = Arm(controller.robot, controller.motion.q) if task.settings.moves else None
        super().__init__(arm, controller.signals, operator=controller.operator, files=files)
        self.controller, self.task = controller, task
        self.sockets: set[RapidSocket] = set()
        self._stored: list[tuple[list, list]] = []

    def now(self) -> float:
        """Return the time since the start of the controller, in [s]."""
        return self.controller.t

    def note(self, place: tuple[str, int], text: str) -> None:
        """Do nothing: notes are for a check."""

    def _add_note(self, notes: list[Note], note: Note) -> None:
        count = len(notes)
        super()._add_note(notes, note)
        for new in notes[count:]:
            self.controller.report(self.task.settings.name, f"line {new.line}: {new.text}")

    # --------------------------------------------------------------------------------------------- waits

    def pause(self, pause: Pause) -> None:
        """Make the moves before, and wait."""
        self._settle()
        end = self.controller.t + pause.seconds
        self.task.wait(lambda: self.controller.t >= end - 1e-9)

    def wait(
        self, given: Arguments, name: str, is_there: Callable[[], bool], wanted: list[tuple[str, float]]
    ) -> None:
        """Wait until a condition holds, see `Recorder.wait`; nothing is taken as answered."""
        self._settle()
        end = self.controller.t + given.optional("maxtime", NUM, float("inf"))
        self.task.poll(lambda: is_there() or self.controller.t >= end - 1e-9)
        if not is_there():
            given.report_time_out(given.value("maxtime", NUM))

    def ask(self, given: Arguments, question: str, keys: Sequence[str] = ()) -> str | None:
        r"""Return an answer that was given before, or wait for that of a person, `\MaxTime` at most."""
        if (answer := super().ask(given, question)) is not None:
            return answer
        name, most = self.task.settings.name, given.optional("maxtime", NUM, float("inf"))
        asked = self.controller.questions[name] = Question(question, tuple(keys))
        choices = f" ({', '.join(keys)})" if keys else ""
        self.controller.report(name, f"{given.name} asks: {question}{choices}")
        end = self.controller.t + most
        try:
            self.task.wait(lambda: asked.answer is not None or self.controller.t >= end - 1e-9)
        finally:
            del self.controller.questions[name]
        if asked.answer is None:
            if "breakflag" not in given:
                given.interpreter.raise_error("err_tp_maxtime", f"{given.name} had no answer in {most:g} s")
            given.give("breakflag", given.interpreter.error_number("err_tp_maxtime"))
        return asked.answer or "0"

    def refuse_answer(self, sentence: str) -> None:
        """Report that an answer is refused."""
        self.controller.report(self.task.settings.name, sentence)

    def _settle(self) -> None:
        """Make the moves before a wait; a trap, or a program that stopped the arm, does not wait for it."""
        if not (self.task.interpreter.interrupts.running or self.controller.held):
            self.finish()

    # --------------------------------------------------------------------------------------------- moves

    def triggers(self, given: Arguments, place: Mapping[str, int]) -> tuple[Trigger, ...]:
        """Return what happens on the way of a move: its triggers, and the output at its end."""
        if "Value" in place:
            signal, value = given.signal(place["Signal"]), given.value(place["Value"], NUM)
            return (Trigger(lambda: self.signals.write(signal, value)),)
        return triggers_of(given, place)

    def set_at_target(self, signal: str, value: float) -> None:
        """Do nothing: a trigger sets the output."""

    def add(self, move: Move) -> None:
        """Make a move, or collect it if the arm does not stop at its end.

        Raises:
            RapidError: the task moves no arm, or the move is impossible.
        """
        if self.arm is None:
            raise RapidError(f"{move.name}: the task {self.task.settings.name} moves no arm", "refusal")
        motion = self.controller.motion
        if self.controller.egm.guides:
            raise RapidError(f"{move.name} while EGM guides the arm: EGMStop must stand before it", "value")
        if not is_guided(move):
            self._refuse_guided_moves()
        elif not self.guided_moves:
            self.finish()
        if not self.events and not motion.paths:
            self.arm.q = motion.q.copy()
        self.arm.move(move)
        self.events.append(move)
        self.moves += 1
        if self.arm.warnings:  # remarks of a check; they would grow
            self.arm.warnings.clear()
        if is_guided(move):
            return
        if move.stops:
            self.finish()
        elif len(self.events) >= MOST_AHEAD:
            self._plan()
            self.task.wait(lambda: motion.ahead <= MOST_AHEAD // 2)

    @property
    def guided_moves(self) -> list[Move]:
        """Collected moves that a client will correct: EGMMoveL, EGMMoveC."""
        return [one for one in self.events if isinstance(one, Move) and is_guided(one)]

    def _refuse_guided_moves(self) -> None:
        if self.guided_moves:
            raise RapidError("the last EGMMove must end in a fine point", "value")

    def begin(self) -> None:
        """Let the arm begin with the collected moves before the task waits, because no other may follow."""
        if self.events and self.arm is not None and not self.guided_moves:
            self._plan()

    def finish(self) -> None:
        """Make all moves of the task, and wait until the arm has made them.

        Raises:
            RapidError: a move cannot keep the limits, or its corner leads to no further EGMMove.
        """
        if self.arm is None:
            return
        self._refuse_guided_moves()
        if self.events:
            self.interrupt_corner("")
            self._plan()
        self.task.wait(lambda: not self.controller.motion.paths)

    def catch_up(self) -> None:
        """Let the arm begin its last move, so that an output is not set many moves ahead of the arm.

        A trap, or a program that stopped the arm, does not wait for it.
        """
        if self.arm is None or self.task.interpreter.interrupts.running or self.controller.held:
            return
        self.begin()
        self.task.wait(lambda: self.controller.motion.ahead == 0)

    def _plan(self) -> None:
        """Plan the collected moves, and let the arm begin with them, or blend them into its present path.

        Raises:
            RapidError: a move cannot keep the limits.
        """
        assert self.arm is not None
        controller, motion, era = self.controller, self.controller.motion, self.controller.era
        groups = [one for one in groups_of(self.arm.segments, self.events) if isinstance(one, list)]
        self.forget_moves()
        if motion.paths and motion.paths[-1].open:
            last = motion.paths[-1]
            rest = last.rest(motion.t if last is motion.paths[0] else 0.0)
            longer = self.task.aside(
                lambda: Path.planned(
                    controller.robot, [*rest.segments, *groups[0]], controller.limits, rest.begin
                )
            )
            if era != controller.era:  # ClearPath came meanwhile
                return
            if longer is not None and motion.extend(rest, last, longer):
                groups = groups[1:]
        planned = self.task.aside(
            lambda: [Path.planned(controller.robot, one, controller.limits) for one in groups]
        )
        if era != controller.era:
            return
        for group, path in zip(groups, planned, strict=True):
            if path is None:  # it leads nowhere
                motion.due += [one for segment in group for one in segment.move.triggers]
            else:
                motion.paths.append(path)

    def forget_moves(self) -> None:
        """Forget the moves that were collected and not planned."""
        self.events.clear()
        if self.arm is not None:
            self.arm.segments.clear()

    def store_moves(self) -> None:
        """Put the collected moves aside, with the path of the arm."""
        self._stored.append((list(self.events), [] if self.arm is None else list(self.arm.segments)))
        self.forget_moves()

    def restore_moves(self) -> None:
        """Take back the moves that were stored last."""
        self.finish()
        events, segments = self._stored.pop() if self._stored else ([], [])
        self.events[:] = events
        if self.arm is not None:
            self.arm.segments[:] = segments
            paths = self.controller.motion.paths
            if segments:
                self.arm.q = segments[-1].q[-1].copy()
            elif paths:
                self.arm.q = paths[-1].motion.q[-1].copy()

    def close_sockets(self) -> None:
        """Close all sockets of the task."""
        for one in list(self.sockets):
            one.close()
        self.sockets.clear()


def is_guided(move: Move) -> bool:
    """Return whether a client corrects a move: EGMMoveL or EGMMoveC."""
    return move.name.lower().startswith("egm")
