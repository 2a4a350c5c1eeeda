"""Make the figures of a scenario's runs for plotly.js, as plain dictionaries with thinned curves."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.report.page_program import line_numbers
from scenarios.report.worst_moment import ROUNDING, worst_moment
from twin.data.logs.columns import thinned
from twin.data.logs.figures import LOADS, joint_error, motor_load, speed_load, tool_distance
from twin.data.logs.loads import load_curves, load_names
from twin.physics.robot.units import joint_unit
from twin.studies.views.curves import signal_columns, title_of

if TYPE_CHECKING:
    from twin.data.logs.log import Log
    from twin.studies.views.scene import Logged

MOST_POINTS, FEWEST_POINTS = 2000, 200
"""Largest and smallest number of points of a curve: more than the columns of a screen, enough to see it."""
ALL_POINTS = 250_000
"""Largest number of points of all curves of a page: about 4 MB."""
ABREAST, GAP = 3, 0.033  # panels in a row; half the room between two, with labels such as -4.44e-16
PANEL, TITLE = 170, 30  # pixels: the height of a row of panels, and of the title in it
ABOVE, BELOW = 24, 64  # pixels above and below all rows
LEAST, FURTHEST = 0.01, 3.0  # smallest and largest extent of a load axis, as multiples of the limit
ERROR, TORQUE, SPEED, TOOL, LOAD = (
    "Tracking error: desired minus actual position",
    "Motor torque / limit",
    "Speed / limit",
    "Tool: error of position and orientation",
    "Loads: force and moment of the foundation on the base, force at pins",
)


class Line(NamedTuple):
    """Curve of a panel: times and values (N,), and its style for plotly.js."""

    t: NDArray
    values: NDArray
    look: dict[str, Any]


class Panel(NamedTuple):
    """Panel of a figure: title, curves, limit above and below zero, and moments of the largest errors."""

    title: str
    unit: str
    lines: list[Line]
    limit: float | None = None
    moments: tuple[tuple[float, str], ...] = ()


def count(shown: Sequence[Logged]) -> int:
    """Return how many curves `figures` draws, without those of saturated motors."""
    return sum(
        (3 + len(one.log.law_signals)) * one.log.robot.n + 2 + len(load_names(one.log.robot)) for one in shown
    )


def figures(shown: Sequence[Logged], points: int) -> dict[str, dict[str, Any]]:
    """Return one figure per quantity, by its caption.

    Args:
        shown: logs of one robot, at least one, each with at least one sample.
        points: largest number of points of a curve.
    """
    robot = shown[0].log.robot
    units = [joint_unit(kind) for kind in robot.joint_kinds]
    errors, torque, speed = ([of(one.log) for one in shown] for of in (joint_error, motor_load, speed_load))
    worst = [worst_moment(one.log) for one in shown]
    quantities: dict[str, list[Panel]] = {ERROR: [], TORQUE: [], SPEED: []}
    for j, name in enumerate(robot.joint_names):
        moments = tuple(
            (moment.t, one.colour)
            for one, moment in zip(shown, worst, strict=True)
            if moment is not None and moment.joint == j and moment.size >= ROUNDING
        )
        quantities[ERROR].append(Panel(name, units[j], _lines(shown, errors, j), None, moments))
        loads = [*_lines(shown, torque, j), *_at_limit(shown, torque, j)]
        quantities[TORQUE].append(Panel(name, "", loads, 1.0, moments))
        quantities[SPEED].append(Panel(name, "", _lines(shown, speed, j), 1.0, moments))
    quantities[TOOL] = [
        Panel("position error", "m", _lines(shown, [tool_distance(one.log) for one in shown])),
        Panel("orientation error", "rad", _lines(shown, [turn(one.log) for one in shown])),
    ]
    robot_loads = [load_curves(one.log) for one in shown]
    if robot_loads[0]:
        quantities[LOAD] = [
            Panel(name.replace("_", " "), LOADS[name], _lines(shown, [loads[name] for loads in robot_loads]))
            for name in load_names(robot)
        ]
    for signal in dict.fromkeys(name for one in shown for name in one.log.law_signals):
        quantities[title_of(signal)] = _signal_panels(shown, signal)
    log = shown[0].log
    return {caption: _figure(panels, points, log) for caption, panels in quantities.items()}


def _signal_panels(shown: Sequence[Logged], signal: str) -> list[Panel]:
    """Return the panels of a signal, with a curve for each controller that has it."""
    having = [one for one in shown if signal in one.log.law_signals]
    columns = [signal_columns(one.log, signal) for one in having]
    return [
        Panel(title, unit, _lines(having, [of_one[k][2] for of_one in columns]))
        for k, (title, unit, _) in enumerate(columns[0])
    ]


def _lines(shown: Sequence[Logged], series: Sequence[NDArray], joint: int | None = None) -> list[Line]:
    """Return one curve per controller, of series (N,), or of one joint of series (N, n)."""
    return [
        Line(one.log.t, values if joint is None else values[:, joint], _look(one))
        for one, values in zip(shown, series, strict=True)
    ]


def _look(one: Logged, width: float = 1.4) -> dict[str, Any]:
    return {
        "name": escape(one.label),
        "line": {"color": one.colour, "width": width},
        "legendgroup": escape(one.label),
    }


def _at_limit(shown: Sequence[Logged], loads: Sequence[NDArray], joint: int) -> list[Line]:
    """Return thick curves where a motor is at its limit."""
    found = []
    for one, load in zip(shown, loads, strict=True):
        there = np.abs(load[:, joint]) >= 1.0 - 1e-9
        if np.any(there):
            thick = {**_look(one, 5.0), "opacity": 0.6, "hoverinfo": "skip"}
            found.append(Line(one.log.t, np.where(there, load[:, joint], np.nan), thick))
    return found


def turn(log: Log) -> NDArray:
    """Return the angle (N,) between the actual and the desired orientation of the tool, in [rad].

    The norm of the difference of the quaternions is 2 sin(angle / 4), which is accurate for small angles.
    """
    difference = np.linalg.norm(log.pose_ref[:, 3:] - log.pose[:, 3:], axis=1)
    total = np.linalg.norm(log.pose_ref[:, 3:] + log.pose[:, 3:], axis=1)
    return 4.0 * np.arcsin(np.clip(np.fmin(difference, total) / 2.0, 0.0, 1.0))


def _figure(panels: Sequence[Panel], points: int, log: Log) -> dict[str, Any]:
    """Return a figure of panels side by side, whose time axes are linked; with the lines of a program."""
    across = min(ABREAST, len(panels))
    rows = -(-len(panels) // across)
    traces, shapes, titles = [], [], []
    layout: dict[str, Any] = {
        "height": ABOVE + PANEL * rows + BELOW, "margin": {"l": 60, "r": 10, "t": ABOVE, "b": BELOW},
        "hovermode": "x",
        "legend": {"orientation": "h", "y": -28 / (PANEL * rows), "yanchor": "top"},
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#222"},
        "paper_bgcolor": "#fff", "plot_bgcolor": "#fff", "shapes": shapes, "annotations": titles,
    }  # fmt: skip
    shown: set[str] = set()
    for k, panel in enumerate(panels):
        number = str(k + 1) if k else ""
        row, column = divmod(k, across)
        left, top = column / across, 1 - row / rows
        domain = [left + GAP * (column > 0), left + 1 / across - GAP * (column < across - 1)]
        low, high = top - 1 / rows, top - TITLE / (PANEL * rows)
        unit = f" [{panel.unit}]" if panel.unit else ""
        layout[f"xaxis{number}"] = {
            "domain": domain, "anchor": f"y{number}", "showline": True, "linecolor": "#888",
            "ticks": "outside",
            "gridcolor": "#eee", "zeroline": False, "ticksuffix": " s", "nticks": 5,
            "showticklabels": k + across >= len(panels),
            **({"matches": "x"} if k else {}),
        }  # fmt: skip
        layout[f"yaxis{number}"] = {
            "domain": [low, high], "anchor": f"x{number}", "showline": True, "linecolor": "#888",
            "gridcolor": "#eee", "zerolinecolor": "#bbb", "nticks": 6,
            "exponentformat": "e", "minexponent": 2,
            **({"tickformat": "~%"} if panel.limit else {}),
        }  # fmt: skip
        titles.append({
            "text": escape(panel.title) + unit, "xref": "paper", "yref": "paper", "x": domain[0], "y": high,
            "xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 12.5},
        })  # fmt: skip
        if panel.limit is not None:
            limits = (-panel.limit, panel.limit)
            shapes += [_shape(number, LIMIT, "x", x=(0, 1), y=(limit, limit)) for limit in limits]
            layout[f"yaxis{number}"]["range"] = _range(panel)
        shapes += [
            _shape(number, {"color": colour, "width": 1.5, "dash": "dash"}, "y", x=(t, t), y=(0, 1))
            for t, colour in panel.moments
        ]
        if row == 0:
            numbers = line_numbers(log, number)
            titles += numbers
            shapes += [_shape(number, BEGIN, "y", x=(one["x"], one["x"]), y=(0.9, 1)) for one in numbers]
        for line in panel.lines:
            traces.append(_trace(line, points, number, line.look["legendgroup"] not in shown))
            shown.add(line.look["legendgroup"])
    return {"data": traces, "layout": layout}


def _range(panel: Panel) -> list[float]:
    """Return the range of a load's axis: that of the values, with a margin, up to `FURTHEST`."""
    sizes = [np.abs(line.values[np.isfinite(line.values)]) for line in panel.lines]
    most = max((float(size.max()) for size in sizes if len(size)), default=1.0)
    reach = 1.1 * float(np.clip(most, LEAST, FURTHEST))
    return [-reach, reach]


def _trace(line: Line, points: int, number: str, named: bool) -> dict[str, Any]:
    selected = thinned(line.values, points)
    t, values = line.t[selected], np.where(np.isfinite(line.values), line.values, np.nan)[selected]
    return {
        "type": "scatter", "mode": "lines" if len(t) > 1 else "markers", "connectgaps": False,
        "x": _packed(t), "y": _packed(values), "xaxis": f"x{number}", "yaxis": f"y{number}",
        "showlegend": named, "hovertemplate": "%{y:.4g} at %{x:.4f} s", **line.look,
    }  # fmt: skip


def _packed(values: NDArray) -> dict[str, str]:
    """Encode numbers for plotly.js in single precision, which is sufficient for a screen."""
    return {
        "dtype": "f4",
        "bdata": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode("ascii"),
    }


LIMIT = {"color": "#b00020", "width": 1, "dash": "dot"}
BEGIN = {"color": "#bbb", "width": 0.7}
"""Looks of a limit, and of the beginning of a program's line."""


def _shape(
    number: str, look: dict[str, Any], relative: str, *, x: tuple[float, float], y: tuple[float, float]
) -> dict[str, Any]:
    """Return a straight line in a panel; its place along one axis, "x" or "y", is relative to the panel."""
    axes = {f"{axis}ref": f"{axis}{number}" + " domain" * (axis == relative) for axis in "xy"}
    place = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    return {"type": "line", "line": look, "layer": "below", **axes, **place}
