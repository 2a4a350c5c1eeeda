"""One scenario carried out with one setting, and what came of it."""

from __future__ import annotations

import dataclasses
import shlex
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import controllers
from scenarios.base import Config, Metric
from scenarios.checks.drive_load import friction_metrics
from scenarios.checks.motion_range import arm_metrics
from scenarios.checks.replay import with_spans
from scenarios.cli.arguments import fields, flag
from scenarios.metric import Outcome
from scenarios.running.registry import OwnTable, Scenario, scenario_argument_text
from twin.errors import (
    DivergenceError,
    PluginError,
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
    """A run: its scenario's name, its settings, the log, the metrics and the time it took, in [s].

    `error` says why a run that could not finish did not; `log` is then what there was of it, at least one
    sample or `None`.  `refused` is a run whose settings the scenario, the robot or the path cannot meet.
    `table` is what the scenario adds, if anything: its caption and its rows of texts, headings first.
    `label` is what tables and files call the controller, `file` the scenario's.  `figures` are the log's, and
    stay where a run is kept without its log.  `touched` is a run that a person changed at the window.
    `tracking` says how its tracking error was judged; `None` where the run is not about one, or has none.
    """

    scenario: str
    config: Config
    log: Log | None
    metrics: tuple[Metric, ...]
    seconds: float
    error: str | None = None
    refused: bool = False
    table: OwnTable | None = None
    label: str = ""
    file: str = ""
    figures: Figures | None = None
    touched: bool = False
    tracking: TrackingVerdict | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or controllers.label(self.config.controller))
        if self.figures is None and self.log is not None:
            object.__setattr__(self, "figures", figures_of(self.log))

    @property
    def name(self) -> str:
        """What tells it from other runs, as `irb140, pose_path, pd, bandwidth 30.0`."""
        return run_name(self.scenario, self.config)

    @property
    def passes(self) -> bool:
        """Whether the run finished and every metric keeps its limit."""
        return self.error is None and all(metric.passes for metric in self.metrics)

    @property
    def outcome(self) -> Outcome:
        """The worst of its checks; where all pass, how its tracking was judged."""
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
        """The drives of the robot, and those that the controller believed in."""
        if self.figures is None:
            return self.config.drives, self.config.controller_drives
        return self.figures.drives, self.figures.model_drives

    @property
    def settings(self) -> dict[str, object]:
        """The settings that differ from the scenario's defaults, the controller aside."""
        return changed_settings(self.config)

    def without_log(self) -> Run:
        """The same run, but for its log: its figures remain."""
        return dataclasses.replace(self, log=None)


def run_name(scenario: str, config: Config) -> str:
    """What tells a run from others: robot, scenario, controller, and the settings that are no defaults."""
    settings = (f"{name} {value}" for name, value in changed_settings(config).items() if name != "robot")
    return ", ".join((config.robot, scenario, config.controller, *settings))


def changed_settings(config: Config) -> dict[str, object]:
    """The settings that are no defaults, the controller aside; the law's own, and the changes."""
    return {
        item.name: getattr(config, item.name)
        for item in dataclasses.fields(config)
        if "help" in item.metadata
        and item.name != "controller"
        and getattr(config, item.name) != item.default
    } | dict((*config.law_settings, *config.changes))


def run_one(scenario: Scenario, config: Config, progress: Callable[[float], None] | None = None) -> Run:
    """Run a scenario once and evaluate it; whatever goes wrong is a result, not an exception.

    Args:
        scenario: what to run.
        config: its settings.
        progress: called with the fraction done.
    """
    from scenarios.running.tracking_verdict import tracking_verdict

    start = time.perf_counter()
    log, metrics, table, tracking = None, (), None, None
    fault, refused, touched = None, False, False
    try:
        if scenario.fault is not None:
            raise scenario.fault
        if config.changes:
            scenario.require_closed_loop()
        log = _sound(scenario.run(dataclasses.replace(config, progress=progress)), scenario)
        metrics = with_spans(judged(scenario, config, log), log, partial(judged, scenario, config))
        tracking = tracking_verdict(config, log, metrics)
        table = scenario.table(log) if scenario.table else None
    except (DivergenceError, TouchedError) as error:
        fault, log = describe_error(error), log or _what_there_was(error)
        touched = isinstance(error, TouchedError)
    except PluginError as error:
        fault = describe_error(error)
    except BaseException as error:
        if is_interrupt(error):
            raise
        law = _law_that_failed(error)
        refused = log is None and isinstance(error, (TwinError, ValueError)) and not law
        fault = (
            describe_error(error)
            if refused
            else describe_error_with_location(error, law or scenario.file, *plugin_files())
        )
    seconds = time.perf_counter() - start
    config = dataclasses.replace(config, beside=())
    return Run(
        scenario.name, config, log, metrics, seconds, fault, refused, table,
        file=scenario.file, touched=touched, tracking=tracking,
    )  # fmt: skip


def judged(scenario: Scenario, config: Config, log: Log) -> tuple[Metric, ...]:
    """Return every check of a run: the scenario's, those of every run, and what `--limit` asks for.

    Raises:
        PluginError: the scenario's checks are none, or cannot be told apart.
    """
    from scenarios.running.tracking_verdict import limited

    metrics = _sound_metrics(scenario.metrics(log), scenario)
    of_every_run = (*friction_metrics(log), *arm_metrics(log, scenario.leaves_limits))
    metrics = _sound_metrics((*metrics, *of_every_run), scenario)
    return limited(metrics, log, config.limits)


def _law_that_failed(error: BaseException) -> str:
    """The file of a `ControlLaw`'s function that an error came from; empty if it came from elsewhere.

    A law that is called fails by any kind of error, a `ValueError` of NumPy's among them, which would
    otherwise count as a setting that is refused.
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


def _sound(log: Any, scenario: Scenario) -> Log:
    """What `run` returned, if it is a log that can be evaluated."""
    from twin.logs.log import Log

    if not isinstance(log, Log):
        raise PluginError(f"{scenario.file}: run must return a Log, got {log!r}")
    try:
        log.require_consistent()
    except (TwinError, ValueError) as error:
        raise PluginError(f"{scenario.file}: run returned a log that cannot be: {error}") from error
    return log


def _sound_metrics(metrics: Any, scenario: Scenario) -> tuple[Metric, ...]:
    """What `metrics` returned, if it is a list of metrics that can be told apart."""
    if not isinstance(metrics, (tuple, list)):
        raise PluginError(f"{scenario.file}: metrics must return a tuple or list, got {metrics!r}")
    seen = set()
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise PluginError(f"{scenario.file}: each of metrics must return a Metric, got {metric!r}")
        if metric.name in seen:
            raise PluginError(f"{scenario.file}: metrics has more than one Metric named {metric.name!r}")
        seen.add(metric.name)
    return tuple(metrics)


def _what_there_was(error: DivergenceError | TouchedError) -> Log | None:
    """The log of a run that ended early, if it has a sample."""
    from twin.logs.log import Log

    return error.log if isinstance(error.log, Log) and len(error.log.t) > 0 else None


def repeat_command(run: Run) -> str:
    """The `irb-twin run` command of one run: scenario, controller, and every setting that is not a default.

    Files are named as they were, relative to the current folder; words are quoted for a POSIX shell.
    """
    words = [
        "irb-twin",
        "run",
        scenario_argument_text(run.file, run.scenario),
        *_option("--controller", run.config.controller),
    ]
    for name, item in fields(type(run.config)).items():
        value = getattr(run.config, name)
        if name == "controller" or value == item.default:
            continue
        if isinstance(value, bool):
            words.append(flag(name) if value else flag(name).replace("--", "--no-", 1))
        elif value is not None:  # which no option can say
            words += _option(flag(name), _text(value))
    if run.config.law_settings:
        words += ["--set", *(f"{name}={_text(value)}" for name, value in run.config.law_settings)]
    if run.config.changes:
        words += ["--with", *(f"{name}={_text(value)}" for name, value in run.config.changes)]
    if run.config.limits:
        words += ["--limit", *(f"{name}={_text(value)}" for name, value in run.config.limits)]
    return shlex.join(words)


def _option(name: str, text: str) -> list[str]:
    """An option and its value; one that begins with a dash is no option of its own."""
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def _text(value: Any) -> str:
    """A value as it is typed: numbers with all their digits, several with commas between."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return repr(value)
