"""Session of `irb-twin abb serve`: the virtual controller by the clock, and a client's command."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.abb.egm.serving import largest_torques, run_rows, stream_rows, torque_rows
from scenarios.setup import Setup
from scenarios.studies.cell.clearance import setup_in
from twin.abb.egm.robot.exchange import Lateness
from twin.base.errors import CellError, RapidError, TwinError, WrongUse

if TYPE_CHECKING:
    from controllers import Controller
    from scenarios.abb.station import Station
    from twin.abb.controller.arm import Supervision
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.events import Line
    from twin.abb.egm.robot.session import EgmResult
    from twin.abb.rws.server import RobotWebServices
    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Payload, Robot
    from twin.studies.cell.cell import Cell
    from twin.studies.cell.clearance import Clearance

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
        """Whether no task had a fault, no drive lacked torque, and the arm came near nothing."""
        seen = self.supervision
        return not (self.faults or self.error or seen.saturations or seen.collisions)


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
        starts: whether the programs start by themselves.
        cell: what stands around the arm, None if it has only itself.
        supervise: whether the arm stops before a collision, and where a drive lacks torque.
        is_background: whether the session goes on when its programs have ended.
        client_input: standard input of the client's command, as for `subprocess.Popen`.
        lines: the last lines.
        ready: the virtual controller, from the time when it runs.
        stopping: set when the session is to end.
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
    starts: bool = True
    is_background: bool = False
    client_input: int | None = None
    stopping: Event = field(default_factory=Event)
    ready: Future[VirtualController] = field(default_factory=Future)
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    _unjudged: str = ""

    def __post_init__(self) -> None:
        if self.cell is not None:
            self.setup = setup_in(self.cell, self.setup, declares_loads=True)

    def serve(self) -> Served:
        """Run the session.

        Raises:
            TwinError, ValueError, OSError: a module, the robot or the client's command is invalid.
        """
        from twin.abb.controller.controller import rehearse, run_by_the_clock

        printer = LinePrinter(self.print_line)
        controller, process, services, error = self._controller(printer), None, None, ""
        lateness = Lateness()
        try:
            rehearse(controller.robot, controller.arm.q, controller.limits)  # clients find cycles that run
            if self.services is not None:
                services = self.services(controller)
                printer(f"Robot Web Services: {services.url}")
            if self.client:
                process = _started(self.client, self.client_input, services and services.url)
            if self.starts:
                controller.start()
            else:
                printer('the programs wait for a client that starts them (start = "auto" in the station)')

            def stopping() -> bool:
                if not self.ready.done():  # after the first cycle: everything is compiled
                    self.ready.set_result(controller)
                return self.stopping.is_set() or (process is not None and process.poll() is not None)

            to_end = not (self.client or self.is_background or services)
            lateness = run_by_the_clock(controller, stopping, self.duration, to_end=to_end)
        except TwinError as fault:
            error = "" if controller.arm.lost else str(fault)
        finally:
            if services is not None:
                services.close()
            controller.close()
            status = 0 if process is None else _ended(process, self.stopping.is_set() or bool(error))
            controller.arm.close()
            printer.close()
        log = controller.log(self.setup.T_flange_tool)
        return Served(
            controller.t, lateness, controller.faults, error, status, controller.egm.done, log,
            controller.arm.plant, controller.supervision, self._unjudged,
        )  # fmt: skip

    def _controller(self, printer: LinePrinter) -> VirtualController:
        from twin.abb.controller.arm import Supervision
        from twin.abb.controller.controller import VirtualController
        from twin.abb.egm.robot.guided_arm import GuidedArm

        setup = self.setup
        plant = setup.load_robot()
        tasks = self.station.task_settings()

        def controller_for(payload: Payload | None) -> Controller:
            return setup.control_law(setup.controller_model(plant.with_payload(payload)))

        def on_line(line: Line) -> None:
            self.lines.append(line)
            printer(_text(line))

        start = np.clip(np.zeros(plant.n), plant.q_min, plant.q_max) if self.start is None else self.start
        arm = GuidedArm(
            plant, controller_for(plant.payload), start, sensors=setup.sensors, time_step=setup.time_step,
            steps_per_period=setup.steps_per_period, gui=setup.gui,
        )  # fmt: skip
        try:
            return VirtualController(
                arm,
                plant,
                controller_for,
                tasks,
                outputs=self.station.outputs,
                supervision=Supervision(self._clearance(plant), stops=self.supervise),
                on_line=on_line,
                **self.given,
            )
        except BaseException:
            arm.close()
            raise

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
    late, log = served.lateness, served.log
    found = {"time": f"{served.t:.1f} s"}
    if served.plant != "PyBullet":
        found["simulated by"] = f"{served.plant}: PyBullet is not installed"
    if late.cycles:
        found["cycles late by more than 1 ms"] = f"{late.late} of {late.cycles} ({late.share:.2%})"
        times = (f"{1e3 * seconds:.2f}" for seconds in (late.median, late.percentile_99, late.worst))
        found["lateness: median, 99 %, worst"] = f"{', '.join(times)} ms"
    if late.restarts:
        found["clock restarts"] = str(late.restarts)
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
    if log is not None:
        found["samples at a torque limit"] = f"{saturated(log)} of {len(log.t)}"
        found |= torque_rows(log.robot.joint_names, *largest_torques(log))
    return found


def log_settings(setup: Setup, station_file: Path | None) -> dict[str, object]:
    """Return the settings that a log names."""
    from scenarios.options import fields
    from scenarios.running.provenance import json_value

    settings: dict[str, object] = {name: getattr(setup, name) for name in fields(Setup)}
    settings |= {f"law_settings.{name}": value for name, value in setup.law_settings}
    return {name: json_value(value) for name, value in (settings | {"station": station_file}).items()}
