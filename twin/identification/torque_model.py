"""The model whose parameters are identified: the robot's regressor, and what its drives have on both sides.

A drive of a robot rubs on one side of its gear.  Where motors turn together, as those of many wrists, this
makes a difference, and arms rub on both sides: the motor turns with `qd_5 + qd_6`, say, the joint with
`qd_6`.  Asked for `both_sides`, each drive whose motor turns with other joints, too, gets three parameters
more: inertia at the joint itself, and viscous and Coulomb friction on the side that `friction_at` does not
name.  In all others the two sides turn alike and cannot be told apart.

Source: M. Gautier, A. Janot et al. identify a Stäubli TX40 with such columns ("fsm6").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.drives.drives import MOTOR, Drives
from twin.dynamics.dynamic_parameters import DynamicParameters, dynamic_parameters
from twin.dynamics.regressor import dynamics_regressor
from twin.identification.base_parameters import BaseParameters, base_of_rows
from twin.robot.robot import Robot

SIDES = ("inertia at the joint", "viscous, other side", "Coulomb, other side")
"""The parameters of a drive whose motor turns with other joints, beside those of every drive."""

SIDE_SYMBOLS = ("Jj", "Fvo", "Fco")
SIDE_UNITS = ("kg m^2", "N m s/rad", "N m")


@dataclass(frozen=True, eq=False)
class TorqueModel:
    """What a recording is fitted with: `tau = Y pi`.

    Attributes:
        robot: with the drives that act.
        both_sides: whether coupled drives have inertia and friction on both sides.
    """

    robot: Robot
    both_sides: bool = False

    @cached_property
    def parameters(self) -> DynamicParameters:
        """The robot's, then those of the other sides, which a robot's are 0."""
        of_robot = dynamic_parameters(self.robot)
        told = [
            (f"drive {drive + 1} {name}", f"{symbol}{drive + 1}", unit)
            for drive in self.coupled
            for name, symbol, unit in zip(SIDES, SIDE_SYMBOLS, SIDE_UNITS, strict=True)
        ]
        names, symbols, units = zip(*told, strict=True) if told else ((), (), ())
        values = np.concatenate([of_robot.values, np.zeros(len(told))])
        return DynamicParameters(
            values, of_robot.names + names, of_robot.symbols + symbols, of_robot.units + units
        )

    @cached_property
    def coupled(self) -> NDArray[np.intp]:
        """The drives with parameters on both sides."""
        drives = self.robot.active_drives
        if drives is None or not self.both_sides:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(np.any(drives.coupling != np.eye(drives.n), axis=1))

    @cached_property
    def base(self) -> BaseParameters:
        """What torques can tell of the parameters, in any motion."""
        rng = np.random.default_rng(0)
        n, p = self.robot.n, len(self.parameters.values)
        count = 3 * p // n + 10
        q = rng.uniform(-3.0, 3.0, (count, n))
        qd, qdd = rng.normal(size=(2, count, n))
        return base_of_rows(self.regressor(q, qd, qdd, qd).reshape(-1, p), self.parameters.symbols)

    def regressor(self, q: Floats, qd: Floats, qdd: Floats, qd_friction: Floats) -> Floats:
        """Y (N, n, p) of samples (N, n), see `twin.dynamics_regressor`."""
        Y = dynamics_regressor(self.robot, q, qd, qdd, qd_friction)
        drives = self.robot.active_drives
        if drives is None or not self.coupled.size:
            return Y
        other = other_side(drives).friction_matrix[self.coupled]  # (m, n)
        speed = qd_friction @ other.T  # (N, m)
        more = np.zeros((*qdd.shape, len(self.coupled), len(SIDES)))
        for place, drive in enumerate(self.coupled):
            more[:, drive, place, 0] = qdd[:, drive]
            more[:, :, place, 1] = speed[:, place, None] * other[place]
            more[:, :, place, 2] = np.sign(speed[:, place, None]) * other[place]
        return np.concatenate([Y, more.reshape(*qdd.shape, -1)], axis=-1)


def other_side(drives: Drives) -> Drives:
    """The same drives, if friction acted on the other side of each."""
    return replace(
        drives, friction_at=tuple("joint" if side == MOTOR else MOTOR for side in drives.friction_at)
    )


def identifiable(robot: Robot) -> Robot:
    """A robot with drives that can be identified: its own, or where its file has none, shafts of ratio 1.

    Rotors and friction of those are told at the joint.  A robot whose masses are not known has none: what is
    identified is all that is known of them then.
    """
    if not robot.has_inertia:
        robot = replace(robot, has_inertia=True)  # its tree has zeros
    if robot.drives is not None:
        return robot if robot.active_drives is not None else robot.with_drives("rigid")
    return robot.with_drives("rigid", Drives(np.ones(robot.n), np.zeros(robot.n)))
