"""What the trials of a sweep say: the share that holds, which inputs matter, and the worst of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.arrays import Floats

CONFIDENCE = 0.95

FEWEST_DIFFERENT = 10
"""Draws that differ from the rest, from which on their scatter tells an interval."""

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
        method: how the interval was found: "binomial", "draws" or "replicates", see `pass_share`.
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


def pass_share(holds: ArrayLike, draw: ArrayLike, replicate: ArrayLike) -> Share:
    """Return the share of trials that hold, with its 95 % confidence interval.

    The trials of one draw at all points of a grid share their circumstances, so draws and not trials count as
    independent: of each draw the share of its trials that hold is taken first. Then the interval is

    - "binomial" (Clopper and Pearson 1934), which contains the true share in at least 95 % of all cases
      whatever it is: where draws are independent and each holds or does not;
    - "draws", Student's t of their shares: where draws are independent and have a grid;
    - "replicates", Student's t of the replicates' shares: where the design is stratified, with draws that
      depend on each other within a replicate. The number of draws that hold in a replicate is whole, so its
      scatter is not believed to be below 1/2, that of a number which is as often one as the next.

    Student's t is too narrow where few draws differ from the rest, and has no width at all where everything
    holds. So where fewer than `FEWEST_DIFFERENT` draws differ it is "binomial" again, as if draws were
    independent and would each hold or not: of all shares with a given mean those that are 0 or 1 scatter
    most, and stratified designs hardly scatter more than independent draws, so this errs on the wide side.

    Where nothing varies at random (`Design.is_random`) the share is one of the grid's points, and the
    interval means nothing.

    Args:
        holds: (N,) of each trial.
        draw: (N,) its draw, see `twin.sweeps.design.Points`.
        replicate: (N,) the replicate of its draw; all the same where draws are independent of each other.

    Raises:
        ValueError: no trials, or lengths that differ.
    """
    from scipy.special import stdtrit

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

    most_common = np.unique(shares, return_counts=True)[1].max()
    holds_or_not = bool(np.all((shares == 0.0) | (shares == 1.0)))
    if draws - most_common < FEWEST_DIFFERENT or (holds_or_not and not stratified):
        return Share(share, *binomial_interval(share * draws, draws), draws, "binomial")
    if stratified:
        units = _means(shares, of_replicate)
        scatter = max(units.std(ddof=1), 0.5 * len(units) / draws)
    else:
        units = shares
        scatter = units.std(ddof=1)
    quantile = stdtrit(len(units) - 1, 0.5 + CONFIDENCE / 2.0)  # of Student's t
    half = float(quantile * scatter / np.sqrt(len(units)))
    method = "replicates" if stratified else "draws"
    return Share(share, max(0.0, share - half), min(1.0, share + half), draws, method)


def binomial_interval(hold: float, draws: int) -> tuple[float, float]:
    """Return the exact 95 % confidence interval of a share, of independent draws (Clopper and Pearson 1934).

    As `scipy.stats.binomtest(hold, draws).proportion_ci()`, and between whole numbers too.

    Args:
        hold: how many hold, from 0 to `draws`.
        draws: how many there are.
    """
    from scipy.special import betaincinv

    tail = (1.0 - CONFIDENCE) / 2.0
    low = 0.0 if hold <= 0.0 else float(betaincinv(hold, draws - hold + 1.0, tail))
    high = 1.0 if hold >= draws else float(betaincinv(hold + 1.0, draws - hold, 1.0 - tail))
    return low, high


def importances(table: NDArray[np.void], inputs: Sequence[str], figure: str) -> list[Importance]:
    """Return how much each input matters to a figure, the one that explains most first.

    `explained` is the correlation ratio of the figure's ranks: the inputs' trials are put into at most
    `MOST_CLASSES` classes from low to high, and the scatter of the classes' mean ranks is compared with that
    of all ranks. It is the statistic H of Kruskal and Wallis (1952), as a share without the part that chance
    alone gives: (H - k + 1) / (N - k) of k classes, not below 0. It is an estimate of Sobol's index of first
    order. Spearman's correlation alone would overlook an input whose middle is best, as the mass in the
    controller's model is. Both overlook what matters together with another input alone.

    Args:
        table: (N,) trials with fields for inputs and figures.
        inputs: names of fields; those that are the same in all trials are left out.
        figure: name of a field, of a figure or "passes". What is infinite or NaN ranks last.

    Returns:
        A row an input; none where the figure is the same in all trials, or of fewer than `FEWEST_TRIALS`.

    Raises:
        ValueError: the table has no such field; its sentence names it.
    """
    from scipy.stats import kruskal, rankdata

    ranked = rankdata(_without_nan(table, figure))
    rows = []
    for name in inputs:
        ranks = rankdata(_field(table, name))
        if len(table) < FEWEST_TRIALS or np.ptp(ranks) == 0.0 or np.ptp(ranked) == 0.0:
            continue
        classes = _classes(ranks)
        k, N = len(classes), len(ranks)
        H = kruskal(*(ranked[one] for one in classes))[0]
        explained = float(np.clip((H - k + 1) / (N - k), 0.0, 1.0))
        spearman = float(np.corrcoef(ranks, ranked)[0, 1])
        rows.append(Importance(name, explained, spearman))
    return sorted(rows, key=lambda row: (-row.explained, -abs(row.correlation)))


def worst(table: NDArray[np.void], figure: str, count: int) -> NDArray[np.intp]:
    """Return the indices of the worst trials, the worst first.

    Those that do not hold come first, among them and then among the others the largest figure, infinite and
    NaN before all; of equal ones the first in the table.

    Args:
        table: (N,) trials with the fields "passes" and that of the figure.
        figure: its name.
        count: how many, as far as there are so many.

    Raises:
        ValueError: the table has no such field, or a negative count.
    """
    if count < 0:
        raise ValueError(f"expected a count of at least 0, got {count}")
    order = np.lexsort((-_without_nan(table, figure), _field(table, "passes")))  # stable; the last key first
    return order[:count]


def _means(values: NDArray[np.generic], group: NDArray[np.intp]) -> Floats:
    """The mean of the values of each group, by the groups' numbers."""
    return np.bincount(group, weights=values) / np.bincount(group)


def _field(table: NDArray[np.void], name: str) -> NDArray[np.generic]:
    names = table.dtype.names or ()
    if name not in names:
        raise ValueError(f"expected a field of the table, got {name!r}; it has {', '.join(names)}")
    return table[name]


def _without_nan(table: NDArray[np.void], figure: str) -> Floats:
    """A figure with infinity where it is NaN, as it is where there was no such arm."""
    return np.nan_to_num(_field(table, figure).astype(np.float64), nan=np.inf, posinf=np.inf)


def _classes(ranks: Floats) -> list[NDArray[np.intp]]:
    """Indices of the trials in each class of an input, from its ranks; equal values are in the same."""
    count = min(MOST_CLASSES, len(ranks) // (FEWEST_TRIALS // 2))  # from 2 on, into which any input divides
    number = np.floor((ranks - 0.5) / len(ranks) * count)
    return [np.flatnonzero(number == k) for k in np.unique(number)]
