"""Twin of a real robot: follow its messages, and report the deviation of its torques from the model.

    with Mirror(robot, alarm=30.0) as mirror:
        for report in mirror.reports(duration=20.0):
            print(report.t, report.residual_rms, report.payload)

The robot sends to the address of the mirror.  With `forward` the mirror forwards the messages to the real
client and returns its answers.  Messages from another source are passed to `take`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from twin.abb.egm.mirror.expectation import (
    HALF_A_CYCLE,
    HORIZON,
    Expectation,
    ExplainingPayload,
    Row,
    RunningPayload,
    checked_torque_age,
)
from twin.abb.egm.mirror.recording import LISTEN, WAIT, Listener, is_message
from twin.abb.egm.wire.encoding import require_joints, require_turning_joints
from twin.abb.egm.wire.messages import (
    LONGEST_GAP,
    RobotMessage,
    StreamClock,
    StreamCounts,
    StreamLateness,
    StreamLatenessMeter,
    StreamOrder,
    interpolate_messages,
)
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
        >>> from twin.abb.egm.mirror.mirror import alarm_limits
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


MEASURING_TIME = 0.5
"""Time from whose messages the period is measured, in [s]."""

MIN_MESSAGES, MAX_MESSAGES = 25, 250
"""Smallest and largest number of messages from which the period is measured."""

LONGEST_PERIOD = 0.1
"""Longest supported period of a stream, in [s]."""

ALARM_ENDS = 0.8
"""Share of the limit below which an alarm ends."""

MAX_ROWS = 1000
"""Number of rows after which a report is made, even if the robot's clock stands still."""

MAX_ALARMS = 1000
"""Largest number of stored alarms; the first ones are stored."""


class Mirror(Listener):
    """Twin of a robot under the guidance of another client.

    Attributes:
        alarms: the first `MAX_ALARMS` alarms.
        raised: number of all alarms.

    Args:
        robot: model with drives and payload.
        listen, forward, answered_at, wait: arguments of `Listener`.
        alarm: limit of the torque difference beyond static friction, in [N m], one for all joints or one per
            joint; or a text, see `twin.egm.mirror.mirror.alarm_limits`.
        torque_age: age of reported torques relative to the angles, in cycles, 0 to 1; 0.5 for means over the
            previous cycle, as `EgmRobot` sends them.
        horizon: memory of the payload estimate, in [s]; the weight of older rows decays by e in this time.
        on_alarm: callback for every alarm when it is raised.

    Raises:
        EgmError: the alarm is no valid limit, or the robot has a prismatic joint.
        RobotError: the link masses of the robot are unknown.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        listen: tuple[str, int] = LISTEN,
        forward: tuple[str, int] | None = None,
        answered_at: tuple[str, int] | None = None,
        alarm: float | Floats | str | None = None,
        wait: float = WAIT,
        torque_age: float = HALF_A_CYCLE,
        horizon: float = HORIZON,
        on_alarm: Callable[[Alarm], object] | None = None,
    ) -> None:
        super().__init__(listen, forward, answered_at, wait)
        robot.require_inertia()
        require_turning_joints(robot)
        if not 0 < horizon < np.inf:
            raise EgmError(f"expected a positive, finite horizon in s, got {horizon:g} s")
        self.robot, self.limits, self._horizon = robot, alarm_limits(robot, alarm), horizon
        self.alarms: list[Alarm] = []
        self.raised, self._on_alarm, self._torque_age = 0, on_alarm, checked_torque_age(torque_age)
        self._order, self._clock, self._lateness = StreamOrder(), StreamClock(), StreamLatenessMeter()
        self._early: list[tuple[int, RobotMessage, float]] = []
        self._expectation: Expectation | None = None
        self._last: tuple[int, RobotMessage] | None = None
        # Times of the robot, in [s]: last message of this stream, duration of previous streams, total, last
        # report.
        self._last_time = self._before = self._newest = self._reported_at = 0.0
        self._rows: list[tuple[float, Row]] = []
        self._raised: list[Alarm] = []
        self._alarmed = np.zeros(robot.n, dtype=np.bool_)

    @property
    def counts(self) -> StreamCounts:
        """Counts of all messages so far."""
        return self._order.counts

    @property
    def lag(self) -> float | None:
        """Age of the reports, in [s]; `None` while the period of the stream is unknown."""
        return None if self._expectation is None else self._expectation.smoothing.lag

    @property
    def period(self) -> float:
        """Cycle of the robot, in [s]."""
        return self._clock.period

    def take(self, message: RobotMessage, arrival: float | None = None) -> MirrorReport | None:
        """Process one message; return a report after each second of the robot's time, else `None`.

        Args:
            message: message of the robot.
            arrival: time of arrival by the local clock, in [s].

        Raises:
            EgmError: the number of joints differs, or the period exceeds `LONGEST_PERIOD`.
        """
        require_joints(self.robot, len(message.q))
        numbers = (message.q, message.q_planned, 0.0 if message.tau is None else message.tau)
        if not all(np.all(np.isfinite(part)) for part in numbers):
            self.counts.malformed += 1
            return None
        step = self._order.step(message)
        if step is None:
            return None
        if step == 0:
            self._begin()
        time = self._clock.seen(self._order.place, message)
        if arrival is not None:
            self._lateness.seen(arrival, time)
        if self._expectation is None:
            self._measure(message, time)
        else:
            self._follow(self._order.place, message, time)
        self._newest = self._before + time
        soon = self._newest < self._reported_at + 1.0 and len(self._rows) < MAX_ROWS
        if self._expectation is None or soon or not self._rows:
            return None
        self._reported_at += np.floor(self._newest - self._reported_at)
        self._expectation.period = self._clock.measure()
        return self._report()

    def _begin(self) -> None:
        """Start a stream: the first one, or a new one after a restart of the robot."""
        if self._last is not None:
            self._before = self._newest
        self._clock.begin()
        self._lateness.begin()
        self._early, self._last = [], None
        if self._expectation is not None:
            self._expectation.begin()

    def _measure(self, message: RobotMessage, time: float) -> None:
        """Measure the period from the first messages, then process these messages."""
        self._early.append((self._order.place, message, time))
        count = len(self._early)
        if count < MIN_MESSAGES or (time < MEASURING_TIME and count < MAX_MESSAGES):
            return
        period = self._clock.measure()
        if not period <= LONGEST_PERIOD:
            raise EgmError(
                f"the robot sends every {period:g} s: expected a period of {LONGEST_PERIOD:g} s or less "
                "(SampleRate)"
            )
        expectation = Expectation(self.robot, period, self._torque_age)
        rate = 1.0 / (expectation.smoothing.step * period)
        self._expectation = expectation
        self._payload = RunningPayload(self.robot, rate, expectation.smoothing.oversampling, self._horizon)
        self._history = History(self.robot, 1.0 / rate)
        for early in self._early:
            self._follow(*early)
        self._early = []

    def _follow(self, place: int, message: RobotMessage, time: float) -> None:
        """Pass a message to the model; fill a short gap before it by interpolation."""
        assert self._expectation is not None
        if self._last is not None:
            before, last = self._last
            gap = place - before
            if max(gap * self.period, time - self._last_time) > LONGEST_GAP:
                self._expectation.begin()
            else:
                for lost in range(1, gap):
                    self._sample(before + lost, *interpolate_messages(last, message, lost / gap))
        self._sample(place, message.q, message.q_planned, message.tau)
        self._last, self._last_time = (place, message), time

    def _sample(self, place: int, q: Floats, q_planned: Floats, tau: Floats | None) -> None:
        assert self._expectation is not None
        row = self._expectation.take(place, q, q_planned, tau)
        if row is None:
            return
        self._payload.take(row)
        beyond = np.maximum(np.abs(row.residual) - row.friction_open, 0.0)
        time = self._before + row.place * self.period
        self._rows.append((time, row))
        self._history.take(time, row, beyond)
        self._note_alarms(time, row, beyond)

    def _note_alarms(self, time: float, row: Row, beyond: Floats) -> None:
        """Raise an alarm for each joint above its limit; it ends below `ALARM_ENDS` of the limit."""
        # Without reported torques `beyond` is NaN, and every comparison is False.
        above = beyond > np.where(self._alarmed, ALARM_ENDS, 1.0) * self.limits
        for joint in np.flatnonzero(above & ~self._alarmed).tolist():
            alarm = Alarm(
                time, joint + 1, float(row.residual[joint]), float(beyond[joint]), float(self.limits[joint])
            )
            self._raised.append(alarm)
            self.raised += 1
            if len(self.alarms) < MAX_ALARMS:
                self.alarms.append(alarm)
            if self._on_alarm is not None:
                self._on_alarm(alarm)
        self._alarmed = above

    def _report(self) -> MirrorReport:
        rms, peak = rms_and_peak(np.array([row.residual for _, row in self._rows]))
        time, newest = self._rows[-1]
        reported = newest.reported if np.all(np.isfinite(newest.reported)) else None
        report = MirrorReport(
            time,
            newest.q, newest.expected, reported, rms, peak,
            newest.friction_open, self._payload.estimate(), tuple(self._raised), self._lateness.second(),
            replace(self.counts),
        )  # fmt: skip
        self._rows, self._raised = [], []
        assert self._history is not None
        self._history.second(Second.of(report))
        return report

    def log(self) -> Log:
        """Return the last half hour as a log, see `twin.egm.mirror.mirror.History.log`.

        Raises:
            EgmError: no row is available yet.
        """
        if self._expectation is None:
            raise EgmError("the mirror has no data to log: the stream was shorter than the filters")
        return self._history.log()

    def __enter__(self) -> Mirror:
        self._rehearse()
        return super().__enter__()

    def reports(self, duration: float | None = None) -> Iterator[MirrorReport]:
        """Yield a report for every second of the robot's time, until `stop`.

        Args:
            duration: duration of the robot's time, in [s].  With a duration the reports also end when the
                robot is silent for the time `wait`.

        Raises:
            EgmError: no robot sent in time, its number of joints differs, or it sends too slowly.
            ValueError: the call is outside the `with` block.
        """
        for message, arrival in self.messages(self.counts, duration is not None):
            report = self.take(message, arrival)
            if report is not None:
                yield report
            if duration is not None and self._newest >= duration:
                return

    def _rehearse(self) -> None:
        """Execute once everything that is compiled or loaded at first use, before messages arrive."""
        expectation, zero = Expectation(self.robot, 0.01), np.zeros(self.robot.n)
        payload = RunningPayload(self.robot, 1.0, 1.0)
        for place in range(200):
            row = expectation.take(place, zero, zero, zero)
            if row is not None:
                payload.take(row)
        payload.estimate()
        is_message(b"")
