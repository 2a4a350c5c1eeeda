"""File of a station: robot, tasks with their modules, signals, and ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twin.base.errors import EgmError, WrongUse, near

if TYPE_CHECKING:
    from twin.abb.controller.egm import EgmDevices
    from twin.abb.controller.execution import TaskSettings
    from twin.abb.controller.machine import Network
    from twin.abb.rapid.signals import Signals
    from twin.studies.cell.cell import Cell

KINDS = "NORMAL", "STATIC", "SEMISTATIC"
SIGNAL_TYPES = "DI", "DO", "GI", "GO", "AI", "AO"
ACCESS = "All", "Default", "ReadOnly", "Internal"

STATION = {
    "robot?": "text", "drives?": "text", "home?": "text", "bind?": "text", "allow?": "texts",
    "cell?": "text", "cycle?": "text", "start?": "text", "io?": "text", "ports?": "any", "tasks?": "any",
    "signals?": "any", "egm?": "any", "gripper?": "any", "supervision?": "any",
}  # fmt: skip
EGM = {"to?": "text", "lag?": "number", "devices?": "any", "parameters?": "any"}
GRIPPER = {"signal?": "text", "within?": "number"}
TASK = {"modules?": "texts", "kind?": "text", "entry?": "text", "motion?": "any"}
SIGNAL = {
    "type": "text", "value?": "signed", "state?": "text", "follows?": "text", "delay?": "number",
    "inverted?": "any", "device?": "text", "access?": "text",
}  # fmt: skip
"""Keys of the file's tables with the kinds of their values, see `urdf.schema.check_table`."""


@dataclass(frozen=True, eq=False)
class Station:
    """Station of a virtual controller.

    Attributes:
        tasks: tables of the tasks by their names.
        signals: tables of the signals by their names.
        start: whether the programs start by themselves (auto), or wait for a client (manual); None for
            manual with Robot Web Services, and auto without.
        ports: local ports by those that programs name.
        egm: table of the clients of EGM.
        gripper: table of the gripper of the cell's parts, which may be empty; None without one.
        supervision: largest external torques by the names of the joints that are judged, in [N m].
        folder: folder from which the paths of the file begin.
    """

    tasks: Mapping[str, Mapping[str, Any]]
    signals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    egm: Mapping[str, Any] = field(default_factory=dict)
    gripper: Mapping[str, Any] | None = None
    supervision: Mapping[str, float] = field(default_factory=dict)
    robot: str | None = None
    drives: str | None = None
    home: str | None = None
    bind: str = "127.0.0.1"
    allow: tuple[str, ...] = ()
    cycle: str = "forever"
    start: str | None = None
    io: str | None = None
    cell: str | None = None
    folder: Path = Path()

    @staticmethod
    def read(path: Path) -> Station:
        """Return the station of a file.

        Raises:
            WrongUse: the file cannot be read, or a value is wrong.
        """
        from urdf.schema import FactsError, read_checked

        try:
            content = read_checked(path, _check)
        except FactsError as error:
            text = str(error)
            raise WrongUse(text if str(path) in text else f"{path}: {text}") from None
        content["allow"] = tuple(content.get("allow", ()))
        return Station(**{"tasks": {}, **content, "folder": path.parent})

    def task_settings(self) -> list[TaskSettings]:
        """Return the settings of the tasks, with their modules.

        Raises:
            OSError: a module cannot be read.
            RapidError: a module is not RAPID.
            WrongUse: the station has no task.
        """
        from twin.abb.controller.execution import TaskSettings
        from twin.abb.rapid.language import read_source
        from twin.abb.rapid.programs import tasks_of

        if not self.tasks:
            raise WrongUse("the station has no task: [tasks.T_ROB1] with modules, or --load T_ROB1=FILE.mod")
        moving = [name for name, one in self.tasks.items() if one.get("motion")] or [
            name for name in self.tasks if name.upper().startswith("T_ROB")
        ][:1]
        found = []
        for name, one in self.tasks.items():
            [task] = tasks_of(*(self.folder / module for module in one.get("modules", ())))
            modules = [module for file in task.files for module in read_source(file).modules]
            found.append(
                TaskSettings(
                    name, modules, one.get("kind", "NORMAL"), one.get("entry", "main"), moves=name in moving
                )
            )
        return found

    def cell_signals(self, inputs: Any) -> Signals:
        """Return the signals, with inputs of a user."""
        from twin.abb.rapid.programs import signal_types
        from twin.abb.rapid.signals import Connection, Signals

        types = {} if self.io is None else signal_types(self.folder / self.io)
        given = {name: float(one["value"]) for name, one in self.signals.items() if "value" in one}
        found = Signals(
            {**given, **inputs}, declared={**types, **{n: s["type"] for n, s in self.signals.items()}}
        )
        if (signal := (self.gripper or {}).get("signal")) and signal not in found:
            raise WrongUse(f"gripper.signal: the station has no signal {signal}{near(signal, found.names)}")
        for name, one in self.signals.items():
            found.tables[name.lower()] = one
            if "follows" in one:
                follower = Connection(name, float(one.get("delay", 0.0)), bool(one.get("inverted", False)))
                found.connections.setdefault(one["follows"].lower(), []).append(follower)
        return found

    def surroundings(self, given: Path | None) -> Cell | None:
        """Return what stands around the arm, from the file of a user or of the station; None without one."""
        from twin.studies.cell.cell import load_cell

        file = given or (None if self.cell is None else self.folder / self.cell)
        cell = None if file is None else load_cell(file)
        if self.gripper is not None and not (cell and any(one.mass for one in cell.objects)):
            raise WrongUse("gripper: the cell has no part, which is an object with a mass")
        return cell

    @property
    def outputs(self) -> dict[str, str]:
        """States of the controller by the names of the outputs that have them."""
        return {name: one["state"] for name, one in self.signals.items() if "state" in one}

    def network(self, bind: str | None, allow: tuple[str, ...]) -> Network:
        """Return the network, with addresses of a user."""
        from twin.abb.controller.machine import Network

        ports = {int(name): port for name, port in self.ports.items()}
        return Network(bind or self.bind, (*self.allow, *allow), ports)

    def egm_devices(self, to: tuple[str, int] | None, lag: float | None) -> EgmDevices:
        """Return the clients of EGM, with an address and a lag of a user.

        Raises:
            WrongUse: an address or a parameter is wrong.
        """
        from argparse import ArgumentTypeError

        from scenarios.abb.egm.addresses import address
        from twin.abb.controller.egm import EgmDevices
        from twin.abb.egm.guidance.settings import GuidanceSettings
        from twin.abb.egm.robot.session import SessionPlan

        given = dict(self.egm)
        try:
            found: dict[str, Any] = {"parameters": GuidanceSettings(**given.get("parameters", {}))}
            found["named"] = {name.lower(): address(one) for name, one in given.get("devices", {}).items()}
            if to is not None or "to" in given:
                found["to"] = to or address(given["to"])
        except (ArgumentTypeError, EgmError, TypeError) as error:
            raise WrongUse(f"[egm]: {error}") from None
        if lag is not None or "lag" in given:
            found["lag"] = given["lag"] if lag is None else lag
        try:
            SessionPlan(lag=found.get("lag", 0.0))
        except EgmError as error:
            raise WrongUse(f"--lag: {error}") from None
        return EgmDevices(**found)


def _check(content: dict[str, Any]) -> None:
    """Raise `FactsError` for an unknown key or a wrong value."""
    from twin.abb.controller.controller import SYSTEM_OUTPUTS
    from urdf.schema import FactsError, check_table

    check_table("", content, STATION, 0)
    _one_of("cycle", content.get("cycle", "forever"), ("once", "forever"))
    _one_of("start", content.get("start", "auto"), ("auto", "manual"))
    for name, one in _tables(content, "tasks"):
        check_table(name, one, TASK, 0)
        _one_of(f"{name}.kind", one.get("kind", "NORMAL"), KINDS)
    for name, one in _tables(content, "signals"):
        check_table(name, one, SIGNAL, 0)
        _one_of(f"{name}.type", one["type"], SIGNAL_TYPES)
        _one_of(f"{name}.access", one.get("access", "All"), ACCESS)
        if "state" in one:
            _one_of(f"{name}.state", one["state"], SYSTEM_OUTPUTS)
    check_table("egm", content.get("egm", {}), EGM, 0)
    check_table("gripper", content.get("gripper", {}), GRIPPER, 0)
    if content.get("supervision") == {}:
        raise FactsError("supervision: expected torques of joints, as joint_2 = 40.5, got an empty table")
    for name, port in _tables(content, "ports"):
        if not (name[6:].isdigit() and isinstance(port, int) and 0 <= port <= 65535):
            raise FactsError(f"{name}: expected numbers, as 5000 = 15000, got {port!r}")


def _tables(content: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    from urdf.schema import FactsError

    if not isinstance(tables := content.get(key, {}), dict):
        raise FactsError(f"{key}: expected tables, as [{key}.NAME], got {tables!r}")
    return [(f"{key}.{name}", one) for name, one in tables.items()]


def _one_of(where: str, value: Any, known: tuple[str, ...]) -> None:
    from urdf.schema import FactsError

    if value not in known:
        hint = near(str(value), known) or f": expected one of {', '.join(known)}"
        raise FactsError(f"{where}: unknown {value!r}{hint}")
