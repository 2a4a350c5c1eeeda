"""Interface of the guidance modes, and joint guidance (`EGMRunJoint`) by joint angles, joint speeds, or both.

Messages set the references; guidance returns joint speeds period by period.  The requested joint speed is
`u = k (q_ref - q) + qd_ref`, with the commanded angles q.  The low-pass filter yields
`v+ = v + (1 - exp(-2 pi f dt)) (u - v)`, and at level 0 `v+ = u`.  The limits of a run may reduce v+.  The
reduced speed is the v of the next period, so that the filter does not wind up behind a limit.

The manual states that the filter acts on the sum of gain times error and speed reference.  It states neither
the order of the filter nor its sampling.  A first-order filter, exact between samples, is ours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from twin.abb.egm.guidance.settings import GuidanceSettings
from twin.abb.egm.wire.messages import SensorMessage
from twin.base.arrays import Floats
from twin.base.errors import LimitError
from twin.physics.robot.limits import check_position

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot

MODE_MISMATCH = 41826
OUT_OF_RANGE = 50027
"""Event numbers in the event log of a robot controller."""

GUIDING_PARTS = ("q", "qd", "T", "twist", "path_correction")
"""Fields of a `SensorMessage` that move a robot."""


class Fault(NamedTuple):
    """Reason why the guidance of a robot stops.

    Attributes:
        number: event number in the event log of a robot controller; 0 if unknown.
        name: name of the RAPID error or of the event.
        sentence: description of the error, its location and the valid values.
    """

    number: int
    name: str
    sentence: str


class GuidanceStop(Exception):
    """Exception that ends guidance; the attribute `fault` contains the reason."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.sentence)
        self.fault = fault


class Guidance:
    """Base class of joint, pose and path guidance.

    In all methods except `converged`, `q` (n,) is the commanded position of the present sample, in [rad]: the
    reference of the arm's controller, not the measured position.
    """

    robot: Robot
    refusal: ClassVar[str]
    """Message of the fault that an answer of another mode causes."""
    guiding_parts: ClassVar[tuple[str, ...]]
    """Fields of a `SensorMessage` that this mode uses."""

    def begin(self, q: Floats, period: float) -> None:
        """Start at rest in q (n,), in [rad], with q as the reference.

        Args:
            q: (n,) commanded joint angles, in [rad].
            period: time between two calls of `speed`, in [s].
        """
        raise NotImplementedError

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Set the references of a message, valid until the next one; ignore a message without references.

        Raises:
            GuidanceStop: the robot cannot reach the reference, or the message is of another mode.
        """
        raise NotImplementedError

    def speed(self, q: Floats) -> Floats:
        """Return the requested joint speeds (n,) of the next period, in [rad/s]; called once a period.

        They include the gain, the speed reference and the low-pass filter.  The caller applies ramps and
        limits to the difference from the `programmed` speed.

        Raises:
            GuidanceStop: the motion is not possible, for example near a singularity.
        """
        raise NotImplementedError

    def converged(self, q: Floats) -> bool:
        """Return whether measured joint angles q (n,) are within the convergence window of the reference."""
        raise NotImplementedError

    def follow(self, qd: Floats) -> None:
        """Continue filtering from the limited speed (n,) before the ramp, in [rad/s]."""
        raise NotImplementedError

    def programmed(self) -> Floats:
        """Return the share (n,) of the programmed path in the last `speed`, in [rad/s]; 0 without a path."""
        return np.zeros(self.robot.n)

    def ended(self) -> bool:
        """Return whether the programmed path has ended; always False without a path."""
        return False

    def has_guiding_part(self, message: SensorMessage) -> bool:
        """Return whether a message has references of this mode; False if it has no references at all.

        Raises:
            GuidanceStop: the message only has references of another mode.
        """
        given = [part for part in GUIDING_PARTS if getattr(message, part) is not None]
        if given and not set(given) & set(self.guiding_parts):
            raise GuidanceStop(Fault(MODE_MISMATCH, "EGM mode mismatch", self.refusal))
        return bool(given)


def filter_coefficient(bandwidth: float | None, period: float) -> float:
    """Return the coefficient 1 - exp(-2 pi f dt) of the low-pass filter.

    Args:
        bandwidth: bandwidth f, in [Hz]; `None` disables the filter (coefficient 1).
        period: sampling period dt, in [s].

    Example:
        >>> from twin.abb.egm.guidance.guidance import filter_coefficient
        >>> filter_coefficient(None, period=0.004), round(filter_coefficient(20.0, period=0.004), 4)
        (1.0, 0.3951)
    """
    return 1.0 if bandwidth is None else -math.expm1(-2.0 * math.pi * bandwidth * period)


LARGEST_ANGLE = 1e300
"""Largest joint angle, in [rad], whose conversion to degrees does not overflow."""


class JointGuidance(Guidance):
    """Joint guidance of a robot; joints that are not guided hold their position.

    A message without joint angles leaves the last angles valid, initially those at the start.  A message
    without joint speeds sets them to 0.  Angles farther from the start than `max_pos_deviation` are clipped
    to this distance, and the arm then does not converge.  The manual only defines this distance as the
    largest admitted one; clipping is ours.

    Args:
        robot: robot whose joint ranges bound the references.
        settings: gain, filter, convergence windows, and guided joints.
    """

    guiding_parts = ("q", "qd")
    refusal = "joint guidance received a message without joints: expected joint angles or joint speeds"

    def __init__(self, robot: Robot, settings: GuidanceSettings) -> None:
        self.robot, self.settings, self.gain = robot, settings, settings.gain
        self.guided, self.window = list(settings.joints(robot.n)), settings.window(robot.n)

    def begin(self, q: Floats, period: float) -> None:
        """Start at rest in q (n,), in [rad], with a sampling period in [s]."""
        self.share = filter_coefficient(self.settings.bandwidth, period)
        self.start, self.q_requested, self.q_ref = q.copy(), q.copy(), q.copy()
        self.qd_ref, self.qd = np.zeros_like(q), np.zeros_like(q)

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Set the joint angles and speeds of a message as references.

        Raises:
            GuidanceStop: the message only has tool or path references, its number of joints differs, a value
                is not finite, or a joint would leave its range.
        """
        if not self.has_guiding_part(message):
            return
        requested, qd_ref = self.q_requested.copy(), np.zeros_like(self.q_requested)
        if message.q is not None:
            requested[self.guided] = self._checked(message.q, "joint angles")[self.guided]
            try:
                check_position(self.robot, np.clip(requested, -LARGEST_ANGLE, LARGEST_ANGLE), hint=False)
            except LimitError as error:
                raise GuidanceStop(Fault(OUT_OF_RANGE, "Joint Out of Range", f"{error}")) from None
        if message.qd is not None:
            qd_ref[self.guided] = self._checked(message.qd, "joint speeds")[self.guided]
        limit = self.settings.position_limit
        self.q_requested, self.qd_ref = requested, qd_ref
        self.q_ref = np.clip(requested, self.start - limit, self.start + limit)

    def speed(self, q: Floats) -> Floats:
        """Return the joint speeds (n,) of the next period, in [rad/s]; q (n,) is commanded, in [rad]."""
        desired = self.gain * (self.q_ref - q) + self.qd_ref
        self.qd = self.qd + self.share * (desired - self.qd)
        return self.qd

    def converged(self, q: Floats) -> bool:
        """Return whether measured angles q (n,), in [rad], are within the window of the requested angles."""
        return bool((np.abs(self.q_requested - q) <= self.window)[self.guided].all())

    def follow(self, qd: Floats) -> None:
        """Continue filtering from the limited speed (n,), in [rad/s]."""
        self.qd = qd

    def _checked(self, values: Floats, what: str) -> Floats:
        """Return the values of a message; raise `GuidanceStop` unless they are n finite numbers."""
        n = self.robot.n
        if values.shape == (n,) and np.isfinite(values).all():
            return values
        got = "values that are not finite" if values.shape == (n,) else f"{values.size}"
        sentence = f"joint guidance of {self.robot.name} expects {n} finite {what}, got {got}"
        raise GuidanceStop(Fault(0, "invalid message", sentence))
