"""How one quantity varies: a distribution, or the points of a grid, read from a short text.

| text | what it means |
|---|---|
| `a:b` | uniform from a to b |
| `a:b:log` | log-uniform from a to b: each decade as likely as the next |
| `+-50%`, `+-0.5` | uniform about the nominal value, to a share of its size, or to an absolute distance |
| `m~s` | normal, with mean m and standard deviation s |
| `~10%`, `~0.5` | normal about the nominal value; the deviation a share of its size, or absolute |
| `a:b:n` | a grid of n points, evenly from a to b, both among them |
| `v1,v2,...` | a grid of these values; one alone is a fixed value |
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats
from twin.errors import VariationError, printable

Kind = Literal[
    "uniform",
    "log-uniform",
    "uniform about",
    "uniform scaled",
    "normal",
    "normal about",
    "normal scaled",
    "grid",
]

FORMS = "'0:6', '1:100:log', '+-50%', '+-0.5', '3~0.5', '~10%', '~0.5', or as a grid '5:40:8' or '0,2,5'"
"""One example of each form, for messages."""

MOST_GRID_POINTS = 10_000
"""Of one quantity; more is a mistake for a range."""

NEAREST_TO_ENDS = 2.0**-53
"""Probabilities are kept this far from 0 and 1, where the normal distribution is infinite: 8.2 deviations."""


@dataclass(frozen=True)
class Variation:
    """How one quantity varies; see `parse_variation`.

    Attributes:
        name: of the quantity.
        text: as it was told.
        kind: of distribution, or "grid".
        numbers: what it depends on. "uniform" and "log-uniform": both ends; "normal": mean and standard
            deviation; "... about": distance or deviation, in the quantity's own unit; "... scaled": the same
            as a share of the size of the nominal value; "grid": the points.
    """

    name: str
    text: str
    kind: Kind
    numbers: tuple[float, ...]

    @property
    def is_random(self) -> bool:
        """Whether it is a distribution, and not a grid."""
        return self.kind != "grid"

    def grid(self) -> Floats:
        """The points of a grid, (n,) in its own order.

        Raises:
            ValueError: it is a distribution.
        """
        if self.is_random:
            raise ValueError(f"expected a grid, got {self.name}={self.text}, which is a distribution")
        return np.array(self.numbers)

    def values(self, u: ArrayLike, nominal: float) -> Floats:
        """The quantile function: values below which the distribution has the probability u.

        Args:
            u: (...) probabilities, from 0 to 1; taken at least 2^-53 from both.
            nominal: the value that variations about the nominal refer to; the others do not look at it.

        Returns:
            (...) values that never fall where u grows.

        Raises:
            VariationError: the nominal value is 0 and the variation a share of it, or it is not finite, or
                values become too large to be numbers.
            ValueError: it is a grid.
        """
        if not self.is_random:
            raise ValueError(f"expected a distribution, got {self.name}={self.text}, which is a grid")
        u = np.clip(np.asarray(u, dtype=np.float64), NEAREST_TO_ENDS, 1.0 - NEAREST_TO_ENDS)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is told below
            values = self._quantiles(u, nominal)
        if not np.all(np.isfinite(values)):
            raise VariationError(f"cannot vary {self.name} by {self.text}: values become too large")
        return values

    def _quantiles(self, u: Floats, nominal: float) -> Floats:
        """Of probabilities between 0 and 1, both excluded."""
        if self.kind == "log-uniform":
            low, high = self.numbers
            return np.clip(np.exp(np.log(low) + (np.log(high) - np.log(low)) * u), low, high)
        if self.kind.startswith("normal"):
            from scipy.special import ndtri  # not where texts are only read

            mean, deviation = self._about(nominal)
            return mean + deviation * ndtri(u)
        if self.kind == "uniform":
            low, high = self.numbers
        else:
            middle, distance = self._about(nominal)
            low, high = middle - distance, middle + distance
        return np.clip(low + (high - low) * u, low, high)

    def _about(self, nominal: float) -> tuple[float, float]:
        """Middle and distance of a uniform distribution, mean and deviation of a normal one."""
        if self.kind == "normal":
            return self.numbers[0], self.numbers[1]
        if not np.isfinite(nominal):
            raise VariationError(
                f"cannot vary {self.name} by {self.text}: its nominal value is {nominal}; say from where to "
                f"where, as in '{self.name}=0:1'"
            )
        if self.kind.endswith("about"):
            return nominal, self.numbers[0]
        if nominal == 0.0:
            raise VariationError(
                f"cannot vary {self.name} by {self.text}: its nominal value is 0, of which any share is 0; "
                f"without the % it is in its own unit"
            )
        return nominal, self.numbers[0] * abs(nominal)


def parse_variation(name: str, text: str) -> Variation:
    """Return how a quantity varies, from a text such as `0:6`, `+-50%`, `3~0.5`, `5:40:8` or `0,2,5`.

    Args:
        name: of the quantity.
        text: in one of the forms listed at the top of this module.

    Raises:
        VariationError: none of the forms; an empty or reversed range; a deviation, distance or number of
            points that is not positive; more than `MOST_GRID_POINTS` points; a value twice in a grid; a
            logarithmic range that reaches 0; what is not finite.
    """
    try:
        kind, numbers = _read(text.strip())
    except _Wrong as wrong:
        raise VariationError(f"cannot vary {printable(name)} by {_short(text)!r}: {wrong}") from None
    return Variation(name, text.strip(), kind, numbers)


class _Wrong(ValueError):
    """The second half of the sentence that says what is wrong."""


def _read(text: str) -> tuple[Kind, tuple[float, ...]]:
    for sign in ("+-", "±"):
        if text.startswith(sign):
            return _spread("uniform", text.removeprefix(sign), "distance")
    if text.startswith("~"):
        return _spread("normal", text.removeprefix("~"), "deviation")
    if "~" in text:
        mean, deviation = (_number(part) for part in _parts(text, "~", 2))
        return "normal", (mean, _positive(deviation, "deviation"))
    if ":" in text:
        return _range(*_parts(text, ":", 2, 3))
    return "grid", _distinct([_number(part) for part in text.split(",")])


def _spread(kind: Literal["uniform", "normal"], text: str, what: str) -> tuple[Kind, tuple[float, ...]]:
    """About the nominal: a share of it, or absolute."""
    scaled = text.endswith("%")
    number = _positive(_number(text.removesuffix("%")) / (100.0 if scaled else 1.0), what)
    if kind == "uniform":
        return "uniform scaled" if scaled else "uniform about", (number,)
    return "normal scaled" if scaled else "normal about", (number,)


def _range(first: str, last: str, third: str | None = None) -> tuple[Kind, tuple[float, ...]]:
    """From one end to the other, as a distribution or as a grid."""
    low, high = _number(first), _number(last)
    if low == high:
        raise _Wrong(f"the range is empty; the text '{first.strip()}' fixes the value")
    if low > high:
        raise _Wrong(f"the range runs backwards; write '{last.strip()}:{first.strip()}'")
    if not np.isfinite(high - low):
        raise _Wrong("the range is too wide")
    if third is None:
        return "uniform", (low, high)
    if third.strip() == "log":
        if not low > 0.0:
            raise _Wrong("a logarithmic range has to stay above 0")
        return "log-uniform", (low, high)
    count = _number(third)
    if not (count >= 2 and count == round(count)):
        raise _Wrong(f"the number of points has to be whole and at least 2, not {third.strip()}")
    if count > MOST_GRID_POINTS:
        raise _Wrong(f"a grid has at most {MOST_GRID_POINTS} points; without a third number it is a range")
    return "grid", _distinct(np.linspace(low, high, int(count)).tolist())


def _distinct(points: list[float]) -> tuple[float, ...]:
    if len(points) > MOST_GRID_POINTS:
        raise _Wrong(f"a grid has at most {MOST_GRID_POINTS} points, not {len(points)}")
    if len(set(points)) < len(points):
        twice = next(first for first, second in pairwise(sorted(points)) if first == second)
        raise _Wrong(f"the grid has the value {twice:g} twice")
    return tuple(points)


def _parts(text: str, separator: str, *numbers: int) -> list[str]:
    parts = text.split(separator)
    if len(parts) not in numbers:
        raise _Wrong(f"expected a form such as {FORMS}")
    return parts


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _Wrong(f"expected a form such as {FORMS}") from None
    if not np.isfinite(number):
        raise _Wrong(f"{text.strip()} is not a finite number")
    return number + 0.0  # no negative zero


def _positive(number: float, what: str) -> float:
    if not number > 0.0:
        raise _Wrong(f"the {what} has to be above 0")
    return number


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= 60 else f"{line[:57]}..."
