"""Dynamics of an arm whose tool is constrained to a surface, or by any constraint on its twist.

A constraint removes m components of the tool's twist, `A V = 0`.  Its derivative is `A Vd + b = 0` with
`b = Ad V`.  The constraint acts by the wrench `A^T lambda`, which does no work, so that with `J_c = A J`

    M qdd + C qd + g = tau + J_c^T lambda,      J_c qdd + b + A Jd qd = 0.

This is a linear system in qdd and lambda (Lagrange's multipliers).  Its solution qdd is the acceleration that
satisfies the constraint and is nearest to that of the free arm in the metric of M (Gauss's principle of least
constraint, 1829).  It is computed from this principle: lambda = Lambda_c (-b - A Jd qd - J_c qdd_free), where
`Lambda_c` is the inertia of the arm in the directions of the constraint (`twin.dynamics.operational_space`).

A point of the tool on a surface `g(p) = 0` has `A = [gradient(g)^T 0]` and `b = v^T hessian(g) v`, the
normal acceleration due to the curvature.  The contact is frictionless and bilateral: it pushes and pulls.
A real tool that rests on the surface would lift off where lambda pulls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, float_array
from twin.base.errors import RobotError
from twin.physics.dynamics.equation_of_motion import forward_dynamics, require_rigid
from twin.physics.dynamics.operational_space import mass_weighted
from twin.physics.kinematics.forward import forward_kinematics, jacobian, jacobian_dot
from twin.physics.multibody.tree import frozen
from twin.physics.robot.drives.friction import AT_REST
from twin.physics.robot.evaluation import joint_vectors
from twin.physics.robot.robot import Robot


class Level(NamedTuple):
    """Function g of a surface at some points, with its derivatives.

    Attributes:
        value: (...,) g, in [m].
        gradient: (..., 3) first derivatives, in [1].
        hessian: (..., 3, 3) second derivatives, in [1/m].
    """

    value: Floats
    gradient: Floats
    hessian: Floats


class Surface(Protocol):
    """Surface `g(p) = 0`, as a function of points."""

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return the function at the points p (..., 3), in [m]."""
        ...


@dataclass(frozen=True, eq=False)
class Plane:
    """Plane through a point; g is positive on the side of the normal.

    Attributes:
        point: (3,) point on the plane, in [m].
        normal: (3,) normal, which is scaled to a unit vector.
    """

    point: ArrayLike
    normal: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", _vector(self.point, "point"))
        object.__setattr__(self, "normal", _direction(self.normal, "normal"))

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return `g = normal . (p - point)`."""
        p, normal = float_array(p, "p", (3,)), np.asarray(self.normal)
        gradient = np.broadcast_to(normal, p.shape)
        return Level((p - np.asarray(self.point)) @ normal, gradient, np.zeros((*p.shape, 3)))


@dataclass(frozen=True, eq=False)
class Sphere:
    """Sphere; g is positive outside.

    Attributes:
        center: (3,) center, in [m].
        radius: radius, in [m].
    """

    center: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _vector(self.center, "center"))
        _require_radius(self.radius)

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return `g = (|p - center|^2 - radius^2) / (2 radius)`."""
        return _round(float_array(p, "p", (3,)) - np.asarray(self.center), np.eye(3), self.radius)


@dataclass(frozen=True, eq=False)
class Cylinder:
    """Infinitely long cylinder; g is positive outside.

    Attributes:
        point: (3,) point on the axis, in [m].
        axis: (3,) direction of the axis, which is scaled to a unit vector.
        radius: radius, in [m].
    """

    point: ArrayLike
    axis: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", _vector(self.point, "point"))
        object.__setattr__(self, "axis", _direction(self.axis, "axis"))
        _require_radius(self.radius)

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return `g = (|distance from the axis|^2 - radius^2) / (2 radius)`."""
        across = np.eye(3) - np.outer(np.asarray(self.axis), np.asarray(self.axis))
        return _round(float_array(p, "p", (3,)) - np.asarray(self.point), across, self.radius)


def _round(r: Floats, across: Floats, radius: float) -> Level:
    """Return the level of a sphere or cylinder; `across` projects r onto the directions of the radius."""
    outwards = r @ across
    value = (np.sum(outwards * outwards, axis=-1) - radius**2) / (2.0 * radius)
    return Level(value, outwards / radius, np.broadcast_to(across / radius, (*r.shape, 3)))


def _vector(value: ArrayLike, name: str) -> Floats:
    """Return a read-only vector (3,); raise `ValueError` unless it is finite."""
    vector = frozen(value)
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise ValueError(f"expected {name} to be 3 finite numbers, got {vector.tolist()}")
    return vector


def _direction(value: ArrayLike, name: str) -> Floats:
    """Return the unit vector (3,) along a vector; raise `ValueError` for the zero vector."""
    vector = _vector(value, name)
    length = np.linalg.norm(vector)
    if not length > 0.0:
        raise ValueError(f"expected {name} to be a nonzero vector, got {vector.tolist()}")
    return frozen(vector / length)


def _require_radius(radius: float) -> None:
    """Raise `ValueError` unless the radius is positive and finite."""
    if not 0.0 < radius < np.inf:
        raise ValueError(f"expected a radius above 0 m, got {radius}")


class Constraint(NamedTuple):
    """Constraint on the tool's twist V, `A V = 0` and `A Vd + b = 0`, in one state or many.

    Attributes:
        A: (..., m, 6) matrix, for the twist `[v; omega]` at the tool's origin, base axes.
        b: (..., m) vector `Ad V`.
    """

    A: Floats
    b: Floats


class ConstrainedMotion(NamedTuple):
    """Accelerations and constraint forces of a constrained arm.

    Attributes:
        qdd: (..., n) joint accelerations, in [rad/s^2].
        multipliers: (..., m) Lagrange multipliers; for a surface, its force on the tool along the gradient,
            in [N].
        wrench: (..., 6) wrench `[f; mu]` of all constraints on the robot at the tool's origin, base axes, in
            [N, N m].
    """

    qdd: Floats
    multipliers: Floats
    wrench: Floats


def surface_constraint(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    surfaces: Surface | Sequence[Surface],
    T_flange_tool: ArrayLike | None = None,
) -> Constraint:
    """Return the constraint that holds the tool's origin on one or several surfaces.

    Two surfaces define a curve, three define a point.  If the tool's origin is off the surface, the
    constraint holds it on the level set of g through its position.  Integration drift is therefore not
    corrected (see `surface_violation`).

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        surfaces: one surface or several.
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> from twin.physics.dynamics.constrained import Sphere
        >>> robot, sphere = twin.load("two_link"), Sphere([0, 0, 0], 2**0.5)
        >>> twin.dynamics.surface_constraint(robot, [0, np.pi / 2], [1, 0], sphere).b.round(4).tolist()
        [1.4142]
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    p = forward_kinematics(robot, q, T_flange_tool)[..., :3, 3]
    v = np.einsum("...ij,...j->...i", jacobian(robot, q, T_flange_tool)[..., :3, :], qd)
    levels = [surface(p) for surface in surface_list(surfaces)]
    gradients = np.stack([level.gradient for level in levels], axis=-2)
    A = np.concatenate([gradients, np.zeros_like(gradients)], axis=-1)
    curved = [np.einsum("...i,...ij,...j->...", v, level.hessian, v) for level in levels]
    return Constraint(A, np.stack(curved, axis=-1))


def surface_violation(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    surfaces: Surface | Sequence[Surface],
    T_flange_tool: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Return the distance of the tool's origin from surfaces, and its rate of change.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        surfaces: one surface, or m of them.
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        Two arrays.

        - g: (..., m) values of the surfaces' functions, in [m], 0 on the surface.
        - g_dot: (..., m) time derivatives of g, in [m/s], 0 for a motion along the surface.

    Example:
        >>> import twin
        >>> from twin.physics.dynamics.constrained import Plane, surface_violation
        >>> robot, wall = twin.load("two_link"), Plane(point=[0.9, 0, 0], normal=[1, 0, 0])
        >>> g, g_dot = surface_violation(robot, [0, 1.5708], [1, 0], wall)
        >>> g.round(3).tolist(), g_dot.round(3).tolist()
        ([0.1], [1.0])
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    p = forward_kinematics(robot, q, T_flange_tool)[..., :3, 3]
    v = np.einsum("...ij,...j->...i", jacobian(robot, q, T_flange_tool)[..., :3, :], qd)
    levels = [surface(p) for surface in surface_list(surfaces)]
    g = np.stack([level.value for level in levels], axis=-1)
    return g, np.stack([np.sum(level.gradient * v, axis=-1) for level in levels], axis=-1)


def constrained_forward_dynamics(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    constraint: Constraint,
    T_flange_tool: ArrayLike | None = None,
) -> ConstrainedMotion:
    """Return the joint accelerations under the torques of the motors, and the constraint forces.

    With rigid drives the rotors take part, and the friction of moving shafts, which the constraint does not
    change.

    Args:
        robot: the robot, with ideal or rigid drives.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s], which should satisfy the constraint.
        tau: (..., n) joint torques, in [N m].
        constraint: result of `surface_constraint`, or any other constraint.
            `Constraint(numpy.eye(6), numpy.zeros(6))` fixes the tool.
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Raises:
        RobotError: the drives are elastic, a shaft with friction rests, or friction grows with the load, so
            that the constraint forces decide on the friction.
        SingularityError: the arm cannot move in a direction of the constraint, or two constraints are
            linearly dependent.  The constraint forces are then undetermined.  The message names the
            direction.

    Example:
        >>> from twin import load
        >>> from twin.dynamics import Plane, constrained_forward_dynamics, surface_constraint
        >>> robot, q, qd = load("two_link").mounted("wall"), [0, 1.5708], [0, 0]
        >>> held = surface_constraint(robot, q, qd, Plane(point=[1, 0, 0], normal=[1, 0, 0]))
        >>> constrained_forward_dynamics(robot, q, qd, [0, 0], held).multipliers.round(3).tolist()
        [14.715]

    Source: the equations above; Featherstone 2008, "Rigid Body Dynamics Algorithms", chapter 3.
    """
    q, qd, tau = joint_vectors(robot, q=q, qd=qd, tau=tau)
    A = float_array(constraint.A, "constraint.A", (6,))
    if A.ndim < 2:
        raise ValueError(f"expected constraint.A of shape (..., m, 6), got {A.shape}")
    b = float_array(constraint.b, "constraint.b", (A.shape[-2],))
    _require_known_friction(robot, qd)
    J_c = A @ jacobian(robot, q, T_flange_tool)
    along = A @ jacobian_dot(robot, q, qd, T_flange_tool)
    free = forward_dynamics(robot, q, qd, tau)
    residual = -b - np.einsum("...ij,...j->...i", along, qd) - np.einsum("...ij,...j->...i", J_c, free)
    change, multipliers = least_change(robot, q, J_c, residual)
    qdd = free + change
    return ConstrainedMotion(qdd, multipliers, np.einsum("...ji,...j->...i", A, multipliers))


def least_change(robot: Robot, q: Floats, J: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Return the smallest change x of a joint motion, in the metric of M, with `J x = residual`.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        J: (..., m, n) Jacobian of the constraint.
        residual: (..., m) what the change must make up for: of an acceleration, a speed or a position.

    Returns:
        Two arrays.

        - x: (..., n) the change, `M^-1 J^T lambda`.
        - lambda: (..., m) the multipliers.

    Raises:
        SingularityError: see `constrained_forward_dynamics`.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> from twin.physics.dynamics.constrained import least_change
        >>> robot, q = twin.load("two_link"), np.array([0, np.pi / 2])
        >>> x, force = least_change(robot, q, twin.jacobian(robot, q)[:1], np.array([1.0]))
        >>> x.round(4).tolist(), force.round(4).tolist()
        ([1.0, -1.0], [1.3333])
    """
    L, U, values, V = mass_weighted(robot, q, J, "the constraint")
    parts = np.einsum("...ji,...j->...i", V, residual) / values
    change = np.einsum("...ij,...j->...i", U, parts)
    x = np.linalg.solve(np.swapaxes(L, -1, -2), change[..., None])[..., 0]
    return x, np.einsum("...ij,...j->...i", V, parts / values)


def _require_known_friction(robot: Robot, qd: Floats) -> None:
    """Raise `RobotError` if the constraint forces would decide on the friction of the drives."""
    require_rigid(robot, "the dynamics of a constrained arm")
    if (drives := robot.active_drives) is None:
        return
    rests = np.any((np.abs(qd @ drives.friction_matrix.T) <= AT_REST) & (drives.static > 0.0))
    if rests or np.any(drives.coulomb_per_load):
        why = "shafts with friction that rest" if rests else "friction that grows with the load"
        raise RobotError(
            f"the dynamics of a constrained arm do not know {why}, as of robot {robot.name!r}: expected "
            "moving joints, or ideal drives, as robot.with_drives('ideal')"
        )


def surface_list(surfaces: Surface | Sequence[Surface]) -> Sequence[Surface]:
    """Return one surface or several as a sequence; raise `ValueError` if there are none."""
    sequence = surfaces if isinstance(surfaces, Sequence) else [surfaces]
    if not sequence:
        raise ValueError("expected at least one surface")
    return sequence
