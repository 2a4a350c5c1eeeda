"""Recording of scalar arithmetic, and its output as straight-line Python.

The recursions of `multibody/recursions.py` work with any objects that can be added and multiplied.  With
the scalars of this module they record a trace.  In it, constants such as the zeros and ones of a robot's
geometry are evaluated, repeated expressions occur once, and unused ones are omitted.  `write_python` converts
the trace to Python, which numba compiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

FUNCTIONS = ("cos", "sin", "sqrt", "exp", "tanh", "fabs")
"""Functions that a trace contains."""


class Scalar:
    """Scalar expression: a constant, an input, or an operation on other scalars."""

    __slots__ = ("args", "label", "op", "trace")

    def __init__(self, trace: Trace, op: str, args: tuple) -> None:
        self.trace = trace
        self.op = op
        self.args = args
        self.label: str | None = None

    def __add__(self, other: Scalar | float) -> Scalar:
        return self.trace.add(self, self.trace.scalar(other))

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self.trace.subtract(self, self.trace.scalar(other))

    def __mul__(self, other: Scalar | float) -> Scalar:
        return self.trace.multiply(self, self.trace.scalar(other))

    def __radd__(self, other: float) -> Scalar:
        return self.trace.scalar(other) + self

    def __rsub__(self, other: float) -> Scalar:
        return self.trace.scalar(other) - self

    def __rmul__(self, other: float) -> Scalar:
        return self.trace.scalar(other) * self

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return self.trace.divide(self, self.trace.scalar(other))

    def __rtruediv__(self, other: float) -> Scalar:
        return self.trace.divide(self.trace.scalar(other), self)

    def __abs__(self) -> Scalar:
        return self.trace.function("fabs", self)

    def __pow__(self, exponent: int) -> Scalar:
        if not (isinstance(exponent, int) and exponent > 0):
            raise TypeError(f"expected a power of a positive integer, got {exponent}")
        return self if exponent == 1 else self * self ** (exponent - 1)

    def __getattr__(self, name: str) -> Callable[[], Scalar]:
        """Return a function of NumPy, which calls `x.sin()` for `numpy.sin(x)` if x is no number."""
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return lambda: self.trace.function(name, self)

    def __neg__(self) -> Scalar:
        return self.trace.negate(self)

    @property
    def constant(self) -> float | None:
        """Value of a constant; `None` for any other expression."""
        return self.args[0] if self.op == "const" else None


class Trace:
    """Scalars of one function, in which equal expressions are the same object."""

    def __init__(self) -> None:
        self._nodes: dict[tuple, Scalar] = {}

    def _node(self, op: str, *args: object) -> Scalar:
        key = (op, *(id(a) if isinstance(a, Scalar) else repr(a) for a in args))
        if key not in self._nodes:
            self._nodes[key] = Scalar(self, op, args)
        return self._nodes[key]

    def scalar(self, value: Scalar | float) -> Scalar:
        """Return `value` if it is a scalar, or else the constant of that value."""
        if isinstance(value, Scalar):
            return value
        return self._node("const", float(value) + 0.0)  # + 0.0 turns -0.0 into 0.0

    def inputs(self, name: str, count: int) -> list[Scalar]:
        """Return the elements `name[0]`, `name[1]`, ... of an array argument."""
        return [self._node("input", f"{name}[{i}]") for i in range(count)]

    def table(self, name: str, rows: int, columns: int) -> list[list[Scalar]]:
        """Return the elements `name[i, j]` of a two-dimensional array argument."""
        return [[self._node("input", f"{name}[{i}, {j}]") for j in range(columns)] for i in range(rows)]

    def cos(self, x: Scalar) -> Scalar:
        """Return the cosine of `x`."""
        return self._node("cos", x)

    def sin(self, x: Scalar) -> Scalar:
        """Return the sine of `x`."""
        return self._node("sin", x)

    def sqrt(self, x: Scalar) -> Scalar:
        """Return the square root of `x`."""
        return self._node("sqrt", x)

    def function(self, name: str, x: Scalar) -> Scalar:
        """Return a function of `FUNCTIONS` at `x`."""
        return getattr(self, name)(x) if name in ("cos", "sin") else self._node(name, x)

    def divide(self, a: Scalar, b: Scalar) -> Scalar:
        """Return `a / b`."""
        if b.constant is not None:
            return self.multiply(a, self.scalar(1.0 / b.constant))
        return a if a.constant == 0 else self._node("/", a, b)

    def reciprocal(self, x: Scalar) -> Scalar:
        """Return `1 / x` for a positive `x`, and NaN otherwise."""
        return self._node("reciprocal", x)

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        """Return `a + b`."""
        if a.constant == 0:
            return b
        if b.constant == 0:
            return a
        if a.constant is not None and b.constant is not None:
            return self.scalar(a.constant + b.constant)
        if b.op == "-x":
            return self.subtract(a, b.args[0])
        if a.op == "-x":
            return self.subtract(b, a.args[0])
        return self._nodes.get(("+", id(b), id(a))) or self._node("+", a, b)

    def subtract(self, a: Scalar, b: Scalar) -> Scalar:
        """Return `a - b`."""
        if b.constant == 0:
            return a
        if a.constant == 0:
            return self.negate(b)
        if a.constant is not None and b.constant is not None:
            return self.scalar(a.constant - b.constant)
        if a is b:
            return self.scalar(0.0)
        if b.op == "-x":
            return self.add(a, b.args[0])
        return self._node("-", a, b)

    def multiply(self, a: Scalar, b: Scalar) -> Scalar:
        """Return `a b`."""
        if a.op == "-x":
            return self.negate(self.multiply(a.args[0], b))
        if b.op == "-x":
            return self.negate(self.multiply(a, b.args[0]))
        if b.constant is not None:
            a, b = b, a
        if a.constant is not None:
            if b.constant is not None:
                return self.scalar(a.constant * b.constant)
            if a.constant == 0:
                return a
            if a.constant == 1:
                return b
            if a.constant < 0:
                return self.negate(self.multiply(self.scalar(-a.constant), b))
        return self._nodes.get(("*", id(b), id(a))) or self._node("*", a, b)

    def negate(self, a: Scalar) -> Scalar:
        """Return `-a`."""
        if a.constant is not None:
            return self.scalar(-a.constant)
        if a.op == "-x":
            return a.args[0]
        if a.op == "-":
            return self.subtract(a.args[1], a.args[0])
        return self._node("-x", a)


def name(prefix: str, scalars: Iterable[Scalar | float], suffixes: Sequence[str] = "xyz") -> None:
    """Name the components of a vector in the Python source, unless they already have names."""
    for scalar, suffix in zip(scalars, suffixes, strict=True):
        if isinstance(scalar, Scalar) and scalar.label is None and scalar.op not in ("const", "input"):
            scalar.label = f"{prefix}_{suffix}"


class PythonText(NamedTuple):
    """Python source that computes some scalars.

    Attributes:
        lines: one assignment per named quantity and per expression that is used more than once.
        values: one expression per scalar.
        inputs: inputs in the order of their first use.
    """

    lines: list[str]
    values: list[str]
    inputs: list[str]


_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "-x": 2}


def write_python(results: Sequence[Scalar | float]) -> PythonText:
    """Return the Python source that computes `results`."""
    uses: Counter[Scalar] = Counter()
    order: list[Scalar] = []
    pending = [(s, False) for s in reversed(results) if isinstance(s, Scalar)]
    seen: set[Scalar] = set()
    while pending:
        scalar, done = pending.pop()
        if done:
            order.append(scalar)
        elif scalar not in seen:
            seen.add(scalar)
            operands = [a for a in scalar.args if isinstance(a, Scalar)]
            uses.update(operands)
            pending.append((scalar, True))
            pending.extend((a, False) for a in reversed(operands))

    text: dict[Scalar, tuple[str, int]] = {}
    taken: set[str] = set()
    lines = []
    for scalar in order:
        expression = _expression(scalar, text)
        if scalar.op in ("const", "input"):
            text[scalar] = expression
            if scalar.op == "input" and uses[scalar] > 1:
                target = scalar.args[0].replace("[", "_").replace(", ", "_").rstrip("]")
                lines.append(f"{target} = {scalar.args[0]}")
                text[scalar] = (target, 3)
        elif scalar.op != "-x" and (scalar.label or uses[scalar] > 1):
            target = scalar.label if scalar.label and scalar.label not in taken else f"t{len(lines)}"
            taken.add(target)
            lines.append(f"{target} = {expression[0]}")
            text[scalar] = (target, 3)
        else:
            text[scalar] = expression
    values = [text[r][0] if isinstance(r, Scalar) else repr(float(r)) for r in results]
    return PythonText(lines, values, [scalar.args[0] for scalar in order if scalar.op == "input"])


def _expression(scalar: Scalar, text: dict[Scalar, tuple[str, int]]) -> tuple[str, int]:
    """Return the source of one operation, and its precedence (3 for an atom); `text` has its operands."""
    if scalar.op == "const":
        return (repr(scalar.args[0]), 3 if scalar.args[0] >= 0 else 1)
    if scalar.op == "input":
        return (scalar.args[0], 3)
    if scalar.op in (*FUNCTIONS, "reciprocal"):
        return (f"{scalar.op}({text[scalar.args[0]][0]})", 3)
    level = _PRECEDENCE[scalar.op]
    if scalar.op == "-x":
        inner, binds = text[scalar.args[0]]
        return (f"-{inner}" if binds >= 2 else f"-({inner})", 1)
    (left, left_binds), (right, right_binds) = text[scalar.args[0]], text[scalar.args[1]]
    left = left if left_binds >= level else f"({left})"
    right = right if right_binds > level else f"({right})"
    return (f"{left} {scalar.op} {right}", level)
