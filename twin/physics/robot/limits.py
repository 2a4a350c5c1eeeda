"""Limits of joints, and the places where a motion exceeds its ranges and speed limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.base.errors import LimitError
from twin.physics.robot.units import position_text

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot


def joint_ranges(robot: Robot) -> tuple[NDArray, NDArray]:
    """Return the ranges (n,) of sliders, in [rad] and [m]; a turn or a metre to each side without a limit."""
    most = np.where(np.array(robot.joint_kinds) == "revolute", 2.0 * np.pi, 1.0)
    return np.maximum(robot.q_min, -most), np.minimum(robot.q_max, most)


ROUND_OFF = 1e-9
"""Tolerance of limits, as a fraction of speed or in [rad]: a move of the shortest duration reaches its limits
exactly."""
QUESTIONS = {
    "revolute": "angles are in radians, are these degrees",
    "prismatic": "a sliding joint's positions are in metres, are these millimetres",
}


def check_position(robot: Robot, q: Floats, where: str = "", *, hint: bool = True) -> None:
    """Check joint positions against the joint ranges of a robot, passive joints included.

    Args:
        robot: robot with the ranges.
        q: (n,) joint positions, in [rad].
        where: text for the message, after the position.
        hint: ask in the message whether angles far outside the range are degrees.

    Raises:
        LimitError: names the joint, the value and the range.
    """
    outside = ~((q >= robot.q_min - ROUND_OFF) & (q <= robot.q_max + ROUND_OFF))
    if outside.any():
        joint = int(np.argmax(outside))
        low, high, kind = robot.q_min[joint], robot.q_max[joint], robot.joint_kinds[joint]
        asked = hint and far_outside(robot, q).any()
        raise LimitError(
            f"{robot.joint_names[joint]} would be at {position_text(q[joint], kind)}{where}, "
            f"its range is {position_text(low, kind)} to {position_text(high, kind)}"
            + f"; {QUESTIONS[kind]}?"
            * bool(asked)
        )
    check_folding(robot, q, where)


def check_folding(robot: Robot, q: Floats, where: str = "") -> None:
    """Check that every passive joint is within its range, beyond which a closed loop folds flat.

    Beyond the fold the loop could continue in two ways, and a simulation is meaningless.

    Args:
        robot: robot with `passive_min, passive_max`, and with loops for the message.
        q: (n,) joint positions, in [rad].
        where: text for the message, after the position.

    Raises:
        LimitError: the message contains the joint, the value and the range, and the clearance of the loop.
    """
    beyond = folded(robot, q)
    if not beyond.any():
        return
    passive = int(np.argmax(beyond))
    joint = robot.passive[passive]
    low, high, kind = robot.passive_min[passive], robot.passive_max[passive], robot.tree.kinds[joint]
    raise LimitError(
        f"{robot.tree.names[joint]} ({combination(robot, joint)}) would be at "
        f"{position_text(robot.passive_angles(q)[passive], kind)}{where}, "
        f"its range is {position_text(low, kind)} to {position_text(high, kind)}"
        f"{_fold(robot, joint, q)}"
    )


def folded(robot: Robot, q: Floats) -> NDArray[np.bool_]:
    """Return whether a passive joint is beyond its range, (..., n_passive)."""
    if not robot.passive:
        return np.zeros((*q.shape[:-1], 0), dtype=bool)
    angles = robot.passive_angles(q)
    return ~((angles >= robot.passive_min - ROUND_OFF) & (angles <= robot.passive_max + ROUND_OFF))


def combination(robot: Robot, joint: int) -> str:
    """Return a passive joint's angle in terms of driven joints, as "q3 - q2"."""
    text = ""
    for negated, i in sorted(
        (-weight, i + 1) for i, weight in enumerate(robot.embedding[joint].tolist()) if weight
    ):
        factor = "" if abs(negated) == 1 else f"{abs(negated):g} "
        text += f" {'-' if negated > 0 else '+'} {factor}q{i}"
    return text.removeprefix(" + ").strip()


def _fold(robot: Robot, joint: int, q: Floats) -> str:
    """Return the distance of a passive joint's loop from folding, as a part of a sentence."""
    from twin.physics.robot.loops import clearance, is_past_fold

    for loop in robot.loops:
        if joint in loop.joints:
            link = robot.tree.links[loop.joints[0]]
            where = "past" if is_past_fold(robot, loop, q) else "from"
            return f": {link} would be {clearance(robot, loop, q):.3g} m {where} folding {loop.name} flat"
    return ""


def far_outside(robot: Robot, q: Floats) -> NDArray[np.bool_]:
    """Return whether positions (..., n) exceed twice a joint's range, as angles in degrees do."""
    return np.abs(q) > 2.0 * np.maximum(np.abs(robot.q_min), np.abs(robot.q_max))


class Violation(NamedTuple):
    """Largest excess of a motion over a limit.

    Attributes:
        quantity: `"position"` or `"speed"`.
        joint: name of the joint.
        t: time, in [s].
        value: position or speed at that time, in [rad] or [rad/s] (of a prismatic joint in [m] or [m/s]).
        limit: exceeded end of the range, or speed limit, in the same unit.
        rollout: index of the rollout in a batch, `()` for a single run.
        kind: kind of the joint, `"revolute"` or `"prismatic"`.
    """

    quantity: str
    joint: str
    t: float
    value: float
    limit: float
    rollout: tuple[int, ...] = ()
    kind: str = "revolute"

    def __str__(self) -> str:
        per = "/s" if self.quantity == "speed" else ""
        value, limit = (position_text(x, self.kind, per) for x in (self.value, self.limit))
        text = f"moves at {value}" if per else f"is at {value}"
        of = f" in rollout {self.rollout[0] if len(self.rollout) == 1 else self.rollout}"
        return f"{self.joint} {text} at t = {self.t:.6g} s, its limit is {limit}" + (
            of if self.rollout else ""
        )


def violations(robot: Robot, t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> tuple[Violation, ...]:
    """Return the largest excesses of a motion over the robot's ranges and speed limits; empty without any.

    Args:
        robot: robot with the limits.
        t: (N,) times, in [s].
        q: (N, n) joint positions, in [rad].
        qd: (N, n) joint velocities, in [rad/s].

    Returns:
        At most one violation of positions and one of speeds, each with the largest excess.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> from twin.physics.robot.limits import violations
        >>> robot, q = twin.load("irb140"), np.array([[3.0, 0, 0, 0, 0, 0], [3.5, 0, 0, 0, 0, 0]])
        >>> print(*violations(robot, np.array([0.0, 1.0]), q, np.zeros((2, 6))))
        joint_1 is at 200.535 deg (3.5 rad) at t = 1 s, its limit is 180 deg (3.14159 rad)
    """
    found = []
    excess = np.maximum(q - robot.q_max, robot.q_min - q)
    ratio = np.abs(qd) / robot.qd_max
    for quantity, amount, allowed in (("position", excess, ROUND_OFF), ("speed", ratio, 1.0 + ROUND_OFF)):
        if amount.size and not np.max(amount) <= allowed:
            k, joint = np.unravel_index(int(np.argmax(amount)), amount.shape)
            value = (q if quantity == "position" else qd)[k, joint]
            found.append(violation(robot, quantity, int(joint), float(t[k]), float(value)))
    return tuple(found)


def violation(
    robot: Robot, quantity: str, joint: int, t: float, value: float, rollout: tuple[int, ...] = ()
) -> Violation:
    """Return a violation with the limit that a value, in [rad] or [rad/s], exceeds.

    Example:
        >>> import twin
        >>> from twin.physics.robot.limits import violation
        >>> print(violation(twin.load("irb140"), "position", joint=0, t=1.0, value=3.5))
        joint_1 is at 200.535 deg (3.5 rad) at t = 1 s, its limit is 180 deg (3.14159 rad)
    """
    if quantity == "speed":
        limit = float(np.copysign(robot.qd_max[joint], value))
    else:
        limit = float(robot.q_max[joint] if value > robot.q_max[joint] else robot.q_min[joint])
    return Violation(quantity, robot.joint_names[joint], t, value, limit, rollout, robot.joint_kinds[joint])
