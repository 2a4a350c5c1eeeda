"""The drives: between the torque that a controller demands and the torque that a joint gets.

What they make of a demand is `twin.control_loop.deliver`, in the loop.
"""

from __future__ import annotations

import numpy as np


def saturated(tau_demand: np.ndarray, tau_max: np.ndarray) -> np.ndarray:
    """Where (..., n) the drives cannot deliver: a demand at the limit is met, one that is NaN is not."""
    return ~(np.abs(tau_demand) <= tau_max)
