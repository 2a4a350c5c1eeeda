"""The symbolic derivation: it must agree with the kernel, from which it shares nothing."""

import numpy as np
import pytest
import sympy as sp

import twin
from tests.published.norrlof import closed_form
from tests.support.peers import largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from tests.support.refusals import refused
from tests.support.symbolic_checks import agrees, is_skew
from twin.dynamics.symbolic.trees import formulas, main_axes_dynamics, tree_dynamics, two_link_dynamics
from twin.errors import RobotError, UnknownNameError


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
    D, C, g = (
        closed_form.mass_matrix(p, q),
        closed_form.coriolis_matrix(p, q, qd),
        closed_form.gravity_torque(p, q),
    )
    assert len(found) == 6 + 9 + 3
    for name, value in found.items():
        index = tuple(int(digit) - 1 for digit in name[1:])
        assert value == pytest.approx({"d": D, "c": C, "g": g}[name[0]][index], rel=1e-12, abs=1e-12), name
    assert "m5*(l1x + rc5x*cos(q3) + rc5z*sin(q3))**2" in formulas("main_axes")  # as one reads it


def test_formulas_of_something_else_are_refused(tmp_path, rng):
    (tmp_path / "long.urdf").write_text(random_urdf(rng, 4))
    long = str(tmp_path / "long.urdf")
    refused(
        (lambda: formulas("irb"), r"unknown robot 'irb', did you mean 'irb140'\?: known are .*; and main_"),
        (lambda: formulas(long), "sums of 4 axes would be too long .* as --axes 3, or wr"),
        (
            lambda: formulas("irb1400", axes=3),
            "'irb1400' has joints without a motor (joint_elbow, joint_rod), so none can be locked",
        ),
        (lambda: formulas("irb140", axes=7), "'irb140' has 6 joints: expected 1 to 6 axes, got 7"),
        (lambda: formulas("irb140", axes=2, axis=3), "there is no axis 3: expected 1 to 2"),
        (lambda: formulas("main_axes", axes=2), "main_axes has no axes to lock"),
        (
            lambda: formulas("irb140", quantity="Jd"),
            "no sums for 'Jd': expected tau, M, C, g, T or J, or code",
        ),
        (lambda: formulas(str(tmp_path / "none.urdf")), r"no such robot file: .*none\.urdf"),
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
