"""What a mirror tells, once a second and at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.mirror.clock import Lateness
from twin.egm.mirror.payload_estimate import ExplainingPayload
from twin.egm.wire.order import Counts
from twin.errors import EgmError
from twin.robot.robot import Robot


class Alarm(NamedTuple):
    """A torque that was further from the expected one than it may be.

    Attributes:
        t: when, in [s] of the robot's time since its stream began.
        joint: its number, from 1.
        residual: reported less expected torque, in [N m].
        beyond: how much of it friction at rest cannot be, in [N m].
        limit: for that, in [N m].
    """

    t: float
    joint: int
    residual: float
    beyond: float
    limit: float


@dataclass(frozen=True, eq=False)
class Report:
    """How the robot was in the second before.

    Attributes:
        t: of the newest instant that is told of, in [s] of the robot's time since its stream began.
        q: (n,) joint angles then, in [rad].
        expected: (n,) torques that the model expected then of the motors, at the joints, in [N m].
        reported: (n,) those that the robot reported; `None` where it did not.
        residual_rms: (n,) of reported less expected torques in that second, in [N m].
        residual_peak: (n,) the furthest from 0, with its sign.
        friction_open: (n,) how far friction at rest leaves the expected torques open then, in [N m].
        payload: that would explain the residuals of the last half minute; `None` without reported torques,
            and as long as no joint that rubs has moved.
        alarms: that began in that second.
        lateness: of the messages; `None` where their arrival is not known.
        counts: of all messages so far.
    """

    t: float
    q: Floats
    expected: Floats
    reported: Floats | None
    residual_rms: Floats
    residual_peak: Floats
    friction_open: Floats
    payload: ExplainingPayload | None
    alarms: tuple[Alarm, ...]
    lateness: Lateness | None
    counts: Counts

    @property
    def residual(self) -> Floats | None:
        """Reported less expected torques (n,) at `t`, in [N m]; `None` where they were not reported."""
        return None if self.reported is None else self.reported - self.expected


def alarm_limits(robot: Robot, alarm: float | Floats | str | None) -> Floats:
    """The limits (n,) of the residuals, in [N m]; infinite where there are none.

    Args:
        robot: the model.
        alarm: in [N m], for every joint or one a joint; or a text as `20`, `30,40,30,10,10,5`, or `15%` of
            what each drive gives.

    Raises:
        EgmError: it is not that.
    """
    limits: object = alarm
    wanted = f"expected a limit above 0 N m for the alarm, or {robot.n} of them, or a share as 15%"
    if alarm is None:
        return np.full(robot.n, np.inf)
    try:
        if isinstance(alarm, str) and alarm.endswith("%"):
            limits = float(alarm[:-1]) / 100.0 * robot.drive_torque_max
        elif isinstance(alarm, str):
            limits = [float(word) for word in alarm.split(",")]
        values = np.array(limits, dtype=np.float64)
    except (TypeError, ValueError):
        raise EgmError(f"{wanted}, got {alarm!r}") from None
    if values.shape not in ((), (1,), (robot.n,)) or not np.all(values > 0):
        raise EgmError(f"{wanted}, got {alarm!r}")
    return np.broadcast_to(values, (robot.n,)).copy()


def copied(counts: Counts) -> Counts:
    """The counts as they are now."""
    return replace(counts)


def rms_and_peak(residuals: Floats) -> tuple[Floats, Floats]:
    """Root mean square (n,) of residuals (N, n), and the furthest from 0 (n,) with its sign.

    Of the rows in which torques were reported, if there are any: they may have begun in between.
    """
    told = residuals[np.all(np.isfinite(residuals), axis=1)]
    values = told if len(told) else residuals
    furthest = np.argmax(np.abs(values), axis=0)[None]
    return np.sqrt(np.mean(values**2, axis=0)), np.take_along_axis(values, furthest, axis=0)[0]
