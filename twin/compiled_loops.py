"""The closed loop compiled, its parts passed as pointers to functions of fixed signatures.

So `twin/control_loop.py` and `twin/rollout_loop.py` are compiled once, not again for every robot and law: a
new law is compiled alone, and the kernels are those that everything else uses, to the bit.  A call through a
pointer takes some nanoseconds.  What numba makes of a function is kept beside the file that it comes from,
that of a user's law too.

Kernels that are plain Python (`NUMBA_DISABLE_JIT=1`, `twin/uncompiled.py`) make all the rest plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import FunctionType
from typing import Any

from numba import types
from numba.experimental import structref

from twin import control_loop, rollout_loop, watch
from twin.control_law import FUNCTIONS, ControlLaw, Law, Model
from twin.control_loop import Functions, Knowledge
from twin.kernel_cache import compiled
from twin.robot import Robot
from twin.rollout_loop import Batch, Passive, Record, Settings
from twin.sampling import Reference, State
from twin.watch import Bounds

# All arrays can be written to, as those for which the kernels are compiled already.
FLOAT, INTEGER, TRUTH = types.float64, types.int64, types.boolean
VECTOR, MATRIX, CUBE, LOGS = (types.Array(FLOAT, dimensions, "C") for dimensions in (1, 2, 3, 4))
COUNT, COUNTS = (types.Array(INTEGER, dimensions, "C") for dimensions in (1, 2))


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
MODEL = _tuple(Model, *(KNOWN[name] for name in FUNCTIONS), MATRIX, VECTOR, VECTOR)
PASSIVE = _tuple(Passive, MATRIX, VECTOR, VECTOR, VECTOR)
LAW = _pointer(
    VECTOR,
    _tuple(State, FLOAT, VECTOR, VECTOR),
    _tuple(Reference, VECTOR, VECTOR, VECTOR),
    MATRIX,
    MATRIX,
    MODEL,
)
BOUNDS = _tuple(Bounds, MATRIX, VECTOR, VECTOR, FLOAT, FLOAT)
STEP = _pointer(types.void, DYNAMICS, VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, FLOAT)
FOLDED = _pointer(TRUTH, VECTOR, PASSIVE)
BEYOND_REASON = _pointer(TRUTH, MASS_MATRIX, VECTOR, VECTOR, BOUNDS)
LAYOUT = str(
    [
        each._fields
        for each in (State, Reference, Model, Knowledge, Bounds, Batch, Passive, Settings, Record, Functions)
    ]
)
"""numba keeps the places of members, not their names: its machine code is good for this order alone."""
POINTERS = (LAW, *KNOWN.values(), DYNAMICS, MASS_MATRIX, BEYOND_REASON, STEP, FOLDED)


@structref.register
class FunctionsType(types.StructRef):
    """The type of compiled `Functions`."""


class CompiledFunctions(structref.StructRefProxy):
    """Pointers to compiled `Functions`: for numba to find one takes a twentieth of a millisecond."""


structref.define_proxy(CompiledFunctions, FunctionsType, Functions._fields)
FUNCTIONS_TYPE = FunctionsType(tuple(zip(Functions._fields, POINTERS, strict=True)))
CONTROL = (
    FUNCTIONS_TYPE, TRUTH, _tuple(Knowledge, MATRIX, VECTOR, VECTOR), MATRIX, MATRIX, BOUNDS,
    CUBE, VECTOR, MATRIX, CUBE,
)  # fmt: skip
LOOP = types.void(
    FUNCTIONS_TYPE, INTEGER, INTEGER,
    _tuple(Batch, CUBE, MATRIX, MATRIX, MATRIX, VECTOR, CUBE, MATRIX, MATRIX, CUBE, MATRIX, MATRIX),
    PASSIVE,
    _tuple(Settings, FLOAT, INTEGER, INTEGER, INTEGER, FLOAT),
    CUBE,
    VECTOR,
    _tuple(Record, LOGS, COUNTS, COUNT, COUNT, CUBE),
)  # fmt: skip


def compiled_control(plant: Robot, controller: ControlLaw, asks: bool) -> Callable[..., Iterator[int]]:
    """`control_loop.control`, the functions that it calls filled in, compiled if the kernels are.

    Args:
        plant: whose kinetic energy is watched.
        controller: its law and its model.
        asks: whether the caller is asked instead, so that no kernel of the model need be compiled.

    Raises:
        ValueError: numba cannot compile the law.
    """
    known = {name: UNUSED[len(pointer.signature.args)] for name, pointer in KNOWN.items()} if asks else {}
    functions = _functions(plant, controller, forward_dynamics=UNUSED[6], **known)
    return _around(control_loop.control, CONTROL, plant, controller, functions)


def compiled_loop(plant: Robot, controller: ControlLaw, integrator: str) -> Callable[..., None]:
    """`rollout_loop.loop`, the functions that it calls filled in, compiled if the kernels are.

    Args:
        plant: whose kernels move.
        controller: its law and its model.
        integrator: one of `rollout_loop.INTEGRATORS`.

    Raises:
        ValueError: numba cannot compile the law.
    """
    functions = _functions(plant, controller, step=rollout_loop.INTEGRATORS[integrator])
    return _around(rollout_loop.loop, LOOP, plant, controller, functions)


@lru_cache(maxsize=64)
def compilable(law: Law) -> bool:
    """Whether numba can compile a law."""
    try:
        _native(law, LAW.signature)
    except ValueError:
        return False
    return True


UNUSED: dict[int, Callable[..., None]] = {
    3: lambda a, b, c: None,
    4: lambda a, b, c, d: None,
    5: lambda a, b, c, d, e: None,
    6: lambda a, b, c, d, e, f: None,
}
"""What stands for kernels of so many arguments that are not called, and so not worth compiling."""


def _functions(plant: Robot, controller: ControlLaw, **others: Callable[..., Any]) -> Functions:
    """What a loop calls, but for the `others`."""
    functions = {name: getattr(controller.model, name) for name in FUNCTIONS} | {
        "law": controller.law,
        "forward_dynamics": plant.kernels.forward_dynamics,
        "plant_mass_matrix": plant.kernels.mass_matrix,
        "beyond_reason": watch.beyond_reason,
        "step": rollout_loop.euler_step,
        "folded": rollout_loop.folded,
    }
    return Functions(**functions | others)


def _around(
    main: Callable[..., Any], signature: Any, plant: Robot, controller: ControlLaw, functions: Functions
) -> Callable[..., Any]:
    """A loop around its functions, compiled if the kernels are."""
    if not all(hasattr(kernels.mass_matrix, "py_func") for kernels in (plant.kernels, controller.model)):
        return partial(main, functions)
    bundle, native = _bundle(*functions)
    loop: Any = partial(_native_main(main, signature), bundle)
    loop.pointed_to = native  # pointers do not keep what they point to
    return loop


@lru_cache(maxsize=64)
def _bundle(*functions: Callable[..., Any]) -> tuple[CompiledFunctions, list[Any]]:
    """`Functions`, compiled, and what the pointers in it point to."""
    native = [_native(f, pointer.signature) for f, pointer in zip(functions, POINTERS, strict=True)]
    return _native(_bundled, FUNCTIONS_TYPE(*POINTERS))(*native), native


def _bundled(
    law, inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
    forward_dynamics, plant_mass_matrix, beyond_reason, step, folded,
):  # fmt: skip
    return CompiledFunctions(
        law, inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
        forward_dynamics, plant_mass_matrix, beyond_reason, step, folded,
    )  # fmt: skip


def _native(function: Callable[..., Any], signature: Any) -> Any:
    """A function compiled for a signature: that one alone, unless it is a kernel, which serves others too."""
    if hasattr(function, "py_func") and signature is not LAW.signature:
        if signature.args not in function.overloads:  # to ask numba would take a millisecond
            function.compile(signature)
        return function
    return _compiled(getattr(function, "py_func", function), signature)


@lru_cache(maxsize=64)
def _compiled(function: Callable[..., Any], signature: Any) -> Any:
    # A law is written by anybody: an index beyond its parameters must not read, or write, beyond them.
    # Divided by zero, its numbers are what numpy's are.
    options = {"boundscheck": True, "error_model": "numpy"} if signature is LAW.signature else {}
    try:
        dispatcher: Any = compiled(function, layout=LAYOUT, **options)
        dispatcher.compile(signature)
    except Exception as error:  # what numba raises for code that it does not know has no common class
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name = getattr(function, "__name__", repr(function))
        raise ValueError(f"numba cannot compile the law {name!r}: {' '.join(lines[:2])}") from error
    dispatcher.disable_compile()
    return dispatcher


@lru_cache(maxsize=4)
def _native_main(main: Callable[..., Any], signature: Any) -> Any:
    """A loop compiled around the compiled helpers that it calls by name."""
    return _compiled(_calling(main, _helpers()), signature)


@lru_cache(maxsize=1)
def _helpers() -> dict[str, Any]:
    """The helpers compiled, each around those before it."""
    helpers: dict[str, Any] = {}
    for helper in control_loop.HELPERS:
        helpers[helper.__name__] = compiled(_calling(helper, helpers), layout=LAYOUT)
    return helpers


def _calling(function: Callable[..., Any], helpers: dict[str, Any]) -> FunctionType:
    """A function that finds the compiled helpers under their names."""
    return FunctionType(function.__code__, function.__globals__ | helpers, function.__name__)
