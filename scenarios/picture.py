"""A picture of how runs of one scenario went: tracking errors side by side, and the tool's path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from scenarios.tracking_error import joint_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from mpl_toolkits.mplot3d import Axes3D
    from numpy.typing import NDArray

    from scenarios.runs import Run
    from twin.log import Log

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe-Ito: told apart by all
FLOOR = 1e-17  # rad; a zero error has no place on a logarithmic axis


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw a column for each run: error of every joint over time above, the path of the tool below.

    Args:
        runs: runs of one scenario, those with a log.
        path: the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    logs = [run.log for run in runs if run.log is not None]
    figure = Figure(figsize=(max(1.2 + 4.0 * len(logs), 7.0), 8.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{runs[0].scenario} on {logs[0].robot.name}", fontweight="bold")
    above, below = cast("NDArray", figure.subfigures(2, 1, height_ratios=(1.0, 1.05)))
    row = above.subplots(1, len(logs), sharey=True, squeeze=False)[0]
    for column, (log, axes) in enumerate(zip(logs, row, strict=True)):
        _draw_error(axes, log)
        axes.set_title(log.controller)
        path_axes = below.add_subplot(1, len(logs), column + 1, projection="3d")
        _draw_path(cast("Axes3D", path_axes), log)
    low, high = _decades(logs)
    row[0].set_ylim(low, high)
    row[0].set_ylabel("|joint error|  [rad]" + (f"   (0 is drawn at {FLOOR:g})" if low <= FLOOR else ""))
    handles, labels = row[0].get_legend_handles_labels()
    above.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110)


def _decades(logs: Sequence[Log]) -> tuple[float, float]:
    """What the error axis spans: whole decades, without the lowest hundredth, which is zero crossings."""
    errors = np.concatenate([np.abs(joint_error(log)).ravel() for log in logs])
    errors = np.maximum(errors[np.isfinite(errors)], FLOOR)
    if len(errors) == 0:
        return FLOOR, 1.0
    low = np.floor(np.log10(np.quantile(errors, 0.01)))
    high = np.ceil(np.log10(errors.max()))
    return 0.5 * 10.0**low, 10.0 ** max(high, low + 2)


def _draw_error(axes: Axes, log: Log) -> None:
    error = np.maximum(np.abs(joint_error(log)), FLOOR)
    for joint, name in enumerate(log.robot.joint_names):
        axes.semilogy(log.t, error[:, joint], color=COLOURS[joint % len(COLOURS)], lw=1.0, label=name)
    axes.set_xlabel("time  [s]")
    axes.set_xlim(log.t[0], log.t[-1] if log.t[-1] > log.t[0] else 1.0)
    axes.grid(True, which="major", color="0.88")


def _draw_path(axes: Axes3D, log: Log) -> None:
    wanted, found = log.pose_ref[:, :3], log.pose[:, :3]
    axes.plot(*wanted.T, color="0.65", lw=3.5, solid_capstyle="round", label="reference")
    axes.plot(*found.T, color=COLOURS[1], lw=1.2, label="tool")
    axes.plot(*wanted[:1].T, "o", color="0.2", ms=4, label="start")
    points = np.concatenate([wanted, found])
    points = points[np.isfinite(points).all(axis=1)]
    middle, half = (points.min(axis=0) + points.max(axis=0)) / 2, max(np.ptp(points, axis=0).max() / 2, 0.05)
    for name, centre in zip("xyz", middle, strict=True):
        getattr(axes, f"set_{name}lim")(centre - half, centre + half)
        getattr(axes, f"set_{name}label")(f"{name}  [m]")
        getattr(axes, f"{name}axis").set_major_locator(_few_ticks())
    axes.set_box_aspect((1, 1, 1), zoom=0.88)  # pyright: ignore[reportArgumentType]
    axes.legend(loc="upper left", fontsize="small", frameon=False)


def _few_ticks():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)
