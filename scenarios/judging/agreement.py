"""Compare the engine with the model, and each with itself: step by step in a run, and from random states.

From every state of the engine, the analytic plant simulates one control period. Its result must equal the
engine's next state to rounding: joints, motors and the torque on the arm. Controller, sensors and motor
limits run again on the recorded states, and must give the recorded torques to the last bit. This reveals an
error of 1e-9 in the engine in a single step, before the closed loop can hide it.

No limit in this module depends on the residual that it judges.

The model's kernels are interpreted, not compiled, because each robot is compared only once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenarios.judging.bounds import DECIDED, largest, step_limits, whole_run_limit
from scenarios.judging.motion_range import finite_speed, random_positions
from scenarios.metric import Metric
from twin.base.errors import LimitError, TwinError
from twin.data.logs.figures import place_of_largest, unit_of_largest
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from scenarios.judging.run import Prediction, TrackingRun
    from twin.data.logs.log import Log
    from twin.physics.robot.drives.motors import Sensors
    from twin.physics.trajectories.sampling import Samples

STATES = ("q", "qd", "q_motor", "qd_motor", "tau_joint")
"""Compared signals: the fields of `twin.dynamics.equation_of_motion.PlantState`."""
LOOP_GAP = 1e-12
"""[m]: largest gap of a closed loop in the engine. Observed: 1e-15."""


class Playback:
    """Plant that follows the states of a log and ignores the torques.

    In a closed loop with it, the controller, the sensors and the motor limits repeat their computations.
    """

    def __init__(self, log: Log) -> None:
        self.robot, self.time_step, self.loop_gap = log.robot, log.time_step, 0.0
        self._log, self._steps, self._step = log, log.steps_per_period, 0

    def reset(self, q: Any, qd: Any = None) -> None:
        """Go to the first sample."""
        self._step = 0

    def state(self, out: NDArray | None = None) -> NDArray:
        """Return positions and speeds (2, n) of the joints, in [rad, rad/s]."""
        k = self._step // self._steps
        return np.array([self._log.q[k], self._log.qd[k]])

    def motor_state(self) -> NDArray:
        """Return positions and speeds (2, n) of the motors in joint units, in [rad, rad/s]."""
        k = self._step // self._steps
        return np.array([self._log.q_motor[k], self._log.qd_motor[k]])

    @property
    def tau_joint(self) -> NDArray:
        """Torque (n,) on the arm, in [N m]."""
        return self._log.tau_joint[max(self._step - 1, 0) // self._steps]

    def step(self, tau: NDArray, *wrench: NDArray) -> None:
        """Advance by one engine step."""
        self._step += 1


def differing_samples(log: Log, law: Callable, reference: Samples, sensors: Sensors | None) -> NDArray:
    """Return the samples (N,), as a mask, where a repeated run of the controller differs from the log.

    Sensors and motor limits are repeated, too. Any different bit counts.

    Args:
        log: log of the engine's run, from reset on.
        law: the controller; it is reset.
        reference: reference of the run.
        sensors: sensors of the run.
    """
    from twin.data.logs.closed_loop import run_closed_loop

    again = run_closed_loop(
        Playback(log), law, reference, steps_per_period=log.steps_per_period, sensors=sensors, learn=False,
        environment=log.environment,
    )  # fmt: skip
    names = ("q_seen", "qd_seen", "tau_demand", "tau")
    return np.any([np.any(getattr(again, name) != getattr(log, name), axis=1) for name in names], axis=0)


def step_ratios(log: Log, prediction: Prediction | None = None) -> NDArray:
    """Return the residuals of all states over their limits (5, N, n), see `PlantState`.

    The first sample compares the initial states of engine and model; it is 0 without a prediction.
    """
    residuals = log.model_residuals()
    limits = step_limits(log, residuals)
    ratios = np.zeros((len(residuals), *log.q.shape))
    for row, (name, residual, limit) in enumerate(zip(STATES, residuals, limits, strict=True)):
        if name == "tau_joint":
            ratios[row, :-1] = residual / limit
        else:
            ratios[row, 1:] = residual / limit
            if prediction is not None:
                ratios[row, 0] = (getattr(log, name)[0] - prediction.start[row]) / limit
    return ratios


def loop_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the check of the largest gap of the closed loops; empty for an open chain.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.judging.agreement import loop_metrics
        >>> from scenarios.setup import Setup
        >>> run = GravityHold(duration=0.1).run(Setup(robot="irb1400"))
        >>> [(metric.name, metric.passes) for metric in loop_metrics(run.log)]
        [('largest gap of a closed loop', True)]
    """
    if not log.robot.loops:
        return ()
    return (gap_metric("largest gap of a closed loop", log.loop_gap, place_of_largest(log, log.loop_gap)),)


def gap_metric(name: str, gap: NDArray, where: str = "") -> Metric:
    """Return the check of the gap (N,) of closed loops in the engine, in [m]."""
    why = "the loop's constraint is affine in the joint angles, so that integration preserves it"
    return Metric(name, float(np.max(gap)), "m", LOOP_GAP, why, where)


WHOLE_RUN, REPLAY = "engine - model, whole run", "samples not replayed"
"""Names of the checks that need the model's prediction."""
NO_PREDICTION = "not judged: no prediction, use follow(...) or a TrackingScenario"


def agreement_metrics(run: TrackingRun) -> tuple[Metric, ...]:
    """Return the checks of the engine against the model of the plant: in every step, and in the whole run.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.judging.agreement import agreement_metrics
        >>> for metric in agreement_metrics(GravityHold(duration=0.1).run()):
        ...     print(f"{metric.name}: {metric.outcome}")
        engine - model, whole run: passes
        engine - model, one step: passes
        engine - model, every state / its limit: passes
        samples not replayed: passes
    """
    if run.is_draw:
        return ()
    log, prediction = run.log, run.prediction
    if len(log.t) < 2:
        return (whole_run_metric(run), *loop_metrics(log))
    residuals = log.model_residuals()
    speeds = np.concatenate([np.zeros((1, log.robot.n)), residuals.qd])
    ratios = step_ratios(log, prediction)
    state = STATES[int(np.argmax(np.max(np.nan_to_num(np.abs(ratios), nan=np.inf), axis=(1, 2))))]
    return (
        whole_run_metric(run),
        Metric(
            "engine - model, one step",
            float(np.max(np.abs(speeds))),
            unit_of_largest(log, speeds, "speed"),
            float(step_limits(log, residuals).qd),
            "1e-11 of the largest change of speed in a step, the rounding of the speed itself, or that of "
            "torques over the inertia of a light joint",
            place_of_largest(log, speeds),
        ),
        Metric(
            "engine - model, every state / its limit",
            float(np.max(np.abs(ratios))),
            "",
            1.0,
            "positions, speeds and torques of joints and motors after each control period, from the engine's "
            f"state before it; limits from rounding alone; the largest ratio is that of {state}",
            place_of_largest(log, np.max(np.abs(ratios), axis=0)),
        ),
        replay_metric(run),
        *loop_metrics(log),
    )


def replay_metric(run: TrackingRun) -> Metric:
    """Return the check that the controller repeats its torques; not judged without a prediction."""
    if run.prediction is None:
        return Metric(REPLAY, None, "", None, NO_PREDICTION)
    differs, repeatable = run.prediction.differs, run.loop is not None and run.loop.repeatable
    why = (
        "controller, sensors and motor limits, run again on the recorded states from reset on, give the "
        "recorded torques to the last bit"
    )
    return Metric(
        REPLAY,
        float(np.count_nonzero(differs)),
        "",
        0.0 if repeatable else None,
        why if repeatable else f"{why}; no limit, because this controller may not be repeatable",
        place_of_largest(run.log, differs.astype(float)),
    )


def whole_run_metric(run: TrackingRun) -> Metric:
    """Return the check of the engine's run against the analytic plant's, until rounding decides the path."""
    log = run.log
    if run.prediction is None:
        return Metric(WHOLE_RUN, None, "", None, NO_PREDICTION)
    rounding = run.prediction.rounding
    # Number of samples before rounding decides the path; a spread of NaN does not end the comparison.
    decided = int(np.count_nonzero(~(rounding.spread > DECIDED)))
    difference = (log.q - run.prediction.q)[:decided]
    limit = whole_run_limit(log, rounding, decided)
    why = "the analytic plant under the same controller"
    if np.isfinite(limit):
        why += ": 5 x the steps' rounding, amplified by this loop"
    if decided < len(log.t):
        why += f"; from {log.t[decided]:.6g} s on rounding decides the path, and the comparison ends"
    return Metric(
        WHOLE_RUN,
        largest(difference),
        unit_of_largest(log, difference),
        limit if np.isfinite(limit) else None,
        why,
        place_of_largest(log, difference),
    )


RANDOM_STATES = 20
TOP_SPEED = 10.0  # rad/s or m/s: largest speed, because the limits of a file may be arbitrarily large
ACCELERATION = 50.0  # rad/s^2 or m/s^2: largest acceleration of every joint under the random torques
FAR = 20.0  # rad or m: largest position
CLOSE = 1e-11  # largest relative error
TIMEOUT = 300.0  # s


@dataclass(frozen=True)
class Agreement:
    """Largest errors over random states.

    Attributes:
        states: number of states.
        step: relative error of the engine's acceleration in one step, compared with forward dynamics.
        pose: error of the engine's tool pose, compared with the model, in [m] and [1].
        engine: relative error of the engine's accelerations, compared with a second engine.
        model: relative error of inverse dynamics after forward dynamics, compared with the original torques.
        step_limit: limit of `step`: 1e-11, or the rounding of a badly conditioned mass matrix.
        pose_limit: limit of `pose`: rounding, over lengths of the robot's size.
        file_mass: largest difference of an element of the mass matrix as PyBullet itself reads the URDF, as a
            share of the joints' inertias; NaN without a URDF, or with a loop, and infinite if PyBullet cannot
            read it.  Not judged: PyBullet rounds and replaces numbers.
        file_tool: distance of the tool frames in both, in [m].
    """

    states: int
    step: float
    pose: float
    engine: float
    model: float
    step_limit: float
    pose_limit: float
    file_mass: float
    file_tool: float

    @property
    def passes(self) -> bool:
        """Whether every error is within its limit."""
        return bool(
            self.step <= self.step_limit
            and self.pose <= self.pose_limit
            and self.engine <= self.step_limit
            and self.model <= self.step_limit
        )


def agreement(robot: Robot, seed: int = 1) -> Agreement:
    """Compare engine and model.

    Args:
        robot: robot with inertia.
        seed: seed of the random states.

    Raises:
        RobotError: PyBullet cannot load the robot.
    """
    from twin.physics.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics, mass_matrix
    from twin.physics.engine.client import file_dynamics
    from twin.physics.kinematics.forward import forward_kinematics
    from twin.physics.robot.evaluation import uncompiled

    robot, rng = uncompiled(robot), np.random.default_rng(seed)
    q = _nearby(robot, random_positions(robot, rng, RANDOM_STATES))
    qd = np.minimum(finite_speed(robot), TOP_SPEED) * rng.uniform(-1, 1, q.shape)
    tau = inverse_dynamics(robot, q, qd, ACCELERATION * rng.uniform(-1, 1, q.shape))
    expected, T = forward_dynamics(robot, q, qd, tau), forward_kinematics(robot, q)
    measured, T_engine = _in_engine(robot, q, qd, tau)
    again, _ = _in_engine(robot, q, qd, tau)
    M = mass_matrix(robot, q)
    condition = float(np.max(np.linalg.cond(M)))
    file_mass = file_tool = np.nan
    if robot.urdf is not None and not robot.loops:
        scale = np.sqrt(np.diagonal(M, axis1=1, axis2=2))
        try:
            read, tools = file_dynamics(robot, q)
            file_mass = np.max(np.abs(read - M) / (scale[:, :, None] * scale[:, None, :]))
            file_tool = np.max(np.linalg.norm(tools - T[:, :3, 3], axis=1))
        except TwinError:
            file_mass = np.inf
    lengths = float(np.max(np.abs(T[:, :3, 3])))
    return Agreement(
        RANDOM_STATES,
        _relative(measured, expected),
        float(np.max(np.abs(T_engine - T))),
        _relative(again, measured),
        _relative(inverse_dynamics(robot, q, qd, expected), tau),
        max(10 * CLOSE if robot.loops else CLOSE, np.finfo(float).eps * condition),
        1e-13 * max(1.0, lengths),
        float(file_mass),
        float(file_tool),
    )


def isolated_agreement(path: Path) -> Agreement:
    """Compare engine and model of a robot's file in a separate process; a crash of it becomes an error.

    Raises:
        TwinError: `agreement` raised it, or the process crashed or did not end within `TIMEOUT`.
    """
    places = os.pathsep.join(os.path.abspath(place) for place in sys.path)
    command = [sys.executable, "-c", f"from {__name__} import print_agreement; print_agreement()", str(path)]
    try:
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": places}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TwinError(f"{path}: the comparison with PyBullet did not end within {TIMEOUT:g} s") from None
    if done.returncode != 0:
        raise TwinError(
            f"{path}: the comparison with PyBullet crashed, its process ended with status {done.returncode}"
        )
    answer = json.loads(done.stdout.splitlines()[-1])
    if "error" in answer:
        raise TwinError(answer["error"])
    return Agreement(**answer)


def print_agreement() -> None:
    """Print the agreement of the robot's file in `sys.argv[1]` as JSON, or its error."""
    from twin.physics.robot.link_shapes import link_shapes
    from twin.physics.robot.loading import load

    try:
        robot = load(sys.argv[1])
        link_shapes(robot)  # raises a TwinError for shapes that PyBullet cannot read
        answer = asdict(agreement(robot))
    except TwinError as error:
        answer = {"error": str(error)}
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


def _nearby(robot: Robot, q: NDArray) -> NDArray:
    """Return positions without whole turns and within `FAR`; the ranges of a file may be arbitrarily wide."""
    turns = np.array([kind == "revolute" for kind in robot.joint_kinds])
    return np.where(np.abs(q) > FAR, np.where(turns, np.remainder(q, 2 * np.pi), np.sign(q) * FAR), q)


def _in_engine(robot: Robot, q: NDArray, qd: NDArray, tau: NDArray) -> tuple[NDArray, NDArray]:
    """Return accelerations (N, n) of one step each and tool poses (N, 4, 4) before it, from a new engine.

    Args:
        robot: robot to simulate.
        q: (N, n) positions, in [rad] or [m].
        qd: (N, n) speeds, in [rad/s] or [m/s].
        tau: (N, n) torques or forces, in [N m] or [N].
    """
    from twin.physics.engine.simulation import Simulation

    accelerations, poses = np.empty_like(q), np.empty((len(q), 4, 4))
    with Simulation(robot) as simulation:
        for k in range(len(q)):
            simulation.reset(q[k], qd[k])
            poses[k] = simulation.tool_pose()
            with suppress(LimitError):  # raised after a step that leaves the range of a closed loop
                simulation.step(tau[k])
            accelerations[k] = (simulation.state()[1] - qd[k]) / simulation.time_step
    return accelerations, poses


def _relative(values: NDArray, expected: NDArray) -> float:
    """Return the largest `max |a - b| / max |b|` over all rows."""
    return float(np.max(np.max(np.abs(values - expected), axis=1) / np.max(np.abs(expected), axis=1)))
