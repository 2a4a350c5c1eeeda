"""Even times for recordings: gaps divide a recording, and uneven samples are interpolated.

Computers record less evenly than controllers sample.  Time stamps are either the times at which the samples
were taken, or even samples were stamped late.  Positions decide: each sample is predicted by the cubic
through its four neighbours, with the stamps and with even times, and the times with the smaller error are
used.  Positions are then interpolated by a cubic spline.  Torques jump, so that a spline would oscillate:
they are interpolated by the monotone cubic of F. Fritsch and R. Carlson, "Monotone Piecewise Cubic
Interpolation", SIAM Journal on Numerical Analysis 17 (1980).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.errors import RecordingError
from twin.logs.recordings.finding import Finding
from twin.logs.recordings.torque_recording import FEWEST, TorqueRecording

GAP = 5.0
"""Number of periods without a sample that divides a recording."""

UNEVEN = 0.01
"""Deviation of a time step from the median step, relative to it, that is negligible."""

AS_EVEN = 0.8
"""Ratio of the errors with even times and with the stamps below which the stamps are considered wrong."""


def even_parts(recording: TorqueRecording) -> tuple[list[TorqueRecording], list[Finding]]:
    """Divide a recording at its gaps, and interpolate uneven parts at equal intervals.

    Raises:
        RecordingError: no part has enough samples.
    """
    steps = np.diff(recording.t)
    median, findings = float(np.median(steps)), []
    ends = np.flatnonzero(steps > GAP * median) + 1
    parts = [part for part in _cut(recording, ends) if len(part.t) >= FEWEST]
    if not parts:
        raise RecordingError(
            f"{recording.name}: no part without gaps has {FEWEST} samples, at steps of {median:.6g} s"
        )
    if ends.size:
        longest = int(np.argmax(steps))
        findings.append(
            Finding(
                "gap", (),
                f"{ends.size} gap{'s' if ends.size > 1 else ''} of more than {GAP:g} periods divide it; the "
                f"longest lasts {steps[longest]:.3g} s, from {recording.t[longest]:.6g} s on",
                stops=False,
            )
        )  # fmt: skip
    uneven = [np.max(np.abs(np.diff(part.t) / median - 1.0)) > UNEVEN for part in parts]
    if any(uneven):
        times = [_times(part, median) for part in parts]
        stamped = any(t is part.t for t, part, one in zip(times, parts, uneven, strict=True) if one)
        inside = np.concatenate([np.diff(part.t) for part in parts])
        findings.append(
            Finding(
                "uneven", (),
                f"time steps from {1e3 * np.min(inside):.4g} to {1e3 * np.max(inside):.4g} ms: "
                + (f"interpolated every {1e3 * median:.4g} ms" if stamped else "the positions are smoother "
                   f"with even steps of {1e3 * median:.4g} ms, which are used"),
                stops=False,
            )
        )  # fmt: skip
        parts = [
            _resampled(part, t, median) if one else part
            for part, t, one in zip(parts, times, uneven, strict=True)
        ]
    return parts, findings


def _cut(recording: TorqueRecording, ends: NDArray[np.intp]) -> list[TorqueRecording]:
    """Return the parts of a recording between some samples."""
    bounds = [0, *ends.tolist(), len(recording.t)]
    return [recording.rows(slice(a, b)) for a, b in zip(bounds, bounds[1:], strict=False)]


def _times(part: TorqueRecording, period: float) -> Floats:
    """Return the times (N,) at which samples were taken: the stamps, or even ones with rows left out."""
    counts = np.cumsum(np.maximum(np.round(np.diff(part.t) / period), 1.0))
    index = np.concatenate([[0.0], counts])
    slope, start = np.polyfit(index, part.t, 1)
    even = start + slope * index
    errors = [neighbour_errors(t, part.q) for t in (part.t, even)]
    medians = [np.maximum(np.median(np.abs(one), axis=0), np.finfo(float).tiny) for one in errors]
    ratio = float(np.exp(np.mean(np.log(medians[1] / medians[0]))))
    return even if ratio < AS_EVEN else part.t


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
        for name in ("q", "q_ref", "q_motor")
        if (values := getattr(part, name)) is not None
    }
    return replace(part, t=even, tau=PchipInterpolator(t, part.tau)(even), **smooth)
