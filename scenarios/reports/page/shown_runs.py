"""The runs of the page in groups, one a section, each run with the name and the colour that it has there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scenarios.running.runs import Run
    from twin.logs.log import Log

COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#e69f00")
"""Okabe and Ito's, told apart by all; those like the orange of the arm come last."""


class Shown(NamedTuple):
    """A run, what it is called, and its colour as `#0072b2`."""

    run: Run
    label: str
    colour: str


class Logged(NamedTuple):
    """The log of a shown run: it has at least one sample."""

    log: Log
    label: str
    colour: str


def grouped(runs: Sequence[Run]) -> list[list[Shown]]:
    """The runs by scenario and robot, in their order; laws that share a name get numbers."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.scenario, run.config.robot), []).append(run)
    return [_shown(group) for group in groups.values()]


def _shown(runs: Sequence[Run]) -> list[Shown]:
    names = [run.label for run in runs]
    return [
        Shown(run, name if names.count(name) == 1 else f"{name} ({k + 1})", COLOURS[k % len(COLOURS)])
        for k, (run, name) in enumerate(zip(runs, names, strict=True))
    ]


def logged(shown: Sequence[Shown]) -> list[Logged]:
    """Those of them that have a log, and its robot has the joints of the first of them."""
    logs = [Logged(one.run.log, one.label, one.colour) for one in shown if one.run.log is not None]
    return [one for one in logs if one.log.robot.joint_names == logs[0].log.robot.joint_names]
