"""Reads the XML of a URDF: forgiving where it does not matter, one clear sentence where it does.

Files in circulation have faults that no simulator minds: an XML declaration of version 0.0 or not at the
start, a zero byte at the end, elements for other programs that are not what they should be.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from twin.errors import RobotError

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
"""Of the elements that say what moves, how many numbers each attribute holds."""


def read_document(path: Path) -> ET.Element:
    """The root element of a URDF, its numbers checked to be numbers as far as they say what moves.

    Raises:
        RobotError: the file is missing, is not XML or no URDF, or a number or a name in it is none.
    """
    if path.is_dir():
        raise RobotError(f"expected a robot file, {path} is a folder")
    if not path.is_file():
        raise RobotError(f"no such robot file: {path}")
    try:
        if path.stat().st_size > LARGEST:
            raise RobotError(f"{path} is larger than the {LARGEST // 1_000_000} MB that are read of a URDF")
        root = _parsed(path.read_bytes())
    except OSError as error:
        raise RobotError(f"cannot read {path}: {error.strerror}") from error
    except (ET.ParseError, ValueError, LookupError) as error:  # the latter two of an unknown encoding
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
            raise error from None  # what it says of lines holds for the file as it is


def _check_extent(path: Path, root: ET.Element) -> None:
    """Raise `RobotError` for what readers that call themselves do not survive, or that takes hours."""
    links = sum(1 for _ in root.iterfind("link"))
    if links > MOST_LINKS:
        raise RobotError(f"{path} has {links} links, expected at most {MOST_LINKS}")
    level, depth = [root], 0
    while level:
        level, depth = [element for above in level for element in above], depth + 1
        if depth > DEEPEST:
            raise RobotError(f"{path} has elements within elements more than {DEEPEST} deep")


def _check_numbers(path: Path, owner: ET.Element, element: ET.Element) -> None:
    for name, count in NUMBERS.get(str(element.tag), {}).items():
        text = element.get(name)
        if text is None:
            continue
        numbers = words_as_numbers(text)
        missing = element.tag == "inertia" and any(map(math.isnan, numbers))  # urchin: "not symmetric"
        if len(numbers) != count or missing:
            expected = "a number" if count == 1 else f"{count} numbers"
            raise RobotError(
                f"{path} cannot be read as a URDF: {owner.tag} {owner.get('name')!r} has "
                f"<{element.tag} {name}={text!r}>, expected {expected}"
            )


def words_as_numbers(text: str) -> list[float]:
    """The numbers of an attribute, as every reader of URDFs understands them; none if a word is no number.

    Python's `float` takes more than C's: digits of other scripts, underscores, spaces that are not ASCII.
    """
    if not (text.isascii() and "_" not in text):
        return []
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return []


def check_connections(path: Path, root: ET.Element) -> None:
    """Raise `RobotError` if there is more than one base, or if links hang on each other in a circle.

    Joints that lack an end, or share one, are left to the loader.
    """
    names = [link.get("name") for link in root.iterfind("link")]
    ends = [(joint.find("parent"), joint.find("child")) for joint in root.iterfind("joint")]
    carried = {b.get("link"): a.get("link") for a, b in ends if a is not None and b is not None}
    if len(carried) < len(ends) or not {*carried, *carried.values()} <= set(names):
        return
    bases = [name for name in names if name not in carried]
    if len(bases) > 1:
        told = ", ".join(map(repr, bases))
        raise RobotError(f"{path}: links {told} hang on no joint, expected one such link, the base")
    reached = set(bases)
    for _ in names:
        reached |= {child for child, parent in carried.items() if parent in reached}
    circling = [repr(name) for name in names if name not in reached]
    if circling:
        raise RobotError(f"{path}: the joints of links {', '.join(circling)} go round in a circle")
