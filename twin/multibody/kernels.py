"""Compiled functions of one robot, made by tracing the recursions over its tree.

`source` runs the recursions of `recursions.py` and `twin/multibody/composite_bodies.py` on symbolic
scalars, in the pendant's coordinates `q` (`q_tree = G q + g0`, so forces are `G^T tau_tree` and closed loops
cost nothing), and writes a Python module: straight lines of arithmetic in which the robot's geometry has
folded away. Inertias, gravity and the tool stay arguments, so a payload, a mounting or a tool needs no new
kernel. `kernels_for` keeps the module in the user's cache folder, where numba keeps its machine code beside
it. `print(source(tree, G, g0))` shows it.

The recursions need the geometry alone; with `NUMBA_DISABLE_JIT=1` the same module runs as plain Python.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twin.jit import imported
from twin.multibody import composite_bodies, kernel_source, recursions, trace
from twin.multibody.kernel_source import HEADER, Rows, Signature
from twin.multibody.trace import Scalar, Trace
from twin.multibody.tree import Loop, Tree


class Kernel(NamedTuple):
    """One compiled function: its arguments, the shape that it fills for n joints, and its trace."""

    samples: tuple[str, ...]
    shared: tuple[str, ...]
    out: Callable[[int], tuple[int, ...]]
    trace: Callable[[Symbols], list[Any]] | None

    def signature(self, n: int) -> Signature:
        """What its callers must know."""
        return Signature(self.samples, self.shared, self.out(n))


class Symbols:
    """What a kernel is traced from: the arguments as symbols, and the recursions run on them.

    `trace` gives the symbols; what gives numbers in their place runs the kernel (`twin/robot/evaluation.py`).
    """

    def __init__(self, tree: Tree, G: np.ndarray, g0: np.ndarray, trace: Any = None) -> None:
        self.trace = Trace() if trace is None else trace
        self.tree, self.G, self.g0 = tree, G, g0
        self.n = G.shape[1]
        self.q = self.trace.inputs("q", self.n)
        self.qd = self.trace.inputs("qd", self.n)
        self.qdd = self.trace.inputs("qdd", self.n)
        self.tau = self.trace.inputs("tau", self.n)
        self.inertias = self.trace.table("inertias", tree.n, 10)
        x, y, z = self.trace.inputs("gravity", 3)
        self.gravity: recursions.Vector = (x, y, z)
        self.T_flange_tool = self.trace.table("T_flange_tool", 4, 4)
        self.at = recursions.placements(tree, self.tree_positions(), self.trace)

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

    def torque(self, qd: list[Any], qdd: list[Any], gravity: recursions.Vector) -> list[Scalar]:
        """Inverse dynamics in the pendant's coordinates."""
        rates = (self.in_tree(qd), self.in_tree(qdd))
        return self.in_pendant(recursions.newton_euler(self.tree, self.at, *rates, self.inertias, gravity))

    def mass_matrix(self) -> list[list[Scalar]]:
        """The mass matrix `G^T M_tree G`."""
        M_tree = composite_bodies.mass_matrix(self.tree, self.at, self.inertias)
        columns = zip(*[self.in_pendant(row) for row in M_tree], strict=True)
        M = [self.in_pendant(list(column)) for column in columns]
        return [[M[max(i, j)][min(i, j)] for j in range(self.n)] for i in range(self.n)]


def _inverse_dynamics(on: Symbols) -> list[Any]:
    return on.torque(on.qd, on.qdd, on.gravity)


def _bias(on: Symbols) -> list[Any]:
    return on.torque(on.qd, [0.0] * on.n, on.gravity)


def _velocity_torque(on: Symbols) -> list[Any]:
    return on.torque(on.qd, [0.0] * on.n, recursions.ZERO)


def _gravity_torque(on: Symbols) -> list[Any]:
    return on.torque([0.0] * on.n, [0.0] * on.n, on.gravity)


def _mass_matrix(on: Symbols) -> list[Any]:
    return [entry for row in on.mass_matrix() for entry in row]


def _forward_dynamics(on: Symbols) -> list[Any]:
    load = [tau - bias for tau, bias in zip(on.tau, _bias(on), strict=True)]
    return composite_bodies.solve(on.mass_matrix(), load, on.trace.reciprocal)


def _potential_energy(on: Symbols) -> list[Any]:
    frames = recursions.world_frames(on.tree, on.at)
    return [recursions.potential_energy(on.tree, frames, on.inertias, on.gravity)]


def _tool_pose(on: Symbols) -> list[Any]:
    R, p = recursions.tool_frame(on.tree, recursions.world_frames(on.tree, on.at), on.T_flange_tool)
    return [*R[0], p[0], *R[1], p[1], *R[2], p[2], 0.0, 0.0, 0.0, 1.0]


def _jacobian(on: Symbols) -> list[Any]:
    frames = recursions.world_frames(on.tree, on.at)
    _, p = recursions.tool_frame(on.tree, frames, on.T_flange_tool)
    return _rows(on, recursions.jacobian(on.tree, frames, p))


def _jacobian_rate(on: Symbols) -> list[Any]:
    frames = recursions.world_frames(on.tree, on.at)
    _, p = recursions.tool_frame(on.tree, frames, on.T_flange_tool)
    return _rows(on, recursions.jacobian_rate(on.tree, frames, p, on.in_tree(on.qd)))


def _rows(on: Symbols, columns: list[tuple[recursions.Vector, recursions.Vector]]) -> list[Any]:
    rows = zip(*[(*v, *omega) for v, omega in columns], strict=True)
    return [value for row in rows for value in on.in_pendant(list(row))]


INERTIAL = ("inertias", "gravity")
TOOL = ("T_flange_tool",)
KERNELS = {
    "inverse_dynamics": Kernel(("q", "qd", "qdd"), INERTIAL, lambda n: (n,), _inverse_dynamics),
    "forward_dynamics": Kernel(("q", "qd", "tau"), INERTIAL, lambda n: (n,), _forward_dynamics),
    "bias": Kernel(("q", "qd"), INERTIAL, lambda n: (n,), _bias),
    "velocity_torque": Kernel(("q", "qd"), ("inertias",), lambda n: (n,), _velocity_torque),
    "gravity_torque": Kernel(("q",), INERTIAL, lambda n: (n,), _gravity_torque),
    "mass_matrix": Kernel(("q",), ("inertias",), lambda n: (n, n), _mass_matrix),
    "coriolis_matrix": Kernel(("q", "qd"), ("inertias",), lambda n: (n, n), None),
    "potential_energy": Kernel(("q",), INERTIAL, lambda _: (1,), _potential_energy),
    "tool_pose": Kernel(("q",), TOOL, lambda _: (4, 4), _tool_pose),
    "jacobian": Kernel(("q",), TOOL, lambda n: (6, n), _jacobian),
    "jacobian_rate": Kernel(("q", "qd"), TOOL, lambda n: (6, n), _jacobian_rate),
}

IN_LANES = ("inverse_dynamics", "forward_dynamics")
"""Those of which a batch is worth compiling the arithmetic twice."""

# The one that has no trace of its own: it is computed from a traced function, for any robot.
FOOTER = '''

@cached_njit()
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


def source(tree: Tree, G: np.ndarray, g0: np.ndarray, loops: tuple[Loop, ...] = ()) -> str:
    """The Python module of a robot's kernels, see `twin/multibody/kernel_source.py`.

    Args:
        tree: the moving joints.
        G: (n_tree, n) matrix of the embedding `q_tree = G q + g0`.
        g0: (n_tree,) its offset.
        loops: the closed loops; where there are any, `loop_gaps(q_tree, out)` says how far they are open.
    """
    n, parts = G.shape[1], [HEADER]
    for title, kernel in KERNELS.items():
        if kernel.trace is not None:
            values = kernel.trace(Symbols(tree, G, g0))
            parts.append(kernel_source.of_sample(title, kernel.signature(n), n, tree.n, values))
    if loops:
        on = Symbols(tree, np.eye(tree.n), np.zeros(tree.n))
        frames = recursions.world_frames(on.tree, on.at)
        gaps = [value for loop in loops for value in recursions.loop_gap(loop, frames)]
        signature = Signature(("q",), (), (len(gaps),))
        parts.append(kernel_source.of_sample("loop_gaps", signature, tree.n, tree.n, gaps))
    parts.append(FOOTER)
    for title, kernel in KERNELS.items():
        if kernel.trace is not None and title in IN_LANES:
            rows = Rows(kernel.samples, n)
            values = kernel.trace(Symbols(tree, G, g0, rows))
            parts.append(kernel_source.of_batch_in_lanes(title, kernel.signature(n), rows, values))
        else:
            parts.append(kernel_source.of_batch(title, kernel.signature(n)))
        parts.append(kernel_source.of_checked_sample(title, kernel.signature(n), n))
    return "".join(parts)


@cache
def _makers() -> bytes:
    """The source of what makes the module: kernels that other code made are others."""
    modules = (sys.modules[__name__], composite_bodies, kernel_source, recursions, trace)
    return b"".join(Path(str(module.__file__)).read_bytes() for module in modules)


def kernels_for(tree: Tree, G: np.ndarray, g0: np.ndarray, loops: tuple[Loop, ...] = ()) -> Any:
    """The module of compiled kernels for a robot's geometry, from the cache where it is there.

    Each function `f(..., out)` fills `out`, and checks the shapes; `f_batch` does it for every row, and
    `f_one` see `twin/robot/evaluation.py`.  Arguments are C-contiguous float64 arrays.
    """
    key = hashlib.sha256()
    for part in (tree.T_parent_joint, tree.axes, tree.T_joint_flange, G, g0):
        key.update(np.ascontiguousarray(part).tobytes())
    closed = [(loop.joints, loop.points.tolist()) for loop in loops]
    key.update(repr((tree.kinds, tree.parents, tree.flange_joint, G.shape, closed)).encode())
    key.update(_makers())
    return imported(f"irb_twin_kernels_{key.hexdigest()[:16]}", lambda: source(tree, G, g0, loops))
