"""Compilation of the rollout loop, once for all robots and control laws.

The loop calls the law and the kernels through pointers to functions of fixed signatures
(`numba.types.FunctionType`).  Otherwise numba would compile the loop again, for seconds, for every law and
every robot.  A call through a pointer takes some nanoseconds.  The law is compiled separately; the kernels
are those that the rest of the package uses.
"""

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numba
from numba import njit, types
from numba.extending import is_jitted

from twin.control import rollout_loop
from twin.control.control_law import MODEL_KERNELS, ControlLaw, Law, Model, is_compiled
from twin.control.rollout_batch import Batch, Block, Course, Passive, Record, Settings
from twin.dynamics.regressor import TreeNumbers
from twin.jit import compiled
from twin.robot.drives.drive_step import DriveModel
from twin.robot.robot import Robot
from twin.trajectories.sampling import Reference, State

# All array types are writable, like those for which the kernels are compiled already.
FLOAT, INTEGER = types.float64, types.int64
VECTOR, MATRIX, CUBE, LOGS = (types.Array(FLOAT, dimensions, "C") for dimensions in (1, 2, 3, 4))
COUNT, COUNTS, INDICES = (types.Array(INTEGER, dimensions, "C") for dimensions in (1, 2, 3))


def _tuple(cls: type, *members: Any) -> Any:
    """Return the numba type of a NamedTuple."""
    if len(set(members)) == 1:
        return types.NamedUniTuple(members[0], len(members), cls)
    return types.NamedTuple(members, cls)


def _pointer(result: Any, *arguments: Any) -> Any:
    """Return the numba type of a pointer to a function."""
    return types.FunctionType(result(*arguments))


DYNAMICS = _pointer(types.void, VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR)
MASS_MATRIX = _pointer(types.void, VECTOR, MATRIX, MATRIX)
KERNEL_POINTERS = {
    "inverse_dynamics": DYNAMICS,
    "bias": _pointer(types.void, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR),
    "gravity_torque": _pointer(types.void, VECTOR, MATRIX, VECTOR, VECTOR),
    "mass_matrix": MASS_MATRIX,
    "tool_pose": _pointer(types.void, VECTOR, MATRIX, MATRIX),
    "jacobian": _pointer(types.void, VECTOR, MATRIX, MATRIX),
    "jacobian_rate": _pointer(types.void, VECTOR, VECTOR, MATRIX, MATRIX),
}
MODEL = [KERNEL_POINTERS[name] for name in MODEL_KERNELS]
TREE = _tuple(TreeNumbers, COUNT, types.Array(types.boolean, 1, "C"), CUBE, MATRIX, MATRIX, VECTOR)
LAW = _pointer(
    VECTOR,
    _tuple(State, FLOAT, VECTOR, VECTOR, VECTOR, MATRIX),
    _tuple(Reference, VECTOR, VECTOR, VECTOR),
    MATRIX,
    MATRIX,
    _tuple(Model, *MODEL, MATRIX, VECTOR, VECTOR, FLOAT, _tuple(DriveModel, MATRIX, MATRIX, MATRIX), TREE),
)
POINTERS = (LAW, *MODEL, DYNAMICS, MASS_MATRIX, KERNEL_POINTERS["bias"], KERNEL_POINTERS["tool_pose"])
RUN = types.void(
    *POINTERS,
    _tuple(Block, INTEGER, INTEGER, LOGS, CUBE),
    _tuple(
        Batch, CUBE, MATRIX, CUBE, LOGS, CUBE, CUBE, CUBE, LOGS, COUNT, LOGS, MATRIX, MATRIX, MATRIX, MATRIX,
        VECTOR, CUBE, MATRIX, MATRIX, VECTOR, CUBE, CUBE, CUBE, TREE, CUBE, CUBE, COUNT, MATRIX, MATRIX,
    ),
    _tuple(Passive, MATRIX, VECTOR, VECTOR, VECTOR),
    _tuple(Settings, FLOAT, INTEGER, FLOAT, INTEGER, FLOAT, INTEGER, FLOAT, FLOAT, INTEGER),
    _tuple(Course, VECTOR, CUBE, MATRIX, MATRIX, LOGS),
    _tuple(Record, LOGS, LOGS, COUNTS, COUNT, COUNT, CUBE, MATRIX, INDICES, MATRIX, CUBE, MATRIX, COUNT),
)  # fmt: skip

_COMPILE_LOCK = threading.Lock()


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
    with _COMPILE_LOCK:
        return partial(rollout_loop.run, *_compile_all(controller.law, *kernels))


@lru_cache(maxsize=64)
def _compile_all(law: Law, *kernels: Any) -> tuple[Any, ...]:
    """Compile the loop, the law and the kernels for their signatures; return the law and the kernels."""
    for kernel, pointer in zip(kernels, POINTERS[1:], strict=True):
        # Only the argument types, as in a call: with the result type numba would compile a second version.
        if pointer.signature.args not in kernel.overloads:
            kernel.compile(pointer.signature.args)
    if RUN.args not in rollout_loop.run.overloads:
        rollout_loop.run.compile(RUN)
        rollout_loop.run.disable_compile()  # numba converts functions to pointers only if it may not compile
    return compiled_law(law), *kernels


@lru_cache(maxsize=64)
def compiled_law(law: Law) -> Any:
    """Compile a control law; its machine code is cached on disk only if `control_law.compiled_law` marked it.

    Laws are user code.  Therefore their array indices are checked, and a division by zero gives what NumPy
    gives.

    Raises:
        ValueError: numba cannot compile it.
    """
    try:
        jit = compiled if is_compiled(law) else partial(njit, nogil=True)
        function: Any = jit(law, boundscheck=True, error_model="numpy")
        function.compile(LAW.signature)
        function.disable_compile()
    except Exception as error:  # what numba raises for code that it does not know has no common class
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name = getattr(law, "__name__", repr(law))
        raise ValueError(f"numba cannot compile the law {name!r}: {' '.join(lines[:2])}") from error
    return function
