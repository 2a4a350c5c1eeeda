"""Export of a robot as a URDF, for ROS, Pinocchio, MuJoCo, PyBullet and others.

The document is that of the robot's own URDF, with its names, shapes and fixed frames, and with the numbers of
the `Robot`: bodies, limits, and a payload as a link of its own.  That of a robot without a URDF follows from
its tree.  A moving link has the mass of its whole body, in principal axes, the form that every reader reads
to round-off (PyBullet turns a full tensor to 1e-8 and MuJoCo to 1e-12); the links fixed to it have none.
"""

from __future__ import annotations

import shutil
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path, PurePosixPath

import numpy as np

from twin.base.arrays import Floats
from twin.base.atomic_file import atomic_write
from twin.base.errors import ExportWarning, RobotError, printable
from twin.physics.multibody.tree import InertialFrame, consistent_moments, inertial_frame, inertial_parameters
from twin.physics.robot.loading.link_shapes import resolve_mesh
from twin.physics.robot.loading.urdf_document import PlacedLink, checked_document, read_document
from twin.physics.robot.loading.urdf_reader import MOST_ROUNDING, NEGLIGIBLE
from twin.physics.robot.robot import MOUNTINGS, Robot
from twin.physics.rotations import euler_from_matrix
from urdf.urdf_text import text


def write_urdf(robot: Robot, path: str | Path) -> tuple[Path, ...]:
    """Write a robot as a URDF, and copies of its meshes into the file's folder, under their paths in it.

    Args:
        robot: robot; a payload becomes a link on its flange.
        path: path of the file, which is replaced.

    Returns:
        The files that were written.

    Raises:
        RobotError: the path is a file of the robot itself, or see `urdf_document`.
        OSError: a file cannot be written.

    Warns:
        ExportWarning: the robot has parts that a URDF cannot express, or mesh files are missing.

    Example:
        >>> import twin
        >>> arm = twin.load("irb1600").with_payload(twin.Payload(6.0))
        >>> [file.name for file in twin.robot.write_urdf(arm, "loaded.urdf")]
        ['loaded.urdf']
        >>> added = twin.load("loaded.urdf").tree.inertias[5] - arm.unloaded_tree.inertias[5]
        >>> round(float(added[0]), 9)  # mass of the payload, in [kg]
        6.0
    """
    path = Path(path)
    require_other_file(robot, path)
    root = urdf_document(robot)
    parts = {"closed loops": robot.loops, "drives": robot.active_drives, "springs": robot.tree.torques}
    parts["mounting"] = not np.array_equal(robot.gravity, MOUNTINGS["floor"])
    left_out, written = [name for name, part in parts.items() if part] + corrected_moments(robot), []
    for mesh in root.iter("mesh"):
        assert robot.urdf is not None  # shapes come from a file
        given = mesh.get("filename", "")
        source = Path(resolve_mesh(given, robot.urdf.absolute().parent))
        place = [part for part in PurePosixPath(given.partition("://")[2] or given).parts if part != ".."]
        if place[:1] == ["/"]:  # a path of this computer
            place[0] = "meshes"
            mesh.set("filename", "/".join(place))
        target = path.parent.joinpath(*place)
        if not source.is_file():
            left_out.append(f"mesh {printable(given)}, which was not found")
        elif target not in written and not (target.exists() and target.samefile(source)):
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(target) as draft:
                shutil.copyfile(source, draft)
            written.append(target)
    write_document(root, path, "a URDF", left_out)
    return (path, *written)


def urdf_document(robot: Robot) -> ET.Element:
    """Return the root element of a robot's URDF; its mesh paths are those of the robot's own file.

    Raises:
        RobotError: a body cannot exist, or joints or the flange are not those of the robot's file.
    """
    return placed_document(robot)[0]


def placed_document(robot: Robot) -> tuple[ET.Element, list[PlacedLink]]:
    """Return the root element of a robot's URDF, and its links, without that of the payload."""
    tree, path = robot.unloaded_tree, robot.urdf or Path(f"{robot.name}.urdf")
    document = checked_document(path, _made(robot)) if robot.urdf is None else read_document(robot.urdf)
    document = document.with_locked(robot.locked)
    root, (links, moving) = document.root, document.placed
    root.set("name", robot.name)
    if tuple(joint.joint.name for joint in moving) != tree.names:
        raise RobotError(f"{path} cannot describe robot {robot.name!r}, which has other joints")
    elements = document.links
    joints = {part.get("name"): part for part in root.iterfind("joint")}
    poses = {link.name: link.T for link in links}
    for joint in document.joints:
        if joint.name in robot.locked:
            element = joints[joint.name]
            element.set("type", "fixed")
            for part in [part for part in element if part.tag in ("axis", "limit", "mimic", "dynamics")]:
                element.remove(part)
            _set_origin(element, joint.origin)
    for i, (joint, _, T) in enumerate(moving):
        if not np.array_equal(T, tree.T_parent_joint[i]):
            _set_origin(joints[joint.name], np.linalg.solve(poses[joint.parent], tree.T_parent_joint[i]))
        if not np.array_equal(joint.axis, tree.axes[i]):
            child(joints[joint.name], "axis").set("xyz", text(*tree.axes[i]))
        if i not in robot.followers:  # whose range is that of their leaders
            _set_limits(joints[joint.name], tree_limits(robot)[:, i])
        for dynamics in joints[joint.name].findall("dynamics"):  # the twin ignores it, others do not
            joints[joint.name].remove(dynamics)
    bodies = principal_bodies(robot) if robot.has_inertia else []
    for link in links:
        if bodies and link.index >= 0:
            own = link.name == tree.links[link.index]
            _set_inertial(elements[link.name], bodies[link.index] if own else NOTHING)
    if robot.payload is not None:
        name = "payload"
        while name in elements or name in joints:
            name += "_too"
        _set_inertial(ET.SubElement(root, "link", name=name), bodies[-1])
        _joint(root, name, "fixed", flange_link(robot, links), name)
    ET.indent(root)
    return root, links


NOTHING = InertialFrame(0.0, np.zeros(3), np.eye(3), np.zeros(3))
"""Explicit zeros, because PyBullet gives 1 kg to a link without `<inertial>`."""


def flange_link(robot: Robot, links: list[PlacedLink]) -> str:
    """Return the name of a link whose frame is the flange, `tool0` if there are several.

    Raises:
        RobotError: there is none.
    """
    joint, T = robot.tree.flange_joint, robot.tree.T_joint_flange
    there = [link.name for link in links if link.index == joint and np.max(np.abs(link.T - T)) < 1e-12]
    if not there:
        raise RobotError(f"no link of the file of robot {robot.name!r} is at its flange")
    return "tool0" if "tool0" in there else there[-1]


def tree_limits(robot: Robot) -> Floats:
    """Return ranges, speed limits and torque limits (4, n_tree) of all joints; NaN where they are unknown."""
    limits = np.full((4, robot.tree.n), np.nan)
    limits[:, list(robot.driven)] = robot.q_min, robot.q_max, robot.qd_max, robot.tau_max
    limits[:2, list(robot.passive)] = robot.passive_min, robot.passive_max
    return limits


def principal_bodies(robot: Robot) -> list[InertialFrame]:
    """Return the bodies that the joints move, and as the last one the payload if there is one.

    Raises:
        RobotError: a body cannot exist.
    """
    tree, load, frames = robot.unloaded_tree, robot.payload, []
    rows = list(zip((f"link {link!r}" for link in tree.links), tree.inertias, strict=True))
    if load is not None:
        row = inertial_parameters(load.mass, np.asarray(load.com), np.asarray(load.inertia))
        rows.append(("the payload", row))
    light = NEGLIGIBLE * float(np.sum(tree.inertias[:, 0]))
    for name, row in rows:
        frame = inertial_frame(f"{name} of robot {robot.name!r}", row)
        moments = consistent_moments(frame.moments.copy())  # obey the triangle inequality to the bit
        error, largest = np.max(np.abs(moments - frame.moments)), np.max(np.abs(row[4:]))
        if not error <= max(MOST_ROUNDING * largest, light) or (frame.mass == 0 and largest > 0):
            shown = f"{frame.mass:g} kg and the moments {', '.join(f'{x:g}' for x in frame.moments)} kg m^2"
            raise RobotError(f"{name} of robot {robot.name!r} has {shown}: no such body exists")
        frames.append(frame._replace(moments=moments))
    return frames


def corrected_moments(robot: Robot) -> list[str]:
    """Return a text that names the links whose moments no body has, so that they are written otherwise."""
    if not robot.has_inertia:
        return []
    tree, changed = robot.unloaded_tree, []
    for name, row, frame in zip(tree.links, tree.inertias, principal_bodies(robot), strict=False):
        given = inertial_frame(name, row).moments
        if np.max(np.abs(frame.moments - given)) > NOTED * np.max(np.abs(given), initial=0.0):
            changed.append(name)
    return [f"moments of inertia of {', '.join(changed)}, which no body has: the nearest"] if changed else []


NOTED = 1e-9
"""Change of moments of inertia, relative to the largest, that is mentioned."""


def write_document(root: ET.Element, path: Path, what: str, left_out: list[str]) -> None:
    """Write a document, and warn of the parts of the robot that this kind of file leaves out."""
    with atomic_write(path) as draft:
        ET.ElementTree(root).write(draft, encoding="utf-8", xml_declaration=True)
    if left_out:
        warnings.warn(f"{what} leaves out: {'; '.join(left_out)}", ExportWarning, stacklevel=3)


def require_other_file(robot: Robot, path: Path) -> None:
    """Raise `RobotError` if a path is that of a file of the robot itself."""
    if any(file is not None and path.resolve() == file.resolve() for file in (robot.file, robot.urdf)):
        raise RobotError(f"{path} is a file of the robot itself: expected another name")


def _made(robot: Robot) -> ET.Element:
    """Return a document of links without bodies, and of joints without origins, for a tree."""
    tree, root = robot.tree, ET.Element("robot")
    links = [*tree.links, "base_link"]  # the base, of index -1, is the last
    for link in ("base_link", *tree.links, "tool0"):
        ET.SubElement(root, "link", name=link)
    for name, kind, parent, link in zip(tree.names, tree.kinds, tree.parents, tree.links, strict=True):
        child(_joint(root, name, kind, links[parent], link), "limit")
    _set_origin(_joint(root, "joint_tool", "fixed", links[tree.flange_joint], "tool0"), tree.T_joint_flange)
    return root


def _joint(root: ET.Element, name: str, kind: str, parent: str, link: str) -> ET.Element:
    joint = ET.SubElement(root, "joint", name=name, type=kind)
    child(joint, "parent").set("link", parent)
    child(joint, "child").set("link", link)
    return joint


def child(element: ET.Element, tag: str) -> ET.Element:
    """Return the first child with a tag, which is added if it is missing."""
    found = element.find(tag)
    return ET.SubElement(element, tag) if found is None else found


def _set_origin(element: ET.Element, T: Floats) -> None:
    rpy = euler_from_matrix(T[:3, :3], "zyx")[::-1]
    child(element, "origin").attrib.update(xyz=text(*T[:3, 3]), rpy=text(*rpy))


def _set_inertial(link: ET.Element, frame: InertialFrame) -> None:
    for old in link.findall("inertial"):
        link.remove(old)
    inertial, T = ET.Element("inertial"), np.eye(4)
    T[:3, :3], T[:3, 3] = frame.axes, frame.com
    _set_origin(inertial, T)
    child(inertial, "mass").set("value", text(frame.mass))
    xx, yy, zz = map(text, frame.moments)
    child(inertial, "inertia").attrib.update(ixx=xx, ixy="0", ixz="0", iyy=yy, iyz="0", izz=zz)
    link.insert(0, inertial)


def _set_limits(joint: ET.Element, limits: Floats) -> None:
    """Set limits (4,); a rate of 0 stands for none, and a joint without a range turns endlessly."""
    if joint.get("type") != "prismatic":
        joint.set("type", "continuous" if np.all(np.isinf(limits[:2])) else "revolute")
    limit = child(joint, "limit")
    for name, value in zip(("lower", "upper", "velocity", "effort"), limits.tolist(), strict=True):
        if np.isfinite(value):
            limit.set(name, text(value))
        elif np.isinf(value) and name in ("velocity", "effort"):
            limit.set(name, "0")
        elif np.isinf(value):
            limit.attrib.pop(name, None)
