"""Engine and analytic model answer the same three questions: are they one robot?

What it shows: three comparisons of the engine with the model of the same arm.

1. *One step*: from random states under random torques, the acceleration of one engine step beside our
   forward dynamics.
2. *Free motion*: let go from a random state, the arm falls and tumbles for a second without any torque, in
   the engine and in `AnalyticPlant`, which integrates our forward dynamics by the same recursion; so does
   the energy of both. Joint limits are lifted in both.
3. *A driven motion*: the same controller drives both through moves between random poses.

What must hold: 1 to relative 1e-11 (both are right to round-off, and M is inverted on the way); 2 and 3 to
what such errors grow to along the motion. The energy itself is not conserved exactly by a step of 1 ms; how
much it changes is reported, and must be the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from scenarios import base
from scenarios.base import Metric, option, positive
from scenarios.motion_range import finite_speed, middle_and_half
from scenarios.tracking import follow, sampled, tracking_metrics, with_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.log import Log
    from twin.robot import Robot
    from twin.trajectories import Trajectory


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the comparison."""

    seed: int = option(1, "of the random states, torques and poses")
    states: int = option(200, "random states for the comparison of one step")
    free_time: float = option(1.0, "length of the free motion, in s")
    moves: int = option(2, "random moves of the driven motion")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.free_time, "free time", "s")
        if not self.free_time >= self.time_step:
            raise ValueError(
                f"expected a free time of at least one time step, {self.time_step:g} s, "
                f"got {self.free_time:g} s"
            )
        for name in ("states", "moves"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"expected at least 1 for {name}, got {getattr(self, name)}")
        if not self.seed >= 0:
            raise ValueError(f"expected a seed of 0 or more, got {self.seed}")


ACCELERATION = 50.0  # rad/s^2: what the random torques are meant to do to every joint
RELEASE_SPEED = 0.2  # of the speed limit, at most, when the arm is let go


def random_positions(robot: Robot, rng: np.random.Generator, count: int, share: float = 1.0) -> NDArray:
    """(count, n) in [rad], uniform over the middle `share` of the range."""
    middle, half = middle_and_half(robot)
    return middle + share * half * rng.uniform(-1, 1, (count, robot.n))


def run(config: Config) -> Log:
    """Ask the three questions; the log is the driven motion of the engine, the rest is in its arrays."""
    robot = config.load_robot()
    rng = np.random.default_rng(config.seed)
    answers = {**one_step(config, robot, rng), **free_motion(config, robot, rng)}
    log = follow(config, sampled(config, random_moves(config, robot, rng)), robot)
    return with_arrays(log, **answers)


def one_step(config: Config, robot: Robot, rng: np.random.Generator) -> dict[str, NDArray]:
    """Accelerations of the engine and of the model: (states, n) each, in [rad/s^2]."""
    from twin.dynamics import forward_dynamics, inverse_dynamics
    from twin.engine import Simulation

    q = random_positions(robot, rng, config.states)
    qd = finite_speed(robot) * rng.uniform(-1, 1, q.shape)
    tau = inverse_dynamics(robot, q, qd, ACCELERATION * rng.uniform(-1, 1, q.shape))
    measured = np.empty_like(q)
    with Simulation(robot, time_step=config.time_step) as simulation:
        for k in range(config.states):
            simulation.reset(q[k], qd[k])
            simulation.step(tau[k])
            measured[k] = (simulation.state()[1] - qd[k]) / config.time_step
    return {"step_engine": measured, "step_model": forward_dynamics(robot, q, qd, tau)}


def free_motion(config: Config, robot: Robot, rng: np.random.Generator) -> dict[str, NDArray]:
    """Positions and speeds of the engine's and of the model's arm: (N, 2, n) each, [q, qd]."""
    from twin.analytic_plant import AnalyticPlant
    from twin.engine import Simulation

    q = random_positions(robot, rng, 1, share=0.5)[0]
    qd = RELEASE_SPEED * finite_speed(robot) * rng.uniform(-1, 1, robot.n)
    steps = round(config.free_time / config.time_step)  # at least 1
    motions = {}
    with Simulation(robot, time_step=config.time_step) as simulation:
        for name, plant in (("engine", simulation), ("model", AnalyticPlant(robot, config.time_step))):
            plant.reset(q, qd)
            states = [plant.state()]
            for _ in range(steps):
                plant.step(np.zeros(robot.n))
                states.append(plant.state())
            motions[f"free_{name}"] = np.array(states)
    return motions


def random_moves(config: Config, robot: Robot, rng: np.random.Generator) -> Trajectory:
    """Quintic moves between random poses, at half the speed limits."""
    from twin.trajectories import quintic, sequence

    poses = random_positions(robot, rng, config.moves + 1, share=0.5)
    return sequence(*(quintic(a, b, qd_max=0.5 * finite_speed(robot)) for a, b in pairwise(poses)))


def metrics(log: Log) -> tuple[Metric, ...]:
    """The answers compared, and how the driven motion went."""
    from twin.dynamics import energy

    arrays = log.arrays
    one = np.abs(arrays["step_engine"] - arrays["step_model"]).max(axis=1)
    relative = np.max(one / np.abs(arrays["step_model"]).max(axis=1))
    engine, model = arrays["free_engine"], arrays["free_model"]
    energy_engine, energy_model = (
        energy(log.robot, motion[:, 0], motion[:, 1]) for motion in (engine, model)
    )
    return (
        Metric(
            "acceleration, engine - model",
            float(relative),
            "",
            1e-11,
            "relative, one step from random states; both are right to rounding, with M inverted",
        ),
        Metric(
            "free motion, engine - model",
            float(np.max(np.abs(engine[:, 0] - model[:, 0]))),
            "rad",
            1e-11,
            "the rounding of every step, grown along a tumbling motion; seen: 6e-14",
        ),
        Metric(
            "energy, engine - model",
            float(np.max(np.abs(energy_engine - energy_model))),
            "J",
            1e-10,
            "what 1e-11 rad make under a gravity torque of order 10 N m",
        ),
        Metric(
            "energy change in free motion",
            float(np.max(np.abs(energy_engine - energy_engine[0]))),
            "J",
            None,
            "semi-implicit Euler conserves energy to the order of its step only; it is the same in both",
        ),
        *tracking_metrics(log),
    )
