"""Fuzz cases, made from a kind, a seed and a number."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.fuzz import data_files, robot_files


class CaseId(NamedTuple):
    """Kind, seed and number that determine a case."""

    kind: str
    seed: int
    number: int

    @property
    def command(self) -> str:
        """Command that judges this case alone."""
        return f"python -m tests.fuzz --kind {self.kind} --seed {self.seed} --case {self.number}"


@dataclass(frozen=True)
class Case:
    """Files of a case.

    Attributes:
        id: identity of the case.
        files: contents by name; the program reads the first file.
        rng: random generator for the judge.
    """

    id: CaseId
    files: dict[str, bytes]
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def written(self, folder: Path) -> Path:
        """Write the files to a folder, and return the path of the file that the program reads."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder / next(iter(self.files))


FILES: dict[str, Callable[[np.random.Generator], dict[str, bytes]]] = {
    "urdf": robot_files.urdf_case,
    "robot_toml": robot_files.robot_toml_case,
    "dh_toml": robot_files.dh_toml_case,
    "csv": data_files.csv_case,
    "npz": data_files.npz_case,
}
KINDS = tuple(FILES)


def make(id: CaseId) -> Case:
    """Make the case of an identity; equal identities give equal cases."""
    rng = np.random.default_rng([id.seed, zlib.crc32(id.kind.encode()), id.number])
    return Case(id, FILES[id.kind](rng), rng)
