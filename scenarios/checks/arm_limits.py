"""What the arm did, against what its joints and drives allow: every run is judged by it.

The engine has no stops and no limits of speed, so that a controller that needs them is found out here, and
not by the reference, which may be well within.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scenarios.base import Metric

if TYPE_CHECKING:
    from twin.logs.log import Log


def arm_metrics(log: Log, leaves_limits: str = "") -> tuple[Metric, ...]:
    """How far joints were beyond their ranges, and their speeds over their limits; each names the worst.

    Args:
        log: of the run.
        leaves_limits: why the run is made to leave them; then the figures are reported without a limit.
    """
    from twin.logs.figures import unit_of_largest
    from twin.robot.limits import ROUND_OFF

    robot = log.robot
    found = {violation.quantity: str(violation) for violation in log.violations()}
    excess = np.maximum(log.q - robot.q_max, robot.q_min - log.q)
    return (
        Metric(
            "position beyond the range",
            float(np.maximum(np.max(excess, initial=0.0), 0.0)),
            unit_of_largest(log, np.maximum(excess, 0.0)),
            None if leaves_limits else ROUND_OFF,
            leaves_limits or "of any joint, as the engine had it; ranges of the robot's URDF",
            found.get("position", ""),
        ),
        Metric(
            "speed / its limit",
            float(np.max(np.abs(log.qd) / robot.qd_max, initial=0.0)),
            "",
            None if leaves_limits else 1.0 + ROUND_OFF,
            leaves_limits or "of any joint, as the engine had it; speed limits of the robot's URDF",
            found.get("speed", ""),
        ),
    )
