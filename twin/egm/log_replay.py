"""A log sent to a robot as a client would: its references, at the times of the robot.

First the robot is led from where it is to where the log begins, slowly; then it gets positions and speeds of
the log for the time of each of its messages; then the last position, until it is there.

A robot ends its instruction once it was within the convergence window for CondTime (1 s by default), and one
that follows a log closely is within it all the time: give the robot a CondTime that is longer than the log.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.client import EgmClient
from twin.egm.wire.messages import COUNT, MotionState, RobotMessage
from twin.errors import EgmError
from twin.logs.log import Log
from twin.trajectories.joint_trajectories import Trajectory
from twin.trajectories.limits import quintic

APPROACH = float(np.radians(10.0))
"""Speed of the approach, in [rad/s]."""

LEAP = 2.0
"""In [s] of the robot's time from one message to the next: more is no pause, but another time."""

ODD = 100
"""Messages that are passed over, one after another, before it is said."""

AT_START = float(np.radians(0.01))
"""So near to the first position every joint has to be commanded before the log begins, in [rad]."""

GONE = 1.0
"""At the end of a log a robot that is silent for so long, in [s], has gone, as it may."""


class Replayed(NamedTuple):
    """The result of a log that was sent.

    Attributes:
        messages: answers that were sent.
        duration: of the robot, from the beginning of the log to its end, in [s].
        deviation: (n,) largest distance between what the log has and what the robot commanded at the same
            time, while the log was sent, in [rad].
        trouble: why it ended before the log was through and the robot there; empty if it did not.
    """

    messages: int
    duration: float
    deviation: Floats
    trouble: str


@dataclass(frozen=True, eq=False)
class Recorded:
    """References of a log, linear between its samples; it holds the last.

    Attributes:
        t: (N,) times, from 0 on, in [s].
        q, qd: (N, n) positions and speeds, in [rad], [rad/s].
    """

    t: Floats
    q: Floats
    qd: Floats

    @property
    def duration(self) -> float:
        """In [s]."""
        return float(self.t[-1])

    def __call__(self, t: float, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd), each (n,), at a time; of the acceleration it knows nothing (0)."""
        none = np.zeros(self.q.shape[1])
        if t >= self.t[-1]:
            return self.q[-1], none, none
        after = int(np.searchsorted(self.t, t, side="right"))
        share = (t - self.t[after - 1]) / (self.t[after] - self.t[after - 1])
        q, qd = (part[after - 1] + share * (part[after] - part[after - 1]) for part in (self.q, self.qd))
        return q, qd, none


def replay(
    client: EgmClient,
    log: Log,
    *,
    approach: float = APPROACH,
    patience: float = 30.0,
    hold: float = np.inf,
    wait: float | None = None,
) -> Replayed:
    """Send the references of a log to the robot whose messages come to a client.

    Every message is answered, so that it works in virtual time, too.

    Args:
        client: that the robot sends to.
        log: of a robot with as many joints.
        approach: speed of the fastest joint on the way to the first position, in [rad/s].
        patience: how long to wait for the robot at the start and at the end of the log, in [s] of its time.
        hold: how long to go on at the end if the robot does not end its instruction, in [s] of its time; by
            default until it does: one that is left alone before stops with an error after CommTimeout.
        wait: for the robot's first message, in [s]; by default as long as the client waits for any.

    Raises:
        EgmError: no robot, or one with another number of joints, or a log without numbers.
        ValueError: a speed or a time that is not positive.
    """
    if not (0.0 < approach < np.inf and 0.0 < patience < np.inf and hold >= 0.0):
        raise ValueError(
            "expected approach and patience above 0, and hold not below, "
            f"got {approach} rad/s, {patience} s and {hold} s"
        )
    if not (np.isfinite(log.q_ref).all() and np.isfinite(log.qd_ref).all()):
        raise EgmError("a log whose references are not finite cannot be sent")
    message = client.receive(wait)
    n = log.q_ref.shape[1]
    if len(message.q) != n:
        raise EgmError(f"the log is of a robot with {n} joints, the robot that sends has {len(message.q)}")
    recorded = Recorded(log.t - log.t[0], log.q_ref, log.qd_ref)
    sender = _Sender(client, message, patience)
    sender.wait_until_guided()
    sender.follow(quintic(sender.message.q_planned, recorded.q[0], qd_max=approach), "the approach")
    begun = not sender.trouble
    deviation = sender.follow(recorded, "the log")
    duration, trouble = sender.elapsed if begun else 0.0, sender.trouble
    if not trouble:
        sender.hold(recorded.q[-1], hold)
    return Replayed(sender.messages, duration, deviation, trouble)


class _Sender:
    """Answers a robot, message by message, until something ends it."""

    def __init__(self, client: EgmClient, message: RobotMessage, patience: float) -> None:
        self.client, self.message, self.patience = client, message, patience
        self.messages = 0
        self.elapsed = 0.0
        self.trouble = ""

    def answer(self, q: Floats, qd: Floats | None = None, *, wait: float | None = None) -> None:
        """Answer the last message, and wait for the next."""
        self.client.send_joints(q, qd)
        self.messages += 1
        try:
            self.message = self._next(wait)
        except EgmError as error:
            self.trouble = str(error)

    def _next(self, wait: float | None) -> RobotMessage:
        """The next message of the robot; older ones, and what is none, are passed over.

        Raises:
            EgmError: none came in time, or its time is not that of the robot so far.
        """
        for _ in range(ODD):
            message = self.client.receive(wait)
            if len(message.q) != len(self.message.q):
                continue
            step = (message.tm - self.message.tm) % COUNT
            if step < COUNT // 2:
                if step > 1000.0 * LEAP:
                    raise EgmError(f"the robot's time leapt by {step / 1000.0:g} s: is it another one?")
                return message
        raise EgmError(f"{ODD} messages in a row were older than the one before, or of another robot")

    def wait_until_guided(self) -> None:
        """Let the robot stay where it is until it is guided, which it may not be before it is answered."""
        q, begun = self.message.q_planned, self.message.tm
        while not self.trouble and not _guided(self.message):
            self.answer(q)
            if _since(begun, self.message) > self.patience:
                self.trouble = f"the robot is not guided after {self.patience:g} s"

    def hold(self, q: Floats, duration: float) -> None:
        """Answer the last message, and more for some time, until the robot ends its instruction."""
        begun = self.message.tm
        while _guided(self.message) and _since(begun, self.message) < duration and not self.trouble:
            self.answer(q, wait=GONE)
        if not self.trouble:
            self.client.send_joints(q)
            self.messages += 1

    def follow(self, motion: Trajectory | Recorded, name: str) -> Floats:
        """Send a motion until it is through and the robot is there; return how far it was from it (n,).

        The message that tells so is left to be answered.
        """
        far = np.zeros(len(self.message.q))
        begun, end = self.message.tm, motion(motion.duration)[0]
        while not self.trouble:
            message, self.elapsed = self.message, _since(begun, self.message)
            q, qd, _ = motion(self.elapsed)
            far = np.maximum(far, np.abs(message.q_planned - q))
            off = np.abs(message.q_planned - end)
            there = message.converged if name == "the log" else bool(np.all(off <= AT_START))
            if self.elapsed >= motion.duration and there and message.state is not MotionState.ERROR:
                break
            if not _guided(message):
                self.trouble = _ended(message, f"{self.elapsed:.3f} s into {name}")
            elif self.elapsed > motion.duration + self.patience:
                joint = int(np.argmax(off))
                self.trouble = (
                    f"{self.patience:g} s after {name} the robot is not there: joint {joint + 1} is "
                    f"{np.degrees(off[joint]):.3g} deg away"
                )
            else:
                self.answer(q, qd)
        return far


def _since(begun: int, message: RobotMessage) -> float:
    """The time of the robot since it was `begun`, in [s]."""
    return (message.tm - begun) % COUNT / 1000.0


def _guided(message: RobotMessage) -> bool:
    """Whether answers move the robot; one that does not tell may be."""
    return message.state in (MotionState.RUNNING, MotionState.UNDEFINED)


def _ended(message: RobotMessage, when: str) -> str:
    """Why a robot is not guided any more."""
    if message.state is MotionState.ERROR:
        return f"the robot stopped with an error {when}"
    return (
        f"the robot ended its guidance {when}: it does so once it was within the convergence window for "
        "CondTime, which has to be longer than the approach and the log"
    )
