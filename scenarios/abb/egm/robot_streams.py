"""`irb-twin egm mirror`, `record` and `replay`: compare a robot with its model, record it, or guide it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scenarios.abb.egm.addresses import LAST_PORT, SIGNALLED, address, any_port, bind_address
from scenarios.options import argument, lock_option, option, output_file, positive, section
from scenarios.shell.output import Files, console, print_line, print_to_stderr, writable
from scenarios.shell.parser import Call, Command
from twin.abb.egm.wire.channel import HOST, PORT, Address
from twin.base.errors import WrongUse

if TYPE_CHECKING:
    from twin.abb.egm.mirror.expectation import ExplainingPayload
    from twin.abb.egm.mirror.mirror import Alarm, Mirror, MirrorReport
    from twin.physics.robot.robot import Robot


@dataclass(frozen=True)
class Model:
    """Options of the model of the sending robot."""

    robot: str = option("irb140", "sending robot: its name, or the path of its robot.toml or URDF", "NAME")
    lock: tuple[str, ...] = lock_option()
    unphysical: bool = option(False, "accept bodies in a URDF that cannot exist")
    mounting: Literal["floor", "wall", "inverted"] = option("floor", "mounting of the base")
    payload: str | None = option(
        None,
        "payload of the model, mass,x,y,z,Ixx,Iyy,Izz,Ixy,Ixz,Iyz in kg, m, kg m^2; or mass,x,y,z; "
        "or mass (default none)",
        "BODY",
    )
    drives: Literal["ideal", "rigid"] = option(
        "rigid", "drives of the model: ideal, without friction and rotor inertia, or rigid, with them"
    )

    def __str__(self) -> str:
        payload = "none" if self.payload is None else self.payload
        return f"model: {self.robot}, {self.drives} drives, payload {payload}"

    def loaded(self) -> Robot:
        """Load the robot model."""
        from scenarios.setup import Setup

        return Setup(**vars(self)).load_robot()


@dataclass(frozen=True)
class Wire:
    """Options of the connections to the robot and its client."""

    listen: Address = option(
        Address(HOST, PORT),
        "local address to which the robot sends; 0.0.0.0 stands for all local addresses (default "
        f"{HOST}:{PORT}, which other machines cannot reach); port 0 selects a free port",
        "HOST:PORT",
        read=any_port,
    )
    forward: Address | None = option(
        None,
        "forward the robot's messages to its client at this address, and return the client's answers "
        "(default: only listen); the robot loses its client when this command ends",
        "HOST:PORT",
        read=address,
    )
    bind: Address | None = option(
        None,
        "local address that receives the answers of a client on another machine",
        "HOST[:PORT]",
        read=bind_address,
    )
    torque_age: float = option(
        0.5,
        "age of reported torques relative to the angles of the same message, 0 to 1 cycles (default 0.5, for "
        "means over the previous cycle, as `egm serve` sends them)",
        "CYCLES",
    )
    wait: float = option(
        60.0, "longest wait for a robot; then the command ends with status 2 (default 60)", "SECONDS"
    )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a `Mirror` or a `Recording`; warn if other machines can reach the address.

        Raises:
            ValueError: the wait is not positive and finite.
        """
        positive(self.wait, "--wait", "s")
        if not _is_loopback(self.listen.host):
            print_to_stderr(f"listening at {self.listen}, which other machines can reach")
        return {
            "listen": self.listen,
            "forward": self.forward,
            "answered_at": self.bind,
            "wait": self.wait,
            "torque_age": self.torque_age,
        }


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _duration(otherwise: str, **more: Any) -> Any:
    help = f"end after this time of the robot, or when the robot stops sending (default: {otherwise})"
    return option(None, help, "SECONDS", **more)


class Record(Command):
    """Record the messages of a robot as a log.

    In the log q is the measured position, q_ref the planned one, and tau the reported torque, NaN without
    one. Speeds come from a filter of 60 ms without phase shift. The samples are the cycles of the robot,
    evenly spaced. Lost messages are filled and counted. A gap of more than 0.1 s ends the recording, and with
    more than 5 % lost messages no log is made. With --forward the robot's client can guide it through this
    command.

        irb-twin identify FILE.npz --payload

    then identifies the payload, and `plot`, `export` and `egm replay` accept the log.

    The exit status is 0; 1 if the file could not be written; 2 for wrong use, a port in use, no robot
    within --wait, or too many lost messages. Ctrl-C ends the recording, writes the file, and sets the status
    130.
    """

    usage = "irb-twin egm record FILE.npz [options]"
    examples = """examples:
  irb-twin egm record stream.npz --robot irb140 --duration 20
  irb-twin egm record stream.npz --listen 0.0.0.0:6510 --forward 127.0.0.1:6511
"""

    file: Path = argument("log file", "FILE.npz")
    model: Model = section(Model, "robot")
    wire: Wire = section(Wire, "connection")
    duration: float | None = _duration("until Ctrl-C, at most an hour", group="duration")

    def run(self, call: Call) -> int:
        """Record the messages and write the log."""
        from scenarios.shell.process import graceful_stop
        from twin.abb.egm.mirror.recording import Recording

        if self.duration is not None:
            positive(self.duration, "--duration", "s")
        writable(self.file, ".npz", "FILE.npz")
        page, files = console(), Files()
        recording = Recording(self.model.loaded(), duration=self.duration, **self.wire.arguments())
        with recording, graceful_stop(recording.stop) as interrupt:
            page.print(f"listening at {recording.relay.at}")
            recording.run()
        log, counts = recording.stream.log(), recording.stream.counts
        files.write(self.file, log.save)
        torques = "with torques" if recording.stream.torques else "without torques: the robot reported none"
        period = 1e3 * log.t[-1] / (len(log.t) - 1)
        summary = (
            f"{counts.messages} messages in {log.t[-1]:.3f} s, one every {period:.4f} ms, {torques}",
            f"{counts.lost} lost and filled, {counts.doubled} duplicate, {counts.out_of_order} out of order",
            f"ended: {recording.stream.ended or recording.ended}",
        )
        page.print("; ".join(summary), soft_wrap=True)
        if not files.name(page):
            return 1
        return SIGNALLED + interrupt.number if interrupt.number else 0


MIRROR = "mirror"


class MirrorRobot(Command):
    """Follow the EGM messages of a robot, and report the deviation of its torques from the model.

    Let the robot send to this command, and name its client with --forward if it has one. The command forwards
    their messages at once and unchanged. It evaluates the model at the robot's joint angles. Every second it
    prints a line with the reported and the expected torques, joint by joint in N m at the joint; their rms
    difference in this second; the additional payload that would explain it; the lateness of the messages; and
    the number of lost messages.

    The filters have no phase shift, so the lines are a fifth of a second old. Friction at low speed is
    uncertain: an alarm considers only differences beyond it.

    The exit status is 0; 1 if an alarm was raised, or a file could not be written; 2 for wrong use, a port in
    use, or no robot within --wait. Ctrl-C ends the command with the log and status 130 (1 after an alarm);
    a second Ctrl-C ends it at once. A robot that is guided through this command loses its client when it
    ends: stop the robot first.
    """

    usage = "irb-twin egm mirror [options]"
    examples = """examples:
  irb-twin egm mirror --robot irb140
  irb-twin egm mirror --listen 0.0.0.0:6510 --forward 127.0.0.1:6511 --alarm 20
  irb-twin egm mirror --payload 3,0,0,0.06 --alarm 40,60,40,10,10,8 --log mirror.npz
"""

    model: Model = section(Model, "model")
    wire: Wire = section(Wire, "connection")
    alarm: str | None = option(
        None,
        "limit of the difference of reported and expected torque, beyond the static friction of a joint at "
        "rest: in N m, one value or one per joint, or 15% of the drives' torque (default none)",
        "LIMIT",
        group=MIRROR,
    )
    horizon: float = option(
        30.0,
        "memory of the payload estimate: data of this age have 0.37 times the weight of new data "
        "(default 30)",
        "SECONDS",
    )
    duration: float | None = _duration("until Ctrl-C")
    log: Path | None = output_file(".npz", "write the last half hour")

    def run(self, call: Call) -> int:
        """Follow the robot, print the reports, and write the log."""
        from scenarios.shell.process import graceful_stop
        from twin.abb.egm.mirror.mirror import Mirror
        from twin.base.errors import EgmError

        positive(self.horizon, "--horizon", "s")
        if self.duration is not None:
            positive(self.duration, "--duration", "s")
        files = Files()
        mirror = Mirror(
            self.model.loaded(), alarm=self.alarm, horizon=self.horizon,
            on_alarm=lambda alarm: print_line(alarm_line(alarm)), **self.wire.arguments(),
        )  # fmt: skip
        with mirror, graceful_stop(mirror.stop) as interrupt:
            print_line(f"listening at {mirror.relay.at}; {self.model}")
            any_report, rejected = self._follow(mirror)
        if rejected and not any_report:
            raise EgmError(rejected)
        print_line(_summary(mirror))  # also for a stream that was rejected after some reports
        if rejected:
            print_to_stderr(rejected)
        if self.log is not None:
            try:
                files.write(self.log, mirror.log().save)
            except EgmError as error:
                print_to_stderr(str(error))
                return 1
        if not files.name(console()) or mirror.alarms:
            return 1
        if rejected:
            return 2
        return SIGNALLED + interrupt.number if interrupt.number else 0

    def _follow(self, mirror: Mirror) -> tuple[bool, str]:
        """Print a line every second.

        Returns:
            whether there was a report, and why the stream was rejected (empty if it was not).
        """
        from twin.base.errors import EgmError

        first = True
        try:
            for report in mirror.reports(self.duration):
                if first:
                    print_line(_stream_line(mirror, report))
                    first = False
                print_line(line(report))
        except EgmError as error:
            return not first, str(error)
        return not first, ""


def line(report: MirrorReport) -> str:
    """Return the line of a report."""
    parts = [f"{report.t:8.1f} s"]
    if report.reported is not None:
        parts.append(f"reported {_numbers(report.reported)}")
    parts.append(f"expected {_numbers(report.expected)}")
    if report.reported is not None:
        parts.append(f"off {_numbers(report.residual_rms)}")
        parts.append(payload_text(report.payload))
    if report.lateness is not None:
        parts.append(f"late {1e3 * report.lateness.largest:.1f} ms")
    parts.append(f"lost {report.counts.lost}")
    return " | ".join(parts)


def alarm_line(alarm: Alarm) -> str:
    """Return the line of an alarm."""
    return (
        f"{alarm.t:8.2f} s ALARM: the torque of joint {alarm.joint} deviates by {alarm.residual:+.1f} N m, "
        f"{alarm.beyond:.1f} N m more than static friction explains, limit {alarm.limit:g} N m"
    )


def payload_text(payload: ExplainingPayload | None) -> str:
    """Return the estimated payload as a text."""
    if payload is None or not payload.mass_known:
        return "payload unknown"
    text = f"payload {payload.mass:+.2f} +- {payload.deviations[0]:.2f} kg"
    if payload.centre_known:
        text += " at " + " ".join(f"{1e3 * x:.0f}" for x in payload.com) + " mm"
    return text


def _numbers(torques: Iterable[float]) -> str:
    return " ".join(f"{x:.1f}" for x in torques)


def _stream_line(mirror: Mirror, report: MirrorReport) -> str:
    """Return the line on the period and the torques of the stream."""
    text = (
        f"the robot sends every {1e3 * mirror.period:.3f} ms; expected and reported torques are filtered "
        f"alike and {mirror.lag:.2f} s old"
    )
    if report.reported is None:
        text += "; the robot reports no torques (torqueRef): only expected torques are printed"
    return text


def _summary(mirror: Mirror) -> str:
    """Return the lines that summarise the stream."""
    counts = mirror.counts
    relayed = mirror.relay.counts
    lines = [
        f"{counts.messages} messages, {counts.lost} lost, {counts.doubled} duplicate, "
        f"{counts.out_of_order} out of order, {counts.malformed} malformed, {counts.restarts} restarts"
    ]
    if relayed.forwarded or relayed.answers:
        lines.append(
            f"forwarded {relayed.forwarded} messages and {relayed.answers} answers, with a mean delay of "
            f"{1e3 * relayed.added_mean:.3f} ms, at most {1e3 * relayed.added:.3f} ms"
        )
    if relayed.undelivered:
        lines.append(f"could not forward {relayed.undelivered} datagrams")
    if relayed.overlooked:
        lines.append(f"did not evaluate {relayed.overlooked} messages: too many were queued")
    if relayed.strangers:
        lines.append(
            f"ignored {relayed.strangers} datagrams of other senders, the first from {relayed.stranger}"
        )
    if relayed.refused:
        lines.append(f"no program listened at the client's address, {relayed.refused} times")
    if relayed.answers:
        lines.append("the connection between the robot and its client has ended")
    any_limit = min(mirror.limits) < float("inf")
    lines.append(f"alarms: {mirror.raised}" if any_limit else "no alarm limit was set")
    return "\n".join(lines)


class Replay(Command):
    """Send the references of a log to a robot that sends its EGM messages to this command.

    The robot first moves slowly from its present position to the first position of the log. It then gets the
    positions and speeds of the log at the times of its messages, and finally the last position until it has
    arrived.

    A robot ends its instruction after it was within the convergence window for CondTime, 1 s by default. A
    robot that follows closely is within it all the time: set CondTime longer than the approach and the log.
    MaxSpeedDeviation, 1 deg/s by default, limits the speed of the joints.

    The exit status is 0; 1 if the robot did not reach the end of the log; 2 for wrong use, a port in use, no
    robot within --wait, or a robot with another number of joints.
    """

    usage = "irb-twin egm replay LOG [options]"
    examples = """examples:
  irb-twin egm serve --cond-time 60 --max-speed-deviation 100 --position-gain 20 --runs 1
  irb-twin egm replay run.npz
  irb-twin egm replay run.npz --port 6511 --approach 5 --hold 60
  irb-twin egm replay run.npz --learned learned.npz
"""

    log: Path = argument("log file, .npz", "LOG")
    learned: Path | None = option(
        None, "correct the references by an input that irb-twin learn wrote for the same motion", "FILE.npz"
    )
    port: int = option(PORT, "UDP port to listen on", "N")
    host: str = option(
        HOST,
        "local address to listen on; 0.0.0.0 accepts robots on other machines "
        f"(default {HOST}: this machine only)",
        "ADDRESS",
    )
    wait: float = option(60.0, "longest wait for the robot's first message (default 60)", "SECONDS")
    approach: float = option(
        10.0, "speed of the fastest joint on the way to the first position of the log (default 10)", "DEG_S"
    )
    patience: float = option(
        30.0,
        "longest wait for the robot to arrive at the start, and at the end, of the log (default 30)",
        "SECONDS",
    )
    hold: float = option(
        float("inf"),
        "hold the last position until the robot ends its instruction, at most this time (default: no limit); "
        "without answers a robot stops with an error",
        "SECONDS",
    )

    def _check(self) -> None:
        """Raise `WrongUse` for a number outside its range."""
        if not self.hold >= 0.0:
            raise WrongUse(f"--hold {self.hold:g}: expected 0 or more")
        for name in ("wait", "approach", "patience"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise WrongUse(f"--{name} {getattr(self, name):g}: expected a number above 0")
        if not 0 < self.port <= LAST_PORT:
            raise WrongUse(f"--port {self.port}: expected 1 to {LAST_PORT}")

    def run(self, call: Call) -> int:
        """Send the log and print the result."""
        self._check()

        import numpy as np

        from twin.abb.egm.client import EgmClient, replay
        from twin.data.logs.log import Log
        from twin.studies.learning.learning_controller import LearnedInput

        log = Log.load(self.log)
        learned = None if self.learned is None else LearnedInput.load(self.learned)
        page = console()
        with EgmClient(self.port, self.host) as client:
            page.print(
                f"waiting for a robot that sends to port {self.port} of {self.host}; then approach at "
                f"{self.approach:g} deg/s, and {log.t[-1] - log.t[0]:.3f} s of the log",
                soft_wrap=True,
            )  # fmt: skip
            result = replay(
                client, log, approach=float(np.radians(self.approach)), patience=self.patience,
                hold=self.hold, wait=self.wait, learned=learned,
            )  # fmt: skip
        joint = int(np.argmax(result.deviation))
        summary = f"sent {result.messages} answers, {result.duration:.3f} s of the log"
        if result.duration > 0.0:
            deviation = np.degrees(result.deviation[joint])
            summary += (
                f"; the robot's commanded angles deviated by at most {deviation:.3g} deg (joint {joint + 1})"
            )
        page.print(summary, soft_wrap=True)
        if result.trouble:
            print_to_stderr(result.trouble)
        return 1 if result.trouble else 0
