"""The command `irb-twin`: parse the command line, run the chosen command, and return the exit status.

Exit status: 0 if all checks pass; 1 if a check fails, a run does not finish, or a file cannot be written; 2
for wrong use, with one sentence on standard error.  The exit status does not change if the reader of the
output closes the pipe early, as `head` does.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from scenarios.shell import output
from scenarios.shell.parser import (
    Call,
    Command,
    Commands,
    Parser,
    Unprintable,
    add_options,
    made,
    output_files,
)
from twin.base.errors import TwinError, WrongUse

if TYPE_CHECKING:
    from scenarios.running.registry import Entry

ABOUT = """A digital twin of ABB arms. It runs controllers on a physics engine, reports their tracking errors,
and checks every quantity that has a limit.

`irb-twin list` shows all robots, controllers and scenarios. `irb-twin COMMAND --help` describes a command,
and `irb-twin run SCENARIO --help` describes a scenario."""

EXAMPLES = """examples:
  irb-twin list
  irb-twin run pose_path --controller computed_torque pd
  irb-twin run pose_path --controller computed_torque ./my.py:Law --picture error.png
  irb-twin run gravity_hold joint_tracking --controller pid --bandwidth 30
  irb-twin sweep joint_tracking --controller pd --vary payload=0:6 --samples 1000
  irb-twin tune pd joint_tracking --vary payload=0:6 --out gains.toml
  irb-twin learn joint_tracking --controller pd --out learned.npz
  irb-twin plot run-pose_path-pd.npz run-pose_path-pid.npz
  irb-twin validate --robot irb140 --junit results.xml
  irb-twin replay run.npz
  irb-twin check-model my_robot.urdf
  irb-twin export-model irb140 --drives rigid --mjcf irb140.xml
  irb-twin identify measured.csv --robot irb140
  irb-twin run pick.mod --drives rigid --report page.html
  irb-twin rapid check pick.mod
  irb-twin collide run.npz --cell cell.toml
  irb-twin egm serve --mode joint --log session.npz
  irb-twin abb serve --load T_ROB1=server.mod
  irb-twin new controller sliding_mode
"""

COMMANDS = Commands(
    ABOUT,
    None,
    EXAMPLES,
    {
        "list": ("commands.inspect:List", "list all robots, controllers and scenarios"),
        "run": ("commands.run:RunScenarios", "run scenarios and report tracking errors, torques and checks"),
        "validate": (
            "commands.validate:Validate",
            "run scenarios with all robots and controllers, without a window, and check every limit",
        ),
        "sweep": ("studies.sweeps.command:Sweep", "run a scenario thousands of times with varied parameters"),
        "tune": (
            "studies.sweeps.tune:Tune",
            "find gains of a controller that pass all checks for all varied parameters",
        ),
        "learn": (
            "studies.learning.learn:Learn",
            "repeat a motion, and learn a correction of its reference from run to run",
        ),
        "check-model": (
            "commands.inspect:CheckModel",
            "show the joints and links of a robot file, and compare PyBullet with the analytic model",
        ),
        "export-model": (
            "commands.inspect:ExportModel",
            "write a robot as URDF or MJCF, for other programs",
        ),
        "formulas": (
            "commands.inspect:Formulas",
            "print the equations of an arm as sums, or as a function in C or Python",
        ),
        "friction": (
            "commands.inspect:Friction",
            "list and draw the friction of the joints over their speed",
        ),
        "mass": ("commands.inspect:Mass", "compute mass, centre of mass and inertia from CAD meshes"),
        "reach": (
            "studies.cell.command:Reach",
            "show how far a robot reaches, and what it can do on a plane",
        ),
        "identify": (
            "data.identification.command:Identify",
            "find masses, inertias and friction from recorded positions and torques",
        ),
        "collide": ("studies.cell.command:Collide", "check how near a recorded motion comes to its cell"),
        "cell": (
            "studies.cell.command:ShowCell",
            "check the file of a cell, list its frames and pairs, draw it",
        ),
        "rapid": (
            "abb.rapid:RAPID",
            "check programs in RAPID, without a controller: reach, speeds, torques, time",
        ),
        "egm": ("abb.egm:EGM", "simulate, observe, record and replay robots that speak EGM"),
        "abb": ("abb:ABB", "run programs in RAPID in real time on a virtual controller, with its sockets"),
        "gui": ("commands.gui:Bench", "move a robot in a window: jog, teach, push, exchange the controller"),
        "plot": (
            "commands.logs:Plot",
            "plot logs over time in one diagram, and print their errors and torques",
        ),
        "replay": ("commands.logs:Replay", "replay logs in PyBullet's window, or as a film"),
        "export": ("commands.logs:Export", "write logs as CSV or Parquet, with units in the column names"),
        "new": (
            "commands.new:New",
            "write a small controller, scenario, robot or station to start from",
        ),
    },
    {
        "list": "run and judge",
        "check-model": "models of robots",
        "identify": "recordings, cells",
        "rapid": "ABB's controller",
        "gui": "look and hand on",
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        argv: the words after `irb-twin`; `None` for those of the process.

    Returns:
        The exit status: 0, 1 or 2.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    output.printable()
    try:
        with output.warnings_printed():
            status = _dispatch(words)
    except BrokenPipeError:  # the reader of the help closed the pipe
        output.hang_up()
        status = 0
    except Unprintable as error:
        output.print_to_stderr(f"cannot print: {error}")
        output.hang_up()
        status = 1
    except (WrongUse, TwinError, ValueError, OSError) as error:
        output.print_to_stderr(str(error))
        status = 2
    except SystemExit as done:  # argparse, after --help
        status = int(done.code or 0)
    except KeyboardInterrupt:
        output.print_to_stderr("interrupted")
        status = 130
    return output.flushed(status)


def _dispatch(words: list[str]) -> int:
    if not words:
        words = ["--help"]
    given, call = read(words)
    for path, suffix, option in output_files(given):
        output.writable(path, suffix, option)
    package_path = call.settings.get("package_path") or getattr(given, "package_path", None)
    if package_path:  # read wherever shapes are, also in worker processes
        os.environ["ROS_PACKAGE_PATH"] = package_path
    return given.run(call)


def read(words: Sequence[str]) -> tuple[Command, Call]:
    """Parse a command line into the command with its options, and its further input.

    Raises:
        SystemExit: the command line asks for help, which was printed.
        WrongUse, TwinError: the command line is invalid, or a scenario cannot be loaded.
    """
    parser = Parser(prog="irb-twin")
    parser.add_argument("--version", action=_Version, help="show the version, and the commit of a checkout")
    command, leaf = _offered(parser, COMMANDS, words)
    if isinstance(command, Commands):
        parser.parse_known_args(words)  # prints the help, or rejects an unknown command
        where = f"before {' '.join(words)!r}" if command is COMMANDS else f"after {words[0]}"
        raise WrongUse(f"name a command {where}: known are {', '.join(command.places)}")
    scenarios = []
    if command.names_after is not None:
        names = list(itertools.takewhile(lambda word: not word.startswith("-"), words[1:]))
        scenarios = _scenarios(names[command.names_after :], bool({"-h", "--help"}.intersection(words)))
    leaf.usage = command.usage or leaf.usage
    leaf.description, leaf.epilog = command.texts(scenarios)
    add_options(leaf, command, scenarios)
    if command.besides is not None:
        from scenarios.shell.settings import add_settings

        add_settings(leaf, scenarios, command.besides)
    client: Sequence[str] = ()
    if command.runs_client and "--" in words:
        words, client = words[: words.index("--")], words[words.index("--") + 1 :]
        if not client:
            raise WrongUse("expected the command of a client after --, as in -- pytest tests/")
    parsed, extra = parser.parse_known_args(words)
    for scenario in scenarios:
        if extra and scenario.fault is not None:  # the broken scenario may define these options
            raise scenario.fault
    leaf.refuse_unknown(extra)
    settings = vars(parsed)
    given = made(command, settings)
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    if command.names_after is not None:
        _require_unique_helper_names(given, scenarios)
    return given, Call(words, scenarios, settings, client)


def _offered(
    parser: Parser, commands: Commands, words: Sequence[str]
) -> tuple[Commands | type[Command], Parser]:
    """Add the commands to the parser; return the command that the words choose, and its parser.

    Only the module of this command is imported. Its options are not added here.
    """
    parser.usage, parser.description, parser.epilog = commands.usage, commands.description, commands.examples
    parsers = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    if commands.groups:
        parser.description += f"\n{commands.listing}"
        offered = {name: parsers.add_parser(name) for name in commands.places}
    else:
        offered = {name: parsers.add_parser(name, help=help) for name, (_, help) in commands.places.items()}
    for place, word in enumerate(words):
        if word in offered:
            module, _, name = commands.places[word][0].partition(":")
            command = getattr(importlib.import_module(f"scenarios.{module}"), name)
            if isinstance(command, Commands):
                return _offered(offered[word], command, words[place + 1 :])
            return command, offered[word]
        if not word.startswith("-"):
            break
    return commands, parser


def _scenarios(names: Sequence[str], for_help: bool) -> list[Entry]:
    """Return the scenarios of these names; one that cannot be loaded raises only for `--help`."""
    if not names:
        return []
    from scenarios.running import registry

    find = registry.find if for_help else registry.find_regardless
    return registry.disambiguate([find(name) for name in registry.without_duplicates(names)])


def _require_unique_helper_names(given: Any, scenarios: list[Entry]) -> None:
    """Check that the user's scenarios and controllers do not import different modules of the same name."""
    from controllers.plugin_controllers import parts
    from twin.base.plugins import is_user_file, require_unique_helpers

    laws = [getattr(given, "law", None) or "", *getattr(given, "controller", ())]
    files = [Path(name) for name in (*(one.file for one in scenarios), *(parts(law)[0] for law in laws))]
    require_unique_helpers([file for file in files if file.suffix == ".py" and is_user_file(file.resolve())])


class _Version(argparse.Action):
    """Action of `--version`: print the version, as it is stored with results."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, *_: Any) -> NoReturn:
        """Print the version, and exit; the modules that this requires are imported only here."""
        from scenarios.running.provenance import provenance_line

        sys.stdout.write(f"{provenance_line()}\n")
        raise SystemExit(0)
