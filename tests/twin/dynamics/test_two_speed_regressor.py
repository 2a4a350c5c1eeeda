"""The regressor for two speeds equals M a + C v + g with Christoffel's C, which another computation gives."""

import numpy as np
import pytest

import twin
from twin.control.control_law import Model
from twin.dynamics.regressor import regressor


def filled(robot, q, qd, v, a, smooth=0.0):
    model = Model.of(robot, 1e-3)
    Y = np.full((robot.n, 10 * robot.tree.n + 4 * robot.n), np.nan)
    regressor(model.tree, model.drives, model.gravity, q, qd, v, a, smooth, Y)
    return Y


@pytest.mark.parametrize("name", ["irb140", "irb1400", "two_link"])
def test_links_give_the_torque_of_christoffel_symbols(name):
    robot, rng = twin.load(name), np.random.default_rng(4)
    for _ in range(5):
        q, qd, v, a = rng.uniform(-0.5, 0.5, (4, robot.n)) * [[1], [2], [3], [5]]
        links = filled(robot, q, qd, v, a)[:, : 10 * robot.tree.n]
        expected = (
            twin.mass_matrix(robot, q) @ a
            + twin.coriolis_matrix(robot, q, qd) @ v
            + twin.gravity_torque(robot, q)
        )
        np.testing.assert_allclose(links @ robot.inertias.ravel(), expected, rtol=0, atol=1e-12)


def test_equal_speeds_give_the_regressor_of_the_dynamics_with_drives_but_smooth_friction():
    robot, rng = twin.load("irb140").with_drives("rigid"), np.random.default_rng(5)
    q, qd, a = rng.uniform(-0.5, 0.5, (3, robot.n))
    Y, expected = filled(robot, q, qd, qd, a), twin.dynamics_regressor(robot, q, qd, a)
    links = 10 * robot.tree.n
    np.testing.assert_array_equal(Y[:, :links], expected[:, :links])
    for column in (1, 2, 3):
        np.testing.assert_allclose(Y[:, links + column :: 4], expected[:, links + column :: 4], rtol=1e-15)
    np.testing.assert_array_equal(Y[:, links::4], np.diag(a))  # rotors in joint units
    slow, fast = (filled(robot, q, q, np.full(6, v), q, smooth=0.02)[:, links + 2 :: 4] for v in (0.005, 0.1))
    np.testing.assert_allclose(slow, 0.25 * fast, rtol=1e-14)
