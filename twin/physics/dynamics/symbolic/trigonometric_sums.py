"""Trigonometric polynomials as sums of cosines and sines, a normal form in which equal terms cancel."""

from collections import defaultdict
from typing import Any

import sympy as sp


def trigonometric_sum(expression: Any) -> Any:
    """Return an expression with its products of sines and cosines written as sums.

    Args:
        expression: polynomial in symbols and in sines and cosines of angles. The result is unique if the
            angles are integer combinations of symbols, as in `cos(q1 - 2*q2)`.

    Returns:
        `sum(a_k cos(k.q) + b_k sin(k.q))`, where the coefficients are polynomials in the other symbols.
    """
    expression = sp.sympify(expression)
    waves = sorted(expression.atoms(sp.sin, sp.cos), key=sp.default_sort_key)
    combinations = {wave: _combination(wave.args[0]) for wave in waves}
    angles = sorted({angle for k in combinations.values() for angle in k}, key=sp.default_sort_key)
    if not angles:
        return sp.expand(expression)
    turns = [sp.Dummy() for _ in angles]  # exp(i angle)
    backs = [sp.Dummy() for _ in angles]  # exp(-i angle)
    exponentials = {}
    for wave, k in combinations.items():
        ahead, behind = sp.Integer(1), sp.Integer(1)
        for angle, turn, back in zip(angles, turns, backs, strict=True):
            count = k.get(angle, 0)
            ahead *= turn**count if count >= 0 else back**-count
            behind *= back**count if count >= 0 else turn**-count
        cosine = isinstance(wave, sp.cos)
        exponentials[wave] = (ahead + behind) / 2 if cosine else (ahead - behind) / (2 * sp.I)
    polynomial = expression.xreplace(exponentials)
    others = sorted(polynomial.free_symbols.difference(turns, backs), key=sp.default_sort_key)
    ring = sp.ring([*turns, *backs, *others], sp.QQ_I)[0]
    return _as_waves(ring.from_expr(polynomial), angles, others)


def _combination(angle: Any) -> dict[Any, int]:
    """Return an angle as `{symbol: integer}`; an angle that is no such combination counts as one symbol."""
    terms = angle.as_coefficients_dict()
    if all(symbol.is_Symbol and count.is_Integer for symbol, count in terms.items()):
        return {symbol: int(count) for symbol, count in terms.items()}
    return {angle: 1}


def _as_waves(polynomial: Any, angles: list[Any], others: list[Any]) -> Any:
    """Convert exponentials to cosines and sines, with `exp(i a) exp(-i a) = 1`."""
    n = len(angles)
    coefficients: dict[tuple[int, ...], Any] = defaultdict(lambda: sp.QQ_I(0))
    for powers, coefficient in polynomial.terms():
        k = tuple(powers[i] - powers[n + i] for i in range(n))
        coefficients[(*k, *powers[2 * n :])] += coefficient
    terms = []
    for powers, coefficient in coefficients.items():
        k = powers[:n]
        if k < (0,) * n or not coefficient:
            continue  # the coefficients of k and -k are conjugate: only the first of the two is used
        angle = sum((count * symbol for count, symbol in zip(k, angles, strict=True)), sp.Integer(0))
        twice = 2 if any(k) else 1
        wave = sp.QQ.to_sympy(coefficient.x) * sp.cos(angle) - sp.QQ.to_sympy(coefficient.y) * sp.sin(angle)
        terms.append(twice * wave * sp.Mul(*(s**p for s, p in zip(others, powers[n:], strict=True))))
    return sp.Add(*(sp.expand(term) for term in terms))
