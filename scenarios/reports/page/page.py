"""The whole page: the verdict, a section for each scenario, and all that they need, in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.reports.page import curves, replay
from scenarios.reports.page.appearance import SCRIPT, STYLE
from scenarios.reports.page.markup import Markup, data, tag
from scenarios.reports.page.section import section
from scenarios.reports.page.shown_runs import grouped, logged
from scenarios.reports.page.worst_moment import worst_moment
from scenarios.reports.verdicts import unjudged
from scenarios.running.provenance import all_settings, in_a_line, provenance
from twin.short_texts import figure

if TYPE_CHECKING:
    from scenarios.running.runs import Run

NEEDED = ("plotly", "viser")
MOST_REPLAYS = 12
"""A browser draws some 16 pictures in three dimensions at once, and then takes the oldest away."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; "
    "style-src 'unsafe-inline' data:; img-src data: blob:; font-src data:; connect-src data: blob:; "
    "worker-src blob: data:; frame-src 'self' blob:"
)
"""What the page may load: what is in it.  The browser refuses everything else, whatever a library tries."""


def missing() -> list[str]:
    """The libraries that the page is made with and that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def write_page(runs: Sequence[Run], path: Path, titles: Mapping[str, str]) -> None:
    """Write the report of runs as one page of HTML, which opens without a network.

    Args:
        runs: of any scenarios and robots, at least one.
        path: where to.
        titles: what each scenario is, by its name.

    Raises:
        ImportError: a library that draws is missing, see `missing`.
        RobotError: a shape of a robot cannot be drawn.
    """
    from plotly.offline import get_plotlyjs

    groups = grouped(runs)
    logs = [logged(group) for group in groups]
    curve_count = sum(map(curves.count, logs))
    points = _share(curves.ALL_POINTS, curve_count, curves.FEWEST_POINTS, curves.MOST_POINTS)
    moving = sum(replay.links(group) for group in logs[:MOST_REPLAYS])
    frames = _share(replay.MOST_POSES, moving, replay.FEWEST_FRAMES, replay.MOST_FRAMES)
    sections, held, player = [], [], None
    for number, (group, those) in enumerate(zip(groups, logs, strict=True)):
        figures = curves.figures(those, points) if those else {}
        held += [data(one, id=f"curves-{number}-{k}-data") for k, one in enumerate(figures.values())]
        document = replay.replay(those, frames) if number < MOST_REPLAYS else None
        if document is not None:
            player = {"head": document.head, "tail": document.tail}
            held.append(data(document.recording, id=f"replay-{number}-data"))
        title, start = titles.get(group[0].run.scenario, ""), None if document is None else document.start
        sections.append(section(number, title, group, list(figures), start))
    described = [{"scenario": run.scenario, **all_settings(run)} for run in runs]
    held.append(data({"provenance": provenance(), "settings": described}, id="made-with"))
    if player is not None:
        held.append(data(player, id="player"))
    name = ", ".join(dict.fromkeys(run.scenario for run in runs))
    head = tag(
        "head", tag("meta", charset="utf-8"), _policy(), tag("title", f"irb-twin report: {name}"),
        tag("meta", name="viewport", content="width=device-width"), tag("style", Markup(STYLE)),
    )  # fmt: skip
    body = tag(
        "body", tag("h1", f"Report: {name}"), verdict(runs), *sections,
        tag("h2", "Made with"), tag("p", in_a_line(), class_="quiet"), *held,
        tag("script", Markup(get_plotlyjs())), tag("script", Markup(SCRIPT)),
    )  # fmt: skip
    path.write_text(
        "<!doctype html>\n" + tag("html", head, body, lang="en"), encoding="utf-8", errors="backslashreplace"
    )


def verdict(runs: Sequence[Run]) -> Markup:
    """Whether everything holds, and in a line for each law which joint was worst."""
    broken = [run for run in runs if not run.holds]
    checks = sum(metric.limit is not None for run in runs for metric in run.metrics)
    counted = f"{len(runs)} run{'s' * (len(runs) > 1)}, {checks} checks with a limit"
    said = "Every check passes, not all was judged" if unjudged(runs) else "Everything holds"
    shade = " open" * unjudged(runs)
    if broken:
        said = f"{len(broken)} of {counted.partition(',')[0]} FAIL{'S' * (len(broken) == 1)}"
        shade = " not"
    lines = [tag("li", f"{run.name}: ", *_outcome(run)) for run in runs]
    return tag("div", tag("b", said), tag("p", counted), tag("ul", *lines), class_=f"verdict{shade}")


def _outcome(run: Run) -> list[str]:
    """A run in a line."""
    failing = [metric.name for metric in run.metrics if not metric.holds]
    words = ["did not finish"] if run.error is not None else []
    words += [f"{len(failing)} of {len(run.metrics)} checks FAIL: {', '.join(failing)}"] if failing else []
    shade, held = ("holds", "holds") if run.outcome == "passes" else ("open", "every check passes")
    told: list[str] = [
        tag("span", "; ".join(words), class_="fails") if words else tag("span", held, class_=shade)
    ]
    told += [f"; {run.tracking.sentence}"] if run.tracking else []
    if run.log is not None and (moment := worst_moment(run.log)):
        place = f"; worst joint {moment.name}, off by {figure(moment.size)} {moment.unit} at {moment.t:.6g} s"
        told.append(place if moment.size else "; no joint had any error")
    return told


def _policy() -> Markup:
    return Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">')


def _share(whole: int, among: int, least: int, most: int) -> int:
    """What each gets of what there is for all."""
    return max(least, min(most, whole // max(among, 1)))
