"""The mass matrix by composite rigid bodies, and the equation of motion solved for the accelerations.

As in `twin/multibody/recursions.py` the scalars may be of any kind, and bodies are given as `m, h = m c` and
the inertia about their frame's origin.

Source: Featherstone 2008, sections 6.2 and 6.5; the factors `L^T D L` need no roots.
"""

import math
from typing import Any

import numpy as np

from twin.errors import RobotError
from twin.multibody.recursions import (
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
from twin.multibody.tree import Tree


def mass_matrix(tree: Tree, at: Placement, inertias: Any) -> list[list[Any]]:
    """The joint-space inertia of a tree.

    Args:
        tree: the robot's moving joints.
        at: the placement of its links.
        inertias: per link `m, m c (3), I (xx, yy, zz, xy, xz, yz)` about the link's origin, in its frame.
    """
    n = tree.n
    masses = [row[0] for row in inertias]  # of each link and of all that it carries
    moments: list[Vector] = [tuple(row[1:4]) for row in inertias]
    tensors: list[Any] = [tuple(row[4:10]) for row in inertias]
    M: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for i in reversed(range(n)):
        if tree.kinds[i] == "revolute":  # the force and the moment about the origin for a unit acceleration
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
    """A body's first moments and inertia in a frame in which its own has the pose `R`, `p`."""
    xx, yy, zz, xy, xz, yz = tensor
    rows = compose(R, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    turned = [dot(rows[i], R[j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
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
    return add(h, scale(mass, p)), tuple(a + b for a, b in zip(turned, shift, strict=True))


def solve(M: list[list[Any]], load: list[Any], reciprocal: Any) -> list[Any]:
    """`x` with `M x = load`, for a symmetric `M` that is positive definite.

    Args:
        M: (n, n) matrix; only its lower triangle is read.
        load: (n,) right-hand side.
        reciprocal: `1 / x` for such scalars.
    """
    n = len(load)
    M, x = [list(row) for row in M], list(load)
    inverse: list[Any] = [0.0] * n
    for k in reversed(range(n)):  # from the last joint: what is zero between two branches stays so
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


def require_moved_mass(where: str, tree: Tree) -> None:
    """Raise `RobotError` where joints move no mass of their own; `where` begins the sentence."""
    somewhere = [0.1 * (i + 1) for i in range(tree.n)]  # in no special position
    at = placements(tree, somewhere, math)
    M = np.array(mass_matrix(tree, at, tree.inertias.tolist()))
    for name, moment in zip(tree.names, np.diag(M), strict=True):
        if not moment > 0:
            raise RobotError(f"{where}: joint {name!r} moves no mass; give a link beyond it mass and inertia")
    scale = np.sqrt(np.diag(M))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    if not values[0] > 1e-12:
        first, second = (tree.names[i] for i in sorted(np.argsort(np.abs(vectors[:, 0]))[-2:].tolist()))
        raise RobotError(
            f"{where}: joints {first!r} and {second!r} move the same mass in the same way; "
            "give the link between them mass and inertia"
        )
