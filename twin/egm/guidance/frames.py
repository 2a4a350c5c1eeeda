"""The frames that a tool's pose is told and corrected in: of `EGMActPose`, relative to the base and others.

    T_base_wobj      the work object, told in the base frame
    T_base_corr      CorrFrame: along and about its axes the tool is guided, or kept
    T_base_sensor    SensorFrame: what poses and speeds of a message are told in

CorrFrame and SensorFrame are told relative to one of four: `base`; `wobj`, the work object; `world`; and
`tool`, the frame tool0 of the flange where it was when the instruction began, and fixed from then on (that it
does not move along is ours, the manual does not tell).  The manual's fifth, `EGM_FRAME_JOINT`, there is not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from twin.arrays import Floats
from twin.egm.guidance.settings import GuidanceSettings
from twin.errors import EgmError
from twin.robot.flange_load import numbers, unit_pose

if TYPE_CHECKING:
    from twin.robot.robot import Robot

FARTHEST = 20.0
"""In [m]: nothing that an arm works on is farther from it, so larger numbers are millimetres."""


class Frames(NamedTuple):
    """The frames of one instruction.

    Attributes:
        T_base_wobj: (4, 4) the work object in the base frame, in [m], as are the others.
        T_base_corr: (4, 4) CorrFrame.
        T_base_sensor: (4, 4) SensorFrame.
    """

    T_base_wobj: Floats
    T_base_corr: Floats
    T_base_sensor: Floats


def frame_of(text: str | None, setting: str) -> Floats:
    """The pose (4, 4) of a frame that a text tells, in [m]; `None` tells the one that it is relative to.

    Args:
        text: `x,y,z` or `x,y,z,a,b,c,d`: metres, and a unit quaternion, scalar first.
        setting: its name, for the message.

    Raises:
        EgmError: it is not that.
    """
    if text is None:
        return np.eye(4)
    told = "a frame as x,y,z or as x,y,z,a,b,c,d in m and a unit quaternion, scalar first"
    try:
        values = numbers(text, told, (3, 7))
        farthest = max(map(abs, values[:3]))
        if farthest > FARTHEST:
            raise ValueError(
                f"expected {told}, at most {FARTHEST:g} m away, got {farthest:g}: are these millimetres?"
            )
        return unit_pose(values, told)
    except ValueError as error:
        raise EgmError(f"{setting}: {error}") from None


def base_in_world(gravity: Floats) -> Floats:
    """The turn (4, 4) `T_world_base` of a mounting: the least one that makes up of the base upwards in z.

    For an arm that hangs, any half turn about a horizontal axis is as small: that about x is taken, ours.

    Args:
        gravity: (3,) acceleration of gravity in the base frame, in [m/s^2]; none at all turns nothing.
    """
    T = np.eye(4)
    length = float(np.linalg.norm(gravity))
    if length > 0.0:
        x, y, z = -np.asarray(gravity) / length
        sine = math.hypot(x, y)  # the axis is up x (0, 0, 1) = (y, -x, 0)
        axis = np.array([y, -x, 0.0]) / sine if sine > 0.0 else np.array([1.0, 0.0, 0.0])
        T[:3, :3] = Rotation.from_rotvec(math.atan2(sine, z) * axis).as_matrix()
    return T


def work_object(settings: GuidanceSettings) -> Floats:
    """The pose (4, 4) `T_base_wobj` of the work object, in [m].

    Raises:
        EgmError: its text tells no frame.
    """
    return frame_of(settings.wobj, "wobj")


def frames_of(robot: Robot, settings: GuidanceSettings, T_base_tool0: Floats) -> Frames:
    """The frames of an instruction that begins now.

    Args:
        robot: its mounting tells the world.
        settings: what the frames are, and what they are told in.
        T_base_tool0: (4, 4) the flange where it begins, in [m].

    Raises:
        EgmError: a text that tells no frame.
    """
    T_base_wobj = work_object(settings)
    known = {
        "base": np.eye(4),
        "world": base_in_world(robot.gravity).T,  # the inverse of a turn
        "wobj": T_base_wobj,
        "tool": np.asarray(T_base_tool0, dtype=np.float64),
    }
    corr, sensor = settings.corr_frame, settings.sensor_frame
    corr_type = settings.corr_frame_type
    sensor_type = corr_type if settings.sensor_frame_type is None else settings.sensor_frame_type
    T_base_corr = known[corr_type] @ frame_of(corr, "corr_frame")
    T_base_sensor = known[sensor_type] @ (
        frame_of(corr, "corr_frame") if sensor is None else frame_of(sensor, "sensor_frame")
    )
    return Frames(T_base_wobj, T_base_corr, T_base_sensor)
