"""Control laws as plain functions, which closed loops call and rollouts compile.

    def law(state, reference, parameters, memory, model):
        Kp, Kv = parameters[0], parameters[1]
        qdd = reference.qdd + Kv * (reference.qd - state.qd) + Kp * (reference.q - state.q)
        tau = np.empty(len(qdd))
        motor_torque(model, state.q, state.qd, qdd, memory, tau)
        return tau

    controller = ControlLaw(robot, law, [Kp, Kv])

`run_rollouts` compiles the law; for that it may use only what NumPy and numba have in common.
`run_closed_loop` compiles a law that `compiled_law` marks, and calls others from Python, so that a debugger
can step through them.  All demand the same torques.  Arithmetic and the model's functions agree to the bit;
numba's sines may differ from NumPy's in the last bit.  A compiled law reads global variables once, at its
first use in the process.  Its random numbers come from numba's generator, not from NumPy's.

In machine code, a law and the kernels of its model are pointers to functions of fixed signatures
(`numba.types.FunctionType`).  Otherwise numba would compile what calls them again, for seconds, for every law
and every robot.  A call through a pointer takes some nanoseconds.  `bound` combines them with the numbers of
the model, because a call from Python that passes them one by one takes longer than the law.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.experimental import structref
from numba.extending import is_jitted, register_jitable
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import real_array
from twin.base.formatting import html_table
from twin.base.jit import compiled
from twin.physics.control.signals import DEMAND, TAU, limit_and_record
from twin.physics.dynamics.regressor import TreeNumbers
from twin.physics.robot.drives.drive_step import DriveModel, add_drive_torque, are_ideal
from twin.physics.robot.evaluation import copied
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, Samples, State


class Model(NamedTuple):
    """Robot model of a control law: functions, which fill their last argument, and their parameters.

    It is the controller's model; the plant may differ from it.  `motor_torque` is the torque of a motion,
    drives included.

    Attributes:
        arm_torque: `(q, qd, qdd, inertias, gravity, out)`, inverse dynamics of the arm behind the drives,
            out (n,).
        bias: `(q, qd, inertias, gravity, out)`, Coriolis and gravity torque, out (n,).
        gravity_torque: `(q, inertias, gravity, out)`, out (n,).
        arm_inertia: `(q, inertias, out)`, mass matrix of the arm behind the drives, out (n, n).
        tool_pose: `(q, T_flange_tool, out)`, T_flange_tool (4, 4), out (4, 4).
        jacobian: `(q, T_flange_tool, out)`, `[v; omega]`, out (6, n).
        jacobian_rate: `(q, qd, T_flange_tool, out)`, out (6, n).
        inertias: (n_tree, 10) inertial parameters.
        gravity: (3,) acceleration of gravity, base frame, in [m/s^2].
        tau_max: (n,) torque limits of the drives at standstill, in [N m].
        period: time from one call of the law to the next, in [s].
        drives: rotors and friction, see `twin.robot.drives.drive_step.add_drive_torque`; zeros if the
            model's drives are ideal.
        tree: links and joints, see `twin.dynamics.regressor.regressor`.
    """

    arm_torque: Any
    bias: Any
    gravity_torque: Any
    arm_inertia: Any
    tool_pose: Any
    jacobian: Any
    jacobian_rate: Any
    inertias: np.ndarray
    gravity: np.ndarray
    tau_max: np.ndarray
    period: float
    drives: DriveModel
    tree: TreeNumbers

    @classmethod
    def of(cls, robot: Robot, period: float) -> Model:
        """Return the model of a robot; `period` in [s]."""
        return cls(
            *(getattr(robot.kernels, kernel) for kernel in MODEL_KERNELS),
            inertias=copied(robot.inertias),
            gravity=copied(robot.gravity),
            tau_max=copied(robot.drive_torque_max),
            period=period,
            drives=robot.drive_model,
            tree=TreeNumbers.of(robot),
        )


MODEL_KERNELS = (
    "inverse_dynamics", "bias", "gravity_torque", "mass_matrix", "tool_pose", "jacobian", "jacobian_rate",
)  # fmt: skip
"""Names of the robot's kernels that are the functions of a `Model`, the first of its members."""


@register_jitable
def motor_torque(model: Model, q: NDArray, qd: NDArray, qdd: NDArray, load: NDArray, tau: NDArray) -> None:
    """Fill `tau` with the torque of the motors that accelerates arm and drives during the coming period.

    Friction is that of the period: its sign and its viscous part belong to the speed at its end.  Where it
    grows with the load, the load of a period is the torque on the arm in the period before, as in the plant.

    Args:
        model: the controller's model.
        q: (n,) positions, in [rad].
        qd: (n,) speeds, in [rad/s].
        qdd: (n,) desired accelerations, in [rad/s^2].
        load: memory of that torque, (1, n), which starts as NaN and is replaced, in [N m]; or (0, n), then
            the torque on the arm in this period is the load.
        tau: (n,) output, in [N m].
    """
    model.arm_torque(q, qd, qdd, model.inertias, model.gravity, tau)
    if are_ideal(model.drives):  # a third of a rollout's time
        return
    before = tau.copy()
    if len(load) > 0:
        if np.isnan(load[0, 0]):  # a plant starts with the load of an arm that is not accelerated
            model.bias(q, qd, model.inertias, model.gravity, load[0])
        for i in range(len(tau)):  # numba compiles the text of an error for `load[0] = tau`
            before[i], load[0, i] = load[0, i], tau[i]
    add_drive_torque(model.drives, qd, qdd, model.period, before, tau)


def load_memory(robot: Robot) -> NDArray:
    """Return the start of the memory for `motor_torque`: one row if friction grows with the load, or none."""
    drives = robot.active_drives
    rows = 0 if drives is None or not np.any(drives.coulomb_per_load) else 1
    return np.full((rows, robot.n), np.nan)


Law = Callable[[State, Reference, Any, np.ndarray, Model], np.ndarray]
"""`(state, reference, parameters, memory, model) -> tau`; tau is a new array (n,), in [N m].

A law must not write to any of its arguments but `memory`.
"""


def compiled_law(law: Law) -> Law:
    """Mark a law whose machine code rollouts may cache on disk.

    Mark only a named function that uses nothing but its arguments, numbers and NumPy: numba compiles it again
    only when the file of the function changes.  Unmarked laws are compiled in every process.

    Example:
        >>> from twin.physics.control.control_law import compiled_law, is_compiled
        >>> @compiled_law
        ... def spring(state, reference, parameters, memory, model):
        ...     return parameters[0] * (reference.q - state.q) - parameters[1] * state.qd
        >>> is_compiled(spring)
        True
    """
    law.compiled_code = law.__code__  # type: ignore[attr-defined]
    return law


def is_compiled(law: Law) -> bool:
    """Return whether `compiled_law` marked this law itself.

    `functools.wraps` copies the mark of a wrapped law, so the mark holds the code object that was marked.

    Example:
        >>> from controllers.pid import pd
        >>> from twin.physics.control.control_law import is_compiled
        >>> is_compiled(pd), is_compiled(lambda state, wanted, parameters, memory, model: 0.0 * state.q)
        (True, False)
    """
    return getattr(law, "compiled_code", None) is getattr(law, "__code__", law)


PLAIN = ("Kp", "Ki", "Kd", "Kv", "Ti", "kp", "ki", "kd", "kv")
"""Usual names of gains; properties and attributes of these names count as gains by default."""


class ControlLaw:
    """Controller made of a control law and its parameters, for `run_closed_loop` and `run_rollouts`.

    Attributes:
        name: name in logs and messages.
        law: the function, see `Law`.
        parameters: (m, n) parameters of the law, one row for each, one column for each joint.
        memory: (rows, n) state of the law from sample to sample.
        start: (rows, n) memory at the start of a run.
        signal_rows: rows of the memory that logs record, by name.

    Args:
        robot: the controller's model of the robot.
        law: the function, see `Law`.
        parameters: (m, n), or m vectors (n,) or scalars.
        memory: number of rows of the memory, which then starts at zero, or its start (rows, n).
        signals: rows of the memory that logs record, by name.
        name: name in logs and messages; by default that of the class or of the function.
        period: control period, in [s], for laws that use `model.period`.

    Raises:
        ValueError: the parameters are not m vectors of n numbers, or contain NaN; the period is not positive
            and finite.

    Example:
        >>> import twin
        >>> def spring(state, reference, parameters, memory, model):
        ...     return parameters[0] * (reference.q - state.q) - parameters[1] * state.qd
        >>> law = twin.ControlLaw(twin.load("two_link"), spring, parameters=(10.0, [5.0, 2.0]))
        >>> law.name, law.parameters.tolist()
        ('spring', [[10.0, 10.0], [5.0, 2.0]])
    """

    name: str = ""

    def __init__(
        self, robot: Robot, law: Law, parameters: ArrayLike | tuple[ArrayLike, ...] = (), *,
        memory: int | ArrayLike = 0, name: str | None = None, period: float = 1e-3,
        signals: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.robot = robot
        self.law: Law = getattr(law, "py_func", law)  # the Python function of an already compiled law
        self.name = name or type(self).name or self.law.__name__
        self.parameters = _table(parameters, robot.n, self.name)
        self.start = np.zeros((memory, robot.n)) if isinstance(memory, int) else np.array(memory, float)
        if self.start.ndim != 2 or self.start.shape[1] != robot.n:
            raise ValueError(f"expected a memory of shape (rows, {robot.n}), got {self.start.shape}")
        self.memory, self.signal_rows = self.start.copy(), dict(signals or {})
        if not 0 < period < np.inf:
            raise ValueError(f"expected a positive, finite control period in s, got {period}")
        self.period = float(period)

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """Recorded rows (n,) of the memory by name."""
        return {name: self.memory[row] for name, row in self.signal_rows.items()}

    @property
    def rows(self) -> dict[str, np.ndarray]:
        """Parameters (n,) by name; those without a name are numbered."""
        named = [name for name in PLAIN if isinstance(getattr(type(self), name, None), property)]
        names = getattr(self, "parameter_names", getattr(getattr(self, "gains", None), "_fields", named))
        unnamed = (f"parameter {k + 1}" for k in range(len(names), len(self.parameters)))
        return dict(zip((*names, *unnamed), self.parameters, strict=False))

    def __repr__(self) -> str:
        return f"<{self.name} for {self.robot.name}: {', '.join(self.rows) or 'no parameters'}>"

    def _repr_html_(self) -> str:
        """Return a table of the parameters."""
        rows = [(name, *map(float, row)) for name, row in self.rows.items()]
        return html_table(f"{self.name} for {self.robot.name}", [("", *self.robot.joint_names), *rows])

    @cached_property
    def model(self) -> Model:
        """Robot model that is passed to the law."""
        return Model.of(self.robot, self.period)

    @cached_property
    def bound(self) -> Any:
        """Law and model in compiled code, a `BoundLaw`; `None` if the law runs in Python."""
        return bound(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: with a copy of the memory, without compiled functions."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("model", "bound")}
        return state | {"memory": self.memory.copy()}

    def __call__(self, state: State, reference: Reference) -> np.ndarray:
        """Return the demanded torques (n,), in [N m]; see `controllers.Controller`."""
        return self.law(state, reference, self.parameters, self.memory, self.model)

    def reset(self) -> None:
        """Return the memory to its start."""
        self.memory[:] = self.start

    def prepare(self, reference: Samples) -> np.ndarray | None:
        """Return a table (N, rows, n) for a run along the reference of N samples; `None` without one.

        The law receives row k as `state.table` at sample k.
        """
        return None


def _table(parameters: Any, n: int, name: str) -> np.ndarray:
    """Return the parameters as an array (m, n)."""
    try:
        rows = [np.broadcast_to(real_array(row, f"parameters of {name!r}"), (n,)) for row in parameters]
    except (TypeError, ValueError):
        raise ValueError(f"expected parameters of {name!r} of shape (m, {n}), got {parameters!r}") from None
    table = np.array(rows).reshape(len(rows), n)
    if np.any(np.isnan(table)):  # infinite gains are valid: the run diverges, which is a result
        raise ValueError(f"expected parameters of {name!r} without NaN, got {table.tolist()}")
    return table


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
    tuple_of(State, FLOAT, VECTOR, VECTOR, VECTOR, MATRIX, VECTOR),
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
def sample(bound, k, t, seen, reference, table, wrench, parameters, memory, signals, limits, coupling, log):
    """Call a law at sample k, limit its torque, and record the sample; return `DONE` or what is wrong.

    The law gets copies: if it writes to them, neither robot nor log may change.

    Args:
        bound: the law with its model.
        k: index of the sample.
        t: its time, in [s].
        seen: (2, n) measured positions and speeds.
        reference: (N, 3, n) desired positions, speeds and accelerations.
        table: (N, rows, n) what the law prepared.
        wrench: (6,) measured wrench on the tool.
        parameters: those of the law, (m, n).
        memory: memory of the law, (rows, n).
        signals: present signals, see `twin.control.signals`, of which demand and torque are filled.
        limits: of the motors, as the next one, see `MotorLimits`.
        coupling: of the motors.
        log: (N, rows, n), whose row k is filled.
    """
    state = State(t, seen[0].copy(), seen[1].copy(), signals[TAU].copy(), table[k].copy(), wrench.copy())
    desired = Reference(reference[k, 0].copy(), reference[k, 1].copy(), reference[k, 2].copy())
    demand = bound.law(state, desired, parameters.copy(), memory, bound.model)
    if len(demand) != signals.shape[1]:
        return WRONG_SHAPE
    for i in range(len(demand)):
        signals[DEMAND, i] = demand[i]
    return DONE if limit_and_record(signals, limits, coupling, log, k) else NOT_A_TORQUE


def bound(controller: ControlLaw) -> Any:
    """Return a `BoundLaw` for a controller whose law `compiled_law` marked; `None` for others.

    The compiled functions live as long as the process, or as the law's model.
    """
    if type(controller).__call__ is not ControlLaw.__call__ or not is_compiled(controller.law):
        return None
    model = controller.model
    kernels: Any = model[: len(MODEL_KERNELS)]
    if not all(map(is_jitted, kernels)):  # as with NUMBA_DISABLE_JIT=1
        return None
    with COMPILE_LOCK:
        law = machine_code(controller.law)
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
def machine_code(law: Law) -> Callable[..., Any]:
    """Compile a control law; its machine code is cached on disk only if `compiled_law` marked it.

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
