"""Time of a new process, with machine code cached by an earlier one."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.timing import Meter, Row, failed
from twin.base.threads import VARIABLE

VARIED = ["--vary", "payload=0:6", "model.mass=+-10%", "--worst", "0"]
IRB_TWIN = Path(sys.executable).with_name("irb-twin")


def rows(meter: Meter) -> Iterator[Row]:
    """Time whole processes, from start to end, against a goal in seconds."""
    samples = 2 if meter.is_short else 2000
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}  # all cores
    for what, goal, arguments in (
        ("irb-twin --help, a process", 0.4, ["--help"]),
        ("irb-twin list, a process", 0.4, ["list"]),
        ("first simulated steps (10 ms), a process", 2.5, ["run", "gravity_hold", "--duration", "0.01"]),
        (
            f"sweep of {samples:,} runs of 4 s, two cores, a process", 10.0,
            ["sweep", "joint_tracking", *VARIED, "--samples", str(samples)],
        ),
    ):  # fmt: skip
        times = []
        try:
            for _ in range(meter.rounds + (not meter.is_short)):
                start = time.perf_counter()
                subprocess.run([IRB_TWIN, *arguments], check=True, capture_output=True, env=environment)
                times.append((time.perf_counter() - start) / goal)
        except subprocess.CalledProcessError as error:
            yield failed(what, f"a time of {goal} s", error)
            continue
        times = times[1:] or times  # the first one fills caches
        ratio = statistics.median(times)
        us = goal * 1e6
        yield Row(what, f"a time of {goal} s", ratio * us, us, ratio, min(times), max(times), 1.0)
