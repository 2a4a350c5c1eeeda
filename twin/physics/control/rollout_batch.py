"""Batch of rollouts: plants, controllers and starts, broadcast against each other, and its results.

Each rollout has a row.  The results follow from the records of the compiled loop: failures, violations and
figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from twin.base.errors import LimitError
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.rollout_loop import (
    FOLDED,
    LARGEST_ERROR,
    LARGEST_ERROR_SAMPLE,
    NOT_A_TORQUE,
    POSITION,
    SPEED,
    SQUARED_ERRORS,
    SQUARED_TORQUES,
    WRONG_SHAPE,
)
from twin.physics.control.signals import PLAIN_ROWS, Bounds, divergence_message, joint_without_torque
from twin.physics.dynamics.regressor import TreeNumbers
from twin.physics.robot.drives.drive_step import drive_numbers
from twin.physics.robot.drives.motors import MotorLimits
from twin.physics.robot.evaluation import copied
from twin.physics.robot.limits import ROUND_OFF, Violation, check_folding, violation
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit


class Batch(NamedTuple):
    """Inputs of R rollouts: plants, controllers and starts, one row per rollout.

    inertias (R, n_tree, 10), gravity (R, 3): inertial parameters and gravity of the plants.
    motor_limits (R, 3, n), motor_coupling (R, 2, n, n): see `twin.robot.drives.motors.MotorLimits`.
    drive_inertia (R, m, m), drive_friction (R, 4, m), springs (R, 2, e), shafts (R, 2, m, m), elastic (e,):
        see `twin.robot.drives.drive_step.DriveNumbers`; m is 0 where drives are ideal.
    encoder (R, 2, n, n): see `twin.robot.drives.motors.SensorNumbers`.
    q_min, q_max (R, n), per_speed (R, n): joint ranges and 1 / speed limits, 0 for a joint without a limit.
    inverse_speed_limits (R, n), energy (R,): see `twin.control.signals.Bounds`.
    model_inertias, model_gravity, model_tau_max, model_period: parameters of the controllers' models.
    model_drive_inertia (R, n, n), model_friction (R, 4, n), model_shafts (R, n, n): drives of these models.
    model_tree: links and joints of all models.
    parameters (R, m, n), memory (R, rows, n): parameters of the laws, and the start of their memory.
    signals (L,): rows of the memory that are recorded.
    q, qd (R, n): initial positions and velocities.
    """

    inertias: np.ndarray
    gravity: np.ndarray
    motor_limits: np.ndarray
    motor_coupling: np.ndarray
    drive_inertia: np.ndarray
    drive_friction: np.ndarray
    springs: np.ndarray
    shafts: np.ndarray
    elastic: np.ndarray
    encoder: np.ndarray
    q_min: np.ndarray
    q_max: np.ndarray
    per_speed: np.ndarray
    inverse_speed_limits: np.ndarray
    energy: np.ndarray
    model_inertias: np.ndarray
    model_gravity: np.ndarray
    model_tau_max: np.ndarray
    model_period: np.ndarray
    model_drive_inertia: np.ndarray
    model_friction: np.ndarray
    model_shafts: np.ndarray
    model_tree: TreeNumbers
    parameters: np.ndarray
    memory: np.ndarray
    signals: np.ndarray
    q: np.ndarray
    qd: np.ndarray


class Passive(NamedTuple):
    """Passive joints: p positions `G q + g0`, (p, n) and (p,), and their ranges `low` to `high`, (p,)."""

    G: np.ndarray
    g0: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Settings(NamedTuple):
    """Settings that all rollouts of a batch share.

    Attributes:
        dt: time step, in [s].
        steps: number of time steps in a control period.
        period: control period, in [s].
        every: stride of the stored samples.
        runaway: ratio of speed to speed limit beyond which a joint has run away.
        integrator: `SEMI_IMPLICIT_EULER` or `RK4`.
        noise, speed_gain: sensor parameters, see `twin.robot.drives.motors.SensorNumbers`.
        past: number of measurements that the sensors store, 0 without sensors.
        force: (11,) `Sensors.force_numbers`, or (0,).
    """

    dt: float
    steps: int
    period: float
    every: int
    runaway: float
    integrator: int
    noise: float
    speed_gain: float
    past: int
    force: np.ndarray


class Course(NamedTuple):
    """Reference and kicks of a batch of rollouts, at N samples.

    Attributes:
        t: (N,) times, in [s].
        path: (N, 3, n) positions, speeds and accelerations of the reference, in [rad, rad/s, rad/s^2].
        tool_path: (N, 3) reference of the tool, in [m]; empty if the tool error is not requested.
        T_flange_tool: (4, 4) pose of the tool.
        kicks: (R, N, 4, n) values that are added to positions and speeds of joints and motors; empty if
            there are none.
        pushes, surfaces: (R, 9), (S, 21) rows of the environment.
        T_touch: (4, 4) pose of the tool on which it acts.
    """

    t: np.ndarray
    path: np.ndarray
    tool_path: np.ndarray
    T_flange_tool: np.ndarray
    kicks: np.ndarray
    pushes: np.ndarray
    surfaces: np.ndarray
    T_touch: np.ndarray


class Block(NamedTuple):
    """Rollouts `first` to `last - 1` of a batch, which one call of the loop runs.

    Attributes:
        first: index of the first rollout.
        last: index behind the last one.
        tables: (last - first, N, rows, n) what the controllers prepared; a single table serves all.
        draws: (last - first, N, n) random numbers of the sensor noise, empty without noise.
        force_draws: (last - first, N, 6) those of the force sensor.
    """

    first: int
    last: int
    tables: np.ndarray
    draws: np.ndarray
    force_draws: np.ndarray


class Record(NamedTuple):
    """Results of the loop, one row per rollout.

    log (R, K, rows, n): signals at the stored samples, see `twin.control.signals`.
    law (R, K, L, n): recorded rows of the law's memory at the stored samples.
    saturated (R, n): number of samples at which a drive could not deliver the demanded torque.
    samples (R,): number of samples reached.
    trouble (R,): code of the cause of an early end, 0 without one.
    last (R, rows, n): signals at the end.
    worst (R, 2): largest excess of a joint over its range, in [rad], 0 without one, and largest ratio of a
        joint speed to its limit.
    where (R, 2, 2): joint and sample of these two; the joint is -1 where they are 0.
    value (R, 2): position, in [rad], and speed, in [rad/s], there.
    summed (R, 4, n): largest error of each joint, in [rad], its sample, and the sums of the squares of errors
        and torques.
    tool (R, 2): largest distance of the tool from its reference, in [m], and its sample.
    stop (1,): nonzero if the caller requests an end; the rollout in progress then remains incomplete.
    """

    log: np.ndarray
    law: np.ndarray
    saturated: np.ndarray
    samples: np.ndarray
    trouble: np.ndarray
    last: np.ndarray
    worst: np.ndarray
    where: np.ndarray
    value: np.ndarray
    summed: np.ndarray
    tool: np.ndarray
    stop: np.ndarray


def object_array(value: Any, kind: type, name: str) -> np.ndarray:
    """Return one object, or nested sequences of objects, as an array of objects of type `kind`."""
    if isinstance(value, kind):
        array = np.empty((), dtype=object)
        array[()] = value
    else:
        array = np.array(value, dtype=object)
    invalid = [item for item in array.flat if not isinstance(item, kind)]
    if invalid or not array.size:
        got = type(invalid[0]).__name__ if invalid else "none"
        raise ValueError(f"expected {name} to be a {kind.__name__} or a regular array of them, got {got}")
    return array


def check_compatible(plants: np.ndarray, controllers: np.ndarray) -> None:
    """Raise `ValueError` unless one compiled loop can run all plants and controllers."""
    arm, first = plants.flat[0], controllers.flat[0]
    if first.robot.n != arm.n:
        raise ValueError(f"expected a controller of {arm.n} joints, got one of {first.robot.n}")
    for robots, what in ((list(plants.flat), "plants"), ([c.robot for c in controllers.flat], "models")):
        for robot in robots:
            robot.require_inertia()
            if not _same_geometry(robot, robots[0]):
                raise ValueError(
                    f"expected {what} that differ only in payload, gravity and limits, got "
                    f"{robots[0].name!r} and {robot.name!r} of different geometry"
                )
    structure = _drive_structure(arm)
    for robot in plants.flat:
        if _drive_structure(robot) != structure:
            raise ValueError(
                "expected plants with the same drive mode, elastic joints, coupled motors and place of "
                f"friction, got {arm!r} and {robot!r}"
            )
    for other in controllers.flat:
        for method in ("__call__", "reset"):
            if getattr(type(other), method) is not getattr(ControlLaw, method):
                raise ValueError(
                    f"expected controllers that do not override {method}, because rollouts call only their "
                    f"law, got a {type(other).__name__}"
                )
        if other.law is not first.law:
            raise ValueError(f"expected controllers with the same law, got {first.name!r} and {other.name!r}")
        if other.model.drives.shafts.shape != first.model.drives.shafts.shape:
            raise ValueError("expected coupled motors in all models of the controllers or in none")
        if other.signal_rows != first.signal_rows:
            raise ValueError("expected controllers with the same recorded signals")
        for attribute in ("parameters", "memory"):
            shapes = [getattr(c, attribute).shape for c in (first, other)]
            if shapes[0] != shapes[1]:
                raise ValueError(f"expected {attribute} of the same shape, got {shapes[0]} and {shapes[1]}")


def _drive_structure(robot: Robot) -> tuple[object, ...]:
    """Return the drive properties that all plants of a batch share.

    These are the mode, the elastic joints, the coupled motors and the place of the friction.
    """
    drives = robot.active_drives
    if drives is None:
        return (robot.drive_mode,)
    elastic = np.isfinite(drives.stiffness) & (robot.drive_mode == "elastic")
    return robot.drive_mode, elastic.tobytes(), (drives.coupling != 0.0).tobytes(), drives.friction_at


GEOMETRY = attrgetter(
    "tree.T_parent_joint", "tree.axes", "tree.T_joint_flange", "embedding", "embedding_offset", "passive_min",
    "passive_max",
)  # fmt: skip
STRUCTURE = attrgetter("tree.kinds", "tree.parents", "tree.flange_joint", "driven")


def _same_geometry(a: Robot, b: Robot) -> bool:
    """Return whether two robots have the same kernels and passive joints."""
    if a is b:
        return True
    pairs = zip(GEOMETRY(a), GEOMETRY(b), strict=True)
    return STRUCTURE(a) == STRUCTURE(b) and all(x is y or np.array_equal(x, y) for x, y in pairs)


def batch_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which plants, controllers and starts are broadcast."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            "expected plants, controllers and starts of shapes that can be broadcast, got "
            + ", ".join(map(str, shapes))
        ) from None
    if 0 in shape:
        raise ValueError(f"expected at least one rollout, got a batch of shape {shape}")
    return shape


def stack_rows(
    plants: np.ndarray, controllers: np.ndarray, q: np.ndarray, qd: np.ndarray, shape: tuple[int, ...],
    time_step: float, encoder: Callable[[Robot], np.ndarray],
) -> Batch:  # fmt: skip
    """Return the inputs of all rollouts, one row per rollout; `encoder` returns the encoder of a robot."""

    def rows(array: np.ndarray, dimensions: int) -> np.ndarray:
        trailing = array.shape[array.ndim - dimensions :]
        return copied(np.broadcast_to(array, shape + trailing).reshape(math.prod(shape), *trailing))

    def each(objects: np.ndarray, get: Callable[[Any], Any]) -> np.ndarray:
        stacked = np.array([get(item) for item in objects.flat], dtype=np.float64)
        trailing = stacked.shape[1:]
        return rows(stacked.reshape(objects.shape + trailing), len(trailing))

    bounds = {id(robot): Bounds.of(robot) for robot in plants.flat}
    mode = plants.flat[0].drive_mode
    drives = {
        id(active): drive_numbers(active, mode, time_step)
        for active in {id(robot.active_drives): robot.active_drives for robot in plants.flat}.values()
    }
    motors = {id(robot): MotorLimits.of(robot.active_drives, robot.tau_max) for robot in plants.flat}
    return Batch(
        inertias=each(plants, lambda robot: robot.inertias),
        gravity=each(plants, lambda robot: robot.gravity),
        motor_limits=each(plants, lambda robot: motors[id(robot)].limits),
        motor_coupling=each(plants, lambda robot: motors[id(robot)].coupling),
        drive_inertia=each(plants, lambda robot: drives[id(robot.active_drives)].inertia),
        drive_friction=each(plants, lambda robot: drives[id(robot.active_drives)].friction),
        springs=each(plants, lambda robot: drives[id(robot.active_drives)].springs),
        shafts=each(plants, lambda robot: drives[id(robot.active_drives)].shafts),
        elastic=drives[id(plants.flat[0].active_drives)].elastic.copy(),
        encoder=each(plants, encoder),
        q_min=each(plants, lambda robot: robot.q_min),
        q_max=each(plants, lambda robot: robot.q_max),
        per_speed=each(plants, lambda robot: 1.0 / robot.qd_max),
        inverse_speed_limits=each(plants, lambda robot: bounds[id(robot)].inverse_speed_limits),
        energy=each(plants, lambda robot: bounds[id(robot)].energy),
        model_inertias=each(controllers, lambda controller: controller.model.inertias),
        model_gravity=each(controllers, lambda controller: controller.model.gravity),
        model_tau_max=each(controllers, lambda controller: controller.model.tau_max),
        model_period=each(controllers, lambda controller: controller.model.period),
        model_drive_inertia=each(controllers, lambda controller: controller.model.drives.inertia),
        model_friction=each(controllers, lambda controller: controller.model.drives.friction),
        model_shafts=each(controllers, lambda controller: controller.model.drives.shafts),
        model_tree=controllers.flat[0].model.tree,
        parameters=each(controllers, lambda controller: controller.parameters),
        memory=each(controllers, lambda controller: controller.start),
        signals=np.array(list(controllers.flat[0].signal_rows.values()), dtype=np.int64),
        q=rows(q, 1),
        qd=rows(qd, 1),
    )


class Failure(NamedTuple):
    """Rollout that ended early.

    Attributes:
        rollout: index in the batch, `()` for a single rollout.
        samples: number of samples reached.
        message: cause and time of the end.
    """

    rollout: tuple[int, ...]
    samples: int
    message: str


def worst_violations(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, t: np.ndarray
) -> Iterator[Violation]:
    """Yield the largest violation of each rollout and kind of limit."""
    for r, kind in np.argwhere(record.worst > [ROUND_OFF, 1.0 + ROUND_OFF]).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        joint, sample = record.where[r, kind].tolist()
        quantity, value = ("position", "speed")[kind], float(record.value[r, kind])
        yield violation(plants[index], quantity, joint, float(t[sample]), value, index)


def collect_failures(
    record: Record, shape: tuple[int, ...], plants: np.ndarray, law: str, every: int, t: np.ndarray
) -> list[Failure]:
    """Return the rollouts that ended early, and fill the samples that they did not reach with NaN."""
    failures = []
    for r in np.flatnonzero(record.trouble).tolist():
        index = tuple(int(i) for i in np.unravel_index(r, shape))
        samples = int(record.samples[r])
        for log in (record.log, record.law):
            log[r, -(-samples // every) :] = np.nan
        message = _trouble(int(record.trouble[r]), plants[index], record.last[r], law, samples, t)
        failures.append(Failure(index, samples, message + rollout_suffix(index)))
    return failures


def _trouble(trouble: int, robot: Robot, last: np.ndarray, law: str, samples: int, t: np.ndarray) -> str:
    """Describe why, where and when a rollout ended early."""
    q, qd, demand, tau = last[:PLAIN_ROWS]
    k = samples if trouble not in (NOT_A_TORQUE, FOLDED) else samples - 1
    when = f"t = {t[k]:.6g} s (sample {k})"
    if trouble == WRONG_SHAPE:
        raise ValueError(f"law {law!r} returned tau of a wrong shape at {when}, expected ({robot.n},)")
    if trouble == NOT_A_TORQUE:
        joint = joint_without_torque(demand, tau)
        unit = joint_unit(robot.joint_kinds[joint], "torque")
        return f"law {law!r} demands {demand[joint]} {unit} of {robot.joint_names[joint]} at {when}"
    if trouble == FOLDED:
        try:
            check_folding(robot, q)
        except LimitError as error:
            return f"{error}, in the step after {when}"
        return f"a passive joint is at the end of its range in the step after {when}"
    return f"{divergence_message(robot, q, qd)} at {when}"


def rollout_suffix(index: tuple[int, ...]) -> str:
    """Return the end of a message that names the rollout; "" for a single rollout."""
    return f" in rollout {index[0] if len(index) == 1 else index}" if index else ""


class Figures(NamedTuple):
    """Figures over all samples that each rollout reached; `...` is the shape of the batch.

    Attributes:
        samples: (...) number of samples reached.
        trouble: (...) code of the cause of an early end, 0 without one; see `twin.control.rollout_loop`.
        joint_error: (..., n) largest `|q_ref - q|`, in [rad].
        joint_error_time: (..., n) time of the largest error, in [s].
        rms_error: (..., n) root mean square of `q_ref - q`, in [rad].
        rms_torque: (..., n) root mean square of the motors' torque at the joint, in [N m].
        tool_error: (...) largest distance of the tool from its reference, in [m]; NaN if not requested.
        tool_error_time: (...) time of the largest distance, in [s].
        beyond_range: (...) largest excess of a joint over its range, in [rad], 0 without one.
        speed_ratio: (...) largest ratio of a joint speed to its limit.
    """

    samples: np.ndarray
    trouble: np.ndarray
    joint_error: np.ndarray
    joint_error_time: np.ndarray
    rms_error: np.ndarray
    rms_torque: np.ndarray
    tool_error: np.ndarray
    tool_error_time: np.ndarray
    beyond_range: np.ndarray
    speed_ratio: np.ndarray


def figures_of(record: Record, shape: tuple[int, ...], t: np.ndarray, tool: bool) -> Figures:
    """Return the figures of a record.

    Args:
        record: results of the loop.
        shape: shape of the batch.
        t: (N,) times of the samples, in [s].
        tool: whether the tool error was computed.
    """
    samples = record.samples
    mean = np.sqrt(
        record.summed[:, [SQUARED_ERRORS, SQUARED_TORQUES]] / np.maximum(samples, 1)[:, None, None]
    )
    where = np.where(tool, record.tool.T, np.nan)
    seconds = t[record.tool[:, 1].astype(np.int64)] if tool else where[1]
    each = Figures(
        samples=samples,
        trouble=record.trouble,
        joint_error=record.summed[:, LARGEST_ERROR],
        joint_error_time=t[record.summed[:, LARGEST_ERROR_SAMPLE].astype(np.int64)],
        rms_error=mean[:, 0],
        rms_torque=mean[:, 1],
        tool_error=where[0],
        tool_error_time=seconds,
        beyond_range=record.worst[:, POSITION],
        speed_ratio=record.worst[:, SPEED],
    )
    return Figures(*(array.reshape(shape + array.shape[1:]) for array in each))
