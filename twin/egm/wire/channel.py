"""How a robot's datagrams come and go: over UDP, of which it is the client, for it sends first.

A message that nobody listens for is lost like any other, and no error.
"""

import ipaddress
import selectors
import socket
import sys
from typing import NamedTuple

from twin.errors import EgmError, describe_error

MOST_BYTES = 1024
"""Size of a message at most: what ABB's own C++ client has room for.  A longer datagram is cut, and is then
no message."""

HOST, PORT = "127.0.0.1", 6510
"""Where ABB's examples have a robot send to, on this machine."""

IP_RECVERR, IPV6_RECVERR, MSG_ERRQUEUE = 11, 25, 0x2000
"""Numbers of Linux; the module `socket` has no names for them."""


class Address(NamedTuple):
    """The address of a socket."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class UdpChannel:
    """A socket between a robot and the one partner that may guide it.

    Attributes:
        to: where messages go, and the one address from where answers count.
        port: its own.
        strangers: datagrams that came from elsewhere; they were not looked at.
        stranger: who sent the first of them.

    Args:
        to: host and port.
        bind: own host and port to be answered at, port 0 for any free one; needed where `to` is another
            machine. By default any free port of this machine's loopback, which no other machine reaches.

    Raises:
        EgmError: an address that does not exist or is in use; `bind` is missing.
    """

    def __init__(self, to: tuple[str, int], bind: tuple[str, int] | None = None) -> None:
        self.to, family, self._address = resolved(*to)
        if not 1 <= self.to.port <= 65535:
            raise EgmError(f"expected a port of 1 to 65535 to send to, got {self.to.port}")
        if bind is None:
            if not ipaddress.ip_address(self.to.host.partition("%")[0]).is_loopback:
                raise EgmError(
                    f"to guide a robot from another machine, {self.to}, it needs an address of this one to "
                    "be answered at: bind, say 0.0.0.0, which listens on every one of this machine's"
                )
            bind = (self.to.host, 0)
        own, own_family, own_address = resolved(*bind)
        if own_family != family:
            raise EgmError(f"expected an address of the same kind as {self.to} to be answered at, got {own}")
        self.strangers = 0
        self.stranger: Address | None = None
        self._refused = False
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            if sys.platform == "linux":  # else it is not told that nobody listens
                six = family == socket.AF_INET6
                level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
                self._socket.setsockopt(level, IPV6_RECVERR if six else IP_RECVERR, 1)
            self._socket.bind(own_address)
            self.port: int = self._socket.getsockname()[1]
        except OSError as error:
            self._socket.close()
            raise EgmError(f"cannot be answered at {own}: {describe_error(error)}") from None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)

    def send(self, message: bytes) -> bool:
        """Send a message, and tell whether it left this machine; never waits."""
        for _ in range(3):  # what became of messages before is told once, and then this one is not sent
            try:
                self._socket.sendto(message, self._address)
            except ConnectionRefusedError:
                self._note_refusals()
            except OSError:  # no way there, or no room: lost
                self._note_refusals()
                return False
            else:
                return True
        return False

    def receive(self, most: int) -> list[bytes]:
        """Return what has come, the oldest first: so many datagrams at most, with strangers'; never waits."""
        came = []
        for _ in range(most):
            try:
                datagram, sender = self._socket.recvfrom(MOST_BYTES + 1)
            except BlockingIOError:
                break
            except OSError:  # of a message before
                self._note_refusals()
                continue
            if sender[:2] == self._address[:2]:
                came.append(datagram)
            else:
                self.strangers += 1
                self.stranger = self.stranger or Address(*sender[:2])
        return came

    def wait(self, seconds: float) -> None:
        """Wait until something has come, but not for longer."""
        self._selector.select(seconds)

    def refused(self) -> bool:
        """Tell whether, since this was last asked, it became known that a message found nobody to take it."""
        self._note_refusals()
        refused, self._refused = self._refused, False
        return refused

    def _note_refusals(self) -> None:
        """Empty the queue of errors, which would wake every wait."""
        if sys.platform != "linux":
            return
        try:
            while True:
                self._socket.recvmsg(1, 0, MSG_ERRQUEUE)
                self._refused = True
        except OSError:
            pass  # it is empty

    def fileno(self) -> int:
        """The number of its socket, by which a selector waits for it and for others."""
        return self._socket.fileno()

    def close(self) -> None:
        """Send and receive no more."""
        self._selector.close()
        self._socket.close()


def resolved(host: str, port: int) -> tuple[Address, socket.AddressFamily, tuple]:
    """An address in numbers, its family, and what the socket calls it.

    Raises:
        EgmError: there is no such host.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
    except (OSError, UnicodeError, OverflowError, ValueError) as error:
        raise EgmError(f"there is no address {host}:{port}: {describe_error(error)}") from None
    return Address(str(address[0]), int(address[1])), family, address
