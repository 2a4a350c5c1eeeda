"""Numbers and verdicts in few characters."""

from __future__ import annotations

import numpy as np
from rich.text import Text


def figure(value: float) -> str:
    """A number in few characters: `0`, `0.00123`, `4e-5`, `4.44e-16`, `85.2`, `8950`, `1.23e4`, `nan`."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    if abs(value) < 1e6 and value == round(value):  # a count, as of samples
        return f"{value:.0f}"
    if 1e-3 <= abs(value) < 999.5:
        return f"{value:.3g}"
    digits, exponent = f"{value:.2e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def verdict(holds: bool) -> Text:
    """`holds` in green or `FAILS` in red."""
    return Text("holds", "green") if holds else Text("FAILS", "bold red")
