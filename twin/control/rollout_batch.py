"""Which rollouts a batch holds: plants, controllers and starts, broadcast against each other, a row each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from twin.control.control_law import ControlLaw
from twin.control.divergence import Bounds
from twin.control.rollout_loop import Batch
from twin.robot.evaluation import copied
from twin.robot.robot import Robot


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
    for other in controllers.flat:
        for method in ("__call__", "reset"):
            if getattr(type(other), method) is not getattr(ControlLaw, method):
                raise ValueError(
                    f"expected controllers that are their laws, got a {type(other).__name__}, "
                    f"which has its own {method}"
                )
        if other.law is not first.law:
            raise ValueError(f"expected controllers of one law, got {first.name!r} and {other.name!r}")
        for attribute in ("parameters", "memory"):
            shapes = [getattr(c, attribute).shape for c in (first, other)]
            if shapes[0] != shapes[1]:
                raise ValueError(f"expected {attribute} of one shape, got {shapes[0]} and {shapes[1]}")


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
    plants: np.ndarray, controllers: np.ndarray, q: np.ndarray, qd: np.ndarray, shape: tuple[int, ...]
) -> Batch:
    """Everything in which rollouts differ, a row each."""

    def rows(array: np.ndarray, dimensions: int) -> np.ndarray:
        own = array.shape[array.ndim - dimensions :]
        return copied(np.broadcast_to(array, shape + own).reshape(math.prod(shape), *own))

    def each(objects: np.ndarray, get: Callable[[Any], Any]) -> np.ndarray:
        stacked = np.array([get(item) for item in objects.flat], dtype=np.float64)
        own = stacked.shape[1:]
        return rows(stacked.reshape(objects.shape + own), len(own))

    bounds = {id(robot): Bounds.of(robot) for robot in plants.flat}
    return Batch(
        inertias=each(plants, lambda robot: robot.inertias),
        gravity=each(plants, lambda robot: robot.gravity),
        tau_max=each(plants, lambda robot: robot.tau_max),
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
