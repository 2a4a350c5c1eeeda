"""The command `irb-twin`: list what there is, run scenarios, validate everything, print formulas.

Exit status: 0 everything holds; 1 a check does not hold, a run did not finish, or a file could not be
written; 2 wrong use, with one sentence on standard error.  Whoever reads what is printed and hangs up, as
`head` does, changes nothing in it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import controllers
from scenarios.commands import commands, output
from scenarios.running import options, registry
from scenarios.running.options import Parser, WrongUse
from twin.errors import TwinError

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario

EXAMPLES = """examples:
  irb-twin list
  irb-twin run pose_path --controller computed_torque pd
  irb-twin run gravity_hold joint_tracking --controller pid --bandwidth 30
  irb-twin run pose_path --csv my_path.csv --picture error.png --log run.npz
  irb-twin run pose_path --gui
  irb-twin run ./my_scenario.py --help
  irb-twin run parallelogram --model exact
  irb-twin validate --junit results.xml
  irb-twin published --source Norrlöf
  irb-twin formulas main_axes
  irb-twin check-model my_robot.urdf
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says.

    Args:
        argv: the words after the command's name; `None` for those of the process.

    Returns:
        The exit status: 0, 1 or 2.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    output.printable()
    try:
        with output.warnings_told():
            status = _dispatch(words)
    except BrokenPipeError:  # whoever reads the help has seen enough
        output.hang_up()
        status = 0
    except (WrongUse, TwinError, ValueError, OSError) as error:
        output.complain(str(error))
        status = 2
    except SystemExit as done:  # argparse, after --help
        status = int(done.code or 0)
    except KeyboardInterrupt:
        output.complain("interrupted")
        status = 130
    return output.flushed(status)


def _dispatch(words: list[str]) -> int:
    names = _leading_names(words[1:]) if words[:1] == ["run"] else []
    # One of several that does not load is a run that fails; for its help it has to load.
    find = registry.find if {"-h", "--help"}.intersection(words) else registry.find_regardless
    scenarios = registry.told_apart([find(name) for name in registry.different(names)])
    parser = _parser(scenarios)
    if not words:
        parser.print_help()
        return 0
    given, extra = parser.parse_known_args(words)
    if given.command is None:
        raise WrongUse(f"name a command before {' '.join(words)!r}: known are {', '.join(COMMANDS)}")
    for scenario in scenarios:
        if extra and scenario.fault is not None:  # it may be the one that has these options
            raise scenario.fault
    options.refuse_unknown(extra, given.parser)
    return COMMANDS[given.command](given, scenarios)


def _leading_names(words: list[str]) -> list[str]:
    """The words before the first option: the scenarios."""
    end = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    return words[:end]


def _parser(scenarios: list[Scenario]) -> Parser:
    """The parser of the whole command line; `run` takes the options of these scenarios."""
    parser = Parser(
        prog="irb-twin",
        description="A digital twin of ABB arms: run controllers on a physics engine and see what holds.",
        epilog=EXAMPLES,
    )
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    listing = parsers.add_parser("list", help="show the robots, controllers and scenarios that there are")
    listing.set_defaults(parser=listing)

    configs = {scenario.name: scenario.Config for scenario in scenarios}
    about = "\n\n".join(f"{scenario.name}: {scenario.doc}" for scenario in scenarios)
    run = parsers.add_parser(
        "run",
        help="run scenarios and show how well they went",
        usage="irb-twin run SCENARIO [SCENARIO ...] [options]",
        description=about
        or "Run scenarios. Name one before --help to see what it shows and its own settings.",
        epilog=EXAMPLES,
    )
    run.set_defaults(parser=run)
    run.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help=f"{', '.join(registry.titles())}, or a .py file of your own; before any option",
    )
    run.add_argument(
        "--controller",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"control laws to run side by side: {', '.join(controllers.NAMES)} "
        f"(default {options.default('controller', configs)})",
    )
    files = run.add_argument_group("files (with several runs, their names are added to the file's)")
    files.add_argument(
        "--log", type=Path, metavar="FILE.npz", help="write reference, state and torque over time"
    )
    files.add_argument(
        "--picture", type=Path, metavar="FILE.png", help="draw the tracking error and the tool's path"
    )
    files.add_argument("--json", type=Path, metavar="FILE.json", help="write every figure of the tables")
    options.add(run, configs)

    validate = parsers.add_parser(
        "validate",
        help="run every scenario with every robot and controller, without a window, and check every limit",
        description="Run every scenario with every robot that it suits and every controller, and the "
        "variants that a scenario names; then compute every published item (unless --robot is given).",
    )
    validate.set_defaults(parser=validate)
    validate.add_argument(
        "--robot", nargs="+", metavar="NAME", help="names of robots or paths of their files (default all)"
    )
    validate.add_argument("--junit", type=Path, metavar="FILE.xml", help="write the checks as JUnit XML")
    validate.add_argument("--json", type=Path, metavar="FILE.json", help="write every figure")

    published = parsers.add_parser(
        "published",
        help="compute every number and equation that the sources print, and show the misprints",
        description="Compute the published items by the library, live. A misprint holds if the right form "
        "does and the printed one visibly does not. Exit status 1 if an item is not confirmed.",
    )
    published.set_defaults(parser=published)
    published.add_argument(
        "--source", metavar="NAME", help="one source only, as Aliaga (its name or a part of it)"
    )
    published.add_argument("--id", nargs="+", metavar="ID", help="some items only, in full: N-2.9 T-FK1")
    published.add_argument("--json", type=Path, metavar="FILE.json", help="write every item with all digits")
    published.add_argument("--markdown", type=Path, metavar="FILE.md", help="write the table as Markdown")

    symbolic = parsers.add_parser(
        "formulas",
        help="print the equations of motion of a small arm, derived symbolically",
        description="Derive D, C and g of D(q) qdd + C(q, qd) qd + g(q) = tau by Euler and Lagrange, and "
        "print them: of main_axes (the first three axes of the IRB 1400), of two_link (the planar two-link "
        "arm), or of a URDF with at most three joints.",
    )
    symbolic.set_defaults(parser=symbolic)
    symbolic.add_argument("model", metavar="MODEL", help="main_axes, two_link, or the path of a small URDF")

    model = parsers.add_parser(
        "check-model",
        help="tell what the twin makes of a robot file, and whether PyBullet agrees with the model on it",
        description="Show the joints and links of a robot file, say what is suspicious in it, and compare "
        "PyBullet with the analytic model on it from random states. Exit status 1: something is wrong.",
    )
    model.set_defaults(parser=model)
    model.add_argument("file", type=Path, metavar="FILE", help="a .urdf, a robot.toml or a dh.toml")
    model.add_argument("--json", type=Path, metavar="FILE.json", help="write all of it")
    return parser


COMMANDS = {
    "list": commands.show_list,
    "run": commands.run,
    "validate": commands.validate,
    "published": commands.published,
    "formulas": commands.show_formulas,
    "check-model": commands.check_model,
}
