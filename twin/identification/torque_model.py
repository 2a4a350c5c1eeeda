"""The model whose parameters are identified: the robot's regressor, and what its drives have on both sides.

A drive of a robot rubs on one side of its gear.  Where motors turn together, as those of many wrists, this
makes a difference, and arms rub on both sides: the motor turns with `qd_5 + qd_6`, say, the joint with
`qd_6`.  Asked for `both_sides`, each drive whose motor turns with other joints, too, gets three parameters
more: inertia at the joint itself, and viscous and Coulomb friction on the side that `friction_at` does not
name.  In all others the two sides turn alike and cannot be told apart.

Source: M. Gautier, A. Janot et al. identify a Stäubli TX40 with such columns ("fsm6").
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.arrays import Floats, real_array
from twin.dynamics.parameters import DynamicParameters, dynamic_parameters
from twin.dynamics.regressor import dynamics_regressor
from twin.errors import IdentificationError
from twin.robot.drives.drives import MOTOR, Drives
from twin.robot.robot import Robot

NO_COLUMN = 1e-13
"""The norm of a column that is rounding alone, relative to the largest."""

DEPENDENT = 1e-10
"""What is left of a column of norm 1 that depends on others: rounding leaves 1e-15, the least independent one
of our robots 0.2."""

SAME_COEFFICIENT = 1e-12
"""How far a coefficient is from one of few digits where rounding made the difference."""


class BaseParameters(NamedTuple):
    """What torques tell of a robot's dynamic parameters.

    Attributes:
        columns: (r,) of the regressor, in their order: those parameters that are kept.
        K: (r, p) base parameters of parameters, `K pi`; the identity in `columns`.
        sums: how each reads, as `mz2 + 0.36 m3 + 0.36 m4`.
        symbols: of the parameters that are kept.
    """

    columns: NDArray[np.intp]
    K: Floats
    sums: tuple[str, ...]
    symbols: tuple[str, ...]

    @property
    def untold(self) -> NDArray[np.intp]:
        """The parameters that no torque depends on."""
        return np.flatnonzero(~np.any(self.K != 0, axis=0))


def base_parameters(robot: Robot, Y: ArrayLike | None = None, seed: int = 0) -> BaseParameters:
    """The base parameters of a robot, as it is mounted.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        Y: (..., p) rows of its regressor in the motion of which they are asked, or the triangular factor of
            these; by default those of random motions, which tell all that can be told.
        seed: of the random motions.

    Raises:
        RobotError: the masses of its links are not known.
        IdentificationError: no torque depends on any parameter in this motion.
    """
    symbols = dynamic_parameters(robot).symbols
    if Y is None:
        Y = dynamics_regressor(robot, *_random_motion(robot.n, len(symbols), seed))
    rows = real_array(Y, "Y")
    if rows.ndim < 2 or rows.shape[-1] != len(symbols) or not np.all(np.isfinite(rows)):
        raise ValueError(f"expected a finite Y of shape (..., {len(symbols)}), got {rows.shape}")
    return base_of_rows(rows.reshape(-1, len(symbols)), symbols)


def _random_motion(n: int, p: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Positions, speeds and accelerations (N, n) that make three times as many equations as p parameters."""
    rng = np.random.default_rng(seed)
    count = 3 * p // n + 10
    q = rng.uniform(-3.0, 3.0, (count, n))
    qd, qdd = rng.normal(size=(2, count, n))
    return q, qd, qdd


def base_of_rows(Y: Floats, symbols: tuple[str, ...]) -> BaseParameters:
    """The base parameters that rows (N, p) of any regressor tell, whose parameters are called `symbols`.

    Raises:
        IdentificationError: no row depends on any parameter.
    """
    from scipy.linalg import qr

    norms = np.linalg.norm(Y, axis=0)
    live = np.flatnonzero(norms > NO_COLUMN * np.max(norms, initial=0.0))
    if not live.size:
        raise IdentificationError("the motion tells nothing: its torques depend on no dynamic parameter")
    scaled = Y[:, live] / norms[live]
    decomposed: Any = qr(np.linalg.qr(scaled, mode="r"), mode="economic", pivoting=True)
    _, triangle, pivots = decomposed
    rank = int(np.sum(np.abs(np.diag(triangle)) > DEPENDENT))
    rows = np.empty(
        (rank, live.size)
    )  # an orthogonal transformation of Y: columns depend on each other alike
    rows[:, pivots] = triangle[:rank]
    kept = _independent(rows)
    if len(kept) != rank:
        raise IdentificationError(
            f"the motion leaves open how many parameters it tells, {rank} or {len(kept)}: it moves too little"
        )
    K = np.zeros((rank, len(symbols)))
    coefficients = np.linalg.solve(rows[:, kept], rows)
    coefficients[np.abs(coefficients) <= DEPENDENT] = 0.0
    K[:, live] = _rounded(coefficients * (norms[live] / norms[live[kept]][:, None]))
    K[:, live[kept]] = np.eye(rank)
    columns = live[kept]
    sums = tuple(sum_text(row, symbols, int(first)) for row, first in zip(K, columns, strict=True))
    return BaseParameters(columns, K, sums, tuple(symbols[k] for k in columns))


def _independent(rows: Floats) -> list[int]:
    """The columns that are independent of those before them, by Gram and Schmidt, twice for rounding."""
    kept, basis = [], np.zeros((rows.shape[0], 0))
    for k in range(rows.shape[1]):
        left = rows[:, k]
        for _ in range(2):
            left = left - basis @ (basis.T @ left)
        size = np.linalg.norm(left)
        if size > DEPENDENT:
            kept.append(k)
            basis = np.column_stack((basis, left / size))
    return kept


def _rounded(coefficients: Floats) -> Floats:
    """Coefficients, those of few digits without what rounding added."""
    short = np.array([float(f"{c:.9g}") for c in coefficients.flat]).reshape(coefficients.shape)
    near = np.abs(coefficients - short) <= SAME_COEFFICIENT * np.maximum(1.0, np.abs(coefficients))
    return np.where(near, short, coefficients)


def sum_text(row: Floats, symbols: Sequence[str], first: int) -> str:
    """A sum of parameters as it is written, that of the column `first` before the others.

    Args:
        row: (p,) its coefficients, 1 in the column `first`.
        symbols: of the parameters.
        first: which of them comes first.
    """
    text = symbols[first]
    for k in np.flatnonzero(row).tolist():
        if k != first:
            factor = "" if abs(row[k]) == 1 else f"{abs(row[k]):.6g} "
            text += f" {'-' if row[k] < 0 else '+'} {factor}{symbols[k]}"
    return text


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
        p = len(self.parameters.values)
        q, qd, qdd = _random_motion(self.robot.n, p, seed=0)
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
