"""Where the trials of a sweep lie: random draws, each repeated at every point of the grid.

A *draw* is one set of circumstances: a value of each quantity that varies at random. The quantities that vary
over grids span a grid, and every draw is repeated at each of its points, so that those are compared under the
same circumstances.

Draws are *independent* ("random"), or *stratified*, which spreads them more evenly and makes shares and means
of the same number of trials more accurate:

- "latin": a Latin hypercube; the range of each quantity is cut into as many strata of equal probability as
  there are draws, and each is hit once (McKay, Beckman and Conover 1979);
- "sobol": a scrambled Sobol sequence, which is even in several quantities at a time (Owen 1998).

How accurate a stratified design is cannot be told from its draws, which depend on each other. So it is made
of several *replicates*: small designs of the same kind, independent of each other, whose results scatter as
chance has it (`twin.sweeps.statistics`).

A quantity varies by a distribution, or over the points of a grid, as a short text says:

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


DesignKind = Literal["latin", "sobol", "random"]

MOST_POINTS = 10_000_000
"""Of a design, draws times points of the grid: 0.7 GB with six quantities."""


class Points(NamedTuple):
    """The N points of a design: all points of the grid for draw 0, then for draw 1, and so on.

    Attributes:
        names: of the d quantities, in the order of the variations.
        values: (N, d) absolute, each in its own unit.
        draw: (N,) from 0; points with the same number have the same random circumstances.
        replicate: (N,) from 0; 0 alone where the draws are independent of each other.
    """

    names: tuple[str, ...]
    values: Floats
    draw: NDArray[np.int64]
    replicate: NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """What varies, how often, and how the draws are spread.

    Attributes:
        variations: one a quantity.
        samples: how many draws are asked for; `draws` says how many there will be.
        kind: "latin", "sobol" or "random".
        seed: of everything random; the same one gives the same bits.
        replicates: the least number of independent parts of a stratified design.
    """

    variations: Sequence[Variation]
    samples: int = 1000
    kind: DesignKind = "latin"
    seed: int = 0
    replicates: int = 10

    def __post_init__(self) -> None:
        """Check.

        Raises:
            VariationError: a quantity twice, no sample, or more than `MOST_POINTS` points.
            ValueError: an unknown kind, fewer than 2 replicates, a negative seed.
        """
        if self.kind not in get_args(DesignKind):
            raise ValueError(f"expected a design of {', '.join(get_args(DesignKind))}, got {self.kind!r}")
        if self.replicates < 2:
            raise ValueError(f"expected at least 2 replicates, got {self.replicates}")
        if self.seed < 0:
            raise ValueError(f"expected a seed of at least 0, got {self.seed}")
        names = [variation.name for variation in self.variations]
        for name in names:
            if names.count(name) > 1:
                raise VariationError(f"{printable(name)} is varied twice; once is enough")
        if self.samples < 1:
            raise VariationError(f"expected at least 1 sample, got {self.samples}")
        if self.draws * self.grid_points > MOST_POINTS:
            raise VariationError(
                f"{self.draws} draws at {self.grid_points} points of the grid are "
                f"{self.draws * self.grid_points} trials, at most {MOST_POINTS} are taken"
            )

    @property
    def is_random(self) -> bool:
        """Whether anything varies at random; a share of trials says nothing beyond the grid otherwise."""
        return any(variation.is_random for variation in self.variations)

    @property
    def draws(self) -> int:
        """Number of draws: `samples`, rounded up to whole replicates; 1 if nothing varies at random.

        A Latin hypercube has `replicates` replicates of equal size. One of the Sobol sequence is even only if
        its number of draws is a power of two, so each has the largest that allows for at least `replicates`,
        and there are as many as make up the samples, up to twice `replicates`: 2,000 samples are 16 of 128.
        Fewer samples than replicates are independent draws, each a replicate of its own.
        """
        return prod(self._sizes())

    @property
    def grid_points(self) -> int:
        """Number of points of the grid, 1 without one."""
        return prod(len(variation.numbers) for variation in self.variations if not variation.is_random)

    def _sizes(self) -> tuple[int, int]:
        """Replicates, and draws in each of them."""
        if not self.is_random:
            return 1, 1
        if self.kind == "random":
            return 1, self.samples
        if self.samples < self.replicates:
            return self.samples, 1
        if self.kind == "latin":
            return self.replicates, -(-self.samples // self.replicates)
        draws = 2 ** ((self.samples // self.replicates).bit_length() - 1)
        return -(-self.samples // draws), draws

    def points(self, nominals: Mapping[str, float]) -> Points:
        """Return all points; a million of six quantities take 64 MB, 120 MB while they are made, in 1 s.

        Args:
            nominals: the nominal value of each quantity, by its name, in its own unit; of those alone that
                vary about it is any asked for.

        Raises:
            VariationError: see `Variation.values`; the nominal value of a quantity is missing.
        """
        replicates, draws = self._sizes()
        grid_points = self.grid_points
        random = [k for k, variation in enumerate(self.variations) if variation.is_random]
        grids = [k for k, variation in enumerate(self.variations) if not variation.is_random]
        probabilities = self._probabilities(len(random))
        values = np.empty((replicates * draws, grid_points, len(self.variations)))
        for column, k in enumerate(random):
            variation = self.variations[k]
            nominal = nominals.get(variation.name, np.nan)
            values[:, :, k] = variation.values(probabilities[:, column], nominal)[:, np.newaxis]
        axes = np.meshgrid(*(self.variations[k].grid() for k in grids), indexing="ij")
        for k, axis in zip(grids, axes, strict=True):
            values[:, :, k] = axis.ravel()
        return Points(
            names=tuple(variation.name for variation in self.variations),
            values=values.reshape(replicates * draws * grid_points, len(self.variations)),
            draw=np.repeat(np.arange(replicates * draws), grid_points),
            replicate=np.repeat(np.arange(replicates), draws * grid_points),
        )

    def _probabilities(self, quantities: int) -> Floats:
        """(draws, quantities) in [0, 1], replicate after replicate, each with a generator of its own."""
        replicates, draws = self._sizes()
        if quantities == 0:
            return np.empty((1, 0))
        # Spawned, for noise of a trial is made from a plain seed, which may be the same number.
        generators = np.random.default_rng(self.seed).spawn(replicates)
        if self.kind == "random":
            return generators[0].random((draws, quantities))
        from scipy.stats import qmc

        design = qmc.LatinHypercube if self.kind == "latin" else qmc.Sobol
        # scipy 1.11 knows `seed` alone; later ones call it `rng`, and take both.
        parts = [design(quantities, seed=one).random(draws) for one in generators]  # pyright: ignore
        return np.concatenate(parts)
