"""Compare the engine with the analytic model: one step, a free motion and a driven motion.

What it shows: three comparisons of the engine with the model of the same arm.

1. *One step*: from random states under random torques, the acceleration of one engine step and the analytic
   forward dynamics, with the drives of the settings.
2. *Free motion*: released in a random state, the arm falls and tumbles for a second without any torque, in
   the engine and in `AnalyticPlant`, which integrates the analytic forward dynamics by the same recursion.
   The energies are compared, too. Neither has joint limits. The motion ends before a closed loop would fold.
3. *A driven motion*: the same controller drives both through moves between random poses.

What must hold: comparison 1 agrees to relative 1e-11 (both are exact to round-off, amplified by the inversion
of M), or to 1e-10 if the engine solves closed loops by iteration. Comparisons 2 and 3 agree to the size that
such errors reach along the motion. A step of 1 ms does not conserve the energy exactly; its change is
reported, and must be the same in both.
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

    seed: int = option(1, "seed of every random number: states, torques, poses")
    states: int = option(200, "random states for the comparison of one step")
    free_time: float = option(1.0, "length of the free motion, in s")
    moves: int = option(2, "random moves of the driven motion")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_free_time(self.free_time, self.time_step)
        for name in ("states", "moves"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"expected at least 1 for {name}, got {getattr(self, name)}")


ACCELERATION = 50.0  # rad/s^2: largest acceleration of every joint under the random torques
RELEASE_SPEED = 0.2  # largest share of the speed limit when the arm is released


def run(config: Config) -> Log:
    """Make the three comparisons; return the driven motion as log, with the other results in its arrays."""
    robot = config.load_robot()
    rng = np.random.default_rng(config.seed)
    results = {**one_step(config, robot, rng), **released(config, robot, rng)}
    log = follow(config, sampled(config, random_moves(config, robot, rng)), robot)
    return with_arrays(log, **results)


def one_step(config: Config, robot: Robot, rng: np.random.Generator) -> dict[str, NDArray]:
    """Return the accelerations of the engine and of the model: (states, n) each, in [rad/s^2]."""
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
            with suppress(LimitError):  # raised after a step that leaves the range of a closed loop
                simulation.step(tau[k])
            measured[k] = (simulation.state()[1] - qd[k]) / config.time_step
    if robot.active_drives is None:
        return {"step_engine": measured, "step_model": forward_dynamics(robot, q, qd, tau)}
    after = advance_period(robot, (q, qd, motors[0], motors[1]), tau, config.time_step, 1).qd
    return {"step_engine": measured, "step_model": (after - qd) / config.time_step}


def released(config: Config, robot: Robot, rng: np.random.Generator) -> dict[str, NDArray]:
    """Return the free motion from a random state."""
    q = random_positions(robot, rng, 1, share=0.5)[0]
    qd = RELEASE_SPEED * finite_speed(robot) * rng.uniform(-1, 1, robot.n)
    return free_motion(robot, q, qd, config.free_time, config.time_step, config.gui)


def random_moves(config: Config, robot: Robot, rng: np.random.Generator) -> Trajectory:
    """Return quintic moves between random poses, at half the speed limits."""
    from twin.trajectories.joint_trajectories import quintic, sequence

    poses = random_positions(robot, rng, config.moves + 1, share=0.5)
    return sequence(*(quintic(a, b, qd_max=0.5 * finite_speed(robot)) for a, b in pairwise(poses)))


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the three comparisons, with the tracking metrics of the driven motion."""
    arrays = log.arrays
    one = np.abs(arrays["step_engine"] - arrays["step_model"]).max(axis=1)
    relative = np.max(one / np.abs(arrays["step_model"]).max(axis=1))
    return (
        Metric(
            "acceleration, engine - model",
            float(relative),
            "",
            1e-10 if log.robot.loops else 1e-11,
            "relative, one step from random states; rounding, amplified by the inversion of M and by the "
            "iterative solution of closed loops",
        ),
        *free_metrics(log),
        *tracking_metrics(log),
    )


if __name__ == "__main__":
    from scenarios.cli.process import run_script

    raise SystemExit(run_script(__file__))
