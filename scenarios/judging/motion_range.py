"""Ranges and speeds for a scenario's motions, and the free motion of an arm in engine and model.

A URDF may omit limits, and a continuous joint has no range, but every motion needs finite values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.metric import Metric
from scenarios.options import positive
from twin.base.errors import LimitError, RobotError, TouchedError
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from scenarios.setup import Setup
    from twin.data.logs.log import Log
    from twin.physics.trajectories.joint_trajectories import Trajectory
    from twin.physics.trajectories.sampling import Samples

HALF_RANGE = {"revolute": np.pi, "prismatic": 0.5}
"""Half of the default range of a joint, in [rad] or [m]: about zero, or from the only limit of the joint."""
SPEED = {"revolute": 1.0, "prismatic": 0.5}
"""Default speed limit of a joint, in [rad/s] or [m/s]."""
SWING = 0.6
"""Largest amplitude in `cosines`, over half of the joint's range."""
DRAWS = 1000
"""Largest number of repeated draws of a position with a passive joint beyond its range.

For the IRB 1400, one position in five is drawn again.
"""


def finite_range(robot: Robot) -> tuple[NDArray, NDArray]:
    """Return the ends of all joint ranges, (n,) each, in [rad] or [m]; `HALF_RANGE` replaces missing ones."""
    half = np.array([HALF_RANGE[kind] for kind in robot.joint_kinds])
    has_low, has_high = np.isfinite(robot.q_min), np.isfinite(robot.q_max)
    low = np.where(has_low, robot.q_min, np.where(has_high, robot.q_max - 2 * half, -half))
    high = np.where(has_high, robot.q_max, np.where(has_low, robot.q_min + 2 * half, half))
    return low, high


def middle_and_half(robot: Robot) -> tuple[NDArray, NDArray]:
    """Return the middle and half the width of every joint's `finite_range`, (n,) each, in [rad] or [m]."""
    low, high = finite_range(robot)
    return (low + high) / 2, (high - low) / 2


def finite_speed(robot: Robot) -> NDArray:
    """Return the speed limits (n,), in [rad/s] or [m/s]; `SPEED` replaces missing ones."""
    default = np.array([SPEED[kind] for kind in robot.joint_kinds])
    return np.where(np.isfinite(robot.qd_max), robot.qd_max, default)


def cosines(
    robot: Robot, duration: float, speed_fraction: float, slowest: float, fastest: float
) -> Trajectory:
    """Return cosines of all joints about the middle of their ranges, from rest, with different frequencies.

    Args:
        robot: the robot.
        duration: length of the motion, in [s].
        speed_fraction: peak speed of every joint over its limit; lower where `SWING` limits the amplitude.
        slowest: frequency of the first joint, in [Hz].
        fastest: frequency of the last joint, in [Hz].
    """
    from twin.physics.trajectories.joint_trajectories import sines

    frequency = np.linspace(slowest, fastest, robot.n)
    middle, half = middle_and_half(robot)
    speed = finite_speed(robot)
    amplitude = np.minimum(speed_fraction * speed / (2 * np.pi * frequency), SWING * half)
    return sines(middle, amplitude, frequency, duration, phase=-np.pi / 2, qd_max=speed)


def random_positions(robot: Robot, rng: np.random.Generator, count: int, share: float = 1.0) -> NDArray:
    """Draw positions (count, n), in [rad] or [m], uniform over the middle `share` of the joints' ranges.

    Positions with a passive joint beyond its range are drawn again.

    Raises:
        RobotError: nearly all positions bring a passive joint beyond its range.
    """
    middle, half = middle_and_half(robot)
    positions = middle + share * half * rng.uniform(-1, 1, (count, robot.n))
    if not robot.passive:
        return positions
    for _ in range(DRAWS):
        folded = beyond_passive_range(robot, positions) > 0
        if not folded.any():
            return positions
        positions[folded] = middle + share * half * rng.uniform(-1, 1, (int(folded.sum()), robot.n))
    raise RobotError(
        f"robot {robot.name!r}: no positions of the joints found, in the middle {share:.0%} of the ranges of "
        "its joints, with all passive joints within their ranges"
    )


def beyond_passive_range(robot: Robot, q: NDArray) -> NDArray:
    """Return the largest excess (N,) of a passive joint beyond its range, in [rad]; negative inside it.

    Args:
        robot: the robot.
        q: (N, n) positions of the joints, in [rad].
    """
    angles = robot.passive_angles(q)
    beyond = np.maximum(angles - robot.passive_max, robot.passive_min - angles)
    return np.max(beyond, axis=1, initial=-np.inf)


def within_limits(robot: Robot, reference: Samples) -> bool:
    """Return whether a reference stays within the ranges and the speed limits of all joints."""
    q, qd = reference.q, reference.qd
    within = np.all((q >= robot.q_min) & (q <= robot.q_max)) and np.all(np.abs(qd) <= robot.qd_max)
    return bool(within and np.all(beyond_passive_range(robot, q) <= 0))


def arm_metrics(log: Log, leaves_limits: str = "") -> tuple[Metric, ...]:
    """Return the checks of the joints' ranges and speed limits; each names the worst joint.

    Args:
        log: log of the run.
        leaves_limits: why the run leaves the limits on purpose; if given, the figures have no limit.

    Example:
        >>> from scenarios.judging.motion_range import arm_metrics
        >>> from scenarios.gravity_hold import GravityHold
        >>> metrics = arm_metrics(GravityHold(duration=0.1).run().log)
        >>> [(metric.name, metric.passes) for metric in metrics]
        [('position beyond the range', True), ('speed / its limit', True)]
    """
    from twin.data.logs.figures import unit_of_largest
    from twin.physics.robot.limits import ROUND_OFF

    robot = log.robot
    found = {violation.quantity: str(violation) for violation in log.violations()}
    excess = np.maximum(log.q - robot.q_max, robot.q_min - log.q)
    return (
        Metric(
            "position beyond the range",
            float(np.maximum(np.max(excess, initial=0.0), 0.0)),
            unit_of_largest(log, np.maximum(excess, 0.0)),
            None if leaves_limits else ROUND_OFF,
            leaves_limits or "of any joint in the engine; ranges of the robot's URDF",
            found.get("position", ""),
        ),
        *unjudged_ranges(log),
        Metric(
            "speed / its limit",
            float(np.max(np.abs(log.qd) / robot.qd_max, initial=0.0)),
            "",
            None if leaves_limits else 1.0 + ROUND_OFF,
            leaves_limits or "of any joint in the engine; speed limits of the robot's URDF",
            found.get("speed", ""),
        ),
    )


def unjudged_ranges(log: Log) -> tuple[Metric, ...]:
    """Return the largest angle of each passive joint whose range nobody knows; none where all are known."""
    from twin.physics.robot.limits import combination

    robot = log.robot
    angles = dict(zip(robot.passive, np.abs(robot.passive_angles(log.q)).max(axis=0), strict=True))
    return tuple(
        Metric(
            f"largest angle {combination(robot, joint)}",
            float(angles[joint]),
            "rad",
            None,
            f"not judged: {why}",
        )
        for joint, why in robot.unjudged.items()
    )


def check_free_time(free_time: float, time_step: float) -> None:
    """Raise an error unless the free time, in [s], is finite and at least one time step, in [s].

    Raises:
        ValueError: it is not.
    """
    positive(free_time, "free time", "s")
    if not free_time >= time_step:
        raise ValueError(
            f"expected a free time of at least one time step, {time_step:g} s, got {free_time:g} s"
        )


class FreeMotion(NamedTuple):
    """Free motion of the engine's arm and of the model's.

    Attributes:
        engine, model: (N, 2, n) each, positions and speeds `[q, qd]`.
        gap: (N,) gap of the closed loops in the engine, in [m].
    """

    engine: NDArray
    model: NDArray
    gap: NDArray


def free_motion(robot: Robot, q: NDArray, qd: NDArray, duration: float, setup: Setup) -> FreeMotion:
    """Simulate the free motion in the engine and in `AnalyticPlant`; stop early if a closed loop would fold.

    Args:
        robot: the robot; its joints have no stops here.
        q: (n,) positions at the release, in [rad].
        qd: (n,) speeds at the release, in [rad/s].
        duration: length of the motion, in [s].
        setup: time step of engine and model, and whether a window shows the engine's motion.

    Raises:
        TouchedError: a person changed the motion at the window.
    """
    from twin.physics.control.plant import AnalyticPlant
    from twin.physics.engine.simulation import Simulation

    found: list[NDArray] = []
    loop_gaps: list[float] = []
    with Simulation(robot, time_step=setup.time_step, gui=setup.gui) as simulation:
        for plant in (simulation, AnalyticPlant(robot, setup.time_step)):
            plant.reset(q, qd)
            states, gaps = [plant.state()], [0.0]
            for _ in range(round(duration / setup.time_step)):
                try:
                    plant.step(np.zeros(robot.n))
                except LimitError:
                    break
                states.append(plant.state())
                gaps.append(plant.loop_gap)
            found.append(np.array(states))
            if plant is simulation:
                loop_gaps = gaps
        if simulation.bench is not None and simulation.bench.touches:
            from scenarios.bench.watched import touches_of

            raise TouchedError(touches_of(simulation.bench))
    return FreeMotion(found[0], found[1], np.array(loop_gaps))


def free_metrics(log: Log, free: FreeMotion) -> tuple[Metric, ...]:
    """Return the metrics of a free motion of the log's robot: length, positions and energy."""
    from twin.physics.dynamics.equation_of_motion import energy, gravity_torque

    engine, model = free.engine, free.model
    steps = min(len(engine), len(model))
    # If a loop folds in only one of the two, the difference is undefined: NaN fails the check.
    same_end = 0.0 if len(engine) == len(model) else np.nan
    engine, model = engine[:steps], model[:steps]
    energy_engine, energy_model = (energy(log.robot, *np.moveaxis(x, 1, 0)) for x in (engine, model))
    return (
        Metric(
            "length of the free motion",
            (steps - 1) * log.time_step,
            "s",
            None,
            "of the settings, or until a closed loop would fold",
        ),
        Metric(
            "free motion, engine - model",
            float(np.max(np.abs(engine[:, 0] - model[:, 0]))) + same_end,
            "rad",
            1e-11,
            "the rounding of every step, amplified along a tumbling motion; observed: 6e-14",
        ),
        Metric(
            "energy, engine - model",
            float(np.max(np.abs(energy_engine - energy_model))),
            "J",
            1e-11 * float(np.max(np.abs(gravity_torque(log.robot, model[:, 0])))),
            "1e-11 rad times the largest gravity torque along the motion",
        ),
        Metric(
            "energy change in free motion",
            float(np.max(np.abs(energy_engine - energy_engine[0]))),
            "J",
            None,
            "semi-implicit Euler conserves energy only to first order in its step, and friction dissipates "
            "some; equal in both",
        ),
    )
