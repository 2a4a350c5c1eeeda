"""Write the URDF of a robot that has none, for other libraries; numbers are exact to the bit."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from twin.multibody.tree import Tree, body_from_parameters, consistent_moments
from twin.robot.robot import Robot

BASE = "base_link"


def urdf_of_tree(robot: Robot) -> str:
    """Write the URDF of a robot, without its payload, from its tree.

    The flange is the link `tool0`.

    Args:
        robot: any robot; finite limits are written.

    Raises:
        RobotError: the masses of its links are not known.
    """
    robot.require_inertia()
    tree = robot.tree if robot.bare is None else robot.bare
    root = ET.Element("robot", name=robot.name)
    for i in range(-1, tree.n):
        link = ET.SubElement(root, "link", name=_link_name(tree, i))
        link.append(_body(tree.inertias[i]) if i >= 0 else _frame())
    for i in range(tree.n):
        root.append(_joint(robot, tree, i))
    ET.SubElement(root, "link", name="tool0").append(_frame())
    name = "joint_tool"
    while name in tree.names:
        name += "_"
    flange = ET.SubElement(root, "joint", name=name, type="fixed")
    _join(flange, _link_name(tree, tree.flange_joint), "tool0", tree.T_joint_flange)
    return ET.tostring(root, encoding="unicode")


def _link_name(tree: Tree, i: int) -> str:
    return BASE if i < 0 else tree.links[i]


def _body(parameters: np.ndarray) -> ET.Element:
    """Return the `<inertial>` element of inertial parameters (10,) about the link's origin."""
    mass, com, tensor = body_from_parameters(parameters)
    moments, axes = np.linalg.eigh(tensor)
    return inertial(mass, com, axes * np.sign(np.linalg.det(axes)), consistent_moments(moments))


def _frame() -> ET.Element:
    """Return the `<inertial>` element of a massless link; without it PyBullet assumes 1 kg."""
    return inertial(0.0, np.zeros(3), np.eye(3), np.zeros(3))


def _joint(robot: Robot, tree: Tree, i: int) -> ET.Element:
    limit = {}
    if i in robot.driven:
        q = robot.driven.index(i)
        values = zip(
            ("lower", "upper", "velocity", "effort"),
            (robot.q_min[q], robot.q_max[q], robot.qd_max[q], robot.tau_max[q]),
            strict=True,
        )
        limit = {name: numbers_text([value]) for name, value in values if np.isfinite(value)}
    ranged = tree.kinds[i] == "prismatic" or {"lower", "upper"} <= limit.keys()
    joint = ET.Element("joint", name=tree.names[i], type=tree.kinds[i] if ranged else "continuous")
    _join(joint, _link_name(tree, tree.parents[i]), tree.links[i], tree.T_parent_joint[i])
    ET.SubElement(joint, "axis", xyz=numbers_text(tree.axes[i]))
    ET.SubElement(joint, "limit", limit)
    return joint


def _join(joint: ET.Element, parent: str, child: str, T: np.ndarray) -> None:
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    ET.SubElement(joint, "origin", xyz=numbers_text(T[:3, 3]), rpy=numbers_text(rpy_from_matrix(T[:3, :3])))


def inertial(mass: float, com: np.ndarray, axes: np.ndarray, moments: np.ndarray) -> ET.Element:
    """Return an `<inertial>` element with principal moments (3,) along the columns of `axes` (3, 3)."""
    element = ET.Element("inertial")
    ET.SubElement(element, "origin", xyz=numbers_text(com), rpy=numbers_text(rpy_from_matrix(axes)))
    ET.SubElement(element, "mass", value=numbers_text([mass]))
    xx, yy, zz = numbers_text(moments).split()
    ET.SubElement(element, "inertia", ixx=xx, ixy="0", ixz="0", iyy=yy, iyz="0", izz=zz)
    return element


def numbers_text(numbers: np.ndarray | list[float]) -> str:
    """Return numbers as text from which the same floating-point values are read."""
    return " ".join(repr(float(number)) for number in numbers)


def rpy_from_matrix(R: np.ndarray) -> np.ndarray:
    """Return roll, pitch and yaw (3,) of a rotation, exact even at a pitch of 90 degrees.

    The order is that of URDF, `R = Rz(yaw) Ry(pitch) Rx(roll)`.  Roll is computed after the rotation by yaw
    is removed, so that the two remain consistent where each is ill-defined.
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])
