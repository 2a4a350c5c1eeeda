"""Execution of one scenario with one set of settings, and its result."""

from __future__ import annotations

import dataclasses
import shlex
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.base import Config, Metric
from scenarios.checks.drive_load import friction_metrics
from scenarios.checks.motion_range import arm_metrics
from scenarios.checks.replay import with_spans
from scenarios.cli.arguments import fields, flag
from scenarios.metric import Outcome
from scenarios.running.registry import HERE, Scenario, ScenarioTable, scenario_argument_text
from twin.errors import (
    DivergenceError,
    PluginError,
    RapidError,
    TouchedError,
    TwinError,
    describe_error,
    describe_error_with_location,
    is_interrupt,
)
from twin.logs.figures import Figures, figures_of
from twin.plugins import plugin_files

if TYPE_CHECKING:
    from scenarios.running.tracking_verdict import TrackingVerdict
    from twin.logs.log import Log


@dataclass(frozen=True, eq=False)
class Run:
    """Result of one run.

    Attributes:
        scenario: name of the scenario.
        config: settings of the run.
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
        file: path of the scenario's file.
        figures: figures of the log; they remain in a run without its log.
        touched: whether a person changed the run at the window.
        tracking: verdict on the tracking error; `None` if the run has no tracking error.
        cell: file of the cell of the run and the names of the settings that are from it; empty without one.
    """

    scenario: str
    config: Config
    log: Log | None
    metrics: tuple[Metric, ...]
    seconds: float
    error: str | None = None
    refused: bool = False
    raised: str = ""
    table: ScenarioTable | None = None
    cases: tuple[tuple[str, str, float, str], ...] = ()
    label: str = ""
    file: str = ""
    figures: Figures | None = None
    touched: bool = False
    tracking: TrackingVerdict | None = None
    cell: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or controllers.label(self.config.controller))
        if self.figures is None and self.log is not None:
            object.__setattr__(self, "figures", figures_of(self.log))

    @property
    def name(self) -> str:
        """Unique name of the run, as `irb140, pose_path, pd, bandwidth 30.0`."""
        return run_name(self.scenario, self.config)

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
            return self.config.drives, self.config.controller_drives
        return self.figures.drives, self.figures.model_drives

    @property
    def settings(self) -> dict[str, object]:
        """Settings that differ from the scenario's defaults, except the controller."""
        return changed_settings(self.config)

    def without_log(self) -> Run:
        """Return the run without its log; the figures remain."""
        return dataclasses.replace(self, log=None)


def run_name(scenario: str, config: Config) -> str:
    """Return the unique name of a run: robot, scenario, controller, and settings that are not defaults."""
    settings = (f"{name} {value}" for name, value in changed_settings(config).items() if name != "robot")
    return ", ".join((config.robot, scenario, config.controller, *settings))


def changed_settings(config: Config) -> dict[str, object]:
    """Return the settings that are not defaults, except the controller, with its settings and the changes."""
    return {
        item.name: getattr(config, item.name)
        for item in dataclasses.fields(config)
        if "help" in item.metadata
        and item.name != "controller"
        and getattr(config, item.name) != item.default
    } | dict((*config.law_settings, *config.changes))


def run_one(scenario: Scenario, config: Config, progress: Callable[[float], None] | None = None) -> Run:
    """Run a scenario once, evaluate it and return the result; every error becomes part of the result.

    Args:
        scenario: scenario to run.
        config: settings of the run.
        progress: function called with the fraction done.
    """
    from scenarios.running.tracking_verdict import tracking_verdict

    start = time.perf_counter()
    log, metrics, table, cases, tracking = None, (), None, (), None
    fault, refused, raised, touched = None, False, "", False
    try:
        if scenario.fault is not None:
            raise scenario.fault
        if config.changes:
            scenario.require_closed_loop()
        log = _valid_log(scenario.run(dataclasses.replace(config, progress=progress)), scenario)
        metrics = with_spans(judged(scenario, config, log), log, partial(judged, scenario, config))
        tracking = tracking_verdict(config, log, metrics)
        table, cases = scenario.table(log) if scenario.table else None, tuple(scenario.cases(log))
    except (DivergenceError, TouchedError) as error:
        fault, log = describe_error(error), log or _partial_log(error)
        touched = isinstance(error, TouchedError)
    except PluginError as error:
        fault, raised = describe_error(error), _raised_in(error, scenario)
    except BaseException as error:
        if is_interrupt(error):
            raise
        law = _file_of_failed_controller(error)
        program_fault = isinstance(error, RapidError)
        refused = log is None and isinstance(error, (TwinError, ValueError)) and not law and not program_fault
        raised = "" if refused else _raised_in(error, scenario)
        fault = (
            describe_error(error)
            if refused or program_fault
            else describe_error_with_location(error, law or scenario.file, *plugin_files())
        )
    seconds = time.perf_counter() - start
    config = dataclasses.replace(config, beside=())
    return Run(
        scenario.name, config, log, metrics, seconds, fault, refused, raised, table, cases,
        file=scenario.file, touched=touched, tracking=tracking,
    )  # fmt: skip


def judged(scenario: Scenario, config: Config, log: Log) -> tuple[Metric, ...]:
    """Return every check of a run: of the scenario, of every run, and of `--limit`.

    Raises:
        PluginError: the scenario's checks are not a list of metrics with unique names.
    """
    from scenarios.running.tracking_verdict import limited

    metrics = _valid_metrics(scenario.metrics(log), scenario)
    of_every_run = (*friction_metrics(log), *arm_metrics(log, scenario.leaves_limits))
    metrics = _valid_metrics((*metrics, *of_every_run), scenario)
    return limited(metrics, log, config.limits)


def _raised_in(error: BaseException, scenario: Scenario) -> str:
    """Return whose code raised an error: the last frame of the user's files in its traceback, or of all."""
    if isinstance(error, RapidError):
        return "the program"
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    theirs = [frame for frame in frames if frame.filename in user_files(scenario)]
    if isinstance(error, PluginError) and not theirs:
        return "the file or the name that the error states"
    frame = (theirs or frames)[-1]
    whose = "the code of" if theirs else "the twin: the code of"
    return f"{whose} {frame.filename}, line {frame.lineno}, in {frame.name}, raised the error"


def user_files(scenario: Scenario) -> set[str]:
    """Return the loaded files of the user: scenarios, controllers and the scenario itself."""
    ours = Path(scenario.file).is_relative_to(HERE)
    return {*plugin_files(), *([] if ours else [scenario.file])}


def _file_of_failed_controller(error: BaseException) -> str:
    """Return the file of the `ControlLaw` function that raised an error; "" if another function raised it.

    A controller can fail with any kind of error. Without this distinction, a `ValueError` of NumPy would
    count as a rejected setting.
    """
    calls = traceback.extract_tb(error.__traceback__)
    return next(
        (
            called.filename
            for call, called in pairwise(calls)
            if call.name == "__call__" and call.filename.endswith("control_law.py")
        ),
        "",
    )


def _valid_log(log: Any, scenario: Scenario) -> Log:
    """Return the result of `run`; raise PluginError if it is not a consistent log."""
    from twin.logs.log import Log

    if not isinstance(log, Log):
        raise PluginError(f"{scenario.file}: run must return a Log, got {log!r}")
    try:
        log.require_consistent()
    except (TwinError, ValueError) as error:
        raise PluginError(f"{scenario.file}: run returned an inconsistent log: {error}") from error
    return log


def _valid_metrics(metrics: Any, scenario: Scenario) -> tuple[Metric, ...]:
    """Return the result of `metrics`; raise PluginError unless it is a list of metrics with unique names."""
    if not isinstance(metrics, (tuple, list)):
        raise PluginError(f"{scenario.file}: metrics must return a tuple or list, got {metrics!r}")
    seen = set()
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise PluginError(f"{scenario.file}: metrics must return a Metric, got {metric!r}")
        if metric.name in seen:
            raise PluginError(f"{scenario.file}: metrics returned more than one Metric named {metric.name!r}")
        seen.add(metric.name)
    return tuple(metrics)


def _partial_log(error: DivergenceError | TouchedError) -> Log | None:
    """Return the log of a run that ended early, if it has at least one sample."""
    from twin.logs.log import Log

    return error.log if isinstance(error.log, Log) and len(error.log.t) > 0 else None


def repeat_command(run: Run) -> str:
    """Return the `irb-twin run` command of one run, with every setting that is not a default.

    Paths of files are those of the run, relative to the current folder. Arguments are quoted for a POSIX
    shell.
    """
    words = [
        "irb-twin",
        "run",
        scenario_argument_text(run.file, run.scenario),
        *_option("--controller", run.config.controller),
    ]
    for name, item in fields(type(run.config)).items():
        value = getattr(run.config, name)
        if name == "controller" or value == item.default or name in run.cell[1:]:
            continue
        if isinstance(value, bool):
            words.append(flag(name) if value else flag(name).replace("--", "--no-", 1))
        elif value is not None:  # no option can express None
            words += _option(flag(name), _text(value))
    if run.cell:
        words += ["--cell", run.cell[0]]
    if run.config.law_settings:
        words += ["--set", *(f"{name}={_text(value)}" for name, value in run.config.law_settings)]
    if run.config.changes:
        words += ["--with", *(f"{name}={_text(value)}" for name, value in run.config.changes)]
    if run.config.limits:
        words += ["--limit", *(f"{name}={_text(value)}" for name, value in run.config.limits)]
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
