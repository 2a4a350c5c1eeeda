"""Recordings in files: of the tool or of the joints, as the header says.

    t,x,y,z,a,b,c,d     poses of the tool in the base frame, a unit quaternion with the scalar first
    t,x,y,z,rx,ry,rz    the same with Euler angles, R = Rz(rz) Ry(ry) Rx(rx), as RobotStudio shows them
    t,q1,...,qn         positions of the joints; the robot's own names of them do as well, and those of
                        an exported log, joint_1_q_rad

Seconds, metres and radians, or the unit that a column names; in any order, others beside them;
separated by commas, semicolons or tabs, with the last two also with decimal commas.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twin.errors import RecordingError
from twin.logs.recordings.columns import (
    Reading,
    Wanted,
    find_columns,
    open_table,
    places_of,
    read_numbers,
    reading,
)
from twin.logs.recordings.recording import (
    EULER,
    POSITION,
    QUATERNION,
    Recording,
    Source,
    checked_joints,
    checked_tool,
    joint_columns,
    joint_quantities,
)

if TYPE_CHECKING:
    from twin.robot.robot import Robot

KINDS = ("tool", "joints")


def read_recording(
    path: str | Path,
    robot: "Robot | None" = None,
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | str | None = None,
    length_unit: str = "m",
    angle_unit: str = "rad",
    time_unit: str = "s",
) -> Recording:
    """Return the recording in a file: a `ToolRecording` or a `JointRecording`, as its header says.

    Args:
        path: text in UTF-8, or in UTF-16 with a byte-order mark; the first line names the columns, blank
            lines are passed over. Columns, units and separators: see `twin.logs.recordings.reading`.
        robot: whose joints they are: how many, their names, which of them slide, and what angles can be
            meant. None for joints q1, q2 and so on, as many as the header has, all angles.
        kind: "tool" or "joints"; None for what the header has, which then must not be both.
        columns: the file's names of columns by ours, as `{"t": "Time", "x": "X Pos"}` or
            `"t=Time, x=X Pos"`; those left out have ours.
        length_unit: "m" or "mm", of columns that name no unit.
        angle_unit: "rad" or "deg", likewise.
        time_unit: "s" or "ms", likewise.

    Raises:
        RecordingError: names the file, the line, the column and the value that is wrong, and what is valid.
        ValueError: an unknown kind or unit, or `columns` that are not pairs of names.
    """
    how = reading(columns, length_unit=length_unit, angle_unit=angle_unit, time_unit=time_unit)
    if kind is not None and kind not in KINDS:
        raise ValueError(f"expected a kind of recording, {' or '.join(KINDS)}, got {kind!r}")
    table = open_table(path)
    _require_known(how, robot)
    tool, joints = _tool(table.header, how), _joints(path, table.header, robot, how)
    if kind is None:
        kind = _kind(path, table.header, tool, joints, how)
    if kind == "joints":
        _require_no_more(path, table.header, joints, how)
    wanted = tool if kind == "tool" else joints
    found = find_columns(table, [Wanted("t", "time"), *wanted], how)
    values, lines = read_numbers(table, found)
    source = Source(str(path), lambda k: f"line {lines[k]}", found)
    return checked_tool(values, source) if kind == "tool" else checked_joints(values, source, robot)


def _wanted(names: Sequence[str], quantity: str) -> list[Wanted]:
    return [Wanted(name, quantity) for name in names]


def _tool(header: Sequence[str], how: Reading) -> list[Wanted]:
    """Return the columns of a tool's pose: with Euler angles where there are those and no quaternion."""
    quaternion, euler = _wanted(QUATERNION, "number"), _wanted(EULER, "angle")
    by_angles = _any(header, euler, how) and not _any(header, quaternion, how)
    return [*_wanted(POSITION, "length"), *(euler if by_angles else quaternion)]


def _joints(path: str | Path, header: Sequence[str], robot: "Robot | None", how: Reading) -> list[Wanted]:
    """Return the columns of the joints: by the robot's names of them, q1, q2 and so on, or a log's names.

    Raises:
        RecordingError: all joints are there by two of these names.
    """
    if robot is None:
        n = 1
        while places_of(header, Wanted(f"q{n + 1}", "angle"), how):
            n += 1
        return _wanted(joint_columns(n), "angle")
    quantities = joint_quantities(robot.n, robot)
    own, ours, logged = (
        [Wanted(*one) for one in zip(names, quantities, strict=True)]
        for names in (robot.joint_names, joint_columns(robot.n), [f"{name}_q" for name in robot.joint_names])
    )

    def hits(joints: list[Wanted]) -> int:
        return sum(bool(places_of(header, one, how)) for one in joints)

    complete = [joints for joints in (own, ours, logged) if hits(joints) == robot.n]
    require_one_naming(path, [joints for joints in complete if joints != own or joints is own], how)
    return complete[0] if complete else max((ours, own, logged), key=hits)


def require_one_naming(path: str | Path, complete: Sequence[list[Wanted]], how: Reading) -> None:
    """Check that all joints are there by one naming, unless `columns` says which.

    Raises:
        RecordingError: they are there by two.
    """
    if len(complete) > 1 and not any(one.name in how.columns for joints in complete for one in joints):
        told = " and as ".join(f"{joints[0].name} to {joints[-1].name}" for joints in complete)
        raise RecordingError(
            f"{path}, line 1: the joints are there as {told}; expected them once: take the others out"
        )


def _require_no_more(path: str | Path, header: Sequence[str], joints: list[Wanted], how: Reading) -> None:
    """Check that a header has not one joint more than the robot."""
    n = len(joints)
    more = places_of(header, Wanted(f"q{n + 1}", "angle"), how)
    if joints[-1].name == f"q{n}" and more:
        raise RecordingError(
            f"{path}, line 1: expected {n} joints, as many as the robot has, got a column {header[more[0]]!r}"
        )


def _kind(
    path: str | Path, header: Sequence[str], tool: list[Wanted], joints: list[Wanted], how: Reading
) -> str:
    """Return what a header has: the tool's pose or the joints' positions, or most of one."""
    both = [all(places_of(header, one, how) for one in wanted) for wanted in (tool, joints)]
    if all(both):
        raise RecordingError(
            f"{path}, line 1: the header has the tool's pose and the joints' positions; expected one of "
            f"them, or to be told which kind is meant, {' or '.join(KINDS)}"
        )
    if both[1] and _names(joints) == joint_columns(4) and all(_any(header, [one], how) for one in tool[:3]):
        raise RecordingError(
            f"{path}, line 1: q1 to q4 beside x, y, z could be a quaternion, as ABB names it, or joints; "
            "expected to be told, by columns a=q1, b=q2, c=q3, d=q4 or as the kind, joints"
        )
    if any(both):
        return KINDS[both.index(True)]
    return "joints" if _any(header, joints, how) and not _any(header, tool, how) else "tool"


def _any(header: Sequence[str], wanted: list[Wanted], how: Reading) -> bool:
    return any(places_of(header, one, how) or one.name in how.columns for one in wanted)


def _names(wanted: list[Wanted]) -> list[str]:
    return [one.name for one in wanted]


def _require_known(how: Reading, robot: "Robot | None") -> None:
    """Check that `columns` name columns of ours."""
    joints = [] if robot is None else [*joint_columns(robot.n), *robot.joint_names]
    known = dict.fromkeys(["t", *POSITION, *QUATERNION, *EULER, *joints])
    for name in how.columns:
        if name not in known and not (robot is None and re.fullmatch(r"q[1-9]\d*", name)):
            told = ", ".join(known) + ("" if joints else ", q1, q2 and so on")
            raise ValueError(f"expected columns to name some of {told}, got {name!r}")
