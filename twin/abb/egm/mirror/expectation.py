"""Expected torques of a robot along the stream of its joint angles, and the payload that explains the rest.

The joint angles are filtered and differentiated.  The model computes the torques of arm and rotors, the
friction, and the regressor columns of a body at the flange.  These are filtered, and reported torques are
filtered alike.

The filters are symmetric, short, and equal on both sides of `tau = Y pi`.  The basic filter b is a Hann
window of a given width with the sum 1.  Positions pass the filter `2 b - b * b`, with b of the width
`POSITIONS`; it preserves motions up to fourth order in time.  Speeds and accelerations are central
differences of the filtered positions.  The torques of the model and the regressor columns pass b of the width
`TORQUES`. Reported torques pass both filters in series.  So does friction, because it jumps where joints
reverse.  Both sides of the equation are therefore filtered alike.

A reported torque may be older than the angles of the same message.  A mean over the previous cycle is older
by half a cycle.  It is interpolated between two messages, see `Smoothing.aligned`.

The filters use samples before and after each instant; results are therefore `Smoothing.lag` old.  The filters
in `identification/measurements.py` are sharper and several times as long.

A shaft at rest may have any torque up to its static friction.  For a shaft slower than `REST`, the static
friction is therefore reported in addition to the expected torque, as `friction_open`.  Below `TURNING` the
expected friction falls linearly to 0, because the sign of the speed is uncertain.

Source: J. Kaiser, R. Hamming, "Sharpening the response of a symmetric nonrecursive filter by multiple use of
the same filter", IEEE Trans. on Acoustics, Speech and Signal Processing 25 (1977).

The ten parameters phi of a body at the flange (`m`, `m c` and the inertia about the flange origin) change the
torques linearly.  The residuals r are therefore fitted by least squares,

    sum w (r - Y phi)^2  +  sum (phi_k / s_k)^2,

with weights `exp(-age / horizon)` for older rows and the scatter of the residuals of each joint.  Joints at
rest are excluded, because their friction is not noise but constant.  The second sum is a prior: phi is 0 with
the standard deviation s, several times what the arm can carry.  A parameter that the motion has not excited
keeps the large deviation of the prior; an excited parameter is not affected.

The deviations are those of least squares, from the scatter of the residuals.  They do not include the effect
of model errors.

Source: C. Atkeson, C. An, J. Hollerbach, Int. J. of Robotics Research 5 (1986).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.identification.payload import flange_columns, payload_values
from twin.data.identification.torque_model import TorqueModel
from twin.physics.dynamics.equation_of_motion import inverse_dynamics
from twin.physics.dynamics.regressor import dynamics_regressor
from twin.physics.robot.robot import Robot


class Window:
    """Buffer of the last samples of shape `shape`, at least `reach` of them."""

    def __init__(self, reach: int, shape: tuple[int, ...]) -> None:
        self._reach = reach
        self._values = np.empty((4 * reach + 64, *shape))
        self._end = 0

    def __len__(self) -> int:
        return self._end

    def clear(self) -> None:
        """Discard all samples."""
        self._end = 0

    def append(self, values: Floats) -> None:
        """Append m samples (m, ...), with m at most `reach`."""
        m = len(values)
        if self._end + m > len(self._values):
            retained = self._values[self._end - self._reach : self._end].copy()
            self._values[: self._reach], self._end = retained, self._reach
        self._values[self._end : self._end + m] = values
        self._end += m

    def last(self, count: int) -> Floats:
        """Return the last samples (count, ...), with `count` at most `reach`."""
        return self._values[self._end - count : self._end]

    def filtered(self, weights: Floats, behind: int) -> Floats:
        """Return one filtered sample; the last weight applies `behind` samples before the newest one."""
        end = self._end - behind
        values = self._values[end - len(weights) : end]
        return np.tensordot(weights, values, axes=(0, 0))

    def filtered_last(self, weights: Floats, count: int) -> Floats:
        """Return the last `count` samples (count, ..., k), filtered by weights (l, k)."""
        values = self._values[self._end - count - len(weights) + 1 : self._end]
        return sliding_window_view(values, len(weights), axis=0) @ weights


POSITIONS = 0.06
TORQUES = 0.16
"""Widths of the Hann windows, in [s]; the second one halves the amplitude at 6 Hz."""

HALF_A_CYCLE = 0.5
"""Age of a mean over the previous cycle, in cycles.

The engine computes torques at the beginning of each step.  The age of a mean over N steps is therefore
`(N + 1) / (2 N)`: 0.625 for `twin.egm.EgmRobot` with 4 steps in a cycle."""

ROW_RATE = 50.0
"""Approximate rate of the result rows, in [Hz]."""


def checked_torque_age(cycles: float) -> float:
    """Return the age of reported torques, in cycles.

    Raises:
        EgmError: the age is not from 0 to 1.
    """
    if not 0 <= cycles <= 1:
        raise EgmError(f"expected an age of reported torques of 0 to 1 cycles, got {cycles:g}")
    return float(cycles)


def hann_weights(width: float, period: float) -> Floats:
    """Return a normalised Hann window; width and sampling period in [s]; at least three weights."""
    half = max(1, round(0.5 * width / period))
    weights = 1.0 + np.cos(np.pi * np.arange(-half, half + 1) / (half + 1))
    return weights / np.sum(weights)


def sharpen(weights: Floats) -> Floats:
    """Return the filter `2 b - b * b` for weights b; it has twice their reach."""
    twice = -np.convolve(weights, weights)
    reach = len(weights) // 2
    twice[reach : reach + len(weights)] += 2.0 * weights
    return twice


@dataclass(frozen=True)
class Smoothing:
    """Filters of a stream.

    Attributes:
        period: sampling period, in [s].
        torque_age: age of reported torques relative to the angles, in cycles, 0 to 1.
    """

    period: float
    torque_age: float = HALF_A_CYCLE

    @cached_property
    def positions(self) -> Floats:
        """Filter of the positions."""
        return sharpen(hann_weights(POSITIONS, self.period))

    @cached_property
    def motion(self) -> Floats:
        """Weights (2 l + 1, 3) of a position and of its first and second central differences."""
        weights = np.pad(self.positions, 1)
        after, before = np.roll(weights, 1), np.roll(weights, -1)
        return np.stack([weights, 0.5 * (after - before), after - 2.0 * weights + before], axis=1)

    @cached_property
    def model(self) -> Floats:
        """Filter of the torques that the model computes from filtered positions."""
        return hann_weights(TORQUES, self.period)

    @cached_property
    def torques(self) -> Floats:
        """Filter of friction and of time-aligned reported torques."""
        return np.convolve(self.positions, self.model)

    @cached_property
    def aligned(self) -> Floats:
        """Filter of reported torques including their time alignment, which adds one sample to its length."""
        return np.convolve(self.torques, [1.0 - self.torque_age, self.torque_age])

    @property
    def lag(self) -> float:
        """Age of the results, in [s]."""
        return (len(self.torques) // 2 + len(self.motion) // 2) * self.period

    @property
    def step(self) -> int:
        """Number of samples from one row to the next."""
        return max(1, round(1.0 / (ROW_RATE * self.period)))

    @property
    def oversampling(self) -> float:
        """Number of correlated rows with the information of one independent row."""
        return max(1.0, 1.0 / float(np.sum(self.model**2)) / self.step)


REST = 0.02
TURNING = 0.005
"""Speed thresholds, in [rad/s] at the joint: 10 and 2.5 times the speed noise due to 1e-4 rad angle noise."""


class Row(NamedTuple):
    """Filtered values of one instant.

    Attributes:
        place: place of the instant in the stream.
        q, qd: (n,) joint angles and speeds, in [rad], [rad/s].
        q_planned: (n,) unfiltered commanded angles, in [rad].
        expected: (n,) expected motor torques at the joints, in [N m].
        reported: (n,) reported torques, in [N m]; NaN if missing.
        friction_open: (n,) uncertainty of the expected torques by static friction, in both directions, in
            [N m].
        columns: (n, 10) regressor of the expected torques for the parameters of an additional body at the
            flange.
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
        """Difference (n,) of reported and expected torques, in [N m]."""
        return self.reported - self.expected


class Expectation:
    """Model that computes expected torques along a stream.

    Attributes:
        smoothing: filters, designed for the initial period.
        period: period of the stream, in [s]; it scales speeds and accelerations and may be updated.

    Args:
        robot: model with drives.
        period: initial period of the stream, in [s].
        torque_age: age of reported torques relative to the angles, in cycles, 0 to 1.

    Raises:
        RobotError: the link masses of the robot are unknown.
    """

    def __init__(self, robot: Robot, period: float, torque_age: float = HALF_A_CYCLE) -> None:
        robot.require_inertia()
        self.robot, self.period, self.smoothing = robot, period, Smoothing(period, torque_age)
        n, drives, filters = robot.n, robot.active_drives, self.smoothing
        self._first = 10 * robot.tree.flange_joint
        self._of_body = flange_columns(TorqueModel(robot))[self._first : self._first + 10]
        self._rotors = np.zeros((n, n)) if drives is None else drives.reflected_inertia
        self._lag = len(filters.torques) // 2 + len(filters.motion) // 2
        self._received = Window(2 * self._lag + filters.step, (2, n))  # planned angles, reported torques
        self._angles = Window(len(filters.motion) + filters.step, (n,))
        self._moved = Window(len(filters.torques) + filters.step, (2, n))  # angles, speeds
        self._rigid = Window(len(filters.torques) + filters.step, (n, 11))  # torques, columns
        self._friction = Window(len(filters.torques) + filters.step, (2, n))
        self.begin()

    def begin(self) -> None:
        """Discard all samples, because a new stream begins."""
        for window in (self._received, self._angles, self._moved, self._rigid, self._friction):
            window.clear()
        self._made = self._since = 0

    def take(self, place: int, q: Floats, q_planned: Floats, tau: Floats | None) -> Row | None:
        """Add the next sample; return a row every `smoothing.step` samples once the filters are full.

        Args:
            place: place of the sample in the stream, consecutive.
            q: (n,) measured angles, in [rad].
            q_planned: (n,) commanded angles, in [rad].
            tau: (n,) reported torques, in [N m]; `None` if missing.
        """
        received = np.full((1, 2, len(q)), np.nan)
        received[0, 0] = q_planned
        if tau is not None:
            received[0, 1] = tau
        self._angles.append(q[None])
        self._received.append(received)
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
        """Evaluate the model at the last `count` samples of the filtered angles."""
        T, n = self.period, self.robot.n
        motion = self._angles.filtered_last(self.smoothing.motion, count)
        q, qd, qdd = motion[..., 0], motion[..., 1] / T, motion[..., 2] / T**2
        rigid = np.empty((count, n, 11))
        load = inverse_dynamics(self.robot.arm, q, qd, qdd)
        rigid[..., 0] = load + qdd @ self._rotors
        Y = dynamics_regressor(self.robot, q, qd, qdd)
        rigid[..., 1:] = Y[..., self._first : self._first + 10] @ self._of_body
        self._rigid.append(rigid)
        self._moved.append(np.stack([q, qd], axis=1))
        self._friction.append(np.stack(self._friction_torques(qd, load), axis=1))

    def _friction_torques(self, qd: Floats, load: Floats) -> tuple[Floats, Floats]:
        """Return friction torques (N, n), and their uncertainty (N, n) at rest, in [N m].

        qd (N, n) are speeds, in [rad/s], and load (N, n) the torques of the drives on the arm, in [N m].
        """
        drives = self.robot.active_drives
        if drives is None:
            return np.zeros_like(qd), np.zeros_like(qd)
        R = drives.friction_matrix
        w = qd @ R.T
        slow = np.maximum(drives.stribeck_speed, np.finfo(float).tiny)
        level = drives.coulomb + (drives.static - drives.coulomb) * np.exp(-((w / slow) ** 2))
        level += drives.viscous_root * np.sqrt(np.abs(w))
        level += drives.coulomb_per_load * np.abs(load @ drives.transmission.T)
        sliding = level * np.clip(w / TURNING, -1.0, 1.0) + drives.viscous * w
        sliding += drives.viscous_difference * np.abs(w) + drives.offset
        return sliding @ R, ((np.abs(w) < REST) * drives.static) @ np.abs(R)

    def _row(self, place: int) -> Row:
        filters = self.smoothing
        aside = (len(filters.torques) - len(filters.model)) // 2
        middle = len(filters.torques) // 2
        rigid = self._rigid.filtered(filters.model, aside)
        friction, left_open = self._friction.filtered(filters.torques, 0)
        received = self._received.last(2 * self._lag + 1)
        reach = self._lag - middle
        reported = filters.aligned @ received[reach : len(received) - reach + 1, 1]
        q, qd = self._moved.last(middle + 1)[0]
        return Row(
            place, q.copy(), qd.copy(), received[self._lag, 0].copy(), rigid[:, 0] + friction, reported,
            np.maximum(left_open, 0.0), rigid[:, 1:],
        )  # fmt: skip


HORIZON = 30.0
"""Default memory of the estimate, in [s]: the weight of older rows decays by e in this time."""

PRIOR_MASS = 3.0
"""Prior deviation of the mass, relative to the rated payload of the arm."""

PRIOR_DISTANCE = 0.3
"""Distance from the flange, in [m], that scales the prior deviations of `m c` and the inertia."""

DEFAULT_PAYLOAD = 10.0
"""Rated payload that is assumed if the rating of an arm is unknown, in [kg]."""

MASS_KNOWN = 0.1
"""Deviation of the mass below which it counts as known, relative to the rated payload."""

CENTRE_KNOWN = 0.02
"""Deviation of the centre of mass below which it counts as known, in [m]."""

SCATTER = 0.01
"""Initial scatter of a joint's residuals, relative to the torque of its drive; the minimum is 1e-2 of it."""

RESTED = 0.01
"""Share of the static friction; a joint whose friction is uncertain by more counts as at rest."""

ROUNDS = 5
"""Number of iterations of the weights, which depend on the residuals."""


class ExplainingPayload(NamedTuple):
    """Payload, in addition to that of the model, that explains the torques.

    Attributes:
        values: (10,) mass, in [kg], negative if the payload of the model is too heavy; centre of mass in the
            flange frame, in [m]; inertia about that centre, in [kg m^2]: xx, yy, zz, xy, xz, yz.
        deviations: (10,) standard deviations of the values.
        mass_known, centre_known: whether the deviation of the mass, of the centre, is small enough.
    """

    values: Floats
    deviations: Floats
    mass_known: bool
    centre_known: bool

    @property
    def mass(self) -> float:
        """Mass, in [kg]."""
        return float(self.values[0])

    @property
    def com(self) -> Floats:
        """Centre of mass (3,) in the flange frame, in [m]."""
        return self.values[1:4]


class RunningPayload:
    """Recursive least-squares estimate of the payload along a stream.

    Args:
        robot: model of the arm.
        rate: rate of the rows, in [Hz].
        oversampling: number of correlated rows with the information of one independent row.
        horizon: memory of the estimate, in [s], see `HORIZON`.
    """

    def __init__(self, robot: Robot, rate: float, oversampling: float, horizon: float = HORIZON) -> None:
        n = robot.n
        self._rated = DEFAULT_PAYLOAD if robot.rating is None else robot.rating.payload
        heaviest = PRIOR_MASS * self._rated
        self._possible = heaviest * np.array([1.0, *(PRIOR_DISTANCE,) * 3, *(PRIOR_DISTANCE**2,) * 6])
        drives = robot.active_drives
        static = np.zeros(n) if drives is None else drives.static @ np.abs(drives.friction_matrix)
        self._rested = RESTED * static
        limit = np.where(np.isfinite(robot.drive_torque_max), robot.drive_torque_max, 1e3)
        self._scatter, self._least = SCATTER * limit, 1e-2 * SCATTER * limit
        self._decay, self._oversampling = float(np.exp(-1.0 / (horizon * rate))), oversampling
        self._A, self._b = np.zeros((n, 10, 10)), np.zeros((n, 10))
        self._squares, self._count = np.zeros(n), np.zeros(n)

    def take(self, row: Row) -> None:
        """Add a row; ignore it if it has no reported torques."""
        r, Y = row.residual, row.columns
        if not np.all(np.isfinite(r)):
            return
        counts = (row.friction_open <= self._rested).astype(np.float64)
        for sums in (self._A, self._b, self._squares, self._count):
            sums *= self._decay
        counted = counts[:, None] * Y
        self._A += counted[:, :, None] * Y[:, None, :]
        self._b += counted * r[:, None]
        self._squares += counts * r * r
        self._count += counts

    def estimate(self) -> ExplainingPayload | None:
        """Return the estimated payload; `None` before the first usable row."""
        if not np.any(self._count > 0):
            return None
        s = self._possible
        for _ in range(ROUNDS):
            w = 1.0 / (self._scatter**2 * self._oversampling)
            A = s[:, None] * np.tensordot(w, self._A, axes=1) * s + np.eye(10)
            phi = s * np.linalg.solve(A, s * (w @ self._b))
            left = self._squares - 2.0 * self._b @ phi + np.einsum("i,jik,k->j", phi, self._A, phi)
            left = np.maximum(left, 0.0) / np.maximum(self._count, 1e-9)
            self._scatter = np.where(self._count > 1.0, np.maximum(np.sqrt(left), self._least), self._scatter)
        covariance = s[:, None] * np.linalg.inv(A) * s
        deviation = float(np.sqrt(covariance[0, 0]))
        known = deviation < MASS_KNOWN * self._rated
        if not abs(phi[0]) > 3.0 * deviation:  # without a significant mass the centre is undefined
            values, deviations = np.full(10, np.nan), np.full(10, np.nan)
            values[0], deviations[0] = phi[0], deviation
            return ExplainingPayload(values, deviations, known, False)
        values, J = payload_values(phi)
        deviations = np.sqrt(np.diag(J @ covariance @ J.T))
        centre_known = known and bool(max(deviations[1:4]) < CENTRE_KNOWN)
        return ExplainingPayload(values, deviations, known, centre_known)
