"""Lines, texts, sliders and buttons of PyBullet's window, and what it calls them.

Where its threads run into each other, once in some thousand times on a busy computer, PyBullet makes an item
and says -1 in the place of its number.  Numbers are given out one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def add_item(client: Any, add: Callable[..., int], *what: Any, replaced: int = -1) -> int:
    """Make an item of the window, in the place of another if its number is given.

    Args:
        client: PyBullet's, of the window.
        add: its `addUserDebugLine`, `addUserDebugText` or `addUserDebugParameter`.
        what: its arguments.
        replaced: the number of the item in whose place it comes.

    Returns:
        Its number.
    """
    if replaced >= 0:
        add(*what, replaceItemUniqueId=replaced)
        return replaced
    number = add(*what)
    if number < 0:
        number = add_item(client, add, *what)
        client.removeUserDebugItem(number - 1)
    return number
