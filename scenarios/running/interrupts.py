"""What runs until it is told to stop, as a server does, is told so by the first signal and ends in order.

A second signal ends the process at once, as every signal does elsewhere: `scenarios.cli.process`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupt:
    """The signal that came, if one did.

    Attributes:
        number: of the signal; 0 if none came.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.number = 0
        self.stop = stop


_running: list[Interrupt] = []


@contextmanager
def told_to_stop(stop: Callable[[], object]) -> Iterator[Interrupt]:
    """While the block runs, the first signal calls `stop`, from a thread of its own, and nothing else."""
    interrupt = Interrupt(stop)
    _running.append(interrupt)
    try:
        yield interrupt
    finally:
        _running.remove(interrupt)


def take(number: int) -> bool:
    """Have what runs stop; whether there is something that had not been told to."""
    untold = [interrupt for interrupt in _running if not interrupt.number]
    for interrupt in untold:
        interrupt.number = number
        interrupt.stop()
    return bool(untold)
