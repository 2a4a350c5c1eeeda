"""HTML put together from texts that may hold anything: what is not markup already is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

EMPTY = ("br", "meta", "input")

TURNING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
"""Characters that turn the direction of what follows, and would show a name as another one."""


class Markup(str):
    """A text that is HTML, as `tag` makes it; every other text is what a reader is to see."""


def tag(name: str, /, *inside: str, **attributes: str) -> Markup:
    """An element: `tag("p", "a < b", id="first")` is `<p id="first">a &lt; b</p>`.

    Args:
        name: of the element.
        inside: texts, which are escaped, and `Markup`.
        attributes: with `_` for `-` and after words of Python's own, as `class_`.
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_seen(value)}"' for key, value in attributes.items()
    )
    if name in EMPTY:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{joined(inside)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Several of them, one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else _seen(part) for part in parts))


def _seen(text: str) -> str:
    """Return the HTML that shows a text as it is."""
    return escape(text.translate(TURNING))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> Markup:
    """A table; the first cell of every row is its heading."""
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    top = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in head))) if any(head) else Markup()
    shown = tag("table", top, tag("tbody", *body), **({"class_": class_} if class_ else {}))
    return tag("div", shown, class_="wide")


def data(value: Any, **attributes: str) -> Markup:
    """A script of type JSON, which no text in it can end."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    text = text.translate(TURNING).replace("<", "\\u003c")
    told = "".join(f' {key}="{escape(content)}"' for key, content in attributes.items())
    return Markup(f'<script type="application/json"{told}>{text}</script>')
