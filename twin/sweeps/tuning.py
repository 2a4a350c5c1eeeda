"""Gains of a law that hold for all draws of a sweep and make its worst error, or its torque, small.

Every set of gains that is tried is run under the same draws. Of two sets the better one is that under which
fewer runs fail; under which as many fail, that with the smaller figure. The search is differential evolution
(Storn and Price 1997), by `scipy.optimize`: it needs no derivative, which the worst of many runs does not
have, takes numbers of failures as they come, and tries a whole generation of gains at once, so that a call of
compiled code does some thousands of runs. It works with logarithms of the gains: half a gain is as far from
it as twice the gain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.errors import TwinError, VariationError
from twin.sweeps.design import Points
from twin.sweeps.pools import Pool
from twin.sweeps.running import run_points
from twin.sweeps.trial import FIGURES, Experiment

AT_END = 0.02
"""A gain so near an end of its range, as a part of the whole on a logarithmic scale, is at the end."""


class Gain(NamedTuple):
    """A quantity of an experiment that is searched.

    Attributes:
        name: as the experiment has it: `law.Kp`.
        low: least value, above 0, in the quantity's own unit.
        high: largest value.
    """

    name: str
    low: float
    high: float


class Tried(NamedTuple):
    """What became of one set of gains.

    Attributes:
        values: of the gains, in their order.
        failing: number of runs that do not hold.
        figure: the worst of the runs that came to their end, or the mean; infinite where none did.
    """

    values: tuple[float, ...]
    failing: int
    figure: float


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    Attributes:
        gains: what was searched.
        default: the nominal values of the experiment, and what became of them.
        best: the best values within their ranges.
        runs: number of draws, each of which was run with every set of gains.
        evaluations: number of sets of gains that were tried, the default one included.
        settled: whether all sets of the last generation did as well; else more might do better.
    """

    gains: tuple[Gain, ...]
    default: Tried
    best: Tried
    runs: int
    evaluations: int
    settled: bool

    @property
    def values(self) -> dict[str, float]:
        """The best values by the names of the gains."""
        return dict(zip((gain.name for gain in self.gains), self.best.values, strict=True))

    @property
    def at_ends(self) -> tuple[tuple[Gain, float], ...]:
        """The gains whose best value lies at an end of their range, and that end; it may be better beyond."""
        found = []
        for gain, value in zip(self.gains, self.best.values, strict=True):
            near = AT_END * np.log(gain.high / gain.low)
            ends = [end for end in (gain.low, gain.high) if abs(np.log(value / end)) <= near]
            found += [(gain, end) for end in ends]
        return tuple(found)


Of = Literal["worst", "mean"]

A_GENERATION = 10
"""Sets of gains tried at once, for each gain that is searched."""

FEWEST, GENERATIONS = 5, 8
"""Sets in a generation that differential evolution needs; generations that a small number of evaluations is
cut into, rather than large ones."""

EVALUATIONS = 120
"""Sets of gains tried in all, for each gain that is searched, unless told otherwise."""

DECADES = 12.0
"""Up and down of the figure of the default gains, within which figures are told apart."""

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
    """Search values of the gains with which the fewest runs fail, and of those the figure is least.

    Args:
        experiment: makes the runs.
        points: the draws: N circumstances, under each of which every set of gains is run.
        gains: d quantities of the experiment, none of which varies in the points.
        minimise: a figure of `FIGURES`.
        of: the worst of the runs, or their mean.
        limits: on figures, by their names; a run beyond one fails.
        evaluations: sets of gains to try, the default one besides; `EVALUATIONS` a gain by default.
        seed: of the search; the same one finds the same bits.
        engine: PyBullet runs them, and not compiled code.
        pool: who runs them; by default threads of this process.
        progress: called with the number of runs that are done.

    Raises:
        VariationError: a gain that varies, twice, or with a range that is empty or reaches 0; a figure that
            is not known, or not computed here; fewer than `FEWEST` evaluations.
        TwinError, ValueError: of the experiment.
    """
    from scipy.optimize import differential_evolution

    gains = tuple(gains)
    _check(points, gains, minimise, evaluations)
    starts = np.array([experiment.nominal(gain.name) for gain in gains])
    judge = _Judge(experiment, points, gains, minimise, of, dict(limits or {}), engine, pool, progress)
    (default,) = judge(starts[np.newaxis])
    low, high = np.array([(gain.low, gain.high) for gain in gains]).T
    inside = bool(np.all((starts >= low) & (starts <= high)))
    # Logarithms of factors on the default, of which the default itself is exactly 0.
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
    except RuntimeError as error:  # scipy takes what the experiment says for a fault of its own
        if isinstance(error.__cause__, (TwinError, ValueError)):
            raise error.__cause__ from None
        raise
    return Tuning(gains, default, best[0], len(points.values), judge.evaluations, bool(found.success))


@dataclass
class _Judge:
    """Runs sets of gains under all draws."""

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
        """What becomes of sets of gains (S, d)."""
        draws = len(self.points.values)
        before = self.evaluations * draws
        table = run_points(
            self.experiment,
            self._with(values),
            limits=self.limits,
            engine=self.engine,
            pool=self.pool,
            progress=lambda done, _: self._tell(before + done),
        )
        self.evaluations += len(values)
        parts = table.reshape(draws, len(values)).T
        return [
            Tried(tuple(one.tolist()), *judged(part, self.minimise, self.of))
            for one, part in zip(values, parts, strict=True)
        ]

    def _with(self, values: Floats) -> Points:
        """The first draw with all sets of gains, then the second, and so on: they share their reference."""
        points, sets = self.points, len(values)
        draws = np.repeat(np.arange(len(points.values)), sets)
        return Points(
            names=(*points.names, *(gain.name for gain in self.gains)),
            values=np.column_stack([points.values[draws], np.tile(values, (len(points.values), 1))]),
            draw=points.draw[draws],
            replicate=points.replicate[draws],
        )

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done)


def judged(table: np.ndarray, figure: str, of: Of = "worst") -> tuple[int, float]:
    """How many runs fail, and the worst figure, or the mean, of those that came to their end.

    Args:
        table: (N,) with the fields of `OUTCOME`.
        figure: its name.
        of: "worst" or "mean".

    Raises:
        VariationError: the figure was not computed.
    """
    ended = table[figure][table["trouble"] == 0]
    if np.any(np.isnan(ended)):
        raise VariationError(f"{figure} was not asked for in these runs: the experiment has to compute it")
    failing = int(np.count_nonzero(~table["passes"]))
    if not len(ended):
        return failing, float("inf")
    return failing, float(np.max(ended) if of == "worst" else np.mean(ended))


def _loss(tried: Tried, scale: float) -> float:
    """One number that orders sets of gains: a failing run more outweighs any figure, which is from 0 to 1."""
    with np.errstate(divide="ignore"):
        decades = np.log10(np.float64(tried.figure) / scale)
    return tried.failing + float(np.clip(0.5 + decades / (2.0 * DECADES), 0.0, 1.0))


def _first(generator: np.random.Generator, count: int, low: Floats, high: Floats, inside: bool) -> Floats:
    """The first generation (count, d): spread evenly, the default gains among them where they may be."""
    from scipy.stats import qmc

    spread = qmc.LatinHypercube(len(low), seed=generator).random(count)  # pyright: ignore
    first = np.log(low) + (np.log(high) - np.log(low)) * spread
    if inside:
        first[0] = 0.0
    return first


def _check(points: Points, gains: tuple[Gain, ...], minimise: str, evaluations: int | None) -> None:
    names = [gain.name for gain in gains]
    if not gains:
        raise VariationError("there are no gains to search")
    for gain in gains:
        if gain.name in points.names:
            raise VariationError(f"{gain.name} cannot be searched: it varies from draw to draw")
        if names.count(gain.name) > 1:
            raise VariationError(f"{gain.name} is searched twice; once is enough")
        if not 0.0 < gain.low < gain.high < np.inf:
            raise VariationError(
                f"cannot search {gain.name} from {gain.low:g} to {gain.high:g}: expected a range above 0 "
                "that is not empty"
            )
    if minimise not in FIGURES:
        raise VariationError(f"cannot minimise {minimise!r}: known are {', '.join(FIGURES)}")
    if evaluations is not None and evaluations < FEWEST:
        raise VariationError(f"expected at least {FEWEST} evaluations, got {evaluations}")
