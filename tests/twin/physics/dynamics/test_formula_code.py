"""Equations as C and Python code: bits, numbers of operations, base parameters, locked axes."""

import ctypes
import subprocess

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from twin.base.errors import UnknownNameError
from twin.data.identification.torque_model import base_parameters
from twin.physics.dynamics.formula_code import FORMULAS, formula_code
from twin.physics.robot.loops import locked

pytestmark = pytest.mark.slow("derives equations as sums")

EXACT = {
    "tau": twin.inverse_dynamics, "M": twin.mass_matrix, "C": twin.coriolis_matrix, "g": twin.gravity_torque,
    "T": twin.forward_kinematics, "J": twin.jacobian, "Jd": twin.jacobian_dot,
}  # fmt: skip


def motions(n, count, samples, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (samples, count, n))


def counted(source):
    """Return the numbers of multiplications and additions that the header states."""
    (line,) = [line for line in source.splitlines() if "multiplications" in line]
    words = line.removeprefix(" * ").split()
    return int(words[0]), int(words[2])


def python_function(source):
    module = {}
    exec(source, module)
    return next(value for name, value in module.items() if callable(value) and name not in ("cos", "sin"))


@pytest.mark.parametrize("parameters", ["numbers", "symbols", "base"])
def test_c_code_compiles_and_is_inverse_dynamics(parameters, irb140, tmp_path):
    """Numbers give the same bits; parameters as arguments change the order of operations."""
    robot = irb140.with_payload(twin.Payload(3.0, (0.0, 0.02, 0.1)))
    found = base_parameters(robot)
    columns = found.columns.tolist() if parameters == "base" else ()
    source = formula_code(robot, "tau", "c", parameters, columns)
    (tmp_path / "tau.c").write_text(source, encoding="utf-8")
    flags = ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "tau.so", tmp_path / "tau.c", "-lm"], check=True)
    library = ctypes.CDLL(str(tmp_path / "tau.so"))
    numbers = {
        "numbers": [],
        "symbols": [np.ascontiguousarray(robot.tree.inertias)],
        "base": [found.K @ robot.tree.inertias.reshape(-1)],
    }[parameters]
    pointer = ctypes.POINTER(ctypes.c_double)
    for motion in motions(6, 3, 50):
        expected, tau = twin.inverse_dynamics(robot, *motion), np.empty(6)
        arrays = [*(np.ascontiguousarray(vector) for vector in motion), *numbers, tau]
        library.irb140_tau(*(array.ctypes.data_as(pointer) for array in arrays))
        if parameters == "base":
            np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
        else:
            np.testing.assert_array_equal(tau, expected)


@pytest.mark.parametrize("name", ["irb1400", "irb1600"])
@pytest.mark.parametrize("quantity", FORMULAS)
def test_python_code_is_the_function_of_the_twin(name, quantity):
    robot = twin.load(name).mounted("wall")
    function = python_function(formula_code(robot, quantity, "python"))
    for motion in motions(6, len(FORMULAS[quantity].arguments), 5):
        expected = EXACT[quantity](robot, *motion)
        found = np.array(function(*motion.tolist()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * np.max(np.abs(expected)))


def test_numbers_of_operations_are_those_of_the_recursion():
    counts = {name: counted(formula_code(twin.load(name))) for name in ("irb140", "irb1400", "irb1600")}
    assert counts == {"irb140": (298, 282), "irb1400": (351, 321), "irb1600": (248, 212)}
    robot = twin.load("irb140")
    assert counted(formula_code(robot, parameters="symbols")) == (298, 297)
    base = base_parameters(robot).columns.tolist()
    assert len(base) == 36
    assert counted(formula_code(robot, "tau", "python", "base", base)) == (257, 242)


def test_locked_axes_move_with_the_last_one_that_is_free():
    robot = twin.load("irb1600").with_payload(twin.Payload(2.0, (0.0, 0.02, 0.1)))
    arm = locked(robot, 3)
    q, qd, qdd = np.zeros((3, 6))
    q[:3], qd[:3], qdd[:3] = motions(3, 3, 1)[0]
    expected = twin.inverse_dynamics(robot, q, qd, qdd)[:3]
    tau = python_function(formula_code(arm, "tau", "python"))(q[:3], qd[:3], qdd[:3])
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-13 * np.max(np.abs(expected)))
    T = np.array(python_function(formula_code(arm, "T", "python"))(q[:3]))
    np.testing.assert_allclose(T, twin.forward_kinematics(robot, q), rtol=0, atol=1e-15)
    bases = twin.joint_wrenches(robot, q, qd, qdd).base, twin.joint_wrenches(arm, q[:3], qd[:3], qdd[:3]).base
    np.testing.assert_allclose(*bases, rtol=0, atol=1e-10)


def test_the_command_prints_code_rows_of_sums_and_one_sentence_for_misuse(irb140, capsys):
    source = formula_code(twin.load("irb1600"), "M")
    assert source.startswith("/* irb1600: mass matrix, in kg m^2\n * joints: joint_1, ")
    assert main(["formulas", "irb140", "--quantity", "g", "--format", "c", "--parameters", "base"]) == 0
    assert "const double base[36], double g[6])" in capsys.readouterr().out
    assert main(["formulas", "irb1600", "--axes", "2", "--axis", "2", "--format", "latex"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["d_{12}", "d_{22}", "c_{21}", "c_{22}", "g_{2}"]
    with pytest.raises(UnknownNameError, match="unknown quantity 'h': known are tau, M, C, g, T, J, Jd"):
        formula_code(irb140, "h")
    for words, message in (
        (["--parameters", "base"], "--parameters requires --format c or python"),
        (["--quantity", "T", "--axes", "3"], "--axes and --axis do not apply to --quantity T as sums"),
        (["--format", "c", "--quantity", "T", "--parameters", "base"], "--parameters: T has no masses"),
    ):
        assert main(["formulas", "irb140", *words]) == 2
        assert message in capsys.readouterr().err
