"""The low-pass filter of guided speeds: first order, sampled exactly; the manual tells neither, both ours."""

from __future__ import annotations

import math


def filter_share(bandwidth: float | None, period: float) -> float:
    """The share of the way to the wanted speed that the filter goes in one period: 1 - exp(-2 pi f dt).

    Args:
        bandwidth: f, in [Hz]; `None` for no filter, which goes all the way.
        period: dt, in [s].
    """
    return 1.0 if bandwidth is None else -math.expm1(-2.0 * math.pi * bandwidth * period)
