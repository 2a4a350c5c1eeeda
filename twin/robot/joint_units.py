"""Units of a joint: a revolute one turns, in rad and N m; a prismatic one slides, in m and N."""

from collections.abc import Iterable

import numpy as np

UNITS = {
    "revolute": {"position": "rad", "speed": "rad/s", "acceleration": "rad/s^2", "torque": "N m", "": ""},
    "prismatic": {"position": "m", "speed": "m/s", "acceleration": "m/s^2", "torque": "N", "": ""},
}
"""What the dimensions of a joint are measured in, by the kind of the joint."""

SHOWN = {"revolute": ("deg", float(np.rad2deg(1.0))), "prismatic": ("mm", 1e3)}
"""What people read a position in, by the kind of the joint, and how many of them are one of the SI unit."""


def joint_unit(kind: str, dimension: str = "position") -> str:
    """Return the SI unit of a joint: `joint_unit("prismatic", "torque")` is `N`."""
    return UNITS[kind][dimension]


def caption_unit(kinds: Iterable[str], form: str = "{position}") -> str:
    """Return the unit that a caption over joints names: `rad`, `m`, or `rad (sliding joints: m)`.

    Args:
        kinds: of the joints.
        form: how the unit is made of those of the dimensions, as `{torque} s/{position}`.
    """
    units = [form.format(**UNITS[kind]) for kind in sorted(set(kinds), reverse=True)]
    return units[0] + "".join(f" (sliding joints: {unit})" for unit in units[1:] if unit != units[0])


def shown(value: float, kind: str, digits: int = 6, per: str = "") -> str:
    """Return a position or, with `per="/s"`, a speed in degrees, or in millimetres of a prismatic joint."""
    unit, scale = SHOWN[kind]
    return f"{scale * value:.{digits}g} {unit}{per}"


def position_text(value: float, kind: str, per: str = "") -> str:
    """Return a position, or with `per="/s"` a speed, in the unit that people read and in SI."""
    return f"{shown(value, kind, per=per)} ({value:.6g} {joint_unit(kind)}{per})"
