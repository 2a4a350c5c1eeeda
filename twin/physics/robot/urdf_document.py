"""Document of a URDF: its XML, checked, and its joints as read by urchin.

urchin (the maintained fork of urdfpy) reads the joints.  It accepts NaN and unsupported joint types, and
stops at habits of exporters.  Therefore everything is checked here, and what other readers pass over is
passed over: undeclared prefixes, a default namespace, missing limits, an axis of a fixed joint.

Numbers are what a file prints: rounding has changed the last digits.  Exporters round quarter turns to
`1.5708` and axes to `0.7071 0.7071 0`.  Axes that are parallel on the arm then differ by 1e-6 rad in the
model.  It gets parameters that no measurement could tell apart, and closed forms fit no longer.  Such numbers
therefore stand for what was rounded.
"""

import importlib
import io
import math
import re
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from twin.base.errors import RobotError, near, printable

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

LISTED = 1e-9
"""Smallest change, in [rad] or [1], of a rounded number that is mentioned."""

SUPPORTED = ("revolute", "continuous", "prismatic", "fixed")
PLACING = ("parent", "child", "origin")
MOVING = ("axis", "limit", "mimic")
"""Elements of all joints, and of moving ones, that urchin reads."""


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


@dataclass(frozen=True)
class Document:
    """Document of a URDF.

    Attributes:
        path: path of the file.
        root: its root element; rounded angles and axes are replaced by what they stand for.
        joints: joints as read by urchin, in the order of the file.
        base: name of the base link.
        rounded: the replaced numbers, as `joint 'a': rpy 1.5708`.
    """

    path: Path
    root: ET.Element
    joints: tuple[Any, ...] = field(repr=False)
    base: str
    rounded: tuple[str, ...]

    @cached_property
    def links(self) -> dict[str, ET.Element]:
        """Elements of the links by their names."""
        return {link.get("name", ""): link for link in self.root.iterfind("link")}

    @cached_property
    def joints_on(self) -> dict[str, list[Any]]:
        """Joints whose parent is a link, by the link's name."""
        found: dict[str, list[Any]] = {name: [] for name in self.links}
        for joint in self.joints:
            found[joint.parent].append(joint)
        return found

    @cached_property
    def placed(self) -> tuple[list[PlacedLink], list[MovingJoint]]:
        """Links, parents first, and moving joints; raises `RobotError` if an origin is not finite."""
        links: list[PlacedLink] = []
        moving: list[MovingJoint] = []
        waiting: list[tuple[str, Any, int, np.ndarray]] = [(self.base, None, -1, np.eye(4))]
        while waiting:  # no recursion, because a chain may exceed Python's recursion limit
            link, joint, index, T = waiting.pop()
            if joint is not None and joint.joint_type != "fixed":
                moving.append(MovingJoint(joint, index, T))
                index, T = len(moving) - 1, np.eye(4)
            links.append(PlacedLink(link, index, T))
            later = reversed(self.joints_on[link])
            waiting += [(joint.child, joint, index, T @ self.origin(joint)) for joint in later]
        return links, moving

    def with_locked(self, positions: Mapping[str, float]) -> "Document":
        """Return the document with joints of these names fixed at their positions, in [rad] or [m]."""
        joints = [copy(joint) for joint in self.joints]
        for joint in joints:
            if joint.name in positions:
                joint.origin = joint.get_child_pose(positions[joint.name])
                joint.joint_type = "fixed"
        return replace(self, joints=tuple(joints)) if positions else self

    def origin(self, joint: Any) -> np.ndarray:
        """Return the pose (4, 4) of a joint in its parent link's frame; raise `RobotError` unless finite."""
        if not np.all(np.isfinite(joint.origin)):
            raise RobotError(f"{self.path}: joint {joint.name!r} has an origin that is not finite")
        return snapped(joint.origin)


def read_document(path: Path, exact: bool = True) -> Document:
    """Return the document of a URDF, or with the numbers as printed, not `exact`.

    Raises:
        RobotError: the file is missing, is not XML or not a URDF; a name or a number in it is invalid; a
            joint's type is unknown; or the links do not form one tree.
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
    return checked_document(path, root, exact)


def checked_document(path: Path, root: ET.Element, exact: bool = True) -> Document:
    """Return the document with this root element; arguments and errors as of `read_document`."""
    _check_extent(path, root)
    if root.find("link") is None:
        raise RobotError(f"{path} has no <link>, expected at least a base")
    for part in (*root.iterfind("link"), *root.iterfind("joint")):
        if not part.get("name"):  # PyBullet ends the process
            raise RobotError(f"{path} has a <{part.tag}> with an empty name, or without one")
    for owner in (*root.iterfind("link/inertial/.."), *root.iterfind("joint")):
        inside = owner if owner.tag == "joint" else owner.iterfind("inertial/*")
        for element in inside:
            if not (owner.get("type") == "fixed" and element.tag in MOVING):
                _check_numbers(path, owner, element)
    _check_joints(path, root)
    _check_followers(path, root)
    base = _base(path, root)
    rounded = tuple(_made_exact(root)) if exact else ()
    return Document(path, root, tuple(_joints(path, root)), base, rounded)


PREFIX = re.compile(rb"[<\s/]([A-Za-z_][\w.-]*):[A-Za-z_]")


def _parsed(text: bytes) -> ET.Element:
    """Return the root element, without its namespace; a file need not declare its prefixes."""
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        tidy = re.sub(rb"<\?xml[^>]*\?>", b"", text, count=1).strip(b"\0 \t\r\n")
        if "unbound prefix" in str(error):
            known = {b"xml", b"xmlns", *re.findall(rb"xmlns:([\w.-]+)", tidy)}
            prefixes = sorted({*PREFIX.findall(tidy)} - known)
            declared = b"".join(b' xmlns:%s="%s"' % (prefix, prefix) for prefix in prefixes)
            tidy = re.sub(rb"<robot\b", b"<robot" + declared, tidy, count=1)
        try:
            root = ET.fromstring(tidy)
        except ET.ParseError:
            raise error from None  # its line numbers refer to the original file
    namespace = root.tag[: root.tag.find("}") + 1]
    for element in root.iter() if namespace else ():
        element.tag = element.tag.removeprefix(namespace)
    return root


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
        if text is not None and len(parse_numbers(text)) != count:
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


def _check_joints(path: Path, root: ET.Element) -> None:
    """Raise `RobotError` unless every joint has a known type, an axis, and two links of which no other."""
    links = [link.get("name", "") for link in root.iterfind("link")]
    for names in (links, [joint.get("name", "") for joint in root.iterfind("joint")]):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise RobotError(f"{path}: {twice[0]!r} is the name of two links or joints, expected one of each")
    carried: dict[str, str] = {}
    for joint in root.iterfind("joint"):
        name, axis, kind = joint.get("name", ""), joint.find("axis"), joint.get("type")
        where = f"{path}: joint {name!r}"
        if kind not in SUPPORTED:
            raise RobotError(f"{where} is of type {kind!r}, supported are {', '.join(SUPPORTED)}")
        for side in ("parent", "child"):
            link = element.get("link") if (element := joint.find(side)) is not None else None
            if link is None:
                raise RobotError(f"{where} has no <{side} link=...>, expected the name of a link")
            if link not in links:
                raise RobotError(f"{where} has the {side} {link!r}, which is no link{near(link, links)}")
            if side == "child" and carried.setdefault(link, name) != name:
                raise RobotError(
                    f"{path}: link {link!r} is the child of joints {carried[link]!r} and {name!r}, "
                    "expected one"
                )
        if kind != "fixed" and axis is not None and not any(parse_numbers(axis.get("xyz", "1"))):
            raise RobotError(f"{where} has an axis of length 0, expected a direction")


def _check_followers(path: Path, root: ET.Element) -> None:
    """Raise `RobotError` if a joint follows one that is missing or fixed, or joints follow each other."""
    kinds = {joint.get("name", ""): joint.get("type") for joint in root.iterfind("joint")}
    leaders = {
        joint.get("name", ""): mimic.get("joint", "")
        for joint in root.iterfind("joint")
        if joint.get("type") != "fixed" and (mimic := joint.find("mimic")) is not None
    }
    for name, leader in leaders.items():
        if kinds.get(leader, "fixed") == "fixed":
            fault = "is fixed" if leader in kinds else f"is no joint{near(leader, kinds)}"
            raise RobotError(
                f"{path}: joint {name!r} follows {leader!r}, which {fault}; expected a moving one"
            )
    for name in leaders:
        chain = [name]
        while (leader := leaders.get(chain[-1])) is not None:
            if leader in chain:
                raise RobotError(
                    f"{path}: joints {', '.join(chain)} follow each other, so no motor moves them"
                )
            chain.append(leader)


def _base(path: Path, root: ET.Element) -> str:
    """Return the name of the base; raise `RobotError` if there are several, or if links form a circle."""
    names = [link.get("name", "") for link in root.iterfind("link")]
    carried = {
        joint.find("child").get("link"): joint.find("parent").get("link")  # type: ignore[union-attr]
        for joint in root.iterfind("joint")
    }
    bases = [name for name in names if name not in carried]
    if len(bases) > 1:
        raise RobotError(f"{path}: links {', '.join(map(repr, bases))} have no joint, expected one base link")
    reached = set(bases)
    for _ in names:
        reached |= {child for child, parent in carried.items() if parent in reached}
    circling = [repr(name) for name in names if name not in reached]
    if circling:
        raise RobotError(f"{path}: the joints of links {', '.join(circling)} form a circle")
    return bases[0]


def _made_exact(root: ET.Element) -> list[str]:
    """Replace rounded angles and axes by what they stand for, and return a text for each."""
    found = []
    owners = (*root.iterfind("joint"), *root.iterfind("link/inertial/.."))
    for owner in owners:
        inside = owner if owner.tag == "joint" else owner.iterfind("inertial/*")
        for element in inside:
            for key in {"origin": ("rpy",), "axis": ("xyz",)}.get(str(element.tag), ()):
                words = element.get(key, "").split()
                if len(parse_numbers(" ".join(words))) != 3:
                    continue
                exact = exact_axis(words) if key == "xyz" else [exact_angle(word) for word in words]
                if exact == [float(word) for word in words]:
                    continue
                changed = [
                    word for word, one in zip(words, exact, strict=True) if abs(float(word) - one) > LISTED
                ]
                element.set(key, " ".join(map(repr, exact)))
                if changed:
                    what = "axis" if key == "xyz" else "rpy"
                    found.append(f"{owner.tag} {owner.get('name')!r}: {what} {' '.join(changed)}")
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


def _joints(path: Path, root: ET.Element) -> list[Any]:
    """Return the joints as read by urchin; limits that a file may leave out are 0."""
    reduced = ET.Element("robot", name="robot")
    for owner in root:
        if owner.tag == "link":
            ET.SubElement(reduced, "link", name=owner.get("name", ""))
        elif owner.tag == "joint":
            copy = ET.SubElement(reduced, "joint", owner.attrib)
            used = PLACING if owner.get("type") == "fixed" else (*PLACING, *MOVING)
            copy.extend(deepcopy(element) for element in owner if element.tag in used)
            if owner.get("type") in ("revolute", "prismatic") and copy.find("limit") is None:
                ET.SubElement(copy, "limit")
    for limit in reduced.iter("limit"):
        for name in ("effort", "velocity"):
            limit.set(name, limit.get(name, "0"))
    urchin = _urchin()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(urchin.URDF.load(_File(ET.tostring(reduced)), lazy_load_meshes=True).joints)
    except Exception as error:  # urchin passes on any exception
        reason = printable(str(error)).rstrip(".") or type(error).__name__
        raise RobotError(f"{path} cannot be read as a URDF: {reason}") from error


def snapped(T: np.ndarray) -> np.ndarray:
    """Return a pose, its rotation rounded to a signed permutation if that is within an ulp (rpy of pi/2)."""
    T = np.array(T, dtype=float)
    nearest = np.round(T[:3, :3])
    if np.all(np.abs(T[:3, :3] - nearest) < 1e-15):
        T[:3, :3] = nearest
    return T


STEP = math.pi / 12
"""Angles that files round are multiples of this, 15 degrees."""

COSINES = (0.0, (math.sqrt(6) - math.sqrt(2)) / 4, 0.5, math.sqrt(0.5), math.sqrt(0.75))
COSINES = (*COSINES, (math.sqrt(6) + math.sqrt(2)) / 4, 1.0)
"""Cosines of the multiples of 15 degrees, 90 to 0."""

FEWEST, FEWEST_OF_QUARTER = 3, 2
"""Decimals that an angle needs to be recognised; with fewer, 0.5 rad would be 30 degrees."""

FEWEST_OF_AXIS = 4
"""Decimals from which a component of an axis may be off by a unit; with fewer, by half a unit."""


def unit(word: str) -> float:
    """Return the unit of the last digit of a finite number, 0 for a whole number or zero, which are exact."""
    digit = Decimal(word).as_tuple().exponent
    return 10.0**digit if isinstance(digit, int) and digit < 0 and float(word) != 0.0 else 0.0


def exact_angle(word: str) -> float:
    """Return the multiple of 15 degrees that a printed angle, in [rad], is rounded from, or the angle."""
    angle = float(word)
    if not math.isfinite(angle) or abs(angle) > 100.0:
        return angle
    turns = round(angle / STEP)
    multiple, last = turns * STEP, unit(word)
    fewest = FEWEST if turns % 6 else FEWEST_OF_QUARTER
    missing = abs(multiple) - abs(angle)  # positive if digits were cut off
    if turns == 0 or not 0.0 < last <= 10.0**-fewest * 1.001:
        return angle
    return multiple if -last / 2 <= missing < last else angle


def exact_axis(words: Sequence[str]) -> list[float]:
    """Return the direction at multiples of 15 degrees that a printed axis is rounded from, or the axis."""
    given = [float(word) for word in words]
    exact = [_exact_cosine(word) for word in words]
    return exact if abs(math.hypot(*exact) - 1.0) < 1e-12 else given


def _exact_cosine(word: str) -> float:
    """Return the cosine of a multiple of 15 degrees that a printed one may be rounded from, or itself."""
    value = float(word)
    if not math.isfinite(value):
        return value
    nearest = math.copysign(min(COSINES, key=lambda cosine: abs(abs(value) - cosine)), value)
    last = unit(word)
    # 0.9999 0.0001 0 is an axis x: its first number was cut off, its second rounded up.
    near = last if last < 10.0**-FEWEST_OF_AXIS * 1.001 else last / 2
    return nearest if abs(value - nearest) <= near * 1.001 and last < 2e-3 else value
