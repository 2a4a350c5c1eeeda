"""The columns of a log as a table: one row a sample, the unit in every name.

    t_s                                     time
    joint_1_q_rad, joint_1_q_ref_rad, ...   each joint's quantities, behind the robot's name of it
    tool_x_m, ..., tool_a, ..., tool_d      the tool's pose, and `tool_x_ref_m`, ... what was wanted
    own_force_1, own_force_2, ...           what a scenario added, in units of its own

Quantities are called as the arrays of the log are. Names are made of letters that programs take as they are:
`rad_s` is rad/s, `rad_s2` is rad/s^2, `Nm` is N m. Prismatic joints have m and N in place of rad and N m.
`twin.recordings.reading` reads `t_s` and the columns `..._q_rad` back as a recording of the joints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.errors import TwinError
from twin.logs.figures import POSE_COMPONENTS, joint_error, tool_distance
from twin.robot.limits import joint_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.logs.log import Log


QUANTITIES = {
    "q_ref": "position", "q": "position", "error": "position", "qd_ref": "speed", "qd": "speed",
    "qdd_ref": "acceleration", "tau": "torque", "tau_demand": "torque", "saturated": "",
    "tau_joint": "torque", "q_motor": "position", "qd_motor": "speed", "q_seen": "position",
    "qd_seen": "speed",
}  # fmt: skip
"""The quantities of a joint, in order, and their dimensions. `error` is `q_ref - q`; the others are described
in `twin.logs.log.Log`. From `tau_joint` on they are left out where another array stands for them."""


class Column(NamedTuple):
    """A column of N samples.

    Attributes:
        of: what it is a quantity of: a joint's name, `tool`, `own`; empty for the whole run.
        quantity: as `q_ref`.
        unit: as `rad/s`, empty where there is none.
        values: (N,) floats; `saturated` is true or false.
    """

    of: str
    quantity: str
    unit: str
    values: NDArray

    @property
    def name(self) -> str:
        """For programs: `joint_1_q_ref_rad`."""
        unit = self.unit.replace(" ", "").replace("/", "_").replace("^", "")
        return "_".join(part for part in (self.of, self.quantity, unit) if part)

    @property
    def label(self) -> str:
        """For people: `joint_1 q_ref [rad]`."""
        return f"{self.of} {self.quantity}".strip() + (f" [{self.unit}]" if self.unit else "")


def unit_of(kind: str, quantity: str) -> str:
    """The unit of a joint's quantity: `unit_of("prismatic", "tau")` is `N`."""
    return joint_unit(kind, QUANTITIES[quantity])


def columns(log: Log) -> tuple[Column, ...]:
    """Every column of a log, in order: time, joints quantity by quantity, the tool, the rest."""
    return (Column("", "t", "s", log.t), *_joints(log), *_tool(log), *_loops(log), *_own(log))


def _joints(log: Log) -> Iterator[Column]:
    from twin.logs.log import STANDS_FOR

    for quantity in QUANTITIES:
        if quantity in STANDS_FOR and getattr(log, quantity) is getattr(log, STANDS_FOR[quantity]):
            continue
        array = joint_error(log) if quantity == "error" else getattr(log, quantity)
        for joint, (name, kind) in enumerate(zip(log.robot.joint_names, log.robot.joint_kinds, strict=True)):
            yield Column(name, quantity, unit_of(kind, quantity), array[:, joint])


def _tool(log: Log) -> Iterator[Column]:
    for end, poses in (("_ref", log.pose_ref), ("", log.pose)):
        for k, name in enumerate(POSE_COMPONENTS):
            yield Column("tool", name + end, "m" if name in "xyz" else "", poses[:, k])
    yield Column("tool", "error", "m", tool_distance(log))


def _loops(log: Log) -> Iterator[Column]:
    if log.robot.loops:
        yield Column("", "loop_gap", "m", log.loop_gap)


def _own(log: Log) -> Iterator[Column]:
    """What a scenario added that has a number a sample, or several."""
    for name, array in log.arrays.items():
        if is_sampled(array, len(log.t)):
            several = array.ndim == 2
            for k, values in enumerate(array.T if several else [array]):
                yield Column("own", f"{name}_{k + 1}" if several else name, "", values)


def is_sampled(array: np.ndarray, N: int) -> bool:
    """Whether an array (N,) or (N, k) of a scenario's own has numbers for each of N samples."""
    return array.dtype.kind in "biuf" and array.ndim in (1, 2) and len(array) == N


def between(log: Log, start: float | None = None, end: float | None = None) -> Log:
    """The samples of a log from one time to another, both included; the log itself where neither is given.

    Args:
        log: of a run.
        start: in [s]; `None` for the first sample.
        end: in [s]; `None` for the last.

    Raises:
        TwinError: there is no sample between them.
    """
    if start is None and end is None:
        return log
    low, high = -np.inf if start is None else start, np.inf if end is None else end
    room = 1e-6 * log.time_step  # a time that was read off the log, in fewer digits, is that sample's
    kept = (log.t >= low - room) & (log.t <= high + room)
    if not kept.any():
        raise TwinError(
            f"no sample between {low:g} s and {high:g} s: the run of {log.controller} on {log.robot.name} "
            f"lasts from {log.t[0]:g} s to {log.t[-1]:g} s"
        )
    arrays = {item.name: getattr(log, item.name) for item in fields(log)}
    parts: dict[int, np.ndarray] = {}  # by the array, so that one which stands for another goes on doing so

    def part(array: np.ndarray) -> np.ndarray:
        return parts.setdefault(id(array), array[kept])

    cut = {
        name: part(array)
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and name != "T_flange_tool"
    }
    own = {name: part(array) if is_sampled(array, len(kept)) else array for name, array in log.arrays.items()}
    return replace(log, **cut, arrays=own)


def first_fault(log: Log) -> float | None:
    """When a position, a speed or a torque was first not finite, in [s]; `None` where all are."""
    broken = ~np.all([np.isfinite(array).all(axis=1) for array in (log.q, log.qd, log.tau)], axis=0)
    return float(log.t[np.argmax(broken)]) if broken.any() else None


def finite_part(log: Log) -> Log:
    """The samples before the first that is not finite; the whole log where all are, or where none is."""
    fault = first_fault(log)
    if fault is None or fault == log.t[0]:
        return log
    return between(log, end=float(log.t[np.searchsorted(log.t, fault) - 1]))
