"""Drives in the engine: their torques on its joints, and joints that stick.

The engine provides the mass matrix and the bias of the arm at every step, the drives provide the torque
`tau_joint = M qdd + h` on the arm.  That torque is applied instead of the demanded one.  (Without friction it
equals `tau - A qdd`.  As a difference of far larger numbers, this would cost four digits of the acceleration
on a wrist, whose M is 1e-5 kg m^2 and whose rotors have 0.05 kg m^2.)

A torque can hold a joint at rest only up to rounding, 1e-13 rad/s.  After the step, a sticking joint and its
passive joints are therefore reset to their exact positions.

`calculateInverseDynamics` stores the model at its first call.  The body is therefore never changed after its
creation.  The base is never rotated, because the results would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from struct import Struct
from typing import Any

import numpy as np

from twin.base.jit import compiled
from twin.physics.engine.body import state_reader
from twin.physics.multibody.axis_torques import total_torque
from twin.physics.robot.drives.drive_step import NEXT_QD, Q_MOTOR, QD, QD_MOTOR, TAU, DriveTrain, H, Q
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.robot import Robot


class EngineDrives:
    """Drives of the robot in one world, and its state, read once a step.

    Tree arrays are in PyBullet's order of joints, which may differ from that of the robot's tree.

    Attributes:
        train: the drives.
        state: (2, n) positions and velocities of the joints in the engine, in [rad, rad/s].

    Args:
        client: client of PyBullet.
        body: PyBullet's number of the robot.
        robot: robot with active drives.
        drives: the active drives.
        joints: PyBullet's index of every joint of the robot's tree.
        time_step: integration step, in [s].
    """

    def __init__(
        self, client: Any, body: int, robot: Robot, drives: Drives, joints: Sequence[int], time_step: float
    ) -> None:
        n_tree, order = robot.tree.n, np.argsort(joints)
        self._embedding = np.column_stack((robot.embedding, robot.embedding_offset))[order]
        self._G = np.array(robot.embedding[order])
        self._plain = np.array_equal(self._G, np.eye(n_tree))  # then the tree's arrays equal the joints'
        self._joints, self._driven = list(joints), np.array([joints[i] for i in robot.driven])
        shafts = np.eye(robot.n) if robot.motor_shafts is None else robot.motor_shafts
        self._shafts = np.column_stack((shafts, -shafts @ robot.embedding_offset[list(robot.driven)]))
        self._all, self._at_rest = list(range(n_tree)), [0.0] * n_tree
        self._mass_matrix = partial(client.calculateMassMatrix, body)
        self._inverse_dynamics = partial(client.calculateInverseDynamics, body)
        self._read = partial(client.getJointStates, body, self._all)
        self._put = partial(client.resetJointStatesMultiDof, body, self._all)
        self._unpack = state_reader(n_tree)
        self._pack_M: Callable[..., None] = Struct(f"{n_tree**2}d").pack_into
        self._pack_h: Callable[..., None] = Struct(f"{n_tree}d").pack_into
        self._tree, self._M = np.empty((2, n_tree)), np.empty((n_tree, n_tree))
        self._coordinates = self._tree[..., None]  # the shape that PyBullet expects of joints
        self._torques, self._axis_torque = robot.tree.torques, np.zeros(robot.n)
        self._still = [0.0] * robot.n
        self.train = DriveTrain(drives, robot.drive_mode, time_step)
        self.state = self.train.signals[Q : QD + 1]
        self._h = self.train.signals[H] if self._plain else np.empty(n_tree)
        self.reset()

    def reset(self) -> None:
        """Read the state of the robot, and relax the springs of elastic drives."""
        self._unpack(self._read(), self._tree)
        self._look_up_state()
        self._equations()
        q, qd = self.state
        self.train.reset(q, qd, self.train.signals[H])

    def take_motors_from(self, other: EngineDrives) -> None:
        """Copy positions and speeds of the motors from the same drives in another world."""
        self.train.signals[Q_MOTOR : QD_MOTOR + 1] = other.train.signals[Q_MOTOR : QD_MOTOR + 1]

    def torques(self, tau: list[float], pushed: np.ndarray | None) -> list[float]:
        """Advance the motors by one step, and return the torques (n,) of the drives on the arm, in [N m].

        Args:
            tau: (n,) torques of the motors at the joints, in [N m], finite.
            pushed: (n,) joint torques of an external wrench, in [N m].

        Raises:
            TypeError: `tau` does not have n elements; PyBullet raises the same type.
        """
        train = self.train
        if len(tau) != self.state.shape[1]:
            raise TypeError
        M = self._equations()
        train.signals[TAU] = tau
        if pushed is not None:
            train.signals[H] -= pushed
        train.advance(M)
        return (train.tau_joint - self._axis_torque if self._torques else train.tau_joint).tolist()

    @property
    def q_tree(self) -> np.ndarray:
        """Return positions (n_tree,) of all joints in the order of the robot's tree, in [rad]."""
        return self._tree[0, self._joints]

    def read(self) -> None:
        """Read the state after a step, and reset sticking joints."""
        self._unpack(self._read(), self._tree)
        train = self.train
        if train.sticks and put_back(
            self._embedding, self._shafts, self._driven, train.can_stick, train.signals, self._tree
        ):
            positions, velocities = self._coordinates.tolist()
            self._put(positions, targetVelocities=velocities)
        self._look_up_state()

    def _look_up_state(self) -> None:
        """Extract the state of the joints from that of the tree."""
        if self._plain:
            self.state[:] = self._tree
        else:
            self.state[:] = self._tree[:, self._driven] @ self._shafts[:, :-1].T
            self.state[0] += self._shafts[:, -1]

    def _equations(self) -> np.ndarray:
        """Return the engine's mass matrix M (n, n), in [kg m^2]; store the bias in the signals.

        The bias contains the torques of springs and balancers, which the engine does not have.
        """
        q, qd = self._tree.tolist()
        self._pack_M(self._M, 0, *chain.from_iterable(self._mass_matrix(q)))
        self._pack_h(self._h, 0, *self._inverse_dynamics(q, qd, self._at_rest))
        M, G = self._M, self._G
        if not self._plain:
            self.train.signals[H] = G.T @ self._h
            M = G.T @ M @ G
        if self._torques:
            q, qd = self.state.tolist()
            self._axis_torque[:] = total_torque(self._torques, q, qd, self._still, math)
            self.train.signals[H] += self._axis_torque
        return M


@compiled
def put_back(embedding, shafts, driven, can_stick, signals, tree):
    """Reset sticking joints and their passive joints to their positions before the step.

    Args:
        embedding: (n_tree, n + 1) `[G g0]`, `q_tree = G q + g0`.
        shafts: (n, n + 1) `[P p0]`, `q = P q_driven + p0`.
        driven: (n,) index of each driven joint in the tree.
        can_stick: (n,) true where friction can hold a joint.
        signals: signals of the drive train: positions before the step, and speeds after it, 0 where a joint
            sticks.
        tree: (2, n_tree) positions and speeds after the step, in [rad, rad/s]; corrected in place.

    Returns:
        True if anything changed.
    """
    n_tree, n = len(embedding), len(driven)
    q, qd, changed = shafts[:, n].copy(), np.zeros(n), False
    for j in range(n):
        for k in range(n):
            q[j] += shafts[j, k] * tree[0, driven[k]]
            qd[j] += shafts[j, k] * tree[1, driven[k]]
    stuck = can_stick & (signals[NEXT_QD] == 0.0)
    for j in range(n):
        if stuck[j]:
            q[j], qd[j] = signals[Q, j], 0.0
    for i in range(n_tree):
        position, speed, held = embedding[i, n], 0.0, False
        for j in range(n):
            position += embedding[i, j] * q[j]
            speed += embedding[i, j] * qd[j]
            held = held or (stuck[j] and embedding[i, j] != 0.0)
        if held and not (tree[0, i] == position and tree[1, i] == speed):
            tree[0, i], tree[1, i], changed = position, speed, True
    return changed
