"""Reading of a URDF into a `Tree` and joint limits, with rejection of impossible robots.

urchin (the maintained fork of urdfpy) parses the file.  It accepts a negative mass, NaN, and unsupported
joint types, and assigns 1 kg to a link without `<inertial>`.  Therefore everything is checked here.
"""

import importlib
import io
import math
import re
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from twin.errors import RobotError, printable
from twin.multibody.tree import Tree, consistent_moments, frozen, inertial_parameters, transformed_parameters

LARGEST = 20_000_000  # bytes
MOST_LINKS = 500
DEEPEST = 50

NUMBERS = {
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
    "limit": dict.fromkeys(("lower", "upper", "effort", "velocity"), 1),
    "dynamics": {"damping": 1, "friction": 1},
    "mimic": {"multiplier": 1, "offset": 1},
}
"""Number of values of each attribute, for the elements that define the motion."""


def read_document(path: Path) -> ET.Element:
    """Return the root element of a URDF, after a check of the numbers that define the motion.

    Raises:
        RobotError: the file is missing, is not XML or not a URDF, or a number or a name in it is invalid.
    """
    if path.is_dir():
        raise RobotError(f"expected a robot file, {path} is a folder")
    if not path.is_file():
        raise RobotError(f"no such robot file: {path}")
    try:
        if path.stat().st_size > LARGEST:
            raise RobotError(f"{path} is larger than {LARGEST // 1_000_000} MB, the limit for a URDF")
        root = _parsed(path.read_bytes())
    except OSError as error:
        raise RobotError(f"cannot read {path}: {error.strerror}") from error
    except (ET.ParseError, ValueError, LookupError) as error:  # the latter two for an unknown encoding
        raise RobotError(f"{path} is not well-formed XML: {error}") from error
    if root.tag != "robot":
        raise RobotError(f"{path} is not a URDF: its root element is <{root.tag}>, expected <robot>")
    _check_extent(path, root)
    for part in (*root.iterfind("link"), *root.iterfind("joint")):
        if part.get("name") == "":  # PyBullet ends the process
            raise RobotError(f"{path} has a <{part.tag}> with an empty name")
    for owner in (*root.iterfind("link/inertial/.."), *root.iterfind("joint")):
        inside = owner if owner.tag == "joint" else owner.iterfind("inertial/*")
        for element in inside:
            _check_numbers(path, owner, element)
    return root


def _parsed(text: bytes) -> ET.Element:
    try:
        return ET.fromstring(text)
    except ET.ParseError as error:
        tidy = re.sub(rb"<\?xml[^>]*\?>", b"", text, count=1).strip(b"\0 \t\r\n")
        try:
            return ET.fromstring(tidy)
        except ET.ParseError:
            raise error from None  # its line numbers refer to the original file


def _check_extent(path: Path, root: ET.Element) -> None:
    """Raise `RobotError` for a file that exceeds the recursion limit of readers, or takes hours to read."""
    links = sum(1 for _ in root.iterfind("link"))
    if links > MOST_LINKS:
        raise RobotError(f"{path} has {links} links, expected at most {MOST_LINKS}")
    level, depth = [root], 0
    while level:
        level, depth = [element for above in level for element in above], depth + 1
        if depth > DEEPEST:
            raise RobotError(f"{path} has elements nested more than {DEEPEST} deep")


def _check_numbers(path: Path, owner: ET.Element, element: ET.Element) -> None:
    for name, count in NUMBERS.get(str(element.tag), {}).items():
        text = element.get(name)
        if text is None:
            continue
        numbers = parse_numbers(text)
        missing = element.tag == "inertia" and any(map(math.isnan, numbers))  # urchin: "not symmetric"
        if len(numbers) != count or missing:
            expected = "a number" if count == 1 else f"{count} numbers"
            raise RobotError(
                f"{path} cannot be read as a URDF: {owner.tag} {owner.get('name')!r} has "
                f"<{element.tag} {name}={text!r}>, expected {expected}"
            )


def parse_numbers(text: str) -> list[float]:
    """Return the numbers of an attribute as every URDF reader reads them; empty if a word is not a number.

    Python's `float` accepts more than C: digits of other scripts, underscores, spaces that are not ASCII.
    """
    if not (text.isascii() and "_" not in text):
        return []
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return []


def check_connections(path: Path, root: ET.Element) -> None:
    """Raise `RobotError` if there is more than one base, or if links form a circle.

    Joints without a parent or child, and links with two parents, are rejected elsewhere.
    """
    names = [link.get("name") for link in root.iterfind("link")]
    ends = [(joint.find("parent"), joint.find("child")) for joint in root.iterfind("joint")]
    carried = {b.get("link"): a.get("link") for a, b in ends if a is not None and b is not None}
    if len(carried) < len(ends) or not {*carried, *carried.values()} <= set(names):
        return
    bases = [name for name in names if name not in carried]
    if len(bases) > 1:
        raise RobotError(f"{path}: links {', '.join(map(repr, bases))} have no joint, expected one base link")
    reached = set(bases)
    for _ in names:
        reached |= {child for child, parent in carried.items() if parent in reached}
    circling = [repr(name) for name in names if name not in reached]
    if circling:
        raise RobotError(f"{path}: the joints of links {', '.join(circling)} form a circle")


USED = {"link": ("inertial",), "joint": ("parent", "child", "origin", "axis", "limit")}
MOVING = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic"}
NOISE = 1e-15
"""Moments of inertia that count as zero, in [kg m^2]; some files have them for links that are frames."""
SUPPORTED = ("revolute", "continuous", "prismatic", "fixed")


class UrdfModel(NamedTuple):
    """Contents of a URDF: name, tree, (n,) limits, infinite where absent, and whether it states masses."""

    name: str
    tree: Tree
    q_min: np.ndarray
    q_max: np.ndarray
    qd_max: np.ndarray
    tau_max: np.ndarray
    has_inertia: bool


class PlacedLink(NamedTuple):
    """Link of the file: index of the moving joint that carries it, -1 for none, and its pose there."""

    name: str
    index: int
    T: np.ndarray


class MovingJoint(NamedTuple):
    """Moving joint as read by urchin: index of the joint that carries it, -1 for none, and its pose there."""

    joint: Any
    parent: int
    T: np.ndarray


def read_urdf(path: Path) -> UrdfModel:
    """Read and check a URDF.

    Fixed joints are merged, so that a link of the tree contains all links fixed to each other.  The flange is
    the link `tool0`, or without it the end of the longest chain.  A speed or effort limit of 0 counts as
    absent.

    Raises:
        RobotError: the file is missing or malformed, or a joint or link in it is impossible.
    """
    root = read_document(path)
    document = parsed(path, root)
    _check_joints(path, root)
    links, moving = placed_links(path, document)
    if not moving:
        raise RobotError(f"{path}: no joint moves; at least one must be revolute, continuous or prismatic")
    stated = {link.get("name") for link in root.iterfind("link") if link.find("inertial") is not None}
    moved = {joint.joint.child for joint in moving}
    inertias = np.zeros((len(moving) + 1, 10))  # the base, of index -1, is the last
    for link, index, T in links:
        if link in stated:
            body = _body(path, document.link_map[link], moved=link in moved)
            inertias[index] += transformed_parameters(body, T)
    # Number of joints from the base to each joint; the base, of index -1, is the last element.
    depths = [0] * (len(moving) + 1)
    for index, joint in enumerate(moving):
        depths[index] = depths[joint.parent] + 1
    _, flange_joint, T_joint_flange = max(links, key=lambda link: (link.name == "tool0", depths[link.index]))
    if flange_joint < 0:
        raise RobotError(
            f"{path}: no joint moves link 'tool0', so no tool or payload could be attached to it; expected "
            "it behind a moving joint, or under another name"
        )
    joints = [joint.joint for joint in moving]
    limits = np.array([_limits(path, joint) for joint in joints])
    tree = Tree(
        names=tuple(joint.name for joint in joints),
        links=tuple(joint.child for joint in joints),
        kinds=tuple(MOVING[joint.joint_type] for joint in joints),
        parents=tuple(joint.parent for joint in moving),
        T_parent_joint=frozen([joint.T for joint in moving]),
        axes=frozen([_axis(path, joint) for joint in joints]),
        inertias=frozen(inertias[:-1]),
        flange_joint=flange_joint,
        T_joint_flange=frozen(T_joint_flange),
        base_inertia=frozen(inertias[-1]),
    )
    q_min, q_max, qd_max, tau_max = (frozen(column) for column in limits.T)
    return UrdfModel(document.name, tree, q_min, q_max, qd_max, tau_max, bool(stated))


def placed_links(path: Path, document: Any) -> tuple[list[PlacedLink], list[MovingJoint]]:
    """Return the links of a document, parents first, and its moving joints.

    Raises:
        RobotError: the origin of a joint is not finite.
    """
    joints_of: dict[str, list[Any]] = {}
    for joint in document.joints:
        joints_of.setdefault(joint.parent, []).append(joint)
    links: list[PlacedLink] = []
    moving: list[MovingJoint] = []
    waiting: list[tuple[str, Any, int, np.ndarray]] = [(document.base_link.name, None, -1, np.eye(4))]
    while waiting:  # no recursion, because a chain may exceed Python's recursion limit
        link, joint, index, T = waiting.pop()
        if joint is not None and joint.joint_type != "fixed":
            moving.append(MovingJoint(joint, index, T))
            index, T = len(moving) - 1, np.eye(4)
        links.append(PlacedLink(link, index, T))
        carried = reversed(joints_of.get(link, []))
        waiting += [(joint.child, joint, index, T @ _origin(path, joint)) for joint in carried]
    return links, moving


def faults(path: Path) -> list[str]:
    """Return a sentence for everything that `read_urdf` rejects in single links and joints of a URDF.

    Raises:
        RobotError: as `read_urdf`, if the document as a whole is invalid.
    """
    root = read_document(path)
    document = parsed(path, root)
    _check_joints(path, root)
    moved = {joint.child for joint in document.joints if joint.joint_type != "fixed"}
    stated = {link.get("name") for link in root.iterfind("link") if link.find("inertial") is not None}
    checks: list[Callable[[], object]] = [
        lambda link=link: _body(path, link, link.name in moved)
        for link in document.links
        if link.name in stated
    ]
    for joint in document.joints:
        checks.append(lambda joint=joint: _origin(path, joint))
        if joint.joint_type != "fixed":
            checks += [lambda joint=joint: _axis(path, joint), lambda joint=joint: _limits(path, joint)]
    found = []
    for check in checks:
        try:
            check()
        except RobotError as error:
            found.append(str(error).removeprefix(f"{path}: "))
    return found


class _File(io.BytesIO):
    """Text that urchin accepts as a file."""

    name = "/"  # an empty name would mean the working directory, whose name may not be UTF-8


def _urchin() -> ModuleType:
    """Import urchin without trimesh, which takes half a second and is only needed for meshes.

    `lazy_loader.load("trimesh")` does not help: urchin's `import trimesh` loads such a module at once.
    """
    if sys.modules.keys() & {"urchin", "trimesh"}:
        return importlib.import_module("urchin")
    later = ModuleType("trimesh")  # urchin's modules import and use this stand-in
    later.__getattr__ = lambda name: getattr(importlib.import_module("trimesh"), name)
    sys.modules["trimesh"] = later
    try:
        return importlib.import_module("urchin")
    finally:
        del sys.modules["trimesh"]


def parsed(path: Path, root: ET.Element) -> Any:
    """Return the document as read by urchin, without shapes, which do not influence the motion.

    Raises:
        RobotError: an element is missing, a name is unknown, a joint type is unknown, or the links do not
            form one tree.
    """
    urchin = _urchin()
    if root.find("link") is None:
        raise RobotError(f"{path} has no <link>, expected at least a base")
    for joint in root.iterfind("joint"):
        if joint.get("type") not in SUPPORTED:
            raise RobotError(
                f"{path}: joint {joint.get('name')!r} is of type {joint.get('type')!r}, "
                f"supported are {', '.join(SUPPORTED)}"
            )
    check_connections(path, root)
    text = _File(ET.tostring(_moving_parts(root)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return urchin.URDF.load(text, lazy_load_meshes=True)
    except KeyError as error:
        raise RobotError(f"{path}: an element or attribute {error} is missing or names nothing") from error
    except Exception as error:  # urchin passes on any exception
        reason = printable(str(error)).rstrip(".") or type(error).__name__
        raise RobotError(f"{path} cannot be read as a URDF: {reason}") from error


def _moving_parts(root: ET.Element) -> ET.Element:
    """Return the document reduced to the elements that define the motion, with optional limits filled in."""
    reduced = ET.Element("robot", root.attrib)
    for owner in root:
        if owner.tag in USED:
            copy = ET.SubElement(reduced, owner.tag, owner.attrib)
            copy.extend(deepcopy(element) for element in owner if element.tag in USED[owner.tag])
    for limit in reduced.iter("limit"):
        for name in ("effort", "velocity"):
            limit.set(name, limit.get(name, "0"))  # 0 counts as absent
    return reduced


def _check_joints(path: Path, root: ET.Element) -> None:
    """Raise `RobotError` for errors that urchin ignores: a link with two parents, an axis of length 0."""
    carried: dict[str, str] = {}
    for joint in root.iterfind("joint"):
        name, axis = joint.get("name", ""), joint.find("axis")
        child = joint.find("child").get("link", "")  # type: ignore[union-attr]  # required by urchin
        if child in carried:
            raise RobotError(
                f"{path}: link {child!r} is the child of joints {carried[child]!r} and {name!r}, expected one"
            )
        carried[child] = name
        if (
            axis is not None
            and joint.get("type") != "fixed"
            and not any(float(x) for x in axis.get("xyz", "1 0 0").split())
        ):
            raise RobotError(f"{path}: joint {name!r} has an axis of length 0, expected a direction")


def _body(path: Path, link: Any, moved: bool) -> np.ndarray:
    """Return the checked inertial parameters (10,) of a URDF link, in the link's frame.

    A massless link that is not `moved` by its own joint is a frame; its inertia in the file is ignored.
    """
    mass, tensor, T = link.inertial.mass, link.inertial.inertia, _snapped(link.inertial.origin)
    where = f"{path}: link {link.name!r}"
    if not 0 <= mass < np.inf:
        raise RobotError(f"{where} has mass {mass:g} kg, expected a finite number of at least 0")
    if not np.all(np.isfinite(tensor)) or not np.all(np.isfinite(T)):
        raise RobotError(f"{where} has an inertial element that is not finite")
    moments, axes = np.linalg.eigh(tensor)
    slack = 1e-6 * abs(moments[2]) + NOISE  # error due to rounding to six printed digits
    if mass == 0 and not moved:
        return np.zeros(10)
    if mass == 0 and np.any(tensor != 0):
        raise RobotError(f"{where} has inertia but no mass; give it a mass above 0 kg")
    if not moments[0] >= -slack:
        raise RobotError(
            f"{where} has a principal moment of inertia of {moments[0]:g} kg m^2, expected at least 0"
        )
    if not moments[2] <= moments[0] + moments[1] + slack:
        raise RobotError(
            f"{where} has principal moments of inertia {', '.join(f'{m:g}' for m in moments)} kg m^2, "
            "which are impossible: the largest must not exceed the sum of the others"
        )
    possible = consistent_moments(moments)
    if not np.array_equal(moments, possible):
        tensor = axes @ np.diag(possible) @ axes.T
    return inertial_parameters(mass, T[:3, 3], T[:3, :3] @ tensor @ T[:3, :3].T)


def _origin(path: Path, joint: Any) -> np.ndarray:
    """Return the checked pose of a joint in its parent link's frame."""
    if not np.all(np.isfinite(joint.origin)):
        raise RobotError(f"{path}: joint {joint.name!r} has an origin that is not finite")
    return _snapped(joint.origin)


def _axis(path: Path, joint: Any) -> np.ndarray:
    axis = np.asarray(joint.axis, dtype=float)
    if not abs(np.linalg.norm(axis) - 1) < 1e-6:
        raise RobotError(f"{path}: joint {joint.name!r} has axis {axis.tolist()}, expected a direction")
    return axis


def _limits(path: Path, joint: Any) -> tuple[float, float, float, float]:
    """Return position range, speed limit and effort limit of a joint."""
    limit = joint.limit
    low = high = None
    if limit is not None and joint.joint_type != "continuous":
        low, high = limit.lower, limit.upper
    low, high = (-np.inf if low is None else low), (np.inf if high is None else high)
    if not low <= high:
        raise RobotError(
            f"{path}: joint {joint.name!r} has the range {low:g} to {high:g}, expected lower <= upper"
        )
    rates = []
    for what in ("velocity", "effort"):
        value = getattr(limit, what, 0.0) or 0.0
        if not value >= 0:
            raise RobotError(
                f"{path}: joint {joint.name!r} has the {what} limit {value:g}, expected at least 0"
            )
        rates.append(value or np.inf)
    return low, high, rates[0], rates[1]


def _snapped(T: np.ndarray) -> np.ndarray:
    """Return a pose, its rotation rounded to a signed permutation if that is within an ulp (rpy of pi/2)."""
    T = np.array(T, dtype=float)
    nearest = np.round(T[:3, :3])
    if np.all(np.abs(T[:3, :3] - nearest) < 1e-15):
        T[:3, :3] = nearest
    return T
