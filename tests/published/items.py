"""The published numbers and equations: TOML files state them, and one function computes each of them.

The functions have this form:

    @computes("N-2.9")
    def inverse(item: Item) -> Finding:
        q = item.inputs["q"]
        right = quaternions.inverse(q)
        ...
        return Finding(right, residual=..., printed_residual=...)

A function calls the library for every quantity that the library has.  It contains a misprinted formula as
printed.
"""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERDICTS = ("reproduced", "misprint", "ambiguous", "lost")
"""Verdicts on items.

- reproduced: the item is right as printed.
- misprint: the printed form is wrong, and `right` has the correct form.
- ambiguous: the text allows several readings, one of which is right.
- lost: the text has lost the item; `right` has a recovered or derived value, if there is one.
"""


FILES = (
    *(f"norrlof_{part}" for part in ("rotations", "kinematics", "jacobians", "dynamics", "lecture")),
    *("aliaga", "ljubljana", "kawasaki", "textbooks"),
)
"""Prefixes of the file names, in reading order."""


@dataclass(frozen=True)
class Item:
    """One published number, equation or statement.

    Attributes:
        id: letter of the source, and place in the source, such as `N-2.9`.
        source: author and year, as in the README.
        where: equation, table or section of the source.
        what: short name of the quantity or the claim.
        verdict: one of `VERDICTS`.
        tolerance: largest residual of a confirmed item; half a unit of the last digit for a printed number,
            1e-9 or the bound that `note` explains for an equation.
        printed: formula of the source for a misprint or an ambiguity, else an explanation, if any.
        right: right form of a misprint, right reading of an ambiguity, or recovered value.
        expected: printed number, NaN for a lost entry; empty for an equation.
        inputs: values from which the number is computed.
        least_error: smallest residual that the printed form of a misprint must have.
        text_only: reason why nothing can be computed, else empty.
        note: further information for the reader.
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
    """Read all items, source by source, in the order of the files.

    Raises:
        ValueError: an item is incomplete, or two have the same id.
    """
    found: list[Item] = []
    folder = Path(__file__).parent
    for file in (file for name in FILES for file in sorted(folder.glob(f"{name}*.toml"))):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        found += [checked_item(file.name, document["source"], entry) for entry in document["item"]]
    if len({item.id for item in found}) < len(found):
        raise ValueError("two items have the same id")
    return tuple(found)


def checked_item(file: str, source: str, entry: dict[str, Any]) -> Item:
    """Return an entry of a file as an item.

    Raises:
        TypeError: the entry lacks a key, or has an unknown one.
        ValueError: the entry has an unknown verdict, or is an incomplete misprint.
    """
    item = Item(source=source, **entry)  # which knows the valid keys
    if item.verdict not in VERDICTS:
        raise ValueError(f"{file}: {item.id} has the verdict {item.verdict!r}; valid: {', '.join(VERDICTS)}")
    if item.verdict == "misprint" and not (item.printed and item.right):
        raise ValueError(f"{file}: {item.id} is a misprint and lacks its printed or its right form")
    if item.verdict == "misprint" and not item.text_only and not item.least_error > item.tolerance:
        raise ValueError(f"{file}: {item.id} is a misprint and needs least_error above its tolerance")
    return item


SEED = 20
SAMPLES = 200
"""Number of random samples for an identity, in addition to the special cases."""


@dataclass(frozen=True)
class Finding:
    """Result of computing an item.

    Attributes:
        computed: result of the library as an array or number, or a short description of the check.
        residual: largest difference from the printed number, or largest error of the right form.
        printed_residual: largest error of the printed form of a misprint or an ambiguity.
    """

    computed: Any
    residual: float
    printed_residual: float | None = None


@dataclass(frozen=True)
class Row:
    """An item and its result.

    Attributes:
        item: the item.
        finding: result of its computation, `None` if nothing was computed.

        error: reason why the computation failed, else empty.
    """

    item: Item
    finding: Finding | None
    error: str = ""

    @property
    def passes(self) -> bool:
        """Whether the verdict is confirmed: the right form holds, and a misprint's printed form fails."""
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
    """Register the decorated function for the items of the given ids."""

    def registered(function: Computation) -> Computation:
        for name in names:
            if name in _COMPUTATIONS:
                raise ValueError(f"two functions compute the item {name!r}")
            _COMPUTATIONS[name] = function
        return function

    return registered


@lru_cache(maxsize=1)
def computations() -> dict[str, Computation]:
    """Return the functions of all computed items, by id."""
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
            yield Row(item, None, error="no function computes the item, and it is not text only")
            continue
        finding, error = None, ""
        try:
            finding = known[item.id](item)
        except Exception as fault:  # an error of any kind in one row must not stop the others
            error = f"{type(fault).__name__}: {fault}"
        yield Row(item, finding, error)


def rng() -> np.random.Generator:
    """Return a new generator with the fixed seed, so that rows do not depend on each other."""
    return np.random.default_rng(SEED)


def largest(*differences: Any) -> float:
    """Return the largest magnitude in arrays, NaN if one of them contains NaN."""
    return float(np.max([np.max(np.abs(np.asarray(d, dtype=float)), initial=0.0) for d in differences]))


def against_printed(item: Item, computed: Any) -> Finding:
    """Return the finding of a printed number, whose lost entries (NaN) do not count."""
    value, printed = np.asarray(computed, dtype=float), np.asarray(item.expected, dtype=float)
    if value.shape != printed.shape or not np.all(np.isfinite(value)):
        raise ValueError(
            f"item {item.id!r}: expected finite numbers of shape {printed.shape}, got {value.tolist()}"
        )
    return Finding(value, largest(np.where(np.isnan(printed), 0.0, value - printed)))
