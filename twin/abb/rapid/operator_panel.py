"""Answers of an operator: given ones in their order or by the text of the question, and assumed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


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
