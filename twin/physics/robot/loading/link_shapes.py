"""Shapes of the links of a robot: the `<visual>` shapes of its URDF, or sticks if there are none.

A shape does not influence the motion.  It is read into triangles here, because PyBullet ends the process for
some broken mesh files and draws nothing for others.
"""

from __future__ import annotations

import os
import warnings
import xml.etree.ElementTree as ET
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from twin.base.errors import RobotError, ShapeWarning, printable
from twin.physics.multibody.tree import Tree
from twin.physics.robot.loading.urdf_document import parse_numbers, read_document
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from trimesh import Trimesh


PLAIN = (1.0, 1.0, 1.0, 1.0)
SIDES = 48
"""Number of sides of a cylinder, enough to look round."""

SLENDER = 0.04
"""Thickness of the sticks that replace missing shapes, as a share of the longest stick."""

LARGEST_MESH = 100_000_000
"""Largest size of a mesh file, in bytes; reading a larger one would take minutes."""


class Shape(NamedTuple):
    """Shape: the joint that moves its link (-1 for the base), its colour, and its triangles in that link.

    The colour is red, green, blue and opacity, 0 to 1; the triangles are a `trimesh.Trimesh`, in [m].
    """

    link: int
    color: tuple[float, ...]
    mesh: Trimesh


def link_shapes(robot: Robot) -> list[Shape]:
    """Return the shapes of all links of a robot.

    Raises:
        RobotError: its file is missing, or a shape in it cannot be drawn.

    Warns:
        ShapeWarning: mesh files are missing; their shapes are omitted, or replaced by sticks if none is left.
    """
    return _sticks(robot.tree) if robot.urdf is None else _of_urdf(robot.urdf, robot)


def _of_urdf(urdf: Path, robot: Robot) -> list[Shape]:
    """Return the shapes of a file on the links of a robot."""
    document = read_document(urdf)
    colors = named_colors(document.root)
    shapes, missing = [], []
    for name, (link, T_link) in robot.frames.items():
        for visual in document.links[name].iterfind("visual"):
            where = f"{urdf}: link {name!r} has a <visual> that cannot be drawn"
            try:
                mesh = shape_mesh(visual, urdf.absolute().parent)
                if mesh is None:
                    continue
                mesh.apply_transform(T_link @ shape_origin(visual))
                shapes.append(Shape(link, shape_color(visual, colors), mesh))
            except FileNotFoundError as error:
                missing.append(str(error))
            except ValueError as error:
                raise RobotError(f"{where}: {error}") from error
    if missing:
        others = f" and {len(missing) - 1} more" if missing[1:] else ""
        warnings.warn(
            f"{urdf}: mesh file {missing[0]}{others} not found beside the URDF, in a folder above it or "
            "in --package-path (ROS_PACKAGE_PATH): the shape is not drawn; nothing else depends on it",
            ShapeWarning,
            stacklevel=2,
        )
    return _sticks(robot.tree) if missing and not shapes else shapes


def shape_origin(visual: ET.Element) -> np.ndarray:
    """Return the pose (4, 4) of a shape in the frame of its link."""
    T, origin = np.eye(4), visual.find("origin")
    T[:3, :3] = Rotation.from_euler("xyz", _numbers(origin, "rpy", 3, np.zeros(3))).as_matrix()
    T[:3, 3] = _numbers(origin, "xyz", 3, np.zeros(3))
    return T


def named_colors(root: ET.Element) -> dict[str | None, ET.Element]:
    """Return the materials of a document that define a colour, by name."""
    named = [material for material in root.iter("material") if material.find("color") is not None]
    return {material.get("name"): material for material in reversed(named)}


def shape_color(visual: ET.Element, colors: dict[str | None, ET.Element]) -> tuple[float, ...]:
    """Return the colour that a shape's material defines or refers to, see `named_colors`."""
    material = visual.find("material")
    if material is None:
        return PLAIN
    said = material.find("color")
    named = colors.get(material.get("name"))
    color = said if said is not None else None if named is None else named.find("color")
    return PLAIN if color is None else tuple(_numbers(color, "rgba", 4).tolist())


def shape_mesh(visual: ET.Element, folder: Path) -> Trimesh | None:
    """Return the triangles of a shape in its frame; `None` for an unknown kind of geometry."""
    import trimesh

    for element in visual.iterfind("geometry/*"):
        if element.tag == "box":
            return trimesh.creation.box(_numbers(element, "size", 3))
        if element.tag == "sphere":
            ball = trimesh.creation.icosphere(subdivisions=3)  # radius 1, as trimesh rejects radius 0
            return trimesh.Trimesh(ball.vertices * _number(element, "radius"), ball.faces, process=False)
        if element.tag in ("cylinder", "capsule"):
            make = trimesh.creation.cylinder if element.tag == "cylinder" else trimesh.creation.capsule
            sides = {"sections": SIDES} if element.tag == "cylinder" else {}
            return make(radius=_number(element, "radius"), height=_number(element, "length"), **sides)
        if element.tag == "mesh":
            vertices, faces = mesh_file(Path(resolve_mesh(element.get("filename", ""), folder)))
            scale = _numbers(element, "scale", 3, np.ones(3))
            return trimesh.Trimesh(vertices * scale, faces, process=False)
    return None


@lru_cache(maxsize=64)  # several links often use the same file
def mesh_file(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices (k, 3) and triangles (m, 3) of a mesh file, unscaled.

    Raises:
        FileNotFoundError: the file is missing.
        ValueError: it is too large, or not a mesh that can be drawn.
    """
    import trimesh

    if not path.is_file():
        raise FileNotFoundError(printable(str(path)))
    if path.stat().st_size > LARGEST_MESH:
        raise ValueError(
            f"the mesh file {printable(str(path))} is larger than {LARGEST_MESH // 1_000_000} MB"
        )
    try:
        mesh: Any = trimesh.load(str(path), force="mesh", process=False, skip_materials=True)
        vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    except Exception as error:  # trimesh passes on any exception of its readers
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"the mesh file {printable(str(path))} cannot be read ({reason})") from error
    if not (len(faces) and np.all(np.isfinite(vertices)) and 0 <= faces.min() <= faces.max() < len(vertices)):
        raise ValueError(
            f"the mesh file {printable(str(path))} has no triangles, or triangles without vertices"
        )
    return vertices, faces


def resolve_mesh(filename: str, folder: Path) -> str:
    """Return the absolute path of a mesh file beside the URDF, above it, or in ROS_PACKAGE_PATH."""
    relative = filename.partition("://")[2] or filename
    packages = [Path(one) for one in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if one]
    for base in (folder, *folder.parents, *packages, *(package.parent for package in packages)):
        for tail in (relative, relative.partition("/")[2]):  # with and without the name of a package
            if tail and (base / tail).is_file():
                return str(base / tail)
    return filename


def _sticks(tree: Tree) -> list[Shape]:
    """Return cylinders from every joint to the joints that its link carries."""
    import trimesh

    ends = [(parent, T[:3, 3]) for parent, T in zip(tree.parents, tree.T_parent_joint, strict=True)]
    ends.append((tree.flange_joint, tree.T_joint_flange[:3, 3]))
    thick = SLENDER * max(float(np.linalg.norm(end)) for _, end in ends)
    return [
        Shape(
            link,
            PLAIN,
            trimesh.creation.cylinder(radius=thick / 2, segment=[np.zeros(3), end], sections=SIDES),
        )
        for link, end in ends
        if np.linalg.norm(end) > thick
    ]


def _number(element: ET.Element, name: str) -> float:
    value = float(_numbers(element, name, 1)[0])
    if not value >= 0:
        raise ValueError(f"<{element.tag} {name}={element.get(name)!r}>, expected at least 0")
    return value


def _numbers(
    element: ET.Element | None, name: str, count: int, default: np.ndarray | None = None
) -> np.ndarray:
    """Return an attribute as finite numbers (count,), or the default if it is missing.

    Raises:
        ValueError: it is missing without a default, or does not contain such numbers.
    """
    text = None if element is None else element.get(name)
    if text is None and default is not None:
        return default
    numbers = parse_numbers(text or "")
    if len(numbers) != count or not np.all(np.isfinite(numbers)):
        tag = "" if element is None else element.tag
        expected = "a finite number" if count == 1 else f"{count} finite numbers"
        raise ValueError(f"<{tag} {name}={text!r}>, expected {expected}")
    return np.array(numbers)


class Extent(NamedTuple):
    """Extent of a `"visual"` or `"collision"` shape: the corners (8, 3) of a box around it, and its volume.

    The volume, in [m^3], is that of its triangles; for a mesh file it is that of the box.
    """

    kind: str
    corners: np.ndarray
    volume: float


def shape_extent(kind: str, shape: ET.Element, folder: Path) -> Extent | None:
    """Return the extent of a `<visual>` or `<collision>`; `None` if it cannot be determined.

    Args:
        kind: `"visual"` or `"collision"`.
        shape: the element.
        folder: folder of the URDF.
    """
    try:
        mesh, T = shape_mesh(shape, folder), shape_origin(shape)
    except (ValueError, OSError):
        return None
    if mesh is None:
        return None
    low, high = mesh.bounds
    closed = shape.find("geometry/mesh") is None
    corners = np.array(list(product(*zip(low, high, strict=True))))
    # trimesh's volume divides by itself, which fails for 0: sum tetrahedra with the origin instead.
    volume = np.sum(np.linalg.det(mesh.triangles)) / 6 if closed else np.prod(high - low)
    return Extent(kind, corners @ T[:3, :3].T + T[:3, 3], float(volume))


def meshes_by_colour(shapes: list[Shape], link: int) -> list[tuple[tuple[float, ...], Trimesh]]:
    """Return the shapes of a link (-1 for the base) as one mesh per colour, the largest surface first."""
    import trimesh

    coloured: dict[tuple[float, ...], list[Trimesh]] = {}
    for shape in (shape for shape in shapes if shape.link == link):
        coloured.setdefault(shape.color, []).append(shape.mesh)
    meshes: list[tuple[tuple[float, ...], Any]] = [
        (color, trimesh.util.concatenate(parts)) for color, parts in coloured.items()
    ]
    return sorted(meshes, key=lambda mesh: -mesh[1].area)
