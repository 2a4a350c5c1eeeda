"""Surfaces that a tool touches, and the force on it, as bodies and arrows of pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.logs.log import Log
from twin.physics.dynamics.environment import AXES, ORIGIN, SHAPES, SIZE

PATCH = 0.25
"""Half side of the patch of a plane that is drawn, in [m]."""
LONGEST = 0.25
"""Length of the arrow of the largest force, in [m]."""


def surface_meshes(log: Log) -> list[tuple[Floats, NDArray]]:
    """Return vertices (k, 3), base frame, in [m], and triangles of the surfaces of a run; none without them.

    A plane is a square patch below the middle of the tool's path.
    """
    import trimesh

    if log.environment is None:
        return []
    found, path = [], log.pose[np.isfinite(log.pose[:, 0]), :3]
    for row in log.environment.surfaces:
        T, shape, size = np.eye(4), SHAPES[int(row[0])], row[SIZE:]
        T[:3, :3], T[:3, 3] = row[AXES:ORIGIN].reshape(3, 3).T, row[ORIGIN:SIZE]
        if shape == "plane":
            n, middle = T[:3, 2], (path.min(axis=0) + path.max(axis=0)) / 2
            T[:3, 3] = middle - n * (n @ (middle - T[:3, 3]))
            mesh = trimesh.creation.box([2 * PATCH, 2 * PATCH, 1e-4])
        elif shape == "box":
            mesh = trimesh.creation.box(2 * size)
        elif shape == "sphere":
            mesh = trimesh.creation.icosphere(radius=size[0])
        else:
            mesh = trimesh.creation.cylinder(radius=size[0], height=2 * size[2])
        mesh.apply_transform(T)
        found.append((np.asarray(mesh.vertices), np.asarray(mesh.faces)))
    return found


def arrows(log: Log) -> Floats:
    """Return the arrows (N, 2, 3) of the forces on the tool, tail and head, in [m]; none without a force."""
    force = log.wrench[:, :3]
    largest = float(np.max(np.linalg.norm(force, axis=1), initial=0.0))
    if not largest > 0.0:
        return np.zeros((0, 2, 3))
    p = log.pose[:, :3]
    return np.stack([p, p + LONGEST / largest * force], axis=1)
