"""The form of a way to be guided: references come in by messages, joint speeds go out period by period."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from twin.arrays import Floats
from twin.egm.wire.messages import SensorMessage

MODE_MISMATCH = 41826
OUT_OF_RANGE = 50027
"""Numbers of events in a controller's log."""


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


class Guidance(Protocol):
    """One of joint, pose and path guidance.

    `q` (n,) are the commanded joint angles of the present sample, in [rad]: where the motion is that the
    arm's control law was sent, and not the measured ones.
    """

    def begin(self, q: Floats, period: float) -> None:
        """Begin at rest in q; the reference is where the arm is.  `period`: between two speeds, in [s]."""
        ...

    def take(self, message: SensorMessage, q: Floats) -> None:
        """Take over what a message says; it stays valid until the next one.

        Raises:
            GuidanceStop: it asks for what the robot cannot do, or is of another mode.
        """
        ...

    def speed(self, q: Floats) -> Floats:
        """Joint speeds (n,) that guidance asks for in the next period, in [rad/s]; called once a period.

        The gain, the speed reference and the low-pass filter are in it; ramps and limits are not, which act
        on its difference from the `programmed` speed.

        Raises:
            GuidanceStop: there is no such motion, say near a singularity.
        """
        ...

    def programmed(self) -> Floats:
        """The part (n,) of the last `speed` that is the robot's own program, in [rad/s]: 0 but on a path."""
        ...

    def ended(self) -> bool:
        """Whether the robot's own program is at its end: never, but on a path."""
        ...

    def converged(self, q: Floats) -> bool:
        """Whether measured joint angles q are within the convergence window of the reference."""
        ...

    def follow(self, qd: Floats) -> None:
        """Be told the speed (n,) that the limits left of the last `speed`, in [rad/s]; no ramp is in it."""
        ...
