"""`irb-twin egm serve`: the twin is a robot on the wire, which EGM clients guide."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from scenarios.cli.egm import serve_options
from scenarios.cli.output import Files, complain, console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.cli.egm.serving import Job, Served

ABOUT = """Be the robot's side of EGM: send the robot's state every 4 ms, and go where the answers say. The
robot sends first, to where its client listens; whoever answers from there guides it. Behind it is the closed
loop of every scenario: a control law, drives, and the arm in PyBullet at 1 kHz.

An instruction EGMRun begins when its client answers, and ends when the arm has been within the convergence
window of its reference for CondTime, or with a fault, as the robot's controller tells it; after a pause the
next one begins. MaxSpeedDeviation is 1 deg/s as in the manual: 10 degrees last 10 s unless you set it.

The exit status is 0; 1 if a run ended with a fault, even if later ones did not, if --runs were not all done,
or a file could not be written; 2 for wrong use, a port in use, no client within --wait, or the limit of
--lockstep. Ctrl-C ends the session in order, with its table and its files and status 130; twice, it ends at
once."""

SIGNALLED = 128
"""And its number: the exit status after a signal."""


def add_parser(parsers: Any) -> None:
    """Add the command to those of `egm`."""
    parser = parsers.add_parser(
        "serve",
        help="be a robot that EGM clients guide",
        usage="irb-twin egm serve [options]",
        description=ABOUT,
        epilog=serve_options.EXAMPLES,
    )
    serve_options.add_options(parser)


def carry_out(given: argparse.Namespace) -> int:
    """`egm serve`: until it is over."""
    serve_options.check(given)
    jobs = serve_options.jobs(given)
    if len(jobs) == 1:
        results, signal = _served_here(jobs[0])
    else:
        from scenarios.cli.egm.serving import served_apart

        for job in jobs:
            job.config.load_robot()  # what cannot be is said before any begins
        results, signal = served_apart(jobs, lambda place, line: _say(f"{jobs[place].label}  {line}"))
    files = _written(given, jobs, results)  # before anything is printed: a reader may hang up
    page = console()
    if any(served.sent for served in results):
        from scenarios.cli.egm.serve_report import table

        page.print(table(jobs, results))
    for job, served in zip(jobs, results, strict=True):
        if served.error:
            complain(f"{job.label}: {served.error}" if len(jobs) > 1 else served.error)
        if served.unwritten:
            complain(served.unwritten)
        elif job.log is not None and served.sent:
            page.print(f"wrote {job.log}", highlight=False, soft_wrap=True)
    complete = files.name(page)
    if signal:
        return SIGNALLED + signal
    if any(served.refused for served in results):
        return 2
    return 0 if complete and all(map(held, jobs, results)) else 1


def held(job: Job, served: Served) -> bool:
    """Whether nothing went wrong with a robot, it did all runs that were asked for, and its log is there."""
    done = job.runs is None or served.well == job.runs
    return done and not (served.error or served.faults or served.unwritten)


def _say(line: str) -> None:
    """Print a line at once."""
    page = console()
    page.print(line, highlight=False, soft_wrap=True)
    page.file.flush()


def _served_here(job: Job) -> tuple[list[Served], int]:
    """One robot, in this process."""
    from scenarios.cli.egm.serving import Serving
    from scenarios.running.interrupts import told_to_stop

    serving = Serving(job, _say)
    with told_to_stop(serving.stop) as interrupt:
        return [serving.serve()], interrupt.number


def _written(given: argparse.Namespace, jobs: Sequence[Job], results: Sequence[Served]) -> Files:
    """Write the file for programs; logs are written where they are made."""
    files = Files()
    if given.json is not None:
        from scenarios.cli.egm.serve_report import write_json

        files.write(given.json, partial(write_json, jobs, results))
    return files
