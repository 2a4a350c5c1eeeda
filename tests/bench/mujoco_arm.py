"""Bare MuJoCo, reduced to the dynamics."""

from typing import Any

import mujoco
import numpy as np

import twin
from twin.physics.robot.robot import Robot


def pressing(robot: Robot, q: np.ndarray, height: float) -> tuple[Any, Any]:
    """Return MuJoCo's model and data of an arm that springs at the joints press on a plane, in one contact.

    Args:
        robot: the arm.
        q: (n,) positions of the relaxed springs, in [rad].
        height: of the plane, in [m]; a ball of 1 mm at the flange touches it.
    """
    spec = mujoco.MjSpec.from_file(str(robot.urdf))
    for shape in spec.geoms:
        spec.delete(shape)
    at = spec.compile()
    data = mujoco.MjData(at)
    data.qpos[:] = q
    mujoco.mj_kinematics(at, data)
    body = at.body(at.nbody - 1)
    T = twin.forward_kinematics(robot, q)
    local = data.xmat[body.id].reshape(3, 3).T @ (T[:3, 3] - data.xpos[body.id])
    spec.body(body.name).add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1e-3, 0, 0], pos=local, mass=0.0)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 1], pos=[0, 0, height])
    model = spec.compile()
    model.opt.timestep, model.qpos_spring[:] = 1e-3, q
    model.jnt_stiffness[:], model.dof_damping[:] = 3e3, 200.0
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_step(model, data, 1000)  # at rest, in contact
    return model, data


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
