"""Equations of motion as formulas, derived with sympy by the Euler-Lagrange method."""

from twin.base.errors import TwinError

try:
    import sympy as sympy
except ImportError as error:
    raise TwinError(f"formulas as sums need sympy ({error}): pip install 'irb-twin[formulas]'") from error
