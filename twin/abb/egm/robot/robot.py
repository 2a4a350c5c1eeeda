"""Simulated EGM robot: an arm in the engine that a client guides by its answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twin.abb.egm.guidance.guidance import Guidance
from twin.abb.egm.guidance.run import make_guidance
from twin.abb.egm.guidance.settings import GuidanceSettings
from twin.abb.egm.robot.exchange import garbage_collection_frozen, make_pace
from twin.abb.egm.robot.guided_arm import Controller, GuidedArm
from twin.abb.egm.robot.session import EgmResult, EgmState, Event, Session, SessionPlan, whole_periods
from twin.abb.egm.wire.channel import HOST, PORT, UdpChannel
from twin.abb.egm.wire.encoding import require_turning_joints
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.data.logs.log import Log
from twin.data.logs.recordings.recording import Recording
from twin.physics.control.signals import whole_steps
from twin.physics.kinematics.forward import tool_pose as checked_tool
from twin.physics.robot.drives.motors import Sensors
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.limits import check_position
from twin.physics.robot.robot import Robot

BENT_WRIST = np.radians(30.0)
"""Default angle of joint 5 at the start of pose guidance, in [rad]."""


class EgmRobot:
    """Simulated robot that an EGM client guides (`EGMRunJoint`, `EGMRunPose`, `EGMMoveL`).

    The robot sends a message every cycle by the clock.  If created within `virtual_time`, it runs in lockstep
    with its client.

        with EgmRobot(robot, controller, to=("127.0.0.1", port)) as arm:
            ...                                     # the robot runs in a background thread
        arm.log

    Attributes:
        to: address of the client; answers from other addresses are ignored.
        port: local port of the robot.

    Args:
        robot: plant with drives and payload.
        controller: controller `(state, reference) -> tau` of this robot; it must not be shared.
        settings: arguments of the RAPID instructions.
        plan: number and timing of the instructions.
        to: host and port of the client.
        bind: local host and port that receive the answers; required if `to` is another machine, see
            `UdpChannel`.
        start: (n,) initial joint position, in [rad].  By default all joints are at 0, or as near to 0 as
            their ranges allow.  In pose mode joint 5 starts at 30 degrees by default, because a straight
            wrist is singular.  In path mode the default is the start of the path.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m]; the flange itself by default.
        path: path in path mode, see `make_guidance`.
        sensors: sensors between motors and controller; by default the controller gets the exact motor state.
        time_step: time step of the engine, in [s].
        steps_per_period: engine steps per control period; the control period must divide the cycle.
        gui: whether to show the robot in a window; closing the window ends the run.
        on_event: callback for every `Event`, called in the thread of the robot.

    Raises:
        EgmError: settings or addresses are invalid, a port is in use, or the robot has a prismatic joint.
        LimitError: the start is beyond the range of a joint.
        ValueError: start or tool has the wrong shape or invalid values.
    """

    def __init__(
        self,
        robot: Robot,
        controller: Controller,
        settings: GuidanceSettings | None = None,
        plan: SessionPlan | None = None,
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
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        require_turning_joints(robot)
        self._robot, self._controller = robot, controller
        self._settings = GuidanceSettings() if settings is None else settings
        self._tool = checked_tool(T_flange_tool)
        self._plan = SessionPlan() if plan is None else plan
        self._guidance: Guidance = make_guidance(robot, self._settings, self._tool, path)
        self._path_start = getattr(self._guidance, "start", None)  # only in path mode
        self._start = self._start_position(start)
        whole_periods(self._settings.cycle, time_step * whole_steps(steps_per_period))
        self._sensors, self._steps = sensors, (time_step, steps_per_period)
        self._gui, self._on_event = gui, on_event
        self._pace = make_pace(self._settings.cycle, self._plan.wait)
        self._channel = UdpChannel(to, bind)
        self.to, self.port = self._channel.to, self._channel.port
        self._stopping = threading.Event()
        self._session: Session | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def _start_position(self, start: ArrayLike | None) -> Floats:
        """Return the initial joint position (n,), in [rad]."""
        robot = self._robot
        if start is not None:
            q = np.array(joint_vector(robot, "start", start))
        elif self._path_start is not None:
            q = self._path_start
        else:
            q = np.zeros(robot.n)
            if self._settings.mode == "pose":
                q[4:5] = BENT_WRIST
            q = np.clip(q, robot.q_min, robot.q_max)
        check_position(robot, q, " at the start")
        return q

    def run(self) -> EgmResult:
        """Run in this thread until the plan is complete or the window is closed.

        Raises:
            EgmError: no client answered in time.
            DivergenceError: the motion diverged without guidance.
            TwinError: the window has no display.
        """
        self._prepare()
        self._serve()
        return self.result

    def __enter__(self) -> EgmRobot:
        """Start the robot in a background thread; it is ready on return."""
        self._prepare()
        self._thread = threading.Thread(target=self._serve_in_thread, name="EgmRobot", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the robot; raise the error of its thread, if any, even after an error of the `with` block."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Request the end of the run, from any thread.

        In virtual time the robot first takes the answers sent before the request.
        """
        self._stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the run, at most `seconds`; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Free the port of a robot that was never run; a run frees it at its end."""
        self._channel.close()

    @property
    def settings(self) -> GuidanceSettings:
        """Settings of the guidance."""
        return self._settings

    @property
    def state(self) -> EgmState:
        """Present state, as `EGMGetState` returns it."""
        return EgmState.DISCONNECTED if self._session is None else self._session.state

    @property
    def q(self) -> Floats:
        """Last measured joint angles (n,), in [rad]."""
        return self._start.copy() if self._session is None else self._session.arm.q.copy()

    @property
    def log(self) -> Log | None:
        """Log of the end of the motion and of the stream so far; `None` before the first cycle.

        The arrays of the stream are described in `StreamRecord.arrays`.  Reading the log during a run delays
        the robot by some milliseconds.
        """
        return None if self._session is None else self._session.log()

    @property
    def result(self) -> EgmResult:
        """Result so far."""
        return EgmResult() if self._session is None else self._session.result()

    def _prepare(self) -> None:
        """Create the arm, and execute once everything that is compiled or loaded at first use."""
        if self._session is not None:
            raise EgmError("this EgmRobot has already been run: create a new one for another run")
        try:
            time_step, steps_per_period = self._steps
            arm = GuidedArm(
                self._robot, self._controller, self._start, sensors=self._sensors, time_step=time_step,
                steps_per_period=steps_per_period, gui=self._gui, keep=self._plan.keep,
            )  # fmt: skip
            arm.show_tool(self._tool)
            self._session = Session(
                arm, self._settings, self._guidance, self._channel, self._pace, self._plan,
                partner=str(self.to), T_flange_tool=self._tool, start=self._path_start,
                on_event=self._on_event,
            )  # fmt: skip
            self._session.rehearse()
        except BaseException:
            self._channel.close()
            raise

    def _serve(self) -> None:
        """Run the session, then close the arm and the channel."""
        session = self._session
        assert session is not None
        try:
            with garbage_collection_frozen(not self._pace.virtual):
                session.serve(self._stopping.is_set)
        finally:
            session.arm.close()
            self._channel.close()

    def _serve_in_thread(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # `__exit__` raises it
            self._error = error
