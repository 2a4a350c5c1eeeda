"""Shapes of the links of a robot, and mass, centre of mass and inertia of the solids that CAD meshes bound.

The shapes are the `<visual>` ones of the URDF, or sticks if there are none.  A shape does not influence the
motion.  It is read into triangles here, because PyBullet ends the process for some broken mesh files and
draws nothing for others.

A closed mesh bounds a solid of uniform density.  Its integrals are exact: the solid is the signed sum of the
tetrahedra between a point and each triangle.

Source: Aliaga 2019, section 3.2.1: the mass of an arm is shared between its links by volume.
"""

from __future__ import annotations

import os
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from twin.base.arrays import Floats
from twin.base.errors import RobotError, ShapeWarning, printable
from twin.physics.multibody.tree import Tree
from twin.physics.robot.robot import Robot
from twin.physics.robot.urdf_document import parse_numbers, read_document
from urdf.schema import UNITS

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


TOO_LONG = 3.0
"""Length of a mesh over that of the arm from which on its unit must be wrong."""


class Body(NamedTuple):
    """Homogeneous body with the integrals of its solid.

    Attributes:
        volume: volume, in [m^3].
        com: (3,) centre of mass, in [m].
        inertia: (3, 3) inertia about the centre of mass for a density of 1, in [m^5].
        density: density, in [kg/m^3].
        remarks: sentences on the mesh that do not prevent its use.
    """

    volume: float
    com: Floats
    inertia: Floats
    density: float = 1.0
    remarks: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """Mass, in [kg]."""
        return self.density * self.volume


def body_of_mesh(vertices: Floats, faces: NDArray[np.intp], name: str) -> Body:
    """Return the body, of density 1, that a closed mesh bounds.

    Args:
        vertices: (k, 3) points, in [m]; equal points count as one.
        faces: (m, 3) triangles.
        name: name of the mesh for messages.

    Raises:
        RobotError: the mesh is not closed, its triangles do not agree on the outside, or it has no volume.
    """
    points, index = np.unique(vertices, axis=0, return_inverse=True)
    faces = index.reshape(-1)[faces]
    faces = faces[[len(set(face)) == 3 for face in faces.tolist()]]  # triangles that are a line or a point
    shells = _shells(faces, name)
    remarks: list[str] = []
    if integrals(points[faces])[0] < 0:
        faces = faces[:, ::-1]
        remarks.append(f"{name} was inside out: its triangles were turned")
    volume, com, inertia = integrals(points[faces])
    size = np.ptp(points[faces].reshape(-1, 3), axis=0)
    if not volume > 1e-9 * np.prod(np.maximum(size, 1e-9 * np.max(size, initial=0.0))):
        raise RobotError(f"{name} encloses no volume, expected the surface of a solid")
    remarks += _overlaps([points[faces[shells == shell]] for shell in range(max(shells) + 1)], name)
    return Body(volume, com, inertia, remarks=tuple(remarks))


def integrals(triangles: Floats) -> tuple[float, Floats, Floats]:
    """Return volume, centroid (3,) and inertia about it (3, 3) of the solid inside triangles (m, 3, 3)."""
    middle = triangles.reshape(-1, 3).mean(axis=0)  # a near point loses no digits
    a, b, c = np.moveaxis(triangles - middle, 1, 0)
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume, total = float(volumes.sum()), a + b + c
    if volume == 0.0:
        return 0.0, middle, np.zeros((3, 3))
    centroid = volumes @ total / (4.0 * volume)
    second = sum(np.einsum("i,ij,ik->jk", volumes, x, x) for x in (a, b, c, total)) / 20.0
    second = second - volume * np.outer(centroid, centroid)
    return volume, middle + centroid, np.trace(second) * np.eye(3) - second


def _shells(faces: NDArray[np.intp], name: str) -> NDArray[np.intp]:
    """Return the number (m,) of each triangle's shell; raise `RobotError` unless all shells are closed."""
    from scipy.sparse import coo_array  # imported here because few arms are weighed
    from scipy.sparse.csgraph import connected_components

    if not len(faces):
        raise RobotError(f"{name} has no triangles with an area")
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    owners = np.tile(np.arange(len(faces)), 3)
    _, edge, uses = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True, return_counts=True)
    directions = np.where(edges[:, 0] < edges[:, 1], 1, -1)
    edge = edge.reshape(-1)
    balance = np.bincount(edge, weights=directions)
    if odd := int(np.count_nonzero(uses % 2)):
        raise RobotError(
            f"{name} is not closed: {odd} of its {len(uses)} edges belong to an odd number of triangles, so "
            "it bounds no solid; repair the mesh, or export it as a solid"
        )
    if mixed := int(np.count_nonzero(balance)):
        raise RobotError(
            f"{name} has triangles that disagree on the outside, at {mixed} of its {len(uses)} edges: turn "
            "them to one side"
        )
    meeting = coo_array(
        (np.ones(len(edge)), (owners, len(faces) + edge)), shape=(len(faces) + len(uses),) * 2
    )
    _, shells = connected_components(meeting, directed=False)
    return np.unique(shells[: len(faces)], return_inverse=True)[1].reshape(-1)


def _overlaps(shells: Sequence[Floats], name: str) -> list[str]:
    """Return a sentence on the pairs of solid shells of which one has corners inside the other, if any."""
    boxes = [(shell.min(axis=(0, 1)), shell.max(axis=(0, 1))) for shell in shells]
    solid = [k for k, shell in enumerate(shells) if integrals(shell)[0] > 0]  # the others are cavities
    found = []
    for k, i in enumerate(solid):
        for j in solid[k + 1 :]:
            apart = np.any(boxes[i][1] < boxes[j][0]) or np.any(boxes[j][1] < boxes[i][0])
            if not apart and (_inside(shells[i], shells[j]) or _inside(shells[j], shells[i])):
                found.append(f"{i + 1} and {j + 1}")
    return [f"shells {', '.join(found)} of {name} overlap: their common volume counts twice"] if found else []


def _inside(shell: Floats, other: Floats) -> bool:
    """Return whether a corner of a shell is inside another, by the solid angle of the other's triangles."""
    corners = np.unique(shell.reshape(-1, 3), axis=0)
    middle = other.reshape(-1, 3).mean(axis=0)
    corners = corners[np.argsort(np.linalg.norm(corners - middle, axis=1))[:50]]
    a, b, c = np.moveaxis(other[None] - corners[:, None, None, :], 2, 0)
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    volume = np.einsum("...i,...i", a, np.cross(b, c))
    flat = la * lb * lc + sum(
        np.einsum("...i,...i", x, y) * length for x, y, length in ((a, b, lc), (b, c, la), (c, a, lb))
    )
    turns = np.arctan2(volume, flat).sum(axis=1) / (
        2.0 * np.pi
    )  # 1 inside, 0 outside, between on the surface
    return bool(np.any(turns > 1.0 - 1e-6))


def body_of_file(path: str | Path, unit: str) -> Body:
    """Return the body, of density 1, of a mesh file.

    Args:
        path: STL, OBJ or another mesh file.
        unit: unit of length of the file, one of `UNITS`.

    Raises:
        RobotError: the file is missing or is no mesh of a solid.
    """
    try:
        vertices, faces = mesh_file(Path(path))
    except FileNotFoundError as error:
        raise RobotError(f"no such mesh file: {error}") from error
    except ValueError as error:
        raise RobotError(str(error)) from error
    return body_of_mesh(UNITS[unit] * vertices, faces, Path(path).name)


def joined(bodies: Sequence[Body]) -> Body:
    """Return bodies in one frame as one body, with the density of its mass over its volume."""
    volume, mass = (sum(getattr(body, name) for body in bodies) for name in ("volume", "mass"))
    com = np.sum([body.mass * body.com for body in bodies], axis=0) / mass
    inertia = np.zeros((3, 3))
    for body in bodies:
        arm = body.com - com
        inertia += body.density * body.inertia + body.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    density = mass / volume
    remarks = tuple(remark for body in bodies for remark in body.remarks)
    return Body(volume, com, inertia / density, density, remarks)


def bodies_of_urdf(path: str | Path) -> dict[str, Body]:
    """Return the bodies, of density 1, of the links of a URDF that have `<visual>` shapes, by name.

    Shapes of one link count separately, even where they overlap.

    Raises:
        RobotError: the file is no URDF, a shape is no solid, or a mesh is too long for the arm.
    """
    path = Path(path)
    document = read_document(path)
    links, moving = document.placed
    length = sum(float(np.linalg.norm(joint.T[:3, 3])) for joint in moving)
    found: dict[str, Body] = {}
    for name in (link.name for link in links):
        bodies = []
        for number, visual in enumerate(document.links[name].iterfind("visual"), start=1):
            where = f"{path}: shape {number} of link {name!r}"
            try:
                mesh = shape_mesh(visual, path.absolute().parent)
            except (FileNotFoundError, ValueError) as error:
                raise RobotError(f"{where}: {error}") from error
            if mesh is None:
                continue
            mesh.apply_transform(shape_origin(visual))
            size = float(np.max(np.ptp(mesh.vertices, axis=0)))
            if size > TOO_LONG * length > 0:
                raise RobotError(
                    f"{where} is {size:.4g} m long, {size / length:.3g} times the {length:.3g} m between the "
                    "arm's joints: its file is probably in mm (scale 0.001) or inch (scale 0.0254)"
                )
            bodies.append(body_of_mesh(np.array(mesh.vertices), np.array(mesh.faces), where))
        if bodies:
            found[name] = joined(bodies)
    if not found:
        raise RobotError(f"{path}: no link has a <visual> shape to weigh")
    return found


def unweighed(path: str | Path, bodies: Mapping[str, Body]) -> dict[str, float]:
    """Return the masses of the links of a URDF that have no body, by name, in [kg]; without those of 0."""
    masses = {
        link.get("name", ""): float(mass.get("value", "0"))
        for link in read_document(Path(path)).root.iterfind("link")
        for mass in link.iterfind("inertial/mass")
    }
    return {name: mass for name, mass in masses.items() if mass > 0 and name not in bodies}


def write_weighed(source: str | Path, bodies: Mapping[str, Body], target: Path) -> None:
    """Write a copy of a URDF whose links have the masses of bodies, in principal axes.

    Other parts of the file stay as they are, comments included.  A link without a body loses its mass.

    Args:
        source: the URDF.
        bodies: bodies by the names of links, in the frames of the links.
        target: path of a file that is replaced.
    """
    tree = ET.parse(source, parser=ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    base = {link.get("name") for link in tree.iterfind("link")}
    base -= {child.get("link") for child in tree.iterfind("joint/child")}
    for link in tree.iterfind("link"):
        for old in link.findall("inertial"):
            link.remove(old)
        body = bodies.get(link.get("name", ""))
        values = (0.0, np.zeros(3), np.zeros((3, 3)))
        if body is not None:
            values = (body.mass, body.com, body.density * body.inertia)
        link.insert(0, _inertial(*values, turned=link.get("name") not in base))
    tree.write(target, encoding="utf-8", xml_declaration=True)


def _inertial(mass: float, com: Floats, inertia: Floats, turned: bool) -> ET.Element:
    """Return an `<inertial>` element; engines read an inertia in principal axes (`turned`) without loss."""
    rpy = np.zeros(3)
    between = np.abs(inertia - np.diag(np.diag(inertia)))
    if turned and np.max(between) > 1e-15 * np.max(inertia):
        moments, R = np.linalg.eigh(inertia)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # gimbal lock: one angle of several that are right
            rpy = Rotation.from_matrix(R * np.linalg.det(R)).as_euler("xyz")
        inertia = np.diag(moments)
    element = ET.Element("inertial")
    ET.SubElement(element, "origin", xyz=_text(com), rpy=_text(rpy))
    ET.SubElement(element, "mass", value=_text([mass]))
    names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ET.SubElement(element, "inertia", {name: _text([inertia[place]]) for name, place in names.items()})
    ET.indent(element, level=2)
    element.tail = "\n    "
    return element


def _text(numbers: Sequence[float] | Floats) -> str:
    return " ".join(repr(float(number)) for number in numbers)
