"""Tree of moving joints, on which all computations are based, and the inertias of its links."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from twin.base.errors import RobotError
from twin.physics.multibody.axis_torques import AxisTorque

FloatArray = np.ndarray

ROUNDING = 1e-15
"""Largest products of inertia, relative to the moments about the joint, that are rounding errors of zero."""


class Portable:
    """Base of frozen dataclasses that can be copied and pickled; cached values are not copied."""

    def __getstate__(self) -> dict[str, Any]:
        values = {item.name: getattr(self, item.name) for item in fields(cast("Any", self))}
        # A dictionary can be pickled, its read-only view cannot.
        return {k: dict(v) if isinstance(v, MappingProxyType) else v for k, v in values.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, _read_only(value))


def _read_only(value: Any) -> Any:
    """Return a value with its arrays and mappings read-only, also those inside mappings and tuples."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, dict):
        return MappingProxyType({key: _read_only(part) for key, part in value.items()})
    elif isinstance(value, tuple):
        for part in value:
            _read_only(part)
    return value


@dataclass(frozen=True, eq=False)
class Tree(Portable):
    """Tree of the moving joints of a robot, parents first; bodies fixed to each other form one link.

    Attributes:
        names: joint names.
        links: names of the links that the joints move.
        kinds: `"revolute"` or `"prismatic"`, one per joint.
        parents: index of the joint that moves the parent link, -1 for the base.
        T_parent_joint: (n, 4, 4) pose of each joint's frame in its parent link's frame at position 0.
        axes: (n, 3) unit axis of each joint, in the joint's frame.
        inertias: (n, 10) per link `m, m c (3), I (xx, yy, zz, xy, xz, yz)` about the origin of the link's
            frame, in [kg, kg m, kg m^2].
        flange_joint: index of the joint that moves the flange.
        T_joint_flange: (4, 4) pose of the flange in that joint's link frame.
        base_inertia: (10,) inertial parameters of the base link, in its frame; they act on the foundation.
        torques: springs, balancers and other torques over the joints of the teach pendant.
    """

    names: tuple[str, ...]
    links: tuple[str, ...]
    kinds: tuple[str, ...]
    parents: tuple[int, ...]
    T_parent_joint: FloatArray
    axes: FloatArray
    inertias: FloatArray
    flange_joint: int
    T_joint_flange: FloatArray
    base_inertia: FloatArray = field(default_factory=lambda: frozen(np.zeros(10)))
    torques: tuple[AxisTorque, ...] = ()

    def __repr__(self) -> str:
        return f"<Tree of {self.n} joints: {', '.join(self.names)}>"

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.names)

    @property
    def torque_values(self) -> FloatArray:
        """Values of all torques of springs, balancers and columns, one after the other."""
        return np.array([value for torque in self.torques for value in torque.values])

    def with_torque_values(self, values: FloatArray) -> Tree:
        """Return the tree whose torques have other values, in the order of `torque_values`."""
        rest = iter(values.tolist())
        torques = [one.with_values([next(rest) for _ in one.value_names]) for one in self.torques]
        return replace(self, torques=tuple(torques))

    def carriers(self, joint: int) -> tuple[int, ...]:
        """Return the joints on the path from the base to `joint`, inclusive."""
        path = []
        while joint >= 0:
            path.append(joint)
            joint = self.parents[joint]
        return tuple(reversed(path))

    def with_body(self, joint: int, inertia: FloatArray) -> Tree:
        """Return the tree with a body of (10,) inertial parameters fixed to the link of `joint`."""
        inertias = self.inertias.copy()
        inertias[joint] += inertia
        return replace(self, inertias=frozen(inertias))


class Loop(NamedTuple):
    """Closed kinematic loop: two links of the tree that share a point.

    Attributes:
        name: name of the loop.
        joints: indices of the joints that move the two links.
        points: (2, 3) shared point in the frame of each link, in [m].
    """

    name: str
    joints: tuple[int, int]
    points: FloatArray


def frozen(array: object) -> FloatArray:
    """Return a read-only C-contiguous float64 copy."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def inertial_parameters(mass: float, com: FloatArray, inertia: FloatArray) -> FloatArray:
    """Return the inertial parameters of a body about the origin of its frame, by Steiner's theorem.

    Args:
        mass: mass, in [kg].
        com: (3,) centre of mass, in [m].
        inertia: (3, 3) inertia tensor about the centre of mass, in [kg m^2].

    Returns:
        (10,) `m, m c (3), I (xx, yy, zz, xy, xz, yz)`, with the tensor about the origin.
    """
    I = inertia + mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))  # noqa: E741
    return np.array([mass, *(mass * com), I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def body_from_parameters(parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return mass, centre of mass (3,) and inertia tensor about it (3, 3) for (10,) inertial parameters."""
    mass, h = float(parameters[0]), parameters[1:4]
    xx, yy, zz, xy, xz, yz = parameters[4:]
    com = h / mass if mass > 0 else np.zeros(3)
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return mass, com, about_origin - mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))


class InertialFrame(NamedTuple):
    """Mass and inertia of a link.

    Attributes:
        mass: mass, in [kg].
        com: (3,) centre of mass, in [m].
        axes: (3, 3) matrix with the principal axes as columns.
        moments: (3,) principal moments of inertia, in [kg m^2].
    """

    mass: float
    com: FloatArray
    axes: FloatArray
    moments: FloatArray


def inertial_frame(where: str, row: FloatArray) -> InertialFrame:
    """Return the principal axes of (10,) inertial parameters, the form that engines read without loss.

    Raises:
        RobotError: a number is not finite, or there is a first moment without mass; `where` begins the
            message.
    """
    mass, com, tensor = body_from_parameters(row)
    if not (0 <= mass < np.inf and np.all(np.isfinite(row))):
        raise RobotError(f"{where} has a mass of {mass:g} kg or a mass property that is not finite")
    if mass == 0 and np.any(row[1:4] != 0):
        raise RobotError(f"{where} has a first moment and no mass; give it a mass above 0 kg")
    between = np.abs(tensor - np.diag(np.diag(tensor)))
    if np.max(between) <= ROUNDING * np.max(np.abs(row[4:])):
        return InertialFrame(mass, com, np.eye(3), np.diag(tensor))  # the identity adds no rounding
    moments, axes = np.linalg.eigh(tensor)
    return InertialFrame(mass, com, axes * np.sign(np.linalg.det(axes)), moments)


def transformed_parameters(parameters: FloatArray, T: FloatArray) -> FloatArray:
    """Return a body's (10,) inertial parameters in a frame in which its old frame has the pose `T` (4, 4)."""
    mass, h = parameters[0], parameters[1:4]
    xx, yy, zz, xy, xz, yz = parameters[4:]
    R, p = T[:3, :3], T[:3, 3]
    h_rotated = R @ h
    I = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T  # noqa: E741
    cross_terms = np.outer(h_rotated, p)
    I += 2 * np.dot(h_rotated, p) * np.eye(3) - cross_terms - cross_terms.T  # noqa: E741
    I += mass * (np.dot(p, p) * np.eye(3) - np.outer(p, p))  # noqa: E741
    return np.array([mass, *(h_rotated + mass * p), I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def consistent_moments(moments: np.ndarray) -> np.ndarray:
    """Return the principal moments (3,) of a body that are nearest to given ones, in [kg m^2].

    Moments of a body are sums of two of its three second moments, which are not negative.  The tensor of a
    body that is nearest in the Frobenius norm has the axes of the given one, and as its moments the point of
    this cone that is nearest to the given moments.
    """
    if np.min(moments.sum() / 2.0 - moments) < 0.0:
        from scipy.optimize import nnls

        moments = SUMS @ nnls(SUMS, moments)[0]
    largest = int(np.argmax(moments))  # no greater than the sum of the others, to the bit
    moments[largest] = min(moments[largest], np.sum(np.delete(moments, largest)))
    return moments


SUMS = np.ones((3, 3)) - np.eye(3)
"""Matrix of the second moments of a body for its moments of inertia."""
