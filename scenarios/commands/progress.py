"""A progress bar on standard error while runs are under way; nothing where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from scenarios.commands import output


@contextmanager
def shown(count: int) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """Show a bar over `count` runs until the block ends.

    Yields:
        ``begin(title)``, to be called once a run; it returns what takes the fraction done of that run.
    """
    watched = sys.stderr is not None and sys.stderr.isatty()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    console = output.console(sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not watched) as bar:
        task = bar.add_task("starting", total=count)
        begun = -1

        def begin(title: str) -> Callable[[float], None]:
            nonlocal begun
            begun += 1
            before = begun
            bar.update(task, description=title, completed=before)
            return lambda fraction: bar.update(task, completed=before + fraction)

        yield begin
