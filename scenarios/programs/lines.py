"""Figures of a program line by line, from the arrays of its log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.checks import bounds
from twin.formatting import figure
from twin.logs.figures import joint_error, motor_load

if TYPE_CHECKING:
    from scenarios.programs.program import Performance
    from twin.logs.log import Log
    from twin.trajectories.sampling import Samples

MOST_ROWS = 60
"""Number of moves above which the table has one row for each line of the program."""

AT_STOP = 1e-3
"""Distance of the joints, in [rad], within which the arm has arrived at a stop (ours)."""


def line_arrays(done: Performance, samples: Samples) -> dict[str, NDArray]:
    """Return the arrays of a program's log.

    - `line`, `file`, `move`, `files`, `texts`: see `twin.logs.program_lines`.
    - `move_lines`, `move_files`, `move_names`, `move_routines` (M,): place of each move.
    - `move_starts`, `move_times` (M,): beginning and duration in the plan, in [s]; `move_stops`, whether the
      arm stops at the end; `move_lengths`, length of the tool's path, in [m].
    - `move_singular` (M,): name and distance of the nearest singularity, "" if it is far.
    - `tools` (T, 4, 4): poses of tools on the flange, and `move_tools` (M,), the index of each move's.
    - `fault`: fault of the program, `fault_line` and `fault_file`, or "", 0 and "".
    - `remarks`: what was not done, and why the program was stopped.
    """
    from twin.rapid.language import read_text
    from twin.rapid.targets import tool_frame

    plan, fault = done.plan, done.fault
    moves = [one.move for one in plan.moves]
    marks = [(start, move.file, move.line) for start, move in zip(plan.starts, moves, strict=True)]
    marks = sorted([*marks, *((t, wait.file, wait.line) for t, wait in plan.waits)], key=lambda mark: mark[0])
    paths = list(dict.fromkeys(path for _, path, _ in marks))
    now = samples.t + 1e-9
    mark = np.searchsorted([t for t, _, _ in marks], now, side="right")
    lines = np.array([0, *(line for _, _, line in marks)])[mark]
    files = np.array([0, *(paths.index(path) for _, path, _ in marks)])[mark]
    tools: list[NDArray] = []
    move_tools = []
    for move in moves:
        T = tool_frame(move.tool)
        found = next((k for k, tool in enumerate(tools) if np.array_equal(tool, T)), len(tools))
        tools += [T] if found == len(tools) else []
        move_tools.append(found)
    remarks = [f"line {note.line}: {note.text}" for note in done.program.notes]
    remarks += [done.program.stopped] if done.program.stopped else []
    return {
        "line": lines,
        "file": files,
        "move": np.searchsorted(plan.starts, now, side="right") - 1,
        "files": np.array([Path(path).name for path in paths], dtype=str),
        "texts": np.array([read_text(path) for path in paths], dtype=str),
        "move_lines": np.array([move.line for move in moves], dtype=int),
        "move_files": np.array([paths.index(move.file) for move in moves], dtype=int),
        "move_names": np.array([move.name for move in moves], dtype=str),
        "move_routines": np.array([move.routine for move in moves], dtype=str),
        "move_starts": np.array(plan.starts, dtype=float),
        "move_times": np.array([one.time for one in plan.moves], dtype=float),
        "move_stops": np.array([move.stops for move in moves], dtype=bool),
        "move_lengths": np.array([1e-3 * one.length for one in plan.moves], dtype=float),
        "move_singular": np.array([one.singular for one in plan.moves], dtype=str),
        "tools": np.array(tools).reshape(-1, 4, 4),
        "move_tools": np.array(move_tools, dtype=int),
        "fault": np.array("" if fault is None else str(fault)),
        "fault_line": np.array(0 if fault is None else fault.line),
        "fault_file": np.array("" if fault is None else Path(fault.file).name),
        "remarks": np.array(remarks, dtype=str),
    }


def measured_times(log: Log) -> NDArray:
    """Return the durations (M,) of the moves in the engine, in [s].

    A move ends where the joints are nearest to the middle of its last corner; at a stop, when the plan has
    ended and they are within `AT_STOP`, or where they are nearest. It begins where the one before ends, after
    a stop when the plan begins it.
    """
    arrays = log.arrays
    starts, times, stops = arrays["move_starts"], arrays["move_times"], arrays["move_stops"]
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


def move_figures(log: Log) -> MoveFigures:
    """Return the figures of the moves in the engine."""
    from twin.kinematics.forward import forward_kinematics

    arrays = log.arrays
    error, load = np.abs(joint_error(log)).max(axis=1), np.abs(motor_load(log))
    T, T_ref = (forward_kinematics(log.robot, q) for q in (log.q, log.q_ref))
    tool_errors = [np.linalg.norm(((T - T_ref) @ tool)[:, :3, 3], axis=1) for tool in arrays["tools"]]
    cut = np.any(log.saturated, axis=1)
    rows = []
    for k, tool in enumerate(arrays["move_tools"]):
        during = arrays["move"] == k
        if not during.any():
            rows.append((0.0, 0.0, 0.0, 0, 0))
            continue
        most = load[during].max(axis=0)
        rows.append((
            error[during].max(), tool_errors[tool][during].max(), most.max(), int(most.argmax()),
            int(cut[during].sum()),
        ))  # fmt: skip
    return MoveFigures(measured_times(log), *np.array(rows, dtype=float).reshape(-1, 5).T)


def line_table(log: Log) -> tuple[str, list[tuple[str, ...]]]:
    """Return the moves line by line; a line of a program of many moves has sums and largest figures."""
    arrays, found = log.arrays, move_figures(log)
    head = (
        "line", "move", "mm", "plan s", "time s", "joint error rad", "tool error m", "torque", "cut"
    )  # fmt: skip
    groups: dict[Any, list[int]] = {}
    for k, (file, line) in enumerate(zip(arrays["move_files"], arrays["move_lines"], strict=True)):
        groups.setdefault((file, line) if len(arrays["move_lines"]) > MOST_ROWS else k, []).append(k)
    rows = [head, *(_row(log, found, members) for members in groups.values())]
    names = ", ".join(arrays["files"]) or "the program"
    remarks = len(arrays["remarks"])
    also = f"; {remarks} remark{'s' * (remarks > 1)}, which irb-twin rapid check prints" if remarks else ""
    return f"{names}: {len(arrays['move_lines'])} moves{also}", rows


def _row(log: Log, found: MoveFigures, members: Sequence[int]) -> tuple[str, ...]:
    arrays, first = log.arrays, members[0]
    several = len(arrays["files"]) > 1
    place = f"{arrays['files'][arrays['move_files'][first]]}:" * several + str(arrays["move_lines"][first])
    name = str(arrays["move_names"][first]) + (f" x {len(members)}" if len(members) > 1 else "")
    worst = members[int(np.argmax(found.torque[members]))]
    joint = log.robot.joint_names[int(found.torque_joint[worst])]
    cut = int(found.cut[members].sum())
    return (
        place,
        name,
        f"{1e3 * arrays['move_lengths'][members].sum():.0f}",
        f"{arrays['move_times'][members].sum():.3f}",
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


def line_cases(log: Log) -> tuple[Case, ...]:
    """Return the result of every executed line with a move, and of the line with the fault."""
    arrays, found = log.arrays, move_figures(log)
    limit = bounds.ROUND_OFF if bounds.is_exact(log) else np.inf
    lines: dict[tuple[int, int], list[int]] = {}
    for k, place in enumerate(zip(arrays["move_files"].tolist(), arrays["move_lines"].tolist(), strict=True)):
        lines.setdefault(place, []).append(k)
    cases = []
    for (file, line), members in lines.items():
        failures = []
        if cut := int(found.cut[members].sum()):
            failures.append(f"{cut} samples at the torque limit")
        if not found.joint_error[members].max() <= limit:
            failures.append(f"joint error {figure(float(found.joint_error[members].max()))} rad")
        names = " ".join(dict.fromkeys(arrays["move_names"][members].tolist()))
        cases.append(Case(
            str(arrays["move_routines"][members[0]]), f"{arrays['files'][file]} line {line} {names}",
            float(np.nansum(found.time[members])), "; ".join(failures),
        ))  # fmt: skip
    if fault := str(arrays["fault"]):
        cases.append(Case("", f"{arrays['fault_file']} line {arrays['fault_line']}", 0.0, fault))
    return tuple(cases)
