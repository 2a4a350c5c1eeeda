"""Verdicts on fuzz cases; a valid rejection is a `TwinError` with a one-line message that names the file."""

import traceback
from dataclasses import dataclass
from pathlib import Path

from twin.base.errors import TwinError

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(f"{ROOT / name}/" for name in ("twin", "urdf", "controllers", "scenarios"))


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
    places = ["outside"]
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(PACKAGES):
            places.append(f"{Path(frame.filename).relative_to(ROOT).as_posix()}, {frame.name}")
    return fault(f"{type(error).__name__} from {places[-1]}", f"{type(error).__name__}: {str(error)[:300]}")


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
