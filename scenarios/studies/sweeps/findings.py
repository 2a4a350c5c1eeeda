"""Evaluate the table of a controller: share of passing runs, kinds of failure, importance of the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.formatting import figure
from twin.physics.robot.limits import ROUND_OFF
from twin.studies.sweeps.table_files import UNITS
from twin.studies.sweeps.trial import FIGURES, TROUBLES

if TYPE_CHECKING:
    from scenarios.setup import Setup
    from twin.studies.sweeps.sobol_indices import SobolIndices
    from twin.studies.sweeps.statistics import Importance, Share


def title(name: str) -> str:
    """Return the title of a quantity: `joint_error` -> `joint error`."""
    titles = {
        "rms_error": "RMS joint error",
        "rms_torque": "RMS torque / limit",
        "cubic_torque": "cubic mean torque / limit",
        "speed_ratio": "speed / limit",
    }
    return titles.get(name, name.replace("_", " "))


def quantity(name: str, unit: str = "") -> str:
    """Return the title of a quantity with its unit, if it has one: `joint error [rad]`."""
    unit = unit or UNITS.get(name, "")
    return f"{title(name)} [{unit}]" if unit else title(name)


def percent(share: float) -> str:
    """Format a share as `87.4 %`, with more digits near 0 and 1."""
    text = f"{100 * share:.1f}"
    if text in ("0.0", "100.0") and 0 < share < 1:
        text = f"{100 * share:.3f}"
    return f"{text} %"


OF_A_TRIAL = {"position beyond the range", "speed / its limit", "samples at the torque limit"}
"""Checks of a run that the figures of a trial judge, too."""


class Failure(NamedTuple):
    """Kind of failure: its name, and a mask (N,) of the runs that failed in this way."""

    name: str
    rows: NDArray[np.bool_]


def failures(table: np.ndarray, limits: Mapping[str, float], leaves_limits: bool) -> list[Failure]:
    """Return the kinds of failure of the runs in a table, the most serious first.

    A run that ended early has only this kind of failure. Any other run may have several kinds.

    Args:
        table: table of one controller, with the fields of `twin.sweeps.trial.OUTCOME`.
        limits: additional limits of quantities, in their units.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
    """
    ended = [Failure(name, table["trouble"] == k) for k, name in enumerate(TROUBLES) if k]
    whole = (table["trouble"] == 0) & ~table["passes"]
    of_the_arm = [("beyond its range", "beyond_range", ROUND_OFF), ("too fast", "speed_ratio", 1 + ROUND_OFF)]
    judged = [*(of_the_arm if not leaves_limits else []), ("a drive saturated", "saturated", 0)]
    judged += [(f"{title(name)} above {figure(limit)}", name, limit) for name, limit in limits.items()]
    found = [*ended, *(Failure(name, whole & ~(table[key] <= limit)) for name, key, limit in judged)]
    checks = sorted(set(table["check"].tolist()) - {"", *OF_A_TRIAL})
    found += [Failure(f"check fails: {name}", whole & (table["check"] == name)) for name in checks]
    explained = np.any([failure.rows for failure in found], axis=0)
    found.append(Failure("joint error above rounding errors", ~table["passes"] & ~explained))
    return found


MOST_VALUES = 20
"""Largest number of values of a grid input for which the share at each value is reported."""


@dataclass(frozen=True, eq=False)
class Swept:
    """Runs of one controller.

    Attributes:
        label: name of the controller in tables and files.
        setup: setup of the sweep with this controller; varied settings have their nominal values.
        names: names of the inputs, as columns of the table.
        grid: names of the inputs on a grid, at each value of which all draws are run.
        decades: names of the inputs that are uniform in the logarithm.
        table: (N,) one row per run, see `twin.sweeps.running`.
        nominal: row of the run with nominal values.
        limits: additional limits of quantities.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
        figure: quantity of the importances, which also ranks the worst cases.
        metrics: units of the scenario's metrics by name.
        units: units of the inputs by name; `times nominal` for factors; inputs without a unit are missing.
        further_checks: whether all checks of the scenario judge the draws, besides the figures.
        not_judged: checks of a run that do not judge the draws.
        in_engine: whether all runs are in PyBullet.
    """

    label: str
    setup: Setup
    names: tuple[str, ...]
    grid: tuple[str, ...]
    decades: tuple[str, ...]
    table: np.ndarray
    nominal: np.void
    limits: Mapping[str, float]
    leaves_limits: bool
    figure: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    further_checks: bool = False
    not_judged: tuple[str, ...] = ()
    in_engine: bool = False


class Spread(NamedTuple):
    """Distribution of a quantity over the runs of a controller: nominal, median, 95 % quantile and worst."""

    figure: str
    unit: str
    nominal: float
    median: float
    most: float
    worst: float


class AtValue(NamedTuple):
    """Share of passing runs at one value of an input on a grid."""

    name: str
    value: float
    share: float


class Findings(NamedTuple):
    """Evaluation of one controller."""

    swept: Swept
    share: Share
    failed: tuple[tuple[str, int], ...]
    spreads: tuple[Spread, ...]
    importance: Sequence[Importance]
    sobol_indices: SobolIndices
    on_grid: tuple[AtValue, ...]


def findings(swept: Swept) -> Findings:
    """Evaluate the runs of a controller: count failures, and correlate the figure with the inputs."""
    from twin.studies.sweeps.sobol_indices import sobol_indices
    from twin.studies.sweeps.statistics import importances, pass_share

    table = swept.table
    failed = failures(table, swept.limits, swept.leaves_limits)
    return Findings(
        swept,
        pass_share(table["passes"], table["draw"], table["replicate"]),
        tuple((failure.name, int(count)) for failure in failed if (count := np.count_nonzero(failure.rows))),
        tuple(spread for name in (*FIGURES, *swept.metrics) if (spread := _spread(swept, name)) is not None),
        tuple(importances(table, swept.names, swept.figure)),
        sobol_indices(table, swept.names, swept.figure),
        tuple(_on_grid(swept)),
    )


def _spread(swept: Swept, name: str) -> Spread | None:
    """Return the distribution of a quantity; `None` if it was not computed."""
    values = swept.table[name].astype(float)
    values = values[~np.isnan(values)]
    if not values.size:
        return None
    # Quantiles are values of runs: nothing can be interpolated between infinity and a number.
    median, most, worst = np.quantile(values, [0.5, 0.95, 1.0], method="inverted_cdf")
    unit = swept.metrics.get(name, UNITS.get(name, ""))
    return Spread(name, unit, float(swept.nominal[name]), median, most, worst)


def _on_grid(swept: Swept) -> list[AtValue]:
    found = []
    for name in swept.grid:
        column, passes = swept.table[name], swept.table["passes"]
        values = np.unique(column)
        if 1 < len(values) <= MOST_VALUES:
            found += [AtValue(name, float(value), float(passes[column == value].mean())) for value in values]
    return found
