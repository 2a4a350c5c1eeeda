"""`irb-twin rapid export` and `fit`: a log as a program, and the plan against measured times."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Literal

from scenarios.options import argument, option
from scenarios.rapid.check import robot_of
from scenarios.shell.output import console
from scenarios.shell.parser import Call, Command, count
from twin.errors import WrongUse


class ExportPath(Command):
    """Print the motion of a log as a RAPID module of joint moves."""

    examples = """examples:
  irb-twin rapid export run.npz > path.mod
  irb-twin rapid export run.npz --every 50 --speed v200 --zone z5 > path.mod
"""

    log: Path = argument("a log file, .npz", "LOG")
    every: int = option(20, "use one sample of N, and the last one", "N", read=count)
    speed: str = option("v100", "predefined speed", "NAME")
    zone: str = option("z1", "predefined zone, or fine", "NAME")
    name: str = option("Path", "name of the module", "NAME")

    def run(self, call: Call) -> int:
        """Print the module."""
        import numpy as np

        from twin.logs.log import Log
        from twin.rapid.paths import export

        log = Log.load(self.log)
        samples = np.unique([*range(0, len(log.t), self.every), len(log.t) - 1])
        sys.stdout.write(export(log.robot, log.q[samples], speed=self.speed, zone=self.zone, name=self.name))
        return 0


class Fit(Command):
    """Find the share of the torque and the settling time from measured times of moves between stops.

    The times are a CSV file with the columns `line` and `time_s`: the line of a move that ends in a stop, and
    the time from the stop before it.
    """

    examples = """examples:
  irb-twin rapid fit stops.mod --times stops.csv
"""

    program: tuple[str, ...] = argument("module files", "PROGRAM")
    times: Path | None = option(None, "CSV file with the columns line and time_s (required)", "FILE.csv")
    robot: str = option("irb140", "name of a robot, or path of its file")
    drives: Literal["ideal", "rigid"] = option("rigid", "torque limits alone, or with rotors and friction")

    def run(self, call: Call) -> int:
        """Print share and settling time with the residuals."""
        from twin.rapid.paths import fit
        from twin.rapid.programs import interpret, read

        if self.times is None:
            raise WrongUse("--times FILE.csv is required: the columns are line and time_s")
        robot = robot_of(self.robot, self.drives)
        program = interpret(read(*self.program), robot)
        if program.fault is not None:
            raise program.fault
        limits, left = fit(program, robot, _measured(self.times))
        page = console()
        page.print(f"share {limits.share:.3f}, settling {limits.settling:.3f} s")
        page.print(f"largest residual of {len(left)} times: {abs(left).max():.3f} s")
        use = f"--share {limits.share:.3f} --settling {limits.settling:.3f}"
        page.print(f"use: irb-twin rapid check ... {use}", soft_wrap=True)
        return 0


def _measured(path: Path) -> dict[int, float]:
    """Return the times of a CSV file by their lines."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    try:
        return {int(row["line"]): float(row["time_s"]) for row in rows}
    except (KeyError, TypeError, ValueError):
        raise WrongUse(f"{path}: expected the columns line and time_s with numbers") from None
