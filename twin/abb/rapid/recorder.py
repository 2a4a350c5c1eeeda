"""Record of a program: moves, waits and notes, and the operator, files and time that answered it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.signals import Signals
from twin.abb.rapid.targets import Arm, Move, Pause, Segment, Settings
from twin.abb.rapid.values import NUM, PREDEFINED, Record
from twin.base.errors import RapidError


class Operator:
    """Answers of an operator.

    Args:
        answers: answers in the order of the questions; `part=2` answers each question whose text has `part`.

    Attributes:
        assumed: number of questions for which an answer was assumed.
        repeated: number of these questions since the last move, by their places and texts.
    """

    def __init__(self, answers: Sequence[str]) -> None:
        pairs = [one.rpartition("=") for one in answers]
        self._by_text = [(text.lower(), answer) for text, sign, answer in pairs if sign]
        self._in_order = [answer for _, sign, answer in pairs if not sign][::-1]
        self.assumed = 0
        self.repeated: Counter[Hashable] = Counter()
        self._moves = 0

    def times_asked(self, question: Hashable, moves: int) -> int:
        """Return how often a question was asked since the last move, this time not counted."""
        if moves != self._moves:
            self.repeated.clear()
            self._moves = moves
        self.repeated[question] += 1
        return self.repeated[question] - 1

    @property
    def left(self) -> int:
        """Number of answers that are not used yet."""
        return len(self._in_order)

    def answer(self, question: str) -> str | None:
        """Return the answer to a question, None if there is none."""
        for text, answer in self._by_text:
            if text in question.lower():
                return answer
        if self._in_order:
            return self._in_order.pop()
        self.assumed += 1
        return None


class Files:
    """Files of a controller.

    Args:
        home: folder that stands for HOME:; None if every file is empty when it is read.

    Attributes:
        written: texts that the program wrote, by the names of the files.
    """

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self.has_home = home is not None
        self._open: dict[int, _Opened] = {}
        self.written: dict[str, list[str]] = {}

    @staticmethod
    def plain(name: str) -> str:
        """Return a name such as `HOME:/parts/a.txt` without its volume, as `parts/a.txt`."""
        return name.replace("\\", "/").rpartition(":")[2].lstrip("/")

    def size(self, name: str) -> int | None:
        """Return the number of bytes of a file, None if there is none."""
        name = self.plain(name)
        text = "".join(self.written[name]) if name in self.written else self._read(name)
        return None if text is None or (not self.has_home and name not in self.written) else len(text)

    def open(self, number: int, name: str, mode: str) -> bool:
        """Open a file for reading or writing; return whether it is there.

        Args:
            number: identity of the file's data object.
            name: name with folders, such as `HOME:/parts/a.txt`.
            mode: read, binary (read as it is), write or append.
        """
        name = self.plain(name)
        if mode not in ("read", "binary"):
            if mode == "write" or name not in self.written:
                self.written[name] = []
            self._open[number] = _Opened(name, "")
            return True
        text = "".join(self.written[name]) if name in self.written else self._read(name)
        if text is None:
            return False
        if mode == "read":
            text = text.replace("\r\n", "\n")
        self._open[number] = _Opened(name, text)
        return True

    def _read(self, name: str) -> str | None:
        if self._home is None:
            return ""
        path = (self._home / name).resolve()
        if not path.is_relative_to(self._home.resolve()) or not path.is_file():
            return None
        return path.read_bytes().decode("latin-1")

    def is_open(self, number: int) -> bool:
        """Return whether a file is open."""
        return number in self._open

    def close(self, number: int) -> None:
        """Close a file."""
        self._open.pop(number, None)

    def rewind(self, number: int) -> None:
        """Go to the beginning of a file."""
        if number in self._open:
            self._open[number].at = 0

    def write(self, number: int, text: str) -> None:
        """Write into an open file."""
        self.written[self._open[number].name].append(text)

    def line(self, number: int) -> str | None:
        """Return the next line of a file, None at its end."""
        opened = self._open[number]
        if opened.at >= len(opened.text):
            return None
        end = opened.text.find("\n", opened.at)
        end = len(opened.text) if end < 0 else end
        text, opened.at = opened.text[opened.at : end], end + 1
        return text

    def characters(self, number: int, count: int) -> str:
        """Return the next characters of a file, one for each byte; fewer, or none, at its end."""
        opened = self._open[number]
        text = opened.text[opened.at : opened.at + count]
        opened.at += len(text)
        return text


@dataclass
class _Opened:
    """Open file: its name, its text and the place of reading."""

    name: str
    text: str
    at: int = 0


MOST_RETRIES = 4
"""Number of RETRY of one statement, the default of the system parameter No Of Retry."""

LONG_CHAIN = 30
"""Moves without a stop from which on inputs and timers are looked at after every tenth of them.

The whole chain is planned each time.
"""

MOST_NOTES = 20
"""Largest number of different notes on one line of a program, which may count in them."""


class Note(NamedTuple):
    """Sentence on a line of a program."""

    file: str
    line: int
    text: str


class Stopped(Exception):
    """End of the execution before that of the program; `args[0]` states why, as a sentence.

    Attributes:
        planned: whether the program means to end so, or repeats itself for ever.
    """

    def __init__(self, sentence: str, *, planned: bool = False) -> None:
        super().__init__(sentence)
        self.planned = planned


class Left(Stopped):
    """End of all routines by ExitCycle, EXIT or a move of the program pointer; their UNDO handlers run.

    Attributes:
        restarts: whether the program begins again.
    """

    def __init__(self, sentence: str = "", *, restarts: bool = False) -> None:
        super().__init__(sentence, planned=True)
        self.restarts = restarts


class Recorder:
    """Results of a program: its moves and waits in order, and notes.

    The interpreter calls `add` at moves, `pause` at waits for a time, and `wait` at waits for a condition
    before it goes on.  Here they return at once, by a clock that does not wait.  A subclass makes the program
    follow a real clock.

    Attributes:
        events: moves and pauses.
        notes: what was not done, and what readers should know.
        assumed: what nobody gave, and was assumed.
        settings: settings for the next move.
        arm: arm that follows the moves, None if kinematics is not judged.
        tool: tool of the last move.
        work_object: work object of the last move.
        signals: signals of the cell.
        operator: answers of the operator.
        files: files of the controller.
        signal_delay: time after which waits for signals end, in [s].
        limit: largest number of moves, None for no limit.
        most_retries: number of RETRY of one statement after which a controller stops.
        stopped_at: place of a StopMove without a StartMove since, None if the arm may move.
        stored: `stopped_at` of the paths that StorePath stored.
        wakes_at: function that returns the time of the next timer, in [s], or None.
        on_time: function that is called with the time, in [s], after a move or a wait.
        clock: function that returns the planned time of segments and events, in [s].
    """

    def __init__(
        self,
        arm: Arm | None,
        signals: Signals | None = None,
        *,
        operator: Operator | None = None,
        files: Files | None = None,
        signal_delay: float = 0.0,
        limit: int | None = None,
        clock: Callable[[Sequence[Segment], Sequence[Move | Pause]], float] | None = None,
    ) -> None:
        self.events: list[Move | Pause] = []
        self.notes: list[Note] = []
        self.assumed: list[Note] = []
        self.settings = Settings()
        self.tool, self.work_object = PREDEFINED["tool0"].value, PREDEFINED["wobj0"].value
        self.arm, self.signal_delay, self.limit, self.clock = arm, signal_delay, limit, clock
        self.signals = signals or Signals({})
        self.operator, self.files = operator or Operator(()), files or Files(None)
        self.moves = 0
        self.most_retries: float = MOST_RETRIES
        self.stopped_at: tuple[str, int] | None = None
        self.wakes_at: Callable[[], float | None] = lambda: None
        self.on_time: Callable[[float], None] = lambda t: None
        self.stored: list[tuple[str, int] | None] = []
        self._known: set[Note] = set()
        self._notes_of: Counter[tuple[str, int]] = Counter()
        self._counted = 0  # events whose time is in _time
        self._segments_counted, self._time = 0, 0.0
        self._rough_time = 0.0
        self._ahead = (-1, 0.0)  # number of events, and the time that they take

    # ----------------------------------------------------------------------------------------- notes

    def note(self, place: tuple[str, int], text: str) -> None:
        """Add a note, once for each line and text; a line that writes ever other texts has a few."""
        self._add_note(self.notes, Note(*place, text))

    def assume(self, place: tuple[str, int], text: str) -> None:
        """Add a sentence on what is assumed."""
        self._add_note(self.assumed, Note(*place, text))

    def _add_note(self, notes: list[Note], note: Note) -> None:
        place = note.file, note.line
        if self._notes_of[place] > MOST_NOTES or note in self._known:
            return
        self._known.add(note)
        self._notes_of[place] += 1
        if self._notes_of[place] > MOST_NOTES:
            note = note._replace(text="and more texts of this line")
        notes.append(note)

    def note_without_effect(self, place: tuple[str, int], text: str) -> None:
        """Add a note on an instruction that does nothing; a live controller has it in its log, too."""
        self._add_note(self.notes, Note(*place, text))

    # ---------------------------------------------------------------------------------------- motion

    def pause(self, pause: Pause) -> None:
        """Add a wait."""
        self.interrupt_corner(f"a wait in line {pause.line}")
        self._rough_time += pause.seconds
        self.events.append(pause)
        self._after_event()

    def add(self, move: Move) -> None:
        """Add a move.

        Raises:
            Stopped: the largest number of moves is made already, or StopMove stopped the arm for ever.
        """
        if self.stopped_at is not None:
            raise Stopped(
                f"StopMove in line {self.stopped_at[1]} stopped the arm, and no StartMove comes before line "
                f"{move.line}"
            )
        if self.limit is not None and self.moves >= self.limit:
            raise Stopped(f"stopped after {self.limit} moves (--moves), before line {move.line}")
        if self.arm is not None:
            self.arm.move(move)
        else:
            self._rough_time += self._rough(move)
        self.events.append(move)
        self.moves += 1
        self._after_event()

    def triggers(self, given: Arguments, place: Mapping[str, int]) -> tuple[Any, ...]:
        """Return what happens on the way of a move, by the places of its arguments: nothing in a check."""
        return ()

    def set_at_target(self, signal: str, value: float) -> None:
        """Set the output of a move that ends (MoveLDO)."""
        self.signals.write(signal, value)

    def wait(
        self, given: Arguments, name: str, is_there: Callable[[], bool], wanted: list[tuple[str, float]]
    ) -> None:
        """Wait until a condition holds: until inputs change that are given, or at once as answered.

        Args:
            given: arguments of the instruction.
            name: signal that is waited for, "" for another condition.
            is_there: condition.
            wanted: signals of the condition with the values for which it holds.

        Raises:
            RapidError: the time of `MaxTime` is over, and the program does not take note of it.
            Stopped: only inputs count that are given, and they never bring the condition.
        """
        place, signals = given.interpreter.place, self.signals
        self.interrupt_corner(f"{given.name} in line {place[1]}")
        most, since = given.optional("maxtime", NUM, float("inf")), self.now()
        while not is_there():
            change = signals.next_change
            if change is not None and change - since <= most:
                self.pause(Pause(*place, max(change - self.now(), 1e-9)))
                continue
            if wanted and all(one.lower() in signals.given for one, _ in wanted):
                if most < float("inf"):
                    self.pause(Pause(*place, most))
                    given.report_time_out(most)
                    return
                names = ", ".join(one for one, _ in wanted)
                raise Stopped(
                    f"{given.name} in line {place[1]} waits for ever: --inputs gives {names} another value"
                )
            self.assume(place, f"{given.name} {name} (taken as answered)".replace("  ", " "))
            if self.signal_delay > 0:
                self.pause(Pause(*place, self.signal_delay))
            for one, value in wanted:
                signals.may_become(one, value)
            return

    def ask(self, given: Arguments, question: str, keys: Sequence[str] = ()) -> str | None:
        """Return the operator's answer to a question, which may be the text of a key; None without one."""
        return self.operator.answer(question)

    def refuse_answer(self, sentence: str) -> None:
        """Refuse an answer of the operator.

        Raises:
            RapidError: always; on a live controller the operator is asked again.
        """
        raise RapidError(sentence, "value")

    def stop_move(self, place: tuple[str, int]) -> None:
        """Stop at the end of the last move (StopMove)."""
        self.stopped_at = place
        self.interrupt_corner("")

    def interrupt_corner(self, reason: str) -> None:
        """Make the last move end in a stop; note it if a reason is given."""
        last = self.events[-1] if self.events else None
        if isinstance(last, Move) and not last.stops:
            if reason:
                self.note((last.file, last.line), f"corner path failure, executed as fine: {reason} follows")
            self.events[-1] = stop = replace(last, zone=last.zone.changed(finep=True))
            if self.arm is not None:
                self.arm.segments[-1] = self.arm.segments[-1]._replace(move=stop)

    def _rough(self, move: Move) -> float:
        """Return the time of a move by its distance alone, in [s]."""
        before = next((one for one in reversed(self.events) if isinstance(one, Move)), None)
        if before is None or "jointtarget" in (before.target.type, move.target.type):
            return 0.0
        pairs = zip(before.target["trans"].values, move.target["trans"].values, strict=True)
        return sum((a - b) ** 2 for a, b in pairs) ** 0.5 / move.speed.tcp

    @property
    def is_full(self) -> bool:
        """Whether the largest number of moves is made."""
        return self.limit is not None and self.moves >= self.limit

    @property
    def last_target(self) -> Record | None:
        """Target of the last move, None before the first."""
        return next((one.target for one in reversed(self.events) if isinstance(one, Move)), None)

    # ------------------------------------------------------------------------------------------ time

    def _after_event(self) -> None:
        chain, last = len(self.events) - self._counted, self.events[-1]
        if isinstance(last, Move) and not last.stops and chain > LONG_CHAIN and chain % (chain // 10):
            return
        if self.signals.next_change is not None or self.wakes_at() is not None:
            t = self.now()
            self.signals.advance(t)
            self.on_time(t)

    def now(self) -> float:
        """Return the planned time so far, in [s]; without an arm that of waits, and of distances at speed."""
        if self.arm is None or self.clock is None:
            return self._rough_time
        count = len(self.events)
        if count == self._counted:
            return self._time
        if self._ahead[0] != count:
            segments = self.arm.segments[self._segments_counted :]
            try:
                seconds = self.clock(segments, self.events[self._counted :])
            except RapidError:  # the check judges this move, and states its fault
                seconds = 0.0
            self._ahead = count, seconds
            last = self.events[-1]
            if isinstance(last, Pause) or last.stops:
                self._time += seconds
                self._counted, self._segments_counted = count, len(self.arm.segments)
                return self._time
        return self._time + self._ahead[1]
