"""Measurements: motion and torques of the joints, filtered and ready for the equations `tau = Y pi`.

A log without sensors provides exact values.  The engine's step is `qd+ = qd + dt qdd`, so that
`qdd = (qd+ - qd) / dt` is the acceleration by the torque in this step, and friction acts at the new speed
`qd+`.  For shafts with a higher static friction, equations near rest are excluded.

Measured recordings, and logs with sensors, contain only positions and torques.  The positions are low-pass
filtered and differentiated; the torques and the columns of the regressor are low-pass filtered alike.  Where
speeds are measured as well, they are a second source of derivatives: that of less noise is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.base.errors import IdentificationError
from twin.base.formatting import short_repr
from twin.data.identification.torque_model import Motion, TorqueModel, shaft_speeds
from twin.data.logs.log import Log
from twin.data.logs.recordings.faults import (
    frozen_torques,
    jumps,
    lost_rows,
    unwrapped,
    without_held,
    without_spikes,
)
from twin.data.logs.recordings.finding import Finding, joint_names
from twin.data.logs.recordings.torque_recording import (
    TorqueRecording,
    parts_between_gaps,
    torque_recording,
    with_even_times,
)
from twin.physics.robot.robot import Robot

ORDER = 4

NOISE_BANDWIDTH = np.pi / 8 / np.sin(np.pi / 8) * 7 / 8
"""Width of an ideal low-pass that passes as much white noise, over the cut-off: that of `(1 + x^8)^-2`."""

POSITION_FACTOR = 5.0
"""Cut-off of the positions relative to that of the torques; it hardly affects what the latter passes."""

SPEED_FACTOR = 3.0
"""Cut-off of the torques relative to the frequency below which the joints' speeds have `SPEED_SHARE` of
their power; gravity, centrifugal torques and friction contain multiples of this frequency.
"""

SPEED_SHARE = 0.99

FASTEST = 100.0
"""Highest frequency that is attributed to motion, in [Hz]; higher ones are noise."""

HIGHEST = 0.2
"""Highest cut-off that is chosen, in samples per period."""

ABOVE_NOISE = 20.0
"""Smallest ratio of a spectral line to the noise for which it is attributed to motion."""

NEGLIGIBLE = 1e-10
"""Magnitude of the filter's impulse response, relative to its peak, below which it is truncated."""

DIFFER = 0.03
"""Largest difference of measured speeds from those of positions, relative to them."""


def chosen_cutoff(q: Floats, period: float) -> float:
    """Choose the cut-off for the torques from a motion, in [Hz].

    Args:
        q: (N, n) positions.
        period: time between two samples, in [s].

    Raises:
        IdentificationError: the motion of a joint does not exceed its noise.
    """
    from scipy.signal import periodogram

    f, power = periodogram(q - np.mean(q, axis=0), 1.0 / period, window="blackman", axis=0)
    noise = np.median(power[f >= 0.25 / period], axis=0)
    motion = np.where((power > ABOVE_NOISE * noise) & (f <= FASTEST)[:, None], power, 0.0)
    speed = np.cumsum(motion * f[:, None] ** 2, axis=0)
    if not np.all(speed[-1] > 0):
        joint = int(np.argmin(speed[-1] > 0)) + 1
        raise IdentificationError(
            f"the motion of joint {joint} does not exceed its noise: give a cut-off, in Hz, or lock "
            "it if it stands still (--lock NAME=POSITION, or [joints.locked] in its robot.toml)"
        )
    highest = np.max([f[np.searchsorted(s, SPEED_SHARE * s[-1])] for s in speed.T])
    cutoff = min(SPEED_FACTOR * highest, HIGHEST / period)
    return float(np.round(cutoff, 1 - int(np.floor(np.log10(cutoff)))))


@dataclass(frozen=True)
class LowPass:
    """Low-pass filter: Butterworth, applied forward and backward.

    Attributes:
        cutoff: frequency at which half the amplitude remains after both passes, in [Hz].
        period: time between two samples, in [s].
    """

    cutoff: float
    period: float

    def __post_init__(self) -> None:
        if not 0 < self.cutoff < 0.5 / self.period:
            raise IdentificationError(
                f"a cut-off of {self.cutoff:g} Hz is out of range for a sample every {self.period:g} s: "
                f"expected one above 0 and below {0.5 / self.period:g} Hz"
            )

    @cached_property
    def sections(self) -> Floats:
        """Second-order sections of the filter for `scipy.signal.sosfiltfilt`."""
        from scipy.signal import butter

        sections: Any = butter(ORDER, self.cutoff, fs=1.0 / self.period, output="sos")
        return sections

    def filtered(self, values: Floats) -> Floats:
        """Return signals (N, ...) filtered along the first axis."""
        from scipy.signal import sosfiltfilt

        return sosfiltfilt(self.sections, values, axis=0)

    @cached_property
    def response(self) -> Floats:
        """Impulse response (2 L + 1,) of the filter, centred and truncated where it is negligible."""
        from scipy.signal import sosfiltfilt

        half = int(np.ceil(12.0 / (self.cutoff * self.period)))
        impulse = np.zeros(2 * half + 1)
        impulse[half] = 1.0
        response = sosfiltfilt(self.sections, impulse, padlen=0)
        reach = int(np.max(np.abs(np.flatnonzero(np.abs(response) > NEGLIGIBLE * response[half]) - half)))
        return response[half - reach : half + reach + 1]

    def rows(self, indices: np.ndarray, first: int, values: Floats) -> Floats:
        """Return the filtered signals at selected samples.

        Args:
            indices: (m,) indices of the samples.
            first: index of the first sample in `values`.
            values: (M, ...) all samples within reach of the impulse response.

        Returns:
            (m, ...) values that agree with `filtered` far from its ends.
        """
        reach = len(self.response) // 2
        weights = np.zeros((len(indices), len(values)))
        for row, place in zip(weights, indices, strict=True):
            start = place - reach - first
            row[start : start + len(self.response)] = self.response
        return (weights @ values.reshape(len(values), -1)).reshape(len(indices), *values.shape[1:])


def differences(q: Floats, period: float) -> tuple[Floats, Floats]:
    """Return speeds and accelerations (N, n) by central differences; the first and last repeat neighbours."""
    forward = np.diff(q, axis=0) / period
    qd, qdd = np.empty_like(q), np.empty_like(q)
    qd[1:-1] = (forward[1:] + forward[:-1]) / 2.0
    qdd[1:-1] = (forward[1:] - forward[:-1]) / period
    for rates in (qd, qdd):
        rates[0], rates[-1] = rates[1], rates[-2]
    return qd, qdd


def less_noisy(
    qd: Floats, qdd: Floats, seen: Floats, low_pass: LowPass
) -> tuple[Floats, Floats, str, tuple[Finding, ...]]:
    """Return speeds and accelerations (N, n) of positions or of measured speeds, whichever have less noise.

    The noise is what the filter of the torques removes from them.

    Args:
        qd: (N, n) speeds by the positions.
        qdd: (N, n) accelerations by the positions.
        seen: (N, n) measured speeds, filtered as the positions.
        low_pass: filter of the torques.

    Returns:
        Speeds, accelerations, a phrase on what is used, and a finding if measured speeds are others.
    """

    def size(values: Floats) -> Floats:
        return np.sqrt(np.mean(values**2, axis=0))

    def noise(rates: Floats) -> Floats:
        return size(rates - low_pass.filtered(rates))

    by_speeds = differences(seen, low_pass.period)[0]
    off = size(low_pass.filtered(seen - qd)) / np.maximum(size(low_pass.filtered(qd)), np.finfo(float).tiny)
    better = [(noise(b) < noise(a)) & (off <= DIFFER) for a, b in ((qd, seen), (qdd, by_speeds))]
    joints = (np.flatnonzero(np.any(better, axis=0)) + 1).tolist()
    used = f", measured speeds of {joint_names(joints)}" if joints else ""
    findings = ()
    if joints := (np.flatnonzero(off > DIFFER) + 1).tolist():
        text = (
            f"the measured speeds of {joint_names(joints)} differ from those of the positions by up to "
            f"{100 * np.max(off):.3g} %: not used"
        )
        findings = (Finding("speeds", tuple(joints), text, stops=False),)
    return np.where(better[0], seen, qd), np.where(better[1], by_speeds, qdd), used, findings


FAR_FROM_REST = 7.0
"""Multiple of the Stribeck speed at which static friction has decayed to Coulomb friction up to e^-49."""

STICKING = 1e-9
"""Speed after a step, in [rad/s], below which a shaft is considered stuck."""

LEAST_SHARE = 0.05
"""Smallest weight of the samples in an equation that is used."""

BLOCK = 4096
"""Samples whose regressor is in memory at a time, some 20 MB."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Motion and torques of N samples of n joints.

    Attributes:
        name: name of the file, for messages.
        t: (N,) time, in [s].
        q, qd, qdd: (N, n) joint angles, speeds, accelerations, in [rad], [rad/s], [rad/s^2].
        qd_friction: (N, n) speeds at which friction acts, in [rad/s].
        tau: (N, n) torques of the motors at the joints, in [N m].
        used: (N, n) true for the equations that are used, one per sample and joint.
        low_pass: filter for both sides of the equations; `None` for unfiltered equations.
        row_rate: filtered rows that are used per second, in [Hz].
        how: description of the processing, in one sentence.
        reference: motion that the controller was to follow, with the torques above; `None` if unknown.
        ideal: whether ideal drives were simulated, without rotors and friction.
        load: (N, n) torques of the drives on the arm in the step before, in [N m]; `None` if unknown.
        weights: (N, n) weights of the samples in both sides of the equations; `None` for 1.
        motor: motion of the motors, where encoders see both sides of the gears, otherwise `None`.
        row_weights: (N, n) weights of the filtered equations in the fit, 0 to exclude one; `None` for 1.
        findings: what was wrong with the recording, see `measured_parts`.
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
    reference: Measurements | None = None
    ideal: bool = False
    load: Floats | None = None
    weights: Floats | None = None
    motor: Motion | None = None
    row_weights: Floats | None = None
    findings: tuple[Finding, ...] = ()

    __repr__ = short_repr

    def between(self, start: float | None, end: float | None) -> Measurements:
        """Return the measurements with only the samples from `start` to `end`, in [s], marked as used.

        Raises:
            IdentificationError: the interval contains no sample.
        """
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
        """Number of rows per independent one: filtered neighbours are correlated; 1 without a filter."""
        if self.low_pass is None:
            return 1.0
        return max(1.0, self.row_rate / (2.0 * NOISE_BANDWIDTH * self.low_pass.cutoff))


@dataclass(frozen=True)
class Filtering:
    """Filter settings for recordings.

    Attributes:
        cutoff: cut-off for torques and the columns of the regressor, in [Hz]; `None` to choose it from the
            motion.
        position_cutoff: cut-off for the positions, in [Hz]; `None` for five times the other.
        row_rate: rows that are used per second, in [Hz]; `None` for twice the cut-off.
        factor: factor of a cut-off that is chosen from the motion.
    """

    cutoff: float | None = None
    position_cutoff: float | None = None
    row_rate: float | None = None
    factor: float = 1.0


def measurements_of_log(log: Log, name: str = "the log", filtering: Filtering | None = None) -> Measurements:
    """Return the measurements in a log: exact ones, or filtered ones if sensors measured the positions.

    Args:
        log: log of a run; exact measurements require one engine step per control period.  A log of elastic
            drives without sensors has the motion of both sides of the gears.
        name: name of the log, for messages.
        filtering: filter settings for positions that sensors measured.

    Raises:
        IdentificationError: the log is too short or not finite, or a cut-off is out of range.

    Example:
        >>> import twin
        >>> from scenarios.joint_tracking import JointTracking
        >>> log = JointTracking(duration=0.1).run(JointTracking.setup(robot="two_link")).log
        >>> measured = twin.identification.measurements_of_log(log)
        >>> measured.how
        'exact steps of the engine, no filter, friction at the speed after each step'
    """
    if log.payloads is not None:
        raise IdentificationError(
            f"{name}: the payload changes during the run; identify a part of it (twin.logs.parts)"
        )
    if log.surroundings is not None:
        raise IdentificationError(f"{name}: a wrench acted on the tool; identify a run without one")
    seen = log.q_seen is not log.q_motor
    elastic = log.drives == "elastic"
    if seen or log.steps_per_period > 1:
        recording = torque_recording(log.t, log.q_seen, log.tau, name, log.q_ref)
        measured = filtered_measurements(recording, filtering, log.steps_per_period == 1 and not elastic)
        return replace(measured, ideal=log.drives == "ideal")
    if len(log.t) < 2:
        raise IdentificationError(f"{name}: expected at least 2 samples, got {len(log.t)}")
    qdd, qdd_motor = (np.diff(rates, axis=0) / log.time_step for rates in (log.qd, log.qd_motor))
    motor = Motion(log.q_motor[:-1], log.qd_motor[:-1], qdd_motor, log.qd_motor[1:]) if elastic else None
    used, near = _far_from_rest(log)
    rest = ""
    if not np.all(used):
        slowest = " or ".join(sorted({f"{speed:.3g}" for speed in near}))
        rest = (
            f"; excluded below {slowest} rad/s, where friction exceeds Coulomb friction: {np.sum(~used)} of "
            f"{used.size} equations"
        )
    if not all(np.all(np.isfinite(array)) for array in (log.q, log.qd, log.tau[:-1])):
        raise IdentificationError(f"{name}: the run diverged: its positions are not finite")
    return Measurements(
        name, log.t[:-1], log.q[:-1], log.qd[:-1], qdd, log.qd[1:], log.tau[:-1], used, None,
        1.0 / log.time_step,
        f"exact steps of the engine, no filter, friction at the speed after each step{rest}",
        ideal=log.drives == "ideal", load=log.torque_before[:-1], motor=motor,
    )  # fmt: skip


def _far_from_rest(log: Log) -> tuple[NDArray[np.bool_], Floats]:
    """Return the equations (N - 1, n) with friction linear in its parameters, and the limits of speed."""
    drives = log.robot.active_drives
    if drives is None:
        return np.ones(log.q[1:].shape, dtype=np.bool_), np.zeros(0)
    drops = drives.static > drives.coulomb
    near = np.where(drops, FAR_FROM_REST * drives.stribeck_speed, 0.0)
    speeds = np.abs(shaft_speeds(drives, log.qd, log.qd_motor))
    slides = (speeds[1:] > STICKING) & (speeds[:-1] >= near)
    rubs = (drives.static > 0)[:, None] & (drives.friction_matrix != 0)
    return ~((~slides) @ rubs), near[drops]


def filtered_measurements(
    recording: TorqueRecording, filtering: Filtering | None = None, engine_steps: bool = False
) -> Measurements:
    """Return measurements from recorded positions and torques.

    Args:
        recording: recording of the joints.
        filtering: filter settings.
        engine_steps: whether the positions are those of the engine, whose recursion then determines speeds:
            that of the step before a sample, and for friction that of the step after it. By default speeds
            are central differences.

    Raises:
        IdentificationError: a cut-off or row rate is out of range, or the recording is too short.

    Example:
        >>> import twin
        >>> from scenarios.joint_tracking import JointTracking
        >>> log = JointTracking(duration=2.0).run(JointTracking.setup(robot="two_link")).log
        >>> recording = twin.logs.torque_recording(log.t, log.q, log.tau)
        >>> twin.identification.filtered_measurements(recording).low_pass.cutoff  # in [Hz]
        4.5
    """
    filtering = filtering or Filtering()
    dt, name = recording.period, recording.name
    chosen = filtering.cutoff is None
    cutoff, more = filtering.cutoff, "" if filtering.factor == 1.0 else f", times {filtering.factor:g}"
    if cutoff is None:
        cutoff = min(filtering.factor * chosen_cutoff(recording.q, dt), 2.0 * HIGHEST / dt)
    low_pass = LowPass(cutoff, dt)
    of_positions = filtering.position_cutoff or min(POSITION_FACTOR * cutoff, 0.45 / dt)
    filtered = LowPass(of_positions, dt).filtered
    q, motor = filtered(recording.q), None
    qd, qdd = differences(q, dt)
    speeds, findings = "", ()
    if recording.qd is not None:
        qd, qdd, speeds, findings = less_noisy(qd, qdd, filtered(recording.qd), low_pass)
    if recording.q_motor is not None:
        theta = filtered(recording.q_motor)
        thetad, thetadd = differences(theta, dt)
        motor = Motion(theta, thetad, thetadd, thetad)
    qd_friction = qd
    if engine_steps:
        qd, qd_friction = qd - 0.5 * dt * qdd, qd + 0.5 * dt * qdd
    rate = 2.0 * cutoff if filtering.row_rate is None else filtering.row_rate
    if not 0 < rate <= 1.0 / dt:
        raise IdentificationError(f"expected a row rate above 0 and up to {1 / dt:g} Hz, got {rate:g}")
    step = max(1, round(1.0 / (rate * dt)))
    t = recording.t[0] + dt * np.arange(len(q))
    edge = 1.0 / cutoff
    inside = (t > t[0] + edge) & (t < t[-1] - edge)
    if not np.any(inside):
        raise IdentificationError(
            f"{name}: {t[-1] - t[0]:g} s are too short for a filter of {cutoff:g} Hz, which requires "
            f"{edge:g} s at each end"
        )
    how = (
        f"positions low-pass filtered at {of_positions:g} Hz, torques and model at {cutoff:g} Hz"
        f"{f' (chosen from the motion{more})' if chosen else ''}, {1 / (step * dt):g} rows per second, "
        f"{edge:g} s excluded at both ends{speeds}"
    )
    used = np.broadcast_to(inside[:, None], q.shape)
    measured = Measurements(
        name, t, q, qd, qdd, qd_friction, recording.tau, used, low_pass, 1 / (step * dt), how, motor=motor,
        findings=findings,
    )  # fmt: skip
    if recording.q_ref is None:
        return measured
    reference = replace(measured, q=recording.q_ref)
    qd, qdd = differences(recording.q_ref, dt)
    return replace(measured, reference=replace(reference, qd=qd, qdd=qdd, qd_friction=qd))


class Equations(NamedTuple):
    """Block of the equations `tau = Y pi`.

    Attributes:
        indices: (m,) indices of the samples.
        rows: (m, n, r + 1) base columns of Y, followed by the torque.
        shares: (m, n) weight of the samples in each equation, 0 for equations that are not used.
    """

    indices: NDArray[np.intp]
    rows: Floats
    shares: Floats

    @property
    def used(self) -> NDArray[np.bool_]:
        """True (m, n) for the equations that are used."""
        return self.shares > 0


class Samples(NamedTuple):
    """Unfiltered equations from which a block of equations is computed.

    Attributes:
        indices: (m,) indices of the samples of the block.
        samples: (M,) indices of the samples that the filter combines.
        rows: (M, n, r + 1) base columns of Y, followed by the torque.
    """

    indices: NDArray[np.intp]
    samples: NDArray[np.intp]
    rows: Floats


def equations(model: TorqueModel, measured: Measurements, multiple: int = 1) -> Iterator[Equations]:
    """Yield the equations of measurements, block by block in time, with both sides filtered alike.

    Weights multiply both sides before the filter, so that a sample of weight 0 has no effect on its
    neighbours.  Beyond the ends of a recording, the filter uses mirrored equations.  Each block but the last
    has a multiple of `multiple` samples.
    """
    for block in unfiltered(model, measured, multiple):
        yield filtered_block(block, measured)


def unfiltered(model: TorqueModel, measured: Measurements, multiple: int = 1) -> Iterator[Samples]:
    """Yield the samples from which `filtered_block` computes the equations, block by block in time."""
    for part, samples in sample_blocks(measured, multiple):
        Y = model.regressor(*motion_at(measured, samples))
        rows = np.concatenate([Y[..., model.base.columns], measured.tau[samples][..., None]], axis=-1)
        yield Samples(part, samples, rows)


def motion_at(measured: Measurements, samples: NDArray[np.intp]) -> tuple[Any, ...]:
    """Return the arguments of `TorqueModel.regressor` at some samples."""
    load, motor = measured.load, measured.motor
    return (
        *(values[samples] for values in (measured.q, measured.qd, measured.qdd, measured.qd_friction)),
        None if load is None else load[samples],
        None if motor is None else motor.at(samples),
    )


def sample_blocks(
    measured: Measurements, multiple: int = 1
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the indices of the samples of each block, and of those that the filter combines for them."""
    N, low_pass = len(measured.t), measured.low_pass
    period = (measured.t[-1] - measured.t[0]) / max(N - 1, 1)
    step = 1 if low_pass is None else round(1.0 / (measured.row_rate * period))
    reach = 0 if low_pass is None else len(low_pass.response) // 2
    counted = np.flatnonzero(np.any(measured.used, axis=1))
    indices = np.arange(0, N, step)
    indices = indices[(indices >= counted[0]) & (indices <= counted[-1])] if counted.size else indices[:0]
    size = max(1, max(BLOCK, 2 * reach) // step // multiple) * multiple
    for start in range(0, len(indices), size):
        part = indices[start : start + size]
        samples = part
        if low_pass is not None:
            samples = _mirrored(int(part[0]) - reach, int(part[-1]) + reach + 1, N)
        yield part, samples


def filtered_block(block: Samples, measured: Measurements) -> Equations:
    """Return the equations of a block, with the weights and the filter of the measurements."""
    part, samples, rows = block
    shares = np.ones(rows.shape[:2])
    if measured.weights is not None:
        shares = measured.weights[samples]
        rows = rows * shares[..., None]
    if (low_pass := measured.low_pass) is not None:
        first = int(part[0]) - len(low_pass.response) // 2
        rows, shares = low_pass.rows(part, first, rows), low_pass.rows(part, first, shares)
    used = measured.used[part] & (shares > LEAST_SHARE)
    if measured.row_weights is not None:
        rows = rows * measured.row_weights[part][..., None]
        used &= measured.row_weights[part] > 0
    return Equations(part, rows, np.where(used, shares, 0.0))


def _mirrored(first: int, end: int, N: int) -> NDArray[np.intp]:
    """Return the indices from `first` to `end`; indices outside the N samples are mirrored at the ends."""
    period = 2 * max(N - 1, 1)
    back = np.arange(first, end) % period
    return np.minimum(back, period - back)


def cured_parts(recording: TorqueRecording, robot: Robot) -> tuple[list[TorqueRecording], list[Finding]]:
    """Return the parts of a recording, with even times, and without wraps and spikes of the positions.

    Args:
        recording: recording as it is.
        robot: robot of the joints.

    Returns:
        The parts between gaps, and findings of all parts.
    """
    parts, findings = parts_between_gaps(recording)
    findings = [*recording.findings, *findings]
    revolute = [kind != "prismatic" for kind in robot.joint_kinds]
    cured = []
    for part in parts:
        q, wraps = unwrapped(part.q, revolute)
        jumped = jumps(part.t, q)
        q, spikes = without_spikes(q)
        q, held = without_held(q)
        findings += [*wraps, *jumped, *spikes, *held, *frozen_torques(q, part.tau)]
        part, times = with_even_times(replace(part, q=q))
        findings += times if times else lost_rows(part.t, part.q)
        cured.append(part)
    return cured, merged(findings)


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """Return one finding of each name: the first that stops, or the first, and how many more there are."""
    result = []
    for name in dict.fromkeys(one.name for one in findings):
        alike = [one for one in findings if one.name == name]
        worst = next((one for one in alike if one.stops), alike[0])
        joints = tuple(sorted({joint for one in alike for joint in one.joints}))
        more = f"; and alike in {len(alike) - 1} more parts" if len(alike) > 1 else ""
        result.append(worst._replace(joints=joints, text=worst.text + more))
    return result


def measured_parts(
    recording: TorqueRecording, robot: Robot, filtering: Filtering | None
) -> list[Measurements]:
    """Return the filtered measurements of the parts of a recording, with the findings in the first.

    Raises:
        IdentificationError: no part is long enough for the filter, or a setting is out of range.
    """
    parts, findings = cured_parts(recording, robot)
    filtering = filtering or Filtering()
    if len(parts) > 1 and filtering.cutoff is None:
        longest = max(len(part.t) for part in parts)  # one part with a fault would ask for a high cut-off
        cutoffs = [chosen_cutoff(part.q, part.period) for part in parts if 2 * len(part.t) > longest]
        filtering = replace(filtering, cutoff=filtering.factor * min(cutoffs))
    result, fault = [], None
    for part in parts:
        try:
            result.append(filtered_measurements(part, filtering))
        except IdentificationError as error:
            fault = error
    if not result:
        assert fault is not None
        raise fault
    findings += [finding for one in result for finding in one.findings]
    result = [replace(one, findings=()) for one in result]
    result[0] = replace(result[0], findings=tuple(merged(findings)))
    return result
