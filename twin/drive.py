"""The drives: between the torque that a controller demands and the torque that a joint gets."""

from __future__ import annotations

import numpy as np


def drive_torque(tau_demand: np.ndarray, tau_max: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Torques that the joints get.

    Args:
        tau_demand: (..., n) torques that the controller demands, in [N m].
        tau_max: (n,) torque limits of the drives, in [N m]; infinite where a drive has none.
        out: (..., n) filled and returned, if given.

    Returns:
        (..., n) in [N m].  NaN stays NaN.
    """
    return np.minimum(np.maximum(tau_demand, -tau_max, out=out), tau_max, out=out)


def saturated(tau_demand: np.ndarray, tau_max: np.ndarray) -> np.ndarray:
    """Where (..., n) the drives cannot deliver: a demand at the limit is met, one that is NaN is not."""
    return ~(np.abs(tau_demand) <= tau_max)
