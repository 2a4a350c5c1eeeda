"""A client in Python: it hears where a robot is, and says where it shall go.

    with EgmClient() as client:
        for message in client:
            client.send_joints(target)
            if message.converged:
                break

Angles are in radians and lengths in metres.  A robot sends first, to the address and port that it was told.
The first sender of a robot's message is the robot, and the client answers it alone.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterator
from time import monotonic
from typing import Any

from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.egm.wire.channel import HOST, MOST_BYTES, PORT, Address
from twin.egm.wire.encoding import decode_robot, encode_sensor
from twin.egm.wire.messages import COUNT, RobotMessage, SensorMessage
from twin.egm.wire.stream import Counts, StreamOrder
from twin.errors import EgmError, EgmWarning

MOST_IGNORED = 1000
"""Datagrams that are passed over after the time to wait is up: a flood of them keeps no client for ever."""


class EgmClient:
    """A socket that a robot's messages come to, and that answers them.

    Datagrams of other senders are not looked at; those that are no message, or that come twice or behind a
    newer one, are passed over.  All are counted; an `EgmWarning` reports the first stranger, and the first
    datagram that is no message.  A robot that was started anew may send from another port: it needs another
    client.

    Args:
        port: to listen on; 0 for one that is free, see `port`.
        host: address to listen on; by default of this machine alone, "" for all of its addresses.
        timeout: how long to wait for a message, in [s].

    Attributes:
        port: that it listens on.
        counts: messages of the robot, those that are lost, doubled, out of order or malformed.
        robot: the address of the robot; `None` before its first message.
        strangers: datagrams that came from elsewhere.
        stranger: the sender of the first of them.

    Raises:
        EgmError: nothing can listen there, say because another client does.
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
                "close what listens there, or choose another port"
            ) from None
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self._address: tuple[str, int] | tuple[str, int, int, int] | None = None
        self.robot: Address | None = None
        self.strangers, self.stranger = 0, None
        self._order = StreamOrder()
        self._last: RobotMessage | None = None
        self._seqno = 1  # of the next answer

    @property
    def counts(self) -> Counts:
        """Counts of what came from the robot."""
        return self._order.counts

    def __enter__(self) -> EgmClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the port."""
        self._socket.close()

    def __iter__(self) -> Iterator[RobotMessage]:
        """Receive messages until one does not come in time, which raises `EgmError`."""
        while True:
            yield self.receive()

    def receive(self, timeout: float | None = None) -> RobotMessage:
        """Return the next message, in the order in which they were sent; wait for it if there is none.

        Args:
            timeout: how long to wait, in [s]; by default as long as the client was told.

        Raises:
            EgmError: none came in time.
        """
        limit = self.timeout if timeout is None else timeout
        message = self._next(limit)
        if message is None:
            others = f"; {self.strangers} came from others than {self.robot}" if self.strangers else ""
            broken = f"; {self.counts.malformed} were no messages" if self.counts.malformed else ""
            raise EgmError(
                f"no message of a robot came within {limit:g} s to port {self.port} of "
                f"{self._host or 'all addresses'}: is it guided now, and does it send there?{others}{broken}"
            )
        return message

    def latest(self) -> RobotMessage | None:
        """Return the newest message that has come, by its number and time, without waiting.

        `None` where none has come yet.
        """
        while self._next(0.0) is not None:
            pass
        return self._last

    def send_joints(self, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> None:
        """Guide the joints: to positions, at speeds, or to positions with speeds fed forward.

        Args:
            q: (n,) joint angles to go to, in [rad].
            qd: (n,) joint speeds, in [rad/s].

        Raises:
            EgmError: no robot has told of itself yet, or the answer cannot be sent.
            ValueError: neither is given, or one has another shape or is not finite.
        """
        if q is None and qd is None:
            raise ValueError("expected q, qd or both, got neither")
        n = len(self._heard().q)
        q, qd = _array(q, "q"), _array(qd, "qd")
        for name, array in (("q", q), ("qd", qd)):
            if array is not None and array.shape != (n,):
                raise ValueError(f"expected {name} of shape ({n},), got {array.shape}")
        self._send(SensorMessage(self._seqno, q=q, qd=qd))

    def send_pose(self, T: ArrayLike | None = None, twist: ArrayLike | None = None) -> None:
        """Guide the tool: to a pose, at a speed, or both.

        Args:
            T: (4, 4) pose to go to, in the frame that the robot was told for it, in [m].
            twist: (6,) speed `[v; omega]`, in [m/s, rad/s].

        Raises:
            EgmError: no robot has told of itself yet, or the answer cannot be sent.
            ValueError: neither is given, or one has another shape or is not finite.
        """
        if T is None and twist is None:
            raise ValueError("expected T, twist or both, got neither")
        self._heard()
        self._send(SensorMessage(self._seqno, T=_array(T, "T"), twist=_array(twist, "twist")))

    def send_path_correction(self, p: ArrayLike, age: float = 0.0) -> None:
        """Correct a path.

        Args:
            p: (3,) distance from the path in its own axes, of which a robot takes y and z, in [m].
            age: of what it was measured from, in [s].

        Raises:
            EgmError: no robot has told of itself yet, or the answer cannot be sent.
            ValueError: p has another shape or is not finite, or age is below 0.
        """
        self._heard()
        self._send(SensorMessage(self._seqno, path_correction=real_array(p, "p"), age=age))

    def _heard(self) -> RobotMessage:
        """The last message."""
        if self._last is None:
            raise EgmError("no robot to answer yet: it sends first, so receive a message before sending one")
        return self._last

    def _next(self, timeout: float) -> RobotMessage | None:
        """The next message, or `None` after a time."""
        end, passed = monotonic() + timeout, 0
        while passed < MOST_IGNORED or monotonic() < end:
            passed += 1
            self._socket.settimeout(max(end - monotonic(), 0.0))
            try:
                data, sender = self._socket.recvfrom(MOST_BYTES + 1)
            except (TimeoutError, BlockingIOError):
                return None
            except ConnectionResetError:  # Windows says here that the last answer reached nobody
                continue
            except OSError as error:
                raise EgmError(f"cannot receive on port {self.port}: {error.strerror or error}") from None
            message = self._message(data, sender)
            if message is not None and self._order.step(message) is not None:
                self._last = message
                return message
        return None

    def _message(self, data: bytes, sender: Any) -> RobotMessage | None:
        """The message in a datagram of the robot, which is the first that sends one; all else is counted."""
        if self._address is not None and sender != self._address:
            self.strangers += 1
            if self.strangers == 1:
                self.stranger = Address(*sender[:2])
                _warn(f"{self.stranger} sends, too, and is not listened to: the robot is {self.robot}")
            return None
        try:
            message = decode_robot(data)
        except EgmError as error:
            self.counts.malformed += 1
            if self.counts.malformed == 1:
                _warn(f"a datagram of {Address(*sender[:2])} is no message of a robot: {error}")
            return None
        self._address, self.robot = sender, Address(*sender[:2])
        return message

    def _send(self, message: SensorMessage) -> None:
        data = encode_sensor(message)
        assert self._address is not None, "somebody was heard"
        try:
            self._socket.sendto(data, self._address)
        except OSError as error:
            raise EgmError(f"cannot send to the robot at {self.robot}: {error.strerror or error}") from None
        self._seqno = (self._seqno + 1) % COUNT


def _warn(sentence: str) -> None:
    """Report what is odd, at the line that received it."""
    warnings.warn(sentence, EgmWarning, stacklevel=5)


def _array(values: ArrayLike | None, name: str) -> Floats | None:
    """Make an array of what was given, if anything was."""
    return None if values is None else real_array(values, name)
