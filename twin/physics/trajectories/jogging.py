"""Jogging: a reference that moves to a target within speed limits, by joints or by the tool.

Each joint of the reference accelerates and brakes with a constant acceleration. It brakes as late as possible
to come to rest on its target. The reference obeys the engine's recursion,

    qd[k+1] = qd[k] + dt qdd[k],        q[k+1] = q[k] + dt qd[k+1],

so that a controller with an exact model follows it to round-off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.base.errors import RobotError, UnreachableError
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.kinematics.inverse import inverse_kinematics, numerical_inverse_kinematics
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Samples

TIME_TO_SPEED = 0.3  # s: time from rest to the jogging speed
SHARE_OF_SPEED = 0.25
"""Jogging speed over the joints' speed limits; teach pendants allow about as much."""
TOOL_SPEED = 0.25
"""[m/s]: largest speed of the tool in manual mode according to ISO 10218-1."""
TURN_SPEED = 0.5  # rad/s: angular speed of the tool

AXES = ("x", "y", "z", "rx", "ry", "rz")


class Follower:
    """Joint reference that moves to a target.

    Attributes:
        k: index of the next sample.
        q, qd: (n,) current positions and speeds, in [rad] and [rad/s].
        target: (n,) positions at which the reference comes to rest, in [rad]; may be set at any time, within
            the ranges of the joints.

    Args:
        q: (n,) initial positions, at rest, in [rad].
        qd_max: (n,) largest speeds, in [rad/s].
        qdd_max: (n,) largest accelerations, in [rad/s^2].
        period: period of the samples, in [s].
    """

    q: NDArray
    qd: NDArray
    target: NDArray

    def __init__(self, q: NDArray, qd_max: NDArray, qdd_max: NDArray, period: float) -> None:
        self.qd_max, self.qdd_max, self.period = qd_max, qdd_max, period
        self.k = 0
        self.restart(q)

    @classmethod
    def of(cls, robot: Robot, q: NDArray, period: float) -> Follower:
        """Return a follower for a robot, with a quarter of its speed limits, reached in 0.3 s."""
        speed = SHARE_OF_SPEED * np.where(np.isfinite(robot.qd_max), robot.qd_max, 4.0)
        return cls(q, speed, speed / TIME_TO_SPEED, period)

    def restart(self, q: NDArray) -> None:
        """Set position and target to q (n,), in [rad], at rest."""
        self.q = np.array(q, dtype=np.float64)
        self.qd = np.zeros_like(self.q)
        self.target = self.q.copy()

    def stop(self) -> None:
        """Set the target to the nearest position at which the reference can come to rest."""
        braking = self.qd**2 / (2.0 * self.qdd_max) + np.abs(self.qd) * self.period
        self.target = self.q + np.sign(self.qd) * braking

    @property
    def at_rest(self) -> bool:
        """Whether the reference is at rest on its target."""
        return bool(np.all(self.qd == 0.0) and np.all(np.abs(self.target - self.q) < 1e-12))

    def samples(self, count: int) -> Samples:
        """Return the next samples and advance the reference to one period after the last of them.

        Args:
            count: number of samples.
        """
        dt, h = self.period, self.qdd_max * self.period
        t = np.arange(self.k, self.k + count, dtype=np.float64) * dt
        q, qd, qdd = np.empty((3, count, len(self.q)))
        for k in range(count):
            q[k], qd[k] = self.q, self.qd
            left = (self.target - self.q) / dt  # the speed that reaches the target in one period
            # From a speed v between m h and (m + 1) h, braking by h each period covers
            # dt (v + (v - h) + ... + (v - m h)) = dt (m + 1) (v - m h / 2).
            m = np.floor(0.5 * (np.sqrt(1.0 + 8.0 * np.abs(left) / h) - 1.0))
            speed = np.sign(left) * np.minimum(np.abs(left) / (m + 1) + 0.5 * m * h, self.qd_max)
            qdd[k] = np.clip((speed - self.qd) / dt, -self.qdd_max, self.qdd_max)
            self.qd = self.qd + dt * qdd[k]
            self.q = self.q + dt * self.qd
        self.k += count
        return Samples(t, q, qd, qdd)


@dataclass
class ToolJog:
    """Motion of the tool along and about the axes of the base or of the tool, at a bounded speed.

    Attributes:
        robot: the robot.
        T_start: (4, 4) pose of the tool at the start of jogging.
        T_flange_tool: (4, 4) pose of the tool in the flange frame.
        in_tool_axes: whether the axes are those of the tool at the start of jogging; else those of the base.
        offset: (6,) current displacement from the start of jogging, `AXES`, in [m] and [rad]; rotations are
            about x, then y, then z of the fixed axes.
        desired: (6,) desired displacement, in the same form.
    """

    robot: Robot
    T_start: NDArray
    T_flange_tool: NDArray
    in_tool_axes: bool
    offset: NDArray
    desired: NDArray

    @classmethod
    def begin(cls, robot: Robot, q: NDArray, T_flange_tool: NDArray, in_tool_axes: bool) -> ToolJog:
        """Return a motion that begins at the joint angles q (n,), in [rad]."""
        T_start = forward_kinematics(robot, q, T_flange_tool)
        return cls(robot, T_start, T_flange_tool, in_tool_axes, np.zeros(6), np.zeros(6))

    def pose(self, offset: NDArray) -> NDArray:
        """Return the pose (4, 4) of the tool at an offset (6,)."""
        from scipy.spatial.transform import Rotation

        moved = np.eye(4)
        moved[:3, :3] = Rotation.from_euler("xyz", offset[3:]).as_matrix()
        if self.in_tool_axes:
            moved[:3, 3] = offset[:3]
            return self.T_start @ moved
        T = self.T_start.copy()
        T[:3, :3] = moved[:3, :3] @ T[:3, :3]
        T[:3, 3] += offset[:3]
        return T

    def advance(self, seconds: float, near: NDArray) -> NDArray | None:
        """Move towards the desired displacement; return joint angles (n,), or `None` if the arm cannot.

        Args:
            seconds: duration of the motion at jogging speed, in [s].
            near: (n,) previous joint angles, in [rad]; they select the branch.
        """
        remaining = self.desired - self.offset
        most = max(np.linalg.norm(remaining[:3]) / TOOL_SPEED, np.linalg.norm(remaining[3:]) / TURN_SPEED)
        offset = self.offset + remaining * min(1.0, seconds / most if most > 0.0 else 1.0)
        q = nearest(self.robot, self.pose(offset), self.T_flange_tool, near)
        if q is None or np.max(np.abs(q - near)) > LARGEST_STEP:
            self.desired = self.offset.copy()  # stop here: the arm cannot go further in this direction
            return None
        self.offset = offset
        return q


LARGEST_STEP = 0.5  # rad: a joint moves further only to another branch or at a singularity


def nearest(robot: Robot, T: NDArray, T_flange_tool: NDArray, near: NDArray) -> NDArray | None:
    """Return the joint angles (n,) within the ranges that bring the tool to T (4, 4); `None` if none do."""
    try:
        q = inverse_kinematics(robot, T, T_flange_tool=T_flange_tool, near=near)
    except RobotError:  # the arm has no closed-form solution
        try:
            q = numerical_inverse_kinematics(robot, T, T_flange_tool=T_flange_tool, near=near, restarts=0)
        except UnreachableError:
            return None
    return q if np.all(np.isfinite(q)) else None
