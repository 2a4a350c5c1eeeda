"""Torques over the axes of a robot beside those of its rigid links: springs, balancers, and a user's columns.

Each adds `column(q, qd, qdd) * value` to the joint torques of a motion, for each of its values.  So they are
linear in their values, as links are, and `twin.identify` estimates them.  `columns` computes with numbers,
arrays or the scalars of `multibody/trace.py`, so that the same lines serve kernels and regressors.

- `Spring`: a torsion spring over an axis.  Its torque on the arm is `T - k q`.
- `Cylinder`: a gas spring or hydraulic balancer between a point a of the link before an axis and a point b of
  the link after it, which q turns.  It pushes both apart with the force `F - k (l - l0)`.  Its length is
  `l^2 = d - 2 (c cos q + s sin q)`, where c, s and d follow from a, b and the axis u:

      c = a . b - (a . u)(b . u),   s = a . (u x b),   d = |a|^2 + |b|^2 - 2 (a . u)(b . u)

- `UserColumn`: a function of Python, `(q, qd, qdd) -> n torques`, from a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from twin.base.errors import RobotError
from twin.physics.multibody.trace import Trace, write_python


@dataclass(frozen=True)
class AxisTorque:
    """Torque over the joints of a robot, linear in its values."""

    value_names: ClassVar[tuple[str, ...]]
    units: ClassVar[tuple[str, ...]]

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of the values."""
        raise NotImplementedError

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the attributes in `value_names`."""
        return tuple(getattr(self, name) for name in self.value_names)

    def with_values(self, values: Sequence[float]) -> AxisTorque:
        """Return the torque with other values."""
        return replace(self, **dict(zip(self.value_names, map(float, values), strict=True)))

    def columns(self, q: Any, qd: Any, qdd: Any, math: Any) -> list[list[Any]]:
        """Return the torques (n,) of the motors in a motion per unit of each value."""
        raise NotImplementedError

    def energy(self, q: Any, math: Any) -> Any:
        """Return the potential energy, in [J]."""
        raise NotImplementedError


@dataclass(frozen=True)
class Spring(AxisTorque):
    """Torsion spring over a joint.

    Attributes:
        joint: index of the joint.
        stiffness: torque per angle, in [N m/rad].
        torque: torque on the arm at the angle 0, in [N m].
    """

    joint: int
    stiffness: float
    torque: float

    value_names = ("stiffness", "torque")
    units = ("N m/rad", "N m")

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of stiffness and torque."""
        return f"Ks{self.joint + 1}", f"Ts{self.joint + 1}"

    def columns(self, q: Any, qd: Any, qdd: Any, math: Any) -> list[list[Any]]:
        """Return the columns of stiffness and torque."""
        return [_at(self.joint, q[self.joint], q), _at(self.joint, -1.0, q)]

    def energy(self, q: Any, math: Any) -> Any:
        """Return the potential energy, 0 at the angle 0."""
        angle = q[self.joint]
        return angle * angle * (0.5 * self.stiffness) - angle * self.torque


@dataclass(frozen=True)
class Cylinder(AxisTorque):
    """Gas spring or hydraulic cylinder over a revolute joint.

    Attributes:
        joint: index of the joint.
        c, s, d: numbers of its length, see the module, in [m^2].
        length: length l0 at which it has `force`, in [m].
        force: force that pushes its ends apart, in [N].
        stiffness: decrease of the force per length, in [N/m].
        ends: points a and b (3,) at q = 0, in the frame of the link after the joint, in [m].
    """

    joint: int
    c: float
    s: float
    d: float
    length: float
    force: float
    stiffness: float
    ends: tuple[tuple[float, ...], ...] = field(default=((), ()), repr=False)

    value_names = ("force", "stiffness")
    units = ("N", "N/m")

    @classmethod
    def between(
        cls, joint: int, axis: np.ndarray, a: np.ndarray, b: np.ndarray, R: np.ndarray, *numbers: float
    ) -> Cylinder:
        """Return the cylinder between points a and b (3,), relative to the origin of the link after the axis.

        All are given at q = 0, where the link's axes are the columns of R.  `numbers` are length, force and
        stiffness.
        """
        along = float((a @ axis) * (b @ axis))
        return cls(
            joint, float(a @ b) - along, float(a @ np.cross(axis, b)), float(a @ a + b @ b) - 2.0 * along,
            *numbers, ends=(tuple((a @ R).tolist()), tuple((b @ R).tolist())),
        )  # fmt: skip

    def wrench(self, q: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """Return the wrench (N, 6) `[f; mu]` on the link after the joint, about its origin and in its axes.

        q (N,) are angles of the joint, in [rad], and axis (3,) is its axis in the link.
        """
        a, b = (np.array(end) for end in self.ends)
        c, s = np.cos(q)[:, None], -np.sin(q)[:, None]  # seen from the link, the other end turns back
        a = c * a + s * np.cross(axis, a) + (1.0 - c) * (a @ axis) * axis
        length = np.linalg.norm(b - a, axis=1, keepdims=True)
        f = (self.force - self.stiffness * (length - self.length)) * (b - a) / length
        return np.hstack([f, np.cross(b, f)])

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of force and stiffness."""
        return f"Fz{self.joint + 1}", f"Kz{self.joint + 1}"

    def extension(self, q: Any, math: Any) -> Any:
        """Return the length beyond `length`, in [m]."""
        angle = q[self.joint]
        return math.sqrt(self.d - 2.0 * (math.cos(angle) * self.c + math.sin(angle) * self.s)) - self.length

    def columns(self, q: Any, qd: Any, qdd: Any, math: Any) -> list[list[Any]]:
        """Return the columns of force and stiffness."""
        angle, extension = q[self.joint], self.extension(q, math)
        slope = (math.sin(angle) * self.c - math.cos(angle) * self.s) / (extension + self.length)
        return [_at(self.joint, -slope, q), _at(self.joint, extension * slope, q)]

    def energy(self, q: Any, math: Any) -> Any:
        """Return the potential energy, 0 at the length l0."""
        extension = self.extension(q, math)
        return extension * extension * (0.5 * self.stiffness) - extension * self.force


@dataclass(frozen=True)
class UserColumn(AxisTorque):
    """Function of a user's file, times a value.

    Attributes:
        name: name of the column.
        file: path of the Python file.
        function: name of the function in it, `(q, qd, qdd) -> n torques`.
        value: factor of these torques.
        version: digest of the file's content, so that another content is another column.
    """

    name: str
    file: str
    function: str
    value: float
    version: str

    value_names = ("value",)
    units = ("",)

    @classmethod
    def of_file(cls, name: str, path: Path, function: str, value: float) -> UserColumn:
        """Return the column of a function in a file as it is now.

        Raises:
            RobotError: the file cannot be read.
        """
        try:
            version = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise RobotError(f"column.{name}: cannot read {path}: {error.strerror}") from error
        return cls(name, str(path.resolve()), function, value, version)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Name of the column."""
        return (self.name,)

    def columns(self, q: Any, qd: Any, qdd: Any, math: Any) -> list[list[Any]]:
        """Return the column of the value.

        Raises:
            RobotError: the function fails, or does not return n torques.
        """
        function = _user_function(self.file, self.function, self.version)
        try:
            column = list(function(list(q), list(qd), list(qdd)))
        except Exception as error:
            raise RobotError(
                f"{self.file}: {self.function} fails: {error}; a column may use arithmetic and NumPy's sin, "
                "cos, sqrt, exp, tanh and abs, and no comparisons"
            ) from error
        if len(column) != len(q):
            raise RobotError(
                f"{self.file}: expected {self.function} to return {len(q)} torques, got {len(column)}"
            )
        return [column]

    def energy(self, q: Any, math: Any) -> Any:
        """Return 0: the function is not known to be conservative."""
        return 0.0


class Arrays:
    """Functions of arrays, in place of those of a `Trace`."""

    sqrt, cos, sin = np.sqrt, np.cos, np.sin


def torque_columns(torques: Sequence[AxisTorque], q: Any, qd: Any, qdd: Any) -> np.ndarray:
    """Return the torques (N, n, p) of a motion (N, n) per unit of each of the p values."""
    columns = [
        np.stack([np.broadcast_to(np.asarray(part, dtype=np.float64), len(q)) for part in column], axis=-1)
        for torque in torques
        for column in torque.columns(q.T, qd.T, qdd.T, Arrays)
    ]
    return np.stack(columns, axis=-1) if columns else np.zeros((*q.shape, 0))


def total_torque(torques: Sequence[AxisTorque], q: Any, qd: Any, qdd: Any, math: Any) -> list[Any]:
    """Return the sum (n,) of the torques of a motion, 0.0 where there are none."""
    total: list[Any] = [0.0] * len(q)
    for torque in torques:
        for value, column in zip(torque.values, torque.columns(q, qd, qdd, math), strict=True):
            total = [
                sum_ if isinstance(part, float) and part == 0.0 else part * value + sum_
                for sum_, part in zip(total, column, strict=True)
            ]
    return total


def require_state_only(torque: AxisTorque, n: int) -> None:
    """Raise `RobotError` if a torque over n joints depends on accelerations, which act as an inertia."""
    trace = Trace()
    q, qd, qdd = (trace.inputs(name, n) for name in ("q", "qd", "qdd"))
    parts = [part for column in torque.columns(q, qd, qdd, trace) for part in column]
    if any(name.startswith("qdd[") for name in write_python(parts).inputs):
        raise RobotError(
            f"column {torque.symbols[0]} depends on accelerations, which a robot's columns cannot: expected "
            "the inertia in a link or in rotor_inertia"
        )


def _at(joint: int, value: Any, q: Any) -> list[Any]:
    """Return a column with one entry."""
    return [value if k == joint else 0.0 for k in range(len(q))]


@lru_cache(maxsize=64)
def _user_function(file: str, function: str, version: str) -> Any:
    """Load a function of a user's file, once for each `version` of its content.

    Raises:
        PluginError: the file or the function cannot be loaded.
    """
    from twin.base.plugins import attribute_of, load_file

    what = f"the column {Path(file).name}:{function}"
    return attribute_of(load_file(file, what), function, what)
