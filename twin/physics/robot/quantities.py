"""Quantities of a robot that can vary, by name, and the robot with other values of them.

| name | meaning | nominal value |
|---|---|---|
| `mass` | factor on the masses and inertias of all links, not of the payload | 1 |
| `mass.LINK` | mass of one link, in kg, with its inertia; LINK is the link, or the joint that moves it | its
mass | | `torque_limit` | factor on the torque limit of each drive at standstill | 1 | | `torque_limit.AXIS` |
torque limit of one drive, at the joint, in N m | its limit | | `drives.COLUMN` | factor on a column of
`twin.robot.drives.drives.Drives`, see `COLUMNS` | 1 | | `drives.COLUMN.AXIS` | one number of the column, in
its unit | the number |

Axes count from 1.  Factors multiply the nominal values; a value for one axis or link replaces its number,
whatever the factor for all is.  `static` is scaled with `coulomb`, and `motor_speed_rated` with
`motor_speed_max`; variations of `static` and `motor_speed_rated` themselves apply after that.

A variation with `:each` behind it, such as `drives.coulomb` by `+-50%:each`, stands for one variation per
axis or link, independent of each other, see `expand_each`.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.errors import UnknownNameError, VariationError, printable
from twin.physics.multibody.tree import Tree, frozen
from twin.physics.robot.drives.drives import MODES
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit

CAD_SHARES = "where they are shares of CAD volume: +-40%:each"
"""Range to try for `mass`: how far published masses of main links are from their shares of CAD volume.

The page "What is estimated" has the comparison. A wrist weighs two or three times its share.
"""


class Quantity(NamedTuple):
    """Number that can vary.

    Attributes:
        name: name, as the user writes it.
        nominal: nominal value; NaN if there is none.
        unit: unit; `""` for a factor.
        meaning: short description.
    """

    name: str
    nominal: float
    unit: str
    meaning: str


class Column(NamedTuple):
    """Column of the drives: its unit, its meaning, and the modes of the drives in which it acts."""

    unit: str
    meaning: str
    acts: tuple[str, ...] = MODES[1:]


COLUMNS = {
    "ratio": Column("", "gear ratio: motor turns per joint turn", MODES),
    "encoder_counts": Column("", "encoder counts per motor turn", MODES),
    "rotor_inertia": Column("kg m^2", "inertia of the rotor, at the motor"),
    "motor_torque_max": Column("N m", "torque limit of the motor, at the motor"),
    "motor_speed_max": Column("rad/s", "maximum speed of the motor; motor_speed_rated is scaled with it"),
    "motor_speed_rated": Column("rad/s", "speed up to which the motor has its full torque"),
    "coulomb": Column("N m", "Coulomb friction; static is scaled with it"),
    "static": Column("N m", "breakaway torque of a joint at rest"),
    "stribeck_speed": Column("rad/s", "Stribeck speed, at which friction decreases from static to coulomb"),
    "viscous": Column("N m s/rad", "viscous friction"),
    "stiffness": Column("N m/rad", "stiffness of the gear", MODES[2:]),
    "damping": Column("N m s/rad", "damping of the gear", MODES[2:]),
}
"""Columns of the drives that can vary; a column stands before the columns that are scaled with it."""

SCALED_WITH = {"coulomb": ("static", np.maximum), "motor_speed_max": ("motor_speed_rated", np.minimum)}
"""Column that is scaled with another one, and the function that maintains their order."""


POSITIVE = ("mass", "torque_limit")
EACH = ":each"
"""End of a variation that applies to each axis or link by itself."""


class Part(NamedTuple):
    """Meaning of a name: `mass`, `torque_limit` or a column; and index of the link or axis, -1 for all."""

    what: str
    index: int


def quantities(robot: Robot) -> tuple[Quantity, ...]:
    """Return the quantities that act in a robot.

    Example:
        >>> import twin
        >>> from twin.physics.robot.quantities import quantities
        >>> [(one.name, one.nominal) for one in quantities(twin.load("two_link"))][:3]
        [('mass', 1.0), ('mass.link_1', 1.0), ('mass.link_2', 1.0)]
    """
    found = []
    if robot.has_inertia:
        found.append(
            Quantity("mass", 1.0, "", f"factor on the masses and inertias of all links; {CAD_SHARES}")
        )
        found += [
            Quantity(f"mass.{link}", mass, "kg", f"mass of {link}; its inertia is scaled with it")
            for link, mass in zip(robot.tree.links, robot.unloaded_tree.inertias[:, 0].tolist(), strict=True)
            if mass > 0
        ]
    units = (joint_unit(kind, "torque") for kind in robot.joint_kinds)
    found.append(Quantity("torque_limit", 1.0, "", "factor on the torque limit of each drive at standstill"))
    found += [
        Quantity(
            f"torque_limit.{axis}", limit, unit, f"torque limit of the drive of axis {axis} at standstill"
        )
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
    """Return the quantity with this name; messages show the name after the prefix.

    Raises:
        UnknownNameError: the robot has no such quantity; the message names the nearest ones.
        VariationError: the quantity has no effect in this robot; the message gives the reason.

    Example:
        >>> import twin
        >>> from twin.physics.robot.quantities import quantity
        >>> coulomb = quantity(twin.load("irb140").with_drives("rigid"), "drives.coulomb.1")
        >>> coulomb.nominal, coulomb.unit
        (29.0, 'N m')
    """
    part = _part(robot, name, prefix)
    if part.what == "mass" and part.index >= 0:
        name = f"mass.{robot.tree.links[part.index]}"
    return next(one for one in quantities(robot) if one.name == name)


def changed(robot: Robot, changes: Sequence[tuple[str, float]], prefix: str = "") -> Robot:
    """Return the robot with other values of some of its quantities; its payload does not change.

    Args:
        robot: the nominal robot.
        changes: names and values, in any order.
        prefix: prefix of the names in messages.

    Raises:
        UnknownNameError: the robot has no such quantity; the message names the nearest ones.
        VariationError: a quantity has no effect in this robot, is given twice, or cannot have this value.
        ValueError: drives with these values are not possible.

    Example:
        >>> import twin
        >>> from twin.physics.robot.quantities import changed
        >>> heavier = changed(twin.load("two_link"), [("mass", 1.5)])
        >>> twin.mass_matrix(heavier, [0, 0]).round(4).diagonal().tolist()  # 1.5 times 8/3 and 1/3
        [4.0, 0.5]
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
        unloaded = replace(robot, tree=_other_masses(robot.unloaded_tree, masses), payload=None, bare=None)
        robot = unloaded if robot.payload is None else unloaded.with_payload(robot.payload)
    return robot


def expand_each(
    variations: Iterable[tuple[str, str]], nominal: Callable[[str], float], known: Callable[[], Iterable[str]]
) -> list[tuple[str, str]]:
    """Replace each variation that ends in `:each` by one variation per axis or link.

    Args:
        variations: names and texts of the variations.
        nominal: function that returns the nominal value of a quantity, or raises if there is none.
        known: function that returns the names of all quantities that can vary, in their order.

    Raises:
        VariationError: the quantity has no axes or links.

    Example:
        >>> from twin.physics.robot.quantities import expand_each
        >>> names = ["mass", "mass.link_1", "mass.link_2", "payload"]
        >>> expand_each([("mass", "+-5%:each")], lambda name: 1.0, lambda: names)
        [('mass.link_1', '+-5%'), ('mass.link_2', '+-5%')]
    """
    found = []
    for name, text in variations:
        parts = [name]
        if text.endswith(EACH):
            nominal(name)
            divisible = name.removeprefix("model.").startswith(("mass", "torque_limit", "drives."))
            parts = [one for one in dict.fromkeys(known()) if divisible and one.startswith(f"{name}.")]
            if not parts:
                what = f"cannot vary {printable(name)} by {printable(text)!r}: it has no axes or links"
                raise VariationError(f"{what}; mass, torque_limit and the columns of drives have")
        found += [(part, text.removesuffix(EACH)) for part in parts]
    return found


def unknown(name: str, what: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown quantity, with the nearest names in its message.

    Args:
        name: the unknown name.
        what: what lacks the quantity, for the message.
        known: the valid names.
    """
    known = list(known)
    near = [one for one in known if name in one.split(".")] or difflib.get_close_matches(name, known, 3, 0.5)
    nearest = f"the nearest are {', '.join(near or known[:3])}" if known else "it has none of this kind"
    return UnknownNameError(f"{what} has no quantity {name!r}: {nearest}")


def _part(robot: Robot, name: str, prefix: str = "") -> Part:
    """Return the meaning of a name in a robot; messages show the name after the prefix."""
    family, dot, rest = name.partition(".")
    if family == "mass" and not robot.has_inertia:
        raise VariationError(f"{prefix}{name} cannot vary: robot {robot.name!r} has no masses")
    if family == "mass" and rest in (*robot.tree.links, *robot.tree.names):
        link = (*robot.tree.links, *robot.tree.names).index(rest) % robot.tree.n
        if not robot.unloaded_tree.inertias[link, 0] > 0:
            raise VariationError(f"{prefix}{name} cannot vary: {robot.tree.links[link]} has no mass")
        return Part("mass", link)
    if family == "drives":
        family, dot, rest = rest.partition(".")
        column = COLUMNS.get(family)
        if column is not None and robot.drives is None:
            raise VariationError(f"{prefix}{name} cannot vary: robot {robot.name!r} has no drives")
        if column is not None and robot.drive_mode not in column.acts:
            raise VariationError(
                f"{prefix}{name} has no effect: robot {robot.name!r} has {robot.drive_mode} drives, and it "
                f"acts in {' and '.join(column.acts)} drives only"
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
    """Return the tree with other masses, and inertias in proportion."""
    inertias = masses.get(Part("mass", -1), 1.0) * tree.inertias
    for (_, link), mass in masses.items():
        if link >= 0:
            inertias[link] = tree.inertias[link] * (mass / tree.inertias[link, 0])
    return replace(tree, inertias=frozen(inertias))


def _with_other_drives(robot: Robot, parts: dict[Part, float]) -> Robot:
    """Return the robot with other torque limits and other columns of its drives."""
    drives = robot.drives
    if drives is None or robot.drive_mode == "ideal":
        robot = replace(robot, tau_max=frozen(_numbers(robot.tau_max, "torque_limit", parts)))
    if drives is None:
        return robot
    now: dict[str, Any] = {column: getattr(drives, column) for column in COLUMNS}
    for column in COLUMNS:
        old, new = now[column], _numbers(now[column], column, parts)
        now[column] = new
        if new is not old and column in SCALED_WITH:
            other, ordered = SCALED_WITH[column]
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where((old > 0) & (old < np.inf), new / old, 1.0)
            now[other] = ordered(now[other] * share, new)
    if robot.drive_mode != "ideal":
        ratio = np.abs(now["ratio"])
        motors = ratio * now["motor_torque_max"]
        limits = np.where(np.isinf(motors), robot.tau_max, motors)
        if (changed_limits := _numbers(limits, "torque_limit", parts)) is not limits:
            now["motor_torque_max"] = changed_limits / ratio
    columns = {column: value for column, value in now.items() if value is not getattr(drives, column)}
    return replace(robot, drives=drives.with_columns(**columns)) if columns else robot


def _numbers(old: NDArray, what: str, parts: dict[Part, float]) -> NDArray:
    """Return one number per axis (n,) with all changes applied; `old` itself if there are none."""
    changes = {index: value for (name, index), value in parts.items() if name == what}
    if not changes:
        return old
    with np.errstate(invalid="ignore"):  # 0 times infinity is NaN, which later checks reject
        new = changes.pop(-1, 1.0) * old
    for axis, value in changes.items():
        new[axis] = value
    return new
