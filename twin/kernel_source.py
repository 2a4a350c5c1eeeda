"""How traced quantities are written as the functions of a Python module.

Of a quantity there are `f`, which fills `out`, and `f_batch`, which does so for every row; `f_one` checks its
vectors first, see `twin/one_sample.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from twin.trace import written

HEADER = '''"""Kernels of one robot's geometry, written by twin/kernels.py; not to be edited."""

from math import cos, sin

import numpy as np
from numba import njit


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


def of_sample(title: str, signature: Signature, values: Sequence[Any]) -> str:
    """The function that computes `values`, the entries of `out`, from arrays that are not checked."""
    text = written(values)
    body = [f'"""{title.replace("_", " ").capitalize()}: `out` is {signature.out}."""', *text.lines]
    for place, value in zip(product(*map(range, signature.out)), text.values, strict=True):
        body.append(f"out[{', '.join(map(str, place))}] = {value}")
    return _function(title, signature, body, "cache=True")


def of_batch(title: str, signature: Signature) -> str:
    """Its loop over the samples of a batch."""
    row = ", ".join((*(f"{s}[k]" for s in signature.samples), *signature.shared, "out[k]"))
    body = [f'"""`{title}` of every row."""', "for k in range(out.shape[0]):", f"    {title}({row})"]
    return _function(f"{title}_batch", signature, body, "cache=True, nogil=True")


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
    return _function(f"{title}_one", signature, body, "cache=True")


def _function(title: str, signature: Signature, body: list[str], options: str) -> str:
    head = f"@njit({options})\ndef {title}({signature.parameters}):"
    return "\n".join((f"\n\n{head}", *(f"    {line}" for line in body), ""))
