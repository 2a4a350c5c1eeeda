"""Kernels, which control laws call, neither read nor write beyond the arrays that they are handed."""

import numpy as np
import pytest
from numba import njit, types

from twin.control.control_law import MODEL_KERNELS
from twin.multibody.kernels import KERNELS
from twin.robot.evaluation import uncompiled


def arguments(robot, title):
    """What a kernel asks for, by name."""
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
