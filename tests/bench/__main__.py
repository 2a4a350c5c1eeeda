"""`make bench`: our calls beside those of other libraries, interleaved in one run."""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import twin
from tests.bench import (
    closed_loop,
    dynamics,
    egm,
    inverse_kinematics,
    parallelogram,
    rollouts,
    start_up,
    sweeps,
)
from tests.bench.instructions import instructions, repeated, run_again
from tests.bench.timing import Meter, Row, heading
from twin.threads import VARIABLE

ABOUT = """
Every pair gets the same input and its results are compared before anything is measured.  A row shows the
median {measured} of one call of each (or of one sample, one step), the ratio of these
(below 1: ours {takes}), the range of the ratio over the repeated, interleaved rounds, and the goal{goal}.
Ours write into arrays that are given, where the row says "compiled"; theirs return new ones, or their own.
Ours are compiled for this machine, AVX included, the peers' wheels for any.  What ends in "in a loop" is a
loop in Python around a call for one sample, for there is no other.
Compilation, loading and the first call of each are left out.  Ours use one thread where a row does not
speak of more cores; so do the others.{more}
"""
TIMED = {"measured": "time", "takes": "is faster", "goal": "", "more": ""}
COUNTED = {
    "measured": "number of instructions",
    "takes": "needs fewer",
    "goal": " for times",
    "more": "\nStarting up, robots on the wire and more cores are of times alone and have no rows here.",
}


def all_rows(meter: Meter) -> Iterator[Row]:
    """Every row of the table, measured as it is asked for."""
    robot, looped = twin.load("irb140"), twin.load("irb1400")
    yield from dynamics.rows(robot, meter)
    yield from inverse_kinematics.rows(robot, meter)
    yield from parallelogram.rows(looped, meter)
    yield from closed_loop.rows(robot, meter)
    yield from closed_loop.loop_rows(looped, robot, meter)
    yield from closed_loop.drive_rows(robot, meter)
    yield from rollouts.rows(robot, meter)
    yield from rollouts.rows(looped, meter)
    if meter.timed:
        yield from egm.rows(robot)
        yield from sweeps.rows(robot, meter)
        yield from start_up.rows(meter.rounds)


def verdict(rows: list[Row]) -> str:
    """Where we lose, in words."""
    missed = [
        f"  {row.what}, against {row.against}: {row.ratio:.2f}, the goal is {row.goal:.2f}"
        + ("" if row.lowest > row.goal else f" (reached in the best round: {row.lowest:.2f})")
        for row in rows
        if row.goal is not None and row.missed
    ]
    slower = [f"  {row.what}, against {row.against}: {row.ratio:.2f}" for row in rows if _slower(row)]
    met = sum(row.goal is not None and not row.missed for row in rows)
    lines = [f"{met} of {met + len(missed)} goals are met."]
    if missed:
        lines += ["We lose, measured by the goal, at:", *missed]
    if slower:
        lines += ["Within the goal, but slower than what it is timed against:", *slower]
    return "\n".join(lines)


def _slower(row: Row) -> bool:
    return not row.missed and row.ratio > 1.0


def noise(rows: list[Row]) -> str:
    """How much the rounds differ: with the load of the machine, how far the table can be trusted."""
    spread = statistics.median((row.highest - row.lowest) / row.ratio for row in rows)
    return f"Between the rounds the ratio of the median row varied by {spread:.2%}."


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 9; 2 of counts)")
    parser.add_argument("--instructions", action="store_true", help="count instructions under valgrind")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"expected --rounds of at least 1, got {options.rounds}")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    if options.instructions and not repeated():
        print(
            "First a run without valgrind, so that all is compiled; then the counts: some minutes in all.",
            flush=True,
        )
        try:
            return run_again(["-m", "tests.bench", "--rounds", "1"], ["-m", "tests.bench", *sys.argv[1:]])
        except FileNotFoundError as missing:
            parser.exit(2, f"{missing}\n")
    os.environ[VARIABLE] = "1"
    meter = Meter(options.rounds or 9)
    if options.instructions:
        meter = Meter(options.rounds or 2, "instructions", instructions, batch=10_000)
    print(ABOUT.format_map(COUNTED if options.instructions else TIMED))
    if meter.timed:
        print(
            f"The machine has {os.cpu_count()} cores and a load of {os.getloadavg()[0]:.1f} before the run.\n"
        )
    print(heading(meter.unit))
    rows = []
    for row in all_rows(meter):
        print(row, flush=True)
        rows.append(row)
    print(f"\n{noise(rows)}")
    if meter.timed:
        print(verdict(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
