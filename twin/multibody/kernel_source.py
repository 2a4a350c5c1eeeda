"""How traced quantities are written as the functions of a Python module.

Of a quantity there are `f`, which fills `out`, and `f_batch`, which does so for every row; `f_one` checks its
vectors first, see `twin/robot/evaluation.py`.  `f` refuses arrays of other shapes than its own, which it
would read or write beyond: control laws call it, which anybody writes.

Where a batch is worth compiling the arithmetic twice, it is done for `LANES` samples at a time, copied into
a table in which the same entry of neighbouring samples lies side by side: so the compiler can do several
samples with one instruction.  How a sample is rounded does not change; both ways give the same bits.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from twin.multibody.trace import Scalar, Trace, written

LANES = 32
"""Samples in the table of a batch, which must stay in the fastest cache."""

HEADER = '''"""Kernels of one robot's geometry, written by twin/multibody/kernels.py; not to be edited."""

from math import cos, sin

import numpy as np
from numba import njit

from twin.errors import ShapeError
from twin.jit import cached_njit


@njit(forceinline=True, error_model="numpy")
def reciprocal(x):
    """`1 / x`, and not a number where x is not positive, which no pivot of a mass matrix is."""
    return 1.0 / x if x > 0.0 else np.nan
'''


class Signature(NamedTuple):
    """A function's arguments, those that differ from sample to sample first, and the shape that it fills."""

    samples: tuple[str, ...]
    shared: tuple[str, ...]
    out: tuple[int, ...]

    @property
    def parameters(self) -> str:
        """All of them, as they are written."""
        return ", ".join((*self.samples, *self.shared, "out"))

    def shapes(self, n: int, n_tree: int) -> dict[str, tuple[int, ...]]:
        """The shapes of all, for n joints and the n_tree of the tree."""
        shared = {"inertias": (n_tree, 10), "gravity": (3,), "T_flange_tool": (4, 4)}
        return dict.fromkeys(self.samples, (n,)) | {s: shared[s] for s in self.shared} | {"out": self.out}


def of_sample(title: str, signature: Signature, n: int, n_tree: int, values: Sequence[Any]) -> str:
    """The function that computes `values`, the entries of `out`."""
    text = written(values)
    body = [f'"""{title.replace("_", " ").capitalize()}: `out` is {signature.out}."""']
    for name, shape in signature.shapes(n, n_tree).items():
        body.append(f"if {name}.shape != {shape}:")
        body.append(f'    raise ShapeError("{expected(title, name, shape)}", {name}.shape)')
    body += text.lines
    for place, value in zip(product(*map(range, signature.out)), text.values, strict=True):
        body.append(f"out[{', '.join(map(str, place))}] = {value}")
    return _function(title, signature, body, "")


def expected(title: str, name: str, shape: tuple[int, ...]) -> str:
    """What is said of an array of another shape."""
    return f"expected {name} of {title} of shape {shape}"


def of_batch(title: str, signature: Signature) -> str:
    """Its loop over the samples of a batch."""
    row = ", ".join((*(f"{s}[k]" for s in signature.samples), *signature.shared, "out[k]"))
    body = [f'"""`{title}` of every row."""', "for k in range(out.shape[0]):", f"    {title}({row})"]
    return _function(f"{title}_batch", signature, body, "nogil=True")


class Rows(Trace):
    """A trace of what is computed in the table: inputs that differ from sample to sample are its rows.

    So are the cosines and sines, which the library's functions compute one at a time.
    """

    def __init__(self, samples: tuple[str, ...], n: int) -> None:
        super().__init__()
        self.samples, self.n = samples, n
        self.turned: dict[tuple[str, Scalar], Scalar] = {}

    @property
    def count(self) -> int:
        """The number of rows so far."""
        return len(self.samples) * self.n + len(self.turned)

    def inputs(self, name: str, count: int) -> list[Scalar]:
        """The rows of an array argument, or its elements if the samples share it."""
        if name not in self.samples:
            return super().inputs(name, count)
        first = self.samples.index(name) * self.n
        return [self._row(first + i) for i in range(count)]

    def cos(self, x: Scalar) -> Scalar:
        """The row of the cosine of `x`."""
        return self._turned("cos", x)

    def sin(self, x: Scalar) -> Scalar:
        """The row of the sine of `x`."""
        return self._turned("sin", x)

    def _turned(self, function: str, x: Scalar) -> Scalar:
        if (function, x) not in self.turned:
            self.turned[function, x] = self._row(self.count)
        return self.turned[function, x]

    def _row(self, place: int) -> Scalar:
        return self._node("input", f"rows[{place}, k]")


def of_batch_in_lanes(title: str, signature: Signature, on: Rows, values: Sequence[Any]) -> str:
    """The loop over the samples of a batch, several at a time: `values` have been traced on `on`."""
    text, first = written(values), on.count
    used = set(text.inputs)
    copy = [f"rows[{i * on.n} + i, k] = {s}[start + k, i]" for i, s in enumerate(on.samples)]
    turn = []
    for (function, x), row in on.turned.items():
        if row.args[0] in used:
            angle = written([x])
            turn += [*angle.lines, f"{row.args[0]} = {function}({angle.values[0]})"]
    compute = [*text.lines, *(f"rows[{first + i}, k] = {value}" for i, value in enumerate(text.values))]
    body = [
        f'"""`{title}` of every row."""',
        f"rows = np.empty(({first + len(text.values)}, {LANES}))",
        f"results = out.reshape(out.shape[0], {len(text.values)})",
        f"for start in range(0, out.shape[0], {LANES}):",
        f"    count = min({LANES}, out.shape[0] - start)",
        "    for k in range(count):",
        f"        for i in range({on.n}):",
        *(f"            {line}" for line in copy),
        *(f"        {line}" for line in turn),
        "    for k in range(count):",
        *(f"        {line}" for line in compute),
        "    for k in range(count):",
        f"        for i in range({len(text.values)}):",
        f"            results[start + k, i] = rows[{first} + i, k]",
    ]
    return _function(f"{title}_batch", signature, body, "nogil=True")


def of_checked_sample(title: str, signature: Signature, n: int) -> str:
    """Itself, if its vectors can be used."""
    samples = signature.samples
    body = [
        f'"""`{title}` if its vectors have {n} finite entries; else false, and nothing is done."""',
        f"if {' or '.join(f'{s}.shape != ({n},)' for s in samples)}:",
        "    return False",
        "total = 0.0",
        f"for i in range({n}):",
        f"    total += {' + '.join(f'{s}[i]' for s in samples)}",
        "if not total - total == 0.0:  # infinite or not a number",
        "    return False",
        f"{title}({signature.parameters})",
        "return True",
    ]
    return _function(f"{title}_one", signature, body, "")


def _function(title: str, signature: Signature, body: list[str], options: str) -> str:
    head = f"@cached_njit({options})\ndef {title}({signature.parameters}):"
    return "\n".join((f"\n\n{head}", *(f"    {line}" for line in body), ""))
