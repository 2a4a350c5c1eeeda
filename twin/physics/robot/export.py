"""Export of a robot as a URDF with its `robot.toml`, and as MJCF.

The URDF serves ROS, Pinocchio, MuJoCo, PyBullet and others.  It is that of the robot's own URDF, with its
names, shapes and fixed frames, and with the numbers of the `Robot`: bodies, limits, and a payload as a link
of its own.  That of a robot without a URDF follows from its tree.  A moving link has the mass of its whole
body, in principal axes, the form that every reader reads to round-off (PyBullet turns a full tensor to 1e-8
and MuJoCo to 1e-12); the links fixed to it have none.

MJCF, the format of MuJoCo, has the drives, springs, balancers and closed loops, too.

- Rotors are `armature`, Coulomb friction is `frictionloss`, viscous friction is `damping`: of the joint, or,
  where a motor turns several joints, of a fixed tendon, whose length is the motor's angle in joint units.
  Friction is a constraint, so a shaft that sticks creeps; a sliding one has it exactly.
- A closed loop is an equality of two sites, a joint that mimics another one an equality of joints.  Both are
  soft in MuJoCo.
- A spring belongs to its joint; a cylinder is a spatial tendon.

A step of MuJoCo is that of the twin: speeds first, and viscous friction at the speed after the step, which is
the integrator `implicitfast`.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from textwrap import wrap
from typing import Any

import numpy as np

from twin.base.arrays import Floats
from twin.base.atomic_file import atomic_write
from twin.base.errors import ExportWarning, RobotError, printable
from twin.physics.multibody.axis_torques import Cylinder, Spring
from twin.physics.multibody.recursions import require_moved_mass
from twin.physics.multibody.tree import InertialFrame, consistent_moments, inertial_frame, inertial_parameters
from twin.physics.robot.drives.drives import MORE_FRICTION, MOTOR
from twin.physics.robot.link_shapes import named_colors, resolve_mesh, shape_color, shape_mesh, shape_origin
from twin.physics.robot.robot import MOUNTINGS, Robot
from twin.physics.robot.urdf_document import PlacedLink, checked_document, parse_numbers, read_document
from twin.physics.robot.urdf_reader import MOST_ROUNDING, NEGLIGIBLE
from twin.physics.rotations import euler_from_matrix, quaternion_from_matrix
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


WIDTH = 116
"""Line width of comments."""


PLAIN = re.compile(r"[A-Za-z0-9_-]+")
"""Keys that TOML has without quotes."""


def plain_name(name: str) -> str:
    """Return a name of letters, digits and `_` for a robot of any name."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if word[:1].isalpha() else f"robot_{word}"


def urdf_facts(robot: Robot) -> dict[str, Any]:
    """Return the tables of a `robot.toml` beside the robot's URDF, see `urdf.urdf_robot`."""
    assert robot.urdf is not None
    return {
        "name": plain_name(robot.name),
        "title": robot.urdf.stem,
        "urdf": robot.urdf.name,
        "tool_frame": robot.tool_frame,
        "source": f"{robot.urdf.name}; not compared with a data sheet",
        "joints": {"names": list(robot.joint_names), "source": robot.urdf.name},
    }


def file_text(facts: dict[str, Any], comment: list[str]) -> str:
    """Return facts as TOML, with lines of a comment at the top."""
    wrapped = [part for line in comment for part in (wrap(line, WIDTH) or [""])]
    lines = [f"# {line}".rstrip() for line in wrapped] + [""]
    top = {key: value for key, value in facts.items() if not isinstance(value, dict)}
    lines += [f"{key} = {_value(value)}" for key, value in top.items()]
    for name, table in facts.items():
        if isinstance(table, dict):
            lines += _table(name, table)
    return "\n".join(lines) + "\n"


def _table(name: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a table and its subtables."""
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if values or not table:
        yield ""
        yield f"[{name}]"
    for key, value in values.items():
        if not (key == "effort" and math.inf in value):  # no limit is expressed by omitting the key
            yield f"{key if PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _table(f"{name}.{key}", value)


def _value(value: Any) -> str:
    """Format a value as TOML."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        wide = any(isinstance(item, (dict, list)) for item in value)
        inside = [_value(item) for item in value]
        return (
            "[\n" + "".join(f"    {item},\n" for item in inside) + "]" if wide else f"[{', '.join(inside)}]"
        )
    return repr(value)


SKELETON = """<mujoco><!-- -->
  <compiler angle="radian" autolimits="true" inertiafromgeom="false" balanceinertia="false" boundmass="0"
            boundinertia="0" fusestatic="false"/>
  <option timestep="0.001" integrator="implicitfast" tolerance="0"><flag contact="disable"/></option>
  <default>
    <geom contype="0" conaffinity="0" group="2" mass="0"/>
    <mesh inertia="shell"/>
    <joint solreffriction="0.002 1" solimpfriction="0.9999 0.9999 0.001"/>
    <tendon solreffriction="0.002 1" solimpfriction="0.9999 0.9999 0.001"/>
    <equality solref="0.002 1" solimp="0.9999 0.9999 0.001"/>
  </default>
  <asset/><worldbody/><tendon/><equality/><actuator/><keyframe/>
</mujoco>"""
"""MuJoCo is to change no number; constraints are as stiff as it accepts at a step of 1 ms."""

LEAST = 1e-14
"""Least mass and moments of a moving link, in [kg] and [kg m^2]; MuJoCo rejects smaller ones."""

ROUND = {"radius": 1.0, "length": 0.5}
SIZES = {"box": {"size": 0.5}, "sphere": {"radius": 1.0}, "cylinder": ROUND, "capsule": ROUND}
"""Factors from the numbers of a URDF shape to those of MuJoCo, which has half lengths."""

MOST_TRIANGLES = 200_000


def write_mjcf(robot: Robot, path: str | Path) -> tuple[Path, ...]:
    """Write a robot as MJCF, and its meshes as STL files into a folder beside it, `arm_meshes/` of `arm.xml`.

    A control is the torque of a motor at its joint.  Named poses are keyframes.

    Args:
        robot: robot with ideal or rigid drives; a payload is a body of its own.
        path: path of the file, which is replaced.

    Returns:
        The files that were written.

    Raises:
        RobotError: the path is a file of the robot itself, or see `mjcf_document`.
        OSError: a file cannot be written.

    Warns:
        ExportWarning: MuJoCo cannot express parts of the robot; a comment of the file lists them, too.

    Example:
        >>> import twin
        >>> [file.name for file in twin.robot.write_mjcf(twin.load("irb1600").mounted("wall"), "arm.xml")]
        ['arm.xml']
    """
    path = Path(path)
    require_other_file(robot, path)
    root, meshes, left_out = mjcf_document(robot)
    folder = path.parent / f"{path.stem}_meshes"
    child(root, "compiler").set("meshdir", folder.name)
    for name, mesh in meshes.items():
        folder.mkdir(exist_ok=True)
        with atomic_write(folder / name) as draft:
            mesh.export(draft, file_type="stl")
    write_document(root, path, "MJCF", left_out)
    return (path, *(folder / name for name in meshes))


def mjcf_document(robot: Robot) -> tuple[ET.Element, dict[str, Any], list[str]]:
    """Return the MJCF of a robot, its meshes (`trimesh.Trimesh`) by file name, and what it leaves out.

    Raises:
        RobotError: the drives are elastic, masses are unknown, a body cannot exist, or MJCF cannot express a
            spring, cylinder, column or coupling.
    """
    robot.require_inertia()
    require_moved_mass(f"robot {robot.name!r} cannot be exported to MuJoCo", robot.tree)
    if robot.drive_mode == "elastic":
        raise RobotError(f"robot {robot.name!r} has elastic drives: MJCF expects ideal or rigid ones")
    driven = list(robot.driven)
    if np.any(robot.embedding[driven] != np.eye(robot.n)) or np.any(robot.embedding_offset[driven]):
        raise RobotError(f"robot {robot.name!r}: its q are not the angles that its motors turn")
    tree, (shapes, links) = robot.unloaded_tree, placed_document(robot)
    root = ET.fromstring(SKELETON, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    root.set("model", robot.name)
    part = {str(section.tag): section for section in root}
    part["option"].set("gravity", text(*robot.gravity))
    bodies = {-1: part["worldbody"]}  # the base
    joints, frames = list[ET.Element](), principal_bodies(robot)
    for i, parent in enumerate(tree.parents):
        bodies[i] = _placed(bodies[parent], "body", tree.links[i], tree.T_parent_joint[i])
        mass, moments = max(frames[i].mass, LEAST), np.maximum(frames[i].moments, LEAST)
        _add_inertial(bodies[i], frames[i]._replace(mass=mass, moments=moments))
        kind = "hinge" if tree.kinds[i] == "revolute" else "slide"
        joints.append(ET.SubElement(bodies[i], "joint", name=tree.names[i], type=kind))
        joints[i].set("axis", text(*tree.axes[i]))
    tool = flange_link(robot, links)
    for name, index, T in links:
        if name == tool or name not in (*tree.links, links[0].name):
            _placed(bodies[index], "site", name, T)
    if robot.payload is not None:
        name = "payload_too" if "payload" in tree.links else "payload"
        load = _placed(bodies[tree.flange_joint], "body", name, tree.T_joint_flange)
        _add_inertial(load, frames[-1])
    _add_limits(robot, joints, part["actuator"])
    _add_drives(robot, joints, part["tendon"])
    _add_torques(robot, joints, bodies, part["tendon"])
    _add_couplings(robot, bodies, part["tendon"], part["equality"])
    meshes, broken = _add_shapes(robot, shapes, links, bodies, part["asset"])
    for name, q in robot.poses.items():
        ET.SubElement(part["keyframe"], "key", name=name, qpos=text(*robot.tree_positions(q)))
    left_out = [*_inexpressible(robot), *corrected_moments(robot), *broken]
    lines = [
        f"Robot {robot.name} with {robot.drive_mode} drives; a control is a motor's torque at its joint.",
        "MuJoCo stops a joint at the end of its range, and limits no speed; the twin ends a run there.",
    ]
    if robot.passive:
        lines.append("Equalities are soft, so passive joints deviate a little from those of the twin.")
    lines += [f"Left out: {one}." for one in left_out]
    root[0].text = "\n  ".join(["", *lines]).replace("--", "__") + "\n"
    ET.indent(root)
    return root, meshes, left_out


def _inexpressible(robot: Robot) -> list[str]:
    """Return the parts of the drives that MuJoCo cannot express, with the joints that have them."""
    drives = robot.active_drives
    if drives is None:
        return []
    limited, coupled = np.isfinite(drives.motor_torque_max), np.sum(drives.coupling != 0, axis=1) > 1
    parts = {"static friction above Coulomb friction": drives.static > drives.coulomb}
    parts |= {f"friction {name}": getattr(drives, name) != 0 for name in MORE_FRICTION}
    parts["the decrease of motor torque with speed"] = limited & np.isfinite(drives.motor_speed_max)
    parts["torque limits of motors that turn several joints, which limit each joint"] = limited & coupled
    names = np.array(robot.joint_names)
    return [
        what if np.all(present) else f"{what} ({', '.join(names[present])})"
        for what, present in parts.items()
        if np.any(present)
    ]


def _add_limits(robot: Robot, joints: list[ET.Element], actuators: ET.Element) -> None:
    """Add the ranges of all joints, and the motors with their torques."""
    for joint, ends in zip(joints, tree_limits(robot)[:2].T, strict=True):
        if np.any(np.isfinite(ends)):
            low, high = np.clip(ends, -1e9, 1e9)
            joint.set("range", text(low, max(high, low + 1e-9)))  # equal ends would be no range
    for i, most in zip(robot.driven, robot.drive_torque_max, strict=True):
        name = robot.tree.names[i]
        motor = ET.SubElement(actuators, "motor", name=name, joint=name)
        if np.isfinite(most):
            joints[i].set("actuatorfrcrange", text(-most, most))
            motor.set("ctrlrange", text(-most, most))


def _add_drives(robot: Robot, joints: list[ET.Element], tendons: ET.Element) -> None:
    """Add rotors and friction to the joints, or to tendons of motors that turn several joints.

    Raises:
        RobotError: a motor turns joints of different branches, where MuJoCo's mass matrix has no entries.
    """
    drives = robot.active_drives
    for i, row in enumerate([] if drives is None else drives.coupling):
        assert drives is not None
        motor = joint = joints[robot.driven[i]]
        turned = {robot.driven[k]: row[k] for k in np.flatnonzero(row)}
        if len(turned) > 1:
            if not set(turned) <= set(robot.tree.carriers(max(turned))):
                raise RobotError(f"motor {i + 1} of robot {robot.name!r} turns joints of different branches")
            motor = _tendon(robot, tendons, f"motor_{i + 1}", turned)
        motor.set("armature", text(drives.rotor_inertia[i] * drives.ratio[i] ** 2))
        shaft = motor if drives.friction_at[i] == MOTOR else joint
        shaft.attrib.update(frictionloss=text(drives.coulomb[i]), damping=text(drives.viscous[i]))


def _tendon(robot: Robot, tendons: ET.Element, name: str, factors: dict[int, float]) -> ET.Element:
    """Add a tendon whose length is a sum of joint positions times factors, given by the joints' indices."""
    tendon = ET.SubElement(tendons, "fixed", name=name)
    for joint, factor in factors.items():
        ET.SubElement(tendon, "joint", joint=robot.tree.names[joint], coef=text(factor))
    return tendon


def _add_torques(
    robot: Robot, joints: list[ET.Element], bodies: dict[int, ET.Element], tendons: ET.Element
) -> None:
    """Add springs and cylinders.

    Raises:
        RobotError: there is a user's column, or a spring or cylinder without stiffness.
    """
    stiffness, torque = np.zeros((2, robot.tree.n))
    for number, one in enumerate(robot.tree.torques, start=1):
        rest = np.nan  # length without force
        if isinstance(one, Cylinder) and one.stiffness > 0:
            rest = one.length + one.force / one.stiffness
        if isinstance(one, Spring) and one.stiffness > 0:
            i = robot.driven[one.joint]
            stiffness[i], torque[i] = stiffness[i] + one.stiffness, torque[i] + one.torque
            joints[i].attrib.update(stiffness=text(stiffness[i]), springref=text(torque[i] / stiffness[i]))
        elif isinstance(one, Cylinder) and rest >= 0:
            i = robot.driven[one.joint]
            T, (a, b), name = robot.tree.T_parent_joint[i], one.ends, f"cylinder_{number}"
            line = ET.SubElement(tendons, "spatial", name=name, stiffness=text(one.stiffness))
            line.set("springlength", text(rest))
            for place, body, end in (("from", robot.tree.parents[i], T[:3, :3] @ a + T[:3, 3]), ("to", i, b)):
                ET.SubElement(bodies[body], "site", name=f"{name}_{place}", pos=text(*end))
                ET.SubElement(line, "site", site=f"{name}_{place}")
        else:
            raise RobotError(
                f"robot {robot.name!r}: MJCF cannot express {', '.join(one.symbols)}: expected springs, and "
                "cylinders that push, with a stiffness above 0"
            )


def _add_couplings(
    robot: Robot, bodies: dict[int, ET.Element], tendons: ET.Element, equalities: ET.Element
) -> None:
    """Add the closed loops, and the rows of the embedding for passive joints that no loop guides."""
    tree = robot.tree
    for loop in robot.loops:
        sites = [f"{loop.name}_{tree.links[joint]}" for joint in loop.joints]
        for site, joint, point in zip(sites, loop.joints, loop.points, strict=True):
            ET.SubElement(bodies[joint], "site", name=site, pos=text(*point))
        ET.SubElement(equalities, "connect", name=loop.name, site1=sites[0], site2=sites[1])
    for i in robot.followers:
        row, name = robot.embedding[i], tree.names[i]
        leaders = {robot.driven[k]: row[k] for k in np.flatnonzero(row)}
        if len(leaders) == 1:
            ((leader, factor),) = leaders.items()
            equal = ET.SubElement(equalities, "joint", name=name, joint1=name, joint2=tree.names[leader])
        else:
            factor = 0.0
            _tendon(robot, tendons, name, {i: 1.0} | {joint: -other for joint, other in leaders.items()})
            equal = ET.SubElement(equalities, "tendon", name=name, tendon1=name)
        equal.set("polycoef", text(robot.embedding_offset[i], factor, 0, 0, 0))


def _add_shapes(
    robot: Robot, root: ET.Element, links: list[PlacedLink], bodies: dict[int, ET.Element], asset: ET.Element
) -> tuple[dict[str, Any], list[str]]:
    """Add the `<visual>` shapes, and return the meshes by file name and what cannot be drawn."""
    meshes, broken = dict[str, Any](), list[str]()
    elements, colors = {link.get("name"): link for link in root.iterfind("link")}, named_colors(root)
    for link in links:
        for number, visual in enumerate(elements[link.name].iterfind("visual"), start=1):
            assert robot.urdf is not None  # shapes come from a file
            try:
                pose = _pose(link.T @ shape_origin(visual))
                mesh = shape_mesh(visual, robot.urdf.absolute().parent)
                corners = 0 if mesh is None else len(np.unique(mesh.vertices, axis=0))
                if mesh is None or not (corners >= 4 and mesh.area > 0 and len(mesh.faces) <= MOST_TRIANGLES):
                    raise ValueError(f"it has no surface of 4 corners to {MOST_TRIANGLES} triangles")
                geom = ET.Element("geom", pose | {"rgba": text(*shape_color(visual, colors))})
                shape: Any = visual.find("geometry/*")
                if shape.tag in SIZES:
                    factors = SIZES[shape.tag].items()
                    size = [f * x for key, f in factors for x in parse_numbers(shape.get(key, ""))]
                    geom.attrib.update(type=shape.tag, size=text(*size))
                else:
                    name = f"mesh_{len(meshes) + 1}"
                    meshes[f"{name}.stl"] = mesh
                    ET.SubElement(asset, "mesh", name=name, file=f"{name}.stl")
                    geom.attrib.update(type="mesh", mesh=name)
                bodies[link.index].append(geom)
            except FileNotFoundError as error:
                broken.append(f"mesh {error}, which was not found")
            except ValueError as error:
                broken.append(f"shape {number} of link {link.name} ({error})")
    return meshes, broken


def _add_inertial(body: ET.Element, frame: InertialFrame) -> None:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = frame.axes, frame.com
    numbers = {"mass": text(frame.mass), "diaginertia": text(*frame.moments)}
    ET.SubElement(body, "inertial", _pose(T) | numbers)


def _placed(body: ET.Element, tag: str, name: str, T: Floats) -> ET.Element:
    return ET.SubElement(body, tag, {"name": name} | _pose(T))


def _pose(T: Floats) -> dict[str, str]:
    """Return a pose (4, 4) as attributes; a quaternion is scalar first."""
    pose = {"pos": text(*T[:3, 3])}
    if not np.array_equal(T[:3, :3], np.eye(3)):
        pose["quat"] = text(*quaternion_from_matrix(T[:3, :3]))
    return pose
