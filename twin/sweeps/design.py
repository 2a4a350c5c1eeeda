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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.errors import VariationError, printable
from twin.sweeps.variation import Variation

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


class _Sizes(NamedTuple):
    replicates: int
    draws: int
    """In a replicate."""


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

    def _sizes(self) -> _Sizes:
        if not self.is_random:
            return _Sizes(1, 1)
        if self.kind == "random":
            return _Sizes(1, self.samples)
        if self.samples < self.replicates:
            return _Sizes(self.samples, 1)
        if self.kind == "latin":
            return _Sizes(self.replicates, -(-self.samples // self.replicates))
        draws = 2 ** ((self.samples // self.replicates).bit_length() - 1)
        return _Sizes(-(-self.samples // draws), draws)

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
