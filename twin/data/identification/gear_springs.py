"""Stiffness of gears whose two sides are both measured: by the motor's encoder and one behind the gear.

A gear twists by the torque T that it transmits to the arm:

    T = K e + D ed,        e = theta - q.

The twist e is some tenths of a milliradian, so its noise is the largest of all.  It is therefore fitted to
the torque of the identified model, `e = (T - D ed) / K + c`, with a constant c for the zeros of both
encoders.  In filtered recordings the rate of the twist is noise, so the damping D is fitted to exact logs
only.  Torques do not tell all rotors from links.  Such rotors are those of the given robot, and are not part
of T.

In the steps of the engine, the spring acts at a mean of the twist over three samples, which
`e + dt^2 edd / 4` is, and the damper at the mean speed `ed + dt edd / 2` (`twin.robot.drives.drive_step`).

Deviations contain those of the parameters in T, and the residuals of e by the block bootstrap, see
`twin.identification.deviations`.

Sources: A. Janot, M. Gautier, A. Jubien, P.-O. Vandanjon, "Comparison between the CLOE method and the DIDIM
method for robots identification", IEEE Trans. on Control Systems Technology 22 (2014), on elastic joints with
two encoders; Ljubljana lab manual, eq. (6.93).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.identification.measurements import (
    Measurements,
    Samples,
    filtered_block,
    motion_at,
    sample_blocks,
)
from twin.data.identification.torque_model import TorqueModel
from twin.physics.dynamics.regressor import DRIVE
from twin.physics.robot.drives.drives import MOTOR

CERTAIN = 3.0
"""Deviations by which a compliance must exceed 0; the gear counts as rigid otherwise."""

BLOCKS = 8
"""Number of blocks of the bootstrap."""


class GearSpring(NamedTuple):
    """Spring of a gear.

    Attributes:
        stiffness: in [N m/rad] or [N/m].
        deviation: standard deviation of the stiffness.
        damping: in [N m s/rad] or [N s/m]; `None` in filtered recordings.
    """

    stiffness: float
    deviation: float
    damping: float | None


def gear_springs(
    model: TorqueModel, beta: Floats, covariance: Floats, recordings: Sequence[Measurements]
) -> tuple[GearSpring | None, ...]:
    """Return the spring of each gear; `None` for a gear without measurable twist.

    Args:
        model: identified model.
        beta: (r,) its base parameters.
        covariance: (r, r) covariance of the base parameters.
        recordings: the recordings; those without motion of the motors are ignored.
    """
    parts = [_twists(model, one) for one in recordings if one.motor is not None]
    if not parts:
        return (None,) * model.robot.n
    rows, used = (np.concatenate(part) for part in zip(*parts, strict=True))
    return tuple(
        _spring(rows[used[:, joint], joint], model.apart, beta, covariance) for joint in range(model.robot.n)
    )


def _twists(model: TorqueModel, measured: Measurements) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the columns of each equation (N, n, 4 + r), and which equations are used (N, n).

    The columns are one, the rate of the twist, the twist, the torque of rotors that are not identified, and
    the base parameters' torques on the arm.
    """
    drives, sections, base = model.robot.active_drives, model.sections, model.base.columns
    assert measured.motor is not None
    assert drives is not None
    at_motor = np.array(drives.friction_at) == MOTOR
    before = np.zeros(len(model.parameters.values), dtype=np.bool_)  # which act before the gear
    before[sections.drives] = np.repeat(at_motor, len(DRIVE))
    before[sections.drives][:: len(DRIVE)] = True  # rotors
    before[sections.sides] = [at for drive in model.coupled for at in (False, *[not at_motor[drive]] * 2)]
    before[sections.friction] = [at_motor[drive] for _, drive in model.friction]
    others = before.copy()
    others[base] = False
    dt = float(measured.t[1] - measured.t[0])
    blocks = []
    for part, samples in sample_blocks(measured):
        motor, Y = measured.motor.at(samples), model.regressor(*motion_at(measured, samples))
        acceleration = motor.qdd - measured.qdd[samples]
        rate = motor.qd - measured.qd[samples] + dt / 2.0 * acceleration
        twist = motor.q - measured.q[samples] + dt**2 / 4.0 * acceleration
        rotors = Y[..., others] @ model.parameters.values[others]
        columns = np.stack([np.ones_like(twist), rate, twist, rotors], axis=-1)
        rows = np.concatenate([columns, Y[..., base] * ~before[base]], axis=-1)
        block = filtered_block(Samples(part, samples, rows), measured)
        blocks.append((block.rows, block.used))
    rows, used = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return rows, used


def _spring(rows: Floats, damped: bool, beta: Floats, covariance: Floats) -> GearSpring | None:
    """Return the spring, damped or not, that explains the twist in rows (N, 4 + r) of `_twists` best."""
    twist, torque = rows[:, 2], rows[:, 4:] @ beta - rows[:, 3]
    if len(rows) < 2 * BLOCKS or not np.ptp(twist) > 0 or not np.any(torque):
        return None
    X = np.column_stack([torque, rows[:, : 1 + damped]])
    scale = np.linalg.norm(X, axis=0)
    X /= scale
    x, _, rank, _ = np.linalg.lstsq(X, twist, rcond=None)
    if rank < X.shape[1]:
        return None
    row, e, length = np.linalg.inv(X.T @ X)[0] / scale[0], twist - X @ x, len(rows) // BLOCKS
    effect, residuals = ((v[: BLOCKS * length]).reshape(BLOCKS, length) for v in (X @ row, e))
    compliance, _, *rate = (x / scale).tolist()
    by_parameters = compliance * (X @ row) @ rows[:, 4:]
    variance = np.mean((effect @ residuals.T) ** 2) * BLOCKS + by_parameters @ covariance @ by_parameters
    deviation = float(np.sqrt(variance))
    if not compliance > CERTAIN * deviation:
        return None
    return GearSpring(1.0 / compliance, deviation / compliance**2, -rate[0] / compliance if rate else None)
