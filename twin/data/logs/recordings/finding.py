"""Faults of a recording: findings, each with a name, its joints and one sentence."""

from collections.abc import Iterable
from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that is wrong with a recording.

    Attributes:
        name: word that names the kind of finding, as `late`.
        joints: numbers of the joints, from 1; none if all joints are concerned.
        text: sentence that says what was seen, where, and the likely reason.
        stops: whether a result from this recording is wrong; otherwise the finding was cured, or does little.
    """

    name: str
    joints: tuple[int, ...]
    text: str
    stops: bool = True


STOPPING = (
    "sign", "unit", "swapped", "mounting", "arm", "changes", "lack", "clipped", "frozen", "repeated", "lost",
    "late", "still", "worse", "file",
)  # fmt: skip
"""Names of findings that may stop a result, in the order of the guide."""


def joint_names(joints: Iterable[int]) -> str:
    """Return joints by their numbers: `joint 2`, or `joints 2, 3`."""
    numbers = list(joints)
    return f"joint{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
