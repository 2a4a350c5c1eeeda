"""One robot on the wire, as the command was told: what it is made of, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.cli.process import graceful_stop
from twin.atomic_file import drafted
from twin.egm.guidance.guidance import Fault
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.robot.session import EgmResult, Plan
from twin.egm.wire.channel import Address
from twin.errors import DivergenceError, TwinError, describe_error
from twin.logs.log import Log
from twin.robot.robot import Robot
from twin.worker_processes import Answer, Word, Workers, say, when_stopped

if TYPE_CHECKING:
    from rich.table import Table

    from scenarios.base import Config
    from twin.egm.robot.robot import EgmRobot


@dataclass(frozen=True)
class Job:
    """A robot that is to be served.

    Attributes:
        label: how it is called in lines and tables.
        config: robot, control law, drives, tool, payload.
        settings: how it is guided.
        to: where its messages go.
        plan: how long, and how many instructions.
        bind: where it is answered; `None` for any free port of loopback.
        start: named pose where it begins; `None` for the default of the mode.
        path: that is corrected, in mode path.
        limit: of real time for an answer in lockstep, in [s]; `None` by the clock.
        log: file of motion and stream.
    """

    label: str
    config: Config
    settings: GuidanceSettings
    to: Address
    plan: Plan = field(default_factory=Plan)
    bind: Address | None = None
    start: str | None = None
    path: Path | None = None
    limit: float | None = None
    log: Path | None = None


@dataclass(frozen=True, eq=False)
class Served:
    """The result of a robot on the wire.

    Attributes:
        error: why it ended before its time, as when no client answered; empty if it did not.
        refused: whether that is wrong use or the client's silence, and no fault of the robot.
        unwritten: why the log could not be written; empty if it was.
        result: see `EgmResult`; its log is written, and not here.
        tau_peak: (n,) largest torques of the motors at the joints in the last two minutes, in [N m].
        tau_max: (n,) what they can give, in [N m].
        joints: their names.
    """

    error: str = ""
    refused: bool = False
    unwritten: str = ""
    result: EgmResult = field(default_factory=EgmResult)
    tau_peak: NDArray | None = None
    tau_max: NDArray | None = None
    joints: tuple[str, ...] = ()


class Serving:
    """A robot on the wire.

    Args:
        job: what it is.
        tell: called with a line whenever something happens.
    """

    def __init__(self, job: Job, tell: Callable[[str], object]) -> None:
        self._job, self._tell = job, tell
        self._lock = Lock()
        self._robot: EgmRobot | None = None
        self._stopped = False

    def stop(self) -> None:
        """End within a cycle; from any thread, at any time."""
        with self._lock:
            self._stopped = True
            if self._robot is not None:
                self._robot.stop()

    def serve(self) -> Served:
        """Until it is over.

        Raises:
            TwinError, ValueError: there is no such robot, law, path or address.
        """
        from twin.egm import virtual_time

        job = self._job
        plant = job.config.load_robot()
        with nullcontext() if job.limit is None else virtual_time(limit=job.limit):
            arm = self._made(plant)
        with self._lock:
            self._robot = arm
            if self._stopped:
                arm.stop()
        self._tell(opening(job, arm))
        error, refused = "", False
        try:
            arm.run()
        except TwinError as fault:
            error, refused = str(fault), not isinstance(fault, DivergenceError)
        return self._told(plant, arm.result, error, refused)

    def _made(self, plant: Robot) -> EgmRobot:
        from scenarios.base import named_pose
        from twin.egm import EgmRobot

        job, config = self._job, self._job.config
        start = None if job.start is None else named_pose(plant, job.start)
        model = config.believed(plant)
        return EgmRobot(
            plant, config.control_law(model), job.settings,
            job.plan, to=job.to, bind=job.bind, start=start, path=job.path,
            T_flange_tool=config.T_flange_tool, sensors=config.sensors,
            time_step=config.time_step, steps_per_period=config.steps_per_period,
            gui=config.gui, tell=lambda event: self._tell(f"{event.t:9.3f} s  {event.sentence}"),
        )  # fmt: skip

    def _told(self, plant: Robot, result: EgmResult, error: str, refused: bool) -> Served:
        """Write the log, and make the result of what is left."""
        log = result.log
        unwritten = "" if log is None else self._written(log)
        peak = None if log is None else np.max(np.abs(log.tau), axis=0)
        result = replace(result, log=None)
        return Served(error, refused, unwritten, result, peak, plant.tau_max, plant.joint_names)

    def _written(self, log: Log) -> str:
        """Why the log could not be written; empty if it was, or is not wanted."""
        if (path := self._job.log) is None:
            return ""
        try:
            with drafted(path) as draft:
                described(log, self._job).save(draft)
        except Exception as error:  # of the disk, or of the library that writes
            return f"cannot write {path}: {describe_error(error)}"
        return ""


def serve_in_processes(jobs: Sequence[Job], tell: Callable[[int, str], object]) -> tuple[list[Served], int]:
    """Serve several robots, a process each, so that none waits for another's computations.

    Args:
        jobs: the robots.
        tell: called with the place of a robot, and a line of it.

    Returns:
        what came of each, and the number of the signal that ended them, 0 if none did.
    """
    results: dict[int, Served] = {}
    with Workers(len(jobs), tries=1) as workers, graceful_stop(workers.stop) as interrupt:
        for place, event in workers.run((place, (_serve_here, (job,))) for place, job in enumerate(jobs)):
            if isinstance(event, Word):
                tell(place, event.value)
            elif isinstance(event, Answer):
                event.warn_again()
                results[place] = Served(event.fault) if event.fault else event.value
    return [results[place] for place in range(len(jobs))], interrupt.number


def _serve_here(job: Job) -> Served:
    """Serve a robot in a worker process."""
    serving = Serving(job, say)
    when_stopped(serving.stop)
    try:
        return serving.serve()
    except (TwinError, ValueError, OSError) as error:
        return Served(describe_error(error), refused=True)


def opening(job: Job, arm: EgmRobot) -> str:
    """The first line: where it sends, and what to do there."""
    settings = job.settings
    where = f"port {arm.port} of " + ("loopback" if job.bind is None else job.bind.host)
    pace = "in lockstep" if job.limit is not None else f"every {1e3 * settings.cycle:g} ms"
    return (
        f"sends to {arm.to} {pace}, answered at {where}; mode {settings.mode}, MaxSpeedDeviation "
        f"{settings.max_speed_deviation:g} deg/s: let an EGM client listen on port {arm.to.port}"
    )


def settings_of(job: Job) -> dict[str, object]:
    """All that the robot was told, as JSON can have it."""
    from scenarios.cli.arguments import fields
    from scenarios.running.provenance import plain

    config = {name: getattr(job.config, name) for name in fields(type(job.config))}
    own = {
        "to": str(job.to),
        "bind": job.bind and str(job.bind),
        "start": job.start,
        "path": job.path and str(job.path),
    }
    own |= {name: getattr(job.plan, name) for name in ("duration", "wait", "runs", "pause", "lag")}
    own["limit"] = job.limit
    laws = {f"law_settings.{name}": value for name, value in job.config.law_settings}
    return {name: plain(value) for name, value in {**config, **laws, **asdict(job.settings), **own}.items()}


def described(log: Log, job: Job) -> Log:
    """The log, which says how it was made: in its arrays, `provenance` and `settings`, as JSON."""
    from scenarios.running.provenance import provenance

    made = {"provenance": json.dumps(provenance()), "settings": json.dumps(settings_of(job))}
    return replace(log, arrays={**log.arrays, **{name: np.array(text) for name, text in made.items()}})


FORMAT = 2
"""The format of the file for programs."""


def table(jobs: Sequence[Job], results: Sequence[Served]) -> Table:
    """A column a robot: messages, lateness, how runs ended, torques."""
    from scenarios.report.report import plain_table

    columns = [rows(job, served) for job, served in zip(jobs, results, strict=True)]
    names = list(dict.fromkeys(name for column in columns for name in column))
    head = ["", *(job.label for job in jobs)]
    return plain_table([head, *([name, *(column.get(name, "") for column in columns)] for name in names)])


def rows(job: Job, served: Served) -> dict[str, str]:
    """The figures of one robot, in words."""
    result = served.result
    if not result.sent:
        return {"messages sent": "0"}
    counts, late = result.counts, result.lateness
    lost = {
        "repeated": counts.again, "overtaken": counts.old, "skipped": counts.skipped,
        "dropped": counts.dropped,
        "unreadable": counts.broken, "of strangers": result.strangers,
    }  # fmt: skip
    found = {
        "messages sent": f"{result.sent}" + f", {result.unsent} not" * bool(result.unsent),
        "answers taken": f"{counts.taken}" + f", {counts.unused} more in pauses" * bool(counts.unused),
        "answers lost": ", ".join(f"{count} {why}" for why, count in lost.items() if count) or "none",
    }
    if job.limit is not None:
        found["time"] = "virtual"
    else:
        found["sent late by more than 1 ms"] = f"{late.late} of {late.cycles} ({late.share:.2%})"
        found["lateness: median, 99 %, worst"] = ", ".join(
            f"{1e3 * seconds:.2f}" for seconds in (late.median, late.percentile_99, late.worst)
        )
        found["lateness: median, 99 %, worst"] += " ms"
        if late.restarts:
            found["clock set anew"] = str(late.restarts)
    found["completed runs"] = f"{result.completed} of {result.runs}"
    for fault, number in _counted(result.faults):
        found[f"fault {fault}"] = str(number)
    if served.tau_peak is not None and served.tau_max is not None:
        for name, tau, most in zip(served.joints, served.tau_peak, served.tau_max, strict=True):
            share = f" ({tau / most:.0%})" if np.isfinite(most) and most > 0 else ""
            found[f"{name}, largest torque of the last 2 min"] = f"{tau:.3g} N m{share}"
    return found


def _counted(faults: Sequence[Fault]) -> list[tuple[str, int]]:
    """Every kind of fault, and how often it was."""
    names = [f"{fault.number} {fault.name}" if fault.number else fault.name for fault in faults]
    return [(name, names.count(name)) for name in dict.fromkeys(names)]


def write_json(jobs: Sequence[Job], results: Sequence[Served], path: Path) -> None:
    """Write settings, events and figures of every robot."""
    from scenarios.running.provenance import provenance

    robots = [_as_json(job, served) for job, served in zip(jobs, results, strict=True)]
    document = {"format": FORMAT, "provenance": provenance(), "robots": robots}
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _as_json(job: Job, served: Served) -> dict[str, Any]:
    result = served.result
    return {
        "label": job.label,
        "settings": settings_of(job),
        "error": served.error,
        "events": [event._asdict() for event in result.events],
        "faults": [fault._asdict() for fault in result.faults],
        "runs": result.runs,
        "completed": result.completed,
        "sent": result.sent,
        "unsent": result.unsent,
        "counts": vars(result.counts) if result.sent else None,
        "strangers": result.strangers,
        "lateness": vars(result.lateness) if result.sent else None,
        "tau_peak": None if served.tau_peak is None else served.tau_peak.tolist(),
        "joints": list(served.joints),
    }
