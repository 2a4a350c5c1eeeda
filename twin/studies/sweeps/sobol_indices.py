"""Sobol' indices of the inputs of a sweep, estimated from the runs that it already has.

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

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.studies.sweeps.statistics import field_of

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
        >>> from twin.studies.sweeps.sobol_indices import sobol_indices
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
