"""`irb-twin egm record`: a robot's stream in a log, for `plot`, `export`, `identify` and the others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scenarios.cli.egm import listen_options

ABOUT = """Record the messages of a robot as a log: what was measured as q, what was planned as q_ref, speeds
by a filter of 60 ms that shifts nothing in time, and torques that were reported as tau; NaN where none were.
Its samples are the robot's own cycles, evenly in time; lost messages are filled and counted, a gap of more
than 0.1 s ends it, and above 5 % there is no log. With --forward the robot is guided by its client, through
here.

    irb-twin identify FILE.npz --payload

then tells what it carries, and `plot`, `export` and `egm replay` take it as any log.

The exit status is 0; 1 if the file could not be written; 2 for wrong use, a port in use, no robot within
--wait, or too many messages lost. Ctrl-C ends in order: the file is written, and the status 130."""

EXAMPLES = """examples:
  irb-twin egm record stream.npz --robot irb140 --duration 20
  irb-twin egm record stream.npz --listen 0.0.0.0:6510 --forward 127.0.0.1:6511
"""


def add_parser(parsers: Any) -> None:
    """Add the command to those of `egm`."""
    parser = parsers.add_parser(
        "record",
        help="write a robot's stream to a log",
        usage="irb-twin egm record FILE.npz [options]",
        description=ABOUT,
        epilog=EXAMPLES,
    )
    parser.add_argument("file", type=Path, metavar="FILE.npz", help="the log")
    listen_options.add_robot(parser.add_argument_group("the robot"), "rigid")
    listen_options.add_wire(parser.add_argument_group("the wire"))
    listen_options.add_duration(parser.add_argument_group("how long"), "by Ctrl-C, an hour at most")


def carry_out(given: argparse.Namespace) -> int:
    """`egm record`: until it is over."""
    from scenarios.cli.output import Files, console, writable
    from scenarios.running.interrupts import told_to_stop
    from twin.egm.mirror.recording import Recording

    listen_options.check(given)
    writable(given.file, ".npz", "FILE.npz")
    page, files = console(), Files()
    recording = Recording(
        listen_options.model(given), listen=given.listen, forward=given.forward, answered_at=given.bind,
        wait=given.wait, duration=given.duration, torque_age=given.torque_age,
    )  # fmt: skip
    with recording, told_to_stop(recording.stop) as interrupt:
        page.print(f"listening at {recording.relay.at}", highlight=False)
        recording.run()
    log, counts = recording.stream.log(), recording.stream.counts
    files.write(given.file, log.save)
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
    return 128 + interrupt.number if interrupt.number else 0
