"""Scenario `model_agreement`: the engine against the analytic model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios.judging.motion_range import (
    FreeMotion,
    check_free_time,
    finite_speed,
    free_metrics,
    free_motion,
    random_positions,
)
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import at_least, option
from scenarios.scenario import Scenario
from scenarios.setup import Setup
from twin.base.errors import LimitError
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from twin.physics.trajectories.joint_trajectories import Trajectory

ACCELERATION = 50.0  # rad/s^2: largest acceleration of every joint under the random torques
RELEASE_SPEED = 0.2  # largest share of the speed limit when the arm is released


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedRun(TrackingRun):
    """Driven motion with the other comparisons of engine and model.

    Attributes:
        step_engine, step_model: (states, n) accelerations in one step, in [rad/s^2].
        free: free motion.
    """

    step_engine: NDArray
    step_model: NDArray
    free: FreeMotion


class ModelAgreement(Scenario):
    """Compare the engine with the analytic model: one step, a free motion and a driven motion.

    What it shows: three comparisons of the engine with the model of the same arm.

    1. *One step*: from random states under random torques, the acceleration of one engine step and the
       analytic forward dynamics, with the drives of the settings.
    2. *Free motion*: released in a random state, the arm falls and tumbles for a second without any torque,
       in the engine and in `AnalyticPlant`, which integrates the analytic forward dynamics by the same
       recursion. The energies are compared, too. Neither has joint limits. The motion ends before a closed
       loop would fold.
    3. *A driven motion*: the same controller drives both through moves between random poses.

    What must hold: comparison 1 agrees to relative 1e-11 (both are exact to round-off, amplified by the
    inversion of M), or to 1e-10 if the engine solves closed loops by iteration. Comparisons 2 and 3 agree to
    the size that such errors reach along the motion. A step of 1 ms does not conserve the energy exactly; its
    change is reported, and must be the same in both.
    """

    defaults = {"seed": 1}
    states: int = option(200, "random states for the comparison of one step")
    free_time: float = option(1.0, "length of the free motion, in s")
    moves: int = option(2, "random moves of the driven motion")

    def __post_init__(self) -> None:
        at_least(self.states, "states")
        at_least(self.moves, "moves")

    def check(self, setup: Setup) -> None:
        """Raise ValueError if the free motion is shorter than a step."""
        check_free_time(self.free_time, setup.time_step)

    def run(self, setup: Setup | None = None) -> ComparedRun:
        """Make the three comparisons."""
        from scenarios.judging.following import follow

        setup = self.checked(setup)
        robot = setup.load_robot()
        rng = np.random.default_rng(setup.seed)
        step_engine, step_model = one_step(setup, self.states, robot, rng)
        free = released(setup, self.free_time, robot, rng)
        run = follow(setup, setup.sampling().sampled(random_moves(self.moves, robot, rng)), robot)
        return ComparedRun(**vars(run), step_engine=step_engine, step_model=step_model, free=free)

    def metrics(self, run: ComparedRun) -> tuple[Metric, ...]:
        """Return the three comparisons, with the tracking metrics of the driven motion."""
        one = np.abs(run.step_engine - run.step_model).max(axis=1)
        relative = np.max(one / np.abs(run.step_model).max(axis=1))
        return (
            Metric(
                "acceleration, engine - model",
                float(relative),
                "",
                1e-10 if run.log.robot.loops else 1e-11,
                "relative, one step from random states; rounding, amplified by the inversion of M and by the "
                "iterative solution of closed loops",
            ),
            *free_metrics(run.log, run.free),
            *tracking_metrics(run),
        )


def one_step(setup: Setup, states: int, robot: Robot, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Return the accelerations of the engine and of the model in random states: (states, n), in [rad/s^2]."""
    from twin.physics.dynamics.equation_of_motion import advance_period, forward_dynamics, inverse_dynamics
    from twin.physics.engine.simulation import Simulation

    q = random_positions(robot, rng, states)
    qd = finite_speed(robot) * rng.uniform(-1, 1, q.shape)
    tau = inverse_dynamics(robot, q, qd, ACCELERATION * rng.uniform(-1, 1, q.shape))
    measured, motors = np.empty_like(q), np.empty((2, *q.shape))
    with Simulation(robot, time_step=setup.time_step) as simulation:
        for k in range(states):
            simulation.reset(q[k], qd[k])
            motors[:, k] = simulation.motor_state()
            with suppress(LimitError):  # raised after a step that leaves the range of a closed loop
                simulation.step(tau[k])
            measured[k] = (simulation.state()[1] - qd[k]) / setup.time_step
    if robot.active_drives is None:
        return measured, forward_dynamics(robot, q, qd, tau)
    after = advance_period(robot, (q, qd, motors[0], motors[1]), tau, setup.time_step, 1).qd
    return measured, (after - qd) / setup.time_step


def released(setup: Setup, free_time: float, robot: Robot, rng: np.random.Generator) -> FreeMotion:
    """Return the free motion from a random state."""
    q = random_positions(robot, rng, 1, share=0.5)[0]
    qd = RELEASE_SPEED * finite_speed(robot) * rng.uniform(-1, 1, robot.n)
    return free_motion(robot, q, qd, free_time, setup)


def random_moves(moves: int, robot: Robot, rng: np.random.Generator) -> Trajectory:
    """Return quintic moves between random poses, at half the speed limits."""
    from twin.physics.trajectories.joint_trajectories import quintic, sequence

    poses = random_positions(robot, rng, moves + 1, share=0.5)
    return sequence(*(quintic(a, b, qd_max=0.5 * finite_speed(robot)) for a, b in pairwise(poses)))


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
