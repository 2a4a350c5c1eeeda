"""System, configuration, event log, and files of the folder of HOME:, RAMDISK: and TEMP:."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from twin.abb.controller.events import Entry
from twin.abb.controller.machine import place_in
from twin.abb.rws.cabinet import Cabinet, Route
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request
from twin.physics.robot.robot import Robot

ARM = "ROB_1"
VERSIONS = {1: "6.15.00.00", 2: "7.15.00.00"}
"""Versions of RobotWare; C++ clients expect three pairs of a number and a point."""

OPTIONS = "616-1 PC Interface", "623-1 Multitasking", "689-1 Externally Guided Motion (EGM)"


def _system(cabinet: Cabinet, request: Request) -> Answer:
    version = VERSIONS[cabinet.version]
    end = "-li" if cabinet.version == 1 else ""
    fields = {"name": cabinet.name, "version": version, "rwversion": version, "rwversionname": version}
    options = [Item(f"sys-option{end}", one, {"option": one}) for one in OPTIONS]
    return Answer([Item(f"sys-system{end}", "system", fields), *options])


def _controller(cabinet: Cabinet, request: Request) -> Answer:
    fields = {"ctrl-id": cabinet.name, "ctrl-name": cabinet.name, "ctrl-type": "Virtual Controller"}
    kind = "ctrl-identity-info" if cabinet.version == 1 else "ctrl-identity"
    return Answer([Item(kind, "identity", fields)])


def _variable(cabinet: Cabinet, request: Request) -> Answer:
    """Return the path of a device, which `fileservice` and programs understand."""
    name = request.part["name"]
    if not name.startswith("$"):
        cabinet.report_missing("GET", f"ctrl/{name}")
        raise Refused(Condition.NOT_SIMULATED, f"/ctrl/{name} is not simulated")
    if name.upper() not in ("$HOME", "$RAMDISK", "$TEMP"):
        raise Refused(Condition.NO_ADDRESS, f"there is no variable {name}, expected $HOME, $RAMDISK or $TEMP")
    return Answer([Item("ctrl-env", name, {"_value": f"{name[1:].upper()}:"})])


# ----------------------------------------------------------------------------------------- configuration


@lru_cache(maxsize=8)
def _configuration(robot: Robot) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the instances by topic and type, as drivers of ROS ask for them: names with attributes."""
    axes = range(1, robot.n + 1)
    joints = {f"use_joint_{k - 1}": f"rob1_{k}" for k in axes}
    frame = {f"base_frame_pos_{axis}": "0" for axis in "xyz"}
    frame |= {f"base_frame_orient_u{k}": "1" if k == 0 else "0" for k in range(4)}
    return {
        "sys/mechanical_unit_group": {},
        "sys/present_options": {one: {"name": one, "desc": one} for one in OPTIONS},
        # without MultiMove the units are looked up by their robot, which has the name of the unit
        "moc/mechanical_unit": {
            ARM: {"name": ARM, "use_robot": ARM, **{f"use_single_{k}": "" for k in range(6)}}
        },
        "moc/robot": {
            ARM: {"name": ARM, "use_robot_type": robot.name, **joints, **frame, "base_frame_coordinated": ""}
        },
        "moc/single": {},
        "moc/joint": {
            f"rob1_{k}": {
                "name": f"rob1_{k}", "logical_axis": str(k), "kinematic_axis_number": str(k),
                "use_arm": f"rob1_{k}", "use_transmission": f"rob1_{k}",
            }
            for k in axes
        },
        "moc/arm": {
            f"rob1_{k}": {"name": f"rob1_{k}", "lower_joint_bound": f"{low:.9g}",
                          "upper_joint_bound": f"{high:.9g}"}
            for k, low, high in zip(axes, robot.q_min, robot.q_max, strict=True)
        },
        "moc/transmission": {
            f"rob1_{k}": {"name": f"rob1_{k}", "rotating_move": "true" if kind != "prismatic" else "false"}
            for k, kind in zip(axes, robot.joint_kinds, strict=True)
        },
    }  # fmt: skip


def _instances(cabinet: Cabinet, request: Request) -> Answer:
    name = f"{request.part['topic']}/{request.part['type']}".lower()
    found = _configuration(cabinet.controller.robot).get(name)
    if found is None:
        raise Refused(Condition.NO_RESOURCE, f"there is no configuration {name}")

    def item(title: str, attributes: Mapping[str, str]) -> Item:
        nested = [Item("cfg-ia-t-li", key, {"value": value}) for key, value in attributes.items()]
        return Item("cfg-dt-instance-li", title, {"attrib": nested})

    return Answer([item(title, attributes) for title, attributes in found.items()], page=70)


# --------------------------------------------------------------------------------------------- event log


def _event(entry: Entry) -> Item:
    event = entry.event
    t = time.strftime("%Y-%m-%d T  %H:%M:%S", time.localtime(entry.t))  # clients expect two blanks
    fields = {
        "msgtype": str(event.type), "code": str(entry.code), "src-name": "irb-twin", "tstamp": t,
        "title": event.title, "desc": " ".join(event.texts) or event.title,
        "conseqs": "", "causes": "", "actions": "",
        "argc": str(len(entry.arguments)),
        "argv": [Item("", fields={"type": "STRING", "value": one}) for one in entry.arguments],
    }  # fmt: skip
    return Item("elog-message-li", f"/rw/elog/0/{entry.number}", fields)


def _event_log(cabinet: Cabinet, request: Request) -> Answer:
    return Answer([_event(one) for one in cabinet.controller.execution.events], page=100)


def _one_event(cabinet: Cabinet, request: Request) -> Answer:
    for one in cabinet.controller.execution.events:
        if str(one.number) == request.part["number"]:
            return Answer([_event(one)._replace(kind="elog-message")])
    raise Refused(Condition.NO_RESOURCE, f"there is no event {request.part['number']}")


DEVICES = "home", "ramdisk", "temp"


def place(cabinet: Cabinet, name: str) -> Path:
    """Return the path of a name such as `HOME:/x`, `$home/x` or `RAMDISK:x`.

    Raises:
        Refused: it names another device, or leaves the folder.
    """
    plain = name.replace("\\", "/").lstrip("/")
    device, colon, rest = plain.partition(":")
    if not colon or "/" in device:
        device, _, rest = plain.partition("/")
    if device.lstrip("$").lower() not in DEVICES:
        raise Refused(Condition.NO_VOLUME, f"expected HOME:, RAMDISK: or TEMP: before a path, got {name!r}")
    path = place_in(cabinet.home, rest.lstrip("/"))
    if path is None:
        raise Refused(Condition.REJECTED, f"{name!r} leaves the folder of the controller")
    return path


def _at(cabinet: Cabinet, request: Request) -> Path:
    return place(cabinet, request.part["path"])


def _devices(cabinet: Cabinet, request: Request) -> Answer:
    return Answer([Item("fs-device", f"${one}") for one in DEVICES])


def _read_file(cabinet: Cabinet, request: Request) -> Answer:
    path = _at(cabinet, request)
    if path.is_dir():
        found = sorted(path.iterdir(), key=lambda one: one.name)
        return Answer([_entry(one) for one in found if not one.is_symlink()], page=100)
    try:
        return Answer(content=path.read_bytes())
    except OSError:
        raise _missing(request) from None


def _entry(path: Path) -> Item:
    state = path.stat()
    t = time.strftime("%Y-%m-%d T %H:%M:%S", time.localtime(state.st_mtime))
    if path.is_dir():
        return Item("fs-dir", path.name, {"fs-cdate": t, "fs-mdate": t})
    return Item("fs-file", path.name, {"fs-size": str(state.st_size), "fs-mdate": t, "fs-readonly": "false"})


def _missing(request: Request) -> Refused:
    return Refused(Condition.NO_FILE, f"there is no {request.part['path']}")


def _write_file(cabinet: Cabinet, request: Request) -> Answer:
    """Write a file, which appears whole."""
    path = _at(cabinet, request)
    if path.is_dir():
        raise Refused(Condition.NO_RESOURCE, f"{request.part['path']} is a folder", 400)
    existed = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(prefix=".irb-twin-", dir=path.parent)
        with open(number, "wb") as file:
            file.write(request.body)
        os.replace(draft, path)
    except OSError as error:
        raise Refused(Condition.REJECTED, f"{request.part['path']}: {error.strerror}") from None
    return Answer(status=200 if existed else 201)


def _delete_file(cabinet: Cabinet, request: Request) -> Answer:
    path = _at(cabinet, request)
    try:
        if path == cabinet.home.resolve():
            raise Refused(Condition.REJECTED, "the folder of the controller stays")
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        raise _missing(request) from None
    return DONE


ROUTES = (
    Route("GET", "rw/system", _system),
    Route("GET", "ctrl", _controller),
    Route("GET", "ctrl/{name}", _variable),
    Route("GET", "rw/cfg/{topic}/{type}/instances", _instances, waits=True),
    Route("GET", "rw/elog/{domain}", _event_log, waits=True),
    Route("GET", "rw/elog/{domain}/{number}", _one_event),
    Route("GET", "fileservice", _devices, waits=True),
    Route("GET", "fileservice/{path...}", _read_file, waits=True),
    Route("PUT", "fileservice/{path...}", _write_file, waits=True),
    Route("DELETE", "fileservice/{path...}", _delete_file, waits=True),
)  # fmt: skip
