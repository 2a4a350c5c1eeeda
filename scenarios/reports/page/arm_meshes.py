"""What an arm looks like in the replay: few meshes, of a bounded number of triangles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.robot.robot import Robot

MOST_TRIANGLES = 40_000
"""Of an arm; one with more is drawn coarser."""
FINEST = 1e-3  # m: the cell of the grid that a mesh with too many triangles is first brought to


class Mesh(NamedTuple):
    """A shape.

    Attributes:
        link: that moves it, -1 for the base.
        color: (3,) red, green and blue, to 255.
        vertices: (k, 3) in the link's frame, in [m].
        faces: (m, 3) its triangles, as indices of vertices.
        inward: (k, 3) where the middle of what a vertex belongs to is: 1 or -1 from its sides, 0 there.
    """

    link: int
    color: tuple[int, ...]
    vertices: NDArray
    faces: NDArray
    inward: NDArray

    def inside(self, depth: float) -> NDArray:
        """Vertices (k, 3) of the same shape that is smaller by `depth`, in [m], on all sides."""
        return self.vertices + depth * self.inward


def arm_meshes(robot: Robot) -> list[Mesh]:
    """The robot's shapes, one mesh for all of a link that have one colour; coarser if they are too many.

    Raises:
        RobotError: a shape of the robot cannot be drawn.
    """
    from twin.loading.link_shapes import link_shapes

    parts: dict[tuple[int, tuple[float, ...]], list[Any]] = {}
    for shape in link_shapes(robot):
        parts.setdefault((shape.link, shape.color), []).append(shape.mesh)
    found = []
    for (link, color), together in parts.items():
        starts = np.cumsum([0, *(len(mesh.vertices) for mesh in together)])
        vertices = np.concatenate([mesh.vertices for mesh in together])
        faces = np.concatenate([mesh.faces + start for mesh, start in zip(together, starts, strict=False)])
        inward = np.concatenate([_inward(mesh.vertices) for mesh in together])
        found.append(Mesh(link, tuple(round(255 * part) for part in color[:3]), vertices, faces, inward))
    cell = FINEST
    while sum(len(mesh.faces) for mesh in found) > MOST_TRIANGLES:
        found = [coarser(mesh, cell) for mesh in found]
        cell *= 1.5
    return [mesh for mesh in found if len(mesh.faces)]


def coarser(mesh: Mesh, cell: float) -> Mesh:
    """The mesh with the vertices in each cell of a grid made one; triangles that lose a side go.

    Args:
        mesh: of a link.
        cell: width of a cell of the grid, in [m].
    """
    cells = np.round(mesh.vertices / cell)
    _, first, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    faces = inverse.reshape(-1)[mesh.faces]
    a, b, c = faces.T
    whole = (a != b) & (b != c) & (c != a)
    return Mesh(mesh.link, mesh.color, mesh.vertices[first], faces[whole], mesh.inward[first])


def _inward(vertices: NDArray) -> NDArray:
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    half = np.maximum((high - low) / 2, 1e-9)
    return ((low + high) / 2 - vertices) / half


def reached(meshes: Sequence[Mesh], T: NDArray) -> NDArray:
    """Corners (k, 3) of boxes about the meshes, base frame, of links with the poses T (F, n_tree, 4, 4)."""
    points = [np.zeros((1, 3))]
    for mesh in meshes:
        ends = np.array([mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)])
        box = np.array([[ends[i, 0], ends[j, 1], ends[k, 2]] for i, j, k in product((0, 1), repeat=3)])
        if mesh.link >= 0:
            R, p = T[:, mesh.link, :3, :3], T[:, mesh.link, :3, 3]
            box = (np.einsum("fij,cj->fci", R, box) + p[:, None]).reshape(-1, 3)
        points.append(box)
    return np.concatenate(points)
