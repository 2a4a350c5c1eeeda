"""Control laws as machine code: compiled once, and called at a sample of a closed loop or of a rollout.

A law and the kernels of its model are pointers to functions of fixed signatures (`numba.types.FunctionType`).
Otherwise numba would compile what calls them again, for seconds, for every law and every robot.  A call
through a pointer takes some nanoseconds.  `bound` combines them with the numbers of the model, because a
call from Python that passes them one by one takes longer than the law.
"""

import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from numba import njit, types
from numba.experimental import structref
from numba.extending import is_jitted

from twin.base.jit import compiled
from twin.physics.control.control_law import MODEL_KERNELS, ControlLaw, Law, Model, is_compiled
from twin.physics.control.signals import DEMAND, TAU, limit_and_record
from twin.physics.dynamics.regressor import TreeNumbers
from twin.physics.robot.drives.drive_step import DriveModel
from twin.physics.trajectories.sampling import Reference, State

# All array types are writable, like those for which the kernels are compiled already.
FLOAT, INTEGER = types.float64, types.int64
VECTOR, MATRIX, CUBE, LOGS = (types.Array(FLOAT, dimensions, "C") for dimensions in (1, 2, 3, 4))
COUNT, COUNTS, INDICES = (types.Array(INTEGER, dimensions, "C") for dimensions in (1, 2, 3))


def tuple_of(cls: type, *members: Any) -> Any:
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
TREE = tuple_of(TreeNumbers, COUNT, types.Array(types.boolean, 1, "C"), CUBE, MATRIX, MATRIX, VECTOR)
NUMBERS = (MATRIX, VECTOR, VECTOR, FLOAT, tuple_of(DriveModel, MATRIX, MATRIX, MATRIX), TREE)
LAW = _pointer(
    VECTOR,
    tuple_of(State, FLOAT, VECTOR, VECTOR, VECTOR, MATRIX),
    tuple_of(Reference, VECTOR, VECTOR, VECTOR),
    MATRIX,
    MATRIX,
    tuple_of(Model, *MODEL, *NUMBERS),
)

COMPILE_LOCK = threading.Lock()

DONE, NOT_A_TORQUE, WRONG_SHAPE = range(3)
"""What `sample` returns: the torque is finite; it is not; the law did not return n numbers."""


@structref.register
class BoundLawType(types.StructRef):
    """Type of a `BoundLaw` for numba."""


class BoundLaw(structref.StructRefProxy):
    """A law and the model that it is called with, in compiled code."""


structref.define_constructor(BoundLaw, BoundLawType, ["law", "model"])
structref.define_boxing(BoundLawType, BoundLaw)


@compiled
def bind(
    law, inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
    inertias, gravity, tau_max, period, drives, tree,
):  # fmt: skip
    """Return a law with its model.

    The functions are separate arguments, because numba converts a compiled function to a pointer only where
    it is an argument, not where a named tuple contains it.
    """
    return BoundLaw(
        law,
        Model(
            inverse_dynamics, bias, gravity_torque, mass_matrix, tool_pose, jacobian, jacobian_rate,
            inertias, gravity, tau_max, period, drives, tree,
        ),
    )  # fmt: skip


@compiled
def sample(bound, k, t, seen, reference, table, parameters, memory, signals, limits, coupling, log):
    """Call a law at sample k, limit its torque, and record the sample; return `DONE` or what is wrong.

    The law gets copies: if it writes to them, neither robot nor log may change.

    Args:
        bound: the law with its model.
        k: index of the sample.
        t: its time, in [s].
        seen: (2, n) measured positions and speeds.
        reference: (N, 3, n) desired positions, speeds and accelerations.
        table: (N, rows, n) what the law prepared.
        parameters: those of the law, (m, n).
        memory: memory of the law, (rows, n).
        signals: present signals, see `twin.control.signals`, of which demand and torque are filled.
        limits: of the motors, as the next one, see `MotorLimits`.
        coupling: of the motors.
        log: (N, rows, n), whose row k is filled.
    """
    state = State(t, seen[0].copy(), seen[1].copy(), signals[TAU].copy(), table[k].copy())
    desired = Reference(reference[k, 0].copy(), reference[k, 1].copy(), reference[k, 2].copy())
    demand = bound.law(state, desired, parameters.copy(), memory, bound.model)
    if len(demand) != signals.shape[1]:
        return WRONG_SHAPE
    for i in range(len(demand)):
        signals[DEMAND, i] = demand[i]
    return DONE if limit_and_record(signals, limits, coupling, log, k) else NOT_A_TORQUE


def bound(controller: ControlLaw) -> Any:
    """Return a `BoundLaw` for a controller whose law `control_law.compiled_law` marked; `None` for others.

    The compiled functions live as long as the process, or as the law's model.
    """
    if type(controller).__call__ is not ControlLaw.__call__ or not is_compiled(controller.law):
        return None
    model = controller.model
    kernels: Any = model[: len(MODEL_KERNELS)]
    if not all(map(is_jitted, kernels)):  # as with NUMBA_DISABLE_JIT=1
        return None
    with COMPILE_LOCK:
        law = compiled_law(controller.law)
        compile_kernels(kernels, MODEL)
        if not bind.overloads:
            bind.compile((LAW, *MODEL, *NUMBERS))
            bind.disable_compile()  # numba converts functions to pointers only if it may not compile
        return bind(law, *model)


def compile_kernels(kernels: Any, pointers: Any) -> None:
    """Compile kernels for the signatures of their pointers, unless they are."""
    for kernel, pointer in zip(kernels, pointers, strict=True):
        # Only the argument types, as in a call: with the result type numba would compile a second version.
        if pointer.signature.args not in kernel.overloads:
            kernel.compile(pointer.signature.args)


@cache
def compiled_law(law: Law) -> Callable[..., Any]:
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
