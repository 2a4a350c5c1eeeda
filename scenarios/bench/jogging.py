"""Jogging: a reference that goes to a target, which a person may move at any time, within speed limits.

Joint by joint the reference speeds up and brakes with a constant acceleration, so late that it just comes to
rest on its target.  It obeys the engine's own steps,

    qd[k+1] = qd[k] + dt qdd[k],        q[k+1] = q[k] + dt qd[k+1],

so that a law that knows the arm follows it to round-off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.errors import RobotError, UnreachableError
from twin.kinematics.forward import forward_kinematics
from twin.kinematics.inverse import inverse_kinematics
from twin.kinematics.numerical_inverse import numerical_inverse_kinematics
from twin.robot.robot import Robot
from twin.trajectories.sampling import Samples

TIME_TO_SPEED = 0.3  # s, in which a joint comes to the speed of jogging
SHARE_OF_SPEED = 0.25
"""Of the joints' own speed limits, which is what a pendant allows about."""
TOOL_SPEED = 0.25
"""[m/s]: the speed of the tool in manual mode that ISO 10218-1 allows."""
TURN_SPEED = 0.5  # rad/s of the tool

AXES = ("x", "y", "z", "rx", "ry", "rz")


class Follower:
    """A joint reference on its way to a target.

    Attributes:
        k: number of the next sample.
        q, qd: (n,) where it is, in [rad] and [rad/s].
        target: (n,) where it is to come to rest, in [rad]; may be set at any time, within the ranges.

    Args:
        q: (n,) where it begins, at rest, in [rad].
        qd_max: (n,) largest speed, in [rad/s].
        qdd_max: (n,) largest acceleration, in [rad/s^2].
        period: of the samples, in [s].
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
        """For a robot: a quarter of its speed limits, reached in 0.3 s."""
        speed = SHARE_OF_SPEED * np.where(np.isfinite(robot.qd_max), robot.qd_max, 4.0)
        return cls(q, speed, speed / TIME_TO_SPEED, period)

    def restart(self, q: NDArray) -> None:
        """Rest at q (n,), in [rad]."""
        self.q = np.array(q, dtype=np.float64)
        self.qd = np.zeros_like(self.q)
        self.target = self.q.copy()

    def stop(self) -> None:
        """Come to rest as soon as the acceleration allows."""
        braking = self.qd**2 / (2.0 * self.qdd_max) + np.abs(self.qd) * self.period
        self.target = self.q + np.sign(self.qd) * braking

    @property
    def at_rest(self) -> bool:
        """Whether it stands on its target."""
        return bool(np.all(self.qd == 0.0) and np.all(np.abs(self.target - self.q) < 1e-12))

    def samples(self, count: int) -> Samples:
        """The next so many samples; the reference is then one period behind the last of them."""
        dt, h = self.period, self.qdd_max * self.period
        t = np.arange(self.k, self.k + count, dtype=np.float64) * dt
        q, qd, qdd = np.empty((3, count, len(self.q)))
        for k in range(count):
            q[k], qd[k] = self.q, self.qd
            left = (self.target - self.q) / dt  # the speed that would be there in one period
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
    """The tool moved along and about the axes of the base, or of the tool itself, at a bounded speed.

    Attributes:
        offset: (6,) how far the tool is from where jogging began, `AXES`, in [m] and [rad]; turns are
            about x, then y, then z of the fixed axes.
        wanted: (6,) how far it is to go.
        in_tool_axes: the axes are those that the tool had when jogging began, else the base's.
    """

    robot: Robot
    T_start: NDArray
    T_flange_tool: NDArray
    in_tool_axes: bool
    offset: NDArray
    wanted: NDArray

    @classmethod
    def begin(cls, robot: Robot, q: NDArray, T_flange_tool: NDArray, in_tool_axes: bool) -> ToolJog:
        """Begin at the joint angles q (n,), in [rad]."""
        T_start = forward_kinematics(robot, q, T_flange_tool)
        return cls(robot, T_start, T_flange_tool, in_tool_axes, np.zeros(6), np.zeros(6))

    def pose(self, offset: NDArray) -> NDArray:
        """The pose (4, 4) of the tool at an offset (6,)."""
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
        """Go on towards what is wanted: joint angles (n,), or `None` where the arm cannot.

        Args:
            seconds: how long to go at jogging speed.
            near: (n,) joint angles to stay close to, in [rad].
        """
        away = self.wanted - self.offset
        most = max(np.linalg.norm(away[:3]) / TOOL_SPEED, np.linalg.norm(away[3:]) / TURN_SPEED)
        offset = self.offset + away * min(1.0, seconds / most if most > 0.0 else 1.0)
        q = nearest(self.robot, self.pose(offset), self.T_flange_tool, near)
        if q is None or np.max(np.abs(q - near)) > LARGEST_STEP:
            self.wanted = self.offset.copy()  # where it stands: the way on is closed
            return None
        self.offset = offset
        return q


LARGEST_STEP = 0.5  # rad of a joint in one advance: more is another branch, or the turn at a singularity


def nearest(robot: Robot, T: NDArray, T_flange_tool: NDArray, near: NDArray) -> NDArray | None:
    """Joint angles (n,) within the ranges that bring the tool to T (4, 4); `None` where there are none."""
    try:
        q = inverse_kinematics(robot, T, T_flange_tool=T_flange_tool, near=near)
    except RobotError:  # no solution in closed form is known of such an arm
        try:
            q = numerical_inverse_kinematics(robot, T, T_flange_tool=T_flange_tool, near=near, restarts=0)
        except UnreachableError:
            return None
    return q if np.all(np.isfinite(q)) else None
