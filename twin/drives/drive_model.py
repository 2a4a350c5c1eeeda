"""What a control law knows of the drives: their rotors and their friction, as if they were rigid.

A torque that is to bring about an acceleration has to turn the rotors, too, and to overcome the friction that
the step will meet: its level is that of the speed before the step, its sign and its viscous part those of the
speed that the acceleration leads to (see `twin/drives/friction.py`).  Then it is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.drives.drives import Drives
from twin.drives.friction import AT_REST, VISCOUS, friction_level, friction_rows
from twin.jit import compiled


class DriveModel(NamedTuple):
    """The drives of n joints as laws take them.

    Attributes:
        inertia: (n, n) of the rotors at the joints, A, in [kg m^2]; zeros where drives are ideal.
        friction: (4, n), see `twin.drives.friction`.
        shafts: (n, n) from joint speeds to those of the shafts that rub; (0, 0) where they are the same.
    """

    inertia: np.ndarray
    friction: np.ndarray
    shafts: np.ndarray

    @classmethod
    def of(cls, drives: Drives | None, n: int) -> DriveModel:
        """What is known of these drives of n joints; `None` stands for ideal ones."""
        if drives is None:
            return cls(np.zeros((n, n)), np.zeros((4, n)), np.zeros((0, 0)))
        shafts = drives.friction_matrix.copy()
        if np.array_equal(shafts, np.eye(n)):
            shafts = np.zeros((0, 0))
        return cls(drives.reflected_inertia.copy(), friction_rows(drives), shafts)


@compiled
def add_drive_torque(drives, qd, qdd, period, tau):
    """Add to `tau` what the drives take for themselves on the way to an acceleration.

    Args:
        drives: a `DriveModel`.
        qd: (n,) joint speeds, in [rad/s].
        qdd: (n,) the accelerations that are wanted, in [rad/s^2].
        period: for which they last, in [s].
        tau: (n,), in [N m], added to.
    """
    n, coupled = len(qd), len(drives.shafts) > 0
    for i in range(n):
        torque = tau[i]
        for j in range(n):
            torque += drives.inertia[i, j] * qdd[j]
        tau[i] = torque
    for i in range(n):
        before, after = qd[i], qd[i] + period * qdd[i]
        if coupled:
            before, after = 0.0, 0.0
            for j in range(n):
                before += drives.shafts[i, j] * qd[j]
                after += drives.shafts[i, j] * (qd[j] + period * qdd[j])
        rub = drives.friction[VISCOUS, i] * after
        if abs(after) > AT_REST:  # else the shaft sticks by itself, and needs no torque to
            rub += friction_level(drives.friction, i, before) * np.sign(after)
        if coupled:
            for j in range(n):
                tau[j] += drives.shafts[i, j] * rub
        else:
            tau[i] += rub
