"""Loops that never end: a state that comes again, with moves in between or without."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twin.abb.rapid.recorder import Stopped
from twin.abb.rapid.values import Record

if TYPE_CHECKING:
    from twin.abb.rapid.program import Interpreter

FIRST_ROUNDS = 64
"""Rounds of an endless loop whose states are compared."""

WAITING_ROUNDS = 128
"""Rounds of another loop from which on its states are compared: most loops end before."""


class Repetition:
    """Watch over a loop of a program.

    A program does the same again where all its data, its signals and its arm are as in a round before.

    Args:
        interpreter: interpreter of the program.
        line: line of the loop.
        is_endless: whether the condition of the loop is TRUE.
        rounds: number of the round before the first one; -1 for a procedure, whose first call is no round.
    """

    def __init__(self, interpreter: Interpreter, line: int, is_endless: bool, rounds: int = 0) -> None:
        self._interpreter, self._line, self._is_endless = interpreter, line, is_endless
        self._seen: dict[Hashable, tuple[int, int]] = {}  # moves and rounds by states
        self._rounds = rounds

    def end_round(self) -> None:
        """Forget the last round, as that of a call which returns."""
        if self._seen and next(reversed(self._seen.values()))[1] == self._rounds:
            self._seen.popitem()
        self._rounds -= 1

    def begin_round(self) -> int:
        """Compare the present state with those of the rounds before, and return the number of the round.

        Raises:
            Stopped: the loop repeats itself.
        """
        self._rounds += 1
        rounds = self._rounds
        if not (self._is_endless and 0 < rounds <= FIRST_ROUNDS):
            apart = rounds & (rounds - 1)  # 0 at powers of two; they and the rounds after them count
            if rounds < WAITING_ROUNDS or (apart and (rounds - 1) & (rounds - 2)):
                return rounds
        recorder = self._interpreter.recorder
        if recorder.signals.next_change is not None or recorder.wakes_at() is not None:
            return rounds
        if self._interpreter.running_clocks:
            return rounds
        several = len(self._interpreter.scopes) > 1
        line = f"line {self._line}" + f" of {Path(self._interpreter.place[0]).name}" * several
        state = state_of(self._interpreter)
        if state not in self._seen:
            self._seen[state] = recorder.moves, rounds
        elif recorder.moves > self._seen[state][0]:
            raise Stopped(
                f"{line} repeats itself for ever: its moves until round {rounds} are judged",
                planned=True,
            )
        elif not self._answer_wait():
            waits = "in a menu (--operator)" if recorder.operator.assumed else "for what never comes"
            raise Stopped(
                f"the program waits {waits} in the loop of {line}: --inputs NAME=VALUE@TIME "
                "changes a signal or data"
            )
        return rounds

    def _answer_wait(self) -> bool:
        """Let a signal become 1 that the loop reads and nobody set, as a wait for it is answered."""
        signals = self._interpreter.recorder.signals
        for key, (name, _) in list(signals.assumed.items()):
            if key not in signals.values:
                signals.write(key, 1.0)
                place = self._interpreter.place[0], self._line
                self._interpreter.recorder.assume(
                    place, f"{name} becomes 1, because the loop waits (--inputs {name}=1@TIME)"
                )
                return True
        return False


def state_of(interpreter: Interpreter) -> Hashable:
    """Return all that a program may depend on, for comparison."""
    recorder, frame = interpreter.recorder, interpreter.frame
    scopes = [interpreter.shared, *(scope.local for scope in interpreter.scopes)]
    scopes += [] if frame is None else [frame.data]
    values = tuple(
        _frozen(cell.value)
        for names in scopes
        for cell in names.values()
        if getattr(cell, "kind", "CONST") != "CONST" and getattr(cell, "pending", None) is None
    )
    arm = () if recorder.arm is None else tuple(recorder.arm.q.round(9).tolist())
    last = () if recorder.arm is not None or not recorder.moves else _frozen(recorder.last_target)
    return (
        values, tuple(sorted(recorder.signals.values.items())), arm, last, recorder.operator.left,
        tuple(number for number, _ in interpreter.interrupts.pending), _frozen(list(recorder.settings)),
    )  # fmt: skip


def _frozen(value: Any) -> Hashable:
    if isinstance(value, Record):
        return tuple(map(_frozen, value.values))
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return value if isinstance(value, Hashable) else id(value)
