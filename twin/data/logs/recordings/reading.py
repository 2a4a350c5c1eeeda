"""Reading of recordings from files: the header determines whether they are of the tool or of the joints.

    t,x,y,z,a,b,c,d     poses of the tool in the base frame, a unit quaternion with the scalar first
    t,x,y,z,rx,ry,rz    poses with Euler angles, R = Rz(rz) Ry(ry) Rx(rx), as RobotStudio shows them
    t,q1,...,qn         positions of the joints; accepted are also the robot's joint names and the
                        names of an exported log, joint_1_q_rad

The units are seconds, metres and radians, unless the name of a column contains another one.  Columns may be
in any order, with others between them.  The separator is a comma, a semicolon or a tab; with the last two,
numbers may have decimal commas.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twin.base.errors import RecordingError
from twin.data.logs.recordings.columns import (
    ColumnRequest,
    HeaderOptions,
    column_indices,
    find_columns,
    header_options,
    open_table,
    read_numbers,
)
from twin.data.logs.recordings.recording import (
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
    from twin.physics.robot.robot import Robot

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
    """Read a recording: a `ToolRecording` or a `JointRecording`, depending on the header.

    Args:
        path: path of a text file in UTF-8, or in UTF-16 with a byte-order mark.  The first line contains the
            names of the columns; blank lines are ignored.  For columns, units and separators see
            `twin.logs.recordings.reading`.
        robot: robot of the joints, which determines their number, names, kinds and plausible angles.  `None`
            for revolute joints q1, q2 and so on, as many as the header has.
        kind: "tool" or "joints"; `None` to detect it from the header, which then must not contain both.
        columns: names in the file by standard name, as `{"t": "Time", "x": "X Pos"}` or
            `"t=Time, x=X Pos"`; omitted columns have their standard names.
        length_unit: "m" or "mm", for columns without a unit.
        angle_unit: "rad" or "deg", likewise.
        time_unit: "s" or "ms", likewise.

    Raises:
        RecordingError: the file is not a valid recording; the message contains file, line, column and value,
            and what is valid.
        ValueError: an unknown kind or unit, or `columns` that are not pairs of names.

    Example:
        >>> import twin
        >>> recorded = twin.logs.joint_recording([0, 0.5], [[0, 0], [0.1, 0.2]])
        >>> twin.write_recording("move.csv", recorded)
        >>> twin.read_recording("move.csv").q.tolist()
        [[0.0, 0.0], [0.1, 0.2]]
    """
    options = header_options(columns, length_unit=length_unit, angle_unit=angle_unit, time_unit=time_unit)
    if kind is not None and kind not in KINDS:
        raise ValueError(f"expected a kind of recording, {' or '.join(KINDS)}, got {kind!r}")
    table = open_table(path)
    _require_known(options, robot)
    tool, joints = _tool(table.header, options), _joints(path, table.header, robot, options)
    if kind is None:
        kind = _kind(path, table.header, tool, joints, options)
    if kind == "joints":
        _require_no_more(path, table.header, joints, options)
    requested = tool if kind == "tool" else joints
    found = find_columns(table, [ColumnRequest("t", "time"), *requested], options)
    values, lines = read_numbers(table, found)
    source = Source(str(path), lambda k: f"line {lines[k]}", found)
    return checked_tool(values, source) if kind == "tool" else checked_joints(values, source, robot)


def _requests(names: Sequence[str], quantity: str) -> list[ColumnRequest]:
    return [ColumnRequest(name, quantity) for name in names]


def _tool(header: Sequence[str], options: HeaderOptions) -> list[ColumnRequest]:
    """Return the columns of a tool pose: Euler angles if the header has some and no quaternion."""
    quaternion, euler = _requests(QUATERNION, "number"), _requests(EULER, "angle")
    by_angles = _any(header, euler, options) and not _any(header, quaternion, options)
    return [*_requests(POSITION, "length"), *(euler if by_angles else quaternion)]


def _joints(
    path: str | Path, header: Sequence[str], robot: "Robot | None", options: HeaderOptions
) -> list[ColumnRequest]:
    """Return the columns of the joints: the robot's joint names, q1, q2 and so on, or those of a log.

    Raises:
        RecordingError: the header contains all joints under two of these names.
    """
    if robot is None:
        n = 1
        while column_indices(header, ColumnRequest(f"q{n + 1}", "angle"), options):
            n += 1
        return _requests(joint_columns(n), "angle")
    quantities = joint_quantities(robot.n, robot)
    by_joint_name, by_number, by_log_name = (
        [ColumnRequest(*one) for one in zip(names, quantities, strict=True)]
        for names in (robot.joint_names, joint_columns(robot.n), [f"{name}_q" for name in robot.joint_names])
    )

    def count_found(joints: list[ColumnRequest]) -> int:
        return sum(bool(column_indices(header, one, options)) for one in joints)

    complete = [
        joints for joints in (by_joint_name, by_number, by_log_name) if count_found(joints) == robot.n
    ]
    require_one_naming(
        path, [joints for joints in complete if joints != by_joint_name or joints is by_joint_name], options
    )
    return complete[0] if complete else max((by_number, by_joint_name, by_log_name), key=count_found)


def require_one_naming(
    path: str | Path, complete: Sequence[list[ColumnRequest]], options: HeaderOptions
) -> None:
    """Check that the header contains all joints under one naming, unless `columns` selects one.

    Raises:
        RecordingError: the header contains them under two.
    """
    if len(complete) > 1 and not any(one.name in options.columns for joints in complete for one in joints):
        names = " and as ".join(f"{joints[0].name} to {joints[-1].name}" for joints in complete)
        raise RecordingError(
            f"{path}, line 1: the header contains the joints as {names}; expected them once: remove the "
            "others"
        )


def _require_no_more(
    path: str | Path, header: Sequence[str], joints: list[ColumnRequest], options: HeaderOptions
) -> None:
    """Check that the header has no joint beyond those of the robot."""
    n = len(joints)
    more = column_indices(header, ColumnRequest(f"q{n + 1}", "angle"), options)
    if joints[-1].name == f"q{n}" and more:
        raise RecordingError(
            f"{path}, line 1: expected {n} joints, as many as the robot has, got a column {header[more[0]]!r}"
        )


def _kind(
    path: str | Path,
    header: Sequence[str],
    tool: list[ColumnRequest],
    joints: list[ColumnRequest],
    options: HeaderOptions,
) -> str:
    """Return the kind of recording in a header: the complete one, else the one that is partly there."""
    both = [all(column_indices(header, one, options) for one in requested) for requested in (tool, joints)]
    if all(both):
        raise RecordingError(
            f"{path}, line 1: the header contains the tool's pose and the joints' positions; expected one of "
            f"them, or the kind of recording, {' or '.join(KINDS)}"
        )
    if (
        both[1]
        and _names(joints) == joint_columns(4)
        and all(_any(header, [one], options) for one in tool[:3])
    ):
        raise RecordingError(
            f"{path}, line 1: q1 to q4 beside x, y, z could be a quaternion in ABB's notation or joints; "
            "expected columns a=q1, b=q2, c=q3, d=q4, or the kind joints"
        )
    if any(both):
        return KINDS[both.index(True)]
    return "joints" if _any(header, joints, options) and not _any(header, tool, options) else "tool"


def _any(header: Sequence[str], requested: list[ColumnRequest], options: HeaderOptions) -> bool:
    return any(column_indices(header, one, options) or one.name in options.columns for one in requested)


def _names(requested: list[ColumnRequest]) -> list[str]:
    return [one.name for one in requested]


def _require_known(options: HeaderOptions, robot: "Robot | None") -> None:
    """Check that the keys of `columns` are standard names."""
    joints = [] if robot is None else [*joint_columns(robot.n), *robot.joint_names]
    known = dict.fromkeys(["t", *POSITION, *QUATERNION, *EULER, *joints])
    for name in options.columns:
        if name not in known and not (robot is None and re.fullmatch(r"q[1-9]\d*", name)):
            names = ", ".join(known) + ("" if joints else ", q1, q2 and so on")
            raise ValueError(f"expected the keys of columns to be among {names}, got {name!r}")
