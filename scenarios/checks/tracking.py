"""Drive a robot along a trajectory in the engine, and compute the metrics of its tracking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from controllers import Controller
from scenarios.base import Config, Metric
from scenarios.checks import bounds
from scenarios.checks.feedback import feedback_arrays, feedback_metrics
from scenarios.checks.motion_range import beyond_passive_range, finite_range
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
from twin.logs.payload_changes import LoadChange, load_arrays
from twin.robot.limits import joint_unit
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from twin.control.plant import AnalyticPlant
    from twin.engine.simulation import Simulation
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory
    from twin.trajectories.sampling import Samples


def sampled(config: Config, trajectory: Trajectory) -> Samples:
    """Return the reference at every control period, sampled as the settings require.

    Example:
        >>> import twin
        >>> from scenarios.checks.tracking import sampled
        >>> from scenarios.gravity_hold import Config
        >>> samples = sampled(Config(time_step=0.002), twin.hold([0] * 6, 0.1))
        >>> samples.q.shape, samples.t[[0, 1, -1]].round(6).tolist()
        ((51, 6), [0.0, 0.002, 0.1])
    """
    from twin.trajectories.sampling import sample, sample_semi_implicit

    take = sample_semi_implicit if config.reference == "consistent" else sample
    return take(trajectory, config.period)


def follow(
    config: Config,
    reference: Samples,
    plant: Robot,
    model: Robot | None = None,
    stops: Sequence[int] = (),
    loads: Sequence[LoadChange] = (),
    at_sample: Callable[[Simulation, int], None] | None = None,
) -> Log:
    """Let the engine's robot follow a reference under the controller of the settings.

    The same controller then drives the analytic plant through the same loop. This is the model's prediction.
    If the settings have the log of a draw of a sweep, it is completed instead, without such a comparison.

    Args:
        config: controller, bandwidth, periods, drives of its model, sensors, window.
        reference: samples at the control period; the run starts on the first.
        plant: robot in the engine, with its drives, before the changes of the settings.
        model: robot of the controller's model, before the settings set its drives and changes; `None` for
            the plant before its changes.
        stops: indices of S samples at which the engine's tool pose is recorded.
        loads: payloads of plant and model in their order, the first at sample 0, if they change. Each has a
            controller, made for it; the payloads of the settings replace them.
        at_sample: function called with the simulation and the index of every sample.

    Returns:
        The engine's log. Its `arrays` are

        - `q_model`, (N, n) positions of the analytic plant, in [rad],
        - `start_model`, (4, n) initial state of the analytic plant,
        - `replay_differs`, (N,) mask of the samples at which a repeated run of controller, sensors and motor
          limits differs,
        - `spread`, (N,) distance of runs that differ by rounding, see `scenarios.checks.replay`,
        - `stops` and `tool_at_stops`, (S, 7) poses of the tool,
        - `load` and `loads` if the payload changes, see `twin.logs.parts`,
        - the settings that limits depend on: `bandwidth` in [rad/s]; `repeatable`, whether the controller
          is a `ControlLaw`; `consistent`, whether the reference obeys the engine's recursion; `known_law`,
          whether a bound of the tracking error may apply; `model_drives`, the drives of the controller's
          model; `sensors`, whether there are any,
        - `gain_names` and `gains` of the controller, see `scenarios.checks.closed_loop`,
        - `feedback` and others, see `scenarios.checks.feedback`, if the error can only be rounding.

    Raises:
        DivergenceError: the simulation diverged; the log of the error has the gains and `model_drives`.
        TouchedError: a person changed the motion at the window; its log has these arrays, too.

    Example:
        >>> from scenarios.checks.closed_loop import closed_loop
        >>> from scenarios.checks.tracking import follow
        >>> from scenarios.gravity_hold import Config, reference
        >>> config = Config(duration=0.1, controller="pd_gravity")
        >>> follow(config, *closed_loop(config, reference)).q.shape
        (101, 6)
    """
    from scenarios.checks.closed_loop import LawPerLoad, gains, is_repeatable
    from twin.control.closed_loop import run_closed_loop
    from twin.control.plant import AnalyticPlant
    from twin.engine.simulation import Simulation
    from twin.kinematics.forward import forward_kinematics
    from twin.rotations.rotations import pose_vector

    nominal, plant = plant if model is None else model, config.with_plant_changes(plant)
    models = [config.controller_model(nominal)]
    if loads:
        plant = plant.with_payload(loads[0].payload)
        models = [config.controller_model(nominal.with_payload(one.model_payload)) for one in loads]
    changes = {one.sample: one.payload for one in loads if one.sample > 0}

    def make(chosen: Config) -> Controller:
        laws = [chosen.control_law(one) for one in models]
        return laws[0] if len(laws) == 1 else LawPerLoad(laws, [reference.t[one.sample] for one in loads])

    def change_load(driven: Simulation | AnalyticPlant, k: int) -> None:
        """Change the payload at a sample, the first one included, where a run in the window restarts."""
        if k in changes or (k == 0 and changes and driven.robot.payload is not plant.payload):
            driven.change_payload(changes.get(k, plant.payload))

    law = make(config)
    steps, sensors = config.steps_per_period, config.sensors
    law_arrays = gains(law, plant.n) | {"model_drives": np.array(models[0].drive_mode)}
    tool = np.zeros((len(stops), 7))

    def known(log: Log) -> Log:
        """Return the log with the first payload, the tool, and what is known of controller and payloads."""
        arrays = law_arrays | (load_arrays(loads, len(log.t)) if changes else {})
        return with_arrays(replace(log, robot=plant, T_flange_tool=config.T_flange_tool), **arrays)

    settings = {
        "stops": np.array(stops, dtype=int),
        "repeatable": np.array(is_repeatable(law)),
        "bandwidth": np.array(config.bandwidth),
        "consistent": np.array(config.reference == "consistent"),
        "known_law": np.array(config.known_law),
        "derived_gains": np.array(not config.law_settings),
        "sensors": np.array(sensors is not None),
    }
    if config.simulated is not None:
        log = known(config.simulated[1])
        poses = forward_kinematics(plant, log.q[np.array(stops, dtype=int)], config.T_flange_tool)
        return with_arrays(log, tool_at_stops=pose_vector(poses), **settings)
    with Simulation(plant, time_step=config.time_step, gui=config.gui) as simulation:

        def sampled_state(k: int) -> None:
            """Record the pose of the tool at a stop, and change the payload."""
            if k in stops:
                tool[stops.index(k)] = pose_vector(simulation.tool_pose())
            change_load(simulation, k)
            if at_sample is not None:
                at_sample(simulation, k)

        try:
            log = known(shown(simulation, config, make, reference, sampled_state))
        except (DivergenceError, TouchedError) as error:
            if error.log is not None:
                error.log = known(error.log)
            raise
    model_plant = AnalyticPlant(plant, config.time_step)
    predicted = run_closed_loop(
        model_plant, law, reference, steps_per_period=steps, sensors=sensors,
        at_sample=partial(change_load, model_plant), learn=False,
    )  # fmt: skip
    log = with_arrays(
        log,
        q_model=predicted.q,
        start_model=np.array([getattr(predicted, name)[0] for name in STATES[:4]]),
        replay_differs=differing_samples(log, law, reference, sensors),
        tool_at_stops=tool,
        **rounding_arrays(log, predicted, law, reference, sensors),
        **settings,
    )
    if bounds.is_exact(log):
        names = zip(law_arrays["gain_names"].tolist(), law_arrays["gains"], strict=True)
        model_plant.change_payload(plant.payload)
        log = with_arrays(log, **feedback_arrays(log, model_plant, law, reference, dict(names)))
    return log


def shown(
    simulation: Simulation,
    config: Config,
    make: Callable[[Config], Controller],
    reference: Samples,
    at_sample: Callable[[int], None] | None = None,
) -> Log:
    """Run the closed loop in the engine, with a window if the settings request one; return its log.

    Args:
        simulation: simulation of the plant.
        config: settings; the periods and the sensors are those of the loop.
        make: function that returns the controller of settings.
        reference: reference of the controller.
        at_sample: function called at every sample.

    Raises:
        DivergenceError: the simulation diverged.
        TouchedError: a person changed the motion at the window.
    """
    from twin.control.closed_loop import run_closed_loop

    def loop(law: Controller, at_sample: Callable[[int], None] | None) -> Log:
        return run_closed_loop(
            simulation, law, reference, steps_per_period=config.steps_per_period, sensors=config.sensors,
            progress=config.progress, at_sample=at_sample, learn=False,
        )  # fmt: skip

    if not config.gui:
        return loop(make(config), at_sample)
    from scenarios.bench.watched import Watched

    return Watched(simulation, config, make, reference).run(loop, at_sample)


def with_arrays(log: Log, **arrays: np.ndarray) -> Log:
    """Return the log with additional arrays of the scenario.

    Example:
        >>> import numpy as np
        >>> from scenarios.checks.tracking import with_arrays
        >>> from scenarios.gravity_hold import Config, run
        >>> log = with_arrays(run(Config(duration=0.1)), distance=np.array([0.1, 0.2]))
        >>> log.arrays["distance"].tolist()
        [0.1, 0.2]
    """
    return replace(log, arrays={**log.arrays, **arrays})


def tracking_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the tracking errors, the checks of engine against model, and the checks of the reference.

    Example:
        >>> from scenarios.checks.tracking import tracking_metrics
        >>> from scenarios.gravity_hold import Config, run
        >>> metrics = tracking_metrics(run(Config(duration=0.1)))
        >>> len(metrics), [metric.name for metric in metrics if not metric.passes]
        (12, [])
    """
    return (*error_metrics(log), *found_payload(log), *agreement_metrics(log), *validity_metrics(log))


def found_payload(log: Log) -> tuple[Metric, ...]:
    """Return the mass that the controller found beside its model's payload; empty unless it seeks one.

    Example:
        >>> from scenarios.checks.tracking import found_payload
        >>> from scenarios.gravity_hold import Config, run
        >>> log = run(Config(controller="adaptive", drives="rigid", payload="3", model_payload="0"))
        >>> [(metric.name, metric.unit) for metric in found_payload(log)]
        [('payload that the controller found', 'kg')]
    """
    payload = log.law_signals.get("payload")
    if payload is None:
        return ()
    why = "mass beside that of its model's payload, at the end of the run; as true as the motion tells"
    return (Metric("payload that the controller found", float(payload[-1, 0]), "kg", None, why),)


def error_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the largest errors, with a limit if only rounding can cause an error or a bound is known.

    Example:
        >>> from scenarios.checks.tracking import error_metrics
        >>> from scenarios.gravity_hold import Config, run
        >>> metrics = error_metrics(run(Config(duration=0.1, controller="pd")))
        >>> for metric in metrics:
        ...     print(metric.name, "=", round(metric.value, 4))
        largest joint error = 0.0348
        largest tool error = 0.0275
        joint error / its bound = 0.1926
    """
    exact = bounds.is_exact(log)
    return (
        Metric(
            "largest joint error",
            float(np.max(largest(joint_error(log)))),
            unit_of_largest(log, joint_error(log)),
            bounds.ROUND_OFF if exact else None,
            "exact model, reference in the engine's steps: only rounding is left"
            if exact
            else "error of this controller on this motion",
            place_of_largest(log, joint_error(log)),
        ),
        Metric(
            "largest tool error",
            float(np.max(tool_distance(log))),
            "m",
            None,
            "of the tool's origin, the flange's centre without --tool",
            place_of_largest(log, tool_distance(log)),
        ),
        *motor_metrics(log),
        *feedback_metrics(log),
        *((bound_metric(log),) if bounds.has_bound(log) else ()),
    )


def motor_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the error on the motors' side of the springs, which the controller can measure.

    Empty without springs.

    Example:
        >>> from scenarios.checks.tracking import motor_metrics
        >>> from scenarios.gravity_hold import Config, run
        >>> log = run(Config(duration=0.1, drives="elastic", payload="6,0.1,0.1,0.1"))
        >>> [metric.name for metric in motor_metrics(log)]
        ['largest motor error']
    """
    if log.drives != "elastic":
        return ()
    error = log.q_ref - log.q_motor
    why = "in joint units, before the springs, where the controller measures"
    where = place_of_largest(log, error)
    unit = unit_of_largest(log, error)
    return (Metric("largest motor error", float(np.max(largest(error))), unit, None, why, where),)


def bound_metric(log: Log) -> Metric:
    """Return the check of the largest error of a joint over its bound.

    A bound beyond the range of its joint says nothing: the figure is then not judged, unless the error of
    another joint exceeds its bound.

    Example:
        >>> from scenarios.checks.tracking import bound_metric
        >>> from scenarios.gravity_hold import Config, run
        >>> metric = bound_metric(run(Config(duration=0.1, controller="pd")))
        >>> metric.passes, round(metric.value, 4), metric.limit
        (True, 0.1926, 1.0)
    """
    bound, why = bounds.tracking_bound(log)
    low, high = finite_range(log.robot)
    silent = bound > high - low
    ratio = joint_error(log) / np.where(silent, np.inf, bound)
    value, where = float(np.max(largest(ratio))), place_of_largest(log, ratio)
    judged = not (silent.any() and value <= 1.0)
    joint = int(np.argmax(largest(ratio) if judged else silent))
    name, unit = log.robot.joint_names[joint], joint_unit(log.robot.joint_kinds[joint])
    if not judged:
        where, why = name, f"the bound of {name} is beyond its range"
        value = float(np.max(largest(joint_error(log)) / bound))
    where += f", whose bound is {figure(float(bound[joint]))} {unit}" if where else ""
    return Metric("joint error / its bound", value, "", 1.0 if judged else None, why, where)


def torque_limit_metric(log: Log, why: str) -> Metric:
    """Return the check that no motor reached its torque limit; not judged if a limit is not known."""
    saturated, limit = log.saturated, 0.0
    unknown = log.robot.joints_without_torque_limit
    if unknown and not np.any(saturated):
        limit, why = None, f"not judged: no torque limit is known of {', '.join(unknown)}"
    where = place_of_largest(log, saturated.astype(float))  # the first saturated sample
    return Metric("samples at the torque limit", float(np.count_nonzero(saturated)), "", limit, why, where)


def validity_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the checks that a real arm could make the motion: its torques, ranges and speed limits.

    Example:
        >>> from scenarios.checks.tracking import validity_metrics
        >>> from scenarios.gravity_hold import Config, run
        >>> metrics = validity_metrics(run(Config(duration=0.1)))
        >>> for metric in metrics:
        ...     print(metric.name, "=", metric.value)
        samples at the torque limit = 0.0
        reference beyond the range = 0.0
        reference speed / its limit = 0.0
    """
    robot = log.robot
    excess = np.maximum(np.maximum(log.q_ref - robot.q_max, robot.q_min - log.q_ref), 0.0)
    beyond = np.maximum(np.max(excess), np.max(beyond_passive_range(robot, log.q_ref)))
    ratio = log.qd_ref / robot.qd_max
    return (
        torque_limit_metric(log, "the motion should stay within the torque limits of the drives"),
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
