"""Compiled functions of one robot, made by tracing the recursions over its tree.

`source` runs the recursions of `twin/recursion.py` on symbolic scalars, in the pendant's coordinates `q`
(`q_tree = G q + g0`, so forces are `G^T tau_tree` and closed loops cost nothing), and writes a Python module:
straight lines of arithmetic in which the robot's geometry has folded away.  Inertias, gravity and the tool
stay arguments, so a payload, a mounting or a tool needs no new kernel.  `kernels_for` keeps the module in
the user's cache folder, where numba keeps its machine code beside it.  `print(source(tree, G, g0))` shows it.

The recursions need the geometry alone; with `NUMBA_DISABLE_JIT=1` the same module runs as plain Python.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twin import recursion
from twin.kernel_cache import imported
from twin.trace import Scalar, Trace, assignments
from twin.tree import Loop, Tree

Results = list[tuple[str, Any]]


class Kernel(NamedTuple):
    """One compiled function: its arguments, those that differ from sample to sample first, and its trace."""

    samples: tuple[str, ...]
    shared: tuple[str, ...]
    out: str
    trace: Callable[[Symbols], Results]


class Symbols:
    """What a kernel is traced from: the arguments as symbols, and the recursions run on them.

    `trace` gives the symbols; what gives numbers in their place runs the kernel (`twin/uncompiled.py`).
    """

    def __init__(self, tree: Tree, G: np.ndarray, g0: np.ndarray, trace: Any = None) -> None:
        self.trace = Trace() if trace is None else trace
        self.tree, self.G, self.g0 = tree, G, g0
        self.n = G.shape[1]
        self.q = self.trace.inputs("q", self.n)
        self.qd = self.trace.inputs("qd", self.n)
        self.qdd = self.trace.inputs("qdd", self.n)
        self.inertias = self.trace.table("inertias", tree.n, 10)
        x, y, z = self.trace.inputs("gravity", 3)
        self.gravity: recursion.Vector = (x, y, z)
        self.T_flange_tool = self.trace.table("T_flange_tool", 4, 4)
        self.at = recursion.placements(tree, self.tree_positions(), self.trace)

    def tree_positions(self) -> list[Scalar]:
        """`G q + g0`."""
        return [rate + offset for rate, offset in zip(self.in_tree(self.q), self.g0.tolist(), strict=True)]

    def in_tree(self, rates: list[Any]) -> list[Scalar]:
        """`G` times joint velocities or accelerations."""
        return [self.weighted(row, rates) for row in self.G.tolist()]

    def in_pendant(self, tau_tree: list[Any]) -> list[Scalar]:
        """`G^T` times the forces along the tree's joints."""
        return [self.weighted(column, tau_tree) for column in self.G.T.tolist()]

    def weighted(self, weights: list[float], values: list[Any]) -> Scalar:
        """`sum(weight * value)`."""
        total = self.trace.scalar(0.0)
        for weight, value in zip(weights, values, strict=True):
            total = total + self.trace.scalar(value) * weight
        return total

    def torque(self, qd: list[Any], qdd: list[Any], gravity: recursion.Vector) -> list[Scalar]:
        """Inverse dynamics in the pendant's coordinates."""
        rates = (self.in_tree(qd), self.in_tree(qdd))
        return self.in_pendant(recursion.newton_euler(self.tree, self.at, *rates, self.inertias, gravity))


def _inverse_dynamics(on: Symbols) -> Results:
    return _vector(on.torque(on.qd, on.qdd, on.gravity))


def _bias(on: Symbols) -> Results:
    return _vector(on.torque(on.qd, [0.0] * on.n, on.gravity))


def _velocity_torque(on: Symbols) -> Results:
    return _vector(on.torque(on.qd, [0.0] * on.n, recursion.ZERO))


def _gravity_torque(on: Symbols) -> Results:
    return _vector(on.torque([0.0] * on.n, [0.0] * on.n, on.gravity))


def _mass_matrix(on: Symbols) -> Results:
    results = []
    for j in range(on.n):
        unit = [float(i == j) for i in range(on.n)]
        column = on.torque([0.0] * on.n, unit, recursion.ZERO)
        for i in range(j + 1):
            results.append((f"out[{i}, {j}]", column[i]))
            if i < j:
                results.append((f"out[{j}, {i}]", column[i]))
    return results


def _potential_energy(on: Symbols) -> Results:
    frames = recursion.world_frames(on.tree, on.at)
    return [("out[0]", recursion.potential_energy(on.tree, frames, on.inertias, on.gravity))]


def _tool_pose(on: Symbols) -> Results:
    R, p = recursion.tool_frame(on.tree, recursion.world_frames(on.tree, on.at), on.T_flange_tool)
    rows = [(*R[i], p[i]) for i in range(3)] + [(0.0, 0.0, 0.0, 1.0)]
    return [(f"out[{i}, {j}]", rows[i][j]) for i in range(4) for j in range(4)]


def _jacobian(on: Symbols) -> Results:
    frames = recursion.world_frames(on.tree, on.at)
    _, p = recursion.tool_frame(on.tree, frames, on.T_flange_tool)
    return _columns(on, recursion.jacobian(on.tree, frames, p))


def _jacobian_rate(on: Symbols) -> Results:
    frames = recursion.world_frames(on.tree, on.at)
    _, p = recursion.tool_frame(on.tree, frames, on.T_flange_tool)
    return _columns(on, recursion.jacobian_rate(on.tree, frames, p, on.in_tree(on.qd)))


def _vector(values: list[Any]) -> Results:
    return [(f"out[{i}]", value) for i, value in enumerate(values)]


def _columns(on: Symbols, columns: list[tuple[recursion.Vector, recursion.Vector]]) -> Results:
    rows = zip(*[(*v, *omega) for v, omega in columns], strict=True)
    return [
        (f"out[{i}, {j}]", value)
        for i, row in enumerate(rows)
        for j, value in enumerate(on.in_pendant(list(row)))
    ]


INERTIAL = ("inertias", "gravity")
KERNELS = {
    "inverse_dynamics": Kernel(("q", "qd", "qdd"), INERTIAL, "(n,)", _inverse_dynamics),
    "bias": Kernel(("q", "qd"), INERTIAL, "(n,)", _bias),
    "velocity_torque": Kernel(("q", "qd"), ("inertias",), "(n,)", _velocity_torque),
    "gravity_torque": Kernel(("q",), INERTIAL, "(n,)", _gravity_torque),
    "mass_matrix": Kernel(("q",), ("inertias",), "(n, n)", _mass_matrix),
    "potential_energy": Kernel(("q",), INERTIAL, "(1,)", _potential_energy),
    "tool_pose": Kernel(("q",), ("T_flange_tool",), "(4, 4)", _tool_pose),
    "jacobian": Kernel(("q",), ("T_flange_tool",), "(6, n)", _jacobian),
    "jacobian_rate": Kernel(("q", "qd"), ("T_flange_tool",), "(6, n)", _jacobian_rate),
}

HEADER = '''"""Kernels of one robot's geometry, written by twin/kernels.py; not to be edited."""

from math import cos, sin, sqrt

import numpy as np
from numba import njit
'''

# What needs no trace of its own: computed from the traced functions, for any robot.
FOOTER = '''

@njit(cache=True)
def forward_dynamics(q, qd, tau, inertias, gravity, out):
    """qdd with M qdd = tau - bias, by the Cholesky factor of M: `out` is (n,)."""
    n = q.shape[0]
    M = np.empty((n, n))
    mass_matrix(q, inertias, M)
    bias(q, qd, inertias, gravity, out)
    for i in range(n):
        out[i] = tau[i] - out[i]
        for j in range(i):
            for k in range(j):
                M[i, j] -= M[i, k] * M[j, k]
            M[i, j] /= M[j, j]
            M[i, i] -= M[i, j] * M[i, j]
            out[i] -= M[i, j] * out[j]
        M[i, i] = sqrt(M[i, i])
        out[i] /= M[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            out[i] -= M[k, i] * out[k]
        out[i] /= M[i, i]


@njit(cache=True)
def coriolis_matrix(q, qd, inertias, out):
    """Christoffel C (n, n): h(qd) = C qd is quadratic, so C e_j = (h(qd + s e_j) - h(qd - s e_j)) / 4 s."""
    n = q.shape[0]
    s = 0.0
    for j in range(n):
        s = max(s, abs(qd[j]))
    shifted, ahead, behind = qd.copy(), np.empty(n), np.empty(n)
    for j in range(n):
        shifted[j] = qd[j] + s
        velocity_torque(q, shifted, inertias, ahead)
        shifted[j] = qd[j] - s
        velocity_torque(q, shifted, inertias, behind)
        shifted[j] = qd[j]
        for i in range(n):
            out[i, j] = (ahead[i] - behind[i]) / (4.0 * s) if s > 0.0 else 0.0
'''

COMPOSED = {
    "forward_dynamics": (("q", "qd", "tau"), INERTIAL, "(n,)"),
    "coriolis_matrix": (("q", "qd"), ("inertias",), "(n, n)"),
}


def source(tree: Tree, G: np.ndarray, g0: np.ndarray, loops: tuple[Loop, ...] = ()) -> str:
    """The Python module of a robot's kernels: one function a kernel, and its loop over a batch.

    Args:
        tree: the moving joints.
        G: (n_tree, n) matrix of the embedding `q_tree = G q + g0`.
        g0: (n_tree,) its offset.
        loops: the closed loops; where there are any, `loop_gaps(q_tree, out)` says how far they are open.
    """
    parts = [HEADER]
    for title, kernel in KERNELS.items():
        arguments = (*kernel.samples, *kernel.shared)
        parts.append(_function(title, arguments, kernel.out, kernel.trace(Symbols(tree, G, g0))))
    if loops:
        on = Symbols(tree, np.eye(tree.n), np.zeros(tree.n))
        frames = recursion.world_frames(on.tree, on.at)
        gaps = [value for loop in loops for value in recursion.loop_gap(loop, frames)]
        parts.append(_function("loop_gaps", ("q",), f"({len(gaps)},), q that of the tree", _vector(gaps)))
    parts.append(FOOTER)
    signatures = {title: (k.samples, k.shared) for title, k in KERNELS.items()}
    signatures |= {title: (samples, shared) for title, (samples, shared, _) in COMPOSED.items()}
    for title, (samples, shared) in signatures.items():
        parts.append(_for_many(title, samples, shared))
        parts.append(_for_one(title, samples, shared, G.shape[1]))
    return "".join(parts)


def _for_many(title: str, samples: tuple[str, ...], shared: tuple[str, ...]) -> str:
    rows = ", ".join((*(f"{s}[k]" for s in samples), *shared, "out[k]"))
    return (
        f"\n\n@njit(cache=True, nogil=True)\ndef {title}_batch({', '.join((*samples, *shared, 'out'))}):\n"
        f'    """`{title}` of every row."""\n'
        f"    for k in range(out.shape[0]):\n        {title}({rows})\n"
    )


def _for_one(title: str, samples: tuple[str, ...], shared: tuple[str, ...], n: int) -> str:
    arguments = ", ".join((*samples, *shared, "out"))
    return (
        f"\n\n@njit(cache=True)\ndef {title}_one({arguments}):\n"
        f'    """`{title}` if its vectors have {n} finite entries; else false, and nothing is done."""\n'
        f"    if {' or '.join(f'{s}.shape != ({n},)' for s in samples)}:\n        return False\n"
        f"    total = 0.0\n    for i in range({n}):\n"
        f"        total += {' + '.join(f'{s}[i]' for s in samples)}\n"
        f"    if not total - total == 0.0:  # infinite or not a number\n        return False\n"
        f"    {title}({arguments})\n    return True\n"
    )


def _function(title: str, arguments: tuple[str, ...], out: str, results: Results) -> str:
    doc = f'"""{title.replace("_", " ").capitalize()}: `out` is {out}."""'
    head = f"def {title}({', '.join((*arguments, 'out'))}):"
    return f"\n\n@njit(cache=True)\n{head}\n    {doc}\n{assignments(results)}\n"


def kernels_for(tree: Tree, G: np.ndarray, g0: np.ndarray, loops: tuple[Loop, ...] = ()) -> Any:
    """The module of compiled kernels for a robot's geometry, from the cache where it is there.

    Each function `f(..., out)` fills `out`; `f_batch` does it for every row.  Arguments are C-contiguous
    float64 arrays and are not checked, except by `f_one`, see `twin/one_sample.py`.
    """
    key = hashlib.sha256()
    for part in (tree.T_parent_joint, tree.axes, tree.T_joint_flange, G, g0):
        key.update(np.ascontiguousarray(part).tobytes())
    closed = [(loop.joints, loop.points.tolist()) for loop in loops]
    key.update(repr((tree.kinds, tree.parents, tree.flange_joint, G.shape, closed)).encode())
    for file in (__file__, recursion.__file__, sys.modules[Trace.__module__].__file__):
        key.update(Path(str(file)).read_bytes())
    return imported(f"irb_twin_kernels_{key.hexdigest()[:16]}", lambda: source(tree, G, g0, loops))
