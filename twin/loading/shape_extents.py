"""How far the shapes of a URDF reach: a box about each, in the frame of its link."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation


class Extent(NamedTuple):
    """A shape: whether it is `"visual"` or `"collision"`, the corners (8, 3) of a box about it, its volume.

    The volume, in [m^3], is that of a box, a cylinder or a sphere, and that of the box about a mesh.
    """

    kind: str
    corners: np.ndarray
    volume: float


def shape_extent(kind: str, shape: ET.Element, mesh: Path | None) -> Extent | None:
    """The extent of a `<visual>` or `<collision>`; `None` where it cannot be known.

    Args:
        kind: which of the two it is.
        shape: the element.
        mesh: the file of its mesh, if it has one.
    """
    try:
        origin = shape.find("origin")
        p, rpy = (_numbers(origin, name, (0.0, 0.0, 0.0)) for name in ("xyz", "rpy"))
        bounds = _bounds(shape.find("geometry"), mesh)
    except (ValueError, OSError):
        return None
    if bounds is None:
        return None
    low, high, volume = bounds
    corners = np.array([[(low, high)[side[i]][i] for i in range(3)] for side in product((0, 1), repeat=3)])
    return Extent(kind, corners @ Rotation.from_euler("xyz", rpy).as_matrix().T + p, volume)


def _bounds(geometry: ET.Element | None, mesh: Path | None) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Lowest and highest corner (3,) of a shape in its own frame, and its volume."""
    if geometry is None:
        return None
    for element in geometry:
        if element.tag == "box":
            half = _numbers(element, "size") / 2
            return -half, half, float(8 * np.prod(half))
        if element.tag == "sphere":
            radius = _numbers(element, "radius", count=1)[0]
            return np.full(3, -radius), np.full(3, radius), 4 / 3 * np.pi * radius**3
        if element.tag == "cylinder":
            radius, length = (_numbers(element, name, count=1)[0] for name in ("radius", "length"))
            half = np.array([radius, radius, length / 2])
            return -half, half, np.pi * radius**2 * length
        if element.tag == "mesh" and mesh is not None:
            return _mesh_bounds(mesh, _numbers(element, "scale", (1.0, 1.0, 1.0)))
    return None


def _mesh_bounds(mesh: Path, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, float] | None:
    bounds = _mesh_box(mesh)
    if bounds is None:
        return None
    ends = np.array(bounds) * scale
    low, high = ends.min(axis=0), ends.max(axis=0)
    return low, high, float(np.prod(high - low))


@lru_cache(maxsize=256)  # a file often serves twice, as visual and as collision shape
def _mesh_box(mesh: Path) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """The box about the vertices of a mesh file, unscaled; `None` for a format that is not read here."""
    import trimesh

    try:
        bounds = trimesh.load(str(mesh), process=False, skip_materials=True).bounds
    except Exception:  # trimesh lets through whatever its readers raise
        return None
    if bounds is None or not np.all(np.isfinite(bounds)):
        return None
    return tuple(bounds[0].tolist()), tuple(bounds[1].tolist())


def _numbers(
    element: ET.Element | None, name: str, default: tuple[float, ...] | None = None, count: int = 3
) -> np.ndarray:
    """An attribute as numbers (count,).

    Raises:
        ValueError: it is missing without a default, or is no such numbers.
    """
    text = None if element is None else element.get(name)
    if text is None:
        if default is None:
            raise ValueError(f"no {name}")
        return np.array(default)
    numbers = np.array([float(word) for word in text.split()])
    if numbers.shape != (count,) or not np.all(np.isfinite(numbers)):
        raise ValueError(f"no {count} numbers: {text}")
    return numbers
