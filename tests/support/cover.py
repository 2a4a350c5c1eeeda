"""`python -m tests.support.cover irb140 FOLDER`: convex shapes that cover the CAD of an arm's links.

Print `cover = [...]` for each link: boxes and cylinders parallel to the axes of the base at the zero pose.
The CAD's triangles are divided by planes where that reduces the volume of the shapes most. Every triangle is
inside one shape. Beside each link stands how far its shapes stick out of the CAD: median, 95 %, largest.
"""

import sys
from pathlib import Path

import numpy as np
import trimesh
from scipy.spatial import ConvexHull, cKDTree

MOST_SHAPES = 8, 12, 16
LARGEST_EXCESS = 0.030
"""Excess in [m] of 95 % of the surface, above which a link gets more shapes."""

LONGEST_EDGE = 0.008
MOST_TRIANGLES = 12_000
PLANES = np.linspace(0.08, 0.92, 22)
ROUNDING = 1e-3


IRB1600_ORIGINS = np.cumsum(
    [[0, 0, 0], [0, 0, 0], [0.15, 0, 0.4865], [0, 0, 0.7], [0.3, 0, 0], [0.3, 0, 0], [0.065, 0, 0]], axis=0
)
"""Origins of the frames of the meshes of the IRB 1600 at the zero pose, base frame, in [m]."""


def cad(name, folder):
    """Return the meshes of the links, base first, in the base frame at the zero pose, in [m]."""
    meshes = []
    for k, stem in enumerate(["base_link", *(f"link_{i}" for i in range(1, 7))]):
        (path,) = Path(folder).glob(f"{stem}.*")
        mesh = trimesh.load(str(path), force="mesh")
        if name == "irb140":
            mesh.apply_scale(0.01)
        elif name in ("irb1600", "irb1600_10"):
            mesh.apply_translation(IRB1600_ORIGINS[k])
        meshes.append(mesh)
    return meshes


def smallest_circle(points):
    """Return centre and radius of a small circle around points (k, 2), exact to 1e-6."""
    points = points[ConvexHull(points).vertices]
    centre = points.mean(axis=0)
    for step in range(1, 4000):
        far = points[np.argmax(np.linalg.norm(points - centre, axis=1))]
        centre = centre + (far - centre) / (step + 1)
    return centre, np.linalg.norm(points - centre, axis=1).max()


def cover(points):
    """Return volume and shape of the smallest box or cylinder parallel to the axes around points (k, 3)."""
    low = np.floor(points.min(axis=0) / ROUNDING) * ROUNDING
    high = np.ceil(points.max(axis=0) / ROUNDING) * ROUNDING
    size = np.maximum(high - low, ROUNDING)
    best = np.prod(size), {"box": size, "at": (low + high) / 2}
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        across = points[:, others]
        if max(np.ptp(across, axis=0)) > 1.35 * min(np.ptp(across, axis=0)):
            continue  # far from round
        centre, radius = smallest_circle(across)
        radius = np.ceil((radius + ROUNDING) / ROUNDING) * ROUNDING
        volume = np.pi * radius**2 * size[axis]
        if volume < best[0]:
            start, end = np.empty(3), np.empty(3)
            start[others] = end[others] = np.round(centre / ROUNDING) * ROUNDING
            start[axis], end[axis] = low[axis], high[axis]
            best = volume, {"cylinder": radius, "from": start, "to": end}
    return best


def best_split(triangles):
    """Return the two parts of triangles (k, 3, 3) whose covers have the smallest volume, or None.

    Of many triangles a share chooses the plane.
    """
    some = triangles[:: len(triangles) // MOST_TRIANGLES + 1]
    centres = some.mean(axis=1)
    low, high = centres.min(axis=0), centres.max(axis=0)
    best = None
    for axis in range(3):
        for share in PLANES:
            plane = low[axis] + share * (high[axis] - low[axis])
            left = centres[:, axis] < plane
            if min(left.sum(), (~left).sum()) < 12:
                continue
            total = sum(rough(some[side].reshape(-1, 3)) for side in (left, ~left))
            if best is None or total < best[0]:
                best = total, axis, plane
    if best is None:
        return None
    total, axis, plane = best
    left = triangles.mean(axis=1)[:, axis] < plane
    return total, triangles[left], triangles[~left]


def rough(points):
    """Return the volume of the smaller of box and cylinders around points, from the box's sides."""
    size = np.maximum(np.ptp(points, axis=0), ROUNDING)
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    volumes = [np.prod(size)]
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        radius = np.linalg.norm((points - middle)[:, others], axis=1).max()
        volumes.append(np.pi * radius**2 * size[axis])
    return min(volumes)


def covers(mesh, most):
    """Return shapes that cover a mesh."""
    vertices, faces = trimesh.remesh.subdivide_to_size(mesh.vertices, mesh.faces, LONGEST_EDGE)
    parts = [vertices[faces]]
    while len(parts) < most:
        gains = []
        for k, part in enumerate(parts):
            split = best_split(part)
            gain = -np.inf if split is None else rough(part.reshape(-1, 3)) - split[0]
            gains.append((gain, k, split))
        gain, k, split = max(gains, key=lambda one: one[0])
        if split is None or gain <= 0:
            break
        parts[k : k + 1] = split[1:]
    return [cover(part.reshape(-1, 3))[1] for part in parts]


def outside(shape, points):
    """Return how far points (k, 3) are outside a shape; negative inside."""
    if "box" in shape:
        beyond = np.abs(points - shape["at"]) - np.array(shape["box"]) / 2
    else:
        start, end = np.array(shape["from"], dtype=float), np.array(shape["to"], dtype=float)
        axis = (end - start) / np.linalg.norm(end - start)
        along = (points - (start + end) / 2) @ axis
        across = np.linalg.norm(points - (start + end) / 2 - along[:, None] * axis, axis=1)
        beyond = np.column_stack(
            [np.abs(along) - np.linalg.norm(end - start) / 2, across - shape["cylinder"]]
        )
    return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)


def surface(shape):
    """Return points on the surface of a shape."""
    if "box" in shape:
        mesh = trimesh.creation.box(shape["box"])
        mesh.apply_translation(shape["at"])
    else:
        mesh = trimesh.creation.cylinder(shape["cylinder"], segment=[shape["from"], shape["to"]], sections=64)
    return trimesh.sample.sample_surface(mesh, 4000, seed=1)[0]


def excess(shapes, mesh):
    """Return distances in [m] of the covered surface's points from the CAD."""
    outer = []
    for k, shape in enumerate(shapes):
        points = surface(shape)
        hidden = np.zeros(len(points), dtype=bool)
        for other in shapes[:k] + shapes[k + 1 :]:
            hidden |= outside(other, points) < -1e-4
        outer.append(points[~hidden])
    tree = cKDTree(trimesh.sample.sample_surface(mesh, 200_000, seed=1)[0])
    return tree.query(np.concatenate(outer))[0]


def number(value):
    """Return a number with at most four decimals."""
    return f"{round(value, 4) + 0.0:g}"


def text(shape):
    """Return a shape as a line of a robot.toml."""
    parts = [
        f"{key} = {number(value) if np.ndim(value) == 0 else '[' + ', '.join(map(number, value)) + ']'}"
        for key, value in shape.items()
    ]
    return "    { " + ", ".join(parts) + " },"


if __name__ == "__main__":
    robot, folder = sys.argv[1:]
    for link, mesh in zip(["base", *"123456"], cad(robot, folder), strict=True):
        for most in MOST_SHAPES:
            shapes = covers(mesh, most)
            beyond = 1e3 * excess(shapes, mesh)
            if np.percentile(beyond, 95) <= 1e3 * LARGEST_EXCESS:
                break
        figures = np.median(beyond), np.percentile(beyond, 95), beyond.max()
        print(f"[link.{link}]", *(f"{one:.0f}" for one in figures), "mm")
        print("cover = [", *map(text, shapes), "]", sep="\n", flush=True)
