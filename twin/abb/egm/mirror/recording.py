"""Relay between a robot and its client, and recording of the robot's messages as a log.

A separate thread forwards each datagram at once and unchanged; a `Listener` gets a copy of each message.  The
first sender of a robot message is taken as the robot.  Another sender replaces it only after a second of
silence, for example after a restart of the controller.  Datagrams of all other senders are counted and
ignored.

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

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from typing import NamedTuple, TypeVar

import numpy as np

from twin.abb.egm.mirror.expectation import HALF_A_CYCLE, Smoothing, checked_torque_age
from twin.abb.egm.wire.channel import HOST, MAX_BYTES, PORT, Address, UdpChannel, resolve_address
from twin.abb.egm.wire.encoding import decode_robot, require_joints, require_turning_joints
from twin.abb.egm.wire.messages import LONGEST_GAP, RobotMessage, StreamClock, StreamCounts, StreamOrder
from twin.base.arrays import Floats
from twin.base.errors import EgmError, describe_error
from twin.data.logs.log import Log
from twin.physics.robot.robot import Robot

MAX_WAITING = 2500
"""Largest number of queued copies, 10 s of messages; further messages are forwarded without a copy."""

TAKEOVER_SILENCE = 1.0
"""Silence of a robot, in [s], after which another sender may replace it."""

BATCH = 64
"""Largest number of datagrams that are forwarded in one direction before the other."""

POLL_INTERVAL = 0.1
"""Interval at which the thread checks for a stop request, in [s]."""


class Datagram(NamedTuple):
    """Datagram of the robot and its arrival by `time.monotonic`, in [s]."""

    arrival: float
    data: bytes


@dataclass
class RelayCounts:
    """Counts and delays of the datagrams of a relay.

    Attributes:
        received: datagrams received from the robot.
        forwarded: datagrams forwarded to the client.
        answers: answers returned to the robot.
        undelivered: datagrams that could not be forwarded.
        refused: reports of the network that no program listens at the client's address.
        overlooked: messages that were not copied, because the queue was full.
        strangers: datagrams of other senders.
        stranger: address of the first other sender.
        added: longest time from the arrival of a datagram to its forwarding, in [s].
        added_sum: sum of these times, in [s].
    """

    received: int = 0
    forwarded: int = 0
    answers: int = 0
    undelivered: int = 0
    refused: int = 0
    overlooked: int = 0
    strangers: int = 0
    stranger: Address | None = None
    added: float = 0.0
    added_sum: float = 0.0

    @property
    def added_mean(self) -> float:
        """Mean time from the arrival of a datagram to its forwarding, in [s]."""
        return self.added_sum / max(self.forwarded + self.answers, 1)


class Relay:
    """Relay that receives the datagrams of a robot and optionally forwards them to its client.

    Attributes:
        at: address at which the relay listens.
        counts: counts so far.

    Args:
        listen: host and port to which the robot sends; port 0 selects a free port.
        is_robot: function that returns whether bytes are a robot message; it identifies the robot.
        forward: host and port of the client; `None` to receive only.
        answered_at: local host and port for a client on another machine; port 0 selects a free port.

    Raises:
        EgmError: an address does not exist or is in use.
    """

    def __init__(
        self,
        listen: tuple[str, int],
        is_robot: Callable[[bytes], bool],
        forward: tuple[str, int] | None = None,
        answered_at: tuple[str, int] | None = None,
    ) -> None:
        at, family, address = resolve_address(*listen)
        self._is_robot, self.counts = is_robot, RelayCounts()
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._client: UdpChannel | None = None
        try:
            self._socket.setblocking(False)
            self._socket.bind(address)
            self.at = Address(at.host, self._socket.getsockname()[1])
        except OSError as error:
            self._socket.close()
            raise EgmError(
                f"cannot listen at {at}: {describe_error(error)}; stop the program that uses the port, "
                "or choose another port"
            ) from None
        if forward is not None:
            try:
                self._client = self._open_client_channel(forward, answered_at)
            except EgmError:
                self._socket.close()
                raise
        self._robot: tuple | None = None
        self._heard = 0.0
        self._copies: SimpleQueue[Datagram] = SimpleQueue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._forward_until_closed, name="egm relay", daemon=True)

    def _open_client_channel(
        self, client: tuple[str, int], answered_at: tuple[str, int] | None
    ) -> UdpChannel:
        """Open the channel to the client.

        Raises:
            EgmError: the client is the relay itself, which would forward a message without end.
        """
        to, _, _ = resolve_address(*client)
        if to.port == self.at.port and (to.host == self.at.host or self.at.host in ("0.0.0.0", "::")):
            raise EgmError(f"the mirror itself listens at {to}: expected another address in forward")
        return UdpChannel(client, answered_at)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._socket.close()
        if self._client is not None:
            self._client.close()

    def next(self, timeout: float) -> Datagram | None:
        """Return the next datagram of the robot; `None` after the time-out, in [s]."""
        try:
            return self._copies.get(timeout=max(timeout, 0.0))
        except Empty:
            return None

    def _forward_until_closed(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            if self._client is not None:
                selector.register(self._client, selectors.EVENT_READ)
            while not self._ending.is_set():
                selector.select(POLL_INTERVAL)
                self._from_robot()
                self._from_client()

    def _from_robot(self) -> None:
        """Forward the datagrams of the robot to its client."""
        for _ in range(BATCH):
            try:
                data, sender = self._socket.recvfrom(MAX_BYTES + 1)
            except OSError:  # no datagram, or an error of an undelivered answer
                return
            came, now = perf_counter(), monotonic()
            if sender != self._robot and not self._is_new_robot(data, sender, now):
                self.counts.strangers += 1
                self.counts.stranger = self.counts.stranger or Address(*sender[:2])
                continue
            self._heard = now
            self.counts.received += 1
            if self._client is not None:
                # A longer datagram was truncated and is no valid message.
                if len(data) <= MAX_BYTES and self._client.send(data):
                    self.counts.forwarded += 1
                    self._record_delay(came)
                else:
                    self.counts.undelivered += 1
            if self._copies.qsize() < MAX_WAITING:
                self._copies.put(Datagram(now, data))
            else:
                self.counts.overlooked += 1

    def _is_new_robot(self, data: bytes, sender: tuple, now: float) -> bool:
        """Return whether a new sender replaces the robot."""
        if (self._robot is not None and now - self._heard < TAKEOVER_SILENCE) or not self._is_robot(data):
            return False
        self._robot = sender
        return True

    def _from_client(self) -> None:
        """Return the answers of the client to the robot."""
        if self._client is None:
            return
        came = perf_counter()
        for data in self._client.receive(BATCH):
            if self._robot is None:
                continue  # the address of the robot is unknown
            try:
                self._socket.sendto(data, self._robot)
            except OSError:
                self.counts.undelivered += 1
            else:
                self.counts.answers += 1
                self._record_delay(came)
        self.counts.refused += self._client.refused()  # a pending report would wake the selector
        self.counts.strangers += self._client.strangers
        self.counts.stranger = self.counts.stranger or self._client.stranger
        self._client.strangers = 0

    def _record_delay(self, since: float) -> None:
        took = perf_counter() - since
        self.counts.added = max(self.counts.added, took)
        self.counts.added_sum += took


LISTEN = (HOST, PORT)
WAIT = 10.0


AnyListener = TypeVar("AnyListener", bound="Listener")


class Listener:
    """Base class that receives the messages of a robot within a `with` block.

    Args:
        listen: host and port to which the robot sends.
        forward: host and port of the robot's client; `None` to receive only.
        answered_at: local host and port for a client on another machine.
        wait: longest wait for the robot, in [s].

    Raises:
        EgmError: the wait is not positive and finite; on entering, an address does not exist or is in use.
    """

    def __init__(
        self,
        listen: tuple[str, int] = LISTEN,
        forward: tuple[str, int] | None = None,
        answered_at: tuple[str, int] | None = None,
        wait: float = WAIT,
    ) -> None:
        if not 0 < wait < np.inf:
            raise EgmError(f"expected a positive, finite wait in s, got {wait:g} s")
        self._addresses, self._wait = (listen, is_message, forward, answered_at), wait
        self._relay: Relay | None = None
        self._stopped = False

    @property
    def relay(self) -> Relay:
        """Active relay of the `with` block."""
        if self._relay is None:
            raise ValueError(f"expected a call within `with {type(self).__name__}(...)`: no relay is open")
        return self._relay

    def __enter__(self: AnyListener) -> AnyListener:
        self._relay = Relay(*self._addresses)
        self._relay.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.relay.__exit__(*failure)

    def stop(self) -> None:
        """Request the end, from any thread."""
        self._stopped = True

    def messages(self, counts: StreamCounts, until_silent: bool) -> Iterator[tuple[RobotMessage, float]]:
        """Yield messages and their arrival by `time.monotonic`, in [s], until `stop`.

        Args:
            counts: counts in which malformed datagrams are counted.
            until_silent: whether to end also when the robot is silent for the time `wait`.

        Raises:
            EgmError: no robot sent in time.
        """
        heard, any_yet, wait = monotonic(), False, self._wait
        while not self._stopped:
            copy = self.relay.next(POLL_INTERVAL)
            if copy is None:
                if monotonic() - heard <= wait:
                    continue
                if not any_yet:
                    raise EgmError(
                        f"received no robot message at {self.relay.at} within {wait:g} s: check that EGM is "
                        "active and that the robot sends to this address"
                    )
                if until_silent:
                    return
                continue
            heard, any_yet = monotonic(), True
            try:
                message = decode_robot(copy.data)
            except EgmError:
                counts.malformed += 1
            else:
                yield message, copy.arrival


def is_message(data: bytes) -> bool:
    """Return whether the bytes are a valid robot message."""
    try:
        decode_robot(data)
    except EgmError:
        return False
    return True


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
