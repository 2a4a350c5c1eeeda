"""Kinematics of an arm as formulas of its Denavit-Hartenberg angles.

Products of parallel axes are contracted to cosines and sines of sums of angles, as one writes them by hand:
`c23` for `cos(theta2 + theta3)`.  An arm with a spherical wrist is split at it; of any other arm the matrix
of each joint is given, and their product.

Source: Norrlöf 1999, eq. (2.27), (2.42)-(2.46) and (2.51)-(2.58); Ljubljana lab manual, eq. (1.1), (1.2),
(2.14)-(2.19).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from twin.physics.dynamics.symbolic.euler_lagrange import number, rotation_from_z
from twin.physics.dynamics.symbolic.trigonometric_sums import trigonometric_sum
from twin.physics.kinematics.dh_fit import family_dh
from twin.physics.kinematics.inverse import arm_constants
from twin.physics.robot.dh import DH
from twin.physics.robot.loading.dh_tables import dh_turn, link_tail
from twin.physics.robot.robot import Robot

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

    def legend(self) -> list[str]:
        """Return what the symbols mean, by lines."""
        angles = [f"theta{i + 1} = {angle}" for i, angle in enumerate(self.angles)]
        return [*angles, "c1 = cos(theta1), s1 = sin(theta1), ..., c23 = cos(theta2 + theta3)"]

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
    return ArmKinematics(_sums(S, dh.theta0), T03, T36[:3, :3], T03 * T36, J, determinant)


class _Joint(NamedTuple):
    """Joint that turns about z or slides along it, between two constant poses (4, 4)."""

    variable: sp.Symbol
    slides: bool
    before: Any
    after: Any

    @property
    def A(self) -> Any:
        """Pose (4, 4) of the frame behind the joint in that before it."""
        return self.before * (_slide if self.slides else _turn)(self.variable) * self.after


@dataclass(frozen=True, eq=False)
class ChainKinematics:
    """Formulas of any arm, in `c1, s1, c12, s12, ...` and the positions `d2` of joints that slide.

    Attributes:
        meanings: (n,) `theta1 = q1 - pi/2` and the like.
        A: (n,) matrices (4, 4) of the joints.
        T: (4, 4) pose of the flange in the base frame, their product.
        J: (6, n) Jacobian of the flange, `[v; omega]` in the base frame, by these variables.
    """

    meanings: tuple[str, ...]
    A: tuple[Any, ...]
    T: Any
    J: Any

    def legend(self) -> list[str]:
        """Return what the symbols mean, by lines."""
        symbols = {str(symbol) for matrix in (*self.A, self.T) for symbol in matrix.free_symbols}
        angles = sorted({name[1:] for name in symbols if name[0] in "cs"}, key=lambda name: (len(name), name))
        shown = angles[:1] + (angles[-1:] if len(angles) > 1 else [])
        waves = [f"c{one} = cos({' + '.join(f'theta{digit}' for digit in one)})" for one in shown]
        return [*self.meanings, *([f"{', '.join(waves)}, s the sine"] if waves else [])]

    def entries(self, quantity: str) -> list[tuple[str, Any]]:
        """Return names and formulas: of `T` all matrices `A` and the pose, of `J` the Jacobian."""
        n = len(self.A)
        poses = [*((f"A{i}", A) for i, A in enumerate(self.A, start=1)), (f"T0{n}", self.T)]
        matrices = [(name, matrix[:3, :]) for name, matrix in poses] if quantity == "T" else [("J", self.J)]
        return [
            (f"{name}_{i + 1}{j + 1}", matrix[i, j])
            for name, matrix in matrices
            for i in range(matrix.rows)
            for j in range(matrix.cols)
        ]


def chain_kinematics(robot: Robot) -> ChainKinematics:
    """Derive the formulas of any arm, from its DH table or, without one, from the joints of its URDF.

    Example:
        >>> import twin
        >>> from twin.physics.dynamics.symbolic.arm_kinematics import chain_kinematics
        >>> formula = chain_kinematics(twin.load("figure_7_1"))
        >>> formula.meanings[1], formula.T[0, 3], formula.J[0, 0]
        ('d2 = q2 + 0.4', c1*d3, -d3*s1)
    """
    joints, sums = (_tree_joints if robot.dh is None else _table_joints)(robot)
    T, columns = _product(joints), []
    for i, joint in enumerate(joints):
        axis = (_product(joints[:i]) * joint.before)[:3, 2]
        columns.append(T[:3, 3].diff(joint.variable).col_join(sp.zeros(3, 1) if joint.slides else axis))
    return ChainKinematics(
        tuple(f"{joint.variable} = {meaning}" for joint, meaning in zip(joints, sums, strict=True)),
        tuple(joint.A.applyfunc(_short) for joint in joints),
        T.applyfunc(_short),
        sp.Matrix.hstack(*columns).applyfunc(_short),
    )


def _table_joints(robot: Robot) -> tuple[list[_Joint], tuple[str, ...]]:
    """Return the joints by the rows of the DH table, and their variables as sums of joint positions."""
    dh, joints = robot.dh, []
    assert dh is not None
    slides = np.array([kind == "prismatic" for kind in robot.joint_kinds])
    for row, slide in enumerate(slides):
        before = dh_turn(dh.theta0[row]) if slide else np.eye(4)
        after = link_tail(0.0 if slide else dh.d[row], dh.a[row], dh.alpha[row])
        joints.append(_joint(row, slide, before, after))
    return joints, _sums(robot.dh_coupling + np.diag(slides), np.where(slides, dh.d, dh.theta0))


def _tree_joints(robot: Robot) -> tuple[list[_Joint], tuple[str, ...]]:
    """Return the joints of the tree from base to flange, and their variables as sums of joint positions."""
    tree, chain, joints = robot.tree, [robot.tree.flange_joint], []
    while tree.parents[chain[0]] >= 0:
        chain.insert(0, tree.parents[chain[0]])
    for row, joint in enumerate(chain):
        along = np.eye(4)
        along[:3, :3] = np.array(rotation_from_z(tree.axes[joint]), dtype=float)
        after = along.T @ (tree.T_joint_flange if joint == chain[-1] else np.eye(4))
        slides = tree.kinds[joint] == "prismatic"
        joints.append(_joint(row, slides, tree.T_parent_joint[joint] @ along, after))
    return joints, _sums(robot.embedding[chain], robot.embedding_offset[chain])


def _joint(row: int, slides: bool, before: np.ndarray, after: np.ndarray) -> _Joint:
    """Return the joint of a row, counted from 0, with constants as fractions of 15 digits."""
    name = f"{'d' if slides else 'theta'}{row + 1}"
    poses = (sp.Matrix(4, 4, lambda i, j, T=T: number(round(float(T[i, j]), 15))) for T in (before, after))
    return _Joint(sp.Symbol(name, real=True), slides, *poses)


def _product(joints: Sequence[_Joint]) -> Any:
    """Return the product (4, 4) of the joints' matrices, with the angles of parallel axes added."""
    total = group = sp.eye(4)
    for before, joint in zip((None, *joints), joints, strict=False):
        if before is not None and (before.after * joint.before)[:3, 2] != sp.Matrix([0, 0, 1]):
            total, group = total * group, sp.eye(4)
        group = (group * joint.A).applyfunc(trigonometric_sum)
    return total * group


def _turn(angle: Any) -> Any:
    """Return `Rz(angle)` (4, 4)."""
    c, s = sp.cos(angle), sp.sin(angle)
    return sp.Matrix([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def _slide(distance: Any) -> Any:
    """Return `Tz(distance)` (4, 4)."""
    T = sp.eye(4)
    T[2, 3] = distance
    return T


def _transform(dh: DH, row: int) -> sp.Matrix:
    """Return `A = Rz(theta) Tz(d) Tx(a) Rx(alpha)` of one row."""
    return _turn(theta[row]) * _screw(dh, row)


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


def _sums(S: np.ndarray, offsets: np.ndarray) -> tuple[str, ...]:
    """Return `S q + offsets` as sums of joint positions, with offsets in [rad] as fractions of pi."""
    q = sp.symbols(f"q1:{S.shape[1] + 1}")
    sums = [sum(number(weight) * symbol for weight, symbol in zip(row, q, strict=True)) for row in S]
    quarters = offsets / (np.pi / 2)
    exact = [
        sp.Rational(round(turns)) * sp.pi / 2 if abs(turns - round(turns)) < 1e-12 else sp.Float(angle, 12)
        for turns, angle in zip(quarters, offsets, strict=True)
    ]
    return tuple(str(part + offset) for part, offset in zip(sums, exact, strict=True))
