"""Reading of a `dh.toml`, the facts of a robot with only a Denavit-Hartenberg table.

Row i of the table is `Rz(theta) Tz(d) Tx(a) Rx(alpha)`. Joint i turns about z of frame i - 1, by `theta =
coupling q + theta0`, with the unit matrix where `coupling` is left out, or where it is "prismatic" slides
along it: `d + q` takes the place of d. SI units unless a key's name ends in another; the limits of a
prismatic joint are in m, m/s and N. Arrays have an element a row.

With `convention = "modified"` in [dh], row i is `Rx(alpha) Tx(a) Rz(theta) Tz(d)`, as in Craig's textbook:
joint i turns about z of frame i itself. `read` returns the same robot in the other convention.

    [joints]        may be left out, and each key in it: names of the joints, and limits
    [link.<i>]      may be left out: what link i weighs, in DH frame i, which moves with it: centre of mass
                    from that frame's origin, tensor (xx, yy, zz, xy, xz, yz) about the centre of mass.
                    A link without a table weighs nothing; without any the robot has kinematics only
    [poses.<name>]  may be left out: a pose of that name, q in rad or m
    [drives]        may be left out: its drive trains, see `urdf.schema`
    unphysical      why some link may be a body that cannot exist, such as one with inertia and no mass
"""

import math
from pathlib import Path
from typing import Any

from urdf.schema import (
    AXIS_TORQUES,
    NAME,
    FactsError,
    N,
    check_axis_torques,
    check_drives,
    check_keys,
    check_table,
    check_values,
    read_checked,
)

# table -> key -> kind, as in urdf.facts
TABLES: dict[str, dict[str, Any]] = {
    "": {"name": "text", "title": "text", "source": "text", "unphysical?": "text"},
    "dh": {
        "theta0_deg": N,
        "d": N,
        "a": N,
        "alpha_deg": N,
        "kinds?": "texts",
        "coupling?": (N, N),
        "convention?": "text",
        "source": "text",
    },
    "joints?": {
        "names?": "names",
        "q_min?": N,
        "q_max?": N,
        "qd_max?": N,
        "effort?": N,
        "source": "text",
    },
    "poses.*?": {"q": N, "source": "text"},
    "links?": {"source": "text"},
    "link.*?": {"mass?": "number", "com?": 3, "inertia?": 6},
    "drives?": {"*": "table"},
    **AXIS_TORQUES,
}
KEYS = {key.rstrip("?") for key in TABLES[""]}
KINDS = ("revolute", "prismatic")


def read(path: Path) -> dict[str, Any]:
    """Return the checked contents of a `dh.toml`; errors as in `urdf.schema.read_checked`."""
    return standard(read_checked(path, check))


def standard(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts in the standard convention.

    The a and alpha of a modified row stand before its joint, and in the standard row before. The standard
    frame of link i is the modified one, moved by `Tx(a) Rx(alpha)` of the next row; its body moves along.
    """
    if facts["dh"].pop("convention", "standard") == "standard":
        return facts
    table = facts["dh"]
    for key in ("a", "alpha_deg"):
        table[key] = [*table[key][1:], 0.0]
    for link, values in facts.get("link", {}).items():
        a, alpha = (table[key][int(link) - 1] for key in ("a", "alpha_deg"))
        c, s = math.cos(math.radians(alpha)), math.sin(math.radians(alpha))
        if "com" in values:
            x, y, z = map(float, values["com"])
            values["com"] = [x - float(a), c * y + s * z, c * z - s * y]
        elif a:
            values["com"] = [-float(a), 0.0, 0.0]
        if "inertia" in values:
            xx, yy, zz, xy, xz, yz = map(float, values["inertia"])
            values["inertia"] = [
                xx,
                c * c * yy + 2 * c * s * yz + s * s * zz,
                s * s * yy - 2 * c * s * yz + c * c * zz,
                c * xy + s * xz,
                c * xz - s * xy,
                c * s * (zz - yy) + (c * c - s * s) * yz,
            ]
    return facts


def check(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless every table has its keys, every value its kind, and all fit together."""
    groups = {pattern.replace(".*", ""): "table" for pattern in TABLES if pattern}
    check_keys("", facts, {**TABLES[""], **groups})
    check_values("", {key: facts[key] for key in facts if key in KEYS}, TABLES[""], 0)
    if not NAME.fullmatch(facts["name"]):
        raise FactsError(f"expected a name of letters, digits and _, got {facts['name']!r}")
    check_keys("dh", facts["dh"], TABLES["dh"])
    rows = facts["dh"]["d"]
    if not isinstance(rows, list) or not rows:
        raise FactsError(f"dh.d: expected a list of numbers, one per row, got {rows!r}")
    check_table("dh", facts["dh"], TABLES["dh"], len(rows))
    check_kinds(facts["dh"].get("kinds"), len(rows))
    convention = facts["dh"].get("convention", "standard")
    if convention not in ("standard", "modified"):
        raise FactsError(f"dh.convention: expected standard or modified, got {convention!r}")
    if convention == "modified" and (facts["dh"]["a"][0] or facts["dh"]["alpha_deg"][0]):
        raise FactsError(
            "dh: expected a and alpha_deg of the first row to be 0, where the base is frame 1 at rest, got "
            f"{facts['dh']['a'][0]} and {facts['dh']['alpha_deg'][0]}"
        )
    if "joints" in facts:
        check_table("joints", facts["joints"], TABLES["joints?"], len(rows))
        check_joints(facts["joints"], len(rows))
    for name, pose in check_keys("poses", facts.get("poses", {}), {"*": "table"}).items():
        check_table(f"poses.{name}", pose, TABLES["poses.*?"], len(rows))
    check_links(facts, len(rows))
    if "drives" in facts:
        check_drives(facts["drives"], len(rows))
    check_axis_torques(facts, len(rows))


def check_kinds(kinds: Any, rows: int) -> None:
    """Raise `FactsError` unless every row's joint is of a known kind."""
    if kinds is None:
        return
    if len(kinds) != rows:
        raise FactsError(f"dh.kinds: expected {rows} kinds, one per row, got {len(kinds)}")
    for kind in kinds:
        if kind not in KINDS:
            raise FactsError(f"dh.kinds: expected {' or '.join(KINDS)}, got {kind!r}")


def check_joints(joints: dict[str, Any], rows: int) -> None:
    """Raise `FactsError` if names are missing, a range is empty, or a speed or effort is not above 0."""
    names = joints.get("names", [f"joint_{i + 1}" for i in range(rows)])
    if len(names) != rows:
        raise FactsError(f"joints.names: expected {rows} names, one per row, got {len(names)}")
    if ("q_min" in joints) != ("q_max" in joints):
        raise FactsError("table [joints]: expected q_min and q_max together, got one of them")
    for i, name in enumerate(names):
        if "q_min" in joints and not joints["q_min"][i] < joints["q_max"][i]:
            raise FactsError(
                f"{name}: expected q_min < q_max, got {joints['q_min'][i]} and {joints['q_max'][i]}"
            )
        for key in ("qd_max", "effort"):
            if key in joints and not joints[key][i] > 0:
                raise FactsError(f"{name}: expected {key} above 0, got {joints[key][i]}")


def check_links(facts: dict[str, Any], rows: int) -> None:
    """Raise `FactsError` if a link is not in the table, or has no mass, or no source."""
    links = check_keys("link", facts.get("link", {}), {"*": "table"})
    if bool(links) != ("links" in facts):
        raise FactsError("expected tables [link.<i>] together with [links] and its source, got one of them")
    for link, values in links.items():
        if link not in {str(i + 1) for i in range(rows)}:
            raise FactsError(f"unknown link.{link}: expected link.1 to link.{rows}")
        check_table(f"link.{link}", values, TABLES["link.*?"], rows)
        if "mass" not in values and "unphysical" not in facts:
            raise FactsError(
                f"table [link.{link}] lacks the key 'mass', which only an 'unphysical' file may leave out"
            )
    if "links" in facts:
        check_table("links", facts["links"], TABLES["links?"], rows)
