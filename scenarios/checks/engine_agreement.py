"""How well PyBullet and the analytic model agree on a robot, and each with itself, from random states.

Nothing is compiled: the model's kernels are run on numbers, for a robot that is looked at once.
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

from scenarios.checks.motion_range import finite_speed, random_positions
from twin.errors import LimitError, TwinError
from twin.robot.robot import Robot

STATES = 20
TOP_SPEED = 10.0  # rad/s or m/s: a file's limit may be anything
ACCELERATION = 50.0  # rad/s^2 or m/s^2: what the random torques are meant to do to every joint
FAR = 20.0  # rad or m
CLOSE = 1e-11
PATIENCE = 300.0  # s


@dataclass(frozen=True)
class Agreement:
    """Errors over random states, the largest of each.

    Attributes:
        states: how many.
        step: acceleration of one step of the engine against forward dynamics, relative.
        pose: of the tool, engine against model, in [m] and [1].
        engine: accelerations of the engine against those of a second one, relative.
        model: torques of inverse dynamics of forward dynamics against the torques, relative.
        step_limit: what `step` may be: 1e-11, or what rounding makes of a badly conditioned mass matrix.
        pose_limit: what `pose` may be: rounding, over lengths of the robot's size.
    """

    states: int
    step: float
    pose: float
    engine: float
    model: float
    step_limit: float
    pose_limit: float

    @property
    def passes(self) -> bool:
        """Whether engine and model are one robot."""
        return bool(
            self.step <= self.step_limit
            and self.pose <= self.pose_limit
            and self.engine <= self.step_limit
            and self.model <= self.step_limit
        )


def agreement(robot: Robot, seed: int = 1) -> Agreement:
    """Compare them.

    Args:
        robot: with inertia.
        seed: of the random states.

    Raises:
        RobotError: PyBullet cannot load the robot.
    """
    from twin.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics, mass_matrix
    from twin.kinematics.forward import forward_kinematics
    from twin.robot.evaluation import uncompiled

    robot, rng = uncompiled(robot), np.random.default_rng(seed)
    q = _nearby(robot, random_positions(robot, rng, STATES))
    qd = np.minimum(finite_speed(robot), TOP_SPEED) * rng.uniform(-1, 1, q.shape)
    tau = inverse_dynamics(robot, q, qd, ACCELERATION * rng.uniform(-1, 1, q.shape))
    expected, T = forward_dynamics(robot, q, qd, tau), forward_kinematics(robot, q)
    measured, T_engine = _in_engine(robot, q, qd, tau)
    again, _ = _in_engine(robot, q, qd, tau)
    condition = float(np.max(np.linalg.cond(mass_matrix(robot, q))))
    lengths = float(np.max(np.abs(T[:, :3, 3])))
    return Agreement(
        states=STATES,
        step=_relative(measured, expected),
        pose=float(np.max(np.abs(T_engine - T))),
        engine=_relative(again, measured),
        model=_relative(inverse_dynamics(robot, q, qd, expected), tau),
        step_limit=max(10 * CLOSE if robot.loops else CLOSE, np.finfo(float).eps * condition),
        pose_limit=1e-13 * max(1.0, lengths),
    )


def isolated_agreement(path: Path) -> Agreement:
    """Compare them on the robot of a file, in a process of its own: a crash there is told like an error.

    Raises:
        TwinError: what `agreement` raises, or the process crashed or did not end within `PATIENCE`.
    """
    places = os.pathsep.join(os.path.abspath(place) for place in sys.path)
    command = [sys.executable, "-c", f"from {__name__} import tell; tell()", str(path)]
    try:
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": places},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TwinError(f"{path}: the comparison with PyBullet did not end within {PATIENCE:g} s") from None
    if done.returncode != 0:
        raise TwinError(
            f"{path}: the comparison with PyBullet crashed, its process ended with status {done.returncode}"
        )
    told = json.loads(done.stdout.splitlines()[-1])
    if "error" in told:
        raise TwinError(told["error"])
    return Agreement(**told)


def tell() -> None:
    """Write the agreement of the robot of a file, the argument of this process, to standard output."""
    from twin.robot.loading.link_shapes import link_shapes
    from twin.robot.loading.loading import load

    try:
        robot = load(sys.argv[1])
        link_shapes(robot)  # which may be what cannot be read
        told = asdict(agreement(robot))
    except TwinError as error:
        told = {"error": str(error)}
    sys.stdout.write(f"\n{json.dumps(told)}\n")


def _nearby(robot: Robot, q: NDArray) -> NDArray:
    """Positions without turns and lengths that mean nothing: a file's range may be anything."""
    turns = np.array([kind == "revolute" for kind in robot.joint_kinds])
    return np.where(np.abs(q) > FAR, np.where(turns, np.remainder(q, 2 * np.pi), np.sign(q) * FAR), q)


def _in_engine(robot: Robot, q: NDArray, qd: NDArray, tau: NDArray) -> tuple[NDArray, NDArray]:
    """Accelerations (N, n) of one step each, and the tool's poses (N, 4, 4) before it, in a new world."""
    from twin.engine.simulation import Simulation

    accelerations, poses = np.empty_like(q), np.empty((len(q), 4, 4))
    with Simulation(robot) as simulation:
        for k in range(len(q)):
            simulation.reset(q[k], qd[k])
            poses[k] = simulation.tool_pose()
            with suppress(LimitError):  # the step may lead beyond the range of a closed loop; it is done
                simulation.step(tau[k])
            accelerations[k] = (simulation.state()[1] - qd[k]) / simulation.time_step
    return accelerations, poses


def _relative(values: NDArray, expected: NDArray) -> float:
    """The worst row of `max |a - b| / max |b|`."""
    return float(np.max(np.max(np.abs(values - expected), axis=1) / np.max(np.abs(expected), axis=1)))
