"""Kinematics of an arm and equations of motion of a small tree as formulas.

The kinematics are those of the Denavit-Hartenberg angles.  Products of parallel axes are contracted to
cosines and sines of sums of angles, as one writes them by hand: `c23` for `cos(theta2 + theta3)`.  An arm
with a spherical wrist is split at it; of any other arm the matrix of each joint is given, and their product.

Source: Norrlöf 1999, eq. (2.27), (2.42)-(2.46) and (2.51)-(2.58); Ljubljana lab manual, eq. (1.1), (1.2),
(2.14)-(2.19).

A tree has revolute and prismatic joints, branches and couplings.  The poses of the links are products of
transforms; `dynamics/symbolic/euler_lagrange.py` derives the equations from them.  Geometry is converted to
fractions and to exactly orthogonal rotations, so that equal terms cancel exactly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import sympy as sp

from twin.base.errors import RobotError, UnknownNameError
from twin.physics.dynamics.symbolic.euler_lagrange import (
    Body,
    SymbolicDynamics,
    coordinates,
    euler_lagrange,
    exact_rotation,
    number,
    rotation_about,
    rotation_from_z,
    trigonometric_sum,
    written,
)
from twin.physics.kinematics.dh_fit import family_dh
from twin.physics.kinematics.inverse import arm_constants
from twin.physics.multibody.tree import Tree
from twin.physics.robot.dh_tables import dh_turn, link_tail
from twin.physics.robot.robot import DH, Robot

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
    A = [_turn(theta[row]) * _screw(dh, row) for row in range(6)]
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
        >>> from twin.physics.dynamics.symbolic.trees import chain_kinematics
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


class LinkMass(NamedTuple):
    """Mass properties of a link, numbers or symbols, in the axes of the link's frame.

    Attributes:
        mass: mass, in [kg].
        com: (3,) centre of mass relative to the frame's origin, in [m].
        inertia: (3, 3) inertia tensor about the centre of mass, in [kg m^2].
    """

    mass: Any
    com: Sequence[Any]
    inertia: Sequence[Sequence[Any]]


def tree_dynamics(
    tree: Tree,
    G: np.ndarray | None = None,
    g0: np.ndarray | None = None,
    links: Sequence[LinkMass] | None = None,
    gravity: Sequence[Any] = (0, 0, -9.81),
) -> SymbolicDynamics:
    """Derive the equations of motion of a tree, with each entry a sum of cosines and sines.

    The derivation takes a second for up to three joints with axes at right angles.  For axes in general
    directions the number of terms grows tenfold with each joint.

    Args:
        tree: tree of revolute or prismatic joints.
        G: (n_tree, n) matrix of the embedding `q_tree = G q + g0`; by default the identity.
        g0: (n_tree,) offset of the embedding; by default zero.
        links: mass properties of each link; by default the numbers of the tree.
        gravity: (3,) acceleration of gravity in base axes, numbers or symbols, in [m/s^2].
    """
    G = np.eye(tree.n) if G is None else np.asarray(G)
    g0 = np.zeros(tree.n) if g0 is None else np.asarray(g0)
    links = mass_properties(tree) if links is None else links
    if G.ndim != 2 or len(G) != tree.n or g0.shape != (tree.n,) or len(links) != tree.n:
        raise ValueError(
            f"expected G ({tree.n}, n), g0 ({tree.n},) and {tree.n} links, "
            f"got {G.shape}, {g0.shape} and {len(links)} links"
        )
    q, qd = coordinates(G.shape[1])
    bodies: list[Body] = []
    frames: list[tuple[Any, Any]] = []
    for i, link in enumerate(links):
        position = number(g0[i]) + sum(number(w) * symbol for w, symbol in zip(G[i], q, strict=True))
        R, p = frames[tree.parents[i]] if tree.parents[i] >= 0 else (sp.eye(3), sp.zeros(3, 1))
        T = tree.T_parent_joint[i]
        p = p + R * sp.Matrix([number(value) for value in T[:3, 3]])
        R = R * exact_rotation(T[:3, :3])
        to_axis = rotation_from_z(tree.axes[i])
        if tree.kinds[i] == "prismatic":
            p = p + R * to_axis * sp.Matrix([0, 0, position])
        else:
            R = R * to_axis * rotation_about((0, 0, 1), position) * to_axis.T
        R, p = R.applyfunc(trigonometric_sum), p.applyfunc(trigonometric_sum)
        frames.append((R, p))
        com, inertia = sp.Matrix(link.com).applyfunc(number), sp.Matrix(link.inertia).applyfunc(number)
        bodies.append(Body(number(link.mass), p + R * com, R, inertia))
    exact = [number(value) for value in gravity]
    return euler_lagrange(bodies, q, qd, exact, trigonometric_sum, trigonometric_sum)


def mass_properties(tree: Tree) -> list[LinkMass]:
    """Return the mass properties of a tree's links as numbers."""
    links = []
    for row in tree.inertias:
        m, hx, hy, hz, xx, yy, zz, xy, xz, yz = (number(value) for value in row)
        com = sp.Matrix([hx, hy, hz]) / m if m else sp.zeros(3, 1)
        about_origin = sp.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        inertia = about_origin - m * (com.dot(com) * sp.eye(3) - com * com.T)
        links.append(LinkMass(m, list(com), inertia.tolist()))
    return links


Y, Z = (0, 1, 0), (0, 0, 1)
MODELS = ("main_axes", "two_link")
MAX_JOINTS = 3


def formulas(
    name: str,
    quantity: str = "tau",
    style: Literal["text", "latex"] = "text",
    axes: int | None = None,
    axis: int | None = None,
    **given: Any,
) -> str:
    """Return formulas of a mechanism, one entry per line.

    Args:
        name: `"main_axes"` (the IRB 1400's first three axes), `"two_link"`, or what `twin.load` accepts.
        quantity: `"tau"` for D, C and g of `D qdd + C qd + g = tau`; `"M"`, `"C"` or `"g"` for one of them;
            `"T"` for the matrix of each joint and the pose of the flange, and `"J"` for the flange's
            Jacobian; for an arm with a spherical wrist instead the poses of its frames 3 and 6 and the
            orientation of the wrist, and the Jacobian of the wrist centre and its determinant.
        style: `"text"` or `"latex"`.
        axes: number of axes that move, the others are locked; `None` for all.
        axis: row of the equations, from 1; `None` for all.
        given: further arguments of `twin.load`, as `locked`.

    Raises:
        UnknownNameError: there is no such robot, axis or quantity, or the formulas would be too long.
        RobotError: the file is malformed, or the arm has no such formulas.
    """
    if quantity in ("T", "J"):
        return _kinematic_formulas(name, quantity, style, given)
    parts = {"tau": "DCg", "M": "D", "C": "C", "g": "g"}.get(quantity)
    if parts is None:
        raise UnknownNameError(
            f"no sums for {quantity!r}: expected tau, M, C, g, T or J, or code (--format c)"
        )
    dynamics = _dynamics(name, axes, given)
    n = len(dynamics.q)
    if axis is not None and not 1 <= axis <= n:
        raise UnknownNameError(f"there is no axis {axis}: expected 1 to {n}")
    lines = []
    for array, index, value in dynamics.entries():
        if array in parts and (axis is None or axis - 1 in (index[:1] if array != "D" else index)):
            lines.append(written(array.lower(), index, value, style))
    return "".join(lines)


def _dynamics(name: str, axes: int | None, given: Mapping[str, Any]) -> SymbolicDynamics:
    """Return the equations of motion of a mechanism of at most `MAX_JOINTS` moving joints."""
    if name in MODELS:
        if axes is not None or given.get("locked"):
            raise UnknownNameError(f"{name} has no axes to lock: expected the name or file of a robot")
        return {"main_axes": main_axes_dynamics, "two_link": two_link_dynamics}[name]()
    from twin.physics.robot.loading import load
    from twin.physics.robot.loops import locked

    try:
        robot = load(name, **given)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error}; and {', '.join(MODELS)}") from None
    robot.require_inertia()
    robot = robot if axes is None else locked(robot, axes)
    if robot.n > MAX_JOINTS:
        raise UnknownNameError(
            f"the sums of {robot.n} axes would be too long to read: lock the outer ones, as "
            f"--axes {MAX_JOINTS}, or write code, as --format c"
        )
    return tree_dynamics(robot.tree, robot.embedding, robot.embedding_offset, gravity=robot.gravity.tolist())


def _kinematic_formulas(
    name: str, quantity: str, style: Literal["text", "latex"], given: Mapping[str, Any]
) -> str:
    """Return the formulas of poses, or of the wrist centre's Jacobian, after what their symbols mean."""
    from twin.physics.robot.loading import load

    if name == "main_axes":
        raise UnknownNameError(f"{name} has only D, C and g: expected the name or file of a robot")
    robot = load(name, **given)
    try:
        arm = arm_kinematics(robot)
    except RobotError:  # no spherical wrist
        arm = chain_kinematics(robot)
    comment = "%" if style == "latex" else "#"
    lines = [f"{comment} {line}\n" for line in arm.legend()]
    for entry, value in arm.entries(quantity):
        matrix, _, place = entry.rpartition("_") if entry[-1].isdigit() else (entry, "", "")
        index = [int(digit) - 1 for digit in place]
        lines.append(written(f"{matrix}_" if style == "text" and place else matrix, index, value, style))
    return "".join(lines)


@lru_cache(maxsize=1)
def main_axes_dynamics() -> SymbolicDynamics:
    """Return the equations of motion of the IRB 1400's first three axes, from the report's link poses.

    Link 1 is the column, 2 the lower arm, 3 the upper arm with everything mounted on it, 4 the parallel rod
    and 5 the lever of motor 3.  `q2` and `q3` are absolute angles: the lower arm against the vertical, the
    upper arm against the horizontal.  The simplifications are those of the report: no centre of mass has a y
    component, and links 2 to 5 have a moment of inertia only about their y axis.

    Source: Norrlöf 1999, eq. (3.47)-(3.54).
    """
    q, qd = coordinates(3)
    I1, I2, I3, I4, I5 = sp.symbols("I1:6", real=True)
    m2, m3, m4, m5 = sp.symbols("m2:6", real=True)
    l1x, l1z, l2z, l5x, gz = sp.symbols("l1x l1z l2z l5x gz", real=True)
    rc2, rc3, rc4, rc5 = (
        sp.Matrix([sp.Symbol(f"rc{i}x", real=True), 0, sp.Symbol(f"rc{i}z", real=True)]) for i in (2, 3, 4, 5)
    )
    column = rotation_about(Z, q[0])
    lower, upper = column * rotation_about(Y, q[1]), column * rotation_about(Y, q[2])
    l1 = column * sp.Matrix([l1x, 0, l1z])  # (3.48)
    bodies = [
        Body(sp.Integer(0), sp.zeros(3, 1), column, sp.diag(0, 0, I1)),  # (3.47)
        Body(m2, l1 + lower * rc2, lower, sp.diag(0, I2, 0)),  # (3.49)
        Body(m3, l1 + lower * sp.Matrix([0, 0, l2z]) + upper * rc3, upper, sp.diag(0, I3, 0)),  # (3.50)
        Body(m4, l1 + upper * sp.Matrix([l5x, 0, 0]) + lower * rc4, lower, sp.diag(0, I4, 0)),  # (3.51)
        Body(m5, l1 + upper * rc5, upper, sp.diag(0, I5, 0)),  # (3.52)
    ]
    return euler_lagrange(bodies, q, qd, (0, 0, -gz))


@lru_cache(maxsize=1)
def two_link_dynamics() -> SymbolicDynamics:
    """Return the equations of motion of a planar arm of two links in the vertical plane.

    `q2` is relative to the first link.  Both joints turn about z; at zero the arm lies along x, and gravity
    `gy` acts along -y.  `l1` is the length of the first link, `lc1`, `lc2` are the distances of the centres
    of mass from their joints, `I1`, `I2` the moments of inertia about the centres of mass.

    Source: Spong & Vidyasagar 1989, the planar elbow manipulator.  Aliaga 2019 tests its computed torque
    controller first on such an arm (codes 14 to 16), but does not print its equations.
    """
    q, qd = coordinates(2)
    m1, m2, l1, lc1, lc2, I1, I2, gy = sp.symbols("m1 m2 l1 lc1 lc2 I1 I2 gy", real=True)
    first, second = rotation_about(Z, q[0]), rotation_about(Z, q[0] + q[1])
    x = sp.Matrix([1, 0, 0])
    bodies = [
        Body(m1, lc1 * first * x, first, sp.diag(0, 0, I1)),
        Body(m2, l1 * first * x + lc2 * second * x, second, sp.diag(0, 0, I2)),
    ]
    return euler_lagrange(bodies, q, qd, (0, -gy, 0))
