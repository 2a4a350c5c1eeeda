"""`irb-twin abb`: a virtual controller that runs programs in RAPID in real time, with sockets."""

from scenarios.shell.parser import Commands

ABOUT = """A virtual ABB controller: programs in RAPID run in real time, in several tasks, with signals,
interrupts and sockets, and move an arm of the twin. Clients of a real controller's sockets connect to it.

See `irb-twin abb serve --help` for details."""

EXAMPLES = """examples:
  irb-twin new station cell_1
  irb-twin abb serve cell_1/station.toml
  irb-twin abb serve --load T_ROB1=server.mod -- pytest tests/
"""

ABB = Commands(
    ABOUT,
    "irb-twin abb COMMAND [options]",
    EXAMPLES,
    {"serve": ("abb.serve:ServeAbb", "run programs in RAPID in real time, with sockets for clients")},
)
