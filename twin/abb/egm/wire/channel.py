"""UDP transport between a robot and its partner.

The robot is the UDP client: it sends first.  A message without a listener is lost and raises no error.
"""

import ipaddress
import selectors
import socket
import sys
from typing import NamedTuple

from twin.base.errors import EgmError, describe_error

MAX_BYTES = 1024
"""Largest size of a message, in bytes: the buffer size of ABB's C++ client.  A longer datagram is truncated
and counts as malformed."""

HOST, PORT = "127.0.0.1", 6510
"""Default address of an EGM client: the loopback interface and the port of ABB's examples."""

IP_RECVERR, IPV6_RECVERR, MSG_ERRQUEUE = 11, 25, 0x2000
"""Linux socket constants that the module `socket` does not define."""


class Address(NamedTuple):
    """Host and port of a UDP endpoint."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class UdpChannel:
    """UDP socket between a robot and the one partner that may guide it.

    Attributes:
        to: address of the partner; datagrams of other senders are ignored.
        port: local port.
        strangers: number of datagrams from other senders.
        stranger: address of the first other sender.

    Args:
        to: host and port of the partner.
        bind: local host and port that receive the answers; port 0 selects a free port.  Required if `to` is
            another machine.  The default is a free loopback port, which other machines cannot reach.

    Raises:
        EgmError: an address does not exist or is in use, or `bind` is missing.
    """

    def __init__(self, to: tuple[str, int], bind: tuple[str, int] | None = None) -> None:
        self.to, family, self._address = resolve_address(*to)
        if not 1 <= self.to.port <= 65535:
            raise EgmError(f"expected a destination port of 1 to 65535, got {self.to.port}")
        if bind is None:
            if not ipaddress.ip_address(self.to.host.partition("%")[0]).is_loopback:
                raise EgmError(
                    f"the client {self.to} is on another machine: bind must name a local address for its "
                    "answers, such as 0.0.0.0 for all interfaces"
                )
            bind = (self.to.host, 0)
        local, local_family, local_address = resolve_address(*bind)
        if local_family != family:
            raise EgmError(
                f"expected a local address of the same IP version as {self.to} in bind, got {local}"
            )
        self.strangers = 0
        self.stranger: Address | None = None
        self._refused = False
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            if sys.platform == "linux":  # only Linux can report that no program listens at the partner
                six = family == socket.AF_INET6
                level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
                self._socket.setsockopt(level, IPV6_RECVERR if six else IP_RECVERR, 1)
            self._socket.bind(local_address)
            self.port: int = self._socket.getsockname()[1]
        except OSError as error:
            self._socket.close()
            raise EgmError(f"cannot receive answers at {local}: {describe_error(error)}") from None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)

    def send(self, message: bytes) -> bool:
        """Send a message without waiting; return whether it left this machine."""
        for _ in range(3):  # a pending error of an earlier message makes one call fail: try again
            try:
                self._socket.sendto(message, self._address)
            except ConnectionRefusedError:
                self._note_refusals()
            except OSError:  # no route, or no buffer space: the message is lost
                self._note_refusals()
                return False
            else:
                return True
        return False

    def receive(self, most: int) -> list[bytes]:
        """Return the datagrams received from the partner, oldest first, without waiting.

        Args:
            most: largest number of datagrams to read, including those of other senders.
        """
        received = []
        for _ in range(most):
            try:
                datagram, sender = self._socket.recvfrom(MAX_BYTES + 1)
            except BlockingIOError:
                break
            except OSError:  # an error of an earlier message
                self._note_refusals()
                continue
            if sender[:2] == self._address[:2]:
                received.append(datagram)
            else:
                self.strangers += 1
                self.stranger = self.stranger or Address(*sender[:2])
        return received

    def wait(self, seconds: float) -> None:
        """Wait until a datagram arrives, for at most `seconds`."""
        self._selector.select(seconds)

    def refused(self) -> bool:
        """Return whether the network reported an undelivered message since the last call."""
        self._note_refusals()
        refused, self._refused = self._refused, False
        return refused

    def _note_refusals(self) -> None:
        """Empty the error queue of the socket, which would otherwise end every wait at once."""
        if sys.platform != "linux":
            return
        try:
            while True:
                self._socket.recvmsg(1, 0, MSG_ERRQUEUE)
                self._refused = True
        except OSError:
            pass  # the queue is empty

    def fileno(self) -> int:
        """Return the file descriptor of the socket, for a selector."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._selector.close()
        self._socket.close()


def resolve_address(host: str, port: int) -> tuple[Address, socket.AddressFamily, tuple]:
    """Resolve a host name; return numeric address, address family, and the tuple that sockets expect.

    Raises:
        EgmError: the host does not exist.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
    except (OSError, UnicodeError, OverflowError, ValueError) as error:
        raise EgmError(f"cannot resolve the address {host}:{port}: {describe_error(error)}") from None
    return Address(str(address[0]), int(address[1])), family, address
