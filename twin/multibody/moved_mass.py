"""Whether every joint of a tree moves some mass, for otherwise its acceleration is undefined."""

from __future__ import annotations

import math

import numpy as np

from twin.errors import RobotError
from twin.multibody import composite_bodies, recursions
from twin.multibody.tree import Tree


def require_moved_mass(where: str, tree: Tree) -> None:
    """Raise `RobotError` where joints move no mass of their own; `where` begins the sentence."""
    somewhere = [0.1 * (i + 1) for i in range(tree.n)]  # in no special position
    at = recursions.placements(tree, somewhere, math)
    M = np.array(composite_bodies.mass_matrix(tree, at, tree.inertias.tolist()))
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
