"""`irb-twin rapid export` and `fit`: a log as a program, and the plan against measured times."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scenarios.abb.rapid.check import limits_of, robot_of
from scenarios.options import argument, option
from scenarios.shell.output import console
from scenarios.shell.parser import Call, Command, count
from twin.base.errors import WrongUse

if TYPE_CHECKING:
    from twin.abb.rapid.fitting import Measured


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

        from twin.abb.rapid.paths import export
        from twin.data.logs.log import Log

        log = Log.load(self.log)
        samples = np.unique([*range(0, len(log.t), self.every), len(log.t) - 1])
        sys.stdout.write(export(log.robot, log.q[samples], speed=self.speed, zone=self.zone, name=self.name))
        return 0


class Fit(Command):
    """Find the share of the torque and the settling time from measured times of moves and programs.

    The times are a CSV file with the columns `line` and `time_s`: the line of a move that ends in a stop, and
    the time from the stop before it. A row without a line is the time of the whole program, whose moves may
    have zones. With several programs, a column `program` has their file names.

    Both numbers are printed with their standard deviations, and their correlation. The times of the stops of
    one program at one speed fit well, and predict others with errors of 10 to 25 %: measure at two speeds, or
    a program with zones, which leaves 3 % (as seen on measured runs of another arm).

    Exit status: 0; 1 if a number ends at a bound, because then the times do not fit the plan; 2 wrong use.
    """

    examples = """examples:
  irb-twin rapid fit stops.mod --times stops.csv
  irb-twin rapid fit slow.mod fast.mod --times stops.csv --drives rigid
"""

    program: tuple[str, ...] = argument("programs, each a module file, a .pgf file or a folder", "PROGRAM")
    times: Path | None = option(
        None,
        "CSV file with the columns line and time_s, and program if there are several (required)",
        "FILE.csv",
    )
    robot: str = option("irb140", "name of a robot, or path of its file")
    drives: Literal["ideal", "rigid"] = option("rigid", "torque limits alone, or with rotors and friction")
    accelerations: tuple[float, ...] = option(
        (), "largest accelerations of the joints in rad/s^2, for robots without masses", "A"
    )

    def run(self, call: Call) -> int:
        """Print share and settling time with their deviations and the residuals."""
        from twin.abb.rapid.fitting import fit
        from twin.abb.rapid.programs import interpret, read

        if self.times is None:
            raise WrongUse("--times FILE.csv is required: the columns are line and time_s")
        robot = robot_of(self.robot, self.drives)
        programs = [interpret(read(one), robot) for one in self.program]
        for program in programs:
            if program.fault is not None:
                raise program.fault
        measured = _measured(self.times, self.program)
        accelerations = limits_of(1.0, 0.0, self.accelerations).accelerations
        found = fit(programs, robot, measured, accelerations=accelerations)
        limits, page = found.limits, console()
        lines = [
            f"share {limits.share:.3f} +- {found.share_deviation:.3f}, "
            f"settling {limits.settling:.3f} +- {found.settling_deviation:.3f} s, "
            f"correlation {found.correlation:.2f}",
            f"largest residual of {len(measured)} times: {abs(found.residuals).max():.3f} s",
        ]
        if math.isinf(found.share_deviation):
            lines.append("the times do not tell both apart: add moves of other lengths and speeds")
        speeds = {move.speed.tcp for program in programs for move in program.moves}
        if len(speeds) < 2 and all(one.line is not None for one in measured):
            lines.append("stops at one speed alone: other speeds and zones may differ by 10 to 25 %")
        if not found.at_bounds:
            use = f"--share {limits.share:.3f} --settling {limits.settling:.3f}"
            lines.append(f"use: irb-twin rapid check ... {use}")
        for line in (*lines, *found.at_bounds):
            page.print(line, soft_wrap=True)
        return 1 if found.at_bounds else 0


def _measured(path: Path, programs: Sequence[str]) -> list[Measured]:
    """Return the times of a CSV file.

    Raises:
        WrongUse: a column is missing, a cell is malformed, or a program is unknown.
    """
    from twin.abb.rapid.fitting import Measured

    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    names = [Path(one).name for one in programs]
    found = []
    for k, row in enumerate(rows, 2):
        try:
            line, time = row["line"].strip(), float(row["time_s"])
            if len(row) != len([name for name in row if name]) or not 0.0 < time < math.inf:
                raise ValueError
            name = (row.get("program") or names[0]).strip()
            found.append(Measured(time, int(line) if line else None, names.index(Path(name).name)))
        except (AttributeError, KeyError, TypeError, ValueError):
            known = f", and program, one of {', '.join(names)}" if len(names) > 1 else ""
            raise WrongUse(
                f"{path}, row {k}: expected the columns line, a whole number or empty for the whole program, "
                f"and time_s, a positive number{known}"
            ) from None
    return found
