"""The part of the page about one scenario on one robot: what was worst and why, replay, curves, figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scenarios.reports.broken_runs import broken_run
from scenarios.reports.page.markup import Markup, joined, table, tag
from scenarios.reports.page.reasons import reasons
from scenarios.reports.page.shown_runs import Logged, Shown, logged
from scenarios.reports.page.what_ran import what_ran
from scenarios.reports.page.worst_moment import worst_moment
from scenarios.reports.report import check_names, describe
from scenarios.reports.verdicts import WORDS
from twin.logs.figures import joint_error, largest, motor_load, pose_error, rms, speed_load, tool_distance
from twin.robot.limits import caption_unit
from twin.short_texts import figure

if TYPE_CHECKING:
    from scenarios.base import Metric
    from twin.logs.log import Log

NOT_KNOWN = (
    "A log has the arm's motion, its torques and what was measured. It does not have what went on inside the "
    "law (integrals, estimates, its terms one by one), contacts, or stops of the joints (the engine has "
    "neither). Correlations go with a cause; they do not prove it."
)
REPLAY_HELP = (
    "Drag turns, wheel zooms, right button shifts. The button at the lower right lists arms and paths, to "
    "hide them. A click on a curve below brings the replay to that moment."
)
CURVES_HELP = (
    "Drag zooms all panels of this section, a double click goes back, a click on a law in the legend hides "
    "it. Dashed: the moment when that law's error was largest. Dotted: the limit; thick: at the limit."
)


def section(
    number: int, title: str, shown: Sequence[Shown], captions: Sequence[str], start: float | None
) -> Markup:
    """The whole part.

    Args:
        number: of the section, from 0.
        title: what the scenario is.
        shown: runs of the scenario on one robot, one a law.
        captions: of its figures.
        start: when its replay begins, in [s]; `None` where there is none.
    """
    logs, first = logged(shown), shown[0].run
    robot = logs[0].log.robot.name if logs else first.config.robot
    parts = [
        tag("h2", f"{first.scenario} on {robot}"),
        tag("p", f"{title} {describe(first)}.", class_="quiet"),
    ]
    parts.append(_broken(shown))
    if logs:
        parts += [tag("h3", "Which joint was worst, when, and why")]
        cards = [_worst(one, start is not None) for one in logs]
        parts += [tag("div", *cards, class_="cards"), tag("p", NOT_KNOWN, class_="quiet")]
    if start is not None:
        parts += [
            tag("h3", "Replay"), _legend(logs),
            tag("div", class_="replay", id=f"replay-{number}", data_start=repr(start)),
            tag("p", REPLAY_HELP, class_="quiet"),
        ]  # fmt: skip
    for k, caption in enumerate(captions):
        parts += [tag("h3", caption), tag("div", class_="curves", id=f"curves-{number}-{k}")]
    if captions:
        parts.append(tag("p", CURVES_HELP, class_="quiet"))
    if logs:
        parts += [tag("h3", "Joints and tool"), _joints(logs)]
    if first.table is not None:
        caption, rows = first.table
        parts += [tag("h3", caption), table(rows[0], rows[1:], "numbers")]
    parts += [tag("h3", "Checks"), _checks(shown), what_ran(shown)]
    return tag("section", *parts, id=f"section-{number}")


def _broken(shown: Sequence[Shown]) -> Markup:
    """What does not hold, whose fault it is, and how to repeat it."""
    parts, runs = [], [one.run for one in shown]
    for run, name, _ in shown:
        if run.holds:
            continue
        broken = broken_run(run, runs)
        parts += [
            tag("div",
                tag("h3", f"{name} does not hold"),
                tag("ul", *(tag("li", sentence) for sentence in broken.sentences)),
                tag("p", tag("b", "Whose fault: "), broken.cause),
                tag("p", tag("b", "Again: "), tag("code", broken.repeat)), class_="broken"),
        ]  # fmt: skip
    return joined(parts)


def _worst(one: Logged, has_replay: bool) -> Markup:
    """The card of one law."""
    moment = worst_moment(one.log)
    head = tag("h4", _swatch(one.colour), one.label)
    if moment is None:
        return tag("div", head, tag("p", "No error in this log is a number."), class_="card")
    if not moment.size:
        return tag("div", head, tag("p", "No joint had any error."), class_="card")
    size = figure(moment.size)
    told = tag(
        "p", tag("b", moment.name), f" was worst: off by {size} {moment.unit} at t = {moment.t:.6g} s. "
    )
    button = tag("button", "show that moment in the replay", type="button", data_seek=repr(moment.t))
    why = tag("ul", *(tag("li", reason) for reason in reasons(moment)))
    facts = tag("details", tag("summary", "That moment in numbers"), table((), moment.facts()))
    return tag("div", head, told, *([button] if has_replay else []), why, facts, class_="card")


def _swatch(colour: str) -> Markup:
    return tag("span", class_="swatch", style=f"background:{colour}")


def _legend(logs: Sequence[Logged]) -> Markup:
    """Which arm is whose."""
    words = [
        tag("span", _swatch(colour), f"{label}: {'ghost' if k else 'the arm in its own colours'}")
        for k, (_, label, colour) in enumerate(logs)
    ]
    ghost = "ghost: the wanted motion; " if len(logs) == 1 else ""
    grey = f"{ghost}dots: the tool's wanted path. Lines: its paths; balls: where it was furthest off."
    return tag("p", *words, tag("span", _swatch("#969696"), grey), class_="legend")


def _joints(logs: Sequence[Logged]) -> Markup:
    """Errors, loads and saturation of every joint, and errors of the tool, law by law."""
    parts = []
    for log, name, _ in logs:
        error, torque, speed = joint_error(log), motor_load(log), speed_load(log)
        rows = []
        for j, joint in enumerate(log.robot.joint_names):
            cut = np.nonzero(log.saturated[:, j])[0]
            rows.append((
                joint, figure(rms(error)[j]), _largest(log, error[:, j]),
                figure(float(largest(log.tau)[j])), _largest(log, torque[:, j], percent=True),
                _largest(log, speed[:, j], percent=True),
                f"{len(cut)}, from {log.t[cut[0]]:.4g} s" if len(cut) else "0",
            ))  # fmt: skip
        unit, torque_unit = (caption_unit(log.robot.joint_kinds, of) for of in ("{position}", "{torque}"))
        head = (name, f"RMS error [{unit}]", f"largest error [{unit}]", f"peak torque [{torque_unit}]",
                "peak torque / limit", "peak speed / limit", "samples cut to the limit")  # fmt: skip
        parts.append(table(head, rows, "numbers"))
        tool, pose = tool_distance(log), pose_error(log)
        found = [
            f"{axis} {figure(rms(pose)[k])} / {figure(largest(pose)[k])}" for k, axis in enumerate("xyzabcd")
        ]
        parts.append(tag("p", f"Tool of {name}: largest distance {_largest(log, tool)}, in m. RMS / largest "
                         f"error of its pose, m and quaternion: {', '.join(found)}."))  # fmt: skip
    return joined(parts)


def _largest(log: Log, series: np.ndarray, percent: bool = False) -> str:
    """The largest magnitude and when it was."""
    size = np.abs(series)
    if not np.any(np.isfinite(size)):
        return "not a number"
    k = int(np.argmax(np.where(np.isfinite(size), size, -1.0)))
    value = f"{100 * size[k]:.3g} %" if percent else figure(float(size[k]))
    return f"{value} at {log.t[k]:.4g} s"


def _checks(shown: Sequence[Shown]) -> Markup:
    """Every figure with its limit, whether it holds, and why the limit is what it is."""
    rows, runs = [], [one.run for one in shown]
    for name in check_names(runs):
        found = [next((metric for metric in run.metrics if metric.name == name), None) for run in runs]
        whys = dict.fromkeys(metric.why for metric in found if metric is not None)
        rows.append((name, *map(_check, found), "; ".join(whys)))
    if not rows:
        return tag("p", "There are none: no run came so far.", class_="quiet")
    return table(
        ("check", *(one.label for one in shown), "where the limit comes from, or what the figure is"),
        rows,
        "checks",
    )


def _check(metric: Metric | None) -> str:
    if metric is None:
        return ""
    words: list[str] = [f"{figure(metric.value)} {metric.unit}".strip()]
    if metric.span is not None:
        words += [" ({} to {})".format(*map(figure, metric.span))]
    if metric.limit is not None:
        words += [f" ≤ {figure(metric.limit)} "]
    if metric.limit is not None or not metric.holds:
        words += [tag("b", WORDS[metric.outcome], class_="holds" if metric.holds else "fails")]
    if metric.where:
        words += [tag("br"), tag("small", metric.where)]
    return joined(words)
