"""The loop of `twin/rollout_loop.py` compiled, its parts passed as pointers to functions of fixed signatures.

So the loop is compiled once, not again for every robot and law: a new law is compiled alone, and the kernels
are those that everything else uses, to the bit.  A call through a pointer takes some nanoseconds.  What numba
makes of a function is kept beside the file that it comes from, that of a user's law too.

Kernels that are plain Python (`NUMBA_DISABLE_JIT=1`, `twin/uncompiled.py`) make all the rest plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from numba import njit, types
from numba.core.errors import NumbaError

from twin import rollout_loop
from twin.control_law import FUNCTIONS, ControlLaw, Model
from twin.robot import Robot
from twin.rollout_loop import Batch, Passive, Record, Settings
from twin.sampling import Reference, State

FLOAT, INTEGER = types.float64, types.int64
VECTOR, MATRIX, CUBE = (types.Array(FLOAT, dimensions, "C") for dimensions in (1, 2, 3))
COUNT, COUNTS = (types.Array(INTEGER, dimensions, "C") for dimensions in (1, 2))
# Inputs are read-only, as a robot's own arrays are: for those the kernels are compiled already.
IN1, IN2, IN3 = (types.Array(FLOAT, dimensions, "C", readonly=True) for dimensions in (1, 2, 3))


def _tuple(cls: type, *members: Any) -> Any:
    """The type of a NamedTuple."""
    if len(set(members)) == 1:
        return types.NamedUniTuple(members[0], len(members), cls)
    return types.NamedTuple(members, cls)


def _pointer(result: Any, *arguments: Any) -> Any:
    """The type of a pointer to a function."""
    return types.FunctionType(result(*arguments))


DYNAMICS = _pointer(types.void, VECTOR, VECTOR, VECTOR, IN2, IN1, VECTOR)
MASS_MATRIX = _pointer(types.void, VECTOR, IN2, MATRIX)
KNOWN = {
    "inverse_dynamics": DYNAMICS,
    "bias": _pointer(types.void, VECTOR, VECTOR, IN2, IN1, VECTOR),
    "gravity_torque": _pointer(types.void, VECTOR, IN2, IN1, VECTOR),
    "mass_matrix": MASS_MATRIX,
    "tool_pose": _pointer(types.void, VECTOR, IN2, MATRIX),
    "jacobian": _pointer(types.void, VECTOR, IN2, MATRIX),
    "jacobian_rate": _pointer(types.void, VECTOR, VECTOR, IN2, MATRIX),
}
MODEL = _tuple(Model, *(KNOWN[name] for name in FUNCTIONS), IN2, IN1, IN1)
PASSIVE = _tuple(Passive, IN2, IN1, IN1, IN1)
LAW = _pointer(
    VECTOR,
    _tuple(State, FLOAT, VECTOR, VECTOR),
    _tuple(Reference, VECTOR, VECTOR, VECTOR),
    IN2,
    MATRIX,
    MODEL,
)
STEP = _pointer(types.void, DYNAMICS, VECTOR, VECTOR, VECTOR, IN2, IN1, FLOAT)
BEYOND_REASON = _pointer(types.boolean, MASS_MATRIX, VECTOR, VECTOR, IN2, IN1, FLOAT, FLOAT)
FOLDED = _pointer(types.boolean, VECTOR, PASSIVE)
LOOP = types.void(
    LAW, STEP, BEYOND_REASON, FOLDED, DYNAMICS, MASS_MATRIX, *KNOWN.values(), INTEGER, INTEGER,
    _tuple(Batch, IN3, IN2, IN2, IN2, IN1, IN3, IN2, IN2, IN3, IN2, IN2),
    PASSIVE,
    _tuple(Settings, FLOAT, INTEGER, INTEGER, INTEGER, FLOAT),
    _tuple(Reference, IN2, IN2, IN2),
    IN1,
    _tuple(Record, CUBE, CUBE, CUBE, CUBE, COUNTS, COUNT, COUNT, CUBE),
)  # fmt: skip


def compiled_loop(plant: Robot, controller: ControlLaw, integrator: str) -> Callable[..., None]:
    """`rollout_loop.loop` with its functions filled in, compiled if the kernels are.

    Args:
        plant: whose kernels move.
        controller: its law and its model.
        integrator: one of `rollout_loop.INTEGRATORS`.

    Raises:
        ValueError: numba cannot compile the law.
    """
    kernels, model = plant.kernels, controller.model
    own = [
        (controller.law, LAW),
        (rollout_loop.INTEGRATORS[integrator], STEP),
        (rollout_loop.beyond_reason, BEYOND_REASON),
        (rollout_loop.folded, FOLDED),
    ]
    theirs = [(kernels.forward_dynamics, DYNAMICS), (kernels.mass_matrix, MASS_MATRIX)]
    theirs += [(getattr(model, name), pointer) for name, pointer in KNOWN.items()]
    if not all(hasattr(kernel, "py_func") for kernel, _ in theirs):
        return partial(rollout_loop.loop, *(function for function, _ in (*own, *theirs)))
    for kernel, pointer in theirs:
        if pointer.signature.args not in kernel.overloads:  # to ask numba would take a millisecond
            kernel.compile(pointer.signature)
    functions = [
        *(_native(function, pointer.signature) for function, pointer in own),
        *(k for k, _ in theirs),
    ]
    return partial(_native(rollout_loop.loop, LOOP), *functions)


@lru_cache(maxsize=64)
def _native(function: Callable[..., Any], signature: Any) -> Any:
    """A function compiled for one signature alone, by which a call with pointers finds it."""
    try:
        dispatcher: Any = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to keep it, see `kernel_cache.compiled`
        dispatcher = njit(nogil=True)(function)
    try:
        dispatcher.compile(signature)
    except (NumbaError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name = getattr(function, "__name__", repr(function))
        raise ValueError(f"numba cannot compile the law {name!r}: {' '.join(lines[:2])}") from error
    dispatcher.disable_compile()
    return dispatcher
