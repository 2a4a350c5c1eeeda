"""Mass matrix by the composite rigid body algorithm, and solution for the joint accelerations.

As in `multibody/recursions.py`, the scalars may be of any type.  A body is given by `m`, `h = m c` and
its inertia about the origin of its frame.

Source: Featherstone 2008, sections 6.2 and 6.5; the factorization `L^T D L` needs no square roots.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from twin.base.errors import RobotError
from twin.physics.multibody.recursions import (
    Placement,
    Rotation,
    Vector,
    add,
    compose,
    cross,
    dot,
    placements,
    rotate,
    scale,
    symmetric,
)
from twin.physics.multibody.tree import Tree


def mass_matrix(tree: Tree, at: Placement, inertias: Any) -> list[list[Any]]:
    """Return the joint-space inertia matrix of a tree.

    Args:
        tree: tree of the robot's moving joints.
        at: placement of the links.
        inertias: per link `m, m c (3), I (xx, yy, zz, xy, xz, yz)` about the link's origin, in its frame.
    """
    n = tree.n
    masses = [row[0] for row in inertias]  # of each link with all links beyond it
    moments: list[Vector] = [tuple(row[1:4]) for row in inertias]
    tensors: list[Any] = [tuple(row[4:10]) for row in inertias]
    M: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for i in reversed(range(n)):
        if tree.kinds[i] == "revolute":  # force, and moment about the origin, for a unit acceleration
            force, moment = cross(at.axis[i], moments[i]), symmetric(tensors[i], at.axis[i])
        else:
            force, moment = scale(masses[i], at.axis[i]), cross(moments[i], at.axis[i])
        for j in reversed(tree.carriers(i)):
            M[i][j] = M[j][i] = dot(at.axis[j], moment if tree.kinds[j] == "revolute" else force)
            force = rotate(at.R[j], force)
            moment = add(rotate(at.R[j], moment), cross(at.p[j], force))
        parent = tree.parents[i]
        if parent >= 0:
            h, tensor = _moved(masses[i], moments[i], tensors[i], at.R[i], at.p[i])
            masses[parent] = masses[parent] + masses[i]
            moments[parent] = add(moments[parent], h)
            tensors[parent] = tuple(a + b for a, b in zip(tensors[parent], tensor, strict=True))
    return M


def _moved(mass: Any, h: Vector, tensor: Any, R: Rotation, p: Vector) -> tuple[Vector, Any]:
    """Return a body's first moments and inertia in a frame in which its own frame has the pose `R`, `p`."""
    xx, yy, zz, xy, xz, yz = tensor
    rows = compose(R, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    rotated = [dot(rows[i], R[j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    h = rotate(R, h)
    x, y, z = p
    # Steiner's theorem: h p^T + p h^T + m p p^T = u p^T + p u^T
    u, v, w = add(h, scale(0.5, scale(mass, p)))
    shift = (
        2.0 * (v * y + w * z),
        2.0 * (u * x + w * z),
        2.0 * (u * x + v * y),
        -(u * y + v * x),
        -(u * z + w * x),
        -(v * z + w * y),
    )
    return add(h, scale(mass, p)), tuple(a + b for a, b in zip(rotated, shift, strict=True))


def solve(M: list[list[Any]], load: list[Any], reciprocal: Any) -> list[Any]:
    """Solve `M x = load` for x, with a symmetric positive definite `M`.

    Args:
        M: (n, n) matrix; only its lower triangle is read.
        load: (n,) right-hand side.
        reciprocal: function `1 / x` for scalars of this type.
    """
    n = len(load)
    M, x = [list(row) for row in M], list(load)
    inverse: list[Any] = [0.0] * n
    for k in reversed(range(n)):  # from the last joint, so that zeros between two branches remain zero
        inverse[k] = reciprocal(M[k][k])
        for i in reversed(range(k)):
            factor = M[k][i] * inverse[k]
            for j in range(i + 1):
                M[i][j] = M[i][j] - factor * M[k][j]
            x[i] = x[i] - factor * x[k]
            M[k][i] = factor
    for k in range(n):
        x[k] = x[k] * inverse[k]
        for i in range(k):
            x[k] = x[k] - M[k][i] * x[i]
    return x


ACCEPT = "accept it by --unphysical (unphysical=True)"
"""What a user can do about a robot without dynamics, besides correcting its file."""


def moved_mass_fault(tree: Tree, names: Sequence[str], G: Any, g0: Any) -> str:
    """Return why the mass matrix is singular, "" if it is not.

    Args:
        tree: tree of the robot's moving joints.
        names: n names of the joints with a motor.
        G: (n_tree, n) matrix of the joints of the tree, `q_tree = G q + g0`.
        g0: (n_tree,) offset of it, in [rad].
    """
    generic = G @ (0.1 * np.arange(1, G.shape[1] + 1)) + g0  # a position without symmetries
    at = placements(tree, generic.tolist(), math)
    M = G.T @ np.array(mass_matrix(tree, at, tree.inertias.tolist())) @ G
    for name, moment in zip(names, np.diag(M), strict=True):
        if not moment > 0:
            return f"joint {name!r} moves no mass; lock it, or give a link beyond it mass and inertia"
    scale = np.sqrt(np.diag(M))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    if not values[0] > 1e-12:
        first, second = (names[i] for i in sorted(np.argsort(np.abs(vectors[:, 0]))[-2:].tolist()))
        return (
            f"joints {first!r} and {second!r} move the same mass along the same path; "
            "give the link between them mass and inertia"
        )
    return ""


def require_moved_mass(where: str, tree: Tree) -> None:
    """Raise `RobotError` if the mass matrix of a tree is singular; `where` begins the message."""
    if fault := moved_mass_fault(tree, tree.names, np.eye(tree.n), np.zeros(tree.n)):
        raise RobotError(f"{where}: {fault}")
