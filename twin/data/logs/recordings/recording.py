"""Recorded motions of the tool or of the joints: creation from arrays, validation, reading and writing.

`twin.logs.recordings.recording` reads them from files.

    t,x,y,z,a,b,c,d     poses of the tool in the base frame, a unit quaternion with the scalar first
    t,x,y,z,rx,ry,rz    poses with Euler angles, R = Rz(rz) Ry(ry) Rx(rx), as RobotStudio shows them
    t,q1,...,qn         positions of the joints; accepted are also the robot's joint names and the
                        names of an exported log, joint_1_q_rad

The units are seconds, metres and radians, unless the name of a column contains another one.  Columns may be
in any order, with others between them.  The separator is a comma, a semicolon or a tab; with the last two,
numbers may have decimal commas.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats, real_array
from twin.base.atomic_file import atomic_write
from twin.base.errors import RecordingError
from twin.data.logs.recordings.columns import (
    Column,
    ColumnRequest,
    HeaderOptions,
    column_indices,
    find_columns,
    header_options,
    open_table,
    read_numbers,
    si_columns,
)
from twin.physics.rotations.euler_angles import matrix_from_euler
from twin.physics.rotations.rotations import continuous_quaternions, quaternion_from_matrix

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot

UNIT_TOLERANCE = 1e-3
"""Largest deviation of a quaternion's norm from 1; rounding to three decimals can cause it. Quaternions
within it are normalised; a larger deviation means that the numbers are another quantity.
"""

LARGEST_POSITION = 10.0
"""Largest coordinate, in [m]. No ABB arm reaches 5 m: a coordinate beyond 10 m is in another unit."""

LARGEST_ANGLE = 8.0 * np.pi
"""Largest angle, in [rad], for joints without a known range: four turns."""

LARGEST_TIME = 1e10
"""Largest time, in [s]; seconds since 1970 are below it, milliseconds since 1970 above."""

SMALLEST_STEP = 1e-6
"""Smallest time step, in [s]; closer samples have rounded times, which give meaningless speeds."""

MOST_UNEVEN = 100.0
"""Largest ratio of the longest to the shortest step. A spline extrapolates the speed of short steps into
a long one and overshoots far: a pause needs samples, too.
"""

LARGEST_TURN = np.deg2rad(120.0)
"""Largest rotation of the tool or of a joint between neighbouring samples, in [rad]. Towards 180 degrees the
direction of rotation is ambiguous, and the rotation spline no longer reaches a continuous acceleration. An
angle that wraps from 180 to -180 degrees jumps by 360.
"""

PLURALS = {"s": "seconds", "m": "metres", "rad": "radians"}
MISTAKEN = {"s": "milliseconds", "m": "millimetres", "rad": "degrees"}
"""Probable unit of numbers that are far too large for the expected unit."""


class Source(NamedTuple):
    """Origin of numbers, for messages.

    Attributes:
        name: name of the file, or "the recording".
        row: function that returns the location of a sample, as "line 7".
        columns: columns of the numbers.
    """

    name: str
    row: Callable[[int], str]
    columns: Sequence[Column]

    def at(self, k: int, *columns: int) -> str:
        """Return the location of sample k in some columns."""
        labels = [self.columns[column].label for column in columns]
        place = f"column {labels[0]!r}" if len(labels) == 1 else f"columns {','.join(labels)}"
        return f"{self.name}, {self.row(k)}, {place}"

    def too_large(self, k: int, column: int, value: float, what: str, most: str) -> RecordingError:
        """Return the error for a number so large that its unit is probably another one."""
        unit = self.columns[column].unit
        expected, doubt = f"expected at most {most}", ""
        if unit in PLURALS:  # otherwise the file names its unit, which is then not in doubt
            expected, doubt = f"expected {PLURALS[unit]}, at most {most}", f": are these {MISTAKEN[unit]}?"
        return RecordingError(f"{self.at(k, column)}: {what.format(f'{value:g}')}; {expected}{doubt}")


def check_samples(values: Floats, source: Source) -> None:
    """Check samples (N, k): at least two, all finite, and valid times in the first column."""
    if len(values) < 2:
        raise RecordingError(f"{source.name}: expected at least 2 samples, got {len(values)}")
    if not np.all(np.isfinite(values)):
        k, column = (int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise RecordingError(f"{source.at(k, column)}: expected a finite number, got {values[k, column]}")
    _check_times(values[:, 0], source)


def _check_times(t: Floats, source: Source) -> None:
    """Check that times (N,) increase in steps that a spline can follow."""
    if not np.all(np.abs(t) <= LARGEST_TIME):
        k = int(np.argmax(np.abs(t) > LARGEST_TIME))
        raise source.too_large(k, 0, t[k], "{} s is too large for a time", f"{LARGEST_TIME:g}")
    step = np.diff(t)
    if not np.all(step >= SMALLEST_STEP):
        k = int(np.argmax(step < SMALLEST_STEP)) + 1
        fault = "runs backwards" if step[k - 1] < 0.0 else "repeats" if step[k - 1] == 0.0 else "hardly moves"
        raise RecordingError(
            f"{source.at(k, 0)}: time {fault}, {t[k]!s} s after {t[k - 1]!s} s; "
            f"expected steps of at least {SMALLEST_STEP:g} s"
        )
    if not step.max() <= MOST_UNEVEN * step.min():
        k = int(np.argmax(step)) + 1
        raise RecordingError(
            f"{source.at(k, 0)}: a step of {step.max():g} s, the shortest is {step.min():g} s; "
            f"expected steps within a factor of {MOST_UNEVEN:g} (a pause needs samples too)"
        )


def check_positions(position: Floats, first: int, source: Source) -> None:
    """Check coordinates (N, k) in [m]; `first` is the index of the first one's column."""
    if not np.all(np.abs(position) <= LARGEST_POSITION):
        k, axis = (int(index) for index in np.argwhere(np.abs(position) > LARGEST_POSITION)[0])
        value, most = position[k, axis], f"{LARGEST_POSITION:g}"
        if source.columns[first + axis].unit != "m":
            most += " m"
        raise source.too_large(k, first + axis, value, "{} m is beyond any arm", most)


def unit_quaternions(quats: Floats, source: Source) -> Floats:
    """Return quaternions (N, 4) normalised and continuous in sign; they are in the last four columns."""
    columns = range(len(source.columns) - 4, len(source.columns))
    norm = np.linalg.norm(np.clip(quats, -1e9, 1e9), axis=1)
    if not np.all(np.abs(norm - 1.0) <= UNIT_TOLERANCE):
        k = int(np.argmax(np.abs(norm - 1.0) > UNIT_TOLERANCE))
        raise RecordingError(
            f"{source.at(k, *columns)}: expected a unit quaternion (norm 1 within "
            f"{UNIT_TOLERANCE:g}), got norm {norm[k]:g}"
        )
    return continuous_quaternions(quats / norm[:, None])


def check_turns(quats: Floats, columns: Sequence[int], source: Source) -> None:
    """Check the rotation of the tool between samples.

    Args:
        quats: (N, 4) unit quaternions, continuous in sign.
        columns: indices of their columns.
        source: origin of the numbers.
    """
    half_turn_cosine = np.sum(quats[1:] * quats[:-1], axis=1)
    if not np.all(half_turn_cosine >= np.cos(0.5 * LARGEST_TURN) - 1e-9):
        k = int(np.argmin(half_turn_cosine)) + 1
        turn = np.rad2deg(2.0 * np.arccos(np.clip(half_turn_cosine[k - 1], -1.0, 1.0)))
        raise RecordingError(
            f"{source.at(k, *columns)}: the tool turns by {turn:.4g} deg from the sample "
            f"before; expected at most {np.rad2deg(LARGEST_TURN):.4g} deg: record more densely"
        )


def check_angles(angles: Floats, largest: Floats, columns: Sequence[int], source: Source) -> None:
    """Check angles (N, k) in [rad] against the largest plausible magnitudes (k,)."""
    beyond: NDArray[np.bool_] = ~(np.abs(angles) <= largest)
    if beyond.any():
        k, which = (int(index) for index in np.argwhere(beyond)[0])
        most = f"{largest[which]:.4g}"
        if source.columns[columns[which]].unit != "rad":
            most += f" rad ({np.rad2deg(largest[which]):.4g} deg)"
        raise source.too_large(k, columns[which], angles[k, which], "{} rad is beyond any joint", most)


def check_joint_steps(angles: Floats, columns: Sequence[int], source: Source) -> None:
    """Check the rotation of joints (N, k) between samples, in [rad]."""
    step = np.abs(np.diff(angles, axis=0))
    if not np.all(step <= LARGEST_TURN + 1e-9):
        k, which = (int(index) for index in np.argwhere(step > LARGEST_TURN + 1e-9)[0])
        raise RecordingError(
            f"{source.at(k + 1, columns[which])}: the joint turns by {np.rad2deg(step[k, which]):.4g} deg "
            f"from the sample before; expected at most {np.rad2deg(LARGEST_TURN):.4g} deg: record more "
            "densely, and unwrap angles that pass 180 deg"
        )


QUATERNION = ("a", "b", "c", "d")
EULER = ("rx", "ry", "rz")
"""Rotations about the axes of the tool's frame, z first: `R = Rz(rz) Ry(ry) Rx(rx)`, ABB's `EulerZYX`."""

POSITION = ("x", "y", "z")
TOOL_COLUMNS = ("t", *POSITION, *QUATERNION)


class ToolRecording(NamedTuple):
    """Validated recording of a tool path; `tool_recording` and `read_recording` create it.

    Attributes:
        t: (N,) rising times in [s], N >= 2.
        poses: (N, 7) `[x y z a b c d]` of the tool in the base frame, positions in [m], unit quaternions
            continuous in sign.
    """

    t: Floats
    poses: Floats


class JointRecording(NamedTuple):
    """Validated recording of joints; `joint_recording` and `read_recording` create it.

    Attributes:
        t: (N,) rising times in [s], N >= 2.
        q: (N, n) joint angles in [rad] (of prismatic joints positions in [m]).
    """

    t: Floats
    q: Floats


Recording: TypeAlias = ToolRecording | JointRecording


def tool_recording(t: ArrayLike, poses: ArrayLike) -> ToolRecording:
    """Create a recording of the tool from arrays.

    Args:
        t: (N,) rising times in [s], N >= 2.
        poses: (N, 7) `[x y z a b c d]` in the base frame, positions in [m], quaternions of either sign.

    Raises:
        RecordingError: a sample is invalid; the message contains sample, column and value, and what is valid.
        ValueError: arrays of wrong shape.

    Example:
        >>> import twin
        >>> poses = [[0.5, 0, 0.7, 0.6, 0, 0, 0.8], [0.5, 0.1, 0.7, -0.6, 0, 0, -0.8]]
        >>> recorded = twin.logs.tool_recording([0, 0.5], poses)
        >>> recorded.poses[1, [3, 6]].round(4).tolist()  # the sign of the quaternion is continuous
        [0.6, 0.8]
    """
    t, poses = np.array(real_array(t, "t")), np.array(real_array(poses, "poses"))
    if t.ndim != 1 or poses.shape != (len(t), 7):
        raise ValueError(
            f"expected t of shape (N,) and poses of shape (N, 7), got {t.shape} and {poses.shape}"
        )
    columns = si_columns(TOOL_COLUMNS, ["time"] + ["length"] * 3 + ["number"] * 4)
    return checked_tool(np.column_stack([t, poses]), Source("the recording", _sample, columns))


def joint_recording(t: ArrayLike, q: ArrayLike, robot: "Robot | None" = None) -> JointRecording:
    """Create a recording of joints from arrays.

    Args:
        t: (N,) rising times in [s], N >= 2.
        q: (N, n) joint angles in [rad] (of prismatic joints positions in [m]).
        robot: robot of the joints, which determines plausible angles and the prismatic joints. `None` for
            angles of any arm.

    Raises:
        RecordingError: a sample is invalid; the message contains sample, column and value, and what is valid.
        ValueError: arrays of wrong shape.

    Example:
        >>> import twin
        >>> q = [[0, 0, 0, 0, 0, 0], [0.1, 0, 0, 0, 0.2, 0]]
        >>> recorded = twin.logs.joint_recording([0, 0.5], q, twin.load("irb140"))
        >>> recorded.t.tolist(), recorded.q.shape
        ([0.0, 0.5], (2, 6))
    """
    t, q = np.array(real_array(t, "t")), np.array(real_array(q, "q"))
    n = robot.n if robot is not None else q.shape[-1] if q.ndim else 0
    if t.ndim != 1 or n == 0 or q.shape != (len(t), n):
        expected = "n" if robot is None else n
        raise ValueError(
            f"expected t of shape (N,) and q of shape (N, {expected}), got {t.shape} and {q.shape}"
        )
    columns = si_columns(["t", *joint_columns(n)], ["time", *joint_quantities(n, robot)])
    return checked_joints(np.column_stack([t, q]), Source("the recording", _sample, columns), robot)


def joint_columns(n: int) -> list[str]:
    """Return the names q1 to qn."""
    return [f"q{k + 1}" for k in range(n)]


def joint_quantities(n: int, robot: "Robot | None") -> list[str]:
    """Return the quantity of each joint's position, a key of `twin.logs.recordings.columns.UNITS`."""
    return ["angle"] * n if robot is None else [_quantity(kind) for kind in robot.joint_kinds]


def _quantity(kind: str) -> str:
    return "length" if kind == "prismatic" else "angle"


def _sample(k: int) -> str:
    return f"sample {k}"


def checked_tool(values: Floats, source: Source) -> ToolRecording:
    """Validate numbers in SI units and return them as a recording of the tool.

    Args:
        values: (N, 8) `[t x y z a b c d]`, or (N, 7) `[t x y z rx ry rz]`.
        source: origin of the numbers.

    Raises:
        RecordingError: a number is invalid.
    """
    check_samples(values, source)
    position, orientation = values[:, 1:4], values[:, 4:]
    check_positions(position, 1, source)
    columns = range(4, values.shape[1])
    if len(columns) == 3:
        check_angles(orientation, np.full(3, LARGEST_ANGLE), columns, source)
        orientation = quaternion_from_matrix(matrix_from_euler(orientation[:, ::-1], "zyx"))
    quats = unit_quaternions(orientation, source)
    check_turns(quats, columns, source)
    return ToolRecording(values[:, 0], np.column_stack([position, quats]))


def checked_joints(values: Floats, source: Source, robot: "Robot | None") -> JointRecording:
    """Validate numbers in SI units and return them as a recording of joints.

    Args:
        values: (N, 1 + n) `[t q1 ... qn]`.
        source: origin of the numbers.
        robot: as for `joint_recording`.

    Raises:
        RecordingError: a number is invalid.
    """
    check_samples(values, source)
    turning, sliding = (
        [k for k, column in enumerate(source.columns) if k > 0 and column.quantity == quantity]
        for quantity in ("angle", "length")
    )
    largest = np.full(values.shape[1], LARGEST_ANGLE)
    if (
        robot is not None
    ):  # twice a joint's range: smaller violations are errors of the motion, not of its unit
        largest[1:] = 2.0 * np.maximum(np.abs(robot.q_min), np.abs(robot.q_max))
    for column in sliding:
        check_positions(values[:, column : column + 1], column, source)
    check_angles(values[:, turning], largest[turning], turning, source)
    check_joint_steps(values[:, turning], turning, source)
    return JointRecording(values[:, 0], values[:, 1:])


def write_recording(path: str | Path, recorded: Recording) -> None:
    """Write a recording as CSV in SI units, with all digits, so that reading it returns the same numbers.

    Args:
        path: path of the file.
        recorded: recording from `tool_recording`, `joint_recording` or `read_recording`.

    Raises:
        RecordingError: the file cannot be written.

    Example:
        >>> from pathlib import Path
        >>> import twin
        >>> recorded = twin.logs.joint_recording([0, 0.5], [[0, 0], [0.1, 0.2]])
        >>> twin.write_recording("move.csv", recorded)
        >>> Path("move.csv").read_text().splitlines()
        ['t,q1,q2', '0.0,0.0,0.0', '0.5,0.1,0.2']
    """
    numbers = recorded[1]
    header: Sequence[str] = (
        TOOL_COLUMNS if isinstance(recorded, ToolRecording) else ("t", *joint_columns(numbers.shape[1]))
    )
    rows = np.column_stack([recorded.t, numbers]).tolist()
    text = "\n".join([",".join(header), *(",".join(map(repr, row)) for row in rows)]) + "\n"
    try:
        with atomic_write(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}") from error


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
            `twin.logs.recordings.recording`.
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
