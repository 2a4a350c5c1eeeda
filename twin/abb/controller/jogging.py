"""Jogging of the arm in manual mode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import RapidError
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.jogging import (
    TIME_TO_SPEED,
    TOOL_SPEED,
    TURN_SPEED,
    Follower,
    ToolJog,
    nearest,
)

TOOL_LIMITS = np.array([TOOL_SPEED] * 3 + [TURN_SPEED] * 3)
"""Largest speeds of a tool along and about axes, in [m/s] and [rad/s]."""


class Jog:
    """Motion of the arm by increments of joints, or of a tool along and about axes.

    Joints have a quarter of their largest speeds; a tool has 250 mm/s and 0.5 rad/s, and moves on a line.

    Attributes:
        q: (n,) reference of the next sample, in [rad].

    Args:
        robot: the arm.
        q: (n,) joint angles at the beginning, at rest, in [rad].
        period: sampling period, in [s].
        report: function that is called with a sentence where the tool cannot go further.
    """

    def __init__(self, robot: Robot, q: Floats, period: float, report: Callable[[str], object]) -> None:
        self._robot, self._report, self._joints = robot, report, Follower.of(robot, q, period)
        self._axes: ToolJog | None = None
        self.q, self._qd = q.copy(), np.zeros_like(q)
        self._offsets = Follower(np.zeros(6), TOOL_LIMITS, TOOL_LIMITS / TIME_TO_SPEED, period)

    @property
    def at_rest(self) -> bool:
        """Whether the arm is where it was to go."""
        return self._joints.at_rest if self._axes is None else self._offsets.at_rest

    def move_joints(self, increments: Floats) -> None:
        """Move joints by increments (n,), in [rad], within their ranges; a moving tool leaves its line."""
        self._leave_line()
        target = self._joints.target + increments
        self._joints.target = np.clip(target, self._robot.q_min, self._robot.q_max)

    def move_tool(self, T_flange_tool: Floats, increments: Floats, *, in_tool_axes: bool) -> None:
        """Move a tool along or about an axis of the base, or of itself.

        Increments for a tool that moves along the same axes are added.

        Args:
            T_flange_tool: (4, 4) pose of the tool on the flange.
            increments: (6,) displacement x, y, z in [m], and rotations about x, y, z in [rad].
            in_tool_axes: whether the axes are those of the tool where it is now.

        Raises:
            RapidError: the arm moves otherwise.
        """
        axes = self._axes
        if self.at_rest:
            axes = self._axes = ToolJog.begin(self._robot, self.q, T_flange_tool, in_tool_axes)
            self._offsets.restart(np.zeros(6))
        elif axes is None or axes.in_tool_axes != in_tool_axes:
            raise RapidError("the arm moves: wait until it rests, or stop it", "refusal")
        self._offsets.target = self._offsets.target + increments

    def stop(self) -> None:
        """Stop as fast as the limits allow; a tool stops on its line."""
        (self._joints if self._axes is None else self._offsets).stop()

    def _leave_line(self) -> None:
        """Let the joints brake from their present speeds, where a tool was moved."""
        if self._axes is not None:
            self._axes = None
            self._joints.restart(self.q)
            self._joints.qd = self._qd
            self._joints.stop()

    def positions(self, count: int) -> Floats:
        """Return the references (count, n) of the next samples, in [rad]."""
        found = np.empty((count, len(self.q)))
        for k in range(count):
            self._advance()
            found[k] = self.q
        return found

    def _advance(self) -> None:
        joints, axes, before = self._joints, self._axes, self.q
        if axes is None:
            joints.samples(1)
            self.q = joints.q.copy()
            return
        self._offsets.samples(1)
        q = nearest(self._robot, axes.pose(self._offsets.q), axes.T_flange_tool, before)
        if q is None or np.any(np.abs(q - before) > self._robot.qd_max * joints.period):
            self._report("the tool cannot go there: out of reach, a joint limit, or a singularity")
            self._leave_line()
            self._advance()
            return
        self.q, self._qd = q, (q - before) / joints.period
