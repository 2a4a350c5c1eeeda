"""What the twin makes of a robot file: its joints and links, what is suspicious, whether it can be used."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from twin.errors import DriveWarning, RobotError
from twin.robot.loading.consistency import weak_motors
from twin.robot.loading.loading import load, robot_facts, sibling_urdf
from twin.robot.loading.model_parts import Group, JointPart, LinkPart, Parts, tree_parts, urdf_parts
from twin.robot.loading.urdf_reader import faults
from twin.robot.robot import Robot

ERROR, WARNING, NOTE = "error", "warning", "note"

OUTSIDE, ROUGHLY_OUTSIDE = 0.1, 0.5
"""How far beyond its link a centre of mass may lie, as a part of the link's size: shapes are rough, and where
there are none, a box about the joints is rougher."""
SLIP = 100.0
"""A length that is wrong by more than this is not one that somebody chose."""
DENSEST, LIGHTEST = 22_590.0, 1.2
"""Densities of osmium and of air, in [kg/m^3]."""
SMALLEST = 1 / 300
"""Radius of gyration over a link's size below which its moments are not those of that link."""
LARGE = 100.0  # m: no robot is larger


class Finding(NamedTuple):
    """A fact about a robot file that its user should know.

    Attributes:
        severity: `"error"` (wrong, whatever was meant), `"warning"` (likely to be wrong), or `"note"` (what
            this program makes of it).
        text: one sentence.
    """

    severity: str
    text: str


def findings(parts: Parts, masses_known: bool = True) -> Iterator[Finding]:
    """All findings about the parts of a file.

    Args:
        parts: of the file.
        masses_known: whether there are masses to speak of.
    """
    reach = robot_size(parts)
    if reach > LARGE:  # what is not finite is an error of its own
        yield Finding(WARNING, f"the robot measures {reach:.4g} m: are its lengths in mm?")
    if masses_known:
        massless = [group.name for group in parts.groups if group.moves and group.mass == 0]
        if massless:
            yield Finding(WARNING, f"{_listed('link', massless)}: moved by a joint, and without mass")
        yield from _centres(parts, reach)
        yield from _moments(parts, reach)
        yield from _densities(parts)
    yield from _offsets(parts)
    yield from _joints(parts)
    yield from _files(parts)


def robot_size(parts: Parts) -> float:
    """About the largest distance in the robot, in [m]: the sizes of its links along the longest chain."""
    sizes = {group.name: group.size for group in parts.groups}
    parents = _parents(parts)

    def along(name: str) -> float:
        return sizes[name] + (along(parents[name]) if name in parents else 0.0)

    return max(along(group.name) for group in parts.groups)


def _parents(parts: Parts) -> dict[str, str]:
    """By the name of each group that moves, that of the group that carries it."""
    home = {link.name: group.name for group in parts.groups for link, _ in group.links}
    return {joint.child: home[joint.parent] for joint in parts.joints if joint.kind != "fixed"}


class _Case(NamedTuple):
    """A link with a length that does not fit it, in [m], and the size of the link."""

    link: str
    length: float
    size: float


def _worst(cases: list[_Case]) -> str:
    """Of several links the one that is furthest off: `0.3 m for a size of 0.1 m`."""
    case = max(cases, key=lambda case: case.length / case.size)
    which = f" of {case.link!r}" if len(cases) > 1 else ""
    return f"{case.length:.3g} m for a size{which} of {case.size:.3g} m"


def _told(severity: str, cases: list[_Case], text: str, hint: str = "") -> Iterator[Finding]:
    """One finding about all links of a kind, if there are any; `text` has `{}` for the worst figures."""
    if cases:
        links = _listed("link", [case.link for case in cases])
        yield Finding(severity, f"{links}: {text.format(_worst(cases))}{hint}")


def _bodies(parts: Parts) -> Iterator[tuple[Group, LinkPart, np.ndarray]]:
    """The links with a mass, and their centres of mass (3,) in the frame of their group."""
    for group in parts.groups:
        for link, T in group.links:
            com = T[:3, :3] @ link.com + T[:3, 3]
            if link.mass is not None and 0 < link.mass < np.inf and np.all(np.isfinite(com)):
                yield group, link, com


def _centres(parts: Parts, reach: float) -> Iterator[Finding]:
    """Centres of mass outside the box about a link's shapes and joints, or further off than all the robot."""
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
    yield from _told(ERROR, slipped, "the centre of mass lies outside the link, by {}", "; is it in mm?")
    yield from _told(ERROR, lost, "the centre of mass lies further off than the whole robot is large, {}")
    yield from _told(WARNING, outside, "the centre of mass lies outside the link, by {}")


def _moments(parts: Parts, reach: float) -> Iterator[Finding]:
    """Moments of inertia of a body much larger or smaller than the link, by its radius of gyration."""
    slipped, large, small = [], [], []
    for group, link, _ in _bodies(parts):
        if not np.all(np.isfinite(link.tensor)):
            continue
        size = group.size if group.shaped else reach
        radius = float(np.sqrt(max(0.0, link.moments[2]) / (link.mass or 1.0)))
        if size == 0 or radius == 0:
            continue
        case = _Case(link.name, radius, size)
        if radius > SLIP * size:
            slipped.append(case)
        elif radius > size:
            large.append(case)
        elif not link.unread and radius < SMALLEST * link.size:  # it may be small beside its group
            small.append(case._replace(size=link.size))
    body = "body, with a radius of gyration of {}"
    for severity, cases, which, hint in (
        (ERROR, slipped, "far larger", "; are they in kg mm^2, or made up?"),
        (WARNING, large, "larger", ""),
        (WARNING, small, "far smaller", "; is the mass in g, or are they made up?"),
    ):
        yield from _told(severity, cases, f"moments of inertia as of a {which} {body}", hint)


def _densities(parts: Parts) -> Iterator[Finding]:
    """Links heavier than any metal or lighter than air, by the volume of their shapes."""
    densities = {
        group.name: group.mass / group.volume
        for group in parts.groups
        if group.shaped and 0 < group.mass < np.inf and group.volume > 0
    }
    if not densities:
        return
    typical = float(np.median(list(densities.values())))
    by_shapes = f"by their mass and the volume of their shapes ({typical:.2g} kg/m^3 in the middle)"
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
            yield Finding(WARNING, f"{_listed('link', names)}: {what}, by mass and the volume of shapes")


def _offsets(parts: Parts) -> Iterator[Finding]:
    """Joints that are far off the shapes of the link that carries them."""
    far = []
    for group in parts.groups:
        corners = group.shape_corners()
        size = float(np.linalg.norm(np.ptp(corners, axis=0))) if group.shaped else 0.0
        for place in group.joints:
            distance = float(np.min(np.linalg.norm(corners - place, axis=1), initial=np.inf))
            if size > 0 and distance > SLIP * size:
                far.append(_Case(group.name, distance, size))
    yield from _told(ERROR, far, "a joint lies outside the link, by {}", "; is one of the two in mm?")


def _joints(parts: Parts) -> Iterator[Finding]:
    moving = [joint for joint in parts.joints if joint.kind != "fixed" and not joint.passive]
    ranged = [joint for joint in moving if joint.kind != "continuous"]
    for severity, text, found in (
        (WARNING, "no range, taken as endless", [j for j in ranged if j.low is None or j.high is None]),
        (WARNING, "no speed limit, or 0, taken as unlimited", [j for j in moving if j.speed is None]),
        (WARNING, "no effort limit, or 0, taken as unlimited", [j for j in moving if j.effort is None]),
        (
            WARNING,
            "a range of a single point, which no motion keeps",
            [j for j in ranged if j.low is not None and j.low == j.high],
        ),
        (
            WARNING,
            "a range of several turns; is it in degrees?",
            [j for j in ranged if j.kind == "revolute" and _in_degrees(j.low, j.high)],
        ),
        (WARNING, "made to mimic another, free here, with a motor", [j for j in moving if j.mimics]),
        (NOTE, "damping and friction are left out", [j for j in moving if j.damped]),
    ):
        if found:
            yield Finding(severity, f"{_listed('joint', [joint.name for joint in found])}: {text}")


def _in_degrees(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and 40.0 < high - low < 2000.0


def _files(parts: Parts) -> Iterator[Finding]:
    missing = list(dict.fromkeys(file for link in parts.links for file in link.missing))
    if missing:
        yield Finding(WARNING, f"{_listed('mesh', missing, 'meshes')}: there is no such file")
    unread = [link.name for link in parts.links if link.unread and not link.missing]
    if unread:
        yield Finding(NOTE, f"{_listed('link', unread)}: shapes of unknown extent, compared with nothing")
    bare = [
        link.name for link in parts.links if link.mass is None and link.extents and link.name != parts.base
    ]
    if bare:
        yield Finding(
            NOTE, f"{_listed('link', bare)}: shapes but no <inertial>, taken as without mass (PyBullet: 1 kg)"
        )


def _listed(what: str, names: Iterable[str], plural: str = "") -> str:
    """`joint 'a'`, or `joints 'a', 'b', 'c' and 3 others`."""
    shown = [repr(name) for name in names]
    if len(shown) == 1:
        return f"{what} {shown[0]}"
    rest = f" and {len(shown) - 3} others" if len(shown) > 4 else ""
    return f"{plural or what + 's'} {', '.join(shown[:3] if rest else shown)}{rest}"


ORDER = (ERROR, WARNING, NOTE)


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """What a robot file says, and what is to be said of it.

    Attributes:
        path: the file.
        parts: its links and joints.
        robot: what `twin.load` makes of it; `None` where it refuses it, which is among the findings.
        findings: the gravest first.
    """

    path: Path
    parts: Parts
    robot: Robot | None
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether there is no finding that is an error."""
        return all(finding.severity != ERROR for finding in self.findings)

    @property
    def moving_joints(self) -> tuple[JointPart, ...]:
        """The joints that move."""
        return tuple(joint for joint in self.parts.joints if joint.kind != "fixed")

    @property
    def massive_links(self) -> tuple[LinkPart, ...]:
        """The links with mass properties, or moved by a joint."""
        moved = {joint.child for joint in self.moving_joints}
        return tuple(link for link in self.parts.links if link.mass or link.name in moved)

    @property
    def mass(self) -> float:
        """Of all links, the base included, in [kg]."""
        return sum(link.mass or 0.0 for link in self.parts.links)


def check_model(path: Path) -> ModelCheck:
    """Look a robot file over.

    Args:
        path: of a URDF, a `robot.toml` or a `dh.toml`.

    Raises:
        RobotError: the file cannot be read, or is none of these.
    """
    if path.suffix not in (".urdf", ".toml"):
        raise RobotError(f"{path}: expected a file whose name ends in .urdf, robot.toml or dh.toml")
    if path.name.endswith("dh.toml"):
        robot = _quietly_loaded(path)
        told = _of_table(robot, robot_facts(path).get("unphysical")) + _of_drives(robot)
        return ModelCheck(path, tree_parts(robot), robot, _sorted(told))
    urdf = path
    if path.suffix == ".toml":
        urdf = sibling_urdf(path, robot_facts(path))
    told = [Finding(ERROR, text) for text in faults(urdf)]
    parts = urdf_parts(urdf)
    robot = None
    try:
        robot = _quietly_loaded(path)
    except RobotError as error:
        if not told:
            told.append(Finding(ERROR, str(error).removeprefix(f"{path}: ")))
    if robot is not None:
        parts = _passive_marked(parts, robot)
        told += _of_robot(robot, parts) + _of_drives(robot)
    told += findings(parts)
    return ModelCheck(path, parts, robot, _sorted(told))


def _quietly_loaded(path: Path) -> Robot:
    """The robot, whose warnings are among the findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriveWarning)
        return load(path)


def _of_drives(robot: Robot) -> list[Finding]:
    """What is to be said of the drive trains."""
    return [Finding(WARNING, sentence.partition(": ")[2]) for sentence in weak_motors(robot)]


def _passive_marked(parts: Parts, robot: Robot) -> Parts:
    passive = {robot.tree.names[i] for i in robot.passive}
    return parts._replace(
        joints=tuple(joint._replace(passive=joint.name in passive) for joint in parts.joints)
    )


def _of_robot(robot: Robot, parts: Parts) -> list[Finding]:
    """What is taken for granted of a URDF that has no link `tool0`."""
    tree = robot.tree
    ends = [name for i, name in enumerate(tree.links) if i not in tree.parents]
    if len(ends) == 1 or any(link.name == "tool0" for link in parts.links):
        return []
    at = tree.links[tree.flange_joint]
    told = [
        Finding(NOTE, f"{len(ends)} ends and no link 'tool0': the tool is taken to be at the end of {at!r}")
    ]
    if len(ends) > 2 and any(link.name == parts.base and link.mass for link in parts.links):
        told.append(Finding(NOTE, f"link {parts.base!r} is fixed to the world here, it does not float"))
    return told


def _of_table(robot: Robot, unphysical: str | None) -> list[Finding]:
    told = list(findings(tree_parts(robot), masses_known=robot.has_inertia))
    if unphysical is not None:
        told.append(Finding(WARNING, f"unphysical, says the file: {' '.join(unphysical.split())}"))
    if not robot.has_inertia:
        told.append(Finding(NOTE, "no masses: kinematics only, nothing to simulate"))
    return told


def _sorted(told: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(dict.fromkeys(told), key=lambda finding: ORDER.index(finding.severity)))
