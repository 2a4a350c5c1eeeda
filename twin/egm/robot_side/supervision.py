"""What a robot's controller watches while it is guided, and the faults that it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import Fault

if TYPE_CHECKING:
    from twin.robot.robot import Robot

FOLLOWING_ERROR = np.deg2rad(5.0)
"""In [rad] of a joint, from where it was commanded to where it is: beyond it the arm is stopped.  The manual
tells no figure; ours."""


def silence(seconds: float, allowed: float, partner: str, broken: int = 0) -> Fault | None:
    """The fault of a partner of whom nothing was heard for so long.

    Args:
        seconds: since its last message, in [s].
        allowed: CommTimeout, in [s].
        partner: its name.
        broken: datagrams of it that were no messages.
    """
    if seconds < allowed - 1e-9:  # round-off of a sum
        return None
    return Fault(
        41822, "ERR_UDPUC_COMM",
        f"no message from {partner} for {seconds:g} s, at most {allowed:g} s are allowed (CommTimeout)"
        + f"; {broken} datagrams came that are none" * (broken > 0),
    )  # fmt: skip


def following_error(robot: Robot, q: Floats, q_commanded: Floats) -> Fault | None:
    """The fault of an arm that does not follow; q and q_commanded (n,), in [rad]."""
    off = np.abs(q - q_commanded)
    if np.all(off <= FOLLOWING_ERROR):
        return None
    joint = int(np.argmax(~(off <= FOLLOWING_ERROR)))
    return Fault(
        50204, "Motion supervision",
        f"{robot.joint_names[joint]} is {np.rad2deg(off[joint]):.3g} deg from where it is to be, at most "
        f"{np.rad2deg(FOLLOWING_ERROR):g} deg are allowed",
    )  # fmt: skip
