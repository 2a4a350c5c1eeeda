"""File service on the folder that stands for HOME:, RAMDISK: and TEMP:; no path leaves it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from twin.abb.controller.machine import place_in
from twin.abb.rws.cabinet import Cabinet, Route
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request

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


def _read(cabinet: Cabinet, request: Request) -> Answer:
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


def _write(cabinet: Cabinet, request: Request) -> Answer:
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


def _delete(cabinet: Cabinet, request: Request) -> Answer:
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
    Route(
        "GET",
        "fileservice",
        lambda c, r: Answer([Item("fs-device", f"${one}") for one in DEVICES]),
        waits=True,
    ),
    Route("GET", "fileservice/{path...}", _read, waits=True),
    Route("PUT", "fileservice/{path...}", _write, waits=True),
    Route("DELETE", "fileservice/{path...}", _delete, waits=True),
)
