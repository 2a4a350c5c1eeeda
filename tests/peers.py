"""The other libraries that compute the same quantities, behind one interface, one sample at a time."""

import mujoco
import numpy as np
import pinocchio as pin


class Pinocchio:
    """A URDF in Pinocchio; joints are taken in the order of `names`, which may differ from its own."""

    def __init__(self, urdf, names) -> None:
        self.model = pin.buildModelFromUrdf(str(urdf))
        self.data = self.model.createData()
        self.order = [self.model.joints[self.model.getJointId(name)].idx_q for name in names]
        self.back = np.argsort(self.order)

    def _own(self, *vectors):
        return [np.asarray(v)[self.back] for v in vectors]

    def inverse_dynamics(self, q, qd, qdd):
        return pin.rnea(self.model, self.data, *self._own(q, qd, qdd))[self.order]

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.model, self.data, *self._own(q)))
        return (upper + np.triu(upper, 1).T)[np.ix_(self.order, self.order)]

    def coriolis_matrix(self, q, qd):
        C = pin.computeCoriolisMatrix(self.model, self.data, *self._own(q, qd))
        return C[np.ix_(self.order, self.order)]

    def gravity_torque(self, q):
        return pin.computeGeneralizedGravity(self.model, self.data, *self._own(q))[self.order]

    def forward_dynamics(self, q, qd, tau):
        return pin.aba(self.model, self.data, *self._own(q, qd, tau))[self.order]

    def forward_kinematics(self, q, frame="tool0"):
        pin.framesForwardKinematics(self.model, self.data, *self._own(q))
        return self.data.oMf[self.model.getFrameId(frame)].homogeneous.copy()

    def jacobian(self, q, frame="tool0"):
        at = (self.model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED)
        return pin.computeFrameJacobian(self.model, self.data, *self._own(q), *at)[:, self.order]

    def jacobian_dot(self, q, qd, frame="tool0"):
        at = (self.model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, *self._own(q, qd))
        return pin.getFrameJacobianTimeVariation(self.model, self.data, *at)[:, self.order]

    def energy(self, q, qd):
        kinetic = pin.computeKineticEnergy(self.model, self.data, *self._own(q, qd))
        return kinetic + pin.computePotentialEnergy(self.model, self.data, *self._own(q))


class MuJoCo:
    """A URDF in MuJoCo, contacts and joint limits off."""

    def __init__(self, urdf) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(urdf))
        off = mujoco.mjtDisableBit
        self.model.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT)
        self.data = mujoco.MjData(self.model)

    def _at(self, q, qd=None):
        self.data.qpos[:] = q
        self.data.qvel[:] = 0.0 if qd is None else qd
        mujoco.mj_forward(self.model, self.data)

    def inverse_dynamics(self, q, qd, qdd):
        self._at(q, qd)
        self.data.qacc[:] = qdd
        mujoco.mj_inverse(self.model, self.data)
        return self.data.qfrc_inverse.copy()

    def mass_matrix(self, q):
        self._at(q)
        columns = np.empty((self.model.nv, self.model.nv))
        for j, unit in enumerate(np.eye(self.model.nv)):
            mujoco.mj_mulM(self.model, self.data, columns[j], unit)
        return columns.T

    def bias(self, q, qd):
        self._at(q, qd)
        return self.data.qfrc_bias.copy()

    def gravity_torque(self, q):
        return self.bias(q, np.zeros(self.model.nv))


def largest_relative_error(values, expected) -> float:
    """The worst sample of `max |a - b| / max |b|`."""
    values, expected = np.asarray(values), np.asarray(expected)
    axes = tuple(range(1, expected.ndim))
    return float(np.max(np.max(np.abs(values - expected), axis=axes) / np.max(np.abs(expected), axis=axes)))
