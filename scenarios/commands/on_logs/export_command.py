"""`irb-twin export`: logs as CSV and Parquet."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.commands.on_logs.plot_command import add_logs, add_window
from scenarios.console.output import Files, apart, console, writable
from scenarios.running.options import WrongUse

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario

EXAMPLES = """examples:
  irb-twin export run.npz --csv
  irb-twin export run.npz --csv table.csv --every 10
  irb-twin export run-*.npz --parquet
"""
BESIDE = Path()
"""Stands for a file beside each log, with its name."""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "export",
        help="write logs as CSV or Parquet, with units in the names of the columns",
        usage="irb-twin export LOG [LOG ...] --csv [FILE.csv] | --parquet [FILE.parquet] [options]",
        description="Write a row a sample: time, every joint's reference, position, error, speed, torque, "
        "the tool's pose, and what the scenario added. Every bit of the numbers is kept. A CSV can be run "
        "again: `irb-twin run pose_path --csv run.csv`.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=export)
    add_logs(parser)
    for kind in ("csv", "parquet"):
        parser.add_argument(
            f"--{kind}", nargs="?", type=Path, const=BESIDE, metavar=f"FILE.{kind}",
            help=f"write {'CSV' if kind == 'csv' else 'Parquet'}; without a name beside the log, "
            "of several logs one each, named after them",
        )  # fmt: skip
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="write one sample of N, the first included"
    )
    parser.add_argument(
        "--decimal-comma", action="store_true", help="CSV with 1,5 for 1.5 and semicolons between columns"
    )
    add_window(parser)


def export(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`export`: a file of each kind that was asked for, of each log."""
    from twin.logs.columns import between
    from twin.logs.log import Log
    from twin.logs.table_files import needed, write_csv, write_parquet

    if given.csv is None and given.parquet is None:
        raise WrongUse("say what to write: --csv or --parquet")
    if not given.every >= 1:
        raise WrongUse(f"--every {given.every}: expected a whole number of at least 1")
    if given.decimal_comma and given.csv is None:
        raise WrongUse("--decimal-comma is of --csv")
    tables = _places(given, given.csv, ".csv")
    archives = _places(given, given.parquet, ".parquet")
    if archives:
        needed("pyarrow", "Parquet")
    logs = [between(Log.load(path), given.start, given.end) for path in given.logs]
    files = Files()
    as_csv = partial(write_csv, every=given.every, decimal_comma=given.decimal_comma)
    for write, paths in ((as_csv, tables), (partial(write_parquet, every=given.every), archives)):
        for path, log in zip(paths, logs, strict=False):
            files.write(path, partial(write, log=log))
    return 0 if files.name(console()) else 1


def _places(given: argparse.Namespace, asked: Path | None, suffix: str) -> list[Path]:
    """Where the files of a kind go, one a log; none if they were not asked for."""
    option = f"--{suffix[1:]}"
    if asked is None:
        return []
    if asked == BESIDE:
        places = [path.with_suffix(suffix) for path in given.logs]
    else:
        stems = [(path.stem,) for path in given.logs]
        places = [asked] if len(stems) == 1 else apart(asked, stems)
    for place in places:
        writable(place, suffix, option)
        if places.count(place) > 1:
            raise WrongUse(f"{option}: several logs would be written to {place}: name a file")
    return places
