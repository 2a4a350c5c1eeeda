"""The other libraries that compute the same quantities, behind one interface, one sample at a time."""

import contextlib

import mujoco
import numpy as np
import pinocchio as pin

from twin.errors import LimitError


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


class PinocchioLoops(Pinocchio):
    """Pinocchio's own solver for closed loops, by proximal iterations: across its plane one is redundant."""

    def __init__(self, urdf, names, loops) -> None:
        super().__init__(urdf, names)
        self.loops, self.states = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in loops:
            sides = []
            for joint, point in zip(loop.joints, loop.points, strict=True):
                sides += [self.model.getJointId(names[joint]), pin.SE3(np.eye(3), point)]
            model = pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, self.model, *sides, pin.LOCAL_WORLD_ALIGNED
            )
            self.loops.append(model)
            self.states.append(model.createData())
        self.settings = pin.ProximalSettings(1e-15, 1e-6, 20)  # accuracy, damping, iterations

    def forward_dynamics(self, q, qd, tau):
        pin.initConstraintDynamics(self.model, self.data, self.loops, self.states)
        return pin.constraintDynamics(
            self.model, self.data, *self._own(q, qd, tau), self.loops, self.states, self.settings
        )[self.order]


class MuJoCo:
    """A URDF in MuJoCo, contacts and joint limits off.

    Its constraints are soft: a closed loop gives way in proportion to `softness`, at least 1e-4.  It says
    nothing of their acceleration at speed, but that of a parallelogram is zero.
    """

    def __init__(self, urdf, loops=(), links=(), softness=1.0001e-4) -> None:
        spec = mujoco.MjSpec.from_file(str(urdf))
        for loop in loops:
            held = spec.add_equality()
            held.type, held.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
            held.name1, held.name2 = (links[joint] for joint in loop.joints)
            held.data[:3] = loop.points[0]  # in the first link; the zero pose says where in the second
            held.solimp[:2] = 1 / (1 + softness)
        self.model = spec.compile()
        off = mujoco.mjtDisableBit
        self.model.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT)
        self.model.opt.tolerance = 0.0
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

    def forward_dynamics(self, q, qd, tau):
        self.data.qfrc_applied[:] = tau
        self._at(q, qd)
        self.data.qfrc_applied[:] = 0.0
        return self.data.qacc.copy()


class Reduced:
    """A peer of a robot's tree in the pendant's coordinates: `q_tree = G q + g0`, forces by `G^T`."""

    def __init__(self, robot, peer) -> None:
        self.robot, self.peer, self.G = robot, peer, robot.embedding
        self.name = type(peer).__name__

    def _tree(self, q, *rates):
        return self.G @ q + self.robot.embedding_offset, *(self.G @ rate for rate in rates)

    def on_tree(self, tau):
        """Torques of the motors as those of all joints of the tree: none on the passive ones."""
        tau_tree = np.zeros(len(self.G))
        tau_tree[list(self.robot.driven)] = tau
        return tau_tree

    def inverse_dynamics(self, q, qd, qdd):
        return self.G.T @ self.peer.inverse_dynamics(*self._tree(q, qd, qdd))

    def bias(self, q, qd):
        return self.G.T @ self.peer.bias(*self._tree(q, qd))

    def mass_matrix(self, q):
        return self.G.T @ self.peer.mass_matrix(*self._tree(q)) @ self.G

    def coriolis_matrix(self, q, qd):
        return self.G.T @ self.peer.coriolis_matrix(*self._tree(q, qd)) @ self.G

    def gravity_torque(self, q):
        return self.G.T @ self.peer.gravity_torque(*self._tree(q))

    def energy(self, q, qd):
        return self.peer.energy(*self._tree(q, qd))

    def forward_kinematics(self, q):
        return self.peer.forward_kinematics(*self._tree(q))

    def jacobian(self, q):
        return self.peer.jacobian(*self._tree(q)) @ self.G

    def jacobian_dot(self, q, qd):
        return self.peer.jacobian_dot(*self._tree(q, qd)) @ self.G

    def forward_dynamics(self, q, qd, tau):
        """By Gauss' principle: of the motions that keep loops closed, the one nearest to the free tree's."""
        q_tree, qd_tree = self._tree(q, qd)
        free = self.peer.forward_dynamics(q_tree, qd_tree, self.on_tree(tau))
        root = np.linalg.cholesky(self.peer.mass_matrix(q_tree)).T
        return np.linalg.lstsq(root @ self.G, root @ free)[0]

    def loop_dynamics(self, q, qd, tau):
        """By the peer's own solver for closed loops: the accelerations of all joints of the tree."""
        return self.peer.forward_dynamics(*self._tree(q, qd), self.on_tree(tau))


def one_step(simulation, q, qd, tau, wrench=None, T_flange_tool=None):
    """The acceleration of one step of the engine; a step that ends beyond a fold was made all the same."""
    simulation.reset(q, qd)
    with contextlib.suppress(LimitError):
        simulation.step(tau, wrench, T_flange_tool)
    return (simulation.state()[1] - qd) / simulation.time_step


def largest_relative_error(values, expected) -> float:
    """The worst sample of `max |a - b| / max |b|`."""
    values, expected = np.asarray(values), np.asarray(expected)
    axes = tuple(range(1, expected.ndim))
    return float(np.max(np.max(np.abs(values - expected), axis=axes) / np.max(np.abs(expected), axis=axes)))
