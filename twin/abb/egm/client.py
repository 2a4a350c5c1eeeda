"""EGM client: receive the state of a robot and send it references.

    with EgmClient() as client:
        for message in client:
            client.send_joints(target)
            if message.converged:
                break

Angles are in radians and lengths in metres.  The robot sends first, to its configured address and port.  The
first sender of a valid robot message is taken as the robot.  The client answers only this robot.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterator
from time import monotonic
from typing import Any

from numpy.typing import ArrayLike

from twin.abb.egm.wire.channel import HOST, MAX_BYTES, PORT, Address
from twin.abb.egm.wire.encoding import decode_robot, encode_sensor
from twin.abb.egm.wire.messages import MODULUS, RobotMessage, SensorMessage
from twin.abb.egm.wire.stream import StreamCounts, StreamOrder
from twin.base.arrays import Floats, real_array
from twin.base.errors import EgmError, EgmWarning

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
