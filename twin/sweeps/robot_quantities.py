"""What can vary of a robot: numbers with names, and the robot that comes of other values.

| name | what it is | nominal |
|---|---|---|
| `mass` | factor on the masses and inertias of all links, not of the payload | 1 |
| `mass.<link>` | mass of one link, in kg; its inertia goes along; a joint stands for the link that it moves | its mass |
| `torque_limit` | factor on what every drive can give at standstill | 1 |
| `torque_limit.<axis>` | what one can give at the joint, in N m | its limit |
| `drives.<column>` | factor on a column of `twin.drives.drives.Drives` | 1 |
| `drives.<column>.<axis>` | one of its numbers, in its own unit | the number |

Axes count from 1.  Factors are of the nominal value and come first: a number of one axis or link is what it
is, whatever the factor of all.  Two pairs go together: with `coulomb` goes `static`, and with
`motor_speed_max` goes `motor_speed_rated`, in proportion; a factor of the second itself comes on top.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from twin.drives.drives import Drives
from twin.errors import UnknownNameError, VariationError
from twin.multibody.tree import Tree, frozen
from twin.robot.robot import Robot

MODEL = "model."
"""Before the name of a quantity of the controller's model."""


class Quantity(NamedTuple):
    """A number that can vary.

    Attributes:
        name: as a user writes it.
        nominal: its value where nobody varies it; NaN where there is none.
        unit: `""` of a factor.
        meaning: in a few words.
    """

    name: str
    nominal: float
    unit: str
    meaning: str


class Column(NamedTuple):
    """A column of the drives: its unit, its meaning, and the drives in which it acts."""

    unit: str
    meaning: str
    acts: tuple[str, ...] = ("rigid", "elastic")


COLUMNS = {
    "coulomb": Column("N m", "friction at small speed; static goes along"),
    "static": Column("N m", "torque at which a joint that sticks breaks away"),
    "stribeck_speed": Column("rad/s", "speed at which friction falls from static to coulomb"),
    "viscous": Column("N m s/rad", "friction that grows with speed"),
    "stiffness": Column("N m/rad", "of the gear", ("elastic",)),
    "damping": Column("N m s/rad", "of the gear", ("elastic",)),
    "rotor_inertia": Column("kg m^2", "of the rotor, at the motor"),
    "motor_torque_max": Column("N m", "what the motor can give, at its shaft"),
    "motor_speed_rated": Column("rad/s", "of the motor, up to which it can"),
    "motor_speed_max": Column("rad/s", "of the motor; motor_speed_rated goes along"),
    "ratio": Column("", "turns of the motor for one of the joint"),
    "encoder_counts": Column("", "in a turn of the motor"),
}
"""The columns of the drives that can vary."""


def quantities(robot: Robot) -> tuple[Quantity, ...]:
    """The quantities of a robot that act, with their nominal values."""
    found = []
    if robot.has_inertia:
        found.append(Quantity("mass", 1.0, "", "factor on all links' masses and inertias"))
        masses = zip(robot.tree.links, _bare(robot).inertias[:, 0].tolist(), strict=True)
        found += [Quantity(f"mass.{link}", mass, "kg", f"mass of {link}") for link, mass in masses]
    return tuple(found)


def quantity(robot: Robot, name: str) -> Quantity:
    """The quantity of that name.

    Raises:
        UnknownNameError: the robot has none; the message names those that are nearest.
        VariationError: it does nothing in this robot.
    """
    for one in quantities(robot):
        if one.name == name:
            return one
    raise UnknownNameError(name)


def changed(robot: Robot, changes: Sequence[tuple[str, float]]) -> Robot:
    """The robot with other values of some quantities.

    Args:
        robot: the nominal one; its payload stays as it is.
        changes: names and values, each name once.

    Raises:
        UnknownNameError: it has no such quantity.
        VariationError: the quantity does nothing in it, or can have no such value.
    """
    raise NotImplementedError


def nearest(name: str, known: Iterable[str]) -> str:
    """The names that are nearest to one that nothing has, as the end of a sentence."""
    close = difflib.get_close_matches(name, list(known), 3)
    return f"; nearest are {', '.join(close)}" if close else ""


def _bare(robot: Robot) -> Tree:
    return robot.tree if robot.bare is None else robot.bare
