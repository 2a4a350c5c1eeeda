"""Faults of recorded columns that are seen without a model: wraps, spikes, and rows that were held or lost.

Each looks for two signs at once.  An encoder that wraps jumps by a turn, and moves on as before.  A spike is
far from its neighbours, on both sides.  A held value is repeated exactly, and jumps by as much as was missed.
After a lost row, all joints move at once by a whole multiple of their steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.data.logs.recordings.finding import Finding, joint_names

TURN = 2.0 * np.pi

WIDTH = 7
"""Number of samples whose median a spike is compared with: spikes are up to 3 samples long."""

SPIKE = 15.0
"""Distance of a spike from that median, in second differences that nine of ten samples stay below."""

JUMP = 5.0
"""Jump of a position, in steps that only one of a hundred samples exceeds."""

MOST_SPIKES = 0.05
"""Largest share of samples that are spikes; more are noise."""

HELD = 1.6
"""Smallest jump after a held value, in steps of the motion before and after it."""

FROZEN = 8
"""Number of equal samples from which a value is frozen, and not repeated."""

NEAR = 25
"""Number of samples on each side in which a count of the encoder shows."""

FEW = 3
"""Number of rows that are held or lost by chance."""

REGULAR = 0.4
"""Share of held values from which they are repeated regularly."""

STOPS = {"frozen": 0.01, "repeated": 0.05, "lost": 0.003}
"""Shares of rows that stop a result: interpolation cures a few values that a network lost."""


def unwrapped(q: Floats, revolute: Sequence[bool]) -> tuple[Floats, list[Finding]]:
    """Return positions (N, n) without jumps by whole turns, and a finding for them."""
    q, joints, count = q.copy(), [], 0
    for joint in np.flatnonzero(revolute).tolist():
        steps = np.diff(q[:, joint])
        turns = np.round(steps / TURN)
        usual = max(5.0 * float(np.percentile(np.abs(steps), 95.0)), 0.02)
        if np.any(turns) and usual < 0.2 * TURN and np.all(np.abs(steps - TURN * turns)[turns != 0] <= usual):
            q[1:, joint] -= TURN * np.cumsum(turns)
            q[:, joint] -= TURN * np.round(np.median(q[:, joint]) / TURN)
            joints.append(joint + 1)
            count += int(np.sum(turns != 0))
    if not joints:
        return q, []
    text = (
        f"{count} jumps of the position of {joint_names(joints)} by a turn, where its encoder wraps: removed"
    )
    return q, [Finding("wrapped", tuple(joints), text, stops=False)]


def without_spikes(q: Floats) -> tuple[Floats, list[Finding]]:
    """Return positions (N, n) with spikes replaced by interpolation, and a finding for them."""
    from scipy.interpolate import PchipInterpolator
    from scipy.ndimage import median_filter

    off = np.abs(q - median_filter(q, size=(WIDTH, 1), mode="nearest"))
    second = np.abs(np.diff(q, 2, axis=0))
    q, joints, count = q.copy(), [], 0
    for joint in range(q.shape[1]):
        curved = second[second[:, joint] > 0, joint]
        if not curved.size:
            continue
        spikes = off[:, joint] > max(SPIKE * float(np.percentile(curved, 90.0)), 6.0 * quantum(q[:, joint]))
        spikes[[0, -1]] = False
        if 0 < np.sum(spikes) <= MOST_SPIKES * len(q):
            good = np.flatnonzero(~spikes)
            q[spikes, joint] = PchipInterpolator(good, q[good, joint])(np.flatnonzero(spikes))
            joints.append(joint + 1)
            count += int(np.sum(spikes))
    if not joints:
        return q, []
    text = f"{count} spikes in the positions of {joint_names(joints)}: replaced by interpolation"
    return q, [Finding("spikes", tuple(joints), text, stops=False)]


def jumps(t: Floats, q: Floats) -> list[Finding]:
    """Return a finding for positions (N, n) that jump further than they ever move, and stay there."""
    steps = np.diff(q, axis=0)
    far = np.abs(steps) > JUMP * np.percentile(np.abs(steps), 99.0, axis=0)
    stays = np.abs(
        np.array([steps[max(k - 3, 0) : k + 4].sum(axis=0) for k in range(len(steps))])
    ) > 0.5 * np.abs(steps)
    others = np.sum(far, axis=1, keepdims=True) == 1  # rows that are missing move all joints
    rows, joints = np.nonzero(far & stays & others)
    if not rows.size:
        return []
    size, first = steps[rows[0], joints[0]], t[rows[0] + 1]
    text = f"the position of joint {joints[0] + 1} jumps by {size:.3g} rad at {first:.6g} s: its zero changed"
    return [Finding("changes", tuple(sorted({int(j) + 1 for j in joints})), text)]


def quantum(values: Floats) -> float:
    """Return the smallest difference of neighbouring values (N,) that is not 0: a count of an encoder."""
    steps = np.abs(np.diff(values))
    return float(np.min(steps[steps > 1e-12 * np.max(np.abs(values), initial=1e-300)], initial=np.inf))


class Held(NamedTuple):
    """Values that were held.

    Attributes:
        rows: (N, n) true for repeated values.
        longest: (n,) length of the longest run of each joint, in samples.
    """

    rows: NDArray[np.bool_]
    longest: NDArray[np.intp]


def held_values(q: Floats) -> Held:
    """Find values of moving joints that are repeated exactly, and then jump to where they should be."""
    rows, longest = np.zeros(q.shape, dtype=np.bool_), np.zeros(q.shape[1], dtype=np.intp)
    for joint, values in enumerate(q.T):
        steps = np.abs(np.diff(values))
        same = np.concatenate([[False], steps == 0, [False]]).astype(np.int8)
        starts, ends = np.flatnonzero(np.diff(same) == 1), np.flatnonzero(np.diff(same) == -1)
        inside = (starts >= 4) & (ends + 5 < len(values))
        starts, ends = starts[inside], ends[inside]
        if not starts.size:
            continue
        jumps = np.abs(values[ends + 1] - values[ends])
        before, after = (np.abs(values[k + 4] - values[k]) / 4.0 for k in (starts - 4, ends + 1))
        speed = np.maximum(before, after)
        counts = np.array([_local_quantum(steps[max(k - NEAR, 0) : k + NEAR]) for k in ends])
        moves = np.minimum(before, after) > np.maximum(
            3.0 * quantum(values), signal_noise(values[1:][steps > 0])
        )
        moves &= jumps > 3.0 * np.maximum(counts, signal_noise(values[1:][steps > 0]))
        length = ends - starts + 1
        found = moves & (jumps > HELD * speed) & (jumps > 0.4 * length * speed)
        for start, end in zip(starts[found], ends[found], strict=True):
            rows[start + 1 : end + 1, joint] = True
        longest[joint] = np.max(length[found], initial=0)
    return Held(rows, longest)


def _local_quantum(steps: Floats) -> float:
    """Return the count whose multiples all these steps are; 0 if there is none.

    Files that have a fixed number of digits have coarser counts for larger values.
    """
    some = steps[steps > 0]
    if not some.size:
        return 0.0
    counts = some / np.min(some)
    return float(np.min(some)) if np.all(np.abs(counts - np.round(counts)) < 0.03) else 0.0


def signal_noise(values: Floats) -> float:
    """Return the deviation of the noise of a smooth signal (N,), from its fourth differences."""
    fourth = np.abs(np.diff(values, 4))
    return float(np.median(fourth)) * 1.4826 / np.sqrt(70.0) if fourth.size else 0.0


def without_held(q: Floats) -> tuple[Floats, list[Finding]]:
    """Return positions (N, n) with held values interpolated, and findings for frozen and repeated ones."""
    from scipy.interpolate import PchipInterpolator

    held, N = held_values(q), len(q)
    count, q, findings = np.sum(held.rows, axis=0), q.copy(), []
    for joint in np.flatnonzero(count).tolist():
        good = np.flatnonzero(~held.rows[:, joint])
        q[:, joint] = PchipInterpolator(good, q[good, joint])(np.arange(N))
    frozen = (held.longest >= FROZEN) & (count < REGULAR * N)
    for name, joints, reason in (
        ("frozen", frozen, "the recording stood still while the arm moved"),
        ("repeated", (held.longest > 0) & ~frozen, "rows were recorded faster than positions"),
    ):
        numbers = tuple((np.flatnonzero(joints & (count >= FEW)) + 1).tolist())
        if numbers:
            most = int(np.max(count[joints]))
            findings.append(
                Finding(
                    name, numbers,
                    f"{most} of {N} positions of {joint_names(numbers)} repeat the one before exactly, and "
                    f"then jump to where the motion goes on: {reason}",
                    stops=most >= STOPS[name] * N,
                )
            )  # fmt: skip
    return q, findings


def frozen_torques(q: Floats, tau: Floats) -> list[Finding]:
    """Return a finding for torques (N, n) that stand still for several samples while the joint moves."""
    joints, count = [], 0
    if constant := (np.flatnonzero(np.ptp(tau, axis=0) == 0) + 1).tolist():
        text = f"the torque of {joint_names(constant)} is constant, although the arm moves"
        return [Finding("frozen", tuple(constant), text)]
    for joint, values in enumerate(tau.T):
        same = np.concatenate([[False], np.diff(values) == 0, [False]]).astype(np.int8)
        starts, ends = np.flatnonzero(np.diff(same) == 1), np.flatnonzero(np.diff(same) == -1)
        length = ends - starts + 1
        travel = np.abs(q[ends, joint] - q[starts, joint])
        usual = np.median(np.abs(np.diff(q[:, joint])))
        extreme = np.isin(values[starts], (np.max(values), np.min(values)))
        jump = np.abs(values[np.minimum(ends + 1, len(values) - 1)] - values[ends])
        long = (
            (length >= FROZEN + 1)
            & (travel > 0.5 * usual * length)
            & ~extreme
            & (jump > 1.5 * quantum(values))
        )
        short = int(np.sum((length - 1)[length <= FROZEN]))
        if np.sum((length - 1)[long]) >= STOPS["frozen"] * len(values) and short < 0.02 * len(values):
            joints.append(joint + 1)
            count = max(count, int(np.sum((length - 1)[long])))
    if not joints:
        return []
    text = (
        f"{count} of {len(tau)} torques of {joint_names(joints)} repeat the one before exactly, in runs of "
        f"more than {FROZEN}, while the joint moves: the recording of the torque stood still"
    )
    return [Finding("frozen", tuple(joints), text)]


def lost_rows(t: Floats, q: Floats) -> list[Finding]:
    """Return a finding for rows that were lost and whose numbers were closed up.

    Between two such rows, all joints move by the same multiple of the step that their neighbours have.  The
    multiple that fits all joints best is `1 + sum(w a s) / sum(w s^2)`, with the steps s of the neighbours,
    the differences a of the step from them, and weights w of one over the variance of a.
    """
    rates = np.diff(q, axis=0) / np.diff(t)[:, None]
    usual = 0.5 * (rates[:-2] + rates[2:])
    off = rates[1:-1] - usual
    period = float(np.median(np.diff(t)))
    floor = np.array([quantum(column) for column in q.T]) / period
    spread = np.maximum(
        1.4826 * np.median(np.abs(off), axis=0), 0.5 * np.where(np.isfinite(floor), floor, 0.0)
    )
    spread = np.maximum(spread, 1e-3 * np.percentile(np.abs(rates), 90.0, axis=0) + 1e-100)
    weight = 1.0 / spread**2
    size = np.sum(weight * usual**2, axis=1)
    share = np.sum(weight * off * usual, axis=1) / np.maximum(size, np.finfo(float).tiny)
    missing = np.round(share)
    moves = np.sum(np.abs(usual) > 10.0 * spread, axis=1) >= min(2, q.shape[1])
    found = moves & (size > 400.0) & (missing >= 1) & (np.abs(share - missing) < 0.2)
    count = int(np.sum(missing[found]))
    if count < FEW:
        return []
    first = t[1 + int(np.argmax(found))]
    text = (
        f"some {count} rows are missing, the first at {first:.6g} s: there all joints move at once by "
        "multiples of their steps, which no acceleration explains; number rows by the time at which they "
        "were taken"
    )
    return [Finding("lost", (), text, stops=count >= STOPS["lost"] * len(q))]
