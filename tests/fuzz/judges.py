"""What is right for each kind of file."""

import csv
import io
import json
import re
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from scenarios.cli.command_line import main
from tests.fuzz import cases
from tests.fuzz.cases import Case, CaseId
from tests.fuzz.robots_judged import robot_file
from tests.fuzz.verdicts import Verdict, fault, raised, refusal
from twin.errors import RobotError, UnknownNameError
from twin.logs.log import JOINTS, RECORDED, Log
from twin.logs.recordings.reading import read_recording
from twin.logs.recordings.recording import Recording, ToolRecording, joint_columns, write_recording

FACTORS = {r"\bms\b|_ms$|\bmm\b|_mm$": 1e-3, r"\bdeg\b|_deg$|°": np.pi / 180.0}
DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def judge(id: CaseId) -> Verdict:
    """Make a case, and say what came of it; whatever it raises or warns of is a fault."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            case = cases.make(id)
            verdict = JUDGES[id.kind](case, case.written(Path(folder)))
        except BaseException as error:
            return raised(error)
    if warned and not verdict.is_fault:
        first = warned[0]
        return fault(f"{first.category.__name__} from {Path(first.filename).name}", str(first.message))
    return verdict


def recording_file(case: Case, path: Path) -> Verdict:
    """A recording is what stands in the file, and can be written and read again."""
    try:
        taken = read_recording(path)
    except Exception as error:
        return refusal(error, [path.name])
    for column, numbers in recorded_columns(path, taken).items():
        texts = column_texts(path, column)
        if odd := [text for text in texts if not DECIMAL.fullmatch(text)]:
            return fault("a number that only Python reads", repr(odd[0]))
        factor = next((factor for unit, factor in FACTORS.items() if re.search(unit, column)), 1.0)
        if not np.allclose(numbers, np.array(texts, dtype=float) * factor, rtol=1e-15, atol=0):
            return fault("not the numbers of the file", f"{column}: {texts} {numbers}")
    if not np.all(np.diff(taken.t) > 0):
        return fault("a recording that is none", str(taken))
    quats = taken.poses[:, 3:] if isinstance(taken, ToolRecording) else np.eye(1, 4)
    if not np.all(np.abs(np.linalg.norm(quats, axis=1) - 1) < 1e-14):
        return fault("a recording that is none", str(taken))
    write_recording(path, taken)
    again = read_recording(path)
    if not np.array_equal(again.t, taken.t) or not np.allclose(again[1], taken[1], rtol=0, atol=1e-15):
        return fault("not the same when written and read again", str(taken))
    return Verdict("accepted")


def recorded_columns(path: Path, taken: Recording) -> dict[str, np.ndarray]:
    """The columns of a file that were taken as they are, by their labels, and the numbers made of them."""
    values = np.column_stack([taken.t, taken[1]])
    names = ["t", "x", "y", "z"] if isinstance(taken, ToolRecording) else ["t", *joint_columns(99)]
    header = split_rows(path)[0]
    found = {}
    for name, numbers in zip(names, values.T, strict=False):
        label = next(label for label in header if re.fullmatch(rf"{name}(_[a-z]+| *[\[(].*[\])])?", label))
        found[label] = numbers
    return found


def column_texts(path: Path, label: str) -> list[str]:
    """What stands below a label, with decimal points."""
    header, *rows = split_rows(path)
    return [row[header.index(label)].replace(",", ".") for row in rows if "".join(row)]


def split_rows(path: Path) -> list[list[str]]:
    """The cells of a file, without blanks around them; a tab, ; or , of the header separates."""
    content = path.read_bytes()
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    unquoted = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", text)[0])
    separator = next((mark for mark in "\t;" if mark in unquoted), ",")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [[cell.strip() for cell in row] for row in rows if row]


def log_file(case: Case, path: Path) -> Verdict:
    """A log has the shapes that it promises, and can be written and read again."""
    try:
        log = Log.load(path)
    except Exception as error:
        named = not isinstance(error, RobotError | UnknownNameError)  # they name the robot's file instead
        return refusal(error, [path.name] if named else [""])
    N, n = np.shape(log.q) if np.ndim(log.q) == 2 else (-1, -1)
    promised = dict.fromkeys(JOINTS, (N, n))
    promised |= {"t": (N,), "loop_gap": (N,), "saturated": (N, n), "pose": (N, 7), "pose_ref": (N, 7)}
    for name, shape in promised.items():
        array, wanted = getattr(log, name), bool if name == "saturated" else np.float64
        if array.shape != shape or array.dtype != wanted or n != log.robot.n:
            sort = f"a log whose {name} is of another shape or kind"
            return fault(
                "a log with an array of another shape or kind", f"{sort}: {array.shape} {array.dtype}"
            )
    if not (0 < log.time_step < np.inf and log.steps_per_period >= 1 and np.all(np.diff(log.t) > 0)):
        return fault("a log without a time", f"{log.time_step} {log.steps_per_period} {log.t}")
    log.save(path)
    again = Log.load(path)
    same = all(
        np.array_equal(
            getattr(log, name),
            getattr(again, name),
            equal_nan=name not in ("controller", "time_step", "steps_per_period"),
        )
        for name in RECORDED
    )
    return Verdict("accepted") if same else fault("not the same when written and read again")


def program(case: Case, path: Path) -> Verdict:
    """A scenario file, run; it is known of most of them whether they hold."""
    return _command(case, ["run", str(path)], path)


def checked_model(case: Case, path: Path) -> Verdict:
    """A robot file, looked over by the command."""
    return _command(case, ["check-model", str(path)], path)


def _command(case: Case, words: list[str], path: Path) -> Verdict:
    """Carry out a command: it ends with a status and, where it is 2, one sentence; its JSON is JSON."""
    out, err, results = io.StringIO(), io.StringIO(), path.with_name("results.json")
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*words, "--json", str(results)])
    printed, said = out.getvalue(), err.getvalue()
    if status not in (0, 1, 2, 130):
        return fault("a status that is none", repr(status))
    if "Traceback (most recent" in printed + said:
        return fault("a traceback", said or printed)
    if status >= 2 and not re.fullmatch(r"irb-twin: [^\n]+\n", said):
        return fault("not one sentence on standard error", repr(said)[:300])
    if status == 1 and not printed.strip():
        return fault("status 1 without a word", repr(said)[:300])
    if case.right is not None and case.right != (status == 0):
        return fault(
            f"status {status} of what is {'right' if case.right else 'wrong'}", said or printed[-600:]
        )
    if results.exists():
        json.loads(results.read_text(encoding="utf-8"), parse_constant=_no_constant)
    return Verdict("accepted" if status < 2 else "refused", said.strip())


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


JUDGES = {
    "urdf": robot_file,
    "robot_toml": robot_file,
    "dh_toml": robot_file,
    "csv": recording_file,
    "npz": log_file,
    "check_model": checked_model,
    "scenario": program,
    "controller": program,
}
