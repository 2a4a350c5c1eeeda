"""The URDF text that the engine loads: the robot's own file, in the form that PyBullet reads exactly.

PyBullet reads most URDFs nearly right.  What it reads exactly is a tensor in principal axes that a body can
have to the last bit, an `<inertial>` on every link, unit joint axes, links in order from the base, and short
lines: longer ones it breaks after every 8 kB, be it within a number or a name.  A foreign file is brought
into that form here; one that has it keeps every number as it stands.  A robot that is known by a DH table has
no file: its tree is written down (`twin/urdf_writer.py`).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from twin.robot import Payload, Robot
from twin.tree import possible_moments
from twin.urdf_document import read_document
from twin.urdf_writer import inertial, numbers_text, urdf_of_tree

TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def engine_urdf(robot: Robot) -> str:
    """Write the URDF of a robot, payload included, for the engine.

    Args:
        robot: its `urdf` file is read; gravity is the engine's affair.

    Returns:
        The text of the file.  Mesh files are named by absolute paths, so it may be stored anywhere.

    Raises:
        RobotError: the masses of its links are not known.
    """
    root = ET.fromstring(urdf_of_tree(robot)) if robot.urdf is None else _exact(robot.urdf)
    if robot.payload is not None:
        _add_payload(root, robot, robot.payload)
    _put_parents_first(root)
    ET.indent(root, space="")  # a line an element
    return ET.tostring(root, encoding="unicode")


def _exact(urdf: Path) -> ET.Element:
    """The document of a URDF file in the form that PyBullet reads exactly, but for the order of its links."""
    root = read_document(urdf)
    root.set("name", root.get("name", "robot"))  # without which PyBullet loads nothing
    children = {_attribute(joint, "child", "link") for joint in root.findall("joint")}
    for link in root.findall("link"):
        _make_exact(link, is_base=link.get("name") not in children)
    for joint in root.findall("joint"):
        # Damping, friction, springs: a model that has none must not meet them in the plant.
        for element in joint.findall("dynamics"):
            joint.remove(element)
        if joint.get("type") != "fixed":  # whose axis may be of length 0
            _make_unit(joint.find("axis"))
    for mesh in root.iter("mesh"):
        mesh.set("filename", found(mesh.get("filename", ""), urdf.absolute().parent))
    return root


def _attribute(element: ET.Element, tag: str, name: str) -> str:
    """An attribute of an element's child."""
    return element.find(tag).get(name, "")  # type: ignore[union-attr]  # the loader has checked the file


def _make_exact(link: ET.Element, is_base: bool) -> None:
    """Give a link an inertial element that PyBullet takes over without a change."""
    stated = link.find("inertial")
    if stated is None:
        # PyBullet would make it 1 kg with inertia 1; a frame weighs nothing.
        link.insert(0, inertial(0.0, np.zeros(3), np.eye(3), np.zeros(3)))
        return
    tensor_element, origin = stated.find("inertia"), stated.find("origin")
    if tensor_element is None:
        return
    numbers = {name: float(tensor_element.get(name, 0)) for name in TENSOR}
    tensor = _tensor(*numbers.values())
    com = _numbers(origin, "xyz")
    R = Rotation.from_euler("xyz", _numbers(origin, "rpy")).as_matrix()
    mass = float(_attribute(stated, "mass", "value"))
    if is_base:
        # It never moves, so its tensor enters nothing; but turned axes make PyBullet's Jacobian wrong.
        if np.any(_numbers(origin, "rpy") != 0):
            turned = R @ tensor @ R.T
            link.remove(stated)
            link.insert(0, inertial(mass, com, np.eye(3), np.diag(turned)))
        return
    if mass == 0 and np.any(tensor != 0):
        link.remove(stated)
        link.insert(0, inertial(0.0, np.zeros(3), np.eye(3), np.zeros(3)))
        return
    diagonal = not any(numbers[name] for name in ("ixy", "ixz", "iyz"))
    moments, axes = (np.diag(tensor), np.eye(3)) if diagonal else np.linalg.eigh(tensor)
    possible = possible_moments(moments)
    if diagonal and np.array_equal(moments, possible):
        return
    # PyBullet itself diagonalises to 1e-8 only.
    axes = axes * np.sign(np.linalg.det(axes))
    link.remove(stated)
    link.insert(0, inertial(mass, com, R @ axes, possible))


def _add_payload(root: ET.Element, robot: Robot, payload: Payload) -> None:
    """Fix the payload, as a link of its own, to the link that the flange's joint moves."""
    flange_joint = robot.tree.names[robot.tree.flange_joint]
    carrier = next(joint for joint in root.findall("joint") if joint.get("name") == flange_joint)
    taken = {element.get("name") for element in root.iter() if element.tag in ("link", "joint")}
    name = "payload"
    while name in taken:
        name += "_"
    T = robot.tree.T_joint_flange
    moments, axes = np.linalg.eigh(np.asarray(payload.inertia))
    axes = T[:3, :3] @ (axes * np.sign(np.linalg.det(axes)))
    com = T[:3, :3] @ np.asarray(payload.com) + T[:3, 3]
    link = ET.SubElement(root, "link", name=name)
    link.append(inertial(payload.mass, com, axes, possible_moments(moments)))
    joint = ET.SubElement(root, "joint", name=name, type="fixed")
    ET.SubElement(joint, "parent", link=_attribute(carrier, "child", "link"))
    ET.SubElement(joint, "child", link=name)
    ET.SubElement(joint, "origin", xyz="0 0 0", rpy="0 0 0")


def _make_unit(axis: ET.Element | None) -> None:
    """Scale a joint's axis to length 1: PyBullet takes it as it is printed, with however few digits."""
    if axis is None:
        return
    vector = _numbers(axis, "xyz")
    unit = vector / np.linalg.norm(vector)
    if np.any(unit != vector):
        axis.set("xyz", numbers_text(unit))


def _put_parents_first(root: ET.Element) -> None:
    """Sort links from the base outwards, and after them the joints, which PyBullet numbers like links."""
    links = {link.get("name"): link for link in root.findall("link")}
    joints = root.findall("joint")
    parents = {_attribute(joint, "child", "link"): _attribute(joint, "parent", "link") for joint in joints}

    def depth(name: str | None) -> int:
        return 0 if name not in parents else 1 + depth(parents[name])

    for element in (*links.values(), *joints):
        root.remove(element)
    root.extend(sorted(links.values(), key=lambda link: depth(link.get("name"))))
    root.extend(sorted(joints, key=lambda joint: depth(_attribute(joint, "child", "link"))))


def found(filename: str, folder: Path) -> str:
    """The absolute path of a mesh file, looked for beside the URDF and in the folders above it."""
    relative = filename.partition("://")[2] or filename
    for base in (folder, *folder.parents):
        for tail in (relative, relative.partition("/")[2]):  # with and without the name of a package
            if tail and (base / tail).is_file():
                return str(base / tail)
    return filename


def _numbers(element: ET.Element | None, name: str) -> np.ndarray:
    """A (3,) attribute, zeros where it is left out."""
    text = None if element is None else element.get(name)
    return np.zeros(3) if text is None else np.array([float(word) for word in text.split()])


def _tensor(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> np.ndarray:
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
