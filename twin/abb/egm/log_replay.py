"""Replay of a log on a robot: an EGM client that sends the references of the log.

The replay has three parts.  The client first guides the robot slowly from its present position to the first
position of the log.  It then sends positions and speeds of the log at the times of the robot's messages.
Finally it sends the last position until the robot has arrived.

A robot ends its instruction after it was within the convergence window for CondTime (1 s by default).  A
robot that follows a log closely is within this window all the time.  Set CondTime longer than the log.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twin.abb.egm.client import EgmClient
from twin.abb.egm.wire.messages import MODULUS, MotionState, RobotMessage
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.logs.log import Log
from twin.physics.trajectories.joint_trajectories import Trajectory, quintic
from twin.physics.trajectories.sampling import Samples
from twin.studies.learning.learned_input import LearnedInput

APPROACH_SPEED = float(np.radians(10.0))
"""Default speed of the fastest joint during the approach, in [rad/s]."""

MAX_TIME_STEP = 2.0
"""Longest step of the robot's time between two messages, in [s]; a longer step indicates another robot."""

MAX_IGNORED = 100
"""Number of consecutive unusable messages after which the replay fails."""

START_TOLERANCE = float(np.radians(0.01))
"""Largest distance of every commanded joint from the first position when the log begins, in [rad]."""

SILENCE_AT_END = 1.0
"""Silence after the end of the log, in [s], that counts as the end of the robot's instruction."""


class Replayed(NamedTuple):
    """Result of a replay.

    Attributes:
        messages: number of answers that were sent.
        duration: time of the robot from the beginning to the end of the log, in [s].
        deviation: (n,) largest distance between the angles of the log and the angles that the robot commanded
            at the same time, in [rad].
        trouble: reason for a premature end; empty if the robot reached the end of the log.
    """

    messages: int
    duration: float
    deviation: Floats
    trouble: str


@dataclass(frozen=True, eq=False)
class LogReferences:
    """References of a log, interpolated linearly; the last position is held.

    Attributes:
        t: (N,) times, from 0 on, in [s].
        q, qd: (N, n) positions and speeds, in [rad], [rad/s].
    """

    t: Floats
    q: Floats
    qd: Floats

    @property
    def duration(self) -> float:
        """Duration of the log, in [s]."""
        return float(self.t[-1])

    def __call__(self, t: float, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd), each (n,), at time t, in [s]; qdd is 0."""
        zero = np.zeros(self.q.shape[1])
        if t >= self.t[-1]:
            return self.q[-1], zero, zero
        after = int(np.searchsorted(self.t, t, side="right"))
        share = (t - self.t[after - 1]) / (self.t[after] - self.t[after - 1])
        q, qd = (part[after - 1] + share * (part[after] - part[after - 1]) for part in (self.q, self.qd))
        return q, qd, zero


def replay(
    client: EgmClient,
    log: Log,
    *,
    approach: float = APPROACH_SPEED,
    patience: float = 30.0,
    hold: float = np.inf,
    wait: float | None = None,
    learned: LearnedInput | None = None,
) -> Replayed:
    """Send the references of a log to the robot that sends to a client.

    The client answers every message, as virtual time requires.

    Args:
        client: client to which the robot sends.
        log: log of a robot with the same number of joints.
        approach: speed of the fastest joint on the way to the first position, in [rad/s].
        patience: longest wait for the robot at the start and at the end of the log, in [s] of the robot's
            time.
        hold: longest time to hold the last position while the instruction of the robot continues, in [s] of
            the robot's time.  The default holds it until the instruction ends.  With a shorter time the robot
            may stop with an error after CommTimeout.
        wait: time to wait for the robot's first message, in [s]; by default the time-out of the client.
        learned: input that was learned for the log's motion; it corrects the references that are sent.

    Raises:
        EgmError: no robot sends, its number of joints differs, or the references are not finite.
        RobotError: the input was learned for another robot.
        ValueError: approach or patience is not positive, or hold is negative; the input was learned for
            another motion, or for accelerations, which cannot be sent.
    """
    q, qd = log.q_ref, log.qd_ref
    if learned is not None:
        learned.require_motion(log.robot.name, Samples(log.t, log.q_ref, log.qd_ref, log.qdd_ref))
        if learned.added_to != "reference":
            raise ValueError("the input was learned for accelerations: EGM takes positions and speeds only")
        added = learned.rows(log.time_step * log.steps_per_period)
        q, qd = q + added[:, 0], qd + added[:, 1]
    if not (0.0 < approach < np.inf and 0.0 < patience < np.inf and hold >= 0.0):
        raise ValueError(
            "expected positive approach and patience and non-negative hold, "
            f"got {approach} rad/s, {patience} s and {hold} s"
        )
    if not (np.isfinite(log.q_ref).all() and np.isfinite(log.qd_ref).all()):
        raise EgmError("cannot replay the log: its references (q_ref, qd_ref) must be finite")
    message = client.receive(wait)
    n = log.q_ref.shape[1]
    if len(message.q) != n:
        raise EgmError(f"the log has {n} joints, the robot has {len(message.q)}: they must agree")
    recorded = LogReferences(log.t - log.t[0], q, qd)
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
    """Client side of a replay: answers every message of the robot until the replay ends."""

    def __init__(self, client: EgmClient, message: RobotMessage, patience: float) -> None:
        self.client, self.message, self.patience = client, message, patience
        self.messages = 0
        self.elapsed = 0.0
        self.trouble = ""

    def answer(self, q: Floats, qd: Floats | None = None, *, wait: float | None = None) -> None:
        """Answer the last message and wait for the next one."""
        self.client.send_joints(q, qd)
        self.messages += 1
        try:
            self.message = self._next(wait)
        except EgmError as error:
            self.trouble = str(error)

    def _next(self, wait: float | None) -> RobotMessage:
        """Return the next message of the robot; skip outdated messages and those of other robots.

        Raises:
            EgmError: no message arrived in time, or the time of the robot jumped.
        """
        for _ in range(MAX_IGNORED):
            message = self.client.receive(wait)
            if len(message.q) != len(self.message.q):
                continue
            step = (message.tm - self.message.tm) % MODULUS
            if step < MODULUS // 2:
                if step > 1000.0 * MAX_TIME_STEP:
                    raise EgmError(
                        f"the robot's time jumped by {step / 1000.0:g} s: another robot may send to this port"
                    )
                return message
        raise EgmError(f"ignored {MAX_IGNORED} consecutive messages that were outdated or from another robot")

    def wait_until_guided(self) -> None:
        """Send the present position until the robot reports that it is guided."""
        # Some robots report the state RUNNING only after the first answer.
        q, begun = self.message.q_planned, self.message.tm
        while not self.trouble and not _is_guided(self.message):
            self.answer(q)
            if _elapsed_since(begun, self.message) > self.patience:
                self.trouble = f"the robot is not guided after {self.patience:g} s"

    def hold(self, q: Floats, duration: float) -> None:
        """Send q (n,), in [rad], until the instruction of the robot ends, for at most `duration`, in [s]."""
        begun = self.message.tm
        while (
            _is_guided(self.message) and _elapsed_since(begun, self.message) < duration and not self.trouble
        ):
            self.answer(q, wait=SILENCE_AT_END)
        if not self.trouble:
            self.client.send_joints(q)
            self.messages += 1

    def follow(self, motion: Trajectory | LogReferences, name: str) -> Floats:
        """Send a motion until the robot has arrived at its end.

        The message that reports the arrival stays unanswered.

        Args:
            motion: joint motion over time.
            name: name of the motion in messages.

        Returns:
            (n,) largest distance between the motion and the commanded angles, in [rad].
        """
        far = np.zeros(len(self.message.q))
        begun, end = self.message.tm, motion(motion.duration)[0]
        while not self.trouble:
            message, self.elapsed = self.message, _elapsed_since(begun, self.message)
            q, qd, _ = motion(self.elapsed)
            far = np.maximum(far, np.abs(message.q_planned - q))
            off = np.abs(message.q_planned - end)
            there = message.converged if name == "the log" else bool(np.all(off <= START_TOLERANCE))
            if self.elapsed >= motion.duration and there and message.state is not MotionState.ERROR:
                break
            if not _is_guided(message):
                self.trouble = _describe_end(message, f"{self.elapsed:.3f} s into {name}")
            elif self.elapsed > motion.duration + self.patience:
                joint = int(np.argmax(off))
                self.trouble = (
                    f"{self.patience:g} s after {name} the robot has not arrived: joint {joint + 1} is "
                    f"{np.degrees(off[joint]):.3g} deg away from its target"
                )
            else:
                self.answer(q, qd)
        return far


def _elapsed_since(begun: int, message: RobotMessage) -> float:
    """Return the robot's time since `begun`, in [s]; `begun` is a time stamp in [ms]."""
    return (message.tm - begun) % MODULUS / 1000.0


def _is_guided(message: RobotMessage) -> bool:
    """Return whether answers move the robot; an undefined state counts as guided."""
    return message.state in (MotionState.RUNNING, MotionState.UNDEFINED)


def _describe_end(message: RobotMessage, when: str) -> str:
    """Return a sentence on why the guidance of a robot ended."""
    if message.state is MotionState.ERROR:
        return f"the robot stopped with an error {when}"
    return (
        f"the robot ended its guidance {when}: it was within the convergence window for CondTime; set "
        "CondTime longer than the approach and the log together"
    )
