"""`irb-twin egm serve`: simulate a robot that EGM clients guide."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.abb.egm.addresses import SIGNALLED, address, addresses, bind_address
from scenarios.options import option, output_file, positive, section
from scenarios.shell.output import Files, apart, console, print_line, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from scenarios.shell.settings import LAWS, LawSettings, setup_of
from twin.abb.egm.guidance.settings import LAG, GuidanceSettings
from twin.abb.egm.wire.channel import HOST, PORT, Address
from twin.base.errors import WrongUse

if TYPE_CHECKING:
    from scenarios.abb.egm.serving import Job, Served

LIMIT = 60.0
"""Default limit of the real time for an answer in lockstep, in [s]."""

WIRE, SESSION = "connection", "duration and timing"
GUIDANCE = "guidance (arguments of EGMAct and EGMRun in RAPID, and system parameters)"
FILES = "files (with several robots: one log per robot, named after it)"


class Serve(Command):
    """Simulate a robot with EGM: send its state every 4 ms, and follow the answers of a client.

    The robot sends first, to the address of its client; the client's answers guide it. The simulation is the
    closed loop of all scenarios: a controller, drives, and the arm in PyBullet at 1 kHz.

    An instruction EGMRun begins with the first answer of the client. It ends when the arm has been within the
    convergence window of its reference for CondTime, or with a fault, which has the number and name of the
    robot controller. After a pause the next instruction begins. MaxSpeedDeviation is 1 deg/s, as in the
    manual: a motion of 10 degrees takes 10 s by default.

    The exit status is 0; 1 if a run ended with a fault, if not all --runs were completed, or if a file could
    not be written; 2 for wrong use, a port in use, no client within --wait, or an exceeded --limit. Ctrl-C
    ends the session with its table, its files and status 130; a second Ctrl-C ends it at once.
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
        "one or several robots, each by its name or the path of its robot.toml or URDF; several robots run "
        "in separate processes (default irb140)",
        "NAME",
    )
    controller: str = option("computed_torque", "controller of the arm, as in run", "NAME")
    start: str | None = option(
        None,
        "named initial pose of the arm (default: the zero pose; in pose mode with joint 5 at 30 degrees, "
        "because a straight wrist is singular; in path mode the start of the path)",
        "POSE",
    )
    to: tuple[Address, ...] = option(
        (),
        "address of each robot's client; a robot without an address uses the port after the last one "
        f"(default {HOST}:{PORT})",
        "HOST:PORT",
        read=address,
        group=WIRE,
    )
    bind: Address | None = option(
        None,
        "local address that receives the answers, required for a client on another machine; 0.0.0.0 stands "
        "for all local addresses (default: loopback, which other machines cannot reach, and a free port)",
        "HOST[:PORT]",
        read=bind_address,
    )
    wait: float | None = option(
        None,
        "longest wait for the first answer of an instruction; then the command ends with status 2 "
        "(default: no limit)",
        "SECONDS",
    )
    lag: float = option(
        LAG,
        "delay until an answer acts, beside its cycle, rounded up to whole cycles (default 12: real "
        "controllers take 10 to 50 ms)",
        "MS",
    )
    duration: float | None = option(
        None,
        "end after this time, with --lockstep in virtual time (default: until Ctrl-C)",
        "SECONDS",
        group=SESSION,
    )
    runs: int | None = option(
        None,
        "end after N instructions EGMRun or EGMMove, with or without faults (default: no limit)",
        "N",
        read=count,
    )
    pause: float = option(1.0, "pause between two instructions (default 1)", "SECONDS")
    lockstep: bool = option(
        False,
        "virtual time: after each message wait for exactly one answer; clock and time-outs count cycles, so "
        "that two runs are equal to the bit",
    )
    limit: float | None = option(
        None,
        "with --lockstep: longest real time for an answer; then the command ends with status 2 (default 60)",
        "SECONDS",
    )
    path: Path | None = option(
        None, "path in path mode: poses over time, as for the scenario pose_path", "FILE.csv", group=GUIDANCE
    )
    guidance: GuidanceSettings = section(GuidanceSettings, GUIDANCE)
    log: Path | None = output_file(".npz", "write the last two minutes of motion and messages", group=FILES)
    json: Path | None = output_file(".json", "write the last 1000 events and the values of the table")
    laws: LawSettings = section(LawSettings, LAWS)

    def run(self, call: Call) -> int:
        """Serve the robots, write the files and print the results; each `Serving` writes its own log."""
        self._check(call.settings)
        from scenarios.abb.egm.serving import table, write_json

        jobs = self.jobs(call.settings)
        results, signal = _served(jobs)
        files = Files()  # written before printing, which fails on a closed pipe
        files.write(self.json, partial(write_json, jobs, results))
        page = console()
        if any(served.result.sent for served in results):
            page.print(table(jobs, results))
        for job, served in zip(jobs, results, strict=True):
            if served.error:
                print_to_stderr(f"{job.label}: {served.error}" if len(jobs) > 1 else served.error)
            if served.unwritten:
                print_to_stderr(served.unwritten)
            elif job.log is not None and served.result.sent:
                page.print(f"wrote {job.log}", soft_wrap=True)
        complete = files.name(page)
        if signal:
            return SIGNALLED + signal
        if any(served.refused for served in results):
            return 2
        return 0 if complete and all(map(passed, jobs, results)) else 1

    def _check(self, settings: dict[str, Any]) -> None:
        """Check the combination of the options.

        Raises:
            WrongUse, ValueError: an option is invalid or conflicts with another.
        """
        mode = self.guidance.mode
        if mode == "path" and self.path is None:
            raise WrongUse("--mode path requires --path FILE.csv")
        if mode != "path" and self.path is not None:
            raise WrongUse(f"--path requires --mode path, the mode is {mode}")
        if mode == "path" and self.start is not None:
            raise WrongUse("--start is not valid in path mode: the robot starts at the start of the path")
        for value, what in ((self.duration, "duration"), (self.wait, "--wait"), (self.limit, "--limit")):
            if value is not None:
                positive(value, what, "s")
        if not 0.0 <= self.pause < float("inf"):
            raise WrongUse(f"--pause {self.pause:g}: expected 0 s or more")
        if self.limit is not None and not self.lockstep:
            raise WrongUse("--limit requires --lockstep")
        if self.lockstep and settings.get("gui", False):
            raise WrongUse("--gui requires real time: it cannot be combined with --lockstep")
        if self.bind is not None and self.bind.port and len(self.robot) > 1:
            raise WrongUse(f"--bind {self.bind}: several robots cannot share a port; omit the port")

    def jobs(self, settings: dict[str, Any]) -> list[Job]:
        """Return one job per robot, with the settings of arm and control loop.

        Raises:
            TwinError, ValueError, WrongUse: a job is invalid.
        """
        from scenarios.abb.egm.serving import Job
        from twin.abb.egm import SessionPlan

        to = addresses(self.to, self.robot)
        labels, logs = list(self.robot), [self.log] * len(to)
        if len(to) > 1:
            labels = [f"{name}:{client.port}" for name, client in zip(self.robot, to, strict=True)]
            logs = logs if self.log is None else list(apart(self.log, [(label,) for label in labels]))
        plan = SessionPlan(self.runs, self.pause, self.wait, self.lag, self.duration)
        limit = (self.limit or LIMIT) if self.lockstep else None
        setups = [setup_of(settings | {"robot": robot}, self.controller, self.laws) for robot in self.robot]
        return [
            Job(
                label, setup, self.guidance, client, plan, bind=self.bind, start=self.start,
                path=self.path, limit=limit, log=log,
            )
            for label, setup, client, log in zip(labels, setups, to, logs, strict=True)
        ]  # fmt: skip


def passed(job: Job, served: Served) -> bool:
    """Return whether a robot completed all requested runs without a fault and its log was written."""
    done = job.plan.runs is None or served.result.completed == job.plan.runs
    return done and not (served.error or served.result.faults or served.unwritten)


def _served(jobs: Sequence[Job]) -> tuple[list[Served], int]:
    """Serve one robot in this process, or several in worker processes.

    Returns:
        the results, and the number of the signal that ended the session, or 0.
    """
    from scenarios.abb.egm.serving import Serving, serve_in_processes
    from scenarios.shell.process import graceful_stop

    if len(jobs) > 1:
        for job in jobs:
            job.setup.load_robot()  # report errors before any robot starts
        return serve_in_processes(jobs, lambda place, line: print_line(f"{jobs[place].label}  {line}"))
    serving = Serving(jobs[0], print_line)
    with graceful_stop(serving.stop) as interrupt:
        return [serving.serve()], interrupt.number
