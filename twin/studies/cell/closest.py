"""Nearest approach of a motion to its cell, with a proof between the samples.

A joint that turns by dq moves a point of the arm by at most `r dq`, with r from the lengths of the chain.
Where two configurations have the distances d1 and d2 and the arm moves by at most S between them, no
configuration between them has less than (d1 + d2 - S) / 2. Intervals are halved until none can have less than
the least distance found.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import CellError
from twin.data.logs.log import Log
from twin.studies.cell.clearance import Clearance, Nearest

if TYPE_CHECKING:
    from twin.studies.cell.cell import Cell

PRECISION, SHARE = 1e-4, 0.01
"""Precision of the least distance between the samples: in [m], or as a share of it if that is larger."""

STRIDE = 64
"""Samples between the configurations that are looked at first."""

BATCH = 64
"""Intervals that are halved together, which is faster than one by one although more of them are halved."""


@dataclass(frozen=True, eq=False)
class Closest:
    """Nearest approach of a motion.

    Attributes:
        nearest: the pair, with its distance and points.
        t: its time, in [s].
        q: (n,) joint angles there, in [rad].
        bound: what the distance less the margin is proven not to fall below, in [m].
        proven: whether the motion between the samples is known, so that the bound is a proof.
        samples: number of samples.
        lost_at: time in [s] from which the log has no finite joint angles, so that nothing is known; or None.
    """

    nearest: Nearest
    t: float
    q: Floats
    bound: float
    proven: bool
    samples: int
    lost_at: float | None = None


def least_distance(cell: Cell, log: Log) -> Closest:
    """Return the nearest approach of a recorded motion.

    Between samples of a log with one engine step per control period, the joints turn evenly. Otherwise the
    samples are thinned: the bound assumes no joint faster than its limit, and the result is not proven.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> log = GravityHold(duration=0.1).run().log
        >>> cell = twin.Cell.empty(margin=0.01)
        >>> twin.cell.least_distance(cell, log).proven
        True

    Raises:
        CellError: the cell does not fit the robot, or has no pair to judge.
    """
    q = log.q[np.isfinite(log.q).all(axis=1).cumprod().astype(bool)]
    if not len(q):
        raise CellError("the log has no finite joint angles")
    clearance = Clearance(log.robot, cell)
    known = log.steps_per_period == 1
    slack = np.zeros(clearance.robot.tree.n)
    if not known:
        slack = np.abs(log.robot.embedding) @ log.robot.qd_max * log.time_step * log.steps_per_period
    found = closest(clearance, log.t[: len(q)], q, slack, refine=known)
    return found if len(q) == len(log.t) else replace(found, lost_at=float(log.t[len(q)]))


def closest(clearance: Clearance, t: Floats, q: Floats, slack: Floats, *, refine: bool = True) -> Closest:
    """Return the nearest approach along joint angles.

    Args:
        clearance: distances of the robot in its cell.
        t: (N,) times, in [s].
        q: (N, n) joint angles, in [rad].
        slack: (n_tree,) largest additional turn of the joints between two samples, in [rad].
        refine: whether the joints turn evenly between samples, up to the slack. With slack, the time of an
            approach between two samples is approximate; the bound is not.
    """
    q_tree = clearance.robot.tree_positions(q)
    steps = np.abs(np.diff(q_tree, axis=0))
    steps = steps + slack if refine else np.maximum(steps, slack)
    path = np.concatenate([[0.0], np.cumsum(steps @ clearance.reach)])
    N = len(q)
    seen: dict[float, Nearest] = {}

    def look_at(places: list[float]) -> None:
        s = np.array(places)
        k = s.astype(int)
        after = np.minimum(k + 1, N - 1)
        each = clearance.nearest_each(q[k] + (s - k)[:, None] * (q[after] - q[k]))
        for place, found in zip(places, each, strict=True):
            if found is None:
                raise CellError(f"{clearance.cell.file}: there is no pair to judge")
            seen[place] = found

    starts = sorted({*range(0, N, STRIDE), N - 1})
    look_at(list(map(float, starts)))
    at = min(seen, key=lambda s: seen[s].clearance)
    best = seen[at]

    def path_to(s: float) -> float:
        k = min(int(s), N - 1)
        return float(path[k] + (s - k) * (path[min(k + 1, N - 1)] - path[k]))

    def lower(a: float, b: float) -> float:
        return 0.5 * (seen[a].clearance + seen[b].clearance - (path_to(b) - path_to(a)))

    waiting = [(lower(a, b), a, b) for a, b in zip(map(float, starts), map(float, starts[1:]), strict=False)]
    heapq.heapify(waiting)
    bound = best.clearance
    while waiting:
        enough = best.clearance - max(PRECISION, SHARE * best.clearance)
        halved: list[tuple[float, float, float]] = []
        while waiting and waiting[0][0] < enough and len(halved) < BATCH:
            low, a, b = heapq.heappop(waiting)
            if b - a > 1.0:
                halved.append((a, float(int(0.5 * (a + b))), b))
            elif refine:
                halved.append((a, 0.5 * (a + b), b))
            else:
                bound = min(bound, low)
        if not halved:
            bound = min(bound, waiting[0][0]) if waiting else bound
            break
        look_at([middle for _, middle, _ in halved])
        for a, middle, b in halved:
            if seen[middle].clearance < best.clearance:
                best, at = seen[middle], middle
            for one in ((a, middle), (middle, b)):
                heapq.heappush(waiting, (lower(*one), *one))
    bound = min(bound, best.clearance)
    k = min(int(at), N - 2) if N > 1 else 0
    share = at - k
    after = min(k + 1, N - 1)
    return Closest(
        best,
        float(t[k] + share * (t[after] - t[k])),
        q[k] + share * (q[after] - q[k]),
        bound,
        refine,
        N,
    )
