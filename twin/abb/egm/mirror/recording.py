"""Recording of a robot's message stream as a log for plots, export and identification.

    with Recording(robot, duration=20.0) as recording:
        recording.run()
    log = recording.stream.log()

The recording can forward the messages to the robot's client at the same time.

Each sample of the log has the place of a sequence number.  The sampling period is measured over all messages,
because the nominal cycle of 4 ms is 4.032 ms on a real robot.  Lost messages are filled: angles by a cubic
spline through the received ones, torques linearly.  With too many lost messages no log is made.

`q` is the measured position, `q_ref` the planned one, both as received.  Speeds and the planned acceleration
are central differences of positions filtered as in `egm/mirror/expectation.py`.  Beyond its ends the
motion is extended by point reflection.  `tau` is the reported torque, interpolated between two messages
according to its age; NaN if none was reported.  The log states four engine steps per period, so that a sample
does not count as an engine step.
"""

import numpy as np

from twin.abb.egm.mirror.expectation import HALF_A_CYCLE, Smoothing, checked_torque_age
from twin.abb.egm.mirror.relay import LISTEN, WAIT, Listener
from twin.abb.egm.wire.messages import RobotMessage
from twin.abb.egm.wire.stream import LONGEST_GAP, StreamClock, StreamCounts, StreamOrder
from twin.abb.egm.wire.values import require_joints, require_turning_joints
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.logs.log import Log
from twin.physics.robot.robot import Robot

LONGEST = 3600.0
"""Longest stream that is recorded, in [s]: 900,000 messages."""

MAX_MESSAGES = 1_000_000
"""Largest number of recorded messages."""

MAX_LOST_SHARE = 0.05
"""Largest share of lost messages."""

MIN_MESSAGES = 10
BLOCK = 10_000
STEPS = 4


class StreamLog:
    """Recorder of a message stream.

    Attributes:
        ended: reason for the end of the recording; empty while it continues.
        torques: whether the robot has reported torques.

    Args:
        robot: model of the sending robot.
        duration: duration of the recording in the robot's time, in [s].
        torque_age: age of reported torques relative to the angles, in cycles, 0 to 1.

    Raises:
        EgmError: the duration is not positive or exceeds `LONGEST`, or the robot has a prismatic joint.
    """

    def __init__(self, robot: Robot, duration: float = LONGEST, torque_age: float = HALF_A_CYCLE) -> None:
        require_turning_joints(robot)
        if not 0 < duration <= LONGEST:
            raise EgmError(f"expected a duration above 0 s and up to {LONGEST:g} s, got {duration:g} s")
        self._torque_age = checked_torque_age(torque_age)
        self.robot, self.ended, self._duration = robot, "", duration
        self._order, self._clock = StreamOrder(), StreamClock()
        self._places: list[int] = []
        self._blocks: list[Floats] = []  # (BLOCK, 3, n): measured angles, planned angles, torques
        self.torques = self.broke_off = False

    @property
    def counts(self) -> StreamCounts:
        """Counts of all messages so far."""
        return self._order.counts

    def take(self, message: RobotMessage) -> None:
        """Record a message if it is new and the recording has not ended.

        Raises:
            EgmError: the number of joints differs.
        """
        require_joints(self.robot, len(message.q))
        if self.ended:
            return
        step = self._order.step(message)
        if step is None:
            return
        if step == 0 and self._places:
            self.ended, self.broke_off = "the robot restarted, and a log contains only one stream", True
            return
        if self._order.place >= MAX_MESSAGES:
            self.ended = f"the log has reached its limit of {MAX_MESSAGES} messages"
            return
        missing = (self._order.place - self._places[-1]) * self._clock.period if self._places else 0.0
        if missing > LONGEST_GAP:
            self.ended = f"no messages for {missing:.3g} s; a log fills gaps of at most {LONGEST_GAP:g} s"
            self.broke_off = True
            return
        self._store(message)

    def _store(self, message: RobotMessage) -> None:
        """Store a message in blocks, which need less memory than a list of arrays."""
        time = self._clock.seen(self._order.place, message)
        if len(self._places) % BLOCK == 0:
            self._blocks.append(np.empty((BLOCK, 3, self.robot.n)))
        row = self._blocks[-1][len(self._places) % BLOCK]
        row[0], row[1] = message.q, message.q_planned
        row[2] = np.nan if message.tau is None else message.tau
        self._places.append(self._order.place)
        self.torques |= message.tau is not None
        if time >= self._duration:
            self.ended = f"the duration of {self._duration:g} s is complete"

    def log(self) -> Log:
        """Return the stream as a log.

        Additional arrays are `filled` (N,), True for lost messages, and `stream` (4,): numbers of used, lost,
        duplicate and reordered messages.

        Raises:
            EgmError: too few messages arrived, or too many were lost.
        """
        count = len(self._places)
        if count < MIN_MESSAGES:
            raise EgmError(f"expected at least {MIN_MESSAGES} robot messages for a log, got {count}")
        places = np.array(self._places)
        N = int(places[-1]) + 1
        if not N - count <= MAX_LOST_SHARE * N:
            raise EgmError(
                f"{N - count} of {N} messages were lost: a log allows a loss of at most {MAX_LOST_SHARE:.0%}"
            )
        received = np.concatenate(self._blocks)[:count]
        period = self._clock.measure()
        q, q_ref, tau = (filled(places, received[:, part], N, smooth=part < 2) for part in range(3))
        tau[:-1] = (1.0 - self._torque_age) * tau[:-1] + self._torque_age * tau[1:]
        qd, _ = rates(q, period)
        qd_ref, qdd_ref = rates(q_ref, period)
        missing = np.ones(N, dtype=np.bool_)
        missing[places] = False
        counts = self.counts
        return Log(
            robot=self.robot, controller="EGM stream", time_step=period / STEPS, steps_per_period=STEPS,
            t=period * np.arange(N), q_ref=q_ref, qd_ref=qd_ref, qdd_ref=qdd_ref, q=q, qd=qd, tau=tau,
            tau_demand=tau, saturated=np.zeros(q.shape, dtype=np.bool_), loop_gap=np.zeros(N),
            arrays={
                "filled": missing,
                "stream": np.array([counts.messages, counts.lost, counts.doubled, counts.out_of_order]),
            },
        )  # fmt: skip


def filled(places: np.ndarray, values: Floats, N: int, *, smooth: bool) -> Floats:
    """Interpolate values (m, n) at m of N places to all N places.

    Args:
        places: (m,) places of the values, increasing.
        values: (m, n) values.
        N: number of places.
        smooth: whether to interpolate by a cubic spline instead of linearly.
    """
    if len(places) == N:
        return values.copy()
    everywhere = np.arange(N)
    if smooth:
        from scipy.interpolate import CubicSpline

        found: Floats = CubicSpline(places, values, axis=0)(everywhere)
    else:
        found = np.stack([np.interp(everywhere, places, column) for column in values.T], axis=1)
    found[places] = values
    return found


def rates(q: Floats, period: float) -> tuple[Floats, Floats]:
    """Return filtered speeds and accelerations (N, n) of positions q (N, n), with a period in [s]."""
    weights = Smoothing(period).motion
    reach = len(weights) // 2
    before = 2.0 * q[0] - q[np.minimum(np.arange(reach, 0, -1), len(q) - 1)]
    after = 2.0 * q[-1] - q[np.maximum(np.arange(len(q) - 2, len(q) - 2 - reach, -1), 0)]
    padded = np.concatenate([before, q, after])
    first, second = (
        np.stack([np.correlate(column, weights[:, k], "valid") for column in padded.T], axis=1)
        for k in (1, 2)
    )
    return first / period, second / period**2


class Recording(Listener):
    """Recording of a robot from the network, with optional forwarding to its client.

    Attributes:
        stream: recorded stream.
        ended: reason for the end, if it is not `stream.ended`.

    Args:
        robot: model of the sending robot.
        listen, forward, answered_at, wait: arguments of `Listener`.
        duration: duration in the robot's time, in [s]; by default until `stop`, at most an hour.
        torque_age: age of reported torques relative to the angles, in cycles, 0 to 1.

    Raises:
        EgmError: a time is invalid; on entering the `with` block, an address does not exist or is in use.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        listen: tuple[str, int] = LISTEN,
        forward: tuple[str, int] | None = None,
        answered_at: tuple[str, int] | None = None,
        wait: float = WAIT,
        duration: float | None = None,
        torque_age: float = HALF_A_CYCLE,
    ) -> None:
        self.stream = StreamLog(robot, LONGEST if duration is None else duration, torque_age)
        self.ended = ""
        self._until_silent, self._guided = duration is not None, forward is not None
        super().__init__(listen, forward, answered_at, wait)

    def stop(self) -> None:
        """Request the end of `run`, from any thread."""
        super().stop()
        self.ended = "a stop was requested"

    def run(self) -> None:
        """Record until the stream ends or `stop` is called.

        If the messages are forwarded, forwarding continues after an interruption of the stream.

        Raises:
            EgmError: no robot sent in time, or its number of joints differs.
        """
        for message, _ in self.messages(self.stream.counts, self._until_silent):
            self.stream.take(message)
            if self.stream.ended and not (self._guided and self.stream.broke_off):
                return
        self.ended = self.ended or "the robot stopped sending"
