"""Dynamic parameters, in which the dynamics of a robot are linear: those of its links, rotors and friction.

    tau = Y(q, qd, qdd) pi

Every link of the tree has ten parameters in the order of `Tree.inertias`: its mass, its first moments, and
its inertia about the origin of its frame, all in that frame.  Those of the link with the flange include the
payload.  Each active drive (`Robot.with_drives`) has four parameters.  They are the rotor's inertia at the
motor, viscous and Coulomb friction of the shaft with friction, in joint units, and an offset, which is a
constant torque on that shaft.

Static friction above Coulomb friction is not linear in its parameters.  It is replaced by Coulomb friction,
which is correct above some Stribeck speeds.

Source: W. Khalil, E. Dombre, "Modeling, Identification and Control of Robots" (2002), sections 9.3 and 12.3.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.physics.multibody.tree import frozen
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit

LINK = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""Names of the parameters of a link, in the order of `Tree.inertias`."""

DRIVE = ("rotor inertia", "viscous", "Coulomb", "offset")
"""Names of the parameters of a drive."""

LINK_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
DRIVE_SYMBOLS = ("J", "Fv", "Fc", "F0")


class DynamicParameters(NamedTuple):
    """Dynamic parameters of a robot, with names, symbols and units.

    Attributes:
        values: (p,) vector `pi`.
        names: names such as `link_3 mx` or `drive 2 rotor inertia`.
        symbols: short symbols such as `mx3` or `J2`.
        units: units of the parameters.
    """

    values: Floats
    names: tuple[str, ...]
    symbols: tuple[str, ...]
    units: tuple[str, ...]


def dynamic_parameters(robot: Robot) -> DynamicParameters:
    """Return the parameters `pi` of a robot, in the order of the columns of `twin.dynamics_regressor`.

    Args:
        robot: the robot, payload included, with the drives that act (`Robot.with_drives`).

    Returns:
        Ten parameters per link of the tree, then four per drive unless the drives are ideal.

    Raises:
        RobotError: the masses of the links are unknown.

    Example:
        >>> import twin
        >>> parameters = twin.dynamics.dynamic_parameters(twin.load("two_link"))
        >>> parameters.symbols[10:14], parameters.values[10:14].round(4).tolist()
        (('m2', 'mx2', 'my2', 'mz2'), [1.0, 0.5, 0.0, 0.0])
    """
    drives = robot.active_drives
    values = [robot.inertias.ravel()]
    names = [f"{link} {name}" for link in robot.tree.links for name in LINK]
    symbols = [name + _suffix(link) for link in robot.tree.links for name in LINK]
    units = list(LINK_UNITS) * robot.tree.n
    if drives is not None:
        values.append(_drive_values(drives).ravel())
        names += [f"drive {i + 1} {name}" for i in range(robot.n) for name in DRIVE]
        symbols += [f"{symbol}{i + 1}" for i in range(robot.n) for symbol in DRIVE_SYMBOLS]
        for kind in (robot.tree.kinds[joint] for joint in robot.driven):
            force, speed = joint_unit(kind, "torque"), joint_unit(kind)
            units += ["kg m^2", f"{force} s/{speed}", force, force]
    return DynamicParameters(np.concatenate(values), tuple(names), tuple(symbols), tuple(units))


def with_dynamic_parameters(robot: Robot, pi: ArrayLike) -> Robot:
    """Return the robot with other dynamic parameters, the inverse of `dynamic_parameters`.

    The robot retains its payload, which is subtracted from the parameters of the link with the flange.  The
    masses and moments are not checked for physical consistency, which the prediction of torques does not
    require.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        pi: (p,) parameters in the order of `dynamic_parameters(robot).values`; ideal drives remain unchanged.

    Raises:
        ValueError: the number of parameters is wrong, one is not finite, or a friction or a rotor inertia is
            negative.

    Example:
        >>> import twin
        >>> robot = twin.load("two_link").mounted("wall")  # two level rods of 1 kg and 1 m
        >>> pi = twin.dynamics.dynamic_parameters(robot).values
        >>> twice = twin.dynamics.with_dynamic_parameters(robot, 2 * pi)
        >>> twin.gravity_torque(twice, [0, 0]).round(4).tolist()
        [39.24, 9.81]
    """
    pi = real_array(pi, "pi")
    known = dynamic_parameters(robot)
    if pi.shape != known.values.shape:
        raise ValueError(f"expected pi of shape {known.values.shape}, got {pi.shape}")
    if not np.all(np.isfinite(pi)):
        first = int(np.argmin(np.isfinite(pi)))
        raise ValueError(f"expected pi to be finite, got {pi[first]} of {known.names[first]}")
    link_values, drive_values = np.split(pi, [10 * robot.tree.n])
    inertias, bare = link_values.reshape(-1, 10), robot.bare
    if bare is not None:
        payload = robot.tree.inertias - bare.inertias
        bare = replace(bare, inertias=frozen(inertias - payload))
    tree = replace(robot.tree, inertias=frozen(inertias))
    drives = robot.drives
    if robot.active_drives is not None:
        drives = _with_drive_values(robot.active_drives, drive_values.reshape(-1, len(DRIVE)))
    return replace(robot, tree=tree, bare=bare, drives=drives)


def _suffix(link: str) -> str:
    """Return the suffix of a link's symbols: `3` for `link_3`, `_rod` for `link_rod`."""
    short = link.removeprefix("link_")
    return short if short.isdigit() else f"_{short}"


def _drive_values(drives: Drives) -> Floats:
    """Return the parameters (n, 4) of drives."""
    columns = (drives.rotor_inertia, drives.viscous, drives.coulomb, drives.offset)
    return np.stack(columns, axis=1)


def _with_drive_values(drives: Drives, values: Floats) -> Drives:
    """Return the drives with other parameters (n, 4); static minus Coulomb friction remains unchanged."""
    rotor_inertia, viscous, coulomb, offset = values.T
    static = coulomb + (drives.static - drives.coulomb)
    return replace(
        drives, rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, static=static, offset=offset
    )
