"""Programs as they come: lists of modules (.pgf), folders, and backups with a controller's configuration.

A backup has the modules of its tasks in `RAPID/TASK1/PROGMOD` and `SYSMOD`, its signals in `SYSPAR/EIO.cfg`,
and its arm in `SYSPAR/MOC.cfg`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from twin.abb.rapid.language import read_text
from twin.abb.rapid.values import SUFFIXES
from twin.base.arrays import Floats
from twin.base.errors import RapidError
from twin.physics.rotations.rotations import matrix_from_quaternion

ATTRIBUTE = re.compile(r'-(\w+)\s+("[^"]*"|\S+)')
MODEL = re.compile(r"^ROB\d+_(\w+?)_(\d\.\d+)(?:_(\d+))?", re.I)


class Task(NamedTuple):
    """Task of a controller: its name, "" for the only one, and the files of its modules."""

    name: str
    files: tuple[Path, ...]


class Installation(NamedTuple):
    """Arm of a controller, as its configuration states it.

    Attributes:
        type: name of the arm's type, such as ROB1_1600_1.45_8.
        model: model in it, such as 1600; "" if the type names none.
        reach: reach in [m], 0 if the type names none.
        payload: payload in [kg], 0 if the type names none.
        ranges: smallest and largest angles of joints by their indices, in [rad].
        T_world_base: (4, 4) pose of the base frame, in [m].
    """

    type: str
    model: str
    reach: float
    payload: float
    ranges: dict[int, tuple[float, float]]
    T_world_base: Floats


# ------------------------------------------------------------------------------------------------ modules


def tasks_of(*paths: str | Path) -> list[Task]:
    """Return the tasks of files and folders: one, or those of a backup.

    Args:
        paths: module files, `.pgf` files, folders with modules, or one folder of a backup.

    Raises:
        FileNotFoundError: a path does not exist, or a `.pgf` names a module that does not.
        RapidError: a folder has no module, or a `.pgf` cannot be read.
    """
    found = [Path(path) for path in paths]
    for path in found:
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}")
    if len(found) == 1 and (folders := _task_folders(found[0])):
        tasks = [Task(one.name if len(folders) > 1 else "", _modules(one)) for one in folders]
        return [task for task in tasks if task.files]
    return [Task("", tuple(file for path in found for file in _files(path)))]


def _task_folders(path: Path) -> list[Path]:
    """Return the folders of the tasks of a backup, which have modules."""
    rapid = path / "RAPID" if (path / "RAPID").is_dir() else path
    folders = sorted(one for one in rapid.glob("TASK*") if one.is_dir()) if rapid.is_dir() else []
    return [one for one in folders if _modules(one)]


def _files(path: Path) -> tuple[Path, ...]:
    if path.suffix.lower() == ".pgf":
        return _listed(path)
    if not path.is_dir():
        return (path,)
    lists = sorted(one for one in path.iterdir() if one.suffix.lower() == ".pgf")
    if len(lists) == 1:
        return _listed(lists[0])
    if files := _modules(path):
        return files
    raise RapidError(f"{path} has no module ({', '.join(SUFFIXES)})", "name")


def _modules(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(one for one in folder.rglob("*") if one.suffix.lower() in SUFFIXES and one.is_file()))


def _listed(path: Path) -> tuple[Path, ...]:
    """Return the modules that a `.pgf` file lists."""
    try:
        names = [one.text or "" for one in ElementTree.fromstring(path.read_bytes()).iter("Module")]
    except ElementTree.ParseError as error:
        raise RapidError(f"{path}: expected <Program> with <Module> in XML: {error}", "syntax") from None
    files = [path.parent / name.strip().replace("\\", "/") for name in names]
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}, which {path.name} lists")
    if not files:
        raise RapidError(f"{path} lists no module", "name")
    return tuple(files)


# ------------------------------------------------------------------------------------------ configuration


def system_file(path: str | Path, name: str) -> Path | None:
    """Return a file of a backup's SYSPAR, such as EIO.cfg; None if there is none.

    Args:
        path: folder of a backup, or a task's folder in it.
        name: name of the file.
    """
    folder = Path(path).resolve()
    roots = [folder, *(one.parent for one in (folder, *folder.parents) if one.name.upper() == "RAPID")]
    files = (root / "SYSPAR" / name for root in roots)
    return next((file for file in files if file.is_file()), None)


def signal_types(path: str | Path) -> dict[str, str]:
    """Return the types (DI, DO, GI, GO, AI, AO) of the signals in EIO.cfg by their names.

    Raises:
        OSError: the file cannot be read.
        RapidError: it has no signal.
    """
    items = _items(read_text(path), "EIO_SIGNAL")
    found = {one["name"]: one.get("signaltype", "") for one in items if "name" in one}
    if not found:
        raise RapidError(f"{path}: expected EIO.cfg with -Name and -SignalType under EIO_SIGNAL", "syntax")
    return found


def installation(path: str | Path) -> Installation | None:
    """Return the first arm in MOC.cfg, None if it states none.

    Raises:
        OSError: the file cannot be read.
    """
    text = read_text(path)
    for robot in _items(text, "ROBOT"):
        if type_ := robot.get("use_robot_type", ""):
            found = MODEL.match(type_)
            joints = [robot.get(f"use_joint_{k}", "") for k in range(6)]
            ranges = {
                joints.index(one["name"]): (float(one["lower_joint_bound"]), float(one["upper_joint_bound"]))
                for one in _items(text, "ARM")
                if one.get("name") in joints and {"lower_joint_bound", "upper_joint_bound"} <= set(one)
            }
            return Installation(
                type_,
                found[1] if found else "",
                float(found[2]) if found else 0.0,
                float(found[3] or 0.0) if found else 0.0,
                ranges,
                _base_frame(robot),
            )
    return None


def _base_frame(robot: dict[str, str]) -> Floats:
    T = np.eye(4)
    q = [float(robot.get(f"base_frame_orient_u{k}", "1" if k == 0 else "0")) for k in range(4)]
    T[:3, :3] = matrix_from_quaternion(np.array(q) / np.linalg.norm(q))
    T[:3, 3] = [float(robot.get(f"base_frame_pos_{axis}", "0")) for axis in "xyz"]
    return T


def _items(text: str, section: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of the items of a section, by their names in lower case."""
    text = re.sub(r"\\\s*\n\s*", " ", text.replace("\r\n", "\n"))
    found = re.search(rf"^{section}:\s*$(.*?)(?=^#|^\w+:\s*$|\Z)", text, re.M | re.S)
    for line in found[1].splitlines() if found else ():
        if attributes := ATTRIBUTE.findall(line):
            yield {name.lower(): value.strip('"') for name, value in attributes}
