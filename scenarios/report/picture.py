"""Draw a picture of the runs of one scenario: tracking errors, and the arm on its path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from twin.base.formatting import figure as number
from twin.base.formatting import literal, shorten
from twin.data.logs.figures import joint_error
from twin.physics.robot.units import caption_unit
from twin.studies.views.curves import power
from twin.studies.views.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from scenarios.running.runs import Run
    from twin.data.logs.log import Log

PICTURE = (1400, 1400)  # pixels of the rendered arm, which is drawn at less than half that size
EDGE = 15  # pixels of margin around the arm
MOMENTS = 5  # number of poses of the arm
TITLE = 36  # characters of a title, and of a name in the legend
LETTERS = 11  # characters per inch of the legend
COMPARABLE = 30.0  # ratio of errors up to which all panels have one scale


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw a column per run: the error of every joint over time above, the arm on its path below.

    Args:
        runs: runs of one scenario; those without a log are omitted.
        path: path of the PNG file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = [(run.label, run.log) for run in runs if run.log is not None]
    logs = [log for _, log in drawn]
    figure = Figure(figsize=(max(1.2 + 4.0 * len(logs), 7.0), 8.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(literal(f"{runs[0].scenario} on {logs[0].robot.name}"), fontweight="bold")
    above, below = cast("NDArray", figure.subfigures(2, 1, height_ratios=(1.0, 1.05)))
    sizes = [_size(log) for log in logs]
    alike = max(sizes) <= COMPARABLE * min(sizes)
    row = above.subplots(1, len(logs), sharey=alike, squeeze=False)[0]
    unit = caption_unit(logs[0].robot.joint_kinds)
    for column, ((label, log), size, axes) in enumerate(zip(drawn, sizes, row, strict=True)):
        exponent = power(max(sizes) if alike else size)
        _draw_error(axes, log, exponent)
        axes.set_title(
            f"{literal(shorten([label], TITLE)[0])}: largest error {number(size)} {unit}", fontsize=10
        )
        if column == 0 or not alike:
            factor = f"$10^{{{exponent}}}$ " if exponent else ""
            axes.set_ylabel(f"joint error  [{factor}{unit}]")
        _draw_arm(below.add_subplot(1, len(logs), column + 1), log)
    handles, labels = row[0].get_legend_handles_labels()
    beside = max(1, int(LETTERS * figure.get_figwidth() / (max(map(len, labels)) + 5)))
    above.legend(handles, labels, loc="outside lower center", ncols=min(beside, len(labels)), frameon=False)
    handles, labels = below.axes[0].get_legend_handles_labels()
    below.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110, format="png")


def _size(log: Log) -> float:
    """Return the largest finite error of a joint, in [rad]."""
    errors = np.abs(joint_error(log))
    return float(np.max(errors, where=np.isfinite(errors), initial=0.0))


def _draw_error(axes: Axes, log: Log, exponent: int) -> None:
    """Draw the errors of the joints, divided by a power of ten."""
    error = 10.0**-exponent * joint_error(log)
    for joint, name in enumerate(map(literal, shorten(log.robot.joint_names, TITLE))):
        axes.plot(log.t, error[:, joint], color=COLOURS[joint % len(COLOURS)], lw=1.2, label=name)
    if not _size(log):
        axes.set_ylim(-1.0, 1.0)
    axes.set_xlabel("time  [s]")
    axes.set_xlim(log.t[0], log.t[-1] if log.t[-1] > log.t[0] else 1.0)
    axes.grid(True, which="major", color="0.88")


def _draw_arm(axes: Axes, log: Log) -> None:
    """Draw the simulated arm at its start, further poses as shadows, and the paths of the tool."""
    from twin.physics.engine.simulation import Simulation

    axes.set_axis_off()
    finite = np.nonzero(np.isfinite(log.q).all(axis=1))[0]  # a run that diverged may end with others
    if len(finite) == 0:
        return
    moments = finite[np.linspace(0, len(finite) - 1, MOMENTS, dtype=int)]
    points = np.concatenate([log.pose[:, :3], [[0.0, 0.0, 0.0]]])
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    camera: dict = {"target": (low + high) / 2, "distance": 1.4 + 1.4 * float(np.linalg.norm(high - low))}
    with Simulation(log.robot) as simulation:
        images = []
        for moment in moments:
            simulation.reset(log.q[moment])
            images.append(simulation.picture(*PICTURE, **camera))
        desired, actual = (simulation.pixels(p[:, :3], *PICTURE, **camera) for p in (log.pose_ref, log.pose))
    shadows = np.min(images, axis=0)
    axes.imshow((0.75 * images[0] + 0.25 * shadows) / 255)
    axes.plot(*desired.T, color="0.45", lw=3.5, solid_capstyle="round", label="desired tool path")
    axes.plot(*actual.T, color=COLOURS[0], lw=1.2, label="actual tool path")
    axes.plot(*desired[:1].T, "o", color="0.2", ms=4, label="start")
    rows, columns = np.nonzero((shadows < 255).any(axis=2))
    corners = np.concatenate([np.stack([columns, rows], axis=1), desired, actual])
    corners = corners[np.isfinite(corners).all(axis=1)]
    low, high = corners.min(axis=0) - EDGE, corners.max(axis=0) + EDGE
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]))
