"""Engine and analytic model answer the same three questions: are they one robot?

What it shows: three comparisons of the engine with the model of the same arm.

1. *One step*: from random states under random torques, the acceleration of one engine step beside our
   forward dynamics, with the drives that there are.
2. *Free motion*: let go from a random state, the arm falls and tumbles for a second without any torque, in
   the engine and in `AnalyticPlant`, which integrates our forward dynamics by the same recursion; so does
   the energy of both. Joint limits are lifted in both. A closed loop that would fold ends the motion.
3. *A driven motion*: the same controller drives both through moves between random poses.

What must hold: 1 to relative 1e-11 (both are right to round-off, and M is inverted on the way; 1e-10 where
the engine solves closed loops by iteration); 2 and 3 to what such errors grow to along the motion. The energy
itself is not conserved exactly by a step of 1 ms; how much it changes is reported, and must be the same in
both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios import base
from scenarios.base import Metric, option
from scenarios.checks.free_motion import check_free_time, free_metrics, free_motion
from scenarios.checks.motion_range import finite_speed, random_positions
from scenarios.checks.tracking import follow, sampled, tracking_metrics, with_arrays
from twin.errors import LimitError
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the comparison."""

    seed: int = option(1, "of everything that is drawn at random: states, torques, poses")
    states: int = option(200, "random states for the comparison of one step")
    free_time: float = option(1.0, "length of the free motion, in s")
    moves: int = option(2, "random moves of the driven motion")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_free_time(self.free_time, self.time_step)
        for name in ("states", "moves"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"expected at least 1 for {name}, got {getattr(self, name)}")


ACCELERATION = 50.0  # rad/s^2: what the random torques are meant to do to every joint
RELEASE_SPEED = 0.2  # of the speed limit, at most, when the arm is let go


def run(config: Config) -> Log:
    """Ask the three questions; the log is the driven motion of the engine, the rest is in its arrays."""
    robot = config.load_robot()
    rng = np.random.default_rng(config.seed)
    answers = {**one_step(config, robot, rng), **released(config, robot, rng)}
    log = follow(config, sampled(config, random_moves(config, robot, rng)), robot)
    return with_arrays(log, **answers)


def one_step(config: Config, robot: Robot, rng: np.random.Generator) -> dict[str, NDArray]:
    """Accelerations of the engine and of the model: (states, n) each, in [rad/s^2]."""
    from twin.dynamics.equation_of_motion import advance_period, forward_dynamics, inverse_dynamics
    from twin.engine.simulation import Simulation

    q = random_positions(robot, rng, config.states)
    qd = finite_speed(robot) * rng.uniform(-1, 1, q.shape)
    tau = inverse_dynamics(robot, q, qd, ACCELERATION * rng.uniform(-1, 1, q.shape))
    measured, motors = np.empty_like(q), np.empty((2, *q.shape))
    with Simulation(robot, time_step=config.time_step) as simulation:
        for k in range(config.states):
            simulation.reset(q[k], qd[k])
            motors[:, k] = simulation.motor_state()
            with suppress(LimitError):  # the step may lead beyond the range of a closed loop; it is done
                simulation.step(tau[k])
            measured[k] = (simulation.state()[1] - qd[k]) / config.time_step
    if robot.active_drives is None:
        return {"step_engine": measured, "step_model": forward_dynamics(robot, q, qd, tau)}
    after = advance_period(robot, (q, qd, motors[0], motors[1]), tau, config.time_step, 1).qd
    return {"step_engine": measured, "step_model": (after - qd) / config.time_step}


def released(config: Config, robot: Robot, rng: np.random.Generator) -> dict[str, NDArray]:
    """The free motion from a random state."""
    q = random_positions(robot, rng, 1, share=0.5)[0]
    qd = RELEASE_SPEED * finite_speed(robot) * rng.uniform(-1, 1, robot.n)
    return free_motion(robot, q, qd, config.free_time, config.time_step, config.gui)


def random_moves(config: Config, robot: Robot, rng: np.random.Generator) -> Trajectory:
    """Quintic moves between random poses, at half the speed limits."""
    from twin.trajectories.joint_trajectories import quintic, sequence

    poses = random_positions(robot, rng, config.moves + 1, share=0.5)
    return sequence(*(quintic(a, b, qd_max=0.5 * finite_speed(robot)) for a, b in pairwise(poses)))


def metrics(log: Log) -> tuple[Metric, ...]:
    """The answers compared, and how the driven motion went."""
    arrays = log.arrays
    one = np.abs(arrays["step_engine"] - arrays["step_model"]).max(axis=1)
    relative = np.max(one / np.abs(arrays["step_model"]).max(axis=1))
    return (
        Metric(
            "acceleration, engine - model",
            float(relative),
            "",
            1e-10 if log.robot.loops else 1e-11,
            "relative, one step from random states; both are right to rounding, with M inverted, and closed "
            "loops solved by iteration",
        ),
        *free_metrics(log),
        *tracking_metrics(log),
    )
