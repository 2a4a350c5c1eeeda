"""Reads a `robot.toml`, the facts of one robot, and refuses what it does not understand.

The schema is flat. Every table has the keys listed in `TABLES` and no others; `source` (text) says where the
numbers of a table come from. Units are SI unless the key's name ends in one. Lengths of arrays are counted in
joints (`N` below: as many as `joints.names`) or given as a number.

The shapes of a link are inline tables, placed in the base frame at the zero pose:

    { box = [lx, ly, lz], at = [x, y, z], rpy_deg = [r, p, y], color = "orange" }    rpy_deg may be left out
    { cylinder = radius, from = [x, y, z], to = [x, y, z], color = "orange" }
    { sphere = radius, at = [x, y, z], color = "orange" }

`color` names an entry of `[colors]` (red, green, blue, opacity in 0..1); collision shapes have none.
"""

import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

N = -1  # stands for the number of joints

# key -> kind: "text", "names", "number" (above 0), "shapes", or the length of an array of numbers;
# a key ending in "?" may be left out, and "*" stands for any key
TABLES: dict[str, dict[str, Any]] = {
    "": {"name": "text", "title": "text", "mass": "number", "source": "text"},
    "joints": {
        "names": "names",
        "q_min_deg": N,
        "q_max_deg": N,
        "qd_max_deg_s": N,
        "effort": N,
        "source": "text",
        "effort_source": "text",
    },
    "dh": {"theta0_deg": N, "d": N, "a": N, "alpha_deg": N, "source": "text"},
    "links": {"source": "text", "shapes_source": "text"},
    "link.*": {
        "volume_mm3": "number",
        "mass_printed?": "number",
        "mass_1000": "number",
        "com": 3,
        "inertia": 6,
        "visual": "shapes",
        "collision": "shapes",
    },
    "poses.*": {"q_deg": N, "source": "text"},
    "colors": {"*": 4},
}
SHAPES = {
    "box": {"box": 3, "at": 3, "rpy_deg?": 3},
    "cylinder": {"cylinder": "number", "from": 3, "to": 3},
    "sphere": {"sphere": "number", "at": 3},
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class FactsError(ValueError):
    """A `robot.toml` that is missing, malformed, or describes a body that cannot exist; one sentence."""


def read(path: Path, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The checked contents of a `robot.toml`.

    Args:
        path: the file.
        parse_float: what a decimal number becomes: `float`, or `Decimal` where every printed digit counts.

    Returns:
        The tables as nested dicts and lists; whole numbers stay `int`.

    Raises:
        FactsError: with the file, the table, the key and what is valid.
    """
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=parse_float)
    except OSError as error:
        raise FactsError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # malformed TOML, or bytes that are not UTF-8
        raise FactsError(f"{path} is not a TOML file: {error}") from error
    try:
        check(facts)
    except FactsError as error:
        raise FactsError(f"{path}: {error}") from error
    return facts


def check(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless every table has its keys, and every value its kind, length and range."""
    groups = {pattern.split(".")[0] for pattern in TABLES if pattern}
    check_keys("", facts, {**TABLES[""], **dict.fromkeys(groups, "table")})
    joints = len(check_keys("joints", facts["joints"], TABLES["joints"])["names"])
    check_values("", {key: facts[key] for key in TABLES[""]}, TABLES[""], joints)
    for pattern, kinds in TABLES.items():
        group, _, wildcard = pattern.partition(".")
        if not group:
            continue
        tables = {f"{group}.{k}": v for k, v in facts[group].items()} if wildcard else {group: facts[group]}
        for table, values in tables.items():
            own_kinds = dict.fromkeys(values, kinds["*"]) if "*" in kinds else kinds
            check_values(table, check_keys(table, values, own_kinds), own_kinds, joints)
    for name in (facts["name"], *facts["colors"], *facts["poses"]):
        if not NAME.fullmatch(name):
            raise FactsError(f"expected a name of letters, digits and _, got {name!r}")
    links = ["base", *(str(i + 1) for i in range(joints))]
    if sorted(facts["link"]) != sorted(links):
        expected, got = (", ".join(f"link.{name}" for name in names) for names in (links, facts["link"]))
        raise FactsError(f"expected the tables {expected}, got {got}")
    limits = facts["joints"]
    for i, name in enumerate(limits["names"]):
        low, high = limits["q_min_deg"][i], limits["q_max_deg"][i]
        if not low < high:
            raise FactsError(f"{name}: expected q_min_deg < q_max_deg, got {low} and {high}")
        for key in ("qd_max_deg_s", "effort"):
            if not limits[key][i] > 0:
                raise FactsError(f"{name}: expected {key} above 0, got {limits[key][i]}")
    for link, values in facts["link"].items():
        for shape in values["visual"]:
            if shape.get("color") not in facts["colors"]:
                raise FactsError(
                    f"link.{link}: a visual shape has color {shape.get('color')!r}, "
                    f"known are {', '.join(facts['colors'])}"
                )


def check_keys(table: str, values: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    """The table itself; raises `FactsError` where a key is unknown or missing."""
    where = f"table [{table}]" if table else "the top level"
    if not isinstance(values, dict):
        raise FactsError(f"expected a table [{table}], got {values!r}")
    known = [key.rstrip("?") for key in kinds]
    for key in values:
        if key not in known:
            raise FactsError(f"unknown key {key!r} in {where}: known are {', '.join(known)}")
    for key in kinds:
        if not key.endswith("?") and key not in values:
            raise FactsError(f"{where} lacks the key {key!r}")
    return values


def check_values(table: str, values: dict[str, Any], kinds: dict[str, Any], joints: int) -> None:
    """Raise `FactsError` where a value is not of its kind, its length or its range."""
    for key, value in values.items():
        where = f"{table}.{key}" if table else key
        kind = kinds[key] if key in kinds else kinds[f"{key}?"]
        if kind == "text":
            if not isinstance(value, str) or not value.strip():
                raise FactsError(f"{where}: expected a text, got {value!r}")
        elif kind == "names":
            if not isinstance(value, list) or not value or len(set(map(str, value))) < len(value):
                raise FactsError(f"{where}: expected a list of different names, got {value!r}")
            for name in value:
                if not isinstance(name, str) or not NAME.fullmatch(name):
                    raise FactsError(f"{where}: expected names of letters, digits and _, got {name!r}")
        elif kind == "number":
            if not is_number(value) or not value > 0:
                raise FactsError(f"{where}: expected a number above 0, got {value}")
        elif kind == "shapes":
            if not isinstance(value, list):
                raise FactsError(f"{where}: expected a list of shapes, got {value!r}")
            for shape in value:
                check_shape(where, shape, colored=key == "visual")
        else:
            length = joints if kind == N else kind
            if not isinstance(value, list) or len(value) != length:
                got = f"{len(value)}" if isinstance(value, list) else f"{value!r}"
                raise FactsError(f"{where}: expected {length} numbers, got {got}")
            for number in value:
                if not is_number(number):
                    raise FactsError(f"{where}: expected finite numbers, got {number}")


def check_shape(where: str, shape: Any, colored: bool) -> None:
    """Raise `FactsError` unless `shape` is one of the inline tables of `SHAPES`."""
    kinds = [kind for kind in SHAPES if isinstance(shape, dict) and kind in shape]
    if len(kinds) != 1:
        raise FactsError(f"{where}: expected one of {', '.join(SHAPES)} in a shape, got {shape!r}")
    keys = SHAPES[kinds[0]]
    check_keys(where, shape, {**keys, "color": "text"} if colored else keys)
    check_values(where, shape, {**keys, "color": "text"}, 0)
    if kinds == ["cylinder"] and shape["from"] == shape["to"]:
        raise FactsError(f"{where}: a cylinder from {shape['from']} to the same point has no length")
    if kinds == ["box"] and not all(size > 0 for size in shape["box"]):
        raise FactsError(f"{where}: expected box sizes above 0, got {shape['box']}")


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number (TOML's `true` is not, though Python counts it as 1)."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)
