"""Surfaces that a point of the tool may be held on, as functions that are 0 there.

A surface is called with points p (..., 3) in the base frame and gives `g(p)`, its gradient and its second
derivatives.  Here g is scaled so that the gradient is a unit vector on the surface: g is, close to it, the
distance in [m], and the force of a constraint is its multiplier in [N] along the normal.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, float_array
from twin.multibody.tree import frozen


class Level(NamedTuple):
    """A surface's function at some points.

    Attributes:
        value: (...,) g, in [m].
        gradient: (..., 3) in [1].
        hessian: (..., 3, 3) second derivatives, in [1/m].
    """

    value: Floats
    gradient: Floats
    hessian: Floats


class Surface(Protocol):
    """What `surface_constraint` asks of a surface."""

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return the function at the points p (..., 3), in [m]."""
        ...


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane through a point, with a normal of any length; g is positive on the side it points to.

    Attributes:
        point: (3,) in [m].
        normal: (3,), made a unit vector.
    """

    point: ArrayLike
    normal: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", _vector(self.point, "point"))
        object.__setattr__(self, "normal", _direction(self.normal, "normal"))

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return `g = normal . (p - point)`."""
        p, normal = float_array(p, "p", (3,)), np.asarray(self.normal)
        gradient = np.broadcast_to(normal, p.shape)
        return Level((p - np.asarray(self.point)) @ normal, gradient, np.zeros((*p.shape, 3)))


@dataclass(frozen=True, eq=False)
class Sphere:
    """A sphere; g is positive outside.

    Attributes:
        center: (3,) in [m].
        radius: in [m].
    """

    center: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _vector(self.center, "center"))
        _require_radius(self.radius)

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return `g = (|p - center|^2 - radius^2) / (2 radius)`."""
        return _round(float_array(p, "p", (3,)) - np.asarray(self.center), np.eye(3), self.radius)


@dataclass(frozen=True, eq=False)
class Cylinder:
    """An endless cylinder; g is positive outside.

    Attributes:
        point: (3,) on its axis, in [m].
        axis: (3,) of any length, made a unit vector.
        radius: in [m].
    """

    point: ArrayLike
    axis: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", _vector(self.point, "point"))
        object.__setattr__(self, "axis", _direction(self.axis, "axis"))
        _require_radius(self.radius)

    def __call__(self, p: ArrayLike, /) -> Level:
        """Return `g = (|distance from the axis|^2 - radius^2) / (2 radius)`."""
        across = np.eye(3) - np.outer(np.asarray(self.axis), np.asarray(self.axis))
        return _round(float_array(p, "p", (3,)) - np.asarray(self.point), across, self.radius)


def _round(r: Floats, across: Floats, radius: float) -> Level:
    """Return what sphere and cylinder share: `across` projects r onto what is measured by the radius."""
    outwards = r @ across
    value = (np.sum(outwards * outwards, axis=-1) - radius**2) / (2.0 * radius)
    return Level(value, outwards / radius, np.broadcast_to(across / radius, (*r.shape, 3)))


def _vector(value: ArrayLike, name: str) -> Floats:
    """Return a finite vector (3,) that cannot be written to."""
    vector = frozen(value)
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise ValueError(f"expected {name} to be 3 finite numbers, got {vector.tolist()}")
    return vector


def _direction(value: ArrayLike, name: str) -> Floats:
    """Return a unit vector (3,)."""
    vector = _vector(value, name)
    length = np.linalg.norm(vector)
    if not length > 0.0:
        raise ValueError(f"expected {name} to have a direction, got {vector.tolist()}")
    return frozen(vector / length)


def _require_radius(radius: float) -> None:
    """Raise `ValueError` for a radius that is none."""
    if not 0.0 < radius < np.inf:
        raise ValueError(f"expected a radius above 0 m, got {radius}")
