"""Limits of motions: what a trajectory or its samples ask of the joints, against what these allow."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from twin.arrays import Floats
from twin.errors import LimitError
from twin.robot.joint_units import position_text
from twin.robot.limits import ROUND_OFF, check_position, far_outside, folded

if TYPE_CHECKING:
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples


def check_limits(robot: "Robot", samples: "Samples") -> None:
    """Check a sampled motion against the joint ranges and speeds of a robot, passive joints included.

    Args:
        robot: gives `q_min, q_max, passive_min, passive_max` in [rad] and `qd_max` in [rad/s].
        samples: N samples of n joints.

    Raises:
        LimitError: of the earliest sample outside, the joint, the time, the value and the limit. A position
            beyond twice a joint's range is likely to be in degrees, and the message says so.
        ValueError: samples of another number of joints.
    """
    q, qd = samples.q, samples.qd
    if q.ndim != 2 or q.shape[1] != robot.n:
        raise ValueError(f"expected samples.q of shape (N, {robot.n}), got {q.shape}")
    outside = ~((q >= robot.q_min - ROUND_OFF) & (q <= robot.q_max + ROUND_OFF))
    fast = ~(np.abs(qd) <= robot.qd_max * (1.0 + ROUND_OFF))
    beyond = folded(robot, q)
    bad = outside.any(axis=1) | beyond.any(axis=1) | fast.any(axis=1)
    if not bad.any():
        return
    k = int(np.argmax(bad))
    where = f" at t = {samples.t[k]:.6g} s (sample {k})"
    check_position(robot, q[k], where)
    joint = int(np.argmax(fast[k]))
    kind = robot.joint_kinds[joint]
    raise LimitError(
        f"{robot.joint_names[joint]} would move at {position_text(qd[k, joint], kind, '/s')}{where}, "
        f"its limit is {position_text(robot.qd_max[joint], kind, '/s')}"
    )


def check_radians(robot: "Robot", samples: "Samples") -> None:
    """Check that a motion is not in degrees: no position may lie beyond twice its joint's range.

    Raises:
        LimitError: as `check_limits`.
    """
    if far_outside(robot, samples.q).any():
        check_limits(robot, samples)


def check_peak(
    peak: Floats, limit: Floats, unit: str, time: Callable[[int], float], shortest: float | None = None
) -> None:
    """Check the peak speeds or accelerations of the joints, known in closed form, against their limits.

    Args:
        peak: (n,) magnitudes.
        limit: (n,) limits, positive.
        unit: "rad/s" or "rad/s^2".
        time: gives the time of a joint's peak, in [s].
        shortest: the least duration of this motion within the limits, in [s], for the message.

    Raises:
        LimitError: names the joint that is furthest above its limit, with value, limit and time.
    """
    joint = int(np.argmax(peak / limit))
    if not peak[joint] <= limit[joint] * (1.0 + ROUND_OFF):
        what = "speed" if unit == "rad/s" else "acceleration"
        cure = "" if shortest is None else f"; the move takes at least {shortest:.6g} s"
        raise LimitError(
            f"joint {joint + 1} would reach a {what} of {peak[joint]:.6g} {unit} at t = {time(joint):.6g} s, "
            f"its limit is {limit[joint]:.6g} {unit}{cure}"
        )
