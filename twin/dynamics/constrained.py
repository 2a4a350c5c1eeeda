"""The dynamics of an arm whose tool is held on a surface, or by any constraint on its motion.

A constraint takes m components from the tool's twist, `A V = 0`, and so from its derivative, `A Vd + b = 0`
with `b = Ad V`.  It acts by the wrench `A^T lambda`, which does no work, so that with `J_c = A J`

    M qdd + C qd + g = tau + J_c^T lambda,      J_c qdd + b + A Jd qd = 0.

That is one linear system in qdd and lambda (Lagrange's multipliers).  Of the accelerations that the
constraint allows it is the one nearest to that of the free arm, in the metric of M (Gauss's principle of
least constraint, 1829), and solved as such here: lambda = Lambda_c (-b - A Jd qd - J_c qdd_free),
`Lambda_c` the inertia of the arm in the directions of the constraint (`twin.dynamics.operational_space`).

A point of the tool on a surface `g(p) = 0` has `A = [gradient(g)^T 0]` and `b = v^T hessian(g) v`, the
acceleration along the normal that the curvature asks for.  The contact is without friction, and two-sided: it
also pulls.  Where lambda pulls, the tool would leave a surface that it only rests on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, float_array
from twin.dynamics.equation_of_motion import forward_dynamics
from twin.dynamics.operational_space import mass_weighted
from twin.kinematics.forward import forward_kinematics, jacobian, jacobian_dot
from twin.multibody.tree import frozen
from twin.robot.evaluation import joint_vectors
from twin.robot.robot import Robot


class Level(NamedTuple):
    """A surface's function at some points.

    Attributes:
        value: (...,) g, in [m].
        gradient: (..., 3) in [1].
        hessian: (..., 3, 3) second derivatives, in [1/m].
    """

    value: Floats
    gradient: Floats
    hessian: Floats


class Surface(Protocol):
    """What `surface_constraint` asks of a surface."""

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return the function at the points p (..., 3), in [m]."""
        ...


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane through a point, with a normal of any length; g is positive on the side it points to.

    Attributes:
        point: (3,) in [m].
        normal: (3,), made a unit vector.
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
    """A sphere; g is positive outside.

    Attributes:
        center: (3,) in [m].
        radius: in [m].
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
    """An endless cylinder; g is positive outside.

    Attributes:
        point: (3,) on its axis, in [m].
        axis: (3,) of any length, made a unit vector.
        radius: in [m].
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
    """Return what sphere and cylinder share: `across` projects r onto what is measured by the radius."""
    outwards = r @ across
    value = (np.sum(outwards * outwards, axis=-1) - radius**2) / (2.0 * radius)
    return Level(value, outwards / radius, np.broadcast_to(across / radius, (*r.shape, 3)))


def _vector(value: ArrayLike, name: str) -> Floats:
    """Return a finite vector (3,) that cannot be written to."""
    vector = frozen(value)
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise ValueError(f"expected {name} to be 3 finite numbers, got {vector.tolist()}")
    return vector


def _direction(value: ArrayLike, name: str) -> Floats:
    """Return a unit vector (3,)."""
    vector = _vector(value, name)
    length = np.linalg.norm(vector)
    if not length > 0.0:
        raise ValueError(f"expected {name} to have a direction, got {vector.tolist()}")
    return frozen(vector / length)


def _require_radius(radius: float) -> None:
    """Raise `ValueError` for a radius that is none."""
    if not 0.0 < radius < np.inf:
        raise ValueError(f"expected a radius above 0 m, got {radius}")


class Constraint(NamedTuple):
    """What holds the tool, in one state or many: `A V = 0` and `A Vd + b = 0`.

    Attributes:
        A: (..., m, 6) of the twist `[v; omega]` at the tool's origin, base axes.
        b: (..., m) `Ad V`.
    """

    A: Floats
    b: Floats


class ConstrainedMotion(NamedTuple):
    """How a constrained arm moves.

    Attributes:
        qdd: (..., n) joint accelerations, in [rad/s^2].
        multipliers: (..., m) of the constraints; of a surface the force of it on the tool along its
            gradient, in [N].
        wrench: (..., 6) `[f; mu]` of all constraints on the robot at the tool's origin, base axes, in
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
    """Return the constraint that holds the tool's origin on a surface, or on several at once.

    Two surfaces make a curve, three a point.  Off the surface it is the level of g through the tool's origin
    that holds it: an integration that drifts is not pulled back (see `surface_violation`).

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        surfaces: one or several.
        T_flange_tool: (4, 4) pose of the tool on the flange.
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    p = forward_kinematics(robot, q, T_flange_tool)[..., :3, 3]
    v = np.einsum("...ij,...j->...i", jacobian(robot, q, T_flange_tool)[..., :3, :], qd)
    levels = [surface(p) for surface in _several(surfaces)]
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
    """Return how far the tool's origin is from surfaces, and how fast it leaves them.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        surfaces: one or several, m of them.
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        Two arrays.

        - g: (..., m) in [m], 0 on the surface.
        - g_dot: (..., m) in [m/s], 0 for a motion along it.
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    p = forward_kinematics(robot, q, T_flange_tool)[..., :3, 3]
    v = np.einsum("...ij,...j->...i", jacobian(robot, q, T_flange_tool)[..., :3, :], qd)
    levels = [surface(p) for surface in _several(surfaces)]
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
    """Return the joint accelerations under joint torques, and what the constraint exerts.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s], which the constraint should allow.
        tau: (..., n) joint torques, in [N m].
        constraint: from `surface_constraint`, or any: `Constraint(numpy.eye(6), numpy.zeros(6))` holds the
            tool where it is.
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Raises:
        SingularityError: in a direction of the constraint the arm cannot move anyway, or two constraints take
            the same: their forces are not determined.  The direction is named.

    Source: the equations above; Featherstone 2008, "Rigid Body Dynamics Algorithms", chapter 3.
    """
    q, qd, tau = joint_vectors(robot, q=q, qd=qd, tau=tau)
    A = float_array(constraint.A, "constraint.A", (6,))
    if A.ndim < 2:
        raise ValueError(f"expected constraint.A of shape (..., m, 6), got {A.shape}")
    b = float_array(constraint.b, "constraint.b", (A.shape[-2],))
    J_c = A @ jacobian(robot, q, T_flange_tool)
    along = A @ jacobian_dot(robot, q, qd, T_flange_tool)
    free = forward_dynamics(robot, q, qd, tau)
    missing = -b - np.einsum("...ij,...j->...i", along, qd) - np.einsum("...ij,...j->...i", J_c, free)
    L, U, values, V = mass_weighted(robot, q, J_c, "the constraint")
    # In mass-weighted coordinates the least change that makes up for what is missing, and its multipliers.
    parts = np.einsum("...ji,...j->...i", V, missing) / values
    change = np.einsum("...ij,...j->...i", U, parts)
    multipliers = np.einsum("...ij,...j->...i", V, parts / values)
    qdd = free + np.linalg.solve(np.swapaxes(L, -1, -2), change[..., None])[..., 0]
    return ConstrainedMotion(qdd, multipliers, np.einsum("...ji,...j->...i", A, multipliers))


def _several(surfaces: Surface | Sequence[Surface]) -> Sequence[Surface]:
    """Return surfaces as a sequence, one or many."""
    several = surfaces if isinstance(surfaces, Sequence) else [surfaces]
    if not several:
        raise ValueError("expected at least one surface")
    return several
