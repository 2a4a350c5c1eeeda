"""Equations of motion as formulas: the Euler-Lagrange method with sympy, Norrlöf's Algorithm 2.

    D(q) qdd + C(q, qd) qd + g(q) = tau                       Norrlöf 1999, eq. (3.44)

D follows from the kinetic energy of the bodies, C from D by Christoffel symbols, and g from the potential
energy, by differentiation of the bodies' poses.  The derivation shares nothing with the recursion of
`multibody/recursions.py`, so that the two check each other.  The algorithm is the printed one with three
corrections, eq. (3.38), (3.43) and (3.45), which `tests/published/norrlof/main_axes.py` verifies.

Only this package imports sympy, because the import is slow.

Trigonometric polynomials become sums of cosines and sines, a normal form in which equal terms cancel.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from twin.physics.rotations.rotations import quaternion_from_matrix


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


Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]


class Body(NamedTuple):
    """Rigid body of the mechanism, as a function of the coordinates.

    Attributes:
        mass: mass, in [kg].
        com: (3, 1) centre of mass in base axes, in [m].
        rotation: (3, 3) rotation matrix from body axes to base axes.
        inertia: (3, 3) inertia tensor about the centre of mass, in body axes, in [kg m^2].
    """

    mass: Any
    com: sp.Matrix
    rotation: sp.Matrix
    inertia: sp.Matrix


@dataclass(frozen=True, eq=False)
class SymbolicDynamics:
    """Equations of motion of a mechanism, `D qdd + C qd + g = tau`.

    Attributes:
        q: n coordinates.
        qd: n velocities.
        D: (n, n) inertia matrix.
        C: (n, n) Coriolis matrix of Christoffel symbols, for which `Ddot - 2 C` is skew-symmetric.
        g: (n, 1) gravity torques.
    """

    q: tuple[sp.Symbol, ...]
    qd: tuple[sp.Symbol, ...]
    D: sp.Matrix
    C: sp.Matrix
    g: sp.Matrix

    @cached_property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """Symbols that are neither coordinates nor velocities, sorted by name."""
        symbols: set[Any] = self.D.free_symbols | self.C.free_symbols | self.g.free_symbols
        return tuple(sorted(symbols.difference(self.q, self.qd), key=lambda symbol: symbol.name))

    def entries(self) -> list[tuple[str, tuple[int, ...], Any]]:
        """Return array, index and formula of each entry; of D only the upper triangle."""
        n = len(self.q)
        D = [("D", (i, j), self.D[i, j]) for i in range(n) for j in range(i, n)]
        C = [("C", (i, j), self.C[i, j]) for i in range(n) for j in range(n)]
        return [*D, *C, *(("g", (i,), self.g[i]) for i in range(n))]

    def formulas(self) -> str:
        """Return the formulas as text with decimals, one entry per line; of D only the upper triangle."""
        return "".join(written(array.lower(), index, value) for array, index, value in self.entries())

    def source(self) -> str:
        """Return the source of a module with `dynamics(q, qd, parameters, D, C, g)`, which fills D, C, g."""
        entries = self.entries()
        shared, values = sp.cse([decimal(value) for *_, value in entries], sp.numbered_symbols("shared_"))
        inputs = {"q": self.q, "qd": self.qd, "parameters": self.parameters}
        lines = [f"{symbol} = {name}[{k}]" for name, of in inputs.items() for k, symbol in enumerate(of)]
        lines += [f"{symbol} = {_python(value)}" for symbol, value in shared]
        for (array, index, _), value in zip(entries, values, strict=True):
            lines.append(f"{array}[{', '.join(map(str, index))}] = {_python(value)}")
            if array == "D" and index[0] != index[1]:
                lines.append(f"D[{index[1]}, {index[0]}] = D[{index[0]}, {index[1]}]")
        return MODULE.replace("    pass\n", "".join(f"    {line}\n" for line in lines))

    def function(self, compiled: bool = True) -> Callable[..., Matrices]:
        """Return the formulas as a function `f(q, qd, parameters) -> (D, C, g)` of one sample or many.

        Args:
            compiled: whether to compile with numba, with a cache on disk, or to run the same source as plain
                Python.

        Returns:
            Function of `q` (..., n), `qd` (..., n) and the numbers `parameters` in the order of
            `.parameters`; its results are (..., n, n), (..., n, n) and (..., n).
        """
        source, n, count = self.source(), len(self.q), len(self.parameters)
        if compiled:
            from twin.base.jit import imported

            name = f"irb_twin_symbolic_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
            batch = imported(name, lambda: source).dynamics_batch
        else:
            namespace: dict[str, Any] = {}
            exec(source.replace("@cached_njit()\n", ""), namespace)
            batch = namespace["dynamics_batch"]

        def dynamics(q: ArrayLike, qd: ArrayLike, parameters: ArrayLike = ()) -> Matrices:
            q, qd = np.broadcast_arrays(np.asarray(q, dtype=np.float64), np.asarray(qd, dtype=np.float64))
            values = np.array(parameters, dtype=np.float64)
            if q.ndim == 0 or q.shape[-1] != n:
                raise ValueError(f"expected q and qd of shape (..., {n}), got {q.shape}")
            if values.shape != (count,):
                names = ", ".join(str(symbol) for symbol in self.parameters)
                raise ValueError(f"expected {count} parameters ({names}), got shape {values.shape}")
            rows = [np.array(a, order="C").reshape(-1, n) for a in (q, qd)]
            D, C, g = (np.empty((len(rows[0]), *shape)) for shape in ((n, n), (n, n), (n,)))
            batch(*rows, values, D, C, g)
            leading = q.shape[:-1]
            return D.reshape(*leading, n, n), C.reshape(*leading, n, n), g.reshape(*leading, n)

        return dynamics


MODULE = '''"""Equations of motion, written by dynamics/symbolic/euler_lagrange.py; not to be edited."""

from math import cos, sin

from twin.base.jit import cached_njit
from twin.physics.rotations.rotations import quaternion_from_matrix


@cached_njit()
def dynamics(q, qd, parameters, D, C, g):
    """Inertia matrix, Coriolis matrix and gravity of one sample."""
    pass


@cached_njit()
def dynamics_batch(q, qd, parameters, D, C, g):
    """`dynamics` of every row."""
    for k in range(q.shape[0]):
        dynamics(q[k], qd[k], parameters, D[k], C[k], g[k])
'''


def euler_lagrange(
    bodies: Sequence[Body],
    q: Sequence[sp.Symbol],
    qd: Sequence[sp.Symbol],
    gravity: Sequence[Any],
    tidy: Callable[[Any], Any] = sp.simplify,
    tidy_derivatives: Callable[[Any], Any] = sp.factor_terms,
) -> SymbolicDynamics:
    """Derive the equations of motion of rigid bodies.

    Args:
        bodies: moving bodies.
        q: coordinates on which their poses depend.
        qd: velocities of the coordinates.
        gravity: (3,) acceleration of gravity in base axes, in [m/s^2].
        tidy: function that simplifies the contribution of each body; that of sympy takes seconds and returns
            factored formulas.
        tidy_derivatives: function that simplifies the derivatives of these contributions.

    Source: Norrlöf 1999, Algorithm 2, steps 1 to 5, with eq. (3.38), (3.43) and (3.45) corrected.
    """
    n = len(q)
    D, V = sp.zeros(n, n), sp.Integer(0)
    christoffel = [sp.zeros(n, n) for _ in q]  # for each p the symbols c_ijp
    for body in bodies:
        d = _inertia(body, q, tidy)
        D += d
        for p in range(n):
            for i in range(n):
                for j in range(i, n):
                    c_ijp = sp.diff(d[p, j], q[i]) + sp.diff(d[p, i], q[j]) - sp.diff(d[i, j], q[p])
                    christoffel[p][i, j] += tidy_derivatives(c_ijp / 2)  # (3.46)
        V -= body.mass * tidy(sp.Matrix(gravity).dot(body.com))  # (3.39), gravity pointing down
    C = sp.zeros(n, n)
    for p in range(n):
        for i in range(n):
            for j in range(n):
                C[p, j] += christoffel[p][min(i, j), max(i, j)] * qd[i]  # (3.45): times the velocity
    g = sp.Matrix([tidy_derivatives(V.diff(coordinate)) for coordinate in q])  # (3.43): plus dV/dq
    return SymbolicDynamics(tuple(q), tuple(qd), D, C, g)


def _inertia(body: Body, q: Sequence[sp.Symbol], tidy: Callable[[Any], Any]) -> sp.Matrix:
    """Return a body's contribution to D (n, n): `m Jv^T Jv + Jw^T I Jw`, with `Jw` in body axes (3.38)."""
    Jv, Jw = body.com.jacobian(q), angular_jacobian(body.rotation, q).applyfunc(tidy)
    d = sp.zeros(len(q), len(q))
    for i in range(len(q)):
        for j in range(i, len(q)):
            turning = (Jw[:, i].T * body.inertia * Jw[:, j])[0, 0]
            d[i, j] = d[j, i] = body.mass * tidy(Jv[:, i].dot(Jv[:, j])) + tidy(turning)
    return d


def angular_jacobian(rotation: sp.Matrix, q: Sequence[sp.Symbol]) -> sp.Matrix:
    """Return the Jacobian (3, n) of a body's angular velocity in body axes, `R^T dR/dt = S(omega)`.

    Source: Norrlöf 1999, eq. (3.28) with its third row corrected, `[-w2, w1, 0]`, and (3.37).
    """
    columns = []
    for coordinate in q:
        S = rotation.T * rotation.diff(coordinate)
        columns.append(sp.Matrix([S[2, 1], S[0, 2], S[1, 0]]))
    return sp.Matrix.hstack(*columns)


def coordinates(n: int) -> tuple[tuple[sp.Symbol, ...], tuple[sp.Symbol, ...]]:
    """Return the symbols `q1, q2, ...` and `qd1, qd2, ...`."""
    return sp.symbols(f"q1:{n + 1}", real=True), sp.symbols(f"qd1:{n + 1}", real=True)


def rotation_about(axis: Sequence[Any], angle: Any) -> sp.Matrix:
    """Return the rotation (3, 3) by an angle about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    K = sp.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return sp.eye(3) + sp.sin(angle) * K + (1 - sp.cos(angle)) * K * K


def number(value: Any) -> Any:
    """Return a number as the exact fraction of its shortest decimal form, so that sympy does not round."""
    return value if isinstance(value, sp.Basic) else sp.Rational(repr(float(value)))


def written(name: str, index: Sequence[int], value: Any, style: Literal["text", "latex"] = "text") -> str:
    """Return a formula as a line, `d12 = ...` or in LaTeX `d_{12} = ...`; indices count from 0."""
    subscript = "".join(str(k + 1) for k in index)
    if style == "latex":
        name = f"{name}_{{{subscript}}}" if subscript else name
        return f"{name} = {sp.latex(decimal(value), full_prec=False)}\n"
    return f"{name}{subscript} = {sp.sstr(decimal(value), full_prec=False)}\n"


def decimal(expression: Any) -> Any:
    """Return a formula with decimals instead of fractions."""
    fractions = [r for r in sp.sympify(expression).atoms(sp.Rational) if not r.is_Integer]
    return sp.sympify(expression).xreplace({r: sp.Float(r, 17) for r in fractions})


def _python(expression: Any) -> str:
    """Return a formula as Python source."""
    return str(sp.pycode(expression, fully_qualified_modules=False))


def exact_rotation(R: np.ndarray) -> Any:
    """Return an exactly orthogonal rotation (3, 3) of fractions that equals `R` to round-off."""
    return _rotation_from_quaternion(quaternion_from_matrix(R))


def rotation_from_z(axis: np.ndarray) -> Any:
    """Return a rotation (3, 3) of fractions that rotates z to the unit vector `axis`, to round-off."""
    x, y, z = axis
    return _rotation_from_quaternion(np.array([1 + z, -y, x, 0]) if z > -0.5 else np.array([-y, 1 - z, 0, x]))


def _rotation_from_quaternion(quaternion: np.ndarray) -> Any:
    """Return the rotation matrix of a quaternion of any length.

    Source: Norrlöf 1999, eq. (2.15), divided by the square of the norm.
    """
    ratios = quaternion / np.max(np.abs(quaternion))
    whole = np.round(ratios)  # angles that equal a right angle to round-off are made exact
    s, x, y, z = (number(v) for v in np.where(np.abs(ratios - whole) < 1e-15, whole, ratios))
    K = sp.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return sp.eye(3) + (2 * s * K + 2 * K * K) / (s * s + x * x + y * y + z * z)
