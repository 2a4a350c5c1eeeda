"""Figures that a scenario reports, and their limits."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Outcome = Literal["passes", "fails", "not judged", "undetermined", "not computed"]


@dataclass(frozen=True)
class Metric:
    """One figure that a scenario reports; with a limit, it is a check.

    Attributes:
        name: name of the figure.
        value: the figure; NaN fails every limit. `None` if it cannot be judged, as `why` says.
        unit: unit of the figure, "" for a pure number.
        limit: largest allowed value; None if the figure is only reported.
        why: origin of the limit, or how to read the figure.
        where: joint and time of the figure, if it has any; for a joint beyond its range or speed limit, one
            sentence.
        span: smallest and largest figure of runs that differ by rounding alone; None if rounding does not
            matter.

    Raises:
        TypeError: a text is not a string, or a figure is not one real number.
        ValueError: the span is not two numbers with the smaller one first.

    Example:
        >>> from scenarios import Metric
        >>> metric = Metric("joint error", 0.002, "rad", limit=0.001, why="the drawing's tolerance")
        >>> metric.passes
        False
    """

    name: str
    value: float | None
    unit: str
    limit: float | None
    why: str
    where: str = ""
    span: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for part in ("name", "unit", "why", "where"):
            if not isinstance(getattr(self, part), str):
                raise TypeError(f"expected {part} of {self.name!r} to be text, got {getattr(self, part)!r}")
        if self.value is not None:
            object.__setattr__(self, "value", _one_number(self.value, f"value of {self.name!r}"))
        if self.limit is not None:
            object.__setattr__(self, "limit", _one_number(self.limit, f"limit of {self.name!r}"))
        if self.span is not None:
            low, high = (_one_number(end, f"span of {self.name!r}") for end in self.span)
            if low > high:  # false for NaN, which is accepted
                raise ValueError(f"expected span of {self.name!r} with the least first, got {self.span!r}")
            object.__setattr__(self, "span", (low, high))

    @property
    def outcome(self) -> Outcome:
        """Outcome of the check, which passes only if every figure of the span is within the limit."""
        if self.value is None:
            return "not judged"
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
        """Whether the check passes, or the figure has no limit."""
        return self.outcome in ("passes", "not judged")


def _one_number(value: Any, what: str) -> float:
    """Return a Python or NumPy real number as a float; raise TypeError for anything else."""
    kind = np.asarray(value)
    if kind.shape != () or kind.dtype.kind not in "biuf":
        raise TypeError(f"expected {what} to be one real number, got {value!r}")
    return float(value)
