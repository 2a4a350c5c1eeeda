"""Symbolic dynamics agree with the kernels and share nothing with them; symbolic poses and Jacobians."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import twin
from scenarios.shell.command_line import main
from tests.published.norrlof import closed_form
from tests.support import small_robots
from tests.support.dh_tables import plain
from tests.support.peers import largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from tests.support.refusals import refused
from tests.support.small_robots import inertial
from twin.base.errors import RobotError, UnknownNameError
from twin.physics.dynamics.symbolic.euler_lagrange import trigonometric_sum
from twin.physics.dynamics.symbolic.trees import (
    LinkMass,
    arm_kinematics,
    chain_kinematics,
    formulas,
    main_axes_dynamics,
    tree_dynamics,
    two_link_dynamics,
)
from twin.physics.robot.robot import dh_transforms

pytestmark = pytest.mark.slow("derives equations as sums")


def mass_symbols(tree):
    """Return symbols for a tree's links: `mk`, `xk, yk, zk` (centre of mass), `Ixxk, ..., Iyzk` of link k."""
    links = []
    for k in range(1, tree.n + 1):
        m, x, y, z = (sp.Symbol(f"{letter}{k}", real=True) for letter in "mxyz")
        xx, yy, zz, xy, xz, yz = (
            sp.Symbol(f"I{pair}{k}", real=True) for pair in ("xx", "yy", "zz", "xy", "xz", "yz")
        )
        links.append(LinkMass(m, (x, y, z), [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    return links


def agrees(dynamics, robot, rng, parameters=(), span=3.0):
    """Assert that D, C and g agree with the kernels to 1e-12 over random states."""
    q, qd = rng.uniform(-span, span, (2, 30, robot.n))
    D, C, g = dynamics.function(compiled=False)(q, qd, parameters)
    tau = np.einsum("kij,kj->ki", C, qd) + g
    assert largest_relative_error(D, twin.mass_matrix(robot, q)) < 1e-12
    assert largest_relative_error(tau, twin.inverse_dynamics(robot, q, qd, 0 * q)) < 1e-12
    scale = 1e-12 * np.max(np.abs(twin.coriolis_matrix(robot, q, qd)))  # C of two prismatic joints is zero
    np.testing.assert_allclose(C, twin.coriolis_matrix(robot, q, qd), atol=scale, rtol=0)
    np.testing.assert_allclose(g, twin.gravity_torque(robot, q), atol=1e-12 * np.max(np.abs(g)), rtol=0)


def is_skew(dynamics):
    """Return whether `Ddot - 2 C` is identically skew-symmetric."""
    rates = zip(dynamics.q, dynamics.qd, strict=True)
    Ddot = sum((dynamics.D.diff(q) * qd for q, qd in rates), sp.zeros(*dynamics.D.shape))
    N = Ddot - 2 * dynamics.C
    return (N + N.T).applyfunc(trigonometric_sum) == sp.zeros(*N.shape)


def parameters_of(p):
    return [getattr(p, symbol.name) for symbol in main_axes_dynamics().parameters]


@pytest.fixture(scope="module")
def arm():
    """The IRB 1400 with the report's simplifications imposed."""
    return interpreted(closed_form.main_axes_robot(twin.load("irb1400")))


def test_main_axes_are_the_kernel_on_the_robot(arm, rng):
    agrees(main_axes_dynamics(), arm, rng, parameters_of(closed_form.main_axes_parameters(arm)))


def test_main_axes_are_the_closed_form_for_any_parameters(rng):
    q, qd = rng.uniform(-3, 3, (2, 50, 3))
    function = main_axes_dynamics().function(compiled=False)
    for _ in range(5):
        p = closed_form.MainAxes(*rng.uniform(0.1, 2.0, 9), *rng.uniform(-1, 1, 11))
        D, C, g = function(q, qd, parameters_of(p))
        assert largest_relative_error(D, closed_form.mass_matrix(p, q)) < 1e-13
        np.testing.assert_allclose(C, closed_form.coriolis_matrix(p, q, qd), atol=1e-13 * np.max(np.abs(C)))
        np.testing.assert_allclose(g, closed_form.gravity_torque(p, q), atol=1e-13 * np.max(np.abs(g)))


@pytest.mark.parametrize("dynamics", [main_axes_dynamics, two_link_dynamics])
def test_coriolis_matrix_is_skew_with_the_inertia_identically(dynamics):
    assert is_skew(dynamics())


TWO_LINK = """
<robot name="two_link"><link name="base"/>
  <link name="upper"><inertial><origin xyz="0.22 0 0"/><mass value="3.5"/>
    <inertia ixx="0.01" iyy="0.07" izz="0.06" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0.15 0 0"/><mass value="1.75"/>
    <inertia ixx="0.002" iyy="0.03" izz="0.031" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="9" velocity="9"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="0 0 1"/>
    <origin xyz="0.45 0 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>
</robot>"""


def test_two_link_arm_and_the_formulas_of_its_urdf_are_the_kernel(load, tmp_path, rng):
    robot = interpreted(load(TWO_LINK).with_gravity((0, -9.81, 0)))
    dynamics = two_link_dynamics()
    values = dict(m1=3.5, m2=1.75, l1=0.45, lc1=0.22, lc2=0.15, I1=0.06, I2=0.031, gy=9.81)  # noqa: C408
    agrees(dynamics, robot, rng, [values[symbol.name] for symbol in dynamics.parameters])
    agrees(tree_dynamics(robot.tree, gravity=robot.gravity.tolist()), robot, rng)
    text = formulas(str(tmp_path / "robot.urdf"))
    assert "d22 = 0.070375\n" in text
    assert "d12 = 0.118125*cos(q2) + 0.070375\n" in text


def test_printed_formulas_evaluate_to_the_model(arm, rng):
    p = closed_form.main_axes_parameters(arm)
    q, qd = rng.uniform(-3, 3, (2, 3))
    values = {s.name: v for s, v in zip(main_axes_dynamics().parameters, parameters_of(p), strict=True)}
    values |= {f"q{k + 1}": q[k] for k in range(3)} | {f"qd{k + 1}": qd[k] for k in range(3)}
    lines = [line.split(" = ") for line in formulas("main_axes").splitlines()]
    found = {name: float(sp.sympify(text).subs(values)) for name, text in lines}
    D, C = closed_form.mass_matrix(p, q), closed_form.coriolis_matrix(p, q, qd)
    expected = {"d": D, "c": C, "g": closed_form.gravity_torque(p, q)}
    assert len(found) == 6 + 9 + 3
    for name, value in found.items():
        index = tuple(int(digit) - 1 for digit in name[1:])
        assert value == pytest.approx(expected[name[0]][index], rel=1e-12, abs=1e-12), name
    assert "m5*(l1x + rc5x*cos(q3) + rc5z*sin(q3))**2" in formulas("main_axes")  # as one reads it


def test_sums_of_an_arm_with_locked_joints_are_those_of_its_first_axes(capsys):
    words = ["formulas", "irb140", "--quantity", "g"]
    assert main([*words, "--lock", "joint_4=0", "joint_5=0", "joint_6=0"]) == 0
    assert capsys.readouterr().out == formulas("irb140", "g", axes=3)
    assert "q6" not in formulas("irb140", "T", locked={"joint_6": 0.0})


def test_formulas_of_something_else_are_refused(tmp_path, rng):
    (tmp_path / "long.urdf").write_text(random_urdf(rng, 4))
    long = str(tmp_path / "long.urdf")
    refused(
        (lambda: formulas("irb"), r"unknown robot 'irb', did you mean 'irb140'\?: known are .*; and main_"),
        (lambda: formulas(long), "sums of 4 axes would be too long .* as --axes 3, or wr"),
        (lambda: formulas("irb1400", axes=3), "'irb1400' has joints without a motor (joint_elbow, joint_rod"),
        (lambda: formulas("irb140", axes=7), "'irb140' has 6 joints: expected 1 to 6 axes, got 7"),
        (lambda: formulas("irb140", axes=2, axis=3), "there is no axis 3: expected 1 to 2"),
        (lambda: formulas("main_axes", axes=2), "main_axes has no axes to lock"),
        (lambda: formulas("two_link", locked={"q2": 0.1}), "two_link has no axes to lock"),
        (lambda: formulas("irb140", quantity="Jd"), "no sums for 'Jd': expected tau, M, C, g, T or J, or c"),
        error=(UnknownNameError, RobotError),
    )


def test_compiled_function_is_the_same_one(rng):
    dynamics = two_link_dynamics()
    q, qd = rng.normal(size=(2, 4, 5, 2))
    values = rng.uniform(0.5, 2, 8)
    compiled, plain = dynamics.function(), dynamics.function(compiled=False)
    for a, b in zip(compiled(q, qd, values), plain(q, qd, values), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    assert [a.shape for a in compiled(q, qd, values)] == [(4, 5, 2, 2), (4, 5, 2, 2), (4, 5, 2)]
    assert [a.shape for a in plain(q[0, 0], qd[0, 0], values)] == [(2, 2), (2, 2), (2,)]
    with pytest.raises(ValueError, match=r"expected q and qd of shape \(..., 2\), got \(3,\)"):
        plain(np.zeros(3), np.zeros(3), np.ones(8))
    with pytest.raises(ValueError, match=r"expected 8 parameters \(I1, I2, gy, .*\), got shape \(1,\)"):
        plain(np.zeros(2), np.zeros(2), [1.0])


@pytest.fixture
def right_angled(load):
    """Three joints about z, y and y, with mass off every axis, as a robot with named links."""
    links = "".join(f'<link name="{name}">{inertial()}</link>' for name in ("base", "one", "two", "three"))
    axes = (("base", "one", "0 0 1"), ("one", "two", "0 1 0"), ("two", "three", "0 -1 0"))
    joints = "".join(
        f'<joint name="to_{child}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.15 0.02 0.4"/><axis xyz="{axis}"/>'
        '<limit lower="-3" upper="3" effort="9" velocity="9"/></joint>'
        for parent, child, axis in axes
    )
    return load(f'<robot name="right_angled">{links}{joints}</robot>')


@pytest.mark.parametrize("seed", range(2))
def test_random_trees_in_any_mounting_are_the_kernel(load, seed):
    rng = np.random.default_rng(seed)
    robot = load(random_urdf(rng, 2 + seed)).with_gravity((3.0, -4.0, 5.0))
    agrees(tree_dynamics(robot.tree, gravity=robot.gravity.tolist()), interpreted(robot), rng)


def test_coupled_tree_is_the_kernel(right_angled, rng):
    """An embedding with offsets and a ratio that is not whole."""
    G, g0 = np.array([[1, 0], [0.5, 0], [-1, 1]]), np.array([0.1, 0, -0.3])
    limits = {name: getattr(right_angled, name)[:2] for name in ("q_min", "q_max", "qd_max", "tau_max")}
    coupled = interpreted(replace(right_angled, embedding=G, embedding_offset=g0, driven=(0, 2), **limits))
    agrees(tree_dynamics(right_angled.tree, G, g0), coupled, rng)
    with pytest.raises(ValueError, match=r"expected G \(3, n\), g0 \(3,\) and 3 links, got \(2, 2\), \(3,\)"):
        tree_dynamics(right_angled.tree, np.eye(2))


def test_symbols_for_masses_are_the_kernel(right_angled, rng):
    tree = right_angled.tree
    gx, gy, gz = sp.symbols("gx gy gz", real=True)
    dynamics = tree_dynamics(tree, links=mass_symbols(tree), gravity=(gx, gy, gz))
    values = {"gx": 0.0, "gy": 0.0, "gz": -9.81}
    for k in (1, 2, 3):  # as tests.support.small_robots.inertial gives them
        values |= {f"m{k}": 2.0, f"x{k}": 0.1, f"y{k}": 0.05, f"z{k}": 0.2}
        values |= {f"I{pair}{k}": 0.1 if pair[0] == pair[1] else 0.0 for pair in ("xx", "yy", "zz", "xy")}
        values |= {f"I{pair}{k}": 0.0 for pair in ("xz", "yz")}
    agrees(dynamics, right_angled, rng, [values[symbol.name] for symbol in dynamics.parameters])
    assert is_skew(dynamics)


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
