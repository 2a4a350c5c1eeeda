"""Verdicts on fuzz cases; a valid rejection is a `TwinError` with a one-line message that names the file."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twin.errors import TwinError

ROOT = Path(__file__).parents[2]
PACKAGES = ("twin", "urdf", "controllers", "scenarios")


@dataclass(frozen=True)
class Verdict:
    """Result of a case.

    Attributes:
        outcome: "refused", "accepted", "compared" (engine and model agree) or "fault".
        text: message of the rejection, or description of the fault.
        sort: sort of a fault, which faults of one cause usually share.
    """

    outcome: str
    text: str = ""
    sort: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether the case is a fault."""
        return self.outcome == "fault"


def fault(sort: str, text: str = "") -> Verdict:
    """Return the verdict of a fault."""
    return Verdict("fault", text or sort, sort)


def raised(error: BaseException) -> Verdict:
    """Return the fault of an unexpected error; its sort is its type and the project's innermost function."""
    frames = traceback.extract_tb(error.__traceback__)
    place = last_place([(frame.filename, frame.name) for frame in frames])
    return fault(f"{type(error).__name__} from {place}", f"{type(error).__name__}: {str(error)[:300]}")


def last_place(frames: Sequence[tuple[str, str]]) -> str:
    """Return the last of the (file, function) pairs, from outer to inner, that belongs to the project."""
    places = [(_relative(file), name) for file, name in frames]
    places = [f"{file}, {name}" for file, name in places if file.split("/")[0] in PACKAGES]
    return places[-1] if places else "outside"


def _relative(file: str) -> str:
    path = Path(file)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else file


def refusal(error: Exception, files: list[str]) -> Verdict:
    """Return the verdict of a rejected file.

    Args:
        error: error that rejected it; its message must be one printable line.
        files: names, one of which the message must contain.
    """
    if not isinstance(error, TwinError):
        return raised(error)
    text = str(error)
    place = raised(error).sort
    if len(text.splitlines()) != 1:
        return fault(f"more than one line: {place}", text)
    if not text.isprintable():
        return fault(f"unprintable: {place}", repr(text)[:300])
    if "Traceback" in text:
        return fault(f"traceback text: {place}", text)
    if not any(name in text for name in files):
        return fault(f"no file named: {place}", text)
    return Verdict("refused", text)
