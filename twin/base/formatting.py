"""Formatting: short numbers, names cut to the width of a column, short texts of objects, tables as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

CUT = "..."


def figure(value: float) -> str:
    """Return a number in few characters, such as `0`, `0.00123`, `4e-5`, `4.44e-16`, `85.2` or `8950`."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    if abs(value) < 1e6 and value == round(value):  # a count, for example of samples
        return f"{value:.0f}"
    if 1e-3 <= abs(value) < 999.5:
        return f"{value:.3g}"
    digits, exponent = f"{value:.2e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def literal(text: str) -> str:
    """Return a text with `$` escaped, which would start a formula in matplotlib."""
    return text.replace("$", r"\$")


def shorten(names: Sequence[str], width: int) -> list[str]:
    """Shorten each name to at most `width` characters; different names stay different.

    A name that fits is unchanged.  Others are cut in the middle, or nearer to one end if that preserves the
    difference between them.  Names that differ in neither their first nor their last characters are numbered.

    >>> shorten(["shoulder_pan_joint_of_the_left_arm_1", "shoulder_pan_joint_of_the_left_arm_2"], 16)
    ['should...t_arm_1', 'should...t_arm_2']

    Args:
        names: any number of names.
        width: largest number of characters, at least 8.
    """
    if all(len(name) <= width for name in names):
        return list(names)
    room = width - len(CUT)
    for head in sorted(range(room + 1), key=lambda head: abs(head - room // 2)):
        short = [_cut(name, head, room - head) for name in names]
        if len(set(short)) == len(set(names)):
            return short
    numbers = {name: f"{k}{CUT}" for k, name in enumerate(dict.fromkeys(names), start=1)}
    return [
        name if len(name) <= width else numbers[name] + name[len(name) + len(numbers[name]) - width :]
        for name in names
    ]


def _cut(name: str, head: int, tail: int) -> str:
    """Join the first `head` and the last `tail` characters of a name by `CUT`, if that is shorter."""
    if len(name) <= head + len(CUT) + tail:
        return name
    return name[:head] + CUT + name[len(name) - tail :]


LONGEST_REPR = 400  # characters


def short_repr(self: Any) -> str:
    """Return class and fields of a dataclass or a named tuple in one line, arrays as their shapes.

    Classes with arrays use it as `__repr__`, since whole arrays fill a screen.
    """
    names = getattr(self, "_fields", None) or [item.name for item in fields(self)]
    parts = ", ".join(f"{name} {_short(getattr(self, name))}" for name in names)
    text = f"<{type(self).__name__}: {parts}>"
    return text if len(text) <= LONGEST_REPR else f"{text[: LONGEST_REPR - len(CUT) - 1]}{CUT}>"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 3:
        return f"({', '.join(map(str, value.shape))})"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4)
    if isinstance(value, Mapping):
        return f"{{{', '.join(map(str, value))}}}"
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple) and len(value) > 3:
        return f"{len(value)} items"
    text = figure(value) if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else f"<{type(value).__name__}>"


def html_table(title: str, rows: Sequence[Sequence[object]]) -> str:
    """Return a table for a notebook, with a title; the first row is its head.

    Args:
        title: text above the table.
        rows: cells row by row; numbers are shortened.
    """
    head, *body = [
        [escape(figure(cell) if isinstance(cell, float) else str(cell)) for cell in row] for row in rows
    ]
    lines = ["".join(f"<th>{cell}</th>" for cell in head)]
    lines += ["".join(f"<td>{cell}</td>" for cell in row) for row in body]
    return f"<b>{escape(title)}</b><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def enumerated(what: str, names: Iterable[str], plural: str = "") -> str:
    """Return names as text: `joint 'a'`, or `joints 'a', 'b', 'c' and 3 others`."""
    shown = [repr(name) for name in names]
    if len(shown) == 1:
        return f"{what} {shown[0]}"
    rest = f" and {len(shown) - 3} others" if len(shown) > 4 else ""
    return f"{plural or what + 's'} {', '.join(shown[:3] if rest else shown)}{rest}"
