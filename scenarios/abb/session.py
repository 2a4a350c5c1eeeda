"""Sessions of simulated robots: arms that clients of EGM guide, and a virtual controller with its clients."""

from __future__ import annotations

import os
import subprocess
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from queue import Full, Queue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.options import fields
from scenarios.report.documents import attributes, plain_table, write_document
from scenarios.running.provenance import json_value, provenance, stamped
from scenarios.setup import Setup, named_pose
from scenarios.shell.output import Files
from scenarios.shell.process import graceful_stop
from twin.abb.egm.guidance.settings import GuidanceSettings
from twin.abb.egm.robot.exchange import Lateness
from twin.abb.egm.robot.session import EgmResult, SessionPlan
from twin.abb.egm.wire.channel import Address
from twin.base.errors import CellError, DivergenceError, RapidError, TwinError, WrongUse, describe_error
from twin.base.worker_processes import Answer, Message, Workers, on_stop, send_message
from twin.physics.engine.client import engine_installed
from twin.physics.robot.drives.motors import MotorLimits, torque_shares
from twin.physics.robot.robot import Payload, Robot
from urdf.schema import check_table

if TYPE_CHECKING:
    from rich.table import Table

    from controllers import Controller
    from scenarios.abb.station import Station
    from twin.abb.controller.arm import Supervision
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.events import Line
    from twin.abb.egm.robot.session import EgmRobot
    from twin.abb.rws.server import RobotWebServices
    from twin.data.logs.log import Log
    from twin.physics.dynamics.environment import Environment
    from twin.studies.cell.cell import Cell
    from twin.studies.cell.clearance import Clearance


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
class ServedRobot:
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


class RobotSession:
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

    def serve(self) -> ServedRobot:
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
            gui=setup.gui, environment=setup.environment,
            on_event=lambda event: self._print_line(f"{event.t:9.3f} s  {event.sentence}"),
        )  # fmt: skip

    def _result(self, plant: Robot, result: EgmResult, error: str, refused: bool) -> ServedRobot:
        """Write the log, and return the result without it."""
        log, files, peak, share = result.log, Files(), None, None
        settings = settings_of(self._job, result)
        if log is not None:
            peak, share = largest_torques(log)
            files.write(self._job.log, lambda draft: stamped(log, settings).save(draft))
        result, unwritten = replace(result, log=None), "".join(files.faults)
        return ServedRobot(error, refused, unwritten, result, peak, share, plant.joint_names)


def serve_robots(jobs: Sequence[Job], print_line: Callable[[str], object]) -> tuple[list[ServedRobot], int]:
    """Serve one robot in this process, or several in separate ones, so that they do not delay each other.

    Args:
        jobs: settings of the robots.
        print_line: function that prints a line.

    Returns:
        the results, and the number of the signal that ended the session, or 0.

    Raises:
        TwinError, ValueError: the robot, controller, path or address is invalid.
    """
    if len(jobs) == 1:
        session = RobotSession(jobs[0], print_line)
        with graceful_stop(session.stop) as interrupt:
            return [session.serve()], interrupt.number
    for job in jobs:
        job.setup.load_robot()  # report errors before any robot starts
    results: dict[int, ServedRobot] = {}
    with Workers(len(jobs), tries=1) as workers, graceful_stop(workers.stop) as interrupt:
        for place, event in workers.run((place, (_serve_here, (job,))) for place, job in enumerate(jobs)):
            if isinstance(event, Message):
                print_line(f"{jobs[place].label}  {event.value}")
            elif isinstance(event, Answer):
                event.reissue_warnings()
                results[place] = ServedRobot(event.fault) if event.fault else event.value
    return [results[place] for place in range(len(jobs))], interrupt.number


def _serve_here(job: Job) -> ServedRobot:
    """Serve a robot in a worker process."""
    serving = RobotSession(job, send_message)
    on_stop(serving.stop)
    try:
        return serving.serve()
    except (TwinError, ValueError, OSError) as error:
        return ServedRobot(describe_error(error), refused=True)


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
    settings = asdict(job.settings)
    settings |= {"to": str(job.to), "bind": job.bind and str(job.bind), "start": job.start, "path": job.path}
    settings |= {name: getattr(job.plan, name) for name in ("duration", "wait", "runs", "pause", "lag")}
    return log_settings(job.setup, settings | {"limit": job.limit, "plant": result.plant})


def log_settings(setup: Setup, more: dict[str, Any]) -> dict[str, object]:
    """Return the settings that a log names, as JSON values: those of the arm, and more."""
    settings = {name: getattr(setup, name) for name in fields(Setup)}
    settings |= {f"law_settings.{name}": value for name, value in setup.law_settings} | more
    return {name: json_value(value) for name, value in settings.items()}


FORMAT = 2
"""Format number of the JSON file."""


def table(jobs: Sequence[Job], results: Sequence[ServedRobot]) -> Table:
    """Return a table with one column per robot: messages, lateness, completed runs, faults, torques."""
    columns = [robot_rows(job, served) for job, served in zip(jobs, results, strict=True)]
    names = list(dict.fromkeys(name for column in columns for name in column))
    head = ["", *(job.label for job in jobs)]
    return plain_table([head, *([name, *(column.get(name, "") for column in columns)] for name in names)])


def robot_rows(job: Job, served: ServedRobot) -> dict[str, str]:
    """Return the values of one robot for the table, as texts."""
    result = served.result
    if not result.sent:
        return {"messages sent": "0"}
    found = plant_rows(result.plant) | stream_rows(result)
    found |= {"time": "virtual"} if job.limit is not None else lateness_rows(result.lateness, "sent")
    found |= run_rows(result)
    if served.tau_peak is not None and served.tau_share is not None:
        found |= torque_rows(served.joints, served.tau_peak, served.tau_share)
    return found


def plant_rows(plant: str) -> dict[str, str]:
    """Return what simulated the arm for a table; empty if it was PyBullet."""
    return {} if plant == "PyBullet" else {"simulated by": f"{plant}: PyBullet is not installed"}


def lateness_rows(late: Lateness, what: str) -> dict[str, str]:
    """Return the lateness of messages or cycles for a table, as texts."""
    times = (f"{1e3 * seconds:.2f}" for seconds in (late.median, late.percentile_99, late.worst))
    found = {
        f"{what} late by more than 1 ms": f"{late.late} of {late.cycles} ({late.share:.2%})",
        "lateness: median, 99 %, worst": f"{', '.join(times)} ms",
        f"longest time between two {'messages' if what == 'sent' else what}": f"{1e3 * late.gap:.1f} ms",
    }
    return found | ({"clock restarts": str(late.restarts)} if late.restarts else {})


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
    if result.limited:
        name = f"limited by MaxSpeedDeviation {result.limit:g} deg/s"
        found[name] = f"{result.limited:.1f} of {result.guided:.1f} s guided"
    named = (f"{fault.number} {fault.name}" if fault.number else fault.name for fault in result.faults)
    return found | {f"fault {fault}": str(number) for fault, number in Counter(named).items()}


def write_json(jobs: Sequence[Job], results: Sequence[ServedRobot], path: Path) -> None:
    """Write settings, events and results of every robot."""
    robots = [_as_json(job, served) for job, served in zip(jobs, results, strict=True)]
    document = {"format": FORMAT, "provenance": provenance(), "robots": robots}
    write_document(path, document)


def _as_json(job: Job, served: ServedRobot) -> dict[str, Any]:
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


MOST_WAITING, PRINTED = 1000, 0.2
"""Largest number of lines that wait to be printed, and time for them at the end of the session, in [s]."""

MOST_LINES = 10_000
"""Largest number of lines that a session remembers."""

SERVICES = "IRB_TWIN_RWS"
"""Variable with the address of Robot Web Services in the environment of a client's command."""

PATIENCE = 2.0
"""Time in which a client's command must end after it was asked to, in [s]."""


@dataclass(frozen=True)
class Served:
    """Result of a session.

    Attributes:
        t: duration of the session, in [s].
        lateness: lateness of its cycles.
        faults: names of tasks with the faults that ended them.
        error: reason for a premature end, "" without one.
        client: exit status of the client's command, 0 without one.
        egm: result of EGM.
        log: log of the end of the motion, None before the first cycle.
        plant: what simulated the arm: PyBullet, or, if it is not installed, the analytic model.
        supervision: what watched the arm.
        unjudged: why distances were not judged, "" if they were.
    """

    t: float
    lateness: Lateness
    faults: Sequence[tuple[str, RapidError]]
    error: str
    client: int
    egm: EgmResult
    log: Log | None
    plant: str
    supervision: Supervision
    unjudged: str

    @property
    def is_good(self) -> bool:
        """Whether no task had a fault, no drive lacked torque, and the arm came near and met nothing."""
        seen = self.supervision
        return not (self.faults or self.error or seen.saturations or seen.collisions or seen.contacts)


class LinePrinter:
    """Printer of lines in a thread of its own, so that a slow reader of the output does not stop the arm.

    Args:
        print_line: function that prints a line.
    """

    def __init__(self, print_line: Callable[[str], object]) -> None:
        self._print_line, self._lines, self._lost = print_line, Queue[str | None](MOST_WAITING), 0
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def __call__(self, line: str) -> None:
        """Print a line soon; it is lost if too many lines wait already."""
        try:
            self._lines.put_nowait(line)
        except Full:
            self._lost += 1

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            self._print_line(line)

    def close(self) -> None:
        """Print what waits, for a time at most, and how many lines are lost."""
        if self._lost:
            self(f"... and {self._lost} lines that came too fast")
        with suppress(Full):
            self._lines.put_nowait(None)
        self._thread.join(PRINTED)


@dataclass
class Serving:
    """Session of a virtual controller.

    Attributes:
        station: its station.
        setup: robot, controller, drives.
        print_line: function that prints a line.
        client: command of a client; the session lasts as long as it does.
        given: arguments of `VirtualController`.
        services: function that starts Robot Web Services of the controller, if they are wanted.
        page: function that starts the page of the controller, if it is wanted.
        starts: whether the programs start by themselves.
        cell: what stands around the arm, None if it has only itself.
        supervise: whether the arm stops before and in a collision, and where a drive lacks torque.
        is_background: whether the session goes on when its programs have ended.
        client_input: standard input of the client's command, as for `subprocess.Popen`.
        lines: the last lines.
        ready: the virtual controller, from the time when it runs.
        stopping: set when the session is to end.
        url: address of Robot Web Services, "" without them.
    """

    station: Station
    setup: Setup
    print_line: Callable[[str], object]
    client: Sequence[str] = ()
    duration: float | None = None
    start: Any = None
    given: dict[str, Any] = field(default_factory=dict)
    cell: Cell | None = None
    supervise: bool = False
    services: Callable[[VirtualController], RobotWebServices] | None = None
    page: Callable[[VirtualController, RobotWebServices | None], Any] | None = None
    starts: bool = True
    is_background: bool = False
    client_input: int | None = None
    stopping: Event = field(default_factory=Event)
    ready: Future[VirtualController] = field(default_factory=Future)
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    url: str = ""
    _unjudged: str = ""

    def __post_init__(self) -> None:
        if self.cell is not None:
            from scenarios.studies.cell.clearance import setup_in

            self.setup = setup_in(self.cell, self.setup, declares_loads=True)

    def serve(self) -> Served:
        """Run the session.

        Raises:
            TwinError, ValueError, OSError: a module, the robot or the client's command is invalid.
        """
        from twin.abb.controller.controller import rehearse, run_by_the_clock

        printer = LinePrinter(self.print_line)
        controller, process, services, page, error = self._controller(printer), None, None, None, ""
        lateness = Lateness()
        try:
            rehearse(controller.robot, controller.arm.q, controller.limits)  # clients find cycles that run
            if self.services is not None:
                services = self.services(controller)
                self.url = services.url
                printer(f"Robot Web Services: {self.url}")
            if self.page is not None:
                page = self.page(controller, services)
            if self.client:
                process = _started(self.client, self.client_input, services and services.url)
            if self.starts:
                controller.start()
            else:
                printer('the programs wait for a client that starts them (start = "auto" in the station)')

            def stopping() -> bool:
                if not self.ready.done():  # after the first cycle: everything is compiled
                    self.ready.set_result(controller)
                if delay := controller.pace.new_delay():
                    printer(delay)
                return self.stopping.is_set() or (process is not None and process.poll() is not None)

            to_end = not (self.client or self.is_background or services or page)
            lateness = run_by_the_clock(controller, stopping, self.duration, to_end=to_end)
        except TwinError as fault:
            error = "" if controller.arm.lost else str(fault)
        finally:
            for one in (page, services):
                if one is not None:
                    one.close()
            controller.close()
            status = 0 if process is None else _ended(process, self.stopping.is_set() or bool(error))
            controller.arm.close()
            printer.close()
        touching = self._environment
        log = controller.log(touching.T_flange_tool if touching else self.setup.T_flange_tool)
        return Served(
            controller.t, lateness, controller.faults, error, status, controller.egm.done, log,
            controller.arm.plant, controller.supervision, self._unjudged,
        )  # fmt: skip

    def _controller(self, printer: LinePrinter) -> VirtualController:
        from twin.abb.controller.arm import Supervision
        from twin.abb.controller.controller import VirtualController
        from twin.abb.egm.robot.guided_arm import GuidedArm
        from twin.studies.cell.clearance import Gripper

        setup = self.setup
        plant = setup.load_robot()
        tasks, limits = self.station.task_settings(), self.station.supervision
        check_table("supervision", limits, {f"{name}?": "number" for name in plant.joint_names}, 0)
        limits = [limits.get(name, np.inf) for name in plant.joint_names]

        def controller_for(payload: Payload | None) -> Controller:
            return setup.control_law(setup.controller_model(plant.with_payload(payload)))

        def on_line(line: Line) -> None:
            self.lines.append(line)
            printer(_text(line))

        clearance = self._clearance(plant)
        start = np.clip(np.zeros(plant.n), plant.q_min, plant.q_max) if self.start is None else self.start
        arm = GuidedArm(
            plant, controller_for(plant.payload), start, sensors=setup.sensors, time_step=setup.time_step,
            steps_per_period=setup.steps_per_period, gui=setup.gui, environment=self._environment,
        )  # fmt: skip
        try:
            controller = VirtualController(
                arm,
                plant,
                controller_for,
                tasks,
                outputs=self.station.outputs,
                supervision=Supervision(clearance, stops=self.supervise, thresholds=limits),
                on_line=on_line,
                **self.given,
            )
            if clearance is not None and clearance.parts:
                controller.unit.gripper = Gripper(clearance, **(self.station.gripper or {}))
            return controller
        except BaseException:
            arm.close()
            raise

    @cached_property
    def _environment(self) -> Environment | None:
        """Pushes and surfaces of the setup, and objects of the cell with a stiffness."""
        found, cell = self.setup.environment, self.cell
        if cell is None or not any(one.contact for one in cell.objects):
            return found
        if moved := [one.name for one in cell.objects if one.contact and one.mass]:
            raise CellError(
                f"{cell.file}: objects.{moved[0]}: expected a mass, of a part that a gripper moves, or a "
                "stiffness, of a body that stays: not both"
            )
        from twin.physics.dynamics.environment import Environment
        from twin.studies.cell.contact import touched_surfaces

        found = found or Environment(T_flange_tool=self.setup.T_flange_tool)
        tool = None if cell.tool is None else cell.tool.T_flange_tool
        return Environment(
            found.pushes,
            [*found.surfaces, *touched_surfaces(cell)],
            found.T_flange_tool if tool is None else tool,
        )

    def _clearance(self, robot: Robot) -> Clearance | None:
        """Return the distances of an arm; None, and a reason, for one without shapes, unless a cell is given.

        Raises:
            CellError: the cell does not fit the robot, or a package for distances is missing.
        """
        from twin.studies.cell.cell import Cell
        from twin.studies.cell.clearance import Clearance

        try:
            return Clearance(robot, self.cell or Cell.empty())
        except CellError as error:
            if self.cell is not None:
                raise
            self._unjudged = str(error)
            return None


def _text(line: Line) -> str:
    return f"{line.t:9.3f} s  {line.task + ': ' if line.task else ''}{line.sentence}"


def _started(command: Sequence[str], standard_input: int | None, services: str | None) -> subprocess.Popen:
    environment = os.environ if services is None else {**os.environ, SERVICES: services}
    try:
        return subprocess.Popen(list(command), stdin=standard_input, env=environment)
    except OSError as error:
        raise WrongUse(f"cannot run {command[0]}: {error.strerror or error}") from None


def _ended(process: subprocess.Popen, asked: bool) -> int:
    """Return the exit status of a client's command, which is ended if the session ends before it."""
    if asked or process.poll() is None:
        process.terminate()
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def saturated(log: Log) -> int:
    """Return the number of samples in which a drive could not give the torque that was demanded."""
    off = np.abs(log.tau_demand - log.tau) > 1e-9 * np.maximum(np.abs(log.tau_demand), 1.0)
    return int(off.any(axis=1).sum())


def rows(served: Served) -> dict[str, str]:
    """Return the values of the table, as texts."""
    log, found = served.log, {"time": f"{served.t:.1f} s", **plant_rows(served.plant)}
    if served.lateness.cycles:
        found |= lateness_rows(served.lateness, "cycles")
    if served.egm.sent:
        found |= stream_rows(served.egm) | run_rows(served.egm)
    if served.faults:
        found["ended with a fault"] = ", ".join(name for name, _ in served.faults)
    seen = served.supervision
    if seen.nearest is not None:
        found["smallest distance"] = f"{seen.nearest.text}, {seen.nearest.names}, at {seen.nearest_at:.3f} s"
        found["times nearer than a margin"] = str(seen.collisions)
    elif served.unjudged:
        found["distances"] = f"not judged: {served.unjudged}"
    found["times that a drive lacked torque"] = str(seen.saturations)
    found["times that something touched the arm"] = str(seen.contacts)
    if log is not None:
        found["samples at a torque limit"] = f"{saturated(log)} of {len(log.t)}"
        found |= torque_rows(log.robot.joint_names, *largest_torques(log))
    return found
