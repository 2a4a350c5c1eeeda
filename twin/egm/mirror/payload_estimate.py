"""What payload would explain the torques that a model did not expect, as a stream goes on.

The ten parameters phi of a body at the flange, `m`, `m c` and the inertia about the flange's origin, change
the torques linearly, so that residuals `r` are fitted by least squares,

    sum w (r - Y phi)^2  +  sum (phi_k / s_k)^2,

in which older rows count less, by `exp(-age / horizon)`, and every joint by the scatter of its own residuals.
Joints that rested do not count: what friction is then is not noise, but the same as long as they rest.  The
second sum takes phi for nothing, give or take `s`, several times what the arm can carry: so what the motion
has not told yet stays open, with a deviation that says so, and what it has told is not touched.

Deviations are those of least squares, from the scatter of the residuals; what a model's own errors do to the
payload is not in them.

Source: C. Atkeson, C. An, J. Hollerbach, Int. J. of Robotics Research 5 (1986).
"""

from typing import NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.egm.mirror.expectation import Row
from twin.identification.payload import payload_values
from twin.robot.robot import Robot

HORIZON = 30.0
"""In [s]: what is as old counts e times less."""

HEAVIEST = 3.0
"""The mass that is thought possible before anything was seen, over the arm's rated payload."""

ARM = 0.3
"""The distance from the flange that is thought possible for it, in [m]."""

USUAL_PAYLOAD = 10.0
"""In [kg], of an arm whose rated payload is not known."""

TOLD = 0.1
"""The mass is told when its deviation is below this share of the rated payload."""

CENTRE_TOLD = 0.02
"""The centre is told when its deviations are below it, in [m]."""

SCATTER = 0.01
"""Scatter of a joint's residuals before any were seen, over what its drive gives; the least is 1e-2 of it."""

RESTED = 0.01
"""A joint rested where friction leaves more than this share of its static friction open."""

ROUNDS = 5
"""Rounds of weighting anew by the residuals."""


class ExplainingPayload(NamedTuple):
    """The payload, beside what the model carries, that would explain the torques.

    Attributes:
        values: (10,) mass in [kg], below 0 where the model's load is too heavy; centre in the flange's frame,
            in [m]; inertia about that centre, in [kg m^2]: xx, yy, zz, xy, xz, yz.
        deviations: (10,) of them.
        mass_told, centre_told: whether the motion so far has told them.
    """

    values: Floats
    deviations: Floats
    mass_told: bool
    centre_told: bool

    @property
    def mass(self) -> float:
        """In [kg]."""
        return float(self.values[0])

    @property
    def com(self) -> Floats:
        """(3,) centre of mass in the flange's frame, in [m]."""
        return self.values[1:4]


class RunningPayload:
    """Least squares along a stream.

    Args:
        robot: the model.
        rate: of rows, in [Hz].
        oversampling: how many of them say what one would.
        horizon: see `HORIZON`.
    """

    def __init__(self, robot: Robot, rate: float, oversampling: float, horizon: float = HORIZON) -> None:
        n = robot.n
        self._rated = USUAL_PAYLOAD if robot.rating is None else robot.rating.payload
        heaviest = HEAVIEST * self._rated
        self._possible = heaviest * np.array([1.0, *(ARM,) * 3, *(ARM**2,) * 6])
        drives = robot.active_drives
        static = np.zeros(n) if drives is None else drives.static @ np.abs(drives.friction_matrix)
        self._rested = RESTED * static
        limit = np.where(np.isfinite(robot.drive_torque_max), robot.drive_torque_max, 1e3)
        self._scatter, self._least = SCATTER * limit, 1e-2 * SCATTER * limit
        self._kept, self._oversampling = float(np.exp(-1.0 / (horizon * rate))), oversampling
        self._A, self._b = np.zeros((n, 10, 10)), np.zeros((n, 10))
        self._squares, self._count = np.zeros(n), np.zeros(n)

    def take(self, row: Row) -> None:
        """Take a row into account, if its torques were reported."""
        r, Y = row.residual, row.columns
        if not np.all(np.isfinite(r)):
            return
        counts = (row.friction_open <= self._rested).astype(np.float64)
        for sums in (self._A, self._b, self._squares, self._count):
            sums *= self._kept
        counted = counts[:, None] * Y
        self._A += counted[:, :, None] * Y[:, None, :]
        self._b += counted * r[:, None]
        self._squares += counts * r * r
        self._count += counts

    def estimate(self) -> ExplainingPayload | None:
        """The payload; `None` before there is a row."""
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
        told = deviation < TOLD * self._rated
        if not abs(phi[0]) > 3.0 * deviation:  # a centre of nothing
            values, deviations = np.full(10, np.nan), np.full(10, np.nan)
            values[0], deviations[0] = phi[0], deviation
            return ExplainingPayload(values, deviations, told, False)
        values, J = payload_values(phi)
        deviations = np.sqrt(np.diag(J @ covariance @ J.T))
        return ExplainingPayload(values, deviations, told, told and bool(max(deviations[1:4]) < CENTRE_TOLD))
