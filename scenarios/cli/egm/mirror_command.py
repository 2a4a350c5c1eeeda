"""`irb-twin egm mirror`: the twin follows a robot that somebody else guides, and tells how far off it is."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.cli.egm import listen_options

if TYPE_CHECKING:
    from twin.egm.mirror.mirror import Mirror
    from twin.egm.mirror.payload_estimate import ExplainingPayload
    from twin.egm.mirror.report import Alarm, Report

ABOUT = """Follow a robot by its own EGM messages: have it send here, and name its client with --forward if it
is guided; whatever the two say to each other is passed on at once, byte for byte. The model is run along the
robot's joint angles, and a line a second tells the torques that the robot reported and those that the model
expected, joint by joint in N m at the joint; how far they were apart in that second (rms); what payload,
beside what the model carries, would explain it; and how late messages came, and how many were lost.

All is filtered without shifting it in time, so the lines are a fifth of a second old. Friction at low speed
is not known: an alarm counts what is beyond it alone.

The exit status is 0; 1 if the alarm was raised, or a file could not be written; 2 for wrong use, a port in
use, or no robot within --wait. Ctrl-C ends in order, with the log and status 130 (1 after an alarm); twice,
it ends at once. A robot that is guided through here loses its client when this ends: stop it first."""

EXAMPLES = """examples:
  irb-twin egm mirror --robot irb140
  irb-twin egm mirror --listen 0.0.0.0:6510 --forward 127.0.0.1:6511 --alarm 20
  irb-twin egm mirror --payload 3,0,0,0.06 --alarm 40,60,40,10,10,8 --log mirror.npz
"""


def add_parser(parsers: Any) -> None:
    """Add the command to those of `egm`."""
    parser = parsers.add_parser(
        "mirror",
        help="follow a robot's stream: expected and reported torques, payload, alarm",
        usage="irb-twin egm mirror [options]",
        description=ABOUT,
        epilog=EXAMPLES,
    )
    listen_options.add_robot(parser.add_argument_group("the model"), "rigid")
    listen_options.add_wire(parser.add_argument_group("the wire"))
    what = parser.add_argument_group("what it does")
    what.add_argument(
        "--alarm", metavar="LIMIT",
        help="limit of the difference of reported and expected torque; of a joint at rest its static "
        "friction is taken off: in N m, one or one a joint, or 15%% of what the drives give (default none)",
    )  # fmt: skip
    what.add_argument(
        "--horizon", type=float, default=30.0, metavar="SECONDS",
        help="of the payload's memory: what is so old counts 0.37 times as much as what is new (default 30)",
    )  # fmt: skip
    listen_options.add_duration(what, "by Ctrl-C")
    what.add_argument("--log", type=Path, metavar="FILE.npz", help="write the last half hour of it")


def carry_out(given: argparse.Namespace) -> int:
    """`egm mirror`: until it is over."""
    from scenarios.base import positive
    from scenarios.cli.output import Files, complain, console, writable
    from scenarios.running.interrupts import told_to_stop
    from twin.egm.mirror.mirror import Mirror
    from twin.errors import EgmError

    listen_options.check(given)
    positive(given.horizon, "--horizon", "s")
    if given.log is not None:
        writable(given.log, ".npz", "--log")
    page, files = console(), Files()
    mirror = Mirror(
        listen_options.model(given), listen=given.listen, forward=given.forward, answered_at=given.bind,
        alarm=given.alarm, wait=given.wait, torque_age=given.torque_age, horizon=given.horizon,
        tell=lambda alarm: page.print(alarm_line(alarm), highlight=False, soft_wrap=True),
    )  # fmt: skip
    refused = ""
    with mirror, told_to_stop(mirror.stop) as interrupt:
        page.print(f"listening at {mirror.relay.at}; {_of_model(given)}", highlight=False, soft_wrap=True)
        first = True
        try:
            for report in mirror.reports(given.duration):
                if first:
                    page.print(_what_is_told(mirror, report), highlight=False, soft_wrap=True)
                    first = False
                page.print(line(report), highlight=False, soft_wrap=True)
        except EgmError as error:  # what there is is written first
            refused = str(error)
    if refused and first:
        raise EgmError(refused)
    page.print(_summary(mirror), highlight=False, soft_wrap=True)
    if refused:
        complain(refused)
    if given.log is not None:
        try:
            files.write(given.log, mirror.log().save)
        except EgmError as error:
            complain(str(error))
            return 1
    if not files.name(page) or mirror.alarms:
        return 1
    if refused:
        return 2
    return 128 + interrupt.number if interrupt.number else 0


def _of_model(given: argparse.Namespace) -> str:
    """What the model is, in words."""
    carried = "carries nothing" if given.payload is None else f"carries {given.payload}"
    return f"the model: {given.robot}, {given.drives} drives, {carried}"


def line(report: Report) -> str:
    """A second of the mirror."""
    parts = [f"{report.t:8.1f} s"]
    if report.reported is not None:
        parts.append(f"reported {_numbers(report.reported)}")
    parts.append(f"expected {_numbers(report.expected)}")
    if report.reported is not None:
        parts.append(f"off {_numbers(report.residual_rms)}")
        parts.append(payload_words(report.payload))
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


def payload_words(payload: ExplainingPayload | None) -> str:
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
    """How it was."""
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
