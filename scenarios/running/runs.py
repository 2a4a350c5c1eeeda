"""Result of a run of a scenario: its checks, the command that repeats it, and the cause of a failure.

A cause is named only where a check or a traceback shows it. The reference is the run of computed torque on
the same robot in the same scenario, if there is one: a motion that it follows is feasible.
"""

from __future__ import annotations

import dataclasses
import shlex
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.bounds import with_spans
from scenarios.judging.drive_load import friction_metrics
from scenarios.judging.following import DECAY, RADIUS
from scenarios.judging.motion_range import arm_metrics
from scenarios.judging.run import TrackingRun
from scenarios.metric import Metric, Outcome
from scenarios.options import fields, flag
from scenarios.running.registry import HERE, Task, scenario_argument_text, suited_to
from scenarios.scenario import ScenarioTable, TrackingScenario
from scenarios.setup import Setup
from twin.base.errors import (
    ControllerError,
    DivergenceError,
    PluginError,
    RapidError,
    RobotError,
    TouchedError,
    TwinError,
    describe_error,
    describe_error_with_location,
    is_interrupt,
)
from twin.base.plugins import plugin_files
from twin.data.logs.figures import Figures, figures_of
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from scenarios.judging.tracking import TrackingVerdict
    from twin.data.logs.log import Log


@dataclass(frozen=True, eq=False)
class Run:
    """Result of one run.

    Attributes:
        task: the scenario with its options and its setup.
        run: the run as its scenario returned it; of an unfinished run, log and loop, or `None`.
        log: log of the run; of an unfinished run, the samples up to its end, or `None` if there are none.
        metrics: figures and checks of the run.
        seconds: computation time, in [s].
        error: why the run did not finish; `None` if it finished.
        refused: whether the settings cannot be met by the scenario, the robot or the path.
        raised: whose code raised the error, by its traceback; "" without an error, for a refused run, and for
            one that diverged.
        table: additional table of the scenario: caption and rows of texts, headings first; `None` if none.
        cases: parts of the run, such as the lines of a program: class and name of a JUnit case, duration in
            [s], and failure, "" for none.
        label: short name of the controller in tables and file names.
        figures: figures of the log; they remain in a run without its log.
        touched: whether a person changed the run at the window.
        tracking: verdict on the tracking error; `None` if the run has no tracking error.
        cell: file of the cell of the run and the names of the settings that are from it; empty without one.
    """

    task: Task
    log: Log | None = None
    metrics: tuple[Metric, ...] = ()
    seconds: float = 0.0
    run: TrackingRun | None = None
    error: str | None = None
    refused: bool = False
    raised: str = ""
    table: ScenarioTable | None = None
    cases: tuple[tuple[str, str, float, str], ...] = ()
    label: str = ""
    figures: Figures | None = None
    touched: bool = False
    tracking: TrackingVerdict | None = None
    cell: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or controllers.label(self.setup.controller))
        if self.figures is None and self.log is not None:
            object.__setattr__(self, "figures", figures_of(self.log))

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self.task.entry.name

    @property
    def setup(self) -> Setup:
        """Setup of the run."""
        return self.task.setup

    @property
    def name(self) -> str:
        """Unique name of the run, as `irb140, pose_path, pd, bandwidth 30.0`."""
        return run_name(self.task)

    @property
    def passes(self) -> bool:
        """Whether the run finished and every check passes."""
        return self.error is None and all(metric.passes for metric in self.metrics)

    @property
    def outcome(self) -> Outcome:
        """Worst outcome of the checks; if all pass, the outcome of the tracking verdict."""
        if self.error is not None:
            return "not computed" if self.figures is None else "fails"
        found = {metric.outcome for metric in self.metrics}
        tracked: dict[str, Outcome] = {"not_judged": "not judged", "undetermined": "undetermined"}
        for worst in ("fails", "not computed", "undetermined"):
            if worst in found:
                return worst
        return tracked.get(self.tracking.verdict, "passes") if self.tracking else "passes"

    @property
    def drives(self) -> tuple[str, str]:
        """Drives of the robot and drives in the controller's model."""
        if self.figures is None:
            return self.setup.drives, self.setup.controller_drives
        return self.figures.drives, self.figures.model_drives

    @property
    def settings(self) -> dict[str, object]:
        """Settings that differ from the scenario's defaults, except the controller."""
        return changed_settings(self.task)

    def without_log(self) -> Run:
        """Return the run without its log; the figures remain."""
        return dataclasses.replace(self, log=None, run=None)


def run_name(task: Task) -> str:
    """Return the unique name of a run: robot, scenario, controller, and settings that are not defaults."""
    settings = (f"{name} {value}" for name, value in changed_settings(task).items() if name != "robot")
    return ", ".join((task.setup.robot, task.entry.name, task.setup.controller, *settings))


def settings_of(task: Task) -> dict[str, tuple[Any, Any]]:
    """Return each setting and option with its value and its default, by name."""
    scenario, setup = task.scenario, task.setup
    of_setup = {
        name: (getattr(setup, name), scenario.defaults.get(name, item.default))
        for name, item in fields(Setup).items()
    }
    options = {name: (getattr(scenario, name), one.default) for name, one in fields(type(scenario)).items()}
    return of_setup | options


def changed_settings(task: Task) -> dict[str, object]:
    """Return the settings that are not defaults, except the controller, with its settings and the changes."""
    return {
        name: value
        for name, (value, default) in settings_of(task).items()
        if name != "controller" and value != default
    } | dict((*task.setup.law_settings, *task.setup.changes))


def run_one(task: Task, progress: Callable[[float], None] | None = None) -> Run:
    """Run a scenario once, evaluate it and return the result; every error becomes part of the result.

    Args:
        task: scenario and setup.
        progress: function called with the fraction done.

    Example:
        >>> from scenarios.running.registry import find
        >>> from scenarios.running.runs import run_one
        >>> run = run_one(find("gravity_hold").task({"controller": "pd_gravity", "duration": 0.1}))
        >>> run.name, run.passes
        ('irb140, gravity_hold, pd_gravity, duration 0.1', True)
    """
    from scenarios.judging.tracking import tracking_verdict

    start = time.perf_counter()
    entry, scenario, setup = task
    log, run, metrics, table, cases, tracking = None, None, (), None, (), None
    fault, refused, raised, touched = None, False, "", False
    try:
        if entry.fault is not None:
            raise entry.fault
        if setup.changes:
            task.closed_loop()
        scenario.checked(setup)
        run = _valid_run(scenario.run(dataclasses.replace(setup, progress=progress)), entry.file)
        outside = setup.environment is not None or run.log.surroundings is not None
        if outside and not run.log.wrench.any():
            end = f"nothing acts on the tool in scenario {entry.name}, which ends at {run.log.t[-1]:g} s"
            raise ValueError(f"{end}: expected an earlier --push, or a --surface that the tool touches")
        log = run.log
        metrics = with_spans(judged(task, run), run, partial(judged, task))
        tracking = tracking_verdict(setup, run, metrics)
        table, cases = scenario.table(run), tuple(scenario.cases(run))
    except (DivergenceError, TouchedError) as error:
        fault, log = describe_error(error), log or _partial_log(error)
        if run is None and log is not None:
            run = TrackingRun(log, error.loop)
        touched = isinstance(error, TouchedError)
    except (PluginError, ControllerError) as error:
        fault, raised = describe_error(error), _raised_in(error, entry.file)
    except BaseException as error:
        if is_interrupt(error):
            raise
        law = _file_of_failed_controller(error)
        program_fault = isinstance(error, RapidError)
        refused = log is None and isinstance(error, (TwinError, ValueError)) and not law and not program_fault
        raised = "" if refused else _raised_in(error, entry.file)
        fault = describe_error(error)
        if not (refused or program_fault):
            fault = describe_error_with_location(error, law or entry.file, *plugin_files())
        elif isinstance(error, RobotError):
            fault += _suited_instead(task)
    seconds = time.perf_counter() - start
    return Run(
        task.with_setup(beside=()), log, metrics, seconds, run, fault, refused, raised, table, cases,
        touched=touched, tracking=tracking,
    )  # fmt: skip


def _suited_instead(task: Task) -> str:
    """Return which scenarios suit the robot of a task; "" if that of the task does, or no dynamics exist."""
    try:
        robot = task.setup.nominal_robot()
    except TwinError:
        return ""
    if not robot.has_inertia or task.scenario.suits(robot):
        return ""
    return f"; scenarios that suit {robot.name}: {', '.join(suited_to(robot))}"


def judged(task: Task, run: TrackingRun) -> tuple[Metric, ...]:
    """Return every check of a run: of the scenario, of every run, and of the limits.

    Raises:
        PluginError: the scenario's checks are not a list of metrics with unique names.
    """
    from scenarios.judging.tracking import limited

    scenario, file, log = task.scenario, task.entry.file, run.log
    metrics = _valid_metrics(scenario.metrics(run), file)
    named = {metric.name for metric in metrics}
    compared = (metric for metric in agreement_metrics(run) if metric.name not in named)
    of_every_run = (*compared, *friction_metrics(log), *arm_metrics(log, scenario.leaves_limits))
    metrics = _valid_metrics((*metrics, *of_every_run), file)
    return limited(metrics, log, task.setup.limits, scenario.limits)


def _raised_in(error: BaseException, file: str) -> str:
    """Return whose code raised an error: the last frame of the user's files in its traceback, or of all."""
    if isinstance(error, (RapidError, ControllerError)):
        return "the program" if isinstance(error, RapidError) else "the controller"
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    theirs = [frame for frame in frames if frame.filename in user_files(file)]
    if isinstance(error, PluginError) and not theirs:
        return "the file or the name that the error states"
    frame = (theirs or frames)[-1]
    whose = "the code of" if theirs else "the twin: the code of"
    return f"{whose} {frame.filename}, line {frame.lineno}, in {frame.name}, raised the error"


def user_files(file: str) -> set[str]:
    """Return the loaded files of the user: scenarios, controllers and the file of the scenario."""
    return {*plugin_files(), *([] if Path(file).is_relative_to(HERE) else [file])}


def _file_of_failed_controller(error: BaseException) -> str:
    """Return the file of the `ControlLaw` function that raised an error; "" if another function raised it.

    A controller can fail with any kind of error. Without this distinction, a `ValueError` of NumPy would
    count as a rejected setting.
    """
    for call, called in pairwise(traceback.extract_tb(error.__traceback__)):
        if call.name == "__call__" and call.filename.endswith("control_law.py"):
            return called.filename
    return ""


def _valid_run(found: Any, file: str) -> TrackingRun:
    """Return the result of `run`; raise PluginError if it is no run with a consistent log."""
    from twin.data.logs.log import Log

    run = TrackingRun(found) if isinstance(found, Log) else found
    if not isinstance(run, TrackingRun):
        raise PluginError(f"{file}: run must return a Log or a TrackingRun, got {found!r}")
    try:
        run.log.require_consistent()
    except (TwinError, ValueError) as error:
        raise PluginError(f"{file}: run returned an inconsistent log: {error}") from error
    return run


def _valid_metrics(metrics: Any, file: str) -> tuple[Metric, ...]:
    """Return the result of `metrics`; raise PluginError unless it is a list of metrics with unique names."""
    if not isinstance(metrics, (tuple, list)):
        raise PluginError(f"{file}: metrics must return a tuple or list, got {metrics!r}")
    seen = set()
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise PluginError(f"{file}: metrics must return a Metric, got {metric!r}")
        if metric.name in seen:
            raise PluginError(f"{file}: metrics returned more than one Metric named {metric.name!r}")
        seen.add(metric.name)
    return tuple(metrics)


def _partial_log(error: DivergenceError | TouchedError) -> Log | None:
    """Return the log of a run that ended early, if it has at least one sample."""
    from twin.data.logs.log import Log

    return error.log if isinstance(error.log, Log) and len(error.log.t) > 0 else None


def repeat_command(run: Run) -> str:
    """Return the `irb-twin run` command of one run, with every setting that is not a default.

    Paths of files are those of the run, relative to the current folder. Arguments are quoted for a POSIX
    shell.
    """
    setup, entry = run.setup, run.task.entry
    words = ["irb-twin", "run", scenario_argument_text(entry.file, entry.name)]
    words += _option("--controller", setup.controller)
    for name, (value, default) in settings_of(run.task).items():
        if name == "controller" or value == default or name in run.cell[1:]:
            continue
        if isinstance(value, bool):
            words.append(flag(name) if value else flag(name).replace("--", "--no-", 1))
        elif isinstance(value, tuple):
            words += [flag(name), *map(_text, value)]
        elif value is not None:  # no option can express None
            words += _option(flag(name), _text(value))
    if run.cell:
        words += ["--cell", run.cell[0]]
    lists = {"--set": setup.law_settings, "--with": setup.changes, "--limit": setup.limits}
    for option, values in lists.items():
        words += [option, *(f"{name}={_text(value)}" for name, value in values)] if values else []
    return shlex.join(words)


def _option(name: str, text: str) -> list[str]:
    """Return an option with its value, joined by `=` if the value begins with a dash."""
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def _text(value: Any) -> str:
    """Return a value as text for the command line: numbers with all digits, lists separated by commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # a NumPy array or scalar
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return repr(value)


EXACT = "computed_torque"
ENGINE_CHECKS = ("engine - model", "gap of a closed loop")
"""Parts of the names of checks that compare the engine with the model, whatever the controller is."""
FRICTION_CHECK, REPLAY_CHECK = "friction - its law", "samples not replayed"
REFERENCE_CHECKS = "reference "
"""Prefix of the names of checks of the reference."""
TORQUE_CHECK = "samples at the torque limit"


def diagnose(run: Run, runs: Sequence[Run] = ()) -> str:
    """Return the cause of a failed run or what excludes one, in a sentence or two; "" if it passes.

    Args:
        run: the run.
        runs: all runs of the same command; one of them may be the reference.
    """
    if run.passes:
        return ""
    robot, controller = run.setup.robot, run.setup.controller
    failed = [metric.name for metric in run.metrics if not metric.passes]
    if run.outcome == "undetermined":
        advice = ""
        if run.setup.controller_drives != "ideal" and isinstance(run.task.scenario, TrackingScenario):
            advice = (
                ". Rounding no longer decides with an inexact controller model, as on a real arm: "
                "--with model.drives.coulomb=0.99"
            )
        return f"rounding: runs that differ by rounding alone are on both sides of the limit{advice}"
    if run.touched:
        return "the window: a person changed the motion or closed the window, so no check applies to the run"
    if run.refused:
        return "a setting or the robot: the scenario cannot run with them" + _check_model(
            robot, "shows what the robot has"
        )
    if run.raised:
        return run.raised
    if run.error is not None and run.figures is None:
        return "not determined: the run ended before anything was recorded"
    if any(part in name for name in failed for part in ENGINE_CHECKS):
        return (
            "the twin or the robot's file: PyBullet and the analytic model disagree on this robot, whatever "
            "the controller does" + _check_model(robot, "compares the two on the robot alone")
        )
    if FRICTION_CHECK in failed:
        return "the twin: in the engine's steps the drives violate the friction law of the robot's file"
    if REPLAY_CHECK in failed:
        return f"the controller: {controller} gives other torques when it runs again on the same states"
    if any(name in failed for name in (RADIUS, DECAY)):
        return f"the gains of {controller}: with them an error grows, or does not decay"
    if any(name.startswith(REFERENCE_CHECKS) for name in failed):
        return (
            "the scenario's settings or the robot's limits: the reference itself is beyond the joints' "
            "ranges or speed limits" + _check_model(robot, "shows the limits")
        )
    if run.figures is not None and run.figures.pushed:
        return "not determined: a wrench acts on the tool"
    if has_imperfect_knowledge(run.setup):
        return (
            f"not determined: the model of {controller} differs from the plant, or {controller} measures "
            "through sensors, which changes the error by an unknown amount"
        )
    if controller == EXACT:
        return _diagnose_exact(run, failed)
    return _diagnose_by_comparison(run, runs)


def has_imperfect_knowledge(setup: Setup) -> bool:
    """Return whether the controller's model differs from the plant, or the controller uses sensors."""
    other_arm = setup.controller_drives != setup.drives or setup.model_payload is not None
    return setup.sensors is not None or other_arm or bool(setup.changes)


def _diagnose_exact(run: Run, failed: list[str]) -> str:
    """Return the cause of a failure under computed torque with an exact model."""
    if TORQUE_CHECK in failed:
        joints = _saturated(run)
        return (
            f"the torque limits in the robot's file{joints}, the motion, or a bandwidth too high for the "
            "period" + _check_model(run.setup.robot, "shows the limits")
        )
    if any(part in metric.name for metric in run.metrics for part in ENGINE_CHECKS):
        return (
            f"the law of {EXACT}, the scenario or its limits; not the robot's file, on which PyBullet and "
            "the analytic model agree in every step"
        )
    return "not determined: no check compares PyBullet with the model" + _check_model(
        run.setup.robot, "compares the two on the robot alone"
    )


def _diagnose_by_comparison(run: Run, runs: Sequence[Run]) -> str:
    """Return the cause of a failure under another controller, by comparison with computed torque."""
    # Without settings of the other controller, which computed torque may lack.
    exact = dataclasses.replace(
        run, task=run.task.with_setup(controller=EXACT, law_settings=(), learned=None)
    )
    compared = next((other for other in runs if other.name == exact.name), None)
    if compared is None:
        return (
            "not determined. This command shows whether the arm can follow the motion at all: "
            f"{repeat_command(exact)}"
        )
    if compared.passes:
        return (
            f"the controller or its gains: {EXACT}, which knows the arm's dynamics, passes every check in "
            "the same motion, so that the robot's file and the scenario are correct. Try "
            f"{_other_gains(run)}a slower motion"
        )
    return f"not determined: {EXACT} fails in the same motion, too, so that its cause comes first"


def _other_gains(run: Run) -> str:
    """Return the advice to change the bandwidth; "" for a controller that takes none."""
    setup = run.setup
    if "bandwidth" not in controllers.settings(setup.controller):
        return ""
    return f"{setup.controller} with another --bandwidth than {setup.bandwidth:g} rad/s, or "


def _saturated(run: Run) -> str:
    """Return the joints whose torque was saturated, with their limits, in parentheses."""
    figures = run.figures
    if figures is None:
        return ""
    kinds, limits = figures.joint_kinds, figures.torque_limit
    saturated = [
        f"{name}: {limits[joint]:.4g} {joint_unit(kinds[joint], 'torque')}"
        for joint, name in enumerate(figures.joint_names)
        if figures.saturated_samples[joint]
    ]
    return f" ({', '.join(saturated)})" if saturated else ""


def _check_model(robot: str, purpose: str) -> str:
    """Return a sentence on the command that checks a robot's file; "" for a robot of this project."""
    if Path(robot).suffix.lower() not in (".urdf", ".toml") and not Path(robot).is_dir():
        return ""
    return f". {shlex.join(['irb-twin', 'check-model', robot])} {purpose}"
