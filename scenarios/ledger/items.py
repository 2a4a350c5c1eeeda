"""The items of the ledger as the TOML files state them, and the checks that they are complete."""

from __future__ import annotations

import difflib
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from twin.errors import TwinError, UnknownNameError

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
        TwinError: an item is incomplete, or two have the same id.
    """
    found: list[Item] = []
    folder = Path(__file__).parent
    for file in (file for name in FILES for file in sorted(folder.glob(f"{name}*.toml"))):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        found += [_item(file.name, document["source"], entry) for entry in document["item"]]
    names = [item.id for item in found]
    for name in names:
        if names.count(name) > 1:
            raise TwinError(f"the ledger has two items {name!r}")
    return tuple(found)


def chosen(source: str | None, names: Sequence[str] | None) -> tuple[Item, ...]:
    """Some items of the ledger.

    Args:
        source: a source, or a part of its name, in any case and without accents; `None` for all.
        names: ids, likewise; `None` for all.

    Raises:
        UnknownNameError: there is no such source or item.
    """
    of_source = items()
    if source is not None:
        of_source = tuple(item for item in of_source if _plain(source) in _plain(item.source))
        if not of_source:
            raise UnknownNameError(f"unknown source {source!r}: known are {'; '.join(sources())}")
    known = {_plain(item.id): item for item in of_source}
    for name in names or ():
        if _plain(name) in known:
            continue
        elsewhere = [item.source for item in items() if _plain(item.id) == _plain(name)]
        if elsewhere:
            raise UnknownNameError(f"item {name!r} is of {elsewhere[0]}, not of {source!r}")
        near = difflib.get_close_matches(_plain(name), known, 3)
        hint = f", near to it are {', '.join(known[key].id for key in near)}" if near else ""
        raise UnknownNameError(f"unknown item {name!r} of the ledger{hint}: irb-twin published lists all")
    wanted = None if names is None else {_plain(name) for name in names}
    return tuple(item for key, item in known.items() if wanted is None or key in wanted)


def _plain(name: str) -> str:
    """A name as one may type it: in any case, without accents."""
    letters = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


def sources() -> tuple[str, ...]:
    """The sources, in the order of the ledger."""
    return tuple(dict.fromkeys(item.source for item in items()))


def _item(file: str, source: str, entry: dict[str, Any]) -> Item:
    known = {part.name for part in fields(Item)} - {"source"}
    where = f"{file}: item {entry.get('id', '?')!r}"
    for key in entry:
        if key not in known:
            raise TwinError(f"{where} has the unknown key {key!r}, known are {', '.join(sorted(known))}")
    for key in ("id", "where", "what", "verdict"):
        if not entry.get(key):
            raise TwinError(f"{where} lacks {key!r}")
    item = Item(source=source, **entry)
    if item.verdict not in VERDICTS:
        raise TwinError(f"{where} has the verdict {item.verdict!r}, known are {', '.join(VERDICTS)}")
    if item.verdict == "misprint" and not (item.printed and item.right):
        raise TwinError(f"{where} is a misprint and lacks its printed or its right form")
    if item.verdict == "misprint" and not item.text_only and not item.least_error > item.tolerance:
        raise TwinError(f"{where} is a misprint and needs least_error above its tolerance")
    return item
