"""A robot on the wire: its arm in the engine, guided by whoever answers its messages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats
from twin.control.closed_loop import whole_steps
from twin.egm.guidance.run import guidance_of
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.robot.guided_arm import Controller, GuidedArm
from twin.egm.robot.pace import pace_of, undisturbed
from twin.egm.robot.session import EgmResult, EgmState, Event, Plan, Session, whole_periods
from twin.egm.wire.channel import HOST, PORT, UdpChannel
from twin.egm.wire.values import require_turning_joints
from twin.errors import EgmError
from twin.kinematics.forward import tool_pose as checked_tool
from twin.logs.log import Log
from twin.logs.recordings.recording import Recording
from twin.robot.drives.sensors import Sensors
from twin.robot.evaluation import joint_vector
from twin.robot.limits import check_position
from twin.robot.robot import Robot

BENT = np.radians(30.0)
"""Joint 5 where guidance of poses begins."""


class EgmRobot:
    """A robot that is guided from outside (`EGMRunJoint`, `EGMRunPose`, `EGMMoveL`).

    It sends a message every cycle, by the clock or, made within `virtual_time`, in lockstep with its client.

        with EgmRobot(robot, controller, to=("127.0.0.1", port)) as arm:
            ...                                     # it is guided in a thread of its own
        arm.log

    Attributes:
        to: where it sends, and the only one whose answers count.
        port: its own.

    Args:
        robot: the plant, with its drives and its payload.
        controller: `(state, reference) -> tau`, of this robot alone.
        settings: the arguments of the RAPID instructions.
        plan: how many of them, and how long.
        to: host and port of the client.
        bind: own host and port to be answered at; needed where `to` is another machine, see `UdpChannel`.
        start: (n,) where it begins, in [rad]; by default where all joints are at 0, or as near to that as
            their ranges allow; in pose mode joint 5 is bent there by 30 degrees, for a straight wrist is
            singular; in path mode where the path begins.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        path: what it moves along in path mode, see `guidance_of`.
        sensors: between the motors and the control law; by default it sees them as they are.
        time_step: of the engine, in [s].
        steps_per_period: steps in a period of the control law, which has to divide the cycle.
        gui: show it in a window; it ends when that is closed.
        tell: called with every `Event`, in the thread in which the robot runs.

    Raises:
        EgmError: settings or addresses that cannot be, a port in use, a robot with a sliding joint.
        LimitError: a start beyond the range of a joint.
        ValueError: a start, or a tool, that is none.
    """

    def __init__(
        self,
        robot: Robot,
        controller: Controller,
        settings: GuidanceSettings | None = None,
        plan: Plan | None = None,
        *,
        to: tuple[str, int] = (HOST, PORT),
        bind: tuple[str, int] | None = None,
        start: ArrayLike | None = None,
        T_flange_tool: ArrayLike | None = None,
        path: str | Path | Recording | None = None,
        sensors: Sensors | None = None,
        time_step: float = 1e-3,
        steps_per_period: int = 1,
        gui: bool = False,
        tell: Callable[[Event], object] | None = None,
    ) -> None:
        require_turning_joints(robot)
        self._robot, self._controller = robot, controller
        self._settings = GuidanceSettings() if settings is None else settings
        self._tool = checked_tool(T_flange_tool)
        self._plan = Plan() if plan is None else plan
        self._guidance = guidance_of(robot, self._settings, self._tool, path)
        self._begin: Floats | None = getattr(self._guidance, "start", None)  # of a path
        self._start = self._where(start)
        whole_periods(self._settings.cycle, time_step * whole_steps(steps_per_period))
        self._sensors, self._steps = sensors, (time_step, steps_per_period)
        self._gui, self._tell = gui, tell
        self._pace = pace_of(self._settings.cycle, self._plan.wait)
        self._channel = UdpChannel(to, bind)
        self.to, self.port = self._channel.to, self._channel.port
        self._stopping = threading.Event()
        self._session: Session | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def _where(self, start: ArrayLike | None) -> Floats:
        """Where the arm begins (n,), in [rad]."""
        robot = self._robot
        if start is not None:
            q = np.array(joint_vector(robot, "start", start))
        elif self._begin is not None:
            q = self._begin
        else:
            q = np.zeros(robot.n)
            if self._settings.mode == "pose":
                q[4:5] = BENT
            q = np.clip(q, robot.q_min, robot.q_max)
        check_position(robot, q, " at the start")
        return q

    def run(self) -> EgmResult:
        """Be on the wire, in this thread, until the plan is over or the window is closed.

        Raises:
            EgmError: no client answers within the time that is given.
            DivergenceError: the control law cannot even hold the arm.
            TwinError: there is no display for a window.
        """
        self._prepare()
        self._serve()
        return self.result

    def __enter__(self) -> EgmRobot:
        """Be on the wire in a thread; it is ready when this returns."""
        self._prepare()
        self._thread = threading.Thread(target=self._serve_in_thread, name="EgmRobot", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and raise what `run` would have raised; where that is why the block failed, in its place."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Leave the wire soon; may be called from any thread.

        In virtual time the answers that were sent before are taken first.
        """
        self._stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has left the wire by itself, but not for longer; whether it has."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Give the port back, if the robot never was on the wire; one that was has done so."""
        self._channel.close()

    @property
    def state(self) -> EgmState:
        """The state as `EGMGetState` tells it now."""
        return EgmState.DISCONNECTED if self._session is None else self._session.state

    @property
    def q(self) -> Floats:
        """Where the arm was measured last (n,), in [rad]."""
        return self._start.copy() if self._session is None else self._session.arm.q.copy()

    @property
    def log(self) -> Log | None:
        """The end of the motion and of the stream so far, see `StreamRecord.arrays`; `None` without any.

        While the robot is on the wire, it costs it some milliseconds.
        """
        return None if self._session is None else self._session.log()

    @property
    def result(self) -> EgmResult:
        """The result so far."""
        return EgmResult() if self._session is None else self._session.result()

    def _prepare(self) -> None:
        """Make the arm, and use once whatever is compiled or loaded at its first use."""
        if self._session is not None:
            raise EgmError("this robot was on the wire already: make another one")
        try:
            time_step, steps_per_period = self._steps
            arm = GuidedArm(
                self._robot, self._controller, self._start, sensors=self._sensors, time_step=time_step,
                steps_per_period=steps_per_period, gui=self._gui, keep=self._plan.keep,
            )  # fmt: skip
            arm.show_tool(self._tool)
            self._session = Session(
                arm, self._settings, self._guidance, self._channel, self._pace, self._plan,
                partner=str(self.to), T_flange_tool=self._tool, start=self._begin, tell=self._tell,
            )  # fmt: skip
            self._session.rehearse()
        except BaseException:
            self._channel.close()
            raise

    def _serve(self) -> None:
        """Be on the wire, and close everything."""
        session = self._session
        assert session is not None
        try:
            with undisturbed(not self._pace.virtual):
                session.serve(self._stopping.is_set)
        finally:
            session.arm.close()
            self._channel.close()

    def _serve_in_thread(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # raised where the block ends
            self._error = error
