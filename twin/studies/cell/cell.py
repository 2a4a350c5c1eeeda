"""Files of cells: the base of the robot, frames, a tool, objects and their margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.base.errors import CellError, near
from twin.studies.cell.shapes import LARGEST, placement

if TYPE_CHECKING:
    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot
    from twin.studies.cell.clearance import Nearest
    from twin.studies.cell.closest import Closest

MARGIN = 0.0
LARGEST_MARGIN = 2.0
"""Margin, in [m], beyond which its unit is doubted."""
PLACEMENT = {"at?": 3, "rpy_deg?": 3}
SHAPES: dict[str, dict[str, Any]] = {
    "box": {"box": 3, **PLACEMENT},
    "sphere": {"sphere": "number", "at?": 3},
    "cylinder": {"cylinder": "number", "from": 3, "to": 3},
    "mesh": {"mesh": "text", "unit": "text", "convex?": "any", **PLACEMENT},
}
"""Keys of the shapes, see `urdf.schema`."""

TABLES: dict[str, dict[str, Any]] = {
    "": {"margin?": "any", "shapes_accuracy?": "any"},
    "base?": PLACEMENT,
    "frames.*?": {**PLACEMENT, "parent?": "text"},
    "tool?": {"tcp?": "table", "mass?": "number", "com?": 3, "inertia?": 6, "shapes?": "any"},
}


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
    """Object of the cell: its name, its frame in the world (4, 4), and its shapes as tables of the file."""

    name: str
    T_world_frame: Floats
    shapes: tuple[dict[str, Any], ...]


class PairRule(NamedTuple):
    """Rule of `[[pairs]]`: two names, and a margin in [m] or None if they may touch."""

    between: frozenset[str]
    margin: float | None


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
        from twin.studies.cell.clearance import Clearance

        return Clearance(robot, self).all_pairs(q)

    def least_distance(self, log: Log) -> Closest:
        """Return the nearest approach of a log, with its proof; see `twin.cell.least_distance`."""
        from twin.studies.cell.closest import least_distance

        return least_distance(self, log)


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
        shapes = one.get("shapes", [{key: one[key] for key in one if key not in ("frame", "shapes")}])
        if "shapes" in one:
            check_keys(f"objects.{name}", one, {"shapes": "any", "frame?": "text"})
        if shapes == []:
            raise FactsError(f"objects.{name}: expected at least one shape, got shapes = []")
        _check_shapes(f"objects.{name}", shapes)
    if "tool" in content:
        _check_shapes("tool.shapes", content["tool"].get("shapes", []))
        _check_table("tool.tcp", content["tool"].get("tcp", {}), PLACEMENT)
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
        shapes = one.get("shapes") or [{key: value for key, value in one.items() if key != "frame"}]
        objects.append(Object(name, frames[frame], tuple(_located(shapes, path))))
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
