"""Search gains of a controller that pass for all draws of a sweep, with a small error or torque.

Every set of gains is run on the same draws. Of two sets the better one has fewer failing runs, or with
equally many failing runs the smaller figure. The search is differential evolution (Storn and Price 1997), by
`scipy.optimize`: it needs no derivative, which the worst of many runs does not have, handles numbers of
failures, and evaluates a whole generation of gains at once, so that a call of compiled code runs some
thousands of trials. It searches the logarithms of the gains: half a gain and twice the gain are equally far
from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import TwinError, VariationError
from twin.base.formatting import html_table
from twin.studies.sweeps.design import Points
from twin.studies.sweeps.pools import Pool
from twin.studies.sweeps.running import run_points
from twin.studies.sweeps.trial import FIGURES, OUTCOME, Experiment

AT_END = 0.02
"""Largest distance of a gain from an end of its range that counts as at the end, relative, logarithmic."""


class Gain(NamedTuple):
    """Quantity of an experiment that is searched.

    Attributes:
        name: name in the experiment, such as `law.Kp`.
        low: smallest value, above 0, in the quantity's unit.
        high: largest value.
    """

    name: str
    low: float
    high: float


class Tried(NamedTuple):
    """Result of one set of gains.

    Attributes:
        values: values of the gains, in their order.
        failing: number of failing runs.
        figure: worst or mean figure of the runs that did not end early; infinite if there are none.
    """

    values: tuple[float, ...]
    failing: int
    figure: float


@dataclass(frozen=True)
class Tuning:
    """Result of a search.

    Attributes:
        gains: the searched gains.
        default: the nominal values of the experiment, and their result.
        best: the best values within their ranges, and their result.
        runs: number of draws, on each of which every set of gains was run.
        evaluations: number of sets of gains, including the default set.
        settled: whether the last generation has converged; otherwise more evaluations may be better.
    """

    gains: tuple[Gain, ...]
    default: Tried
    best: Tried
    runs: int
    evaluations: int
    settled: bool

    def _repr_html_(self) -> str:
        """Return a table of the gains."""
        rows = [(gain.name, *pair) for gain, *pair in
                zip(self.gains, self.default.values, self.best.values, strict=True)]  # fmt: skip
        results = [(name, self.default[k], self.best[k]) for k, name in ((1, "failing runs"), (2, "figure"))]
        return html_table(f"Tuning over {self.runs} draws", [("", "default", "best"), *rows, *results])

    @property
    def values(self) -> dict[str, float]:
        """The best values, by the names of the gains."""
        return dict(zip((gain.name for gain in self.gains), self.best.values, strict=True))

    @property
    def at_ends(self) -> tuple[tuple[Gain, float], ...]:
        """Gains whose best value is at an end of its range, with this end; it may be better beyond."""
        found = []
        for gain, value in zip(self.gains, self.best.values, strict=True):
            near = AT_END * np.log(gain.high / gain.low)
            ends = [end for end in (gain.low, gain.high) if abs(np.log(value / end)) <= near]
            found += [(gain, end) for end in ends]
        return tuple(found)


Of = Literal["worst", "mean"]

A_GENERATION = 10
"""Number of sets of gains per generation, for each searched gain."""

FEWEST, GENERATIONS = 5, 8
"""Smallest number of sets in a generation; smallest number of generations for few evaluations."""

EVALUATIONS = 120
"""Default number of sets of gains, for each searched gain."""

DECADES = 12.0
"""Decades above and below the default gains' figure within which figures are distinguished."""

SETTLED = 0.01
"""Relative scatter of the figure in a generation at which the search ends."""


def tuned(
    experiment: Experiment,
    points: Points,
    gains: Sequence[Gain],
    *,
    minimise: str = "joint_error",
    of: Of = "worst",
    limits: Mapping[str, float] | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    engine: bool = False,
    pool: Pool | None = None,
    progress: Callable[[int], None] | None = None,
) -> Tuning:
    """Search values of the gains with the fewest failing runs, and with the smallest figure among these.

    Args:
        experiment: the experiment, which makes the trials.
        points: N draws, on each of which every set of gains is run.
        gains: d quantities of the experiment, none of which varies in the points.
        minimise: name of the figure, one of `FIGURES` and of the trials' metrics.
        of: whether to minimise the worst figure of the runs, or the mean.
        limits: limits of figures, by name; a run that exceeds one fails.
        evaluations: number of sets of gains, besides the default set; by default `EVALUATIONS` per gain.
        seed: seed of the search; the same seed gives the same bits.
        engine: whether PyBullet runs the trials, instead of compiled code.
        pool: pool that runs the trials; by default threads of this process.
        progress: function that is called with the number of finished runs.

    Raises:
        VariationError: a gain varies in the points, is given twice, or has a range that is empty or contains
            0; the figure is unknown or not computed; there are fewer than `FEWEST` evaluations.
        TwinError, ValueError: the experiment fails.

    Example:
        >>> import controllers.pid, twin, twin.sweeps.tuning as tuning
        >>> still, gain = twin.sample(twin.hold([0.0] * 6, 0.1), 1e-3), tuning.Gain("law.bandwidth", 5, 40)
        >>> sweep = twin.sweep(twin.load("irb140"), controllers.pid.PDGravity, still, {"mass": "0.9,1,1.2"})
        >>> found = tuning.tuned(sweep.experiment, sweep.design.points({}), [gain], evaluations=20)
        >>> found.best.failing, round(found.best.values[0])
        (0, 40)
    """
    from scipy.optimize import differential_evolution

    gains = tuple(gains)
    _check(points, gains, evaluations)
    starts = np.array([experiment.nominal(gain.name) for gain in gains])
    judge = _Judge(experiment, points, gains, minimise, of, dict(limits or {}), engine, pool, progress)
    (default,) = judge(starts[np.newaxis])
    low, high = np.array([(gain.low, gain.high) for gain in gains]).T
    inside = bool(np.all((starts >= low) & (starts <= high)))
    # Logarithms of factors on the default, so that the default itself is exactly 0.
    base = np.where(starts > 0, starts, np.sqrt(low * high))
    scale = default.figure if 0 < default.figure < np.inf else 1.0
    best = [default] if inside else []

    def losses(x: Floats) -> Floats:
        values = np.clip(base * np.exp(np.round(x.T, 12)), low, high)
        tried = judge(values)
        best[:] = [min([*best, *tried], key=lambda one: _loss(one, scale))]
        return np.array([_loss(one, scale) for one in tried])

    count = evaluations or EVALUATIONS * len(gains)
    generation = max(FEWEST, min(A_GENERATION * len(gains), count // GENERATIONS))
    generator = np.random.default_rng(seed)
    try:
        found = differential_evolution(
            losses,
            bounds=np.log(np.column_stack([low, high]) / base[:, np.newaxis]),
            init=_first(generator, generation, low / base, high / base, inside),
            maxiter=max(count // generation - 1, 1),
            vectorized=True,
            updating="deferred",
            polish=False,
            tol=0.0,
            atol=np.log10(1.0 + SETTLED) / (2.0 * DECADES),
            seed=generator,  # pyright: ignore
        )
    except RuntimeError as error:  # scipy wraps the errors of the experiment
        if isinstance(error.__cause__, (TwinError, ValueError)):
            raise error.__cause__ from None
        raise
    return Tuning(gains, default, best[0], len(points.values), judge.evaluations, bool(found.success))


@dataclass
class _Judge:
    """Function that runs sets of gains on all draws."""

    experiment: Experiment
    points: Points
    gains: tuple[Gain, ...]
    minimise: str
    of: Of
    limits: dict[str, float]
    engine: bool
    pool: Pool | None
    progress: Callable[[int], None] | None
    evaluations: int = 0

    def __call__(self, values: Floats) -> list[Tried]:
        """Return the results of sets of gains (S, d)."""
        draws = len(self.points.values)
        before = self.evaluations * draws
        table = run_points(
            self.experiment,
            self._with(values),
            limits=self.limits,
            engine=self.engine,
            pool=self.pool,
            progress=lambda done, _: self._report(before + done),
        )
        self.evaluations += len(values)
        parts = table.reshape(draws, len(values)).T
        return [
            Tried(tuple(one.tolist()), *judged(part, self.minimise, self.of))
            for one, part in zip(values, parts, strict=True)
        ]

    def _with(self, values: Floats) -> Points:
        """Return the first draw with all sets of gains, then the second, and so on."""
        points, sets = self.points, len(values)
        draws = np.repeat(np.arange(len(points.values)), sets)
        return Points(
            names=(*points.names, *(gain.name for gain in self.gains)),
            values=np.column_stack([points.values[draws], np.tile(values, (len(points.values), 1))]),
            draw=points.draw[draws],
            replicate=points.replicate[draws],
        )

    def _report(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done)


def judged(table: np.ndarray, figure: str, of: Of = "worst") -> tuple[int, float]:
    """Return the number of failing runs, and the worst or mean figure of the runs that did not end early.

    Args:
        table: (N,) with the fields of `OUTCOME`.
        figure: name of the figure.
        of: "worst" or "mean".

    Raises:
        VariationError: the figure is unknown, or was not computed.

    Example:
        >>> import controllers.pid, twin, twin.sweeps.tuning as tuning
        >>> robot, still = twin.load("irb140"), twin.sample(twin.hold([0.0] * 6, 0.1), 1e-3)
        >>> sweep = twin.sweep(robot, controllers.pid.PDGravity, still, {"mass": "0.9,1,1.2"})
        >>> failing, worst = tuning.judged(sweep.table, "joint_error")
        >>> failing, round(worst, 4)
        (0, 0.0117)
    """
    others = {*(OUTCOME.names or ())}.difference(FIGURES)
    if figure in others or figure not in (table.dtype.names or ()):
        raise VariationError(
            f"cannot minimise {figure!r}: known are {', '.join(FIGURES)} and the metrics of the scenario"
        )
    ended = table[figure][table["trouble"] == 0]
    if np.any(np.isnan(ended)):
        raise VariationError(f"{figure} was not computed in these runs: the experiment must compute it")
    failing = int(np.count_nonzero(~table["passes"]))
    if not len(ended):
        return failing, float("inf")
    return failing, float(np.max(ended) if of == "worst" else np.mean(ended))


def _loss(tried: Tried, scale: float) -> float:
    """Return the number that the search minimises: failing runs, plus the figure's rank from 0 to 1."""
    with np.errstate(divide="ignore"):
        decades = np.log10(np.float64(tried.figure) / scale)
    return tried.failing + float(np.clip(0.5 + decades / (2.0 * DECADES), 0.0, 1.0))


def _first(generator: np.random.Generator, count: int, low: Floats, high: Floats, inside: bool) -> Floats:
    """Return the first generation (count, d): evenly spread, with the default gains if they are in range."""
    from scipy.stats import qmc

    spread = qmc.LatinHypercube(len(low), seed=generator).random(count)  # pyright: ignore
    first = np.log(low) + (np.log(high) - np.log(low)) * spread
    if inside:
        first[0] = 0.0
    return first


def _check(points: Points, gains: tuple[Gain, ...], evaluations: int | None) -> None:
    names = [gain.name for gain in gains]
    if not gains:
        raise VariationError("there are no gains to search")
    for gain in gains:
        if gain.name in points.names:
            raise VariationError(f"{gain.name} cannot be searched: it varies from draw to draw")
        if names.count(gain.name) > 1:
            raise VariationError(f"{gain.name} is searched twice")
        if not 0.0 < gain.low < gain.high < np.inf:
            raise VariationError(
                f"cannot search {gain.name} from {gain.low:g} to {gain.high:g}: expected a non-empty range "
                "above 0"
            )
    if evaluations is not None and evaluations < FEWEST:
        raise VariationError(f"expected at least {FEWEST} evaluations, got {evaluations}")
