"""`irb-twin sweep`: thousands of runs of a scenario whose numbers vary; and what `tune` shares with it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import controllers
from scenarios.options import argument, option, output_file, section
from scenarios.running import registry
from scenarios.running.registry import Entry
from scenarios.shell import process
from scenarios.shell.output import Files, apart, console, counted, duration, print_to_stderr
from scenarios.shell.parser import Call, Command, count, number_within
from scenarios.shell.settings import LAWS, LawSettings, changes_option, limit_option, limits_of, tasks_of
from twin.base.errors import WrongUse

if TYPE_CHECKING:
    from scenarios.studies.sweeps.plan import Law, SweepPlan, Swept
    from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment
    from twin.studies.sweeps.pools import Pool

BESIDES = ("controller", "gui", "close_window")
"""Settings of scenarios that `sweep` and `tune` do not offer, or for which they have a different option."""
MEANS = "execution"


scenario_argument = partial(
    argument, "name or .py file of a scenario; it stands before all options", "SCENARIO", ()
)
samples_option = partial(option, metavar="N", read=count)
design_option = partial(
    option,
    "latin",
    "sampling of the random draws: Latin hypercube, Sobol sequence, or independent (default latin); --seed "
    "changes the draws",
)
"""Return the fields of the scenario, of `--samples` and of `--design`."""


@dataclass(frozen=True)
class MeansOptions:
    """Options for the processors that run the draws."""

    engine: bool = option(
        False, "simulate in PyBullet, 30 to 40 times slower; Python functions always run so"
    )
    jobs: int | None = option(
        None,
        "number of parallel processes on this machine (default: threads; in PyBullet one process per core)",
        "N",
        read=count,
    )
    scheduler: str | None = option(None, "use the processes of a Dask cluster", "tcp://HOST:PORT")

    def __post_init__(self) -> None:
        if self.jobs and self.scheduler:
            raise WrongUse(
                "--jobs excludes --scheduler: it starts processes on this machine, not on the cluster"
            )

    def pool(self, engine: bool) -> Pool:
        """Open the pool for the runs, which are in PyBullet or in compiled code."""
        from twin.studies.sweeps.pools import pool_for

        return pool_for(engine, self.jobs, self.scheduler)


def require_one_scenario(scenarios: Sequence[Entry], where: str) -> Entry:
    """Return the only scenario that was named.

    Args:
        scenarios: the named scenarios.
        where: where the name must stand, as "before all options".

    Raises:
        WrongUse: no scenario or several scenarios were named.
        TwinError: the scenario cannot be loaded.
    """
    if len(scenarios) != 1:
        known = ", ".join(registry.BUILT_IN)
        raise WrongUse(f"name one scenario {where}, got {len(scenarios)}: known are {known}")
    if scenarios[0].fault is not None:
        raise scenarios[0].fault
    return scenarios[0]


def experiments(
    given: Any, call: Call, scenario: Entry, laws: Sequence[str], needed: Collection[str]
) -> list[ScenarioExperiment]:
    """Make the experiments, one per controller.

    Args:
        given: options of `sweep` or `tune`.
        call: the settings that were given.
        scenario: the scenario.
        laws: names of the controllers; empty for the scenario's default.
        needed: figures to compute, beyond those that every run has.
    """
    from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment
    from twin.studies.sweeps.trial import LOAD_FIGURES

    tool_error, loads = "tool_error" in needed, not set(LOAD_FIGURES).isdisjoint(needed)
    tasks = tasks_of(call.settings, scenario, laws, given.laws, given.changes)
    return [
        ScenarioExperiment(task, tool_error=tool_error, loads=loads, engine=given.means.engine)
        for task in tasks
    ]


def require_figures(experiments: Sequence[ScenarioExperiment], named: Mapping[str, Collection[str]]) -> None:
    """Give all controllers the same metrics, and require that named quantities are figures or metrics.

    Args:
        experiments: the experiments, one per controller; one whose nominal run ends early knows no metrics.
        named: names by option.

    Raises:
        WrongUse: a name is unknown.
    """
    from twin.studies.sweeps.trial import FIGURES

    metrics = {name: unit for one in experiments for name, unit in one.metrics.items()}
    for experiment in experiments:
        experiment.metrics = metrics
    known = (*FIGURES, *metrics)
    for flag, names in named.items():
        if unknown := [name for name in names if name not in known]:
            raise WrongUse(f"{flag}: unknown quantity {unknown[0]!r}: known are {', '.join(known)}")


def print_python_cost(law: Law, seconds: float, runs: int) -> None:
    """Print how long a controller takes that cannot be compiled; nothing with `--engine`.

    Args:
        law: the controller.
        seconds: processor time of one run, in [s].
        runs: number of runs.
    """
    if law.experiment.needs_engine and not law.experiment.engine:
        print_to_stderr(
            f"controller {law.label} is a Python function: about {seconds:.2g} s a run in PyBullet, "
            f"{runs} runs take some {duration(seconds * runs)} of processor time"
        )


class Sweep(Command):
    """Run a scenario thousands of times with varied parameters, such as payload, friction, gains or delay.

    Masses of the arm or of the controller's model vary, too. The sweep reports which share of the runs
    passes, how the others fail, and which parameters matter. It repeats the worst runs in PyBullet.

    A variation is NAME=TEXT; --list shows the names. Random draws (--samples of them): 0:6 is uniform from 0
    to 6; 1:100:log is uniform in the logarithm; +-50% or +-0.5 is uniform about the nominal value; 3~0.5 is
    normal with mean 3 and standard deviation 0.5; ~10% is normal about the nominal value. Grids, at each
    point of which all draws are run: 5:40:8 is eight values from 5 to 40; 0,2,4 is these values. With :each
    behind it, as drives.coulomb=+-50%:each, a variation applies to each axis or link by itself.

    Exit status: 0 the sweep finished, whether its runs pass or fail; 1 a file could not be written, PyBullet
    disagrees with a worst run, or fewer runs pass than --require-share demands; 2 wrong use.
    """

    usage = "irb-twin sweep SCENARIO --vary NAME=TEXT [NAME=TEXT ...] [options]"
    examples = """examples:
  irb-twin sweep joint_tracking --list --controller pd
  irb-twin sweep joint_tracking --controller pd pid --vary payload=0:6 model.mass=+-10% --samples 2000
  irb-twin sweep joint_tracking --controller pd --vary payload=0:6 bandwidth=5:40:8 --limit joint_error=0.05
  irb-twin sweep joint_tracking --drives rigid --vary drives.coulomb=+-50%:each --out sweep.csv
  irb-twin sweep joint_tracking --controller ./my.py:Law --vary payload=0:6 --samples 50
  irb-twin sweep joint_tracking --vary payload=0:6 --scheduler tcp://host:8786 --out sweep.csv
"""
    names_after = 0
    besides = BESIDES

    scenarios: tuple[str, ...] = scenario_argument()
    controller: tuple[str, ...] = option(
        (),
        f"controllers, each with the same draws: {', '.join(controllers.NAMES)}, or a class of yours",
        "NAME",
    )
    listed: bool = option(
        False, "list the parameters that can vary, with nominal values and units, and exit", flag="--list"
    )
    vary: tuple[str, ...] = option((), "parameters to vary, see above", "NAME=TEXT", group="variation")
    samples: int = samples_option(
        1000, "number of random draws; each is run at all points of the grid and with all controllers"
    )
    design: Literal["latin", "sobol", "random"] = design_option()
    limit: tuple[str, ...] = limit_option(group="evaluation")
    tool_error: bool = option(False, "also report the tool's error, which takes a tenth longer")
    figure: str | None = option(
        None,
        "quantity of the importances, the worst runs and the pictures: one that --limit accepts (default: "
        "the one with the limit; of several the one that most runs exceed; joint_error without any)",
        "FIGURE",
    )
    worst: int = option(
        3, "repeat the K worst runs of each controller in PyBullet", "K", read=partial(count, least=0)
    )
    require_share: float | None = option(
        None,
        "exit with status 1 unless the lower confidence bound of the share of passing runs is at least SHARE",
        "SHARE",
        read=partial(number_within, low=0.0, high=1.0, what="a share from 0 to 1"),
    )
    means: MeansOptions = section(MeansOptions, MEANS)
    resume: bool = option(
        False,
        "continue an interrupted sweep: give the same command with the same --out; finished parts are stored "
        "beside this file until the end",
        group=MEANS,
    )
    out: tuple[Path, ...] = option(
        (),
        "write one row per run: a .csv, a .parquet or both",
        "FILE",
        suffix=(".csv", ".parquet"),
        group="files",
    )
    picture: Path | None = output_file(
        ".png", "plot where runs pass and fail, for each pair of inputs; one picture per controller"
    )
    json: Path | None = output_file(".json", "write all values of the summary")
    laws: LawSettings = section(LawSettings, LAWS)
    changes: tuple[str, ...] = changes_option()

    def run(self, call: Call) -> int:
        """Run the sweep, write its files, repeat the worst runs, and print the summary."""
        scenario = require_one_scenario(call.scenarios, "before all options")
        if self.listed:
            return self._list(call, scenario)
        if any(path.suffix.lower() == ".parquet" for path in self.out):
            from twin.data.logs.columns import import_optional

            import_optional("pyarrow", "Parquet")

        from scenarios.studies.sweeps.plan import nominal_run, remove_stored_chunks, run_all, worst_of
        from scenarios.studies.sweeps.summary import (
            complaints,
            findings,
            summary,
            total,
            worst_report,
            write_summary,
        )

        plan, chunks = self._planned(call, scenario), self._chunk_folder()
        nominals = [nominal_run(plan, law) for law in plan.laws]
        seconds = 0.0
        for nominal, law in zip(nominals, plan.laws, strict=True):
            seconds += nominal.seconds * len(law.points.values)
            print_python_cost(law, nominal.seconds, len(law.points.values))
        repeats = f", then {self.worst * len(plan.laws)} again in PyBullet" if self.worst else ""
        print_to_stderr(f"{plan.size_text()}, {_about(seconds, self.means, plan)}{repeats}")
        began = time.monotonic()
        advice = [] if chunks is None else ["continue with the same command and --resume"]
        with process.advised(advice), counted(scenario.name, plan.runs) as update:
            swept = run_all(plan, nominals, self.means.pool, update, chunks=chunks, resume=self.resume)
        spent = time.monotonic() - began

        files = Files()  # before anything is printed: the reader may close the pipe
        self._write(plan, swept, files)
        if files.complete and chunks is not None:
            remove_stored_chunks(plan, chunks)
        each = zip(plan.laws, swept, strict=True)
        found = [findings(runs, worst_of(law, runs, self.worst)) for law, runs in each]
        files.write(self.json, partial(write_summary, plan=plan, laws=found))
        page = console()
        page.print(*summary(plan, found, page.width), sep="\n")
        if any(law.worst for law in found):
            page.print("The worst runs, repeated in PyBullet; add --gui to a command to watch the run")
        for law in found:
            page.print(*worst_report(law), sep="\n", soft_wrap=True)
        page.print(total(plan, spent), style="bold")
        complete = files.name(page)
        broken = complaints(found, self.require_share)
        for sentence in broken:
            print_to_stderr(sentence)
        return 0 if complete and not broken else 1

    def _experiments(self, call: Call, scenario: Entry) -> list[ScenarioExperiment]:
        """Make the experiments, one per controller."""
        needed = {
            self.figure or "",
            *limits_of(self.limit, metrics=True),
            *(["tool_error"] if self.tool_error else []),
        }
        laws = self.controller or list(scenario.kind.side_by_side)
        return experiments(self, call, scenario, laws, needed)

    def _list(self, call: Call, scenario: Entry) -> int:
        """Print the parameters that can vary, for `--list`."""
        from scenarios.report.documents import listing
        from scenarios.studies.sweeps.summary import rows_of

        known = [one for experiment in self._experiments(call, scenario) for one in experiment.quantities()]
        page = console()
        page.print(*listing(rows_of(known), page.width), sep="\n")
        return 0

    def _planned(self, call: Call, scenario: Entry) -> SweepPlan:
        """Return the plan of the sweep.

        Raises:
            WrongUse, TwinError, ValueError: the options do not make a valid plan.
        """
        from scenarios.studies.sweeps.plan import Law, SweepPlan, mark_absent, points_of, variations
        from twin.physics.engine.client import require_engine
        from twin.studies.sweeps.design import Design

        limited = limits_of(self.limit, metrics=True)
        experiments = self._experiments(call, scenario)
        if self.worst or any(experiment.needs_engine for experiment in experiments):
            require_engine("a twin.ControlLaw is swept without it with --worst 0")
        require_figures(experiments, {"--limit": limited, "--figure": [self.figure] if self.figure else []})
        varied = variations(self.vary, experiments[0])
        mark_absent(experiments, (one.name for one in varied))
        design = Design(varied, self.samples, self.design, experiments[0].setup.seed)
        labels = controllers.labels(experiment.setup.controller for experiment in experiments)
        laws = [
            Law(labels[experiment.setup.controller], experiment, points_of(experiment, design))
            for experiment in experiments
        ]
        return SweepPlan(scenario, tuple(laws), design, limited, self.figure)

    def _chunk_folder(self) -> Path | None:
        """Return the folder for finished parts, beside the first table; `None` without a table."""
        if self.resume and not self.out:
            raise WrongUse("--resume requires --out: finished parts are stored beside that file")
        return self.out[0].with_name(f"{self.out[0].name}.parts") if self.out else None

    def _write(self, plan: SweepPlan, swept: Sequence[Swept], files: Files) -> None:
        """Write the tables and pictures."""
        from twin.studies.sweeps.running import write_tables

        tables = {law.label: law.table for law in swept}
        for path in self.out:
            files.write(path, partial(write_tables, tables=tables))
        if self.picture is not None:
            from scenarios.studies.sweeps.pictures import draw, scale_of

            several = len(swept) > 1
            paths = apart(self.picture, [(law.label,) for law in swept]) if several else [self.picture]
            scale = scale_of(swept)  # the same colours in all pictures
            for law, path in zip(swept, paths, strict=True):
                title = f"{plan.scenario.name} on {law.setup.robot} with {law.label}"
                files.write(path, partial(draw, law, title=title, scale=scale))


def _about(seconds: float, means: MeansOptions, plan: SweepPlan) -> str:
    """Estimate the duration from the nominal runs; the speed of a cluster is unknown."""
    from twin.base.threads import thread_count

    if means.scheduler:
        return f"about {duration(seconds)} of processor time, on {means.scheduler}"
    at_once = means.jobs or thread_count()
    engine = any(law.experiment.needs_engine for law in plan.laws)
    kind = "processes" if means.jobs or engine else "threads"
    return f"about {duration(seconds / at_once)} with {at_once} {kind}"
