"""Jogging: a reference that moves to a target within speed limits, with a panel or a page in a browser.

Each joint of the reference accelerates and brakes with a constant acceleration. It brakes as late as possible
to come to rest on its target. The reference obeys the engine's recursion,

    qd[k+1] = qd[k] + dt qdd[k],        q[k+1] = q[k] + dt qd[k+1],

so that a controller with an exact model follows it to round-off.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.base.errors import DivergenceError, RobotError, UnreachableError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.kinematics.inverse import inverse_kinematics, numerical_inverse_kinematics
from twin.physics.robot.limits import joint_ranges
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import SHOWN, shown
from twin.physics.trajectories.sampling import Samples
from twin.studies.views.browser import View

if TYPE_CHECKING:
    from scenarios.setup import Setup
    from twin.physics.engine.window.bench import Bench

TIME_TO_SPEED = 0.3  # s: time from rest to the jogging speed
SHARE_OF_SPEED = 0.25
"""Jogging speed over the joints' speed limits; teach pendants allow about as much."""
TOOL_SPEED = 0.25
"""[m/s]: largest speed of the tool in manual mode according to ISO 10218-1."""
TURN_SPEED = 0.5  # rad/s: angular speed of the tool

AXES = ("x", "y", "z", "rx", "ry", "rz")


class Follower:
    """Joint reference that moves to a target.

    Attributes:
        k: index of the next sample.
        q, qd: (n,) current positions and speeds, in [rad] and [rad/s].
        target: (n,) positions at which the reference comes to rest, in [rad]; may be set at any time, within
            the ranges of the joints.

    Args:
        q: (n,) initial positions, at rest, in [rad].
        qd_max: (n,) largest speeds, in [rad/s].
        qdd_max: (n,) largest accelerations, in [rad/s^2].
        period: period of the samples, in [s].
    """

    q: NDArray
    qd: NDArray
    target: NDArray

    def __init__(self, q: NDArray, qd_max: NDArray, qdd_max: NDArray, period: float) -> None:
        self.qd_max, self.qdd_max, self.period = qd_max, qdd_max, period
        self.k = 0
        self.restart(q)

    @classmethod
    def of(cls, robot: Robot, q: NDArray, period: float) -> Follower:
        """Return a follower for a robot, with a quarter of its speed limits, reached in 0.3 s."""
        speed = SHARE_OF_SPEED * np.where(np.isfinite(robot.qd_max), robot.qd_max, 4.0)
        return cls(q, speed, speed / TIME_TO_SPEED, period)

    def restart(self, q: NDArray) -> None:
        """Set position and target to q (n,), in [rad], at rest."""
        self.q = np.array(q, dtype=np.float64)
        self.qd = np.zeros_like(self.q)
        self.target = self.q.copy()

    def stop(self) -> None:
        """Set the target to the nearest position at which the reference can come to rest."""
        braking = self.qd**2 / (2.0 * self.qdd_max) + np.abs(self.qd) * self.period
        self.target = self.q + np.sign(self.qd) * braking

    @property
    def at_rest(self) -> bool:
        """Whether the reference is at rest on its target."""
        return bool(np.all(self.qd == 0.0) and np.all(np.abs(self.target - self.q) < 1e-12))

    def samples(self, count: int) -> Samples:
        """Return the next samples and advance the reference to one period after the last of them.

        Args:
            count: number of samples.
        """
        dt, h = self.period, self.qdd_max * self.period
        t = np.arange(self.k, self.k + count, dtype=np.float64) * dt
        q, qd, qdd = np.empty((3, count, len(self.q)))
        for k in range(count):
            q[k], qd[k] = self.q, self.qd
            left = (self.target - self.q) / dt  # the speed that reaches the target in one period
            # From a speed v between m h and (m + 1) h, braking by h each period covers
            # dt (v + (v - h) + ... + (v - m h)) = dt (m + 1) (v - m h / 2).
            m = np.floor(0.5 * (np.sqrt(1.0 + 8.0 * np.abs(left) / h) - 1.0))
            speed = np.sign(left) * np.minimum(np.abs(left) / (m + 1) + 0.5 * m * h, self.qd_max)
            qdd[k] = np.clip((speed - self.qd) / dt, -self.qdd_max, self.qdd_max)
            self.qd = self.qd + dt * qdd[k]
            self.q = self.q + dt * self.qd
        self.k += count
        return Samples(t, q, qd, qdd)


@dataclass
class ToolJog:
    """Motion of the tool along and about the axes of the base or of the tool, at a bounded speed.

    Attributes:
        robot: the robot.
        T_start: (4, 4) pose of the tool at the start of jogging.
        T_flange_tool: (4, 4) pose of the tool in the flange frame.
        in_tool_axes: whether the axes are those of the tool at the start of jogging; else those of the base.
        offset: (6,) current displacement from the start of jogging, `AXES`, in [m] and [rad]; rotations are
            about x, then y, then z of the fixed axes.
        desired: (6,) desired displacement, in the same form.
    """

    robot: Robot
    T_start: NDArray
    T_flange_tool: NDArray
    in_tool_axes: bool
    offset: NDArray
    desired: NDArray

    @classmethod
    def begin(cls, robot: Robot, q: NDArray, T_flange_tool: NDArray, in_tool_axes: bool) -> ToolJog:
        """Return a motion that begins at the joint angles q (n,), in [rad]."""
        T_start = forward_kinematics(robot, q, T_flange_tool)
        return cls(robot, T_start, T_flange_tool, in_tool_axes, np.zeros(6), np.zeros(6))

    def pose(self, offset: NDArray) -> NDArray:
        """Return the pose (4, 4) of the tool at an offset (6,)."""
        from scipy.spatial.transform import Rotation

        moved = np.eye(4)
        moved[:3, :3] = Rotation.from_euler("xyz", offset[3:]).as_matrix()
        if self.in_tool_axes:
            moved[:3, 3] = offset[:3]
            return self.T_start @ moved
        T = self.T_start.copy()
        T[:3, :3] = moved[:3, :3] @ T[:3, :3]
        T[:3, 3] += offset[:3]
        return T

    def advance(self, seconds: float, near: NDArray) -> NDArray | None:
        """Move towards the desired displacement; return joint angles (n,), or `None` if the arm cannot.

        Args:
            seconds: duration of the motion at jogging speed, in [s].
            near: (n,) previous joint angles, in [rad]; they select the branch.
        """
        remaining = self.desired - self.offset
        most = max(np.linalg.norm(remaining[:3]) / TOOL_SPEED, np.linalg.norm(remaining[3:]) / TURN_SPEED)
        offset = self.offset + remaining * min(1.0, seconds / most if most > 0.0 else 1.0)
        q = nearest(self.robot, self.pose(offset), self.T_flange_tool, near)
        if q is None or np.max(np.abs(q - near)) > LARGEST_STEP:
            self.desired = self.offset.copy()  # stop here: the arm cannot go further in this direction
            return None
        self.offset = offset
        return q


LARGEST_STEP = 0.5  # rad: a joint moves further only to another branch or at a singularity


def nearest(robot: Robot, T: NDArray, T_flange_tool: NDArray, near: NDArray) -> NDArray | None:
    """Return the joint angles (n,) within the ranges that bring the tool to T (4, 4); `None` if none do."""
    try:
        q = inverse_kinematics(robot, T, T_flange_tool=T_flange_tool, near=near)
    except RobotError:  # the arm has no closed-form solution
        try:
            q = numerical_inverse_kinematics(robot, T, T_flange_tool=T_flange_tool, near=near, restarts=0)
        except UnreachableError:
            return None
    return q if np.all(np.isfinite(q)) else None


MODES = ("joints", "base", "tool")
TITLES = {"joints": "jog: joints", "base": "jog: tool, base axes", "tool": "jog: tool, its axes"}
TOOL_RANGE = np.array([0.5] * 3 + [np.pi / 2] * 3)
"""Largest displacement of the tool from the start of jogging, in [m] and [rad]."""
KEY_SPEED = 0.2
"""Speed of an axis while its key is held down: share of its range per second."""


class JogPanel:
    """Sliders and keys that set the target of a `Follower`.

    Attributes:
        mode: jogging mode, one of `MODES`.
        axis: index of the slider that the arrow keys move.

    Args:
        bench: bench of the window.
        robot: robot to jog.
        follower: reference to set the target of.
        T_flange_tool: (4, 4) pose of the tool on the flange.
    """

    def __init__(self, bench: Bench, robot: Robot, follower: Follower, T_flange_tool: NDArray) -> None:
        self._bench, self._robot, self._follower, self._T = bench, robot, follower, T_flange_tool
        self.mode, self.axis = "joints", 0
        bench.add_keys("up down: choose a joint   left right: move it   j: joints or tool   s: stop")
        self._hold = bench.panel.button("stop (s)")
        self._button = bench.panel.button("jog: joints / base / tool (j)")
        self._sliders: list = []
        self.rebuild()

    def rebuild(self) -> None:
        """Create the sliders again, for the mode and for the target of the reference."""
        for slider in self._sliders:
            slider.remove()
        follower = self._follower
        if self.mode == "joints":
            names, low, high = self._robot.joint_names, *joint_ranges(self._robot)
            start, kinds = follower.target, self._robot.joint_kinds
        else:
            self._tool = ToolJog.begin(self._robot, follower.target, self._T, self.mode == "tool")
            names, low, high, start = AXES, -TOOL_RANGE, TOOL_RANGE, np.zeros(6)
            kinds = ("prismatic",) * 3 + ("revolute",) * 3
        self._scale = np.array([SHOWN[kind][1] for kind in kinds])
        self._low, self._high, self._desired = low, high, np.array(start)
        units = [SHOWN[kind][0] for kind in kinds]
        self._sliders = [
            self._bench.panel.slider(f"{name} [{unit}]", *(scale * np.array([a, b, at])), first=True)
            for name, unit, scale, a, b, at in zip(
                names, units, self._scale, low, high, self._desired, strict=True
            )
        ]
        self._names, self._units = names, units
        self._read = [slider.value for slider in self._sliders]
        self._key_axis = -1  # axis of the arrow key that is held down, -1 for none
        self.axis = min(self.axis, len(self._sliders) - 1)

    def act(self, seconds: float) -> None:
        """Apply the user's input since the last picture.

        Args:
            seconds: time since the last picture, in [s].
        """
        panel = self._bench.panel
        if self._hold.pressed() or panel.key("s"):
            self._follower.stop()
            self.rebuild()
        if self._button.pressed() or panel.key("j"):
            self._follower.stop()
            self.mode = MODES[(MODES.index(self.mode) + 1) % len(MODES)]
            self.rebuild()
        self._take_sliders()
        self._take_keys(seconds)
        self._go(seconds)
        name, unit = self._names[self.axis], self._units[self.axis]
        at = self._scale[self.axis] * self._desired[self.axis]
        self._bench.write_line("jog", f"{TITLES[self.mode]}; arrow keys: {name} {at:.1f} {unit}")

    def _take_sliders(self) -> None:
        for axis, slider in enumerate(self._sliders):
            value = slider.value
            if value != self._read[axis]:
                self._read[axis] = value
                self._desired[axis] = value / self._scale[axis]

    def _take_keys(self, seconds: float) -> None:
        panel = self._bench.panel
        step = int(panel.key("down")) - int(panel.key("up"))
        self.axis = (self.axis + step) % len(self._sliders)
        sense = int(panel.held("right")) - int(panel.held("left"))
        axis = self.axis
        if sense:
            displacement = sense * KEY_SPEED * seconds * (self._high[axis] - self._low[axis])
            self._desired[axis] = np.clip(
                self._desired[axis] + displacement, self._low[axis], self._high[axis]
            )
            self._key_axis = axis
        elif self._key_axis >= 0:  # the key was released: move the slider to the position of the axis
            axis, self._key_axis = self._key_axis, -1
            self._sliders[axis].set(self._scale[axis] * self._desired[axis])
            self._read[axis] = self._sliders[axis].value

    def _go(self, seconds: float) -> None:
        """Set the target of the reference."""
        if self.mode == "joints":
            self._follower.target = self._desired.copy()
            return
        if np.array_equal(self._tool.desired, self._desired) and np.array_equal(
            self._tool.offset, self._desired
        ):
            return
        self._tool.desired = self._desired.copy()
        q = self._tool.advance(seconds, self._follower.target)
        if q is None:
            self._bench.write_line(
                "refused", "the tool cannot go there: out of reach, a joint limit, or a singularity"
            )
            self._desired = self._tool.desired.copy()
        else:
            self._bench.write_line("refused", "")
            self._follower.target = q


PART = 0.03  # s: simulated time between two pictures
LATEST = 0.2  # s: largest delay behind real time that is made up


def jog(setup: Setup, start: NDArray, duration: float, port: int, announce: Callable[[str], None]) -> NDArray:
    """Simulate the robot under its controller, led by the sliders of a page; return the last positions.

    Args:
        setup: robot, controller, drives, payload.
        start: (n,) initial joint positions, in [rad].
        duration: simulated time after which the session ends, in [s].
        port: port of the page; 0 for a free one.
        announce: callback that receives the address of the page.

    Raises:
        TwinError: the robot or controller does not exist, or a shape cannot be drawn.
    """
    robot = setup.load_robot()
    law = setup.control_law(setup.controller_model(robot))
    follower = Follower.of(robot, start, setup.period)
    count = max(1, round(PART / setup.period))
    view = View(robot, start, port=port, follow=False)
    restart = view.server.gui.add_button("restart")
    requested: list[bool] = []
    restart.on_click(lambda _: requested.append(True))
    try:
        with Simulation(robot, time_step=setup.time_step) as simulation:
            simulation.reset(start)
            announce(view.url)
            began = time.perf_counter()
            while follower.k * setup.period < duration:
                follower.target = view.target
                samples = follower.samples(count)
                try:
                    log = run_closed_loop(
                        simulation, law, samples, part=True, steps_per_period=setup.steps_per_period
                    )
                    error = log.q_ref[-1] - log.q[-1]
                    worst = int(np.argmax(np.abs(error)))
                    size = shown(error[worst], robot.joint_kinds[worst], 3)
                    text = f"error of {robot.joint_names[worst]}: {size}  \n{setup.controller}"
                except DivergenceError as failure:
                    text = f"{failure}: press restart"
                view.show(simulation.state()[0], text)
                if requested:
                    requested.clear()
                    simulation.reset(start)
                    law.reset()
                    follower.restart(start)
                ahead = began + follower.k * setup.period - time.perf_counter()
                began -= min(0.0, ahead + LATEST)  # after a long wait the arm does not race
                time.sleep(max(0.0, ahead))
            return simulation.state()[0]
    finally:
        view.close()
