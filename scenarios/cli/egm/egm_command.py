"""`irb-twin egm`: a robot on the wire, a twin beside one, records of streams, and their replay."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from scenarios.cli.arguments import Call, Command, Parser, WrongUse
from scenarios.cli.egm import mirror_command, record_command, replay_command, serve_command

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario

COMMANDS = {
    "serve": serve_command,
    "mirror": mirror_command,
    "record": record_command,
    "replay": replay_command,
}
"""A module each, with its `add_parser(parsers)` and `carry_out(given) -> int`."""

ABOUT = """Externally Guided Motion (EGM): ABB's robots tell where they are in protobuf messages over UDP,
every 4 ms, and go where the answers say. `serve` is such a robot: a client that guides it guides a real one.
`mirror` is a twin beside a robot that somebody else guides, `record` writes what a robot tells as a log, and
`replay` sends a log to a robot as its client.

`irb-twin egm COMMAND --help` tells more of each."""

EXAMPLES = """examples:
  irb-twin egm serve
  irb-twin egm serve --mode pose --max-speed-deviation 20 --log session.npz
  irb-twin egm mirror --listen 127.0.0.1:6510 --forward 127.0.0.1:6511
  irb-twin egm record stream.npz
  irb-twin egm replay run.npz
"""


@dataclass(frozen=True)
class Egm(Command):
    """A command of those above."""

    usage: ClassVar[str] = "irb-twin egm COMMAND [options]"

    @classmethod
    def texts(cls, scenarios: Sequence[Scenario]) -> tuple[str, str]:
        """Return description and examples."""
        return ABOUT, EXAMPLES

    @classmethod
    def offer(cls, parser: Parser, scenarios: Sequence[Scenario]) -> None:
        """Offer the commands, until each is a dataclass."""
        own = parser.add_subparsers(dest="egm", metavar="COMMAND", parser_class=Parser)
        for command in COMMANDS.values():
            command.add_parser(own)
        for each in own.choices.values():
            each.set_defaults(parser=each)

    def carry_out(self, call: Call) -> int:
        """`egm`: the command after it."""
        given = argparse.Namespace(**call.settings)
        if given.egm is None:
            raise WrongUse(f"name a command after egm: known are {', '.join(COMMANDS)}")
        return COMMANDS[given.egm].carry_out(given)
