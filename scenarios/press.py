"""Scenario `press`: the tool presses on a compliant plane, slides on it, and holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import controllers
from scenarios.judging.tracking import tracking_metrics
from scenarios.metric import Metric
from scenarios.options import option, positive
from scenarios.payload_mismatch import DOWN, rating
from scenarios.scenario import TrackingScenario
from scenarios.setup import Sampling, Setup
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from scenarios.judging.run import TrackingRun
    from twin.physics.trajectories.sampling import Samples

PLACE = np.array([45, -5, 25]) / 81
"""Point of the plane that the tool touches first, over the robot's reach."""
ABOVE, SLIDE = 0.02, 0.1
"""[m]: height of the start above the plane, and length of the slide."""
DURATIONS = (1.0, 1.0, 3.0)
"""[s]: times down, along the plane and at rest."""
LIMITS = (1e-3, 2e-3, 1e-7)
"""Of the force's error in [N], in the mean and at any sample, and of the relative error of a spring."""
RESTING = 1e-6
"""Range of the force in the last second, over the desired one, of an arm at rest."""


class Press(TrackingScenario):
    """Press on a compliant plane with the tool, slide on it, and hold.

    What it shows: how hard an arm presses under a law that controls the force, and under one that controls
    the position. The tool goes down on a plane, on to the depth at which the plane answers with the force,
    slides 0.1 m, and rests for three seconds. The plane is that of the options, or a `--surface`, which the
    same motion has to touch. The laws `impedance`, `admittance` and `hybrid` get the force as their setting.

    What must hold: with ideal drives, an exact model and no friction, hybrid control and admittance press
    with the desired force in the last second, to 1e-3 N in the mean and to 2e-3 N at every sample, and under
    impedance the tool is off its reference by the missing force over the stiffness, to 1e-7. Elsewhere the
    figures are reported without a limit: a joint that sticks holds any torque up to its static friction, and
    the force is off by what that is at the tool.
    """

    force: float = option(30.0, "desired contact force, in N")
    stiffness: float = option(2e4, "stiffness of the plane, in N/m")
    damping: float = option(100.0, "damping of the plane, in N s/m", motion=False)
    friction: float = option(0.0, "friction coefficient of the plane", motion=False)
    side_by_side = ("hybrid", "admittance", "impedance")
    defaults = {"controller": "hybrid"}
    variants = tuple({"drives": "rigid", "controller": law} for law in side_by_side)
    needs = ("tool",)

    def __post_init__(self) -> None:
        positive(self.force, "force", "N")
        positive(self.stiffness, "stiffness", "N/m")

    def suits(self, robot: Robot) -> bool:
        """Return whether the robot has six joints, and its reach is known."""
        return robot.rating is not None and robot.n == 6

    def reference(self, robot: Robot, sampling: Sampling) -> Samples:
        """Return the joint motion down, along the plane, and at rest."""
        from twin.physics.trajectories.joint_paths import joint_path
        from twin.physics.trajectories.tool_paths import through_poses

        depth, T = self.force / self.stiffness, np.tile(np.eye(4), (4, 1, 1))
        T[:, :3, :3] = DOWN
        T[:, :3, 3] = rating(robot).reach * PLACE
        T[:, 2, 3] += [ABOVE, -depth, -depth, -depth]
        T[2:, 1, 3] += SLIDE
        path = through_poses(T, durations=DURATIONS)
        motion = joint_path(robot, path, near=np.zeros(6), T_flange_tool=sampling.T_flange_tool)
        return sampling.sampled(motion)

    def adapted(self, setup: Setup, robot: Robot) -> Setup:
        """Return the setup with the plane, unless it has a surface, and with the force for a force law."""
        if setup.surface is None:
            height = rating(robot).reach * float(PLACE[2])
            numbers = f"stiffness={self.stiffness!r} damping={self.damping!r} friction={self.friction!r}"
            setup = replace(setup, surface=f"plane=0,0,1 at=0,0,{height!r} {numbers}")
        if "force" in controllers.settings(setup.controller):
            chosen = {"force": self.force, **dict(setup.law_settings)}
            setup = replace(setup, law_settings=tuple(chosen.items()))
        return setup

    def metrics(self, run: TrackingRun) -> Sequence[Metric]:
        """Return the figures of the contact in the last second, and the tracking error."""
        from twin.physics.dynamics.environment import FRICTION
        from twin.physics.kinematics.forward import forward_kinematics

        log, loop, world = run.log, run.loop, run.log.environment
        assert loop is not None
        assert world is not None
        last = log.t > log.t[-1] - 1.0
        wanted = float(loop.gains["force"][0] if "force" in loop.gains else self.force)
        depth, normal = world.depths(log.robot, log.q)
        wrench = world.wrench(log.robot, log.t[last], log.q[last], log.qd[last])
        force = np.einsum("ki,ki->k", wrench[:, :3], normal[last, 0])
        smooth = len(world.surfaces) + len(world.pushes) == 1 and not world.surfaces[:, FRICTION].any()
        whys = {
            "this controller controls no force": log.controller not in self.side_by_side,
            "a joint that sticks holds any torque up to its static friction": log.drives != "ideal",
            "no limit is known for such a model, gains, sensors or contact": loop.sensors
            or not (loop.known_law and loop.derived_gains and smooth and log.model_drives == "ideal"),
            "the force is not constant yet": not np.ptp(force) < RESTING * self.force,
        }
        why = next((f"not judged: {text}" for text, applies in whys.items() if applies), "")
        off, about = force - wanted, why or f"in the last second; {wanted:g} N are desired"
        mean, largest, spring = (None, None, None) if why else LIMITS
        if log.controller == "impedance":  # its springs know neither force nor surface
            mean = largest = None
        found = [
            Metric("contact force", float(np.mean(force)), "N", None, "mean of the last second"),
            Metric("contact force - desired, mean", abs(float(np.mean(off))), "N", mean, about),
            Metric("contact force - desired, largest", float(np.max(np.abs(off))), "N", largest, about),
            Metric("depth in the surface, largest", float(np.max(depth)), "m", None, "in the whole run"),
        ]
        if log.controller == "impedance" and "stiffness" in loop.gains:
            n, K = normal[-1, 0], float(loop.gains["stiffness"][:3] @ normal[-1, 0] ** 2)
            p, p_ref = forward_kinematics(log.robot, [log.q[-1], log.q_ref[-1]], log.T_flange_tool)[:, :3, 3]
            error = abs(float((p - p_ref) @ n * K - off[-1])) / self.force
            found.append(Metric("deflection - missing force / K", error, "", spring, why or "over force / K"))
        return (*found, *tracking_metrics(run))


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
