"""Judges of fuzz cases: the correct results for each kind of file.

A robot file is rejected with a one-line message, or read alike by PyBullet and the model.
"""

import csv
import io
import re
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

import twin
from scenarios.judging.motion_range import random_positions
from tests.fuzz import cases
from tests.fuzz.cases import Case, CaseId
from tests.fuzz.verdicts import Verdict, fault, raised, refusal
from twin import Robot, Simulation, check_model
from twin.base.errors import (
    DriveWarning,
    LimitError,
    ModelWarning,
    RobotError,
    ShapeWarning,
    ToolFrameWarning,
    TwinError,
    UnknownNameError,
)
from twin.data.logs.log import JOINTS, RECORDED, Log
from twin.data.logs.recordings.recording import (
    Recording,
    ToolRecording,
    joint_columns,
    read_recording,
    write_recording,
)
from twin.physics.robot.drives.drive_step import drive_numbers
from twin.physics.robot.evaluation import uncompiled

CLOSE = 1e-11  # see `scenarios/judging/agreement.py`, also for the role of the condition number
EPS = float(np.finfo(float).eps)
ACCELERATION = 50.0


def robot_file(case: Case, path: Path) -> Verdict:
    """Load a robot file, check its model, and compare PyBullet with the model."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriveWarning)
            warnings.simplefilter("ignore", ModelWarning)
            warnings.simplefilter("ignore", ToolFrameWarning)
            robot = twin.load(path)
    except Exception as error:
        refused = refusal(error, list(case.files))
        return refused if refused.is_fault else _check_model_verdict(case, path, refused)
    checked = _check_model_verdict(case, path, Verdict("accepted"))
    if checked.is_fault:
        return checked
    if not robot.has_inertia:
        return checked
    if robot.drives is not None:
        for mode in ("rigid", "elastic"):
            drive_numbers(robot.with_drives(mode).drives, mode, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShapeWarning)
        return _compared(case, robot)


def _check_model_verdict(case: Case, path: Path, loaded: Verdict) -> Verdict:
    """Check that `check_model` agrees with the verdict of `load`."""
    try:
        check = check_model(path)
    except Exception as error:
        refused = refusal(error, list(case.files))
        if refused.is_fault or loaded.outcome == "refused":
            return refused
        return fault("check_model rejects a file that load accepts", refused.text)
    if loaded.outcome == "refused" and check.sound:
        return fault("check_model finds no error in a file that load rejects", loaded.text)
    if loaded.outcome == "accepted" and check.robot is None:
        return fault("check_model rejects a file that load accepts", str(check.findings))
    return loaded


def _compared(case: Case, robot: Robot) -> Verdict:
    """Compare one step and the tool pose of PyBullet with the model, from a random state."""
    model, rng = uncompiled(robot), case.rng
    q, qd, qdd = rng.uniform(-1, 1, (3, robot.n)) * [[1.0], [1.0], [ACCELERATION]]
    if robot.passive:
        q = random_positions(robot, rng, 1)[0]
    M = twin.mass_matrix(model, q)
    tau = twin.inverse_dynamics(model, q, qd, qdd)
    if not np.all(np.isfinite(tau)) or not np.all(np.isfinite(M)):
        return Verdict("accepted", "not compared: torques or masses are not finite")
    limit = max(10 * CLOSE if robot.loops else CLOSE, EPS * float(np.linalg.cond(M)))
    if not limit < 1e-3:
        return Verdict("accepted", "not compared: the mass matrix is too ill-conditioned")
    expected, T = twin.forward_dynamics(model, q, qd, tau), twin.forward_kinematics(model, q)
    try:
        measured, T_engine = _in_engine(robot, q, qd, tau)
    except TwinError as error:
        return refusal(error, [robot.name, *case.files])
    step = np.max(np.abs(measured - expected)) / np.max(np.abs(expected))
    pose = np.max(np.abs(T_engine - T))
    if not step <= limit:
        return fault("engine and model differ in a step", f"by {step:.3g}, limit {limit:.3g}")
    if not pose <= (allowed := 1e-13 * max(1.0, _lengths(robot))):
        return fault("engine and model differ in a pose", f"by {pose:.3g}, limit {allowed:.3g}")
    return Verdict("compared", f"step {step:.3g}, limit {limit:.3g}; pose {pose:.3g}")


def _lengths(robot: Robot) -> float:
    """Return the scale of the lengths in a pose, in [m]; PyBullet places links by their centres of mass."""
    masses, moments = robot.inertias[:, 0], robot.inertias[:, 1:4]
    centres = np.abs(moments[masses > 0]) / masses[masses > 0, None]
    offsets = np.abs([*robot.tree.T_parent_joint[:, :3, 3], robot.tree.T_joint_flange[:3, 3]])
    return float(np.max(offsets) + np.max(centres, initial=0.0))


def _in_engine(robot: Robot, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the acceleration of one step, and the tool pose before it."""
    with Simulation(robot) as simulation:
        simulation.reset(q, qd)
        T = simulation.tool_pose()
        with suppress(LimitError):  # raised after a step that leads beyond the range of a closed loop
            simulation.step(tau)
        return (simulation.state()[1] - qd) / simulation.time_step, T


# Judges of fuzz cases: the correct results for each kind of file.


FACTORS = {r"\bms\b|_ms$|\bmm\b|_mm$": 1e-3, r"\bdeg\b|_deg$|°": np.pi / 180.0}
DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def judge(id: CaseId) -> Verdict:
    """Make a case and return its verdict; an unexpected exception or warning is a fault."""
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
    """Check that a recording has the numbers of its file, and that writing and reading preserve it."""
    try:
        recording = read_recording(path)
    except Exception as error:
        return refusal(error, [path.name])
    for column, numbers in recorded_columns(path, recording).items():
        texts = column_texts(path, column)
        if invalid := [text for text in texts if not DECIMAL.fullmatch(text)]:
            return fault("a number that only Python reads", repr(invalid[0]))
        factor = next((factor for unit, factor in FACTORS.items() if re.search(unit, column)), 1.0)
        if not np.allclose(numbers, np.array(texts, dtype=float) * factor, rtol=1e-15, atol=0):
            return fault("not the numbers of the file", f"{column}: {texts} {numbers}")
    if not np.all(np.diff(recording.t) > 0):
        return fault("a recording whose times do not increase", str(recording))
    quats = recording.poses[:, 3:] if isinstance(recording, ToolRecording) else np.eye(1, 4)
    if not np.all(np.abs(np.linalg.norm(quats, axis=1) - 1) < 1e-14):
        return fault("a recording whose quaternions are not of unit length", str(recording))
    write_recording(path, recording)
    again = read_recording(path)
    if np.array_equal(again.t, recording.t) and np.allclose(again[1], recording[1], rtol=0, atol=1e-15):
        return Verdict("accepted")
    return fault("not the same when written and read again", str(recording))


def recorded_columns(path: Path, recording: Recording) -> dict[str, np.ndarray]:
    """Return the numbers of a recording by the labels of the file's columns that they come from."""
    values = np.column_stack([recording.t, recording[1]])
    names = ["t", "x", "y", "z"] if isinstance(recording, ToolRecording) else ["t", *joint_columns(99)]
    header = split_rows(path)[0]
    found = {}
    for name, numbers in zip(names, values.T, strict=False):
        label = next(label for label in header if re.fullmatch(rf"{name}(_[a-z]+| *[\[(].*[\])])?", label))
        found[label] = numbers
    return found


def column_texts(path: Path, label: str) -> list[str]:
    """Return the texts of a column, with decimal points."""
    header, *rows = split_rows(path)
    return [row[header.index(label)].replace(",", ".") for row in rows if "".join(row)]


def split_rows(path: Path) -> list[list[str]]:
    """Return the stripped cells of a file; the header decides whether a tab, `;` or `,` separates them."""
    content = path.read_bytes()
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    unquoted = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", text)[0])
    separator = next((mark for mark in "\t;" if mark in unquoted), ",")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [[cell.strip() for cell in row] for row in rows if row]


def log_file(case: Case, path: Path) -> Verdict:
    """Check the shapes and types of a log, and that writing and reading preserve it."""
    try:
        log = Log.load(path)
    except Exception as error:
        named = not isinstance(error, RobotError | UnknownNameError)  # these name the robot's file instead
        return refusal(error, [path.name] if named else [""])
    N, n = np.shape(log.q) if np.ndim(log.q) == 2 else (-1, -1)
    shapes = dict.fromkeys(JOINTS, (N, n))
    shapes |= {"t": (N,), "loop_gap": (N,), "saturated": (N, n), "pose": (N, 7), "pose_ref": (N, 7)}
    for name, shape in shapes.items():
        array, dtype = getattr(log, name), bool if name == "saturated" else np.float64
        if array.shape != shape or array.dtype != dtype or n != log.robot.n:
            text = f"{name}: {array.shape} {array.dtype}, expected {shape} {np.dtype(dtype)}"
            return fault("a log with an array of the wrong shape or type", text)
    if not (0 < log.time_step < np.inf and log.steps_per_period >= 1 and np.all(np.diff(log.t) > 0)):
        text = f"{log.time_step} {log.steps_per_period} {log.t}"
        return fault("a log with an invalid time step or time", text)
    log.save(path)
    again = Log.load(path)
    for name in RECORDED:
        numbers = name not in ("controller", "time_step", "steps_per_period")
        if not np.array_equal(getattr(log, name), getattr(again, name), equal_nan=numbers):
            return fault("not the same when written and read again", name)
    return Verdict("accepted")


JUDGES = dict.fromkeys(("urdf", "robot_toml", "dh_toml"), robot_file)
JUDGES |= {"csv": recording_file, "npz": log_file}
