"""`irb-twin sweep`: thousands of runs of a scenario whose numbers vary; and what `tune` shares with it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import controllers
from scenarios.cli.arguments import Call, Command, WrongUse, argument, count, option, output_file, section
from scenarios.cli.output import Files, apart, console, counted, duration, print_to_stderr
from scenarios.cli.settings import LAWS, LawSettings, changes_option, configs_of, limit_option
from scenarios.running import registry
from scenarios.running.registry import Scenario

if TYPE_CHECKING:
    from scenarios.sweeping.execute import Means
    from scenarios.sweeping.findings import Swept
    from scenarios.sweeping.plan import Plan
    from scenarios.sweeping.scenario_experiment import ScenarioExperiment

BESIDES = ("controller", "gui", "close_window")
"""Settings of every scenario that are no options of `sweep` and `tune`, or take several values."""
MEANS = "how it is run"


scenario_argument = partial(argument, "name or .py file of one; before any option", "SCENARIO", ())
samples_option = partial(option, metavar="N", read=count)
design_option = partial(
    option,
    "latin",
    "how draws are spread: evenly, by Latin hypercubes or Sobol sequences, or independently (default latin); "
    "--seed draws others",
)
"""Return the fields of the scenario, of `--samples` and of `--design`."""


@dataclass(frozen=True)
class MeansOptions:
    """Options that say who runs the draws."""

    engine: bool = option(False, "all in PyBullet, 30 to 40 times slower, and not compiled")
    workers: int | None = option(
        None, "processes on this machine (default: threads; with --engine a process a core)", "N", read=count
    )
    scheduler: str | None = option(None, "processes of a Dask cluster", "tcp://HOST:PORT")

    def chosen(self, keep: Path | None = None, resume: bool = False) -> Means:
        """Return who was chosen.

        Args:
            keep: where finished parts are kept.
            resume: whether to go on with those that are there.

        Raises:
            WrongUse: two were named.
        """
        from scenarios.sweeping.execute import Means

        if self.workers and self.scheduler:
            raise WrongUse(
                "--workers are processes of this machine, --scheduler has its own: give one of them"
            )
        return Means(self.engine, self.workers, self.scheduler, keep, resume)


def one_of_them(scenarios: Sequence[Scenario], where: str) -> Scenario:
    """The one scenario that was named.

    Args:
        scenarios: those that were.
        where: its name is to stand, as "before any option".

    Raises:
        WrongUse: there is none, or are several.
        TwinError: it does not load.
    """
    if len(scenarios) != 1:
        known = ", ".join(registry.titles())
        raise WrongUse(f"name one scenario {where}, got {len(scenarios)}: known are {known}")
    if scenarios[0].fault is not None:
        raise scenarios[0].fault
    return scenarios[0]


def experiments(
    given: Any, call: Call, scenario: Scenario, laws: Sequence[str], tool_error: bool
) -> list[ScenarioExperiment]:
    """Make the experiments, one a law.

    Args:
        given: options of `sweep` or `tune`.
        call: the settings that were given.
        scenario: what is followed.
        laws: under which control laws; empty for the scenario's.
        tool_error: whether the tool's error is asked for.
    """
    from scenarios.running.registry import scenario_argument_text
    from scenarios.sweeping.scenario_experiment import ScenarioExperiment

    word = scenario_argument_text(scenario.file, scenario.name)
    if word.endswith(".py"):  # which is found from the folder of another process, too
        word = str(Path(word).resolve())
    return [
        ScenarioExperiment(word, config, tool_error=tool_error, engine=given.means.engine)
        for config in configs_of(call.settings, scenario.Config, laws, given.laws, given.changes)
    ]


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to 1, got {text!r}")
    return share


@dataclass(frozen=True)
class Sweep(Command):
    """Run a scenario thousands of times, with numbers that vary: payload, friction, masses, gains, delay.

    Masses are those of the arm or of the controller's model. Tell the share of runs that hold, how the others
    fail, and on what it depends; do the worst runs again in PyBullet.

    A variation is NAME=TEXT; --list shows the names. Drawn at random, --samples times: 0:6 from 0 to 6;
    1:100:log each decade as likely; +-50% or +-0.5 about the nominal value; 3~0.5 normal with mean and
    deviation; ~10% normal about the nominal value. On a grid, at each point of which all draws are run:
    5:40:8 eight values; 0,2,4 these.

    Exit status: 0 the sweep was carried out, whether runs hold or not; 1 a file could not be written,
    PyBullet does otherwise than a worst run says, or fewer hold than --require-share wants; 2 wrong use.
    """

    usage = "irb-twin sweep SCENARIO --vary NAME=TEXT [NAME=TEXT ...] [options]"
    examples = """examples:
  irb-twin sweep joint_tracking --list --controller pd
  irb-twin sweep joint_tracking --controller pd pid --vary payload=0:6 model.mass=+-10% --samples 2000
  irb-twin sweep joint_tracking --controller pd --vary payload=0:6 bandwidth=5:40:8 --limit joint_error=0.05
  irb-twin sweep joint_tracking --drives rigid --vary drives.coulomb=+-50% --out sweep.csv --picture sweep.png
  irb-twin sweep joint_tracking --vary payload=0:6 --scheduler tcp://host:8786 --out sweep.csv
"""
    names_after = 0
    besides = BESIDES

    scenarios: tuple[str, ...] = scenario_argument()
    controller: tuple[str, ...] = option(
        (),
        f"control laws, each under the same draws: {', '.join(controllers.NAMES)}, or one of your own",
        "NAME",
    )
    listed: bool = option(False, "show what can vary, with nominal values and units, and end", flag="--list")
    vary: tuple[str, ...] = option((), "see above", "NAME=TEXT", group="what varies")
    samples: int = samples_option(1000, "random draws, each run at all points of the grid and with all laws")
    design: Literal["latin", "sobol", "random"] = design_option()
    limit: tuple[str, ...] = limit_option(group="what is judged")
    tool_error: bool = option(False, "tell the tool's error too, a tenth slower")
    figure: str = option("joint_error", "what the worst runs are the worst of, and colours mean", "FIGURE")
    worst: int = option(
        3, "do the K worst runs of each law again in PyBullet", "K", read=partial(count, least=0)
    )
    require_share: float | None = option(
        None,
        "exit status 1 unless the share that holds, the lower end of its interval, is at least this",
        "SHARE",
        read=_share,
    )
    means: MeansOptions = section(MeansOptions, MEANS)
    resume: bool = option(
        False,
        "go on with a sweep that was ended in the midst: the same command with the same --out, beside which "
        "finished parts are kept until the end",
        group=MEANS,
    )
    out: tuple[Path, ...] = option(
        (),
        "write a row a run: a .csv, a .parquet or both; without it only the summary is left",
        "FILE",
        suffix=(".csv", ".parquet"),
        group="files",
    )
    picture: Path | None = output_file(
        ".png", "draw where runs hold and fail, for each pair of inputs; of several laws one each"
    )
    json: Path | None = output_file(".json", "write every figure of the summary")
    laws: LawSettings = section(LawSettings, LAWS)
    changes: tuple[str, ...] = changes_option()

    def run(self, call: Call) -> int:
        """Plan, run, write, do the worst again, and tell."""
        scenario = one_of_them(call.scenarios, "before any option")
        if self.listed:
            return self._list(call, scenario)
        if any(path.suffix.lower() == ".parquet" for path in self.out):
            from twin.logs.columns import needed

            needed("pyarrow", "Parquet")

        from scenarios.sweeping.execute import forget, nominal_run, run_all, worst_of
        from scenarios.sweeping.findings import findings
        from scenarios.sweeping.summary import complaints, summary, total, worst_report, write_summary

        plan, means = self._planned(call, scenario), self._means()
        nominals = [nominal_run(plan, law, means.engine) for law in plan.laws]
        pairs = zip(nominals, plan.laws, strict=True)
        seconds = sum(nominal.seconds * len(law.points.values) for nominal, law in pairs)
        print_to_stderr(f"{plan.told()}, {_about(seconds, means)}")
        began = time.monotonic()
        with counted(scenario.name, plan.runs) as tell:
            swept = run_all(plan, nominals, means, tell)
        spent = time.monotonic() - began

        files = Files()  # before anything is printed: a reader may hang up
        self._write(plan, swept, files)
        if files.complete:
            forget(plan, means)
        found = [findings(law) for law in swept]
        worst = [
            worst_of(scenario, law, runs, self.worst) for law, runs in zip(plan.laws, swept, strict=True)
        ]
        files.write(self.json, partial(write_summary, plan=plan, laws=found, worst=worst))
        page = console()
        page.print(*summary(plan, found, page.width), sep="\n")
        if any(worst):
            page.print(
                "The worst runs, done again in PyBullet; with --gui after a command they can be watched"
            )
        for law, cases in zip(found, worst, strict=True):
            page.print(*worst_report(law.swept, cases), sep="\n", highlight=False, soft_wrap=True)
        page.print(total(plan, spent), style="bold", highlight=False)
        complete = files.name(page)
        broken = complaints(found, worst, self.require_share)
        for sentence in broken:
            print_to_stderr(sentence)
        return 0 if complete and not broken else 1

    def _experiments(self, call: Call, scenario: Scenario) -> list[ScenarioExperiment]:
        """Make the experiments, one a law."""
        asked = self.tool_error or any(text.startswith("tool_error") for text in (self.figure, *self.limit))
        laws = self.controller or list(scenario.side_by_side)
        return experiments(self, call, scenario, laws, asked)

    def _list(self, call: Call, scenario: Scenario) -> int:
        """`--list`: what can vary."""
        from scenarios.report.report import listing
        from scenarios.sweeping.summary import rows_of

        known = [one for experiment in self._experiments(call, scenario) for one in experiment.quantities()]
        page = console()
        page.print(*listing(rows_of(known), page.width), sep="\n", highlight=False)
        return 0

    def _planned(self, call: Call, scenario: Scenario) -> Plan:
        """Return what is to be run.

        Raises:
            WrongUse, TwinError, ValueError: it cannot be.
        """
        from scenarios.sweeping.plan import Law, Plan, limits, points_of, variations
        from twin.sweeps.design import Design

        varied, limited = variations(self.vary), limits([*self.limit])
        limits([f"{self.figure}=0"])  # there is such a figure
        experiments = self._experiments(call, scenario)
        design = Design(varied, self.samples, self.design, experiments[0].settings.seed)
        labels = controllers.labels(experiment.settings.controller for experiment in experiments)
        laws = [
            Law(labels[experiment.settings.controller], experiment, points_of(experiment, design))
            for experiment in experiments
        ]
        return Plan(scenario, tuple(laws), design, limited, self.figure)

    def _means(self) -> Means:
        """How it is to be run."""
        keep = self.out[0].with_name(f"{self.out[0].name}.parts") if self.out else None
        if self.resume and keep is None:
            raise WrongUse("--resume goes on beside the file of --out: name it")
        return self.means.chosen(keep, self.resume)

    def _write(self, plan: Plan, swept: Sequence[Swept], files: Files) -> None:
        """Write tables and pictures."""
        from twin.sweeps.table_files import write_tables

        tables = {law.label: law.table for law in swept}
        for path in self.out:
            files.write(path, partial(write_tables, tables=tables))
        if self.picture is not None:
            from scenarios.sweeping.pictures import draw, scale_of

            several = len(swept) > 1
            paths = apart(self.picture, [(law.label,) for law in swept]) if several else [self.picture]
            scale = scale_of(swept)  # the same colours in all
            for law, path in zip(swept, paths, strict=True):
                title = f"{plan.scenario.name} on {law.config.robot} under {law.label}"
                files.write(path, partial(draw, law, title=title, scale=scale))


def _about(seconds: float, means: Means) -> str:
    """How long it will take, of which the nominal runs tell; a cluster of others is not known."""
    from twin.threads import thread_count

    if means.scheduler:
        return f"some {duration(seconds)} of one processor, by {means.scheduler}"
    at_once = means.workers or thread_count()
    kind = "processes" if means.workers or means.engine else "threads"
    return f"about {duration(seconds / at_once)} by {at_once} {kind}"
