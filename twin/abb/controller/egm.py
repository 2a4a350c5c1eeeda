"""EGM of a virtual controller: messages to a client during programs, and guidance between their moves.

Messages go out from EGMAct or EGMStreamStart to EGMReset, EGMStreamStop or the end of the program.  The mode
and the sample rate may change from one session to the next.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from twin.abb.controller.arm import MechanicalUnit
from twin.abb.controller.execution import Execution, TaskThread
from twin.abb.egm.guidance.guidance import Fault
from twin.abb.egm.guidance.run import Phase, Run, make_guidance
from twin.abb.egm.guidance.settings import LAG, GuidanceSettings
from twin.abb.egm.robot.exchange import Pace
from twin.abb.egm.robot.session import EgmResult, Session, SessionPlan
from twin.abb.egm.wire.channel import HOST, PORT, UdpChannel
from twin.abb.egm.wire.messages import RobotMessage, SensorMessage
from twin.base.errors import RapidError
from twin.physics.trajectories.joint_trajectories import Trajectory

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
        self, egm: Egm, task: TaskThread, device: str, settings: GuidanceSettings, channel: UdpChannel
    ) -> None:  # fmt: skip
        super().__init__(
            egm.unit.arm, settings, None, channel, egm.pace, SessionPlan(lag=egm.devices.lag),
            partner=str(channel.to), T_flange_tool=np.eye(4), done=egm.done,
            motion=egm.unit.motion,  # type: ignore[arg-type]
            on_event=lambda event: egm.execution.report(task.settings.name, event.sentence),
        )  # fmt: skip
        self.task, self.device, self._execution, self._paths = task, device, egm.execution, egm.unit.motion
        self._next: GuidanceSettings | None = None
        self._taken: SensorMessage | None = None
        self._cycles, self._part = self._samples // egm.unit.samples, 0
        self._prepare_cycle()  # what is compiled at first use

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

    def prepare(self) -> None:
        """Prepare the first message, from the time and state of now: cycles went on beside the setup."""
        self._epoch = 0.0 if self.pace.virtual else time.time() - self.arm.t
        self._prepare_cycle()

    def begin(self, settings: GuidanceSettings, path: Trajectory | None = None) -> None:
        """Prepare an instruction beside the arm's cycles; it begins with the next message."""
        self._guidance = make_guidance(self.arm.robot, settings, self._tool, path)
        self.rehearse()
        self._next = settings

    def end_guidance(self, settings: GuidanceSettings) -> None:
        """Stop the guidance in the way of an instruction EGMStop."""
        self._next = None
        if self._run is not None and self._run.phase in (Phase.WAITING, Phase.GUIDED):
            self._run.end(settings, "by the program")

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
            run.end(replace(run.settings, stop="hold"), "by a stop of the execution")

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
        if self._next is not None and not self._execution.is_stopped and not self._paths.paths:
            self.settings, self._next = self._next, None
            self._begin_instruction()
        return True

    def _robot_message(self) -> RobotMessage:
        runs = self._execution.running and self.task.state == "running"
        return replace(super()._robot_message(), program_runs=runs, motors_on=self._execution.motors)

    def _update_instruction(self, run: Run) -> None:
        super()._update_instruction(run)
        if self._run is None and run.fault is not None and run.settings.no_wait_cond:
            self.task.fail(RapidError(self.fault(), "refusal"))  # no instruction waits for its end


class Egm:
    """EGM of a virtual controller.

    Attributes:
        execution: execution of the programs.
        unit: the arm.
        pace: timing of the cycles.
        devices: clients of EGM.
        session: present session, None if no messages are sent.
        done: result of all sessions so far.
        stream: arrays of the messages of the last session, see `StreamRecord.arrays`.

    Args:
        bind: local address of the sockets of programs.
    """

    def __init__(
        self, execution: Execution, unit: MechanicalUnit, pace: Pace, devices: EgmDevices, bind: str
    ) -> None:
        self.execution, self.unit, self.pace, self.devices = execution, unit, pace, devices
        self._bind = None if bind in LOOPBACK else (bind, 0)  # the channel states that loopback is not enough
        self.session: TaskSession | None = None
        self.done = EgmResult(plant=unit.arm.plant)
        self.stream: dict[str, np.ndarray] = {}
        self._channels: dict[str, UdpChannel] = {}

    @property
    def guides(self) -> bool:
        """Whether a client guides the arm, or is about to."""
        return self.session is not None and self.session.guides

    @property
    def rests(self) -> bool:
        """Whether the arm makes no move, and no client guides it."""
        return self.unit.motion.rests and not (self.session is not None and self.session.moves)

    def move(self) -> None:
        """Move the arm in a cycle, along its paths or guided by a client."""
        session = self.session
        if session is not None and session.task.state == "ended":
            if session.guides:
                session.end_guidance(GuidanceSettings(stop="hold"))
            else:
                self.close()
        if self.session is None:
            self.unit.arm.move(self.unit.motion.samples(self.unit.samples))
            return
        if self.execution.is_stopped:
            self.session.halt()
        self.session.advance(self.unit.samples)

    def open(self, task: TaskThread, device: str, settings: GuidanceSettings) -> TaskSession:
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
        if device not in self._channels:
            self._channels[device] = UdpChannel(self.devices.named.get(device, self.devices.to), self._bind)
        channel = self._channels[device]
        self.session = task.aside(lambda: TaskSession(self, task, device, settings, channel))
        self.session.prepare()
        self.execution.report(
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
