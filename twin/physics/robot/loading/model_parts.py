"""Links and joints of a robot file as written there, for the check in `model_check.py`.

Links that are fixed to each other form a `Group`.  Its extent is a box around all its shapes, its own joint
and the joints that it carries, in the frame of the group's first link.
"""

import xml.etree.ElementTree as ET
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twin.physics.multibody.tree import body_from_parameters
from twin.physics.robot.loading.link_shapes import Extent, resolve_mesh, shape_extent
from twin.physics.robot.loading.urdf_document import Document
from twin.physics.robot.loading.urdf_reader import stated_inertial, stated_limits
from twin.physics.robot.robot import Robot

BASE = "base_link"
"""Name of the base of a robot without a URDF."""


class JointPart(NamedTuple):
    """Joint; limits are `None` if the file does not contain them."""

    name: str
    kind: str
    parent: str
    child: str
    T_parent_joint: np.ndarray
    low: float | None = None
    high: float | None = None
    speed: float | None = None
    effort: float | None = None
    leader: str | None = None  # joint that it follows by <mimic>
    damped: bool = False
    passive: bool = False  # whether no motor drives it


class LinkPart(NamedTuple):
    """Link: mass in [kg], centre (3,) in [m], tensor (3, 3) in [kg m^2], in the link's frame; and its shapes.

    `mass` is `None` if the file does not contain mass properties.
    """

    name: str
    mass: float | None
    com: np.ndarray
    tensor: np.ndarray
    extents: tuple[Extent, ...] = ()
    missing: tuple[str, ...] = ()  # missing mesh files
    unread: bool = False  # whether the extent of some shape is unknown

    @property
    def size(self) -> float:
        """Diagonal of the box around the link's shapes, in [m]; 0 without shapes."""
        corners = [extent.corners for extent in self.extents]
        return float(np.linalg.norm(np.ptp(np.concatenate(corners), axis=0))) if corners else 0.0

    @property
    def moments(self) -> np.ndarray:
        """Principal moments of inertia (3,), in [kg m^2]; NaN if the file does not contain them."""
        if not np.all(np.isfinite(self.tensor)):
            return np.full(3, np.nan)
        return np.linalg.eigvalsh(self.tensor)


@dataclass
class Group:
    """Links that are fixed to each other.

    Attributes:
        links: the links, and the pose (4, 4) of each in the frame of the first.
        moves: whether a joint moves the group.
        joints: (k, 3) positions of the joints that it carries; its own joint is at the origin.
    """

    links: list[tuple[LinkPart, np.ndarray]]
    moves: bool
    joints: list[np.ndarray] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the first link."""
        return self.links[0][0].name

    @property
    def mass(self) -> float:
        """Mass of all its links, in [kg]."""
        return sum(link.mass or 0.0 for link, _ in self.links)

    @property
    def shaped(self) -> bool:
        """Whether it has shapes, all of known extent."""
        return any(link.extents for link, _ in self.links) and not any(link.unread for link, _ in self.links)

    def shape_corners(self) -> np.ndarray:
        """Return the corners (k, 3) of the boxes around its shapes."""
        corners = [
            extent.corners @ T[:3, :3].T + T[:3, 3] for link, T in self.links for extent in link.extents
        ]
        return np.concatenate(corners) if corners else np.zeros((0, 3))

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest corner (3,) of its extent, joints included."""
        points = np.concatenate([np.zeros((1, 3)), np.reshape(self.joints, (-1, 3)), self.shape_corners()])
        return points.min(axis=0), points.max(axis=0)

    @property
    def size(self) -> float:
        """Diagonal of its extent, in [m]."""
        low, high = self.box()
        return float(np.linalg.norm(high - low))

    @property
    def volume(self) -> float:
        """Volume of its visual or collision shapes, the larger one, in [m^3]; with meshes an upper bound."""
        by_kind = {"visual": 0.0, "collision": 0.0}
        for link, _ in self.links:
            for extent in link.extents:
                by_kind[extent.kind] += extent.volume
        return max(by_kind.values())


class Parts(NamedTuple):
    """Links and joints of a file, and the groups of links fixed to each other."""

    links: tuple[LinkPart, ...]
    joints: tuple[JointPart, ...]
    groups: tuple[Group, ...]
    base: str


def urdf_parts(document: Document) -> Parts:
    """Return the parts of a URDF."""
    folder = document.path.absolute().parent
    links = tuple(_link(name, element, folder) for name, element in document.links.items())
    stated = {element.get("name"): element for element in document.root.iterfind("joint")}
    joints = tuple(_joint(joint, stated[joint.name]) for joint in document.joints)
    return Parts(links, joints, _groups(links, joints, document.base), document.base)


def tree_parts(robot: Robot) -> Parts:
    """Return the parts of a robot without a URDF, from its tree."""
    tree = robot.tree
    names = [BASE, *tree.links]
    links = [LinkPart(BASE, 0.0, np.zeros(3), np.zeros((3, 3)))]
    joints = []
    for i, row in enumerate(tree.inertias):
        mass, com, tensor = body_from_parameters(row)
        links.append(LinkPart(tree.links[i], mass if robot.has_inertia else None, com, tensor))
        values = (robot.q_min[i], robot.q_max[i], robot.qd_max[i], robot.tau_max[i])
        low, high, speed, effort = (float(value) if np.isfinite(value) else None for value in values)
        joints.append(
            JointPart(
                tree.names[i],
                tree.kinds[i],
                names[tree.parents[i] + 1],
                tree.links[i],
                tree.T_parent_joint[i],
                low,
                high,
                speed,
                effort,
            )
        )
    groups = _groups(tuple(links), tuple(joints), BASE)
    groups[tree.flange_joint + 1].joints.append(tree.T_joint_flange[:3, 3])
    return Parts(tuple(links), tuple(joints), groups, BASE)


def _link(name: str, element: ET.Element, folder: Path) -> LinkPart:
    extents, missing, unread = [], [], False
    for kind in ("visual", "collision"):
        for shape in element.iterfind(kind):
            mesh = shape.find("geometry/mesh")
            file = Path(resolve_mesh(mesh.get("filename", ""), folder)) if mesh is not None else None
            if file is not None and not file.is_file():
                missing.append(file.name)
            extent = shape_extent(kind, shape, folder)
            if extent is None:
                unread = True
            else:
                extents.append(extent)
    # If the visual shapes cannot be read, the collision shapes may be readable, and vice versa.
    whole = [kind for kind in ("visual", "collision") if _all_read(kind, element, extents)]
    if unread and whole:
        extents, unread = [extent for extent in extents if extent.kind in whole], False
    mass, com, tensor = None, np.zeros(3), np.zeros((3, 3))
    if (inertial := element.find("inertial")) is not None:
        with suppress(ValueError), np.errstate(invalid="ignore"):  # what is missing is a finding
            mass, T, about = stated_inertial(inertial)
            com, tensor = T[:3, 3], T[:3, :3] @ about @ T[:3, :3].T
    return LinkPart(name, mass, com, tensor, tuple(extents), tuple(missing), unread)


def _all_read(kind: str, element: ET.Element, extents: list[Extent]) -> bool:
    count = len(element.findall(kind))
    return count > 0 and sum(extent.kind == kind for extent in extents) == count


def _joint(joint: Any, element: ET.Element) -> JointPart:
    dynamics = element.find("dynamics")
    return JointPart(
        joint.name,
        joint.joint_type,
        joint.parent,
        joint.child,
        joint.origin,
        *stated_limits(joint),
        leader=None if joint.mimic is None else joint.mimic.joint,
        damped=dynamics is not None and any(float(dynamics.get(name, 0)) for name in ("damping", "friction")),
    )


def _groups(links: tuple[LinkPart, ...], joints: tuple[JointPart, ...], base: str) -> tuple[Group, ...]:
    """Return the groups of links fixed to each other, parents first."""
    by_name = {link.name: link for link in links}
    carried: dict[str, list[JointPart]] = {}
    for joint in joints:
        carried.setdefault(joint.parent, []).append(joint)
    groups: list[Group] = []

    def visit(link: str, group: Group, T: np.ndarray) -> None:
        group.links.append((by_name[link], T))
        for joint in carried.get(link, []):
            T_joint = T @ joint.T_parent_joint
            if joint.kind == "fixed":
                visit(joint.child, group, T_joint)
            else:
                group.joints.append(T_joint[:3, 3])
                groups.append(Group([], moves=True))
                visit(joint.child, groups[-1], np.eye(4))

    groups.append(Group([], moves=False))
    visit(base, groups[0], np.eye(4))
    return tuple(groups)
