"""A sweep in parts: how many points make a chunk, and where chunks stay that are finished.

Each finished chunk is a file in a folder, beside a description of the sweep; so a sweep that was ended in the
midst goes on where it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.atomic_file import drafted
from twin.errors import TwinError
from twin.sweeps.outcomes import OUTCOME
from twin.sweeps.trial import differences

if TYPE_CHECKING:
    from twin.sweeps.trial import Experiment

STEPS_OF_A_CHUNK = 1_000_000
"""About a second in compiled code."""

ENGINE_STEPS_OF_A_CHUNK = 40_000
"""About as long in PyBullet."""

MOST_POINTS = 500
FEWEST_CHUNKS, MOST_CHUNKS = 32, 10_000
DESCRIPTION = "sweep.json"
CHECKSUM = hashlib.sha256().digest_size


def chunk_size(count: int, steps: int, *, engine: bool = False) -> int:
    """How many points make a chunk: about a second of work, some chunks for every core, and not too many.

    It depends on the sweep alone, never on who carries it out.

    Args:
        count: number of points.
        steps: of a run.
        engine: whether PyBullet makes them.
    """
    worth = (ENGINE_STEPS_OF_A_CHUNK if engine else STEPS_OF_A_CHUNK) // max(steps, 1)
    return max(1, min(worth, MOST_POINTS, -(-count // FEWEST_CHUNKS)), -(-count // MOST_CHUNKS))


def chunks(count: int, size: int) -> list[slice]:
    """The chunks of so many points."""
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def description(
    experiment: Experiment,
    names: tuple[str, ...],
    values: np.ndarray,
    depends: Mapping[str, str],
    *,
    size: int,
    engine: bool,
) -> dict[str, Any]:
    """What the figures of a sweep depend on, in short; what it is called where two sweeps differ in it.

    Args:
        experiment: what varies.
        names: of the quantities.
        values: (N, d) of the points.
        depends: digests of `twin.sweeps.trial`.
        size: of the chunks.
        engine: whether PyBullet makes them.

    Raises:
        TwinError: the experiment cannot be pickled.
    """
    try:
        content = pickle.dumps(experiment)
    except Exception as error:
        raise TwinError(
            f"this sweep cannot be kept, for what it runs cannot be pickled: {error}; a law or an experiment "
            "has to be something of a module"
        ) from None
    return {
        "what it runs": hashlib.sha256(content).hexdigest(),
        "quantities": list(names),
        "points": [len(values), hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()],
        "points of a chunk": size,
        "PyBullet or not": engine,
        **depends,
    }


class KeptChunks:
    """The finished chunks of one sweep, in a folder.

    Args:
        folder: made where there is none.
        described: what the sweep is, see `description`.
        resume: go on with the chunks that are there.

    Raises:
        TwinError: there are chunks of another sweep, or there are some and `resume` was not asked for.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: str | Path, described: dict[str, Any], *, resume: bool) -> None:
        self.folder = Path(folder)
        there = self._described()
        if there is not None:
            differing = differences(there, described)
            if differing and resume:
                raise TwinError(
                    f"{self.folder} holds chunks of another sweep (there differ: {differing}); "
                    "remove it, or choose another folder"
                )
            if not resume:
                raise TwinError(f"{self.folder} holds chunks of a sweep: resume it, or remove the folder")
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(not path.name.startswith(".") for path in self.folder.iterdir()):  # killed while it began
            raise TwinError(f"{self.folder} holds something else than a sweep; choose another folder")
        with drafted(self.folder / DESCRIPTION) as draft:
            draft.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")

    def _described(self) -> dict[str, Any] | None:
        """What sweep the folder holds; `None` if it holds none."""
        try:
            text = (self.folder / DESCRIPTION).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        with suppress(ValueError):
            if isinstance(there := json.loads(text), dict):
                return there
        return {}

    def finished(self, parts: list[slice]) -> Iterator[tuple[int, np.ndarray]]:
        """The chunks that are there, by their numbers; one whose file is damaged is not."""
        for number, part in enumerate(parts):
            with suppress(OSError, ValueError, EOFError):
                content = self._file(number).read_bytes()
                if _checksum(number, content[:-CHECKSUM]) != content[-CHECKSUM:]:
                    continue
                rows = np.load(io.BytesIO(content), allow_pickle=False)
                if rows.dtype == OUTCOME and rows.shape == (part.stop - part.start,):
                    yield number, rows

    def add(self, number: int, rows: np.ndarray) -> None:
        """Keep a chunk, with a checksum behind it."""
        np.save(file := io.BytesIO(), rows, allow_pickle=False)
        with drafted(self._file(number)) as draft:
            draft.write_bytes(file.getvalue() + _checksum(number, file.getvalue()))

    def _file(self, number: int) -> Path:
        return self.folder / f"chunk-{number:06}.npy"


def _checksum(number: int, content: bytes) -> bytes:
    """The checksum of a chunk, which is another one for the same rows under another number."""
    return hashlib.sha256(b"%d:" % number + content).digest()


def remove_kept(folder: str | Path) -> None:
    """Remove the folder of a sweep, once its result is written; nothing but what sweeps write is removed."""
    folder = Path(folder)
    if (folder / DESCRIPTION).is_file():
        shutil.rmtree(folder, ignore_errors=True)
