"""Figures of a program line by line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.judging import bounds
from twin.base.formatting import figure
from twin.data.logs.figures import joint_error, motor_load

if TYPE_CHECKING:
    from scenarios.abb.rapid.program import ProgramRun

MOST_ROWS = 60
"""Number of moves above which the table has one row for each line of the program."""

AT_STOP = 1e-3
"""Distance of the joints, in [rad], within which the arm has arrived at a stop (ours)."""


def measured_times(run: ProgramRun) -> NDArray:
    """Return the durations (M,) of the moves in the engine, in [s].

    A move ends where the joints are nearest to the middle of its last corner; at a stop, when the plan has
    ended and they are within `AT_STOP`, or where they are nearest. It begins where the one before ends, after
    a stop when the plan begins it.
    """
    log, plan = run.log, run.performance.plan
    starts, times = plan.starts, [one.time for one in plan.moves]
    stops = [one.move.stops for one in plan.moves]
    found = np.zeros(len(starts))
    begins = 0.0
    for k, (start, time) in enumerate(zip(starts, times, strict=True)):
        if time == 0.0:
            continue
        if k == 0 or stops[k - 1] or start > starts[k - 1] + times[k - 1] + 1e-9:
            begins = start
        end, since, tolerance = start + time, start + time / 2, 0.0
        if stops[k]:  # at rest from the next sample on
            end = since = log.t[min(int(np.searchsorted(log.t, end - 1e-9)), len(log.t) - 1)]
            tolerance = AT_STOP
        later = [i for i in range(k + 1, len(starts)) if times[i] > 0.0][:1]
        until = starts[later[0]] + times[later[0]] / 2 if later else log.t[-1]
        near = np.flatnonzero((log.t >= since - 1e-9) & (log.t <= until + 1e-9))
        if near.size == 0:  # the run ended before
            found[k] = np.nan
            continue
        goal = [np.interp(end, log.t, q) for q in log.q_ref.T]
        distance = np.abs(log.q[near] - goal).max(axis=1)
        arrived = near[int(np.argmax(distance <= max(distance.min(), tolerance)))]
        found[k] = log.t[arrived] - begins
        begins = log.t[arrived]
    return found


class MoveFigures(NamedTuple):
    """Figures of the moves, (M,) each: times in [s], errors in [rad] and [m], the torque's largest share."""

    time: NDArray
    joint_error: NDArray
    tool_error: NDArray
    torque: NDArray
    torque_joint: NDArray
    cut: NDArray


def move_figures(run: ProgramRun) -> MoveFigures:
    """Return the figures of the moves in the engine."""
    from twin.abb.rapid.targets import tool_frame
    from twin.physics.kinematics.forward import forward_kinematics

    log = run.log
    error, load = np.abs(joint_error(log)).max(axis=1), np.abs(motor_load(log))
    T, T_ref = (forward_kinematics(log.robot, q) for q in (log.q, log.q_ref))
    tool_errors: dict[bytes, NDArray] = {}  # by the tool: most programs have one or two
    cut = np.any(log.saturated, axis=1)
    rows = []
    for k, one in enumerate(run.performance.plan.moves):
        tool = tool_frame(one.move.tool)
        if tool.tobytes() not in tool_errors:
            difference = ((T - T_ref) @ tool)[:, :3, 3]
            tool_errors[tool.tobytes()] = np.linalg.norm(difference, axis=1)
        during = run.move == k
        if not during.any():
            rows.append((0.0, 0.0, 0.0, 0, 0))
            continue
        most = load[during].max(axis=0)
        rows.append((
            error[during].max(), tool_errors[tool.tobytes()][during].max(), most.max(), int(most.argmax()),
            int(cut[during].sum()),
        ))  # fmt: skip
    return MoveFigures(measured_times(run), *np.array(rows, dtype=float).reshape(-1, 5).T)


def line_table(run: ProgramRun) -> tuple[str, list[tuple[str, ...]]]:
    """Return the moves line by line; a line of a program of many moves has sums and largest figures."""
    moves, found = run.performance.plan.moves, move_figures(run)
    head = (
        "line", "move", "mm", "plan s", "time s", "joint error rad", "tool error m", "torque", "cut"
    )  # fmt: skip
    groups: dict[Any, list[int]] = {}
    for k, one in enumerate(moves):
        place = one.move.file, one.move.line
        groups.setdefault(place if len(moves) > MOST_ROWS else k, []).append(k)
    rows = [head, *(_row(run, found, members) for members in groups.values())]
    names = ", ".join(_files(run)) or "the program"
    program = run.performance.program
    remarks = len(program.notes) + len(program.assumed) + bool(program.stopped)
    also = f"; {remarks} remark{'s' * (remarks > 1)}, which irb-twin rapid check prints" if remarks else ""
    return f"{names}: {len(moves)} moves{also}", rows


def _files(run: ProgramRun) -> list[str]:
    """Return the names of the program's files with a move or a wait."""
    return [] if run.log.program is None else run.log.program.files.tolist()


def _row(run: ProgramRun, found: MoveFigures, members: Sequence[int]) -> tuple[str, ...]:
    log, moves = run.log, [run.performance.plan.moves[k] for k in members]
    first = moves[0].move
    place = f"{Path(first.file).name}:" * (len(_files(run)) > 1) + str(first.line)
    name = first.name + (f" x {len(members)}" if len(members) > 1 else "")
    worst = members[int(np.argmax(found.torque[members]))]
    joint = log.robot.joint_names[int(found.torque_joint[worst])]
    cut = int(found.cut[members].sum())
    return (
        place,
        name,
        f"{np.sum([1e-3 * one.length for one in moves]) * 1e3:.0f}",
        f"{np.sum([one.time for one in moves]):.3f}",
        f"{found.time[members].sum():.3f}",
        figure(float(found.joint_error[members].max())),
        figure(float(found.tool_error[members].max())),
        f"{joint} {100 * found.torque[worst]:.0f} %",
        str(cut) if cut else "",
    )


class Case(NamedTuple):
    """Result of one line: its routine, its name, its time in [s], and the failure, "" for none."""

    routine: str
    name: str
    seconds: float
    failure: str


def line_cases(run: ProgramRun) -> tuple[Case, ...]:
    """Return the result of every executed line with a move, and of the line with the fault."""
    moves, found, fault = run.performance.plan.moves, move_figures(run), run.performance.fault
    limit = bounds.ROUND_OFF if bounds.is_exact(run) else np.inf
    lines: dict[tuple[str, int], list[int]] = {}
    for k, one in enumerate(moves):
        lines.setdefault((one.move.file, one.move.line), []).append(k)
    cases = []
    for (file, line), members in lines.items():
        failures = []
        if cut := int(found.cut[members].sum()):
            failures.append(f"{cut} samples at the torque limit")
        if not found.joint_error[members].max() <= limit:
            failures.append(f"joint error {figure(float(found.joint_error[members].max()))} rad")
        names = " ".join(dict.fromkeys(moves[k].move.name for k in members))
        cases.append(Case(
            moves[members[0]].move.routine, f"{Path(file).name} line {line} {names}",
            float(np.nansum(found.time[members])), "; ".join(failures),
        ))  # fmt: skip
    if fault is not None:
        cases.append(Case("", f"{Path(fault.file).name} line {fault.line}", 0.0, str(fault)))
    return tuple(cases)
