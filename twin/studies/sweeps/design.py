"""Sampling designs of sweeps: random draws, each repeated at every point of a grid.

A *draw* is one set of random values: one value of each quantity that varies at random. The quantities that
vary over grids span a grid. Every draw is repeated at each grid point, so that grid points are compared for
the same random values.

Draws are *independent* ("random"), or *stratified*, which spreads them more evenly and makes shares and means
of the same number of trials more accurate:

- "latin": a Latin hypercube; the range of each quantity is cut into as many strata of equal probability as
  there are draws, and each stratum contains one draw (McKay, Beckman and Conover 1979);
- "sobol": a scrambled Sobol sequence, which is even in several quantities at a time (Owen 1998).

The accuracy of a stratified design cannot be estimated from its draws, which depend on each other. So it
consists of several *replicates*: small designs of the same kind, independent of each other, whose results
scatter at random (`twin.sweeps.statistics`).

A text describes the distribution or the grid of a quantity:

| text | meaning |
|---|---|
| `a:b` | uniform from a to b |
| `a:b:log` | log-uniform from a to b: the logarithm is uniform |
| `+-50%`, `+-0.5` | uniform about the nominal value, within a share of its size, or an absolute distance |
| `m~s` | normal, with mean m and standard deviation s |
| `~10%`, `~0.5` | normal about the nominal value; the standard deviation is a share of its size, or absolute
| | `a:b:n` | a grid of n evenly spaced points from a to b, including both | | `v1,v2,...` | a grid of these
values; a single value is fixed |

`:each` behind any of them varies each axis or link by itself, see `twin.robot.quantities.expand_each`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats
from twin.base.errors import VariationError, printable

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
"""Examples of all forms, for messages."""

MOST_GRID_POINTS = 10_000
"""Largest number of grid points of one quantity; a larger number is probably meant as a range."""

NEAREST_TO_ENDS = 2.0**-53
"""Smallest distance of probabilities from 0 and 1, where the normal quantile is infinite: 8.2 deviations."""


@dataclass(frozen=True)
class Variation:
    """Variation of one quantity; see `parse_variation`.

    Attributes:
        name: name of the quantity.
        text: the text that describes the variation.
        kind: kind of the distribution, or "grid".
        numbers: parameters. "uniform" and "log-uniform": both ends; "normal": mean and standard deviation;
            "... about": distance or standard deviation, in the quantity's unit; "... scaled": the same as a
            share of the size of the nominal value; "grid": the points.
    """

    name: str
    text: str
    kind: Kind
    numbers: tuple[float, ...]

    @property
    def is_random(self) -> bool:
        """Whether the variation is a distribution, and not a grid."""
        return self.kind != "grid"

    def grid(self) -> Floats:
        """Return the points of a grid (n,), in the given order.

        Raises:
            ValueError: the variation is a distribution.
        """
        if self.is_random:
            raise ValueError(f"expected a grid, got {self.name}={self.text}, which is a distribution")
        return np.array(self.numbers)

    def values(self, u: ArrayLike, nominal: float) -> Floats:
        """Return the quantile function: the values below which the distribution has the probability u.

        Args:
            u: (...) probabilities from 0 to 1, which are clipped to at least 2^-53 from both.
            nominal: the nominal value, which only variations about the nominal value use.

        Returns:
            (...) values, which never decrease with u.

        Raises:
            VariationError: the nominal value is 0 and the variation a share of it, or it is not finite, or
                values overflow.
            ValueError: the variation is a grid.
        """
        if not self.is_random:
            raise ValueError(f"expected a distribution, got {self.name}={self.text}, which is a grid")
        u = np.clip(np.asarray(u, dtype=np.float64), NEAREST_TO_ENDS, 1.0 - NEAREST_TO_ENDS)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below
            values = self._quantiles(u, nominal)
        if not np.all(np.isfinite(values)):
            raise VariationError(f"cannot vary {self.name} by {self.text}: values become too large")
        return values

    def _quantiles(self, u: Floats, nominal: float) -> Floats:
        """Return the quantiles of probabilities strictly between 0 and 1."""
        if self.kind == "log-uniform":
            low, high = self.numbers
            return np.clip(np.exp(np.log(low) + (np.log(high) - np.log(low)) * u), low, high)
        if self.kind.startswith("normal"):
            from scipy.special import ndtri  # slow to import, and not needed to parse texts

            mean, deviation = self._about(nominal)
            return mean + deviation * ndtri(u)
        if self.kind == "uniform":
            low, high = self.numbers
        else:
            middle, distance = self._about(nominal)
            low, high = middle - distance, middle + distance
        return np.clip(low + (high - low) * u, low, high)

    def _about(self, nominal: float) -> tuple[float, float]:
        """Return centre and distance of a uniform distribution, or mean and deviation of a normal one."""
        if self.kind == "normal":
            return self.numbers[0], self.numbers[1]
        if not np.isfinite(nominal):
            raise VariationError(
                f"cannot vary {self.name} by {self.text}: its nominal value is {nominal}; give a range, "
                f"as in '{self.name}=0:1'"
            )
        if self.kind.endswith("about"):
            return nominal, self.numbers[0]
        if nominal == 0.0:
            raise VariationError(
                f"cannot vary {self.name} by {self.text}: its nominal value is 0, and so is any share of it; "
                f"omit the % to give a distance in the quantity's unit"
            )
        return nominal, self.numbers[0] * abs(nominal)


def parse_variation(name: str, text: str) -> Variation:
    """Parse the variation of a quantity, such as `0:6`, `+-50%`, `3~0.5`, `5:40:8` or `0,2,5`.

    Args:
        name: name of the quantity.
        text: text in one of the forms at the top of this module.

    Raises:
        VariationError: the form is unknown; a range is empty or reversed; a deviation, distance or number of
            points is not positive; a grid has more than `MOST_GRID_POINTS` points, or a value twice; a
            logarithmic range contains 0; a number is not finite.
    """
    try:
        kind, numbers = _read(text.strip())
    except _FormError as error:
        raise VariationError(f"cannot vary {printable(name)} by {_short(text)!r}: {error}") from None
    return Variation(name, text.strip(), kind, numbers)


class _FormError(ValueError):
    """Raised for an invalid text, with the second half of the message."""


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
    """Return a variation about the nominal value, by a share of it or by an absolute distance."""
    scaled = text.endswith("%")
    number = _positive(_number(text.removesuffix("%")) / (100.0 if scaled else 1.0), what)
    if kind == "uniform":
        return "uniform scaled" if scaled else "uniform about", (number,)
    return "normal scaled" if scaled else "normal about", (number,)


def _range(first: str, last: str, third: str | None = None) -> tuple[Kind, tuple[float, ...]]:
    """Return a range, as a distribution or as a grid."""
    low, high = _number(first), _number(last)
    if low == high:
        raise _FormError(f"the range is empty; to fix the value, write '{first.strip()}'")
    if low > high:
        raise _FormError(f"the range is reversed; write '{last.strip()}:{first.strip()}'")
    if not np.isfinite(high - low):
        raise _FormError("the range is too wide")
    if third is None:
        return "uniform", (low, high)
    if third.strip() == "log":
        if not low > 0.0:
            raise _FormError("a logarithmic range must be above 0")
        return "log-uniform", (low, high)
    count = _number(third)
    if not (count >= 2 and count == round(count)):
        raise _FormError(f"the number of points must be whole and at least 2, got {third.strip()}")
    if count > MOST_GRID_POINTS:
        raise _FormError(f"a grid has at most {MOST_GRID_POINTS} points; omit the third number for a range")
    return "grid", _distinct(np.linspace(low, high, int(count)).tolist())


def _distinct(points: list[float]) -> tuple[float, ...]:
    if len(points) > MOST_GRID_POINTS:
        raise _FormError(f"a grid has at most {MOST_GRID_POINTS} points, got {len(points)}")
    if len(set(points)) < len(points):
        twice = next(first for first, second in pairwise(sorted(points)) if first == second)
        raise _FormError(f"the grid has the value {twice:g} twice")
    return tuple(points)


def _parts(text: str, separator: str, *numbers: int) -> list[str]:
    parts = text.split(separator)
    if len(parts) not in numbers:
        raise _FormError(f"expected a form such as {FORMS}")
    return parts


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _FormError(f"expected a form such as {FORMS}") from None
    if not np.isfinite(number):
        raise _FormError(f"{text.strip()} is not a finite number")
    return number + 0.0  # no negative zero


def _positive(number: float, what: str) -> float:
    if not number > 0.0:
        raise _FormError(f"the {what} must be above 0")
    return number


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= 60 else f"{line[:57]}..."


DesignKind = Literal["latin", "sobol", "random"]

MOST_POINTS = 10_000_000
"""Largest number of points of a design, draws times grid points: 0.7 GB for six quantities."""


class Points(NamedTuple):
    """Points of a design, N in all: all grid points for draw 0, then for draw 1, and so on.

    Attributes:
        names: names of the d quantities, in the order of the variations.
        values: (N, d) absolute values, each in its unit.
        draw: (N,) number of the draw, from 0; points of one draw have the same random values.
        replicate: (N,) number of the replicate, from 0; all 0 if the draws are independent.
    """

    names: tuple[str, ...]
    values: Floats
    draw: NDArray[np.int64]
    replicate: NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """Sampling design: the variations, and the number and kind of draws.

    Attributes:
        variations: one variation per quantity.
        samples: requested number of draws; `draws` is the actual number.
        kind: "latin", "sobol" or "random".
        seed: seed of all random numbers; the same seed gives the same bits.
        replicates: smallest number of independent replicates of a stratified design.
    """

    variations: Sequence[Variation]
    samples: int = 1000
    kind: DesignKind = "latin"
    seed: int = 0
    replicates: int = 10

    def __post_init__(self) -> None:
        """Check the attributes.

        Raises:
            VariationError: a quantity varies twice, there is no sample, or there are too many points.
            ValueError: the kind is unknown, there are fewer than 2 replicates, or the seed is negative.
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
                raise VariationError(f"{printable(name)} is varied twice")
        if self.samples < 1:
            raise VariationError(f"expected at least 1 sample, got {self.samples}")
        if self.draws * self.grid_points > MOST_POINTS:
            raise VariationError(
                f"{self.draws} draws at {self.grid_points} grid points are "
                f"{self.draws * self.grid_points} trials, but at most {MOST_POINTS} are possible"
            )

    @property
    def is_random(self) -> bool:
        """Whether anything varies at random; otherwise shares refer to the grid points only."""
        return any(variation.is_random for variation in self.variations)

    @property
    def draws(self) -> int:
        """Number of draws: `samples`, rounded up to whole replicates; 1 if nothing varies at random.

        A Latin hypercube has `replicates` replicates of equal size. A Sobol sequence is even only if its
        number of draws is a power of two. So each replicate has the largest power of two that allows at least
        `replicates` of them, and their number is rounded up, to at most twice `replicates`: 2,000 samples are
        16 replicates of 128 draws. Fewer samples than replicates are independent draws, one per replicate.
        """
        return prod(self._sizes())

    @property
    def grid_points(self) -> int:
        """Number of grid points; 1 without a grid."""
        return prod(len(variation.numbers) for variation in self.variations if not variation.is_random)

    def _sizes(self) -> tuple[int, int]:
        """Return the number of replicates, and of draws in each of them."""
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
        """Return all points; a million of six quantities take 64 MB, at most 120 MB while computing, and 1 s.

        Args:
            nominals: nominal value of each quantity by name, in its unit; required only for variations about
                the nominal value.

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
        """Return probabilities (draws, quantities) in [0, 1]; each replicate has a separate generator."""
        replicates, draws = self._sizes()
        if quantities == 0:
            return np.empty((1, 0))
        # Spawned, because the noise of a trial comes from a plain seed, which may be the same number.
        generators = np.random.default_rng(self.seed).spawn(replicates)
        if self.kind == "random":
            return generators[0].random((draws, quantities))
        from scipy.stats import qmc

        design = qmc.LatinHypercube if self.kind == "latin" else qmc.Sobol
        # scipy 1.11 accepts only `seed`; later versions call it `rng`, and accept both.
        parts = [design(quantities, seed=one).random(draws) for one in generators]  # pyright: ignore
        return np.concatenate(parts)
