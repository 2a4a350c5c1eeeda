"""Measurements: motion and torques of the joints, filtered and ready for `tau = Y pi`.

A log of ours tells all exactly: the engine's step is `qd+ = qd + dt qdd`, so `qdd = (qd+ - qd) / dt` is the
acceleration that the torque in this step caused, and friction acts at the new speed `qd+`.  Of shafts whose
friction is higher at rest, equations near rest are left out.

Of anything measured, and of a log whose positions were seen by sensors, there are positions and torques; the
rest is filtered and differentiated, see `twin/identification/measurements.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.errors import IdentificationError
from twin.identification.torque_model import TorqueModel
from twin.logs.log import Log
from twin.logs.recordings.torque_recording import TorqueRecording, torque_recording
from twin.robot.robot import Robot

ORDER = 4

NOISE_BANDWIDTH = np.pi / 8 / np.sin(np.pi / 8) * 7 / 8
"""Of white noise the filter leaves as much as one of this width over its cut-off does that cuts off sharply:
the integral of `(1 + x^8)^-2`, for it is applied twice."""

POSITION_FACTOR = 5.0
"""The cut-off of the positions over that of the torques: what passes the second hardly feels the first."""

SPEED_FACTOR = 3.0
"""The cut-off of the torques over the frequency below which the joints' speeds have `SPEED_SHARE` of their
power: gravity, centrifugal torques and friction have multiples of it."""

SPEED_SHARE = 0.99

FASTEST = 100.0
"""In [Hz]: no arm moves faster; what is there is noise."""

ABOVE_NOISE = 20.0
"""How far a line of a spectrum is above the noise to be motion."""

NEGLIGIBLE = 1e-10
"""What is left of the filter's response to an impulse, relative to its peak, where it is cut off."""


def chosen_cutoff(q: Floats, period: float) -> float:
    """The cut-off for the torques of a motion, in [Hz].

    Args:
        q: (N, n) positions.
        period: between two of them, in [s].
    """
    from scipy.signal import periodogram

    f, power = periodogram(q - np.mean(q, axis=0), 1.0 / period, window="blackman", axis=0)
    noise = np.median(power[f >= 0.25 / period], axis=0)
    motion = np.where((power > ABOVE_NOISE * noise) & (f <= FASTEST)[:, None], power, 0.0)
    speed = np.cumsum(motion * f[:, None] ** 2, axis=0)
    if not np.all(speed[-1] > 0):
        joint = int(np.argmin(speed[-1] > 0)) + 1
        raise IdentificationError(f"joint {joint} moves no more than its noise: give a cut-off, in Hz")
    highest = np.max([f[np.searchsorted(s, SPEED_SHARE * s[-1])] for s in speed.T])
    digits = 1 - int(np.floor(np.log10(SPEED_FACTOR * highest)))
    return float(np.round(SPEED_FACTOR * highest, digits))


@dataclass(frozen=True)
class LowPass:
    """The filter.

    Attributes:
        cutoff: at which half of a signal is left, after forward and backward, in [Hz].
        period: between two samples, in [s].
    """

    cutoff: float
    period: float

    def __post_init__(self) -> None:
        if not 0 < self.cutoff < 0.5 / self.period:
            raise IdentificationError(
                f"a cut-off of {self.cutoff:g} Hz cannot be, with a sample every {self.period:g} s: expected "
                f"one above 0 and below {0.5 / self.period:g} Hz"
            )

    @cached_property
    def sections(self) -> Floats:
        """The filter as `scipy.signal.sosfiltfilt` takes it."""
        from scipy.signal import butter

        sections: Any = butter(ORDER, self.cutoff, fs=1.0 / self.period, output="sos")
        return sections

    def filtered(self, values: Floats) -> Floats:
        """Signals (N, ...), filtered along the first axis."""
        from scipy.signal import sosfiltfilt

        return sosfiltfilt(self.sections, values, axis=0)

    @cached_property
    def response(self) -> Floats:
        """Its response (2 L + 1,) to an impulse in the middle, cut off where it is negligible."""
        from scipy.signal import sosfiltfilt

        half = int(np.ceil(12.0 / (self.cutoff * self.period)))
        impulse = np.zeros(2 * half + 1)
        impulse[half] = 1.0
        response = sosfiltfilt(self.sections, impulse, padlen=0)
        reach = int(np.max(np.abs(np.flatnonzero(np.abs(response) > NEGLIGIBLE * response[half]) - half)))
        return response[half - reach : half + reach + 1]

    def rows(self, places: np.ndarray, first: int, values: Floats) -> Floats:
        """Filtered signals at some samples alone.

        Args:
            places: (m,) the samples.
            first: number of the first of the samples given.
            values: (M, ...) all samples that the response reaches from there.

        Returns:
            (m, ...) what `filtered` gives at those places, where its ends are far.
        """
        reach = len(self.response) // 2
        weights = np.zeros((len(places), len(values)))
        for row, place in zip(weights, places, strict=True):
            start = place - reach - first
            row[start : start + len(self.response)] = self.response
        return (weights @ values.reshape(len(values), -1)).reshape(len(places), *values.shape[1:])


def differences(q: Floats, period: float) -> tuple[Floats, Floats]:
    """Speeds and accelerations (N, n) by central differences; those at both ends are their neighbours'."""
    forward = np.diff(q, axis=0) / period
    qd, qdd = np.empty_like(q), np.empty_like(q)
    qd[1:-1] = (forward[1:] + forward[:-1]) / 2.0
    qdd[1:-1] = (forward[1:] - forward[:-1]) / period
    for rates in (qd, qdd):
        rates[0], rates[-1] = rates[1], rates[-2]
    return qd, qdd


FAR_FROM_REST = 7.0
"""At so many Stribeck speeds static friction is Coulomb friction, e^-49 of the difference aside."""

STICKING = 1e-9
"""In [rad/s]: a shaft that is slower after a step was held."""

BLOCK = 4096
"""Samples whose regressor is in memory at a time, some 20 MB."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Motion and torques of N samples of n joints.

    Attributes:
        name: of the file, for messages.
        t: (N,) time, in [s].
        q, qd, qdd: (N, n) joint angles, speeds, accelerations, in [rad], [rad/s], [rad/s^2].
        qd_friction: (N, n) speeds at which friction acts, in [rad/s].
        tau: (N, n) torques of the motors at the joints, in [N m].
        used: (N, n) the equations that count, one a sample and a joint.
        low_pass: what both sides of the equations are filtered with; None: they are as they are.
        row_rate: how many of the filtered rows are kept in a second, in [Hz].
        how: how this was derived, in a sentence.
    """

    name: str
    t: Floats
    q: Floats
    qd: Floats
    qdd: Floats
    qd_friction: Floats
    tau: Floats
    used: NDArray[np.bool_]
    low_pass: LowPass | None
    row_rate: float
    how: str

    def between(self, start: float | None, end: float | None) -> Measurements:
        """The same, of which only the samples from `start` to `end`, in [s], count."""
        low, high = -np.inf if start is None else start, np.inf if end is None else end
        inside = (self.t >= low) & (self.t < high)
        if not np.any(inside):
            raise IdentificationError(
                f"{self.name}: nothing was recorded from {low:g} s to {high:g} s, only from "
                f"{self.t[0]:g} s to {self.t[-1]:g} s"
            )
        return replace(self, used=self.used & inside[:, None])

    @property
    def oversampling(self) -> float:
        """How many rows say what one would, for a filter leaves neighbours alike; 1 of rows that are told."""
        if self.low_pass is None:
            return 1.0
        return max(1.0, self.row_rate / (2.0 * NOISE_BANDWIDTH * self.low_pass.cutoff))


@dataclass(frozen=True)
class Filtering:
    """How recordings are filtered.

    Attributes:
        cutoff: of torques and of the model's columns, in [Hz]; None: chosen from the motion.
        position_cutoff: of the positions, in [Hz]; None: five times the other.
        row_rate: rows kept in a second, in [Hz]; None: twice the cut-off.
    """

    cutoff: float | None = None
    position_cutoff: float | None = None
    row_rate: float | None = None


def measurements_of_log(log: Log, name: str = "the log", filtering: Filtering | None = None) -> Measurements:
    """The measurements in a log: exact ones, or where sensors saw the positions, filtered ones.

    Args:
        log: of a run with ideal or rigid drives, one engine step a control period, for exact ones.
        name: for messages.
        filtering: of positions that sensors saw.
    """
    seen = log.q_seen is not log.q_motor
    as_engine = log.steps_per_period == 1 and log.drives != "elastic"
    if seen or not as_engine:
        recording = torque_recording(log.t, log.q_seen, log.tau, name)
        return filtered_measurements(recording, filtering, as_engine)
    if len(log.t) < 2:
        raise IdentificationError(f"{name}: expected at least 2 samples, got {len(log.t)}")
    after = log.qd[1:]
    used, near = _far_from_rest(log.robot, log.qd[:-1], after)
    rest = ""
    if not np.all(used):
        slowest = " or ".join(sorted({f"{speed:.3g}" for speed in near}))
        rest = (
            f"; left out below {slowest} rad/s, where friction is not Coulomb's: {np.sum(~used)} of "
            f"{used.size} equations"
        )
    if not all(np.all(np.isfinite(array)) for array in (log.q, log.qd, log.tau[:-1])):
        raise IdentificationError(f"{name}: the run diverged, so that its positions are not finite")
    return Measurements(
        name, log.t[:-1], log.q[:-1], log.qd[:-1], np.diff(log.qd, axis=0) / log.time_step, after,
        log.tau[:-1], used, None, 1.0 / log.time_step,
        f"the engine's own steps, no filter, friction at the speed after each step{rest}",
    )  # fmt: skip


def _far_from_rest(robot: Robot, before: Floats, after: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """The equations (N, n) in which friction is linear in its parameters, and the speeds below which not."""
    drives = robot.active_drives
    if drives is None:
        return np.ones(before.shape, dtype=np.bool_), np.zeros(0)
    drops = drives.static > drives.coulomb
    near = np.where(drops, FAR_FROM_REST * drives.stribeck_speed, 0.0)
    R = drives.friction_matrix
    slides = (np.abs(after @ R.T) > STICKING) & (np.abs(before @ R.T) >= near)
    rubs = (drives.static > 0)[:, None] & (R != 0)
    return ~((~slides) @ rubs), near[drops]


def filtered_measurements(
    recording: TorqueRecording, filtering: Filtering | None = None, engine_steps: bool = False
) -> Measurements:
    """Measurements from recorded positions and torques.

    Args:
        recording: of the joints.
        filtering: how it is filtered.
        engine_steps: whether the positions are those of the engine, whose recursion then tells speeds: of
            the step before a sample, and for friction of the step after it. By default speeds are central
            differences.

    Raises:
        IdentificationError: a cut-off that cannot be.
    """
    filtering = filtering or Filtering()
    dt, name = recording.period, recording.name
    chosen = filtering.cutoff is None
    cutoff = chosen_cutoff(recording.q, dt) if filtering.cutoff is None else filtering.cutoff
    low_pass = LowPass(cutoff, dt)
    of_positions = filtering.position_cutoff or min(POSITION_FACTOR * cutoff, 0.45 / dt)
    q = LowPass(of_positions, dt).filtered(recording.q)
    qd, qdd = differences(q, dt)
    rubbing = qd
    if engine_steps:
        qd, rubbing = qd - 0.5 * dt * qdd, qd + 0.5 * dt * qdd
    rate = 2.0 * cutoff if filtering.row_rate is None else filtering.row_rate
    if not 0 < rate <= 1.0 / dt:
        raise IdentificationError(f"expected a rate of rows above 0 and up to {1 / dt:g} Hz, got {rate:g}")
    step = max(1, round(1.0 / (rate * dt)))
    t = recording.t[0] + dt * np.arange(len(q))
    edge = 1.0 / cutoff
    inside = (t > t[0] + edge) & (t < t[-1] - edge)
    if not np.any(inside):
        raise IdentificationError(
            f"{name}: {t[-1] - t[0]:g} s are too short for a filter of {cutoff:g} Hz, which needs "
            f"{edge:g} s at either end"
        )
    how = (
        f"positions low-pass filtered at {of_positions:g} Hz, torques and model at {cutoff:g} Hz"
        f"{' (chosen from the motion)' if chosen else ''}, {1 / (step * dt):g} rows a second, "
        f"{edge:g} s left out at both ends"
    )
    used = np.broadcast_to(inside[:, None], q.shape)
    return Measurements(name, t, q, qd, qdd, rubbing, recording.tau, used, low_pass, 1 / (step * dt), how)


class Equations(NamedTuple):
    """A block of `tau = Y pi`.

    Attributes:
        places: (m,) its samples.
        rows: (m, n, r + 1) the base columns of Y, and behind them the torque.
        used: (m, n) which of them count.
    """

    places: NDArray[np.intp]
    rows: Floats
    used: NDArray[np.bool_]


def equations(model: TorqueModel, measured: Measurements) -> Iterator[Equations]:
    """The equations of measurements, block by block in time, filtered on both sides alike.

    Where the filter reaches beyond the ends of a recording, it finds the equations near these, mirrored.
    """
    N, low_pass = len(measured.t), measured.low_pass
    period = (measured.t[-1] - measured.t[0]) / max(N - 1, 1)
    step = 1 if low_pass is None else round(1.0 / (measured.row_rate * period))
    reach = 0 if low_pass is None else len(low_pass.response) // 2
    counted = np.flatnonzero(np.any(measured.used, axis=1))
    places = np.arange(0, N, step)
    places = places[(places >= counted[0]) & (places <= counted[-1])] if counted.size else places[:0]
    size = max(1, max(BLOCK, 2 * reach) // step)
    for start in range(0, len(places), size):
        part = places[start : start + size]
        first = int(part[0]) - reach
        samples = part if low_pass is None else _mirrored(first, int(part[-1]) + reach + 1, N)
        rows = np.concatenate(
            [
                model.regressor(
                    *(v[samples] for v in (measured.q, measured.qd, measured.qdd, measured.qd_friction))
                )[..., model.base.columns],
                measured.tau[samples][..., None],
            ],
            axis=-1,
        )
        if low_pass is not None:
            rows = low_pass.rows(part, first, rows)
        yield Equations(part, rows, measured.used[part])


def _mirrored(first: int, end: int, N: int) -> NDArray[np.intp]:
    """The numbers from `first` to `end`, those that are no samples of N mirrored at the ends."""
    period = 2 * max(N - 1, 1)
    back = np.arange(first, end) % period
    return np.minimum(back, period - back)
