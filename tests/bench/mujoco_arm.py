"""MuJoCo by itself, given nothing but the dynamics to do."""

from typing import Any

import mujoco

from twin.robot.robot import Robot


def loaded(robot: Robot) -> tuple[Any, Any]:
    """Model and data of the robot's tree: no constraints, no shapes, whose poses take a tenth of a step."""
    spec = mujoco.MjSpec.from_file(str(robot.urdf))
    for shape in spec.geoms:
        spec.delete(shape)
    model = spec.compile()
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return model, mujoco.MjData(model)
