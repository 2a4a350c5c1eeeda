"""Equations of motion as formulas, derived with sympy by the Euler-Lagrange method."""
