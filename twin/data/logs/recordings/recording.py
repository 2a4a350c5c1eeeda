"""Recorded motions of the tool or of the joints: creation from arrays, validation and writing.

`twin.logs.recordings.reading` reads them from files.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats, real_array
from twin.base.atomic_file import atomic_write
from twin.base.errors import RecordingError
from twin.data.logs.recordings.columns import Column, si_columns
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
