"""`irb-twin egm serve` and `irb-twin abb serve`: simulate robots for clients of EGM, or of a controller."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from scenarios.abb.egm.addresses import SIGNALLED, address, addresses, bind_address
from scenarios.abb.rapid.given import INPUTS
from scenarios.options import argument, option, output_file, positive, section
from scenarios.shell.output import Files, announce_page, apart, console, print_line, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from scenarios.shell.settings import LAWS, LawSettings, setup_of
from twin.abb.egm.guidance.settings import LAG, GuidanceSettings
from twin.abb.egm.wire.channel import HOST, PORT, Address
from twin.base.errors import WrongUse

if TYPE_CHECKING:
    from scenarios.abb.session import Job, ServedRobot

WIRE, SESSION = "connection", "duration and timing"
GUIDANCE = "guidance (arguments of EGMAct and EGMRun in RAPID, and system parameters)"
ROBOT_FILES = "files (with several robots: one log per robot, named after it)"
NETWORK, SERVICES = "network and files of the programs", "Robot Web Services"
EGM, FILES = "EGM of the programs", "files"
"""Headings of the options of both commands."""

LIMIT = 60.0
"""Default limit of the real time for an answer in lockstep, in [s]."""


class ServeEgm(Command):
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
    log: Path | None = output_file(
        ".npz", "write the last two minutes of motion and messages", group=ROBOT_FILES
    )
    json: Path | None = output_file(".json", "write the last 1000 events and the values of the table")
    laws: LawSettings = section(LawSettings, LAWS)

    def run(self, call: Call) -> int:
        """Serve the robots, write the files and print the results; each `RobotSession` writes its own log."""
        self._check(call.settings)
        from scenarios.abb.session import serve_robots, table, write_json

        jobs = self.jobs(call.settings)
        results, signal = serve_robots(jobs, print_line)
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
        _check_lockstep(self.lockstep, self.limit, settings)
        if self.bind is not None and self.bind.port and len(self.robot) > 1:
            raise WrongUse(f"--bind {self.bind}: several robots cannot share a port; omit the port")

    def jobs(self, settings: dict[str, Any]) -> list[Job]:
        """Return one job per robot, with the settings of arm and control loop.

        Raises:
            TwinError, ValueError, WrongUse: a job is invalid.
        """
        from scenarios.abb.session import Job
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


def passed(job: Job, served: ServedRobot) -> bool:
    """Return whether a robot completed all requested runs without a fault and its log was written."""
    done = job.plan.runs is None or served.result.completed == job.plan.runs
    return done and not (served.error or served.result.faults or served.unwritten)


def _check_lockstep(lockstep: bool, limit: float | None, settings: dict[str, Any]) -> None:
    """Raise `WrongUse` for a limit without lockstep, or a window with it."""
    if limit is not None and not lockstep:
        raise WrongUse("--limit requires --lockstep")
    if lockstep and settings.get("gui", False):
        raise WrongUse("--gui requires real time: it cannot be combined with --lockstep")


class ServeAbb(Command):
    """Run programs in RAPID on a virtual controller in real time.

    The programs of the station's tasks run side by side and move an arm of the twin: a controller, drives,
    and the arm in PyBullet at 1 kHz. Sockets of the programs are sockets of this machine, so that the client
    of a real controller connects to them. What the arm cannot do is a fault here, too.

    On a terminal, commands are typed while it runs: stop, start, speed 50, main, set di1 1, answer 2, status,
    quit; help explains them. With --commands they are read from any standard input.

    After `--` stands the command of a client, such as `pytest tests/`: the session lasts as long as it runs.

    What the arm does is judged as it happens: a drive that lacks the torque that its controller demands, an
    arm that comes nearer than a margin to itself, its tool or its cell, and external torques above those of
    the station's table [supervision], as MotionSup tunes them. Each is a line, and with --supervise an error
    ERR_COLL_STOP that stops the arm on its path. A session with --learn, in which nothing touches the arm,
    writes this table.

    The exit status is that of the client's command if it is not 0; 1 if a task ended with a fault, one of
    these things happened, or the log could not be written; 2 for wrong use. Ctrl-C ends the session with its
    table, its log and status 130.
    """

    runs_client = True
    usage = "irb-twin abb serve [STATION.toml] [options] [-- CLIENT ...]"
    examples = """examples:
  irb-twin abb serve station.toml
  irb-twin abb serve station.toml --browser
  irb-twin abb serve --robot irb140 --load T_ROB1=server.mod --bind 127.0.0.1
  irb-twin abb serve --load T_ROB1=motion.mod,lib.sys T_STATE=state.mod,lib.sys --log session.npz
  irb-twin abb serve station.toml --duration 60 -- pytest tests/
  irb-twin abb serve station.toml --rws 8080
  irb-twin abb serve station.toml --rws 8443 --omnicore --certificate server.pem
  irb-twin abb serve --load T_ROB1=guided.mod --egm 127.0.0.1:6520 --cycle once --lockstep
"""
    besides = ("controller", "robot", "reference", "close_window", "payload", "model_payload")

    file: Path | None = argument(
        "file of the station, see the guide; `irb-twin new station NAME` writes one", "STATION.toml", None
    )
    robot: str | None = option(None, "name of the robot, or path of its file (default irb140)", "NAME")
    controller: str = option("computed_torque", "controller of the arm, as in run", "NAME")
    start: str | None = option(None, "named initial pose of the arm (default: zero)", "POSE")
    load: tuple[str, ...] = option(
        (), "tasks with their modules, or folders of modules, as T_ROB1=server.mod,lib.sys", "TASK=FILES"
    )
    cycle: Literal["once", "forever"] | None = option(
        None, "whether a program begins again (default forever)"
    )
    inputs: str | None = option(None, INPUTS, "NAME=VALUE")
    cell: Path | None = option(
        None, "what stands around the arm, see the guide on cells (default: the arm alone)", "CELL.toml"
    )
    supervise: bool = option(False, "stop the arm before and in a collision, and where a drive lacks torque")
    learn: bool = option(False, "write the largest torques of a session without contact into STATION.toml")
    share: float = option(0.9, "share used of the torque beside gravity and friction, 0 to 1")
    operator: str | None = option(
        None,
        "answers of the operator in order, as 2,yes, or part=2 for questions with this text",
        "ANSWERS",
    )
    commands: bool = option(
        False, "read commands although the standard input is no terminal, or has a client"
    )
    browser: int | None = option(
        None,
        "show the arm, the programs and a pendant in a browser of this machine; PORT of the page",
        "PORT",
        alone=0,
    )
    duration: float | None = option(None, "end after this time (default: until Ctrl-C)", "SECONDS")
    bind: str | None = option(
        None,
        "local address of all sockets, whatever address a program names (default 127.0.0.1, which other "
        "machines cannot reach)",
        "ADDRESS",
        group=NETWORK,
    )
    allow: tuple[str, ...] = option((), "hosts beside this machine to which programs may connect", "HOST")
    home: str | None = option(
        None, "folder that stands for HOME:, RAMDISK: and TEMP: (default: a fresh one)", "DIR"
    )
    rws: int | None = option(
        None,
        "local port of Robot Web Services: version 1.0 over HTTP; user `Default User`, password `robotics`; "
        'the programs then wait for a client that starts them, unless the station has start = "auto"',
        "PORT",
        group=SERVICES,
    )
    listen: str | None = option(
        None,
        "local address of the services (default 127.0.0.1); another one lets everybody who reaches it and "
        "knows the public password move the arm, and read and write the files of --home",
        "ADDRESS",
    )
    omnicore: bool = option(False, "version 2.0 of the services over TLS, as OmniCore has it")
    certificate: Path | None = option(
        None, "PEM file with private key and certificate for --omnicore (default: one is made)", "FILE"
    )
    strict: bool = option(
        False, "limits of a controller: 70 sessions, 20 requests a second, a second until motors are on"
    )
    egm: Address | None = option(
        None,
        "address of the client of EGM for all devices that the station does not name (default "
        "127.0.0.1:6510)",
        "HOST:PORT",
        read=address,
        group=EGM,
    )
    lag: float | None = option(
        None,
        "delay until an answer of EGM acts, beside its cycle (default 12: real controllers take 10 to 50 ms)",
        "MS",
    )
    lockstep: bool = option(
        False,
        "virtual time: cycles follow each other without a clock, and after each message of EGM the "
        "controller waits for exactly one answer; two runs are equal to the bit",
    )
    limit: float | None = option(
        None,
        "with --lockstep: longest real time for an answer; then the session ends with status 1 (default 60)",
        "SECONDS",
    )
    log: Path | None = output_file(".npz", "write the last two minutes of the motion", group=FILES)
    laws: LawSettings = section(LawSettings, LAWS)

    def run(self, call: Call) -> int:
        """Run the session, write the log and print the table."""
        for value, what in ((self.duration, "duration"), (self.limit, "--limit")):
            if value is not None:
                positive(value, what, "s")
        _check_lockstep(self.lockstep, self.limit, call.settings)
        station = self._station()
        settings = {"drives": station.drives or "rigid", **call.settings}
        setup = setup_of(
            settings | {"robot": self.robot or station.robot or "irb140"}, self.controller, self.laws
        )
        with TemporaryDirectory(prefix="irb-twin-home-") as fresh:
            return self._serve(station, setup, call.client, fresh)

    def _serve(self, station: Any, setup: Any, client: Sequence[str], fresh: str) -> int:
        from scenarios.abb.rapid.check import limits_of
        from scenarios.abb.session import Serving, log_settings, rows
        from scenarios.report.documents import plain_table
        from scenarios.running.provenance import stamped
        from scenarios.setup import named_pose
        from scenarios.shell.process import graceful_stop
        from twin.abb.egm.robot.exchange import Lockstep
        from twin.abb.rapid.recorder import Operator
        from twin.abb.rapid.signals import input_values

        try:
            inputs = input_values(self.inputs or "")
        except ValueError as error:
            raise WrongUse(f"--inputs: {error}") from None
        home = Path(self.home or (station.folder / station.home if station.home else fresh))
        if not home.is_dir():
            raise WrongUse(f"--home {home}: expected a folder")
        given = {
            "signals": station.cell_signals(inputs), "home": home,
            "network": station.network(self.bind, self.allow), "limits": limits_of(self.share, 0.0, ()),
            "operator": Operator([one.strip() for one in self.operator.split(",")] if self.operator else ()),
            "forever": (self.cycle or station.cycle) == "forever",
            "egm": station.egm_devices(self.egm, self.lag),
            "pace": Lockstep(self.limit or LIMIT, self.limit or LIMIT) if self.lockstep else None,
        }  # fmt: skip
        services = self._services(station, home)
        start = None if self.start is None else named_pose(setup.load_robot(), self.start)
        starts = station.start == "auto" or (station.start is None and services is None)
        serving = Serving(
            station, setup, print_line, client, self.duration, start, given,
            station.surroundings(self.cell), self.supervise, services=services, starts=starts,
        )  # fmt: skip
        if self.browser is not None:
            serving.page = partial(self._page, serving)
        if self.commands or (not client and sys.stdin is not None and sys.stdin.isatty()):
            serving.client_input = subprocess.DEVNULL
            serving.ready.add_done_callback(lambda ready: self._read_commands(serving))
        with graceful_stop(serving.stopping.set) as interrupt:
            served = serving.serve()
        files, page, log = Files(), console(), served.log
        if log is not None:
            settings = log_settings(serving.setup, {"station": self.file})
            files.write(self.log, lambda draft: stamped(log, settings).save(draft))
            if self.learn:
                files.write(self.file, partial(self._write_learned, served))
        page.print(plain_table([[name, value] for name, value in rows(served).items()]))
        for sentence in (*(f"FAULT {name}: {fault}" for name, fault in served.faults), served.error):
            if sentence:
                print_to_stderr(sentence)
        complete = files.name(page)
        if interrupt.number:
            return SIGNALLED + interrupt.number
        if served.client:
            print_to_stderr(f"{client[0]} ended with status {served.client}")
            return served.client if served.client > 0 else 1
        return 0 if complete and served.is_good else 1

    def _write_learned(self, served: Any, draft: Path) -> None:
        """Write the file of the station with the largest torques of a session in a table."""
        from twin.physics.control.supervision import thresholds

        if served.error or served.log.wrench.any():
            raise WrongUse(f"--learn: {served.error or 'something touched the arm in this session'}")
        self._station()  # another session may have written the table meanwhile
        assert self.file is not None
        limits = zip(served.log.robot.joint_names, thresholds(served.supervision.largest), strict=True)
        text = self.file.read_text(encoding="utf-8") + "\n[supervision]\n"
        text += "".join(f'"{name}" = {limit:.3g}\n' for name, limit in limits)
        draft.write_text(text, encoding="utf-8")

    def _read_commands(self, serving: Any) -> None:
        from scenarios.abb.background import Commands, RunningController, read_commands

        running = RunningController(serving, serving.ready.result())
        read_commands(Commands(running, serving.stopping.set), print_line)

    def _page(self, serving: Any, controller: Any, services: Any) -> Any:
        """Start the page of a session."""
        from scenarios.abb.background import RunningController
        from scenarios.abb.pendant import Pendant
        from twin.abb.rws.cabinet import DOMAINS

        def masters() -> list[str]:
            return [one for one in DOMAINS if services is not None and services.cabinet.master(one)]

        page = Pendant(RunningController(serving, controller), self.browser or 0, masters)
        announce_page(page.url)
        return page

    def _services(self, station: Any, home: Path) -> Any:
        """Return the function that starts Robot Web Services, None without them."""
        if self.rws is None:
            if self.omnicore or self.certificate or self.strict or self.listen:
                raise WrongUse("--listen, --omnicore, --certificate and --strict need --rws PORT")
            return None
        if not 0 <= self.rws <= 65535:
            raise WrongUse(f"--rws {self.rws}: expected a port from 0, a free one, to 65535")
        if self.certificate and not self.omnicore:
            raise WrongUse("--certificate needs --omnicore, version 1.0 has no TLS")
        from scenarios.abb.background import web_services

        return web_services(
            home, (self.listen or "127.0.0.1", self.rws), omnicore=self.omnicore, strict=self.strict,
            certificate=self.certificate,
        )  # fmt: skip

    def _station(self) -> Any:
        from scenarios.abb.station import Station

        if self.file is None and not self.load:
            raise WrongUse("expected STATION.toml or --load TASK=FILES: irb-twin new station NAME writes one")
        station = Station({}) if self.file is None else Station.read(self.file)
        if self.learn and (self.file is None or station.supervision):
            raise WrongUse("--learn: expected STATION.toml without a table [supervision]")
        tasks = dict(station.tasks)
        for text in self.load:
            name, _, modules = text.partition("=")
            if not name or not modules:
                raise WrongUse(f"--load {text}: expected TASK=FILES, as T_ROB1=server.mod,lib.sys")
            tasks[name] = {"modules": [str(Path(one).absolute()) for one in modules.split(",")]}
        return replace(station, tasks=tasks)
