"""`irb-twin list`: the robots, controllers and scenarios that there are."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.console.output import console
from scenarios.running import registry
from twin.errors import is_interrupt, told

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "list",
        help="show the robots, controllers and scenarios that there are",
        description="Show the robots, controllers and scenarios that there are, those of installed packages "
        "among them. Their names are what the other commands take.",
    )
    parser.set_defaults(parser=parser, carry_out=show_list)


def show_list(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`list`: what there is, a line each."""
    import twin
    from scenarios.reports.report import listing
    from twin.loading.loading import robot_title

    titles = registry.titles() | registry.announced_titles()
    laws = (*controllers.NAMES, *controllers.announced_names())
    rows = []
    for heading, names, title in (
        ("robots", tuple(dict.fromkeys((*twin.robot_names(), *twin.announced_robots()))), robot_title),
        ("laboratory", twin.laboratory_names(), robot_title),
        ("controllers", laws, controllers.title),
        ("scenarios", titles, titles.__getitem__),
    ):
        for place, name in enumerate(names):
            rows.append((heading if place == 0 else "", name, _or_fault(title, name)))
    page = console()
    page.print(*listing(rows, page.width), sep="\n", highlight=False)
    return 0


def _or_fault(title: Callable[[str], str], name: str) -> str:
    """The title of something, or why it has none: the rest of the list stands."""
    try:
        return title(name)
    except BaseException as error:
        if is_interrupt(error):
            raise
        text = told(error)
        return text if text.startswith("cannot load") else f"cannot be loaded: {text}"
