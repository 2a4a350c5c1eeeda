"""The form of every guidance, and joint guidance (`EGMRunJoint`): joint angles, joint speeds, or both.

References come in by messages, joint speeds go out period by period.  The speed that is wanted of joints is
`u = k (q_ref - q) + qd_ref`, with q the commanded angles; the low-pass filter makes
`v+ = v + (1 - exp(-2 pi f dt)) (u - v)` of it, and at level 0 `v+ = u`.  What the limits of a run leave of v+
is the v of the next period, so that the filter does not go on behind a limit.

The manual tells that the filter acts on gain times error plus speed reference, and not its order nor how it
is sampled: of first order and exact between samples, ours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage
from twin.errors import LimitError
from twin.robot.limits import check_position

if TYPE_CHECKING:
    from twin.robot.robot import Robot

MODE_MISMATCH = 41826
OUT_OF_RANGE = 50027
"""Numbers of events in a controller's log."""

GUIDING_PARTS = ("q", "qd", "T", "twist", "path_correction")
"""The parts of a `SensorMessage` that move a robot."""


class Fault(NamedTuple):
    """Why a robot stops being guided.

    Attributes:
        number: of the event in a controller's log; 0 where we know of none.
        name: of the error in RAPID, or of the event.
        sentence: what was wrong, where, and what is valid.
    """

    number: int
    name: str
    sentence: str


class GuidanceStop(Exception):
    """Guidance cannot go on; `fault` tells why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.sentence)
        self.fault = fault


class Guidance:
    """One of joint, pose and path guidance.

    `q` (n,) are the commanded joint angles of the present sample, in [rad]: where the motion is that the
    arm's control law was sent, and not the measured ones.
    """

    robot: Robot
    refusal: ClassVar[str]
    """The sentence on a message that guides otherwise."""
    own_parts: ClassVar[tuple[str, ...]]
    """The parts of a message that guide it."""

    def begin(self, q: Floats, period: float) -> None:
        """Begin at rest in q; the reference is where the arm is.  `period`: between two speeds, in [s]."""
        raise NotImplementedError

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Take over what a message says, valid until the next one; one that says nothing changes nothing.

        Raises:
            GuidanceStop: it asks for what the robot cannot do, or is of another mode.
        """
        raise NotImplementedError

    def speed(self, q: Floats) -> Floats:
        """Joint speeds (n,) that guidance asks for in the next period, in [rad/s]; called once a period.

        The gain, the speed reference and the low-pass filter are in it; ramps and limits are not, which act
        on its difference from the `programmed` speed.

        Raises:
            GuidanceStop: there is no such motion, say near a singularity.
        """
        raise NotImplementedError

    def converged(self, q: Floats) -> bool:
        """Whether measured joint angles q are within the convergence window of the reference."""
        raise NotImplementedError

    def follow(self, qd: Floats) -> None:
        """Go on from the speed (n,) that the limits left of the last `speed`, in [rad/s], without a ramp."""
        raise NotImplementedError

    def programmed(self) -> Floats:
        """The part (n,) of the last `speed` that is the robot's own program, in [rad/s]: 0 but on a path."""
        return np.zeros(self.robot.n)

    def ended(self) -> bool:
        """Whether the robot's own program is at its end: never, but on a path."""
        return False

    def concerns(self, message: SensorMessage) -> bool:
        """Whether a message has a part that guides; False where it has none of any mode.

        Raises:
            GuidanceStop: it is of another mode.
        """
        given = [part for part in GUIDING_PARTS if getattr(message, part) is not None]
        if given and not set(given) & set(self.own_parts):
            raise GuidanceStop(Fault(MODE_MISMATCH, "EGM mode mismatch", self.refusal))
        return bool(given)


def filter_share(bandwidth: float | None, period: float) -> float:
    """The share of the way to the wanted speed that the filter goes in one period: 1 - exp(-2 pi f dt).

    Args:
        bandwidth: f, in [Hz]; `None` for no filter, which goes all the way.
        period: dt, in [s].
    """
    return 1.0 if bandwidth is None else -math.expm1(-2.0 * math.pi * bandwidth * period)


LARGEST = 1e300
"""The largest joint angle, in [rad]: more would be infinitely many degrees."""


class JointGuidance(Guidance):
    """Guides the joints of a robot; those that are not guided stay where they are.

    Without joint angles in a message those of the last one stay valid, at first those of the start; without
    speeds they are 0.  Angles farther from the start than `max_pos_deviation` count as that far (ours; the
    manual tells that it is the largest that is admitted), and the arm has then not converged.

    Args:
        robot: its ranges bound the references.
        settings: gain, filter, windows, and which joints are guided.
    """

    own_parts = ("q", "qd")
    refusal = "joint guidance got a message without joints, valid are joint angles or joint speeds"

    def __init__(self, robot: Robot, settings: GuidanceSettings) -> None:
        self.robot, self.settings, self.gain = robot, settings, settings.gain
        self.guided, self.window = list(settings.joints(robot.n)), settings.window(robot.n)

    def begin(self, q: Floats, period: float) -> None:
        """Begin at rest in q (n,), in [rad]; `speed` is then asked for once a period, in [s]."""
        self.share = filter_share(self.settings.bandwidth, period)
        self.start, self.told, self.q_ref = q.copy(), q.copy(), q.copy()
        self.qd_ref, self.qd = np.zeros_like(q), np.zeros_like(q)

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Take over the joint angles and speeds of a message; one that tells nothing changes nothing.

        Raises:
            GuidanceStop: it tells of the tool or of a path alone; it is of another number of joints, or not
                finite; a joint would leave its range.
        """
        if not self.concerns(message):
            return
        told, qd_ref = self.told.copy(), np.zeros_like(self.told)
        if message.q is not None:
            told[self.guided] = self._checked(message.q, "joint angles")[self.guided]
            try:
                check_position(self.robot, np.clip(told, -LARGEST, LARGEST), hint=False)
            except LimitError as error:
                raise GuidanceStop(Fault(OUT_OF_RANGE, "Joint Out of Range", f"{error}")) from None
        if message.qd is not None:
            qd_ref[self.guided] = self._checked(message.qd, "joint speeds")[self.guided]
        far = self.settings.position_limit
        self.told, self.qd_ref = told, qd_ref
        self.q_ref = np.clip(told, self.start - far, self.start + far)

    def speed(self, q: Floats) -> Floats:
        """Joint speeds (n,) of the next period at the commanded angles q (n,), in [rad/s] and [rad]."""
        wanted = self.gain * (self.q_ref - q) + self.qd_ref
        self.qd = self.qd + self.share * (wanted - self.qd)
        return self.qd

    def converged(self, q: Floats) -> bool:
        """Whether measured joint angles q (n,), in [rad], are within the window of what was told last."""
        return bool((np.abs(self.told - q) <= self.window)[self.guided].all())

    def follow(self, qd: Floats) -> None:
        """Go on filtering from the speed (n,) that the limits left, in [rad/s]."""
        self.qd = qd

    def _checked(self, values: Floats, what: str) -> Floats:
        """The values of a message, if they are n finite numbers."""
        n = self.robot.n
        if values.shape == (n,) and np.isfinite(values).all():
            return values
        got = "others" if values.shape == (n,) else f"{values.size}"
        sentence = f"joint guidance of {self.robot.name} expects {n} finite {what}, got {got}"
        raise GuidanceStop(Fault(0, "invalid message", sentence))
