"""Fuzz cases of robot files: a URDF with meshes, a `robot.toml` with its URDF, or a `dh.toml`."""

import re
import xml.etree.ElementTree as ET
from functools import lru_cache
from pathlib import Path

import numpy as np

import urdf
from tests.fuzz import raw, toml_changes, unusual, xml_changes
from tests.support import small_robots
from tests.support.random_trees import random_urdf

ROBOTS = Path(urdf.__file__).parent
ARMS = ("irb140", "irb1400", "irb1600")
TABLES = ("figure_7_1", "rtr", "rx90", "two_link", "youbot", "youbot3")
DEPTHS = (10, 300, 3_000, 100_000)
SMALL = (small_robots.SOUND, small_robots.ROTOR, small_robots.arm(), small_robots.arm(dynamics="<dynamics/>"))


@lru_cache
def content(name: str) -> str:
    """Return the text of a file in `urdf/`."""
    return (ROBOTS / name).read_text(encoding="utf-8")


def urdf_case(rng: np.random.Generator) -> dict[str, bytes]:
    """Make a changed `robot.urdf`, and meshes."""
    match rng.choice(["small", "tree", "arm"], p=[0.3, 0.65, 0.05]):
        case "small":
            text = unusual.one_of(rng, SMALL)
        case "tree":
            text = random_urdf(rng, int(rng.integers(1, 7)))
        case _:
            text = content(unusual.one_of(rng, [f"{arm}/{arm}.urdf" for arm in ARMS]))
    return {"robot.urdf": changed_urdf(rng, text), **xml_changes.MESHES}


def changed_urdf(rng: np.random.Generator, text: str) -> bytes:
    """Change the elements of a URDF and, rarely, its bytes."""
    root = ET.fromstring(text)
    for _ in range(rng.geometric(0.6)):
        xml_changes.changed(rng, root)
    changed = ET.tostring(root, encoding="utf-8")
    if rng.random() < 0.02:
        changed = nested(rng, changed)
    while rng.random() < 0.15:
        changed = raw.damaged(rng, changed)
    return changed


def nested(rng: np.random.Generator, document: bytes) -> bytes:
    """Insert deeply nested elements into a document."""
    depth, tag = unusual.one_of(rng, DEPTHS), unusual.one_of(rng, (b"link", b"joint", b"geometry", b"x"))
    at = unusual.one_of(rng, [match.end() for match in re.finditer(b">", document)])
    return document[:at] + b"<%s>" % tag * depth + b"</%s>" % tag * depth + document[at:]


def robot_toml_case(rng: np.random.Generator) -> dict[str, bytes]:
    """Make a changed `robot.toml`, and the URDF of that robot, which is rarely changed too."""
    arm = unusual.one_of(rng, ARMS)
    text, robot = content(f"{arm}/robot.toml"), content(f"{arm}/{arm}.urdf")
    if rng.random() < 0.9:  # as if written by hand, so that its numbers are compared with the facts
        robot = re.sub(r" Digest of its numbers: \w+", "", robot)
    change_robot = rng.random() < 0.1
    return {
        "robot.toml": changed_toml(rng, text),
        f"{arm}.urdf": changed_urdf(rng, robot) if change_robot else robot.encode(),
    }


def dh_toml_case(rng: np.random.Generator) -> dict[str, bytes]:
    """Make a changed `dh.toml`."""
    known = rng.random() < 0.3
    text = content(f"{unusual.one_of(rng, TABLES)}/dh.toml") if known else toml_changes.random_table(rng)
    return {"dh.toml": changed_toml(rng, text)}


def changed_toml(rng: np.random.Generator, text: str) -> bytes:
    """Change the entries of a TOML text and, rarely, its bytes."""
    for _ in range(rng.geometric(0.6)):
        text = toml_changes.changed(rng, text)
    changed = text.encode("utf-8", "replace")
    while rng.random() < 0.15:
        changed = raw.damaged(rng, changed)
    return changed
