"""Drive a robot along a trajectory in the engine, and say how well it followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from controllers import Controller
from scenarios.base import Config, Metric
from scenarios.checks import bounds
from scenarios.checks.motion_range import beyond_passive_range
from scenarios.checks.replay import STATES, agreement_metrics, differing_samples, rounding_arrays
from twin.errors import DivergenceError, TouchedError
from twin.formatting import figure
from twin.logs.figures import (
    joint_error,
    largest,
    place_of_largest,
    tool_distance,
    unit_of_largest,
)
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.engine.simulation import Simulation
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory
    from twin.trajectories.sampling import Samples


def sampled(config: Config, trajectory: Trajectory) -> Samples:
    """The reference at every control period, in the form that the settings ask for."""
    from twin.trajectories.sampling import sample, sample_semi_implicit

    take = sample_semi_implicit if config.reference == "consistent" else sample
    return take(trajectory, config.period)


def follow(
    config: Config,
    reference: Samples,
    plant: Robot,
    model: Robot | None = None,
    stops: Sequence[int] = (),
) -> Log:
    """Let the engine's robot follow a reference under the controller of the settings.

    The same controller then drives the analytic plant through the same loop: what the model predicts.

    Args:
        config: controller, bandwidth, periods, drives of its model, sensors, window.
        reference: samples at the control period; the run starts on the first.
        plant: the robot that the engine simulates, with its drives, before the changes of the settings.
        model: the robot that the controller believes in, but for its drives and changes, which are what the
            settings want it to believe in; `None` for the plant before its changes.
        stops: S samples at which the engine is asked where the tool is.

    Returns:
        The engine's log. Its `arrays` have `q_model`, (N, n) positions of the analytic plant in [rad],
        `start_model` (4, n), the states that it began with, `replay_differs` (N,), where controller, sensors
        and motor limits do not repeat what they did, the `spread` of runs that differ by rounding, see
        `scenarios.checks.replay`, the `stops` and the poses of the tool `tool_at_stops`, (S, 7), and the
        settings that limits depend on: `bandwidth` in [rad/s], `repeatable`, whether it is a `ControlLaw`,
        `consistent`, whether the reference obeys the engine's recursion, `known_law`, whether it is known how
        far the law may stray, `model_drives`, those that it believes in, `sensors`, whether there are any,
        `gain_names` and `gains` of the law, see `scenarios.checks.closed_loop`.

    Raises:
        DivergenceError: if the simulation runs away; its log has what the law was, too.
        TouchedError: a person changed the motion at the window; the same.
    """
    from scenarios.checks.closed_loop import gains
    from twin.control.closed_loop import run_closed_loop
    from twin.control.control_law import ControlLaw
    from twin.control.plant import AnalyticPlant
    from twin.engine.simulation import Simulation
    from twin.rotations.rotations import pose_vector

    model, plant = (
        config.controller_model(plant if model is None else model),
        config.with_plant_changes(plant),
    )
    law = config.control_law(model)
    steps, sensors = config.steps_per_period, config.sensors
    told = gains(law, plant.n) | {"model_drives": np.array(model.drive_mode)}
    tool = np.zeros((len(stops), 7))
    with Simulation(plant, time_step=config.time_step, gui=config.gui) as simulation:

        def look(k: int) -> None:
            """Keep where the tool is at a stop."""
            if k in stops:
                tool[stops.index(k)] = pose_vector(simulation.tool_pose())

        def make(chosen: Config) -> Controller:
            return chosen.control_law(model)

        try:
            log = shown(simulation, config, make, reference, look if stops else None)
        except (DivergenceError, TouchedError) as error:
            if error.log is not None:
                known = replace(error.log, T_flange_tool=config.T_flange_tool)
                error.log = with_arrays(known, **told)
            raise
    predicted = run_closed_loop(
        AnalyticPlant(plant, config.time_step), law, reference, steps_per_period=steps, sensors=sensors
    )
    return with_arrays(
        replace(log, T_flange_tool=config.T_flange_tool),
        q_model=predicted.q,
        start_model=np.array([getattr(predicted, name)[0] for name in STATES[:4]]),
        replay_differs=differing_samples(log, law, reference, sensors),
        repeatable=np.array(isinstance(law, ControlLaw)),
        stops=np.array(stops, dtype=int),
        tool_at_stops=tool,
        **rounding_arrays(log, predicted, law, reference, sensors),
        bandwidth=np.array(config.bandwidth),
        consistent=np.array(config.reference == "consistent"),
        known_law=np.array(config.known_law),
        sensors=np.array(sensors is not None),
        **told,
    )


def shown(
    simulation: Simulation,
    config: Config,
    make: Callable[[Config], Controller],
    reference: Samples,
    at_sample: Callable[[int], None] | None = None,
) -> Log:
    """Run the closed loop in the engine: in the window, where it can be touched, if the settings want one.

    Args:
        simulation: of the plant.
        config: the settings, of which the periods and the sensors are the loop's.
        make: the control law of settings.
        reference: what is followed.
        at_sample: called at every sample.

    Raises:
        DivergenceError: the run ran away.
        TouchedError: a person changed the motion at the window.
    """
    from twin.control.closed_loop import run_closed_loop

    def loop(law: Controller, at_sample: Callable[[int], None] | None) -> Log:
        return run_closed_loop(
            simulation, law, reference, steps_per_period=config.steps_per_period, sensors=config.sensors,
            progress=config.progress, at_sample=at_sample,
        )  # fmt: skip

    if not config.gui:
        return loop(make(config), at_sample)
    from scenarios.bench.watched import Watched

    return Watched(simulation, config, make, reference).run(loop, at_sample)


def with_arrays(log: Log, **arrays: np.ndarray) -> Log:
    """The same log with more arrays of the scenario's own."""
    return replace(log, arrays={**log.arrays, **arrays})


def tracking_metrics(log: Log) -> tuple[Metric, ...]:
    """What a scenario reports whose controller knows the plant and in which every joint moves."""
    return (*error_metrics(log), *agreement_metrics(log), *validity_metrics(log))


def error_metrics(log: Log) -> tuple[Metric, ...]:
    """The largest errors, with a limit where nothing but rounding can cause one, or a bound is known."""
    exact = bounds.is_exact(log)
    return (
        Metric(
            "largest joint error",
            float(np.max(largest(joint_error(log)))),
            unit_of_largest(log, joint_error(log)),
            bounds.ROUND_OFF if exact else None,
            "exact model, reference in the engine's own steps: only rounding is left"
            if exact
            else "what this control law leaves on this motion",
            place_of_largest(log, joint_error(log)),
        ),
        Metric(
            "largest tool error",
            float(np.max(tool_distance(log))),
            "m",
            None,
            "of its origin, the flange's centre without --tool",
            place_of_largest(log, tool_distance(log)),
        ),
        *motor_metrics(log),
        *((bound_metric(log),) if bounds.has_bound(log) else ()),
    )


def motor_metrics(log: Log) -> tuple[Metric, ...]:
    """The error on the motors' side of the springs, which is what the law could see; nothing without any."""
    if log.drives != "elastic":
        return ()
    error = log.q_ref - log.q_motor
    why = "in joint units, before the springs: what a law on the motors' side can see"
    where = place_of_largest(log, error)
    unit = unit_of_largest(log, error)
    return (Metric("largest motor error", float(np.max(largest(error))), unit, None, why, where),)


def bound_metric(log: Log) -> Metric:
    """The error of each joint over what the loop explains, the largest such ratio."""
    bound, why = bounds.tracking_bound(log)
    ratio = joint_error(log) / bound
    joint = int(np.argmax(largest(ratio)))
    unit = "rad" if log.robot.joint_kinds[joint] == "revolute" else "m"
    where = place_of_largest(log, ratio)
    where += f", whose bound is {figure(float(bound[joint]))} {unit}" if where else ""
    return Metric("joint error / its bound", float(np.max(largest(ratio))), "", 1.0, why, where)


def validity_metrics(log: Log) -> tuple[Metric, ...]:
    """Whether the motion was one that a real arm could make."""
    robot = log.robot
    excess = np.maximum(np.maximum(log.q_ref - robot.q_max, robot.q_min - log.q_ref), 0.0)
    beyond = np.maximum(np.max(excess), np.max(beyond_passive_range(robot, log.q_ref)))
    ratio = log.qd_ref / robot.qd_max
    return (
        Metric(
            "samples at the torque limit",
            float(np.count_nonzero(log.saturated)),
            "",
            0.0,
            "the motion is meant to stay within what the drives can give",
            place_of_largest(log, log.saturated.astype(float)),  # of many, the first
        ),
        Metric(
            "reference beyond the range",
            float(np.maximum(beyond, 0.0)),
            unit_of_largest(log, excess),
            0.0,
            "joint limits of the robot's URDF, those of passive joints included",
            place_of_largest(log, excess),
        ),
        Metric(
            "reference speed / its limit",
            float(np.max(np.abs(ratio))),
            "",
            1.0,
            "speed limits of the robot's URDF",
            place_of_largest(log, ratio),
        ),
    )
