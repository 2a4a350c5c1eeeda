"""Kinematics of an arm with a spherical wrist as formulas of its Denavit-Hartenberg angles.

Products of the parallel axes 2 and 3 are contracted to cosines and sines of `theta2 + theta3`, as one writes
them by hand: `c23`.

Source: Norrlöf 1999, eq. (2.27), (2.42)-(2.46) and (2.51)-(2.58).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from twin.dynamics.symbolic.euler_lagrange import number
from twin.dynamics.symbolic.trigonometric_sums import trigonometric_sum
from twin.kinematics.dh_fit import family_dh
from twin.kinematics.inverse import arm_constants
from twin.robot.robot import DH, Robot

theta = sp.symbols("theta1:7", real=True)


@dataclass(frozen=True, eq=False)
class ArmKinematics:
    """Formulas in the symbols `c1, s1, ..., c6, s6, c23, s23`.

    Attributes:
        angles: (6,) DH angles as text, sums of the joint angles `q1` to `q6`.
        T03: (4, 4) pose of frame 3 in frame 0.
        R36: (3, 3) orientation of frame 6 in frame 3.
        T06: (4, 4) pose of frame 6 in frame 0.
        J_wrist: (3, 3) Jacobian of the wrist centre by theta1, theta2, theta3, in frame 0.
        determinant: factors of its determinant: the distance of the wrist centre from axis 1 in the arm's
            plane, which is 0 at a shoulder singularity, and one that is 0 if the arm is stretched or folded.
    """

    angles: tuple[str, ...]
    T03: sp.Matrix
    R36: sp.Matrix
    T06: sp.Matrix
    J_wrist: sp.Matrix
    determinant: tuple[Any, Any]

    def entries(self, quantity: str) -> list[tuple[str, Any]]:
        """Return names and formulas: of `T` the poses, of `J` the wrist centre's Jacobian."""
        matrices = (
            {"T03": self.T03, "R36": self.R36, "T06": self.T06} if quantity == "T" else {"Jw": self.J_wrist}
        )
        found = [
            (f"{name}_{i + 1}{j + 1}", matrix[i, j])
            for name, matrix in matrices.items()
            for i in range(3)
            for j in range(matrix.cols)
        ]
        if quantity == "J":
            found.append(("det", self.determinant[0] * self.determinant[1]))
        return found


def arm_kinematics(robot: Robot) -> ArmKinematics:
    """Derive the formulas of an arm with a spherical wrist.

    Raises:
        RobotError: the arm is outside the family of `twin.inverse_kinematics`.
    """
    arm_constants(robot)
    dh, S = family_dh(robot)
    A = [_transform(dh, row) for row in range(6)]
    T13 = (A[1] * A[2]).applyfunc(trigonometric_sum)
    T03, T36 = A[0] * T13, A[3] * A[4] * A[5]
    wrist = T13 * sp.Matrix([0, 0, number(dh.d[3]), 1])  # in frame 1
    across = _screw(dh, 0) * wrist  # in the plane of the arm: forward, lateral, up
    X, Z = across[0], across[2]
    planar = trigonometric_sum(
        sp.diff(X, theta[1]) * sp.diff(Z, theta[2]) - sp.diff(X, theta[2]) * sp.diff(Z, theta[1])
    )
    J = (A[0] * wrist)[:3, :].jacobian(theta[:3])
    T03, T36, J = (matrix.applyfunc(_short) for matrix in (T03, T36, J))
    determinant = (_short(-X), _short(sp.factor_terms(planar)))
    return ArmKinematics(_angles(S, dh.theta0), T03, T36[:3, :3], T03 * T36, J, determinant)


def _transform(dh: DH, row: int) -> sp.Matrix:
    """Return `A = Rz(theta) Tz(d) Tx(a) Rx(alpha)` of one row."""
    c, s = sp.cos(theta[row]), sp.sin(theta[row])
    return sp.Matrix([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) * _screw(dh, row)


def _screw(dh: DH, row: int) -> sp.Matrix:
    """Return the constant part of a row, `Tz(d) Tx(a) Rx(alpha)`."""
    a, d = number(dh.a[row]), number(dh.d[row])
    c, s = (number(np.round(value, 15)) for value in (np.cos(dh.alpha[row]), np.sin(dh.alpha[row])))
    return sp.Matrix([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, d], [0, 0, 0, 1]])


def _short(expression: Any) -> Any:
    """Return a formula with `c1` for `cos(theta1)` and `c23` for `cos(theta2 + theta3)`."""
    waves = sp.sympify(expression).atoms(sp.cos, sp.sin)
    return expression.xreplace({wave: _symbol(wave) for wave in waves})


def _symbol(wave: Any) -> sp.Symbol:
    numbers = sorted(str(symbol).removeprefix("theta") for symbol in wave.args[0].free_symbols)
    return sp.Symbol(f"{'c' if isinstance(wave, sp.cos) else 's'}{''.join(numbers)}", real=True)


def _angles(S: np.ndarray, theta0: np.ndarray) -> tuple[str, ...]:
    """Return each DH angle as a sum of joint angles, in [rad]."""
    q = sp.symbols("q1:7")
    sums = [sum(int(weight) * symbol for weight, symbol in zip(row, q, strict=True)) for row in S]
    quarters = theta0 / (np.pi / 2)
    exact = [
        sp.Rational(round(turns)) * sp.pi / 2 if abs(turns - round(turns)) < 1e-12 else sp.Float(angle, 12)
        for turns, angle in zip(quarters, theta0, strict=True)
    ]
    return tuple(str(part + offset) for part, offset in zip(sums, exact, strict=True))
