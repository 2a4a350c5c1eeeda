"""What can vary of a robot: numbers with names, and the robot that other values make of it.

| name | what it is | nominal value |
|---|---|---|
| `mass` | factor on the masses and inertias of all links, not of the payload | 1 |
| `mass.LINK` | mass of one link, in kg, with its inertia; or by the joint that moves it | its mass |
| `torque_limit` | factor on what each drive can give at standstill | 1 |
| `torque_limit.AXIS` | what one can give, at the joint, in N m | its limit |
| `drives.COLUMN` | factor on a column of `twin.robot.drives.drives.Drives`, see `COLUMNS` | 1 |
| `drives.COLUMN.AXIS` | one of its numbers, in its own unit | the number |

Axes count from 1.  Factors are of the nominal values; a number of one axis or link is what it is, whatever
the factor of all.  With `coulomb` goes `static`, and with `motor_speed_max` goes `motor_speed_rated`, in
proportion; what is said of these themselves comes after that.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.errors import UnknownNameError, VariationError
from twin.multibody.tree import Tree, frozen
from twin.robot.drives.drives import MODES
from twin.robot.limits import joint_unit
from twin.robot.robot import Robot


class Quantity(NamedTuple):
    """A number that can vary.

    Attributes:
        name: as a user writes it.
        nominal: its value where nobody varies it; NaN where it has none.
        unit: `""` of a factor.
        meaning: in a few words.
    """

    name: str
    nominal: float
    unit: str
    meaning: str


class Column(NamedTuple):
    """A column of the drives: its unit, its meaning, and the modes of the drives in which it acts."""

    unit: str
    meaning: str
    acts: tuple[str, ...] = MODES[1:]


COLUMNS = {
    "ratio": Column("", "turns of the motor for one of the joint", MODES),
    "encoder_counts": Column("", "of the encoder, in a turn of the motor", MODES),
    "rotor_inertia": Column("kg m^2", "inertia of the rotor, at the motor"),
    "motor_torque_max": Column("N m", "what the motor can give, at the motor"),
    "motor_speed_max": Column("rad/s", "top speed of the motor; motor_speed_rated goes along"),
    "motor_speed_rated": Column("rad/s", "speed up to which the motor has its torque"),
    "coulomb": Column("N m", "friction at small speed; static goes along"),
    "static": Column("N m", "torque at which a joint that sticks breaks away"),
    "stribeck_speed": Column("rad/s", "speed at which friction goes from static to coulomb"),
    "viscous": Column("N m s/rad", "friction that grows with speed"),
    "stiffness": Column("N m/rad", "stiffness of the gear", MODES[2:]),
    "damping": Column("N m s/rad", "damping of the gear", MODES[2:]),
}
"""The columns of the drives that can vary, those that others go along with before them."""

ALONG = {"coulomb": ("static", np.maximum), "motor_speed_max": ("motor_speed_rated", np.minimum)}
"""What goes along with a column in proportion, and how it stays on its side of it."""


POSITIVE = ("mass", "torque_limit")


class Part(NamedTuple):
    """What a name stands for: `mass`, `torque_limit` or a column; and of which link or axis, -1 of all."""

    what: str
    index: int


def quantities(robot: Robot) -> tuple[Quantity, ...]:
    """The quantities that a robot has and that act in it."""
    found = []
    if robot.has_inertia:
        found.append(Quantity("mass", 1.0, "", "factor on the masses and inertias of all links"))
        found += [
            Quantity(f"mass.{link}", mass, "kg", f"mass of {link}, with which its inertia goes")
            for link, mass in zip(robot.tree.links, _bare(robot).inertias[:, 0].tolist(), strict=True)
            if mass > 0
        ]
    units = (joint_unit(kind, "torque") for kind in robot.joint_kinds)
    found.append(Quantity("torque_limit", 1.0, "", "factor on what each drive can give at standstill"))
    found += [
        Quantity(f"torque_limit.{axis}", limit, unit, f"what the drive of axis {axis} can give at standstill")
        for axis, (limit, unit) in enumerate(zip(robot.drive_torque_max.tolist(), units, strict=True), 1)
    ]
    for name, column in COLUMNS.items():
        if robot.drives is not None and robot.drive_mode in column.acts:
            found.append(Quantity(f"drives.{name}", 1.0, "", f"factor on all axes: {column.meaning}"))
            found += [
                Quantity(f"drives.{name}.{axis}", number, column.unit, f"axis {axis}: {column.meaning}")
                for axis, number in enumerate(getattr(robot.drives, name).tolist(), 1)
            ]
    return tuple(found)


def quantity(robot: Robot, name: str, prefix: str = "") -> Quantity:
    """The quantity of that name; the prefix is told before it in messages.

    Raises:
        UnknownNameError: the robot has none; the message names those that are nearest.
        VariationError: it does nothing in this robot, and why.
    """
    part = _part(robot, name, prefix)
    if part.what == "mass" and part.index >= 0:
        name = f"mass.{robot.tree.links[part.index]}"
    return next(one for one in quantities(robot) if one.name == name)


def changed(robot: Robot, changes: Sequence[tuple[str, float]], prefix: str = "") -> Robot:
    """The robot with other values of some of its quantities; what it carries stays as it is.

    Args:
        robot: the nominal one.
        changes: names and values, in any order.
        prefix: before the names in messages.

    Raises:
        UnknownNameError: the robot has no such quantity; the message names those that are nearest.
        VariationError: a quantity does nothing in this robot, is given twice, or can have no such value.
        ValueError: there are no such drives.
    """
    if not changes:
        return robot
    parts: dict[Part, float] = {}
    for name, value in changes:
        part = _part(robot, name, prefix)
        if part in parts:
            raise VariationError(f"{prefix}{name} is given twice")
        positive = part.what in POSITIVE
        if not (0.0 if positive else -np.inf) < value < np.inf:
            above = " and above 0" if positive else ""
            raise VariationError(f"expected {prefix}{name} to be finite{above}, got {value}")
        parts[part] = float(value)
    masses = {part: value for part, value in parts.items() if part.what == "mass"}
    if len(masses) < len(parts):
        robot = _with_other_drives(robot, parts)
    if masses:
        unloaded = replace(robot, tree=_other_masses(_bare(robot), masses), payload=None, bare=None)
        robot = unloaded if robot.payload is None else unloaded.with_payload(robot.payload)
    return robot


def unknown(name: str, what: str, known: Iterable[str]) -> UnknownNameError:
    """That there is no quantity of that name, in a sentence with the nearest of those that there are.

    Args:
        name: it.
        what: what has none.
        known: the names of those that it has.
    """
    near = difflib.get_close_matches(name, known := list(known), 3, 0.5) or known[:3]
    return UnknownNameError(f"{what} has no quantity {name!r}: the nearest are {', '.join(near)}")


def _bare(robot: Robot) -> Tree:
    return robot.tree if robot.bare is None else robot.bare


def _part(robot: Robot, name: str, prefix: str = "") -> Part:
    """What a name stands for in a robot; with the prefix it is told in messages."""
    family, dot, rest = name.partition(".")
    if family == "mass" and not robot.has_inertia:
        raise VariationError(f"{prefix}{name} cannot vary: robot {robot.name!r} has no masses")
    if family == "mass" and rest in (*robot.tree.links, *robot.tree.names):
        link = (*robot.tree.links, *robot.tree.names).index(rest) % robot.tree.n
        if not _bare(robot).inertias[link, 0] > 0:
            raise VariationError(f"{prefix}{name} cannot vary: {robot.tree.links[link]} has no mass")
        return Part("mass", link)
    if family == "drives":
        family, dot, rest = rest.partition(".")
        column = COLUMNS.get(family)
        if column is not None and robot.drives is None:
            raise VariationError(f"{prefix}{name} cannot vary: robot {robot.name!r} has no drives")
        if column is not None and robot.drive_mode not in column.acts:
            raise VariationError(
                f"{prefix}{name} does nothing in {robot.drive_mode} drives, which robot {robot.name!r} has "
                f"here: it acts in {' and '.join(column.acts)} ones"
            )
        known = column is not None
    else:
        known = family in ("mass", "torque_limit")
    if known and not dot:
        return Part(family, -1)
    if known and family != "mass" and rest.isascii() and rest.isdigit() and 1 <= int(rest) <= robot.n:
        return Part(family, int(rest) - 1)
    joints = (f"mass.{joint}" for joint in robot.tree.names if robot.has_inertia)
    names = [*(one.name for one in quantities(robot)), *joints]
    raise unknown(prefix + name, f"robot {robot.name!r}", [prefix + known for known in names])


def _other_masses(tree: Tree, masses: dict[Part, float]) -> Tree:
    """The tree with other masses, and inertias in proportion."""
    inertias = masses.get(Part("mass", -1), 1.0) * tree.inertias
    for (_, link), mass in masses.items():
        if link >= 0:
            inertias[link] = tree.inertias[link] * (mass / tree.inertias[link, 0])
    return replace(tree, inertias=frozen(inertias))


def _with_other_drives(robot: Robot, parts: dict[Part, float]) -> Robot:
    """The robot with other torque limits, and other columns of its drives, leaders before what goes along."""
    drives = robot.drives
    if drives is None or robot.drive_mode == "ideal":
        robot = replace(robot, tau_max=frozen(_numbers(robot.tau_max, "torque_limit", parts)))
    if drives is None:
        return robot
    now: dict[str, Any] = {column: getattr(drives, column) for column in COLUMNS}
    for column in COLUMNS:
        old, new = now[column], _numbers(now[column], column, parts)
        now[column] = new
        if new is not old and column in ALONG:
            other, on_its_side = ALONG[column]
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where((old > 0) & (old < np.inf), new / old, 1.0)
            now[other] = on_its_side(now[other] * share, new)
    if robot.drive_mode != "ideal":
        ratio = np.abs(now["ratio"])
        limits = ratio * now["motor_torque_max"]
        if (wanted := _numbers(limits, "torque_limit", parts)) is not limits:
            now["motor_torque_max"] = wanted / ratio
    columns = {column: value for column, value in now.items() if value is not getattr(drives, column)}
    return replace(robot, drives=drives.with_columns(**columns)) if columns else robot


def _numbers(old: NDArray, what: str, parts: dict[Part, float]) -> NDArray:
    """A number an axis (n,), with the factor of all and those of single axes; `old` itself without any."""
    own = {index: value for (name, index), value in parts.items() if name == what}
    if not own:
        return old
    with np.errstate(invalid="ignore"):  # nothing times infinity, which no check lets pass
        new = own.pop(-1, 1.0) * old
    for axis, value in own.items():
        new[axis] = value
    return new
