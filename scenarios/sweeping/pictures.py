"""A picture of a sweep with one law: where it holds, where it fails and how, for each pair of inputs.

On the diagonal stands one input alone, with the share of runs that hold over its range; left of it and below
stands each pair.  Few runs are drawn one by one, a disc in the colour of its error where it holds, a mark of
the kind of failure where it does not; of many the share that holds is, cell by cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.sweeping.findings import Swept, failures, percent, quantity
from twin.formatting import literal, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 5000
"""Runs that are drawn one by one; more would cover each other."""
CELLS = 40
"""Along each side of a map of shares, at most; each shall have some `RUNS_A_CELL` runs."""
RUNS_A_CELL = 20
BINS = 20
"""Along a curve of shares, at most."""
PANEL, MARGIN = 2.7, 1.6
"""Inches."""
MARKS = (
    ("x", "black"), ("P", "#7f0000"), ("D", "#5e3c99"), ("1", "0.45"), ("^", "#d55e00"), ("v", "#e69f00"),
    ("s", "#cc79a7"), ("+", "#b2182b"), ("*", "#b2182b"),
)  # fmt: skip
"""Of the kinds of failure, in their order; those after the last share it."""
COLOURS = "viridis_r"
"""Of errors: the larger the darker."""
SHARES = "RdYlBu"
"""Of shares: none hold is red, all is blue."""
ROOM = 0.02
"""Of an axis, beyond its ends."""
NAME = 30
"""Characters of an input's name on an axis."""


class Kind(NamedTuple):
    """Runs that failed in one way before all others, and how they are drawn."""

    name: str
    rows: NDArray[np.bool_]
    mark: str
    colour: str


def draw(swept: Swept, path: Path, title: str, scale: tuple[float, float] | None = None) -> None:
    """Draw the runs of one law.

    Args:
        swept: the runs.
        path: of the PNG to write.
        title: above the picture.
        scale: the errors at the ends of the colours; by default those of these runs, see `scale_of`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names, inputs = swept.names, len(swept.names)
    panels = max(inputs, 2)  # one alone has its figure beside its share
    made = Figure(figsize=(MARGIN + PANEL * panels, MARGIN + PANEL * max(inputs, 1)), layout="constrained")
    FigureCanvasAgg(made)
    made.suptitle(literal(title), fontweight="bold")
    grid = made.subplots(max(inputs, 1), panels, squeeze=False)
    drawing = _Drawing(swept, scale or scale_of([swept]))
    labels = shorten(list(names), NAME)
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
    """Figures at the two ends of the colours, for all these laws: nearly all runs that hold are between."""
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
        """The share of runs that hold over one input."""
        axes.set_axis_on()
        values, holds = self._table[name], self._table["passes"]
        edges = self._edges(name, min(BINS, max(len(values) // RUNS_A_CELL, 1)))
        count = np.histogram(values, edges)[0]
        held = np.histogram(values[holds], edges)[0]
        with np.errstate(invalid="ignore"):
            share = held / count
        low, high = edges[:-1], edges[1:]
        middles = np.sqrt(low * high) if name in self._swept.decades else 0.5 * (low + high)
        each = self._runs_of_a_draw(name)  # which have their circumstances in common: as good as one
        axes.fill_between(middles, *_wilson(held / each, count / each), color="#0072b2", alpha=0.2, lw=0)
        axes.plot(middles, share, "o-", color="#0072b2", ms=3, lw=1.2)
        self._across(axes, name)
        axes.set_ylim(-0.04, 1.04)
        axes.yaxis.tick_right()
        axes.set_axisbelow(True)
        axes.grid(True, color="0.9")

    def pair(self, axes: Axes, across: str, up: str) -> None:
        """Two inputs: runs, or of many the share that holds."""
        axes.set_axis_on()
        x, y, holds = self._table[across], self._table[up], self._table["passes"]
        if self._many:
            cells = int(np.clip(np.sqrt(len(x) / RUNS_A_CELL), 2, CELLS))
            edges = self._edges(across, cells), self._edges(up, cells)
            count = np.histogram2d(x, y, edges)[0]
            held = np.histogram2d(x[holds], y[holds], edges)[0]
            share = np.ma.masked_invalid(np.where(count > 0, held / np.maximum(count, 1), np.nan))
            self._map = axes.pcolormesh(*edges, share.T, cmap=SHARES, vmin=0.0, vmax=1.0, rasterized=True)
        else:
            self._runs(axes, x, y)
        self._across(axes, across)
        if up in self._swept.decades:
            axes.set_yscale("log")
        axes.set_ylim(*self._ends(up))

    def figure(self, axes: Axes, name: str) -> None:
        """The figure over the only input; what has no end, or is 0, is drawn at the edge."""
        axes.set_axis_on()
        values = self._table[self._swept.figure].astype(float)
        sound = values[np.isfinite(values) & (values > 0)]
        low, high = (sound.min(), sound.max()) if sound.size else self._norm_ends()
        shown = np.where(np.isnan(values), np.inf, values).clip(low / 2, high * 2)
        self._runs(axes, self._table[name], shown)
        self._across(axes, name)
        axes.set(yscale="log", ylim=(low / 3, high * 3))
        axes.set_ylabel(quantity(self._swept.figure), fontsize=9)
        axes.set_axisbelow(True)
        axes.grid(True, color="0.9")

    def _across(self, axes: Axes, name: str) -> None:
        """The horizontal axis of an input."""
        if name in self._swept.decades:
            axes.set_xscale("log")
        axes.set_xlim(*self._ends(name))

    def _edges(self, name: str, cells: int) -> NDArray:
        """Edges of cells: around each value where there are few, else evenly over the range."""
        values = np.unique(self._table[name])
        if name in self._swept.decades:
            return np.geomspace(values[0], values[-1], cells + 1)
        if len(values) > BINS:
            return np.linspace(values[0], values[-1], cells + 1)
        if len(values) == 1:
            return values[0] + np.array([-0.5, 0.5])
        between = 0.5 * (values[1:] + values[:-1])
        return np.concatenate([[2 * values[0] - between[0]], between, [2 * values[-1] - between[-1]]])

    def _ends(self, name: str) -> tuple[float, float]:
        """Of an axis: what is at the edge is seen whole."""
        low, *_, high = self._edges(name, BINS).tolist()
        if name in self._swept.decades:
            return low * (low / high) ** ROOM, high * (high / low) ** ROOM
        return low - ROOM * (high - low), high + ROOM * (high - low)

    def _runs_of_a_draw(self, name: str) -> int:
        """In a bin of one input: as many as the grid of the other inputs has points."""
        grid = [other for other in self._swept.grid if other != name]
        return math.prod(len(np.unique(self._table[other])) for other in grid)

    def _norm_ends(self) -> tuple[float, float]:
        return float(self._norm.vmin or 1e-3), float(self._norm.vmax or 1.0)

    def _runs(self, axes: Axes, x: NDArray, y: NDArray) -> None:
        """Runs one by one: those that hold below, failures over them."""
        holds, size = self._table["passes"], float(np.clip(6000 / max(len(x), 1), 2, 22))
        colours = self._table[self._swept.figure][holds].clip(*self._norm_ends())
        self._map = axes.scatter(
            x[holds], y[holds], c=colours, s=size, norm=self._norm, cmap=COLOURS, lw=0, rasterized=True
        )
        for kind in self._kinds:
            axes.scatter(
                x[kind.rows], y[kind.rows], s=1.3 * size, marker=kind.mark, c=kind.colour,
                lw=0.8 if kind.mark in "x1+" else 0, rasterized=True,
            )  # fmt: skip

    def legends(self, made: Any, grid: NDArray) -> None:
        """What colours and marks mean, in the corner that is free."""
        from matplotlib.lines import Line2D

        bar = None
        if self._map is not None:
            bar = made.colorbar(self._map, ax=list(grid.flat), location="right", shrink=0.6, pad=0.02)
            bar.ax.tick_params(labelsize=7, which="both")
            bar.set_label(
                "share of runs that hold"
                if self._many
                else f"{quantity(self._swept.figure)}, where it holds",
                fontsize=9,
            )
        holding = self._table["passes"]
        entries = [Line2D([], [], color="#0072b2", marker="o", ms=3, label="share that holds, 95 % interval")]
        held = f"holds: {np.count_nonzero(holding)} of {len(holding)} ({percent(holding.mean())})"
        entries.append(Line2D([], [], marker="" if self._many else "o", color="#35b779", ls="", label=held))
        for kind in self._kinds:
            entries.append(
                Line2D([], [], marker="" if self._many else kind.mark, color=kind.colour, ls="", ms=6,
                       label=f"{kind.name}: {np.count_nonzero(kind.rows)}")
            )  # fmt: skip
        made.legend(handles=entries, loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _kinds(swept: Swept) -> list[Kind]:
    """The kinds of failure that there are; a run that failed in several ways is of the first."""
    left, found = ~swept.table["passes"], []
    for place, failure in enumerate(failures(swept.table, swept.limits, swept.leaves_limits)):
        rows = failure.rows & left
        if rows.any():
            found.append(Kind(failure.name, rows, *MARKS[min(place, len(MARKS) - 1)]))
        left &= ~rows
    return found


def _wilson(held: NDArray, count: NDArray) -> tuple[NDArray, NDArray]:
    """Wilson's interval of 95 % for the share in each bin: good enough for the eye."""
    z, n = 1.96, np.maximum(count, 1)
    share = held / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    empty = np.where(count > 0, 1.0, np.nan)
    return (middle - half) * empty, (middle + half) * empty
