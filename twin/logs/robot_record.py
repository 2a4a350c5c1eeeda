"""What a log keeps of a robot, and how it finds the robot again.

That is where the robot came from: its name, or else its file; and what may have been changed since: masses,
torque limits, gravity, payload and drives.  One that was made of a DH table in a program has neither name nor
file, so its table and its other limits are kept, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from twin.drives.drives import Drives
from twin.errors import TwinError
from twin.loading.dh_tables import dh_robot
from twin.loading.loading import laboratory_names, load, robot_names
from twin.multibody.tree import frozen
from twin.robot.robot import DH, Payload, Robot

LIMITS = ("q_min", "q_max", "qd_max", "tau_max")


def robot_to_record(robot: Robot) -> dict[str, Any]:
    """What `robot_from_record` needs to know of a robot, by name.

    Raises:
        TwinError: the robot comes neither from a file nor from a DH table.
    """
    content: dict[str, Any] = {"robot": _source(robot), "gravity": robot.gravity, "drives": robot.drive_mode}
    content["tau_max"] = robot.tau_max
    if robot.has_inertia:
        content["inertias"] = (robot.tree if robot.bare is None else robot.bare).inertias
    if robot.file is None:
        content |= _table(robot)
    if robot.payload is not None:
        content |= {f"payload_{item.name}": getattr(robot.payload, item.name) for item in fields(Payload)}
    if robot.drives is not None:
        content |= {f"drives_{item.name}": getattr(robot.drives, item.name) for item in fields(Drives)}
    return content


def robot_from_record(content: Mapping[str, Any]) -> Robot:
    """The robot that `kept` said this of.

    Raises:
        UnknownNameError, RobotError: it is not there any more.
        KeyError: something is missing.
    """
    name = _texts(content, "robot", 0)
    robot = _with_numbers(_made_again(name, content) if "dh_d" in content else load(name), content)
    robot = _with_drives(robot.with_gravity(content["gravity"]), content)
    if "payload_mass" not in content:
        return robot
    return robot.with_payload(
        Payload(float(content["payload_mass"]), content["payload_com"], content["payload_inertia"])
    )


def _source(robot: Robot) -> str:
    """What `load` takes to find the robot: its name if that will do, else its file, if it has one."""
    known = (*robot_names(), *laboratory_names())
    if robot.file is None or (robot.name in known and load(robot.name).file == robot.file):
        return robot.name
    return str(robot.file.absolute())


def _table(robot: Robot) -> dict[str, Any]:
    """The DH table of a robot without a file, and what goes with it."""
    if robot.dh is None:
        raise TwinError(f"no log can keep robot {robot.name!r}: it has neither a file nor a DH table")
    content = {f"dh_{letter}": column for letter, column in zip(DH._fields, robot.dh, strict=True)}
    content |= {name: getattr(robot, name) for name in LIMITS}
    return content | {"dh_kinds": np.array(robot.tree.kinds), "joint_names": np.array(robot.tree.names)}


def _with_drives(robot: Robot, content: Mapping[str, Any]) -> Robot:
    """The robot with the drives that were kept; before there were any, they were ideal, and its file's."""
    if "drives" not in content:
        return robot
    drives = None
    if "drives_ratio" in content:
        columns = {item.name: content[f"drives_{item.name}"] for item in fields(Drives)}
        columns["friction_at"] = tuple(_texts(content, "drives_friction_at", 1))
        drives = Drives(**columns)
    return replace(robot, drives=None).with_drives(_texts(content, "drives", 0), drives)


def _texts(content: Mapping[str, Any], name: str, axes: int) -> Any:
    """One text, or a list of them."""
    array = content[name]
    if array.dtype.kind != "U" or array.ndim != axes:
        raise TwinError(f"expected {name} to be text of {axes} axes, got {array.dtype} of {array.ndim}")
    return array.tolist()


def _made_again(name: str, content: Mapping[str, Any]) -> Robot:
    return dh_robot(
        name,
        DH(*(content[f"dh_{letter}"] for letter in DH._fields)),
        kinds=_texts(content, "dh_kinds", 1),
        joint_names=_texts(content, "joint_names", 1),
        **{name: content[name] for name in LIMITS},
    )


def _with_numbers(robot: Robot, content: Mapping[str, Any]) -> Robot:
    """The robot with the masses and the torque limits that were kept; in older files its own."""
    numbers = {"inertias": (robot.tree.n, 10), "tau_max": (robot.n,)}
    for name, shape in numbers.items():
        array = content.get(name, np.zeros(shape))
        if array.shape != shape or array.dtype != np.float64 or np.any(np.isnan(array)):
            told = f"{array.dtype} of shape {array.shape}"
            raise TwinError(f"expected {name} to be float64 of shape {shape}, without NaN, got {told}")
    if "tau_max" in content:
        robot = replace(robot, tau_max=frozen(content["tau_max"]))
    if "inertias" not in content:
        return robot
    if not np.all(np.isfinite(content["inertias"])):
        raise TwinError(f"expected finite inertias, got {content['inertias'].tolist()}")
    return replace(robot, tree=replace(robot.tree, inertias=frozen(content["inertias"])), has_inertia=True)
