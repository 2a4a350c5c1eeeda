"""The shapes of links, handed to PyBullet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twin.loading.link_shapes import Shape

if TYPE_CHECKING:
    from trimesh import Trimesh

MOST_COLOURS = 16
"""That PyBullet takes for one link."""


def meshes_by_colour(shapes: list[Shape], link: int) -> list[tuple[tuple[float, ...], Trimesh]]:
    """The shapes of a link (-1 for the base), those of one colour as one mesh, the largest surface first."""
    import trimesh

    coloured: dict[tuple[float, ...], list[Trimesh]] = {}
    for shape in (shape for shape in shapes if shape.link == link):
        room = len(coloured) < MOST_COLOURS or shape.color in coloured
        coloured.setdefault(shape.color if room else next(iter(coloured)), []).append(shape.mesh)
    meshes: list[tuple[tuple[float, ...], Any]] = [
        (color, trimesh.util.concatenate(parts)) for color, parts in coloured.items()
    ]
    return sorted(meshes, key=lambda mesh: -mesh[1].area)


def mesh_files(folder: Path) -> Iterator[Path]:
    """Names of files that are not there yet."""
    return (folder / f"{k}.stl" for k in range(1_000_000))


def visual_shape(client: Any, meshes: list[tuple[tuple[float, ...], Trimesh]], files: Iterator[Path]) -> int:
    """PyBullet's number of a link's looks, -1 for nothing."""
    if not meshes:
        return -1
    names = []
    for _, mesh in meshes:
        file = next(files)
        # Binary: numbers in text would be read in the locale of the process.
        file.write_bytes(cast(bytes, mesh.export(file_type="stl")))
        names.append(str(file))
    return client.createVisualShapeArray(
        shapeTypes=[client.GEOM_MESH] * len(names),
        fileNames=names,
        meshScales=[[1.0, 1.0, 1.0]] * len(names),
        visualFramePositions=[[0.0, 0.0, 0.0]] * len(names),
        visualFrameOrientations=[[0.0, 0.0, 0.0, 1.0]] * len(names),
        rgbaColors=[list(color) for color, _ in meshes],
    )
