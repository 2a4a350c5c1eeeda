"""Scenario in which the gains of the controller are searched as fixed settings.

In a sweep, `law.Kp` is a factor on gains that the controller may compute from the payload of each draw.
Gains in a settings file are the same for all payloads.  So a factor here multiplies the gains that the
controller computes for nominal values, and the result is used in all draws.

The default gains and the tuned gains are then compared on the same draws: those of the search, and fresh
    ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.running.registry import Entry, Task
from scenarios.studies.sweeps.draws import WorstCase, nominal_run, run_all, worst_of
from scenarios.studies.sweeps.findings import Findings, findings
from scenarios.studies.sweeps.law_quantities import varied
from scenarios.studies.sweeps.plan import SEED, Law, SweepPlan, points_of
from scenarios.studies.sweeps.scenario_experiment import LAW, ScenarioExperiment
from twin.base.errors import VariationError, WrongUse
from twin.physics.robot.quantities import unknown
from twin.studies.sweeps.design import Design, Points, parse_variation
from twin.studies.sweeps.trial import Trial
from twin.studies.sweeps.tuning import Gain, Of, Tuning, judged

if TYPE_CHECKING:
    from scenarios.studies.sweeps.command import MeansOptions

TIMES = 10.0
"""Factor between the default of a gain and each end of its search range."""


class TunedLaw:
    """Scenario as an `Experiment` in which the settings of the controller vary, as `irb-twin run` takes them.

    A name such as `law.Kp` is a factor on all joints for a vector, and the value for a scalar.  All other
    names are those of the scenario.

    Args:
        scenario: the scenario with its controller, and the settings that do not vary.
    """

    def __init__(self, scenario: ScenarioExperiment) -> None:
        self.scenario = scenario
        self.numbers = scenario.law_numbers()

    def nominal(self, name: str) -> float:
        """Return a nominal value, see `twin.sweeps.trial.Experiment`."""
        if not name.startswith(LAW):
            return self.scenario.nominal(name)
        value = self._number(name)
        return value if isinstance(value, float) else 1.0

    def trial(self, values: Mapping[str, float]) -> Trial:
        """Return the trial of these values, see `twin.sweeps.trial.Experiment`."""
        return self.scenario.trial_of(self.task_of(values))

    def task_of(self, values: Mapping[str, float]) -> Task:
        """Return the task of one run, as `irb-twin run` takes it."""
        gains = {name: value for name, value in values.items() if name.startswith(LAW)}
        task = self.scenario.task_of({name: values[name] for name in values if name not in gains})
        settings = dict(task.setup.law_settings) | self.settings(gains)
        return task.with_setup(law_settings=tuple(settings.items()))

    def settings(self, gains: Mapping[str, float]) -> dict[str, Any]:
        """Return the settings of the controller with these gains, by name.

        Raises:
            UnknownNameError: the controller has no such setting.
        """
        return {name.removeprefix(LAW): varied(self._number(name), value) for name, value in gains.items()}

    def _number(self, name: str) -> float | np.ndarray:
        """Return the nominal value of the setting that a name refers to."""
        setting = name.removeprefix(LAW)
        if setting not in self.numbers:
            raise unknown(setting, f"controller {self.scenario.setup.controller!r}", self.numbers)
        return self.numbers[setting]


def chosen_gains(law: TunedLaw, words: Sequence[str]) -> tuple[Gain, ...]:
    """Return the gains to search.

    Args:
        law: the controller with its scenario.
        words: gains with or without a range, as `Kp=0.5:20` or `Kp`; empty for all positive settings, without
            the bandwidth if there are others.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: a range is invalid, empty or contains 0; a gain is given twice.
        WrongUse: there is no gain to search.
    """
    if not law.numbers:
        raise WrongUse(f"{law.scenario.setup.controller} has no numeric setting: there is nothing to tune")
    if not words:
        positive = [name for name, value in law.numbers.items() if np.all(np.asarray(value) > 0)]
        words = [name for name in positive if name != "bandwidth"] or positive
        if not words:
            raise WrongUse(
                f"none of {', '.join(law.numbers)} is above 0 by default: name the gains to tune with their "
                "ranges, as --gains NAME=0.1:10"
            )
    return tuple(_gain(law, word) for word in words)


def _gain(law: TunedLaw, word: str) -> Gain:
    """Return the gain of one argument."""
    name, sign, text = word.partition("=")
    name = LAW + name.removeprefix(LAW)
    nominal = law.nominal(name)
    if sign:
        low, high = _range(name, text)
    elif nominal > 0:
        low, high = nominal / TIMES, nominal * TIMES
    else:
        raise VariationError(f"{name} is {nominal:g} by default: give its range, as {name}=0.1:10")
    return Gain(name, low, high)


def _range(name: str, text: str) -> tuple[float, float]:
    variation = parse_variation(name, text)
    if variation.kind not in ("uniform", "log-uniform"):
        raise VariationError(f"cannot search {name} in {text!r}: expected a range, as 0.1:10")
    low, high = variation.numbers
    if not low > 0:
        raise VariationError(f"cannot search {name} in {text!r}: the range must be above 0")
    return low, high


DEFAULT, TUNED = "default gains", "tuned gains"


@dataclass(frozen=True)
class TuningTask:
    """Task of a tuning.

    Attributes:
        scenario: the scenario to run.
        law: the controller whose gains are searched, with its scenario.
        design: sampling of the draws for the search.
        limits: additional limits of quantities.
        minimise: quantity to minimise.
        of: whether its worst value or its mean is minimised.
        fresh: number of fresh draws.
    """

    scenario: Entry
    law: TunedLaw
    design: Design
    limits: dict[str, float]
    minimise: str
    of: Of
    fresh: int

    @property
    def points(self) -> Points:
        """Draws for the search."""
        return points_of(self.law.scenario, self.design)

    @property
    def fresh_design(self) -> Design | None:
        """Sampling of the fresh draws, with the next seed; `None` if nothing is random."""
        design = dataclasses.replace(self.design, samples=self.fresh, seed=self.design.seed + 1)
        return design if design.is_random or SEED in self.points.names else None

    def fresh_points(self, design: Design) -> Points:
        """Return the fresh draws, which have fresh measurement noise, too."""
        points, before = points_of(self.law.scenario, design), self.points
        if SEED in points.names and SEED not in {one.name for one in design.variations}:
            points.values[:, points.names.index(SEED)] += before.draw[-1] + 1
        return points

    def tuned(self, tuning: Tuning) -> ScenarioExperiment:
        """Return the scenario with the tuned gains."""
        scenario = self.law.scenario
        return ScenarioExperiment(
            self.law.task_of(tuning.values), tool_error=scenario.tool_error, loads=scenario.loads,
            engine=scenario.engine,
        )  # fmt: skip


class Side(NamedTuple):
    """Result of one set of gains on some draws.

    Attributes:
        found: the evaluation of its runs.
        failing: number of failing runs.
        figure: the minimised quantity, over its runs.
        worst: the worst runs, which were repeated in PyBullet.
    """

    found: Findings
    failing: int
    figure: float
    worst: list[WorstCase]


class Compared(NamedTuple):
    """Default gains and tuned gains on the same draws."""

    plan: SweepPlan
    default: Side
    tuned: Side


def compared(
    task: TuningTask, tuning: Tuning, points: Points, design: Design, means: MeansOptions,
    progress: Callable[[int], None], repeats: int = 0,
) -> Compared:  # fmt: skip
    """Run the default gains and the tuned gains on the same draws.

    Args:
        task: the tuning task.
        tuning: the result of the search.
        points: the draws.
        design: sampling of these draws.
        means: means of execution.
        progress: function that is called with the number of finished runs.
        repeats: number of the worst runs of each that are repeated in PyBullet.
    """
    laws = (Law(DEFAULT, task.law.scenario, points), Law(TUNED, task.tuned(tuning), points))
    plan = SweepPlan(task.scenario, laws, design, task.limits, task.minimise)
    nominals = [nominal_run(plan, law) for law in laws]
    swept = run_all(plan, nominals, means, progress)
    sides = [
        Side(findings(one), *judged(one.table, task.minimise, task.of), worst_of(law, one, repeats))
        for law, one in zip(laws, swept, strict=True)
    ]
    return Compared(plan, *sides)
