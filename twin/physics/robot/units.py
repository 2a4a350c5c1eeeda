"""Units of joints, as SI and as people read them, and doubts of a length's unit."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

UNITS = {
    "revolute": {"position": "rad", "speed": "rad/s", "acceleration": "rad/s^2", "torque": "N m", "": ""},
    "prismatic": {"position": "m", "speed": "m/s", "acceleration": "m/s^2", "torque": "N", "": ""},
}
"""SI units of a joint's quantities, by the kind of the joint."""

SHOWN = {"revolute": ("deg", float(np.rad2deg(1.0))), "prismatic": ("mm", 1e3)}
"""Display unit of positions by the kind of the joint, and its number per SI unit."""


def joint_unit(kind: str, dimension: str = "position") -> str:
    """Return the SI unit of a joint: `joint_unit("prismatic", "torque")` is `N`."""
    return UNITS[kind][dimension]


def caption_unit(kinds: Iterable[str], form: str = "{position}") -> str:
    """Return the unit in a caption over joints: `rad`, `m`, or `rad (sliding joints: m)`.

    Args:
        kinds: kinds of the joints.
        form: format of the unit, with the quantities' units as fields, as `{torque} s/{position}`.
    """
    units = [form.format(**UNITS[kind]) for kind in sorted(set(kinds), reverse=True)]
    return units[0] + "".join(f" (sliding joints: {unit})" for unit in units[1:] if unit != units[0])


def shown(value: float, kind: str, digits: int = 6, per: str = "") -> str:
    """Return a position, or a speed with `per="/s"`, in degrees, or in millimetres for a prismatic joint."""
    unit, scale = SHOWN[kind]
    return f"{scale * value:.{digits}g} {unit}{per}"


def position_text(value: float, kind: str, per: str = "") -> str:
    """Return a position, or a speed with `per="/s"`, in the display unit and in the SI unit."""
    return f"{shown(value, kind, per=per)} ({value:.6g} {joint_unit(kind)}{per})"


def within_reach(place: Iterable[float], what: str) -> None:
    """Check that coordinates (3,), in [m], are at most `FARTHEST` from the flange.

    Raises:
        ValueError: one is larger, as millimetres are.
    """
    farthest = max(map(abs, place))
    if farthest > FARTHEST:
        raise ValueError(
            f"expected {what} in metres, at most {FARTHEST:g} m from the flange, got {farthest:g}: "
            "are these millimetres?"
        )


FARTHEST = 5.0
"""Largest distance from the flange, in [m]."""


def unit_doubt(place: Iterable[float], length: float) -> str:
    """Return the question for a place (3,) beyond 10 lengths of an arm, in [m]; "" for a nearer one."""
    return "; are these millimetres?" if max(map(abs, place)) > 10.0 * length else ""
