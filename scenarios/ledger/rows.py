"""Computes the items of the ledger: one function an item, found by the item's id.

A module of this package holds functions like

    @computes("N-2.9")
    def inverse(item: Item) -> Finding:
        q = item.inputs["q"]
        right = quaternions.inverse(q)
        ...
        return Finding(right, residual=..., printed_residual=...)

It calls the library wherever that has the quantity. A formula as it is misprinted stands in the row itself.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.ledger.items import Item, items
from twin.errors import TwinError

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
    def holds(self) -> bool:
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
                raise TwinError(f"two functions compute the item {name!r} of the ledger")
            _COMPUTATIONS[name] = function
        return function

    return registered


@lru_cache(maxsize=1)
def computations() -> dict[str, Computation]:
    """The function of every item that is computed, by id."""
    here = Path(__file__).parent
    for file in sorted((*here.glob("*.py"), *here.glob("*/*.py"))):
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
        raise TwinError(
            f"item {item.id!r}: expected finite numbers of shape {printed.shape}, got {value.tolist()}"
        )
    return Finding(value, largest(np.where(np.isnan(printed), 0.0, value - printed)))
