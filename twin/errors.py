"""Errors of the twin, and sentences on errors of code that is not ours."""

import difflib
import signal
import traceback
from collections.abc import Iterable
from typing import Any


class ShapeError(ValueError):
    """An array of another shape than expected: `ShapeError("expected q of shape (6,)", q.shape)`.

    Compiled code raises it, which would take a second more of compiling to write the sentence itself.
    """

    def __str__(self) -> str:
        expected, shape = self.args
        return f"{expected}, got {shape}"


class TwinError(Exception):
    """Base of all errors of the domain."""


class UnknownNameError(TwinError):
    """A robot, controller, scenario or option that does not exist."""


class RobotError(TwinError):
    """A robot file that is missing, malformed, or describes a body that cannot exist."""


class RecordingError(TwinError):
    """A recorded path (CSV) that is malformed."""


class UnreachableError(TwinError):
    """A tool pose that no joint angles reach."""


class LimitError(TwinError):
    """A joint position or speed beyond its limit."""


class LoopError(TwinError):
    """A closed loop that came open in the simulation."""


class SingularityError(TwinError):
    """A tool path through a singular configuration."""


class BranchError(TwinError):
    """A tool path that no single inverse-kinematics branch follows continuously."""


class PluginError(TwinError):
    """The code of somebody's scenario, controller or package failed, or is not what it has to be."""


class VariationError(TwinError):
    """A quantity that a sweep cannot vary, or not like that."""


class ClusterError(TwinError):
    """Worker processes that do not start, do not answer, or went away."""


class IdentificationError(TwinError):
    """Measurements that do not tell what is asked of them."""


class EgmError(TwinError):
    """A message, a setting or a partner on the wire that externally guided motion cannot work with."""


class EgmModeError(EgmError):
    """A message that guides a robot by another thing (joints, pose, path) than it is guided by."""


class NoDisplayError(TwinError):
    """There is no display to open a window on; `found` says so without what to do about it."""

    def __init__(self, found: str) -> None:
        super().__init__(f"{found}; run without it (gui=False)")
        self.found = found


class DivergenceError(TwinError):
    """A simulation that ran away; `log` holds the run up to that instant."""

    def __init__(self, message: str, log: Any = None) -> None:
        super().__init__(message)
        self.log = log


class TouchedError(TwinError):
    """A run that a person changed or ended at the window: nothing is claimed of it; `log` holds it."""

    def __init__(self, message: str, log: Any = None) -> None:
        super().__init__(message)
        self.log = log


def near(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'irb140'?` for a name that is near a known one; empty where none is."""
    by_small = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_small, 1)
    return f", did you mean {by_small[found[0]]!r}?" if found else ""


def printable(text: str) -> str:
    """A text that came with a file, on one line, with what cannot be printed escaped."""
    line = " ".join(text.split())
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


class Closed:
    """Stands where something that was closed stood: whatever is asked of it raises `TwinError`."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Any:
        raise TwinError(self._message)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Raise `TwinError`."""
        raise TwinError(self._message)


class ShapeWarning(UserWarning):
    """Shapes of a robot that are not drawn, for their files are missing; nothing else depends on them."""


class DriveWarning(UserWarning):
    """Drives that are simulated as they are told, and are hardly meant so."""


class EgmWarning(UserWarning):
    """What comes to a client of a robot and is not listened to: datagrams of others, and broken ones."""


class IdentificationWarning(UserWarning):
    """Parameters that were identified, and are hardly those of this arm."""


def describe_error(error: BaseException) -> str:
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


def describe_error_with_type(error: BaseException) -> str:
    """The same, always with its kind."""
    kind, text = type(error).__name__, describe_error(error)
    return text if text.startswith(kind) else f"{kind}: {text}"


def describe_error_with_location(error: BaseException, *files: str) -> str:
    """The same after the last line of these files that the error passed through, or after the first file."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    place = f"{own[-1].filename}, line {own[-1].lineno}" if own else files[0]
    return f"{place}: {describe_error_with_type(error)}"


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody pressed Ctrl-C; a scenario's code can raise the same, and its kind, all by itself."""
    return type(error) is KeyboardInterrupt and signal.getsignal(signal.SIGINT) is signal.default_int_handler
