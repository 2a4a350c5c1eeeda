"""Recorded tool paths: comma-separated values `t,x,y,z,a,b,c,d`, like a recording exported from RobotStudio.

Seconds, metres, and a unit quaternion with the scalar first, one sample a line below the header. The columns
may stand in any order and others beside them. What is read is checked here, once, so that nothing behind it
has to: every fault is a `RecordingError` that names the file, the line, the column and the value.
"""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.atomic_file import drafted
from twin.errors import RecordingError
from twin.spatial.rotations import continuous_quaternions

COLUMNS = ("t", "x", "y", "z", "a", "b", "c", "d")

UNIT_TOLERANCE = 1e-3
"""How far a quaternion's norm may be from 1: the most that rounding to three decimals can do. It is
normalised after that; anything further off is not rounding but another quantity."""

LARGEST_FILE = 100_000_000
"""In bytes: a million samples. What is larger is not read, nor is what never ends, as a device."""

LARGEST_POSITION = 10.0
"""No ABB arm reaches 5 m: a coordinate beyond 10 m is in another unit."""

LARGEST_TIME = 1e10
"""In [s]; seconds since 1970 are below it, milliseconds since 1970 above."""

SMALLEST_STEP = 1e-6
"""In [s]; closer samples are one sample with rounded times, and speeds from them mean nothing."""

MOST_UNEVEN = 100.0
"""The longest step over the shortest. A spline carries the speed of its short steps into a long one, and
swings far out: a pause needs samples, too."""

LARGEST_TURN = np.deg2rad(120.0)
"""Between neighbouring samples. Towards 180 degrees it is a guess which way the tool turned, and the
rotation spline no longer reaches a continuous acceleration."""


class Recording(NamedTuple):
    """A recorded tool path that has passed the checks; make it with `recording` or `read_recording`.

    t: (N,) rising times in [s], N >= 2.
    poses: (N, 7) `[x y z a b c d]` of the tool in the base frame, positions in [m], unit quaternions
        continuous in sign.
    """

    t: Floats
    poses: Floats


def recording(t: ArrayLike, poses: ArrayLike) -> Recording:
    """Return a recording from arrays.

    Args:
        t: (N,) rising times in [s], N >= 2.
        poses: (N, 7) `[x y z a b c d]`, positions in [m], quaternions of either sign.

    Raises:
        RecordingError: names the sample, the column and the value that is wrong, and what is valid.
        ValueError: arrays of wrong shape.
    """
    t, poses = np.array(real_array(t, "t")), np.array(real_array(poses, "poses"))
    if t.ndim != 1 or poses.shape != (len(t), 7):
        raise ValueError(
            f"expected t of shape (N,) and poses of shape (N, 7), got {t.shape} and {poses.shape}"
        )
    return _checked(t, poses, "the recording", lambda k: f"sample {k}")


def read_recording(path: str | Path) -> Recording:
    """Return the recording in a CSV file.

    Args:
        path: text in UTF-8 (a byte-order mark is allowed); the first line names the columns; blank lines
            are passed over.

    Raises:
        RecordingError: names the file, the line, the column and the value that is wrong, and what is valid.
    """
    rows, lines = read_columns(path, COLUMNS)
    values = np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS))
    return _checked(values[:, 0], values[:, 1:], str(path), lambda k: f"line {lines[k]}")


def write_recording(path: str | Path, t: ArrayLike, poses: ArrayLike) -> None:
    """Write a recording as CSV, with all digits, so that reading it gives the same numbers.

    Args:
        path: file to write.
        t: (N,) see `recording`.
        poses: (N, 7) see `recording`.

    Raises:
        RecordingError: the arrays would not pass when read, or the file cannot be written.
        ValueError: arrays of wrong shape.
    """
    checked = recording(t, poses)
    rows = np.column_stack([checked.t, checked.poses]).tolist()
    text = "\n".join([",".join(COLUMNS), *(",".join(map(repr, row)) for row in rows)]) + "\n"
    try:
        with drafted(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}") from error


def read_columns(path: str | Path, columns: Sequence[str]) -> tuple[list[list[float]], list[int]]:
    """Return the numbers of each row of a CSV file, and the line each row stands on.

    Args:
        path: text in UTF-8; the first line names the columns.
        columns: those wanted, in the order that the numbers are to have; others may stand beside them.

    Raises:
        RecordingError: the file cannot be read, lacks a column, or holds something that is not a number.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise RecordingError(f"{path}: cannot be read: {reason}") from error
    if len(content) > LARGEST_FILE:
        raise RecordingError(f"{path}: cannot be read: it is larger than {LARGEST_FILE:g} bytes")
    reader = csv.reader(io.StringIO(text, newline=""))
    rows, lines = [], []
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in columns:
            if header.count(name) != 1:
                fault = "no column" if name not in header else "more than one column"
                raise RecordingError(
                    f"{path}, line 1: {fault} {name!r}; expected the header {','.join(columns)}, "
                    f"got {_quoted(','.join(header))}"
                )
        places = [header.index(name) for name in columns]
        for row in reader:
            if not "".join(row).strip():
                continue
            if len(row) != len(header):
                raise RecordingError(
                    f"{path}, line {reader.line_num}: expected {len(header)} values, "
                    f"as many as the header, got {len(row)}"
                )
            rows.append(
                [
                    _number(row[place], f"{path}, line {reader.line_num}, column {name!r}")
                    for place, name in zip(places, columns, strict=True)
                ]
            )
            lines.append(reader.line_num)
    except csv.Error as error:
        raise RecordingError(
            f"{path}, line {reader.line_num}: not comma-separated values: {error}"
        ) from error
    return rows, lines


def _number(text: str, where: str) -> float:
    """Return a decimal number; Python's own extensions (`1_000`, digits of other scripts) are not ones."""
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        return float(text)
    except ValueError:
        raise RecordingError(f"{where}: expected a number, got {_quoted(text)}") from None


def _quoted(text: str) -> str:
    """Return text for a message: one line, not too long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _checked(t: Floats, poses: Floats, source: str, place: Callable[[int], str]) -> Recording:
    """Return the recording with its quaternions made unit and continuous, or raise RecordingError."""
    if len(t) < 2:
        raise RecordingError(f"{source}: expected at least 2 samples, got {len(t)}")

    values = np.column_stack([t, poses])
    if not np.all(np.isfinite(values)):
        k, column = np.argwhere(~np.isfinite(values))[0]
        raise RecordingError(
            f"{source}, {place(k)}, column {COLUMNS[column]!r}: expected a finite number, "
            f"got {values[k, column]}"
        )

    if not np.all(np.abs(t) <= LARGEST_TIME):
        k = int(np.argmax(np.abs(t) > LARGEST_TIME))
        raise RecordingError(
            f"{source}, {place(k)}, column 't': expected seconds, at most {LARGEST_TIME:g}, got {t[k]:g}"
        )
    step = np.diff(t)
    if not np.all(step >= SMALLEST_STEP):
        k = int(np.argmax(step < SMALLEST_STEP)) + 1
        fault = "runs backwards" if step[k - 1] < 0.0 else "repeats" if step[k - 1] == 0.0 else "hardly moves"
        raise RecordingError(
            f"{source}, {place(k)}, column 't': time {fault}, {t[k]!s} s after {t[k - 1]!s} s; "
            f"expected steps of at least {SMALLEST_STEP:g} s"
        )

    if not step.max() <= MOST_UNEVEN * step.min():
        k = int(np.argmax(step)) + 1
        raise RecordingError(
            f"{source}, {place(k)}, column 't': a step of {step.max():g} s, the shortest is "
            f"{step.min():g} s; expected steps within a factor of {MOST_UNEVEN:g} (a pause needs samples too)"
        )

    position = poses[:, :3]
    if not np.all(np.abs(position) <= LARGEST_POSITION):
        k, axis = np.argwhere(np.abs(position) > LARGEST_POSITION)[0]
        raise RecordingError(
            f"{source}, {place(k)}, column {'xyz'[axis]!r}: {position[k, axis]:g} m is beyond any arm; "
            f"expected metres, at most {LARGEST_POSITION:g}: are these millimetres?"
        )

    norm = np.linalg.norm(np.clip(poses[:, 3:], -1e9, 1e9), axis=1)
    if not np.all(np.abs(norm - 1.0) <= UNIT_TOLERANCE):
        k = int(np.argmax(np.abs(norm - 1.0) > UNIT_TOLERANCE))
        raise RecordingError(
            f"{source}, {place(k)}, columns a,b,c,d: expected a unit quaternion (norm 1 within "
            f"{UNIT_TOLERANCE:g}), got norm {norm[k]:g}"
        )
    quats = continuous_quaternions(poses[:, 3:] / norm[:, None])
    half_turn_cosine = np.sum(quats[1:] * quats[:-1], axis=1)
    if not np.all(half_turn_cosine >= np.cos(0.5 * LARGEST_TURN) - 1e-9):
        k = int(np.argmin(half_turn_cosine)) + 1
        turn = np.rad2deg(2.0 * np.arccos(np.clip(half_turn_cosine[k - 1], -1.0, 1.0)))
        raise RecordingError(
            f"{source}, {place(k)}, columns a,b,c,d: the tool turns by {turn:.4g} deg from the sample "
            f"before; expected at most {np.rad2deg(LARGEST_TURN):.4g} deg: record more densely"
        )
    return Recording(t, np.column_stack([position, quats]))
