"""Where to begin the search for an elastic joint: from the frequency response of its motor's speed.

    G = g / (p + i w (1 + m / (1 - w^2 / wz^2)) / (1 + m)),    wz^2 = k / Ja,  m = r^2 Ja / Jm

The antiresonance wz, at which the motor stands still and the arm swings, the ratio m of the inertias and the
rate p at which friction brakes both are taken from a grid.  For each of these shapes the gain
g = 1 / (Jm + r^2 Ja) that comes nearest to the response is found at once, and noise on the speed does not
bend it, as it bends what is solved from the equation of motion.
"""

from __future__ import annotations

import numpy as np

from twin.dynamics.flexible_joint import FlexibleJoint

SEGMENTS = 4
"""Of the record, half overlapping others, over which the response is averaged."""

ANTIRESONANCES, RATIOS, RATES = 40, 9, 6
"""Sizes of the grid, over the frequencies that are excited, and for the ratio over:"""
LEAST_RATIO, MOST_RATIO = 0.1, 10.0

MOST = 3
"""Starts that are kept, of those that are best for their antiresonance and better than its neighbours."""

EXCITED = 1e-3
"""Of the strongest power of the torque: frequencies with less tell nothing."""

LIGHTLY = 0.02
"""Damping ratio at which the search for the damping of a spring begins."""


def measured_response(
    tau: np.ndarray, speed: np.ndarray, period: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequencies (F,) in [rad/s], response (F,) in [rad/s per N m], and power (F,) of the torque.

    By averages over segments, without the frequencies at which the torque is hardly there.
    """
    from scipy.signal import csd, welch

    length = 2 * len(tau) // (SEGMENTS + 1)
    f, power = welch(tau, 1 / period, nperseg=length)
    _, both = csd(tau, speed, 1 / period, nperseg=length)
    there = (power > EXCITED * np.max(power)) & (f > 0) & (f < 0.4 / period)
    return 2 * np.pi * f[there], both[there] / power[there], power[there]


def starts(tau: np.ndarray, speed: np.ndarray, period: float, r: float, damping: bool) -> list[FlexibleJoint]:
    """Joints, at most `MOST`, from which a search may go on, likely ones first.

    Args:
        tau: (N,) torque of the motor, in [N m].
        speed: (N,) its speed, in [rad/s].
        period: in [s].
        r: angle of the arm for each radian of the motor.
        damping: whether the spring is to have some.
    """
    omega, response, power = measured_response(tau, speed, period)
    wz = np.geomspace(omega[0], omega[-1], ANTIRESONANCES)
    m = np.geomspace(LEAST_RATIO, MOST_RATIO, RATIOS)
    p = np.geomspace(omega[0], omega[-1], RATES)
    beside = 1.0 - (omega / wz[:, None, None, None]) ** 2
    m_, p_ = m[:, None, None], p[:, None]
    shapes = beside / (p_ * beside + 1j * omega * (beside + m_) / (1.0 + m_))
    explained = np.einsum("zmpf,f->zmp", shapes.conj(), power * response).real
    gain = explained / np.einsum("zmpf,f->zmp", np.abs(shapes) ** 2, power)
    merit = np.where(gain > 0, gain * explained, -np.inf).reshape(ANTIRESONANCES, -1)
    best = np.argmax(merit, axis=1)
    height = merit[np.arange(ANTIRESONANCES), best]
    walled = np.concatenate([[-np.inf], height, [-np.inf]])
    peaks = np.flatnonzero((height >= walled[:-2]) & (height >= walled[2:]) & np.isfinite(height))
    found = []
    for z in peaks[np.argsort(-height[peaks])][:MOST]:
        ratio, rate = np.unravel_index(best[z], (RATIOS, RATES))
        whole = 1.0 / gain[z, ratio, rate]
        Ja = whole * m[ratio] / (1.0 + m[ratio]) / r**2
        k = wz[z] ** 2 * Ja
        d = 2 * LIGHTLY * np.sqrt(k * Ja) if damping else 0.0
        numbers = {"Jm": whole / (1.0 + m[ratio]), "Ja": Ja, "k": k, "fm": p[rate] * whole, "d": d}
        found.append(FlexibleJoint(r=r, **{name: float(value) for name, value in numbers.items()}))
    return found
