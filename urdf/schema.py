"""Reading of TOML files by a schema: the keys of each table, and what they hold.

Files of robots, cells and stations are read so.  The tables that all files of robots share are here, too.

A kind is "text", "texts" (a list of them), "names" (a list of different names), "number" (above 0), "signed"
(any number), "table", "shapes" or "solid" (inline tables, see `urdf.facts`), the length of an array of
numbers, or a pair (rows, columns) for a list of such arrays; `N` counts joints; in `N_OR_INF` `inf` is a
number, too. A key ending in "?" may be left out; "*" is any key.
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
N_OR_INF = "numbers, inf among them"  # N numbers, which may be infinite
SHAPES = {
    "box": {"box": 3, "at": 3, "rpy_deg?": 3},
    "cylinder": {"cylinder": "number", "from": 3, "to": 3},
    "sphere": {"sphere": "number", "at": 3},
    "mesh": {"mesh": "text", "unit": "text"},
}
SOLIDS = {
    "box": {"box": 3, "at": 3},
    "hollow_box": {"hollow_box": 3, "wall": "number", "at": 3},
    "cylinder": SHAPES["cylinder"],
    "mesh": {**SHAPES["mesh"], "density?": "number"},
}
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "inch": 0.0254}
"""Units of length of mesh files, in [m]."""
SHORTEST = 1e-9
"""Length of a cylinder, in [m], up to which its ends are the same point."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class FactsError(ValueError):
    """Error of a file of facts that is missing, malformed, or describes an impossible body."""


def read_checked(
    path: Path, check: Callable[[dict[str, Any]], None], parse_float: Callable[[str], Any] = float
) -> dict[str, Any]:
    """Return the contents of a TOML file after a check.

    Args:
        path: the file.
        check: function that raises `FactsError` for invalid tables.
        parse_float: type of decimal numbers: `float`, or `Decimal` to preserve every printed digit.

    Returns:
        Tables as nested dicts and lists; integers remain `int`.

    Raises:
        FactsError: the message contains the file, the table, the key and what is valid.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FactsError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # bytes that are not UTF-8
        raise FactsError(f"{path} is not a TOML file: {error}") from error
    return text_checked(path, text, check, parse_float)


def text_checked(
    path: Path, text: str, check: Callable[[dict[str, Any]], None], parse_float: Callable[[str], Any] = float
) -> dict[str, Any]:
    """Return the contents of a file with this text; see `read_checked`."""
    try:
        facts = tomllib.loads(text, parse_float=parse_float)
    except ValueError as error:
        raise FactsError(f"{path} is not a TOML file: {error}") from error
    except RecursionError as error:
        raise FactsError(f"{path} cannot be read: its arrays or tables are nested too deeply") from error
    try:
        check(facts)
    except FactsError as error:
        raise FactsError(f"{path}: {error}") from error
    return facts


def check_table(table: str, values: Any, kinds: dict[str, Any], joints: int) -> None:
    """Raise `FactsError` if a key is unknown or missing, or a value has a wrong kind, length or range."""
    check_values(table, check_keys(table, values, kinds), kinds, joints)


def check_keys(table: str, values: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the table; raise `FactsError` if a key is unknown or missing."""
    where = f"table [{table}]" if table else "the top level"
    if not isinstance(values, dict):
        raise FactsError(f"expected a table [{table}], got {values!r}")
    if "*" in kinds:
        return values
    known = [key.rstrip("?") for key in kinds]
    for key in values:
        if key not in known:
            raise FactsError(f"unknown key {key!r} in {where}: known are {', '.join(known)}")
    for key in kinds:
        if not key.endswith("?") and key not in values:
            raise FactsError(f"{where} lacks the key {key!r}")
    return values


def check_values(table: str, values: dict[str, Any], kinds: dict[str, Any], joints: int) -> None:
    """Raise `FactsError` if a value has a wrong kind, length or range."""
    for key, value in values.items():
        where = f"{table}.{key}" if table else key
        kind = next(kinds[known] for known in (key, f"{key}?", "*") if known in kinds)
        if kind == "text":
            if not isinstance(value, str) or not value.strip():
                raise FactsError(f"{where}: expected a text, got {value!r}")
        elif kind == "texts":
            if not isinstance(value, list) or not value or not all(isinstance(x, str) for x in value):
                raise FactsError(f"{where}: expected a list of texts, got {value!r}")
        elif kind == "names":
            check_names(where, value)
        elif kind == "number":
            if not is_number(value) or not value > 0:
                raise FactsError(f"{where}: expected a number above 0, got {value}")
        elif kind == "signed":
            if not is_number(value):
                raise FactsError(f"{where}: expected a finite number, got {value!r}")
        elif kind == "shapes":
            if not isinstance(value, list):
                raise FactsError(f"{where}: expected a list of shapes, got {value!r}")
            for shape in value:
                check_shape(where, shape, SHAPES, colored=key == "visual")
        elif kind == "solid":
            check_shape(where, value, SOLIDS, colored=False)
        elif kind == "table":
            check_keys(where, value, {"*": ""})
        elif kind == N_OR_INF:
            check_numbers(where, value, joints, finite=False)
        elif isinstance(kind, tuple):
            rows, columns = (joints if length == N else length for length in kind)
            if not isinstance(value, list) or len(value) != rows:
                got = f"{len(value)}" if isinstance(value, list) else f"{value!r}"
                raise FactsError(f"{where}: expected {rows} rows of {columns} numbers, got {got}")
            for number, row in enumerate(value, start=1):
                check_numbers(f"row {number} of {where}", row, columns)
        elif isinstance(kind, int):
            check_numbers(where, value, joints if kind == N else kind)


def check_names(where: str, value: Any) -> None:
    """Raise `FactsError` unless `value` is a list of different names."""
    if not isinstance(value, list) or not value or len(set(map(str, value))) < len(value):
        raise FactsError(f"{where}: expected a list of different names, got {value!r}")
    for name in value:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise FactsError(f"{where}: expected names of letters, digits and _, got {name!r}")


def check_numbers(where: str, value: Any, length: int, finite: bool = True) -> None:
    """Raise `FactsError` unless `value` is an array of `length` numbers, all finite if required."""
    if not isinstance(value, list) or len(value) != length:
        got = f"{len(value)}" if isinstance(value, list) else f"{value!r}"
        raise FactsError(f"{where}: expected {length} numbers, got {got}")
    for number in value:
        if not (is_number(number) or (not finite and number == math.inf)):
            raise FactsError(f"{where}: expected {'finite ' if finite else ''}numbers, got {number}")


def check_shape(where: str, shape: Any, known: dict[str, dict[str, Any]], colored: bool) -> None:
    """Raise `FactsError` unless `shape` is one of the inline tables of `known`, with a colour if required."""
    kinds = [kind for kind in known if isinstance(shape, dict) and kind in shape]
    if len(kinds) != 1:
        raise FactsError(f"{where}: expected one of {', '.join(known)} in a shape, got {shape!r}")
    keys = {**known[kinds[0]], "color": "text"} if colored else known[kinds[0]]
    check_table(where, shape, keys, 0)
    if "unit" in shape and shape["unit"] not in UNITS:
        raise FactsError(f"{where}: unknown unit {shape['unit']!r}: known are {', '.join(UNITS)}")
    if kinds == ["cylinder"] and not math.dist(shape["from"], shape["to"]) > SHORTEST:
        raise FactsError(f"{where}: a cylinder from {shape['from']} to the same point has no length")
    if kinds[0] in ("box", "hollow_box"):
        sides = shape[kinds[0]]
        if not all(size > 0 for size in sides):
            raise FactsError(f"{where}: expected {kinds[0]} sizes above 0, got {', '.join(map(str, sides))}")
        if "wall" in shape and not 2 * shape["wall"] < min(sides):
            raise FactsError(
                f"{where}: expected a wall below half the shortest side, {min(sides)}, got {shape['wall']}"
            )


def is_number(value: Any) -> bool:
    """Return whether `value` is a finite number; TOML's `true` is not, although it is 1 in Python."""
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that is larger than any float
        return False


KINDS: dict[str, Any] = {
    "ratio": N,
    "rotor_inertia": N,
    "coupling?": (N, N),
    "motor_torque_max?": N_OR_INF,
    "motor_speed_rated?": N_OR_INF,
    "motor_speed_max?": N_OR_INF,
    "encoder_counts?": N,
    "coulomb?": N,
    "static?": N,
    "stribeck_speed?": N,
    "viscous?": N,
    "coulomb_per_load?": N,
    "viscous_root?": N,
    "viscous_difference?": N,
    "offset?": N,
    "stiffness?": N_OR_INF,
    "damping?": N,
    "friction_at?": "texts",
    "source": "table",
}


def check_drives(drives: Any, joints: int) -> None:
    """Raise `FactsError` unless the table has its keys, each with as many numbers as joints, and a source."""
    check_keys("drives", drives, KINDS)
    check_table("drives", drives, KINDS, joints)
    told = check_keys("drives.source", drives["source"], {"*": "text"})
    check_table("drives.source", told, {"*": "text"}, joints)
    given = [key for key in drives if key != "source"]
    for key in given:
        if key not in told:
            raise FactsError(f"table [drives.source] lacks the key {key!r}: where is it from?")
    for key in told:
        if key not in given:
            raise FactsError(f"table [drives.source] has a key {key!r}, which table [drives] lacks")


AXIS_TORQUES: dict[str, Any] = {
    "spring.*?": {"joint": "number", "stiffness": "signed", "torque?": "signed", "source": "text"},
    "cylinder.*?": {
        "joint": "number",
        "from": 3,
        "to": 3,
        "length": "number",
        "force": "signed",
        "stiffness": "signed",
        "source": "text",
    },
    "column.*?": {"function": "text", "value": "signed", "source": "text"},
}
"""Torques over the axes, see `multibody/axis_torques.py`: springs, gas springs or balancers between a
point `from` of the link before a joint and a point `to` of the link after it, and functions `file.py:name` of
a user.  Joints count from 1; points are in the base frame at the zero pose.
"""


def check_axis_torques(facts: dict[str, Any], joints: int) -> None:
    """Raise `FactsError` unless each table of `AXIS_TORQUES` has its keys, a known joint, and a function."""
    for pattern, kinds in AXIS_TORQUES.items():
        group = pattern.partition(".")[0]
        for name, values in check_keys(group, facts.get(group, {}), {"*": "table"}).items():
            check_table(f"{group}.{name}", values, kinds, joints)
            if "joint" in kinds and values["joint"] not in range(1, joints + 1):
                raise FactsError(
                    f"{group}.{name}: expected a joint from 1 to {joints}, got {values['joint']}"
                )
            if "function" in kinds and not FUNCTION.fullmatch(values["function"]):
                raise FactsError(
                    f"{group}.{name}: expected function as 'file.py:name', got {values['function']!r}"
                )


FUNCTION = re.compile(r"[^:]+\.py:[A-Za-z_]\w*")
