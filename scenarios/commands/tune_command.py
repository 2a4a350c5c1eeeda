"""`irb-twin tune`: gains of a law that hold for all draws of what varies, and make its error small."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.commands import sweep_options
from scenarios.console.output import Files, complain, console, writable
from scenarios.running import options
from scenarios.running.options import WrongUse

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.tuning.comparison import Task

ABOUT = """Find gains of a control law with which a scenario holds under all random draws of what varies,
and of those the gains with the least worst error or torque. Gains under which fewer runs fail are better; of
those under which as many fail, the figure decides. Then run default gains and tuned ones under the same
draws, and under fresh ones, and say what it was worth; the worst fresh runs are done again in PyBullet.

Gains are searched from a tenth of their default to ten times, of a vector by one factor for all joints, by
differential evolution: an even first generation, later ones bred of the best. Tuned gains are the same in all
draws; a law derives its default ones anew where it is told what varies, as of payload unless there is
--model-payload.

Exit status: 0 the search was carried out, whether it helped or not; 1 a file could not be written, or
PyBullet does otherwise than a worst run says; 2 wrong use. Ctrl-C ends it at once, and nothing is written."""
EXAMPLES = """examples:
  irb-twin tune pd joint_tracking --vary payload=0:6 --out gains.toml
  irb-twin tune pd joint_tracking --drives rigid --delay 3 --vary payload=0:6 drives.coulomb=+-50%
  irb-twin tune pid pose_path --vary model.mass=+-10% --gains Kp=0.5:5 Kd --of mean
  irb-twin tune ./my.py:Law joint_tracking --vary payload=0:6 --minimise rms_torque --limit joint_error=0.05
"""
MINIMISED = ("joint_error", "rms_error", "tool_error", "rms_torque")
SAMPLES, FRESH = 100, 1000


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line, with the settings of the scenario that was named."""
    parser = parsers.add_parser(
        "tune",
        help="find gains of a law that hold whatever varies",
        usage="irb-twin tune LAW SCENARIO [--vary NAME=TEXT ...] [options]",
        description=ABOUT,
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=tune)
    parser.add_argument(
        "law", nargs="?", metavar="LAW", help=f"{', '.join(controllers.NAMES)}, or one of your own"
    )
    sweep_options.add_scenario(parser)
    varied = parser.add_argument_group("what varies")
    varied.add_argument(
        "--vary", nargs="+", action="extend", default=[], metavar="NAME=TEXT",
        help="as in irb-twin sweep, which lists the names: payload=0:6, drives.coulomb=+-50%%, delay=0,3",
    )  # fmt: skip
    sweep_options.add_draws(varied, SAMPLES, "under each of which every set of gains is run")
    varied.add_argument(
        "--fresh", type=options.count, default=FRESH, metavar="N",
        help=f"draws of the next seed, under which both gains are judged (default {FRESH})",
    )  # fmt: skip
    wanted = parser.add_argument_group("what is wanted")
    wanted.add_argument(
        "--minimise", choices=MINIMISED, default="joint_error", metavar="|".join(MINIMISED),
        help="in rad, m, and of the drives' limits (default joint_error)",
    )  # fmt: skip
    wanted.add_argument(
        "--of", choices=("worst", "mean"), default="worst", help="its worst or its mean (default worst)"
    )
    sweep_options.add_limits(wanted)
    search = parser.add_argument_group("the search")
    search.add_argument(
        "--gains", nargs="+", action="extend", default=[], metavar="NAME[=RANGE]",
        help="what is searched, and from where to where: Kp=0.5:20, of a vector a factor on its default, of "
        "a number what it is (default: all gains, a tenth of the default to ten times)",
    )  # fmt: skip
    search.add_argument(
        "--evaluations", type=partial(options.count, least=5), metavar="N",
        help="sets of gains to try (default 120 for each gain that is searched)",
    )  # fmt: skip
    sweep_options.add_means(parser)
    files = parser.add_argument_group("files")
    files.add_argument(
        "--out", type=Path, metavar="FILE.toml", help="write the gains, for irb-twin run --settings"
    )
    files.add_argument("--json", type=Path, metavar="FILE.json", help="write every figure")
    options.add(parser, {scenario.name: scenario.Config for scenario in scenarios}, sweep_options.BESIDES)


def tune(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`tune`: search, compare, write, and tell."""
    task, means = _task(given, scenarios), sweep_options.means(given)
    for path, suffix, option in ((given.out, ".toml", "--out"), (given.json, ".json", "--json")):
        if path is not None:
            writable(path, suffix, option)

    from scenarios.console.progress import counted
    from scenarios.sweeping.summary import complaints, worst_report
    from scenarios.tuning import files as written
    from scenarios.tuning.comparison import compared
    from scenarios.tuning.conclusions import conclusions
    from scenarios.tuning.report import report
    from scenarios.tuning.tuned_law import chosen_gains
    from twin.sweeps.running import pool_for
    from twin.tuning.search import EVALUATIONS, tuned

    gains = chosen_gains(task.law, given.gains)
    points, design = task.points, task.fresh_design
    fresh = None if design is None else task.fresh_points(design)
    sets = given.evaluations or EVALUATIONS * len(gains)
    runs = (sets + 1) * len(points.values)
    compared_runs = 2 * (len(points.values) + (0 if fresh is None else len(fresh.values)))
    complain(
        f"{sets} sets of {len(gains)} gain{'s' * (len(gains) != 1)} x {len(points.values)} runs, "
        f"then {compared_runs} to compare"
    )
    with counted(f"tuning {task.law.scenario.settings.controller}", runs + compared_runs) as tell:
        with pool_for(means.engine, means.workers, means.scheduler) as pool:
            tuning = tuned(
                task.law, points, gains,
                minimise=task.minimise, of=task.of, limits=task.limits, evaluations=given.evaluations,
                seed=task.design.seed, engine=means.engine, pool=pool, progress=tell,
            )  # fmt: skip
        on_draws = compared(task, tuning, points, task.design, means, lambda done: tell(runs + done))
        on_fresh = None
        if design is not None and fresh is not None:
            before = runs + 2 * len(points.values)
            on_fresh = compared(task, tuning, fresh, design, means, lambda done: tell(before + done), again=1)

    sentences = list(conclusions(task, tuning, on_draws, on_fresh))
    files = Files()  # before anything is printed: a reader may hang up
    files.write(
        given.out,
        partial(written.write_gains, task=task, tuning=tuning, file=given.out, sentences=sentences),
    )
    files.write(
        given.json,
        partial(
            written.write_figures,
            task=task, tuning=tuning, on_draws=on_draws, on_fresh=on_fresh, sentences=sentences,
        ),
    )  # fmt: skip
    page = console()
    page.print(*report(task, tuning, on_draws, on_fresh, sentences), sep="\n", highlight=False)
    sides = () if on_fresh is None else (on_fresh.default, on_fresh.tuned)
    for side in sides:
        page.print(*worst_report(side.found.swept, side.worst), sep="\n", highlight=False, soft_wrap=True)
    complete = files.name(page)
    file = given.out if complete else None
    page.print(
        f"With the tuned gains: {written.command(task, tuning, file)}", highlight=False, soft_wrap=True
    )
    broken = complaints([side.found for side in sides], [side.worst for side in sides], None)
    for sentence in broken:
        complain(sentence)
    return 0 if complete and not broken else 1


def _task(given: argparse.Namespace, scenarios: list[Scenario]) -> Task:
    """What is to be tuned.

    Raises:
        WrongUse, TwinError, ValueError: it cannot be.
    """
    from scenarios.sweeping.plan import limits, variations
    from scenarios.tuning.comparison import Task
    from scenarios.tuning.tuned_law import TunedLaw
    from twin.sweeps.design import Design

    if given.law is None:
        raise WrongUse(
            f"name a law and a scenario, before any option: laws are {', '.join(controllers.NAMES)}"
        )
    controllers.require_known(given.law)
    scenario = sweep_options.one(scenarios, "after the law")
    limited = limits(given.limit)
    if given.minimise == "rms_torque" and not any(name.endswith("error") for name in limited):
        raise WrongUse(
            "--minimise rms_torque: an arm that hangs down needs least; limit an error, too, as --limit "
            "joint_error=0.01"
        )
    tool_error = "tool_error" in (given.minimise, *limited)
    (experiment,) = sweep_options.experiments(given, scenario, [given.law], tool_error)
    law = TunedLaw(experiment)
    varied = variations(given.vary) if given.vary else ()
    design = Design(varied, given.samples, given.design, law.scenario.settings.seed)
    return Task(scenario, law, design, limited, given.minimise, given.of, given.fresh)
