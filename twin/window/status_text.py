"""The lines of text that every window has: the time, the pace, where the joints are, their torques."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from twin.robot.joint_units import SHOWN, joint_unit

if TYPE_CHECKING:
    from twin.window.bench import Bench

RED, GREY = (0.8, 0.05, 0.05), (0.3, 0.32, 0.36)
MOST_JOINTS = 8
"""That have a line each."""

AT_LIMIT = 1.0 - 1e-9
SPAN = 1.0  # s of the clock over which the pace is measured


class StatusText:
    """Writes them.

    Args:
        bench: whose they are.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._since, self._pace = (time.perf_counter(), 0.0), np.nan

    def write(self) -> None:
        """Write how things stand."""
        bench = self._bench
        robot, (q, qd), tau = bench.arm.robot, bench.arm.state(), bench.arm.tau
        bench.say("time", f"{bench.time:.3f} s   {self._told_pace()}", RED if bench.paused else None)
        payload = "none" if robot.payload is None else f"{robot.payload.mass:g} kg"
        push = "" if bench.push is None else f"   push {np.abs(bench.push).max():g} N"
        bench.say("payload", f"payload {payload}{push}")
        shown = np.round(tau, 1) + 0.0  # no -0.0
        part = np.abs(tau) / robot.drive_torque_max
        for j in range(min(robot.n, MOST_JOINTS)):
            kind = robot.joint_kinds[j]
            (unit, scale), effort = SHOWN[kind], joint_unit(kind, "torque")
            beyond = not robot.q_min[j] <= q[j] <= robot.q_max[j] or abs(qd[j]) > robot.qd_max[j]
            said = "  OUT OF RANGE" if beyond else "  AT ITS LIMIT" if part[j] >= AT_LIMIT else ""
            bench.say(
                f"joint {j}",
                f"{robot.joint_names[j]}  {scale * q[j]:.2f} {unit}  {scale * qd[j]:.1f} {unit}/s  "
                f"{shown[j]:.1f} {effort} ({100 * part[j]:.0f} %){said}",
                RED if said else GREY,
            )

    def _told_pace(self) -> str:
        """How fast the run goes, and how fast it should where it does not."""
        bench, now = self._bench, time.perf_counter()
        if bench.paused:
            self._since, self._pace = (now, bench.time), np.nan
            return "PAUSED (space: go on, n: one step)"
        since, then = self._since
        if now - since > SPAN or bench.time < then or bench.time == 0:
            self._pace = (bench.time - then) / (now - since) if bench.time > then else np.nan
            self._since = now, bench.time
        reached = "" if np.isnan(self._pace) else f"{self._pace:.2g} x real time"
        if bench.speed == np.inf:
            return f"as fast as it goes   {reached}"
        late = reached and self._pace < 0.9 * bench.speed
        return f"{bench.speed:g} x real time" + (f" ({self._pace:.2g} reached)" if late else "")
