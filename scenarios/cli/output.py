"""Pages on the console, files that appear whole or not at all, and progress.

Files are checked before the work begins. Progress is on standard error: a bar on a terminal, now and then a
line where there is none.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from scenarios.cli.arguments import Unprintable, WrongUse
from twin.errors import describe_error

if TYPE_CHECKING:
    from rich.progress import Progress

WIDEST, NARROWEST = 100_000, 40
"""Columns of a page that is no terminal: as many as its tables take; and the fewest they can be read in."""
EVERY = 30.0
"""Seconds between two lines where nobody watches, as in the log of a CI."""


def writable(path: Path, suffix: str | tuple[str, ...], option: str) -> Path:
    """Check that a file can be written, without touching it.

    Args:
        path: where to.
        suffix: how its name must end, or the ways in which it may.
        option: the option that asked for it, for the message.

    Raises:
        WrongUse: if it cannot, with the reason.
    """
    suffixes = (suffix,) if isinstance(suffix, str) else suffix
    if path.suffix.lower() not in suffixes:
        raise WrongUse(f"{option} {path}: expected a file name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise WrongUse(f"{option} {path}: is a folder")
    place = Path(os.path.realpath(path))  # a link is followed
    if not place.parent.is_dir():
        raise WrongUse(f"{option} {path}: there is no folder {(place if path.is_symlink() else path).parent}")
    # The folder, too: a file is written beside its place, and takes it when it is complete.
    if not os.access(place.parent, os.W_OK) or (place.exists() and not os.access(place, os.W_OK)):
        raise WrongUse(f"{option} {path}: no permission to write there")
    return path


def apart(path: Path, names: Sequence[Sequence[str]]) -> list[Path]:
    """`run.npz` -> `run-pose_path-pd.npz`, `run-pose_path-pid.npz`: the names of several files of one kind.

    Args:
        path: what was asked for.
        names: the words of each file, which may be any texts; what no file's name can have becomes `_`.
    """
    paths: list[Path] = []
    for words in names:
        stem = "-".join((path.stem, *(re.sub(r"[^\w.+-]+", "_", word).strip("_") for word in words)))
        tries = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        free = (path.with_name(name + path.suffix) for name in tries)
        paths.append(next(file for file in free if file not in paths))
    return paths


class Files:
    """The files of a command; one that cannot be written costs only itself, and is named at the end."""

    def __init__(self) -> None:
        self._written: list[Path] = []
        self._faults: list[str] = []

    def write(self, path: Path | None, write: Callable[[Path], object]) -> None:
        """Write one file, whole or not at all; none if there is no path."""
        from twin.atomic_file import atomic_write

        if path is None:
            return
        try:
            with atomic_write(path) as draft:
                write(draft)
        except Exception as error:  # of the disk, or of one of the libraries that write
            self._faults.append(f"cannot write {path}: {describe_error(error)}")
        else:
            self._written.append(path)

    def write_several(self, write: Callable[[], Sequence[Path]]) -> None:
        """Write files that belong together, by what names them."""
        try:
            self._written += write()
        except OSError as error:
            self._faults.append(f"cannot write {error.filename}: {describe_error(error)}")

    @property
    def complete(self) -> bool:
        """Whether all was written so far."""
        return not self._faults

    def name(self, console: Any) -> bool:
        """Name what was written, and what could not be; return whether all was written."""
        for path in self._written:
            console.print(f"wrote {path}", highlight=False, soft_wrap=True)
        for fault in self._faults:
            print_to_stderr(fault)
        return self.complete


def print_to_stderr(sentence: str) -> None:
    """One line on standard error, if there is one."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"irb-twin: {' '.join(sentence.split())}", file=sys.stderr)  # noqa: T201


@contextmanager
def warnings_printed() -> Iterator[None]:
    """Tell every warning in one line on standard error, once, whatever place it comes from."""
    told = set()

    def tell(message: Warning | str, *_: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            print_to_stderr(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def console(stream: TextIO | None = None) -> Any:
    """A page on standard output or that stream; texts appear as they are, without markup.

    It has the terminal's width or what COLUMNS says; where neither is known, as in a pipe, nothing is
    wrapped.  A reader who hangs up ends the printing, and nothing else; a full disk raises `Unprintable`.
    """
    from rich.console import Console

    class Page(Console):
        def print(self, *objects: Any, **settings: Any) -> None:
            try:
                super().print(*objects, **{"crop": False, **settings})  # a line is whole, however long
            except OSError as error:
                raise Unprintable(describe_error(error)) from error

        def on_broken_pipe(self) -> None:
            self.quiet = True
            hang_up()

    width = _width(stream or sys.stdout)  # with a height, too, rich does not read COLUMNS itself
    return Page(file=stream, width=width, height=25, markup=False, emoji=False)


def _width(stream: TextIO) -> int:
    told = os.environ.get("COLUMNS", "")
    width = int(told) if re.fullmatch("[0-9]{1,5}", told) else 0
    if not width:
        with suppress(OSError, ValueError, AttributeError):
            width = os.get_terminal_size(stream.fileno()).columns
    return max(width or WIDEST, NARROWEST)


def printable() -> None:
    """Have the console print `?` for a sign that it does not know, as an ASCII terminal a Greek letter."""
    if sys.stdout is None:  # closed by whoever started it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    strict = getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape")
    if strict and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]


def flushed(status: int) -> int:
    """The exit status, once all is printed; at least 1 if it cannot be, unless the reader hung up."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        hang_up()
    except OSError as error:
        hang_up()
        if status == 0:  # else it was told, whatever it was
            print_to_stderr(f"cannot print: {describe_error(error)}")
            return 1
    return status


def hang_up() -> None:
    """Send what is still to be printed nowhere: Python would try again at its end, and complain."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


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
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # not light

    watched = sys.stderr is not None and sys.stderr.isatty()
    left = TextColumn("{task.fields[left]}", markup=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), left)
    return Progress(*columns, console=console(sys.stderr), transient=True, disable=not watched)


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
            print_to_stderr(self.line())

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
                print_to_stderr(
                    ", ".join(text for text in (f"{title}: {done} of {total} done", rest) if text)
                )

        yield tell


@contextmanager
def tallied(titles: list[str]) -> Iterator[Tally]:
    """Show how many of these runs are done until the block ends."""
    with _bar() as bar:
        yield Tally(titles, bar)
