"""The command `irb-twin`: list what there is, run scenarios, validate everything, print formulas.

Exit status: 0 everything holds; 1 a check does not hold, a run did not finish, or a file could not be
written; 2 wrong use, with one sentence on standard error.  Whoever reads what is printed and hangs up, as
`head` does, changes nothing in it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from controllers.own_laws import parts
from scenarios.commands import (
    check_model_command,
    formulas_command,
    gui_command,
    list_command,
    new_command,
    run_command,
    sweep_command,
    tune_command,
    validate_command,
)
from scenarios.commands.egm import egm_command
from scenarios.commands.on_logs import export_command, identify_command, plot_command, replay_command
from scenarios.console import output
from scenarios.running import options, registry
from scenarios.running.help_page import Unprintable
from scenarios.running.options import Parser, WrongUse
from twin.errors import TwinError
from twin.own_code import is_users, require_one_helper_a_name

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario

COMMANDS = {
    "list": list_command,
    "run": run_command,
    "sweep": sweep_command,
    "tune": tune_command,
    "validate": validate_command,
    "gui": gui_command,
    "plot": plot_command,
    "replay": replay_command,
    "export": export_command,
    "formulas": formulas_command,
    "check-model": check_model_command,
    "identify": identify_command,
    "egm": egm_command,
    "new": new_command,
}
"""A module each, with its `add_parser`; the parser's default `carry_out` does it."""

OF_SCENARIOS = {"run": 0, "sweep": 0, "tune": 1, "validate": 0}
"""Those that take names of scenarios, and their settings as options; so many words come before the names."""

ABOUT = """A digital twin of ABB arms: it runs control laws on a physics engine, shows how well they follow,
and checks every figure that has a limit.

`irb-twin list` shows what there is; `irb-twin COMMAND --help` tells more of a command, and `irb-twin run
SCENARIO --help` of a scenario."""

EXAMPLES = """examples:
  irb-twin list
  irb-twin run pose_path --controller computed_torque pd
  irb-twin run pose_path --controller computed_torque ./my.py:Law --picture error.png
  irb-twin run gravity_hold joint_tracking --controller pid --bandwidth 30
  irb-twin sweep joint_tracking --controller pd --vary payload=0:6 --samples 1000
  irb-twin tune pd joint_tracking --vary payload=0:6 --out gains.toml
  irb-twin plot run-pose_path-pd.npz run-pose_path-pid.npz
  irb-twin validate --robot irb140 --junit results.xml
  irb-twin replay run.npz
  irb-twin check-model my_robot.urdf
  irb-twin identify measured.csv --robot irb140
  irb-twin egm serve --mode joint --log session.npz
  irb-twin new controller sliding_mode
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
    except Unprintable as error:
        output.complain(f"cannot print: {error}")
        output.hang_up()
        status = 1
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
    before = OF_SCENARIOS.get(words[0]) if words else None
    names = [] if before is None else _leading_names(words[1:])[before:]
    # One of several that does not load is a run that fails; for its help it has to load.
    find = registry.find if {"-h", "--help"}.intersection(words) else registry.find_regardless
    scenarios = registry.told_apart([find(name) for name in registry.different(names)])
    parser = _parser(words[0] if words else "", scenarios)
    if not words:
        parser.print_help()
        return 0
    given, extra = parser.parse_known_args(words, argparse.Namespace(words=words))
    if given.command is None:
        raise WrongUse(f"name a command before {' '.join(words)!r}: known are {', '.join(COMMANDS)}")
    for scenario in scenarios:
        if extra and scenario.fault is not None:  # it may be the one that has these options
            raise scenario.fault
    options.refuse_unknown(extra, given.parser)
    if before is not None:
        require_one_helper_a_name(_users_files(given, scenarios))
    return given.carry_out(given, scenarios)


def _users_files(given: argparse.Namespace, scenarios: list[Scenario]) -> list[Path]:
    """The user's files of scenarios and control laws that are named."""
    laws = [getattr(given, "law", None) or "", *getattr(given, "controller", ())]
    files = [Path(name) for name in (*(one.file for one in scenarios), *(parts(law)[0] for law in laws))]
    return [file for file in files if file.suffix == ".py" and is_users(file.resolve())]


def _leading_names(words: list[str]) -> list[str]:
    """The words before the first option: the scenarios."""
    end = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    return words[:end]


class _Version(argparse.Action):
    """Shows what results say that they were made with."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, *_: Any) -> NoReturn:
        """Print it; what it takes to know it is not imported before."""
        from scenarios.running.provenance import in_a_line

        sys.stdout.write(f"{in_a_line()}\n")
        raise SystemExit(0)


def _parser(chosen: str, scenarios: list[Scenario]) -> Parser:
    """The parser of the whole command line; the chosen command takes the options of these scenarios.

    The others do without, whose own options may have the name of a scenario's setting.
    """
    parser = Parser(
        prog="irb-twin",
        description=ABOUT,
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action=_Version, help="show the version, and the commit of a checkout")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, command in COMMANDS.items():
        command.add_parser(parsers, scenarios if name == chosen else [])
    return parser
