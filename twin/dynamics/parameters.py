"""The numbers that a robot's dynamics are linear in: masses and moments of its links, rotors and friction.

    tau = Y(q, qd, qdd) pi

Every link of the tree has ten, in the order of `Tree.inertias`: its mass, its first moments, and its inertia
about the origin of its frame, all in that frame.  A payload is in those of the link that has the flange.
Drives that act (`Robot.with_drives`) have four each: the rotor's inertia at the motor; viscous and Coulomb
friction of the shaft that rubs, in joint units; and an offset, a torque on that shaft which is always there.

Friction that is higher at rest (`static` above `coulomb`) is not linear in its parameters: here it is Coulomb
friction, as it is beyond some Stribeck speeds.

Source: W. Khalil, E. Dombre, "Modeling, Identification and Control of Robots" (2002), sections 9.3 and 12.3.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.multibody.tree import frozen
from twin.robot.drives.drives import Drives
from twin.robot.limits import joint_unit
from twin.robot.robot import Robot

LINK = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""The parameters of a link, in the order of `Tree.inertias`."""

DRIVE = ("rotor inertia", "viscous", "Coulomb", "offset")
"""The parameters of a drive."""

LINK_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
DRIVE_SYMBOLS = ("J", "Fv", "Fc", "F0")


class DynamicParameters(NamedTuple):
    """The parameters of a robot, and what they are called.

    Attributes:
        values: (p,) `pi`.
        names: as `link_3 mx`, `drive 2 rotor inertia`.
        symbols: short ones, as `mx3`, `J2`.
        units: of each, told of joints that turn.
    """

    values: Floats
    names: tuple[str, ...]
    symbols: tuple[str, ...]
    units: tuple[str, ...]


def dynamic_parameters(robot: Robot) -> DynamicParameters:
    """The parameters `pi` of a robot, in the order of the columns of `twin.dynamics_regressor`.

    Args:
        robot: the robot, payload included, with the drives that act (`Robot.with_drives`).

    Returns:
        Ten a link of the tree, and then four a drive; none of drives that are ideal.

    Raises:
        RobotError: the masses of its links are not known.
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
    """The robot with other dynamic parameters: the way back from `dynamic_parameters`.

    What it carries stays its payload: it is taken off the link that has the flange, so that what is left is
    the arm.  Nobody checks that a body can have such masses and moments: what only predicts torques need not.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        pi: (p,), as `dynamic_parameters(robot).values`; drives that are ideal stay as they are.

    Raises:
        ValueError: there are more or fewer parameters, one is not finite, friction or a rotor is below 0, or
            a drive has an offset, which `Drives` has not.
    """
    pi = real_array(pi, "pi")
    known = dynamic_parameters(robot)
    if pi.shape != known.values.shape:
        raise ValueError(f"expected pi of shape {known.values.shape}, got {pi.shape}")
    if not np.all(np.isfinite(pi)):
        first = int(np.argmin(np.isfinite(pi)))
        raise ValueError(f"expected pi to be finite, got {pi[first]} of {known.names[first]}")
    of_links, of_drives = np.split(pi, [10 * robot.tree.n])
    inertias, bare = of_links.reshape(-1, 10), robot.bare
    if bare is not None:
        carried = robot.tree.inertias - bare.inertias
        bare = replace(bare, inertias=frozen(inertias - carried))
    tree = replace(robot.tree, inertias=frozen(inertias))
    drives = robot.drives
    if robot.active_drives is not None:
        drives = _with_drive_values(robot.active_drives, of_drives.reshape(-1, len(DRIVE)))
    return replace(robot, tree=tree, bare=bare, drives=drives)


def _suffix(link: str) -> str:
    """What tells a link in a symbol: `3` of `link_3`, `_rod` of `link_rod`."""
    short = link.removeprefix("link_")
    return short if short.isdigit() else f"_{short}"


def _drive_values(drives: Drives) -> Floats:
    """The parameters (n, 4) of drives."""
    columns = (drives.rotor_inertia, drives.viscous, drives.coulomb, np.zeros(drives.n))
    return np.stack(columns, axis=1)


def _with_drive_values(drives: Drives, values: Floats) -> Drives:
    """The drives with other parameters (n, 4); what static friction is above Coulomb friction stays."""
    rotor_inertia, viscous, coulomb, offset = values.T
    if np.any(offset != 0):
        axis = int(np.argmax(offset != 0))
        raise ValueError(
            f"expected offsets of 0, for drives of a robot have none, got {offset[axis]:g} N m of drive "
            f"{axis + 1}"
        )
    static = coulomb + (drives.static - drives.coulomb)
    return replace(drives, rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, static=static)
