"""Picture of the torque of every motor over its speed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from twin.base.formatting import literal
from twin.studies.views.plots import COLOURS

if TYPE_CHECKING:
    from twin.data.logs.log import Log

PER_MINUTE = 60 / (2 * np.pi)  # 1/min in a rad/s


def draw_motors(logs: Sequence[Log], path: Path) -> None:
    """Draw the torque of every motor over its speed, with the curve of its torque limit.

    Args:
        logs: runs with one robot.
        path: path of the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot = logs[0].robot
    drives = robot.drives
    assert drives is not None
    rows = -(-robot.n // 3)
    figure = Figure(figsize=(12.0, 3.2 * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(literal(f"Motors of {robot.name}: torque over speed"), fontweight="bold")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for axes in panels[robot.n :]:
        axes.set_axis_off()
    for motor, axes in enumerate(panels[: robot.n]):
        axes.set_title(literal(robot.joint_names[motor]))
        for k, log in enumerate(logs):
            speed = log.qd_motor @ drives.motor_matrix[motor]
            name, colour = literal(log.controller), COLOURS[k % len(COLOURS)]
            axes.plot(PER_MINUTE * speed, log.tau_motor[:, motor], lw=1.0, color=colour, label=name)
        rated, top = PER_MINUTE * drives.motor_speed_rated[motor], PER_MINUTE * drives.motor_speed_max[motor]
        torque = drives.motor_torque_max[motor]
        if np.isfinite(top) and np.isfinite(torque):
            limit = np.array([[-top, 0.0], [-top, -torque], [rated, -torque], [top, 0.0]])
            for curve in (limit, -limit):
                axes.plot(*curve.T, color="0.35", lw=1.6, label="limit of the motor")
        joint_limit = PER_MINUTE * abs(drives.ratio[motor]) * robot.qd_max[motor]
        for speed in (-joint_limit, joint_limit):
            axes.axvline(speed, color="0.4", lw=1.0, ls=":", label="speed limit of the joint")
        axes.grid(True, color="0.9")
        axes.set(xlabel="speed  [1/min]", ylabel="torque  [N m]")
    handles, labels = panels[0].get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=len(entries), frameon=False)
    figure.savefig(path, dpi=110, format="png")
