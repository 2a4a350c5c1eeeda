"""Where a robot's messages come to, and from where they may go on to its client, and the answers back.

What passes is passed on at once, byte for byte, by a thread that does nothing else; a `Listener` gets a copy,
message by message.  The first that sends a robot's message is the robot; another one counts only when it has
been silent for a second, as it is when its controller was started anew.  Datagrams of all others are counted
and left alone.
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

from twin.egm.wire.channel import HOST, MOST_BYTES, PORT, Address, UdpChannel, resolved
from twin.egm.wire.encoding import decode_robot
from twin.egm.wire.messages import RobotMessage
from twin.egm.wire.stream import Counts
from twin.errors import EgmError, describe_error

WAITING = 2500
"""Messages that wait to be looked at, at most: 10 s of a robot's; later ones are passed on all the same."""

SILENT = 1.0
"""In [s]: so long after its last message a robot may send from elsewhere."""

AT_ONCE = 64
"""Datagrams that are read before the other direction has its turn."""

TURN = 0.1
"""In [s]: how often the thread looks whether it is to end."""


class Copy(NamedTuple):
    """A datagram of the robot, and when it arrived by `time.monotonic`, in [s]."""

    arrival: float
    data: bytes


@dataclass
class Passed:
    """Counts of what a relay passed on, and how long it took.

    Attributes:
        received: datagrams of the robot.
        passed_on: of them, to the client.
        answers: of the client, to the robot.
        undelivered: that could not be sent on.
        refused: how often it was told that nobody listens where the client is to be.
        overlooked: of the robot that were not looked at, for too many were waiting.
        strangers: of others than these two.
        stranger: who sent the first of them.
        added: time from the arrival of a datagram to its being sent on, the longest, in [s].
        added_sum: of all of them, in [s].
    """

    received: int = 0
    passed_on: int = 0
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
        """In [s]."""
        return self.added_sum / max(self.passed_on + self.answers, 1)


class Relay:
    """Listens to a robot, and passes on what it hears.

    Attributes:
        at: where it listens.
        passed: what it did so far.

    Args:
        listen: host and port that the robot sends to; port 0 for any free one.
        is_robot: whether the bytes are a robot's message: asked until there is one, and when it is lost.
        forward: the client's host and port; `None`: nobody is there, and nobody answers.
        answered_at: own host and port towards a client on another machine, port 0 for any free one.

    Raises:
        EgmError: an address that does not exist or is in use.
    """

    def __init__(
        self,
        listen: tuple[str, int],
        is_robot: Callable[[bytes], bool],
        forward: tuple[str, int] | None = None,
        answered_at: tuple[str, int] | None = None,
    ) -> None:
        at, family, address = resolved(*listen)
        self._is_robot, self.passed = is_robot, Passed()
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._client: UdpChannel | None = None
        try:
            self._socket.setblocking(False)
            self._socket.bind(address)
            self.at = Address(at.host, self._socket.getsockname()[1])
        except OSError as error:
            self._socket.close()
            raise EgmError(
                f"cannot listen at {at}: {describe_error(error)}; close what listens there, "
                "or choose another port"
            ) from None
        if forward is not None:
            try:
                self._client = self._towards(forward, answered_at)
            except EgmError:
                self._socket.close()
                raise
        self._robot: tuple | None = None
        self._heard = 0.0
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, name="egm relay", daemon=True)

    def _towards(self, client: tuple[str, int], answered_at: tuple[str, int] | None) -> UdpChannel:
        """A channel to the client, which must not be the relay itself: a message would go round for ever."""
        to, _, _ = resolved(*client)
        if to.port == self.at.port and (to.host == self.at.host or self.at.host in ("0.0.0.0", "::")):
            raise EgmError(f"{to} is where the mirror listens itself: name another address to pass on to")
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

    def next(self, timeout: float) -> Copy | None:
        """The next datagram of the robot; `None` where none comes within a time, in [s]."""
        try:
            return self._copies.get(timeout=max(timeout, 0.0))
        except Empty:
            return None

    def _pass_on(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            if self._client is not None:
                selector.register(self._client, selectors.EVENT_READ)
            while not self._ending.is_set():
                selector.select(TURN)
                self._from_robot()
                self._from_client()

    def _from_robot(self) -> None:
        """Pass on what the robot sent."""
        for _ in range(AT_ONCE):
            try:
                data, sender = self._socket.recvfrom(MOST_BYTES + 1)
            except OSError:  # nothing there, or a word about an answer that reached nobody
                return
            came, now = perf_counter(), monotonic()
            if sender != self._robot and not self._is_new_robot(data, sender, now):
                self.passed.strangers += 1
                self.passed.stranger = self.passed.stranger or Address(*sender[:2])
                continue
            self._heard = now
            self.passed.received += 1
            if self._client is not None:
                # A datagram that is longer came cut, and is no message any more.
                if len(data) <= MOST_BYTES and self._client.send(data):
                    self.passed.passed_on += 1
                    self._took(came)
                else:
                    self.passed.undelivered += 1
            if self._copies.qsize() < WAITING:
                self._copies.put(Copy(now, data))
            else:
                self.passed.overlooked += 1

    def _is_new_robot(self, data: bytes, sender: tuple, now: float) -> bool:
        """Whether somebody who was not the robot is it now."""
        if (self._robot is not None and now - self._heard < SILENT) or not self._is_robot(data):
            return False
        self._robot = sender
        return True

    def _from_client(self) -> None:
        """Pass the client's answers back."""
        if self._client is None:
            return
        came = perf_counter()
        for data in self._client.receive(AT_ONCE):
            if self._robot is None:
                continue  # whom it would be for is not known
            try:
                self._socket.sendto(data, self._robot)
            except OSError:
                self.passed.undelivered += 1
            else:
                self.passed.answers += 1
                self._took(came)
        self.passed.refused += self._client.refused()  # it would wake the selector until it was asked for
        self.passed.strangers += self._client.strangers
        self.passed.stranger = self.passed.stranger or self._client.stranger
        self._client.strangers = 0

    def _took(self, since: float) -> None:
        took = perf_counter() - since
        self.passed.added = max(self.passed.added, took)
        self.passed.added_sum += took


LISTEN = (HOST, PORT)
WAIT = 10.0


AnyListener = TypeVar("AnyListener", bound="Listener")


class Listener:
    """Hears a robot within its `with` block, and may pass on what it hears.

    Args:
        listen: host and port that the robot sends to.
        forward: host and port of its client, if its messages are to be passed on.
        answered_at: own host and port towards a client on another machine.
        wait: how long to wait for the robot, in [s].

    Raises:
        EgmError: the wait is not above 0; on entering, an address that does not exist or is in use.
    """

    def __init__(
        self,
        listen: tuple[str, int] = LISTEN,
        forward: tuple[str, int] | None = None,
        answered_at: tuple[str, int] | None = None,
        wait: float = WAIT,
    ) -> None:
        if not 0 < wait < np.inf:
            raise EgmError(f"expected to wait for longer than 0 s and not for ever, got {wait:g} s")
        self._addresses, self._wait = (listen, is_message, forward, answered_at), wait
        self._relay: Relay | None = None
        self._stopped = False

    @property
    def relay(self) -> Relay:
        """The relay that listens, within the `with` block."""
        if self._relay is None:
            raise ValueError("expected a `with` block around it, in which it listens")
        return self._relay

    def __enter__(self: AnyListener) -> AnyListener:
        self._relay = Relay(*self._addresses)
        self._relay.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.relay.__exit__(*failure)

    def stop(self) -> None:
        """Have it end, from any thread."""
        self._stopped = True

    def messages(self, counts: Counts, until_silent: bool) -> Iterator[tuple[RobotMessage, float]]:
        """Messages, and when they arrived by `time.monotonic`, in [s]; until `stop`.

        Args:
            counts: where what is no message is counted.
            until_silent: end, too, when nothing was heard for as long as the robot was waited for.

        Raises:
            EgmError: no robot was heard in time.
        """
        heard, any_yet, wait = monotonic(), False, self._wait
        while not self._stopped:
            copy = self.relay.next(TURN)
            if copy is None:
                if monotonic() - heard <= wait:
                    continue
                if not any_yet:
                    raise EgmError(
                        f"no robot was heard at {self.relay.at} within {wait:g} s: is it guided now, and "
                        "does it send there?"
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
    """Whether these are the bytes of a robot's message."""
    try:
        decode_robot(data)
    except EgmError:
        return False
    return True
