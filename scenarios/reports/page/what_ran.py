"""What a run was made of: the robot, the drives, the settings, the gains, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.checks.closed_loop import NAMES, VALUES
from scenarios.reports.page.markup import Markup, joined, table, tag
from scenarios.running.provenance import all_settings
from scenarios.running.registry import repeat_command
from twin.robot.limits import caption_unit
from twin.short_texts import figure

if TYPE_CHECKING:
    from scenarios.reports.page.shown_runs import Shown
    from scenarios.running.runs import Run
    from twin.robot.robot import Robot


def what_ran(shown: Sequence[Shown]) -> Markup:
    """Tables of the robot, of the settings of every run and of the laws' gains, and the commands.

    Args:
        shown: runs of one scenario on one robot, at least one.
    """
    parts = [tag("h3", "What ran")]
    robot = next((one.run.log.robot for one in shown if one.run.log is not None), None)
    if robot is not None:
        parts += [tag("h4", "The arm"), _arm(robot)]
    for run, label, _ in shown:
        parts.append(tag("h4", f"{label}: gains and command"))
        parts.append(_gains(run))
        parts.append(tag("p", "Repeat this run alone: ", tag("code", repeat_command(run))))
    parts.append(tag("details", tag("summary", "All settings"), _settings(shown)))
    return joined(parts)


def _arm(robot: Robot) -> Markup:
    """The arm's own numbers, and a table of its joints and drives."""
    payload = robot.payload
    rows = [
        ("robot", robot.name),
        ("file", "" if robot.file is None else robot.file.name),
        ("gravity in the base frame", f"{_numbers(robot.gravity)} m/s²"),
        (
            "payload",
            "none"
            if payload is None
            else f"{figure(payload.mass)} kg at {_numbers(payload.com)} m of the flange",
        ),
        ("drives", robot.drive_mode),
    ]

    def unit(column: str, form: str) -> str:
        return f"{column} [{caption_unit(robot.joint_kinds, form)}]"

    columns: dict[str, Any] = {
        "joint": list(robot.joint_names),
        "range": [f"{_position(low, kind)} to {_position(high, kind)}" for low, high, kind in
                  zip(robot.q_min, robot.q_max, robot.joint_kinds, strict=True)],
        unit("speed limit", "{speed}"): [figure(value) for value in robot.qd_max],
        unit("torque limit at standstill", "{torque}"): [figure(value) for value in robot.drive_torque_max],
    }  # fmt: skip
    if (drives := robot.active_drives) is not None:
        columns |= {
            "gear": [figure(value) for value in drives.ratio],
            "rotor at the joint [kg m²]": [figure(value) for value in np.diag(drives.reflected_inertia)],
            unit("dry friction", "{torque}"): [figure(value) for value in drives.coulomb],
            unit("viscous", "{torque} s/{position}"): [figure(value) for value in drives.viscous],
        }
        if robot.drive_mode == "elastic":
            columns[unit("spring", "{torque}/{position}")] = [figure(value) for value in drives.stiffness]
    return joined([table((), rows), table(list(columns), zip(*columns.values(), strict=True), "numbers")])


def _position(value: float, kind: str) -> str:
    return f"{np.rad2deg(value):.4g}°" if kind == "revolute" else f"{value:.4g} m"


def _numbers(values: Any) -> str:
    return ", ".join(figure(float(value)) for value in values)


def _gains(run: Run) -> Markup:
    """The numbers of the law, one row each, one column a joint."""
    log = run.log
    if log is None or NAMES not in log.arrays or VALUES not in log.arrays:
        return tag("p", "The log does not have the law's gains.", class_="quiet")
    names, values = log.arrays[NAMES], log.arrays[VALUES]
    rows = [(str(name), *map(figure, row)) for name, row in zip(names, values.tolist(), strict=True)]
    return table(("gain, SI units", *log.robot.joint_names), rows, "numbers")


def _settings(shown: Sequence[Shown]) -> Markup:
    """Every setting of every run, those that were changed marked."""
    settings = [all_settings(one.run) for one in shown]
    changed = [{*one.run.settings, "controller"} for one in shown]
    rows = []
    for name in dict.fromkeys(name for one in settings for name in one):
        cells = [
            tag("b", _said(one[name])) if bare(name) in marked else _said(one[name])
            if name in one else ""
            for one, marked in zip(settings, changed, strict=True)
        ]  # fmt: skip
        rows.append((name, *cells))
    note = tag(
        "p", "Bold: not the scenario's default. The seed is that of everything random.", class_="quiet"
    )
    return joined([note, table(("setting", *(one.label for one in shown)), rows)])


def bare(name: str) -> str:
    """The name of a law's own setting, or of a change, without what tells that it is one."""
    return name.removeprefix("law_settings.").removeprefix("changes.")


def _said(value: Any) -> str:
    return "none" if value is None else str(value)
