"""A robot's stream, heard on the wire and kept as a log, to be drawn, exported, and identified from.

    with Recording(robot, duration=20.0) as recording:
        recording.run()
    log = recording.stream.log()

The messages may be passed on to the robot's client meanwhile.

A place in the log is a number of the robot, and the time between two is measured over all of them, for a
cycle that is called 4 ms takes 4.032 ms.  Lost messages are filled, angles by a cubic spline through those
that came, torques linearly; too many of them, and there is no log.

`q` is what was measured, `q_ref` what was planned, as they were told; their speeds, and the acceleration
that was planned, are central differences behind the filter of positions of `twin/egm/mirror/expectation.py`,
the motion going on beyond its ends as it was before, turned by half a turn.  `tau` is the reported torque,
taken between two messages by its age; NaN where none was.  A period has four steps of an engine, in name, so
that nobody takes one for an engine's step.
"""

import numpy as np

from twin.arrays import Floats
from twin.egm.mirror.expectation import HALF_A_CYCLE, Smoothing, age
from twin.egm.mirror.relay import LISTEN, WAIT, Listener
from twin.egm.wire.messages import RobotMessage
from twin.egm.wire.stream import LONGEST_GAP, Counts, StreamClock, StreamOrder
from twin.egm.wire.values import require_turning_joints
from twin.errors import EgmError
from twin.logs.log import Log
from twin.robot.robot import Robot

LONGEST = 3600.0
"""In [s]: the longest stream that is recorded, 900,000 messages."""

MOST = 1_000_000
"""Messages that are kept, at most."""

MOST_LOST = 0.05
"""The share of messages that may be lost."""

FEWEST = 10
BLOCK = 10_000
STEPS = 4


class StreamLog:
    """Keeps the messages of a stream.

    Attributes:
        ended: why no more are taken, a sentence; empty as long as they are.
        torques: whether any were reported.

    Args:
        robot: that sends.
        duration: of the robot's time, after which no more are taken, in [s].
        torque_age: how much older reported torques are than the angles beside them, in cycles, 0 to 1.

    Raises:
        EgmError: the duration is not above 0, or beyond `LONGEST`, or the robot has a sliding joint.
    """

    def __init__(self, robot: Robot, duration: float = LONGEST, torque_age: float = HALF_A_CYCLE) -> None:
        require_turning_joints(robot)
        if not 0 < duration <= LONGEST:
            raise EgmError(f"expected a duration above 0 s and up to {LONGEST:g} s, got {duration:g} s")
        self._torque_age = age(torque_age)
        self.robot, self.ended, self._duration = robot, "", duration
        self._order, self._clock = StreamOrder(), StreamClock()
        self._places: list[int] = []
        self._blocks: list[Floats] = []  # of angles, planned angles, torques
        self.torques = self.broke_off = False

    @property
    def counts(self) -> Counts:
        """Counts of all messages so far."""
        return self._order.counts

    def take(self, message: RobotMessage) -> None:
        """Keep a message, if it is new and the stream has not ended.

        Raises:
            EgmError: it is of another number of joints.
        """
        n = self.robot.n
        if len(message.q) != n:
            raise EgmError(
                f"the robot on the wire has {len(message.q)} joints, {self.robot.name!r} has {n}: name the "
                "robot that sends"
            )
        if self.ended:
            return
        step = self._order.step(message)
        if step is None:
            return
        if step == 0 and self._places:
            self.ended, self.broke_off = "the robot began anew, and a log holds one stream", True
            return
        if self._order.place >= MOST:
            self.ended = f"more than {MOST} messages are not kept"
            return
        missing = (self._order.place - self._places[-1]) * self._clock.period if self._places else 0.0
        if missing > LONGEST_GAP:
            self.ended = f"nothing was heard for {missing:.3g} s, and a log fills {LONGEST_GAP:g} s at most"
            self.broke_off = True
            return
        self._store(message)

    def _store(self, message: RobotMessage) -> None:
        """Store a message, in blocks: a list of arrays takes several times the memory."""
        time = self._clock.seen(self._order.place, message)
        if len(self._places) % BLOCK == 0:
            self._blocks.append(np.empty((BLOCK, 3, self.robot.n)))
        row = self._blocks[-1][len(self._places) % BLOCK]
        row[0], row[1] = message.q, message.q_planned
        row[2] = np.nan if message.tau is None else message.tau
        self._places.append(self._order.place)
        self.torques |= message.tau is not None
        if time >= self._duration:
            self.ended = f"{self._duration:g} s are over"

    def log(self) -> Log:
        """The stream as a log.

        Its own arrays are `filled` (N,), true where a message was lost, and `stream` (4,): messages, lost,
        doubled and out of order.

        Raises:
            EgmError: too few messages came, or too many were lost.
        """
        count = len(self._places)
        if count < FEWEST:
            raise EgmError(f"expected at least {FEWEST} messages of a robot to log, got {count}")
        places = np.array(self._places)
        N = int(places[-1]) + 1
        if not N - count <= MOST_LOST * N:
            raise EgmError(
                f"{N - count} of {N} messages were lost: a log is made where it is at most {MOST_LOST:.0%}"
            )
        told = np.concatenate(self._blocks)[:count]
        period = self._clock.measure()
        q, q_ref, tau = (filled(places, told[:, part], N, smooth=part < 2) for part in range(3))
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
    """Values (m, n) at some of N places, at all of them: by a cubic spline if smooth, else linearly."""
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
    """Speeds and accelerations (N, n) of positions, filtered."""
    weights = Smoothing(period).motion
    reach = len(weights) // 2
    before = 2.0 * q[0] - q[np.minimum(np.arange(reach, 0, -1), len(q) - 1)]
    after = 2.0 * q[-1] - q[np.maximum(np.arange(len(q) - 2, len(q) - 2 - reach, -1), 0)]
    padded = np.concatenate([before, q, after])
    of_one, of_two = (
        np.stack([np.correlate(column, weights[:, k], "valid") for column in padded.T], axis=1)
        for k in (1, 2)
    )
    return of_one / period, of_two / period**2


class Recording(Listener):
    """Records a robot, and passes on what it says.

    Attributes:
        stream: what was recorded.
        ended: why it ended, where the stream itself did not.

    Args:
        robot: that sends.
        listen, forward, answered_at, wait: see `Listener`.
        duration: of the robot's time, in [s]; by default until it is told to stop, an hour at most.
        torque_age: how much older reported torques are than the angles beside them, in cycles, 0 to 1.

    Raises:
        EgmError: a time that cannot be; on entering, an address that does not exist or is in use.
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
        """Have `run` end, from any thread."""
        super().stop()
        self.ended = "told to stop"

    def run(self) -> None:
        """Record until the stream ends, or `stop`.

        A robot that is guided through here is passed on, too, when its stream has broken off.

        Raises:
            EgmError: no robot was heard in time, or it has other joints.
        """
        for message, _ in self.messages(self.stream.counts, self._until_silent):
            self.stream.take(message)
            if self.stream.ended and not (self._guided and self.stream.broke_off):
                return
        self.ended = self.ended or "the robot fell silent"
