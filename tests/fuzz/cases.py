"""What a case is, and how it is made from its kind, seed and number."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.fuzz import data_files, programs, robot_files


class CaseId(NamedTuple):
    """What names a case, and makes it again."""

    kind: str
    seed: int
    number: int

    @property
    def command(self) -> str:
        """The command that judges this case alone."""
        return f"python -m tests.fuzz --kind {self.kind} --seed {self.seed} --case {self.number}"


@dataclass(frozen=True)
class Case:
    """Files by name, the first of which is read; whether they are right, where that is known."""

    id: CaseId
    files: dict[str, bytes]
    right: bool | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def written(self, folder: Path) -> Path:
        """Write the files; returns the path of the one that is read."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder / next(iter(self.files))


def _any_robot(rng: np.random.Generator) -> dict[str, bytes]:
    makers = (robot_files.urdf_case, robot_files.robot_toml_case, robot_files.dh_toml_case)
    return makers[rng.integers(len(makers))](rng)


FILES: dict[str, Callable[[np.random.Generator], dict[str, bytes]]] = {
    "urdf": robot_files.urdf_case,
    "robot_toml": robot_files.robot_toml_case,
    "dh_toml": robot_files.dh_toml_case,
    "csv": data_files.csv_case,
    "npz": data_files.npz_case,
    "check_model": _any_robot,
}
PROGRAMS = {"scenario": programs.scenario, "controller": programs.controller}
KINDS = (*FILES, *PROGRAMS)


def make(id: CaseId) -> Case:
    """The case of that name, the same every time."""
    rng = np.random.default_rng([id.seed, zlib.crc32(id.kind.encode()), id.number])
    if id.kind in PROGRAMS:
        program = PROGRAMS[id.kind](rng)
        return Case(id, {"own.py": program.text}, program.right, rng)
    return Case(id, FILES[id.kind](rng), None, rng)
