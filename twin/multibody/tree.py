"""The tree of moving joints that every computation runs over, and the inertias of its links."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

FloatArray = np.ndarray


class Portable:
    """A frozen dataclass that can be copied and pickled; what it derived from its fields is left behind."""

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: _open(getattr(self, item.name)) for item in fields(cast("Any", self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, _closed(value))


def _open(value: Any) -> Any:
    """A mapping that cannot be written to as a dictionary, for that one cannot be pickled."""
    return dict(value) if isinstance(value, MappingProxyType) else value


def _closed(value: Any) -> Any:
    """Arrays and mappings that cannot be written to, as they were before they were copied."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, dict):
        return MappingProxyType({key: _closed(part) for key, part in value.items()})
    elif isinstance(value, tuple):
        for part in value:
            _closed(part)
    return value


@dataclass(frozen=True, eq=False)
class Tree(Portable):
    """The moving joints of a robot, parents first; what is fixed together is one link.

    Attributes:
        names: joint names.
        links: names of the links that they move.
        kinds: `"revolute"` or `"prismatic"`, one a joint.
        parents: index of the joint that moves the parent link, -1 for the base.
        T_parent_joint: (n, 4, 4) pose of each joint's frame in its parent link's frame at position 0.
        axes: (n, 3) unit axis of each joint, in its own frame.
        inertias: (n, 10) per link `m, m c (3), I (xx, yy, zz, xy, xz, yz)` about the origin of the link's
            frame, in [kg, kg m, kg m^2].
        flange_joint: index of the joint that moves the flange.
        T_joint_flange: (4, 4) pose of the flange in that joint's link frame.
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

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.names)

    def carriers(self, joint: int) -> tuple[int, ...]:
        """The joints on the way from the base to `joint`, that one included."""
        path = []
        while joint >= 0:
            path.append(joint)
            joint = self.parents[joint]
        return tuple(reversed(path))

    def with_body(self, joint: int, inertia: FloatArray) -> Tree:
        """The tree with a body, given as its (10,) inertial parameters, fixed to the link of `joint`."""
        inertias = self.inertias.copy()
        inertias[joint] += inertia
        return replace(self, inertias=frozen(inertias))


class Loop(NamedTuple):
    """A closed loop of the tree: two links that share a point.

    Attributes:
        name: of the loop.
        joints: of each of the two links, the index of the joint that moves it.
        points: (2, 3) the shared point in the frame of each link, in [m].
    """

    name: str
    joints: tuple[int, int]
    points: FloatArray


def frozen(array: object) -> FloatArray:
    """A C-contiguous float64 copy that cannot be written to."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def inertial_parameters(mass: float, com: FloatArray, inertia: FloatArray) -> FloatArray:
    """Inertial parameters of a body about the origin of the frame that it is given in.

    Args:
        mass: in [kg].
        com: (3,) centre of mass, in [m].
        inertia: (3, 3) tensor about the centre of mass, in [kg m^2].

    Returns:
        (10,) `m, m c (3), I (xx, yy, zz, xy, xz, yz)`; the tensor moved by Steiner's theorem.
    """
    I = inertia + mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))  # noqa: E741
    return np.array([mass, *(mass * com), I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def body_of_parameters(parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Mass, centre of mass (3,) and tensor about it (3, 3) of (10,) inertial parameters; the way back."""
    mass, h = float(parameters[0]), parameters[1:4]
    xx, yy, zz, xy, xz, yz = parameters[4:]
    com = h / mass if mass > 0 else np.zeros(3)
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return mass, com, about_origin - mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))


def transformed_parameters(parameters: FloatArray, T: FloatArray) -> FloatArray:
    """The same body's (10,) inertial parameters in a frame in which its own frame has the pose `T` (4, 4)."""
    mass, h = parameters[0], parameters[1:4]
    xx, yy, zz, xy, xz, yz = parameters[4:]
    R, p = T[:3, :3], T[:3, 3]
    h_turned = R @ h
    I = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T  # noqa: E741
    cross_terms = np.outer(h_turned, p)
    I += 2 * np.dot(h_turned, p) * np.eye(3) - cross_terms - cross_terms.T  # noqa: E741
    I += mass * (np.dot(p, p) * np.eye(3) - np.outer(p, p))  # noqa: E741
    return np.array([mass, *(h_turned + mass * p), I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def possible_moments(moments: np.ndarray) -> np.ndarray:
    """Principal moments (3,), in [kg m^2], moved to where a body can have them if rounding took them beyond.

    A rod or a plate is at the edge of the triangle inequality, and printed digits may lie beyond it.
    """
    moments = np.maximum(moments, 0.0)
    largest = int(np.argmax(moments))
    others = np.delete(moments, largest)
    moments[largest] = min(moments[largest], others[0] + others[1])
    return moments
