"""One instruction that guides a robot: from waiting for the first answer to standing still again."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import Fault, Guidance, GuidanceStop
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage
from twin.trajectories.sampling import Samples

if TYPE_CHECKING:
    from twin.robot.robot import Robot


class Phase(Enum):
    """Where an instruction is."""

    WAITING = "waiting"  # for the first answer, at rest
    GUIDED = "guided"
    STOPPING = "stopping"  # on its ramp
    RETURNING = "returning"  # to where it began
    FINISHED = "finished"


class Run:
    """One `EGMRunJoint`, `EGMRunPose` or `EGMMoveL`.

    Attributes:
        phase: where it is.
        fault: why it stopped, `None` where nothing was wrong.
        q, qd: (n,) commanded now, in [rad] and [rad/s].
        converged: whether the arm was within the convergence window when it was last measured.
        utilization: what of the joints' largest speeds is asked for, in [%].

    Args:
        robot: its ranges and speeds bound the motion.
        settings: how it is guided.
        guidance: what makes speeds of the messages.
        q: (n,) where it begins, at rest, in [rad].
        period: of the samples, in [s].
    """

    def __init__(
        self, robot: Robot, settings: GuidanceSettings, guidance: Guidance, q: Floats, period: float
    ) -> None:
        self.robot, self.settings, self.guidance, self.period = robot, settings, guidance, period
        self.phase, self.fault = Phase.WAITING, None
        self.q = np.array(q, dtype=np.float64)
        self.qd = np.zeros_like(self.q)
        self.converged, self.utilization = False, 0.0
        self._k, self._inside = 0, 0.0
        self.fault: Fault | None = None
        guidance.begin(self.q, period)

    def take(self, message: SensorMessage) -> None:
        """Take over what a message says; what it asks for and the robot cannot do is its `fault`, and stops it."""
        if self.phase not in (Phase.WAITING, Phase.GUIDED):
            return
        try:
            self.guidance.take(message, self.q)
        except GuidanceStop as stop:
            self.stop(stop.fault)
        else:
            self.phase = Phase.GUIDED

    def measured(self, q: Floats, elapsed: float) -> None:
        """Be told once a cycle where the arm is; within its window for `cond_time`, the instruction ends.

        Args:
            q: (n,) measured joint angles, in [rad].
            elapsed: since the last call, in [s].
        """
        self.converged = self.phase is not Phase.WAITING and self.guidance.converged(q)
        self._inside = self._inside + elapsed if self.converged else 0.0
        if self.phase is Phase.GUIDED and not self.settings.no_wait_cond:
            if self._inside >= self.settings.cond_time - 1e-9:
                self.stop()

    def stop(self, fault: Fault | None = None) -> None:
        """Come to rest; a fault, if there is one, is kept."""
        if self.phase in (Phase.WAITING, Phase.GUIDED):
            self.fault, self.phase = fault, Phase.STOPPING

    def samples(self, count: int) -> Samples:
        """The next so many samples of the motion: each is where it is, with the acceleration to the next.

        They obey `qd[k+1] = qd[k] + dt qdd[k]`, `q[k+1] = q[k] + dt qd[k+1]`, so that a law that knows the
        arm follows them to round-off; the run is then one period behind the last of them.
        """
        dt = self.period
        t = np.arange(self._k, self._k + count, dtype=np.float64) * dt
        q, qd, qdd = np.empty((3, count, len(self.q)))
        for k in range(count):
            q[k], qd[k] = self.q, self.qd
            speed = self._speed()
            qdd[k] = (speed - self.qd) / dt
            self.q, self.qd = self.q + dt * speed, speed
        self._k += count
        return Samples(t, q, qd, qdd)

    def _speed(self) -> Floats:
        """The speed (n,) of the next period, in [rad/s]."""
        if self.phase is not Phase.GUIDED:
            if self.phase is Phase.STOPPING:
                self.phase = Phase.FINISHED
            return np.zeros_like(self.q)
        speed = self.guidance.speed(self.q)
        limit = self.settings.speed_limit
        speed = speed * min(1.0, limit / max(limit, float(np.max(np.abs(speed)))))
        self.guidance.follow(speed)
        return speed
