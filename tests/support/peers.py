"""Other libraries of robot dynamics behind one interface, one sample at a time."""

import contextlib

import mujoco
import numpy as np
import pinocchio as pin

import twin
from twin.base.errors import LimitError


class Pinocchio:
    """URDF model in Pinocchio; vectors follow the order of `names`, not that of Pinocchio."""

    def __init__(self, urdf, names) -> None:
        self.model = pin.buildModelFromUrdf(str(urdf))
        self.data = self.model.createData()
        self.order = [self.model.joints[self.model.getJointId(name)].idx_q for name in names]
        self.back = np.argsort(self.order)

    def _reordered(self, *vectors):
        return [np.asarray(v)[self.back] for v in vectors]

    def inverse_dynamics(self, q, qd, qdd):
        return pin.rnea(self.model, self.data, *self._reordered(q, qd, qdd))[self.order]

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.model, self.data, *self._reordered(q)))
        return (upper + np.triu(upper, 1).T)[np.ix_(self.order, self.order)]

    def coriolis_matrix(self, q, qd):
        C = pin.computeCoriolisMatrix(self.model, self.data, *self._reordered(q, qd))
        return C[np.ix_(self.order, self.order)]

    def gravity_torque(self, q):
        return pin.computeGeneralizedGravity(self.model, self.data, *self._reordered(q))[self.order]

    def forward_dynamics(self, q, qd, tau):
        return pin.aba(self.model, self.data, *self._reordered(q, qd, tau))[self.order]

    def forward_kinematics(self, q, frame="tool0"):
        pin.framesForwardKinematics(self.model, self.data, *self._reordered(q))
        return self.data.oMf[self.model.getFrameId(frame)].homogeneous.copy()

    def jacobian(self, q, frame="tool0"):
        at = (self.model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED)
        return pin.computeFrameJacobian(self.model, self.data, *self._reordered(q), *at)[:, self.order]

    def jacobian_dot(self, q, qd, frame="tool0"):
        at = (self.model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, *self._reordered(q, qd))
        return pin.getFrameJacobianTimeVariation(self.model, self.data, *at)[:, self.order]

    def energy(self, q, qd):
        kinetic = pin.computeKineticEnergy(self.model, self.data, *self._reordered(q, qd))
        return kinetic + pin.computePotentialEnergy(self.model, self.data, *self._reordered(q))


class PinocchioLoops(Pinocchio):
    """Pinocchio's proximal solver for closed loops.

    A planar loop has redundant constraints across its plane, which the solver's damping resolves.
    """

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
            self.model, self.data, *self._reordered(q, qd, tau), self.loops, self.states, self.settings
        )[self.order]


class MuJoCo:
    """URDF model in MuJoCo, without contacts and joint limits.

    MuJoCo's constraints are soft: a closed loop yields in proportion to `softness`, which is at least 1e-4.
    MuJoCo leaves out the constraint's acceleration at speed, which is zero for a parallelogram.
    """

    def __init__(self, urdf, loops=(), links=(), softness=1.0001e-4) -> None:
        spec = mujoco.MjSpec.from_file(str(urdf))
        for loop in loops:
            constraint = spec.add_equality()
            constraint.type, constraint.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
            constraint.name1, constraint.name2 = (links[joint] for joint in loop.joints)
            # Point in the first link; MuJoCo computes the point in the second link from the zero pose.
            constraint.data[:3] = loop.points[0]
            constraint.solimp[:2] = 1 / (1 + softness)
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


class MuJoCoFile(MuJoCo):
    """Model of an MJCF file as it stands, in the tree's coordinates."""

    def __init__(self, path) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)

    def rigid_dynamics(self, q, qd, tau):
        """Compute accelerations with MuJoCo's matrices, but with equalities that are rigid."""
        self.forward_dynamics(q, qd, tau)
        data, n, M = self.data, self.model.nv, self.mass_matrix(q)
        self.forward_dynamics(q, qd, tau)
        J = np.reshape(data.efc_J, (-1, n))
        equal = np.array(data.efc_type) == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        force = tau + data.qfrc_passive - data.qfrc_bias + J[~equal].T @ data.efc_force[~equal]
        root = np.linalg.cholesky(M)
        J, force = np.linalg.solve(root, J[equal].T).T, np.linalg.solve(root, force)
        # A planar loop is redundant across its plane.
        return np.linalg.solve(root.T, force - np.linalg.pinv(J, rcond=1e-9) @ (J @ force))


class Reduced:
    """Another library's tree model in the pendant's coordinates: `q_tree = G q + g0`, forces by `G^T`."""

    def __init__(self, robot, peer) -> None:
        self.robot, self.peer, self.G = robot, peer, robot.embedding
        self.name = type(peer).__name__

    def _tree(self, q, *rates):
        return self.G @ q + self.robot.embedding_offset, *(self.G @ rate for rate in rates)

    def on_tree(self, tau):
        """Expand motor torques to all joints of the tree; passive joints have none."""
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
        """Compute accelerations by Gauss' principle of least constraint.

        Of all accelerations that respect the loops, the solution is nearest to that of the free tree, in the
        metric of the mass matrix.
        """
        q_tree, qd_tree = self._tree(q, qd)
        free = self.peer.forward_dynamics(q_tree, qd_tree, self.on_tree(tau))
        root = np.linalg.cholesky(self.peer.mass_matrix(q_tree)).T
        return np.linalg.lstsq(root @ self.G, root @ free)[0]

    def loop_dynamics(self, q, qd, tau):
        """Compute the accelerations of all joints of the tree with the library's solver for closed loops."""
        return self.peer.forward_dynamics(*self._tree(q, qd), self.on_tree(tau))

    def rigid_dynamics(self, q, qd, tau):
        """Compute the accelerations of all joints of the tree with the peer's equations and rigid loops."""
        return self.peer.rigid_dynamics(*self._tree(q, qd), self.on_tree(tau))


def one_step(simulation, q, qd, tau, wrench=None, T_flange_tool=None):
    """Return the acceleration of one step of the engine, even if the step ends beyond a joint limit."""
    simulation.reset(q, qd)
    with contextlib.suppress(LimitError):
        simulation.step(tau, wrench, T_flange_tool)
    return (simulation.state()[1] - qd) / simulation.time_step


def largest_relative_error(values, expected) -> float:
    """Return the largest `max |a - b| / max |b|` of all samples."""
    values, expected = np.asarray(values), np.asarray(expected)
    axes = tuple(range(1, expected.ndim))
    return float(np.max(np.max(np.abs(values - expected), axis=axes) / np.max(np.abs(expected), axis=axes)))


def check_kernels(robot, peer, rng) -> None:
    """Assert that the robot's kernels agree with a peer over three random samples, in each sample."""
    q, qd, qdd, tau = rng.normal(size=(4, 3, robot.n))
    for function, vectors, tolerance in (
        (twin.inverse_dynamics, (q, qd, qdd), 1e-12),
        (twin.mass_matrix, (q,), 1e-12),
        (twin.coriolis_matrix, (q, qd), 1e-12),
        (twin.gravity_torque, (q,), 1e-12),
        (twin.forward_kinematics, (q,), 1e-12),
        (twin.jacobian, (q,), 1e-12),
        (twin.jacobian_dot, (q, qd), 1e-12),
        (twin.forward_dynamics, (q, qd, tau), 1e-11),
    ):
        expected = [getattr(peer, function.__name__)(*sample) for sample in zip(*vectors, strict=True)]
        for value, right in zip(function(robot, *vectors), expected, strict=True):
            error = np.max(np.abs(value - right))  # may be 0 of 0: the Coriolis matrix of two sliding joints
            assert error <= tolerance * np.max(np.abs(right)), (robot.n, function.__name__, error)
