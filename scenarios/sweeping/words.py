"""What figures of a sweep are called on a page."""

from __future__ import annotations

from twin.sweeps.table_files import UNITS


def title(name: str) -> str:
    """What a figure is called: `joint_error` -> `joint error`."""
    words = {
        "rms_error": "RMS joint error",
        "rms_torque": "RMS torque / limit",
        "speed_ratio": "speed / limit",
    }
    return words.get(name, name.replace("_", " "))


def quantity(name: str) -> str:
    """The same with its unit, if it has one: `joint error [rad]`."""
    return f"{title(name)} [{UNITS[name]}]" if name in UNITS else title(name)


def percent(share: float) -> str:
    """`87.4 %`; with more digits near 0 and 1, where they matter."""
    text = f"{100 * share:.1f}"
    if text in ("0.0", "100.0") and 0 < share < 1:
        text = f"{100 * share:.3f}"
    return f"{text} %"
