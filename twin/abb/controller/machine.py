"""Parts of this machine that programs reach: the files of a folder, and sockets."""

from __future__ import annotations

import select
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from twin.abb.rapid.recorder import Files


def place_in(home: Path, name: str) -> Path | None:
    """Return the path of a name in a folder, None if it would leave the folder, links included."""
    try:
        home = home.resolve()
        path = (home / name).resolve()
    except (OSError, ValueError, RuntimeError):  # a null character, a loop of links
        return None
    return path if path.is_relative_to(home) else None


class HomeFiles(Files):
    """Files whose texts are written into the folder of HOME:, RAMDISK: and TEMP:.

    Args:
        home: the folder; None if nothing is stored.
    """

    def _place(self, name: str) -> Path | None:
        """Return the path of a file, None if it would leave the folder."""
        path = None if self._home is None else place_in(self._home, name)
        return None if path is None or self._home is None or path == self._home.resolve() else path

    def open(self, number: int, name: str, mode: str) -> bool:
        """Open a file, see `Files.open`; return whether it is there and may be used so."""
        if self._home is None:
            return super().open(number, name, mode)
        plain = self.plain(name)
        path = self._place(plain)
        if path is None:
            return False
        self.written.pop(plain, None)  # the folder has it
        if mode not in ("read", "binary"):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.open("w" if mode == "write" else "a", encoding="latin-1").close()
            except OSError:
                return False
        opened = super().open(number, name, mode)
        self.written.pop(plain, None)
        return opened

    def disk_usage(self) -> tuple[int, int, int]:
        """Return the bytes of the disk of the folder: all of them, used ones and free ones."""
        return shutil.disk_usage(self._home or ".")

    def work(self, function: Callable[..., object], *names: str) -> str:
        """Call a function with paths of files or folders; return why that is not possible, or "".

        Args:
            function: function of paths, such as `os.remove`.
            names: names with folders, such as `HOME:/parts/a.txt`.
        """
        paths = [self._place(self.plain(name)) for name in names]
        if None in paths:
            return "it is not in the folder of HOME:"
        try:
            function(*paths)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def write(self, number: int, text: str) -> None:
        """Write into an open file."""
        path = self._place(self._open[number].name)
        if path is None:
            super().write(number, text)
            return
        with path.open("a", encoding="latin-1", newline="") as file:
            file.write(text)


@dataclass(frozen=True)
class Network:
    """Network of a virtual controller.

    Attributes:
        bind: local address of all sockets, whatever address a program names.
        allow: hosts beside this machine to which programs may connect.
        ports: local ports by those that programs name.
        free: whether all other ports are free ones of this machine; `Execution.ports` has them.
    """

    bind: str = "127.0.0.1"
    allow: tuple[str, ...] = ()
    ports: Mapping[int, int] = field(default_factory=dict)
    free: bool = False


class RapidSocket:
    """Socket of a program.

    Attributes:
        status: created, bound, listening, connected or closed.
        socket: socket of this machine.
        received: bytes that were received and not read.
        port: port that a program bound it to, 0 before.
    """

    def __init__(self, made: socket.socket, status: str = "created") -> None:
        self.socket, self.status = made, status
        self.received, self.port = b"", 0
        made.setblocking(False)
        if not self.is_udp:  # small messages go out at once
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def is_udp(self) -> bool:
        """Whether it sends datagrams."""
        return self.socket.type == socket.SOCK_DGRAM

    def readable(self) -> bool:
        """Return whether a client, bytes, or the end of the connection are there."""
        return self.status == "closed" or bool(select.select([self.socket], [], [], 0.0)[0])

    def writable(self) -> bool:
        """Return whether bytes can be sent, or a connection is made."""
        return self.status == "closed" or bool(select.select([], [self.socket], [], 0.0)[1])

    def close(self) -> None:
        """Close the socket."""
        self.status = "closed"
        self.socket.close()
