"""What the trials of a sweep say: the share that holds, which inputs matter, and the worst of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.arrays import Floats

CONFIDENCE = 0.95

FEWEST_OF_A_KIND = 10
"""Draws that hold, and that do not, from which on the scatter of replicates tells an interval."""

MOST_CLASSES = 10
"""An input is cut into at most so many classes to see what it explains."""

FEWEST_TRIALS = 10
"""Of which it is asked which input matters."""


class Share(NamedTuple):
    """A share of trials and its 95 % confidence interval.

    Attributes:
        share: from 0 to 1.
        low: lower end of the interval.
        high: upper end.
        draws: number of draws that it comes from.
        method: how the interval was found: "binomial", "draws" or "replicates", see `share_that_holds`.
    """

    share: float
    low: float
    high: float
    draws: int
    method: str


class Importance(NamedTuple):
    """How much one input matters to a figure.

    Attributes:
        name: of the input.
        explained: from 0 to 1, the share of the variance of the figure's ranks that this input explains by
            itself, whether the figure grows along it or has its least value between.
        correlation: Spearman's, from -1 to 1: whether the figure grows or falls along the input.
    """

    name: str
    explained: float
    correlation: float


def share_that_holds(holds: ArrayLike, draw: ArrayLike, replicate: ArrayLike) -> Share:
    """Return the share of trials that hold, with its 95 % confidence interval.

    The trials of one draw at all points of a grid share their circumstances, so draws and not trials count as
    independent: of each draw the share of its trials that hold is taken first. Then the interval is

    - "binomial" (Clopper and Pearson 1934), which contains the true share in at least 95 % of all cases
      whatever it is: where draws are independent and each holds or does not;
    - "draws", Student's t of their shares: where draws are independent and have a grid;
    - "replicates", Student's t of the replicates' shares: where the design is stratified, with draws that
      depend on each other within a replicate.

    Student's t has nothing to go by where all scatter is absent, as when everything holds, and is too narrow
    where few draws differ from the rest. So with fewer than `FEWEST_OF_A_KIND` draws' worth of either kind, or
    no scatter, it is "binomial" again, as if draws were independent: of all quantities between 0 and 1 with a
    given mean those that are 0 or 1 scatter most, and a stratified design scatters less than independent
    draws, so this errs on the wide side.

    Args:
        holds: (N,) of each trial.
        draw: (N,) its draw, see `twin.sweeps.design.Points`.
        replicate: (N,) the replicate of its draw; all the same where draws are independent of each other.

    Raises:
        ValueError: no trials, or lengths that differ.
    """
    holds, draw, replicate = np.asarray(holds, dtype=bool), np.asarray(draw), np.asarray(replicate)
    if not (holds.ndim == 1 and holds.shape == draw.shape == replicate.shape and holds.size > 0):
        raise ValueError(
            f"expected holds, draw and replicate of one shape (N,) with N > 0, "
            f"got {holds.shape}, {draw.shape} and {replicate.shape}"
        )
    _, first, of_draw = np.unique(draw, return_index=True, return_inverse=True)
    shares = _means(holds, of_draw)
    _, of_replicate = np.unique(replicate[first], return_inverse=True)
    stratified = of_replicate.max() > 0
    share, draws = float(shares.mean()), len(shares)

    units = _means(shares, of_replicate) if stratified else shares
    single = not stratified and bool(np.all((shares == 0.0) | (shares == 1.0)))
    few = draws * min(share, 1.0 - share) < FEWEST_OF_A_KIND
    if single or few or np.ptp(units) == 0.0:
        return Share(share, *binomial_interval(share * draws, draws), draws, "binomial")
    from scipy.stats import t

    half = t.ppf(0.5 + CONFIDENCE / 2.0, len(units) - 1) * units.std(ddof=1) / np.sqrt(len(units))
    low, high = max(0.0, share - float(half)), min(1.0, share + float(half))
    return Share(share, low, high, draws, "replicates" if stratified else "draws")
