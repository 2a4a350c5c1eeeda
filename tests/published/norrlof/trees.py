"""Arms for the items on dynamics, and the library's recursions over many samples at once.

`recursions.py` works on scalars of any type.  Here a scalar is an array with one entry per sample, so nothing
is compiled.  The entries may be complex: then `Im f(x + i h xd) / h` is the derivative of f along xd to
round-off, because nothing is subtracted and h is tiny.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.published.items import SAMPLES, rng
from twin.physics.multibody import recursions
from twin.physics.multibody.tree import Tree, inertial_parameters
from twin.physics.robot.robot import GRAVITY, Robot
from twin.physics.rotations.rotations import matrix_from_quaternion

Array = NDArray[np.inexact]
STEP = 1e-100
DOWN = (0.0, 0.0, -GRAVITY)
NOWHERE = (0.0, 0.0, 0.0)
AWKWARD = (0.0, 1e-8, np.pi / 2, np.pi - 1e-8, np.pi, -np.pi / 2)


class Arm(NamedTuple):
    """Tree, its embedding `q_tree = G q + g0`, and the acceleration of gravity."""

    tree: Tree
    G: Array
    g0: Array
    gravity: recursions.Vector = DOWN


class Link(NamedTuple):
    """One link at all samples.

    Attributes:
        mass: mass, in [kg].
        inertia: tensor (3, 3) about the centre of mass, in the link's axes.
        R: rotations (N, 3, 3) from the link's axes to the base's.
        centre: centres of mass (N, 3) in the base frame.
        Jv: Jacobians (N, 3, n) of the centre of mass, in base axes.
        Jw: Jacobians (N, 3, n) of the angular velocity, in base axes.
    """

    mass: float
    inertia: Array
    R: Array
    centre: Array
    Jv: Array
    Jw: Array


def arm_of(robot: Robot) -> Arm:
    """Return the arm of a robot."""
    return Arm(robot.tree, robot.embedding, robot.embedding_offset, tuple(robot.gravity.tolist()))


def chain(generator: np.random.Generator, n: int, kinds: str = "R", points: bool = False) -> Arm:
    """Draw an open chain of random axes, offsets and bodies.

    `kinds`, such as "RP", repeats along the chain.  With `points` the bodies are point masses.
    """
    quaternions = generator.normal(size=(n, 4))
    T = np.tile(np.eye(4), (n, 1, 1))
    T[:, :3, :3] = matrix_from_quaternion(quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True))
    T[:, :3, 3] = 0.3 * generator.normal(size=(n, 3))
    axes = generator.normal(size=(n, 3))
    bodies = []
    for _ in range(n):
        cloud = 0.1 * generator.normal(size=(5, 3))
        inertia = np.trace(cloud.T @ cloud) * np.eye(3) - cloud.T @ cloud
        mass, centre = generator.uniform(1, 20), 0.2 * generator.normal(size=3)
        bodies.append(inertial_parameters(mass, centre, (0 if points else mass) * inertia))
    names = tuple(f"joint_{i + 1}" for i in range(n))
    tree = Tree(
        names=names,
        links=names,
        kinds=tuple({"R": "revolute", "P": "prismatic"}[kinds[i % len(kinds)]] for i in range(n)),
        parents=tuple(range(-1, n - 1)),
        T_parent_joint=T,
        axes=axes / np.linalg.norm(axes, axis=1, keepdims=True),
        inertias=np.array(bodies),
        flange_joint=n - 1,
        T_joint_flange=np.eye(4),
    )
    return Arm(tree, np.eye(n), np.zeros(n))


def states(n: int) -> tuple[Array, Array, Array]:
    """Draw positions, velocities and accelerations (N, n).

    Some positions are at or near multiples of 90 degrees, and some velocities and accelerations are zero.
    """
    generator = rng()
    q, qd, qdd = generator.uniform(-3, 3, (3, SAMPLES, n))
    q[: SAMPLES // 4] = generator.choice(AWKWARD, (SAMPLES // 4, n))
    q[:2] = [[0.0], [np.pi]]
    qd[1::10] = 0.0
    qdd[2::10] = 0.0
    return q, qd, qdd


def placed(arm: Arm, q: Array) -> recursions.Placement:
    """Return the placements of the links in their parents' frames."""
    return recursions.placements(arm.tree, _columns(q @ arm.G.T + arm.g0), np)


def torques(arm: Arm, q: Array, qd: Array, qdd: Array, gravity: bool = True) -> Array:
    """Compute joint torques (N, n) by the library's recursion."""
    speeds, rises = _columns(qd @ arm.G.T), _columns(qdd @ arm.G.T)
    pull, inertias = arm.gravity if gravity else NOWHERE, arm.tree.inertias.tolist()
    tau = recursions.newton_euler(arm.tree, placed(arm, q), speeds, rises, inertias, pull)
    return _rows(tau, len(q)) @ arm.G


def inertia_matrix(arm: Arm, q: Array) -> Array:
    """Compute D (N, n, n) column by column from the torques of unit accelerations."""
    rest = np.zeros(q.shape)
    units = np.eye(q.shape[1])
    return np.stack([torques(arm, q, rest, rest + unit, gravity=False) for unit in units], axis=-1)


def gravity_torques(arm: Arm, q: Array) -> Array:
    """Compute the torques (N, n) that balance gravity."""
    rest = np.zeros(q.shape)
    return torques(arm, q, rest, rest)


def potential_energy(arm: Arm, q: Array) -> Array:
    """Compute the potential energy (N,) by the library; it is zero for a mass at the base's origin."""
    frames = recursions.world_frames(arm.tree, placed(arm, q))
    return recursions.potential_energy(arm.tree, frames, arm.tree.inertias.tolist(), arm.gravity)


def kinetic_energy(arm: Arm, q: Array, qd: Array) -> Array:
    """Compute the kinetic energy (N,)."""
    return np.einsum("ni,nij,nj->n", qd, inertia_matrix(arm, q), qd) / 2


def links(arm: Arm, q: Array) -> list[Link]:
    """Return all links of an open chain, with the library's Jacobians (2.51)-(2.65)."""
    frames = recursions.world_frames(arm.tree, placed(arm, q))
    found = []
    for i in range(arm.tree.n):
        mass, com, inertia = about_centre(arm.tree.inertias[i])
        at = recursions.add(frames.o[i], recursions.rotate(frames.R[i], tuple(com.tolist())))
        columns = recursions.jacobian(replace(arm.tree, flange_joint=i), frames, at)
        J = np.stack([_rows([*v, *w], len(q)) for v, w in columns], axis=-1)
        R = np.stack([_rows(row, len(q)) for row in frames.R[i]], axis=1)
        found.append(Link(mass, inertia, R, _rows(at, len(q)), J[:, :3], J[:, 3:]))
    return found


def accelerations(arm: Arm, q: Array, qd: Array, qdd: Array) -> list[tuple[Array, Array, Array]]:
    """Return `a_c`, `omega`, `alpha` (N, 3) of every link of an open chain, in base axes (2.66)-(2.69)."""
    frames = recursions.world_frames(arm.tree, placed(arm, q))
    found = []
    for i, link in enumerate(links(arm, q)):
        at = tuple(link.centre.T)
        rates = recursions.jacobian_rate(replace(arm.tree, flange_joint=i), frames, at, _columns(qd))
        J = np.concatenate([link.Jv, link.Jw], axis=1)
        J_dot = np.stack([_rows([*v, *w], len(q)) for v, w in rates], axis=-1)
        a = np.einsum("nij,nj->ni", J, qdd) + np.einsum("nij,nj->ni", J_dot, qd)
        found.append((a[:, :3], np.einsum("nij,nj->ni", link.Jw, qd), a[:, 3:]))
    return found


def about_centre(row: Array) -> tuple[float, Array, Array]:
    """Return mass, centre of mass (3,) and the tensor (3, 3) about it, of inertial parameters (10,)."""
    mass = float(row[0])
    com = row[1:4] / mass if mass > 0 else np.zeros(3)
    return mass, com, tensor(row) - mass * (com @ com * np.eye(3) - np.outer(com, com))


def tensor(parameters: Array) -> Array:
    """Return the tensor (3, 3) of inertial parameters (10,), about their origin."""
    xx, yy, zz, xy, xz, yz = parameters[4:]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def rate(function: Callable[..., Array], *moved: tuple[Array, Array]) -> Array:
    """Return the directional derivative of a function of arrays, each given with its direction."""
    return function(*(x + 1j * STEP * xd for x, xd in moved)).imag / STEP


def gradient(function: Callable[[Array], Array], q: Array) -> Array:
    """Return the derivatives (..., n) of a function by each joint, for all samples (N, n)."""
    return np.stack([rate(function, (q, unit)) for unit in np.eye(q.shape[1])], axis=-1)


def christoffel_symbols(D_by_q: Array) -> Array:
    """Compute `c_ijp` (N, i, j, p) of (3.46) from the derivatives (N, p, j, i) of D."""
    return (np.einsum("npji->nijp", D_by_q) + np.einsum("npij->nijp", D_by_q) - D_by_q) / 2


def worst(*values: Any) -> float:
    """Return the largest magnitude in arrays or numbers, NaN if one of them is NaN."""
    return float(np.max([np.max(np.abs(value)) for value in values]))


def relative(found: Array, right: Array) -> float:
    """Return the largest error relative to the largest magnitude of `right`."""
    return worst(found - right) / worst(right)


def turned(R: Array, v: Array) -> Array:
    """Return `R v` of every sample."""
    return np.einsum("nij,nj->ni", R, v)


def _columns(q: Array) -> list[Array]:
    return list(q.T)


def _rows(scalars: Iterable[Any], count: int) -> Array:
    """Return scalars, which may be constant, as the columns of one array (N, k)."""
    return np.stack([np.broadcast_to(np.asarray(s), (count,)) for s in scalars], axis=-1)
