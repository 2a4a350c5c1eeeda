"""Robots that installed packages announce by entry points of the group `irb_twin.robots`.

An entry point names a package, whose folder holds the robot: a `robot.toml` with its URDF, a `dh.toml`, or
one `.urdf`.
"""

from __future__ import annotations

from pathlib import Path

from twin.errors import OwnCodeError
from twin.own_code import announced

GROUP = "irb_twin.robots"


def announced_robots() -> tuple[str, ...]:
    """The robots that `load` knows by name because an installed package announces them."""
    return tuple(announced(GROUP))


def announced_file(name: str) -> Path:
    """The file of a robot that a package announces.

    Raises:
        OwnCodeError: the package does not load, or there is no robot in its folder.
    """
    entry = announced(GROUP)[name]
    found = entry.load()
    for folder in getattr(found, "__path__", ()):
        for file in ("robot.toml", "dh.toml"):
            if (path := Path(folder) / file).is_file():
                return path
        urdfs = sorted(Path(folder).glob("*.urdf"))
        if len(urdfs) == 1:
            return urdfs[0]
    raise OwnCodeError(
        f"cannot load {entry.title}: expected {entry.value!r} to be a package with a robot.toml, a dh.toml "
        "or one .urdf in its folder"
    )
