"""Facts of the committed robots, and their URDFs read as plain XML, without twin and urchin."""

import xml.etree.ElementTree as ET
from functools import cached_property
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from tests.support.dh_arms import dh_frames
from urdf import build
from urdf.facts import read


class Body(NamedTuple):
    """Mass in [kg], com (3,) in [m] and inertia (3, 3) about the com in [kg m^2], in link axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


class UrdfFile:
    """Files of one robot."""

    def __init__(self, name):
        self.name = name
        self.toml = build.HERE / name / "robot.toml"
        self.path = build.HERE / name / f"{name}.urdf"

    @cached_property
    def facts(self):
        return read(self.toml)

    @cached_property
    def root(self):
        return ET.parse(self.path).getroot()

    @property
    def moving(self):
        """Links on moving joints, in the order of the joints."""
        return [find(joint, "child").attrib["link"] for joint in self.joints("revolute")]

    def joints(self, kind):
        return [joint for joint in self.root.findall("./joint") if joint.attrib["type"] == kind]

    def body(self, link):
        """Return the `<inertial>` of a link, rotated into link axes."""
        origin, mass, inertia = find(self.root, f"./link[@name='{link}']/inertial")
        xx, yy, zz, xy, xz, yz = (
            float(inertia.attrib[k]) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        )
        R = Rotation.from_euler("xyz", numbers(origin, "rpy")).as_matrix()
        tensor = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        return Body(float(mass.attrib["value"]), numbers(origin, "xyz"), tensor)

    def poses(self, q):
        """Return the pose (4, 4) of every link at the pendant's angles q (6,).

        The angle of a passive joint is the product of its row `q` in the facts and the pendant's angles.
        """
        angles = dict(zip(self.facts["joints"]["names"], q, strict=True))
        for name, values in self.facts.get("joint", {}).items():
            if "q" in values:
                angles[name] = np.dot(values["q"], q)
        poses = {"base_link": np.eye(4)}
        for joint in self.root.findall("./joint"):
            step, turn = np.eye(4), np.eye(4)
            origin, axis = find(joint, "origin"), joint.find("axis")
            step[:3, 3] = numbers(origin, "xyz")
            step[:3, :3] = Rotation.from_euler("xyz", numbers(origin, "rpy")).as_matrix()
            if axis is not None:
                angle = angles[joint.attrib["name"]]
                turn[:3, :3] = Rotation.from_rotvec(angle * numbers(axis, "xyz")).as_matrix()
            parent, child = (find(joint, end).attrib["link"] for end in ("parent", "child"))
            poses[child] = poses[parent] @ step @ turn
        return poses


def dh_tool_pose(dh, q):
    """Product of the DH matrices of the facts (4, 4), independently of the builder's exact one."""
    theta = np.array(dh.get("coupling", np.eye(6))) @ q + np.deg2rad(dh["theta0_deg"])
    table = SimpleNamespace(d=dh["d"], a=dh["a"], alpha=np.deg2rad(dh["alpha_deg"]))
    return dh_frames(table, theta)[-1]


def numbers(element, attribute):
    return np.array([float(x) for x in element.get(attribute).split()])


def find(element, path):
    """Return the first element at an XPath, which must exist."""
    found = element.find(path)
    assert found is not None, path
    return found


def relative(a, b):
    return np.max(np.abs(np.asarray(a) - b)) / np.max(np.abs(b))


FILES = {name: UrdfFile(name) for name in build.robots()}
