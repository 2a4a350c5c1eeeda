"""Files of cells: the base of the robot, frames, a tool, objects and their margins, and the shapes of all."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats
from twin.base.errors import CellError, RobotError, near, printable
from twin.base.wings import from_above
from twin.physics.dynamics.environment import BODIES, CONTACT, PLACED, placement
from twin.physics.kinematics.forward import link_poses
from twin.physics.robot.link_shapes import mesh_file, resolve_mesh, shape_origin
from twin.physics.robot.robot import Robot
from twin.physics.robot.urdf_document import parse_numbers, read_document

if TYPE_CHECKING:
    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot

DEEPEST = 0.020
"""Depth of an overlap in [m] up to which the distance is exact; below it only its sign is."""

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
        length = float(np.linalg.norm(np.subtract(shape["to"], shape["from"])))
        return [_cylinder(float(shape["cylinder"]), length, body, name, T_body @ placement(shape))]
    return _mesh_solids(shape, body, name, T_body @ placement(shape), where)


def _cylinder(radius: float, length: float, body: int, name: str, T: Floats) -> Solid:
    half = np.array([radius, radius, length / 2])
    return Solid(body, name, coal().Cylinder(radius, length), T, half)


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


MARGIN = 0.0
LARGEST_MARGIN = 2.0
"""Margin, in [m], beyond which its unit is doubted."""
SHAPES: dict[str, dict[str, Any]] = {
    **{name: BODIES[name] for name in ("box", "sphere", "cylinder")},
    "mesh": {"mesh": "text", "unit": "text", "convex?": "any", **PLACED},
}
"""Keys of the shapes, see `urdf.schema`."""

TABLES: dict[str, dict[str, Any]] = {
    "": {"margin?": "any", "shapes_accuracy?": "any"},
    "base?": PLACED,
    "frames.*?": {**PLACED, "parent?": "text"},
    "tool?": {"tcp?": "table", "mass?": "number", "com?": 3, "inertia?": 6, "shapes?": "any"},
}
OBJECT = {
    "frame?": "text",
    "mass?": "number",
    **{f"{key.rstrip('?')}?": kind for key, kind in CONTACT.items()},
}
"""Keys of an object beside its shapes."""


class Tool(NamedTuple):
    """Tool on the flange.

    Attributes:
        T_flange_tool: (4, 4) its tip in the flange frame, or None if the file has no `tcp`.
        mass: in [kg], 0 if the file has none.
        com: (3,) centre of mass in the flange frame, in [m].
        inertia: (6,) about the centre of mass: xx, yy, zz, xy, xz, yz, in [kg m^2].
        shapes: shapes in the flange frame, as tables of the file.
    """

    T_flange_tool: Floats | None
    mass: float
    com: Floats
    inertia: Floats
    shapes: tuple[dict[str, Any], ...]

    @property
    def payload(self) -> str:
        """The mass, its centre and inertia as the text that `payload_of` reads."""
        return ",".join(map(repr, [self.mass, *self.com.tolist(), *self.inertia.tolist()]))


class Object(NamedTuple):
    """Object of the cell.

    Attributes:
        name: its name.
        T_world_frame: (4, 4) its frame in the world.
        shapes: its shapes as tables of the file.
        mass: mass of a part that a gripper may hold, in [kg]; 0 for what stays.
        contact: stiffness and other numbers of a body that the tool touches, see `twin.dynamics.surface`.
    """

    name: str
    T_world_frame: Floats
    shapes: tuple[dict[str, Any], ...]
    mass: float = 0.0
    contact: Mapping[str, float] = MappingProxyType({})


class PairRule(NamedTuple):
    """Rule of `[[pairs]]`: two names, and a margin in [m] or None if they may touch."""

    between: frozenset[str]
    margin: float | None


class Nearest(NamedTuple):
    """Distance of a pair.

    Attributes:
        distance: in [m]; negative for an overlap, whose depth is exact down to `DEEPEST`.
        margin: margin of the pair, in [m].
        pair: names of the two bodies.
        points: (2, 3) nearest points in the base frame, in [m].
    """

    distance: float
    margin: float
    pair: tuple[str, str]
    points: Floats

    @property
    def clearance(self) -> float:
        """Distance less the margin, in [m]."""
        return self.distance - self.margin

    @property
    def names(self) -> str:
        """The names of the pair on one line, unprintable characters escaped."""
        return printable(" - ".join(self.pair))

    @property
    def text(self) -> str:
        """The distance in millimetres, "deeper than 20 mm" for a deep overlap."""
        if self.distance < -DEEPEST:
            return f"deeper than {1e3 * DEEPEST:.0f} mm"
        return f"{1e3 * self.distance:.1f} mm"


@dataclass(frozen=True, eq=False)
class Closest:
    """Nearest approach of a motion.

    Attributes:
        nearest: the pair, with its distance and points.
        t: its time, in [s].
        q: (n,) joint angles there, in [rad].
        bound: what the distance less the margin is proven not to fall below, in [m].
        proven: whether the motion between the samples is known, so that the bound is a proof.
        samples: number of samples.
        lost_at: time in [s] from which the log has no finite joint angles, so that nothing is known; or None.
    """

    nearest: Nearest
    t: float
    q: Floats
    bound: float
    proven: bool
    samples: int
    lost_at: float | None = None


@dataclass(frozen=True, eq=False)
class Cell:
    """Cell around a robot; read it with `load_cell`.

    Attributes:
        file: path of the file.
        margin: margin between the arm with its tool and the objects where no rule states another, in [m].
        shapes_accuracy: how far the arm may stick out of its shapes, in [m]; None if not stated.
        T_world_base: (4, 4) base of the robot in the world.
        frames: poses (4, 4) in the world by name, "world" included.
        tool: the tool, or None.
        objects: objects in the order of the file.
        rules: rules of pairs.
    """

    file: Path
    margin: float
    shapes_accuracy: float | None
    T_world_base: Floats
    frames: dict[str, Floats]
    tool: Tool | None
    objects: tuple[Object, ...]
    rules: tuple[PairRule, ...] = field(default=())

    @staticmethod
    def empty(margin: float = MARGIN) -> Cell:
        """Return a cell without objects, in which an arm can only touch itself."""
        return Cell(Path("empty"), margin, None, np.eye(4), {"world": np.eye(4)}, None, ())

    def __repr__(self) -> str:
        return f"<Cell {self.file.name}: {len(self.objects)} objects, margin {1e3 * self.margin:g} mm>"

    def margin_of(self, a: str, b: str, *, links: bool = False) -> float | None:
        """Return the margin of a pair of names, in [m]; None if they may touch.

        Args:
            a: name of a link, "tool" or an object.
            b: another name.
            links: whether both are links of the arm or its tool, whose margin is 0 without a rule.
        """
        for rule in self.rules:
            if rule.between == {a, b}:
                return rule.margin
        return 0.0 if links else self.margin

    def distances(self, robot: Robot, q: ArrayLike) -> list[Nearest]:
        """Return the distance of every pair at joint angles, nearest first.

        Args:
            robot: the robot.
            q: (n,) joint angles, in [rad].
        """
        return from_above("twin.studies.cell.clearance.Clearance")(robot, self).all_pairs(q)

    def least_distance(self, log: Log) -> Closest:
        """Return the nearest approach of a log, with its proof; see `twin.cell.least_distance`."""
        return from_above("twin.studies.cell.clearance.least_distance")(self, log)


def load_cell(path: str | Path) -> Cell:
    r"""Return the cell of a file.

    Args:
        path: a TOML file; see the guide on cells.

    Example:
        >>> import pathlib
        >>> size = pathlib.Path("cell.toml").write_text("[objects.floor]\nbox = [2, 2, 0.1]")
        >>> twin.load_cell("cell.toml")
        <Cell cell.toml: 1 objects, margin 0 mm>

    Raises:
        CellError: the file cannot be read, or describes an impossible cell.
    """
    from urdf.schema import FactsError, read_checked

    path = Path(path)
    try:
        content = read_checked(path, _check)
        return _cell(path, content)
    except FactsError as error:
        text = str(error)
        raise CellError(text if str(path) in text else f"{path}: {text}") from None


def _check(content: dict[str, Any]) -> None:
    """Raise `FactsError` for an unknown key or a wrong value."""
    from urdf.schema import FactsError, check_keys, check_values

    known = {
        **TABLES[""],
        "base?": "any",
        "frames?": "any",
        "tool?": "any",
        "objects?": "any",
        "pairs?": "any",
    }
    check_keys("", content, known)
    check_values("", content, known, 0)
    for table in ("base", "tool"):
        if table in content:
            _check_table(table, content[table], TABLES[f"{table}?"])
    for name, frame in _tables(content, "frames"):
        if name == "world":
            raise FactsError("frames.world: expected another name, world is the frame of all others")
        _check_table(f"frames.{name}", frame, TABLES["frames.*?"])
    for name, one in _tables(content, "objects"):
        shapes = one.get("shapes", [_shape_of(one)])
        if "shapes" in one:
            check_keys(f"objects.{name}", one, {"shapes": "any", **OBJECT})
        check_values(f"objects.{name}", {key: one[key] for key in one if f"{key}?" in OBJECT}, OBJECT, 0)
        if shapes == []:
            raise FactsError(f"objects.{name}: expected at least one shape, got shapes = []")
        _check_shapes(f"objects.{name}", shapes)
    if "tool" in content:
        _check_shapes("tool.shapes", content["tool"].get("shapes", []))
        _check_table("tool.tcp", content["tool"].get("tcp", {}), PLACED)
    margins = [("margin", content.get("margin", MARGIN))]
    if "shapes_accuracy" in content:
        margins.append(("shapes_accuracy", content["shapes_accuracy"]))
    rules, seen = content.get("pairs", []), []
    if not isinstance(rules, list):
        raise FactsError(f"expected tables [[pairs]], got pairs = {rules!r}")
    for k, rule in enumerate(rules):
        where = f"pairs, entry {k + 1}"
        check_keys(where, rule, {"between": "any", "may_touch?": "any", "margin?": "any"})
        if ("may_touch" in rule) == ("margin" in rule):
            raise FactsError(f"{where}: expected either may_touch = true or a margin")
        if rule.get("may_touch", True) is not True:
            raise FactsError(f"{where}: expected may_touch = true or no such key, got {rule['may_touch']!r}")
        between = rule["between"]
        texts = isinstance(between, list) and all(isinstance(x, str) for x in between)
        if not texts or len(between) != 2 or len(set(between)) != 2:
            raise FactsError(f"{where}: expected between = two different names, got {between!r}")
        if set(between) in seen:
            raise FactsError(f"{where}: expected one rule for {between[0]} and {between[1]}, this is another")
        seen.append(set(between))
        if "margin" in rule:
            margins.append((f"{where}: margin", rule["margin"]))
    for where, margin in margins:
        if (
            isinstance(margin, bool)
            or not isinstance(margin, int | float)
            or not 0 <= margin < LARGEST_MARGIN
        ):
            raise FactsError(f"{where}: expected metres from 0 to {LARGEST_MARGIN:g}, got {margin!r}")


def _check_table(where: str, table: Any, kinds: dict[str, Any]) -> None:
    """Raise `FactsError` for an unknown key, a wrong value, or a length that cannot be in metres."""
    from urdf.schema import check_table

    check_table(where, table, kinds, 0)
    _check_lengths(where, table)


def _check_lengths(where: str, table: dict[str, Any]) -> None:
    from urdf.schema import FactsError

    for key in {"box", "sphere", "cylinder", "at", "from", "to", "com"} & set(table):
        if not np.all(np.abs(np.array(table[key], dtype=float)) <= LARGEST):
            raise FactsError(
                f"{where}.{key}: expected metres, at most {LARGEST:g}, got {table[key]}: "
                "are these millimetres?"
            )


def _tables(content: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    from urdf.schema import FactsError

    found = content.get(key, {})
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise FactsError(f"expected tables [{key}.NAME], got {key} = {found!r}")
    return list(found.items())


def _check_shapes(where: str, shapes: Any) -> None:
    from urdf.schema import FactsError, check_shape

    if not isinstance(shapes, list):
        raise FactsError(f"{where}: expected a list of shapes, got {shapes!r}")
    for shape in shapes:
        check_shape(where, shape, SHAPES, colored=False)
        _check_lengths(where, shape)
        if not isinstance(shape.get("convex", True), bool):
            raise FactsError(f"{where}: expected convex = true or false, got {shape['convex']!r}")


def _shape_of(table: dict[str, Any]) -> dict[str, Any]:
    """Return the one shape in the table of an object."""
    return {key: value for key, value in table.items() if f"{key}?" not in OBJECT}


def _cell(path: Path, content: dict[str, Any]) -> Cell:
    from twin.physics.robot.flange_load import payload_of

    frames = _frames(path, content.get("frames", {}))
    objects = []
    for name, one in content.get("objects", {}).items():
        frame = one.get("frame", "world")
        if frame not in frames:
            raise CellError(
                f"{path}: objects.{name}: there is no frame {frame!r}{near(frame, frames)}; "
                f"known are {', '.join(frames)}"
            )
        shapes = _located(one.get("shapes") or [_shape_of(one)], path)
        contact = {key: one[key] for key in one if {key, f"{key}?"} & CONTACT.keys()}
        objects.append(Object(name, frames[frame], tuple(shapes), float(one.get("mass", 0.0)), contact))
    tool = None
    if (given := content.get("tool")) is not None:
        tool = Tool(
            placement(given["tcp"]) if "tcp" in given else None,
            float(given.get("mass", 0.0)),
            np.array(given.get("com", np.zeros(3)), dtype=float),
            np.array(given.get("inertia", np.zeros(6)), dtype=float),
            tuple(_located(given.get("shapes", ()), path)),
        )
        try:
            payload_of(tool.payload)
        except ValueError as error:
            raise CellError(f"{path}: tool: {error}") from None
    rules = tuple(
        PairRule(frozenset(rule["between"]), None if "may_touch" in rule else float(rule["margin"]))
        for rule in content.get("pairs", ())
    )
    return Cell(
        path,
        float(content.get("margin", MARGIN)),
        content.get("shapes_accuracy"),
        placement(content.get("base", {})),
        frames,
        tool,
        tuple(objects),
        rules,
    )


def _located(shapes: Sequence[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """Return shapes whose mesh files are paths beside the cell's file."""
    return [
        {**shape, "mesh": str(path.absolute().parent / shape["mesh"])} if "mesh" in shape else shape
        for shape in shapes
    ]


def _frames(path: Path, tables: dict[str, Any]) -> dict[str, Floats]:
    """Return the poses of the frames in the world; a frame may stand in another one."""
    found = {"world": np.eye(4)}
    for name in tables:
        path_to_world: dict[str, Floats] = {}
        while name not in found:
            if name in path_to_world:
                raise CellError(
                    f"{path}: frames {', '.join(path_to_world)} have each other as parents, "
                    "expected a path to world"
                )
            if name not in tables:
                known = ["world", *tables]
                raise CellError(
                    f"{path}: frames.{[*path_to_world][-1]}: there is no frame {name!r}{near(name, known)}; "
                    f"known are {', '.join(known)}"
                )
            path_to_world[name] = placement(tables[name])
            name = tables[name].get("parent", "world")
        for one, T in reversed(path_to_world.items()):
            found[one] = found[tables[one].get("parent", "world")] @ T
    return found
