"""The loop of a rollout compiled once for all robots and laws, which it calls through pointers.

A pointer to a function of a fixed signature (`numba.types.FunctionType`) in place of the function itself is
what keeps numba from compiling the loop again, for seconds, for every law and every robot; a call through
one takes some nanoseconds.  The law is compiled alone, and the kernels are those that everything else uses.
"""

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numba
from numba import njit, types
from numba.extending import is_jitted

from twin.control import rollout_loop
from twin.control.control_law import FUNCTIONS, ControlLaw, Law, Model, is_compiled
from twin.control.rollout_batch import Batch, Passive, Record, Settings
from twin.jit import compiled
from twin.robot.drives.drive_step import DriveModel
from twin.robot.robot import Robot
from twin.trajectories.sampling import Reference, State

# All arrays can be written to, as those for which the kernels are compiled already.
FLOAT, INTEGER = types.float64, types.int64
VECTOR, MATRIX, CUBE, LOGS = (types.Array(FLOAT, dimensions, "C") for dimensions in (1, 2, 3, 4))
COUNT, COUNTS, PLACES = (types.Array(INTEGER, dimensions, "C") for dimensions in (1, 2, 3))


def _tuple(cls: type, *members: Any) -> Any:
    """The type of a NamedTuple."""
    if len(set(members)) == 1:
        return types.NamedUniTuple(members[0], len(members), cls)
    return types.NamedTuple(members, cls)


def _pointer(result: Any, *arguments: Any) -> Any:
    """The type of a pointer to a function."""
    return types.FunctionType(result(*arguments))


DYNAMICS = _pointer(types.void, VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR)
MASS_MATRIX = _pointer(types.void, VECTOR, MATRIX, MATRIX)
KNOWN = {
    "inverse_dynamics": DYNAMICS,
    "bias": _pointer(types.void, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR),
    "gravity_torque": _pointer(types.void, VECTOR, MATRIX, VECTOR, VECTOR),
    "mass_matrix": MASS_MATRIX,
    "tool_pose": _pointer(types.void, VECTOR, MATRIX, MATRIX),
    "jacobian": _pointer(types.void, VECTOR, MATRIX, MATRIX),
    "jacobian_rate": _pointer(types.void, VECTOR, VECTOR, MATRIX, MATRIX),
}
MODEL = [KNOWN[name] for name in FUNCTIONS]
LAW = _pointer(
    VECTOR,
    _tuple(State, FLOAT, VECTOR, VECTOR),
    _tuple(Reference, VECTOR, VECTOR, VECTOR),
    MATRIX,
    MATRIX,
    _tuple(Model, *MODEL, MATRIX, VECTOR, VECTOR, FLOAT, _tuple(DriveModel, MATRIX, MATRIX, MATRIX)),
)
POINTERS = (LAW, *MODEL, DYNAMICS, MASS_MATRIX, KNOWN["bias"], KNOWN["tool_pose"])
RUN = types.void(
    *POINTERS, INTEGER, INTEGER,
    _tuple(
        Batch, CUBE, MATRIX, CUBE, LOGS, CUBE, CUBE, CUBE, LOGS, COUNT, LOGS, MATRIX, MATRIX, MATRIX, MATRIX,
        VECTOR, CUBE, MATRIX, MATRIX, VECTOR, CUBE, CUBE, CUBE, CUBE, MATRIX, MATRIX,
    ),
    _tuple(Passive, MATRIX, VECTOR, VECTOR, VECTOR),
    _tuple(Settings, FLOAT, INTEGER, FLOAT, INTEGER, INTEGER, FLOAT, INTEGER, FLOAT, FLOAT, INTEGER),
    CUBE,
    VECTOR,
    CUBE,
    LOGS,
    MATRIX,
    MATRIX,
    _tuple(Record, LOGS, COUNTS, COUNT, COUNT, CUBE, MATRIX, PLACES, MATRIX, CUBE, MATRIX, COUNT),
)  # fmt: skip

_ONE_AT_A_TIME = threading.Lock()


def compiled_rollout(plant: Robot, controller: ControlLaw) -> Callable[..., None]:
    """`rollout_loop.run` with its functions filled in: the law, its model's kernels and the plant's.

    Args:
        plant: whose kernels move.
        controller: its law and its model.

    Raises:
        ValueError: numba cannot compile the law, or the kernels are not compiled (`uncompiled.py`).
    """
    kernels = [getattr(controller.model, name) for name in FUNCTIONS]
    plant_functions = ("forward_dynamics", "mass_matrix", "bias", "tool_pose")
    kernels += [getattr(plant.kernels, name) for name in plant_functions]
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return partial(rollout_loop.run, controller.law, *kernels)
    if not all(is_jitted(kernel) for kernel in kernels):
        raise ValueError("expected robots with compiled kernels, as twin.load gives them")
    with _ONE_AT_A_TIME:
        return partial(rollout_loop.run, *_ready(controller.law, *kernels))


@lru_cache(maxsize=64)
def _ready(law: Law, *kernels: Any) -> tuple[Any, ...]:
    """The law and the kernels, compiled for their signatures, as is the loop."""
    for kernel, pointer in zip(kernels, POINTERS[1:], strict=True):
        # Without the result, as of a call: with it numba makes the same machine code once more.
        if pointer.signature.args not in kernel.overloads:
            kernel.compile(pointer.signature.args)
    if RUN.args not in rollout_loop.run.overloads:
        rollout_loop.run.compile(RUN)
        rollout_loop.run.disable_compile()  # numba converts to pointers only where it must not compile
    return compiled_law(law), *kernels


@lru_cache(maxsize=64)
def compiled_law(law: Law) -> Any:
    """A control law compiled, in this process; kept on disk only if it is marked by `compiled_law`.

    A law is written by anybody: its indices are checked; divided by zero its numbers are what numpy's are.

    Raises:
        ValueError: numba cannot compile it.
    """
    try:
        compile_it = compiled if is_compiled(law) else partial(njit, nogil=True)
        made: Any = compile_it(law, boundscheck=True, error_model="numpy")
        made.compile(LAW.signature)
        made.disable_compile()
    except Exception as error:  # what numba raises for code that it does not know has no common class
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name = getattr(law, "__name__", repr(law))
        raise ValueError(f"numba cannot compile the law {name!r}: {' '.join(lines[:2])}") from error
    return made
