"""Statistics of a sweep: the share of passing trials, the importance of the inputs, and the worst trials.

Sobol' indices of the inputs are estimated from the runs that the sweep already has.

The *first-order* index of an input is the share of the figure's variance that the input explains alone. Its
*total* index adds every effect that it has together with others: it is the share that would remain if all
other inputs were known (Sobol' 1993, Homma and Saltelli 1996).

The estimator is polynomial chaos (Sudret 2008), which needs no special design. The figure is fitted by
least squares with products of polynomials, one per input, that are orthonormal over the runs. The variance
is then the sum of the squared coefficients, and an index is the part of the terms that contain the input.
Each input enters by its ranks, so that any distribution and any grid is valid. The terms are those of a
hyperbolic cross, `prod(degree + 1) <= bound`; cross-validation by whole draws chooses the bound (compare
Blatman and Sudret 2010).

The half-width of an interval has two parts: 1.96 standard errors of the index as a ratio of means over the
draws (delta method), and the share of the variance that the polynomials do not predict in runs left out of
the fit. That share could belong to any input. The standard errors assume independent draws, so that the
intervals of stratified designs are too wide rather than too narrow.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats

CONFIDENCE = 0.95

FEWEST_DIFFERENT = 10
"""Smallest number of draws that differ from the rest for an interval from their scatter."""

MOST_CLASSES = 10
"""Largest number of classes of an input, for the variance that it explains."""

FEWEST_TRIALS = 10
"""Smallest number of trials for the importance of inputs."""


class Share(NamedTuple):
    """Share of trials, with its 95 % confidence interval.

    Attributes:
        share: the share, from 0 to 1.
        low: lower end of the interval.
        high: upper end of the interval.
        draws: number of draws.
        method: method of the interval: "binomial", "draws" or "replicates", see `pass_share`.
    """

    share: float
    low: float
    high: float
    draws: int
    method: str


class Importance(NamedTuple):
    """Importance of one input for a figure.

    Attributes:
        name: name of the input.
        explained: share of the variance of the figure's ranks that this input explains by itself, from 0 to
            1, also if the figure is not monotonic in the input.
        correlation: Spearman's rank correlation, from -1 (decreasing) to 1 (increasing).
    """

    name: str
    explained: float
    correlation: float


def pass_share(passes: ArrayLike, draw: ArrayLike, replicate: ArrayLike) -> Share:
    """Return the share of passing trials, with its 95 % confidence interval.

    The trials of one draw at all grid points share their random values. So draws and not trials are
    independent: first the share of passing trials of each draw is computed. Then the interval is

    - "binomial" (Clopper and Pearson 1934), which contains the true share in at least 95 % of all cases
      whatever its value: if draws are independent and each passes or fails;
    - "draws", Student's t of the draws' shares: if draws are independent and have a grid;
    - "replicates", Student's t of the replicates' shares: if the design is stratified, with draws that depend
      on each other within a replicate. The number of passing draws in a replicate is an integer, so its
      standard deviation is assumed to be at least 1/2, that of an integer that is equally often n and n + 1.

    Student's t is too narrow if few draws differ from the rest, and has no width if all trials pass. So if
    fewer than `FEWEST_DIFFERENT` draws differ, the interval is "binomial", as if draws were independent and
    each passed or failed: of all distributions of shares with a given mean, that of 0 and 1 has the largest
    variance, and stratified designs hardly scatter more than independent draws. So the interval is rather too
    wide.

    If nothing varies at random (`Design.is_random`), the share is that of the grid points, and the interval
    has no meaning.

    Args:
        passes: (N,) whether each trial passes.
        draw: (N,) draw of each trial, see `twin.sweeps.design.Points`.
        replicate: (N,) replicate of each draw; all the same if draws are independent.

    Raises:
        ValueError: there are no trials, or the lengths differ.
    """
    from scipy.special import stdtrit

    passes, draw, replicate = np.asarray(passes, dtype=bool), np.asarray(draw), np.asarray(replicate)
    if not (passes.ndim == 1 and passes.shape == draw.shape == replicate.shape and passes.size > 0):
        raise ValueError(
            f"expected passes, draw and replicate of one shape (N,) with N > 0, "
            f"got {passes.shape}, {draw.shape} and {replicate.shape}"
        )
    _, first, of_draw = np.unique(draw, return_index=True, return_inverse=True)
    shares = _means(passes, of_draw)
    _, of_replicate = np.unique(replicate[first], return_inverse=True)
    stratified = of_replicate.max() > 0
    share, draws = float(shares.mean()), len(shares)

    most_common = np.unique(shares, return_counts=True)[1].max()
    passes_or_fails = bool(np.all((shares == 0.0) | (shares == 1.0)))
    if draws - most_common < FEWEST_DIFFERENT or (passes_or_fails and not stratified):
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


def binomial_interval(passing: float, draws: int) -> tuple[float, float]:
    """Return the exact 95 % confidence interval of a share of independent draws (Clopper and Pearson 1934).

    It equals `scipy.stats.binomtest(passing, draws).proportion_ci()`, but `passing` need not be an integer.

    Args:
        passing: number of passing draws, from 0 to `draws`.
        draws: number of draws.
    """
    from scipy.special import betaincinv

    tail = (1.0 - CONFIDENCE) / 2.0
    low = 0.0 if passing <= 0.0 else float(betaincinv(passing, draws - passing + 1.0, tail))
    high = 1.0 if passing >= draws else float(betaincinv(passing + 1.0, draws - passing, 1.0 - tail))
    return low, high


def importances(table: NDArray[np.void], inputs: Sequence[str], figure: str) -> list[Importance]:
    """Return the importance of each input for a figure, the largest first.

    `explained` is the correlation ratio of the figure's ranks: the trials are put into at most `MOST_CLASSES`
    classes from low to high values of the input, and the scatter of the classes' mean ranks is compared with
    that of all ranks. It is the statistic H of Kruskal and Wallis (1952), as a share without the part that
    chance alone gives: (H - k + 1) / (N - k) of k classes, at least 0. It is an estimate of Sobol's index of
    first order. Spearman's correlation alone would overlook an input whose middle is best, such as the mass
    in the controller's model. Both overlook an effect that appears only together with another input.

    Args:
        table: (N,) trials with fields for inputs and figures.
        inputs: names of input fields; constant inputs are omitted.
        figure: name of the field of a figure, or "passes". Infinite and NaN rank last.

    Returns:
        One row per input; none if the figure is constant, or for fewer than `FEWEST_TRIALS` trials.

    Raises:
        ValueError: the table has no such field; the message names it.
    """
    from scipy.stats import kruskal, rankdata

    ranked = rankdata(_without_nan(table, figure))
    rows = []
    for name in inputs:
        ranks = rankdata(field_of(table, name))
        if len(table) < FEWEST_TRIALS or np.ptp(ranks) == 0.0 or np.ptp(ranked) == 0.0:
            continue
        classes = _classes(ranks)
        k, N = len(classes), len(ranks)
        H = kruskal(*(ranked[one] for one in classes))[0]
        explained = float(np.clip((H - k + 1) / (N - k), 0.0, 1.0))
        spearman = float(np.corrcoef(ranks, ranked)[0, 1])
        rows.append(Importance(name, explained, spearman))
    return sorted(rows, key=lambda row: (-row.explained, -abs(row.correlation)))


def decisive_figure(tables: Sequence[NDArray[np.void]], limits: Mapping[str, float]) -> str:
    """Return the figure that decides whether trials pass: the one with the limit, `joint_error` without any.

    Of several limited figures it is the one that most trials exceed; of equally many, the one whose 95 %
    quantile is largest relative to its limit.

    Args:
        tables: trials with fields for the figures.
        limits: limits of figures, by name.
    """

    def severity(name: str) -> tuple[int, float]:
        values = np.concatenate([_without_nan(table, name) for table in tables])
        with np.errstate(over="ignore"):
            quantile = np.quantile(values, 0.95, method="inverted_cdf") / max(limits[name], 1e-300)
        return int(np.count_nonzero(values > limits[name])), float(quantile)

    return max(limits, key=severity, default="joint_error")


def worst(table: NDArray[np.void], figure: str, count: int) -> NDArray[np.intp]:
    """Return the indices of the worst trials, the worst first.

    Failing trials come first, in each group the largest figure first, infinite and NaN before all; equal
    trials in the order of the table.

    Args:
        table: (N,) trials with the fields "passes" and that of the figure.
        figure: name of the figure.
        count: largest number of trials.

    Raises:
        ValueError: the table has no such field, or the count is negative.
    """
    if count < 0:
        raise ValueError(f"expected a count of at least 0, got {count}")
    order = np.lexsort(
        (-_without_nan(table, figure), field_of(table, "passes"))
    )  # stable; the last key has precedence
    return order[:count]


def _means(values: NDArray[np.generic], group: NDArray[np.intp]) -> Floats:
    """Return the mean of the values of each group, by the groups' numbers."""
    return np.bincount(group, weights=values) / np.bincount(group)


def field_of(table: NDArray[np.void], name: str) -> NDArray[np.generic]:
    """Return a field of the table.

    Raises:
        ValueError: the table has no such field; the message names it.
    """
    names = table.dtype.names or ()
    if name not in names:
        raise ValueError(f"expected a field of the table, got {name!r}; known are {', '.join(names)}")
    return table[name]


def _without_nan(table: NDArray[np.void], figure: str) -> Floats:
    """Return a figure with infinity instead of NaN, which marks an arm that cannot be made."""
    return np.nan_to_num(field_of(table, figure).astype(np.float64), nan=np.inf, posinf=np.inf)


def _classes(ranks: Floats) -> list[NDArray[np.intp]]:
    """Return the indices of the trials in each class of an input, from its ranks; ties are in one class."""
    count = min(MOST_CLASSES, len(ranks) // (FEWEST_TRIALS // 2))  # at least 2, into which any input divides
    number = np.floor((ranks - 0.5) / len(ranks) * count)
    return [np.flatnonzero(number == k) for k in np.unique(number)]


BOUNDS = (2, 3, 4, 6, 8, 12, 16, 23)
"""Bounds of the hyperbolic cross that are tried: 2 has linear terms only, 23 polynomials of degree 22."""

FEWEST_DRAWS = 20
FOLDS = 20
MOST_TERMS, MOST_RUNS = 400, 4000
"""Largest number of terms, and of runs that are fitted; of more runs a random part, some 2 s."""

MOST_UNEXPLAINED = 0.2
"""Largest share of the variance that polynomials may leave unexplained."""


class SobolIndex(NamedTuple):
    """Sobol' indices of one input; their 95 % confidence intervals are `index +- half-width`.

    Attributes:
        name: name of the input.
        first: first-order index, the effect of the input alone.
        first_half_width: half-width of its interval.
        total: total index, which includes the effects together with other inputs.
        total_half_width: half-width of its interval.
    """

    name: str
    first: float
    first_half_width: float
    total: float
    total_half_width: float

    def __str__(self) -> str:
        """Return both indices, as `0.31 ±0.02; 0.56 ±0.05`."""
        return "; ".join(f"{index:.2f} ±{half:.2f}" for index, half in (self[1:3], self[3:5]))


class SobolIndices(NamedTuple):
    """Sobol' indices of all inputs for one figure.

    Attributes:
        figure: name of the figure.
        rows: one row per input that varies, the largest total index first; empty if not computed.
        unexplained: share of the variance that polynomials do not predict; NaN if not computed.
        reason: the reason why the indices were not computed; empty if they were.
    """

    figure: str
    rows: tuple[SobolIndex, ...] = ()
    unexplained: float = np.nan
    reason: str = ""


def sobol_indices(table: NDArray[np.void], inputs: Sequence[str], figure: str) -> SobolIndices:
    """Return first-order and total Sobol' indices of the inputs, with intervals, or why there are none.

    Args:
        table: (N,) runs with the fields `draw`, inputs and figures.
        inputs: names of input fields, which vary independently; constant inputs are omitted.
        figure: name of the field of a figure, or "passes".

    Raises:
        ValueError: the table has no such field; the message names it.

    Example:
        >>> import numpy as np
        >>> from twin.studies.sweeps.statistics import sobol_indices
        >>> table = np.zeros(200, [("draw", "i8"), ("a", "f8"), ("b", "f8"), ("error", "f8")])
        >>> table["a"], table["b"] = np.random.default_rng(0).random((2, 200))
        >>> table["draw"] = np.arange(200)
        >>> table["error"] = (table["a"] - 0.5) * table["b"]  # a alone explains 3/4, b nothing without a
        >>> rows = sobol_indices(table, ("a", "b"), "error").rows
        >>> [(one.name, round(one.first, 1), round(one.total, 1)) for one in rows]
        [('a', 0.8, 1.0), ('b', 0.0, 0.2)]
    """
    values = field_of(table, figure).astype(np.float64)
    varied = [name for name in inputs if np.unique(field_of(table, name)).size > 1]
    _, draw = np.unique(table["draw"], return_inverse=True)
    # Of a grid without random inputs, each point is left out by itself, and nothing is left to chance.
    unit = draw if np.any(draw) else np.arange(len(table))
    draws, needed = np.unique(unit).size, max(FEWEST_DRAWS, 2 * (len(varied) + 1))
    infinite = np.count_nonzero(~np.isfinite(values))
    reason = ""
    if not varied:
        reason = "no input varies"
    elif draws < needed:
        inputs_text = f"{len(varied)} input{'s' * (len(varied) != 1)}"
        reason = f"needs at least {needed} draws for {inputs_text}, got {draws}"
    elif infinite:
        reason = f"{infinite} of {len(values)} runs have no finite {figure}, and so the variance has none"
    elif np.ptp(values) == 0.0:
        reason = f"all runs have the same {figure}"
    if reason:
        return SobolIndices(figure, reason=reason)
    rng = np.random.default_rng(0)
    fold = (rng.permutation(draws) % FOLDS)[unit]
    part = rng.permutation(len(values))[:MOST_RUNS]
    values, draw = values[part] / np.abs(values).max(), draw[part]  # squares do not overflow
    bases = [_polynomials(table[name][part]) for name in varied]
    unexplained, terms, A, c = _fitted(bases, (values - values.mean()) / values.std(), fold[part], draws)
    if not unexplained <= MOST_UNEXPLAINED:
        reason = (
            f"needs more than {draws} draws, or a smoother figure: polynomials of the inputs predict "
            f"{max(0.0, 1.0 - unexplained):.0%} of its variance, and {1.0 - MOST_UNEXPLAINED:.0%} is needed"
        )
        return SobolIndices(figure, reason=reason)
    rows = []
    for k, name in enumerate(varied):
        row = []
        for mask in ([term.keys() == {k} for term in terms], [k in term for term in terms]):
            index = float(np.sum(c[mask] ** 2) / np.sum(c**2))
            row += [index, 1.96 * _standard_error(A[:, mask] @ c[mask], A @ c, draw) + unexplained]
        rows.append(SobolIndex(name, *row))
    return SobolIndices(figure, tuple(sorted(rows, key=lambda row: -row.total)), unexplained)


def _polynomials(values: NDArray) -> Floats:
    """Return polynomials (N, p) of an input's ranks, of degree 1 to p, orthonormal over the runs.

    The recursion is that of Arnoldi (Brubeck, Nakatsukasa and Trefethen 2021).
    """
    from scipy.stats import rankdata

    x = (2.0 * rankdata(values) - 1.0) / len(values) - 1.0
    found = [np.ones(len(x))]
    for _ in range(min(BOUNDS[-1], len(np.unique(values))) - 1):
        polynomial = x * found[-1]
        for lower in found * 2:  # twice, so that rounding errors do not grow
            polynomial -= np.mean(polynomial * lower) * lower
        found.append(polynomial / np.sqrt(np.mean(polynomial**2)))
    return np.column_stack(found[1:])


def _terms(degrees: Sequence[int], bound: int, first: int = 0) -> list[dict[int, int]]:
    """Return the terms of the hyperbolic cross, each as degrees by the numbers of the inputs."""
    found = []
    for k in range(first, len(degrees)):
        for degree in range(1, min(degrees[k], bound - 1) + 1):
            found += [{k: degree} | rest for rest in [{}, *_terms(degrees, bound // (degree + 1), k + 1)]]
    return found


Fit = tuple[float, list[dict[int, int]], NDArray, NDArray]
"""Share of the variance not predicted in runs left out; P terms; their values (N, P); coefficients (P,)."""


def _fitted(bases: Sequence[Floats], y: Floats, fold: NDArray, draws: int) -> Fit:
    """Return the fit with the bound that predicts best.

    Args:
        bases: polynomials (N, p) of each input.
        y: (N,) values of mean 0 and variance 1.
        fold: (N,) number of the fold that leaves a run out.
        draws: number of draws, of which there are at least two per term.
    """
    best: Fit = (np.inf, [], y, y)
    for bound in BOUNDS:
        terms = _terms([basis.shape[1] for basis in bases], bound)
        if len(terms) + 1 > min(draws // 2, MOST_TERMS):
            break
        products = [np.prod([bases[k][:, degree - 1] for k, degree in one.items()], axis=0) for one in terms]
        A = np.column_stack([np.ones(len(y)), *products])
        # The terms are nearly orthonormal, and so their Gram matrix is well conditioned. Cholesky's method is
        # then accurate, and much faster than a QR decomposition if other processes use the cores.
        with suppress(np.linalg.LinAlgError):  # the runs, or those of other folds, do not tell terms apart
            L = np.linalg.cholesky(A.T @ A / len(y))
            if np.diag(L).min() < 1e-4:
                break
            inverse = np.linalg.inv(L).T / np.sqrt(len(y))
            Q, left_out = A @ inverse, np.empty(len(y))
            residual = y - Q @ (Q.T @ y)
            for rows in (np.flatnonzero(fold == one) for one in range(FOLDS)):
                left_out[rows] = np.linalg.solve(np.eye(len(rows)) - Q[rows] @ Q[rows].T, residual[rows])
            if (error := float(np.mean(left_out**2))) < best[0]:
                best = error, terms, A[:, 1:], (inverse @ (Q.T @ y))[1:]
    return best


def _standard_error(part: Floats, whole: Floats, draw: NDArray) -> float:
    """Return the standard error over the draws of the variance of a part over that of the whole."""
    squares, norm = (part - part.mean()) ** 2, (whole - whole.mean()) ** 2
    influence = np.bincount(draw, squares - squares.mean() / norm.mean() * norm)
    return float(np.sqrt(np.sum(influence**2)) / norm.sum())
