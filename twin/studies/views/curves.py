"""Plots of logs over time, overlaid: one panel per joint, with limits and marks of cut torques."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.atomic_file import atomic_write
from twin.base.errors import UnknownNameError, near
from twin.base.formatting import figure, literal, shorten
from twin.data.logs.columns import finite_part, first_non_finite, unit_of
from twin.data.logs.figures import POSE_COMPONENTS, joint_error, tool_distance, tool_turn
from twin.data.logs.loads import log_wrenches
from twin.physics.dynamics.environment import COMPONENTS
from twin.studies.views.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot
    from twin.studies.views.plots import Plot


FORMATS = (".png", ".pdf", ".svg")
WIDTHS = (2.2, 1.6, 1.2, 1.0, 0.8)  # points; decreasing, so that a coincident curve remains visible
REFERENCE, LIMIT = "0.75", "0.35"  # greys
WIDE, HIGH = 9.5, 1.7  # width of the picture and height of a row of panels, in inches
NAME = 34  # largest number of characters of a log's name
LETTERS = 13  # characters per inch of the legend
MOST_NUMBERS = 25  # largest number of a program's line numbers above a column of panels
STRIP = 0.06  # height of the marks of one log below the curves, as a share of the panel's height
NEAR = 0.5  # share of a limit from which on it is drawn; a distant limit would flatten the curves


def draw(
    logs: Mapping[str, Log], path: str | Path, what: str = "error", joints: Sequence[str] | None = None
) -> None:
    """Draw logs over time into one picture, as `plotted`, and write it atomically as PNG, PDF or SVG.

    Raises:
        ValueError: an unknown quantity or file format.
        UnknownNameError: none of the robots has such a joint.
        RobotError: the masses of the links are unknown, and so are forces and moments.
        OSError: the file cannot be written.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise ValueError(f"expected a file name that ends in {' or '.join(FORMATS)}, got {str(path)!r}")
    plot = plotted(logs, what, joints)
    with atomic_write(path) as draft:
        plot.savefig(draft, dpi=140, format=Path(path).suffix[1:].lower())


def plotted(logs: Mapping[str, Log], what: str = "error", joints: Sequence[str] | None = None) -> Plot:
    """Return a figure of logs over time.

    Values that are not finite are omitted.  Runs that contain some determine the scale only if all do.

    Args:
        logs: logs by the names for the legend, at least one.
        what: quantity to draw, a key of `twin.views.curves.TITLES`, or a signal of a controller.
        joints: names of the joints to draw, at one scale; `None` for all, each at its scale, and for the
            error also that of the tool.  Forces and moments have also those of passive joints, of the `base`,
            and of the pins of closed loops.

    Raises:
        ValueError: an unknown quantity.
        UnknownNameError: none of the robots has such a joint.
        RobotError: the masses of the links are unknown, and so are forces and moments.
    """
    from twin.studies.views.plots import Plot

    found = panels(logs, what, joints)
    columns = 3 if what in WRENCHES else 2 if len(found) > 1 else 1
    rows = -(-len(found) // columns)
    canvas = Plot(figsize=(WIDE * (0.5 + 0.25 * columns), 1.5 + max(rows * HIGH, 2.4)))
    canvas.set_layout_engine("constrained", hspace=0.04, wspace=0.03)
    robots = dict.fromkeys(f"{log.robot.name}, {log.drives} drives" for log in logs.values())
    title = literal(f"{title_of(what)}  ({'; '.join(robots)})")
    grid = canvas.subplots(rows, columns, sharex=True, squeeze=False)
    places = list((grid.T if what == "pose" else grid).flat)  # the pose: position left, orientation right
    styles, finite = _styles(logs), [name for name, log in logs.items() if first_non_finite(log) is None]
    views = [_span(panel, finite) for panel in found]
    if joints is not None and len({panel.unit for panel in found}) == 1:
        views = [(min(low for low, _ in views), max(high for _, high in views))] * len(found)
    for axes, panel, view in zip(places, found, views, strict=False):
        _draw_panel(axes, panel, styles, view)
    for axes in places[len(found) :]:
        axes.set_axis_off()
    for column in grid.T:
        lowest = [axes for axes in column if axes.axison][-1]
        lowest.set_xlabel("time  [s]", fontsize=9)
        lowest.tick_params(labelbottom=True)
    start, end = min(log.t[0] for log in logs.values()), max(log.t[-1] for log in logs.values())
    places[0].set_xlim(start, end if end > start else start + 1.0)
    led = next((log for log in logs.values() if log.program), None)
    if led is not None:
        for column in grid.T:
            _mark_lines([axes for axes in column if axes.axison], led)
    _add_legends(canvas, title, [style["label"] for style in styles.values()])
    return canvas


def _styles(logs: Mapping[str, Log]) -> dict[str, dict[str, Any]]:
    """Return colour, line width and legend entry of each log."""
    styles, last = {}, max(log.t[-1] for log in logs.values())
    for k, (name, short) in enumerate(zip(logs, shorten(list(logs), NAME), strict=True)):
        end, fault = logs[name].t[-1], first_non_finite(logs[name])
        ended = f" (ends at {end:.4g} s)" if end < last else ""
        label = short + (ended if fault is None else f" (not finite at {fault:.4g} s)")
        width = WIDTHS[min(k, len(WIDTHS) - 1)]
        styles[name] = {"color": COLOURS[k % len(COLOURS)], "lw": width, "label": literal(label)}
    return styles


def _add_legends(canvas: Figure, title: str, logs: Sequence[str]) -> None:
    """Add the title and the logs above all panels, and the other legend entries below them."""
    entries = {}
    for axes in canvas.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    others = [label for label in entries if label not in logs]
    drawn = [label for label in logs if label in entries]  # not all have the signal
    for place, head, labels in (("upper", title, drawn), ("lower", None, others)):
        if labels:
            beside = max(1, int(LETTERS * canvas.get_figwidth() / (max(map(len, labels)) + 5)))
            legend = canvas.legend(
                [entries[label] for label in labels],
                labels,
                loc=f"outside {place} center",  # pyright: ignore[reportArgumentType]
                ncols=min(beside, len(labels)),
                frameon=False,
                fontsize=9,
                title=head,
            )
            legend.get_title().set(fontsize=11, fontweight="bold")


def _draw_panel(axes: Axes, panel: Panel, styles: Mapping[str, dict], view: tuple[float, float]) -> None:
    (title, unit, curves), (bottom, high) = panel, view
    exponent = power(max(abs(bottom), abs(high)))
    scale = 10.0**-exponent
    longest = max(curves, key=lambda curve: len(curve.t))
    shared_reference = all(_same_reference(curve, longest) for curve in curves)
    if shared_reference and longest.reference is not None:
        axes.plot(longest.t, scale * longest.reference, color=REFERENCE, lw=4.5, label="reference", zorder=1)
    for curve in curves:
        colour = styles[curve.log]["color"]
        axes.plot(curve.t, scale * curve.values, **styles[curve.log])
        if curve.reference is not None and not shared_reference:
            axes.plot(
                curve.t,
                scale * curve.reference,
                "--",
                color=colour,
                lw=0.8,
                label="reference, in the log's colour",
            )
    for k, curve in enumerate(_cut(panel)):
        height = bottom + STRIP * (k + 0.5) * (high - bottom)
        _mark_cuts(axes, curve, styles[curve.log]["color"], scale * height)
    limits = {(curve.low, curve.high) for curve in curves if np.isfinite([curve.low, curve.high]).all()}
    for limit in {limit for pair in limits for limit in pair if bottom <= limit <= high}:
        axes.axhline(scale * limit, color=LIMIT, ls=(0, (5, 3)), lw=0.9, label="limit")
    axes.set_ylim(scale * bottom, scale * high)
    axes.set_title(literal(title), loc="left", fontsize=9, fontweight="bold", pad=3)
    if len(limits) == 1:
        axes.set_title(_limit_text(*limits.pop(), unit), loc="right", fontsize=8, color=LIMIT, pad=3)
    factor = f"$10^{{{exponent}}}$ " if exponent else ""
    axes.set_ylabel(f"[{factor}{unit}]" if factor or unit else "", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.grid(True, color="0.9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _mark_lines(column: Sequence[Axes], log: Log) -> None:
    """Draw a thin line where a line of the program begins, and its number above the column of panels."""
    assert log.program is not None
    t = log.t
    for axes in column:
        for k in line_starts(log):
            axes.axvline(t[k], color=REFERENCE, lw=0.5, zorder=0)
    numbered = line_starts(log, (t[-1] - t[0]) / MOST_NUMBERS)
    above = column[0].secondary_xaxis("top")
    above.set_xticks(t[numbered], [str(log.program.line[k]) for k in numbered])
    above.tick_params(labelsize=7, length=2, color=LIMIT, labelcolor=LIMIT)
    above.spines["top"].set_visible(False)


def line_starts(log: Log, room: float = 0.0) -> list[int]:
    """Return the samples in which a line of the program begins; none without a program.

    Args:
        log: log of the run.
        room: smallest time between two of them, in [s]; those that follow sooner are omitted.
    """
    if log.program is None:
        return []
    line, file = log.program.line, log.program.file
    begins = np.flatnonzero(np.any(np.diff(np.stack([line, file]), prepend=-1), axis=0) & (line > 0))
    found: list[int] = []
    for k in begins.tolist():
        if not found or log.t[k] - log.t[found[-1]] >= room:
            found.append(k)
    return found


def _cut(panel: Panel) -> list[Curve]:
    """Return the curves whose torque was cut to its limit."""
    return [curve for curve in panel.curves if curve.cut is not None and curve.cut.any()]


def _span(panel: Panel, finite: Sequence[str]) -> tuple[float, float]:
    """Return both ends of a panel's axis, with room for the marks of cut torques below the curves."""
    low, high = _view([curve for curve in panel.curves if curve.log in finite] or panel.curves)
    return low - STRIP * len(_cut(panel)) * (high - low), high


def _mark_cuts(axes: Axes, curve: Curve, colour: str, height: float) -> None:
    """Mark below all curves when the torque was cut to its limit."""
    cut_times = curve.t[curve.cut]
    axes.plot(cut_times, np.full(len(cut_times), height), "s", ms=2.6, mew=0, color=colour)
    axes.plot([], [], "s", ms=4, mew=0, color="0.3", label="torque cut to its limit, in the log's colour")


def _view(curves: Sequence[Curve]) -> tuple[float, float]:
    """Return the range of the vertical axis: all finite values, and the limits that they approach."""
    arrays = [array for curve in curves for array in (curve.values, curve.reference) if array is not None]
    values = np.concatenate(arrays)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    for curve in curves:
        if high > NEAR * curve.high > 0:
            high = max(high, curve.high)
        if low < NEAR * curve.low < 0:
            low = min(low, curve.low)
    room = max(0.06 * (high - low), 1e-6 * max(abs(low), abs(high)))
    return (low - room, high + room) if room else (-1.0, 1.0)


def power(size: float) -> int:
    """Return the power of ten, a multiple of three, by which values are divided; 0 for legible values."""
    return 0 if 0.02 <= size < 2000 or size == 0 else 3 * int(np.floor(np.log10(size) / 3 + 1e-9))


def _limit_text(low: float, high: float, unit: str) -> str:
    if low == -high:
        return f"limit ±{figure(high)} {unit}"
    return f"range {figure(low)} to {figure(high)} {unit}".replace("-", "\N{MINUS SIGN}")


def _same_reference(curve: Curve, longest: Curve) -> bool:
    """Return whether the reference of a curve agrees with that of one at least as long, over its duration."""
    if curve.reference is None or longest.reference is None:
        return curve.reference is longest.reference
    N = len(curve.t)
    pairs = ((curve.t, longest.t[:N]), (curve.reference, longest.reference[:N]))
    return all(np.allclose(a, b, rtol=0.0, atol=1e-9, equal_nan=True) for a, b in pairs)


TITLES = {
    "error": "Tracking error: reference minus position",
    "torque": "Torque that the motors brought to the joints",
    "speed": "Speed of the joints",
    "position": "Position of the joints",
    "pose": "Pose of the tool: position, and orientation as a unit quaternion",
    "force": "Force at each joint, in the axes of the link that it moves; base and pins in base axes",
    "moment": "Moment at each joint, in the axes of the link that it moves; base in base axes",
    "wrench": "Wrench of the environment on the tool, in base axes",
}
"""Quantities that can be drawn, with the titles of their pictures."""
SIGNALS = {
    "disturbance": "Torque that the controller observed beside that of the motors and its model",
    "adaptation": "Torque of the parameters that the controller changed",
    "payload": "Payload that the controller found beside that of its model",
}
"""Signals of the controllers of this project, with the titles of their pictures."""
PAYLOAD = (("mass", "kg"), ("mass x", "kg m"), ("mass y", "kg m"), ("mass z", "kg m"))
"""Titles and units of the first columns of the signal `payload`: mass and first moments."""
WRENCHES = ("force", "moment")
"""Quantities with three panels per joint, one per axis."""


class Curve(NamedTuple):
    """Curve of a log in a panel.

    Attributes:
        log: name of the log.
        t: (N,) times, in [s].
        values: (N,) values to draw.
        reference: (N,) reference; `None` if there is none.
        low, high: limits; infinite if there are none.
        cut: (N,) true where the torque was cut to its limit; `None` if the panel does not show it.
    """

    log: str
    t: NDArray
    values: NDArray
    reference: NDArray | None = None
    low: float = -np.inf
    high: float = np.inf
    cut: NDArray | None = None


class Panel(NamedTuple):
    """Panel of a picture: its title, the unit of its values, and one curve for each log that has them."""

    title: str
    unit: str
    curves: list[Curve]


def panels(logs: Mapping[str, Log], what: str, joints: Sequence[str] | None = None) -> list[Panel]:
    """Return the panels of a picture; joints of the same name and unit share a panel.

    Args:
        logs: logs by name.
        what: quantity to draw, a key of `TITLES`, or the name of a signal of a controller.
        joints: names of the joints to draw; `None` for all, and for the error also that of the tool.

    Raises:
        ValueError: an unknown quantity, or a signal that no controller of these logs has.
        UnknownNameError: none of the robots has such a joint.
    """
    signals = list(dict.fromkeys(name for log in logs.values() for name in log.law_signals))
    if what not in TITLES and what not in signals:
        of_laws = f", or a signal of the controllers, {', '.join(signals)}" if signals else ""
        without = "" if signals else "; no controller of these logs has signals"
        hint = near(what, [*TITLES, *signals])
        raise ValueError(f"expected one of {', '.join(TITLES)}{of_laws} to draw, got {what!r}{hint}{without}")
    if joints is not None:
        _require_known(logs, what, joints)
    found: dict[tuple[str, str], Panel] = {}
    kinds = {
        "pose": [_pose],
        "wrench": [_of_environment],
        "error": [_joints] if joints else [_joints, _tool_error],
    }
    others = _signals if what not in TITLES else _wrenches if what in WRENCHES else _joints
    for kind in kinds.get(what, [others]):
        for name, log in logs.items():
            for title, unit, curve in kind(name, log, what):
                owner = title[:-2] if what in WRENCHES else title  # `joint_2 x` is a force of joint_2
                if joints is None or owner in joints:
                    found.setdefault((title, unit), Panel(title, unit, [])).curves.append(curve)
    return list(found.values())


def title_of(what: str) -> str:
    """Return the title of a picture of a quantity or a signal."""
    return TITLES.get(what) or SIGNALS.get(what, f"Signal of the controller: {what}")


def _require_known(logs: Mapping[str, Log], what: str, joints: Sequence[str]) -> None:
    if what in ("pose", "wrench"):
        raise ValueError(f"joints can be chosen for all quantities but the {what}")
    known = dict.fromkeys(
        name
        for log in logs.values()
        for name in (_owners(log.robot) if what in WRENCHES else log.robot.joint_names)
    )
    for joint in joints:
        if joint not in known:
            raise UnknownNameError(f"unknown joint {joint!r}: known are {', '.join(known)}")


def _joints(name: str, log: Log, what: str) -> Iterator[tuple[str, str, Curve]]:
    robot, endless = log.robot, np.full(log.robot.n, np.inf)
    quantity, values, references, low, high = {
        "error": ("error", joint_error(log), None, -endless, endless),
        "torque": ("tau", log.tau, None, -robot.drive_torque_max, robot.drive_torque_max),
        "speed": ("qd", log.qd, log.qd_ref, -robot.qd_max, robot.qd_max),
        "position": ("q", log.q, log.q_ref, robot.q_min, robot.q_max),
    }[what]
    for k, (joint, kind) in enumerate(zip(robot.joint_names, robot.joint_kinds, strict=True)):
        reference = None if references is None else references[:, k]
        curve = Curve(name, log.t, values[:, k], reference, low[k], high[k], log.saturated[:, k])
        yield joint, unit_of(kind, quantity), curve


def signal_columns(log: Log, signal: str) -> list[tuple[str, str, NDArray]]:
    """Return titles, units and values (N,) of a controller's signal, one for each joint or number."""
    robot, values = log.robot, log.law_signals[signal]
    if signal == "payload":
        return [(*label, column) for label, column in zip(PAYLOAD, values.T, strict=False)]
    units = [unit_of(kind, "tau") if signal in SIGNALS else "" for kind in robot.joint_kinds]
    return list(zip(robot.joint_names, units, values.T, strict=True))


def _signals(name: str, log: Log, what: str) -> Iterator[tuple[str, str, Curve]]:
    for title, unit, values in signal_columns(log, what) if what in log.law_signals else ():
        yield title, unit, Curve(name, log.t, values)


def _tool_error(name: str, log: Log, _: str) -> Iterator[tuple[str, str, Curve]]:
    yield "tool, distance from the reference", "m", Curve(name, log.t, tool_distance(log))
    yield "tool, angle from the reference", "rad", Curve(name, log.t, tool_turn(log))


def _owners(robot: Robot) -> list[str]:
    """Return the names of what has a force: the base, all joints of the tree, the pins of closed loops."""
    return ["base", *robot.tree.names, *(loop.name for loop in robot.loops)]


def _wrenches(name: str, log: Log, what: str) -> Iterator[tuple[str, str, Curve]]:
    log = finite_part(log)
    wrenches, part = log_wrenches(log), slice(0, 3) if what == "force" else slice(3, 6)
    pins = wrenches.pins.values() if what == "force" else ()  # a pin transmits no moment
    vectors = [wrenches.base[:, part], *np.moveaxis(wrenches.joints[..., part], 1, 0), *pins]
    for owner, values in zip(_owners(log.robot), vectors, strict=False):
        for axis, component in zip("xyz", values.T, strict=True):
            yield f"{owner} {axis}", "N" if what == "force" else "N m", Curve(name, log.t, component)


def _of_environment(name: str, log: Log, _: str) -> Iterator[tuple[str, str, Curve]]:
    for (component, unit), values in zip(COMPONENTS.items(), log.wrench.T, strict=True):
        yield component, unit, Curve(name, log.t, values)


def _pose(name: str, log: Log, _: str) -> Iterator[tuple[str, str, Curve]]:
    for k, component in enumerate(POSE_COMPONENTS):
        unit = "m" if component in "xyz" else ""
        yield f"tool {component}", unit, Curve(name, log.t, log.pose[:, k], log.pose_ref[:, k])
        if component == "z":
            yield "tool, distance from the reference", "m", Curve(name, log.t, tool_distance(log))
