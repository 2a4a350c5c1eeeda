"""Compare PyBullet with the analytic model of a robot, and each with itself, from random states.

The model's kernels are interpreted, not compiled, because each robot is compared only once.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenarios.judging.motion_range import finite_speed, random_positions
from twin.base.errors import LimitError, TwinError
from twin.physics.robot.robot import Robot

STATES = 20
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
    q = _nearby(robot, random_positions(robot, rng, STATES))
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
        STATES,
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
