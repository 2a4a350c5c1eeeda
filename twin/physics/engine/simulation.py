"""PyBullet as ground truth, set up so that it agrees with the analytic model to round-off.

PyBullet's defaults suit games: plausible, fast, and off by anything from 1e-8 to a factor.  Each unusual
setting below removes one deviation.  A test in `tests/twin/physics/engine/test_traps.py` fails without it.

The integrator is semi-implicit Euler, exactly: `qd+ = qd + dt qdd`, `q+ = q + dt qd+`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import checked_time_step
from twin.base.errors import TouchedError, TwinError
from twin.physics.dynamics.environment import checked_wrench
from twin.physics.dynamics.flexible_joint import warn_of_unresolved_springs
from twin.physics.engine.body import (
    check_slip,
    checked_gap,
    checked_out,
    close_loops,
    create_body,
    finite_list,
    hold_followers,
    inertial_pose,
    link_pose,
    remove_hidden_physics,
    state_reader,
    tree_jacobian,
    world_axes,
)
from twin.physics.engine.client import CLOSED, connected, disconnect, open_bench, pybullet
from twin.physics.engine.drives import EngineDrives
from twin.physics.kinematics.forward import LastTool
from twin.physics.kinematics.forward import tool_pose as checked_tool
from twin.physics.multibody.axis_torques import total_torque
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.limits import check_folding
from twin.physics.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from twin.physics.engine.window.bench import Bench, RealTimeClock
    from twin.physics.engine.window.overlays import Ghost


class Simulation(AbstractContextManager):
    """One robot in a separate world of PyBullet.

    Joint vectors are in the order of `robot.joint_names`, frames are relative to the base.  The mounting is
    expressed by the direction of gravity; the base is never rotated.  Joint limits do not stop the motion: a
    stop, which the model does not have, would hide what the controller did.  Closed loops are held by
    constraints; `loop_gap` is the largest gap after the last step, in [m].

    Args:
        robot: robot with its payload, gravity and drives.
        time_step: integration step, in [s]; a warning is issued if it is too long for elastic drives.
        gui: open a window; see `bench`.
        real_time: slow the simulation down to real time; by default if there is a window.

    Attributes:
        robot: robot that is simulated now, see `change_payload`.
        bench: the window's display and controls, `None` without a window.

    Raises:
        RobotError: PyBullet cannot load the robot.
        TwinError: there is no display for the window, or a window is open already.
        ValueError: the time step is not positive.

    Example:
        >>> import twin
        >>> with twin.Simulation(twin.load("irb140"), time_step=1e-3) as simulation:
        ...     simulation.reset([0.1] * 6, [0] * 6)
        ...     simulation.step(twin.gravity_torque(simulation.robot, [0.1] * 6))
        ...     simulation.state()[0].round(6).tolist()
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    """

    def __init__(
        self, robot: Robot, *, time_step: float = 1e-3, gui: bool = False, real_time: bool | None = None
    ) -> None:
        self.robot, self.time_step, self.loop_gap = robot, checked_time_step(time_step), 0.0
        warn_of_unresolved_springs(robot, self.time_step)
        self._drives: EngineDrives | None = None
        self._known_out: np.ndarray | None = None  # last valid array: checking costs as much as two joints
        self._tau: ArrayLike = np.zeros(robot.n)
        self.bench: Bench | None = None
        self._pace: Bench | RealTimeClock | None = None
        self._drawn: tuple[Any, Ghost] | None = None
        self._tool = LastTool()
        self._client = connected()
        try:
            self._build()
            if gui:
                self.bench = self._pace = open_bench(self, np.inf if real_time is False else 1.0)
            elif real_time:
                # Modules for windows are imported only if there is a window.
                from twin.physics.engine.window.bench import RealTimeClock

                self._pace = RealTimeClock(self.time_step)
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        """Load the robot, and remove all physics that the model does not have."""
        client = self._client
        # Otherwise PyBullet caches a file under its path for the life of the process.
        client.setPhysicsEngineParameter(enableFileCaching=0)
        self._body, self._joints = create_body(client, self.robot)
        self._motors = [self._joints[i] for i in self.robot.driven]
        self._flange_link = self._joints[self.robot.tree.flange_joint]
        remove_hidden_physics(client, self._body, self._joints)
        # Gravity expresses the mounting, because PyBullet's Jacobian is wrong for a rotated base.
        self._R_world_base = world_axes(self.robot)
        client.setGravity(*(self._R_world_base @ self.robot.gravity).tolist())
        client.setTimeStep(self.time_step)
        frame = partial(inertial_pose, client, self._body)
        hold_followers(client, self._body, self.robot, self._joints)
        close_loops(client, self._body, self.robot, self._joints, frame)
        self._T_link_inertial = frame(self._flange_link)
        self._T_inertial_flange = np.linalg.inv(self._T_link_inertial) @ self.robot.tree.T_joint_flange
        # Looking up a function of the client costs as much as a joint; these run at every step.
        mode = pybullet.TORQUE_CONTROL
        self._apply = partial(client.setJointMotorControlArray, self._body, self._motors, mode)
        self._advance = client.stepSimulation
        self._read = partial(client.getJointStates, self._body)
        self._unpack = state_reader(self.robot.n)
        drives = self.robot.active_drives
        if drives is not None:
            self._drives = EngineDrives(client, self._body, self.robot, drives, self._joints, self.time_step)

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> None:
        """Set the state of the robot, and restart the time.

        Args:
            q: (n,) joint positions, in [rad].
            qd: (n,) joint velocities, in [rad/s]; at rest by default.

        Raises:
            LimitError: the position folds a closed loop.
        """
        robot = self.robot
        q = joint_vector(robot, "q", q)
        qd = np.zeros_like(q) if qd is None else joint_vector(robot, "qd", qd)
        check_folding(robot, q)
        positions, velocities = robot.tree_positions(q).tolist(), (robot.embedding @ qd).tolist()
        self._tau = np.zeros(robot.n)
        with self._explained():
            for state in zip(self._joints, positions, velocities, strict=True):
                self._client.resetJointState(self._body, *state)
            if self._drives is not None:
                self._drives.reset()
        self.loop_gap = 0.0
        if self._pace is not None:
            self._pace.restart()

    def change_payload(self, payload: Payload | None) -> None:
        """Continue with another payload, or `None`; positions and speeds of joints and motors are unchanged.

        Afterwards `robot` is `robot.with_payload(payload)`.
        """
        loaded = Simulation(self.robot.with_payload(payload), time_step=self.time_step)
        loaded.reset(*self.state())
        if loaded._drives is not None and self._drives is not None:
            loaded._drives.take_motors_from(self._drives)
        disconnect(self._client, beside_window=self.bench is not None)
        # The world is the new one, with all that `_build` sets; the window, the pace and the drawing stay.
        self.robot, self.loop_gap, self._tau = loaded.robot, loaded.loop_gap, loaded._tau
        self._client, loaded._client = loaded._client, CLOSED
        self._body, self._joints, self._motors = loaded._body, loaded._joints, loaded._motors
        self._flange_link, self._drives = loaded._flange_link, loaded._drives
        self._T_link_inertial, self._T_inertial_flange = loaded._T_link_inertial, loaded._T_inertial_flange
        self._apply, self._advance = loaded._apply, loaded._advance
        self._read, self._unpack = loaded._read, loaded._unpack

    def state(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return joint positions and velocities, (2, n), in [rad] and [rad/s]: `q, qd = simulation.state()`.

        Args:
            out: (2, n) writable C-contiguous float64 array that is filled and returned, if given.
        """
        if out is None:
            out = np.empty((2, self.robot.n))
        elif out is not self._known_out:
            self._known_out = checked_out(out, self.robot.n)
        if self._drives is not None:  # they read the state after the step
            out[:] = self._drives.state
            return out
        try:
            self._unpack(self._read(self._motors), out)
        except pybullet.error as error:
            raise self._failure(error) from None
        if (shafts := self.robot.motor_shafts) is not None:
            out[0] -= self.robot.embedding_offset[list(self.robot.driven)]
            out[:] = out @ shafts.T
        return out

    def motor_state(self) -> np.ndarray:
        """Return positions and velocities (2, n) of the motors in joint units; of the joints if rigid."""
        return self.state() if self._drives is None else self._drives.train.motor_state(self.state())

    @property
    def tau(self) -> np.ndarray:
        """Torques of the motors in the last step (n,), in [N m] at the joints."""
        return np.array(self._tau)

    @property
    def tau_joint(self) -> np.ndarray:
        """Torques of the drives on the arm in the last step (n,), in [N m]."""
        return np.array(self._tau if self._drives is None else self._drives.train.tau_joint)

    def step(
        self, tau: np.ndarray, wrench: ArrayLike | None = None, T_flange_tool: ArrayLike | None = None
    ) -> None:
        """Advance by one time step.

        Args:
            tau: (n,) torques of the motors at the joints, in [N m], for this step only.
            wrench: (6,) `[f; mu]` on the robot at the tool's origin, base axes, in [N, N m], for this step.
            T_flange_tool: (4, 4) pose of the tool on the flange.

        Raises:
            LoopError: a closed loop came open.
            LimitError: a closed loop folds.
            ValueError: an argument has the wrong shape, or is not finite; no step is made.
        """
        drives = self._drives
        if (bench := self.bench) is not None:
            if bench.lost:
                raise self._failure()
            wrench, T_flange_tool = bench.pushed(wrench, T_flange_tool)
        # Check first: a torque that is set for a failed step would act in the next one.
        push = None
        if wrench is not None:
            F = checked_wrench(wrench).reshape(2, 3) @ self._R_world_base.T
            push = F, (self._T_inertial_flange @ self._tool(T_flange_tool))[:3, 3]
        try:
            self._tau = forces = finite_list(self.robot, tau)
            if drives is not None:
                pushed = None if push is None else self._joint_torque(drives.state[0], *push)
                forces = drives.torques(forces, pushed)
                if pushed is not None:
                    # An external force would be rounded again, which a wrist of 1e-5 kg m^2 does not forgive.
                    forces, push = [a + b for a, b in zip(forces, pushed.tolist(), strict=True)], None
            elif self.robot.tree.torques:
                torques, still = self.robot.tree.torques, [0.0] * self.robot.n
                q, qd = self.state().tolist()
                others = total_torque(torques, q, qd, still, math)
                forces = [force - other for force, other in zip(forces, others, strict=True)]
            if (shafts := self.robot.motor_shafts) is not None:
                forces = (shafts.T @ forces).tolist()
            self._apply(forces=forces)
            if push is not None:
                self._push(*push)
            self._advance()
            if drives is not None:
                drives.read()
        except (pybullet.error, TypeError) as error:
            joint_vector(self.robot, "tau", tau)  # the likely cause
            raise self._failure(error) from None
        if self.robot.passive:
            known = None if drives is None else drives.q_tree
            q_tree = np.array([state[0] for state in self._read(self._joints)] if known is None else known)
            if self.robot.loops:
                self.loop_gap = checked_gap(self.robot, q_tree)
            if self.robot.followers:
                check_slip(self.robot, q_tree)
        if self._pace is not None:
            self._pace.after_step()

    def _push(self, F: np.ndarray, point: np.ndarray) -> None:
        """Apply force and moment F (2, 3), world axes, at a point of the flange's link in the next step."""
        client, arm, frame = self._client, (self._body, self._flange_link), pybullet.WORLD_FRAME
        origin, quaternion = client.getLinkState(*arm, computeForwardKinematics=1)[:2]
        R = np.array(client.getMatrixFromQuaternion(quaternion)).reshape(3, 3)
        force, moment = F.tolist()
        client.applyExternalForce(*arm, force, (origin + R @ point).tolist(), frame)
        client.applyExternalTorque(*arm, moment, frame)

    def _joint_torque(self, q: np.ndarray, F: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Return the joint torques (n,) of force and moment F (2, 3), world axes, at a point of that link."""
        arm, q_tree = (self._body, self._flange_link), self.robot.tree_positions(q)
        # PyBullet measures the point from the joint's origin, in the axes of the inertial frame.
        point = point + self._T_link_inertial[:3, :3].T @ self._T_link_inertial[:3, 3]
        return (
            tree_jacobian(self._client, *arm, point, q_tree, self._joints) @ self.robot.embedding
        ).T @ F.ravel()

    def tool_pose(self, T_flange_tool: ArrayLike | None = None) -> np.ndarray:
        """Return the engine's pose (4, 4) `T_base_tool`."""
        with self._explained():
            # Fields 4 and 5, the link's frame, have single precision; 0 and 1, the inertial frame, double.
            # Without computeForwardKinematics they lag one step behind.
            link = self._client.getLinkState(self._body, self._flange_link, computeForwardKinematics=1)
            T = link_pose(*link[:2]) @ self._T_inertial_flange @ checked_tool(T_flange_tool)
            T[:3] = self._R_world_base.T @ T[:3]
            return T

    def jacobian(self, q: ArrayLike, T_flange_tool: ArrayLike | None = None) -> np.ndarray:
        """Return the engine's geometric Jacobian (6, n) `[v; omega]` of the tool."""
        q = joint_vector(self.robot, "q", q)
        p_tool = (self.robot.tree.T_joint_flange @ checked_tool(T_flange_tool))[:3, 3]
        # PyBullet expects the point relative to the joint's origin, in the axes of the inertial frame.
        point = self._T_link_inertial[:3, :3].T @ p_tool
        link, q_tree = (self._body, self._flange_link), self.robot.tree_positions(q)
        with self._explained():
            J = tree_jacobian(self._client, *link, point, q_tree, self._joints) @ self.robot.embedding
            return np.kron(np.eye(2), self._R_world_base.T) @ J

    def picture(self, width: int = 640, height: int = 480, **camera: Any) -> np.ndarray:
        """Return a picture (height, width, 3) uint8 of the robot.

        No window is required.  The base is drawn upright for every mounting.  The keywords `camera` are those
        of `twin.engine.window.camera.matrices`.
        """
        from twin.physics.engine.window import camera as cameras

        with self._explained():
            return cameras.picture(*self._drawing(), width, height, **camera)

    def pixels(self, points: ArrayLike, width: int = 640, height: int = 480, **camera: Any) -> np.ndarray:
        """Return the pixels (..., 2) in `picture` of points (..., 3), base frame, in [m]."""
        from twin.physics.engine.window import camera as cameras

        with self._explained():
            return cameras.pixels(*self._drawing(), points, width, height, **camera)

    def _drawing(self) -> tuple[Any, int]:
        """Return the client and the body that draw the arm in its present state.

        They are a separate world, created when first needed: loading the shapes takes most of the time.
        """
        from twin.physics.engine.window.overlays import Ghost

        q = self.state()[0]
        if self._drawn is None:
            client = connected()
            self._drawn = client, Ghost(client, self.robot)
        client, arm = self._drawn
        arm.place(q)
        arm.write()
        return client, arm.body

    def draw_path(self, points: ArrayLike, color: Sequence[float] = (0.0, 0.35, 0.9)) -> None:
        """Draw a line through points (N, 3), base frame, in [m], in the window, and move it into view."""
        from twin.physics.engine.window.overlays import path_points

        path = path_points(points)
        if self.bench is not None:
            self.bench.path("path", path, color)
            self.bench.bring_into_view(path)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert exceptions of PyBullet to meaningful ones."""
        try:
            yield
        except pybullet.error as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception | None = None) -> TwinError:
        """Return the exception that explains a failed call of PyBullet."""
        if self.bench is not None and self.bench.lost:
            return TouchedError("the simulation ended because its window was closed")
        return TwinError(f"PyBullet: {error}" if str(error) else "the torques are too large for PyBullet")

    def close(self) -> None:
        """End the simulation and close its window; repeated calls have no effect."""
        client, self._client = self._client, CLOSED
        if client is CLOSED:
            return
        # PyBullet gives the number of a closed world to the next one, so no calls may follow.
        self._apply = self._advance = self._read = CLOSED
        self._drives = None if self._drives is None else CLOSED
        disconnect(client, beside_window=self.bench is not None)
        if self._drawn is not None:
            disconnect(self._drawn[0])
        if self.bench is not None:
            self.bench.close()

    def __exit__(self, *_: object) -> None:
        self.close()
