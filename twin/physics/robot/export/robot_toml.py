"""Text of a `robot.toml`, and its tables for a robot that is a URDF."""

import json
import math
import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from twin.physics.robot.robot import Robot

WIDTH = 116
"""Line width of comments."""


PLAIN = re.compile(r"[A-Za-z0-9_-]+")
"""Keys that TOML has without quotes."""


def plain_name(name: str) -> str:
    """Return a name of letters, digits and `_` for a robot of any name."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if word[:1].isalpha() else f"robot_{word}"


def urdf_facts(robot: Robot) -> dict[str, Any]:
    """Return the tables of a `robot.toml` beside the robot's URDF, see `urdf.urdf_robot`."""
    assert robot.urdf is not None
    return {
        "name": plain_name(robot.name),
        "title": robot.urdf.stem,
        "urdf": robot.urdf.name,
        "tool_frame": robot.tool_frame,
        "source": f"{robot.urdf.name}; not compared with a data sheet",
        "joints": {"names": list(robot.joint_names), "source": robot.urdf.name},
    }


def file_text(facts: dict[str, Any], comment: list[str]) -> str:
    """Return facts as TOML, with lines of a comment at the top."""
    wrapped = [part for line in comment for part in (wrap(line, WIDTH) or [""])]
    lines = [f"# {line}".rstrip() for line in wrapped] + [""]
    top = {key: value for key, value in facts.items() if not isinstance(value, dict)}
    lines += [f"{key} = {_value(value)}" for key, value in top.items()]
    for name, table in facts.items():
        if isinstance(table, dict):
            lines += _table(name, table)
    return "\n".join(lines) + "\n"


def _table(name: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a table and its subtables."""
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if values or not table:
        yield ""
        yield f"[{name}]"
    for key, value in values.items():
        if not (key == "effort" and math.inf in value):  # no limit is expressed by omitting the key
            yield f"{key if PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _table(f"{name}.{key}", value)


def _value(value: Any) -> str:
    """Format a value as TOML."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        wide = any(isinstance(item, (dict, list)) for item in value)
        inside = [_value(item) for item in value]
        return (
            "[\n" + "".join(f"    {item},\n" for item in inside) + "]" if wide else f"[{', '.join(inside)}]"
        )
    return repr(value)
