"""Symbolic poses and Jacobians of six axes."""

import numpy as np
import pytest
import sympy as sp

import twin
from tests.support import small_robots
from tests.support.dh_tables import plain
from tests.support.random_trees import interpreted
from twin.base.errors import RobotError, UnknownNameError
from twin.physics.dynamics.symbolic.trees import arm_kinematics, chain_kinematics, formulas
from twin.physics.robot.dh import dh_transforms


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


def chain_values(formula, q):
    """Return the numbers of `c1, s1, d2, c234, ...` from the printed meanings of the variables."""
    positions = {f"q{i + 1}": value for i, value in enumerate(q)}
    numbers = {}
    for meaning in formula.meanings:
        name, _, text = meaning.partition(" = ")
        numbers[name] = float(sp.sympify(text, {n: sp.Symbol(n) for n in positions}).subs(positions))
    for matrix in (*formula.A, formula.T, formula.J):
        for symbol in (one for one in matrix.free_symbols if one.name[0] in "cs"):
            angle = sum(numbers[f"theta{digit}"] for digit in symbol.name[1:])
            numbers[symbol.name] = np.cos(angle) if symbol.name[0] == "c" else np.sin(angle)
    return numbers


def chain(name, tmp_path):
    """Load a robot by name, or one of two joints from a URDF: turned frames, and one that slides."""
    texts = {"turned": small_robots.arm(axis="0.6 0 0.8"), "sliding": small_robots.SOUND}
    if name not in texts:
        return plain(name)
    file = tmp_path / "arm.urdf"
    file.write_text(texts[name], encoding="utf-8")
    return interpreted(twin.load(file))


@pytest.mark.parametrize("name", ["youbot", "figure_7_1", "two_link", "turned", "sliding"])
def test_formulas_of_any_arm_are_its_pose_and_jacobian(name, tmp_path, rng):
    robot = chain(name, tmp_path)
    formula = chain_kinematics(robot)
    for q in rng.uniform(-3, 3, (3, robot.n)):
        numbers = chain_values(formula, q)
        T, J = twin.forward_kinematics(robot, q), twin.jacobian(robot, q)
        np.testing.assert_allclose(evaluated(formula.T, numbers), T, rtol=0, atol=3e-15)
        np.testing.assert_allclose(evaluated(formula.J, numbers), J, rtol=0, atol=3e-15)
        A = [evaluated(matrix, numbers) for matrix in formula.A]
        np.testing.assert_allclose(np.linalg.multi_dot([*A, np.eye(4)]), T, rtol=0, atol=3e-15)
        if robot.dh is not None:
            slides = np.diag(robot.dh_coupling) == 0
            dh = robot.dh._replace(d=robot.dh.d + slides * q)
            expected = dh_transforms(dh, robot.dh.theta0 + ~slides * q)
            np.testing.assert_allclose(A, expected, rtol=0, atol=1e-15)


def test_angles_of_parallel_axes_are_added():
    text = formulas("youbot", "T")
    assert "# theta2 = q2 - pi/2\n" in text
    assert "# c1 = cos(theta1), c234 = cos(theta2 + theta3 + theta4), s the sine\n" in text
    assert "T05_34 = 0.117*c234 - 0.155*s2 - 0.135*s23 + 0.147\n" in text
    assert "J_21 = c1*d3\n" in formulas("figure_7_1", "J")
    assert "J_{12} = - s_{12}\n" in formulas("two_link", "J", "latex")


def test_an_arm_without_masses_is_not_advised_to_lock_axes():
    with pytest.raises(RobotError, match="robot 'rx90' has no dynamics: its DH table is known, but not th"):
        formulas("rx90")
    with pytest.raises(UnknownNameError, match="main_axes has only D, C and g: expected the name"):
        formulas("main_axes", "T")
