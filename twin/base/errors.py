"""Exceptions and warnings of the twin, and one-line descriptions of errors."""

import difflib
import signal
import traceback
from collections.abc import Iterable
from typing import Any


class WrongUse(Exception):
    """Raised for a command line that is invalid."""


class ShapeError(ValueError):
    """Array of an unexpected shape: `ShapeError("expected q of shape (6,)", q.shape)`.

    Compiled code raises it with its parts as arguments.  Formatting the message there would cost a second
    more of
    compilation.
    """

    def __str__(self) -> str:
        expected, shape = self.args
        return f"{expected}, got {shape}"


class ControllerError(ValueError):
    """Output of a controller that is not one real torque for each joint."""


class TwinError(Exception):
    """Base class of all errors of this package."""


class UnknownNameError(TwinError):
    """Robot, controller, scenario or option that does not exist."""


class RobotError(TwinError):
    """Robot file that is missing, malformed, or describes a body that cannot exist."""


class RecordingError(TwinError):
    """Malformed recording of a motion (CSV)."""


class UnreachableError(TwinError):
    """Tool pose that no joint angles reach."""


class LimitError(TwinError):
    """Joint position or speed beyond its limit."""


class LoopError(TwinError):
    """Closed kinematic loop whose ends separated in the simulation."""


class SingularityError(TwinError):
    """Tool path through a singular configuration."""


class BranchError(TwinError):
    """Tool path that no single inverse-kinematics branch follows continuously."""


class PluginError(TwinError):
    """User code (scenario, controller or package) that failed or does not have the required form."""


class VariationError(TwinError):
    """Quantity that a sweep cannot vary, or cannot vary as requested."""


class ClusterError(TwinError):
    """Worker processes that do not start, do not answer, or ended unexpectedly."""


class IdentificationError(TwinError):
    """Measurements that do not determine the requested parameters."""


class EgmError(TwinError):
    """Message, setting or peer that externally guided motion cannot work with."""


class EgmModeError(EgmError):
    """Message in another mode (joints, pose, path) than that in which the robot is being guided."""


class RapidError(TwinError):
    """Fault of a RAPID program.

    Attributes:
        kind: syntax, encrypted, name, type, value, refusal, target, path, time or cell.
        file: file of the fault, "" if none is known.
        line: line of the fault, 0 if none is known.
        number: name of the error that a controller raises for the program's handlers, such as
            err_divzero; "" for a fault that no handler gets.
    """

    def __init__(
        self, message: str, kind: str = "value", file: str = "", line: int = 0, *, number: str = ""
    ) -> None:
        super().__init__(message)
        self.kind, self.file, self.line, self.number = kind, file, line, number

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}: " if self.line else ""
        return f"{place}{super().__str__()}"


class CellError(TwinError):
    """Cell that is malformed or does not fit the robot, or a package for distances that is missing."""


class NoDisplayError(TwinError):
    """Missing display for a window; `found` describes the cause without the remedy."""

    def __init__(self, found: str) -> None:
        super().__init__(f"{found}; run without it (no --gui, in Python gui=False)")
        self.found = found


class DivergenceError(TwinError):
    """Simulation that diverged; `log` holds the run up to that instant, `loop` facts of its closed loop."""

    def __init__(self, message: str, log: Any = None, loop: Any = None) -> None:
        super().__init__(message)
        self.log, self.loop = log, loop


class TouchedError(TwinError):
    """Run that a person changed or ended in the window, so that no check applies.

    `log` holds it, `loop` facts of its closed loop.
    """

    def __init__(self, message: str, log: Any = None, loop: Any = None) -> None:
        super().__init__(message)
        self.log, self.loop = log, loop


def near(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'irb140'?` if a known name resembles this one, else an empty string."""
    by_lower_case = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_lower_case, 1)
    return f", did you mean {by_lower_case[found[0]]!r}?" if found else ""


def printable(text: str) -> str:
    """Return a text from a file on one line, with unprintable characters escaped."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """Return a text with characters escaped that would control a terminal, and with those of no encoding."""
    return "".join(one if one.isprintable() or one in "\n\t\xa0" else repr(one)[1:-1] for one in text)


class Closed:
    """Placeholder for an object that was closed: every access raises `TwinError`."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Any:
        raise TwinError(self._message)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Raise `TwinError`."""
        raise TwinError(self._message)


class ShapeWarning(UserWarning):
    """Shapes of a robot that are not drawn because their files are missing; only the picture is affected."""


class ToolFrameWarning(UserWarning):
    """Tool frame of a URDF that does not name it; the message has the frame that was taken, and why."""


class ModelWarning(UserWarning):
    """Statement of a robot file that is odd; the message has what the twin makes of it."""


class DriveWarning(UserWarning):
    """Drive parameters that are simulated as given but are probably a mistake."""


class PayloadWarning(UserWarning):
    """Payload that is heavier than the rating of the robot, as one in grams is."""


class ExportWarning(UserWarning):
    """Parts of a robot that a file for other programs cannot express."""


class EgmWarning(UserWarning):
    """Datagrams that an EGM client ignores: those of other senders, and malformed ones."""


class IdentificationWarning(UserWarning):
    """Identified parameters that are probably not those of this arm."""


def describe_error(error: BaseException) -> str:
    """Return an error on one line: its message if it is one for users, else type and message."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # its `__str__` fails
        text = ""
    if isinstance(error, (TwinError, ValueError, WrongUse)) and text:
        return text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def describe_error_with_type(error: BaseException) -> str:
    """Return an error on one line, always with its type."""
    kind, text = type(error).__name__, describe_error(error)
    return text if text.startswith(kind) else f"{kind}: {text}"


def describe_error_with_location(error: BaseException, *files: str) -> str:
    """Return an error on one line with its type, after the file and line where it arose.

    The location is the last line of these files in the traceback, or the first file if there is none.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    location = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else files[0]
    return f"{location}: {describe_error_with_type(error)}"


def is_interrupt(error: BaseException) -> bool:
    """Return whether the error is a Ctrl-C of the user.

    User code can raise `KeyboardInterrupt` or a subclass of it, too; a subclass is not counted.
    """
    return type(error) is KeyboardInterrupt and signal.getsignal(signal.SIGINT) is signal.default_int_handler
