"""Result of an identification: base parameters with deviations, residuals, gear springs and findings.

A gear twists by the torque T that it transmits to the arm:

    T = K e + D ed,        e = theta - q.

The twist e is some tenths of a milliradian, so its noise is the largest of all.  It is therefore fitted to
the torque of the identified model, `e = (T - D ed) / K + c`, with a constant c for the zeros of both
encoders.  In filtered recordings the rate of the twist is noise, so the damping D is fitted to exact logs
only.  Torques do not tell all rotors from links.  Such rotors are those of the given robot, and are not part
of T.

In the steps of the engine, the spring acts at a mean of the twist over three samples, which
`e + dt^2 edd / 4` is, and the damper at the mean speed `ed + dt edd / 2` (`twin.robot.drives.drive_step`).

Deviations contain those of the parameters in T, and the residuals of e by the block bootstrap, see
`twin.identification.deviations`.

Sources: A. Janot, M. Gautier, A. Jubien, P.-O. Vandanjon, "Comparison between the CLOE method and the DIDIM
method for robots identification", IEEE Trans. on Control Systems Technology 22 (2014), on elastic joints with
two encoders; Ljubljana lab manual, eq. (6.93).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.base.formatting import html_table
from twin.data.identification.least_squares import (
    Fit,
    JointResiduals,
    Triangles,
    joint_residuals,
    sample_residuals,
    triangles,
    without_rest,
)
from twin.data.identification.measurements import (
    Measurements,
    Samples,
    equations,
    filtered_block,
    motion_at,
    sample_blocks,
)
from twin.data.identification.torque_model import TorqueModel
from twin.data.logs.recordings.faults import quantum, signal_noise
from twin.data.logs.recordings.finding import Finding
from twin.physics.dynamics.regressor import DRIVE
from twin.physics.robot.drives.drives import MOTOR

CERTAIN = 3.0
"""Deviations by which a compliance must exceed 0; the gear counts as rigid otherwise."""

BLOCKS = 8
"""Number of blocks of the bootstrap."""


CERTAIN_DELAY = 5.0
"""Deviations by which a delay must differ from 0."""


class GearSpring(NamedTuple):
    """Spring of a gear.

    Attributes:
        stiffness: in [N m/rad] or [N/m].
        deviation: standard deviation of the stiffness.
        damping: in [N m s/rad] or [N s/m]; `None` in filtered recordings.
    """

    stiffness: float
    deviation: float
    damping: float | None


def gear_springs(
    model: TorqueModel, beta: Floats, covariance: Floats, recordings: Sequence[Measurements]
) -> tuple[GearSpring | None, ...]:
    """Return the spring of each gear; `None` for a gear without measurable twist.

    Args:
        model: identified model.
        beta: (r,) its base parameters.
        covariance: (r, r) covariance of the base parameters.
        recordings: the recordings; those without motion of the motors are ignored.
    """
    parts = [_twists(model, one) for one in recordings if one.motor is not None]
    if not parts:
        return (None,) * model.robot.n
    rows, used = (np.concatenate(part) for part in zip(*parts, strict=True))
    return tuple(
        _spring(rows[used[:, joint], joint], model.apart, beta, covariance) for joint in range(model.robot.n)
    )


def _twists(model: TorqueModel, measured: Measurements) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the columns of each equation (N, n, 4 + r), and which equations are used (N, n).

    The columns are one, the rate of the twist, the twist, the torque of rotors that are not identified, and
    the base parameters' torques on the arm.
    """
    drives, sections, base = model.robot.active_drives, model.sections, model.base.columns
    assert measured.motor is not None
    assert drives is not None
    at_motor = np.array(drives.friction_at) == MOTOR
    before = np.zeros(len(model.parameters.values), dtype=np.bool_)  # which act before the gear
    before[sections.drives] = np.repeat(at_motor, len(DRIVE))
    before[sections.drives][:: len(DRIVE)] = True  # rotors
    before[sections.sides] = [at for drive in model.coupled for at in (False, *[not at_motor[drive]] * 2)]
    before[sections.friction] = [at_motor[drive] for _, drive in model.friction]
    others = before.copy()
    others[base] = False
    dt = float(measured.t[1] - measured.t[0])
    blocks = []
    for part, samples in sample_blocks(measured):
        motor, Y = measured.motor.at(samples), model.regressor(*motion_at(measured, samples))
        acceleration = motor.qdd - measured.qdd[samples]
        rate = motor.qd - measured.qd[samples] + dt / 2.0 * acceleration
        twist = motor.q - measured.q[samples] + dt**2 / 4.0 * acceleration
        rotors = Y[..., others] @ model.parameters.values[others]
        columns = np.stack([np.ones_like(twist), rate, twist, rotors], axis=-1)
        rows = np.concatenate([columns, Y[..., base] * ~before[base]], axis=-1)
        block = filtered_block(Samples(part, samples, rows), measured)
        blocks.append((block.rows, block.used))
    rows, used = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return rows, used


def _spring(rows: Floats, damped: bool, beta: Floats, covariance: Floats) -> GearSpring | None:
    """Return the spring, damped or not, that explains the twist in rows (N, 4 + r) of `_twists` best."""
    twist, torque = rows[:, 2], rows[:, 4:] @ beta - rows[:, 3]
    if len(rows) < 2 * BLOCKS or not np.ptp(twist) > 0 or not np.any(torque):
        return None
    X = np.column_stack([torque, rows[:, : 1 + damped]])
    scale = np.linalg.norm(X, axis=0)
    X /= scale
    x, _, rank, _ = np.linalg.lstsq(X, twist, rcond=None)
    if rank < X.shape[1]:
        return None
    row, e, length = np.linalg.inv(X.T @ X)[0] / scale[0], twist - X @ x, len(rows) // BLOCKS
    effect, residuals = ((v[: BLOCKS * length]).reshape(BLOCKS, length) for v in (X @ row, e))
    compliance, _, *rate = (x / scale).tolist()
    by_parameters = compliance * (X @ row) @ rows[:, 4:]
    variance = np.mean((effect @ residuals.T) ** 2) * BLOCKS + by_parameters @ covariance @ by_parameters
    deviation = float(np.sqrt(variance))
    if not compliance > CERTAIN * deviation:
        return None
    return GearSpring(1.0 / compliance, deviation / compliance**2, -rate[0] / compliance if rate else None)


class Delay(NamedTuple):
    """Delay of the torques.

    Attributes:
        value: time by which torques are recorded later than positions, in [s].
        deviation: its standard deviation, in [s].
        falls: logarithm by which residuals fall without the delay, as a mean over the joints.
        error: error of the torques by the delay, relative to them.
        shifts: (K,) delays that were tried, in [s].
        costs: (K,) mean logarithm of the residuals with each.
    """

    value: float
    deviation: float
    falls: float
    error: float
    shifts: Floats
    costs: Floats

    @property
    def certain(self) -> bool:
        """Whether the delay differs from 0 by more than `CERTAIN_DELAY` deviations."""
        return abs(self.value) > CERTAIN_DELAY * self.deviation


class BaseValue(NamedTuple):
    """Identified base parameter.

    Attributes:
        symbol: symbol of the parameter after which it is named, as `mx2`.
        stands_for: linear combination of parameters, as `mx2 + 0.36 m3`.
        value: identified value.
        deviation: standard deviation of the value.
        deviation_by_halves: the same, enlarged by what differs between both halves of the recordings.
        unit: unit of both.
        before: value of the robot that was passed to `identify`.
    """

    symbol: str
    stands_for: str
    value: float
    deviation: float
    deviation_by_halves: float
    unit: str
    before: float


@dataclass(frozen=True, eq=False)
class Identification:
    """Result of an identification.

    Attributes:
        model: fitted model: the robot, its drives, and its base parameters, `model.base`.
        beta: (r,) base parameters, `model.base.K @ pi`.
        covariance: (r, r) covariance of the base parameters.
        condition: condition number of the equations, with columns scaled to norm 1.
        rank: number of base parameters that the recordings determine: all, else `identify` raises.
        residuals: residuals of the fit, in which each joint is weighted by its noise, or equations as given.
        ordinary: residuals of a fit with equal weights.
        validation: residuals on the validation recordings; `None` if there are none.
        min_speed: speed below which samples are excluded from the fit, in [rad/s].
        how: description of the processing of each recording, one sentence each.
        measured: recordings of the fit.
        kept_out: recordings of the validation.
        reduced: reduced equations of the recordings, with equal weights.
        weighted: reduced equations of the fit, with the given weights; `reduced` if none were given.
        fit: fit of the base parameters, with its covariance for independent equations.
        blocks: number of blocks of the bootstrap that gives `covariance`; 0 if it is that of `fit`.
        mass_factor: factor by which links are heavier than those of the robot; `None` if it has no masses.
        delay: delay of the torques that remains; `None` if the recordings are exact or it was not sought.
        findings: what is wrong with the recordings; those whose `stops` is true make the result wrong.
        half_factors: (r,) factors of the deviations by halves; `None` if a half determines too little.
        growth: (n,) ratios of the residuals to those of fits to both halves of the recordings; `None` alike.
    """

    model: TorqueModel
    beta: Floats
    covariance: Floats
    condition: float
    rank: int
    residuals: JointResiduals
    ordinary: JointResiduals
    validation: JointResiduals | None
    min_speed: float
    how: tuple[str, ...]
    measured: tuple[Measurements, ...]
    kept_out: tuple[Measurements, ...]
    reduced: Triangles
    weighted: Triangles
    fit: Fit
    blocks: int
    mass_factor: float | None = None
    delay: Delay | None = None
    findings: tuple[Finding, ...] = ()
    half_factors: Floats | None = None
    growth: Floats | None = None

    def __repr__(self) -> str:
        name, count = self.model.robot.name, len(self.beta)
        return f"<Identification of {name}: {count} parameters, condition number {self.condition:.3g}>"

    def _repr_html_(self) -> str:
        """Return a table of the base parameters."""
        rows = [(one.symbol, one.value, one.deviation, one.before, one.unit) for one in self.values]
        head = ("base parameter", "identified", "deviation", "before", "unit")
        return html_table(repr(self)[1:-1], [head, *rows])

    @property
    def deviations(self) -> Floats:
        """Standard deviations (r,) of the base parameters."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def with_rest(self) -> JointResiduals | None:
        """Residuals on the fitted recordings with their samples near rest; `None` if none were left out."""
        if not self.min_speed > 0:
            return None
        whole = [replace(one, weights=None) for one in self.measured]
        return joint_residuals(triangles(self.model, whole), self.beta)

    @cached_property
    def unfiltered(self) -> JointResiduals | None:
        """Residuals of the samples that the fit uses, without its filter; `None` for exact logs."""
        if any(one.low_pass is None for one in self.measured):
            return None
        rest, tau, used = (
            np.concatenate(parts) for parts in zip(*map(self._samples, self.measured), strict=True)
        )
        count = np.maximum(np.sum(used, axis=0), 1)
        norms, whole = (np.sqrt(np.sum((values * used) ** 2, axis=0)) for values in (rest, tau))
        percent = 100.0 * norms / np.maximum(whole, np.finfo(float).tiny)
        return JointResiduals(norms / np.sqrt(count), percent, whole / np.sqrt(count), int(np.sum(used)))

    def _samples(self, measured: Measurements) -> tuple[Floats, Floats, np.ndarray]:
        """Return residuals and torques (N, n) of all samples, and which of them the fit uses."""
        weights = 1.0 if measured.weights is None else measured.weights
        rest = sample_residuals(self.model, self.beta, measured)
        return rest, measured.tau, measured.used & (np.broadcast_to(weights, rest.shape) > 0.5)

    @cached_property
    def noise(self) -> Floats | None:
        """Deviations (n,) of the noise of the torques, seen without a model; `None` for exact logs."""
        if any(one.low_pass is None for one in self.measured):
            return None
        noise = [
            [max(signal_noise(tau), min(quantum(tau), np.ptp(tau)) / np.sqrt(12.0)) for tau in one.tau.T]
            for one in self.measured
        ]
        return np.max(noise, axis=0)

    @cached_property
    def validation_moving(self) -> JointResiduals | None:
        """Residuals on the validation recordings without their samples near rest."""
        moving = [without_rest(one, self.model.robot, self.min_speed) for one in self.kept_out]
        return joint_residuals(triangles(self.model, moving), self.beta) if moving else None

    @cached_property
    def validation_before(self) -> JointResiduals | None:
        """Residuals of the given robot's parameters on the validation recordings."""
        of_robot = self.model.base.K @ self.model.parameters.values
        return joint_residuals(triangles(self.model, self.kept_out), of_robot) if self.kept_out else None

    @property
    def values(self) -> tuple[BaseValue, ...]:
        """Base parameters with deviations and units, one by one."""
        base, parameters = self.model.base, self.model.parameters
        before = base.K @ parameters.values
        factors = np.ones_like(self.beta) if self.half_factors is None else self.half_factors
        return tuple(
            BaseValue(*row)
            for row in zip(
                base.symbols,
                base.sums,
                self.beta.tolist(),
                self.deviations.tolist(),
                (self.deviations * factors).tolist(),
                (parameters.units[k] for k in base.columns),
                before.tolist(),
                strict=True,
            )
        )

    @cached_property
    def springs(self) -> tuple[GearSpring | None, ...]:
        """Springs of the gears, where encoders see both sides of them; `None` for gears that are rigid."""
        equal = [replace(one, row_weights=None) for one in self.measured]
        return gear_springs(self.model, self.beta, self.covariance, equal)

    def predicted(self, measured: Measurements) -> tuple[Floats, Floats, Floats]:
        """Return times (m,), and measured and predicted torques (m, n) of measurements, filtered alike."""
        blocks = [
            (measured.t[block.indices], block.rows[..., -1], block.rows[..., :-1] @ self.beta)
            for block in equations(self.model, replace(measured, weights=None, row_weights=None))
        ]
        t, tau, predicted = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return t, tau, predicted
