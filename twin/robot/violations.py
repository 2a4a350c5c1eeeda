"""Where an arm was beyond its limits: positions and speeds that it had, not those that it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.robot.joint_units import position_text
from twin.robot.limits import ROUND_OFF

if TYPE_CHECKING:
    from twin.robot.robot import Robot


class Violation(NamedTuple):
    """Where an arm was furthest beyond a limit.

    Attributes:
        quantity: `"position"` or `"speed"`.
        joint: name of the joint.
        t: the time, in [s].
        value: the position or the speed there, in [rad] or [rad/s] (of a prismatic joint in [m] or [m/s]).
        limit: the end of the range, or the speed limit, that it went beyond, in the same unit.
        rollout: which rollout of a batch, `()` where there is one alone.
        kind: of the joint, `"revolute"` or `"prismatic"`.
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
        said = f"moves at {value}" if per else f"is at {value}"
        of = f" in rollout {self.rollout[0] if len(self.rollout) == 1 else self.rollout}"
        return f"{self.joint} {said} at t = {self.t:.6g} s, its limit is {limit}" + (
            of if self.rollout else ""
        )


def violations(robot: Robot, t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> tuple[Violation, ...]:
    """Where a motion was furthest beyond the robot's ranges and speed limits; empty where it kept them.

    Args:
        robot: whose limits are asked.
        t: (N,) times, in [s].
        q: (N, n) joint positions, in [rad].
        qd: (N, n) joint velocities, in [rad/s].

    Returns:
        One for the position and one for the speed at most, of the joint that was furthest beyond.
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
    """A violation with the limit that a value, in [rad] or [rad/s], is beyond."""
    if quantity == "speed":
        limit = float(np.copysign(robot.qd_max[joint], value))
    else:
        limit = float(robot.q_max[joint] if value > robot.q_max[joint] else robot.q_min[joint])
    return Violation(quantity, robot.joint_names[joint], t, value, limit, rollout, robot.joint_kinds[joint])
