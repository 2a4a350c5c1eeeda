"""What there are formulas for: the IRB 1400's main axes, a two-link arm, and any small URDF."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from twin.dynamics.symbolic.euler_lagrange import (
    Body,
    SymbolicDynamics,
    coordinates,
    euler_lagrange,
    rotation_about,
)
from twin.dynamics.symbolic.trees import tree_dynamics
from twin.errors import UnknownNameError

Y, Z = (0, 1, 0), (0, 0, 1)
MODELS = ("main_axes", "two_link")
LARGEST = 3


def formulas(name: str) -> str:
    """The equations of motion of a mechanism as text, one entry a line.

    Args:
        name: `"main_axes"` (the IRB 1400's first three axes), `"two_link"`, or the path of a URDF with at
            most three moving joints.

    Raises:
        UnknownNameError: it is none of these.
        RobotError: the URDF is missing or malformed.
    """
    if name in MODELS:
        return {"main_axes": main_axes_dynamics, "two_link": two_link_dynamics}[name]().formulas()
    valid = f"{', '.join(MODELS)}, or the path of a .urdf with at most {LARGEST} moving joints"
    if not str(name).endswith(".urdf"):
        raise UnknownNameError(f"no formulas for {name!r}: there are those of {valid}")
    from twin import load

    robot = load(name)
    if robot.n > LARGEST:
        raise UnknownNameError(f"no formulas for {name!r} of {robot.n} joints: there are those of {valid}")
    return tree_dynamics(
        robot.tree, robot.embedding, robot.embedding_offset, gravity=robot.gravity.tolist()
    ).formulas()


@lru_cache(maxsize=1)
def main_axes_dynamics() -> SymbolicDynamics:
    """The first three axes of the IRB 1400, from where the report says that its links are.

    Link 1 is the column, 2 the lower arm, 3 the upper arm with all that it carries, 4 the parallel rod and
    5 the lever of motor 3.  `q2` and `q3` are absolute: the lower arm against the vertical, the upper arm
    against the horizontal.  The report's simplifications: no link's centre of mass has a y component, and
    links 2 to 5 have a moment of inertia about their y axis alone.  The symbols are the fields of
    `twin.dynamics.main_axes.MainAxes`.

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
    """A planar arm of two links in the vertical plane, `q2` relative to the first link.

    Both joints turn about z; at zero the arm lies along x, and gravity `gy` acts along -y.  `l1` is the
    length of the first link, `lc1`, `lc2` the distances of the centres of mass from their joints, `I1`, `I2`
    the moments about the centres of mass.

    Source: Spong & Vidyasagar 1989, the planar elbow manipulator.  Aliaga 2019 tries its computed torque
    controller on such an arm first (codes 14 to 16), but its equations are not in print.
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
