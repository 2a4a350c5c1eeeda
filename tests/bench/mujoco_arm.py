"""Bare MuJoCo, reduced to the dynamics."""

from typing import Any

import mujoco

from twin.physics.robot.robot import Robot


def loaded(robot: Robot) -> tuple[Any, Any]:
    """Return MuJoCo's model and data of the robot's tree, without constraints and shapes.

    The poses of shapes would take a tenth of a step.
    """
    spec = mujoco.MjSpec.from_file(str(robot.urdf))
    for shape in spec.geoms:
        spec.delete(shape)
    model = spec.compile()
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return model, mujoco.MjData(model)
