"""A figure that a scenario reports, and its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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

    Raises:
        TypeError: a text that is none, or a figure that is not one real number.
    """

    name: str
    value: float
    unit: str
    limit: float | None
    why: str
    where: str = ""

    def __post_init__(self) -> None:
        for part in ("name", "unit", "why", "where"):
            if not isinstance(getattr(self, part), str):
                raise TypeError(f"expected {part} of {self.name!r} to be text, got {getattr(self, part)!r}")
        object.__setattr__(self, "value", _one_number(self.value, f"value of {self.name!r}"))
        if self.limit is not None:
            object.__setattr__(self, "limit", _one_number(self.limit, f"limit of {self.name!r}"))

    @property
    def holds(self) -> bool:
        """Whether the value keeps its limit; a figure without a limit holds if it is a number."""
        return self.value <= (float("inf") if self.limit is None else self.limit)


def _one_number(value: Any, what: str) -> float:
    """A number of Python's or NumPy's as a float; a text, a complex number or several are none."""
    kind = np.asarray(value)
    if kind.shape != () or kind.dtype.kind not in "biuf":
        raise TypeError(f"expected {what} to be one real number, got {value!r}")
    return float(value)
