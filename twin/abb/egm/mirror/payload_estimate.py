"""Running estimate of the payload that explains the torque differences of a stream.

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

from typing import NamedTuple

import numpy as np

from twin.abb.egm.mirror.expectation import Row
from twin.base.arrays import Floats
from twin.data.identification.payload import payload_values
from twin.physics.robot.robot import Robot

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
