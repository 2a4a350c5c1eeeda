"""The form of a control law: one plain function, which closed loops call and rollouts compile.

    def law(state, reference, parameters, memory, model):
        Kp, Kv = parameters[0], parameters[1]
        qdd = reference.qdd + Kv * (reference.qd - state.qd) + Kp * (reference.q - state.q)
        tau = np.empty(len(qdd))
        model.inverse_dynamics(state.q, state.qd, qdd, model.inertias, model.gravity, tau)
        return tau

    controller = ControlLaw(robot, law, [Kp, Kv])

A closed loop around the engine calls it from Python as it is written, so that it can be stepped through in a
debugger.  `twin.control.rollout` compiles it, so there it has to be written in what numpy and numba have in
common. Both demand the same torques: to the bit in arithmetic and in what the model computes; numba's sines
may differ from numpy's in the last bit.  Of globals a compiled law has the values of its first use in the
process, and random numbers would be numba's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.robot.drives.drive_step import DriveModel
from twin.robot.evaluation import copied
from twin.robot.robot import Robot
from twin.trajectories.sampling import Reference, State


class Model(NamedTuple):
    """What a law knows of the robot: functions, which fill their last argument, and what they ask for.

    It is the controller's own model; the plant may be another.

    Attributes:
        inverse_dynamics: `(q, qd, qdd, inertias, gravity, out)`, out (n,).
        bias: `(q, qd, inertias, gravity, out)`, Coriolis and gravity torque, out (n,).
        gravity_torque: `(q, inertias, gravity, out)`, out (n,).
        mass_matrix: `(q, inertias, out)`, out (n, n).
        tool_pose: `(q, T_flange_tool, out)`, T_flange_tool (4, 4), out (4, 4).
        jacobian: `(q, T_flange_tool, out)`, `[v; omega]`, out (6, n).
        jacobian_rate: `(q, qd, T_flange_tool, out)`, out (6, n).
        inertias: (n_tree, 10) inertial parameters.
        gravity: (3,) acceleration of gravity, base frame, in [m/s^2].
        tau_max: (n,) torque limits of the drives at standstill, in [N m].
        period: from one call of the law to the next, in [s].
        drives: rotors and friction, see `twin.robot.drives.drive_step.add_drive_torque`; nothing where the
            model's drives are ideal.
    """

    inverse_dynamics: Any
    bias: Any
    gravity_torque: Any
    mass_matrix: Any
    tool_pose: Any
    jacobian: Any
    jacobian_rate: Any
    inertias: np.ndarray
    gravity: np.ndarray
    tau_max: np.ndarray
    period: float
    drives: DriveModel

    @classmethod
    def of(cls, robot: Robot, period: float) -> Model:
        """What a law that believes in this robot knows; `period` in [s]."""
        functions = {name: getattr(robot.kernels, name) for name in FUNCTIONS}
        return cls(
            **functions,
            inertias=copied(robot.inertias),
            gravity=copied(robot.gravity),
            tau_max=copied(robot.drive_torque_max),
            period=period,
            drives=DriveModel.of(robot.active_drives, robot.n),
        )


FUNCTIONS = Model._fields[:7]
"""The names of the functions in a `Model`, which are those of the robot's kernels."""

Law = Callable[[State, Reference, Any, np.ndarray, Model], np.ndarray]
"""`(state, reference, parameters, memory, model) -> tau`; tau is (n,), in [N m], an array of its own.

It must not write to anything but its memory.
"""


def compiled_law(law: Law) -> Law:
    """Mark a law whose machine code rollouts may keep on disk, beside the file that it is written in.

    That is right only for a named function that uses nothing but its arguments, numbers and numpy: numba
    makes its code anew when its own file changes, and for no other reason.  Laws without this mark are
    compiled anew in every process.
    """
    law.compiled_code = law.__code__  # type: ignore[attr-defined]
    return law


def is_compiled(law: Law) -> bool:
    """Whether `compiled_law` marked this law itself; `functools.wraps` copies the mark of a wrapped one."""
    return getattr(law, "compiled_code", None) is getattr(law, "__code__", law)


class ControlLaw:
    """A control law with its numbers: a controller for `run_closed_loop` and for `run_rollouts` alike.

    Attributes:
        name: in logs and messages.
        law: the function.
        parameters: (m, n), a row for each number that the law has for every joint; the law indexes its rows.
        memory: (rows, n), what the law keeps from sample to sample; zeros at the start of a run.

    Args:
        robot: the controller's own model of the robot.
        law: see `Law`.
        parameters: (m, n), or m vectors (n,) or scalars.
        memory: number of rows of the memory.
        name: by default the class's, or the function's.
        period: of its calls, in [s], for laws that ask for it.

    Raises:
        ValueError: the parameters are not m vectors of n numbers, or there is a NaN in them; the period is
            not positive and finite.
    """

    name: str = ""

    def __init__(
        self, robot: Robot, law: Law, parameters: ArrayLike | tuple[ArrayLike, ...] = (), *,
        memory: int = 0, name: str | None = None, period: float = 1e-3,
    ) -> None:  # fmt: skip
        self.robot = robot
        self.law: Law = getattr(law, "py_func", law)  # of a function that is compiled already, the Python
        self.name = name or type(self).name or self.law.__name__
        self.parameters = _table(parameters, robot.n, self.name)
        self.memory = np.zeros((memory, robot.n))
        if not 0 < period < np.inf:
            raise ValueError(f"expected a positive, finite control period in s, got {period}")
        self.period = float(period)

    @cached_property
    def model(self) -> Model:
        """What the law is told about the robot."""
        return Model.of(self.robot, self.period)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle takes along: a memory of its own, and no compiled functions."""
        state = {name: value for name, value in self.__dict__.items() if name != "model"}
        return state | {"memory": self.memory.copy()}

    def __call__(self, state: State, reference: Reference) -> np.ndarray:
        """Demanded torques (n,) in [N m]; see `controllers.Controller`."""
        return self.law(state, reference, self.parameters, self.memory, self.model)

    def reset(self) -> None:
        """Empty the memory."""
        self.memory[:] = 0.0


def _table(parameters: Any, n: int, name: str) -> np.ndarray:
    """The parameters as an array (m, n)."""
    try:
        rows = [np.broadcast_to(real_array(row, f"parameters of {name!r}"), (n,)) for row in parameters]
    except (TypeError, ValueError):
        raise ValueError(f"expected parameters of {name!r} of shape (m, {n}), got {parameters!r}") from None
    table = np.array(rows).reshape(len(rows), n)
    if np.any(np.isnan(table)):  # infinite gains make a run that diverges, which is a result
        raise ValueError(f"expected parameters of {name!r} without NaN, got {table.tolist()}")
    return table
