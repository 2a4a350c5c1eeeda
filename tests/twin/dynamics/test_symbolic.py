"""The symbolic derivation: it must agree with the kernel, from which it shares nothing."""

import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import twin
from tests.published.norrlof.closed_form import (
    MainAxes,
    coriolis_matrix,
    gravity_torque,
    main_axes_parameters,
    main_axes_robot,
    mass_matrix,
)
from tests.support.peers import largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from tests.support.symbolic_checks import agrees, is_skew
from twin.dynamics.symbolic.euler_lagrange import angular_jacobian, rotation_about
from twin.dynamics.symbolic.trees import formulas, main_axes_dynamics, tree_dynamics, two_link_dynamics
from twin.dynamics.symbolic.trigonometric_sums import trigonometric_sum
from twin.errors import RobotError, UnknownNameError


def identical(formula, text):
    """Whether a formula is the one of the text, as an identity."""
    symbols = {symbol.name: symbol for symbol in formula.free_symbols}
    return trigonometric_sum(formula - sp.sympify(text, locals=symbols)) == 0


def parameters_of(p):
    return [getattr(p, symbol.name) for symbol in main_axes_dynamics().parameters]


@pytest.fixture(scope="module")
def arm():
    """The IRB 1400 with the report's simplifications imposed."""
    return interpreted(main_axes_robot(twin.load("irb1400")))


def test_main_axes_are_the_kernel_on_the_robot(arm, rng):
    agrees(main_axes_dynamics(), arm, rng, parameters_of(main_axes_parameters(arm)))


def test_main_axes_are_the_closed_form_for_any_parameters(rng):
    q, qd = rng.uniform(-3, 3, (2, 50, 3))
    function = main_axes_dynamics().function(compiled=False)
    for _ in range(5):
        p = MainAxes(*rng.uniform(0.1, 2.0, 9), *rng.uniform(-1, 1, 11))
        D, C, g = function(q, qd, parameters_of(p))
        assert largest_relative_error(D, mass_matrix(p, q)) < 1e-13
        np.testing.assert_allclose(C, coriolis_matrix(p, q, qd), atol=1e-13 * np.max(np.abs(C)))
        np.testing.assert_allclose(g, gravity_torque(p, q), atol=1e-13 * np.max(np.abs(g)))


def test_main_axes_are_the_corrected_formulas_identically():
    """Norrlöf 1999, eq. (3.55), (3.58) and (3.59), corrected, and with `rc4x`."""
    dynamics = main_axes_dynamics()
    D, C, g = dynamics.D, dynamics.C, dynamics.g
    p2, p3 = "(l1x + rc2x*cos(q2) + rc2z*sin(q2))", "(l1x + rc3x*cos(q3) + l2z*sin(q2) + rc3z*sin(q3))"
    p4, p5 = "(l1x + l5x*cos(q3) + rc4x*cos(q2) + rc4z*sin(q2))", "(l1x + rc5x*cos(q3) + rc5z*sin(q3))"
    assert identical(D[0, 0], f"I1 + m2*{p2}**2 + m3*{p3}**2 + m4*{p4}**2 + m5*{p5}**2")
    assert identical(D[1, 1], "I2 + I4 + m2*(rc2x**2 + rc2z**2) + m3*l2z**2 + m4*(rc4x**2 + rc4z**2)")
    assert identical(D[2, 2], "I3 + I5 + m3*(rc3x**2 + rc3z**2) + m4*l5x**2 + m5*(rc5x**2 + rc5z**2)")
    along, across = "(m3*l2z*rc3z + m4*l5x*rc4x)", "(m3*l2z*rc3x + m4*l5x*rc4z)"
    assert identical(D[1, 2], f"{along}*cos(q2 - q3) + {across}*sin(q2 - q3)")
    h2 = f"(m2*{p2}*(rc2z*cos(q2) - rc2x*sin(q2)) + m3*{p3}*l2z*cos(q2)"
    h2 += f" + m4*{p4}*(rc4z*cos(q2) - rc4x*sin(q2)))"
    h3 = f"(m3*{p3}*(rc3z*cos(q3) - rc3x*sin(q3)) - m4*{p4}*l5x*sin(q3)"
    h3 += f" + m5*{p5}*(rc5z*cos(q3) - rc5x*sin(q3)))"
    kappa = f"({across}*cos(q2 - q3) - {along}*sin(q2 - q3))"
    assert identical(C[0, 0], f"{h2}*qd2 + {h3}*qd3")
    assert identical(C[0, 1], f"{h2}*qd1")
    assert identical(C[0, 2], f"{h3}*qd1")
    assert identical(C[1, 0], f"-{h2}*qd1")
    assert identical(C[2, 0], f"-{h3}*qd1")
    assert identical(C[1, 2], f"-{kappa}*qd3")
    assert identical(C[2, 1], f"{kappa}*qd2")
    g2 = "(m2*rc2z + m3*l2z + m4*rc4z)*sin(q2) + (m2*rc2x + m4*rc4x)*cos(q2)"
    g3 = "(m3*rc3z + m5*rc5z)*sin(q3) + (m3*rc3x + m4*l5x + m5*rc5x)*cos(q3)"
    assert identical(g[1], f"-gz*({g2})")
    assert identical(g[2], f"-gz*({g3})")
    zeros = (D[0, 1], D[0, 2], C[1, 1], C[2, 2], g[0])
    assert zeros == (0,) * 5


@pytest.mark.parametrize("dynamics", [main_axes_dynamics, two_link_dynamics])
def test_coriolis_matrix_is_skew_with_the_inertia_identically(dynamics):
    assert is_skew(dynamics())


def test_two_link_arm_is_the_textbook_s():
    """Spong & Vidyasagar 1989, the planar elbow manipulator, with `h = -m2 l1 lc2 sin(q2)`."""
    dynamics = two_link_dynamics()
    h = "(-m2*l1*lc2*sin(q2))"
    d12, d22 = "m2*(lc2**2 + l1*lc2*cos(q2)) + I2", "m2*lc2**2 + I2"
    d11 = "m1*lc1**2 + m2*(l1**2 + lc2**2 + 2*l1*lc2*cos(q2)) + I1 + I2"
    expected = {
        "D": [[d11, d12], [d12, d22]],
        "C": [[f"{h}*qd2", f"{h}*(qd1 + qd2)"], [f"-{h}*qd1", "0"]],
        "g": [["(m1*lc1 + m2*l1)*gy*cos(q1) + m2*lc2*gy*cos(q1 + q2)"], ["m2*lc2*gy*cos(q1 + q2)"]],
    }
    for name, rows in expected.items():
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                assert identical(getattr(dynamics, name)[i, j], text), (name, i, j)


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


def test_two_link_arm_is_the_kernel(load, rng):
    robot = interpreted(load(TWO_LINK).with_gravity((0, -9.81, 0)))
    dynamics = two_link_dynamics()
    values = dict(m1=3.5, m2=1.75, l1=0.45, lc1=0.22, lc2=0.15, I1=0.06, I2=0.031, gy=9.81)  # noqa: C408
    agrees(dynamics, robot, rng, [values[symbol.name] for symbol in dynamics.parameters])
    agrees(tree_dynamics(robot.tree, gravity=robot.gravity.tolist()), robot, rng)


def test_printed_formulas_evaluate_to_the_model(arm, rng):
    p = main_axes_parameters(arm)
    q, qd = rng.uniform(-3, 3, (2, 3))
    values = {s.name: v for s, v in zip(main_axes_dynamics().parameters, parameters_of(p), strict=True)}
    values |= {f"q{k + 1}": q[k] for k in range(3)} | {f"qd{k + 1}": qd[k] for k in range(3)}
    lines = [line.split(" = ") for line in formulas("main_axes").splitlines()]
    found = {name: float(sp.sympify(text).subs(values)) for name, text in lines}
    expected = {"d": mass_matrix(p, q), "c": coriolis_matrix(p, q, qd), "g": gravity_torque(p, q)}
    assert len(found) == 6 + 9 + 3
    for name, value in found.items():
        index = tuple(int(digit) - 1 for digit in name[1:])
        assert value == pytest.approx(expected[name[0]][index], rel=1e-12, abs=1e-12), name
    assert "m5*(l1x + rc5x*cos(q3) + rc5z*sin(q3))**2" in formulas("main_axes")  # as one reads it


def test_formulas_of_a_urdf(load, tmp_path, rng):
    robot = load(TWO_LINK)
    text = formulas(str(tmp_path / "robot.urdf"))
    assert "d22 = 0.070375\n" in text
    assert "d12 = 0.118125*cos(q2) + 0.070375\n" in text
    agrees(tree_dynamics(robot.tree), robot, rng)


def test_formulas_of_something_else_are_refused(tmp_path, rng):
    with pytest.raises(
        UnknownNameError,
        match=r"unknown robot 'irb', did you mean 'irb140'\?: known are irb140, .*; and main_axes, two_link",
    ):
        formulas("irb")
    (tmp_path / "long.urdf").write_text(random_urdf(rng, 4))
    for name, n in ((str(tmp_path / "long.urdf"), 4), ("irb140", 6)):
        with pytest.raises(
            UnknownNameError, match=f"sums of {n} axes would be too long .* as --axes 3, or wr"
        ):
            formulas(name)
    with pytest.raises(RobotError, match=r"'irb1400' has a closed loop \(parallelogram\): its joints cannot"):
        formulas("irb1400", axes=3)
    with pytest.raises(RobotError, match="'irb140' has 6 joints: expected 1 to 6 axes, got 7"):
        formulas("irb140", axes=7)
    with pytest.raises(UnknownNameError, match="there is no axis 3: expected 1 to 2"):
        formulas("irb140", axes=2, axis=3)
    with pytest.raises(UnknownNameError, match="main_axes has no axes to lock"):
        formulas("main_axes", axes=2)
    with pytest.raises(UnknownNameError, match="no sums for 'Jd': expected tau, M, C, g, T or J, or code"):
        formulas("irb140", "Jd")
    with pytest.raises(RobotError, match=r"no such robot file: .*none\.urdf"):
        formulas(str(tmp_path / "none.urdf"))


def test_compiled_function_is_the_same_one(rng):
    dynamics = two_link_dynamics()
    q, qd = rng.normal(size=(2, 4, 5, 2))
    values = rng.uniform(0.5, 2, 8)
    compiled, plain = dynamics.function(), dynamics.function(compiled=False)
    for a, b in zip(compiled(q, qd, values), plain(q, qd, values), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    assert [a.shape for a in compiled(q, qd, values)] == [(4, 5, 2, 2), (4, 5, 2, 2), (4, 5, 2)]
    assert [a.shape for a in plain(q[0, 0], qd, values)] == [(4, 5, 2, 2), (4, 5, 2, 2), (4, 5, 2)]
    assert [a.shape for a in plain(q[0, 0], qd[0, 0], values)] == [(2, 2), (2, 2), (2,)]


def test_misuse_is_named():
    function = two_link_dynamics().function(compiled=False)
    with pytest.raises(ValueError, match=r"expected q and qd of shape \(..., 2\), got \(3,\)"):
        function(np.zeros(3), np.zeros(3), np.ones(8))
    with pytest.raises(ValueError, match=r"expected 8 parameters \(I1, I2, gy, .*\), got shape \(1,\)"):
        function(np.zeros(2), np.zeros(2), [1.0])


def test_angular_jacobian_is_that_of_the_turned_axis():
    q1, q2 = sp.symbols("q1:3", real=True)
    R = rotation_about((0, 0, 1), q1) * rotation_about((0, 1, 0), q2)
    Jw = angular_jacobian(R, (q1, q2)).applyfunc(trigonometric_sum)
    assert Jw == sp.Matrix([[-sp.sin(q2), 0], [0, 1], [sp.cos(q2), 0]])


def test_sympy_is_loaded_for_formulas_only():
    program = (
        "import sys, twin, scenarios.cli.command_line\n"
        "twin.load('irb1400'); print('sympy' in sys.modules)\n"
        "for name in [m for m in sys.modules if m.startswith('twin')]: del sys.modules[name]\n"
        "import twin.dynamics.symbolic.trees; twin.dynamics.symbolic.trees.formulas('two_link')\n"
        "print('twin.multibody.recursions' in sys.modules or 'twin.multibody.kernels' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
