"""Units in which recordings are written, and how a column says which is its own.

A column names its unit behind its name: `x[mm]`, `x [mm]`, `x (mm)` or `x_mm`. One that names none is in the
unit that the reader is told for its quantity; untold, in seconds, metres and radians.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "time": {"s": 1.0, "ms": 1e3},
        "length": {"m": 1.0, "mm": 1e3},
        "angle": {"rad": 1.0, "deg": 180.0 / np.pi, "°": 180.0 / np.pi},
        "torque": {"Nm": 1.0, "N m": 1.0, "N": 1.0, "mNm": 1e3, "mN m": 1e3},
        "number": {"1": 1.0},
    }
)
"""The units of each quantity, and how many of them make one of the first, which is the SI's.

Numbers are divided by it: 515 mm are then the double nearest to 0.515 m, as if metres had been written."""

BRACKETED = re.compile(r"(.*?)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))")


def si_unit(quantity: str) -> str:
    """Return the SI unit of a quantity."""
    return next(iter(UNITS[quantity]))


def split_unit(label: str, quantity: str) -> tuple[str, str | None]:
    """Return a column's name without its unit, and the unit; None where it names none.

    What stands in brackets counts as the unit whatever it is, so that a foreign one can be refused; what
    stands behind an underscore only if it is a unit of the quantity: `x_mm` is x in mm, `joint_1` is a name.

    Args:
        label: what the header calls the column, without blanks around it.
        quantity: key of `UNITS`.
    """
    if found := BRACKETED.fullmatch(label):
        name, square, round_ = found.groups()
        return name, (round_ if square is None else square).strip()
    name, _, tail = label.rpartition("_")
    if name and tail in UNITS[quantity]:
        return name, tail
    return label, None


def require_unit(unit: str, quantity: str) -> None:
    """Check a unit that the reader is told.

    Raises:
        ValueError: it is not one of the quantity.
    """
    if unit not in UNITS[quantity]:
        raise ValueError(f"expected a unit of {quantity}, {' or '.join(UNITS[quantity])}, got {unit!r}")
