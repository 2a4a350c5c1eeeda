"""Compare the published move of the Manutec r3 with a reference simulation.

What it shows: a complete drive train. The Modelica Standard Library's RobotR3 moves a load of 15 kg from the
pose `start` to the pose `end`. Each motor has a position loop and a speed loop, without a model of the arm.
The drives have rotors, Coulomb and static friction, and in axes 1 to 3 elastic gears, on which the arm swings
after the motors have come to rest. `tests.published.manutec_r3` contains the published joint angles at eight
instants; `--compare FILE` compares with a whole run, comma-separated values t,q1,...,q6 in seconds and
radians.

The simulation differs from the published model in three points: the engine has discrete steps, the speed loop
sums its integral in these steps, and the motors produce the demanded torque without delay. The omitted
current loop has a time constant of a quarter of a millisecond, which causes an error of 8e-5 rad.

What must hold: with the published controllers, `--controller cascade`, the joints stay near the reference
run. The limit is the error of the current loop plus 2e-4 rad for each millisecond of the step, or 2e-3 rad
with `--reference continuous`, whose speeds are half a step ahead of the engine's. The engine agrees with the
model of arm and drives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import controllers
from controllers import Controller
from scenarios import base
from scenarios.base import Metric, option
from tests.published import manutec_r3
from scenarios.judging.tracking import sampled, shown, with_arrays
from twin.errors import RecordingError, RobotError
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.logs.log import Log

PUBLISHED = "cascade"
"""Controller of the published gains."""

PER_STEP = {"consistent": 0.2, "continuous": 1.9}
"""[rad/s]: error of the discrete steps over the control period, by the sampling of the reference.

Observed: 0.15 and 1.2.
"""
CURRENT_LOOP = 1e-4  # rad: largest error of the omitted current loop; observed: 7.5e-5
ROUNDING = 1e-12  # rad


@dataclass(frozen=True)
class Config(base.Config):
    """Settings of the move."""

    robot: str = option("manutec_r3", "name of the robot, or path of its dh.toml")
    controller: str = option(PUBLISHED, "controller; cascade has the published gains", controllers.NAMES)
    compare: str | None = option(None, "CSV file t,q1,...,q6 of a reference run to compare with")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.payload is not None or self.model_payload is not None:
            raise ValueError("the published move has a fixed payload, expected no other payload")
        if self.compare is not None and not Path(self.compare).is_file():
            raise RecordingError(f"there is no reference run {self.compare!r}")


VARIANTS = (Config(time_step=1e-4), Config(reference="continuous"))


def suits(robot: Robot) -> bool:
    """Return whether the robot is the one of the published move."""
    return robot.name == manutec_r3.NAME


def control_law(robot: Robot, config: base.Config) -> Controller:
    """Return the controller of the settings; `cascade` has the published gains unless `--set` sets others."""
    if has_published_gains(config):
        return manutec_r3.published_law(robot, config.period)
    return config.control_law(robot)


def has_published_gains(config: base.Config) -> bool:
    """Return whether the controller is the published one."""
    return config.controller == PUBLISHED and not config.law_settings


def run(config: Config) -> Log:
    """Make the move, in the engine and in the model."""
    from twin.control.closed_loop import run_closed_loop
    from twin.control.plant import AnalyticPlant
    from twin.engine.simulation import Simulation
    from twin.trajectories.joint_trajectories import hold, sequence

    robot = config.load_robot()
    if not suits(robot):
        raise RobotError(f"the move is published for robot {manutec_r3.NAME!r} only, got {robot.name!r}")
    compared = None if config.compare is None else manutec_r3.read_run(config.compare)
    robot = robot.with_payload(manutec_r3.LOAD).with_drives("elastic")
    move = manutec_r3.published_move(robot)
    samples = sampled(config, sequence(move, hold(robot.poses["end"], manutec_r3.REST)))
    law, steps = control_law(robot, config), config.steps_per_period
    with Simulation(robot, time_step=config.time_step, gui=config.gui) as simulation:
        log = shown(simulation, config, partial(control_law, robot), samples)
    predicted = run_closed_loop(
        AnalyticPlant(robot, config.time_step),
        law,
        samples,
        steps_per_period=steps,
        sensors=config.sensors,
        learn=False,
    )
    arrays = {"at_instants": deviation(log, manutec_r3.INSTANTS, manutec_r3.ANGLES)}
    if compared is not None:
        t = np.minimum(compared[:, 0], move.duration + manutec_r3.REST)
        arrays["at_rows"] = deviation(log, t, compared[:, 1:])
    published = has_published_gains(config) and config.mounting == "floor"
    return with_arrays(
        log,
        q_model=predicted.q,
        published=np.array(published),
        consistent=np.array(config.reference == "consistent"),
        **arrays,
    )


def deviation(log: Log, t: NDArray, q: NDArray) -> NDArray:
    """Return the deviation (M, n) of the joints from the angles q (M, n) at the times t (M,), in [rad]."""
    return np.column_stack([np.interp(t, log.t, joint) for joint in log.q.T]) - q


def metrics(log: Log) -> tuple[Metric, ...]:
    """Return the distances of the arm from the reference run, and of the engine from the model."""
    period = log.time_step * log.steps_per_period
    per_step = PER_STEP["consistent" if log.arrays["consistent"] else "continuous"]
    limit = per_step * period + CURRENT_LOOP if log.arrays["published"] else None
    why = (
        "the published controllers: error of the steps, in proportion, and of the omitted current loop"
        if log.arrays["published"]
        else "no limit, because the controllers or the mounting differ from those of the reference run"
    )
    distances = [
        Metric("from the reference run, at 8 instants", largest(log, "at_instants"), "rad", limit, why)
    ]
    if "at_rows" in log.arrays:
        rows = Metric("from the reference run, whole file", largest(log, "at_rows"), "rad", limit, why)
        distances.append(rows)
    return (
        *distances,
        Metric(
            "engine - model, whole run",
            float(np.max(np.abs(log.q - log.arrays["q_model"]))),
            "rad",
            ROUNDING if log.arrays["published"] else None,
            "the analytic plant under the same controller: rounding, which these stable loops do not amplify",
        ),
        Metric(
            "largest joint error",
            float(np.max(np.abs(log.q_ref - log.q))),
            "rad",
            None,
            "from the reference of the move: the controllers have no model of gravity, rotors or friction",
        ),
        Metric(
            "largest twist of a gear",
            float(np.max(np.abs(log.q_motor - log.q))),
            "rad",
            None,
            "at the joint: motor position less joint position",
        ),
    )


def largest(log: Log, name: str) -> float:
    """Return the largest magnitude in an array of the log."""
    return float(np.max(np.abs(log.arrays[name])))


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
