"""Supervision of the arm while it moves: torques of its drives, and how near it comes to something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twin.abb.egm.robot.guided_arm import GuidedArm
from twin.physics.robot.drives.motors import MotorLimits, torque_shares

if TYPE_CHECKING:
    from twin.studies.cell.clearance import Clearance, Nearest

LOOK = 5
"""Cycles between two looks at the distances, each of which costs some 0.6 ms of the 20 ms."""

QUIET = 0.5
"""Time without a saturated drive after which the next one is another event, in [s]."""

RESOLUTION = 1e-4
"""Motion of the arm, in [m], up to which a distance is not computed again."""

FULL = 100.0 + 1e-6
"""Utilization above which a drive gives less torque than was demanded, in [%]."""


class Supervision:
    """Supervision of an arm by what it did, not by its reference.

    A look computes distances only if the arm, by the lengths of its chain, could have come nearer than ever.

    Attributes:
        stops: whether what is wrong stops the arm, by ERR_COLL_STOP.
        saturations: number of times that drives began to lack torque.
        collisions: number of times that the arm came nearer than a margin.
        nearest: nearest pair that was seen, None before the first look.
        nearest_at: time at which it was seen, in [s].

    Args:
        clearance: distances of the arm; None if they are not judged.
        stops: whether what is wrong stops the arm.
    """

    def __init__(self, clearance: Clearance | None = None, *, stops: bool = False) -> None:
        self._clearance, self.stops = clearance, stops
        self.saturations = self.collisions = 0
        self.nearest: Nearest | None = None
        self.nearest_at = 0.0
        self._saturated_at = -np.inf
        self._wait, self._seen, self._is_near = 0, np.empty(0), False
        self._now: Nearest | None = None

    def look(self, arm: GuidedArm) -> list[str]:
        """Look at the arm after a cycle; return a sentence on each thing that is wrong since then."""
        found = []
        if arm.utilization > FULL:
            if arm.t - self._saturated_at > QUIET:
                self.saturations += 1
                motors = MotorLimits.of(arm.robot.active_drives, arm.robot.tau_max)
                joint = int(np.argmax(torque_shares(motors, arm.tau)))
                found.append(f"motion supervision: the drive of {arm.robot.joint_names[joint]} lacks torque")
            self._saturated_at = arm.t
        self._wait -= 1
        if self._clearance is not None and self._wait < 0:
            self._wait = LOOK - 1
            found += self._look_around(self._clearance, arm)
        return found

    def _look_around(self, clearance: Clearance, arm: GuidedArm) -> list[str]:
        q_tree = clearance.robot.tree_positions(arm.q)
        if self._now is not None and self.nearest is not None:
            moved = float(clearance.reach @ np.abs(q_tree - self._seen))
            enough = max(self.nearest.clearance, 0.0)
            if moved < RESOLUTION or self._now.clearance - moved > enough:
                return []
        self._now, self._seen = clearance.nearest(arm.q), q_tree
        now = self._now
        if now is None:
            return []
        if self.nearest is None or now.clearance < self.nearest.clearance:
            self.nearest, self.nearest_at = now, arm.t
        was_near, self._is_near = self._is_near, now.clearance < 0.0
        if not self._is_near or was_near:
            return []
        self.collisions += 1
        margin = f", margin {1e3 * now.margin:g} mm" if now.margin else ""
        return [f"collision: {now.names}, {now.text}{margin}"]
