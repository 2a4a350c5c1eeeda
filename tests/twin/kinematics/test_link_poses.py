"""Where the links are: as Pinocchio has them, with the flange at the tool's pose, and loops closed."""

import numpy as np
import pinocchio as pin

import twin
from twin.kinematics.forward import link_poses


def joints(arm, rng, count):
    return rng.uniform(np.maximum(arm.q_min, -2.0), np.minimum(arm.q_max, 2.0), (count, arm.n))


def test_links_are_where_pinocchio_has_them_and_the_last_one_carries_the_flange(arm, rng):
    model = pin.buildModelFromUrdf(str(arm.urdf))
    data = model.createData()
    for q in joints(arm, rng, 5):
        place = np.zeros(model.nq)
        for name, angle in zip(arm.tree.names, arm.tree_positions(q), strict=True):
            place[model.joints[model.getJointId(name)].idx_q] = angle
        pin.forwardKinematics(model, data, place)
        theirs = [data.oMi[model.getJointId(name)].homogeneous for name in arm.tree.names]
        np.testing.assert_allclose(link_poses(arm, q), theirs, rtol=0, atol=2e-15)
    q = joints(arm, rng, 6).reshape(2, 3, arm.n)
    flange = link_poses(arm, q)[..., arm.tree.flange_joint, :, :] @ arm.tree.T_joint_flange
    np.testing.assert_allclose(flange, twin.forward_kinematics(arm, q), rtol=0, atol=2e-15)
