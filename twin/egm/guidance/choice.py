"""Which guidance a robot gets: by its mode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twin.arrays import Floats
from twin.egm.guidance.guidance import Guidance
from twin.egm.guidance.settings import GuidanceSettings
from twin.errors import EgmError

if TYPE_CHECKING:
    from twin.recordings.recording import Recording
    from twin.robot.robot import Robot


def guidance_of(
    robot: Robot,
    settings: GuidanceSettings,
    T_flange_tool: Floats | None = None,
    path: str | Path | Recording | None = None,
) -> Guidance:
    """The guidance of a robot in the mode of its settings.

    Args:
        robot: the robot.
        settings: how it is guided.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        path: a recording of the tool or of the joints, or its file: what the robot moves along in path mode.

    Raises:
        EgmError: the robot cannot be guided so, or a path is missing, or there is one in another mode.
        RecordingError and others: the robot cannot move along the path, see `recorded_motion`.
    """
    if settings.mode == "path":
        from twin.egm.guidance.path_correction import PathGuidance

        if path is None:
            raise EgmError("mode path needs a path: a recording of the tool or of the joints")
        return PathGuidance(robot, settings, path, T_flange_tool)
    if path is not None:
        raise EgmError(f"mode {settings.mode} has no path: a path is corrected in mode path")
    if settings.mode == "pose":
        from twin.egm.guidance.pose_guidance import PoseGuidance

        return PoseGuidance(robot, settings, T_flange_tool)
    from twin.egm.guidance.joint_guidance import JointGuidance

    return JointGuidance(robot, settings)
