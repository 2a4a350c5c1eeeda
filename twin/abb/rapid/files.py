"""Files of a controller: reading from a folder of the user, writing into memory."""

from __future__ import annotations

from pathlib import Path


class Files:
    """Files of a controller.

    Args:
        home: folder that stands for HOME:; None if every file is empty when it is read.

    Attributes:
        written: texts that the program wrote, by the names of the files.
    """

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self.has_home = home is not None
        self._open: dict[int, _Opened] = {}
        self.written: dict[str, list[str]] = {}

    @staticmethod
    def plain(name: str) -> str:
        """Return a name such as `HOME:/parts/a.txt` without its volume, as `parts/a.txt`."""
        return name.replace("\\", "/").rpartition(":")[2].lstrip("/")

    def size(self, name: str) -> int | None:
        """Return the number of bytes of a file, None if there is none."""
        name = self.plain(name)
        text = "".join(self.written[name]) if name in self.written else self._read(name)
        return None if text is None or (not self.has_home and name not in self.written) else len(text)

    def open(self, number: int, name: str, mode: str) -> bool:
        """Open a file for reading or writing; return whether it is there.

        Args:
            number: identity of the file's data object.
            name: name with folders, such as `HOME:/parts/a.txt`.
            mode: read, binary (read as it is), write or append.
        """
        name = self.plain(name)
        if mode not in ("read", "binary"):
            if mode == "write" or name not in self.written:
                self.written[name] = []
            self._open[number] = _Opened(name, "", 0)
            return True
        text = "".join(self.written[name]) if name in self.written else self._read(name)
        if text is None:
            return False
        if mode == "read":
            text = text.replace("\r\n", "\n")
        self._open[number] = _Opened(name, text, 0)
        return True

    def _read(self, name: str) -> str | None:
        if self._home is None:
            return ""
        path = (self._home / name).resolve()
        if not path.is_relative_to(self._home.resolve()) or not path.is_file():
            return None
        return path.read_bytes().decode("latin-1")

    def is_open(self, number: int) -> bool:
        """Return whether a file is open."""
        return number in self._open

    def close(self, number: int) -> None:
        """Close a file."""
        self._open.pop(number, None)

    def rewind(self, number: int) -> None:
        """Go to the beginning of a file."""
        if number in self._open:
            self._open[number].at = 0

    def write(self, number: int, text: str) -> None:
        """Write into an open file."""
        self.written[self._open[number].name].append(text)

    def line(self, number: int) -> str | None:
        """Return the next line of a file, None at its end."""
        opened = self._open[number]
        if opened.at >= len(opened.text):
            return None
        end = opened.text.find("\n", opened.at)
        end = len(opened.text) if end < 0 else end
        text, opened.at = opened.text[opened.at : end], end + 1
        return text

    def characters(self, number: int, count: int) -> str:
        """Return the next characters of a file, one for each byte; fewer, or none, at its end."""
        opened = self._open[number]
        text = opened.text[opened.at : opened.at + count]
        opened.at += len(text)
        return text


class _Opened:
    """Open file: its name, its text and the place of reading."""

    __slots__ = ("at", "name", "text")

    def __init__(self, name: str, text: str, at: int) -> None:
        self.name, self.text, self.at = name, text, at
