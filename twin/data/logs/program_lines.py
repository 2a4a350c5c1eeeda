"""Lines of the program that led a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from twin.base.errors import RapidError, TwinError

if TYPE_CHECKING:
    from collections.abc import Sequence

HIGH = re.compile(rb"[\x80-\xff]+")
"""Runs of bytes beyond ASCII."""


def read_text(path: str | Path) -> str:
    """Return the text of a module file, in UTF-8, GBK (of Chinese pendants) or ISO 8859-1.

    Raises:
        OSError: the file cannot be read.
        RapidError: it is not text.
    """
    data = Path(path).read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    odd = sum(byte < 32 and byte not in b"\t\n\v\f\r\x1a" for byte in data[:200])
    if odd > 20:
        raise RapidError(f"{path}: encrypted or not text, expected a RAPID module", "syntax")
    data = data.replace(b"\0", b" ")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        runs = [len(run[0]) for run in HIGH.finditer(data)]
        is_chinese = all(run % 2 == 0 for run in runs) and max(runs) >= 4  # two bytes for each character
        return data.decode("gb18030" if is_chinese else "latin-1", errors="replace")


@dataclass(frozen=True, eq=False)
class ProgramLines:
    """Line that each sample of a run executes.

    Attributes:
        line: (N,) number of the line, 0 before the first one.
        file: (N,) index of its file in `files`.
        files: (F,) names of the files.
        texts: (F,) contents of the files.
    """

    line: np.ndarray
    file: np.ndarray
    files: np.ndarray
    texts: np.ndarray

    @staticmethod
    def of(marks: Sequence[tuple[float, str, int]], t: np.ndarray) -> ProgramLines:
        """Return the lines at the times t (N,), in [s].

        Args:
            marks: time from which a line is executed, path of its file, and its number, in the order of time.
            t: (N,) times.
        """
        paths = list(dict.fromkeys(path for _, path, _ in marks))
        mark = np.searchsorted([start for start, _, _ in marks], t, side="right")
        return ProgramLines(
            line=np.array([0, *(line for _, _, line in marks)])[mark],
            file=np.array([0, *(paths.index(path) for _, path, _ in marks)])[mark],
            files=np.array([Path(path).name for path in paths], dtype=str),
            texts=np.array([read_text(path) for path in paths], dtype=str),
        )

    def require_valid(self, samples: int) -> None:
        """Raise `TwinError` unless the arrays are those of N samples."""
        if self.line.shape != (samples,) or self.file.shape != (samples,):
            raise TwinError(f"expected the lines and files of {samples} samples, got {self.line.shape}")
        if self.files.shape != self.texts.shape:
            raise TwinError(f"expected a text for each of {self.files.size} files, got {self.texts.size}")

    def place(self, sample: int) -> str:
        """Return the line of a sample, as `pick.mod line 12`; "" before the first line."""
        if not self.line[sample]:
            return ""
        return f"{self.files[self.file[sample]]} line {self.line[sample]}"

    def text(self, sample: int) -> str:
        """Return the line of a sample with its text, as `pick.mod line 12: MoveL p1, v100, fine, tool0;`."""
        where = self.place(sample)
        if not where:
            return ""
        lines = str(self.texts[self.file[sample]]).splitlines()
        number = int(self.line[sample])
        return f"{where}: {lines[number - 1].strip()}" if number <= len(lines) else where
