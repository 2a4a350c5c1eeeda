"""Annotations of a log's samples: payloads that change, wrenches on the tool, and lines of a program.

A log has one robot.  If the payload changes during a run, `Log.payloads` states it.  Equations of motion
apply to the parts of the log, see `twin.logs.parts`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import RapidError, TwinError
from twin.physics.robot.robot import Payload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twin.physics.dynamics.environment import Environment
    from twin.physics.robot.robot import Robot


class LoadChange(NamedTuple):
    """Change of the payload during a run.

    Attributes:
        sample: first sample with this payload.
        payload: payload of the plant; `None` for none.
        model_payload: payload in the controller's model.
    """

    sample: int
    payload: Payload | None
    model_payload: Payload | None


@dataclass(frozen=True, eq=False)
class Payloads:
    """Payloads of a run in which they change.

    Attributes:
        load: (N,) row of `loads` that acts in the step after each sample.
        loads: (L, 10) payloads, one row each: mass, centre of mass, and Ixx, Iyy, Izz, Ixy, Ixz, Iyz about
            it, in [kg, m, kg m^2], flange frame.  The mass of no payload is 0.
    """

    load: np.ndarray
    loads: np.ndarray

    @staticmethod
    def of(changes: Sequence[LoadChange], samples: int) -> Payloads:
        """Return the payloads of N samples; the first change is at sample 0."""
        starts = [change.sample for change in changes]
        load = np.searchsorted(starts, np.arange(samples), side="right") - 1
        return Payloads(load, np.array([_row(change.payload) for change in changes]))

    def require_valid(self, samples: int) -> None:
        """Raise `TwinError` unless the arrays are those of N samples."""
        load, loads = self.load, self.loads
        if load.dtype.kind != "i" or load.shape != (samples,) or loads.ndim != 2 or loads.shape[1] != 10:
            raise TwinError(f"expected load (N,) of whole numbers and loads (L, 10), got {loads.shape}")
        if not (np.all(load >= 0) and np.all(load < len(loads))):
            raise TwinError(f"expected load to be from 0 to {len(loads) - 1}")


def _row(payload: Payload | None) -> list[float]:
    if payload is None:
        return [0.0] * 10
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = np.asarray(payload.inertia).tolist()
    return [payload.mass, *np.asarray(payload.com).tolist(), xx, yy, zz, xy, xz, yz]


def payload_of_row(row: Floats) -> Payload | None:
    """Return the payload of a row of `loads`, `None` for the mass 0."""
    mass, *com = row[:4].tolist()
    xx, yy, zz, xy, xz, yz = row[4:].tolist()
    return Payload(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) if mass else None


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Environment of the tool during a run.

    Attributes:
        wrench: (N, 6) wrench `[f; mu]` on the robot at the tool's origin in the step after each sample, base
            axes, in [N, N m].  With several steps in a control period it is that of the first one.
        pushes, surfaces: (R, 9), (S, 21) rows of `twin.dynamics.Environment`.
    """

    wrench: np.ndarray
    pushes: np.ndarray
    surfaces: np.ndarray

    @classmethod
    def of(
        cls, world: Environment, robot: Robot, t: np.ndarray, q: np.ndarray, qd: np.ndarray
    ) -> Surroundings:
        """Return those of an environment at N times and states, with the bits of a closed loop."""
        return cls(world.wrench(robot, t, q, qd), world.pushes, world.surfaces)

    def require_valid(self, samples: int) -> None:
        """Raise `TwinError` or `ValueError` unless the arrays are those of N samples."""
        if self.wrench.shape != (samples, 6) or self.wrench.dtype != np.float64:
            raise TwinError(f"expected wrench to be of shape {(samples, 6)}, got {self.wrench.shape}")
        from twin.physics.dynamics.environment import Environment  # compiles functions

        Environment(self.pushes, self.surfaces)


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
        raise RapidError(f"{path}: encrypted or not text, expected a RAPID module", "encrypted")
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
