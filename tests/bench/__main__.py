"""`make bench`: compare the speed of the library with that of other libraries, interleaved in one run."""

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
    features,
    inverse_kinematics,
    parallelogram,
    rollouts,
    start_up,
    sweeps,
    time_laws,
)
from tests.bench.timing import HEADING, Meter, Row, failed
from twin.base.threads import VARIABLE

ABOUT = """
Both functions of a pair get the same input, and their results are compared before any measurement.  A row
shows the median time of one call (or one sample, one step) of each function, their ratio (below 1: ours is
faster), the range of the ratio over the interleaved rounds, and the goal.
Our "compiled" functions write into given arrays; the other libraries return new arrays or internal ones.
Our functions are compiled for this machine with its AVX instructions; the other libraries' wheels run on any
machine.  "in a Python loop" means a loop around calls for one sample, if there is no call for a batch.
Compilation, loading and the first calls are not measured.  All functions use one thread unless the row
states more cores.
"""


def all_rows(meter: Meter) -> Iterator[Row]:
    """Measure and yield the rows of the table one by one; an error is a row, and the next group follows."""
    robot, looped = twin.load("irb140"), twin.load("irb1400")
    for name, group in (
        ("dynamics", dynamics.rows(robot, meter)),
        ("inverse kinematics", inverse_kinematics.rows(robot, meter)),
        ("parallelogram", parallelogram.rows(looped, meter)),
        ("closed loop", closed_loop.rows(robot, meter)),
        ("engine step with a loop", closed_loop.loop_rows(looped, robot, meter)),
        ("closed loop with drives", closed_loop.drive_rows(robot, meter)),
        *((f"rollouts of the {arm.name}", rollouts.rows(arm, meter)) for arm in (robot, looped)),
        ("fastest motions", time_laws.rows(robot, meter)),
        ("features", features.rows(robot, meter)),
        ("EGM", egm.rows(robot, meter)),
        ("sweeps", sweeps.rows(robot, meter)),
        ("start", start_up.rows(meter)),
    ):
        try:
            yield from group
        except Exception as error:  # of any library: the other groups are still measured
            yield failed(name, "all rows that follow in this group", error)


def verdict(rows: list[Row]) -> str:
    """Summarize the goals that are met, the goals that are missed, and the slower rows within their goals."""
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
        lines += ["These rows miss their goal:", *missed]
    if slower:
        lines += ["These rows meet their goal, but are slower than the other library:", *slower]
    return "\n".join(lines)


def _slower(row: Row) -> bool:
    return not row.missed and row.ratio > 1.0


def noise(rows: list[Row]) -> str:
    """Describe how much the rounds differ, a measure of the table's accuracy on a busy machine."""
    spread = statistics.median((row.highest - row.lowest) / row.ratio for row in rows if not row.failure)
    return f"Between the rounds the ratio of the median row varied by {spread:.2%}."


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default 9)")
    parser.add_argument(
        "--short", action="store_true", help="one round of few calls, to see that each row can run"
    )
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"expected --rounds of at least 1, got {options.rounds}")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json: the folder {options.json.parent} does not exist")
    os.environ[VARIABLE] = "1"
    meter = Meter(1, batch=2000, is_short=True) if options.short else Meter(options.rounds)
    print("One round of few calls, whose times mean nothing.\n" if options.short else ABOUT)
    print(f"The machine has {os.cpu_count()} cores and a load of {os.getloadavg()[0]:.1f} before the run.\n")
    print(HEADING)
    rows = []
    for row in all_rows(meter):
        print(row, flush=True)
        rows.append(row)
    failures = [row for row in rows if row.failure]
    print(f"\n{len(rows) - len(failures)} of {len(rows)} rows can be measured.")
    if not options.short:
        print(noise(rows))
        print(verdict(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
