"""How the runs of a sweep that do not hold failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scenarios.sweeping.words import title
from twin.robot.limits import ROUND_OFF
from twin.short_texts import figure
from twin.sweeps.trial import TROUBLES

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Failure(NamedTuple):
    """One way to fail: its name, and which runs (N,) failed so."""

    name: str
    rows: NDArray[np.bool_]


def failures(table: np.ndarray, limits: Mapping[str, float], leaves_limits: bool) -> list[Failure]:
    """The ways in which runs of a table can fail, in the order of how much is wrong then.

    A run that ended early has failed so, and in no other way; any other one may have failed in several.

    Args:
        table: of one law, with the fields of `twin.sweeps.trial.OUTCOME`.
        limits: what figures may be, in their units, besides what every run is judged by.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
    """
    ended = [Failure(name, table["trouble"] == k) for k, name in enumerate(TROUBLES) if k]
    whole = table["trouble"] == 0
    of_the_arm = [("beyond its range", "beyond_range", ROUND_OFF), ("too fast", "speed_ratio", 1 + ROUND_OFF)]
    judged = [*(of_the_arm if not leaves_limits else []), ("a drive saturated", "saturated", 0)]
    judged += [(f"{title(name)} above {figure(limit)}", name, limit) for name, limit in limits.items()]
    found = [*ended, *(Failure(name, whole & ~(table[key] <= limit)) for name, key, limit in judged)]
    explained = np.any([failure.rows for failure in found], axis=0)
    found.append(Failure("joint error above what rounding explains", ~table["holds"] & ~explained))
    return found
