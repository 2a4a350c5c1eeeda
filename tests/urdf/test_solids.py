"""Mass properties of solids against an independent integral over them."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from urdf import decimal_math
from urdf.solids import bulk

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact for polynomials up to degree 7


def grid(low, high):
    """Points (N, 3) and weights (N,) of Gauss and Legendre's rule over a box."""
    low, high = np.array(low, float), np.array(high, float)
    points = np.stack(np.meshgrid(NODES, NODES, NODES, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", WEIGHTS, WEIGHTS, WEIGHTS).ravel()
    return (low + high) / 2 + points * (high - low) / 2, weights * np.prod((high - low) / 2)


def check(solid, points, weights):
    """The bulk of a solid equals the sums over points (N, 3) with the volumes `weights` (N,)."""
    with decimal_math.precisely():
        found = bulk({"solid": solid})
    volume = weights.sum()
    com = weights @ points / volume
    arms = points - com
    squares = np.einsum("n,ni,nj->ij", weights, arms, arms) / volume
    inertia = np.trace(squares) * np.eye(3) - squares
    assert float(found.volume) == pytest.approx(volume, rel=1e-14)
    np.testing.assert_allclose(np.array(found.com, float), com, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.array(found.inertia, float), inertia, rtol=0, atol=1e-14 * inertia.max())


def test_box():
    size, at = np.array([0.230, 0.030, 0.060]), np.array([0.065, -0.010, 0.475])
    check({"box": size.tolist(), "at": at.tolist()}, *grid(at - size / 2, at + size / 2))


def test_a_hollow_box_is_its_six_walls():
    """Summed over disjoint plates: two full faces, two between them, two closing what is left."""
    size, at, wall = np.array([0.341, 0.125, 0.112]), np.array([0.634, -0.001, 1.187]), 0.0086
    low, high, left = at - size / 2, at + size / 2, []
    for axis in range(3):
        for side in (0, 1):
            corners = np.array([low, high])
            corners[1 - side, axis] = corners[side, axis] + (wall if side == 0 else -wall)
            left.append(grid(*corners))
        low[axis] += wall
        high[axis] -= wall
    points, weights = (np.concatenate(parts) for parts in zip(*left, strict=True))
    check({"hollow_box": size.tolist(), "wall": wall, "at": at.tolist()}, points, weights)


@pytest.mark.parametrize("end", [(-0.02, 0, 1.075), (0.3, 0, 0.475), (0.25, -0.4, 0.7), (-0.02, -0.3, 0.2)])
def test_cylinder_in_any_direction(end):
    """Radius, angle and height; over the angle, equal steps integrate exactly."""
    start, radius = np.array([-0.020, 0, 0.475]), 0.020
    axis = np.array(end) - start
    R = Rotation.align_vectors([axis / np.linalg.norm(axis)], [[0, 0, 1]])[0].as_matrix()
    ring, weights = grid([0, -0.5, 0], [radius, 0.5, np.linalg.norm(axis)])
    points = []
    for angle in 2 * np.pi * np.arange(8) / 8:
        local = np.stack([ring[:, 0] * np.cos(angle), ring[:, 0] * np.sin(angle), ring[:, 2]], axis=-1)
        points.append(start + local @ R.T)
    volumes = np.tile(weights * ring[:, 0] * 2 * np.pi / 8, 8)
    solid = {"cylinder": radius, "from": start.tolist(), "to": list(end)}
    check(solid, np.concatenate(points), volumes)


def test_the_cad_s_mass_follows_from_the_volume():
    values = {"volume_mm3": 2_000_000, "com": [0.1, 0, 0.2], "inertia": [4.0, 5.0, 6.0, 0.1, 0.2, 0.3]}
    for extra, mass in ({}, 2.0), ({"mass_1000": 2.5}, 2.5):
        with decimal_math.precisely():
            found = bulk(values | extra)
        assert float(found.volume) == 0.002
        expected = np.array([[4.0, 0.1, 0.2], [0.1, 5.0, 0.3], [0.2, 0.3, 6.0]]) / mass
        np.testing.assert_allclose(np.array(found.inertia, float), expected, rtol=1e-15)
