"""What the table of a law says: how many of its runs hold, how the others failed, and what it depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.formatting import figure
from twin.robot.limits import ROUND_OFF
from twin.sweeps.table_files import UNITS
from twin.sweeps.trial import FIGURES, TROUBLES

if TYPE_CHECKING:
    from scenarios.base import Config
    from twin.sweeps.statistics import Importance, Share


def title(name: str) -> str:
    """What a figure is called: `joint_error` -> `joint error`."""
    words = {
        "rms_error": "RMS joint error",
        "rms_torque": "RMS torque / limit",
        "speed_ratio": "speed / limit",
    }
    return words.get(name, name.replace("_", " "))


def quantity(name: str) -> str:
    """The same with its unit, if it has one: `joint error [rad]`."""
    return f"{title(name)} [{UNITS[name]}]" if name in UNITS else title(name)


def percent(share: float) -> str:
    """`87.4 %`; with more digits near 0 and 1, where they matter."""
    text = f"{100 * share:.1f}"
    if text in ("0.0", "100.0") and 0 < share < 1:
        text = f"{100 * share:.3f}"
    return f"{text} %"


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
    found.append(Failure("joint error above what rounding explains", ~table["passes"] & ~explained))
    return found


MOST_VALUES = 20
"""Of an input on a grid: with so many, the share at each is told."""


@dataclass(frozen=True, eq=False)
class Swept:
    """The runs of one law.

    Attributes:
        label: what tables and files call the law.
        config: the settings of the sweep with this law; what varied has its nominal value.
        names: of the inputs, as columns of the table.
        grid: those of them that lie on a grid, at each value of which all draws were run.
        decades: those of which each decade is as likely as the next.
        table: (N,) a row a run, see `twin.sweeps.running`.
        nominal: the row of the run in which nothing varied.
        limits: what figures may be, besides what every run is judged by.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
        figure: what the worst cases are the worst of.
    """

    label: str
    config: Config
    names: tuple[str, ...]
    grid: tuple[str, ...]
    decades: tuple[str, ...]
    table: np.ndarray
    nominal: np.void
    limits: Mapping[str, float]
    leaves_limits: bool
    figure: str


class Spread(NamedTuple):
    """A figure over all runs of a law: nominal, half of them below, 95 % below, the worst; and its unit."""

    figure: str
    unit: str
    nominal: float
    median: float
    most: float
    worst: float


class AtValue(NamedTuple):
    """The share of runs that hold at one value of an input that lies on a grid."""

    name: str
    value: float
    share: float


class Findings(NamedTuple):
    """What became of one law."""

    swept: Swept
    share: Share
    failed: tuple[tuple[str, int], ...]
    spreads: tuple[Spread, ...]
    importance: Sequence[Importance]
    on_grid: tuple[AtValue, ...]


def findings(swept: Swept) -> Findings:
    """Count, sort and correlate the runs of a law."""
    from twin.sweeps.statistics import importances, pass_share

    table = swept.table
    failed = failures(table, swept.limits, swept.leaves_limits)
    return Findings(
        swept,
        pass_share(table["passes"], table["draw"], table["replicate"]),
        tuple((failure.name, int(count)) for failure in failed if (count := np.count_nonzero(failure.rows))),
        tuple(spread for name in FIGURES if (spread := _spread(swept, name)) is not None),
        tuple(importances(table, swept.names, swept.figure)),
        tuple(_on_grid(swept)),
    )


def _spread(swept: Swept, name: str) -> Spread | None:
    """Of a figure; nothing where nobody asked for it."""
    values = swept.table[name].astype(float)
    values = values[~np.isnan(values)]
    if not values.size:
        return None
    # Values of runs, not between those of two: infinity and a number have nothing between them.
    median, most, worst = np.quantile(values, [0.5, 0.95, 1.0], method="inverted_cdf")
    return Spread(name, UNITS.get(name, ""), float(swept.nominal[name]), median, most, worst)


def _on_grid(swept: Swept) -> list[AtValue]:
    found = []
    for name in swept.grid:
        column, holds = swept.table[name], swept.table["passes"]
        values = np.unique(column)
        if 1 < len(values) <= MOST_VALUES:
            found += [AtValue(name, float(value), float(holds[column == value].mean())) for value in values]
    return found
