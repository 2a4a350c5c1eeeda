"""Check of a robot file: its joints and links, suspicious numbers, and whether the twin can use it.

Links that are fixed to each other form a `Group`.  Its extent is a box around all its shapes, its own joint
and the joints that it carries, in the frame of the group's first link.
"""

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twin.base.errors import DriveWarning, ModelWarning, RobotError, ToolFrameWarning
from twin.base.formatting import enumerated, short_repr
from twin.physics.multibody.tree import body_from_parameters
from twin.physics.robot.link_shapes import Extent, resolve_mesh, shape_extent
from twin.physics.robot.loading import load, remarks, robot_facts, robot_file, sibling_urdf, weak_motors
from twin.physics.robot.robot import Robot
from twin.physics.robot.urdf_document import Document, read_document
from twin.physics.robot.urdf_reader import (
    AS_OF_BODY,
    NO_INERTIAL,
    faults,
    radius_of_gyration,
    rounded_text,
    stated_inertial,
    stated_limits,
)

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


ERROR, WARNING, NOTE = "error", "warning", "note"

OUTSIDE, ROUGHLY_OUTSIDE = 0.1, 0.5
"""Largest distance of a centre of mass from its link, as a share of the link's size.  Shapes are
approximate, and without shapes a box around the joints is even coarser."""
SLIP = 100.0
"""Factor by which a length is certainly in a wrong unit."""
DENSEST, LIGHTEST = 22_590.0, 1.2
"""Densities of osmium and of air, in [kg/m^3]."""
SMALLEST = 1 / 300
"""Smallest radius of gyration, as a share of a link's size, that fits the link."""
LARGE = 100.0  # m: no robot is larger


class Finding(NamedTuple):
    """Finding about a robot file.

    Attributes:
        severity: `"error"` (certainly wrong), `"warning"` (probably wrong), or `"note"` (an assumption of the
            program).
        text: one sentence.
    """

    severity: str
    text: str


def findings(parts: Parts, masses_known: bool = True) -> Iterator[Finding]:
    """Yield all findings about the parts of a file.

    Args:
        parts: parts of the file.
        masses_known: whether masses are known.
    """
    reach = robot_size(parts)
    if reach > LARGE:  # lengths that are not finite are reported as errors elsewhere
        yield Finding(WARNING, f"the robot measures {reach:.4g} m: are its lengths in mm?")
    if masses_known:
        massless = [group.name for group in parts.groups if group.moves and group.mass == 0]
        if massless:
            yield Finding(WARNING, f"{enumerated('link', massless)}: moved by a joint, but massless")
        yield from _centres(parts, reach)
        yield from _moments(parts, reach)
        yield from _densities(parts)
    yield from _offsets(parts)
    yield from _joints(parts)
    yield from _files(parts)


def robot_size(parts: Parts) -> float:
    """Return the robot's approximate extent, in [m]: the sizes of the links along the longest chain."""
    sizes = {group.name: group.size for group in parts.groups}
    home = {link.name: group.name for group in parts.groups for link, _ in group.links}
    parents = {joint.child: home[joint.parent] for joint in parts.joints if joint.kind != "fixed"}

    def along(name: str) -> float:
        return sizes[name] + (along(parents[name]) if name in parents else 0.0)

    return max(along(group.name) for group in parts.groups)


class _Case(NamedTuple):
    """Link with a length that does not fit it, in [m], and the size of the link, in [m]."""

    link: str
    length: float
    size: float


def _worst(cases: list[_Case]) -> str:
    """Return the worst of several cases as text, `0.3 m for a size of 0.1 m`."""
    case = max(cases, key=lambda case: case.length / case.size)
    which = f" of {case.link!r}" if len(cases) > 1 else ""
    return f"{case.length:.3g} m for a size{which} of {case.size:.3g} m"


def _finding(severity: str, cases: list[_Case], text: str, hint: str = "") -> Iterator[Finding]:
    """Yield one finding about all cases, if there are any; `{}` in `text` stands for the worst figures."""
    if cases:
        links = enumerated("link", [case.link for case in cases])
        yield Finding(severity, f"{links}: {text.format(_worst(cases))}{hint}")


def _bodies(parts: Parts) -> Iterator[tuple[Group, LinkPart, np.ndarray]]:
    """Yield the links with a mass, and their centres of mass (3,) in the frame of their group."""
    for group in parts.groups:
        for link, T in group.links:
            com = T[:3, :3] @ link.com + T[:3, 3]
            if link.mass is not None and 0 < link.mass < np.inf and np.all(np.isfinite(com)):
                yield group, link, com


def _centres(parts: Parts, reach: float) -> Iterator[Finding]:
    """Yield findings about centres of mass outside a link's box, or farther away than the robot is large."""
    slipped, lost, outside = [], [], []
    for group, link, com in _bodies(parts):
        low, high = group.box()
        beyond = float(np.linalg.norm(np.maximum(0.0, np.maximum(low - com, com - high))))
        size, distance = group.size, float(np.linalg.norm(com))
        if size > 0 and beyond > SLIP * size:
            slipped.append(_Case(link.name, beyond, size))
        elif reach > 0 and distance > 2 * reach:
            lost.append(_Case(link.name, distance, reach))
        elif size > 0 and beyond > (OUTSIDE if group.shaped else ROUGHLY_OUTSIDE) * size:
            outside.append(_Case(link.name, beyond, size))
    yield from _finding(ERROR, slipped, "the centre of mass lies outside the link, by {}", "; is it in mm?")
    yield from _finding(ERROR, lost, "the distance of the centre of mass exceeds the robot's size, {}")
    yield from _finding(WARNING, outside, "the centre of mass lies outside the link, by {}")


def _moments(parts: Parts, reach: float) -> Iterator[Finding]:
    """Yield findings about radii of gyration much larger or smaller than the link."""
    slipped, large, small = [], [], []
    for group, link, _ in _bodies(parts):
        if not np.all(np.isfinite(link.tensor)):
            continue
        size = group.size if group.shaped else reach
        radius = radius_of_gyration(link.mass or 0.0, link.tensor)
        if size == 0 or radius == 0:
            continue
        case = _Case(link.name, radius, size)
        if radius > SLIP * size:
            slipped.append(case)
        elif radius > size:
            large.append(case)
        elif not link.unread and radius < SMALLEST * link.size:  # the link may be small within its group
            small.append(case._replace(size=link.size))
    body = "body, with a radius of gyration of {}"
    for severity, cases, which, hint in (
        (ERROR, slipped, "far larger", "; are they in kg mm^2, or made up?"),
        (WARNING, large, "larger", ""),
        (WARNING, small, "far smaller", "; is the mass in g, or are they made up?"),
    ):
        yield from _finding(severity, cases, f"moments of inertia as of a {which} {body}", hint)


def _densities(parts: Parts) -> Iterator[Finding]:
    """Yield findings about links denser than any metal or lighter than air, by the volume of their shapes."""
    densities = {
        group.name: group.mass / group.volume
        for group in parts.groups
        if group.shaped and 0 < group.mass < np.inf and group.volume > 0
    }
    if not densities:
        return
    typical = float(np.median(list(densities.values())))
    by_shapes = f"by their mass and the volume of their shapes (median {typical:.2g} kg/m^3)"
    if typical > 4 * DENSEST:
        yield Finding(ERROR, f"most links are denser than any metal, {by_shapes}; are masses in g?")
        return
    if typical < LIGHTEST / 4:
        yield Finding(ERROR, f"most links are lighter than air, {by_shapes}; are masses in t?")
        return
    for what, names in (
        ("denser than any metal", [name for name, value in densities.items() if value > DENSEST]),
        ("lighter than air", [name for name, value in densities.items() if value < LIGHTEST]),
    ):
        if names:
            yield Finding(WARNING, f"{enumerated('link', names)}: {what}, by mass and volume of their shapes")


def _offsets(parts: Parts) -> Iterator[Finding]:
    """Yield findings about joints far outside the shapes of their parent link."""
    far = []
    for group in parts.groups:
        corners = group.shape_corners()
        size = float(np.linalg.norm(np.ptp(corners, axis=0))) if group.shaped else 0.0
        for place in group.joints:
            distance = float(np.min(np.linalg.norm(corners - place, axis=1), initial=np.inf))
            if size > 0 and distance > SLIP * size:
                far.append(_Case(group.name, distance, size))
    yield from _finding(ERROR, far, "a joint lies outside the link, by {}", "; is one of the two in mm?")


def _joints(parts: Parts) -> Iterator[Finding]:
    moving = [one for one in parts.joints if one.kind != "fixed" and not one.passive and one.leader is None]
    ranged = [joint for joint in moving if joint.kind != "continuous"]
    for severity, text, found in (
        (WARNING, "no range, assumed to be endless", [j for j in ranged if j.low is None or j.high is None]),
        (WARNING, "no speed limit, or 0, assumed to be unlimited", [j for j in moving if j.speed is None]),
        (WARNING, "no effort limit, or 0, assumed to be unlimited", [j for j in moving if j.effort is None]),
        (
            WARNING,
            "the range is a single point, so the joint cannot move",
            [j for j in ranged if j.low is not None and j.low == j.high],
        ),
        (
            WARNING,
            "the range is several turns; is it in degrees?",
            _in_degrees(ranged),
        ),
        (NOTE, "damping and friction are ignored", [j for j in moving if j.damped]),
    ):
        if found:
            yield Finding(severity, f"{enumerated('joint', [joint.name for joint in found])}: {text}")


def _in_degrees(joints: list[JointPart]) -> list[JointPart]:
    """Return joints whose range must be in degrees: of many turns, or above one turn beside such a joint."""
    widths = [
        (joint, joint.high - joint.low)
        for joint in joints
        if joint.kind == "revolute" and joint.low is not None and joint.high is not None
    ]
    surely = any(40.0 < width < 2000.0 for _, width in widths)
    return [joint for joint, width in widths if surely and 6.5 < width < 2000.0]


def _files(parts: Parts) -> Iterator[Finding]:
    missing = list(dict.fromkeys(file for link in parts.links for file in link.missing))
    if missing:
        yield Finding(WARNING, f"{enumerated('mesh', missing, 'meshes')}: no such file")
    unread = [link.name for link in parts.links if link.unread and not link.missing]
    if unread:
        yield Finding(
            NOTE, f"{enumerated('link', unread)}: shapes of unknown extent, ignored by these checks"
        )
    bare = [
        link.name for link in parts.links if link.mass is None and link.extents and link.name != parts.base
    ]
    if bare:
        yield Finding(
            NOTE, f"{enumerated('link', bare)}: shapes but no <inertial>, assumed massless (PyBullet: 1 kg)"
        )


ORDER = (ERROR, WARNING, NOTE)


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """Contents of a robot file, and the findings about them.

    Attributes:
        path: path of the file.
        parts: links and joints of the file.
        robot: robot that `twin.load` returns, or `None` if it rejects the file, which is one of the findings.
        findings: findings, the most severe first.
    """

    path: Path
    parts: Parts
    robot: Robot | None
    findings: tuple[Finding, ...]

    __repr__ = short_repr

    @property
    def sound(self) -> bool:
        """Whether there is no finding that is an error."""
        return all(finding.severity != ERROR for finding in self.findings)

    @property
    def moving_joints(self) -> tuple[JointPart, ...]:
        """Moving joints."""
        return tuple(joint for joint in self.parts.joints if joint.kind != "fixed")

    @property
    def massive_links(self) -> tuple[LinkPart, ...]:
        """Links with mass properties, or moved by a joint."""
        moved = {joint.child for joint in self.moving_joints}
        return tuple(link for link in self.parts.links if link.mass or link.name in moved)

    @property
    def mass(self) -> float:
        """Mass of all links, the base included, in [kg]."""
        return sum(link.mass or 0.0 for link in self.parts.links)


def check_model(path: Path) -> ModelCheck:
    """Check a robot file.

    Args:
        path: path of a URDF, a `robot.toml` or a `dh.toml`.

    Raises:
        RobotError: the file cannot be read, or is of another kind.

    Example:
        >>> import twin
        >>> check = twin.check_model(twin.load("irb140").file)
        >>> check.findings, check.robot.n
        ((), 6)
    """
    path = robot_file(path) if path.is_dir() else path
    if path.suffix.lower() not in (".urdf", ".toml"):
        raise RobotError(f"{path}: expected a file whose name ends in .urdf, robot.toml or dh.toml")
    if path.name.endswith("dh.toml"):
        robot = _quietly_loaded(path)
        found = _of_table(robot, robot_facts(path).get("unphysical")) + _of_drives(robot)
        return ModelCheck(path, tree_parts(robot), robot, _sorted(found))
    urdf = path
    if path.suffix == ".toml":
        urdf = sibling_urdf(path, robot_facts(path))
    document = read_document(urdf)
    found = [Finding(ERROR, text) for text in faults(document)]
    parts = urdf_parts(document)
    robot = None
    try:
        robot = _quietly_loaded(path)
    except RobotError as error:
        if not any(one.severity == ERROR for one in found):
            found.append(Finding(ERROR, str(error).removeprefix(f"{path}: ")))
    # Radii of gyration are compared with the shapes of the links below.
    notes = [] if robot is None else [note for note in remarks(robot) if AS_OF_BODY not in note]
    found += [Finding(NOTE, note) for note in notes]
    if document.rounded and not any(note.startswith(rounded_text(document)) for note in notes):
        found.append(Finding(NOTE, rounded_text(document)))
    if robot is not None:
        parts = urdf_parts(document.with_locked(robot.locked))
        passive = {robot.tree.names[i] for i in robot.passive}
        joints = tuple(joint._replace(passive=joint.name in passive) for joint in parts.joints)
        parts = parts._replace(joints=joints)
        found += _of_robot(robot, parts) + _of_drives(robot)
    masses_known = robot is None or robot.inertia_fault != NO_INERTIAL
    if robot is not None and not robot.has_inertia and not any(one.severity == ERROR for one in found):
        severity = ERROR if masses_known else NOTE
        found.append(Finding(severity, f"only the kinematics are known: {robot.inertia_fault}"))
    found += findings(parts, masses_known)
    return ModelCheck(path, parts, robot, _sorted(found))


def _quietly_loaded(path: Path) -> Robot:
    """Load the robot without warnings, which are among the findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriveWarning)
        warnings.simplefilter("ignore", ModelWarning)
        warnings.simplefilter("ignore", ToolFrameWarning)
        return load(path)


def _of_drives(robot: Robot) -> list[Finding]:
    """Return the findings about the drive trains."""
    return [Finding(WARNING, sentence.partition(": ")[2]) for sentence in weak_motors(robot)]


def _of_robot(robot: Robot, parts: Parts) -> list[Finding]:
    """Return what the loader has assumed about a URDF."""
    ends = [name for i, name in enumerate(robot.tree.links) if i not in robot.tree.parents]
    found = [Finding(NOTE, robot.tool_reason)] if robot.tool_reason and len(ends) > 1 else []
    if len(ends) > 2 and any(link.name == parts.base and link.mass for link in parts.links):
        found.append(Finding(NOTE, f"link {parts.base!r} is fixed to the world, it does not float"))
    if followers := [one.name for one in parts.joints if one.leader is not None and one.kind != "fixed"]:
        found.append(
            Finding(NOTE, f"{enumerated('joint', followers)}: follows another joint, whose range it has")
        )
    return found


def _of_table(robot: Robot, unphysical: str | None) -> list[Finding]:
    found = list(findings(tree_parts(robot), masses_known=robot.has_inertia))
    if unphysical is not None:
        found.append(Finding(WARNING, f"unphysical, as stated in the file: {' '.join(unphysical.split())}"))
    if not robot.has_inertia:
        found.append(Finding(NOTE, "no masses: only kinematics, no simulation"))
    return found


def _sorted(found: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: ORDER.index(finding.severity)))
