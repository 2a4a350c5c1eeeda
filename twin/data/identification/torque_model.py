"""Torque model for identification: the robot's regressor, with optional parameters on both sides of drives.

Friction of a drive acts on one side of its gear.  In an arm it acts on both sides, and the sides differ where
motors turn together, as in many wrists: the motor turns with `qd_5 + qd_6`, for example, and the joint with
`qd_6`.  With `both_sides`, each drive whose motor also turns with other joints gets three further parameters:
inertia at the joint itself, and viscous and Coulomb friction on the side that `friction_at` does not name.
In all
other drives both sides turn alike and cannot be distinguished.

Source: M. Gautier, A. Janot et al. identify a Stäubli TX40 with such columns ("fsm6").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats, real_array
from twin.base.errors import IdentificationError
from twin.physics.dynamics.regressor import DRIVE, DynamicParameters, dynamic_parameters, dynamics_regressor
from twin.physics.multibody.axis_torques import torque_columns
from twin.physics.robot.drives.drives import MOTOR, Drives
from twin.physics.robot.robot import Robot

NO_COLUMN = 1e-13
"""Norm of a column, relative to the largest, that is round-off only."""

DEPENDENT = 1e-10
"""Largest remainder of a dependent column of norm 1: round-off leaves 1e-15, the least independent column
of the included robots 0.2.
"""

ROUNDED = 3e-4
"""Largest remainder of a column that is dependent but for the rounding of the kinematics, such as an angle of
1.5708 instead of a right one.
"""

GAP = 30.0
"""Smallest ratio of the remainders of independent columns to those of dependent ones."""

SAME_COEFFICIENT = 1e-12
"""Largest difference between a coefficient and one of few digits that is attributed to round-off."""


class BaseParameters(NamedTuple):
    """Base parameters: the combinations of a robot's dynamic parameters that torques determine.

    Attributes:
        columns: (r,) indices of the independent columns of the regressor, ascending.
        K: (r, p) matrix that maps parameters to base parameters, `K pi`; the identity in `columns`.
        sums: text of each base parameter, as `mz2 + 0.36 m3 + 0.36 m4`.
        symbols: symbols of the parameters in `columns`.
    """

    columns: NDArray[np.intp]
    K: Floats
    sums: tuple[str, ...]
    symbols: tuple[str, ...]

    @property
    def undetermined(self) -> NDArray[np.intp]:
        """Indices of the parameters on which no torque depends."""
        return np.flatnonzero(~np.any(self.K != 0, axis=0))


def base_parameters(robot: Robot, Y: ArrayLike | None = None, seed: int = 0) -> BaseParameters:
    """Compute the base parameters of a robot as it is mounted.

    Args:
        robot: robot with its active drives (`Robot.with_drives`).
        Y: (..., p) rows of the regressor in a particular motion, or their triangular factor; by default those
            of random motions, which determine all that any motion can.
        seed: seed of the random motions.

    Raises:
        RobotError: the masses of the robot's links are not known.
        IdentificationError: no torque depends on any parameter in this motion.

    Example:
        >>> import twin
        >>> from twin.data.identification.torque_model import base_parameters
        >>> base_parameters(twin.load("two_link")).sums
        ('Izz1 + m2', 'mx2', 'my2', 'Izz2')
    """
    symbols = dynamic_parameters(robot).symbols
    if Y is None:
        Y = dynamics_regressor(robot, *_random_motion(robot.n, len(symbols), seed))
    rows = real_array(Y, "Y")
    if rows.ndim < 2 or rows.shape[-1] != len(symbols) or not np.all(np.isfinite(rows)):
        raise ValueError(f"expected a finite Y of shape (..., {len(symbols)}), got {rows.shape}")
    return base_of_rows(rows.reshape(-1, len(symbols)), symbols)


def _random_motion(n: int, p: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return positions, speeds and accelerations (N, n) with three times as many equations as parameters."""
    rng = np.random.default_rng(seed)
    count = 3 * p // n + 10
    q = rng.uniform(-3.0, 3.0, (count, n))
    qd, qdd = rng.normal(size=(2, count, n))
    return q, qd, qdd


def base_of_rows(Y: Floats, symbols: tuple[str, ...]) -> BaseParameters:
    """Compute the base parameters of rows (N, p) of any regressor, whose parameters are named by `symbols`.

    Raises:
        IdentificationError: no row depends on any parameter.
    """
    from scipy.linalg import qr

    norms = np.linalg.norm(Y, axis=0)
    live = np.flatnonzero(norms > NO_COLUMN * np.max(norms, initial=0.0))
    if not live.size:
        raise IdentificationError(
            "the motion determines no dynamic parameter: its torques do not depend on any of them"
        )
    scaled = Y[:, live] / norms[live]
    decomposed: Any = qr(np.linalg.qr(scaled, mode="r"), mode="economic", pivoting=True)
    _, triangle, pivots = decomposed
    remainders = np.abs(np.diag(triangle))
    rank, least = _rank(remainders)
    rows = np.empty(
        (rank, live.size)
    )  # an orthogonal transformation of Y preserves the dependence of columns
    rows[:, pivots] = triangle[:rank]
    independent = _independent(rows, least)
    if len(independent) != rank:
        raise IdentificationError(
            f"the number of parameters that the motion determines is ambiguous, {rank} or "
            f"{len(independent)}: it moves too little"
        )
    K = np.zeros((rank, len(symbols)))
    coefficients = np.linalg.solve(rows[:, independent], rows)
    dropped = float(np.max(remainders[rank:], initial=0.0))
    coefficients[np.abs(coefficients) <= max(DEPENDENT, 3.0 * dropped)] = 0.0
    K[:, live] = _rounded(coefficients * (norms[live] / norms[live[independent]][:, None]))
    K[:, live[independent]] = np.eye(rank)
    columns = live[independent]
    sums = tuple(sum_text(row, symbols, int(first)) for row, first in zip(K, columns, strict=True))
    return BaseParameters(columns, K, sums, tuple(symbols[k] for k in columns))


def _rank(remainders: Floats) -> tuple[int, float]:
    """Return the number of independent columns, and the remainder above which a column is one.

    Dependent columns have remainders of round-off, or of the rounding of the kinematics.  The latter are
    separated from those of independent columns by a gap.

    Args:
        remainders: (p,) remainders of columns of norm 1, descending.
    """
    for k in range(1, len(remainders)):
        if DEPENDENT < remainders[k] <= ROUNDED and remainders[k - 1] > GAP * remainders[k]:
            return k, float(np.sqrt(remainders[k - 1] * remainders[k]))
    return int(np.sum(remainders > DEPENDENT)), DEPENDENT


def _independent(rows: Floats, least: float) -> list[int]:
    """Return the columns that are independent of earlier ones, by Gram-Schmidt with reorthogonalisation."""
    independent, basis = [], np.zeros((rows.shape[0], 0))
    for k in range(rows.shape[1]):
        left = rows[:, k]
        for _ in range(2):
            left = left - basis @ (basis.T @ left)
        size = np.linalg.norm(left)
        if size > least:
            independent.append(k)
            basis = np.column_stack((basis, left / size))
    return independent


def _rounded(coefficients: Floats) -> Floats:
    """Return coefficients without round-off, where they are close to numbers of few digits."""
    short = np.array([float(f"{c:.9g}") for c in coefficients.flat]).reshape(coefficients.shape)
    near = np.abs(coefficients - short) <= SAME_COEFFICIENT * np.maximum(1.0, np.abs(coefficients))
    return np.where(near, short, coefficients)


def sum_text(row: Floats, symbols: Sequence[str], first: int) -> str:
    """Format a sum of parameters, starting with the column `first`.

    Args:
        row: (p,) coefficients, 1 in the column `first`.
        symbols: symbols of the parameters.
        first: index of the parameter to write first.
    """
    text = symbols[first]
    for k in np.flatnonzero(row).tolist():
        if k != first:
            factor = f"{abs(row[k]):.6g} ".removeprefix("1 ")
            text += f" {'-' if row[k] < 0 else '+'} {factor}{symbols[k]}"
    return text


SIDES = ("inertia at the joint", "viscous, other side", "Coulomb, other side")
"""Further parameters of a drive whose motor also turns with other joints."""

SIDE_SYMBOLS = ("Jj", "Fvo", "Fco")
SIDE_UNITS = ("kg m^2", "N m s/rad", "N m")


FRICTION = {
    "load": ("coulomb_per_load", "Fl", ""),
    "root": ("viscous_root", "Fr", "N m (s/rad)^(1/2)"),
    "difference": ("viscous_difference", "Fd", "N m s/rad"),
}
"""Further friction of all drives: name in `Drives`, symbol, and unit."""


class Motion(NamedTuple):
    """Motion of motors that an encoder of their own sees apart from the joints.

    Attributes:
        q, qd, qdd: (N, n) angles, speeds and accelerations in joint units, in [rad], [rad/s], [rad/s^2].
        qd_friction: (N, n) speeds at which friction acts, in [rad/s].
    """

    q: Floats
    qd: Floats
    qdd: Floats
    qd_friction: Floats

    def at(self, samples: NDArray[np.intp]) -> Motion:
        """Return the motion at some samples."""
        return Motion(*(values[samples] for values in self))


class Sections(NamedTuple):
    """Places of the parameters of a torque model, in their order."""

    links: slice
    drives: slice
    sides: slice
    friction: slice
    torques: slice


@dataclass(frozen=True, eq=False)
class TorqueModel:
    """Model that is fitted to recordings: `tau = Y pi`.

    Attributes:
        robot: robot with its active drives, springs and balancers.
        both_sides: whether coupled drives have inertia and friction on both sides.
        friction: further friction, by kind (a name of `FRICTION`) and index of the drive.
        apart: whether the motors of elastic joints are seen exactly, so that rotors differ from links.
        torque_sensors: whether sensors behind the gears measure the torques, so that no torque depends on the
            rotors and the friction of drives; an offset is the zero of a joint's sensor.
    """

    robot: Robot
    both_sides: bool = False
    friction: tuple[tuple[str, int], ...] = ()
    apart: bool = False
    torque_sensors: bool = False

    @cached_property
    def parameters(self) -> DynamicParameters:
        """Parameters of the robot, followed by those of the other sides, which are 0 for the robot."""
        of_robot = dynamic_parameters(self.robot)
        further: list[tuple[str, str, str]] = [
            (f"drive {drive + 1} {name}", f"{symbol}{drive + 1}", unit)
            for drive in self.coupled
            for name, symbol, unit in zip(SIDES, SIDE_SYMBOLS, SIDE_UNITS, strict=True)
        ]
        values = [*of_robot.values, *np.zeros(len(further))]
        for kind, drive in self.friction:
            column, symbol, unit = FRICTION[kind]
            values.append(getattr(self.robot.active_drives, column)[drive])
            further.append((f"drive {drive + 1} {column}", f"{symbol}{drive + 1}", unit))
        for torque in self.robot.tree.torques:
            values += list(torque.values)
            further += [
                (f"{type(torque).__name__} {symbol}", symbol, unit)
                for symbol, unit in zip(torque.symbols, torque.units, strict=True)
            ]
        names, symbols, units = zip(*further, strict=True) if further else ((), (), ())
        return DynamicParameters(
            np.array(values), of_robot.names + names, of_robot.symbols + symbols, of_robot.units + units
        )

    @cached_property
    def sections(self) -> Sections:
        """Places of the parameters in `parameters`."""
        n, drives = self.robot.n, self.robot.active_drives
        counts = (
            10 * self.robot.tree.n,
            0 if drives is None else len(DRIVE) * n,
            len(SIDES) * len(self.coupled),
            len(self.friction),
            sum(len(torque.values) for torque in self.robot.tree.torques),
        )
        ends = np.cumsum(counts).tolist()
        return Sections(*(slice(end - count, end) for end, count in zip(ends, counts, strict=True)))

    @cached_property
    def without_load(self) -> TorqueModel:
        """The model without friction that grows with the load; itself if it has none."""
        others = tuple(one for one in self.friction if one[0] != "load")
        return self if others == self.friction else replace(self, friction=others)

    @cached_property
    def coupled(self) -> NDArray[np.intp]:
        """Indices of the drives with parameters on both sides."""
        drives = self.robot.active_drives
        if drives is None or not self.both_sides:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(np.any(drives.coupling != np.eye(drives.n), axis=1))

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters that torques determine in a general motion."""
        p = len(self.parameters.values)
        q, qd, qdd = _random_motion(self.robot.n, p, seed=0)
        motor = Motion(q, *(np.roll(rates, 1, axis=0) for rates in (qd, qdd, qd))) if self.apart else None
        rows = self.regressor(q, qd, qdd, qd, 100.0 * np.roll(qdd, 1, axis=0), motor)
        return base_of_rows(rows.reshape(-1, p), self.parameters.symbols)

    def regressor(
        self, q: Floats, qd: Floats, qdd: Floats, qd_friction: Floats, load: Floats | None = None,
        motor: Motion | None = None,
    ) -> Floats:  # fmt: skip
        """Return the regressor Y (N, n, p) of samples (N, n), see `twin.dynamics_regressor`.

        `load` (N, n) are the torques of the drives on the arm in the step before, in [N m].  The motors move
        as the joints unless `motor` is given.
        """
        Y, drives = dynamics_regressor(self.robot, q, qd, qdd, qd_friction), self.robot.active_drives
        if self.torque_sensors and drives is not None:
            part = self.sections.drives
            Y[..., part] = 0.0
            Y[..., part.start + DRIVE.index("offset") : part.stop : len(DRIVE)] = np.eye(self.robot.n)
        if motor is not None and drives is not None:
            of_motor = np.repeat(np.array(drives.friction_at) == MOTOR, len(DRIVE))
            of_motor[:: len(DRIVE)] = True  # rotors
            part = self.sections.drives
            there = dynamics_regressor(self.robot, q, qd, motor.qdd, motor.qd_friction)[..., part]
            Y[..., part] = np.where(of_motor, there, Y[..., part])
        moving, sliding = (qd, qd_friction) if motor is None else (motor.qd, motor.qd_friction)
        parts = [self._with_other_sides(Y, qdd, qd_friction, sliding)]
        if drives is not None and self.friction:
            R = drives.friction_matrix
            w, sign = shaft_speeds(drives, qd, moving), np.sign(shaft_speeds(drives, qd_friction, sliding))
            transmitted = (np.zeros_like(qd) if load is None else load) @ drives.transmission.T
            torques = {
                "load": np.abs(transmitted) * sign,
                "root": np.sqrt(np.abs(w)) * sign,
                "difference": np.abs(w),
            }
            parts.append(np.stack([torques[kind][:, i, None] * R[i] for kind, i in self.friction], axis=-1))
        if self.robot.tree.torques:
            parts.append(torque_columns(self.robot.tree.torques, q, qd, qdd))
        return np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]

    def _with_other_sides(self, Y: Floats, qdd: Floats, qd_friction: Floats, sliding: Floats) -> Floats:
        """Return the regressor with the columns of both sides of drives."""
        drives = self.robot.active_drives
        if drives is None or not self.coupled.size:
            return Y
        opposite = other_side(drives)
        other = opposite.friction_matrix[self.coupled]  # (m, n)
        speed = shaft_speeds(opposite, qd_friction, sliding)[:, self.coupled]  # (N, m)
        more = np.zeros((*qdd.shape, len(self.coupled), len(SIDES)))
        for place, drive in enumerate(self.coupled):
            more[:, drive, place, 0] = qdd[:, drive]
            more[:, :, place, 1] = speed[:, place, None] * other[place]
            more[:, :, place, 2] = np.sign(speed[:, place, None]) * other[place]
        return np.concatenate([Y, more.reshape(*qdd.shape, -1)], axis=-1)


def shaft_speeds(drives: Drives, qd: Floats, qd_motor: Floats) -> Floats:
    """Return the speeds (..., n) of the shafts with friction, from those of joints and motors."""
    R = drives.friction_matrix
    return np.where(np.array(drives.friction_at) == MOTOR, qd_motor @ R.T, qd @ R.T)


def other_side(drives: Drives) -> Drives:
    """Return the drives with friction on the other side of each gear."""
    return replace(
        drives, friction_at=tuple("joint" if side == MOTOR else MOTOR for side in drives.friction_at)
    )


def friction_of(robot: Robot, asked: Sequence[str] = ()) -> tuple[tuple[str, int], ...]:
    """Return the further friction of all drives that the robot has or that is asked for, by kind and drive.

    Raises:
        ValueError: a kind is not in `FRICTION`.
    """
    for kind in asked:
        if kind not in FRICTION:
            raise ValueError(f"expected friction among {', '.join(FRICTION)}, got {kind!r}")
    drives = robot.active_drives
    return tuple(
        (kind, drive)
        for kind, (column, _, _) in FRICTION.items()
        if kind in asked or (drives is not None and np.any(getattr(drives, column)))
        for drive in range(robot.n)
    )


def identifiable(robot: Robot) -> Robot:
    """Return the robot with drives that can be identified: its own, or shafts of ratio 1 if it has none.

    Rotors and friction of such shafts are expressed at the joint.  If the masses of the robot are not known,
    they are
    zero in the result, and only the identification determines them.
    """
    if not robot.has_inertia:
        robot = replace(robot, inertia_fault="")  # its tree has zeros, or a joint without mass
    if robot.drives is not None:
        return robot if robot.active_drives is not None else robot.with_drives("rigid")
    return robot.with_drives("rigid", Drives(np.ones(robot.n), np.zeros(robot.n)))
