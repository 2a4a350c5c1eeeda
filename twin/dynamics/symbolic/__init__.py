"""The dynamics once more, derived by Euler and Lagrange with sympy."""
