"""Arm of a virtual controller: its path, its payload and the lines that it executes, and what watches it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from twin.abb.controller.motion import Motion
from twin.abb.egm.robot.guided_arm import Controller, GuidedArm, same_payload
from twin.abb.egm.robot.session import whole_periods
from twin.abb.rapid.planning import Limits
from twin.abb.rapid.targets import Arm, is_load, payload_of, tool_frame
from twin.abb.rapid.values import PREDEFINED, Record
from twin.base.arrays import Floats
from twin.data.logs.annotations import ProgramLines
from twin.data.logs.log import Log
from twin.physics.control.supervision import ResidualObserver
from twin.physics.robot.drives.motors import MotorLimits, torque_shares
from twin.physics.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from twin.studies.cell.cell import Nearest
    from twin.studies.cell.clearance import Clearance, Gripper

CYCLE = 4e-3
"""Duration of a cycle, in [s]."""

MOST_MARKS = 30_000
"""Largest number of lines whose beginnings are known for the log: one in each cycle of its two minutes."""


class MechanicalUnit:
    """Arm with its motion.

    Attributes:
        arm: the arm, at rest at first.
        robot: nominal arm, without a payload.
        limits: share of the torque, and settling time, of planned moves.
        motion: motion of the arm.
        kinematics: targets and joint angles of its tools.
        samples: number of samples of the arm in a cycle.
        era: number of times that the path was cleared.
        tool: tool of the last move.
        gripper: gripper of the parts of its cell, None if what the program declares is what the arm carries.
        forget_moves: function that forgets the moves that its program collected.
        level: level of the supervision of external torques, in [%] of the thresholds; 0 while it is off.

    Args:
        controller_for: function that returns the controller for a payload.
    """

    def __init__(
        self,
        arm: GuidedArm,
        robot: Robot,
        controller_for: Callable[[Payload | None], Controller],
        limits: Limits,
    ) -> None:
        self.arm, self.robot, self.limits, self._controller_for = arm, robot, limits, controller_for
        self.gripper: Gripper | None = None
        self.motion, self.kinematics = Motion(arm.q, arm.period), Arm(robot, arm.q)
        self.samples, self.era = whole_periods(CYCLE, arm.period), 0
        self.forget_moves: Callable[[], object] = lambda: None
        self._payloads: tuple[Payload | None, Payload | None] = None, None
        self.tool, self._load = PREDEFINED["tool0"].value, PREDEFINED["load0"].value
        self.level = 100.0
        self._marks: deque[tuple[int, str, int]] = deque(maxlen=MOST_MARKS)

    def clear_path(self) -> None:
        """Forget all moves that are not made."""
        self.motion.clear()
        self.era += 1
        self.forget_moves()

    def begin_moves(self) -> None:
        """Take note of the moves that begin now, and take up their payloads."""
        for path, k in self.motion.begun():
            move = path.segments[k].move
            self.mark(move.file, move.line)
            self.change_load(move.tool, move.settings.load)

    def mark(self, file: str, line: int) -> None:
        """Note that the motion of a line begins now, for the log."""
        self._marks.append((round(self.arm.t / self.arm.period), file, line))

    @property
    def line(self) -> tuple[str, int] | None:
        """File and line of the move that began last; None before the first one."""
        return self._marks[-1][1:] if self._marks else None

    def change_load(self, tool: Record, load: Record) -> None:
        """Change the tool and the load in its gripper, as a program declares them, and the controller.

        With a gripper of parts the controller alone takes the load: the arm carries the part that is held.
        """
        self.tool, self._load = tool, load
        declared = actual = payload_of(tool, load)
        if self.gripper is not None:
            actual = payload_of(tool, PREDEFINED["load0"].value, self.gripper.payload)
        if not all(map(same_payload, (declared, actual), self._payloads)):
            self._payloads = declared, actual
            self.arm.change_load(actual, self._controller_for(declared))

    def grip(self, gripper: Gripper, signals: Mapping[str, float]) -> str:
        """Close or open the gripper by its signal or the load; return a sentence on what changed."""
        signal = gripper.signal.lower()
        closes = signals.get(signal, 0.0) != 0.0 if signal else is_load(self._load)
        sentence = gripper.switch(closes, self.arm.q, tool_frame(self.tool))
        if sentence:
            self.change_load(self.tool, self._load)
        return sentence

    def log(self, T_flange_tool: Floats, streams: dict[str, np.ndarray]) -> Log | None:
        """Return the log of the end of the motion, with the lines of the moves and the messages of EGM."""
        log = self.arm.log(T_flange_tool, streams)
        if log is None:
            return None
        samples = round(log.t[0] / self.arm.period) + np.arange(len(log.t))
        return replace(log, program=ProgramLines.of(list(self._marks), samples))


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
        clearance: distances of the arm; None if they are not judged.
        stops: whether what is wrong stops the arm, by ERR_COLL_STOP.
        thresholds: (n,) largest external torques, in [N m]; infinite where they are not judged.
        largest: (n,) largest external torques that were seen, in [N m].
        contacts: number of times that external torques exceeded a threshold.
        backs_off: whether the arm is to go back a little on its path, once it has stopped.
        saturations: number of times that drives began to lack torque.
        collisions: number of times that the arm came nearer than a margin.
        now: nearest pair at the last look, None before it.
        nearest: nearest pair that was seen, None before the first look.
        nearest_at: time at which it was seen, in [s].

    Args:
        clearance: distances of the arm; None if they are not judged.
        stops: whether what is wrong stops the arm.
        thresholds: (n,) largest external torques, in [N m]; infinite where they are not judged.
    """

    def __init__(
        self, clearance: Clearance | None = None, *, stops: bool = False, thresholds: ArrayLike = np.inf
    ) -> None:
        self.clearance, self.stops, self.thresholds = clearance, stops, thresholds
        self.largest, self.backs_off = np.zeros(1), False
        self.nearest_at, self._saturated_at, self._touched_at = 0.0, -np.inf, -np.inf
        self._observer: ResidualObserver | None = None
        self.saturations = self.collisions = self.contacts = 0
        self.nearest: Nearest | None = None
        self._wait, self._seen, self._is_near = 0, np.empty(0), False
        self.now: Nearest | None = None

    def look(self, arm: GuidedArm, level: float = 100.0) -> list[str]:
        """Look at the arm after a cycle; return a sentence on each thing that is wrong since then.

        Args:
            arm: the arm.
            level: level of external torques, in [%] of the thresholds; 0 while they are not judged.
        """
        found = self.feel(arm, level)
        if arm.utilization > FULL:
            if arm.t - self._saturated_at > QUIET:
                self.saturations += 1
                motors = MotorLimits.of(arm.robot.active_drives, arm.robot.tau_max)
                joint = int(np.argmax(torque_shares(motors, arm.tau)))
                found.append(f"motion supervision: the drive of {arm.robot.joint_names[joint]} lacks torque")
            self._saturated_at = arm.t
        self._wait -= 1
        if self.clearance is not None and self._wait < 0:
            self._wait = LOOK - 1
            found += self._look_around(self.clearance, arm)
        return found

    def feel(self, arm: GuidedArm, level: float) -> list[str]:
        """Feel external torques in a cycle, see `look`; the first time takes long, because it compiles."""
        if self._observer is None or self._observer.robot is not arm.model:  # restarts with each payload
            self._observer = ResidualObserver(arm.model, period=arm.period)
        felt = self._observer.follow(arm.last.q_seen, arm.last.qd_seen, arm.last.tau)
        felt = np.abs(felt).max(axis=0)
        self.largest = np.maximum(self.largest, felt)
        if level == 0.0:
            return []
        limits, before = 0.01 * level * np.broadcast_to(self.thresholds, felt.shape), self._touched_at
        joint = int(np.argmax(felt / limits))
        if not felt[joint] > limits[joint]:
            return []
        self._touched_at = arm.t
        if arm.t - before <= QUIET:
            return []
        self.contacts, self.backs_off = self.contacts + 1, self.stops
        torques = f"{felt[joint]:.3g} N m of external torque, at most {limits[joint]:.3g} N m"
        return [f"motion supervision: {arm.robot.joint_names[joint]}: {torques}"]

    def _look_around(self, clearance: Clearance, arm: GuidedArm) -> list[str]:
        q_tree = clearance.robot.tree_positions(arm.q)
        if self.now is not None and self.nearest is not None:
            moved = float(clearance.reach @ np.abs(q_tree - self._seen))
            enough = max(self.nearest.clearance, 0.0)
            if moved < RESOLUTION or self.now.clearance - moved > enough:
                return []
        self.now, self._seen = clearance.nearest(arm.q), q_tree
        now = self.now
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
