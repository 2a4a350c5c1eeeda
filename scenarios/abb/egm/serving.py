"""Execution of `irb-twin egm serve`: jobs, sessions in processes, results, and their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.options import fields
from scenarios.report.documents import attributes, write_document
from scenarios.report.tables import plain_table
from scenarios.running.provenance import json_value, provenance, stamped
from scenarios.setup import Setup, named_pose
from scenarios.shell.output import Files
from scenarios.shell.process import graceful_stop
from twin.abb.egm.guidance.settings import GuidanceSettings
from twin.abb.egm.robot.session import EgmResult, SessionPlan
from twin.abb.egm.wire.channel import Address
from twin.base.errors import DivergenceError, TwinError, describe_error
from twin.base.worker_processes import Answer, Message, Workers, on_stop, send_message
from twin.physics.engine.client import engine_installed
from twin.physics.robot.drives.motors import MotorLimits, torque_shares
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from rich.table import Table

    from twin.abb.egm.robot.robot import EgmRobot
    from twin.data.logs.log import Log


@dataclass(frozen=True)
class Job:
    """Settings of one robot that is to be served.

    Attributes:
        label: name of the robot in printed lines and tables.
        setup: robot, controller, drives, tool, payload.
        settings: guidance settings.
        to: address of the client.
        plan: number and timing of the instructions.
        bind: local address that receives the answers; `None` for a free loopback port.
        start: named initial pose; `None` for the default of the mode.
        path: path in path mode.
        limit: limit of the real time for an answer in lockstep, in [s]; `None` to run by the clock.
        log: file for the log of motion and messages; `None` for no log.
    """

    label: str
    setup: Setup
    settings: GuidanceSettings
    to: Address
    plan: SessionPlan = field(default_factory=SessionPlan)
    bind: Address | None = None
    start: str | None = None
    path: Path | None = None
    limit: float | None = None
    log: Path | None = None


@dataclass(frozen=True, eq=False)
class Served:
    """Result of a robot that was served.

    Attributes:
        error: reason for a premature end, such as a silent client; empty without one.
        refused: whether the reason is wrong use or a silent client, not a fault of the robot.
        unwritten: reason why the log could not be written; empty if it was.
        result: result of the session, without its log.
        tau_peak: (n,) largest motor torques at the joints in the last two minutes, in [N m].
        tau_share: (n,) largest shares of the torques of the motors, which may be coupled, at standstill.
        joints: names of the joints.
    """

    error: str = ""
    refused: bool = False
    unwritten: str = ""
    result: EgmResult = field(default_factory=EgmResult)
    tau_peak: NDArray | None = None
    tau_share: NDArray | None = None
    joints: tuple[str, ...] = ()


class Serving:
    """Session of one robot.

    Args:
        job: settings of the robot.
        print_line: function that prints a line for each event.
    """

    def __init__(self, job: Job, print_line: Callable[[str], object]) -> None:
        self._job, self._print_line = job, print_line
        self._lock = Lock()
        self._robot: EgmRobot | None = None
        self._stopped = False

    def stop(self) -> None:
        """Request the end of the session; may be called from any thread at any time."""
        with self._lock:
            self._stopped = True
            if self._robot is not None:
                self._robot.stop()

    def serve(self) -> Served:
        """Run the session and return its result.

        Raises:
            TwinError, ValueError: the robot, controller, path or address is invalid.
        """
        from twin.abb.egm import virtual_time

        job = self._job
        plant = job.setup.load_robot()
        with nullcontext() if job.limit is None else virtual_time(limit=job.limit):
            arm = self._make_robot(plant)
        with self._lock:
            self._robot = arm
            if self._stopped:
                arm.stop()
        self._print_line(opening(job, arm))
        error, refused = "", False
        try:
            arm.run()
        except TwinError as fault:
            error, refused = str(fault), not isinstance(fault, DivergenceError)
        return self._result(plant, arm.result, error, refused)

    def _make_robot(self, plant: Robot) -> EgmRobot:
        from twin.abb.egm import EgmRobot

        job, setup = self._job, self._job.setup
        start = None if job.start is None else named_pose(plant, job.start)

        return EgmRobot(
            plant, setup.control_law(setup.controller_model(plant)), job.settings,
            job.plan, to=job.to, bind=job.bind, start=start, path=job.path,
            T_flange_tool=setup.T_flange_tool, sensors=setup.sensors,
            time_step=setup.time_step, steps_per_period=setup.steps_per_period,
            gui=setup.gui, on_event=lambda event: self._print_line(f"{event.t:9.3f} s  {event.sentence}"),
        )  # fmt: skip

    def _result(self, plant: Robot, result: EgmResult, error: str, refused: bool) -> Served:
        """Write the log, and return the result without it."""
        log, files, peak, share = result.log, Files(), None, None
        settings = settings_of(self._job, result)
        if log is not None:
            peak, share = largest_torques(log)
            files.write(self._job.log, lambda draft: stamped(log, settings).save(draft))
        result, unwritten = replace(result, log=None), "".join(files.faults)
        return Served(error, refused, unwritten, result, peak, share, plant.joint_names)


def serve_in_processes(
    jobs: Sequence[Job], print_line: Callable[[int, str], object]
) -> tuple[list[Served], int]:
    """Serve several robots in separate processes, so that they do not delay each other.

    Args:
        jobs: settings of the robots.
        print_line: function that prints a line; its arguments are the index of the job and the line.

    Returns:
        the results, and the number of the signal that ended the session, or 0.
    """
    results: dict[int, Served] = {}
    with Workers(len(jobs), tries=1) as workers, graceful_stop(workers.stop) as interrupt:
        for place, event in workers.run((place, (_serve_here, (job,))) for place, job in enumerate(jobs)):
            if isinstance(event, Message):
                print_line(place, event.value)
            elif isinstance(event, Answer):
                event.reissue_warnings()
                results[place] = Served(event.fault) if event.fault else event.value
    return [results[place] for place in range(len(jobs))], interrupt.number


def _serve_here(job: Job) -> Served:
    """Serve a robot in a worker process."""
    serving = Serving(job, send_message)
    on_stop(serving.stop)
    try:
        return serving.serve()
    except (TwinError, ValueError, OSError) as error:
        return Served(describe_error(error), refused=True)


def opening(job: Job, arm: EgmRobot) -> str:
    """Return the first line of a session: the addresses, the timing and the mode."""
    settings = arm.settings
    where = f"port {arm.port} of " + ("loopback" if job.bind is None else job.bind.host)
    pace = "in lockstep" if job.limit is not None else f"every {1e3 * settings.cycle:g} ms"
    return (
        f"sends to {arm.to} {pace}, receives answers at {where}; mode {settings.mode}, MaxSpeedDeviation "
        f"{settings.max_speed_deviation:g} deg/s: start an EGM client on port {arm.to.port}"
        + "; PyBullet is not installed: the analytic model is the arm"
        * (not engine_installed())
    )


def settings_of(job: Job, result: EgmResult) -> dict[str, object]:
    """Return all settings of a job, and what simulated the arm, as JSON values."""
    settings = {name: getattr(job.setup, name) for name in fields(Setup)}
    settings |= {f"law_settings.{name}": value for name, value in job.setup.law_settings}
    settings |= asdict(job.settings)
    settings |= {"to": str(job.to), "bind": job.bind and str(job.bind), "start": job.start, "path": job.path}
    settings |= {name: getattr(job.plan, name) for name in ("duration", "wait", "runs", "pause", "lag")}
    settings |= {"limit": job.limit, "plant": result.plant}
    return {name: json_value(value) for name, value in settings.items()}


FORMAT = 2
"""Format number of the JSON file."""


def table(jobs: Sequence[Job], results: Sequence[Served]) -> Table:
    """Return a table with one column per robot: messages, lateness, completed runs, faults, torques."""
    columns = [rows(job, served) for job, served in zip(jobs, results, strict=True)]
    names = list(dict.fromkeys(name for column in columns for name in column))
    head = ["", *(job.label for job in jobs)]
    return plain_table([head, *([name, *(column.get(name, "") for column in columns)] for name in names)])


def rows(job: Job, served: Served) -> dict[str, str]:
    """Return the values of one robot for the table, as texts."""
    result = served.result
    if not result.sent:
        return {"messages sent": "0"}
    late = result.lateness
    arm = {} if result.plant == "PyBullet" else {"simulated by": f"{result.plant}: PyBullet is not installed"}
    found = arm | stream_rows(result)
    if job.limit is not None:
        found["time"] = "virtual"
    else:
        found["sent late by more than 1 ms"] = f"{late.late} of {late.cycles} ({late.share:.2%})"
        times = (f"{1e3 * seconds:.2f}" for seconds in (late.median, late.percentile_99, late.worst))
        found["lateness: median, 99 %, worst"] = f"{', '.join(times)} ms"
        if late.restarts:
            found["clock restarts"] = str(late.restarts)
    found |= run_rows(result)
    if served.tau_peak is not None and served.tau_share is not None:
        found |= torque_rows(served.joints, served.tau_peak, served.tau_share)
    return found


def largest_torques(log: Log) -> tuple[NDArray, NDArray]:
    """Return the largest torques at the joints (n,), in [N m], and the largest shares of the motors (n,)."""
    motors = MotorLimits.of(log.robot.active_drives, log.robot.tau_max)
    return np.abs(log.tau).max(axis=0), torque_shares(motors, log.tau).max(axis=0)


def torque_rows(joints: Sequence[str], peaks: NDArray, shares: NDArray) -> dict[str, str]:
    """Return the largest torques for a table, as texts."""
    return {
        f"{name}, largest torque of the last 2 min": f"{peak:.3g} N m (motor {share:.0%})"
        for name, peak, share in zip(joints, peaks, shares, strict=True)
    }


def stream_rows(result: EgmResult) -> dict[str, str]:
    """Return the numbers of messages and answers for a table, as texts."""
    counts = result.counts
    lost = {
        "repeated": counts.again, "overtaken": counts.old, "skipped": counts.skipped,
        "dropped": counts.dropped,
        "undecodable": counts.broken, "of other senders": result.strangers,
    }  # fmt: skip
    return {
        "messages sent": f"{result.sent}" + f", {result.unsent} failed" * bool(result.unsent),
        "answers taken": f"{counts.taken}" + f", {counts.unused} ignored in pauses" * bool(counts.unused),
        "answers lost": ", ".join(f"{count} {why}" for why, count in lost.items() if count) or "none",
    }


def run_rows(result: EgmResult) -> dict[str, str]:
    """Return the numbers of runs and faults for a table, as texts."""
    found = {"completed runs": f"{result.completed} of {result.runs}"}
    named = (f"{fault.number} {fault.name}" if fault.number else fault.name for fault in result.faults)
    return found | {f"fault {fault}": str(number) for fault, number in Counter(named).items()}


def write_json(jobs: Sequence[Job], results: Sequence[Served], path: Path) -> None:
    """Write settings, events and results of every robot."""
    robots = [_as_json(job, served) for job, served in zip(jobs, results, strict=True)]
    document = {"format": FORMAT, "provenance": provenance(), "robots": robots}
    write_document(path, document)


def _as_json(job: Job, served: Served) -> dict[str, Any]:
    result = served.result
    return {
        "label": job.label,
        "settings": settings_of(job, result),
        "error": served.error,
        "events": [event._asdict() for event in result.events],
        "faults": [fault._asdict() for fault in result.faults],
        **attributes(result, "runs", "completed", "sent", "unsent", "strangers"),
        "counts": vars(result.counts) if result.sent else None,
        "lateness": vars(result.lateness) if result.sent else None,
        "tau_peak": served.tau_peak,
        "joints": served.joints,
    }
