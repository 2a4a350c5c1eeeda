"""System, configuration, event log, and files of the folder of HOME:, RAMDISK: and TEMP:."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from twin.abb.controller.events import MOST_EVENTS, Entry
from twin.abb.controller.machine import place_in
from twin.abb.rws.cabinet import NONE, Cabinet, Fields, Route, listed, shown
from twin.abb.rws.exchange import CODES, DONE, Answer, Condition, Item, Refused, Request
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


def _identity(cabinet: Cabinet, request: Request) -> Fields:
    return {"ctrl-id": cabinet.name, "ctrl-name": cabinet.name, "ctrl-type": "Virtual Controller"}


def _return_code(cabinet: Cabinet, request: Request) -> Fields:
    """Return the name of a code, and its words as a description."""
    code = request.query.get("code", "")
    name = next((name for known, name in CODES.items() if str(known) == code), None)
    if name is None:
        raise Refused(Condition.NO_RESOURCE, f"there is no code {code}")
    words = name.replace("_", " ").capitalize()
    return {"name": f"SYS_CTRL_E_{name}", "code": code, "severity": "Error", "description": words}


def _variable(cabinet: Cabinet, request: Request) -> Answer:
    """Return the path of a device, which `fileservice` and programs understand."""
    name = request.part["name"]
    if not name.startswith("$"):
        cabinet.say_once(f"GET /ctrl/{name} is not simulated: status 501")
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


def _types(cabinet: Cabinet, request: Request) -> dict[str, Fields]:
    names = (one.upper().split("/") for one in _configuration(cabinet.controller.robot))
    found: dict[str, Fields] = {type_: {} for topic, type_ in names if topic == request.part["topic"].upper()}
    if not found:
        raise Refused(Condition.NO_RESOURCE, f"there is no configuration {request.part['topic']}")
    return found


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
        **{f"arg{k}": one for k, one in enumerate(entry.arguments, 1)},
    }  # fmt: skip
    return Item("elog-message-li", f"/rw/elog/0/{entry.number}", fields)


LOGS = 0, 1, 2, 3, 4, 5, 7, 8  # domains of the event log; 0 has the events of all


def _log(request: Request) -> int:
    """Return the number of a domain of the event log.

    Raises:
        Refused: there is none.
    """
    if (text := request.part.get("domain", "0")) not in map(str, LOGS):
        raise Refused(Condition.NO_RESOURCE, f"there is no domain {text}, expected one of {LOGS}")
    return int(text)


def _event_log(cabinet: Cabinet, request: Request) -> Answer:
    domain = _log(request)
    events = [one for one in cabinet.controller.execution.events if domain in (0, one.event.domain)]
    return Answer([_event(one) for one in events], page=100)


def _logs(cabinet: Cabinet, request: Request) -> dict[str, Fields]:
    domains = [one.event.domain for one in cabinet.controller.execution.events]
    counts = {n: len([one for one in domains if n in (0, one)]) for n in LOGS}
    return {str(n): {"numevts": str(count), "buffsize": str(MOST_EVENTS)} for n, count in counts.items()}


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
    path = _at(cabinet, request)
    if path.is_dir():
        raise Refused(Condition.NO_RESOURCE, f"{request.part['path']} is a folder", 400)
    existed = path.exists()
    store(path, request.body, request.part["path"])
    return Answer(status=200 if existed else 201)


def store(path: Path, content: bytes, name: str) -> None:
    """Write a file, which appears whole.

    Raises:
        Refused: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(prefix=".irb-twin-", dir=path.parent)
        with open(number, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except OSError as error:
        raise Refused(Condition.REJECTED, f"{name}: {error.strerror}") from None


def _copy(path: Path, new: Path) -> None:
    """Copy a file, which appears whole, or a folder, with its links as links."""
    if path.is_dir():
        shutil.copytree(path, new, symlinks=True)
    else:
        store(new, path.read_bytes(), new.name)


CHANGES: Mapping[str, Callable[[Path, Path], object]] = {
    "copy": _copy, "rename": Path.rename, "create": lambda path, new: new.mkdir()
}  # fmt: skip


def _change(action: str = "") -> Callable[[Cabinet, Request], Answer]:
    """Return the service that copies, renames or makes a file or folder; in 1.0 the body has the action."""

    def run(cabinet: Cabinet, request: Request) -> Answer:
        path, name = _at(cabinet, request), request.given("fs-newname")
        if (wanted := action or request.given("fs-action")) not in CHANGES:
            raise Refused(Condition.ARGUMENT, f"fs-action: expected {', '.join(CHANGES)}, got {wanted!r}")
        if not path.exists():
            raise _missing(request)
        home, at = cabinet.home.resolve(), path if wanted == "create" else path.parent
        new = place(cabinet, name[13:]) if name[:13] == "/fileservice/" else place_in(home, str(at / name))
        if new is None or new == home or (wanted != "create" and new.is_relative_to(path)):
            raise Refused(Condition.REJECTED, f"{request.part['path']} cannot be {name!r}")
        replaces = wanted == "copy" and request.given("fs-overwrite", "false") == "true"
        if new.exists() and not (replaces and path.is_file() and new.is_file()):
            raise Refused(Condition.EXISTS, f"{name} exists already")
        try:
            CHANGES[wanted](path, new)
        except OSError as error:
            raise Refused(Condition.REJECTED, f"{name}: {error.strerror}") from None
        return Answer(status=201) if wanted == "create" else DONE

    return run


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
    shown("ctrl", "ctrl-identity-info", _identity, "ctrl-identity"),
    shown("ctrl/identity", "ctrl-identity-info", _identity),
    shown("ctrl/clock", "ctrl-clock-info",
          lambda c, r: {"datetime": time.strftime("%Y-%m-%d T %H:%M:%S", time.gmtime())}),
    Route("GET", "ctrl/options", lambda c, r: DONE if c.version == 1 else Answer()),
    Route("GET", "ctrl/{name}", _variable),
    listed("rw/system/options", "sys-option-li", lambda c, r: {one: {"option": one} for one in OPTIONS}),
    shown("rw/system/robottype", "sys-robottype", lambda c, r: {"robot-type": c.controller.robot.name}),
    shown("rw/retcode", "err-desc", _return_code),
    listed("rw/cfg", "cfg-domain-li",
           lambda c, r: {one.split("/")[0].upper(): {} for one in _configuration(c.controller.robot)}),
    listed("rw/cfg/{topic}", "cfg-dt-li", _types),
    Route("GET", "rw/cfg/{topic}/{type}/instances", _instances, waits=True),
    listed("rw/elog", "elog-domain-li", _logs),
    *(Route("POST", path, lambda c, r: c.controller.execution.events.clear(_log(r)) or DONE, action)
      for path, action in (("rw/elog", "clearall"), ("rw/elog/{domain}", "clear"))),
    Route("GET", "rw/elog/{domain}", _event_log, waits=True),
    Route("GET", "rw/elog/{domain}/{number}", _one_event),
    Route("GET", "fileservice", lambda c, r: Answer([Item("fs-device", f"${one}") for one in DEVICES])),
    Route("GET", "fileservice/{path...}", _read_file, waits=True),
    Route("PUT", "fileservice/{path...}", _write_file, waits=True),
    Route("DELETE", "fileservice/{path...}", _delete_file, waits=True),
    Route("POST", "fileservice/{path...}", _change(), path_2=NONE, waits=True),
    *(Route("POST", NONE, _change(one), path_2=f"fileservice/{{path...}}/{one}", waits=True)
      for one in CHANGES),
)  # fmt: skip
