"""The closed form of Norrlöf's main axes, and the robot that it describes.

`main_axes.py` compares the closed form with the library.  The numbers for `STATE`, one set of parameters,
come from a separate Euler-Lagrange derivation, which agreed with Pinocchio on the same tree.
"""

import numpy as np
import pytest

import twin
from tests.published.norrlof import closed_form
from tests.support.random_trees import interpreted

STATE = closed_form.MainAxes(
    *(4.1, 0.9, 1.3, 0.2, 0.35, 28.0, 35.0, 6.0, 11.0, 0.15, 0.6, -0.18),
    *(0.03, 0.24, 0.11, 0.07, 0.0, 0.31, -0.09, 0.02),
)
Q, QD = np.array([[0.3, -0.4, 0.7], [0.8, -1.1, 0.5]])
D_STATE = [
    [4.538867475792382, 0, 0],
    [0, 15.9146, -1.0935264790977486],
    [0, -1.0935264790977486, 2.5329],
]
C_STATE = [
    [-1.3824426241950283, 0.9955060985746411, -0.021794781847834777],
    [-0.9955060985746411, 0, -1.1030089391650553],
    [0.021794781847834777, -2.4266196661631216, 0],
]
G_STATE = [0, 105.41142567247438, -30.22932192243496]


def test_closed_form_gives_the_numbers_of_a_separate_derivation():
    np.testing.assert_allclose(closed_form.mass_matrix(STATE, Q), D_STATE, atol=1e-14)
    np.testing.assert_allclose(closed_form.coriolis_matrix(STATE, Q, QD), C_STATE, atol=1e-14)
    np.testing.assert_allclose(closed_form.gravity_torque(STATE, Q), G_STATE, atol=1e-13)


def test_simplified_robot_has_the_same_gravity_torque_and_mass():
    """The simplification drops only offsets from the plane, so g is unchanged with the wrist at zero."""
    robot = interpreted(twin.load("irb1400"))
    arm = interpreted(closed_form.main_axes_robot(robot))
    q = np.random.default_rng(3).uniform(-1, 1, (50, 3))
    q_full = np.concatenate([q, np.zeros((50, 3))], axis=1)
    expected = twin.gravity_torque(robot, q_full)[:, :3]
    np.testing.assert_allclose(twin.gravity_torque(arm, q), expected, atol=1e-12 * np.max(np.abs(expected)))
    M, M_full = twin.mass_matrix(arm, q), twin.mass_matrix(robot, q_full)
    np.testing.assert_allclose(M[:, 1, 1:], M_full[:, 1, 1:3], rtol=1e-12, atol=1e-12)
    loaded = closed_form.main_axes_parameters(robot.with_payload(twin.Payload(5.0, (0, 0, 0.1))))
    assert loaded.m3 == pytest.approx(closed_form.main_axes_parameters(robot).m3 + 5.0, rel=1e-14)
