"""What is kept of a trial: a row of figures and a verdict, never its log."""

from __future__ import annotations

import numpy as np

OUTCOME = np.dtype(
    [
        ("holds", "?"),
        ("trouble", "i1"),
        ("duration", "f8"),
        ("joint_error", "f8"),
        ("joint_error_joint", "i1"),
        ("joint_error_time", "f8"),
        ("rms_error", "f8"),
        ("tool_error", "f8"),
        ("tool_error_time", "f8"),
        ("rms_torque", "f8"),
        ("beyond_range", "f8"),
        ("speed_ratio", "f8"),
        ("saturated", "i8"),
    ]
)
"""The figures of a trial.

- holds: whether it kept every limit.
- trouble: 0, or what ended it early, an index of `TROUBLES`; its errors are infinite then.
- duration: how long it ran, in [s].
- joint_error, joint_error_joint, joint_error_time: the largest `|q_ref - q|` of a joint, in [rad]; which,
  from 1; and when, in [s].
- rms_error: root of the mean over joints and samples of its square, in [rad].
- tool_error, tool_error_time: the largest distance of the tool from where it should be, in [m], and when; NaN
  where nobody asked.
- rms_torque: root of the mean over joints and samples of the square of torque over its limit at standstill.
- beyond_range: how far a joint was beyond its range, in [rad], 0 where none was.
- speed_ratio: the largest speed over its limit.
- saturated: number of samples and joints at which a drive could not give what was demanded.
"""

TROUBLES = ("", "ran away", "torque not finite", "loop folded", "cannot be made")
"""What may end a trial early, by the number in the table; the last: values of which there is no such arm."""

FIGURES = ("joint_error", "rms_error", "tool_error", "rms_torque", "beyond_range", "speed_ratio", "saturated")
"""Figures that a limit can be put to."""
