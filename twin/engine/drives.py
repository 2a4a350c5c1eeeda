"""Drives in the engine: the torque that they bring to its joints, and joints that stick where they are.

The engine itself gives the mass matrix and the bias of the arm at every step, and the drives the torque that
the arm then gets, `tau_joint = M qdd + h`, which is applied in the place of the demanded one.  (Without
friction that is `tau - A qdd`, but as a difference of far larger numbers: on a wrist, whose M is 1e-5 kg m^2
and whose rotors are 0.05, it costs four digits of the acceleration.)

A torque holds a joint to round-off only, 1e-13 rad/s.  A joint that sticks is therefore put back after the
step, with the passive joints that hang on it, so that it stays where it was to the bit.

`calculateInverseDynamics` keeps the model that it finds when it is first called.  Nothing of the body is
changed after it is made, and its base is never turned, where that would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from struct import Struct
from typing import Any

import numpy as np

from twin.engine.state import state_reader
from twin.jit import compiled
from twin.robot.drives.drive_step import NEXT_QD, Q_MOTOR, QD, QD_MOTOR, TAU, DriveTrain, H, Q
from twin.robot.drives.drives import Drives
from twin.robot.robot import Robot


class EngineDrives:
    """The drives of the robot in one world, and its state, read once a step.

    Trees are in PyBullet's order of joints here, which need not be that of the robot's.

    Attributes:
        train: the drives.
        state: (2, n) positions and velocities of the joints, in [rad, rad/s], as the engine has them.

    Args:
        client: PyBullet's world.
        body: its number for the robot.
        robot: with drives that act.
        drives: which they are.
        joints: PyBullet's index of every joint of the robot's tree.
        time_step: of the integration, in [s].
    """

    def __init__(
        self, client: Any, body: int, robot: Robot, drives: Drives, joints: Sequence[int], time_step: float
    ) -> None:
        n_tree, order = robot.tree.n, np.argsort(joints)
        self._embedding = np.column_stack((robot.embedding, robot.embedding_offset))[order]
        self._G = np.array(robot.embedding[order])
        self._plain = np.array_equal(self._G, np.eye(n_tree))  # then the tree's arrays are the joints'
        self._joints, self._driven = list(joints), np.array([joints[i] for i in robot.driven])
        self._all, self._at_rest = list(range(n_tree)), [0.0] * n_tree
        self._mass_matrix = partial(client.calculateMassMatrix, body)
        self._inverse_dynamics = partial(client.calculateInverseDynamics, body)
        self._read = partial(client.getJointStates, body, self._all)
        self._put = partial(client.resetJointStatesMultiDof, body, self._all)
        self._unpack = state_reader(n_tree)
        self._pack_M: Callable[..., None] = Struct(f"{n_tree**2}d").pack_into
        self._pack_h: Callable[..., None] = Struct(f"{n_tree}d").pack_into
        self._tree, self._M = np.empty((2, n_tree)), np.empty((n_tree, n_tree))
        self._coordinates = self._tree[..., None]  # as PyBullet takes joints of one coordinate or more
        self.train = DriveTrain(drives, robot.drive_mode, time_step)
        self.state = self.train.signals[Q : QD + 1]
        self._h = self.train.signals[H] if self._plain else np.empty(n_tree)
        self.reset()

    def reset(self) -> None:
        """Look where the robot is; the springs of elastic drives carry it there."""
        self._unpack(self._read(), self._tree)
        self._look_up_state()
        self._equations()
        q, qd = self.state
        self.train.reset(q, qd, self.train.signals[H])

    def take_motors_from(self, other: EngineDrives) -> None:
        """Put the motors where those of the same drives in another world are, with their speeds."""
        self.train.signals[Q_MOTOR : QD_MOTOR + 1] = other.train.signals[Q_MOTOR : QD_MOTOR + 1]

    def torques(self, tau: list[float], pushed: np.ndarray | None) -> list[float]:
        """What the arm gets from its drives in the next step (n,), in [N m]; the motors make theirs.

        Args:
            tau: (n,) torque of the motors at the joints, in [N m]; finite.
            pushed: (n,) what a wrench on the arm does at its joints, in [N m].

        Raises:
            TypeError: they are not n, as PyBullet raises for other torques.
        """
        train = self.train
        if len(tau) != self.state.shape[1]:
            raise TypeError
        M = self._equations()
        train.signals[TAU] = tau
        if pushed is not None:
            train.signals[H] -= pushed
        train.advance(M)
        return train.tau_joint.tolist()

    @property
    def q_tree(self) -> np.ndarray:
        """Positions (n_tree,) of all joints in the order of the robot's tree, in [rad]."""
        return self._tree[0, self._joints]

    def read(self) -> None:
        """Read the state after a step and put back what sticks."""
        self._unpack(self._read(), self._tree)
        train = self.train
        if train.sticks and put_back(
            self._embedding, self._driven, train.can_stick, train.signals, self._tree
        ):
            positions, velocities = self._coordinates.tolist()
            self._put(positions, targetVelocities=velocities)
        self._look_up_state()

    def _look_up_state(self) -> None:
        """Take the state of the joints out of the tree's."""
        self.state[:] = self._tree if self._plain else self._tree[:, self._driven]

    def _equations(self) -> np.ndarray:
        """M (n, n), in [kg m^2], where the tree is, as the engine has it; the bias goes to the signals."""
        q, qd = self._tree.tolist()
        self._pack_M(self._M, 0, *chain.from_iterable(self._mass_matrix(q)))
        self._pack_h(self._h, 0, *self._inverse_dynamics(q, qd, self._at_rest))
        if self._plain:
            return self._M
        G = self._G
        self.train.signals[H] = G.T @ self._h
        return G.T @ self._M @ G


@compiled
def put_back(embedding, driven, can_stick, signals, tree):
    """Put joints that stick to where they were, with the passive joints that hang on them.

    Args:
        embedding: (n_tree, n + 1) `[G g0]`, `q_tree = G q + g0`.
        driven: (n,) which of the tree's joints the driven ones are.
        can_stick: (n,) whether friction can hold a joint.
        signals: of the drive train: positions before the step, and speeds after it as the drives have them,
            0 where a joint sticks.
        tree: (2, n_tree) positions and speeds after it, in [rad, rad/s]; corrected.

    Returns:
        Whether that changed anything.
    """
    n_tree, n = len(embedding), len(driven)
    q, qd, changed = tree[0][driven], tree[1][driven], False
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
