"""One scenario carried out with one setting, and what came of it."""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scenarios.base import Config, Metric
from scenarios.registry import Scenario
from twin.errors import DivergenceError, TwinError

if TYPE_CHECKING:
    from twin.log import Log


@dataclass(frozen=True, eq=False)
class Run:
    """A run: its scenario's name, its settings, the log, the metrics and the time it took, in [s].

    `error` says why a run that could not finish did not; `log` is then what there was of it, at least one
    sample or `None`.
    """

    scenario: str
    config: Config
    log: Log | None
    metrics: tuple[Metric, ...]
    seconds: float
    error: str | None = None

    @property
    def holds(self) -> bool:
        """Whether the run finished and every metric keeps its limit."""
        return self.error is None and all(metric.holds for metric in self.metrics)

    @property
    def settings(self) -> dict[str, object]:
        """The settings that differ from the scenario's defaults, the controller aside."""
        return {
            item.name: getattr(self.config, item.name)
            for item in dataclasses.fields(self.config)
            if "help" in item.metadata
            and item.name != "controller"
            and getattr(self.config, item.name) != item.default
        }


def carry_out(scenario: Scenario, config: Config, progress: Callable[[float], None] | None = None) -> Run:
    """Run a scenario once and evaluate it; a divergence is a result, not an exception.

    Args:
        scenario: what to run.
        config: its settings.
        progress: called with the fraction done.

    Raises:
        TwinError: for a setting that the robot or the path cannot meet; for a fault of the scenario itself.
        ValueError: for a setting that makes no sense.
    """
    from twin.log import Log

    start = time.perf_counter()
    try:
        log = _expected(scenario.run(dataclasses.replace(config, progress=progress)), Log, scenario, "run")
        metrics = _expected(scenario.metrics(log), (tuple, list), scenario, "metrics")
        for metric in metrics:
            _expected(metric, Metric, scenario, "each of metrics")
    except DivergenceError as error:
        log = error.log if error.log is not None and len(error.log.t) > 0 else None
        return Run(scenario.name, config, log, (), time.perf_counter() - start, str(error))
    except (TwinError, ValueError):
        raise
    except Exception as error:  # whatever the code of a scenario does wrong
        raise TwinError(f"{_place(error, scenario)}: {type(error).__name__}: {error}") from error
    return Run(scenario.name, config, log, tuple(metrics), time.perf_counter() - start)


def _expected(value: Any, kind: type | tuple[type, ...], scenario: Scenario, what: str) -> Any:
    """The value, if it is what a scenario must return."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(known.__name__ for known in kinds)
        raise TwinError(f"{scenario.file}: {what} must return a {wanted}, got {value!r}")
    return value


def _place(error: Exception, scenario: Scenario) -> str:
    """The last line of the scenario's own file that an error passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == scenario.file]
    return f"{scenario.file}, line {own[-1].lineno}" if own else scenario.file


def carry_out_regardless(scenario: Scenario, config: Config) -> Run:
    """As `carry_out`, for a table of many runs: whatever the robot cannot meet becomes a failed run.

    A `ValueError` too, of a robot that a scenario did not think of: the other runs still count.
    """
    start = time.perf_counter()
    try:
        return carry_out(scenario, config)
    except (TwinError, ValueError) as error:
        return Run(scenario.name, config, None, (), time.perf_counter() - start, str(error))
