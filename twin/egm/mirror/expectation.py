"""What the model expects of a robot's torques, along the stream of its joint angles.

Angles are filtered and differentiated; the model makes of them the torques of arm and rotors, friction, and
the columns of a body at the flange; these are filtered, and reported torques are filtered alike, see
`twin/egm/mirror/smoothing.py`.

A shaft that rests may have any torque up to its static friction.  So where a shaft is slower than `REST`, its
static friction is told beside the expected torque, as `friction_open`; and below `TURNING` its own falls to 0
linearly, for the sign of its speed is not known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.dynamics.equation_of_motion import inverse_dynamics
from twin.dynamics.regressor import dynamics_regressor
from twin.egm.mirror.smoothing import HALF_A_CYCLE, Smoothing
from twin.egm.mirror.window import Window
from twin.identification.payload import flange_columns
from twin.identification.torque_model import TorqueModel
from twin.robot.robot import Robot

REST = 0.02
TURNING = 0.005
"""In [rad/s] at the joint: 10 times, and 2.5 times, what noise of 1e-4 rad in the angles makes of a speed."""


class Row(NamedTuple):
    """What is known of one instant, filtered.

    Attributes:
        place: of the instant in the stream.
        q, qd: (n,) joint angles and speeds, in [rad], [rad/s].
        q_planned: (n,) commanded angles, as they were told, in [rad].
        expected: (n,) torques that the model expects of the motors, at the joints, in [N m].
        reported: (n,) those that were reported; NaN where they were not.
        friction_open: (n,) what friction at rest leaves open of the expected ones, either way.
        columns: (n, 10) of the expected torques with the parameters of one more body at the flange.
    """

    place: int
    q: Floats
    qd: Floats
    q_planned: Floats
    expected: Floats
    reported: Floats
    friction_open: Floats
    columns: Floats

    @property
    def residual(self) -> Floats:
        """Reported less expected torques (n,), in [N m]."""
        return self.reported - self.expected


class Expectation:
    """A model that follows a stream.

    Attributes:
        smoothing: its filters.
        period: of the stream, in [s]: for speeds; that of the filters is as it was at first.

    Args:
        robot: the model, with the drives that it is to have.
        period: of the stream, in [s].
        torque_age: see `Smoothing`.

    Raises:
        RobotError: the masses of the robot's links are not known.
    """

    def __init__(self, robot: Robot, period: float, torque_age: float = HALF_A_CYCLE) -> None:
        robot.require_inertia()
        self.robot, self.period, self.smoothing = robot, period, Smoothing(period, torque_age)
        n, drives, filters = robot.n, robot.active_drives, self.smoothing
        self._first = 10 * robot.tree.flange_joint
        self._of_body = flange_columns(TorqueModel(robot))[self._first : self._first + 10]
        self._rotors = np.zeros((n, n)) if drives is None else drives.reflected_inertia
        self._lag = len(filters.torques) // 2 + len(filters.motion) // 2
        self._told = Window(2 * self._lag + filters.step, (2, n))  # planned angles, reported torques
        self._angles = Window(len(filters.motion) + filters.step, (n,))
        self._moved = Window(len(filters.torques) + filters.step, (2, n))  # angles, speeds
        self._rigid = Window(len(filters.torques) + filters.step, (n, 11))  # torques, columns
        self._friction = Window(len(filters.torques) + filters.step, (2, n))
        self.begin()

    def begin(self) -> None:
        """Begin anew, with a stream that does not go on where it was."""
        for window in (self._told, self._angles, self._moved, self._rigid, self._friction):
            window.clear()
        self._made = self._since = 0

    def take(self, place: int, q: Floats, q_planned: Floats, tau: Floats | None) -> Row | None:
        """Take the next sample; a row every `smoothing.step` samples, as soon as there is one.

        Args:
            place: of the sample: that of the one before and 1.
            q: (n,) measured angles, in [rad].
            q_planned: (n,) commanded angles, in [rad].
            tau: (n,) reported torques, in [N m]; `None` where there are none.
        """
        told = np.full((1, 2, len(q)), np.nan)
        told[0, 0] = q_planned
        if tau is not None:
            told[0, 1] = tau
        self._angles.append(q[None])
        self._told.append(told)
        self._made, self._since = self._made + 1, self._since + 1
        filters = self.smoothing
        if self._since < filters.step or self._made < len(filters.motion) + filters.step:
            return None
        self._since = 0
        self._move(filters.step)
        if len(self._rigid) < len(filters.torques):
            return None
        return self._row(place - self._lag)

    def _move(self, count: int) -> None:
        """What the model makes of the last `count` samples of the filtered angles."""
        T, n = self.period, self.robot.n
        motion = self._angles.filtered_last(self.smoothing.motion, count)
        q, qd, qdd = motion[..., 0], motion[..., 1] / T, motion[..., 2] / T**2
        rigid = np.empty((count, n, 11))
        rigid[..., 0] = inverse_dynamics(self.robot, q, qd, qdd) + qdd @ self._rotors
        Y = dynamics_regressor(self.robot, q, qd, qdd)
        rigid[..., 1:] = Y[..., self._first : self._first + 10] @ self._of_body
        self._rigid.append(rigid)
        self._moved.append(np.stack([q, qd], axis=1))
        self._friction.append(np.stack(self._rubbing(qd), axis=1))

    def _rubbing(self, qd: Floats) -> tuple[Floats, Floats]:
        """Friction (N, n) at speeds (N, n), and what rest leaves open of it."""
        drives = self.robot.active_drives
        if drives is None:
            return np.zeros_like(qd), np.zeros_like(qd)
        R = drives.friction_matrix
        w = qd @ R.T
        slow = np.maximum(drives.stribeck_speed, np.finfo(float).tiny)
        level = drives.coulomb + (drives.static - drives.coulomb) * np.exp(-((w / slow) ** 2))
        sliding = level * np.clip(w / TURNING, -1.0, 1.0) + drives.viscous * w
        return sliding @ R, ((np.abs(w) < REST) * drives.static) @ np.abs(R)

    def _row(self, place: int) -> Row:
        filters = self.smoothing
        aside = (len(filters.torques) - len(filters.model)) // 2
        middle = len(filters.torques) // 2
        rigid = self._rigid.filtered(filters.model, aside)
        friction, left_open = self._friction.filtered(filters.torques, 0)
        told = self._told.last(2 * self._lag + 1)
        reach = self._lag - middle
        reported = filters.aligned @ told[reach : len(told) - reach + 1, 1]
        q, qd = self._moved.last(middle + 1)[0]
        return Row(
            place, q.copy(), qd.copy(), told[self._lag, 0].copy(), rigid[:, 0] + friction, reported,
            np.maximum(left_open, 0.0), rigid[:, 1:],
        )  # fmt: skip
