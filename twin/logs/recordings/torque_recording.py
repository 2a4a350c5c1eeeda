"""Recorded positions and torques: from a table in one file or two, of the joints or of the motors.

    t, q1, ..., qn, tau1, ..., taun

in seconds, radians and newton metres, or the unit that a column names (`q1[deg]`, `tau1[mNm]`); the names
that `irb-twin export` writes will do, too.  Angles and torques of motors become those of the joints by the
gears, `theta_m = N q` and `tau = N^T tau_m`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.errors import RecordingError, RobotError
from twin.logs.recordings.columns import (
    Reading,
    Table,
    Wanted,
    find_columns,
    open_table,
    places_of,
    read_numbers,
)
from twin.logs.recordings.columns import reading as columns_reading
from twin.logs.recordings.reading import require_one_naming
from twin.logs.recordings.recording import joint_quantities
from twin.robot.robot import Robot

MOTOR_SIDES = ("positions", "torques", "both")
"""What of a file may be of the motors."""

JUMP = 0.5
"""How far a step of time may be from the usual one, relative to it; computers tell times less evenly than
controllers sample."""


@dataclass(frozen=True, eq=False)
class TorqueRecording:
    """What was measured of the joints: N samples, evenly in time.

    Attributes:
        t: (N,) in [s].
        q: (N, n) joint angles, in [rad].
        tau: (N, n) torques of the motors at the joints, in [N m].
        name: of the file, for messages.
    """

    t: Floats
    q: Floats
    tau: Floats
    name: str = "the recording"

    @property
    def period(self) -> float:
        """The time between two samples, in [s]."""
        return float(self.t[-1] - self.t[0]) / (len(self.t) - 1)


@dataclass(frozen=True)
class TableForm:
    """How tables of positions and torques are to be understood.

    Attributes:
        reading: names and units of columns, see `twin.logs.recordings.columns.reading`; `q*` and `tau*` stand
            for all joints, as in `{"q*": "Joint_*"}`.
        torques: a file of its own for the torques, row for row; None where they stand beside the positions.
        motor_side: what of it is of the motors, one of `MOTOR_SIDES`, or nothing.
        sample_time: in [s], of tables without a column of time.
        q_offset: (n,) added to the positions of the joints, in [rad]; none by default.
    """

    reading: Reading | None = None
    torques: Path | None = None
    motor_side: str | None = None
    sample_time: float | None = None
    q_offset: ArrayLike | None = None


def torque_recording(
    t: ArrayLike, q: ArrayLike, tau: ArrayLike, name: str = "the recording"
) -> TorqueRecording:
    """A recording from arrays, checked.

    Args:
        t: (N,) evenly rising times, in [s].
        q: (N, n) joint angles, in [rad].
        tau: (N, n) torques at the joints, in [N m].
        name: for messages.

    Raises:
        ValueError: arrays of wrong shape.
        RecordingError: a number is not finite, or time jumps.
    """
    t, q, tau = (np.array(real_array(v, what)) for v, what in ((t, "t"), (q, "q"), (tau, "tau")))
    if t.ndim != 1 or q.ndim != 2 or len(q) != len(t) or tau.shape != q.shape:
        raise ValueError(
            f"expected t of shape (N,), q and tau of shape (N, n), got {t.shape}, {q.shape} and {tau.shape}"
        )
    if len(t) < 10:
        raise RecordingError(f"{name}: expected at least 10 samples, got {len(t)}")
    for what, values in (("t", t), ("q", q), ("tau", tau)):
        if not np.all(np.isfinite(values)):
            where = np.argwhere(~np.isfinite(values))[0].tolist()
            label = what + "".join(str(joint + 1) for joint in where[1:])
            raise RecordingError(
                f"{name}: {label} of sample {where[0] + 1} is {values[tuple(where)]}; expected finite numbers"
            )
    steps = np.diff(t)
    usual = float(np.median(steps))
    uneven = ~(np.abs(steps - usual) <= JUMP * usual)
    if not usual > 0 or np.any(uneven):
        k = int(np.argmax(uneven))
        raise RecordingError(
            f"{name}: time jumps from {t[k]:.9g} s to {t[k + 1]:.9g} s at sample {k + 2}; expected steps of "
            f"{max(usual, 0.0):.6g} s, as most are: cut the recording there"
        )
    return TorqueRecording(t, q, tau, name)


def read_torque_recording(path: str | Path, robot: Robot, form: TableForm | None = None) -> TorqueRecording:
    """The recording in a file.

    Args:
        path: text as `twin.read_recording` takes it, also packed by gzip.
        robot: whose joints they are, with its drives where something is of the motors.
        form: how the table is to be understood.

    Raises:
        RecordingError: naming file, line and column, and what is wrong there.
        RobotError: motors were recorded, and the robot's gears are not known.
        ValueError: a setting that cannot be.
    """
    form = form or TableForm()
    side = form.motor_side
    if side is not None and side not in MOTOR_SIDES:
        raise ValueError(f"expected motor_side to be {', '.join(MOTOR_SIDES)}, got {side!r}")
    if side is not None and robot.drives is None:
        raise RobotError(
            f"robot {robot.name!r} has no gears by which motors' measurements could become joints': its file "
            "has no table [drives]"
        )
    how = _expanded(form.reading or columns_reading(), robot.n)
    kinds = joint_quantities(robot.n, robot)
    positions = [Wanted(f"q{k + 1}", kind) for k, kind in enumerate(kinds)]
    torques = [Wanted(f"tau{k + 1}", "torque") for k in range(robot.n)]
    table = open_table(path)
    timed = form.sample_time is None
    first = [Wanted("t", "time")] * timed
    wanted = [*first, *_named(table, positions, "q", robot, how)]
    if form.torques is None:
        wanted += _named(table, torques, "tau", robot, how)
    values, _ = read_numbers(table, _found(table, wanted, how, timed))
    if form.torques is not None:
        other = open_table(form.torques)
        columns = find_columns(other, _named(other, torques, "tau", robot, how), how)
        beside, _ = read_numbers(other, columns)
        if len(beside) != len(values):
            raise RecordingError(
                f"{form.torques}: expected {len(values)} rows, as many as {path} has, got {len(beside)}"
            )
        values = np.column_stack([values, beside])
    if form.sample_time is not None:
        if not 0 < form.sample_time < np.inf:
            raise ValueError(f"expected a sample time above 0 s, got {form.sample_time}")
        values = np.column_stack([form.sample_time * np.arange(len(values)), values])
    t, q, tau = values[:, 0], values[:, 1 : 1 + robot.n], values[:, 1 + robot.n :]
    if side is not None and robot.drives is not None:
        N = robot.drives.motor_matrix
        if side != "torques":
            q = np.linalg.solve(N, q.T).T
        if side != "positions":
            tau = tau @ N
    if form.q_offset is not None:
        offset = real_array(form.q_offset, "q_offset")
        if offset.shape != (robot.n,):
            raise ValueError(f"expected q_offset of shape ({robot.n},), got {offset.shape}")
        q = q + offset
    return torque_recording(t, q, tau, str(path))


def _expanded(how: Reading, n: int) -> Reading:
    """A reading whose `q*` and `tau*` are told joint by joint."""
    columns = {}
    for ours, theirs in how.columns.items():
        if not ours.endswith("*"):
            columns[ours] = theirs
            continue
        if "*" not in theirs:
            raise ValueError(f"expected a * for the joint's number in the name of {ours}, got {theirs!r}")
        for k in range(1, n + 1):
            columns[ours.replace("*", str(k))] = theirs.replace("*", str(k))
    for name in columns:
        known = re.fullmatch(r"t|(?:q|tau)([1-9]\d*)", name)
        if known is None or int(known[1] or 1) > n:
            raise ValueError(
                f"expected columns to name some of t, q1 to q{n} and tau1 to tau{n}, got {name!r}"
            )
    return Reading(columns, how.units)


def _named(table: Table, wanted: list[Wanted], quantity: str, robot: Robot, how: Reading) -> list[Wanted]:
    """The wanted columns, by the names that a log exports if the table has all of those."""
    logged = [
        Wanted(f"{joint}_{quantity}", one.quantity)
        for joint, one in zip(robot.joint_names, wanted, strict=True)
    ]
    complete = [
        named for named in (logged, wanted) if all(places_of(table.header, one, how) for one in named)
    ]
    require_one_naming(table.path, complete, how)
    return complete[0] if complete else wanted


def _found(table: Table, wanted: list[Wanted], how: Reading, timed: bool):
    """Their places in the table; one that has no time is told what to do about it."""
    if timed and not places_of(table.header, wanted[0], how) and "t" not in how.columns:
        raise RecordingError(
            f"{table.path}, line 1: no column 't', the time; name it in columns (t=NAME), or give the time "
            "between two rows (sample_time, in s)"
        )
    return find_columns(table, wanted, how)
