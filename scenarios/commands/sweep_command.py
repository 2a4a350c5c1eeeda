"""`irb-twin sweep`: thousands of runs of a scenario whose numbers vary."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.commands import sweep_options
from scenarios.console.output import Files, apart, complain, console, writable
from scenarios.running import options
from scenarios.running.options import WrongUse

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.sweeping.carrying_out import Means
    from scenarios.sweeping.findings import Swept
    from scenarios.sweeping.plan import Plan
    from scenarios.sweeping.scenario_experiment import ScenarioExperiment

ABOUT = """Run a scenario thousands of times, with numbers that vary: payload, friction, masses of the arm or
of the controller's model, gains, delay. Tell the share of runs that hold, how the others fail, and on what it
depends; do the worst runs again in PyBullet.

A variation is NAME=TEXT; --list shows the names. Drawn at random, --samples times: 0:6 from 0 to 6;
1:100:log each decade as likely; +-50% or +-0.5 about the nominal value; 3~0.5 normal with mean and deviation;
~10% normal about the nominal value. On a grid, at each point of which all draws are run: 5:40:8 eight values;
0,2,4 these.

Exit status: 0 the sweep was carried out, whether runs hold or not; 1 a file could not be written, PyBullet
does otherwise than a worst run says, or fewer hold than --require-share wants; 2 wrong use."""
EXAMPLES = """examples:
  irb-twin sweep joint_tracking --list --controller pd
  irb-twin sweep joint_tracking --controller pd pid --vary payload=0:6 model.mass=+-10% --samples 2000
  irb-twin sweep joint_tracking --controller pd --vary payload=0:6 bandwidth=5:40:8 --limit joint_error=0.05
  irb-twin sweep joint_tracking --drives rigid --vary drives.coulomb=+-50% --out sweep.csv --picture sweep.png
  irb-twin sweep joint_tracking --vary payload=0:6 --scheduler tcp://host:8786 --out sweep.csv
"""
SAMPLES, WORST = 1000, 3


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line, with the settings of the scenario that was named."""
    parser = parsers.add_parser(
        "sweep",
        help="run a scenario thousands of times with numbers that vary",
        usage="irb-twin sweep SCENARIO --vary NAME=TEXT [NAME=TEXT ...] [options]",
        description=ABOUT,
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=sweep)
    sweep_options.add_scenario(parser)
    parser.add_argument(
        "--controller", nargs="+", default=[], metavar="NAME",
        help=f"control laws, each under the same draws: {', '.join(controllers.NAMES)}, or one of your own",
    )  # fmt: skip
    parser.add_argument(
        "--list", action="store_true", help="show what can vary, with nominal values and units, and end"
    )
    points = parser.add_argument_group("what varies")
    points.add_argument(
        "--vary", nargs="+", action="extend", default=[], metavar="NAME=TEXT", help="see above"
    )
    sweep_options.add_draws(points, SAMPLES, "each run at all points of the grid and with all laws")
    judged = parser.add_argument_group("what is judged")
    sweep_options.add_limits(judged)
    judged.add_argument("--tool-error", action="store_true", help="tell the tool's error too, a tenth slower")
    judged.add_argument(
        "--figure", default="joint_error",
        help="what the worst runs are the worst of, and colours mean (default joint_error)",
    )  # fmt: skip
    judged.add_argument(
        "--worst", type=partial(options.count, least=0), default=WORST, metavar="K",
        help=f"do the K worst runs of each law again in PyBullet (default {WORST})",
    )  # fmt: skip
    judged.add_argument(
        "--require-share", type=_share, metavar="SHARE",
        help="exit status 1 unless the share that holds, the lower end of its interval, is at least this",
    )  # fmt: skip
    means = sweep_options.add_means(parser)
    means.add_argument(
        "--resume", action="store_true",
        help="go on with a sweep that was ended in the midst: the same command with the same --out, beside "
        "which finished parts are kept until the end",
    )  # fmt: skip
    files = parser.add_argument_group("files")
    files.add_argument(
        "--out", nargs="+", type=Path, default=[], metavar="FILE",
        help="write a row a run: a .csv, a .parquet or both; without it only the summary is left",
    )  # fmt: skip
    files.add_argument(
        "--picture", type=Path, metavar="FILE.png",
        help="draw where runs hold and fail, for each pair of inputs; of several laws one each",
    )  # fmt: skip
    files.add_argument("--json", type=Path, metavar="FILE.json", help="write every figure of the summary")
    options.add(parser, {scenario.name: scenario.Config for scenario in scenarios}, sweep_options.BESIDES)
    options.add_changes(parser)


def sweep(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`sweep`: plan, run, write, do the worst again, and tell."""
    scenario = sweep_options.one(scenarios, "before any option")
    if given.list:
        return _list(given, scenario)
    _check_files(given)

    from scenarios.console.progress import counted, duration
    from scenarios.sweeping.carrying_out import carried_out, forget, nominal_run, worst_of
    from scenarios.sweeping.findings import findings
    from scenarios.sweeping.summary import complaints, summary, total, worst_report
    from scenarios.sweeping.summary_file import write_summary

    plan, means = _planned(given, scenario), _means(given)
    nominals = [nominal_run(plan, law, means.engine) for law in plan.laws]
    pairs = zip(nominals, plan.laws, strict=True)
    seconds = sum(nominal.seconds * len(law.points.values) for nominal, law in pairs)
    complain(f"{plan.told()}, {_about(seconds, means, duration)}")
    began = time.monotonic()
    with counted(scenario.name, plan.runs) as tell:
        swept = carried_out(plan, nominals, means, tell)
    spent = time.monotonic() - began

    files = Files()  # before anything is printed: a reader may hang up
    _write(given, plan, swept, files)
    if files.complete:
        forget(plan, means)
    found = [findings(law) for law in swept]
    worst = [worst_of(scenario, law, runs, given.worst) for law, runs in zip(plan.laws, swept, strict=True)]
    files.write(given.json, partial(write_summary, plan=plan, laws=found, worst=worst))
    page = console()
    page.print(*summary(plan, found, page.width), sep="\n")
    if any(worst):
        page.print("The worst runs, done again in PyBullet; with --gui after a command they can be watched")
    for law, cases in zip(found, worst, strict=True):
        page.print(*worst_report(law.swept, cases), sep="\n", highlight=False, soft_wrap=True)
    page.print(total(plan, spent), style="bold", highlight=False)
    complete = files.name(page)
    broken = complaints(found, worst, given.require_share)
    for sentence in broken:
        complain(sentence)
    return 0 if complete and not broken else 1


def _experiments(given: argparse.Namespace, scenario: Scenario) -> list[ScenarioExperiment]:
    """What is run, one a law."""
    asked = given.tool_error or any(text.startswith("tool_error") for text in (given.figure, *given.limit))
    laws = given.controller or list(scenario.side_by_side)
    return sweep_options.experiments(given, scenario, laws, asked)


def _list(given: argparse.Namespace, scenario: Scenario) -> int:
    """`--list`: what can vary."""
    from scenarios.reports.report import listing
    from scenarios.sweeping.listed import rows_of

    known = [one for experiment in _experiments(given, scenario) for one in experiment.quantities()]
    page = console()
    page.print(*listing(rows_of(known), page.width), sep="\n", highlight=False)
    return 0


def _planned(given: argparse.Namespace, scenario: Scenario) -> Plan:
    """What is to be run.

    Raises:
        WrongUse, TwinError, ValueError: it cannot be.
    """
    from scenarios.sweeping.plan import Law, Plan, limits, points_of, variations
    from twin.sweeps.design import Design

    varied, limited = variations(given.vary), limits([*given.limit])
    limits([f"{given.figure}=0"])  # there is such a figure
    experiments = _experiments(given, scenario)
    design = Design(varied, given.samples, given.design, experiments[0].settings.seed)
    labels = controllers.labels(experiment.settings.controller for experiment in experiments)
    laws = [
        Law(labels[experiment.settings.controller], experiment, points_of(experiment, design))
        for experiment in experiments
    ]
    return Plan(scenario, tuple(laws), design, limited, given.figure)


def _means(given: argparse.Namespace) -> Means:
    """How it is to be run."""
    keep = given.out[0].with_name(f"{given.out[0].name}.parts") if given.out else None
    if given.resume and keep is None:
        raise WrongUse("--resume goes on beside the file of --out: name it")
    return sweep_options.means(given, keep, given.resume)


def _about(seconds: float, means: Means, duration: Callable[[float], str]) -> str:
    """How long it will take, of which the nominal runs tell; a cluster of others is not known."""
    from twin.threads import thread_count

    if means.scheduler:
        return f"some {duration(seconds)} of one processor, by {means.scheduler}"
    at_once = means.workers or thread_count()
    kind = "processes" if means.workers or means.engine else "threads"
    return f"about {duration(seconds / at_once)} by {at_once} {kind}"


def _check_files(given: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before anything is run."""
    from twin.logs.table_files import needed

    for path in given.out:
        writable(path, (".csv", ".parquet"), "--out")
    if any(path.suffix.lower() == ".parquet" for path in given.out):
        needed("pyarrow", "Parquet")
    for path, suffix, option in ((given.picture, ".png", "--picture"), (given.json, ".json", "--json")):
        if path is not None:
            writable(path, suffix, option)


def _write(given: argparse.Namespace, plan: Plan, swept: Sequence[Swept], files: Files) -> None:
    """Write tables and pictures."""
    from twin.sweeps.table_files import write_tables

    tables = {law.label: law.table for law in swept}
    for path in given.out:
        files.write(path, partial(write_tables, tables=tables))
    if given.picture is not None:
        from scenarios.sweeping.pictures import draw, scale_of

        several = len(swept) > 1
        paths = apart(given.picture, [(law.label,) for law in swept]) if several else [given.picture]
        scale = scale_of(swept)  # the same colours in all
        for law, path in zip(swept, paths, strict=True):
            title = f"{plan.scenario.name} on {law.config.robot} under {law.label}"
            files.write(path, partial(draw, law, title=title, scale=scale))


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to 1, got {text!r}")
    return share
