"""Constraints on the positions of an arm, `phi(q) = 0`, and the dynamics that they leave.

With `J = d phi / dq` the constraints act by the joint torques `J^T lambda`, which do no work:

    M qdd + C qd + g = tau + J^T lambda,    phi(q) = 0,    J qd = 0,    J qdd + Jd qd = 0.

The n joints have n - m degrees of freedom left.  With independent joints z the speeds are `qd = N zd`, where
`J N = 0`, and the multipliers drop out (the reduced model):

    M_r zdd + C_r zd + g_r = N^T tau,    M_r = N^T M N,    C_r = N^T (C N + M Nd),    g_r = N^T g.

`d M_r/dt - 2 C_r` is skew-symmetric, as that of the whole arm.

A constraint is an object with two methods: `violation(robot, q)` returns phi, and `at(robot, q, qd)` returns
`phi`, J and Jd.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, float_array, real_array
from twin.base.errors import SingularityError
from twin.physics.dynamics.constrained import Cylinder, Plane, Surface, least_change, surface_list
from twin.physics.dynamics.equation_of_motion import coriolis_matrix, gravity_torque, mass_matrix
from twin.physics.kinematics.forward import forward_kinematics, jacobian, jacobian_dot
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.robot import Robot

IMAGINARY = 1e-30
"""Imaginary step of a derivative, which has no rounding error."""
STEP = 2e-3  # [rad] or [m]: step of the largest joint in differences of the Jacobian along the motion
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # of central differences of order 8
SAME = 1e-5
"""Largest difference of a Jacobian from differences of phi, over the Jacobian's size."""
ROUNDING = 1e-14
"""Largest violation that is not corrected: rounding of a distance of some metres."""
MOST_ITERATIONS = 20
SINGULAR = 1e12
"""Condition number from which joints do not determine the others."""


class Held(NamedTuple):
    """Constraint in one state.

    Attributes:
        phi: (m,) violation, 0 on the constraint, in [m] for surfaces.
        J: (m, n) derivatives of phi by the joint positions.
        Jd: (m, n) time derivative of J along the motion.
    """

    phi: Floats
    J: Floats
    Jd: Floats


class PositionConstraint(Protocol):
    """Constraint `phi(q) = 0` of m components on the joint positions of a robot."""

    def violation(self, robot: Robot, q: ArrayLike, /) -> Floats:
        """Return phi (..., m) at joint positions (..., n)."""
        ...

    def at(self, robot: Robot, q: ArrayLike, qd: ArrayLike, /) -> Held:
        """Return the constraint in one state (n,), (n,)."""
        ...


@dataclass(frozen=True, eq=False)
class ToolOn:
    """Constraint that holds the tool's origin on one or several surfaces.

    The multipliers are the forces of the surfaces on the tool along their gradients, in [N].

    Attributes:
        surfaces: a surface, or several: `line(...)` and `circle(...)` are two, `fixed_point(...)` three.
        T_flange_tool: (4, 4) pose of the tool on the flange; the flange itself if left out.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> from twin.physics.dynamics import ToolOn, circle
        >>> robot, q = twin.load("two_link"), [0, np.pi / 2]
        >>> p = twin.forward_kinematics(robot, q)[:3, 3]
        >>> rim = ToolOn(circle(center=p - [0.5, 0, 0], normal=[0, 0, 1], radius=0.5))
        >>> rim.violation(robot, q).tolist()
        [0.0, 0.0]
    """

    surfaces: Surface | Sequence[Surface]
    T_flange_tool: ArrayLike | None = None

    def violation(self, robot: Robot, q: ArrayLike, /) -> Floats:
        """Return the distances (..., m) from the surfaces, in [m]."""
        p = forward_kinematics(robot, q, self.T_flange_tool)[..., :3, 3]
        return np.stack([surface(p).value for surface in surface_list(self.surfaces)], axis=-1)

    def at(self, robot: Robot, q: ArrayLike, qd: ArrayLike, /) -> Held:
        """Return the constraint in one state."""
        p = forward_kinematics(robot, q, self.T_flange_tool)[:3, 3]
        J_v = jacobian(robot, q, self.T_flange_tool)[:3]
        levels = [surface(p) for surface in surface_list(self.surfaces)]
        gradients = np.array([level.gradient for level in levels])
        turning = np.array([level.hessian @ (J_v @ np.asarray(qd)) for level in levels])
        Jd = gradients @ jacobian_dot(robot, q, qd, self.T_flange_tool)[:3] + turning @ J_v
        return Held(np.array([level.value for level in levels]), gradients @ J_v, Jd)


def line(point: ArrayLike, direction: ArrayLike) -> list[Surface]:
    """Return two planes that meet in a line.

    Args:
        point: (3,) point of the line, in [m].
        direction: (3,) direction of the line, of any length but zero.

    Example:
        >>> from twin.physics.dynamics import line
        >>> [round(float(plane([5, 0, 0]).value), 12) for plane in line([1, 0, 0], [2, 0, 0])]
        [0.0, 0.0]
    """
    along = np.asarray(Plane(point, direction).normal)
    return [Plane(point, normal) for normal in np.linalg.svd(along[None])[2][1:]]


def circle(center: ArrayLike, normal: ArrayLike, radius: float) -> list[Surface]:
    """Return the plane and the cylinder that meet in a circle; their gradients are orthogonal.

    Args:
        center: (3,) center, in [m].
        normal: (3,) normal of the plane, of any length but zero.
        radius: radius, in [m].

    Example:
        >>> from twin.physics.dynamics import circle
        >>> plane, cylinder = circle([0, 0, 0], [0, 0, 1], 0.5)
        >>> float(plane([0.6, 0, 0.2]).value), round(float(cylinder([0.6, 0, 0.2]).value), 4)
        (0.2, 0.11)
    """
    return [Plane(center, normal), Cylinder(center, normal, radius)]


def fixed_point(point: ArrayLike) -> list[Surface]:
    """Return three planes, along x, y and z, that meet in a point (3,), in [m].

    Example:
        >>> from twin.physics.dynamics import fixed_point
        >>> [float(plane([1, 2, 3]).value) for plane in fixed_point([1, 2, 2.5])]
        [0.0, 0.0, 0.5]
    """
    return [Plane(point, normal) for normal in np.eye(3)]


@dataclass(frozen=True, eq=False)
class JointFunction:
    """Constraint that a function `phi(q)` gives.

    Without a Jacobian, phi must accept complex joint positions, and its derivatives are taken by an imaginary
    step, to round-off. Functions such as `abs` and `numpy.linalg.norm` have no such derivative; they are
    refused at the start of a run. The Jacobian's time derivative is a central difference of order 8 along the
    motion, whose error is some 1e-13 of the Jacobian.

    Attributes:
        phi: function of the joint positions (n,) that returns m numbers, or one.
        jacobian: function of the joint positions that returns the derivatives (m, n).

    Example:
        >>> import numpy as np
        >>> import twin
        >>> level = twin.dynamics.JointFunction(lambda q: np.sin(q[0]) + np.sin(q[0] + q[1]))
        >>> level.at(twin.load("two_link"), np.zeros(2), np.zeros(2)).J.tolist()
        [[2.0, 1.0]]
    """

    phi: Callable[[Any], ArrayLike]
    jacobian: Callable[[Any], ArrayLike] | None = None

    def violation(self, robot: Robot, q: ArrayLike, /) -> Floats:
        """Return phi (..., m)."""
        rows = np.asarray(q, dtype=float).reshape(-1, robot.n)
        values = np.stack([np.atleast_1d(real_array(self.phi(row), "phi(q)")) for row in rows])
        return values.reshape(*np.shape(q)[:-1], -1)

    def at(self, robot: Robot, q: ArrayLike, qd: ArrayLike, /) -> Held:
        """Return the constraint in one state."""
        q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
        J, speed = self._jacobian(q), np.max(np.abs(qd))
        Jd = np.zeros_like(J)
        for k, weight in enumerate(WEIGHTS if speed > 0 else (), start=1):
            way = k * STEP / speed * qd
            Jd += weight * speed / STEP * (self._jacobian(q + way) - self._jacobian(q - way))
        return Held(self.violation(robot, q), J, Jd)

    def _jacobian(self, q: Floats) -> Floats:
        """Return the derivatives (m, n)."""
        if self.jacobian is not None:
            return float_array(np.atleast_2d(np.asarray(self.jacobian(q))), "jacobian(q)", (len(q),))
        steps = q + 1j * IMAGINARY * np.eye(len(q))
        return np.stack([np.atleast_1d(np.imag(self.phi(row))) / IMAGINARY for row in steps], axis=-1)


def joint_relation(A: ArrayLike, c: ArrayLike) -> JointFunction:
    """Return linear relations of the joints, `A q = c`, such as two joints that are geared together.

    Args:
        A: (m, n) matrix.
        c: (m,) right-hand side, in [rad].

    Example:
        >>> import twin
        >>> geared = twin.dynamics.joint_relation([[1, -2]], [0])
        >>> geared.violation(twin.load("two_link"), [0.5, 0.25]).tolist()
        [0.0]
    """
    rows = np.atleast_2d(real_array(A, "A"))
    right = float_array(c, "c", (len(rows),))
    return JointFunction(lambda q: rows @ q - right, lambda q: rows)


def check_jacobian(robot: Robot, constraint: PositionConstraint, q: Floats) -> None:
    """Raise `ValueError` if the Jacobian of a constraint is not the derivative of its phi.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> from twin.physics.dynamics.holonomic import check_jacobian
        >>> wrong = twin.dynamics.JointFunction(lambda q: np.linalg.norm(q) - 1)
        >>> check_jacobian(twin.load("two_link"), wrong, np.array([0.6, 0.8]))
        Traceback (most recent call last):
        ValueError: the Jacobian of the constraint is not the derivative of phi(q): [[0.0, 0.0]], by \
differences [[0.6, 0.8]]; ...
    """
    J, h = constraint.at(robot, q, np.zeros_like(q)).J, 1e-6
    ends = [constraint.violation(robot, q + way * np.eye(robot.n)) for way in (h, -h)]
    found = (ends[0] - ends[1]).T / (2 * h)
    if J.shape != found.shape or not np.all(np.abs(J - found) <= SAME * (1.0 + np.max(np.abs(found)))):
        raise ValueError(
            f"the Jacobian of the constraint is not the derivative of phi(q): {J.round(4).tolist()}, by "
            f"differences {found.round(4).tolist()}; expected the right jacobian, or a phi of functions that "
            "take complex numbers, such as sin, sqrt and @, without abs, norm and comparisons"
        )


def onto_constraint(robot: Robot, constraint: PositionConstraint, q: ArrayLike) -> Floats:
    """Return the joint positions (n,) on a constraint near q, by Newton's method in the metric of M.

    Args:
        robot: the robot.
        constraint: the constraint.
        q: (n,) joint positions near it, in [rad].

    Raises:
        SingularityError: the constraint is singular on the way.

    Example:
        >>> import twin
        >>> from twin.physics.dynamics import joint_relation, onto_constraint
        >>> robot, geared = twin.load("two_link"), joint_relation([[1, -2]], [0])
        >>> onto_constraint(robot, geared, [0.5, 0.2]).round(4).tolist()
        [0.4861, 0.243]
    """
    q = joint_vector(robot, "q", q)
    phi = constraint.violation(robot, q)
    for _ in range(MOST_ITERATIONS):
        if np.max(np.abs(phi)) <= ROUNDING:
            break
        J = constraint.at(robot, q, np.zeros_like(q)).J
        nearer = q + least_change(robot, q, J, -phi)[0]
        left = constraint.violation(robot, nearer)
        if not np.max(np.abs(left)) < 0.5 * np.max(np.abs(phi)):
            break  # rounding is left, or Newton's method does not converge
        q, phi = nearer, left
    return q


class ReducedDynamics(NamedTuple):
    """Dynamics of the degrees of freedom that a constraint leaves, in one state.

    Attributes:
        independent: (n - m,) indices of the independent joints, whose positions are the coordinates z.
        N: (n, n - m) matrix of the joint speeds `qd = N zd`.
        Nd: (n, n - m) its time derivative.
        M: (n - m, n - m) inertia matrix, in [kg m^2].
        C: (n - m, n - m) Coriolis matrix, for which `Mdot - 2 C` is skew-symmetric.
        g: (n - m,) gravity torque, in [N m].
    """

    independent: np.ndarray
    N: np.ndarray
    Nd: np.ndarray
    M: np.ndarray
    C: np.ndarray
    g: np.ndarray


def reduced_dynamics(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    constraint: PositionConstraint,
    independent: Sequence[int] | None = None,
) -> ReducedDynamics:
    """Return the dynamics in independent joints, `M zdd + C zd + g = N^T tau`, without the multipliers.

    Args:
        robot: the robot.
        q: (n,) joint angles on the constraint, in [rad].
        qd: (n,) joint velocities along it, in [rad/s].
        constraint: m constraints.
        independent: indices of n - m joints whose positions determine the others; by default those that a QR
            decomposition of J with pivoting leaves.

    Raises:
        SingularityError: the positions of these joints do not determine the others.

    Example:
        >>> import twin
        >>> from twin.physics.dynamics import joint_relation, reduced_dynamics
        >>> robot = twin.load("two_link").mounted("wall")
        >>> found = reduced_dynamics(robot, [0.5, 0.25], [1, 0.5], joint_relation([[1, -2]], [0]), [0])
        >>> found.N.tolist(), found.M.round(4).tolist()
        ([[1.0], [0.5]], [[3.5367]])

    Source: McClamroch and Wang 1988, "Feedback stabilization and tracking of constrained robots", IEEE
    Transactions on Automatic Control 33(5).
    """
    from scipy.linalg import qr

    q, qd = joint_vector(robot, "q", q), joint_vector(robot, "qd", qd)
    _, J, Jd = constraint.at(robot, q, qd)
    m, n = J.shape
    chosen = np.sort(qr(J, mode="r", pivoting=True)[-1][m:]) if independent is None else np.array(independent)
    E = np.concatenate([J, np.eye(n)[chosen]])
    if E.shape != (n, n) or not np.linalg.cond(E) < SINGULAR:
        raise SingularityError(
            f"joints {chosen.tolist()} do not determine the others at q = {q.round(4).tolist()}: expected "
            f"{n - m} other independent joints, or a position where the constraint is not singular"
        )
    N = np.linalg.inv(E)[:, m:]
    Nd = np.linalg.solve(E, np.concatenate([-Jd @ N, np.zeros((n - m, n - m))]))
    C = N.T @ (coriolis_matrix(robot, q, qd) @ N + mass_matrix(robot, q) @ Nd)
    return ReducedDynamics(chosen, N, Nd, N.T @ mass_matrix(robot, q) @ N, C, N.T @ gravity_torque(robot, q))
