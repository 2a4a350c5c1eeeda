"""How far a command is, on standard error: a bar on a terminal, now and then a line where there is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from scenarios.console import output

EVERY = 30.0
"""Seconds between two lines where nobody watches, as in the log of a CI."""


@contextmanager
def shown(count: int) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """Show a bar over `count` runs until the block ends, which are done one after the other.

    Yields:
        ``begin(title)``, to be called once a run; it returns what takes the fraction done of that run.
    """
    with _bar() as bar:
        task = bar.add_task("starting", total=count, left="")
        begun = -1

        def begin(title: str) -> Callable[[float], None]:
            nonlocal begun
            begun += 1
            before = begun
            bar.update(task, description=title, completed=before)
            return lambda fraction: bar.update(task, completed=before + fraction)

        yield begin


def _bar() -> Progress:
    watched = sys.stderr is not None and sys.stderr.isatty()
    left = TextColumn("{task.fields[left]}", markup=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), left)
    return Progress(*columns, console=output.console(sys.stderr), transient=True, disable=not watched)


class Tally:
    """Counts runs that are done, several at a time, and tells how many are left and for how long.

    Args:
        titles: of all runs.
        bar: to be drawn.
        clock: tells the time, in [s].
    """

    def __init__(self, titles: list[str], bar: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._titles, self._bar, self._clock = titles, bar, clock
        self._task = bar.add_task("starting", total=len(titles), left="")
        self._done = self._failed = 0
        self._began = self._said = clock()

    def begun(self, place: int) -> None:
        """The run of that place has begun."""
        self._bar.update(self._task, description=self._titles[place])

    def done(self, place: int, holds: bool) -> None:
        """It is done."""
        self._done += 1
        self._failed += not holds
        self._bar.update(self._task, completed=self._done, left=self.left())
        if self._bar.disable and self._clock() - self._said >= EVERY:
            self._said = self._clock()
            output.complain(self.line())

    def left(self) -> str:
        """The time left, if the rest takes as long as what is done: the longest runs begin first."""
        return left(self._clock() - self._began, self._done, len(self._titles))

    def line(self) -> str:
        """`40 of 167 done, 2 do not hold, about 50 s left`."""
        broken = f"{self._failed} do{'es' if self._failed == 1 else ''} not hold" if self._failed else ""
        counted = f"{self._done} of {len(self._titles)} done"
        return ", ".join(text for text in (counted, broken, self.left()) if text)


def left(spent: float, done: int, total: int) -> str:
    """`about 50 s left`, if the rest is done as fast as what was; empty where that cannot be told."""
    if not done or done >= total:
        return ""
    return f"about {duration(spent / done * (total - done))} left"


def duration(seconds: float) -> str:
    """`0.3 s`, `50 s`, `12 min`, `5.2 h`."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 1 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def counted(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of so many runs are done until the block ends.

    Yields:
        what takes the number done so far.
    """
    began = said = time.monotonic()
    with _bar() as bar:
        task = bar.add_task(title, total=total, left="")

        def tell(done: int) -> None:
            nonlocal said
            now = time.monotonic()
            rest = left(now - began, done, total)
            bar.update(task, completed=done, left=rest)
            if bar.disable and now - said >= EVERY and done < total:
                said = now
                output.complain(
                    ", ".join(text for text in (f"{title}: {done} of {total} done", rest) if text)
                )

        yield tell


@contextmanager
def tallied(titles: list[str]) -> Iterator[Tally]:
    """Show how many of these runs are done until the block ends."""
    with _bar() as bar:
        yield Tally(titles, bar)
