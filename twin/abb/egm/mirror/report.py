"""Results of a mirror: one report per second, alarms, and the last half hour as a log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from twin.abb.egm.mirror.expectation import Row
from twin.abb.egm.mirror.payload_estimate import ExplainingPayload
from twin.abb.egm.wire.stream import StreamCounts, StreamLateness
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.logs.log import Log
from twin.physics.robot.robot import Robot


class Alarm(NamedTuple):
    """Torque difference above its limit.

    Attributes:
        t: robot's time since the beginning of the stream, in [s].
        joint: number of the joint, from 1.
        residual: difference of reported and expected torque, in [N m].
        beyond: part of the difference that static friction cannot explain, in [N m].
        limit: limit of `beyond`, in [N m].
    """

    t: float
    joint: int
    residual: float
    beyond: float
    limit: float


@dataclass(frozen=True, eq=False)
class MirrorReport:
    """Report on one second of a stream.

    Attributes:
        t: robot's time of the newest instant since the beginning of the stream, in [s].
        q: (n,) joint angles at t, in [rad].
        expected: (n,) expected motor torques at the joints at t, in [N m].
        reported: (n,) reported torques at t, in [N m]; `None` if missing.
        residual_rms: (n,) root mean square of the torque differences in this second, in [N m].
        residual_peak: (n,) torque difference of largest magnitude in this second, with its sign, in [N m].
        friction_open: (n,) uncertainty of the expected torques by static friction at t, in [N m].
        payload: payload that explains the differences of the last half minute; `None` without reported
            torques, and until a joint with friction has moved.
        alarms: alarms that began in this second.
        lateness: lateness of the messages; `None` if their arrival is unknown.
        counts: counts of all messages so far.
    """

    t: float
    q: Floats
    expected: Floats
    reported: Floats | None
    residual_rms: Floats
    residual_peak: Floats
    friction_open: Floats
    payload: ExplainingPayload | None
    alarms: tuple[Alarm, ...]
    lateness: StreamLateness | None
    counts: StreamCounts

    @property
    def residual(self) -> Floats | None:
        """Difference (n,) of reported and expected torques at `t`, in [N m]; `None` if not reported."""
        return None if self.reported is None else self.reported - self.expected


def alarm_limits(robot: Robot, alarm: float | Floats | str | None) -> Floats:
    """Return the limits (n,) of the torque differences, in [N m]; infinite without an alarm.

    Args:
        robot: model of the arm.
        alarm: limit in [N m], one for all joints or one per joint; or a text as `20`, `30,40,30,10,10,5`, or
            `15%` of the torque of each drive.

    Raises:
        EgmError: the limit has another form or is not positive.

    Example:
        >>> import twin
        >>> from twin.abb.egm.mirror.report import alarm_limits
        >>> robot = twin.load("irb140")
        >>> alarm_limits(robot, 20).tolist(), alarm_limits(robot, "10%").round(3).tolist()
        ([20.0, 20.0, 20.0, 20.0, 20.0, 20.0], [28.2, 75.5, 33.3, 4.5, 6.0, 3.8])
    """
    limits: object = alarm
    expected = f"expected as alarm one positive limit in N m, {robot.n} limits, or a share as 15%"
    if alarm is None:
        return np.full(robot.n, np.inf)
    try:
        if isinstance(alarm, str) and alarm.endswith("%"):
            limits = float(alarm[:-1]) / 100.0 * robot.drive_torque_max
        elif isinstance(alarm, str):
            limits = [float(part) for part in alarm.split(",")]
        values = np.array(limits, dtype=np.float64)
    except (TypeError, ValueError):
        raise EgmError(f"{expected}, got {alarm!r}") from None
    if values.shape not in ((), (1,), (robot.n,)) or not np.all(values > 0):
        raise EgmError(f"{expected}, got {alarm!r}")
    return np.broadcast_to(values, (robot.n,)).copy()


def rms_and_peak(residuals: Floats) -> tuple[Floats, Floats]:
    """Return the root mean square (n,) and the signed value of largest magnitude (n,) of residuals (N, n).

    Rows without reported torques are ignored, unless all rows lack them.
    """
    finite = residuals[np.all(np.isfinite(residuals), axis=1)]
    values = finite if len(finite) else residuals
    furthest = np.argmax(np.abs(values), axis=0)[None]
    return np.sqrt(np.mean(values**2, axis=0)), np.take_along_axis(values, furthest, axis=0)[0]


BLOCK = 3000
"""Number of rows in a block, about one minute."""

BLOCKS = 30
"""Number of complete blocks that are stored."""


SECONDS = BLOCKS * 60
"""Number of seconds whose results are stored."""


class Second(NamedTuple):
    """Results of one second in a log.

    Attributes:
        t: robot's time at the end of the second, in [s].
        payload: (10,) payload that explains the differences, see `ExplainingPayload`; NaN if missing.
        deviation: (10,) standard deviations of the payload.
        late: largest lateness, in [s]; NaN if unknown.
        lost: number of lost messages so far.
        alarms: number of alarms in this second.
    """

    t: float
    payload: np.ndarray
    deviation: np.ndarray
    late: float
    lost: int
    alarms: int

    @classmethod
    def of(cls, report: MirrorReport) -> Second:
        """Return the results in a report."""
        payload, none = report.payload, np.full(10, np.nan)
        values, deviations = (none, none) if payload is None else (payload.values, payload.deviations)
        late = np.nan if report.lateness is None else report.lateness.largest
        return cls(report.t, values, deviations, late, report.counts.lost, len(report.alarms))


class History:
    """History of a stream in bounded memory; the oldest rows are discarded.

    Args:
        robot: model of the arm.
        period: period of the rows, in [s].
    """

    def __init__(self, robot: Robot, period: float) -> None:
        self._robot, self._period = robot, period
        joints = (
            "q", "qd", "q_planned", "expected", "reported", "friction_open", "beyond",
        )  # fmt: skip
        self._type = np.dtype([("time", "f8"), *((name, "f8", (robot.n,)) for name in joints)])
        self._blocks: deque[np.ndarray] = deque(maxlen=BLOCKS + 1)
        self._end = BLOCK
        self._seconds: deque[Second] = deque(maxlen=SECONDS)

    def second(self, second: Second) -> None:
        """Add the results of one second."""
        self._seconds.append(second)

    def take(self, time: float, row: Row, beyond: np.ndarray) -> None:
        """Add a row and the part of its differences (n,) that static friction cannot explain, in [N m]."""
        if self._end == BLOCK:
            self._blocks.append(np.zeros(BLOCK, self._type))
            self._end = 0
        self._blocks[-1][self._end] = (
            time, row.q, row.qd, row.q_planned, row.expected, row.reported, row.friction_open, beyond,
        )  # fmt: skip
        self._end += 1

    def log(self) -> Log:
        """Return the rows as a log.

        `tau` is the reported torque, and the array `expected_torque` that of the model; all values are
        filtered.  `t` is evenly spaced.  The array `stream_time` is the robot's time, which jumps at
        interruptions of the stream.  The results of each second are in `second_t`, `second_payload` and so
        on, see `Second`.

        Raises:
            EgmError: no row is available yet.
        """
        if not self._blocks:
            raise EgmError("the mirror has no data to log: the stream was shorter than the filters")
        rows = np.concatenate([*list(self._blocks)[:-1], self._blocks[-1][: self._end]])
        columns: dict[str, Any] = {name: np.ascontiguousarray(rows[name]) for name in self._type.names or ()}
        none = np.zeros_like(columns["q"])
        reported, expected = columns["reported"], columns["expected"]
        planned_speed = np.gradient(columns["q_planned"], self._period, axis=0) if len(rows) > 1 else none
        return Log(
            robot=self._robot, controller="EGM mirror", time_step=self._period / 4, steps_per_period=4,
            t=self._period * np.arange(len(rows)), q_ref=columns["q_planned"], qd_ref=planned_speed,
            qdd_ref=none, q=columns["q"], qd=columns["qd"], tau=reported, tau_demand=reported,
            saturated=np.zeros(none.shape, dtype=np.bool_), loop_gap=np.zeros(len(rows)),
            arrays={
                "stream_time": columns["time"], "expected_torque": expected,
                "residual_torque": reported - expected, "friction_open": columns["friction_open"],
                "beyond_friction": columns["beyond"],
                **{
                    f"second_{name}": np.array([getattr(second, name) for second in self._seconds])
                    for name in Second._fields
                },
            },
        )  # fmt: skip
