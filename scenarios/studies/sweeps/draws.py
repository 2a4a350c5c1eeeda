"""Execute a sweep controller by controller, and repeat its worst runs in PyBullet."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.judging.rounding import whole_run_limit
from scenarios.running.registry import Task
from scenarios.running.runs import Run, repeat_command, run_one
from scenarios.studies.sweeps.findings import Swept
from scenarios.studies.sweeps.plan import Law, SweepPlan, nominal_values, values_of
from twin.base.errors import DriveWarning
from twin.data.logs.figures import joint_error
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from scenarios.studies.sweeps.command import MeansOptions

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


def run_all(
    plan: SweepPlan, nominals: Sequence[Nominal], means: MeansOptions, progress: Callable[[int], None],
    *, chunks: Path | None = None, resume: bool = False,
) -> list[Swept]:  # fmt: skip
    """Run all points of all controllers.

    Args:
        plan: the plan of the sweep.
        nominals: the nominal run of each controller.
        means: the means of execution.
        progress: function that is called with the number of finished runs.
        chunks: folder for the finished chunks; `None` to store none.
        resume: whether to reuse the finished chunks in this folder.

    Raises:
        TwinError: the folder contains chunks of another sweep, or no processes are available.
    """
    from twin.studies.sweeps.pools import pool_for
    from twin.studies.sweeps.running import run_points
    from twin.studies.sweeps.statistics import decisive_figure

    tables, before = [], 0
    engine = any(law.experiment.needs_engine for law in plan.laws)
    with drive_warnings_ignored(), pool_for(engine, means.jobs, means.scheduler) as pool:
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
