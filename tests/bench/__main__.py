"""`make bench`: our calls beside those of other libraries, interleaved in one run.

Every pair gets the same input and its results are compared before anything is timed.  A row shows the median
time of one call of each (or of one sample, one step), the ratio of these (below 1: ours is faster), the range
of the ratio over the repeated, interleaved rounds, and the goal.  Compilation, loading and the first call of
each are not timed.  Ours use one thread where a row does not speak of more cores; so do the others.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import twin
from tests.bench import closed_loop, dynamics, inverse_kinematics, parallelogram, rollouts, start_up
from tests.bench.timing import HEADING, Row
from twin.threads import VARIABLE


def all_rows(rounds: int) -> Iterator[Row]:
    """Every row of the table, measured as it is asked for."""
    robot, looped = twin.load("irb140"), twin.load("irb1400")
    yield from dynamics.rows(robot, rounds)
    yield from inverse_kinematics.rows(robot, rounds)
    yield from parallelogram.rows(looped, rounds)
    yield from closed_loop.rows(robot, rounds)
    yield from closed_loop.loop_rows(looped, robot, rounds)
    yield from rollouts.rows(robot, rounds)
    yield from rollouts.rows(looped, rounds)
    yield from start_up.rows(rounds)


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default 9)")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    os.environ[VARIABLE] = "1"
    print(__doc__.split("\n", 2)[2])
    print(HEADING)
    rows = []
    for row in all_rows(options.rounds):
        print(row, flush=True)
        rows.append(row)
    print(f"\n{verdict(rows)}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
