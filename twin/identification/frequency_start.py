"""Where to begin the search for an elastic joint: from the frequency response of its motor's speed.

    G(i w) [(fm + i w Jm) (1 - w^2 / wz^2) + i w r^2 Ja] = 1 - w^2 / wz^2,    wz^2 = k / Ja

is linear in fm, Jm and Ja once the antiresonance wz, at which the motor stands still and the arm swings, is
known.  So they are found by linear least squares for every wz of a grid.
"""

from __future__ import annotations

import numpy as np

from twin.arrays import Floats
from twin.dynamics.flexible_joint import FlexibleJoint, frequency_response, velocity_model

SEGMENTS = 4
"""Of the record, half overlapping others, over which the response is averaged."""

GRID = 60
MOST = 3
"""Antiresonances that are tried, and of these the starts that are kept."""

EXCITED = 1e-3
"""Of the strongest power of the torque: frequencies with less tell nothing."""

LEAST = 1e-3
"""Of the whole inertia and friction: what a part that came out negative is taken for."""

LIGHTLY = 0.02
"""Damping ratio at which the search for the damping of a spring begins."""


def measured_response(tau: Floats, speed: Floats, period: float) -> tuple[Floats, np.ndarray, Floats]:
    """Frequencies (F,) in [rad/s], response (F,) in [rad/s per N m], and power (F,) of the torque.

    By averages over segments, without the frequencies at which the torque is hardly there.
    """
    from scipy.signal import csd, welch

    length = 2 * len(tau) // (SEGMENTS + 1)
    f, power = welch(tau, 1 / period, nperseg=length)
    _, both = csd(tau, speed, 1 / period, nperseg=length)
    there = (power > EXCITED * np.max(power)) & (f > 0) & (f < 0.4 / period)
    return 2 * np.pi * f[there], both[there] / power[there], power[there]


def starts(tau: Floats, speed: Floats, period: float, r: float, damping: bool) -> list[FlexibleJoint]:
    """Joints, at most `MOST`, from which a search may go on, likely ones first.

    Args:
        tau: (N,) torque of the motor, in [N m].
        speed: (N,) its speed, in [rad/s].
        period: in [s].
        r: angle of the arm for each radian of the motor.
        damping: whether the spring is to have some.
    """
    omega, response, power = measured_response(tau, speed, period)
    tried = np.geomspace(omega[0], omega[-1], GRID)
    joints = [_joint(omega, response, power, r, wz, damping) for wz in tried]
    misses = np.array(
        [power @ np.abs(response - frequency_response(velocity_model(joint), omega)) ** 2 for joint in joints]
    )
    walled = np.concatenate([[np.inf], misses, [np.inf]])
    lowest = np.flatnonzero((misses <= walled[:-2]) & (misses <= walled[2:]))
    return [joints[i] for i in lowest[np.argsort(misses[lowest])][:MOST]]


def _joint(omega, response, power, r: float, wz: float, damping: bool) -> FlexibleJoint:
    """The joint with a given antiresonance that comes nearest to a response."""
    beside = 1.0 - (omega / wz) ** 2
    columns = np.column_stack([beside, 1j * omega * beside, 1j * omega]) * response[:, None]
    weight = np.sqrt(power) / np.maximum(1.0, np.abs(beside))
    rows = np.concatenate([(columns * weight[:, None]).real, (columns * weight[:, None]).imag])
    wanted = np.concatenate([beside * weight, np.zeros(len(omega))])
    scale = np.linalg.norm(rows, axis=0)
    fm, Jm, Ja = np.linalg.lstsq(rows / scale, wanted, rcond=None)[0] / scale
    whole = max(Jm + Ja, LEAST * max(abs(Jm), abs(Ja)))
    Jm, Ja = max(Jm, LEAST * whole), max(Ja, LEAST * whole)
    fm = max(fm, LEAST * whole * float(omega[0]))
    k = wz**2 * Ja
    d = 2 * LIGHTLY * np.sqrt(k * Ja) if damping else 0.0
    return FlexibleJoint(float(Jm), float(Ja / r**2), float(k / r**2), r, float(fm), d=float(d / r**2))
