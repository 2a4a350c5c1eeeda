"""Which rollouts a batch holds: plants, controllers and starts, broadcast against each other, a row each."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from twin.control.closed_loop import Bounds
from twin.control.control_law import ControlLaw
from twin.robot.drives.drive_step import drive_numbers
from twin.robot.drives.motors import MotorLimits
from twin.robot.evaluation import copied
from twin.robot.robot import Robot


class Batch(NamedTuple):
    """R rollouts: their plants, controllers and starts, one a row.

    inertias (R, n_tree, 10), gravity (R, 3): of the plants.
    motor_limits (R, 3, n), motor_coupling (R, 2, n, n): see `twin.robot.drives.motors.MotorLimits`.
    drive_inertia (R, m, m), drive_friction (R, 4, m), springs (R, 2, e), shafts (R, 2, m, m), elastic (e,):
        see `twin.robot.drives.drive_step.DriveNumbers`; m is 0 where drives are ideal.
    encoder (R, 2, n, n): see `twin.robot.drives.sensors.SensorNumbers`.
    q_min, q_max (R, n), per_speed (R, n): the ranges of their joints, and 1 / speed limits, 0 where none is.
    watched (R, n), energy (R,): see `twin.control.closed_loop.Bounds`.
    model_inertias, model_gravity, model_tau_max, model_period: of the controllers' models.
    model_drive_inertia (R, n, n), model_friction (R, 4, n), model_shafts (R, n, n): their drives.
    parameters (R, m, n): of the laws.
    q, qd (R, n): the starts.
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
    watched: np.ndarray
    energy: np.ndarray
    model_inertias: np.ndarray
    model_gravity: np.ndarray
    model_tau_max: np.ndarray
    model_period: np.ndarray
    model_drive_inertia: np.ndarray
    model_friction: np.ndarray
    model_shafts: np.ndarray
    parameters: np.ndarray
    q: np.ndarray
    qd: np.ndarray


class Passive(NamedTuple):
    """The p passive joints: their positions are `G q + g0`, (p, n) and (p,), their range is (p,) each."""

    G: np.ndarray
    g0: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Settings(NamedTuple):
    """What all rollouts share.

    Attributes:
        dt: of a step, in [s].
        steps: in a period.
        period: in [s].
        every: so many samples one is kept.
        memory: number of rows of the law's memory.
        runaway: a speed over its limit at which a joint has run away.
        integrator: `SEMI_IMPLICIT_EULER` or `RK4`.
        noise, speed_gain: of the sensors, see `twin.robot.drives.sensors.SensorNumbers`.
        past: number of measurements that the sensors keep, 0 where there are none.
    """

    dt: float
    steps: int
    period: float
    every: int
    memory: int
    runaway: float
    integrator: int
    noise: float
    speed_gain: float
    past: int


class Record(NamedTuple):
    """What the loop fills.

    log (R, K, rows, n): the signals at the samples that are kept, see `twin.control.signals`.
    saturated (R, n): number of samples at which a drive could not deliver.
    samples (R,): number of samples that were reached.
    trouble (R,): what ended the rollout early, or 0.
    last (R, rows, n): the signals when it ended.
    worst (R, 2): how far a joint was beyond its range, in [rad], 0 where none was, and the largest speed over
        its limit.
    where (R, 2, 2): the joint and the sample of these; the joint is -1 where they are 0.
    value (R, 2): the position, in [rad], and the speed, in [rad/s], there.
    summed (R, 4, n): of each joint the largest error, in [rad], its sample, and the sums of the squares of
        errors and torques.
    tool (R, 2): the largest distance of the tool from where it should be, in [m], and its sample.
    stop (1,): not 0 when the caller wants no more; the rollout under way is left as it is.
    """

    log: np.ndarray
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


def objects_of(value: Any, kind: type, name: str) -> np.ndarray:
    """One object or nested sequences of objects as an array of objects."""
    if isinstance(value, kind):
        array = np.empty((), dtype=object)
        array[()] = value
    else:
        array = np.array(value, dtype=object)
    strangers = [item for item in array.flat if not isinstance(item, kind)]
    if strangers or not array.size:
        got = type(strangers[0]).__name__ if strangers else "none"
        raise ValueError(f"expected {name} to be a {kind.__name__} or a regular array of them, got {got}")
    return array


def check_alike(plants: np.ndarray, controllers: np.ndarray) -> None:
    """Raise `ValueError` unless one compiled loop serves them all."""
    arm, first = plants.flat[0], controllers.flat[0]
    if first.robot.n != arm.n:
        raise ValueError(f"expected a controller of {arm.n} joints, got one of {first.robot.n}")
    for robots, what in ((list(plants.flat), "plants"), ([c.robot for c in controllers.flat], "models")):
        for robot in robots:
            robot.require_inertia()
            if not _same_geometry(robot, robots[0]):
                raise ValueError(
                    f"expected {what} that differ in payload, gravity and limits alone, got "
                    f"{robots[0].name!r} and {robot.name!r} of different geometry"
                )
    kind = _kind_of_drives(arm)
    for robot in plants.flat:
        if _kind_of_drives(robot) != kind:
            raise ValueError(
                "expected plants whose drives differ in numbers alone, not in their mode, in which joints "
                f"are elastic, or in whether motors are coupled, got {arm!r} and {robot!r}"
            )
    for other in controllers.flat:
        for method in ("__call__", "reset"):
            if getattr(type(other), method) is not getattr(ControlLaw, method):
                raise ValueError(
                    f"expected controllers that are their laws, got a {type(other).__name__}, "
                    f"which has its own {method}"
                )
        if other.law is not first.law:
            raise ValueError(f"expected controllers of one law, got {first.name!r} and {other.name!r}")
        if other.model.drives.shafts.shape != first.model.drives.shafts.shape:
            raise ValueError("expected models whose motors are coupled in all or in none")
        for attribute in ("parameters", "memory"):
            shapes = [getattr(c, attribute).shape for c in (first, other)]
            if shapes[0] != shapes[1]:
                raise ValueError(f"expected {attribute} of one shape, got {shapes[0]} and {shapes[1]}")


def _kind_of_drives(robot: Robot) -> tuple[object, ...]:
    """What drives must have in common for one loop: mode, elastic joints, and which motors turn together."""
    drives = robot.active_drives
    if drives is None:
        return (robot.drive_mode,)
    elastic = np.isfinite(drives.stiffness) & (robot.drive_mode == "elastic")
    return robot.drive_mode, elastic.tobytes(), (drives.coupling != 0.0).tobytes(), drives.friction_at


def _same_geometry(a: Robot, b: Robot) -> bool:
    """Whether two robots have the same kernels and passive joints."""
    if a is b:
        return True
    arrays = [
        (
            r.tree.T_parent_joint,
            r.tree.axes,
            r.tree.T_joint_flange,
            r.embedding,
            r.embedding_offset,
            r.passive_min,
            r.passive_max,
        )
        for r in (a, b)
    ]
    trees = [(r.tree.kinds, r.tree.parents, r.tree.flange_joint, r.driven) for r in (a, b)]
    return trees[0] == trees[1] and all(x is y or np.array_equal(x, y) for x, y in zip(*arrays, strict=True))


def batch_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that plants, controllers and starts make together."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            "expected plants, controllers and starts of shapes that fit together, got "
            + ", ".join(map(str, shapes))
        ) from None
    if 0 in shape:
        raise ValueError(f"expected at least one rollout, got a batch of shape {shape}")
    return shape


def rows_of(
    plants: np.ndarray, controllers: np.ndarray, q: np.ndarray, qd: np.ndarray, shape: tuple[int, ...],
    time_step: float, encoder: Callable[[Robot], np.ndarray],
) -> Batch:  # fmt: skip
    """Everything in which rollouts differ, a row each; `encoder` gives that of a plant's motors."""

    def rows(array: np.ndarray, dimensions: int) -> np.ndarray:
        own = array.shape[array.ndim - dimensions :]
        return copied(np.broadcast_to(array, shape + own).reshape(math.prod(shape), *own))

    def each(objects: np.ndarray, get: Callable[[Any], Any]) -> np.ndarray:
        stacked = np.array([get(item) for item in objects.flat], dtype=np.float64)
        own = stacked.shape[1:]
        return rows(stacked.reshape(objects.shape + own), len(own))

    bounds = {id(robot): Bounds.of(robot) for robot in plants.flat}
    mode = plants.flat[0].drive_mode
    drives = {
        id(own): drive_numbers(own, mode, time_step)
        for own in {id(robot.active_drives): robot.active_drives for robot in plants.flat}.values()
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
        watched=each(plants, lambda robot: bounds[id(robot)].watched),
        energy=each(plants, lambda robot: bounds[id(robot)].energy),
        model_inertias=each(controllers, lambda controller: controller.model.inertias),
        model_gravity=each(controllers, lambda controller: controller.model.gravity),
        model_tau_max=each(controllers, lambda controller: controller.model.tau_max),
        model_period=each(controllers, lambda controller: controller.model.period),
        model_drive_inertia=each(controllers, lambda controller: controller.model.drives.inertia),
        model_friction=each(controllers, lambda controller: controller.model.drives.friction),
        model_shafts=each(controllers, lambda controller: controller.model.drives.shafts),
        parameters=each(controllers, lambda controller: controller.parameters),
        q=rows(q, 1),
        qd=rows(qd, 1),
    )
