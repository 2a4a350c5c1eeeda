import pytest
import sympy as sp

from twin.dynamics.symbolic.euler_lagrange import number
from twin.dynamics.symbolic.trigonometric_sums import trigonometric_sum


def test_trigonometric_sums():
    a, b, x = sp.symbols("a b x", real=True)
    cos, sin = sp.cos, sp.sin
    assert trigonometric_sum(cos(a) ** 2 + sin(a) ** 2) == 1
    assert trigonometric_sum(cos(a) * cos(b) + sin(a) * sin(b)) == cos(a - b)
    assert trigonometric_sum(x * cos(a) ** 2) == x * cos(2 * a) / 2 + x / 2
    assert trigonometric_sum(sin(b - a)) == -sin(a - b)
    assert trigonometric_sum(sin(a) ** 3) == 3 * sin(a) / 4 - sin(3 * a) / 4
    assert trigonometric_sum((x + 1) ** 2) == x**2 + 2 * x + 1
    shifted = cos(a + number(0.1))  # an angle of its own
    assert trigonometric_sum(shifted**2 + sin(a + number(0.1)) ** 2) == 1
    messy = (cos(a) - 2 * sin(a - 2 * b)) ** 3 * (x - sin(b) * shifted)
    at = {a: 0.7, b: -1.9, x: 0.4}
    assert float(trigonometric_sum(messy).subs(at)) == pytest.approx(float(messy.subs(at)), rel=1e-13)
