"""EGM of a virtual controller: messages to a client during programs, and guidance between their moves.

Messages go out from EGMAct or EGMStreamStart to EGMReset, EGMStreamStop or the end of the program.  The mode
and the sample rate may change from one session to the next.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from twin.abb.egm.guidance.guidance import Fault
from twin.abb.egm.guidance.run import Phase, Run, make_guidance
from twin.abb.egm.guidance.settings import LAG, GuidanceSettings
from twin.abb.egm.robot.session import EgmResult, Session, SessionPlan
from twin.abb.egm.wire.channel import HOST, PORT, UdpChannel
from twin.abb.egm.wire.messages import RobotMessage, SensorMessage
from twin.abb.rapid.planning import plan
from twin.abb.rapid.targets import Move
from twin.base.arrays import Floats
from twin.base.errors import EgmError, RapidError
from twin.physics.robot.robot import Payload
from twin.physics.trajectories.joint_trajectories import Trajectory

if TYPE_CHECKING:
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.live_recorder import LiveRecorder
    from twin.abb.controller.tasks import Task


LOOPBACK = "127.0.0.1", "::1", "localhost"
"""Addresses that other machines cannot reach."""


@dataclass(frozen=True)
class EgmDevices:
    """Clients of EGM, and what a program does not set.

    Attributes:
        to: address of the client of devices that are not named.
        named: addresses of clients by the names of their devices in lower case.
        lag: delay until an answer acts, beside its cycle, in [ms].
        parameters: system parameters of EGM.
    """

    to: tuple[str, int] = (HOST, PORT)
    named: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    lag: float = LAG
    parameters: GuidanceSettings = field(default_factory=GuidanceSettings)


class TaskSession(Session):
    """Session of EGM whose cycles are those of a virtual controller, and whose instructions a task begins.

    Attributes:
        task: the task that leads it.
        device: name of its device in lower case.
    """

    def __init__(
        self, controller: VirtualController, task: Task, device: str, settings: GuidanceSettings,
        channel: UdpChannel, plan: SessionPlan, done: EgmResult,
    ) -> None:  # fmt: skip
        super().__init__(
            controller.arm, settings, None, channel, controller.pace, plan, partner=str(channel.to),
            T_flange_tool=np.eye(4), motion=controller.motion, done=done,  # type: ignore[arg-type]
            on_event=lambda event: controller.report(task.settings.name, event.sentence),
        )  # fmt: skip
        self.task, self.device, self._controller = task, device, controller
        self._next: GuidanceSettings | None = None
        self._taken: SensorMessage | None = None
        self._cycles, self._part = self._samples // controller.samples, 0
        self._epoch = 0.0 if self.pace.virtual else time.time()
        self._prepare_cycle()

    def matches(self, device: str, settings: GuidanceSettings) -> bool:
        """Return whether settings and a device are those of this session."""
        return (device, settings.mode, settings.cycle) == (self.device, self.settings.mode, self._cycle)

    @property
    def guides(self) -> bool:
        """Whether an instruction guides the arm, or is about to."""
        return self._run is not None or self._next is not None

    @property
    def moves(self) -> bool:
        """Whether the arm is guided, stops or returns."""
        return self._run is not None and self._run.phase is not Phase.WAITING

    @property
    def is_due(self) -> bool:
        """Whether the next cycle of the controller begins with a message."""
        return self._part == 0

    def advance(self, count: int) -> None:
        """Run one of the controller's cycles, of `count` samples."""
        if self.is_due:
            self._taken = self._exchange()
        self._move(count)
        self._part = (self._part + 1) % self._cycles
        if self.is_due:
            self._complete(self._taken)

    def begin(self, settings: GuidanceSettings, path: Trajectory | None = None) -> None:
        """Prepare an instruction beside the arm's cycles; it begins with the next message."""
        self._guidance = make_guidance(self.arm.robot, settings, self._tool, path)
        self.rehearse()
        self._next = settings

    def end_guidance(self, settings: GuidanceSettings) -> None:
        """Stop the guidance in the way of an instruction EGMStop."""
        self._next = None
        if self._run is not None and self._run.phase in (Phase.WAITING, Phase.GUIDED):
            self._run.end(settings)

    def halt(self) -> None:
        """Stop the guidance because the execution is stopped; it begins again when the execution continues.

        A path cannot be continued, so that its instruction ends with a fault.
        """
        run = self._run
        if run is None or run.phase not in (Phase.WAITING, Phase.GUIDED):
            return
        if run.settings.mode == "path":
            run.stop(Fault(0, "stopped", "an instruction EGMMove cannot continue on its path after a stop"))
        else:
            self._next = run.settings
            run.end(replace(run.settings, stop="hold"))

    def fault(self) -> str:
        """Return the fault of the last instruction, "" for none."""
        return f"{self._faults[-1].name}: {self._faults[-1].sentence}" if self._failed else ""

    def stream_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the messages, see `StreamRecord.arrays`."""
        return self._record.arrays()

    def finish(self) -> None:
        """Send a last message with the final state."""
        self._prepare_cycle()
        self._send()

    def _start_next_instruction(self) -> bool:
        """Begin the instruction that the task wants, as soon as the arm rests."""
        if self._next is not None and not self._controller.is_stopped and not self._controller.motion.paths:
            self.settings, self._next = self._next, None
            self._begin_instruction()
        return True

    def _robot_message(self) -> RobotMessage:
        runs = self._controller.running and self.task.state == "running"
        motors = self._controller.motors
        return replace(super()._robot_message(), program_runs=runs, motors_on=motors)

    def _update_instruction(self, run: Run) -> None:
        super()._update_instruction(run)
        if self._run is None and run.fault is not None and run.settings.no_wait_cond:
            self.task.fail(RapidError(self.fault(), "refusal"))  # no instruction waits for its end


class Egm:
    """EGM of a virtual controller.

    Attributes:
        devices: clients of EGM.
        session: present session, None if no messages are sent.
        done: result of all sessions so far.
        stream: arrays of the messages of the last session, see `StreamRecord.arrays`.
    """

    def __init__(self, controller: VirtualController, devices: EgmDevices) -> None:
        self._controller, self.devices = controller, devices
        self.session: TaskSession | None = None
        self.done = EgmResult(plant=controller.arm.plant)
        self.stream: dict[str, np.ndarray] = {}
        self._channels: dict[str, UdpChannel] = {}

    @property
    def guides(self) -> bool:
        """Whether a client guides the arm, or is about to."""
        return self.session is not None and self.session.guides

    def move(self, count: int) -> None:
        """Move the arm by `count` samples, along its paths or guided by a client."""
        session = self.session
        if session is not None and session.task.state == "ended":
            if session.guides:
                session.end_guidance(GuidanceSettings(stop="hold"))
            else:
                self.close()
        if self.session is None:
            self._controller.arm.move(self._controller.motion.samples(count))
            return
        if self._controller.is_stopped:
            self.session.halt()
        self.session.advance(count)

    def open(self, task: Task, device: str, settings: GuidanceSettings) -> TaskSession:
        """Return the session for a device and settings, which is a new one if they differ.

        Raises:
            EgmError: the address is invalid, or its port is in use.
            RapidError: the client guides the arm.
        """
        if self.guides:
            raise RapidError("a client guides the arm already: EGMStop must stand before", "value")
        if self.session is not None and self.session.matches(device, settings):
            return self.session
        self.close()
        controller, to = self._controller, self.devices.named.get(device, self.devices.to)
        if device not in self._channels:
            bind = controller.network.bind  # loopback cannot reach another machine, which the channel states
            self._channels[device] = UdpChannel(to, None if bind in LOOPBACK else (bind, 0))
        channel, sessions = self._channels[device], SessionPlan(lag=self.devices.lag)
        self.session = task.aside(
            lambda: TaskSession(controller, task, device, settings, channel, sessions, self.done)
        )
        controller.report(
            task.settings.name,
            f"EGM sends to {channel.to} every {1e3 * settings.cycle:g} ms, receives at port {channel.port}",
        )
        return self.session

    def close(self) -> None:
        """End the session, with a last message; the arm must not be guided."""
        if self.session is not None:
            self.session.finish()
            self.stream, self.session = self.arrays(), None

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the messages of the present or last session."""
        return self.stream if self.session is None else self.session.stream_arrays()

    def close_channels(self) -> None:
        """Free all ports."""
        self.close()
        for channel in self._channels.values():
            channel.close()


class Leader:
    """EGM of a task: its instructions as commands to the virtual controller.

    Args:
        recorder: recorder of the task.
    """

    def __init__(self, recorder: LiveRecorder) -> None:
        self._recorder, self._controller = recorder, recorder.controller

    @property
    def guided(self) -> bool:
        """Whether a client guides the arm."""
        return self._controller.egm.guides

    def stream(self, settings: GuidanceSettings, device: str) -> None:
        """Send messages from now on, without guidance."""
        if not self.guided:
            self._open(settings, device)

    def reset(self) -> None:
        """End the session; a guidance is stopped before."""
        if self.guided:
            self.stop(GuidanceSettings(stop="hold"))
        self._controller.egm.close()

    def activate(
        self, settings: GuidanceSettings, T_flange_tool: Floats, payload: Payload | None, device: str
    ) -> None:
        """Make the moves before, and prepare guidance."""
        self._recorder.finish()
        session = self._open(settings, device)
        self._controller.change_load(payload)
        session.use(settings, T_flange_tool)

    def guide(self, settings: GuidanceSettings, place: tuple[str, int]) -> str:
        """Guide the arm, to the end unless the settings do not wait; return a fault, "" for none."""
        self._recorder.finish()
        return self._guide(settings, place, None)

    def guide_along(self, settings: GuidanceSettings, moves: Sequence[Move], place: tuple[str, int]) -> str:
        """Guide the arm along the collected moves, which end with a stop; return a fault, "" for none."""
        recorder = self._recorder
        assert recorder.arm is not None
        segments = list(recorder.arm.segments)
        recorder.forget_moves()
        robot, limits = self._controller.robot, self._controller.limits
        planned = recorder.task.aside(lambda: plan(robot, segments, list(moves), limits))
        return self._guide(settings, place, planned.motion)

    def stop(self, settings: GuidanceSettings) -> str:
        """Stop the guidance; return a fault, "" for none."""
        session = self._controller.egm.session
        if session is None or not session.guides:
            return ""
        session.end_guidance(settings)
        return self._awaited(session)

    def _open(self, settings: GuidanceSettings, device: str) -> TaskSession:
        if self._recorder.arm is None:
            raise RapidError(f"the task {self._recorder.task.settings.name} moves no arm", "refusal")
        try:
            return self._controller.egm.open(self._recorder.task, device, settings)
        except EgmError as error:
            raise RapidError(str(error), "refusal") from None

    def _guide(self, settings: GuidanceSettings, place: tuple[str, int], path: Trajectory | None) -> str:
        session = self._controller.egm.session
        if session is None or session.settings.mode != settings.mode:
            raise RapidError(f"needs an EGMAct instruction for {settings.mode} guidance before", "value")
        if session.guides:
            raise RapidError("a client guides the arm already: EGMStop must stand before", "value")
        self._controller.mark(*place)
        self._recorder.task.aside(lambda: session.begin(settings, path))
        if settings.no_wait_cond and settings.mode != "path":
            return ""
        return self._awaited(session)

    def _awaited(self, session: TaskSession) -> str:
        self._recorder.task.wait(lambda: not session.guides)
        return session.fault()
