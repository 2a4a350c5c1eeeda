"""Texts for tables: numbers in few characters, and names cut to what a page has room for."""

from collections.abc import Sequence

import numpy as np

CUT = "..."


def figure(value: float) -> str:
    """A number in few characters: `0`, `0.00123`, `4e-5`, `4.44e-16`, `85.2`, `8950`, `1.23e4`, `nan`."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    if abs(value) < 1e6 and value == round(value):  # a count, as of samples
        return f"{value:.0f}"
    if 1e-3 <= abs(value) < 999.5:
        return f"{value:.3g}"
    digits, exponent = f"{value:.2e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def literal(text: str) -> str:
    """Return a text as matplotlib draws it letter by letter: a pair of dollars would begin mathematics."""
    return text.replace("$", r"\$")


def shorten(names: Sequence[str], width: int) -> list[str]:
    """Each name in at most `width` characters; different ones stay different, and what fits stays as it is.

    The cut is in the middle, or nearer to one end where that is what tells the names apart; names that differ
    nowhere near their ends are numbered.

    >>> shorten(["shoulder_pan_joint_of_the_left_arm_1", "shoulder_pan_joint_of_the_left_arm_2"], 16)
    ['should...t_arm_1', 'should...t_arm_2']

    Args:
        names: any number of them.
        width: at least 8.
    """
    if all(len(name) <= width for name in names):
        return list(names)
    kept = width - len(CUT)
    for head in sorted(range(kept + 1), key=lambda head: abs(head - kept // 2)):
        short = [_cut(name, head, kept - head) for name in names]
        if len(set(short)) == len(set(names)):
            return short
    numbers = {name: f"{k}{CUT}" for k, name in enumerate(dict.fromkeys(names), start=1)}
    return [
        name if len(name) <= width else numbers[name] + name[len(name) + len(numbers[name]) - width :]
        for name in names
    ]


def _cut(name: str, head: int, tail: int) -> str:
    """The first and the last characters of a name that is longer than both and the cut."""
    if len(name) <= head + len(CUT) + tail:
        return name
    return name[:head] + CUT + name[len(name) - tail :]
