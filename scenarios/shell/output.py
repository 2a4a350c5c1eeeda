"""Output of the command line: console pages, files that are written completely or not at all, and progress.

Output paths are checked before the work begins. Progress is printed on standard error: as a bar on a
terminal, otherwise as one line every 30 s. Compiling is shown in the same places.
"""

from __future__ import annotations

import getpass
import itertools
import os
import platform
import re
import sys
import time
import warnings
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from scenarios.shell.parser import Unprintable
from twin.base.errors import WrongUse, describe_error, escaped
from twin.base.errors import printable as one_line

if TYPE_CHECKING:
    from rich.progress import Progress

WIDEST, NARROWEST = 100_000, 40
"""Largest and smallest width of a page that is not a terminal, in columns."""
EVERY = 30.0
"""Seconds between two lines of progress if standard error is not a terminal, for example in a CI log."""
COMPILING = "compiling for this robot (once, some 15 s)"


def writable(path: Path, suffix: str | tuple[str, ...], option: str) -> Path:
    """Check that a file can be written, without touching it.

    Args:
        path: the path to write.
        suffix: the required suffix of its name, or the valid suffixes.
        option: the option that named the file, for the message.

    Raises:
        WrongUse: the file cannot be written; the message gives the reason.
    """
    suffixes = (suffix,) if isinstance(suffix, str) else suffix
    if path.suffix.lower() not in suffixes:
        raise WrongUse(f"{option} {path}: expected a file name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise WrongUse(f"{option} {path}: is a folder")
    place = Path(os.path.realpath(path))  # follows symbolic links
    if not place.parent.is_dir():
        raise WrongUse(f"{option} {path}: there is no folder {(place if path.is_symlink() else path).parent}")
    # The folder must be writable, too: a draft is written beside the file, and replaces it when complete.
    if not os.access(place.parent, os.W_OK) or (place.exists() and not os.access(place, os.W_OK)):
        raise WrongUse(f"{option} {path}: no permission to write there")
    return path


def apart(path: Path, names: Sequence[Sequence[str]]) -> list[Path]:
    """Return distinct paths of several files: `run.npz` -> `run-pose_path-pd.npz`, `run-pose_path-pid.npz`.

    Args:
        path: the path that was given.
        names: the parts of each file's name, as any texts; characters that are invalid in a name become `_`.
    """
    paths: list[Path] = []
    for words in names:
        stem = "-".join((path.stem, *(re.sub(r"[^\w.+-]+", "_", word).strip("_") for word in words)))
        tries = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        free = (path.with_name(name + path.suffix) for name in tries)
        paths.append(next(file for file in free if file not in paths))
    return paths


class Files:
    """Output files of a command; if one cannot be written, the others are, and a message names it.

    Attributes:
        faults: one sentence for each file that could not be written.
    """

    def __init__(self) -> None:
        self._written: list[Path] = []
        self.faults: list[str] = []

    def write(self, path: Path | None, write: Callable[[Path], object]) -> None:
        """Write one file completely or not at all; do nothing if `path` is `None`."""
        from twin.base.atomic_file import atomic_write

        if path is None:
            return
        try:
            with atomic_write(path) as draft:
                write(draft)
        except Exception as error:  # of the disk, or of a library that writes the file
            self.faults.append(f"cannot write {path}: {describe_error(error)}")
        else:
            self._written.append(path)

    def write_several(self, write: Callable[[], Sequence[Path]]) -> None:
        """Write files that belong together, with a function that returns their paths."""
        try:
            self._written += write()
        except OSError as error:
            self.faults.append(f"cannot write {error.filename}: {describe_error(error)}")

    @property
    def complete(self) -> bool:
        """Whether all files have been written so far."""
        return not self.faults

    def name(self, console: Any) -> bool:
        """Print the files that were written and those that could not be; return whether all were written."""
        for path in self._written:
            console.print(f"wrote {path}", soft_wrap=True)
        for fault in self.faults:
            print_to_stderr(fault)
        return self.complete


_last: list[str] = [""]
"""The last sentence on standard error."""


def print_to_stderr(sentence: str) -> None:
    """Print one line on standard error, if there is one."""
    _last[0] = sentence
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"irb-twin: {one_line(sentence)}", file=sys.stderr)  # noqa: T201


def print_line(text: str) -> None:
    """Print a text on standard output at once, without wrapping its lines."""
    console().print(text, soft_wrap=True)


def announce_page(address: str) -> None:
    """Print the address of a page, and how to reach it over SSH; open it if the user sits at this machine."""
    port = address.rstrip("/").rpartition(":")[2]
    console().print(f"{address}  (ctrl-C ends)")
    if "SSH_CONNECTION" in os.environ:
        host = f"{getpass.getuser()}@{platform.node()}"
        console().print(f"on your computer: ssh -L {port}:127.0.0.1:{port} {host}")
    elif sys.stdout.isatty():
        webbrowser.open(address)


@contextmanager
def warnings_printed() -> Iterator[None]:
    """Print every distinct warning once, in one line on standard error."""
    printed = set()

    def show(message: Warning | str, *_: Any) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            print_to_stderr(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def console(stream: TextIO | None = None) -> Any:
    """Return a page on standard output or on `stream`, which prints texts as they are, without markup.

    Characters that would control the terminal are escaped.

    Its width is COLUMNS or the terminal's width; if neither is known, as in a pipe, lines are not wrapped. If
    the reader closes the pipe, further output is discarded; a full disk raises `Unprintable`.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Page(Console):
        def render(self, *objects: Any, **settings: Any) -> Iterator[Segment]:
            for one in super().render(*objects, **settings):
                yield one if one.control or one.text.isprintable() else Segment(escaped(one.text), one.style)

        def print(self, *objects: Any, **settings: Any) -> None:
            try:
                super().print(*objects, **{"crop": False, **settings})  # long lines are not cut
            except OSError as error:
                raise Unprintable(describe_error(error)) from error

        def on_broken_pipe(self) -> None:
            self.quiet = True
            hang_up()

    width = _width(stream or sys.stdout)  # rich ignores COLUMNS if it is given a height, too
    return Page(file=stream, width=width, height=25, markup=False, emoji=False, highlight=False)


_page_of_bars = lru_cache(1)(console)
"""Return the only page for bars on a stream, where one bar may be shown below another."""


def _width(stream: TextIO) -> int:
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if re.fullmatch("[0-9]{1,5}", columns) else 0
    if not width:
        with suppress(OSError, ValueError, AttributeError):
            width = os.get_terminal_size(stream.fileno()).columns
    return max(width or WIDEST, NARROWEST)


def printable() -> None:
    """Replace characters that standard output cannot encode by `?`, for example Greek letters in ASCII."""
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    strict = getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape")
    if strict and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]


def flushed(status: int) -> int:
    """Flush standard output; return the exit status, at least 1 on a write error other than a closed pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        hang_up()
    except OSError as error:
        hang_up()
        if status == 0:  # otherwise an error was printed already
            print_to_stderr(f"cannot print: {describe_error(error)}")
            return 1
    return status


def hang_up() -> None:
    """Discard all further output, because Python would otherwise fail to flush it at exit."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def shown(count: int) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """Show a progress bar over `count` consecutive runs until the block ends.

    Yields:
        ``begin(title)``, to be called once per run; it returns a function of the fraction of the run done.
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
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # slow to import

    stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)  # rich replaces it while a bar is shown
    page = _page_of_bars(stream)
    watched = stream is not None and stream.isatty() and page.is_interactive
    left = TextColumn("{task.fields[left]}", markup=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), left)
    return Progress(*columns, console=page, transient=True, disable=not watched)


@contextmanager
def compiling_shown() -> Iterator[None]:
    """Show on standard error, inside a `with` block, that functions are compiled: as a bar or a line."""
    from threading import Lock

    from twin.base import jit

    lock, running, began = Lock(), 0, 0.0
    bar: Progress | None = None

    def show(begins: bool) -> None:
        nonlocal running, began, bar
        with lock:
            running += 1 if begins else -1
            if bar is None:  # one for each function: rich cannot show a bar again below another one
                bar, began = _bar(), began or time.monotonic()
                bar.add_task(COMPILING, total=None, left="")
                bar.tasks[0].start_time = began
                bar.start()
                if bar.disable and _last[0] != COMPILING:
                    print_to_stderr(COMPILING)
            elif running == 0:
                bar = bar.stop()

    jit.on_compiling = show
    try:
        yield
    finally:
        jit.on_compiling = bool
        if bar is not None:
            bar.stop()


class Tally:
    """Progress of parallel runs: counts finished and failed runs, and estimates the time left.

    Args:
        titles: titles of all runs.
        bar: the progress bar.
        clock: function that returns the time in [s].
    """

    def __init__(self, titles: list[str], bar: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._titles, self._bar, self._clock = titles, bar, clock
        self._task = bar.add_task("starting", total=len(titles), left="")
        self._done = self._failed = 0
        self._began = self._printed = clock()

    def begun(self, place: int) -> None:
        """Show that the run with this index has begun."""
        self._bar.update(self._task, description=self._titles[place])

    def done(self, place: int, passes: bool) -> None:
        """Count the run with this index as done."""
        self._done += 1
        self._failed += not passes
        self._bar.update(self._task, completed=self._done, left=self.left())
        if self._bar.disable and self._clock() - self._printed >= EVERY:
            self._printed = self._clock()
            print_to_stderr(self.line())

    def left(self) -> str:
        """Return the time left at constant speed: too long, as the longest runs begin first."""
        return left(self._clock() - self._began, self._done, len(self._titles))

    def line(self) -> str:
        """Return a line such as `40 of 167 done, 2 fail, about 50 s left`."""
        broken = f"{self._failed} fail{'s' * (self._failed == 1)}" if self._failed else ""
        counted = f"{self._done} of {len(self._titles)} done"
        return ", ".join(text for text in (counted, broken, self.left()) if text)


def left(spent: float, done: int, total: int) -> str:
    """Return `about 50 s left`, assuming constant speed; empty if the time cannot be estimated."""
    if not done or done >= total:
        return ""
    return f"about {duration(spent / done * (total - done))} left"


def duration(seconds: float) -> str:
    """Format a duration: `0.3 s`, `50 s`, `12 min`, `5.2 h`."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 1 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def counted(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of `total` runs are done until the block ends.

    Yields:
        A function that takes the number of runs done so far.
    """
    began = printed = time.monotonic()
    with _bar() as bar:
        task = bar.add_task(title, total=total, left="")

        def update(done: int) -> None:
            nonlocal printed
            now = time.monotonic()
            rest = left(now - began, done, total)
            bar.update(task, completed=done, left=rest)
            if bar.disable and now - printed >= EVERY and done < total:
                printed = now
                print_to_stderr(
                    ", ".join(text for text in (f"{title}: {done} of {total} done", rest) if text)
                )

        yield update


@contextmanager
def tallied(titles: list[str]) -> Iterator[Tally]:
    """Show how many of the runs with these titles are done until the block ends."""
    with _bar() as bar:
        yield Tally(titles, bar)
