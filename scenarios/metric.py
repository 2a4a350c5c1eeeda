"""A figure that a scenario reports, and its limit."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Outcome = Literal["passes", "fails", "not judged", "undetermined", "not computed"]


@dataclass(frozen=True)
class Metric:
    """One figure that a scenario reports, and the limit that it must keep, if there is one.

    Attributes:
        name: what was measured.
        value: the figure; a NaN holds nothing.
        unit: its unit, "" for a pure number.
        limit: the largest value allowed; None where the figure is only reported.
        why: where the limit comes from, or how to read the figure.
        where: joint and time of the figure, as far as it has any; of a limit of the arm that was not kept.
        span: the least and the largest figure of runs that differ by rounding alone; None where rounding
            decides nothing.

    Raises:
        TypeError: a text that is none, or a figure that is not one real number.
        ValueError: a span that is not two numbers, the least first.
    """

    name: str
    value: float
    unit: str
    limit: float | None
    why: str
    where: str = ""
    span: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for part in ("name", "unit", "why", "where"):
            if not isinstance(getattr(self, part), str):
                raise TypeError(f"expected {part} of {self.name!r} to be text, got {getattr(self, part)!r}")
        object.__setattr__(self, "value", _one_number(self.value, f"value of {self.name!r}"))
        if self.limit is not None:
            object.__setattr__(self, "limit", _one_number(self.limit, f"limit of {self.name!r}"))
        if self.span is not None:
            low, high = (_one_number(end, f"span of {self.name!r}") for end in self.span)
            if low > high:  # a NaN is let through: it decides nothing
                raise ValueError(f"expected span of {self.name!r} with the least first, got {self.span!r}")
            object.__setattr__(self, "span", (low, high))

    @property
    def outcome(self) -> Outcome:
        """The verdict: a limit is kept only where every figure of the span keeps it."""
        if math.isnan(self.value):
            return "not computed"
        if self.limit is None:
            return "not judged"
        low, high = self.span or (self.value, self.value)
        if high <= self.limit:
            return "passes"
        return "fails" if low > self.limit else "undetermined"

    @property
    def passes(self) -> bool:
        """Whether the check passes, or is a figure that nothing judges."""
        return self.outcome in ("passes", "not judged")


def _one_number(value: Any, what: str) -> float:
    """A number of Python's or NumPy's as a float; a text, a complex number or several are none."""
    kind = np.asarray(value)
    if kind.shape != () or kind.dtype.kind not in "biuf":
        raise TypeError(f"expected {what} to be one real number, got {value!r}")
    return float(value)
