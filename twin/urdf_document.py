"""Reads the XML of a URDF: forgiving where it does not matter, one clear sentence where it does.

Files in circulation have faults that no simulator minds: an XML declaration of version 0.0 or not at the
start, a zero byte at the end, elements for other programs that are not what they should be.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from twin.errors import RobotError

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
        RobotError: the file is missing, is not XML or no URDF, or a number in it is none.
    """
    if not path.is_file():
        raise RobotError(f"no such robot file: {path}")
    try:
        root = _parsed(path.read_bytes())
    except OSError as error:
        raise RobotError(f"cannot read {path}: {error.strerror}") from error
    except (ET.ParseError, ValueError, LookupError) as error:  # the latter two of an unknown encoding
        raise RobotError(f"{path} is not well-formed XML: {error}") from error
    if root.tag != "robot":
        raise RobotError(f"{path} is not a URDF: its root element is <{root.tag}>, expected <robot>")
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


def _check_numbers(path: Path, owner: ET.Element, element: ET.Element) -> None:
    for name, count in NUMBERS.get(str(element.tag), {}).items():
        text = element.get(name)
        if text is None:
            continue
        try:
            right = len([float(word) for word in text.split()]) == count
        except ValueError:
            right = False
        if not right:
            expected = "a number" if count == 1 else f"{count} numbers"
            raise RobotError(
                f"{path} cannot be read as a URDF: {owner.tag} {owner.get('name')!r} has "
                f"<{element.tag} {name}={text!r}>, expected {expected}"
            )
