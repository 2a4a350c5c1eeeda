"""The frames of a Denavit-Hartenberg table; tests/published compares them with the printed matrices."""

import re

import numpy as np
import pytest

from twin.robot.robot import DH, dh_poses


def random_table(rng, n=6):
    return DH(rng.normal(size=n), rng.normal(size=n), rng.normal(size=n), rng.uniform(-np.pi, np.pi, n))


def test_a_joint_that_slides_moves_along_the_axis_before_it():
    rng = np.random.default_rng(2)
    dh, theta = random_table(rng), rng.uniform(-np.pi, np.pi, 6)
    stroke = np.zeros((5, 6))
    stroke[:, 3] = np.linspace(-1, 1, 5)
    still = dh_poses(dh, theta)
    shift = dh_poses(dh._replace(d=dh.d + stroke), theta) - still
    expected = np.zeros((5, 6, 4, 4))
    expected[:, 3:, :3, 3] = stroke[:, 3, None, None] * still[2, :3, 2]
    np.testing.assert_allclose(shift, expected, rtol=0, atol=1e-14)


def test_a_wrong_number_of_angles_is_refused():
    with pytest.raises(ValueError, match=re.escape("expected theta of shape (..., 6), got (5,)")):
        dh_poses(random_table(np.random.default_rng(3)), np.zeros(5))
