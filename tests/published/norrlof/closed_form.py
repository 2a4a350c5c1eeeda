"""The IRB 1400's first three axes in closed form: D, C and g of Norrlöf's report, its misprints corrected.

    D(q) qdd + C(q, qd) qd + g(q) = tau                       Norrlöf 1999, eq. (3.55), (3.58)-(3.60)

`q2` and `q3` are absolute: the lower arm against the vertical, the upper arm against the horizontal.  Link 1
is the column, 2 the lower arm, 3 the upper arm, 4 the parallel rod, 5 the lever of motor 3.  Corrections
concern d11 (the term of link 5), c11, c23 and c32 (printed as zero) and g2 (a sign).  The printed formulas
also omit `rc4x`, which is included here.  `main_axes_robot` describes the report's simplifications.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from twin.physics.multibody.tree import Tree, frozen, inertial_parameters, transformed_parameters
from twin.physics.robot.robot import Robot


@dataclass(frozen=True)
class MainAxes:
    """Parameters of the report's model; lengths in the plane of the arm, in [m].

    Attributes:
        I1: moment of inertia of link 1 about axis 1, in [kg m^2].
        I2, I3, I4, I5: moments of inertia of links 2 to 5 about y, at their centres of mass, in [kg m^2].
        m2, m3, m4, m5: masses of links 2 to 5, in [kg].
        l1x: distance from axis 1 to axis 2.
        l2z: distance from axis 2 to axis 3.
        l5x: distance from axis 2 to the rod's eye in the lever, negative behind the arm.
        rc2x, rc2z: centre of mass of the lower arm, from axis 2.
        rc3x, rc3z: centre of mass of the upper arm, from axis 3.
        rc4x, rc4z: centre of mass of the rod, from its eye in the lever.
        rc5x, rc5z: centre of mass of the lever, from axis 2.
        gz: downward acceleration of gravity, in [m/s^2].
    """

    I1: float
    I2: float
    I3: float
    I4: float
    I5: float
    m2: float
    m3: float
    m4: float
    m5: float
    l1x: float
    l2z: float
    l5x: float
    rc2x: float
    rc2z: float
    rc3x: float
    rc3z: float
    rc4x: float
    rc4z: float
    rc5x: float
    rc5z: float
    gz: float = 9.81


def mass_matrix(p: MainAxes, q: ArrayLike) -> np.ndarray:
    """Compute the inertia matrix D.

    Args:
        p: parameters of the model.
        q: joint angles (..., 3), in [rad].

    Returns:
        Inertia matrix (..., 3, 3), in [kg m^2].

    Source: Norrlöf 1999, eq. (3.55), in d11 the term of m5 corrected: it depends on q3 alone.
    """
    q = np.asarray(q)
    P2, P3, P4, P5 = _reaches(p, q)
    difference = q[..., 1] - q[..., 2]
    D = np.zeros((*q.shape, 3))
    D[..., 0, 0] = p.I1 + p.m2 * P2**2 + p.m3 * P3**2 + p.m4 * P4**2 + p.m5 * P5**2
    D[..., 1, 1] = p.I2 + p.I4 + p.m2 * (p.rc2x**2 + p.rc2z**2) + p.m3 * p.l2z**2
    D[..., 1, 1] += p.m4 * (p.rc4x**2 + p.rc4z**2)
    D[..., 2, 2] = p.I3 + p.I5 + p.m3 * (p.rc3x**2 + p.rc3z**2) + p.m4 * p.l5x**2
    D[..., 2, 2] += p.m5 * (p.rc5x**2 + p.rc5z**2)
    along, across = _couplings(p)
    D[..., 1, 2] = D[..., 2, 1] = along * np.cos(difference) + across * np.sin(difference)
    return D


def coriolis_matrix(p: MainAxes, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
    """Compute the matrix C of Christoffel symbols, for which `Ddot - 2 C` is skew-symmetric.

    Args:
        p: parameters of the model.
        q: joint angles (..., 3), in [rad].
        qd: joint velocities (..., 3), in [rad/s].

    Returns:
        Coriolis matrix (..., 3, 3), in [kg m^2/s].

    Source: Norrlöf 1999, eq. (3.58), with c11, c23 and c32, which are printed as zero.
    """
    q, qd = np.broadcast_arrays(q, qd)
    s2, s3, c2, c3 = np.sin(q[..., 1]), np.sin(q[..., 2]), np.cos(q[..., 1]), np.cos(q[..., 2])
    P2, P3, P4, P5 = _reaches(p, q)
    # Half the derivatives of d11 by q2 and q3, and the derivative of d23 by q2.
    h2 = p.m2 * P2 * (p.rc2z * c2 - p.rc2x * s2) + p.m3 * P3 * p.l2z * c2
    h2 = h2 + p.m4 * P4 * (p.rc4z * c2 - p.rc4x * s2)
    h3 = p.m3 * P3 * (p.rc3z * c3 - p.rc3x * s3) - p.m4 * P4 * p.l5x * s3
    h3 = h3 + p.m5 * P5 * (p.rc5z * c3 - p.rc5x * s3)
    along, across = _couplings(p)
    difference = q[..., 1] - q[..., 2]
    kappa = across * np.cos(difference) - along * np.sin(difference)
    C = np.zeros((*q.shape, 3))
    C[..., 0, 0] = h2 * qd[..., 1] + h3 * qd[..., 2]
    C[..., 0, 1], C[..., 0, 2] = h2 * qd[..., 0], h3 * qd[..., 0]
    C[..., 1, 0], C[..., 2, 0] = -C[..., 0, 1], -C[..., 0, 2]
    C[..., 1, 2], C[..., 2, 1] = -kappa * qd[..., 2], kappa * qd[..., 1]
    return C


def gravity_torque(p: MainAxes, q: ArrayLike) -> np.ndarray:
    """Compute the torques g that balance gravity.

    Args:
        p: parameters of the model.
        q: joint angles (..., 3), in [rad].

    Returns:
        Gravity torques (..., 3), in [N m].

    Source: Norrlöf 1999, eq. (3.59), in g2 the sign of m3 l2z corrected.
    """
    q = np.asarray(q)
    s2, s3, c2, c3 = np.sin(q[..., 1]), np.sin(q[..., 2]), np.cos(q[..., 1]), np.cos(q[..., 2])
    g = np.zeros(q.shape)
    g[..., 1] = -(p.m2 * p.rc2z + p.m3 * p.l2z + p.m4 * p.rc4z) * s2 - (p.m2 * p.rc2x + p.m4 * p.rc4x) * c2
    g[..., 2] = -(p.m3 * p.rc3z + p.m5 * p.rc5z) * s3 - (p.m3 * p.rc3x + p.m4 * p.l5x + p.m5 * p.rc5x) * c3
    return p.gz * g


def _reaches(p: MainAxes, q: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the signed distances of the centres of mass of links 2 to 5 from axis 1."""
    s2, s3, c2, c3 = np.sin(q[..., 1]), np.sin(q[..., 2]), np.cos(q[..., 1]), np.cos(q[..., 2])
    return (
        p.l1x + p.rc2x * c2 + p.rc2z * s2,
        p.l1x + p.l2z * s2 + p.rc3x * c3 + p.rc3z * s3,
        p.l1x + p.l5x * c3 + p.rc4x * c2 + p.rc4z * s2,
        p.l1x + p.rc5x * c3 + p.rc5z * s3,
    )


def _couplings(p: MainAxes) -> tuple[float, float]:
    """Return the coefficients of the cosine and the sine of `q2 - q3` in d23."""
    return p.m3 * p.l2z * p.rc3z + p.m4 * p.l5x * p.rc4x, p.m3 * p.l2z * p.rc3x + p.m4 * p.l5x * p.rc4z


JOINTS = ("joint_1", "joint_2", "joint_elbow", "joint_3", "joint_rod")
"""Joints of the column, the lower arm, the upper arm, the lever and the rod."""
AXES = ((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (0, 1, 0))
PARENTS = (-1, 0, 1, 0, 3)
EMBEDDING = ((1, 0, 0), (0, 1, 0), (0, -1, 1), (0, 0, 1), (0, 1, -1))


def main_axes_parameters(robot: Robot) -> MainAxes:
    """Return the report's parameters of the IRB 1400, standing upright, simplified by `main_axes_robot`."""
    tree = robot.tree
    where = [tree.names.index(name) for name in JOINTS]
    merged = tree.inertias.copy()
    for joint in reversed(range(tree.n)):
        if joint not in where and tree.parents[joint] >= 0:
            merged[tree.parents[joint]] += transformed_parameters(merged[joint], tree.T_parent_joint[joint])
    column, *arms = merged[where]
    (m2, x2, z2, I2), (m3, x3, z3, I3), (m5, x5, z5, I5), (m4, x4, z4, I4) = map(_planar, arms)
    at = tree.T_parent_joint[where, :3, 3]
    return MainAxes(
        *(float(column[6]), I2, I3, I4, I5, m2, m3, m4, m5),
        *(float(at[1, 0]), float(at[2, 2]), float(at[4, 0]), x2, z2, x3, z3, x4, z4, x5, z5),
        gz=-float(robot.gravity[2]),
    )


def main_axes_tree(p: MainAxes) -> Tree:
    """Return the links that the parameters describe, with the origin of the base at the height of axis 2."""
    T = np.tile(np.eye(4), (5, 1, 1))
    T[1, 0, 3] = T[3, 0, 3] = p.l1x
    T[2, 2, 3], T[4, 0, 3] = p.l2z, p.l5x
    bodies = [inertial_parameters(0.0, np.zeros(3), np.diag([0, 0, p.I1]))]
    for k in (2, 3, 5, 4):  # the lever comes before the rod
        m, x, z, Iyy = (getattr(p, name) for name in (f"m{k}", f"rc{k}x", f"rc{k}z", f"I{k}"))
        bodies.append(inertial_parameters(m, np.array([x, 0, z]), np.diag([0, Iyy, 0])))
    return Tree(
        names=JOINTS,
        links=JOINTS,
        kinds=("revolute",) * 5,
        parents=PARENTS,
        T_parent_joint=frozen(T),
        axes=frozen(AXES),
        inertias=frozen(bodies),
        flange_joint=2,
        T_joint_flange=frozen(np.eye(4)),
    )


def main_axes_robot(robot: Robot) -> Robot:
    """Return the robot of three joints that the report's formulas describe exactly.

    The wrist joints are fixed at zero, and the wrist with its payload becomes part of the upper arm.  Then
    the report's simplifications apply.  Every centre of mass is moved into the plane y = 0 of the arm, and
    that of the column onto axis 1.  Links 2 to 5 have only the moment Iyy about their centres of mass, and
    the column has only its moment about axis 1.  The drives are ideal.
    """
    passive = [robot.passive.index(robot.tree.names.index(JOINTS[i])) for i in (2, 4)]
    return replace(
        robot,
        name=f"{robot.name}, main axes",
        tree=main_axes_tree(main_axes_parameters(robot)),
        **{name: frozen(getattr(robot, name)[:3]) for name in ("q_min", "q_max", "qd_max", "tau_max")},
        **{name: frozen(getattr(robot, name)[passive]) for name in ("passive_min", "passive_max")},
        **dict.fromkeys(("dh", "payload", "bare", "drives")),
        **{name: MappingProxyType({}) for name in ("poses", "published")},
        dh_coupling=frozen(robot.dh_coupling[:3, :3]),
        embedding=frozen(EMBEDDING),
        embedding_offset=frozen(np.zeros(5)),
        driven=(0, 1, 3),
        loops=(),
        drive_mode="ideal",
    )


def _planar(row: np.ndarray) -> tuple[float, float, float, float]:
    """Return mass, x and z of the centre of mass, and Iyy about it, of inertial parameters (10,)."""
    mass = float(row[0])
    x, z = (float(row[1]) / mass, float(row[3]) / mass) if mass > 0 else (0.0, 0.0)
    return mass, x, z, float(row[5]) - mass * (x * x + z * z)
