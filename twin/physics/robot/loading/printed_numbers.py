"""Numbers as a file prints them: what rounding of their last digit can have changed.

Exporters round quarter turns to `1.5708` and axes to `0.7071 0.7071 0`.  Axes that are parallel on the arm
then differ by 1e-6 rad in the model.  It gets parameters that no measurement could tell apart, and closed
forms fit no longer.  Such numbers therefore stand for what was rounded.
"""

import math
from collections.abc import Sequence
from decimal import Decimal

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
