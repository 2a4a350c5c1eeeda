"""Names cut in the middle to what a page has room for, and still told apart."""

from __future__ import annotations

from collections.abc import Sequence

CUT = "..."


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Each name in at most `width` characters; different ones stay different, and what fits stays as it is.

    The cut is in the middle, or nearer to one end where that is what tells the names apart; names that differ
    nowhere near their ends are numbered.

    >>> shortened(["shoulder_pan_joint_of_the_left_arm_1", "shoulder_pan_joint_of_the_left_arm_2"], 16)
    ['should...t_arm_1', 'should...t_arm_2']

    Args:
        names: any number of them.
        width: at least 8.
    """
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
