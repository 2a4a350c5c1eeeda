"""Draw a sweep of one controller: where runs pass, and where and how they fail, for each pair of inputs.

The diagonal shows the share of passing runs over each input.  The panels left of it and below show each pair
of inputs.  Few runs are drawn one by one: a passing run is a disc in the colour of its error, a failing run
is a marker for its kind of failure.  Of many runs, the share of passing runs is drawn cell by cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.studies.sweeps.plan import Swept
from scenarios.studies.sweeps.summary import failures, percent, quantity
from twin.base.formatting import literal, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 5000
"""Largest number of runs that are drawn one by one; more would hide each other."""
CELLS = 40
"""Largest number of cells along each side of a map of shares; each cell has about `RUNS_A_CELL` runs."""
RUNS_A_CELL = 20
BINS = 20
"""Largest number of bins of a curve of shares."""
FEWEST_BINS = 4
PANEL, MARGIN = 2.7, 1.6
"""Sizes of a panel and of the margins, in inches."""
MARKS = (
    ("x", "black"), ("P", "#7f0000"), ("D", "#5e3c99"), ("1", "0.45"), ("^", "#d55e00"), ("v", "#e69f00"),
    ("s", "#cc79a7"), ("+", "#b2182b"), ("*", "#b2182b"),
)  # fmt: skip
"""Markers and colours of the kinds of failure, in their order; further kinds share the last one."""
COLOURS = "viridis"
"""Colour map of errors; large errors are bright."""
SHARES = "RdYlBu"
"""Colour map of shares: 0 is red, 1 is blue."""
PASSING = "#0072b2"
SHARE = "share of passing runs"
ROOM = 0.02
"""Margin at both ends of an axis, as a share of its length."""
NAME = 30
"""Largest number of characters of an input's name on an axis."""


class Kind(NamedTuple):
    """Runs with one kind of failure as their most serious one, and how they are drawn."""

    name: str
    rows: NDArray[np.bool_]
    mark: str
    colour: str


def draw(swept: Swept, path: Path, title: str, scale: tuple[float, float] | None = None) -> None:
    """Draw the runs of one controller.

    Args:
        swept: the runs.
        path: path of the PNG file.
        title: title of the picture.
        scale: errors at both ends of the colour map; by default those of these runs, see `scale_of`.
    """
    from twin.base.notebook import Plot

    names, inputs = swept.names, len(swept.names)
    panels = max(inputs, 2)  # a single input has a panel of the figure beside its share
    made = Plot(figsize=(MARGIN + PANEL * panels, MARGIN + PANEL * max(inputs, 1)), layout="constrained")
    made.suptitle(literal(title), fontweight="bold")
    grid = made.subplots(max(inputs, 1), panels, squeeze=False)
    drawing = _Drawing(swept, scale or scale_of([swept]))
    units = [f"  [{swept.units[name]}]" if name in swept.units else "" for name in names]
    labels = [name + unit for name, unit in zip(shorten(list(names), NAME), units, strict=True)]
    for axes in grid.flat:
        axes.set_axis_off()
    for i, name in enumerate(names):
        drawing.share(grid[i, i], name)
        for j in range(i):
            drawing.pair(grid[i, j], names[j], name)
        for j in range(i + 1):
            grid[i, j].tick_params(labelsize=7, labelbottom=i == inputs - 1)
        grid[inputs - 1, i].set_xlabel(labels[i], fontsize=9)
        if i:
            grid[i, 0].set_ylabel(labels[i], fontsize=9)
    if inputs == 1:
        drawing.figure(grid[0, 1], names[0])
        grid[0, 1].set_xlabel(labels[0], fontsize=9)
        grid[0, 1].tick_params(labelsize=7)
    drawing.legends(made, grid)
    made.savefig(path, dpi=110, format="png")


def scale_of(laws: Sequence[Swept]) -> tuple[float, float]:
    """Return the figures at both ends of the colour map, so that it covers nearly all passing runs."""
    values = [law.table[law.figure][law.table["passes"]].astype(float) for law in laws]
    found = np.concatenate(values)
    found = found[np.isfinite(found) & (found > 0)]
    if not found.size:
        return 1e-3, 1.0
    low, high = np.quantile(found, [0.01, 1.0])
    return (low, high) if high > 1.01 * low else (low / 1.1, high * 1.1)


class _Drawing:
    """The panels of one picture."""

    def __init__(self, swept: Swept, scale: tuple[float, float]) -> None:
        from matplotlib.colors import LogNorm

        self._swept, self._table = swept, swept.table
        self._norm = LogNorm(*scale)
        self._many = len(swept.table) > FEW
        self._map: Any = None
        self._kinds = _kinds(swept)

    def share(self, axes: Axes, name: str) -> None:
        """Draw the share of passing runs over one input."""
        axes.set_axis_on()
        values, passes = self._table[name], self._table["passes"]
        edges = self._edges(name, min(BINS, max(len(values) // RUNS_A_CELL, FEWEST_BINS)))
        count = np.histogram(values, edges)[0]
        passed = np.histogram(values[passes], edges)[0]
        with np.errstate(invalid="ignore"):
            share = passed / count
        low, high = edges[:-1], edges[1:]
        middles = np.sqrt(low * high) if name in self._swept.decades else 0.5 * (low + high)
        each = self._runs_of_a_draw(name)  # runs of one draw are correlated: they count as one
        axes.fill_between(middles, *_wilson(passed / each, count / each), color=PASSING, alpha=0.2, lw=0)
        axes.plot(middles, share, "o-", color=PASSING, ms=3, lw=1.2)
        self._across(axes, name)
        axes.set_ylim(-0.04, 1.04)
        axes.yaxis.tick_right()
        axes.yaxis.set_label_position("right")
        axes.set_ylabel(SHARE, fontsize=9)
        axes.set_axisbelow(True)
        axes.grid(True, color="0.9")

    def pair(self, axes: Axes, across: str, up: str) -> None:
        """Draw two inputs: the runs, or of many runs the share that passes."""
        axes.set_axis_on()
        x, y, passes = self._table[across], self._table[up], self._table["passes"]
        if self._many:
            cells = int(np.clip(np.sqrt(len(x) / RUNS_A_CELL), 2, CELLS))
            edges = self._edges(across, cells), self._edges(up, cells)
            count = np.histogram2d(x, y, edges)[0]
            passed = np.histogram2d(x[passes], y[passes], edges)[0]
            share = np.ma.masked_invalid(np.where(count > 0, passed / np.maximum(count, 1), np.nan))
            self._map = axes.pcolormesh(*edges, share.T, cmap=SHARES, vmin=0.0, vmax=1.0, rasterized=True)
        else:
            self._runs(axes, x, y)
        self._across(axes, across)
        if up in self._swept.decades:
            axes.set_yscale("log")
        axes.set_ylim(*self._ends(up))

    def figure(self, axes: Axes, name: str) -> None:
        """Draw the figure over the only input; values that are infinite or 0 are drawn at the edge."""
        axes.set_axis_on()
        values = self._table[self._swept.figure].astype(float)
        drawable = values[np.isfinite(values) & (values > 0)]
        low, high = (drawable.min(), drawable.max()) if drawable.size else self._norm_ends()
        shown = np.where(np.isnan(values), np.inf, values).clip(low / 2, high * 2)
        self._runs(axes, self._table[name], shown)
        self._across(axes, name)
        axes.set(yscale="log", ylim=(low / 3, high * 3))
        axes.set_ylabel(quantity(self._swept.figure), fontsize=9)
        axes.set_axisbelow(True)
        axes.grid(True, color="0.9")

    def _across(self, axes: Axes, name: str) -> None:
        """Set the horizontal axis of an input."""
        if name in self._swept.decades:
            axes.set_xscale("log")
        axes.set_xlim(*self._ends(name))

    def _edges(self, name: str, cells: int) -> NDArray:
        """Return the edges of the cells: around the few values of a grid, otherwise evenly spaced."""
        values = np.unique(self._table[name])
        if name in self._swept.decades:
            return np.geomspace(values[0], values[-1], cells + 1)
        if len(values) == 1:
            return values[0] + np.array([-0.5, 0.5])
        if len(values) > BINS or name not in self._swept.grid:
            return np.linspace(values[0], values[-1], cells + 1)
        between = 0.5 * (values[1:] + values[:-1])
        return np.concatenate([[2 * values[0] - between[0]], between, [2 * values[-1] - between[-1]]])

    def _ends(self, name: str) -> tuple[float, float]:
        """Return the ends of an axis, with a margin so that markers at the edge are visible."""
        low, *_, high = self._edges(name, BINS).tolist()
        if name in self._swept.decades:
            return low * (low / high) ** ROOM, high * (high / low) ** ROOM
        return low - ROOM * (high - low), high + ROOM * (high - low)

    def _runs_of_a_draw(self, name: str) -> int:
        """Return the number of runs of one draw in a bin of an input: the grid points of the other inputs."""
        grid = [other for other in self._swept.grid if other != name]
        return math.prod(len(np.unique(self._table[other])) for other in grid)

    def _norm_ends(self) -> tuple[float, float]:
        return float(self._norm.vmin or 1e-3), float(self._norm.vmax or 1.0)

    def _runs(self, axes: Axes, x: NDArray, y: NDArray) -> None:
        """Draw runs one by one, failing runs on top of passing runs."""
        passes, size = self._table["passes"], float(np.clip(6000 / max(len(x), 1), 2, 22))
        colours = self._table[self._swept.figure][passes].clip(*self._norm_ends())
        self._map = axes.scatter(
            x[passes], y[passes], c=colours, s=size, norm=self._norm, cmap=COLOURS, lw=0, rasterized=True
        )
        for kind in self._kinds:
            axes.scatter(
                x[kind.rows], y[kind.rows], s=1.3 * size, marker=kind.mark, c=kind.colour,
                lw=0.8 if kind.mark in "x1+" else 0, rasterized=True,
            )  # fmt: skip

    def legends(self, made: Any, grid: NDArray) -> None:
        """Draw the legends of colours and markers."""
        from matplotlib.lines import Line2D

        bar = None
        if self._map is not None:
            bar = made.colorbar(self._map, ax=list(grid.flat), location="right", shrink=0.6, pad=0.02)
            bar.ax.tick_params(labelsize=7, which="both")
            shown = SHARE if self._many else f"{quantity(self._swept.figure)}, passing runs"
            bar.set_label(shown, fontsize=9)
        passing = self._table["passes"]
        entries = [Line2D([], [], color=PASSING, marker="o", ms=3, label=f"{SHARE}, 95 % interval")]
        passed = f"pass: {np.count_nonzero(passing)} of {len(passing)} ({percent(passing.mean())})"
        entries.append(Line2D([], [], marker="" if self._many else "o", color="#21918c", ls="", label=passed))
        for kind in self._kinds:
            entries.append(
                Line2D([], [], marker="" if self._many else kind.mark, color=kind.colour, ls="", ms=6,
                       label=f"{kind.name}: {np.count_nonzero(kind.rows)}")
            )  # fmt: skip
        made.legend(handles=entries, loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _kinds(swept: Swept) -> list[Kind]:
    """Return the kinds of failure that occur; a run with several kinds belongs to the first of them."""
    remaining, found = ~swept.table["passes"], []
    for place, failure in enumerate(failures(swept.table, swept.limits, swept.leaves_limits)):
        rows = failure.rows & remaining
        if rows.any():
            found.append(Kind(failure.name, rows, *MARKS[min(place, len(MARKS) - 1)]))
        remaining &= ~rows
    return found


def _wilson(passed: NDArray, count: NDArray) -> tuple[NDArray, NDArray]:
    """Return Wilson's 95 % confidence interval of the share in each bin."""
    z, n = 1.96, np.maximum(count, 1)
    share = passed / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    empty = np.where(count > 0, 1.0, np.nan)
    return (middle - half) * empty, (middle + half) * empty
