"""Compilation of the rollout loop, once for all robots and control laws, see `twin.control.bound_law`."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numba
from numba import types
from numba.extending import is_jitted

from twin.physics.control import rollout_loop
from twin.physics.control.bound_law import (
    COMPILE_LOCK,
    COUNT,
    COUNTS,
    CUBE,
    DYNAMICS,
    FLOAT,
    INDICES,
    INTEGER,
    KERNEL_POINTERS,
    LAW,
    LOGS,
    MASS_MATRIX,
    MATRIX,
    MODEL,
    TREE,
    VECTOR,
    compile_kernels,
    compiled_law,
    tuple_of,
)  # fmt: skip
from twin.physics.control.control_law import MODEL_KERNELS, ControlLaw, Law, Model
from twin.physics.control.rollout_batch import Batch, Block, Course, Passive, Record, Settings
from twin.physics.robot.robot import Robot

POINTERS = (LAW, *MODEL, DYNAMICS, MASS_MATRIX, KERNEL_POINTERS["bias"], KERNEL_POINTERS["tool_pose"])
RUN = types.void(
    *POINTERS,
    tuple_of(Block, INTEGER, INTEGER, LOGS, CUBE),
    tuple_of(
        Batch, CUBE, MATRIX, CUBE, LOGS, CUBE, CUBE, CUBE, LOGS, COUNT, LOGS, MATRIX, MATRIX, MATRIX, MATRIX,
        VECTOR, CUBE, MATRIX, MATRIX, VECTOR, CUBE, CUBE, CUBE, TREE, CUBE, CUBE, COUNT, MATRIX, MATRIX,
    ),
    tuple_of(Passive, MATRIX, VECTOR, VECTOR, VECTOR),
    tuple_of(Settings, FLOAT, INTEGER, FLOAT, INTEGER, FLOAT, INTEGER, FLOAT, FLOAT, INTEGER),
    tuple_of(Course, VECTOR, CUBE, MATRIX, MATRIX, LOGS),
    tuple_of(Record, LOGS, LOGS, COUNTS, COUNT, COUNT, CUBE, MATRIX, INDICES, MATRIX, CUBE, MATRIX, COUNT),
)  # fmt: skip


def compiled_rollout(plant: Robot, controller: ControlLaw) -> Callable[..., None]:
    """Return `rollout_loop.run` with its functions bound: the law, its model's kernels and the plant's.

    Args:
        plant: robot whose kernels simulate the motion.
        controller: controller that provides the law and its model's kernels.

    Raises:
        ValueError: numba cannot compile the law, or the kernels are not compiled.
    """
    kernels = [getattr(controller.model, name) for name in Model._fields[: len(MODEL_KERNELS)]]
    plant_functions = ("forward_dynamics", "mass_matrix", "bias", "tool_pose")
    kernels += [getattr(plant.kernels, name) for name in plant_functions]
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return partial(rollout_loop.run, controller.law, *kernels)
    if not all(is_jitted(kernel) for kernel in kernels):
        raise ValueError("expected robots with compiled kernels, as twin.load returns them")
    with COMPILE_LOCK:
        return partial(rollout_loop.run, *_compile_all(controller.law, *kernels))


@lru_cache(maxsize=64)
def _compile_all(law: Law, *kernels: Any) -> tuple[Any, ...]:
    """Compile the loop, the law and the kernels for their signatures; return the law and the kernels."""
    compile_kernels(kernels, POINTERS[1:])
    if RUN.args not in rollout_loop.run.overloads:
        rollout_loop.run.compile(RUN)
        rollout_loop.run.disable_compile()  # numba converts functions to pointers only if it may not compile
    return compiled_law(law), *kernels
