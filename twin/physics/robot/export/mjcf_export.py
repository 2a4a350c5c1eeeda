"""Export of a robot as MJCF, the format of MuJoCo, with its drives, springs, balancers and closed loops.

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

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np

from twin.base.arrays import Floats
from twin.base.atomic_file import atomic_write
from twin.base.errors import RobotError
from twin.physics.multibody.axis_torques import Cylinder, Spring
from twin.physics.multibody.composite_bodies import require_moved_mass
from twin.physics.multibody.tree import InertialFrame
from twin.physics.robot.drives.drives import MORE_FRICTION, MOTOR
from twin.physics.robot.export import urdf_export
from twin.physics.robot.loading.link_shapes import named_colors, shape_color, shape_mesh, shape_origin
from twin.physics.robot.loading.urdf_document import PlacedLink, parse_numbers
from twin.physics.robot.robot import Robot
from twin.physics.rotations import quaternion_from_matrix
from urdf.urdf_text import text

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
    urdf_export.require_other_file(robot, path)
    root, meshes, left_out = mjcf_document(robot)
    folder = path.parent / f"{path.stem}_meshes"
    urdf_export.child(root, "compiler").set("meshdir", folder.name)
    for name, mesh in meshes.items():
        folder.mkdir(exist_ok=True)
        with atomic_write(folder / name) as draft:
            mesh.export(draft, file_type="stl")
    urdf_export.write_document(root, path, "MJCF", left_out)
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
    tree, (shapes, links) = robot.unloaded_tree, urdf_export.placed_document(robot)
    root = ET.fromstring(SKELETON, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    root.set("model", robot.name)
    part = {str(section.tag): section for section in root}
    part["option"].set("gravity", text(*robot.gravity))
    bodies = {-1: part["worldbody"]}  # the base
    joints, frames = list[ET.Element](), urdf_export.principal_bodies(robot)
    for i, parent in enumerate(tree.parents):
        bodies[i] = _placed(bodies[parent], "body", tree.links[i], tree.T_parent_joint[i])
        mass, moments = max(frames[i].mass, LEAST), np.maximum(frames[i].moments, LEAST)
        _add_inertial(bodies[i], frames[i]._replace(mass=mass, moments=moments))
        kind = "hinge" if tree.kinds[i] == "revolute" else "slide"
        joints.append(ET.SubElement(bodies[i], "joint", name=tree.names[i], type=kind))
        joints[i].set("axis", text(*tree.axes[i]))
    tool = urdf_export.flange_link(robot, links)
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
    left_out = [*_inexpressible(robot), *urdf_export.corrected_moments(robot), *broken]
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
    for joint, ends in zip(joints, urdf_export.tree_limits(robot)[:2].T, strict=True):
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
