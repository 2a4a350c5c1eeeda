"""Surfaces: zero on them, their derivatives, unit normals."""

import numpy as np
import pytest

from tests.support.refusals import refused
from twin.dynamics.constrained import Cylinder, Plane, Sphere

CENTER = np.array([0.3, -0.2, 0.5])
AXIS = np.array([1.0, 2.0, -2.0])
SURFACES = {
    "plane": Plane(CENTER, AXIS),
    "sphere": Sphere(CENTER, 0.4),
    "cylinder": Cylinder(CENTER, AXIS, 0.25),
}


def points_on(kind, rng, count=50):
    direction = rng.normal(size=(count, 3))
    along = np.outer(direction @ AXIS, AXIS) / 9.0
    across = direction - along
    if kind == "plane":
        return CENTER + across
    if kind == "sphere":
        return CENTER + 0.4 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return CENTER + along + 0.25 * across / np.linalg.norm(across, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", SURFACES)
def test_on_the_surface_g_is_zero_and_its_gradient_a_unit_normal(kind, rng):
    p = points_on(kind, rng)
    level = SURFACES[kind](p)
    np.testing.assert_allclose(level.value, 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(level.gradient, axis=1), 1, rtol=0, atol=1e-15)
    outwards = SURFACES[kind](p + 1e-3 * level.gradient).value
    np.testing.assert_allclose(outwards, 1e-3, rtol=3e-3)


@pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES)
def test_derivatives(surface, rng):
    p, h = rng.normal(size=(4, 5, 3)), 1e-3
    level = surface(p)
    # g is of second degree: central differences are exact but for rounding.
    gradient = [(surface(p + h * e).value - surface(p - h * e).value) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(level.gradient, np.moveaxis(gradient, 0, -1), rtol=0, atol=1e-11)
    hessian = [(surface(p + h * e).gradient - surface(p - h * e).gradient) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(level.hessian, np.moveaxis(hessian, 0, -2), rtol=0, atol=1e-11)


def test_misuse_is_one_clear_sentence():
    refused(
        (lambda: Plane([0, 0], AXIS), "expected point to be 3 finite numbers, got [0.0, 0.0]"),
        (lambda: Plane(CENTER, [0, 0, 0]), "expected normal to be a nonzero vector, got [0.0, 0.0, 0.0]"),
        (lambda: Sphere(CENTER, np.nan), "expected a radius above 0 m, got nan"),
        (lambda: Cylinder(CENTER, AXIS, -1.0), "expected a radius above 0 m, got -1.0"),
        (lambda: SURFACES["plane"]([0, 0]), "expected p of shape (..., 3), got (2,)"),
    )
