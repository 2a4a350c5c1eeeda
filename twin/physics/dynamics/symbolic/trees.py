"""Equations of motion of small trees as formulas, with revolute and prismatic joints, branches and couplings.

The poses of the links are products of transforms; `dynamics/symbolic/euler_lagrange.py` derives the
equations from them.  Geometry is converted to fractions and to exactly orthogonal rotations, so that equal
terms cancel exactly.
"""

from collections.abc import Mapping, Sequence
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
    written,
)
from twin.physics.dynamics.symbolic.trigonometric_sums import trigonometric_sum
from twin.physics.multibody.tree import Tree


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


def mass_symbols(tree: Tree) -> list[LinkMass]:
    """Return symbols for a tree's links: `mk`, `xk, yk, zk` (centre of mass), `Ixxk, ..., Iyzk` of link k."""
    links = []
    for k in range(1, tree.n + 1):
        m, x, y, z = (sp.Symbol(f"{letter}{k}", real=True) for letter in "mxyz")
        xx, yy, zz, xy, xz, yz = (
            sp.Symbol(f"I{pair}{k}", real=True) for pair in ("xx", "yy", "zz", "xy", "xz", "yz")
        )
        links.append(LinkMass(m, (x, y, z), [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
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
    from twin.physics.robot.loading.loading import load
    from twin.physics.robot.locking import locked

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
    from twin.physics.dynamics.symbolic.arm_kinematics import arm_kinematics, chain_kinematics
    from twin.physics.robot.loading.loading import load

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
