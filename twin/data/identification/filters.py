"""Filters of recordings: low-pass filters, their cut-offs, and speeds and accelerations from positions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import IdentificationError
from twin.data.logs.recordings.finding import Finding, joint_names

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
