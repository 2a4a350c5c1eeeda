"""Write the report of runs as one page of HTML, which opens in any browser without a network.

The template `page.html` contains texts and layout. The functions here compute the content: a section for each
scenario and robot, with the worst moment of every controller, replay, curves, tables, checks, and settings.
The figures are plain dictionaries for plotly.js, with thinned curves.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.report.results import (
    WORDS,
    Results,
    Shown,
    broken_run,
    check_names,
    describe,
    grouped,
    logged,
    metric_named,
    scenario_tables,
)
from scenarios.report.worst_moment import ROUNDING, reasons, worst_moment
from scenarios.running.provenance import all_settings, described, provenance, provenance_line
from scenarios.running.runs import repeat_command
from twin.base.errors import TwinError
from twin.base.formatting import figure
from twin.data.logs.columns import thinned
from twin.data.logs.figures import (
    LOADS,
    joint_error,
    largest,
    motor_load,
    pose_error,
    rms,
    speed_load,
    tool_distance,
    tool_turn,
)
from twin.data.logs.loads import cubic_mean, load_curves, load_names
from twin.physics.dynamics.environment import COMPONENTS
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import caption_unit, joint_unit
from twin.studies.views import browser
from twin.studies.views.curves import Curve, Panel, line_starts, signal_columns, title_of

if TYPE_CHECKING:
    from jinja2 import Template

    from scenarios.running.runs import Run
    from twin.data.logs.log import Log
    from twin.studies.cell.cell import Cell
    from twin.studies.views.browser import Logged


MOST_REPLAYS = 12
"""Largest number of replays: a browser draws about 16 three-dimensional views, and then drops the oldest."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; "
    "style-src 'unsafe-inline' data:; img-src data: blob:; font-src data:; connect-src data: blob:; "
    "worker-src blob: data:; frame-src 'self' blob:"
)
"""Content security policy: the page loads nothing but its content, whatever its libraries request."""
BIDI_CONTROLS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
"""Characters that change the direction of the text, and could disguise a name; they are replaced."""


def write_page(results: Results, path: Path, titles: Mapping[str, str], cell: Cell | None = None) -> None:
    """Write the report of runs as one page of HTML, which opens without a network.

    Args:
        results: runs of any scenarios and robots, at least one.
        path: path of the file.
        titles: title of each scenario, by its name.
        cell: what stands around the arms, shown in the replays.

    Raises:
        ImportError: a library is missing, see `missing`.
        RobotError: a shape of a robot cannot be drawn.
    """
    from plotly.offline import get_plotlyjs

    groups = grouped(results.runs)
    logs = [logged(group) for group in groups]
    points = _share(ALL_POINTS, sum(map(curve_count, logs)), FEWEST_POINTS, MOST_POINTS)
    moving = sum(browser.links(group) for group in logs[:MOST_REPLAYS])
    frames = _share(browser.MOST_POSES, moving, browser.FEWEST_FRAMES, browser.MOST_FRAMES)
    sections, data = [], {}
    for number, (group, those) in enumerate(zip(groups, logs, strict=True)):
        figures = curve_figures(those, points) if those else {}
        data |= {f"curves-{number}-{k}-data": one for k, one in enumerate(figures.values())}
        worst = [moment.t for one in those if (moment := worst_moment(one.log)) is not None]
        fixtures, lines, closest = _surroundings(those, cell)
        document = None
        if number < MOST_REPLAYS:
            document = browser.replay(those, frames, [*worst, *closest], fixtures, lines)
        if document is not None:
            data["player"] = {"head": document.head, "tail": document.tail}
            data[f"replay-{number}-data"] = document.recording
            data[f"replay-{number}-still"] = still(those[0].log)
        title, start = titles.get(group[0].run.scenario, ""), None if document is None else document.start
        program = listing(those[0].log) if those else None
        if program is not None:
            data[f"replay-{number}-lines"] = program.marks
        sections.append(_section(number, title, group, list(figures), start) | {"program": program})
    data["made-with"] = {"provenance": provenance(), "settings": list(map(described, results.runs))}
    text = rendered(results, sections, data, get_plotlyjs())
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def still(log: Log) -> str:
    """Return a picture of the arm at its largest error, for browsers that draw no replay, as `data:`.

    It is empty where the engine, which draws it, cannot load the arm.
    """
    from PIL import Image

    moment = worst_moment(log)
    try:
        from twin.physics.engine.simulation import Simulation

        with Simulation(log.robot.with_drives("ideal")) as arm:
            arm.reset(log.q[0 if moment is None else moment.sample])
            drawn = Image.fromarray(arm.picture(800, 560))
    except TwinError:
        return ""
    file = io.BytesIO()
    drawn.save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def rendered(results: Results, sections: Sequence[Mapping], data: Mapping[str, Any], plotly: str) -> str:
    """Return the page: sections, data by id for the scripts of the page, and the source of plotly.js."""
    from markupsafe import Markup

    runs = results.runs
    return template().render(
        results=results, sections=sections, data=data, plotly=Markup(plotly), policy=Markup(POLICY),
        name=", ".join(dict.fromkeys(run.scenario for run in runs)), made_with=provenance_line(), words=WORDS,
        runs_text=f"{len(runs)} run{'s' * (len(runs) > 1)}", outcomes=[_outcome(run) for run in runs],
    )  # fmt: skip


def template() -> Template:
    """Return the template, which escapes all texts and removes characters that change their direction."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def cleaned(value: Any) -> Any:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return value.translate(BIDI_CONTROLS) if is_text else value

    def in_script(value: Any) -> Markup:
        """Return JSON for a script element, which no text in it can end."""
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return Markup(text.translate(BIDI_CONTROLS).replace("<", "\\u003c"))

    loader = PackageLoader("scenarios", "report")
    environment = Environment(loader=loader, autoescape=True, finalize=cleaned, undefined=StrictUndefined)
    environment.filters |= {"figure": figure, "in_script": in_script}
    return environment.get_template("page.html")


def _surroundings(
    those: Sequence[Logged], cell: Cell | None
) -> tuple[list[browser.Fixture], list[NDArray], list[float]]:
    """Return the objects of a cell, the nearest points of each log, and their times."""
    if cell is None or not those:
        return [], [], []
    from twin.studies.cell.clearance import Clearance

    robot = those[0].log.robot
    clearance = Clearance(robot, cell)
    meshes = clearance.meshes(np.zeros(robot.n))
    fixtures = [browser.Fixture(name, vertices, faces) for vertices, faces, name in meshes if name != "tool"]
    found = [cell.least_distance(one.log) for one in those]
    return fixtures, [one.nearest.points for one in found], [one.t for one in found]


def _outcome(run: Run) -> dict[str, str]:
    """Return a run as one line: name, outcome, CSS class of its colour, and details."""
    failing = [metric.name for metric in run.metrics if not metric.passes]
    failures = ["did not finish"] if run.error is not None else []
    failures += [f"{len(failing)} of {len(run.metrics)} checks FAIL: {', '.join(failing)}"] if failing else []
    shade, verdict = ("passes", "passes") if run.outcome == "passes" else ("open", "every check passes")
    details = f"; {run.tracking.sentence}" if run.tracking else ""
    if run.log is not None and (moment := worst_moment(run.log)):
        place = f"; largest error {figure(moment.size)} {moment.unit} of {moment.name} at {moment.t:.6g} s"
        details += place if moment.size else "; no joint has an error"
    if failures:
        shade, verdict = "fails", "; ".join(failures)
    return {"name": run.name, "shade": shade, "verdict": verdict, "details": details}


def _share(whole: int, among: int, least: int, most: int) -> int:
    """Return one item's share of a total, within limits."""
    return max(least, min(most, whole // max(among, 1)))


def _section(
    number: int, title: str, shown: Sequence[Shown], captions: Sequence[str], start: float | None
) -> dict[str, Any]:
    """Return the content of the section for one scenario and robot.

    Args:
        number: number of the section, from 0.
        title: title of the scenario.
        shown: runs of the scenario on one robot, one per controller.
        captions: captions of its figures.
        start: time at which its replay begins, in [s]; `None` if there is none.
    """
    logs, first, runs = logged(shown), shown[0].run, [one.run for one in shown]
    moments = [worst_moment(one.log) for one in logs]
    return {
        "number": number, "captions": captions, "start": start, "shown": shown, "logs": logs,
        "heading": f"{first.scenario} on {logs[0].log.robot.name if logs else first.setup.robot}",
        "about": f"{title} {describe(first)}.",
        "broken": [(one.label, broken_run(one.run, runs)) for one in shown if not one.run.passes],
        "cards": [
            (one, moment, list(reasons(moment)) if moment is not None and moment.size else [])
            for one, moment in zip(logs, moments, strict=True)
        ],
        "joints": [_joints(one) for one in logs],
        "scenario_tables": scenario_tables(runs),
        "checks": _checks(runs),
        "arm": _arm(logs[0].log.robot) if logs else None,
        "laws": [_law(one) for one in shown],
        "settings": _settings(shown),
    }  # fmt: skip


def _joints(one: Logged) -> dict[str, Any]:
    """Return errors, loads and saturation of every joint, and errors of the tool, for one controller."""
    log = one.log
    error, torque, speed = joint_error(log), motor_load(log), speed_load(log)
    rows = []
    for j, joint in enumerate(log.robot.joint_names):
        cut = np.nonzero(log.saturated[:, j])[0]
        rows.append((
            joint, figure(rms(error)[j]), _largest(log, error[:, j]),
            figure(float(largest(log.tau)[j])),
            f"{figure(float(rms(log.tau)[j]))} / {figure(float(cubic_mean(log.tau)[j]))}",
            _largest(log, torque[:, j], percent=True),
            _largest(log, speed[:, j], percent=True),
            f"{len(cut)}, from {log.t[cut[0]]:.4g} s" if len(cut) else "0",
        ))  # fmt: skip
    unit, torque_unit = (caption_unit(log.robot.joint_kinds, of) for of in ("{position}", "{torque}"))
    head = (one.label, f"RMS error [{unit}]", f"largest error [{unit}]", f"peak torque [{torque_unit}]",
            f"RMS / cubic mean torque [{torque_unit}]",
            "peak torque / limit", "peak speed / limit", "saturated samples")  # fmt: skip
    pose = pose_error(log)
    sizes = zip("xyzabcd", rms(pose), largest(pose), strict=True)
    parts = [f"{axis} {figure(of_all)} / {figure(most)}" for axis, of_all, most in sizes]
    tool = (
        f"Tool with {one.label}: largest position error {_largest(log, tool_distance(log))}, in m. "
        f"RMS / largest error of each pose component, in m and of the quaternion: {', '.join(parts)}."
    )
    return {"head": head, "rows": rows, "tool": tool, "loads": _loads(one)}


def _loads(one: Logged) -> str:
    """Return the largest loads on foundation and pins as a sentence; "" for an arm without masses."""
    found = []
    for name, series in load_curves(one.log).items():
        value, at, when = _largest(one.log, series).partition(" at ")
        found.append(f"{name.replace('_', ' ')} {value} {LOADS[name]}{at}{when}")
    words = f"Largest loads with {one.label}, in base axes, with the weight of the arm: {'; '.join(found)}."
    return words if found else ""


def _largest(log: Log, series: NDArray, percent: bool = False) -> str:
    """Return the largest magnitude of a series, and its time."""
    size = np.abs(series)
    if not np.any(np.isfinite(size)):
        return "not a number"
    k = int(np.argmax(np.where(np.isfinite(size), size, -1.0)))
    value = f"{100 * size[k]:.3g} %" if percent else figure(float(size[k]))
    return f"{value} at {log.t[k]:.4g} s"


def _checks(runs: Sequence[Run]) -> list[tuple[str, list, str]]:
    """Return each check: its name, the metric of every run or `None`, and the source of its limit."""
    rows = []
    for name in check_names(runs):
        found = [metric_named(run, name) for run in runs]
        whys = dict.fromkeys(metric.why for metric in found if metric is not None)
        rows.append((name, found, "; ".join(whys)))
    return rows


def _arm(robot: Robot) -> dict[str, Any]:
    """Return the properties of the arm, and a table of its joints and drives."""
    payload = robot.payload
    carried = "none"
    if payload is not None:
        carried = f"{figure(payload.mass)} kg at {_numbers(payload.com)} m in the flange frame"
    rows = [
        ("robot", robot.name),
        ("file", "" if robot.file is None else robot.file.name),
        ("tool frame", robot.tool_reason or robot.tool_frame),
        ("gravity in the base frame", f"{_numbers(robot.gravity)} m/s²"),
        ("payload", carried),
        ("drives", robot.drive_mode),
    ]

    def unit(column: str, form: str) -> str:
        return f"{column} [{caption_unit(robot.joint_kinds, form)}]"

    ranges = [
        f"{_position(low, kind)} to {_position(high, kind)}"
        for low, high, kind in zip(robot.q_min, robot.q_max, robot.joint_kinds, strict=True)
    ]
    numbers = {
        unit("speed limit", "{speed}"): robot.qd_max,
        unit("torque limit at standstill", "{torque}"): robot.drive_torque_max,
    }
    if (drives := robot.active_drives) is not None:
        numbers |= {
            "gear": drives.ratio,
            "reflected rotor inertia [kg m²]": np.diag(drives.reflected_inertia),
            unit("Coulomb friction", "{torque}"): drives.coulomb,
            unit("viscous friction", "{torque} s/{position}"): drives.viscous,
        }
        if robot.drive_mode == "elastic":
            numbers[unit("stiffness", "{torque}/{position}")] = drives.stiffness
    columns = [map(figure, values) for values in numbers.values()]
    table = list(zip(robot.joint_names, ranges, *columns, strict=True))
    return {"facts": rows, "head": ["joint", "range", *numbers], "rows": table}


def _position(value: float, kind: str) -> str:
    return f"{np.rad2deg(value):.4g}°" if kind == "revolute" else f"{value:.4g} m"


def _numbers(values: Any) -> str:
    return ", ".join(figure(float(value)) for value in values)


def _law(one: Shown) -> dict[str, Any]:
    """Return the gains of a controller, one row per gain, and the command that repeats its run."""
    run, head, gains = one.run.run, (), []
    if run is not None and run.loop is not None and run.loop.gains:
        head = ("gain, SI units", *run.log.robot.joint_names)
        gains = [(name, *map(figure, row.tolist())) for name, row in run.loop.gains.items()]
    return {"label": one.label, "head": head, "gains": gains, "repeat": repeat_command(one.run)}


def _settings(shown: Sequence[Shown]) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Return every setting: its name, and for every run its value and whether it was changed."""
    settings = [all_settings(one.run) for one in shown]
    changed = [{*one.run.settings, "controller"} for one in shown]
    rows = []
    for name in dict.fromkeys(name for one in settings for name in one):
        short_name = name.removeprefix("law_settings.").removeprefix("changes.")
        values = [one.get(name, "") for one in settings]
        cells = [
            ("none" if value is None else str(value), name in one and short_name in marked)
            for value, one, marked in zip(values, settings, changed, strict=True)
        ]
        rows.append((name, cells))
    return rows


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


def curve_count(shown: Sequence[Logged]) -> int:
    """Return how many curves `curve_figures` draws, without those of saturated motors."""
    return sum(
        (3 + len(one.log.law_signals)) * one.log.robot.n
        + 2
        + len(load_names(one.log.robot))
        + 6 * (one.log.surroundings is not None)
        for one in shown
    )


def curve_figures(shown: Sequence[Logged], points: int) -> dict[str, dict[str, Any]]:
    """Return one figure per quantity, by its caption.

    Args:
        shown: logs of one robot, at least one, each with at least one sample.
        points: largest number of points of a curve.
    """

    def each(series: Callable[[Log], Any]) -> list[Any]:
        return [series(one.log) for one in shown]

    robot, loads, names = shown[0].log.robot, each(load_curves), load_names(shown[0].log.robot)
    joints = [(name, "") for name in robot.joint_names]
    with_units = [(name, joint_unit(kind)) for (name, _), kind in zip(joints, robot.joint_kinds, strict=True)]
    tool = [("position error", "m"), ("orientation error", "rad")]
    quantities = {
        ERROR: _panels(shown, with_units, each(joint_error)),
        TORQUE: _panels(shown, joints, each(motor_load), 1.0, marked=True),
        SPEED: _panels(shown, joints, each(speed_load), 1.0),
        TOOL: _panels(shown, tool, each(lambda log: np.column_stack([tool_distance(log), tool_turn(log)]))),
    }
    if loads[0]:
        titles = [(name.replace("_", " "), LOADS[name]) for name in names]
        series = [np.column_stack([of_log[name] for name in names]) for of_log in loads]
        quantities[LOAD] = _panels(shown, titles, series)
    if pushed := [one for one in shown if one.log.surroundings is not None]:
        wrenches = [one.log.wrench for one in pushed]
        quantities[title_of("wrench")] = _panels(pushed, list(COMPONENTS.items()), wrenches)
    for signal in dict.fromkeys(name for one in shown for name in one.log.law_signals):
        having = [one for one in shown if signal in one.log.law_signals]
        titles = [column[:2] for column in signal_columns(having[0].log, signal)]
        series = [one.log.law_signals[signal] for one in having]
        quantities[title_of(signal)] = _panels(having, titles, series)
    moments = [
        (moment.joint, moment.t, one.colour)
        for one in shown
        if (moment := worst_moment(one.log)) is not None and moment.size >= ROUNDING
    ]
    of_joints = (ERROR, TORQUE, SPEED)
    return {
        caption: _figure(panels, shown, points, moments if caption in of_joints else [])
        for caption, panels in quantities.items()
    }


def _panels(
    shown: Sequence[Logged],
    titles: Sequence[tuple[str, str]],
    series: Sequence[NDArray],
    limit: float = np.inf,
    *,
    marked: bool = False,
) -> list[Panel]:
    """Return one panel per title and unit, with a curve for each controller.

    Args:
        shown: the logs.
        titles: K titles and units.
        series: (N, K) values of each log, a column per panel.
        limit: limit above and below zero.
        marked: whether a thick line marks values at the limit.
    """
    return [
        Panel(title, unit, [
            Curve(one.label, one.log.t, values[:, k], None, -limit, limit,
                  np.abs(values[:, k]) >= limit - 1e-9 if marked else None)
            for one, values in zip(shown, series, strict=True)
        ])
        for k, (title, unit) in enumerate(titles)
    ]  # fmt: skip


def _figure(
    panels: Sequence[Panel], shown: Sequence[Logged], points: int, moments: Sequence[tuple[int, float, str]]
) -> dict[str, Any]:
    """Return a figure of panels side by side, whose time axes are linked; with the lines of a program.

    Args:
        panels: the panels.
        shown: the logs.
        points: largest number of points of a curve.
        moments: largest error of each log: index of the panel, time in [s], and colour.
    """
    colours = {one.label: one.colour for one in shown}
    named: set[str] = set()
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
    for k, panel in enumerate(panels):
        number = str(k + 1) if k else ""
        row, column = divmod(k, across)
        left, top = column / across, 1 - row / rows
        domain = [left + GAP * (column > 0), left + 1 / across - GAP * (column < across - 1)]
        low, high = top - 1 / rows, top - TITLE / (PANEL * rows)
        unit = f" [{panel.unit}]" if panel.unit else ""
        limited = np.isfinite(panel.curves[0].high)
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
            **({"tickformat": "~%"} if limited else {}),
        }  # fmt: skip
        titles.append({
            "text": escape(panel.title) + unit, "xref": "paper", "yref": "paper", "x": domain[0], "y": high,
            "xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 12.5},
        })  # fmt: skip
        if limited:
            limits = (panel.curves[0].low, panel.curves[0].high)
            shapes += [_shape(number, LIMIT, "x", x=(0, 1), y=(limit, limit)) for limit in limits]
            layout[f"yaxis{number}"]["range"] = _range(panel)
        shapes += [
            _shape(number, {"color": colour, "width": 1.5, "dash": "dash"}, "y", x=(t, t), y=(0, 1))
            for joint, t, colour in moments
            if joint == k
        ]
        if row == 0:
            numbers = line_numbers(shown[0].log, number)
            titles += numbers
            shapes += [_shape(number, BEGIN, "y", x=(one["x"], one["x"]), y=(0.9, 1)) for one in numbers]
        for curve in panel.curves:
            look = _look(curve.log, colours[curve.log])
            traces.append(_trace(curve.t, curve.values, look, points, number, curve.log not in named))
            named.add(curve.log)
        for curve in panel.curves:
            if curve.cut is not None and curve.cut.any():
                thick = _look(curve.log, colours[curve.log], 5.0) | {"opacity": 0.6, "hoverinfo": "skip"}
                there = np.where(curve.cut, curve.values, np.nan)
                traces.append(_trace(curve.t, there, thick, points, number, False))
    return {"data": traces, "layout": layout}


def _look(label: str, colour: str, width: float = 1.4) -> dict[str, Any]:
    return {
        "name": escape(label), "line": {"color": colour, "width": width}, "legendgroup": escape(label),
    }  # fmt: skip


def _range(panel: Panel) -> list[float]:
    """Return the range of a load's axis: that of the values, with a margin, up to `FURTHEST`."""
    sizes = [np.abs(curve.values[np.isfinite(curve.values)]) for curve in panel.curves]
    most = max((float(size.max()) for size in sizes if len(size)), default=1.0)
    reach = 1.1 * float(np.clip(most, LEAST, FURTHEST))
    return [-reach, reach]


def _trace(
    t: NDArray, values: NDArray, look: dict[str, Any], points: int, number: str, named: bool
) -> dict[str, Any]:
    """Return a curve for plotly.js; its numbers have single precision, which is sufficient for a screen."""
    selected = thinned(values, points)
    t, values = t[selected], np.where(np.isfinite(values), values, np.nan)[selected]
    x, y = (
        {"dtype": "f4", "bdata": base64.b64encode(np.asarray(part, dtype="<f4").tobytes()).decode("ascii")}
        for part in (t, values)
    )
    return {
        "type": "scatter", "mode": "lines" if len(t) > 1 else "markers", "connectgaps": False,
        "x": x, "y": y, "xaxis": f"x{number}", "yaxis": f"y{number}",
        "showlegend": named, "hovertemplate": "%{y:.4g} at %{x:.4f} s", **look,
    }  # fmt: skip


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


MOST_MARKS = 12
"""Largest number of line numbers above a column of curves."""


class Listing(NamedTuple):
    """Text of a program for the page.

    Attributes:
        lines: file's index, number and text of each line; number 0 is the name of a file.
        marks: time in [s], file's index and number of each line when it begins.
    """

    lines: list[tuple[int, int, str]]
    marks: list[tuple[float, int, int]]


def listing(log: Log) -> Listing | None:
    """Return the text of the program of a log, and when its lines begin; `None` without a program."""
    if log.program is None:
        return None
    lines: list[tuple[int, int, str]] = []
    for file, (name, text) in enumerate(zip(log.program.files, log.program.texts, strict=True)):
        lines.append((file, 0, str(name)))
        lines += [(file, number, line) for number, line in enumerate(str(text).splitlines(), start=1)]
    line, file = log.program.line, log.program.file
    marks = [(float(log.t[k]), int(file[k]), int(line[k])) for k in line_starts(log)]
    return Listing(lines, marks)


def line_numbers(log: Log, number: str) -> list[dict[str, Any]]:
    """Return annotations of plotly.js with line numbers at the top of a panel, as many as there is room for.

    Args:
        log: log of the run.
        number: number of the panel's axes, "" for the first.
    """
    room = (log.t[-1] - log.t[0]) / MOST_MARKS
    return [
        {
            "text": str(int(log.program.line[k])), "x": float(log.t[k]), "y": 1.0, "xref": f"x{number}",
            "yref": f"y{number} domain", "xanchor": "left", "yanchor": "top", "showarrow": False,
            "font": {"size": 9.5, "color": "#777"},
        }
        for k in line_starts(log, room)
        if log.program is not None
    ]  # fmt: skip
