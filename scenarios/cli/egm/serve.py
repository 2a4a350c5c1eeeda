"""`irb-twin egm serve`: the twin is a robot on the wire, which EGM clients guide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.cli.arguments import Call, Command, WrongUse, count, option, output_file, section
from scenarios.cli.egm.addresses import SIGNALLED, address, addresses, own_address
from scenarios.cli.output import Files, apart, console, print_to_stderr
from scenarios.cli.settings import LAWS, LawSettings, configs_of
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.channel import HOST, PORT, Address

if TYPE_CHECKING:
    from scenarios.cli.egm.serving import Job, Served

LIMIT = 60.0
"""[s] of real time for an answer in lockstep."""

WIRE, SESSION = "who guides it", "how long, and how fast"
GUIDANCE = "guidance (EGMAct and EGMRun in RAPID, and the system parameters behind them)"
FILES = "files (of several robots: one each, named after them)"


@dataclass(frozen=True)
class Serve(Command):
    """Be the robot's side of EGM: send the robot's state every 4 ms, and go where the answers say.

    The robot sends first, to where its client listens; whoever answers from there guides it. Behind it is the
    closed loop of every scenario: a control law, drives, and the arm in PyBullet at 1 kHz.

    An instruction EGMRun begins when its client answers, and ends when the arm has been within the
    convergence window of its reference for CondTime, or with a fault, as the robot's controller tells it;
    after a pause the next one begins. MaxSpeedDeviation is 1 deg/s as in the manual: 10 degrees last 10 s
    unless you set it.

    The exit status is 0; 1 if a run ended with a fault, even if later ones did not, if --runs were not
    all done, or a file could not be written; 2 for wrong use, a port in use, no client within --wait, or
    the limit of --lockstep. Ctrl-C ends the session in order, with its table and its files and status
    130; twice, it ends at once.
    """

    usage = "irb-twin egm serve [options]"
    examples = """examples:
  irb-twin egm serve
  irb-twin egm serve --max-speed-deviation 60 --ramp-time 0.05 --gui
  irb-twin egm serve --mode pose --tool 0,0,0.1 --log session.npz
  irb-twin egm serve --mode path --path seam.csv --drives rigid
  irb-twin egm serve --robot irb140 irb1600 --to 127.0.0.1:6510 127.0.0.1:6511
  irb-twin egm serve --lockstep --runs 1 --wait 10 --limit 60 --json session.json
"""
    besides = ("controller", "robot", "reference", "close_window")

    robot: tuple[str, ...] = option(
        ("irb140",),
        "one robot or several, each by its name or the path of its robot.toml or URDF, each in a process of "
        "its own (default irb140)",
        "NAME",
    )
    controller: str = option("computed_torque", "control law that moves the arm, as in run", "NAME")
    start: str | None = option(
        None,
        "named pose in which the arm begins (default: the zero pose; in pose mode joint 5 is bent by 30 "
        "degrees there, as the wrist is singular when it is straight; in path mode where the path begins)",
        "POSE",
    )
    to: tuple[Address, ...] = option(
        (),
        "where each robot sends its messages, which is where its client listens; a robot for which there is "
        f"none takes the next port (default {HOST}:{PORT})",
        "HOST:PORT",
        read=address,
        group=WIRE,
    )
    bind: Address | None = option(
        None,
        "own address to be answered at, needed where the client is on another machine: 0.0.0.0 listens on "
        "every address of this one (default loopback, which no other machine reaches, and any free port)",
        "HOST[:PORT]",
        read=own_address,
    )
    wait: float | None = option(
        None,
        "give up with status 2 if an instruction waits for its first answer for so long (default: never)",
        "SECONDS",
    )
    lag: float = option(
        0.0,
        "how much later an answer acts, rounded up to whole cycles; a controller has 10 to 20 ms (default 0)",
        "MS",
    )
    duration: float | None = option(
        None,
        "end by itself after so long, with --lockstep in virtual time (default: by Ctrl-C)",
        "SECONDS",
        group=SESSION,
    )
    runs: int | None = option(
        None,
        "end after so many instructions EGMRun or EGMMove, however they ended (default: no end)",
        "N",
        read=count,
    )
    pause: float = option(1.0, "between an instruction's end and the next one (default 1)", "SECONDS")
    lockstep: bool = option(
        False,
        "virtual time: after each message wait for exactly one answer, as long as it takes; clock and "
        "time-outs count cycles, so that two runs are the same to the bit",
    )
    limit: float | None = option(
        None,
        "with --lockstep: status 2 if an answer takes longer than that in real time (default 60)",
        "SECONDS",
    )
    path: Path | None = option(
        None, "path mode: poses over time, as pose_path takes them", "FILE.csv", group=GUIDANCE
    )
    guidance: GuidanceSettings = section(GuidanceSettings, GUIDANCE)
    log: Path | None = output_file(
        ".npz", "write the last two minutes of motion and of the stream", group=FILES
    )
    json: Path | None = output_file(".json", "write the last 1000 events, and the table's figures")
    laws: LawSettings = section(LawSettings, LAWS)

    def run(self, call: Call) -> int:
        """Serve until it is over, then write the files and tell what came of it."""
        self._check(call.settings)
        jobs = self.jobs(call.settings)
        results, signal = _served(jobs)
        files = self._written(jobs, results)  # before anything is printed: a reader may hang up
        page = console()
        if any(served.result.sent for served in results):
            from scenarios.cli.egm.serving import table

            page.print(table(jobs, results))
        for job, served in zip(jobs, results, strict=True):
            if served.error:
                print_to_stderr(f"{job.label}: {served.error}" if len(jobs) > 1 else served.error)
            if served.unwritten:
                print_to_stderr(served.unwritten)
            elif job.log is not None and served.result.sent:
                page.print(f"wrote {job.log}", highlight=False, soft_wrap=True)
        complete = files.name(page)
        if signal:
            return SIGNALLED + signal
        if any(served.refused for served in results):
            return 2
        return 0 if complete and all(map(held, jobs, results)) else 1

    def _check(self, settings: dict[str, Any]) -> None:
        """Check what goes together.

        Raises:
            WrongUse, ValueError: something does not.
        """
        from scenarios.base import positive

        mode = self.guidance.mode
        if mode == "path" and self.path is None:
            raise WrongUse("--mode path corrects a path: give one, --path FILE.csv")
        if mode != "path" and self.path is not None:
            raise WrongUse(
                f"--path is corrected in path mode: give --mode path, or leave it out of mode {mode}"
            )
        if mode == "path" and self.start is not None:
            raise WrongUse("--start: a path begins where it begins; leave it out in path mode")
        for value, what in ((self.duration, "duration"), (self.wait, "--wait"), (self.limit, "--limit")):
            if value is not None:
                positive(value, what, "s")
        if not 0.0 <= self.pause < float("inf"):
            raise WrongUse(f"--pause {self.pause:g}: expected 0 s or more")
        if self.limit is not None and not self.lockstep:
            raise WrongUse("--limit is of --lockstep: give that, too, or leave it out")
        if self.lockstep and settings.get("gui", False):
            raise WrongUse("--lockstep has no real time in which --gui could show it: leave one of them out")
        if self.bind is not None and self.bind.port and len(self.robot) > 1:
            raise WrongUse(f"--bind {self.bind}: several robots cannot share a port; leave the port out")

    def jobs(self, settings: dict[str, Any]) -> list[Job]:
        """A job a robot, with settings of the arm and its control loop as every scenario has them.

        Raises:
            TwinError, ValueError, WrongUse: one is not valid.
        """
        from scenarios.base import Config
        from scenarios.cli.egm.serving import Job
        from twin.egm import Plan

        to = addresses(self.to, self.robot)
        several = len(self.robot) > 1
        labels = [
            f"{name}:{client.port}" if several else name for name, client in zip(self.robot, to, strict=True)
        ]
        logs = [self.log] * len(to)
        if self.log is not None and several:
            logs = list(apart(self.log, [(label,) for label in labels]))
        plan = Plan(self.runs, self.pause, self.wait, self.lag, self.duration)
        limit = (self.limit or LIMIT) if self.lockstep else None
        jobs = []
        for label, robot, client, log in zip(labels, self.robot, to, logs, strict=True):
            (config,) = configs_of(settings | {"robot": robot}, Config, [self.controller], self.laws)
            job = Job(
                label, config, self.guidance, client, plan, bind=self.bind, start=self.start,
                path=self.path, limit=limit, log=log,
            )  # fmt: skip
            jobs.append(job)
        return jobs

    def _written(self, jobs: Sequence[Job], results: Sequence[Served]) -> Files:
        """Write the file for programs; logs are written where they are made."""
        from scenarios.cli.egm.serving import write_json

        files = Files()
        files.write(self.json, partial(write_json, jobs, results))
        return files


def held(job: Job, served: Served) -> bool:
    """Whether nothing went wrong with a robot, it did all runs that were asked for, and its log is there."""
    done = job.plan.runs is None or served.result.completed == job.plan.runs
    return done and not (served.error or served.result.faults or served.unwritten)


def _served(jobs: Sequence[Job]) -> tuple[list[Served], int]:
    """Serve one robot here, or several in processes; and the number of the signal that ended it, or 0."""
    from scenarios.cli.egm.serving import Serving, serve_in_processes
    from scenarios.cli.process import graceful_stop

    if len(jobs) > 1:
        for job in jobs:
            job.config.load_robot()  # what cannot be is said before any begins
        return serve_in_processes(jobs, lambda place, line: _say(f"{jobs[place].label}  {line}"))
    serving = Serving(jobs[0], _say)
    with graceful_stop(serving.stop) as interrupt:
        return [serving.serve()], interrupt.number


def _say(line: str) -> None:
    """Print a line at once."""
    page = console()
    page.print(line, highlight=False, soft_wrap=True)
    page.file.flush()
