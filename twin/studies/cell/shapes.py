"""Shapes for distances: boxes, spheres, cylinders and convex parts of meshes, in frames of bodies."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from twin.base.arrays import Floats
from twin.base.errors import CellError, RobotError
from twin.physics.kinematics.forward import link_poses
from twin.physics.robot.link_shapes import mesh_file, resolve_mesh, shape_origin
from twin.physics.robot.robot import Robot
from twin.physics.robot.urdf_document import parse_numbers, read_document

if TYPE_CHECKING:
    from twin.studies.cell.cell import Cell

LARGEST = 20.0
"""Length of a cell, in [m], beyond which its unit is doubted."""

SMALLEST = 1e-3
"""Extent of a mesh, in [m], below which its unit is doubted."""

FLAT = 1e-6
"""Thickness of a mesh, as a share of its size, below which it counts as flat."""

CONVEX_SHARE = 0.995
"""Share of its hull's volume from which a mesh counts as convex."""

CONCAVITY = 0.02
"""Largest depth that convex parts of a mesh fill up, as a share of its size; coacd takes 0.01 to 1."""


def placement(table: dict[str, Any]) -> Floats:
    """Return the pose (4, 4) of `at` and `rpy_deg`: turns about the fixed axes x, y, z."""
    T = np.eye(4)
    T[:3, 3] = table.get("at", (0, 0, 0))
    T[:3, :3] = Rotation.from_euler("xyz", table.get("rpy_deg", (0, 0, 0)), degrees=True).as_matrix()
    return T


class Solid(NamedTuple):
    """Convex shape on a body.

    Attributes:
        body: index of the joint that moves it, -1 for the base and the cell.
        name: name of its link, "tool", or the object's name.
        geometry: shape of the library coal.
        T: (4, 4) pose in the frame of the body.
        half: (3,) half sides of a box around it, centred at and parallel to its frame, in [m].
    """

    body: int
    name: str
    geometry: Any
    T: Floats
    half: Floats


def coal() -> Any:
    """Return the library that computes distances.

    Raises:
        CellError: it is not installed.
    """
    try:
        return import_module("coal")
    except ImportError as error:
        raise CellError(
            "distances need the package coal: pip install 'irb-twin[cell]' "
            "(Linux and macOS; no wheels are known for Windows)"
        ) from error


def solids_of(shape: dict[str, Any], body: int, name: str, T_body: Floats, where: str) -> list[Solid]:
    """Return the convex parts of a shape of a cell's file.

    Args:
        shape: table of the shape.
        body: index of the body.
        name: name for pairs.
        T_body: (4, 4) frame of the shape's coordinates in the body.
        where: place in the file, for messages.
    """
    library = coal()
    if "box" in shape:
        size = np.array(shape["box"], dtype=float)
        return [Solid(body, name, library.Box(*size), T_body @ placement(shape), size / 2)]
    if "sphere" in shape:
        radius = float(shape["sphere"])
        return [Solid(body, name, library.Sphere(radius), T_body @ placement(shape), np.full(3, radius))]
    if "cylinder" in shape:
        start, end = (np.array(shape[key], dtype=float) for key in ("from", "to"))
        T, length = np.eye(4), float(np.linalg.norm(end - start))
        T[:3, :3], T[:3, 3] = _frame_along((end - start) / length), (start + end) / 2
        return [_cylinder(float(shape["cylinder"]), length, body, name, T_body @ T)]
    return _mesh_solids(shape, body, name, T_body @ placement(shape), where)


def _cylinder(radius: float, length: float, body: int, name: str, T: Floats) -> Solid:
    half = np.array([radius, radius, length / 2])
    return Solid(body, name, coal().Cylinder(radius, length), T, half)


def _frame_along(z: Floats) -> Floats:
    """Return a rotation (3, 3) whose third axis is a unit vector."""
    x = np.asarray(np.cross(z, np.eye(3)[np.argmin(np.abs(z))]), dtype=np.float64)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z], dtype=np.float64).T


def _mesh_solids(shape: dict[str, Any], body: int, name: str, T: Floats, where: str) -> list[Solid]:
    import trimesh

    from urdf.schema import UNITS

    path = Path(shape["mesh"])
    try:
        vertices, faces = mesh_file(path)
    except (OSError, ValueError) as error:
        missing = f"there is no mesh file {path}" if isinstance(error, OSError) else str(error)
        raise CellError(f"{where}: {missing}") from None
    mesh = trimesh.Trimesh(vertices * UNITS[shape["unit"]], faces)
    size = float(np.ptp(mesh.vertices, axis=0).max())
    if not SMALLEST <= size <= LARGEST:
        raise CellError(
            f"{where}: {path.name} is {size:.3g} m large in {shape['unit']!r}, "
            f"expected {SMALLEST} m to {LARGEST:g} m: is it another unit?"
        )
    centred = mesh.vertices - mesh.vertices.mean(axis=0)
    if np.linalg.matrix_rank(centred, tol=FLAT * np.linalg.norm(centred)) < 3:
        raise CellError(f"{where}: {path.name} is flat: expected a mesh with a volume")
    hull, closed = mesh.convex_hull, mesh.is_watertight
    convex = shape.get("convex", closed and abs(mesh.volume) >= CONVEX_SHARE * hull.volume)
    if not convex and not (closed and "convex" in shape):
        state = "is not convex" if closed else "is not a closed surface"
        split = ", or convex = false to split it" if closed else ""
        raise CellError(f"{where}: {path.name} {state}: expected convex = true to take its hull{split}")
    parts = [(hull.vertices, hull.faces)] if convex else _convex_parts(mesh, where)
    return [_convex(np.asarray(points), np.asarray(triangles), body, name, T) for points, triangles in parts]


def _convex_parts(mesh: Any, where: str) -> list[tuple[Floats, Floats]]:
    """Return vertices and triangles of convex parts that together cover a mesh."""
    try:
        import coacd
    except ImportError as error:
        raise CellError(
            f"{where}: convex = false needs the package coacd: pip install 'irb-twin[cell]'"
        ) from error
    coacd.set_log_level("error")
    return coacd.run_coacd(coacd.Mesh(mesh.vertices, mesh.faces), threshold=CONCAVITY, seed=0)


def _convex(points: Floats, triangles: Floats, body: int, name: str, T: Floats) -> Solid:
    """Return the hull of points; its frame is centred in the box around it."""
    library = coal()
    low, high = points.min(axis=0), points.max(axis=0)
    centre = (low + high) / 2
    corners, faces = library.StdVec_Vec3s(), library.StdVec_Triangle()
    for point in points - centre:
        corners.append(point)
    for a, b, c in triangles:
        faces.append(library.Triangle(int(a), int(b), int(c)))
    T_centre = np.eye(4)
    T_centre[:3, 3] = centre
    return Solid(body, name, library.Convex(corners, faces), T @ T_centre, (high - low) / 2)


def triangles_of(solid: Solid) -> tuple[Floats, NDArray[np.int64]]:
    """Return vertices in the shape's frame, in [m], and triangles of a shape, to draw it."""
    import trimesh

    shape = solid.geometry
    if hasattr(shape, "halfSide"):
        mesh = trimesh.creation.box(2 * np.asarray(shape.halfSide))
    elif hasattr(shape, "halfLength"):
        make = trimesh.creation.capsule if type(shape).__name__ == "Capsule" else trimesh.creation.cylinder
        mesh = make(radius=shape.radius, height=2 * shape.halfLength)
    elif hasattr(shape, "radius"):
        mesh = trimesh.creation.icosphere(radius=shape.radius)
    else:
        mesh = trimesh.convex.convex_hull(np.array([shape.point(k) for k in range(shape.num_points)]))
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def robot_facts(robot: Robot) -> dict[str, Any]:
    """Return the `robot.toml` beside a robot's URDF, empty if there is none."""
    path = None if robot.urdf is None else robot.urdf.parent / "robot.toml"
    if path is None or not path.is_file():
        return {}
    from urdf.facts import read

    return read(path)


def arm_solids(robot: Robot) -> list[Solid]:
    """Return the covers of a robot's links, or else its collision shapes; a mesh file counts as its hull.

    Raises:
        CellError: the robot has no such shapes.
    """
    found = _covers(robot, robot_facts(robot)) or _collision_shapes(robot)
    if not found:
        raise CellError(f"robot {robot.name!r} has no <collision> shapes, so its distances are unknown")
    return found


def _covers(robot: Robot, facts: dict[str, Any]) -> list[Solid]:
    """Return the covers of all links; empty if a link has none."""
    links = facts.get("link", {})
    if not links or not all("cover" in link for link in links.values()):
        return []
    T_links = link_poses(robot, np.zeros(robot.n))
    found = []
    for key, link in links.items():
        body = -1 if key == "base" else robot.tree.links.index(f"link_{key}")
        T = np.eye(4) if body < 0 else np.linalg.inv(T_links[body])
        for shape in link["cover"]:
            found += solids_of(shape, body, body_name(robot, body), T, f"{robot.name}: link.{key}")
    return found


def _collision_shapes(robot: Robot) -> list[Solid]:
    """Return the `<collision>` shapes of a robot's URDF."""
    found: list[Solid] = []
    if robot.urdf is None:
        return found
    document = read_document(robot.urdf)
    for link, (body, T_link) in robot.frames.items():
        for element in document.links[link].iterfind("collision"):
            try:
                T = T_link @ shape_origin(element)
                found += _urdf_solids(element, robot.urdf.absolute().parent, body, body_name(robot, body), T)
            except (ValueError, FileNotFoundError) as error:
                raise RobotError(f"{robot.urdf}: link {link!r}: <collision>: {error}") from error
    return found


def touching_links(robot: Robot) -> set[frozenset[str]]:
    """Return the pairs of links whose covers overlap in every pose."""
    pairs = robot_facts(robot).get("links", {}).get("may_touch", ())
    return {frozenset(f"link_{key}" for key in pair.split()) for pair in pairs}


def shapes_accuracy(robot: Robot, cell: Cell) -> float | None:
    """Return how far the arm's surface may stick out of its shapes, in [m]; None if unverified.

    The cell's file states it. The covers of a robot's `robot.toml` are larger than its CAD everywhere.
    """
    if cell.shapes_accuracy is not None:
        return cell.shapes_accuracy
    links = robot_facts(robot).get("link", {})
    return 0.0 if links and all("cover" in link for link in links.values()) else None


def body_name(robot: Robot, body: int) -> str:
    """Return the name of a body for pairs: that of its link, or "base"."""
    return "base" if body < 0 else robot.tree.links[body]


def _urdf_solids(element: ET.Element, folder: Path, body: int, name: str, T: Floats) -> list[Solid]:
    """Return the shape of a `<collision>`."""
    import trimesh

    library = coal()
    for shape in element.iterfind("geometry/*"):

        def numbers(key: str, shape: ET.Element = shape) -> list[float]:
            return parse_numbers(shape.get(key, ""))

        if shape.tag == "box":
            size = np.array(numbers("size"))
            return [Solid(body, name, library.Box(*size), T, size / 2)]
        if shape.tag == "sphere":
            (radius,) = numbers("radius")
            return [Solid(body, name, library.Sphere(radius), T, np.full(3, radius))]
        if shape.tag == "cylinder":
            (radius,), (length,) = numbers("radius"), numbers("length")
            return [_cylinder(radius, length, body, name, T)]
        if shape.tag == "capsule":
            (radius,), (length,) = numbers("radius"), numbers("length")
            half = np.array([radius, radius, length / 2 + radius])
            return [Solid(body, name, library.Capsule(radius, length), T, half)]
        if shape.tag == "mesh":
            vertices, faces = mesh_file(Path(resolve_mesh(shape.get("filename", ""), folder)))
            scale = np.array(numbers("scale") if shape.get("scale") else [1.0, 1.0, 1.0])
            hull = trimesh.Trimesh(vertices * scale, faces).convex_hull
            return [_convex(np.asarray(hull.vertices), np.asarray(hull.faces), body, name, T)]
    return []
