"""Recorded motions: of the tool, or of the joints. Made from arrays here, and written.

`twin.recordings.reading` reads them from files.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.atomic_file import drafted
from twin.errors import RecordingError
from twin.recordings.columns import (
    LARGEST_ANGLE,
    Source,
    check_angles,
    check_joint_steps,
    check_positions,
    check_samples,
    check_turns,
    si_columns,
    unit_quaternions,
)
from twin.spatial.euler_angles import matrix_from_euler
from twin.spatial.rotations import quaternion_from_matrix

if TYPE_CHECKING:
    from twin.robot.robot import Robot

QUATERNION = ("a", "b", "c", "d")
EULER = ("rx", "ry", "rz")
"""Turns about the axes of the tool's frame, z first: `R = Rz(rz) Ry(ry) Rx(rx)`, ABB's `EulerZYX`."""

POSITION = ("x", "y", "z")
TOOL_COLUMNS = ("t", *POSITION, *QUATERNION)


class ToolRecording(NamedTuple):
    """A recorded tool path that has passed the checks; make it with `tool_recording` or `read_recording`.

    Attributes:
        t: (N,) rising times in [s], N >= 2.
        poses: (N, 7) `[x y z a b c d]` of the tool in the base frame, positions in [m], unit quaternions
            continuous in sign.
    """

    t: Floats
    poses: Floats


class JointRecording(NamedTuple):
    """A recorded motion of joints that has passed the checks; make it with `joint_recording`.

    Attributes:
        t: (N,) rising times in [s], N >= 2.
        q: (N, n) joint angles in [rad] (of prismatic joints positions in [m]).
    """

    t: Floats
    q: Floats


Recording: TypeAlias = ToolRecording | JointRecording


def tool_recording(t: ArrayLike, poses: ArrayLike) -> ToolRecording:
    """Return a recording of the tool from arrays.

    Args:
        t: (N,) rising times in [s], N >= 2.
        poses: (N, 7) `[x y z a b c d]` in the base frame, positions in [m], quaternions of either sign.

    Raises:
        RecordingError: names the sample, the column and the value that is wrong, and what is valid.
        ValueError: arrays of wrong shape.
    """
    t, poses = np.array(real_array(t, "t")), np.array(real_array(poses, "poses"))
    if t.ndim != 1 or poses.shape != (len(t), 7):
        raise ValueError(
            f"expected t of shape (N,) and poses of shape (N, 7), got {t.shape} and {poses.shape}"
        )
    columns = si_columns(TOOL_COLUMNS, ["time"] + ["length"] * 3 + ["number"] * 4)
    return checked_tool(np.column_stack([t, poses]), Source("the recording", _sample, columns))


def joint_recording(t: ArrayLike, q: ArrayLike, robot: "Robot | None" = None) -> JointRecording:
    """Return a recording of joints from arrays.

    Args:
        t: (N,) rising times in [s], N >= 2.
        q: (N, n) joint angles in [rad] (of prismatic joints positions in [m]).
        robot: whose joints they are: tells what angles can be meant, and which joints slide. None for
            angles of any arm.

    Raises:
        RecordingError: names the sample, the column and the value that is wrong, and what is valid.
        ValueError: arrays of wrong shape.
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
    """Return what each joint's position is, a key of `twin.recordings.table.UNITS`."""
    return ["angle"] * n if robot is None else [_quantity(kind) for kind in robot.joint_kinds]


def _quantity(kind: str) -> str:
    return "length" if kind == "prismatic" else "angle"


def _sample(k: int) -> str:
    return f"sample {k}"


def checked_tool(values: Floats, source: Source) -> ToolRecording:
    """Return a recording of the tool from numbers in SI units, or raise RecordingError.

    Args:
        values: (N, 8) `[t x y z a b c d]`, or (N, 7) `[t x y z rx ry rz]`.
        source: where they come from.
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
    """Return a recording of joints from numbers in SI units, or raise RecordingError.

    Args:
        values: (N, 1 + n) `[t q1 ... qn]`.
        source: where they come from.
        robot: as for `joint_recording`.
    """
    check_samples(values, source)
    turning, sliding = (
        [k for k, column in enumerate(source.columns) if k > 0 and column.quantity == quantity]
        for quantity in ("angle", "length")
    )
    largest = np.full(values.shape[1], LARGEST_ANGLE)
    if robot is not None:  # twice a joint's range: beyond the range itself it is the motion that is at fault
        largest[1:] = 2.0 * np.maximum(np.abs(robot.q_min), np.abs(robot.q_max))
    for column in sliding:
        check_positions(values[:, column : column + 1], column, source)
    check_angles(values[:, turning], largest[turning], turning, source)
    check_joint_steps(values[:, turning], turning, source)
    return JointRecording(values[:, 0], values[:, 1:])


def write_recording(path: str | Path, recorded: Recording) -> None:
    """Write a recording as CSV in SI units, with all digits, so that reading it gives the same numbers.

    Args:
        path: file to write.
        recorded: from `tool_recording`, `joint_recording` or `read_recording`.

    Raises:
        RecordingError: the file cannot be written.
    """
    numbers = recorded[1]
    header: Sequence[str] = (
        TOOL_COLUMNS if isinstance(recorded, ToolRecording) else ("t", *joint_columns(numbers.shape[1]))
    )
    rows = np.column_stack([recorded.t, numbers]).tolist()
    text = "\n".join([",".join(header), *(",".join(map(repr, row)) for row in rows)]) + "\n"
    try:
        with drafted(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}") from error
