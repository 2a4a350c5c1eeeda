"""Plan of a sweep, its execution controller by controller, and its worst runs repeated in PyBullet.

Controllers, variations and points are checked before anything is run.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.judging.bounds import whole_run_limit
from scenarios.running.registry import Task
from scenarios.running.runs import Run, repeat_command, run_one
from twin.base.errors import DriveWarning, WrongUse
from twin.data.logs.figures import joint_error
from twin.physics.robot.quantities import expand_each
from twin.physics.robot.units import joint_unit
from twin.studies.sweeps.design import Design, Points, Variation, parse_variation
from twin.studies.sweeps.running import columns

if TYPE_CHECKING:
    from scenarios.running.registry import Entry
    from scenarios.setup import Setup
    from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment
    from twin.studies.sweeps.pools import Pool


LAW = "law."
SEED = "seed"
"""Setting that seeds the measurement noise: every draw has a different seed."""


class Law(NamedTuple):
    """Controller of the sweep: its label, its experiment, and the points to run."""

    label: str
    experiment: ScenarioExperiment
    points: Points

    def present(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the quantities that this controller has."""
        return tuple(name for name in names if name not in self.experiment.absent)


@dataclass(frozen=True)
class SweepPlan:
    """Plan of a sweep.

    Attributes:
        scenario: the scenario to run.
        laws: the controllers, which have the same draws.
        design: the sampling of the draws.
        limits: additional limits of quantities.
        figure: quantity that ranks the worst cases; `None` for the one that has the limit.
    """

    scenario: Entry
    laws: tuple[Law, ...]
    design: Design
    limits: Mapping[str, float]
    figure: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the varied parameters, as columns of the table."""
        return columns(variation.name for variation in self.design.variations)

    @property
    def grid(self) -> tuple[str, ...]:
        """Names of the parameters on a grid."""
        return self._names_of("grid")

    @property
    def decades(self) -> tuple[str, ...]:
        """Names of the parameters that are uniform in the logarithm."""
        return self._names_of("log-uniform")

    def _names_of(self, kind: str) -> tuple[str, ...]:
        named = zip(self.names, self.design.variations, strict=True)
        return tuple(name for name, variation in named if variation.kind == kind)

    @property
    def runs(self) -> int:
        """Number of all runs."""
        return sum(len(law.points.values) for law in self.laws)

    def size_text(self) -> str:
        """Return the number of runs: `2000 draws x 8 grid points x 2 controllers = 32000 runs`."""
        parts = [f"{self.design.draws} draw{'s' * (self.design.draws != 1)}"]
        if self.grid:
            parts.append(f"{self.design.grid_points} grid points")
        if len(self.laws) > 1:
            parts.append(f"{len(self.laws)} controllers")
        return f"{' x '.join(parts)} = {self.runs} runs" if len(parts) > 1 else f"{self.runs} runs"


def variations(words: Sequence[str], experiment: ScenarioExperiment) -> tuple[Variation, ...]:
    """Read the arguments of `--vary`, such as `payload=0:6`; `:each` gives one variation per axis or link.

    Args:
        words: the arguments.
        experiment: the experiment, of whose settings `work_object.x_mm` stands for `work_object_x_mm`.

    Raises:
        WrongUse: there are none, or an argument has no `=`.
        VariationError: a variation has an invalid form.
    """
    if not words:
        raise WrongUse("nothing varies: give --vary, as --vary payload=0:6; --list shows the valid names")
    found, settings = [], experiment.task.entry.options
    for word in words:
        name, sign, text = word.partition("=")
        if not (sign and name and text):
            raise WrongUse(f"--vary {word}: expected NAME=TEXT, as payload=0:6 or drives.coulomb=+-50%")
        setting = name.replace(".", "_")
        found.append((setting if setting in settings else name, text))
    expanded = expand_each(found, experiment.nominal, lambda: [one.name for one in experiment.quantities()])
    return tuple(parse_variation(*one) for one in expanded)


def mark_absent(experiments: Sequence[ScenarioExperiment], names: Iterable[str]) -> None:
    """Set `absent` of each experiment: the settings `law.NAME` that its controller lacks, but another has."""
    for name in (one for one in names if one.startswith(LAW)):
        lacking = [one for one in experiments if name.removeprefix(LAW) not in one.law_numbers()]
        for experiment in lacking if len(lacking) < len(experiments) else ():
            experiment.absent |= {name}


def points_of(experiment: ScenarioExperiment, design: Design) -> Points:
    """Return the points of one controller: all controllers share the draws, but not the nominal values.

    If measurements are noisy, each draw has a different seed, so that the noise is part of the draw. Settings
    that the controller lacks are NaN.

    Raises:
        UnknownNameError: there is no quantity with this name.
        VariationError: the quantity cannot vary, or not in this form.
    """
    names = [variation.name for variation in design.variations]
    absent = experiment.absent.intersection(names)
    points = design.points({name: 1.0 if name in absent else experiment.nominal(name) for name in names})
    points.values[:, [name in absent for name in names]] = np.nan
    noisy = experiment.setup.noise > 0 or "noise" in names
    if not noisy or SEED in names:
        return points
    seeds = experiment.setup.seed + points.draw.astype(float)
    return points._replace(
        names=(*points.names, SEED), values=np.concatenate([points.values, seeds[:, None]], axis=1)
    )


def nominal_values(experiment: ScenarioExperiment, design: Design) -> dict[str, float]:
    """Return the nominal values of all varied quantities that have a number by default."""
    found = {variation.name: experiment.nominal(variation.name) for variation in design.variations}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def values_of(points: Points, place: int) -> dict[str, float]:
    """Return the values of one point, by name."""
    return dict(zip(points.names, points.values[place].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Swept:
    """Runs of one controller.

    Attributes:
        label: name of the controller in tables and files.
        setup: setup of the sweep with this controller; varied settings have their nominal values.
        names: names of the inputs, as columns of the table.
        grid: names of the inputs on a grid, at each value of which all draws are run.
        decades: names of the inputs that are uniform in the logarithm.
        table: (N,) one row per run, see `twin.sweeps.running`.
        nominal: row of the run with nominal values.
        limits: additional limits of quantities.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
        figure: quantity of the importances, which also ranks the worst cases.
        metrics: units of the scenario's metrics by name.
        units: units of the inputs by name; `times nominal` for factors; inputs without a unit are missing.
        further_checks: whether all checks of the scenario judge the draws, besides the figures.
        not_judged: checks of a run that do not judge the draws.
        in_engine: whether all runs are in PyBullet.
    """

    label: str
    setup: Setup
    names: tuple[str, ...]
    grid: tuple[str, ...]
    decades: tuple[str, ...]
    table: np.ndarray
    nominal: np.void
    limits: Mapping[str, float]
    leaves_limits: bool
    figure: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    further_checks: bool = False
    not_judged: tuple[str, ...] = ()
    in_engine: bool = False


ENGINE_CHECKS = "PyBullet against the model, whether rounding decides"
"""Checks that no draw has; the worst runs, which are repeated in PyBullet, have them."""
TIMED = 10
"""Number of runs in the compiled call that measures the time per run, so that they share its overhead."""


class Nominal(NamedTuple):
    """Run of a controller with nominal values: its row, and the processor time that it takes, in [s]."""

    row: np.void
    seconds: float


def nominal_run(plan: SweepPlan, law: Law) -> Nominal:
    """Run a controller with nominal values, so that an invalid setup raises before the sweep begins.

    Raises:
        TwinError, ValueError: the closed loop cannot be made or run.
    """
    from twin.physics.dynamics.flexible_joint import warn_of_unresolved_springs
    from twin.studies.sweeps import evaluation

    values, engine = nominal_values(law.experiment, plan.design), law.experiment.needs_engine
    warn_of_unresolved_springs((trial := law.experiment.trial(values)).plant, trial.time_step)
    evaluate = evaluation.engine_outcomes if engine else evaluation.outcomes
    with drive_warnings_ignored():
        table = evaluate([trial])  # also compiles the loop
        count = 1 if engine else TIMED
        began = time.process_time()
        evaluate([law.experiment.trial(values) for _ in range(count)])
    return Nominal(evaluation.verdict(table, plan.limits)[0], (time.process_time() - began) / count)


@contextmanager
def drive_warnings_ignored() -> Iterator[None]:
    """Ignore warnings about drives in the block; the nominal drives have raised them already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriveWarning)
        yield


PoolOf = Callable[[bool], "Pool"]
"""Function that opens the pool of a sweep; its argument is whether the runs are in PyBullet."""


def run_all(
    plan: SweepPlan, nominals: Sequence[Nominal], pool_of: PoolOf, progress: Callable[[int], None],
    *, chunks: Path | None = None, resume: bool = False,
) -> list[Swept]:  # fmt: skip
    """Run all points of all controllers.

    Args:
        plan: the plan of the sweep.
        nominals: the nominal run of each controller.
        pool_of: function that opens the pool of the runs.
        progress: function that is called with the number of finished runs.
        chunks: folder for the finished chunks; `None` to store none.
        resume: whether to reuse the finished chunks in this folder.

    Raises:
        TwinError: the folder contains chunks of another sweep, or no processes are available.
    """
    from twin.studies.sweeps.running import run_points
    from twin.studies.sweeps.statistics import decisive_figure

    tables, before = [], 0
    engine = any(law.experiment.needs_engine for law in plan.laws)
    with drive_warnings_ignored(), pool_of(engine) as pool:
        for law in plan.laws:
            table = run_points(
                law.experiment, law.points, limits=plan.limits, engine=law.experiment.needs_engine, pool=pool,
                keep=None if chunks is None else _chunk_folder(chunks, law), resume=resume,
                progress=lambda done, _, before=before: progress(before + done),
            )  # fmt: skip
            before += len(table)
            tables.append(table)
    figure = plan.figure or decisive_figure(tables, plan.limits)
    each = zip(plan.laws, tables, nominals, strict=True)
    return [_swept(plan, law, table, nominal, figure) for law, table, nominal in each]


def _swept(plan: SweepPlan, law: Law, table: np.ndarray, nominal: Nominal, figure: str) -> Swept:
    quantities = law.experiment.quantities()
    units = {
        one.name: "times nominal" if one.meaning.startswith("factor ") else one.unit for one in quantities
    }
    return Swept(
        label=law.label,
        setup=law.experiment.setup,
        names=law.present(plan.names),
        grid=law.present(plan.grid),
        decades=law.present(plan.decades),
        table=table,
        nominal=nominal.row,
        limits=plan.limits,
        leaves_limits=bool(plan.scenario.kind.leaves_limits),
        figure=figure,
        metrics=law.experiment.metrics,
        units={name: unit for name in plan.names if (unit := units.get(name))},
        further_checks=bool(law.experiment.further_checks),
        not_judged=(ENGINE_CHECKS, *filter(None, [law.experiment.not_judged])),
        in_engine=law.experiment.needs_engine,
    )


def remove_stored_chunks(plan: SweepPlan, chunks: Path) -> None:
    """Remove the stored chunks, once the tables are written."""
    from twin.studies.sweeps.running import remove_chunks

    for law in plan.laws:
        remove_chunks(_chunk_folder(chunks, law))
    with suppress(OSError):  # it contains other files
        chunks.rmdir()


def _chunk_folder(chunks: Path, law: Law) -> Path:
    """Return the folder for the chunks of one controller."""
    return chunks / re.sub(r"[^\w.+-]+", "_", law.label)


def worst_of(law: Law, swept: Swept, count: int) -> list[WorstCase]:
    """Repeat the worst runs of a controller in PyBullet, except those whose arm cannot be made.

    Args:
        law: the controller, with the points of its runs.
        swept: the runs of the controller.
        count: number of runs to repeat.
    """
    from twin.studies.sweeps.statistics import worst
    from twin.studies.sweeps.trial import TROUBLES

    made = np.flatnonzero(swept.table["trouble"] != TROUBLES.index("cannot be made"))
    places = made[worst(swept.table[made], swept.figure, min(count, len(made)))] if len(made) else []
    with drive_warnings_ignored():
        return [
            worst_case(law.experiment.task_of(values_of(law.points, int(k))), int(k), swept.table[k])
            for k in places
        ]


class WorstCase(NamedTuple):
    """Run of a sweep, and its repetition in PyBullet.

    Attributes:
        sample: index of its row in the table.
        row: its row of the table.
        command: command that repeats this run.
        run: the repetition in PyBullet.
        engine_error: largest joint error of the repetition, in [rad]; infinite if it ended early.
        difference: difference of its error from that in the table, in [rad]; NaN if either run ended early.
        limit: largest difference that the loop can make of rounding errors; infinite if unknown.
    """

    sample: int
    row: Any
    command: str
    run: Run
    engine_error: float
    difference: float
    limit: float

    @property
    def unit(self) -> str:
        """Unit of the joint error, which is that of the joint with the largest error."""
        figures, joint = self.run.figures, self.row["joint_error_joint"] - 1
        return "rad" if figures is None else joint_unit(figures.joint_kinds[joint])

    @property
    def agrees(self) -> bool:
        """Whether PyBullet agrees with the table."""
        if self.row["trouble"] or self.ended_early:
            return bool(self.row["trouble"]) == self.ended_early
        return self.difference <= self.limit

    @property
    def ended_early(self) -> bool:
        """Whether the run in PyBullet ended early."""
        return self.run.error is not None


def worst_case(task: Task, sample: int, row: Any) -> WorstCase:
    """Repeat a run of a sweep in PyBullet.

    Args:
        task: the scenario of the sweep, with the values of this run.
        sample: index of its row in the table.
        row: its row of the table.
    """
    run = run_one(task)
    error, limit = math.inf, math.inf
    if run.error is None and run.log is not None:
        error = float(np.max(np.abs(joint_error(run.log))))
        prediction = None if run.run is None else run.run.prediction
        limit = math.inf if prediction is None else whole_run_limit(run.log, prediction.rounding)
    found = float(row["joint_error"])
    difference = abs(error - found) if math.isfinite(error) and math.isfinite(found) else math.nan
    return WorstCase(sample, row, repeat_command(run), run.without_log(), error, difference, limit)
