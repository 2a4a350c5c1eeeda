"""Reading of a `robot.toml`, the facts of one robot, with rejection of unknown entries.

The schema is flat. Every table has the keys listed in `TABLES` and no others; `source` (text) says where the
numbers of a table come from. A file with the key `urdf` has other tables, see `urdf.urdf_robot`. Units are
SI unless the key's name ends in one. Lengths of arrays are counted in
joints (`N` below: as many as `joints.names`) or given as a number.

`joints.names` are the joints that motors drive, and their angles q what the teach pendant shows. Joint i
joins the links i - 1 and i on axis i of the DH table, whose angles are `theta = coupling q + theta0` (q +
theta0 where `coupling` is left out). A robot that is more than such a chain says so:

    [joint.<name>]  a joint between other links, or one that no motor drives ("passive"): the links' keys in
                    [link.*], a point `at` on its axis, and the axis; a passive joint's angle is the
                    row `q` times the pendant's angles, and stays within `range_deg`; `unjudged` says why a
                    motion within it need not suit the arm, whose range is not known
    [drives]        its drive trains, see `urdf.schema`
    [spring.<name>], [cylinder.<name>], [column.<name>]  torques over its axes, see `urdf.schema`
    [loop.<name>]   two links that share a point `at`, given as a point of the one and of the other; every
                    passive joint needs a loop that holds it, and a range that ends before the loop folds flat

A link's mass properties are those of the CAD (`mass_1000`, its mass at 1000 kg/m^3, follows from the volume
where it is left out), or those of a homogeneous `solid`. Either the robot has a `mass`, of which each link
has a share by its volume, or each link has a `mass` of its own; then its `inertia` is that of this mass, or
at 1000 kg/m^3 if `volume_mm3` says so. Points are in the base frame at the zero pose, and
so are the shapes of a link, inline tables:

    { box = [lx, ly, lz], at = [x, y, z], rpy_deg = [r, p, y], color = "orange" }    rpy_deg may be left out
    { cylinder = radius, from = [x, y, z], to = [x, y, z], color = "orange" }
    { sphere = radius, at = [x, y, z], color = "orange" }

A solid is a box or a cylinder without rpy_deg and color, or a closed hollow box, whose outer sides run along
the base axes, of one thickness of wall:

    { hollow_box = [lx, ly, lz], wall = thickness, at = [x, y, z] }

or what a closed STL mesh bounds, which is drawn in the base frame at the zero pose and stands beside this
file; its density, in kg/m^3, takes the place of the link's mass:

    { mesh = "link_1.stl", unit = "mm", density = 2700 }

A link's `cover` are shapes that its CAD does not stick out of, for distances; the URDF does not have them.
`cover_excess` in `[links]` is by how much they are larger at most, in [m], and
`may_touch` names pairs of links, as "4 6", whose covers overlap.

`color` names an entry of `[colors]` (red, green, blue, opacity in 0..1); collision shapes have none. The
`flange` of a pose is the published one: x, y, z, then a unit quaternion, scalar first.

Much may be left out, see `TABLES`. Then a link looks like its solid, `collision` is like `visual`, `[colors]`
are `COLORS`, and no `effort` means no limit of the torques.
"""

import hashlib
import json
import math
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from urdf import urdf_robot
from urdf.schema import (
    AXIS_TORQUES,
    NAME,
    FactsError,
    N,
    check_axis_torques,
    check_drives,
    check_keys,
    check_names,
    check_table,
    check_values,
    read_checked,
    text_checked,
)

__all__ = ["TABLES", "FactsError", "check", "read"]

# table -> key -> kind (see urdf.schema); what ends in "?" may be left out, "*" stands for any name
TABLES: dict[str, dict[str, Any]] = {
    "": {"name": "text", "title": "text", "mass?": "number", "source": "text"},
    "joints": {
        "names": "names",
        "q_min_deg": N,
        "q_max_deg": N,
        "qd_max_deg_s": N,
        "effort?": N,
        "source": "text",
        "effort_source?": "text",
    },
    "dh": {"theta0_deg": N, "d": N, "a": N, "alpha_deg": N, "coupling?": (N, N), "source": "text"},
    "joint.*?": {
        "parent": "text",
        "child": "text",
        "at": 3,
        "axis": 3,
        "q?": N,
        "range_deg?": 2,
        "unjudged?": "text",
        "source": "text",
    },
    "loop.*?": {"links": "texts", "at": (2, 3), "source": "text"},
    "rating?": {"payload": "number", "reach": "number", "source": "text"},
    "links": {
        "source": "text",
        "shapes_source?": "text",
        "cover_source?": "text",
        "cover_excess?": "number",
        "may_touch?": "texts",
    },
    "link.*": {
        "mass?": "number",
        "solid?": "solid",
        "volume_mm3?": "number",
        "mass_printed?": "number",
        "mass_1000?": "number",
        "com?": 3,
        "inertia?": 6,
        "visual?": "shapes",
        "collision?": "shapes",
        "cover?": "shapes",
    },
    "poses.*?": {"q_deg": N, "flange?": 7, "flange_tolerance?": "number", "source?": "text"},
    "tour?": {"poses": "texts", "source?": "text"},
    "colors?": {"*": 4},
    "drives?": {"*": "table"},
    **AXIS_TORQUES,
}
COLORS = {
    "orange": [1.0, 0.43, 0.0, 1.0],
    "grey": [0.22, 0.22, 0.24, 1.0],
    "steel": [0.75, 0.76, 0.78, 1.0],
}


def read(path: Path, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the checked contents of a `robot.toml`, with defaults filled in.

    Arguments and errors as of `urdf.schema.read_checked`.
    """
    return completed(read_checked(path, check, parse_float), path.parent)


def parsed(path: Path, text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the checked contents of a `robot.toml` with this text, which may not be written yet."""
    return completed(text_checked(path, text, check, parse_float), path.parent)


def completed(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the facts with defaults filled in; `folder` is that of the file, in which its meshes are."""
    if "urdf" in facts:
        return {"poses": {}, **facts}
    facts["joints"].setdefault("effort", [math.inf] * len(facts["joints"]["names"]))
    facts.setdefault("colors", COLORS)
    facts.setdefault("poses", {})
    color = next(iter(facts["colors"]), None)
    for values in facts["link"].values():
        values.setdefault("visual", looks(values.get("solid"), color))
        bare = [{key: shape[key] for key in shape if key != "color"} for shape in values["visual"]]
        values.setdefault("collision", bare)
        if "mesh" in values.get("solid", {}):
            values["solid"]["folder"] = str(folder)
    return facts


WRITTEN = ("name", "mass", "joints", "dh", "joint", "link", "colors")
"""Tables that a URDF is written from."""

UNWRITTEN = ("source", "effort_source", "unjudged", "mass_printed", "cover", "folder")
"""Keys of these tables without an effect on the URDF."""


def digest(facts: dict[str, Any]) -> str:
    """Return a digest of the facts that a URDF is written from; equal numbers have equal digests."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items() if key not in UNWRITTEN}
        if isinstance(value, list):
            return [plain(one) for one in value]
        return value if isinstance(value, str) else float(value)

    text = json.dumps(plain({key: facts[key] for key in WRITTEN if key in facts}), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def looks(solid: dict[str, Any] | None, color: str | None) -> list[dict[str, Any]]:
    """Return the shapes of a link without shapes in the file: its solid, from outside."""
    if solid is None or color is None:
        return []
    unseen = ("wall", "density")
    shape = {"box" if key == "hollow_box" else key: solid[key] for key in solid if key not in unseen}
    return [{**shape, "color": color}]


def check(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless every table has its keys, every value its kind, and all fit together."""
    if "urdf" in facts:
        urdf_robot.check(facts)
        check_poses(facts)
        return
    groups = {pattern.replace(".*", ""): "table" for pattern in TABLES if pattern}
    check_keys("", facts, {**TABLES[""], **groups})
    top = {key: value for key, value in facts.items() if key not in groups and f"{key}?" not in groups}
    check_values("", top, TABLES[""], 0)
    check_keys("joints", facts["joints"], TABLES["joints"])
    check_names("joints.names", facts["joints"]["names"])
    joints = len(facts["joints"]["names"])
    for pattern, kinds in TABLES.items():
        group, _, wildcard = pattern.rstrip("?").partition(".")
        if not group or group not in facts or group == "drives":
            continue
        values = check_keys(group, facts[group], {"*": "table"})
        tables = {f"{group}.{name}": values[name] for name in values} if wildcard else {group: values}
        for table, entries in tables.items():
            check_table(table, entries, kinds, joints)
    for group in ("joint", "loop", "poses", "colors", "spring", "cylinder", "column"):
        for name in (facts["name"], *facts.get(group, {})):
            if not NAME.fullmatch(name):
                raise FactsError(f"expected a name of letters, digits and _, got {name!r}")
    check_limits(facts["joints"])
    if "drives" in facts:
        check_drives(facts["drives"], joints)
    for link, values in facts["link"].items():
        check_link(link, values, facts.get("colors", COLORS))
        check_mass(link, values, facts)
    check_tree(facts)
    check_loops(facts)
    check_axis_torques(facts, joints)
    check_poses(facts)


def check_limits(joints: dict[str, Any]) -> None:
    """Raise `FactsError` if a joint has an empty range, or a speed or effort that is not above 0."""
    for i, name in enumerate(joints["names"]):
        low, high = joints["q_min_deg"][i], joints["q_max_deg"][i]
        if not low < high:
            raise FactsError(f"{name}: expected q_min_deg < q_max_deg, got {low} and {high}")
        for key in ("qd_max_deg_s", "effort"):
            if key in joints and not joints[key][i] > 0:
                raise FactsError(f"{name}: expected {key} above 0, got {joints[key][i]}")


def check_link(link: str, values: dict[str, Any], colors: dict[str, Any]) -> None:
    """Raise `FactsError` unless a link has one source of its mass properties, and known colours."""
    given = [key for key in ("volume_mm3", "mass_printed", "mass_1000", "com", "inertia") if key in values]
    if "solid" in values and given:
        raise FactsError(f"link.{link} has both a solid and {given[0]}: expected a solid or the CAD's values")
    for key in ("com", "inertia") if "mass" in values else ("volume_mm3", "com", "inertia"):
        if "solid" not in values and key not in values:
            raise FactsError(
                f"link.{link} lacks the key {key!r}: expected volume_mm3, com and inertia, or mass, com and "
                "inertia, or a solid"
            )
    for shape in values.get("visual", []):
        if shape["color"] not in colors:
            raise FactsError(
                f"link.{link}: a visual shape has color {shape['color']!r}, known are {', '.join(colors)}"
            )


def check_mass(link: str, values: dict[str, Any], facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless the robot has a mass, or every link has its own."""
    stated = "mass" in values or "density" in values.get("solid", {})
    if stated and "mass" in facts:
        raise FactsError(
            f"link.{link} has a mass, and so has the robot: expected the robot's, which its links share by "
            "volume, or one in every link"
        )
    if not stated and "mass" not in facts:
        raise FactsError(
            f"link.{link} has no mass: expected one in every link, or the robot's at the top of the file"
        )
    given = [key for key in ("mass_printed", "mass_1000") if key in values]
    if "mass" in values and given:
        raise FactsError(f"link.{link} has a mass of its own, so expected no {given[0]}")


def check_poses(facts: dict[str, Any]) -> None:
    """Raise `FactsError` if a published pose has no tolerance, or the tour contains an unknown pose."""
    poses = facts.get("poses", {})
    for name, pose in poses.items():
        if ("flange" in pose) != ("flange_tolerance" in pose):
            raise FactsError(f"poses.{name}: expected flange and flange_tolerance together, got one of them")
    for name in facts.get("tour", {}).get("poses", []):
        if name not in poses:
            raise FactsError(f"tour.poses: there is no pose {name!r}, known are {', '.join(poses) or 'none'}")


CLOSED = Decimal("1e-12")  # largest distance of a loop's two points, in [m]: rounding


class Joint(NamedTuple):
    """A joint of the tree, between two links named by their keys in `[link.*]`."""

    name: str
    parent: str
    child: str


def chain(facts: dict[str, Any]) -> list[str]:
    """Return the links that the DH table moves, base first."""
    return ["base", *(str(i + 1) for i in range(len(facts["joints"]["names"])))]


def all_joints(facts: dict[str, Any]) -> list[Joint]:
    """Return all joints of the tree, first the driven ones in the order of the teach pendant."""
    listed, links = facts.get("joint", {}), chain(facts)
    plain = {name: (links[i], links[i + 1]) for i, name in enumerate(facts["joints"]["names"])}
    ends = {**plain, **{name: (values["parent"], values["child"]) for name, values in listed.items()}}
    return [Joint(name, *ends[name]) for name in ends]


def tree(facts: dict[str, Any]) -> tuple[list[Joint], list[Joint]]:
    """Return the joints from the base to the flange, and all others, parents before children."""
    links = chain(facts)
    by_child = {joint.child: joint for joint in all_joints(facts)}

    def depth(link: str) -> int:
        return 0 if link == "base" else 1 + depth(by_child[link].parent)

    others = sorted((link for link in by_child if link not in links), key=depth)
    return [by_child[link] for link in links[1:]], [by_child[link] for link in others]


def check_tree(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless the joints make one tree of all links, with the DH table's chain in it."""
    if "joint_tool" in (*facts["joints"]["names"], *facts.get("joint", {})):
        raise FactsError("joint_tool is the fixed joint of the flange: expected another name")
    for name, values in facts.get("joint", {}).items():
        check_joint(name, values, facts)
    links = chain(facts)
    if not set(links) <= set(facts["link"]):
        expected, got = (", ".join(f"link.{name}" for name in names) for names in (links, facts["link"]))
        raise FactsError(f"expected the tables {expected}, got {got}")
    by_child: dict[str, Joint] = {}
    for joint in all_joints(facts):
        if joint.child in by_child:
            raise FactsError(
                f"link.{joint.child} is the child of two joints, {by_child[joint.child].name} "
                f"and {joint.name}: expected one"
            )
        by_child[joint.child] = joint
    for link in facts["link"]:
        if link != "base" and link not in by_child:
            raise FactsError(f"link.{link} is the child of no joint: expected a [joint.<name>] that moves it")
    for link in facts["link"]:
        path = [link]
        while path[-1] != "base":
            parent = by_child[path[-1]].parent
            if parent in path:
                circle = ", ".join(f"link.{name}" for name in path[path.index(parent) :])
                raise FactsError(f"{circle} hang on each other: expected a way from each link to the base")
            path.append(parent)
    for before, link in pairwise(links):
        parent = by_child[link].parent
        if parent != before:
            raise FactsError(
                f"joint.{by_child[link].name}: link.{link} hangs on link.{parent}, expected link.{before}, "
                "the link before it in the DH table"
            )


def check_joint(name: str, values: dict[str, Any], facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless a table [joint.<name>] joins two links about a base axis."""
    for key in ("parent", "child"):
        if values[key] not in facts["link"]:
            raise FactsError(
                f"joint.{name}.{key}: there is no link {values[key]!r}, known are {', '.join(facts['link'])}"
            )
    if values["child"] == "base":
        raise FactsError(f"joint.{name}.child: no joint moves the base, expected another link")
    if sorted(abs(x) for x in values["axis"]) != [0, 0, 1]:
        axis = ", ".join(str(x) for x in values["axis"])
        raise FactsError(f"joint.{name}.axis: expected a base axis such as [0, -1, 0], got [{axis}]")
    driven = name in facts["joints"]["names"]
    for key in ("q", "range_deg", "unjudged"):
        if driven and key in values:
            raise FactsError(f"joint.{name}.{key}: a motor drives this joint; {key} is for passive ones")
        if not driven and key not in values and key != "unjudged":
            raise FactsError(
                f"table [joint.{name}] lacks the key {key!r}, which a joint that is not in joints.names needs"
            )
    if not driven and not values["range_deg"][0] < values["range_deg"][1]:
        low, high = values["range_deg"]
        raise FactsError(f"joint.{name}.range_deg: expected lowest < highest, got {low} and {high}")


def check_loops(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless each loop joins two links, in points that coincide at the zero pose."""
    for name, loop in facts.get("loop", {}).items():
        if len(set(loop["links"])) != 2 or len(loop["links"]) != 2:
            raise FactsError(
                f"loop.{name}.links: expected two different links, got {', '.join(loop['links'])}"
            )
        for link in loop["links"]:
            if link not in facts["link"]:
                raise FactsError(
                    f"loop.{name}.links: there is no link {link!r}, known are {', '.join(facts['link'])}"
                )
        first, second = loop["links"]
        a, b = ([Decimal(x) for x in point] for point in loop["at"])
        distance = sum(((y - x) ** 2 for x, y in zip(a, b, strict=True)), Decimal(0)).sqrt()
        if not distance <= CLOSED:
            raise FactsError(
                f"loop.{name} is not closed at the zero pose: the point of link.{first} is "
                f"{float(distance):.6g} m away from that of link.{second}"
            )
