"""Symbolic poses and Jacobians of six axes."""

import numpy as np
import pytest
import sympy as sp

import twin
from twin.dynamics.symbolic.arm_kinematics import arm_kinematics
from twin.dynamics.symbolic.trees import formulas


def values(robot, q):
    """Return the numbers of `c1, s1, ..., c23, s23`."""
    theta = dict(zip("123456", twin.kinematics.dh_from_joint_angles(robot, q), strict=True))
    theta["23"] = theta["2"] + theta["3"]
    named = {f"c{key}": np.cos(angle) for key, angle in theta.items()}
    return named | {f"s{key}": np.sin(angle) for key, angle in theta.items()}


def evaluated(matrix, numbers):
    matrix = sp.Matrix(matrix)
    return np.array(matrix.subs({symbol: numbers[symbol.name] for symbol in matrix.free_symbols}), float)


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_symbolic_poses_and_jacobian_are_those_of_the_arm(name):
    robot = twin.load(name)
    formula = arm_kinematics(robot)
    q = np.random.default_rng(0).uniform(-1, 1, 6)
    numbers = values(robot, q)
    T = twin.forward_kinematics(robot, q)
    np.testing.assert_allclose(evaluated(formula.T06, numbers), T, rtol=0, atol=1e-15)
    R03 = evaluated(formula.T03, numbers)[:3, :3]
    np.testing.assert_allclose(R03 @ evaluated(formula.R36, numbers), T[:3, :3], rtol=0, atol=1e-15)
    back = np.array([0.0, 0.0, -robot.dh.d[5]])
    wrist = twin.pose_matrix([*back, 1, 0, 0, 0])
    expected = twin.jacobian(robot, q, wrist)[:3, :3] @ np.linalg.inv(robot.dh_coupling[:3, :3])
    found = evaluated(formula.J_wrist, numbers)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    determinant = evaluated([formula.determinant[0] * formula.determinant[1]], numbers).item()
    assert determinant == pytest.approx(np.linalg.det(expected), abs=1e-15)
    assert sum(sp.count_ops(entry) for entry in formula.T06) < 338


def test_printed_kinematics_state_their_symbols():
    text = formulas("irb1400", "T")
    assert text.startswith("# theta1 = q1\n# theta2 = q2 - pi/2\n# theta3 = -q2 + q3\n")
    assert "Jw_{31} = 0\n" in formulas("irb1400", "J", "latex")
