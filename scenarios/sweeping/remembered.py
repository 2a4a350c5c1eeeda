"""What a function made of settings, kept for all settings that agree in what it read of them."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, Generic, TypeVar

from scenarios.base import Config

T = TypeVar("T")

APART = ("plant_changes", "model_changes")
"""Parts of `Config.changes` that are read apart."""


class Remembered(Generic[T]):
    """A function of settings that is called once for all that agree in what it reads.

    So nobody has to say what a scenario's reference depends on: a payload that varies leaves it alone unless
    the scenario asks for the payload.

    Args:
        make: the function; it reads settings as attributes, and nothing else that changes.
        most: so many results are kept, the latest.
    """

    def __init__(self, make: Callable[[Config], T], most: int) -> None:
        self._make = make
        self._kept: deque[tuple[dict[str, Any], T]] = deque(maxlen=most)
        self._lock = Lock()

    def __call__(self, config: Config) -> T:
        """The result for these settings; the same object wherever it is the same."""
        with self._lock:
            for read, result in self._kept:
                if all(getattr(config, name) == value for name, value in read.items()):
                    return result
            read = {}
            result = self._make(_watched(config, read))
            self._kept.appendleft((read, result))
            return result


def _watched(config: Config, read: dict[str, Any]) -> Config:
    """The settings, which note every one that is read, with its value."""
    watched = object.__new__(_watched_class(config.__class__))
    object.__setattr__(watched, "_watched", (config, read))
    return watched


@cache
def _watched_class(kind: type[Config]) -> type[Config]:
    names = {*(item.name for item in dataclasses.fields(kind)), *APART}

    class Watched(kind):
        def __getattribute__(self, name: str) -> Any:
            config, read = object.__getattribute__(self, "_watched")
            if name == "__class__":
                return kind  # so that copies are not watched: making one reads all that it keeps
            for one in names if name == "__dict__" else names & {name}:
                read[one] = getattr(config, one)
            if name in names:
                return read[name]
            return config.__dict__ if name == "__dict__" else super().__getattribute__(name)

    return Watched
