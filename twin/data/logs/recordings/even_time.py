"""Even times for recordings: gaps divide a recording, and uneven samples are interpolated.

Computers record less evenly than controllers sample.  Time stamps are either the times at which the samples
were taken, or even samples were stamped late.  Positions decide: each sample is predicted by the cubic
through its four neighbours, with the stamps and with even times, and the times with the smaller error are
used.  Positions are then interpolated by a cubic spline.  Torques jump, so that a spline would oscillate:
they are interpolated by the monotone cubic of F. Fritsch and R. Carlson, "Monotone Piecewise Cubic
Interpolation", SIAM Journal on Numerical Analysis 17 (1980).
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import RecordingError
from twin.data.logs.recordings.finding import Finding
from twin.data.logs.recordings.torque_recording import FEWEST, FURTHER, TorqueRecording

GAP = 5.0
"""Number of periods without a sample that divides a recording."""

UNEVEN = 0.01
"""Deviation of a time step from the median step, relative to it, that is negligible."""

AS_EVEN = 0.8
"""Ratio of the errors with even times and with the stamps below which the stamps are considered wrong."""


def parts_between_gaps(recording: TorqueRecording) -> tuple[list[TorqueRecording], list[Finding]]:
    """Divide a recording at its gaps; parts with fewer than `FEWEST` samples are omitted.

    Raises:
        RecordingError: no part has enough samples.
    """
    steps = np.diff(recording.t)
    median = float(np.median(steps))
    ends = np.flatnonzero(steps > GAP * median) + 1
    bounds = [0, *ends.tolist(), len(recording.t)]
    parts = [recording.rows(slice(a, b)) for a, b in pairwise(bounds) if b - a >= FEWEST]
    if not parts:
        raise RecordingError(
            f"{recording.name}: no part without gaps has {FEWEST} samples, at steps of {median:.6g} s"
        )
    if not ends.size:
        return parts, []
    longest = int(np.argmax(steps))
    text = (
        f"{ends.size} gap{'s' if ends.size > 1 else ''} of more than {GAP:g} periods divide it; the longest "
        f"lasts {steps[longest]:.3g} s, from {recording.t[longest]:.6g} s on"
    )
    return parts, [Finding("gap", (), text, stops=False)]


def with_even_times(part: TorqueRecording) -> tuple[TorqueRecording, list[Finding]]:
    """Return a part without gaps whose samples are at equal intervals, and a finding if they were not."""
    steps = np.diff(part.t)
    period = float(np.median(steps))
    if np.max(np.abs(steps / period - 1.0)) <= UNEVEN:
        return part, []
    t, stamped = _times(part, period)
    text = f"time steps from {1e3 * np.min(steps):.4g} to {1e3 * np.max(steps):.4g} ms: "
    text += "interpolated" if stamped else "the positions are smoother with even steps, which are used"
    period = float(np.median(np.diff(t)))
    text += f", every {1e3 * period:.4g} ms"
    return _resampled(part, t, period), [Finding("uneven", (), text, stops=False)]


def _times(part: TorqueRecording, period: float) -> tuple[Floats, bool]:
    """Return the times (N,) at which samples were taken, and whether they are the stamps.

    Otherwise they are even, with or without rows that are left out.
    """
    counts = np.maximum(np.round(np.diff(part.t) / period), 1.0)
    tried = [part.t]
    for steps in (np.ones_like(counts), counts):
        index = np.concatenate([[0.0], np.cumsum(steps)])
        slope, start = np.polyfit(index, part.t, 1)
        tried.append(start + slope * index)
    sizes = [np.median(np.abs(neighbour_errors(t, part.q)), axis=0) for t in tried]
    mean = [float(np.mean(np.log(np.maximum(size, np.finfo(float).tiny)))) for size in sizes]
    best = int(np.argmin(mean))
    stamped = mean[best] > mean[0] + np.log(AS_EVEN)
    return (part.t if stamped else tried[best]), stamped


def neighbour_errors(t: Floats, q: Floats) -> Floats:
    """Return the differences (N - 4, n) of samples from the cubic through the two neighbours on each side."""
    nodes = [np.arange(k, len(t) - 4 + k) for k in (0, 1, 3, 4)]
    middle = t[2:-2]
    predicted = np.zeros_like(q[2:-2])
    for i in nodes:
        weight = np.ones(len(middle))
        for j in nodes:
            if j is not i:
                weight *= (middle - t[j]) / (t[i] - t[j])
        predicted += weight[:, None] * q[i]
    return q[2:-2] - predicted


def _resampled(part: TorqueRecording, t: Floats, period: float) -> TorqueRecording:
    """Return a part, whose samples were taken at times t (N,), interpolated at equal intervals."""
    from scipy.interpolate import CubicSpline, PchipInterpolator

    even = t[0] + period * np.arange(int((t[-1] - t[0]) / period) + 1)
    smooth = {
        name: CubicSpline(t, values)(even)
        for name in ("q", *FURTHER)
        if (values := getattr(part, name)) is not None
    }
    return replace(part, t=even, tau=PchipInterpolator(t, part.tau)(even), **smooth)
