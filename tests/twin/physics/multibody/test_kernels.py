"""The tracer, the modules that it writes, and kernels that are called with arrays of another shape."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba import njit, types

import twin
from twin.physics.control.control_law import MODEL_KERNELS
from twin.physics.multibody import kernels, trace
from twin.physics.multibody.kernels import KERNELS
from twin.physics.robot.evaluation import uncompiled


def test_zeros_and_ones_fold_away():
    t = trace.Trace()
    x, y = t.inputs("x", 2)
    assert (0.0 * x + 1.0 * y) is y
    assert (x - x).constant == 0.0
    assert (x + 0.0) is x
    negative = -x
    assert -negative is x
    assert (t.scalar(2.0) * 3.0 - 1.0).constant == 5.0
    assert (x + (-y)) is (x - y)
    assert (x * y) is (x * y)


def test_source_computes_the_traced_values():
    t = trace.Trace()
    x, y, z = t.inputs("x", 3)
    shared = x * y - z
    results = [
        -(shared - (x - (y - z)) * -2.0),
        t.cos(shared) * (shared + 1.5) - t.sin(-x),
        4.0 - (x - (y + (z - 1.0))),
        7.0,
        x * (y * z) - x * -y,
        t.reciprocal(shared * z) * y,
    ]
    lines, values, inputs = trace.write_python(results)
    assert sorted(inputs) == ["x[0]", "x[1]", "x[2]"]
    a, b, c = 0.3, -1.7, 2.9
    names = {"x": [a, b, c], "cos": math.cos, "sin": math.sin, "reciprocal": lambda value: 1 / value}
    exec("\n".join(lines), names)
    out = [eval(value, names) for value in values]
    s = a * b - c
    expected = [
        -(s + 2.0 * (a - (b - c))),
        math.cos(s) * (s + 1.5) + math.sin(a),
        4.0 - (a - (b + (c - 1.0))),
        7.0,
        a * (b * c) + a * b,
        b / (s * c),
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-15)
    text = "\n".join([*lines, *values])
    assert text.count("x_0 * x_1") == 1  # written once, reused by name


@pytest.mark.parametrize("title", kernels.IN_LANES)
@pytest.mark.parametrize("count", [0, 1, kernels.LANES - 1, kernels.LANES + 1, 100])
def test_a_batch_in_lanes_has_the_bits_of_its_samples(arm, title, count, rng):
    """Also for the last ones, which do not fill the lanes, and far from where an angle is usual."""
    vectors = rng.uniform(-2, 2, (3, count, 6)) * rng.choice([1e-3, 1, 1e7], (count, 1))
    shared = arm.single_sample.inertias, arm.single_sample.gravity  # writable: the machine code that all use
    out = np.full((count, 6), np.nan)
    getattr(arm.kernels, f"{title}_batch")(*vectors, *shared, out)
    one = np.empty(6)
    for k in range(count):
        getattr(arm.kernels, title)(*vectors[:, k], *shared, one)
        assert one.tobytes() == out[k].tobytes()


def test_the_arithmetic_of_a_batch_in_lanes_is_vector_code():
    """Which it is only while the compiler sees that no sample's result is another's input."""
    from numba import njit

    arm = twin.load("two_link")
    batch = njit(arm.kernels.inverse_dynamics_batch.py_func)  # what comes from the cache cannot be read
    batch(*np.zeros((3, 1, 2)), arm.inertias, arm.gravity, np.empty((1, 2)))
    (text,) = batch.inspect_llvm().values()
    assert len(re.findall(r"fmul <\d+ x double>", text)) > 20


def test_runs_without_the_compiler(irb140, tmp_path):
    """With NUMBA_DISABLE_JIT=1 the same sources run as plain Python, to round-off the same."""
    program = (
        "import sys, numpy as np, twin\n"
        "r = twin.load('irb140'); q = np.linspace(-1, 1, 18).reshape(3, 6); q[0] = 0\n"
        "tau, qdd = twin.inverse_dynamics(r, q, 2 * q, -q), twin.forward_dynamics(r, q, q, q)\n"
        "T = twin.forward_kinematics(r, q)\n"
        "rows, nearest = twin.inverse_kinematics(r, T), twin.inverse_kinematics(r, T, near=q)\n"
        "results = tau, qdd, rows, nearest\n"
    )
    compiled = {}
    exec(program, compiled)
    plain = f"{program}np.savez(sys.argv[1], *results)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    words = [sys.executable, "-W", "error", "-c", plain, str(tmp_path / "out.npz")]
    subprocess.run(words, env=environment, check=True)
    found = np.load(tmp_path / "out.npz")
    for name, expected in zip(found, compiled["results"], strict=True):
        np.testing.assert_allclose(found[name], expected, rtol=1e-13, atol=1e-12)


def test_importing_twin_is_light():
    program = (
        "import sys, twin; print([m for m in ('numba', 'urchin', 'pybullet', 'scipy') if m in sys.modules])\n"
        "import scenarios.shell.command_line; twin.load('irb1400'); print('sympy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["[]", "False"]


def test_public_names_resolve():
    for name in twin.__all__:
        item = getattr(twin, name)
        assert callable(item) or isinstance(item, ModuleType | str), name
        shadowed = Path(twin.__file__).with_name(f"{name}.py").exists() and not isinstance(item, ModuleType)
        assert not shadowed, f"twin/{name}.py would replace twin.{name}"


def arguments(robot, title):
    """Return the arguments of a kernel by name."""
    shapes = KERNELS[title].signature(robot.n, robot.tree.n).shapes(robot.n, robot.tree.n)
    return {name: np.zeros(shape) for name, shape in shapes.items()}


def other_shapes(array):
    """Too short and too long, of as many dimensions."""
    for axis in range(array.ndim):
        for size in (0, 1, array.shape[axis] + 1):
            yield (*array.shape[:axis], size, *array.shape[axis + 1 :])


@pytest.mark.parametrize("title", MODEL_KERNELS)
@pytest.mark.parametrize("how", ["compiled", "uncompiled"])
def test_an_array_of_another_shape_is_refused(irb140, title, how):
    robot = irb140 if how == "compiled" else uncompiled(irb140)
    kernel = getattr(robot.kernels, title)
    right = arguments(robot, title)
    kernel(*right.values())
    for name, array in right.items():
        for shape in other_shapes(array):
            with pytest.raises(ValueError, match="expected") as refused:
                kernel(*(right | {name: np.zeros(shape)}).values())
            assert str(refused.value) == f"expected {name} of {title} of shape {array.shape}, got {shape}"


def test_also_where_compiled_code_calls_it_by_a_pointer(irb140):
    """As control laws do: what is beyond the array stays as it was."""
    vector, matrix = (types.Array(types.float64, dimensions, "C") for dimensions in (1, 2))
    pointer = types.FunctionType(types.void(vector, matrix, matrix))

    @njit(types.void(pointer, vector, matrix, matrix), nogil=True)
    def law(mass_matrix, q, inertias, out):
        mass_matrix(q, inertias, out)

    q, inertias, _ = arguments(irb140, "mass_matrix").values()
    memory = np.zeros((6, 6))
    law(irb140.kernels.mass_matrix, q, inertias, memory)
    memory[:] = np.nan
    with pytest.raises(ValueError, match=r"^expected out of mass_matrix of shape \(6, 6\), got \(6, 1\)$"):
        law(irb140.kernels.mass_matrix, q, inertias, memory.ravel()[:6].reshape(6, 1))
    assert np.all(np.isnan(memory))
