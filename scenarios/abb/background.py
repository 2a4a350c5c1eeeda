"""Virtual controller in the background of a script, of tests or of a person, who command it and read it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.abb.station import Station
from scenarios.setup import Setup
from twin.abb.controller.execution import MODES
from twin.abb.rapid.targets import tool_frame
from twin.abb.rapid.values import PREDEFINED, Record, text_of
from twin.base.errors import RapidError, TwinError, WrongUse, near
from twin.physics.trajectories.jogging import AXES

if TYPE_CHECKING:
    from scenarios.abb.session import Served, Serving
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.events import Line
    from twin.abb.rws.rapid import Symbol
    from twin.abb.rws.server import RobotWebServices
    from twin.data.logs.log import Log

POLL = 5e-3
"""Time between two looks at a condition, in [s]."""


class Signals:
    """Signals of a running controller by their names, as `signals["di1"] = 1`."""

    def __init__(self, controller: VirtualController) -> None:
        self._controller = controller

    def __getitem__(self, name: str) -> float:
        """Return the value of a signal, 0 if nothing set it."""
        signals = self._controller.signals
        return self._controller.call(lambda: signals.values.get(name.lower(), 0.0))

    def __setitem__(self, name: str, value: float) -> None:
        """Change a signal, as a sensor or another machine does."""
        signals = self._controller.signals
        if not np.isfinite(value):
            raise RapidError(f"{name} = {value:g}, expected a finite number", "value")
        self._controller.call(lambda: signals.write(name, float(value)))


class RunningController:
    """Virtual controller that runs by the clock in another thread.

    Each method and each signal acts between two turns of the programs.

    Attributes:
        controller: the controller; what belongs to its programs is read and changed by its `call`.
        signals: signals by their names.
    """

    def __init__(self, serving: Serving, controller: VirtualController) -> None:
        self._serving, self.controller = serving, controller
        self.signals = Signals(controller)
        self._served: Served | None = None

    def start(self) -> None:
        """Start the execution, or continue on the path.

        Raises:
            RapidError: a task has a fault.
        """
        self.controller.call(self.controller.start)

    def stop(self) -> None:
        """Stop the execution, and wait until the arm rests on its path."""
        self.controller.call(self.controller.stop)
        self.wait_until(lambda: self.controller.rests)

    def to_main(self, routine: str = "") -> None:
        """Move the program pointers to the entries, or that of the task with the arm to a routine.

        Raises:
            RapidError: the execution runs, or there is no such routine.
        """
        self.controller.call(lambda: self.controller.to_main(routine))

    def step(self) -> None:
        """Start the execution, and stop it where the arm has made the present move, or the next one.

        Raises:
            RapidError: a task has a fault.
        """
        self.controller.call(self.controller.step)

    def answer(self, text: str, task: str = "") -> None:
        """Answer the question of a task to the operator, or the one that waits longest.

        Raises:
            RapidError: no program asks.
        """
        self.controller.call(lambda: self.controller.execution.answer(text, task))

    def set_motors(self, on: bool) -> None:
        """Switch the motors on or off."""
        self.controller.call(lambda: self.controller.execution.set_motors(on))

    def set_mode(self, mode: str) -> None:
        """Change the mode: AUTO, MANR (manual, 250 mm/s at most) or MANF (manual, full speed)."""
        if mode not in MODES:
            raise RapidError(f"the mode {mode}, expected {', '.join(MODES)}")
        self.controller.call(lambda: self.controller.set_mode(mode))

    def jog(self, axis: str, increment: float, tool: str = "tool0", in_tool_axes: bool = False) -> None:
        """Jog a joint, or the tool along or about an axis, in manual mode.

        Args:
            axis: name of a joint, or x, y, z, rx, ry or rz.
            increment: increment in [deg], or in [mm] along x, y and z.
            tool: name of a tooldata.
            in_tool_axes: whether x, y and z are axes of the tool, else those of the base.

        Raises:
            RapidError: there is no such axis or tool, the mode is automatic, or the arm moves.
        """
        controller, joints = self.controller, self.controller.robot.joint_names
        if axis not in (*joints, *AXES):
            raise RapidError(f"there is no axis {axis}: known are {', '.join((*joints, *AXES))}", "name")
        if not abs(increment) <= 1e4:  # a sum of huge ones overflows
            raise RapidError(f"an increment of {increment:g}, expected at most 10000 deg or mm", "value")

        def act() -> None:
            if axis in joints:
                turn = np.radians(increment) * np.array([one == axis for one in joints])
                controller.jog().move_joints(turn)
                return
            scale = 1e-3 if len(axis) == 1 else np.pi / 180.0
            moved = increment * scale * np.array([one == axis for one in AXES])
            frame = tool_frame(self._record(tool, "tooldata"))
            controller.jog().move_tool(frame, moved, in_tool_axes=in_tool_axes)

        controller.call(act)

    def data(self, *types: str) -> list[str]:
        """Return the names of data of types, such as `tooldata`, in all tasks."""
        return sorted({one.declaration.name for one in self._symbols(types)}, key=str.lower)

    def _symbols(self, types: Sequence[str]) -> list[Symbol]:
        """Return the data objects of types in all tasks, without arrays."""
        from twin.abb.rws.rapid import symbols_of

        every = (one for task in self.controller.tasks.values() for one in symbols_of(task))
        return [one for one in every if one.cell.type in types and not one.cell.dimensions]

    def _symbol(self, name: str, *types: str) -> Symbol:
        found = self._symbols(types)
        for one in found:
            if one.declaration.name.lower() == name.lower():
                return one
        known = ", ".join(one.declaration.name for one in found) or "none"
        raise RapidError(f"there is no {' or '.join(types)} {name}: known are {known}", "name")

    def _record(self, name: str, type_: str) -> Record:
        """Return the value of a record; called between the turns of the programs."""
        if name.lower() in PREDEFINED:
            return PREDEFINED[name.lower()].value
        found = self._symbol(name, type_)
        return found.task.interpreter.read(found.cell)

    def modify_position(self, name: str, tool: str = "tool0", work_object: str = "wobj0") -> str:
        """Give a robtarget or jointtarget the place where the arm is; return its declaration, to be copied.

        The file is not changed.

        Raises:
            RapidError: there is no such target, tool or work object, or the execution runs.
        """
        controller = self.controller

        def act() -> str:
            if controller.execution.executing:
                raise RapidError("positions are modified while the execution is stopped", "refusal")
            found, arm = self._symbol(name, "robtarget", "jointtarget"), controller.unit.kinematics
            if found.cell.type == "jointtarget":
                value = arm.joints(controller.arm.q)
            else:
                frames = self._record(tool, "tooldata"), self._record(work_object, "wobjdata")
                value = arm.target(*frames, controller.arm.q)
            found.cell.value, found.cell.pending = value, None
            shown = found.declaration
            scope = f"{shown.scope} " if shown.scope else ""
            return f"{scope}{shown.kind} {shown.type} {shown.name} := {text_of(value)};"

        return controller.call(act)

    @property
    def speed(self) -> float:
        """Share of the programmed speed, in [%]."""
        return 100.0 * self.controller.execution.override

    @speed.setter
    def speed(self, percent: float) -> None:
        self.set_speed(percent)

    def set_speed(self, percent: float) -> None:
        """Change the share of the programmed speed, in [%]."""
        if not 0 <= percent <= 100:
            raise RapidError(f"a speed of {percent:g} %, expected 0 to 100")
        self.controller.execution.override = percent / 100.0

    def value(self, task: str, name: str) -> Any:
        """Return the value of data that is not local: a number, a truth value, a text, or a `Record`.

        Raises:
            RapidError: there is no such task or data.
        """
        from twin.abb.rapid.expressions import Cell

        def read() -> Any:
            found = self.controller.tasks.get(task.lower())
            if found is None:
                known = ", ".join(one.settings.name for one in self.controller.tasks.values())
                raise RapidError(f"there is no task {task}: known are {known}", "name")
            cell = found.interpreter.shared.get(name.lower())
            if not isinstance(cell, Cell):
                raise RapidError(f"the task {task} has no data {name}", "name")
            return found.interpreter.read(cell)

        return self.controller.call(read)

    def wait_until(self, condition: Callable[[], Any], timeout: float = 10.0) -> None:
        """Wait until a condition holds, which is looked at between the turns of the programs.

        Raises:
            TwinError: it did not hold within a time in [s], or the session has ended.
        """
        end = time.monotonic() + timeout
        while not self.controller.call(condition):
            if time.monotonic() > end:
                last = "; ".join(f"{line.task}: {line.sentence}" for line in self.lines[-5:])
                raise TwinError(f"waited {timeout:g} s in vain; the last lines: {last or 'none'}")
            time.sleep(POLL)

    @property
    def url(self) -> str:
        """Address of Robot Web Services, "" without them."""
        return self._serving.url

    @property
    def ports(self) -> dict[int, int]:
        """Local ports on which programs listen, by those that the programs name."""
        return dict(self.controller.execution.ports)

    @property
    def lines(self) -> list[Line]:
        """The last lines of the programs and the controller."""
        return list(self._serving.lines)

    @property
    def faults(self) -> dict[str, str]:
        """Faults by the names of their tasks."""
        return {name: str(fault) for name, fault in self.controller.faults}

    @property
    def served(self) -> Served:
        """Result after the end of the session, with the faults and what the supervision saw.

        Raises:
            TwinError: the session has not ended.
        """
        if self._served is None:
            raise TwinError("the session has not ended: read its result behind the with statement")
        return self._served

    @property
    def log(self) -> Log | None:
        """Log after the end of the session."""
        return self.served.log


@contextmanager
def serving(
    station: str | Path | Station,
    *,
    setup: Setup | None = None,
    home: Path | None = None,
    supervise: bool = False,
    operator: Sequence[str] = (),
    rws: int | None = None,
    omnicore: bool = False,
) -> Iterator[RunningController]:
    """Run a virtual controller in the background, for instance in a fixture of pytest.

    The ports of the station's table are kept, and all others are free ones, which `ports` has.

    Args:
        station: the station, or its file.
        setup: robot, controller and drives; by default those of the station, with computed torque.
        home: folder of HOME:, by default that of the station, or a fresh one.
        supervise: whether the arm stops before and in a collision, and where a drive lacks torque.
        operator: answers of the operator.
        rws: local port of Robot Web Services, 0 for a free one, None without them; `url` has their address.
        omnicore: whether the services have version 2.0 over TLS, as OmniCore has it.

    Yields:
        The running controller; its log and its result are there behind the with statement.

    Raises:
        TwinError: the station is invalid, or the session ended by an error.
    """
    from scenarios.abb.session import Serving
    from twin.abb.rapid.recorder import Operator

    if not isinstance(station, Station):
        station = Station.read(Path(station))
    with TemporaryDirectory(prefix="irb-twin-home-") as fresh:
        folder = home or (station.folder / station.home if station.home else Path(fresh))
        given = {
            "signals": station.cell_signals({}), "home": folder,
            "network": replace(station.network(None, ()), free=True),
            "operator": Operator(operator), "forever": station.cycle == "forever",
            "egm": station.egm_devices(None, None),
        }  # fmt: skip
        chosen = setup or Setup(station.robot or "irb140", drives=station.drives or "rigid")
        session = Serving(
            station, chosen, lambda line: None, given=given, cell=station.surroundings(None),
            supervise=supervise, is_background=True,
            services=None if rws is None else web_services(folder, ("127.0.0.1", rws), omnicore=omnicore),
        )  # fmt: skip
        result: Future[Served] = Future()

        def run() -> None:
            error: BaseException = TwinError("the session ended before its first cycle")
            try:
                result.set_result(session.serve())
                error = TwinError(result.result().error or str(error))
            except BaseException as raised:
                error = raised
                result.set_exception(error)
            if not session.ready.done():
                session.ready.set_exception(error)

        thread = Thread(target=run, name="virtual controller", daemon=True)
        thread.start()
        running = RunningController(session, session.ready.result())
        try:
            yield running
        finally:
            session.stopping.set()
            thread.join()
        running._served = result.result()
        if running._served.error:
            raise TwinError(running._served.error)


def web_services(
    home: Path,
    address: tuple[str, int],
    *,
    omnicore: bool = False,
    strict: bool = False,
    certificate: Path | None = None,
) -> Callable[[VirtualController], RobotWebServices]:
    """Return the function that starts Robot Web Services of a controller at a local address.

    Args:
        home: folder of HOME:.
        address: local address and port; port 0 is a free one.
        omnicore: whether they have version 2.0 over TLS.
        strict: whether they have the limits of a controller.
        certificate: PEM file with private key and certificate; None for one that is made.
    """
    from twin.abb.rws.authentication import tls_context
    from twin.abb.rws.cabinet import Cabinet
    from twin.abb.rws.server import RobotWebServices

    tls = tls_context(certificate) if omnicore else None

    def start(controller: VirtualController) -> RobotWebServices:
        try:
            return RobotWebServices(Cabinet(controller, home, 2 if omnicore else 1, strict), address, tls)
        except OSError as error:
            raise WrongUse(f"--rws {address[1]} at {address[0]}: {error.strerror or error}") from None

    return start


class Word(NamedTuple):
    """Command: what follows its word, what it does, and the function that returns its answer."""

    arguments: str
    does: str
    run: Callable[[RunningController, list[str]], str]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TwinError(f"expected a number, got {text!r}") from None


def _speed(running: RunningController, words: list[str]) -> str:
    running.speed = _number(words[0].rstrip("%"))
    return f"speed {running.speed:g} %"


def _main(running: RunningController, words: list[str]) -> str:
    running.to_main(*words)
    return f"the program pointer is at {words[0] if words else 'the beginning'}"


def _set(running: RunningController, words: list[str]) -> str:
    name, value = words
    running.signals[name] = _number(value)
    return f"{name} = {running.signals[name]:g}"


def _motors(running: RunningController, words: list[str]) -> str:
    if words[0] not in ("on", "off"):
        raise TwinError(f"expected motors on or motors off, got {words[0]!r}")
    running.set_motors(words[0] == "on")
    return f"motors {words[0]}"


def _mode(running: RunningController, words: list[str]) -> str:
    running.set_mode(words[0].upper())
    return f"mode {words[0].upper()}"


def _jog(running: RunningController, words: list[str]) -> str:
    running.jog(words[0], _number(words[1]))
    return ""


def _status(running: RunningController, words: list[str]) -> str:
    controller = running.controller

    def read() -> str:
        execution = "runs" if controller.execution.running else "is stopped"
        arm = "rests" if controller.rests else "moves"
        tasks = ", ".join(f"{one.settings.name} {one.state}" for one in controller.tasks.values())
        signals = ", ".join(
            f"{controller.signals.names[name]} = {value:g}"
            for name, value in sorted(controller.signals.values.items())
        )
        asks = "".join(f"; {name} asks: {one.text}" for name, one in controller.execution.questions.items())
        return (
            f"the execution {execution}, speed {running.speed:g} %, the arm {arm}; {tasks}; "
            f"signals: {signals or 'none'}{asks}"
        )

    return controller.call(read)


WORDS = {
    "start": Word("", "start the execution, or go on", lambda running, words: running.start() or "started"),
    "stop": Word("", "stop the arm on its path", lambda running, words: running.stop() or "stopped"),
    "step": Word("", "make one move", lambda running, words: running.step() or "a step"),
    "motors": Word("on|off", "switch the motors", _motors),
    "mode": Word("MODE", "AUTO, MANR (manual, 250 mm/s) or MANF (manual, full speed)", _mode),
    "jog": Word("AXIS STEP", "turn joint_1 by degrees, or move the tool along x by mm (manual mode)", _jog),
    "modify": Word(
        "TARGET [TOOL] [WOBJ]",
        "give a target the place of the arm",
        lambda running, words: running.modify_position(*words),
    ),
    "speed": Word("PERCENT", "change the speed of the arm", _speed),
    "main": Word("[ROUTINE]", "move the program pointer to the beginning, or to a routine", _main),
    "set": Word("SIGNAL VALUE", "change a signal", _set),
    "answer": Word(
        "TEXT",
        "answer the question of a program",
        lambda running, words: running.answer(" ".join(words)) or "",
    ),
    "status": Word("", "show what runs, and the signals", _status),
}
"""Commands by their words; `help` and `quit` come on top."""


class Commands:
    """Commands for a running controller.

    Args:
        running: the running controller.
        quit: function that ends the session.
    """

    def __init__(self, running: RunningController, quit: Callable[[], object]) -> None:
        self._running, self._quit = running, quit

    def run(self, line: str) -> str:
        """Execute a line, and return a sentence for the person."""
        word, *words = line.split() or [""]
        if word in ("", "help"):
            known = {**{name: (one.arguments, one.does) for name, one in WORDS.items()}, "quit": ("", "end")}
            return "\n".join(f"{f'{name} {more}':20s}  {does}" for name, (more, does) in known.items())
        if word == "quit":
            self._quit()
            return "ending"
        if word not in WORDS:
            return f"unknown command {word!r}{near(word, [*WORDS, 'help', 'quit'])}; help names all"
        least = sum(not one.startswith("[") for one in WORDS[word].arguments.split())
        most = None if word == "answer" else len(WORDS[word].arguments.split())
        if len(words) < least or (most is not None and len(words) > most):
            return f"expected {word} {WORDS[word].arguments}".rstrip()
        try:
            return WORDS[word].run(self._running, words)
        except TwinError as error:
            return str(error)


def read_commands(commands: Commands, say: Callable[[str], object]) -> None:
    """Execute the lines of the standard input in a thread of its own, until it ends."""

    def run() -> None:
        if hasattr(
            signal, "pthread_sigmask"
        ):  # in the background of a shell, reading fails and does not stop us
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})
        rest = b""
        with suppress(OSError):  # of a terminal that is gone
            while received := os.read(sys.stdin.fileno(), 4096):  # a reader of Python would hold up the end
                *lines, rest = (rest + received).split(b"\n")
                for line in lines:
                    if answer := commands.run(line.decode(errors="replace")):
                        say(answer)

    Thread(target=run, name="commands", daemon=True).start()
