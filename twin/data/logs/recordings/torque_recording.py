"""Recordings of motion and torques: reading them from files, and making their times even.

    t, q1, ..., qn, tau1, ..., taun

Columns `qref1`, ..., `qrefn` are the positions that the controller was to reach, if the table has them.
Columns `qm1`, ..., `qmn` are the positions of the motors, where a second encoder sees the joints.  Columns
`qd1`, ..., `qdn` are measured speeds.  The units are seconds, radians and newton metres, unless the name of a
column contains another one (`q1[deg]`, `tau1[mNm]`).  The names that `irb-twin export` writes are accepted,
too.  Gears convert angles, speeds and torques of motors to those of the joints, `theta_m = N q` and
`tau = N^T tau_m`.

Computers record less evenly than controllers sample.  Time stamps are either the times at which the samples
were taken, or even samples were stamped late.  Positions decide: each sample is predicted by the cubic
through its four neighbours, with the stamps and with even times, and the times with the smaller error are
used.  Positions are then interpolated by a cubic spline.  Torques jump, so that a spline would oscillate:
they are interpolated by the monotone cubic of F. Fritsch and R. Carlson, "Monotone Piecewise Cubic
Interpolation", SIAM Journal on Numerical Analysis 17 (1980).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.errors import RecordingError, RobotError
from twin.data.logs.recordings.columns import (
    ColumnRequest,
    HeaderOptions,
    Table,
    column_indices,
    find_columns,
    header_options,
    open_table,
    read_numbers,
)
from twin.data.logs.recordings.faults import unwrapped
from twin.data.logs.recordings.finding import Finding
from twin.data.logs.recordings.recording import joint_quantities, require_one_naming
from twin.physics.robot.robot import Robot

MOTOR_SIDES = ("positions", "torques", "both")
"""Quantities of a file that may refer to the motors."""

FURTHER = ("q_ref", "q_motor", "qd")
"""Names of the series (N, n) that a recording may have beside positions and torques."""

COLUMNS: dict[str, str] = dict(zip(FURTHER, ("qref", "qm", "qd"), strict=True))
"""Names of their columns, without the number of the joint."""

FEWEST = 10
"""Smallest number of samples of a recording."""


@dataclass(frozen=True, eq=False)
class TorqueRecording:
    """Measured motion and torques of the joints: N samples at rising times, even or not.

    Attributes:
        t: (N,) times, in [s].
        q: (N, n) joint angles, in [rad].
        tau: (N, n) torques of the motors at the joints, in [N m].
        name: name of the file, for messages.
        q_ref: (N, n) joint angles that the controller was to reach, in [rad]; `None` if unknown.
        q_motor: (N, n) angles of the motors in joint units, in [rad]; `None` if only one side is measured.
        qd: (N, n) measured speeds of the joints, in [rad/s]; `None` if only positions are measured.
        findings: what was found wrong while the columns were read, such as encoders that wrap.
    """

    t: Floats
    q: Floats
    tau: Floats
    name: str = "the recording"
    q_ref: Floats | None = None
    q_motor: Floats | None = None
    qd: Floats | None = None
    findings: tuple[Finding, ...] = ()

    def rows(self, part: slice) -> TorqueRecording:
        """Return some rows of the recording."""
        motion = {name: getattr(self, name) for name in FURTHER}
        motion = {name: None if values is None else values[part] for name, values in motion.items()}
        return replace(self, t=self.t[part], q=self.q[part], tau=self.tau[part], **motion)

    @property
    def period(self) -> float:
        """Time between two samples, in [s]."""
        return float(self.t[-1] - self.t[0]) / (len(self.t) - 1)


@dataclass(frozen=True)
class TableForm:
    """Options for reading tables of positions and torques.

    Attributes:
        reading: names and units of columns, see `twin.logs.recordings.columns.header_options`; `q*` and
            `tau*` stand for all joints, as in `{"q*": "Joint_*"}`.
        torques: path of a separate file with the torques, row for row; `None` if the table contains them.
        motor_side: quantities that refer to the motors, one of `MOTOR_SIDES`; `None` for none.  In a table
            with columns `qm1`, ..., only those are positions of the motors.
        sample_time: time between rows, in [s], for tables without a column of time.
        q_offset: (n,) offset that is added to the joint positions, in [rad]; none by default.
        gains: (n,) torques per unit of the columns, such as a current, in [N m] or [N]; none by default.
    """

    reading: HeaderOptions | None = None
    torques: Path | None = None
    motor_side: str | None = None
    sample_time: float | None = None
    q_offset: ArrayLike | None = None
    gains: ArrayLike | None = None


def torque_recording(
    t: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike,
    name: str = "the recording",
    q_ref: ArrayLike | None = None,
    q_motor: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> TorqueRecording:
    """Create a recording from arrays and validate it.

    Args:
        t: (N,) rising times, in [s].
        q: (N, n) joint angles, in [rad].
        tau: (N, n) torques at the joints, in [N m].
        name: name of the recording, for messages.
        q_ref: (N, n) joint angles that the controller was to reach, in [rad], if they are known.
        q_motor: (N, n) angles of the motors in joint units, in [rad], if they are measured as well.
        qd: (N, n) speeds of the joints, in [rad/s], if they are measured as well.

    Raises:
        ValueError: arrays of wrong shape.
        RecordingError: a number is not finite, or the time does not rise.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> t = np.arange(0.0, 1.0, 0.1)
        >>> recording = twin.logs.torque_recording(t, np.sin(t)[:, None], np.cos(t)[:, None])
        >>> recording.q.shape, recording.name
        ((10, 1), 'the recording')
    """
    t, q, tau = (np.array(real_array(v, what)) for v, what in ((t, "t"), (q, "q"), (tau, "tau")))
    if t.ndim != 1 or q.ndim != 2 or len(q) != len(t) or tau.shape != q.shape:
        raise ValueError(
            f"expected t of shape (N,), q and tau of shape (N, n), got {t.shape}, {q.shape} and {tau.shape}"
        )
    further: dict[str, Floats] = {
        what: np.array(real_array(values, what))
        for what, values in zip(FURTHER, (q_ref, q_motor, qd), strict=True)
        if values is not None
    }
    for what, values in further.items():
        if values.shape != q.shape:
            raise ValueError(f"expected {what} of shape {q.shape}, got {values.shape}")
    if len(t) < FEWEST:
        raise RecordingError(f"{name}: expected at least {FEWEST} samples, got {len(t)}")
    named = {COLUMNS[what]: values for what, values in further.items()}
    for what, values in {"t": t, "q": q, "tau": tau, **named}.items():
        if not np.all(np.isfinite(values)):
            where = np.argwhere(~np.isfinite(values))[0].tolist()
            label = what + "".join(str(joint + 1) for joint in where[1:])
            raise RecordingError(
                f"{name}: {label} of sample {where[0] + 1} is {values[tuple(where)]}; expected finite numbers"
            )
    if not np.all(np.diff(t) > 0):
        k = int(np.argmin(np.diff(t) > 0))
        raise RecordingError(
            f"{name}: time goes from {t[k]:.9g} s to {t[k + 1]:.9g} s at sample {k + 2}; "
            "expected rising times"
        )
    return TorqueRecording(t, q, tau, name, further.get("q_ref"), further.get("q_motor"), further.get("qd"))


def read_torque_recording(path: str | Path, robot: Robot, form: TableForm | None = None) -> TorqueRecording:
    """Read a recording of positions and torques from a file.

    Args:
        path: path of a text file in a format that `twin.read_recording` accepts, optionally compressed by
            gzip.
        robot: robot of the joints, with its drives if quantities refer to the motors.
        form: options for reading the table.

    Raises:
        RecordingError: the file is invalid; the message contains file, line and column, and the error.
        RobotError: quantities refer to the motors, but the gears of the robot are not known.
        ValueError: an invalid setting.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> rows = np.outer(np.arange(10), [0.1, 0.2, 0.0, 5.0, 1.0])
        >>> np.savetxt("measured.csv", rows, delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
        >>> twin.logs.read_torque_recording("measured.csv", twin.load("two_link")).tau[1].tolist()
        [5.0, 1.0]
    """
    form = form or TableForm()
    side = form.motor_side
    if side is not None and side not in MOTOR_SIDES:
        raise ValueError(f"expected motor_side to be {', '.join(MOTOR_SIDES)}, got {side!r}")
    if side is not None and robot.drives is None:
        raise RobotError(
            f"robot {robot.name!r} has no gear ratios to convert measurements of motors to joints: its file "
            "has no table [drives]"
        )
    if form.sample_time is not None and not 0 < form.sample_time < np.inf:
        raise ValueError(f"expected a sample time above 0 s, got {form.sample_time}")
    given = form.reading or header_options()
    series, findings = _read_series(path, robot, form, _expanded(given, robot.n), given)
    t = series["t"][:, 0] if form.sample_time is None else form.sample_time * np.arange(len(series["q"]))
    q, tau = series["q"], series["tau"]
    q_ref, q_motor, qd = (series.get(name) for name in COLUMNS.values())
    revolute = [kind != "prismatic" for kind in robot.joint_kinds]
    if form.gains is not None:
        gains = real_array(form.gains, "gains")
        if gains.shape != (robot.n,) or not np.all(np.isfinite(gains) & (gains != 0)):
            raise ValueError(f"expected {robot.n} gains, one per joint, none of them 0, got {form.gains}")
        tau = tau * gains
    q, wraps = unwrapped(q, revolute)
    findings += wraps
    if q_motor is not None:
        q_motor, more = unwrapped(q_motor, revolute)
        findings += more
    if side is not None and robot.drives is not None:
        N = robot.drives.motor_matrix
        if side != "torques":
            if q_motor is not None:
                q_motor = np.linalg.solve(N, q_motor.T).T
            else:
                q = np.linalg.solve(N, q.T).T
                q_ref, qd = (None if one is None else np.linalg.solve(N, one.T).T for one in (q_ref, qd))
        if side != "positions":
            tau = tau @ N
    if form.q_offset is not None:
        offset = real_array(form.q_offset, "q_offset")
        if offset.shape != (robot.n,):
            raise ValueError(f"expected q_offset of shape ({robot.n},), got {offset.shape}")
        q = q + offset
        q_ref, q_motor = (None if one is None else one + offset for one in (q_ref, q_motor))
    recording = torque_recording(t, q, tau, str(path), q_ref, q_motor, qd)
    return replace(recording, findings=tuple(findings))


def _read_series(
    path: str | Path, robot: Robot, form: TableForm, options: HeaderOptions, given: HeaderOptions
) -> tuple[dict[str, Floats], list[Finding]]:
    """Return the columns of a recording by quantity: t (N, 1), q, tau (N, n), and qref, qm, qd if present.

    Findings name columns that match a pattern of the given options and are not used.
    """
    kinds = joint_quantities(robot.n, robot)
    torques = [ColumnRequest(f"tau{k + 1}", "torque") for k in range(robot.n)]
    table = open_table(path)
    if "tool_fx_N" in table.header:
        raise RecordingError(f"{path}: a wrench acted on the tool; identify a run without one")
    findings = _beside_pattern(table, given, robot.n, [name for name in given.columns if name != "tau*"])
    columns: dict[str, list[ColumnRequest]] = {}
    if form.sample_time is None:
        columns["t"] = [ColumnRequest("t", "time")]
    positions = [ColumnRequest(f"q{k + 1}", kind) for k, kind in enumerate(kinds)]
    columns["q"] = _select_naming(table, positions, "q", robot, options)
    speeds = ["speed" if kind == "length" else "angular speed" for kind in kinds]
    for name in COLUMNS.values():
        quantities = speeds if name == "qd" else kinds
        further = [ColumnRequest(f"{name}{k + 1}", kind) for k, kind in enumerate(quantities)]
        if all(column_indices(table.header, one, options) for one in further):
            columns[name] = further
    if form.torques is None:
        columns["tau"] = _select_naming(table, torques, "tau", robot, options)
    series = _read_columns(table, columns, options)
    if form.torques is not None:
        other = open_table(form.torques)
        findings += _beside_pattern(other, given, robot.n, ["tau*"])
        in_other = {"tau": _select_naming(other, torques, "tau", robot, options)}
        series |= _read_columns(other, in_other, options)
        if len(series["tau"]) != len(series["q"]):
            raise RecordingError(
                f"{form.torques}: expected {len(series['q'])} rows, as in {path}, got {len(series['tau'])}"
            )
    elif "tau*" in given.columns:
        findings += _beside_pattern(table, given, robot.n, ["tau*"])
    return series, findings


def _beside_pattern(table: Table, given: HeaderOptions, n: int, names: Sequence[str]) -> list[Finding]:
    """Return findings for columns that match a pattern and are no joint's.

    Raises:
        RecordingError: the columns of a pattern are numbered from 0.
    """
    findings = []
    for name in names:
        pattern = given.columns.get(name, "")
        form = re.compile(re.escape(pattern).replace(r"\*", r"(\d+)"))
        found = [match for one in table.header if "*" in pattern and (match := form.fullmatch(one))]
        matches = {int(match[1]): match[0] for match in found}
        if 0 in matches and len(matches) == n:
            raise RecordingError(
                f"{table.path}: the columns {pattern} are numbered from 0 to {n - 1}, expected 1 to {n}, as "
                f"joints are: name each, as {name[:-1]}1={matches[0]}, or places, as {name}=2-{n + 1}"
            )
        if unused := [matches[k] for k in sorted(matches) if not 1 <= k <= n]:
            text = f"{', '.join(unused)} match {pattern}, and belong to none of {n} joints: not used"
            findings.append(Finding("unused", (), text, stops=False))
    return findings


def _read_columns(
    table: Table, columns: dict[str, list[ColumnRequest]], options: HeaderOptions
) -> dict[str, Floats]:
    """Read the columns of each quantity; without a column of time that is requested, name the remedies."""
    has_time = all(column_indices(table.header, one, options) for one in columns.get("t", ()))
    if not has_time and "t" not in options.columns:
        raise RecordingError(
            f"{table.path}, line 1: no column 't', the time; map it (--columns t=NAME), or give the time "
            "between two rows in s (--sample-time)"
        )
    requested = [one for group in columns.values() for one in group]
    values, _ = read_numbers(table, find_columns(table, requested, options))
    ends = np.cumsum([len(group) for group in columns.values()])
    return dict(zip(columns, np.split(values, ends[:-1], axis=1), strict=True))


def _expanded(options: HeaderOptions, n: int) -> HeaderOptions:
    """Replace the `*` in the mapped names `q*`, `tau*` and those of `COLUMNS` by the number of each joint."""
    columns = {}
    for standard, in_file in options.columns.items():
        if not standard.endswith("*"):
            columns[standard] = in_file
            continue
        if places := re.fullmatch(r"(\d+)\s*-\s*(\d+)", in_file):
            first, last = map(int, places.groups())
            if last - first + 1 != n:
                raise ValueError(f"expected {n} columns for {standard}, one per joint, got {in_file}")
            columns |= {standard.replace("*", str(k + 1)): str(first + k) for k in range(n)}
            continue
        if "*" not in in_file:
            raise ValueError(
                f"expected a * for the joint's number in the name of {standard}, or places as 2-{n + 1}, got "
                f"{in_file!r}"
            )
        for k in range(1, n + 1):
            columns[standard.replace("*", str(k))] = in_file.replace("*", str(k))
    for name in columns:
        known = re.fullmatch(r"t|(?:q|tau|qref|qm|qd)([1-9]\d*)", name)
        if known is None or int(known[1] or 1) > n:
            raise ValueError(
                f"expected the keys of columns to be among t, q1 to q{n}, tau1 to tau{n}, qref1 to "
                f"qref{n}, qm1 to qm{n} and qd1 to qd{n}, got {name!r}"
            )
    return HeaderOptions(columns, options.units)


def _select_naming(
    table: Table, requested: list[ColumnRequest], quantity: str, robot: Robot, options: HeaderOptions
) -> list[ColumnRequest]:
    """Return the requested columns, under the names of an exported log if the table has all of those."""
    by_log_name = [
        ColumnRequest(f"{joint}_{quantity}", one.quantity)
        for joint, one in zip(robot.joint_names, requested, strict=True)
    ]
    complete = [
        named
        for named in (by_log_name, requested)
        if all(column_indices(table.header, one, options) for one in named)
    ]
    require_one_naming(table.path, complete, options)
    return complete[0] if complete else requested


GAP = 5.0
"""Number of periods without a sample that divides a recording."""

UNEVEN = 0.01
"""Deviation of a time step from the median step, relative to it, that is negligible."""

AS_EVEN = 0.8
"""Ratio of the errors with even times and with the stamps below which the stamps are considered wrong."""


def parts_between_gaps(recording: TorqueRecording) -> tuple[list[TorqueRecording], list[Finding]]:
    """Divide a recording at its gaps; parts with fewer than `FEWEST` samples are omitted.

    Raises:
        RecordingError: no part has enough samples.
    """
    steps = np.diff(recording.t)
    median = float(np.median(steps))
    ends = np.flatnonzero(steps > GAP * median) + 1
    bounds = [0, *ends.tolist(), len(recording.t)]
    parts = [recording.rows(slice(a, b)) for a, b in pairwise(bounds) if b - a >= FEWEST]
    if not parts:
        raise RecordingError(
            f"{recording.name}: no part without gaps has {FEWEST} samples, at steps of {median:.6g} s"
        )
    if not ends.size:
        return parts, []
    longest = int(np.argmax(steps))
    text = (
        f"{ends.size} gap{'s' if ends.size > 1 else ''} of more than {GAP:g} periods divide it; the longest "
        f"lasts {steps[longest]:.3g} s, from {recording.t[longest]:.6g} s on"
    )
    return parts, [Finding("gap", (), text, stops=False)]


def with_even_times(part: TorqueRecording) -> tuple[TorqueRecording, list[Finding]]:
    """Return a part without gaps whose samples are at equal intervals, and a finding if they were not."""
    steps = np.diff(part.t)
    period = float(np.median(steps))
    if np.max(np.abs(steps / period - 1.0)) <= UNEVEN:
        return part, []
    t, stamped = _times(part, period)
    text = f"time steps from {1e3 * np.min(steps):.4g} to {1e3 * np.max(steps):.4g} ms: "
    text += "interpolated" if stamped else "the positions are smoother with even steps, which are used"
    period = float(np.median(np.diff(t)))
    text += f", every {1e3 * period:.4g} ms"
    return _resampled(part, t, period), [Finding("uneven", (), text, stops=False)]


def _times(part: TorqueRecording, period: float) -> tuple[Floats, bool]:
    """Return the times (N,) at which samples were taken, and whether they are the stamps.

    Otherwise they are even, with or without rows that are left out.
    """
    counts = np.maximum(np.round(np.diff(part.t) / period), 1.0)
    tried = [part.t]
    for steps in (np.ones_like(counts), counts):
        index = np.concatenate([[0.0], np.cumsum(steps)])
        slope, start = np.polyfit(index, part.t, 1)
        tried.append(start + slope * index)
    sizes = [np.median(np.abs(neighbour_errors(t, part.q)), axis=0) for t in tried]
    mean = [float(np.mean(np.log(np.maximum(size, np.finfo(float).tiny)))) for size in sizes]
    best = int(np.argmin(mean))
    stamped = mean[best] > mean[0] + np.log(AS_EVEN)
    return (part.t if stamped else tried[best]), stamped


def neighbour_errors(t: Floats, q: Floats) -> Floats:
    """Return the differences (N - 4, n) of samples from the cubic through the two neighbours on each side."""
    nodes = [np.arange(k, len(t) - 4 + k) for k in (0, 1, 3, 4)]
    middle = t[2:-2]
    predicted = np.zeros_like(q[2:-2])
    for i in nodes:
        weight = np.ones(len(middle))
        for j in nodes:
            if j is not i:
                weight *= (middle - t[j]) / (t[i] - t[j])
        predicted += weight[:, None] * q[i]
    return q[2:-2] - predicted


def _resampled(part: TorqueRecording, t: Floats, period: float) -> TorqueRecording:
    """Return a part, whose samples were taken at times t (N,), interpolated at equal intervals."""
    from scipy.interpolate import CubicSpline, PchipInterpolator

    even = t[0] + period * np.arange(int((t[-1] - t[0]) / period) + 1)
    smooth = {
        name: CubicSpline(t, values)(even)
        for name in ("q", *FURTHER)
        if (values := getattr(part, name)) is not None
    }
    return replace(part, t=even, tau=PchipInterpolator(t, part.tau)(even), **smooth)
