"""Reading of NumPy archives (usually `.npz`) from untrusted sources, and storage of robots in them.

Nothing is unpickled.  Memory for an array is allocated only after its size has been compared with that of the
file: an archive that `numpy.savez` writes is as large as its arrays.
"""

import io
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from twin.base.errors import ModelWarning, RobotError, TwinError
from twin.physics.multibody.tree import Tree, body_from_parameters, frozen
from twin.physics.robot.dh_tables import dh_robot
from twin.physics.robot.drives.drives import MORE_FRICTION, Drives
from twin.physics.robot.loading import laboratory_names, load, robot_names
from twin.physics.robot.loops import locked
from twin.physics.robot.robot import DH, Payload, Robot
from twin.physics.rotations.rotations import rigid_poses

KINDS = "biufcU"
"""NumPy dtype kinds that an archive may contain: booleans, integers, floats, complex numbers and text."""


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Return the arrays of an archive by name.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not such an archive, or the header of an array contradicts its content.
        zipfile.BadZipFile: the archive is damaged.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # reading a pipe or a device might never end
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise ValueError("it contains a single array")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if not sum(member.file_size for member in members) <= path.stat().st_size:
                raise ValueError("its arrays are larger than the file: it is compressed or forged")
            names = [member.filename for member in members]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"it contains {twice[0]} twice")
            return {
                member.filename.removesuffix(".npy"): _array(archive.read(member), member.filename)
                for member in members
            }


def _array(content: bytes, name: str) -> np.ndarray:
    """Return the array in the bytes of a `.npy` file."""
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise ValueError(f"{name} has the unknown format version {version}")
    shape, columns_first, dtype = read_header(stream)
    if dtype.kind not in KINDS or dtype.subdtype is not None or not dtype.isnative:
        raise ValueError(f"{name} contains {dtype}, expected numbers or text")
    size, available = dtype.itemsize, len(content) - stream.tell()
    for length in shape:
        size *= length
    if min(shape, default=0) < 0 or size != available:
        raise ValueError(f"{name} declares shape {shape} of {dtype}, but contains {available} bytes")
    array = np.ndarray(shape, dtype, content, stream.tell(), order="F" if columns_first else "C")
    return array.copy(order="K")


TREE = ("inertias", "base_inertia", "T_parent_joint", "axes", "T_joint_flange")
ARM = (
    *("q_min", "q_max", "qd_max", "tau_max", "passive_min", "passive_max"),
    *("dh_coupling", "embedding", "embedding_offset"),
)
"""Numeric attributes of a robot that are stored, besides those of its tree."""

SLACK = 1e-6
"""Relative error of moments of inertia that rounding to six printed digits can cause."""

LIMITS = ("q_min", "q_max", "qd_max", "tau_max")


def robot_to_record(robot: Robot) -> dict[str, Any]:
    """Return the data from which `robot_from_record` reconstructs a robot, by name.

    Raises:
        TwinError: the robot was created neither from a file nor from a DH table.
    """
    content: dict[str, Any] = {"robot": _source(robot), "gravity": robot.gravity, "drives": robot.drive_mode}
    content |= {"tool_frame": robot.tool_frame} if robot.tool_frame else {}
    if robot.locked:
        content["locked_names"] = np.array(list(robot.locked))
        content["locked_at"] = np.array(list(robot.locked.values()))
    content |= _numbers(robot, robot.unloaded_tree)
    if not robot.has_inertia:
        del content["inertias"]
    content["structure"] = np.array(_structure(robot))
    if robot.file is None:
        content |= _table(robot)
    if robot.payload is not None:
        content |= {f"payload_{item.name}": getattr(robot.payload, item.name) for item in fields(Payload)}
    if robot.drives is not None:
        content |= {f"drives_{item.name}": getattr(robot.drives, item.name) for item in fields(Drives)}
    return content


def robot_from_record(content: Mapping[str, Any]) -> Robot:
    """Reconstruct the robot that `robot_to_record` recorded.

    Raises:
        UnknownNameError, RobotError: the robot no longer exists, has other joints now, or is impossible.
        KeyError: an entry is missing.
    """
    name = _texts(content, "robot", 0)
    robot = _from_table(name, content) if "dh_kinds" in content else _loaded(name, content)
    robot = _with_numbers(robot, content)
    robot = _with_drives(robot.with_gravity(content["gravity"]), content)
    if "payload_mass" not in content:
        return robot
    return robot.with_payload(
        Payload(float(content["payload_mass"]), content["payload_com"], content["payload_inertia"])
    )


def _loaded(name: str, content: Mapping[str, Any]) -> Robot:
    """Return the robot of a name or file, with the recorded tool frame and locked joints.

    Impossible bodies are those of the file, if the recorded robot has dynamics.
    """
    tool_frame = _texts(content, "tool_frame", 0) if "tool_frame" in content else None
    if "locked_names" not in content:
        return load(name, tool_frame=tool_frame, unphysical="inertias" in content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # fingers that move freely are locked
        robot = load(name, tool_frame=tool_frame, unphysical="inertias" in content)
    held = zip(_texts(content, "locked_names", 1), content["locked_at"].tolist(), strict=True)
    return locked(robot, {joint: at for joint, at in held if joint in robot.joint_names})


def _source(robot: Robot) -> str:
    """Return the argument with which `load` finds the robot: its name if that suffices, else its file."""
    known = (*robot_names(), *laboratory_names())
    if robot.file is None or (robot.name in known and load(robot.name).file == robot.file):
        return robot.name
    return str(robot.file.absolute())


def _table(robot: Robot) -> dict[str, Any]:
    """Return the text entries that define a robot without a file, besides its DH table and its limits."""
    if robot.dh is None:
        raise TwinError(
            f"robot {robot.name!r} cannot be stored in a log: it has neither a file nor a DH table"
        )
    return {"dh_kinds": np.array(robot.tree.kinds), "joint_names": np.array(robot.tree.names)}


def _with_drives(robot: Robot, content: Mapping[str, Any]) -> Robot:
    """Return the robot with the recorded drives; files without them are of ideal drives."""
    if "drives" not in content:
        return robot
    drives = None
    if "drives_ratio" in content:
        names = [item.name for item in fields(Drives)]  # older files lack the further friction
        known = [name for name in names if name not in MORE_FRICTION or f"drives_{name}" in content]
        columns = {name: content[f"drives_{name}"] for name in known}
        columns["friction_at"] = tuple(_texts(content, "drives_friction_at", 1))
        drives = Drives(**columns)
    return replace(robot, drives=None).with_drives(_texts(content, "drives", 0), drives)


def _texts(content: Mapping[str, Any], name: str, axes: int) -> Any:
    """Return an entry as a text (`axes` 0) or a list of texts (`axes` 1)."""
    array = content[name]
    if array.dtype.kind != "U" or array.ndim != axes:
        raise TwinError(f"expected {name} to be text of {axes} axes, got {array.dtype} of {array.ndim}")
    return array.tolist()


def _from_table(name: str, content: Mapping[str, Any]) -> Robot:
    return dh_robot(
        name,
        DH(*(content[f"dh_{letter}"] for letter in DH._fields)),
        kinds=_texts(content, "dh_kinds", 1),
        joint_names=_texts(content, "joint_names", 1),
        **{name: content[name] for name in LIMITS},
    )


def _structure(robot: Robot) -> list[str]:
    """Describe the structure of a robot; a robot with the same structure can take the recorded numbers."""
    tree = robot.tree
    joints = zip(tree.names, tree.kinds, tree.parents, strict=True)
    return [
        *(f"{kind} joint {name} on joint {parent}" for name, kind, parent in joints),
        f"flange on joint {tree.flange_joint}",
        f"motors on joints {robot.driven}",
        *(f"loop {loop.name} of joints {loop.joints}" for loop in robot.loops),
        *(repr(torque.with_values([0.0] * len(torque.values))) for torque in tree.torques),
    ]


def _numbers(robot: Robot, tree: Tree) -> dict[str, np.ndarray]:
    """Return the numbers of a robot with this tree, by their names in a record."""
    numbers = {name: getattr(tree, name) for name in TREE} | {name: getattr(robot, name) for name in ARM}
    points = [loop.points for loop in robot.loops]
    numbers["loop_points"] = np.array(points, dtype=np.float64).reshape(-1, 2, 3)
    numbers["axis_torques"] = robot.tree.torque_values
    if robot.dh is not None:
        numbers |= {f"dh_{letter}": column for letter, column in zip(DH._fields, robot.dh, strict=True)}
    return numbers


def _with_numbers(robot: Robot, content: Mapping[str, Any]) -> Robot:
    """Return the robot with the recorded numbers; older files contain only masses and torque limits."""
    if "structure" in content:
        then, now = _texts(content, "structure", 1), _structure(robot)
        if then != now:
            new, old = ", ".join(x for x in now if x not in then), ", ".join(x for x in then if x not in now)
            raise RobotError(
                f"{robot.name!r} is now another robot: {new or 'nothing'} instead of {old or 'nothing'}"
            )
    available = _numbers(robot, robot.tree)
    found = {name: content[name] for name in available if name in content}
    for name, array in found.items():
        shape = available[name].shape
        if array.shape != shape or array.dtype != np.float64 or np.any(np.isnan(array)):
            actual = f"{array.dtype} of shape {array.shape}"
            raise TwinError(f"expected {name} to be float64 of shape {shape}, without NaN, got {actual}")
    numbers = {name: frozen(array) for name, array in (available | found).items()}
    _require_possible(robot, numbers, found)
    tree = replace(robot.tree, **{name: numbers[name] for name in TREE})
    points = zip(robot.loops, numbers["loop_points"], strict=True)
    return replace(
        robot,
        tree=tree.with_torque_values(numbers["axis_torques"]),
        **{name: numbers[name] for name in ARM},
        loops=tuple(loop._replace(points=frozen(shared)) for loop, shared in points),
        dh=None if robot.dh is None else DH(*(numbers[f"dh_{letter}"] for letter in DH._fields)),
        inertia_fault="" if "inertias" in found else robot.inertia_fault,
    )


def _require_possible(robot: Robot, numbers: Mapping[str, np.ndarray], found: Mapping[str, Any]) -> None:
    """Raise `TwinError` if the recorded numbers cannot belong to a robot."""
    if not np.all(numbers["tau_max"] > 0):
        raise TwinError(f"expected torque limits tau_max above 0 N m, got {numbers['tau_max'].tolist()}")
    for name in ("T_parent_joint", "T_joint_flange"):
        if name in found:
            rigid_poses(numbers[name], name)
    bodies, given = {}, {}
    if "inertias" in found:
        bodies, given = (
            dict(zip(robot.tree.links, rows, strict=True))
            for rows in (numbers["inertias"], robot.tree.inertias)
        )
    if "base_inertia" in found:
        bodies["base"], given["base"] = numbers["base_inertia"], robot.tree.base_inertia
    for link, parameters in bodies.items():
        if np.array_equal(parameters, given[link]):  # as in the file, which the loader has judged
            continue
        if not np.all(np.isfinite(parameters)):
            raise TwinError(f"expected finite inertias, got {parameters.tolist()} of link {link!r}")
        mass, com, inertia = body_from_parameters(parameters)
        moments = np.linalg.eigvalsh(inertia)
        slack = SLACK * (np.max(np.abs(moments)) + abs(mass) * (com @ com))
        if not (mass >= 0 and moments[0] >= -slack and moments[2] <= moments[0] + moments[1] + slack):
            raise TwinError(
                f"no body has the inertia of link {link!r}: {mass:g} kg, principal moments "
                f"{', '.join(f'{moment:g}' for moment in moments)} kg m^2"
            )
