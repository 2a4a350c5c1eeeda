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


def test_two_link_arm_and_the_formulas_of_its_urdf_are_the_kernel(rng):
    robot = interpreted(twin.load("two_link").with_gravity((0, -9.81, 0)))
    dynamics, (m, mx, Izz) = two_link_dynamics(), robot.tree.inertias[:, [0, 1, 6]].T
    l1, lc = robot.tree.T_parent_joint[1, 0, 3], mx / m
    numbers = (*m, l1, *lc, *(Izz - m * lc**2), 9.81)
    values = dict(zip(("m1", "m2", "l1", "lc1", "lc2", "I1", "I2", "gy"), numbers, strict=True))
    agrees(dynamics, robot, rng, [values[symbol.name] for symbol in dynamics.parameters])
    agrees(tree_dynamics(robot.tree, gravity=robot.gravity.tolist()), robot, rng)
    d22, coupled = Izz[1], l1 * mx[1]
    assert f"d12 = {coupled:g}*cos(q2) + {d22:g}\n" in formulas(str(robot.urdf))


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
