"""The mass matrix by composite bodies against Newton-Euler, and the factors that solve for accelerations."""

import math

import numpy as np
import pytest

import twin
from tests.support.random_trees import random_urdf
from twin.physics.multibody import recursions


@pytest.mark.parametrize("joints", [1, 4, 7])
def test_mass_matrix_is_the_torques_of_unit_accelerations(joints, tmp_path, rng):
    """The trees have branches and prismatic joints; Newton-Euler uses no composite bodies."""
    path = tmp_path / "tree.urdf"
    path.write_text(random_urdf(rng, joints))
    tree = twin.load(path).tree
    at = recursions.placements(tree, rng.uniform(-3, 3, joints).tolist(), math)
    inertias, still = tree.inertias.tolist(), [0.0] * joints
    columns = [
        recursions.newton_euler(tree, at, still, unit, inertias, recursions.ZERO)
        for unit in np.eye(joints).tolist()
    ]
    M = np.array(recursions.mass_matrix(tree, at, inertias))
    np.testing.assert_allclose(M, np.transpose(columns), rtol=0, atol=1e-13 * np.max(np.abs(M)))
    np.testing.assert_array_equal(M, M.T)


def test_solve_reads_the_lower_triangle_alone(rng):
    root = rng.normal(size=(6, 6))
    M, load = root @ root.T + np.eye(6), rng.normal(size=6)
    x = recursions.solve(np.tril(M).tolist(), load.tolist(), lambda pivot: 1 / pivot)
    np.testing.assert_allclose(x, np.linalg.solve(M, load), rtol=1e-12)


def test_nothing_is_filled_in_between_two_branches():
    """Joints 2 and 3 both hang on joint 1: their entry of the factors is zero, and no pivot depends on it."""
    M = [[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]]
    pivots = []
    recursions.solve(M, [1.0, 2.0, 3.0], lambda pivot: pivots.append(pivot) or 1 / pivot)
    assert pivots == [5.0, 3.0, 4.0 - 4.0 / 5.0 - 1.0 / 3.0]


def test_accelerations_are_not_numbers_where_the_mass_matrix_is_not_positive(arm):
    """Negative masses, which no robot has that was loaded: a wrong number must not come of them."""
    q, out = np.full(6, 0.3), np.zeros(6)
    arm.kernels.forward_dynamics(q, q, q, -arm.inertias, arm.single_sample.gravity, out)
    assert np.all(np.isnan(out))
