"""The published numbers and equations: the TOML files state them, a function each computes them.

A module beside this one holds functions like

    @computes("N-2.9")
    def inverse(item: Item) -> Finding:
        q = item.inputs["q"]
        right = quaternions.inverse(q)
        ...
        return Finding(right, residual=..., printed_residual=...)

It calls the library wherever that has the quantity. A misprinted formula stands in the function, as printed.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERDICTS = ("reproduced", "misprint", "ambiguous", "lost")
"""An item holds as printed; is printed wrong, and has a right form; can be read in several ways, of which one
works; or did not survive in the text, and has a value that we recovered or derived, if any."""


FILES = (
    "norrlof_rotations",
    "norrlof_kinematics",
    "norrlof_jacobians",
    "norrlof_dynamics",
    "norrlof_lecture",
    "aliaga",
    "ljubljana",
    "kawasaki",
)
"""How the names of the files begin, in the order in which they are read."""


@dataclass(frozen=True)
class Item:
    """One published number, equation or statement.

    Attributes:
        id: as `N-2.9`: a letter for the source, and where it stands.
        source: author and year, as the README lists them.
        where: equation, table or section of the source.
        what: the quantity or the claim, in a few words.
        verdict: one of `VERDICTS`.
        tolerance: largest residual at which the item holds; for a printed number half a unit of its last
            digit, for an equation 1e-9 or the bound that `note` explains.
        printed: the formula as the source has it, for a misprint or an ambiguity; else what helps to read.
        right: the right form of a misprint, the reading of an ambiguity that works, the recovered value.
        expected: the printed number, or empty for an equation; an entry that is lost is NaN.
        inputs: what the number was computed from.
        least_error: a misprint must miss by at least this, in the units of the residual.
        text_only: why there is nothing to compute; empty where there is.
        note: what else a reader should know.
    """

    id: str
    source: str
    where: str
    what: str
    verdict: str
    tolerance: float = 1e-9
    printed: str = ""
    right: str = ""
    expected: Any = ()
    inputs: dict[str, Any] = field(default_factory=dict)
    least_error: float = 0.0
    text_only: str = ""
    note: str = ""


@lru_cache(maxsize=1)
def items() -> tuple[Item, ...]:
    """All items, source by source, in the order of the files.

    Raises:
        ValueError: an item is incomplete, or two have the same id.
    """
    found: list[Item] = []
    folder = Path(__file__).parent
    for file in (file for name in FILES for file in sorted(folder.glob(f"{name}*.toml"))):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        found += [checked_item(file.name, document["source"], entry) for entry in document["item"]]
    names = [item.id for item in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"there are two items {name!r}")
    return tuple(found)


def checked_item(file: str, source: str, entry: dict[str, Any]) -> Item:
    """An item of a file; `ValueError` where it is incomplete."""
    known = {part.name for part in fields(Item)} - {"source"}
    where = f"{file}: item {entry.get('id', '?')!r}"
    for key in entry:
        if key not in known:
            raise ValueError(f"{where} has the unknown key {key!r}, known are {', '.join(sorted(known))}")
    for key in ("id", "where", "what", "verdict"):
        if not entry.get(key):
            raise ValueError(f"{where} lacks {key!r}")
    item = Item(source=source, **entry)
    if item.verdict not in VERDICTS:
        raise ValueError(f"{where} has the verdict {item.verdict!r}, known are {', '.join(VERDICTS)}")
    if item.verdict == "misprint" and not (item.printed and item.right):
        raise ValueError(f"{where} is a misprint and lacks its printed or its right form")
    if item.verdict == "misprint" and not item.text_only and not item.least_error > item.tolerance:
        raise ValueError(f"{where} is a misprint and needs least_error above its tolerance")
    return item


SEED = 20
SAMPLES = 200
"""How many random samples an identity is tried on, the awkward ones apart."""


@dataclass(frozen=True)
class Finding:
    """What computing an item gave.

    Attributes:
        computed: the library's result, an array, a number, or a few words.
        residual: how far it is from what was printed, or how far the right form is from holding, at most.
        printed_residual: of a misprint or an ambiguity, the same for the form as it is printed.
    """

    computed: Any
    residual: float
    printed_residual: float | None = None


@dataclass(frozen=True)
class Row:
    """An item and what came of it; `finding` is `None` where there is nothing to compute.

    `error` says why an item could not be computed that should have been.
    """

    item: Item
    finding: Finding | None
    seconds: float = 0.0
    error: str = ""

    @property
    def passes(self) -> bool:
        """Whether the verdict is confirmed: the right form holds; of a misprint, the printed one fails."""
        item, finding = self.item, self.finding
        if finding is None:
            return bool(item.text_only) and not self.error
        right = finding.residual <= item.tolerance
        if item.verdict != "misprint":
            return bool(right)
        return bool(
            right and finding.printed_residual is not None and finding.printed_residual >= item.least_error
        )


Computation = Callable[[Item], Finding]
_COMPUTATIONS: dict[str, Computation] = {}


def computes(*names: str) -> Callable[[Computation], Computation]:
    """Declare that a function computes the items of these ids."""

    def registered(function: Computation) -> Computation:
        for name in names:
            if name in _COMPUTATIONS:
                raise ValueError(f"two functions compute the item {name!r}")
            _COMPUTATIONS[name] = function
        return function

    return registered


@lru_cache(maxsize=1)
def computations() -> dict[str, Computation]:
    """The function of every item that is computed, by id."""
    here = Path(__file__).parent
    for file in sorted((here / "kawasaki.py", *here.glob("*/*.py"))):
        module = ".".join(file.relative_to(here).with_suffix("").parts)
        importlib.import_module(f"{__package__}.{module}")
    return _COMPUTATIONS


def rows(chosen: Iterable[Item] | None = None) -> Iterator[Row]:
    """Compute items, all by default, one after the other."""
    known = computations()
    for item in items() if chosen is None else chosen:
        if item.text_only:
            yield Row(item, None)
            continue
        if item.id not in known:
            yield Row(item, None, error="no function computes it, and it is not text only")
            continue
        start, finding, error = time.perf_counter(), None, ""
        try:
            finding = known[item.id](item)
        except Exception as fault:  # whatever goes wrong in one row: the others still count
            first_line, *_ = f"{fault}\n".splitlines()
            error = f"{type(fault).__name__}: {first_line}"
        yield Row(item, finding, time.perf_counter() - start, error)


def rng() -> np.random.Generator:
    """The random numbers of a row; every row begins anew, so that rows do not depend on each other."""
    return np.random.default_rng(SEED)


def largest(*differences: Any) -> float:
    """The largest magnitude in arrays; NaN if there is one."""
    return float(np.max([np.max(np.abs(np.asarray(d, dtype=float)), initial=0.0) for d in differences]))


def against_printed(item: Item, computed: Any) -> Finding:
    """The finding of a printed number: the largest difference from it, entries that were lost (NaN) aside."""
    value, printed = np.asarray(computed, dtype=float), np.asarray(item.expected, dtype=float)
    if value.shape != printed.shape or not np.all(np.isfinite(value)):
        raise ValueError(
            f"item {item.id!r}: expected finite numbers of shape {printed.shape}, got {value.tolist()}"
        )
    return Finding(value, largest(np.where(np.isnan(printed), 0.0, value - printed)))
