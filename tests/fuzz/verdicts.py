"""What came of a case, and when a refusal is one: one sentence, of the domain, that names the file."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twin.errors import TwinError

ROOT = Path(__file__).parents[2]
OURS = ("twin", "urdf", "controllers", "scenarios")


@dataclass(frozen=True)
class Verdict:
    """What came of a case.

    outcome: "refused", "accepted", or "compared" where engine and model were one robot; "fault".
    text: the sentence of a refusal, or what is wrong.
    sort: of a fault, the same for all that have one cause, as far as can be told.
    """

    outcome: str
    text: str = ""
    sort: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether something is wrong."""
        return self.outcome == "fault"


def fault(sort: str, text: str = "") -> Verdict:
    """Something wrong."""
    return Verdict("fault", text or sort, sort)


def raised(error: BaseException) -> Verdict:
    """An error that nobody should see: its type, and the last place of ours that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = last_place([(frame.filename, frame.name) for frame in frames])
    return fault(f"{type(error).__name__} from {place}", f"{type(error).__name__}: {str(error)[:300]}")


def last_place(frames: Sequence[tuple[str, str]]) -> str:
    """Of (file, function) pairs from outer to inner the last one of the program itself."""
    ours = [(_relative(file), name) for file, name in frames]
    ours = [f"{file}, {name}" for file, name in ours if file.split("/")[0] in OURS]
    return ours[-1] if ours else "outside"


def _relative(file: str) -> str:
    path = Path(file)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else file


def refusal(error: Exception, files: list[str]) -> Verdict:
    """A refused file: right if it is said in one line which file it is; `files` are the names that count."""
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
