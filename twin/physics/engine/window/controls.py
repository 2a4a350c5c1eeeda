"""Controls of every window: keys, buttons, sliders, the run's state as text, and drawings on the arm."""

import time
from typing import Any

import numpy as np

from twin.physics.dynamics.equation_of_motion import forward_dynamics
from twin.physics.dynamics.wrenches import joint_wrenches
from twin.physics.engine.window.bench import Bench
from twin.physics.multibody.tree import body_from_parameters
from twin.physics.robot.robot import Payload
from twin.physics.robot.units import SHOWN, joint_unit

SEEN_THROUGH = 0.35
COM_COLOR, TOTAL_COLOR = (0.85, 0.0, 0.75), (0.0, 0.0, 0.0)
LOAD_COLOR = (0.25, 0.27, 0.3, 1.0)
DENSITY = 7800.0  # kg/m^3: a payload is drawn as a ball of steel
FRAME_LENGTH, CROSS = 0.14, 0.05  # as a share of the arm's reach


class Overlays:
    """Drawings on the arm of a bench.

    Args:
        bench: the bench.
        client: PyBullet's client of the window.
    """

    def __init__(self, bench: Bench, client: Any) -> None:
        self._bench, self._client = bench, client
        self._frames, self._coms = False, False
        self._payload: Payload | None = None
        self._ball = -1

    def show(self, frames: bool, coms: bool) -> None:
        """Draw frames and centres of mass at the present state, and make the arm transparent meanwhile."""
        arm = self._bench.drawn_arm
        arm.fade(SEEN_THROUGH if frames or coms else 1.0)
        arm.write()
        poses = arm.link_poses() if frames or coms else np.empty((0, 4, 4))
        if frames or self._frames:
            self._show_frames(poses, frames)
        if coms or self._coms:
            self._show_coms(poses, coms)
        self._frames, self._coms = frames, coms
        self._show_payload(self._bench.arm.robot.payload)

    def _show_frames(self, poses: np.ndarray, shown: bool) -> None:
        bench = self._bench
        length = FRAME_LENGTH * bench.reach
        for index, name in enumerate(bench.arm.robot.tree.names):
            if shown:
                bench.frame(f"frame of {name}", poses[index], length)
            else:
                bench.remove(f"frame of {name}")
        if shown:
            bench.frame("frame of the tool", bench.tool_pose(), 1.5 * length)
        else:
            bench.remove("frame of the tool")

    def _show_coms(self, poses: np.ndarray, shown: bool) -> None:
        bench = self._bench
        if not shown:
            bench.remove("centres of mass")
            bench.remove("centre of mass")
            return
        bodies = [body_from_parameters(row)[:2] for row in bench.arm.robot.inertias]
        masses = np.array([mass for mass, _ in bodies])
        coms = np.array([(T @ (*com, 1.0))[:3] for T, (_, com) in zip(poses, bodies, strict=True)])
        bench.crosses("centres of mass", coms[masses > 0], COM_COLOR, CROSS * bench.reach)
        whole = masses[None] @ coms / masses.sum()
        bench.crosses("centre of mass", whole, TOTAL_COLOR, 2 * CROSS * bench.reach)

    def _show_payload(self, payload: Payload | None) -> None:
        """Draw the payload at its centre of mass, as a steel ball of the same mass."""
        client = self._client
        if payload is not self._payload:
            self._payload = payload
            if self._ball >= 0:
                client.removeBody(self._ball)
                self._ball = -1
            if payload is not None and payload.mass > 0:
                radius = (3.0 * payload.mass / (4.0 * np.pi * DENSITY)) ** (1.0 / 3.0)
                shape = client.createVisualShape(client.GEOM_SPHERE, radius=radius, rgbaColor=LOAD_COLOR)
                self._ball = client.createMultiBody(baseMass=0, baseVisualShapeIndex=shape)
        if self._ball >= 0 and payload is not None:
            place = (self._bench.flange_pose() @ (*payload.com, 1.0))[:3].tolist()
            client.resetBasePositionAndOrientation(self._ball, place, [0.0, 0.0, 0.0, 1.0])


RED, GREY = (0.8, 0.05, 0.05), (0.3, 0.32, 0.36)
MOST_JOINTS = 8
"""Largest number of joints with a line of text each."""

AT_LIMIT = 1.0 - 1e-9
SPAN = 1.0  # s of real time over which the pace is measured


class StatusText:
    """State of the run as lines of text.

    Args:
        bench: the bench.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._since, self._pace = (time.perf_counter(), 0.0), np.nan

    def write(self) -> None:
        """Write the present state."""
        bench = self._bench
        robot, (q, qd), tau = bench.arm.robot, bench.arm.state(), bench.arm.tau
        bench.write_line("time", f"{bench.time:.3f} s   {self._pace_text()}", RED if bench.paused else None)
        payload = "none" if robot.payload is None else f"{robot.payload.mass:g} kg"
        push = "" if bench.push is None else f"   push {np.abs(bench.push).max():g} N"
        bench.write_line("payload", f"payload {payload}{push}")
        bench.write_line("loads", self._loads_text(), GREY)
        shown = np.round(tau, 1) + 0.0  # no -0.0
        part = np.abs(tau) / robot.drive_torque_max
        for j in range(min(robot.n, MOST_JOINTS)):
            kind = robot.joint_kinds[j]
            (unit, scale), effort = SHOWN[kind], joint_unit(kind, "torque")
            beyond = not robot.q_min[j] <= q[j] <= robot.q_max[j] or abs(qd[j]) > robot.qd_max[j]
            note = "  OUT OF RANGE" if beyond else "  AT ITS LIMIT" if part[j] >= AT_LIMIT else ""
            bench.write_line(
                f"joint {j}",
                f"{robot.joint_names[j]}  {scale * q[j]:.2f} {unit}  {scale * qd[j]:.1f} {unit}/s  "
                f"{shown[j]:.1f} {effort} ({100 * part[j]:.0f} %){note}",
                RED if note else GREY,
            )

    def _loads_text(self) -> str:
        """Return the load on the foundation and at pins; "" while the tool is pushed or nothing is finite."""
        arm, robot = self._bench.arm, self._bench.arm.robot
        (q, qd), tau = arm.state(), arm.tau_joint
        if self._bench.push is not None or not np.all(np.isfinite([q, qd, tau])):
            return ""
        loads = joint_wrenches(robot, q, qd, forward_dynamics(robot.arm, q, qd, tau))
        pins = "".join(f"   {name} {np.linalg.norm(force):.0f} N" for name, force in loads.pins.items())
        force, moment = np.linalg.norm(loads.base.reshape(2, 3), axis=1)
        return f"base {force:.0f} N  {moment:.0f} N m{pins}"

    def _pace_text(self) -> str:
        """Return the pace of the run, and the requested pace if they differ."""
        bench, now = self._bench, time.perf_counter()
        if bench.paused:
            self._since, self._pace = (now, bench.time), np.nan
            return "PAUSED (space: go on, n: one step)"
        since, then = self._since
        if now - since > SPAN or bench.time < then or bench.time == 0:
            self._pace = (bench.time - then) / (now - since) if bench.time > then else np.nan
            self._since = now, bench.time
        reached = "" if np.isnan(self._pace) else f"{self._pace:.2g} x real time"
        if bench.speed == np.inf:
            return f"as fast as it goes   {reached}"
        late = reached and self._pace < 0.9 * bench.speed
        return f"{bench.speed:g} x real time" + (f" ({self._pace:.2g} reached)" if late else "")


HELP = (
    "space: pause   n: one step   + -: speed   f (held): push   p: payload",
    "t: frames   c: centres of mass   a: arrow of the push   1 2 3 4: camera",
    "Ctrl and mouse: turn it   wheel: nearer   Esc: close",
    "?: these keys   i: text   h: panels",
)
SPEEDS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
AXES = "xyz"
LOAD_COM = (0.0, 0.0, 0.05)  # m from the flange


class Controls:
    """Keys, buttons and sliders of every window.

    Args:
        bench: the bench.
        client: PyBullet's client of the window.
    """

    help = HELP

    def __init__(self, bench: Bench, client: Any) -> None:
        self._bench = bench
        self._status, self._overlays = StatusText(bench), Overlays(bench, client)
        panel, rating = bench.panel, bench.arm.robot.rating
        load = 5.0 if rating is None else rating.payload
        self._force_range = 40.0 * load
        self._pause = panel.button("pause / go (space)")
        self._force = panel.slider("push [N]", -self._force_range, self._force_range, self._force_range / 4)
        self._along = panel.button("push along x: change")
        self._push = panel.button("push: start / stop (f)")
        self._mass = panel.slider("payload [kg]", 0.1, 2.0 * load, load / 2)
        self._payload = panel.button("payload: attach / drop (p)")
        self._first_payload = bench.arm.robot.payload
        self._axis, self._pushing = 0, False
        self._with_frames, self._with_coms, self._with_arrows = False, False, True

    def read(self) -> None:
        """Perform the actions requested since the last picture."""
        bench, panel = self._bench, self._bench.panel
        if self._pause.pressed() or panel.key("space"):
            bench.paused = not bench.paused
        if panel.key("n"):
            bench.step_once()
        if panel.key("-"):
            bench.speed = max((s for s in SPEEDS if s < bench.speed), default=SPEEDS[0])
        if panel.key("+") or panel.key("="):
            bench.speed = min((s for s in SPEEDS if s > bench.speed), default=max(bench.speed, SPEEDS[-1]))
        if panel.key("t"):
            self._with_frames = not self._with_frames
        if panel.key("c"):
            self._with_coms = not self._with_coms
        if panel.key("a"):
            self._with_arrows = not self._with_arrows
        self._read_push()
        if self._payload.pressed() or panel.key("p"):
            self._change_payload()

    def _read_push(self) -> None:
        """Set the user's force from the key and the button."""
        bench = self._bench
        if self._along.pressed():
            self._axis = (self._axis + 1) % 3
            self._along.rename(f"push along {AXES[self._axis]}: change")
        if self._push.pressed():
            self._pushing = not self._pushing
        pushing = self._pushing or bench.panel.held("f")
        force = (self._force.value * pushing * np.eye(3)[self._axis]).tolist()
        if force == ([0.0] * 3 if bench.push is None else bench.push.tolist()):
            return
        bench.push = np.array(force) if any(force) else None
        if bench.push is None:
            bench.touch("push ended")
        else:
            self._note_push()

    def _note_push(self) -> None:
        self._bench.touch(f"pushed with {self._force.value:g} N along {AXES[self._axis]}")

    def _change_payload(self) -> None:
        """Drop the payload of the arm, or attach one."""
        arm, before = self._bench.arm, self._bench.arm.robot.payload
        mass = float(f"{self._mass.value:.3g}")
        arm.change_payload(Payload(mass, LOAD_COM) if before is None else None)
        self._note_payload(before)

    def _note_payload(self, before: Payload | None) -> None:
        now = self._bench.arm.robot.payload
        dropped = "" if before is None else f"payload of {before.mass:g} kg dropped"
        self._bench.touch(dropped if now is None else f"payload of {now.mass:g} kg attached")

    def note_lasting_actions(self) -> None:
        """Record a push that lasts, and a payload that differs from the initial one."""
        if self._bench.push is not None:
            self._note_push()
        if self._bench.arm.robot.payload is not self._first_payload:
            self._note_payload(self._first_payload)

    def show(self) -> None:
        """Update text and drawings."""
        self._status.write()
        self._overlays.show(self._with_frames, self._with_coms)
        bench = self._bench
        if bench.push is not None and self._with_arrows:
            length = bench.reach / self._force_range
            bench.arrow("push", bench.tool_pose()[:3, 3], length * bench.push, RED)
        else:
            bench.remove("push")
