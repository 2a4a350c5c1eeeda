"""What went wrong in code that is not ours, in one sentence; none of it may take other results with it."""

from __future__ import annotations

import signal
import traceback

from twin.errors import TwinError


def told(error: BaseException) -> str:
    """An error in one line: its message if it is one of ours, else with its kind before it."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # an error whose own text fails
        text = ""
    if isinstance(error, (TwinError, ValueError)) and text:
        return text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def told_with_kind(error: BaseException) -> str:
    """The same, always with its kind."""
    kind, text = type(error).__name__, told(error)
    return text if text.startswith(kind) else f"{kind}: {text}"


def told_with_place(error: BaseException, *files: str) -> str:
    """The same after the last line of these files that the error passed through, or after the first file."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    place = f"{own[-1].filename}, line {own[-1].lineno}" if own else files[0]
    return f"{place}: {told_with_kind(error)}"


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody pressed Ctrl-C; a scenario's code can raise the same, and its kind, all by itself."""
    return type(error) is KeyboardInterrupt and signal.getsignal(signal.SIGINT) is signal.default_int_handler
