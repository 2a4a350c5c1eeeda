"""The numbers that a control law of a run had, for its log."""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.control.control_law import ControlLaw

NAMES, VALUES = "gain_names", "gains"
"""Arrays of a log: (k,) names, and (k, n) a number of each for every joint."""
PLAIN = ("Kp", "Ki", "Kd", "Kv", "Ti", "kp", "ki", "kd", "kv")
"""What gains are called; of a law that says no more, attributes of these names are taken for some."""


def gains(law: Any, n: int) -> dict[str, np.ndarray]:
    """The arrays `gain_names` (k,) and `gains` (k, n); empty where the law does not tell any.

    Args:
        law: a controller.
        n: number of joints.
    """
    found: dict[str, Any] = {}
    if isinstance(law, ControlLaw):
        rows = law.parameters
        named = tuple(name for name in PLAIN if isinstance(getattr(type(law), name, None), property))
        names = getattr(law, "parameter_names", getattr(getattr(law, "gains", None), "_fields", named))
        known = (*names, *(f"parameter {k + 1}" for k in range(len(names), len(rows))))
        found = dict(zip(known, rows, strict=False))
    elif hasattr(law, "__dict__"):
        found = {name: vars(law)[name] for name in PLAIN if name in vars(law)}
    told = {name: row for name, value in found.items() if (row := _row(value, n)) is not None}
    if not told:
        return {}
    return {NAMES: np.array(list(told)), VALUES: np.array(list(told.values()))}


def _row(value: Any, n: int) -> np.ndarray | None:
    """A number for every joint, if it is that."""
    try:
        array = np.asarray(value)
        return np.broadcast_to(array, (n,)).astype(np.float64) if array.dtype.kind in "fiu" else None
    except ValueError:
        return None
