"""`irb-twin egm mirror` and `record`: a twin beside a robot, and the robot's stream as a log."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scenarios.cli.arguments import Call, Command, argument, option, output_file, section
from scenarios.cli.egm.addresses import SIGNALLED, address, any_port, own_address
from scenarios.cli.output import Files, console, print_to_stderr, writable
from twin.egm.wire.channel import HOST, PORT, Address

if TYPE_CHECKING:
    from twin.egm.mirror.mirror import Mirror
    from twin.egm.mirror.payload_estimate import ExplainingPayload
    from twin.egm.mirror.report import Alarm, Report
    from twin.robot.robot import Robot


@dataclass(frozen=True)
class Model:
    """The robot that sends, as a model."""

    robot: str = option(
        "irb140", "the robot that sends: its name, or the path of its robot.toml or URDF", "NAME"
    )
    mounting: Literal["floor", "wall", "inverted"] = option("floor", "how its base is mounted")
    payload: str | None = option(
        None,
        "what the model's flange carries, mass,x,y,z,Ixx,Iyy,Izz,Ixy,Ixz,Iyz: kg, m, kg m^2; or mass,x,y,z; "
        "or mass (default nothing)",
        "BODY",
    )
    drives: Literal["ideal", "rigid"] = option(
        "rigid", "what drives the model has: ideal, without friction and rotors, or rigid, with them"
    )

    def __str__(self) -> str:
        carried = "nothing" if self.payload is None else self.payload
        return f"the model: {self.robot}, {self.drives} drives, carries {carried}"

    def loaded(self) -> Robot:
        """Load the robot that is described."""
        import twin
        from twin.robot.flange_load import payload_of

        robot = twin.load(self.robot).mounted(self.mounting).with_drives(self.drives)
        return robot if self.payload is None else robot.with_payload(payload_of(self.payload))


@dataclass(frozen=True)
class Wire:
    """Where the robot sends, and its client listens."""

    listen: Address = option(
        Address(HOST, PORT),
        "address of this machine that the robot sends to; 0.0.0.0 is every one of them (default "
        f"{HOST}:{PORT}, which no other machine reaches); port 0 takes a free one",
        "HOST:PORT",
        read=any_port,
    )
    forward: Address | None = option(
        None,
        "pass the robot's messages on to its client there, and the client's answers back (default: only "
        "listen); the robot loses its client when this command ends",
        "HOST:PORT",
        read=address,
    )
    bind: Address | None = option(
        None,
        "own address towards a client on another machine, at which it answers",
        "HOST[:PORT]",
        read=own_address,
    )
    torque_age: float = option(
        0.5,
        "how much older reported torques are than the angles beside them, 0 to 1 cycles (default 0.5: means "
        "over the cycle before, as `egm serve` sends them)",
        "CYCLES",
    )
    wait: float = option(
        60.0, "give up with status 2 if no robot is heard for so long (default 60)", "SECONDS"
    )

    def arguments(self) -> dict[str, Any]:
        """The arguments of a `Mirror` or a `Recording`; other machines that can reach it are complained of.

        Raises:
            ValueError: the wait is not above 0 and finite.
        """
        from scenarios.base import positive

        positive(self.wait, "--wait", "s")
        if not _is_loopback(self.listen.host):
            print_to_stderr(f"listening at {self.listen}, which other machines can send to")
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
    help = f"of the robot's time, then end, also when it falls silent (default: {otherwise})"
    return option(None, help, "SECONDS", **more)


@dataclass(frozen=True)
class Record(Command):
    """Record the messages of a robot as a log.

    What was measured is q in it, what was planned is q_ref, and torques that were reported are tau, NaN
    where none were; speeds come by a filter of 60 ms that shifts nothing in time. Its samples are the
    robot's own cycles, evenly in time; lost messages are filled and counted, a gap of more than 0.1 s ends
    it, and above 5 % there is no log. With --forward the robot is guided by its client, through here.

        irb-twin identify FILE.npz --payload

    then tells what it carries, and `plot`, `export` and `egm replay` take it as any log.

    The exit status is 0; 1 if the file could not be written; 2 for wrong use, a port in use, no robot
    within --wait, or too many messages lost. Ctrl-C ends in order: the file is written, and the status
    130.
    """

    usage = "irb-twin egm record FILE.npz [options]"
    examples = """examples:
  irb-twin egm record stream.npz --robot irb140 --duration 20
  irb-twin egm record stream.npz --listen 0.0.0.0:6510 --forward 127.0.0.1:6511
"""

    file: Path = argument("the log", "FILE.npz")
    model: Model = section(Model, "the robot")
    wire: Wire = section(Wire, "the wire")
    duration: float | None = _duration("by Ctrl-C, an hour at most", group="how long")

    def run(self, call: Call) -> int:
        """Record until it is over."""
        from scenarios.base import positive
        from scenarios.cli.process import graceful_stop
        from twin.egm.mirror.recording import Recording

        if self.duration is not None:
            positive(self.duration, "--duration", "s")
        writable(self.file, ".npz", "FILE.npz")
        page, files = console(), Files()
        recording = Recording(self.model.loaded(), duration=self.duration, **self.wire.arguments())
        with recording, graceful_stop(recording.stop) as interrupt:
            page.print(f"listening at {recording.relay.at}", highlight=False)
            recording.run()
        log, counts = recording.stream.log(), recording.stream.counts
        files.write(self.file, log.save)
        torques = "with torques" if recording.stream.torques else "without torques: the robot reported none"
        period = 1e3 * log.t[-1] / (len(log.t) - 1)
        told = (
            f"{counts.messages} messages of {log.t[-1]:.3f} s, one every {period:.4f} ms, {torques}",
            f"{counts.lost} lost and filled, {counts.doubled} doubled, {counts.out_of_order} out of order",
            f"ended: {recording.stream.ended or recording.ended}",
        )
        page.print("; ".join(told), highlight=False, soft_wrap=True)
        if not files.name(page):
            return 1
        return SIGNALLED + interrupt.number if interrupt.number else 0


WHAT_IT_DOES = "what it does"


@dataclass(frozen=True)
class MirrorRobot(Command):
    """Follow a robot by its own EGM messages, and tell how far its torques are from the model's.

    Have it send here, and name its client with --forward if it is guided; whatever the two say to each
    other is passed on at once, byte for byte. The model is run along the robot's joint angles, and a line a
    second tells the torques that the robot reported and those that the model expected, joint by joint in N
    m at the joint; how far they were apart in that second (rms); what payload, beside what the model
    carries, would explain it; and how late messages came, and how many were lost.

    All is filtered without shifting it in time, so the lines are a fifth of a second old. Friction at low
    speed is not known: an alarm counts what is beyond it alone.

    The exit status is 0; 1 if the alarm was raised, or a file could not be written; 2 for wrong use, a
    port in use, or no robot within --wait. Ctrl-C ends in order, with the log and status 130 (1 after an
    alarm); twice, it ends at once. A robot that is guided through here loses its client when this ends:
    stop it first.
    """

    usage = "irb-twin egm mirror [options]"
    examples = """examples:
  irb-twin egm mirror --robot irb140
  irb-twin egm mirror --listen 0.0.0.0:6510 --forward 127.0.0.1:6511 --alarm 20
  irb-twin egm mirror --payload 3,0,0,0.06 --alarm 40,60,40,10,10,8 --log mirror.npz
"""

    model: Model = section(Model, "the model")
    wire: Wire = section(Wire, "the wire")
    alarm: str | None = option(
        None,
        "limit of the difference of reported and expected torque; of a joint at rest its static friction is "
        "taken off: in N m, one or one a joint, or 15% of what the drives give (default none)",
        "LIMIT",
        group=WHAT_IT_DOES,
    )
    horizon: float = option(
        30.0,
        "of the payload's memory: what is so old counts 0.37 times as much as what is new (default 30)",
        "SECONDS",
    )
    duration: float | None = _duration("by Ctrl-C")
    log: Path | None = output_file(".npz", "write the last half hour of it")

    def run(self, call: Call) -> int:
        """Follow the robot until it is over, and write the log."""
        from scenarios.base import positive
        from scenarios.cli.process import graceful_stop
        from twin.egm.mirror.mirror import Mirror
        from twin.errors import EgmError

        positive(self.horizon, "--horizon", "s")
        if self.duration is not None:
            positive(self.duration, "--duration", "s")
        files = Files()
        mirror = Mirror(
            self.model.loaded(), alarm=self.alarm, horizon=self.horizon,
            tell=lambda alarm: _say(alarm_line(alarm)), **self.wire.arguments(),
        )  # fmt: skip
        with mirror, graceful_stop(mirror.stop) as interrupt:
            _say(f"listening at {mirror.relay.at}; {self.model}")
            any_report, refused = self._follow(mirror)
        if refused and not any_report:
            raise EgmError(refused)
        _say(_summary(mirror))  # what there is, also of a stream that was refused later
        if refused:
            print_to_stderr(refused)
        if self.log is not None:
            try:
                files.write(self.log, mirror.log().save)
            except EgmError as error:
                print_to_stderr(str(error))
                return 1
        if not files.name(console()) or mirror.alarms:
            return 1
        if refused:
            return 2
        return SIGNALLED + interrupt.number if interrupt.number else 0

    def _follow(self, mirror: Mirror) -> tuple[bool, str]:
        """Tell every second; return whether there was one, and why the stream was refused, if it was."""
        from twin.errors import EgmError

        first = True
        try:
            for report in mirror.reports(self.duration):
                if first:
                    _say(_what_is_told(mirror, report))
                    first = False
                _say(line(report))
        except EgmError as error:
            return not first, str(error)
        return not first, ""


def _say(text: str) -> None:
    console().print(text, highlight=False, soft_wrap=True)


def line(report: Report) -> str:
    """A second of the mirror."""
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
    """An alarm in words."""
    return (
        f"{alarm.t:8.2f} s ALARM: the torque of joint {alarm.joint} is {alarm.residual:+.1f} N m off, "
        f"{alarm.beyond:.1f} N m more than friction can be, limit {alarm.limit:g} N m"
    )


def payload_text(payload: ExplainingPayload | None) -> str:
    """The payload that would explain it."""
    if payload is None or not payload.mass_told:
        return "payload open"
    words = f"payload {payload.mass:+.2f} +- {payload.deviations[0]:.2f} kg"
    if payload.centre_told:
        words += " at " + " ".join(f"{1e3 * x:.0f}" for x in payload.com) + " mm"
    return words


def _numbers(torques: Iterable[float]) -> str:
    return " ".join(f"{x:.1f}" for x in torques)


def _what_is_told(mirror: Mirror, report: Report) -> str:
    told = (
        f"the robot sends every {1e3 * mirror.period:.3f} ms; torques are filtered alike on both sides, and "
        f"{mirror.lag:.2f} s old"
    )
    if report.reported is None:
        told += "; it has reported no torques (torqueRef) so far: then only expected ones are told"
    return told


def _summary(mirror: Mirror) -> str:
    """Sum up the stream, in lines."""
    counts = mirror.counts
    passed = mirror.relay.passed
    told = [
        f"{counts.messages} messages, {counts.lost} lost, {counts.doubled} doubled, "
        f"{counts.out_of_order} out of order, {counts.malformed} malformed, {counts.restarts} restarts"
    ]
    if passed.passed_on or passed.answers:
        told.append(
            f"passed on {passed.passed_on} messages and {passed.answers} answers, in "
            f"{1e3 * passed.added_mean:.3f} ms, at most {1e3 * passed.added:.3f} ms"
        )
    if passed.undelivered:
        told.append(f"{passed.undelivered} could not be passed on")
    if passed.overlooked:
        told.append(f"{passed.overlooked} messages were not looked at, for too many waited")
    if passed.strangers:
        told.append(f"left alone: {passed.strangers} datagrams of others, the first from {passed.stranger}")
    if passed.refused:
        told.append(f"nobody listened where the client is to be, {passed.refused} times")
    if passed.answers:
        told.append("the robot's client does not hear it any more, nor the robot its client")
    told.append(f"alarms: {mirror.raised}" if min(mirror.limits) < float("inf") else "no alarm was set")
    return "\n".join(told)
