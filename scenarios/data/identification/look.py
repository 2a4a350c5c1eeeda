"""Picture of a recording before anything is fitted: `irb-twin identify --look FILE.png`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.base.errors import TwinError
from twin.data.identification.alternatives import found_delay
from twin.data.identification.identify import Source, measured_sources
from twin.data.identification.measurements import Filtering, Measurements
from twin.data.identification.torque_model import TorqueModel, friction_of, identifiable
from twin.data.logs.recordings.torque_recording import TorqueRecording
from twin.physics.robot.robot import Robot
from twin.studies.views.plots import COLOURS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.base.arrays import Floats

MOST_POINTS = 4000
"""Largest number of points of a curve."""

PANELS = ("positions / range", "speeds / limit", "torques / largest", "time steps  [ms]", "delay scan")


def draw_recordings(
    path: Path, robot: Robot, sources: Sequence[Source], filtering: Filtering | None = None
) -> None:
    """Draw positions, speeds, torques and time steps of recordings as they are read, and a scan of delays.

    Args:
        path: path of the picture.
        robot: robot of the joints, with the limits that curves are compared with.
        sources: recordings, or measurements of logs.
        filtering: filter settings for the scan of delays.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn: list[Any] = [one for one in sources if isinstance(one, TorqueRecording | Measurements)]
    figure = Figure(figsize=(7.0 * len(drawn), 11.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(PANELS), len(drawn), squeeze=False)
    for column, one in enumerate(drawn):
        _draw(panels[:, column], robot, one, filtering)
        panels[0, column].set_title(Path(one.name).name)
    for row, title in enumerate(PANELS):
        panels[row, 0].set_ylabel(title)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    figure.savefig(path, dpi=110, format=path.suffix.lower()[1:] or "png")


def _draw(panels: NDArray[Any], robot: Robot, one: Any, filtering: Filtering | None) -> None:
    """Draw one recording into a column of panels."""
    t, q, tau = one.t, one.q, one.tau
    some = slice(None, None, max(1, len(t) // MOST_POINTS))
    middle = 0.5 * (robot.q_max + robot.q_min)
    half = np.where(np.isfinite(robot.q_max - robot.q_min), 0.5 * (robot.q_max - robot.q_min), np.pi)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    speeds = np.diff(q, axis=0) / np.diff(t)[:, None]
    fastest = np.where(np.isfinite(robot.qd_max), robot.qd_max, np.max(np.abs(speeds), axis=0))
    largest = np.maximum(np.max(np.abs(tau), axis=0), 1e-300)
    for joint, name in enumerate(robot.joint_names):
        colour = COLOURS[joint % len(COLOURS)]
        for axes, at, curve in (
            (panels[0], t, (q[:, joint] - middle[joint]) / half[joint]),
            (panels[1], t[1:], speeds[:, joint] / fastest[joint]),
            (panels[2], t, tau[:, joint] / largest[joint]),
        ):
            axes.plot(at[some], curve[some], color=colour, lw=0.9, label=name)
    for axes in panels[:2]:
        for limit in (-1.0, 1.0):
            axes.axhline(limit, color="0.4", lw=0.8, ls="--")
    panels[2].plot(*_saturated(t, tau / largest), ".", color="black", ms=4)
    panels[3].plot(t[1:], 1e3 * np.diff(t), ".", color="0.3", ms=2)
    panels[3].set_ylim(0.0, 1.2e3 * float(np.max(np.diff(t))))
    _draw_delay(panels[4], robot, one, filtering)
    for axes in panels:
        axes.grid(True, color="0.88")
    for axes in panels[:4]:
        axes.set_xlabel("time  [s]")


def _saturated(t: Floats, tau: Floats) -> tuple[Floats, Floats]:
    """Return times and values of torques that stay exactly at their largest or smallest value."""
    from twin.data.identification.requirements import plateau

    flat = np.stack([plateau(column) for column in tau.T], axis=1)
    return np.broadcast_to(t[:, None], tau.shape)[flat], tau[flat]


def _draw_delay(axes: Any, robot: Robot, one: Source, filtering: Filtering | None) -> None:
    """Draw the residuals of fits with delayed torques, or state why there are none."""
    try:
        arm = identifiable(robot)
        model = TorqueModel(arm, friction=friction_of(arm)).without_load
        delay = found_delay(model, measured_sources(one, arm, filtering))
        if delay is None:
            raise TwinError("the steps of this log are exact")
    except TwinError as error:
        axes.text(0.02, 0.5, f"no scan of delays: {str(error)[:90]}", transform=axes.transAxes, wrap=True)
        axes.set_axis_off()
        return
    axes.plot(1e3 * delay.shifts, np.exp(delay.costs - np.min(delay.costs)), "o-", color="0.3", ms=3)
    axes.axvline(1e3 * delay.value, color=COLOURS[1], lw=1.2)
    axes.set_yscale("log")
    axes.set_xlabel(
        f"torques later by  [ms]; found {1e3 * delay.value:.3g} +- {1e3 * delay.deviation:.2g} ms"
    )
