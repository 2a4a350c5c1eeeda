"""EGM clients: one that receives the state of a robot and sends references, and one that replays a log.

    with EgmClient() as client:
        for message in client:
            client.send_joints(target)
            if message.converged:
                break

Angles are in radians and lengths in metres.  The robot sends first, to its configured address and port.  The
first sender of a valid robot message is taken as the robot.  The client answers only this robot.

The replay has three parts.  The client first guides the robot slowly from its present position to the first
position of the log.  It then sends positions and speeds of the log at the times of the robot's messages.
Finally it sends the last position until the robot has arrived.

A robot ends its instruction after it was within the convergence window for CondTime (1 s by default).  A
robot that follows a log closely is within this window all the time.  Set CondTime longer than the log.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.abb.egm.wire.channel import HOST, MAX_BYTES, PORT, Address
from twin.abb.egm.wire.encoding import decode_robot, encode_sensor
from twin.abb.egm.wire.messages import (
    MODULUS,
    MotionState,
    RobotMessage,
    SensorMessage,
    StreamCounts,
    StreamOrder,
)
from twin.base.arrays import Floats, real_array
from twin.base.errors import EgmError, EgmWarning
from twin.data.logs.log import Log
from twin.physics.trajectories.joint_trajectories import Trajectory, quintic
from twin.physics.trajectories.sampling import Samples
from twin.studies.learning.learning_controller import LearnedInput

MAX_SKIPPED = 1000
"""Largest number of unusable datagrams that the client skips after its time-out has expired."""


class EgmClient:
    """UDP socket that receives the messages of a robot and answers them.

    The client ignores datagrams of other senders, malformed datagrams, duplicates and outdated messages, and
    counts each kind.  An `EgmWarning` reports the first other sender and the first malformed datagram.  A
    restarted robot may send from another port.  It then requires a new client.

    Args:
        port: UDP port to listen on; 0 selects a free port, see the attribute `port`.
        host: local address to listen on.  The default accepts only this machine; "" listens on all local
            addresses.
        timeout: default time to wait for a message, in [s].

    Attributes:
        port: UDP port of the socket.
        counts: numbers of used, lost, duplicate, reordered and malformed messages of the robot.
        robot: address of the robot; `None` before its first message.
        strangers: number of datagrams from other senders.
        stranger: address of the first other sender.

    Raises:
        EgmError: the address cannot be used, for example because another client listens there.
    """

    def __init__(self, port: int = PORT, host: str = HOST, *, timeout: float = 10.0) -> None:
        self.timeout = timeout
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.bind((host, port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            reason = getattr(error, "strerror", None) or error
            raise EgmError(
                f"cannot listen on port {port} of {host or 'all addresses'} ({reason}): "
                "stop the program that uses the port, or choose another port"
            ) from None
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self._address: tuple[str, int] | tuple[str, int, int, int] | None = None
        self.robot: Address | None = None
        self.strangers, self.stranger = 0, None
        self._order = StreamOrder()
        self._last: RobotMessage | None = None
        self._seqno = 1  # number of the next answer

    @property
    def counts(self) -> StreamCounts:
        """Counts of the messages of the robot."""
        return self._order.counts

    def __enter__(self) -> EgmClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket and free its port."""
        self._socket.close()

    def __iter__(self) -> Iterator[RobotMessage]:
        """Yield messages; raise `EgmError` when none arrives within the time-out."""
        while True:
            yield self.receive()

    def receive(self, timeout: float | None = None) -> RobotMessage:
        """Return the next message in sending order; wait for it if necessary.

        Args:
            timeout: time to wait, in [s]; by default the time-out of the client.

        Raises:
            EgmError: no message arrived within the time-out.
        """
        limit = self.timeout if timeout is None else timeout
        message = self._next(limit)
        if message is None:
            others = f"; ignored {self.strangers} from senders other than {self.robot}"
            broken = f"; {self.counts.malformed} datagrams were malformed"
            raise EgmError(
                f"received no robot message within {limit:g} s on port {self.port} of "
                f"{self._host or 'all addresses'}: check that EGM is active and that the robot sends to this "
                f"port{others if self.strangers else ''}{broken if self.counts.malformed else ''}"
            )
        return message

    def latest(self) -> RobotMessage | None:
        """Return the newest received message by number and time, without waiting.

        Return `None` before the first message.
        """
        while self._next(0.0) is not None:
            pass
        return self._last

    def send_joints(self, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> None:
        """Send joint references: positions, speeds, or positions with speed feedforward.

        Args:
            q: (n,) reference joint angles, in [rad].
            qd: (n,) reference joint speeds, in [rad/s].

        Raises:
            EgmError: no robot message has arrived yet, or the answer cannot be sent.
            ValueError: both are missing, or one has the wrong shape or is not finite.
        """
        if q is None and qd is None:
            raise ValueError("expected q, qd or both, got neither")
        n = len(self._last_message().q)
        q, qd = _array(q, "q"), _array(qd, "qd")
        for name, array in (("q", q), ("qd", qd)):
            if array is not None and array.shape != (n,):
                raise ValueError(f"expected {name} of shape ({n},), got {array.shape}")
        self._send(SensorMessage(self._seqno, q=q, qd=qd))

    def send_pose(self, T: ArrayLike | None = None, twist: ArrayLike | None = None) -> None:
        """Send tool references: a pose, a twist, or both.

        Args:
            T: (4, 4) reference pose of the tool, in the sensor frame (`SensorFrame`) of the robot, in [m].
            twist: (6,) reference speed `[v; omega]`, in [m/s, rad/s].

        Raises:
            EgmError: no robot message has arrived yet, or the answer cannot be sent.
            ValueError: both are missing, or one has the wrong shape or is not finite.
        """
        if T is None and twist is None:
            raise ValueError("expected T, twist or both, got neither")
        self._last_message()
        self._send(SensorMessage(self._seqno, T=_array(T, "T"), twist=_array(twist, "twist")))

    def send_path_correction(self, p: ArrayLike, age: float = 0.0) -> None:
        """Send a path correction.

        Args:
            p: (3,) offset from the path in the path frame, in [m].  The robot uses y and z.
            age: age of the underlying measurement, in [s].

        Raises:
            EgmError: no robot message has arrived yet, or the answer cannot be sent.
            ValueError: p has the wrong shape or is not finite, or age is below 0.
        """
        self._last_message()
        self._send(SensorMessage(self._seqno, path_correction=real_array(p, "p"), age=age))

    def _last_message(self) -> RobotMessage:
        """Return the last received message."""
        if self._last is None:
            raise EgmError("no robot to answer yet: the robot sends first; receive a message before sending")
        return self._last

    def _next(self, timeout: float) -> RobotMessage | None:
        """Return the next message; `None` after the time-out, in [s]."""
        end, datagrams = monotonic() + timeout, 0
        while datagrams < MAX_SKIPPED or monotonic() < end:
            datagrams += 1
            self._socket.settimeout(max(end - monotonic(), 0.0))
            try:
                data, sender = self._socket.recvfrom(MAX_BYTES + 1)
            except (TimeoutError, BlockingIOError):
                return None
            except ConnectionResetError:  # Windows reports here that the last answer was not delivered
                continue
            except OSError as error:
                raise EgmError(f"cannot receive on port {self.port}: {error.strerror or error}") from None
            message = self._message(data, sender)
            if message is not None and self._order.step(message) is not None:
                self._last = message
                return message
        return None

    def _message(self, data: bytes, sender: Any) -> RobotMessage | None:
        """Decode a datagram of the robot; count and skip any other datagram.

        The first sender of a valid message becomes the robot.
        """
        if self._address is not None and sender != self._address:
            self.strangers += 1
            if self.strangers == 1:
                self.stranger = Address(*sender[:2])
                _warn(f"ignoring datagrams from {self.stranger}: the robot is {self.robot}")
            return None
        try:
            message = decode_robot(data)
        except EgmError as error:
            self.counts.malformed += 1
            if self.counts.malformed == 1:
                _warn(f"ignoring a datagram from {Address(*sender[:2])} that is no robot message: {error}")
            return None
        self._address, self.robot = sender, Address(*sender[:2])
        return message

    def _send(self, message: SensorMessage) -> None:
        data = encode_sensor(message)
        assert self._address is not None, "a robot message was received"
        try:
            self._socket.sendto(data, self._address)
        except OSError as error:
            raise EgmError(f"cannot send to the robot at {self.robot}: {error.strerror or error}") from None
        self._seqno = (self._seqno + 1) % MODULUS


def _warn(sentence: str) -> None:
    """Issue an `EgmWarning` at the caller's line that received the datagram."""
    warnings.warn(sentence, EgmWarning, stacklevel=5)


def _array(values: ArrayLike | None, name: str) -> Floats | None:
    """Convert values to an array; `None` stays `None`."""
    return None if values is None else real_array(values, name)


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
