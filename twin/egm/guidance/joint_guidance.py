"""Joint guidance (`EGMRunJoint`): references are joint angles, joint speeds, or both.

The speed that is asked for is `u = k (q_ref - q) + qd_ref`, with q the commanded angles; a low-pass filter of
the first order, sampled exactly at the period dt, makes it `v+ = v + (1 - exp(-2 pi f dt)) (u - v)`, and at level 0
there is none.  The manual tells neither order nor discretisation of its filter; they are ours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import Fault, GuidanceStop
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage

if TYPE_CHECKING:
    from twin.robot.robot import Robot


class JointGuidance:
    """Guides the joints of a robot.

    Args:
        robot: its ranges bound the references.
        settings: gain, filter, windows, and which joints are guided.
    """

    def __init__(self, robot: Robot, settings: GuidanceSettings) -> None:
        self.robot, self.settings = robot, settings

    def begin(self, q: Floats, period: float) -> None:
        """Begin at rest in q (n,), in [rad]; `speed` is then asked for once a period, in [s]."""
        bandwidth = self.settings.bandwidth
        self.share = 1.0 if bandwidth is None else -math.expm1(-2.0 * math.pi * bandwidth * period)
        self.q_ref, self.qd_ref, self.qd = q.copy(), np.zeros_like(q), np.zeros_like(q)

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Take over the joint angles and speeds of a message."""
        if message.q is None and message.qd is None:
            raise GuidanceStop(Fault(41826, "mode mismatch", "expected joint angles or joint speeds"))
        if message.q is not None:
            self.q_ref = message.q.copy()
        self.qd_ref = np.zeros_like(q) if message.qd is None else message.qd.copy()

    def speed(self, q: Floats) -> Floats:
        """Joint speeds (n,) of the next period, in [rad/s]."""
        wanted = self.settings.gain * (self.q_ref - q) + self.qd_ref
        self.qd = self.qd + self.share * (wanted - self.qd)
        return self.qd

    def programmed(self) -> Floats:
        """No program moves the robot: (n,) zeros."""
        return np.zeros_like(self.qd)

    def ended(self) -> bool:
        """Never: there is no program."""
        return False

    def converged(self, q: Floats) -> bool:
        """Whether measured joint angles q (n,), in [rad], are within the window of the reference."""
        return bool(np.all(np.abs(self.q_ref - q) <= np.deg2rad(0.5)))

    def follow(self, qd: Floats) -> None:
        """Go on filtering from the speed (n,) that the limits left, in [rad/s]."""
        self.qd = qd.copy()
