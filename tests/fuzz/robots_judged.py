"""Judge of robot files: rejected with a one-line message, or read alike by PyBullet and the model."""

import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

import twin
from scenarios.checks.motion_range import random_positions
from tests.fuzz.cases import Case
from tests.fuzz.verdicts import Verdict, fault, refusal
from twin import Robot, Simulation, check_model
from twin.errors import DriveWarning, LimitError, ShapeWarning, TwinError
from twin.robot.drives.drive_step import drive_numbers
from twin.robot.evaluation import uncompiled

CLOSE = 1e-11  # see `scenarios/checks/engine_agreement.py`, also for the role of the condition number
EPS = float(np.finfo(float).eps)
ACCELERATION = 50.0


def robot_file(case: Case, path: Path) -> Verdict:
    """Load a robot file, check its model, and compare PyBullet with the model."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriveWarning)
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
