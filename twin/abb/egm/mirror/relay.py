"""Relay between a robot and its client, which forwards messages and answers and copies the messages.

A separate thread forwards each datagram at once and unchanged; a `Listener` gets a copy of each message.  The
first sender of a robot message is taken as the robot.  Another sender replaces it only after a second of
silence, for example after a restart of the controller.  Datagrams of all other senders are counted and
ignored.
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

from twin.abb.egm.wire.channel import HOST, MAX_BYTES, PORT, Address, UdpChannel, resolve_address
from twin.abb.egm.wire.encoding import decode_robot
from twin.abb.egm.wire.messages import RobotMessage
from twin.abb.egm.wire.stream import StreamCounts
from twin.base.errors import EgmError, describe_error

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
