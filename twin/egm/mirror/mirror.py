"""A twin beside a robot: it follows the robot's own messages, and tells how far the arm is from the model.

    with Mirror(robot, alarm=30.0) as mirror:
        for report in mirror.reports(duration=20.0):
            print(report.t, report.residual_rms, report.payload)

The robot sends to where the mirror listens; with `forward` the mirror passes its messages on to the real
client and the answers back.  Messages that came in another way are given to `take`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from twin.arrays import Floats
from twin.egm.mirror.expectation import HALF_A_CYCLE, Expectation, Row, age
from twin.egm.mirror.payload_estimate import HORIZON, RunningPayload
from twin.egm.mirror.relay import LISTEN, WAIT, Listener, is_message
from twin.egm.mirror.report import Alarm, History, Report, Second, alarm_limits, rms_and_peak
from twin.egm.wire.messages import RobotMessage
from twin.egm.wire.stream import LONGEST_GAP, Counts, LatenessMeter, StreamClock, StreamOrder, between
from twin.egm.wire.values import require_turning_joints
from twin.errors import EgmError
from twin.logs.log import Log
from twin.robot.robot import Robot

MEASURED_IN = 0.5
"""The period is measured by the first messages, of so long a time, in [s]."""

FEWEST, MOST = 25, 250
"""So many of them."""

SLOWEST = 0.1
"""The longest period of a stream that is followed, in [s]."""

ALARM_ENDS = 0.8
"""An alarm ends below this share of its limit."""

MOST_ROWS = 1000
"""That wait for a report, whatever the robot's clock says."""

MOST_ALARMS = 1000
"""That are kept, the first ones."""


class Mirror(Listener):
    """The twin of a robot that somebody else guides.

    Attributes:
        alarms: the first `MOST_ALARMS` of them.
        raised: how many there were.

    Args:
        robot: the model, with the drives and the payload that it is to have.
        listen, forward, answered_at, wait: see `Listener`.
        alarm: limit of reported less expected torque, what friction at rest can be taken off, in [N m], one
            or one a joint; or a text, see `twin.egm.mirror.report.alarm_limits`.
        torque_age: how much older reported torques are than the angles beside them, in cycles, 0 to 1: a half
            of means over the cycle before, as our own robots send them.
        horizon: what is as old, in [s], counts e times less for the payload.
        tell: called with every alarm, as soon as it is raised.

    Raises:
        EgmError: the alarm is no limit, or the robot has a sliding joint.
        RobotError: the masses of the robot's links are not known.
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
        tell: Callable[[Alarm], object] | None = None,
    ) -> None:
        super().__init__(listen, forward, answered_at, wait)
        robot.require_inertia()
        require_turning_joints(robot)
        if not 0 < horizon < np.inf:
            raise EgmError(f"expected a horizon above 0 s and finite, got {horizon:g} s")
        self.robot, self.limits, self._horizon = robot, alarm_limits(robot, alarm), horizon
        self.alarms: list[Alarm] = []
        self.raised, self._tell, self._torque_age = 0, tell, age(torque_age)
        self._order, self._clock, self._lateness = StreamOrder(), StreamClock(), LatenessMeter()
        self._early: list[tuple[int, RobotMessage, float]] = []
        self._expectation: Expectation | None = None
        self._last: tuple[int, RobotMessage] | None = None
        # The robot's time, in [s]: in streams before this one, in all of them, at the last report.
        self._last_time = self._before = self._newest = self._reported_at = 0.0
        self._rows: list[tuple[float, Row]] = []
        self._raised: list[Alarm] = []
        self._alarmed = np.zeros(robot.n, dtype=np.bool_)

    @property
    def counts(self) -> Counts:
        """Counts of all messages so far."""
        return self._order.counts

    @property
    def lag(self) -> float | None:
        """The age of what is told, in [s]; `None` as long as the period of the stream is not known."""
        return None if self._expectation is None else self._expectation.smoothing.lag

    @property
    def period(self) -> float:
        """The robot's cycle, in [s]."""
        return self._clock.period

    def take(self, message: RobotMessage, arrival: float | None = None) -> Report | None:
        """Follow one message; a report where a second of the robot's time is over.

        Args:
            message: of the robot.
            arrival: when it came, by a clock of our own, in [s].

        Raises:
            EgmError: it is of another number of joints, or the stream is slower than `SLOWEST`.
        """
        if len(message.q) != self.robot.n:
            raise EgmError(
                f"the robot on the wire has {len(message.q)} joints, the model {self.robot.name!r} "
                f"{self.robot.n}: name the robot that sends"
            )
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
        soon = self._newest < self._reported_at + 1.0 and len(self._rows) < MOST_ROWS
        if self._expectation is None or soon or not self._rows:
            return None
        self._reported_at += np.floor(self._newest - self._reported_at)
        self._expectation.period = self._clock.measure()
        return self._report()

    def _begin(self) -> None:
        """A stream begins, the first or that of a robot that was started anew."""
        if self._last is not None:
            self._before = self._newest
        self._clock.begin()
        self._lateness.begin()
        self._early, self._last = [], None
        if self._expectation is not None:
            self._expectation.begin()

    def _measure(self, message: RobotMessage, time: float) -> None:
        """Measure the period by the first messages, and then follow those."""
        self._early.append((self._order.place, message, time))
        count = len(self._early)
        if count < FEWEST or (time < MEASURED_IN and count < MOST):
            return
        period = self._clock.measure()
        if not period <= SLOWEST:
            raise EgmError(
                f"the robot sends every {period:g} s: to follow it, expected a message every {SLOWEST:g} s "
                "or more often (SampleRate)"
            )
        made = Expectation(self.robot, period, self._torque_age)
        rate = 1.0 / (made.smoothing.step * period)
        self._expectation = made
        self._payload = RunningPayload(self.robot, rate, made.smoothing.oversampling, self._horizon)
        self._history = History(self.robot, 1.0 / rate)
        for early in self._early:
            self._follow(*early)
        self._early = []

    def _follow(self, place: int, message: RobotMessage, time: float) -> None:
        """Give the model a message, and before it those that were lost, where they are few."""
        assert self._expectation is not None
        if self._last is not None:
            before, last = self._last
            gap = place - before
            if max(gap * self.period, time - self._last_time) > LONGEST_GAP:
                self._expectation.begin()
            else:
                for lost in range(1, gap):
                    self._sample(before + lost, *between(last, message, lost / gap))
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
        """Raise an alarm for each joint that goes above its limit; it ends a good deal below."""
        # Where nothing was reported, beyond is NaN, and above nothing.
        above = beyond > np.where(self._alarmed, ALARM_ENDS, 1.0) * self.limits
        for joint in np.flatnonzero(above & ~self._alarmed).tolist():
            alarm = Alarm(
                time, joint + 1, float(row.residual[joint]), float(beyond[joint]), float(self.limits[joint])
            )
            self._raised.append(alarm)
            self.raised += 1
            if len(self.alarms) < MOST_ALARMS:
                self.alarms.append(alarm)
            if self._tell is not None:
                self._tell(alarm)
        self._alarmed = above

    def _report(self) -> Report:
        rms, peak = rms_and_peak(np.array([row.residual for _, row in self._rows]))
        time, newest = self._rows[-1]
        reported = newest.reported if np.all(np.isfinite(newest.reported)) else None
        report = Report(
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
        """The last half hour as a log, see `twin.egm.mirror.report.History.log`.

        Raises:
            EgmError: there is nothing yet.
        """
        if self._expectation is None:
            raise EgmError("the mirror has nothing to log: the stream was shorter than its filters")
        return self._history.log()

    def __enter__(self) -> Mirror:
        self._rehearse()
        return super().__enter__()

    def reports(self, duration: float | None = None) -> Iterator[Report]:
        """A report for every second of the robot's time, until `stop`.

        Args:
            duration: of the robot's time after which it ends, in [s]; it ends as well when the robot was
                silent for as long as it was waited for.

        Raises:
            EgmError: no robot was heard in time, or it has other joints, or sends too slowly.
            ValueError: not within the `with` block.
        """
        for message, arrival in self.messages(self.counts, duration is not None):
            report = self.take(message, arrival)
            if report is not None:
                yield report
            if duration is not None and self._newest >= duration:
                return

    def _rehearse(self) -> None:
        """Use once whatever is compiled or loaded at its first use, before a robot waits for it."""
        expectation, zero = Expectation(self.robot, 0.01), np.zeros(self.robot.n)
        payload = RunningPayload(self.robot, 1.0, 1.0)
        for place in range(200):
            row = expectation.take(place, zero, zero, zero)
            if row is not None:
                payload.take(row)
        payload.estimate()
        is_message(b"")
