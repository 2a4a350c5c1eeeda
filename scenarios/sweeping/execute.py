"""A sweep carried out, law by law; its worst runs are done again in PyBullet."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scenarios.base import Config
from scenarios.checks.replay import whole_run_limit
from scenarios.running.registry import Scenario
from scenarios.running.runs import Run, repeat_command, run_one
from scenarios.sweeping.findings import Swept
from scenarios.sweeping.plan import Law, Plan, nominal_values, values_of
from twin.errors import DriveWarning
from twin.logs.figures import joint_error
from twin.robot.limits import joint_unit

TIMED = 10
"""Runs of a law, of which it is told how long all will take: a call of compiled code costs as much as one."""


class Means(NamedTuple):
    """How a sweep is carried out.

    Attributes:
        engine: by PyBullet, and not by compiled rollouts.
        workers: processes on this machine; `None` for threads of this one, or with `engine` one a core.
        scheduler: address of a Dask cluster.
        keep: folder for the chunks that are finished; `None` to keep none.
        resume: go on with those that are there.
    """

    engine: bool = False
    workers: int | None = None
    scheduler: str | None = None
    keep: Path | None = None
    resume: bool = False


class Nominal(NamedTuple):
    """The run of a law in which nothing varies: its row, and the processor's time that it takes, in [s]."""

    row: np.void
    seconds: float


def nominal_run(plan: Plan, law: Law, engine: bool) -> Nominal:
    """Run a law with nominal values; what cannot be run so ends the sweep here, before it begins.

    Raises:
        TwinError, ValueError: there is no such loop.
    """
    from twin.dynamics.flexible_joint import warn_of_unresolved_springs
    from twin.sweeps import evaluation

    values = nominal_values(law.experiment, plan.design)
    warn_of_unresolved_springs((trial := law.experiment.trial(values)).plant, trial.time_step)
    evaluate = evaluation.engine_outcomes if engine else evaluation.outcomes
    with drives_told():
        table = evaluate([trial])  # compiles, too
        count = 1 if engine else TIMED
        began = time.process_time()
        evaluate([law.experiment.trial(values) for _ in range(count)])
    return Nominal(evaluation.verdict(table, plan.limits)[0], (time.process_time() - began) / count)


@contextmanager
def drives_told() -> Iterator[None]:
    """Say nothing of drives in the block: of the nominal ones it was said, and others are much the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriveWarning)
        yield


def run_all(
    plan: Plan, nominals: Sequence[Nominal], means: Means, tell: Callable[[int], None]
) -> list[Swept]:
    """Run all points of all laws.

    Args:
        plan: what to run.
        nominals: of each law.
        means: how.
        tell: called with the number of runs that are done.

    Raises:
        TwinError: chunks of another sweep are kept there; no processes, or none that answer.
    """
    from twin.sweeps.pools import pool_for
    from twin.sweeps.running import run_points

    swept, before = [], 0
    with drives_told(), pool_for(means.engine, means.workers, means.scheduler) as pool:
        for law, nominal in zip(plan.laws, nominals, strict=True):
            table = run_points(
                law.experiment,
                law.points,
                limits=plan.limits,
                engine=means.engine,
                pool=pool,
                keep=_kept(means, law),
                resume=means.resume,
                progress=lambda done, _, before=before: tell(before + done),
            )
            before += len(table)
            swept.append(_swept(plan, law, table, nominal))
    return swept


def _swept(plan: Plan, law: Law, table: np.ndarray, nominal: Nominal) -> Swept:
    return Swept(
        label=law.label,
        config=law.experiment.settings,
        names=plan.names,
        grid=plan.grid,
        decades=plan.decades,
        table=table,
        nominal=nominal.row,
        limits=plan.limits,
        leaves_limits=bool(plan.scenario.leaves_limits),
        figure=plan.figure,
    )


def forget(plan: Plan, means: Means) -> None:
    """Remove the chunks that were kept, once the tables are written."""
    from twin.sweeps.running import remove_chunks

    if means.keep is not None:
        for law in plan.laws:
            remove_chunks(_kept(means, law) or means.keep)
        with suppress(OSError):  # there is something else in it
            means.keep.rmdir()


def _kept(means: Means, law: Law) -> Path | None:
    """The folder of a law's chunks."""
    return means.keep and means.keep / re.sub(r"[^\w.+-]+", "_", law.label)


def worst_of(scenario: Scenario, law: Law, swept: Swept, count: int) -> list[WorstCase]:
    """The worst runs of a law, again in PyBullet; those of which there is no such arm are passed over.

    Args:
        scenario: of the sweep.
        law: its points tell the values.
        swept: its runs.
        count: how many.
    """
    from twin.sweeps.statistics import worst
    from twin.sweeps.trial import TROUBLES

    made = np.flatnonzero(swept.table["trouble"] != TROUBLES.index("cannot be made"))
    places = made[worst(swept.table[made], swept.figure, min(count, len(made)))] if len(made) else []
    with drives_told():
        return [
            worst_case(scenario, law.experiment.config(values_of(law.points, int(k))), int(k), swept.table[k])
            for k in places
        ]


class WorstCase(NamedTuple):
    """A run of a sweep, and what PyBullet made of it.

    Attributes:
        sample: its row in the table.
        row: of the table.
        command: repeats it alone.
        run: what came of it in PyBullet.
        engine_error: the largest joint error there, in [rad]; infinite where the run ended early.
        apart: what its error differs by from that of the table, in [rad]; NaN where either run ended early.
        limit: what it may differ by: what the loop makes of rounding; infinite where that is not known.
    """

    sample: int
    row: Any
    command: str
    run: Run
    engine_error: float
    apart: float
    limit: float

    @property
    def unit(self) -> str:
        """Unit of the joint error: that of the joint which is furthest off."""
        figures, joint = self.run.figures, self.row["joint_error_joint"] - 1
        return "rad" if figures is None else joint_unit(figures.joint_kinds[joint])

    @property
    def agrees(self) -> bool:
        """Whether PyBullet did what the table says."""
        if self.row["trouble"] or self.ended_early:
            return bool(self.row["trouble"]) == self.ended_early
        return self.apart <= self.limit

    @property
    def ended_early(self) -> bool:
        """Whether the run in PyBullet did."""
        return self.run.error is not None


def worst_case(scenario: Scenario, config: Config, sample: int, row: Any) -> WorstCase:
    """Do a run of a sweep again.

    Args:
        scenario: of the sweep.
        config: its settings, with the values of this run.
        sample: its row in the table.
        row: of the table.
    """
    run = run_one(scenario, config)
    error, limit = math.inf, math.inf
    if run.error is None and run.log is not None:
        error = float(np.max(np.abs(joint_error(run.log))))
        limit = whole_run_limit(run.log) if "spread" in run.log.arrays else math.inf
    found = float(row["joint_error"])
    apart = abs(error - found) if math.isfinite(error) and math.isfinite(found) else math.nan
    return WorstCase(sample, row, repeat_command(run), run.without_log(), error, apart, limit)
