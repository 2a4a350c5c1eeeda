"""What a mirror tells: a report a second, alarms, and the last half hour as a log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.mirror.expectation import Row
from twin.egm.mirror.payload_estimate import ExplainingPayload
from twin.egm.wire.stream import Counts, Lateness
from twin.errors import EgmError
from twin.logs.log import Log
from twin.robot.robot import Robot


class Alarm(NamedTuple):
    """A torque that was further from the expected one than it may be.

    Attributes:
        t: when, in [s] of the robot's time since its stream began.
        joint: its number, from 1.
        residual: reported less expected torque, in [N m].
        beyond: how much of it friction at rest cannot be, in [N m].
        limit: for that, in [N m].
    """

    t: float
    joint: int
    residual: float
    beyond: float
    limit: float


@dataclass(frozen=True, eq=False)
class Report:
    """A report on the second before.

    Attributes:
        t: of the newest instant that is told of, in [s] of the robot's time since its stream began.
        q: (n,) joint angles then, in [rad].
        expected: (n,) torques that the model expected then of the motors, at the joints, in [N m].
        reported: (n,) those that the robot reported; `None` where it did not.
        residual_rms: (n,) of reported less expected torques in that second, in [N m].
        residual_peak: (n,) the furthest from 0, with its sign.
        friction_open: (n,) how far friction at rest leaves the expected torques open then, in [N m].
        payload: that would explain the residuals of the last half minute; `None` without reported torques,
            and as long as no joint that rubs has moved.
        alarms: that began in that second.
        lateness: of the messages; `None` where their arrival is not known.
        counts: of all messages so far.
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
    lateness: Lateness | None
    counts: Counts

    @property
    def residual(self) -> Floats | None:
        """Reported less expected torques (n,) at `t`, in [N m]; `None` where they were not reported."""
        return None if self.reported is None else self.reported - self.expected


def alarm_limits(robot: Robot, alarm: float | Floats | str | None) -> Floats:
    """The limits (n,) of the residuals, in [N m]; infinite where there are none.

    Args:
        robot: the model.
        alarm: in [N m], for every joint or one a joint; or a text as `20`, `30,40,30,10,10,5`, or `15%` of
            what each drive gives.

    Raises:
        EgmError: it is not that.
    """
    limits: object = alarm
    wanted = f"expected a limit above 0 N m for the alarm, or {robot.n} of them, or a share as 15%"
    if alarm is None:
        return np.full(robot.n, np.inf)
    try:
        if isinstance(alarm, str) and alarm.endswith("%"):
            limits = float(alarm[:-1]) / 100.0 * robot.drive_torque_max
        elif isinstance(alarm, str):
            limits = [float(word) for word in alarm.split(",")]
        values = np.array(limits, dtype=np.float64)
    except (TypeError, ValueError):
        raise EgmError(f"{wanted}, got {alarm!r}") from None
    if values.shape not in ((), (1,), (robot.n,)) or not np.all(values > 0):
        raise EgmError(f"{wanted}, got {alarm!r}")
    return np.broadcast_to(values, (robot.n,)).copy()


def rms_and_peak(residuals: Floats) -> tuple[Floats, Floats]:
    """Root mean square (n,) of residuals (N, n), and the furthest from 0 (n,) with its sign.

    Of the rows in which torques were reported, if there are any: they may have begun in between.
    """
    told = residuals[np.all(np.isfinite(residuals), axis=1)]
    values = told if len(told) else residuals
    furthest = np.argmax(np.abs(values), axis=0)[None]
    return np.sqrt(np.mean(values**2, axis=0)), np.take_along_axis(values, furthest, axis=0)[0]


BLOCK = 3000
"""Rows that are stored together, a minute of them."""

BLOCKS = 30
"""That are kept, and the one that is being filled."""


SECONDS = BLOCKS * 60
"""That are kept."""


class Second(NamedTuple):
    """The figures of a second that a log shows.

    Attributes:
        t: at its end, in [s] of the robot's time.
        payload: (10,) that would explain the residuals, see `ExplainingPayload`; NaN where there is none.
        deviation: (10,) of it.
        late: the largest lateness, in [s]; NaN where it is not known.
        lost: messages so far.
        alarms: in it.
    """

    t: float
    payload: np.ndarray
    deviation: np.ndarray
    late: float
    lost: int
    alarms: int

    @classmethod
    def of(cls, report: Report) -> Second:
        """Take the figures of a report."""
        payload, none = report.payload, np.full(10, np.nan)
        values, deviations = (none, none) if payload is None else (payload.values, payload.deviations)
        late = np.nan if report.lateness is None else report.lateness.largest
        return cls(report.t, values, deviations, late, report.counts.lost, len(report.alarms))


class History:
    """Rows of a stream, the oldest forgotten.

    Args:
        robot: the model.
        period: between two rows, in [s].
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
        """Add what was told of a second."""
        self._seconds.append(second)

    def take(self, time: float, row: Row, beyond: np.ndarray) -> None:
        """Add a row, and how far its residuals are beyond what friction at rest can be."""
        if self._end == BLOCK:
            self._blocks.append(np.zeros(BLOCK, self._type))
            self._end = 0
        self._blocks[-1][self._end] = (
            time, row.q, row.qd, row.q_planned, row.expected, row.reported, row.friction_open, beyond,
        )  # fmt: skip
        self._end += 1

    def log(self) -> Log:
        """The rows as a log.

        `tau` is the reported torque, and the model's is in the array `expected_torque`; all is filtered as
        the mirror does.  `t` counts rows; where the stream broke off, `stream_time`, the robot's own, jumps.
        What was told every second is in `second_t`, `second_payload` and so on, see `Second`.

        Raises:
            EgmError: there are no rows yet.
        """
        if not self._blocks:
            raise EgmError("the mirror has nothing to log: the stream was shorter than its filters")
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
