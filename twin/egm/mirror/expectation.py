"""What the model expects of a robot's torques, along the stream of its joint angles.

Angles are filtered and differentiated; the model makes of them the torques of arm and rotors, friction, and
the columns of a body at the flange; these are filtered, and reported torques are filtered alike.

The filters are symmetric, short, and the same on both sides of `tau = Y pi`.  A bell is a Hann window of a
stated width, with the sum 1.  Positions go through `2 b - b * b`, `b` the bell of `POSITIONS`, which leaves
motions as they are to the fourth order in time; speeds and accelerations are central differences behind it.
What the model makes of them, and the payload's columns, go through the bell of `TORQUES`.  Reported torques
go through both, one after the other, and so does friction, which is a torque that jumps where joints turn
back: so on both sides all was filtered alike.

A reported torque may be older than the angles beside it.  A mean over the cycle before is so by half a
cycle: it is taken between two messages, see `Smoothing.aligned`.

The filters look both ways in time, and so what they tell is `Smoothing.lag` old.  Those of
`twin/identification/measurements.py` are sharper and several times as long.

A shaft that rests may have any torque up to its static friction.  So where a shaft is slower than `REST`, its
static friction is told beside the expected torque, as `friction_open`; and below `TURNING` its own falls to 0
linearly, for the sign of its speed is not known.

Source: J. Kaiser, R. Hamming, "Sharpening the response of a symmetric nonrecursive filter by multiple use of
the same filter", IEEE Trans. on Acoustics, Speech and Signal Processing 25 (1977).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from twin.arrays import Floats
from twin.dynamics.equation_of_motion import inverse_dynamics
from twin.dynamics.regressor import dynamics_regressor
from twin.errors import EgmError
from twin.identification.payload import flange_columns
from twin.identification.torque_model import TorqueModel
from twin.robot.robot import Robot


class Window:
    """The last samples of shape `shape`, at least `reach` of them."""

    def __init__(self, reach: int, shape: tuple[int, ...]) -> None:
        self._reach = reach
        self._values = np.empty((4 * reach + 64, *shape))
        self._end = 0

    def __len__(self) -> int:
        return self._end

    def clear(self) -> None:
        """Forget them."""
        self._end = 0

    def append(self, values: Floats) -> None:
        """Add m samples (m, ...), m at most `reach`."""
        m = len(values)
        if self._end + m > len(self._values):
            kept = self._values[self._end - self._reach : self._end].copy()
            self._values[: self._reach], self._end = kept, self._reach
        self._values[self._end : self._end + m] = values
        self._end += m

    def last(self, count: int) -> Floats:
        """The last samples (count, ...), `count` at most `reach`."""
        return self._values[self._end - count : self._end]

    def filtered(self, weights: Floats, behind: int) -> Floats:
        """One filtered sample: the weights' last one meets the sample that is so many behind the newest."""
        end = self._end - behind
        values = self._values[end - len(weights) : end]
        return np.tensordot(weights, values, axes=(0, 0))

    def filtered_last(self, weights: Floats, count: int) -> Floats:
        """The last samples (count, ..., k) that weights (l, k) make."""
        values = self._values[self._end - count - len(weights) + 1 : self._end]
        return sliding_window_view(values, len(weights), axis=0) @ weights


POSITIONS = 0.06
TORQUES = 0.16
"""Widths of the bells, in [s]; the second halves what has a frequency of 6 Hz."""

HALF_A_CYCLE = 0.5
"""The age of a mean over the cycle before.  The engine's torques are those of the beginnings of its steps: of
means over N of them it is `(N + 1) / (2 N)`, 0.625 of `twin.egm.EgmRobot` with 4 steps in a cycle."""

ROWS = 50.0
"""Rows that are told in a second, about, in [Hz]."""


def age(cycles: float) -> float:
    """The age of torques, in cycles.

    Raises:
        EgmError: it is not from 0 to 1.
    """
    if not 0 <= cycles <= 1:
        raise EgmError(f"expected reported torques to be 0 to 1 cycles older than the angles, got {cycles:g}")
    return float(cycles)


def bell(width: float, period: float) -> Floats:
    """A Hann window of a width in [s], for samples that are a period apart; at least three weights."""
    half = max(1, round(0.5 * width / period))
    weights = 1.0 + np.cos(np.pi * np.arange(-half, half + 1) / (half + 1))
    return weights / np.sum(weights)


def sharpened(weights: Floats) -> Floats:
    """`2 b - b * b`, of twice the reach."""
    twice = -np.convolve(weights, weights)
    reach = len(weights) // 2
    twice[reach : reach + len(weights)] += 2.0 * weights
    return twice


@dataclass(frozen=True)
class Smoothing:
    """The filters of a stream.

    Attributes:
        period: between two samples, in [s].
        torque_age: of reported torques beside the angles, in cycles, 0 to 1.
    """

    period: float
    torque_age: float = HALF_A_CYCLE

    @cached_property
    def positions(self) -> Floats:
        """The filter of positions."""
        return sharpened(bell(POSITIONS, self.period))

    @cached_property
    def motion(self) -> Floats:
        """(2 l + 1, 3) weights of a position, and of its differences over one and over two samples."""
        weights = np.pad(self.positions, 1)
        after, before = np.roll(weights, 1), np.roll(weights, -1)
        return np.stack([weights, 0.5 * (after - before), after - 2.0 * weights + before], axis=1)

    @cached_property
    def model(self) -> Floats:
        """The filter of what the model makes of filtered positions."""
        return bell(TORQUES, self.period)

    @cached_property
    def torques(self) -> Floats:
        """The filter of friction, and of torques that were reported, once they are aligned."""
        return np.convolve(self.positions, self.model)

    @cached_property
    def aligned(self) -> Floats:
        """The filter of torques as they were reported: from its middle on it reaches one sample further."""
        return np.convolve(self.torques, [1.0 - self.torque_age, self.torque_age])

    @property
    def lag(self) -> float:
        """The age of what is told, in [s]."""
        return (len(self.torques) // 2 + len(self.motion) // 2) * self.period

    @property
    def step(self) -> int:
        """Samples from one row to the next."""
        return max(1, round(1.0 / (ROWS * self.period)))

    @property
    def oversampling(self) -> float:
        """Count the rows that say what one would, for the filter leaves neighbours alike."""
        return max(1.0, 1.0 / float(np.sum(self.model**2)) / self.step)


REST = 0.02
TURNING = 0.005
"""In [rad/s] at the joint: 10 times, and 2.5 times, what noise of 1e-4 rad in the angles makes of a speed."""


class Row(NamedTuple):
    """The figures of one instant, filtered.

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
        """Let the model follow the last `count` samples of the filtered angles."""
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
