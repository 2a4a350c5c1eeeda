"""A scenario whose law has fixed gains, which are searched: what the settings file of a law would say.

In a sweep `law.Kp` is a factor on gains that the law derives anew for every draw, where it is told the
payload of that draw.  Gains in a file are the same whatever comes.  So here a factor is one on the gains that
the law derives with nominal values, and they stay what they are in all draws.

Default gains and tuned ones are then compared under the same draws: those that were tuned on, and fresh ones.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scenarios.base import Config
from scenarios.cli.arguments import WrongUse
from scenarios.running.registry import Scenario
from scenarios.sweeping.execute import Means, WorstCase, nominal_run, run_all, worst_of
from scenarios.sweeping.findings import Findings, findings
from scenarios.sweeping.plan import SEED, Law, Plan, points_of
from scenarios.sweeping.scenario_experiment import ScenarioExperiment
from twin.errors import VariationError
from twin.sweeps.design import Design, Points, parse_variation
from twin.sweeps.robot_quantities import unknown
from twin.sweeps.trial import Trial
from twin.sweeps.tuning import Gain, Of, Tuning, judged

LAW = "law."
TIMES = 10.0
"""Gains are searched from their default over this to their default times this."""


class TunedLaw:
    """A scenario as an `Experiment` in which the settings of the law vary as `irb-twin run` takes them.

    The names: `law.Kp`, of a vector a factor on all joints, of a number what it is.  All others are those of
    the scenario.

    Args:
        scenario: with the law, and what does not vary.
    """

    def __init__(self, scenario: ScenarioExperiment) -> None:
        self.scenario = scenario
        self.numbers = scenario.law_numbers()

    def nominal(self, name: str) -> float:
        """See `twin.sweeps.trial.Experiment`."""
        if not name.startswith(LAW):
            return self.scenario.nominal(name)
        value = self._number(name)
        return value if isinstance(value, float) else 1.0

    def trial(self, values: Mapping[str, float]) -> Trial:
        """See `twin.sweeps.trial.Experiment`."""
        return self.scenario.trial_of(self.config(values))

    def config(self, values: Mapping[str, float]) -> Config:
        """The settings of one run, as `irb-twin run` takes them."""
        others = {name: value for name, value in values.items() if not name.startswith(LAW)}
        gains = {name: value for name, value in values.items() if name.startswith(LAW)}
        config = self.scenario.config(others)
        settings = dict(config.law_settings) | self.settings(gains)
        return dataclasses.replace(config, law_settings=tuple(settings.items()))

    def settings(self, gains: Mapping[str, float]) -> dict[str, Any]:
        """The settings of the law that stand for these gains, by their names.

        Raises:
            UnknownNameError: the law has no such setting.
        """
        found: dict[str, Any] = {}
        for name, value in gains.items():
            nominal = self._number(name)
            if isinstance(nominal, np.ndarray):
                found[name.removeprefix(LAW)] = tuple((value * nominal).tolist())
            else:
                found[name.removeprefix(LAW)] = float(value)
        return found

    def _number(self, name: str) -> float | np.ndarray:
        """The setting that a name stands for, where nothing varies."""
        setting = name.removeprefix(LAW)
        if setting not in self.numbers:
            raise unknown(setting, f"controller {self.scenario.settings.controller!r}", self.numbers)
        return self.numbers[setting]


def chosen_gains(law: TunedLaw, words: Sequence[str]) -> tuple[Gain, ...]:
    """What is to be searched.

    Args:
        law: whose settings they are.
        words: `Kp=0.5:20` or `Kp`; none for all settings that are numbers above 0, but for the bandwidth
            where there are others.

    Raises:
        UnknownNameError: the law has no such setting.
        VariationError: a range that is none, is empty or reaches 0; a gain twice.
        WrongUse: there is nothing to search.
    """
    if not law.numbers:
        raise WrongUse(f"{law.scenario.settings.controller} has no setting that is a number: nothing to tune")
    if not words:
        positive = [name for name, value in law.numbers.items() if np.all(np.asarray(value) > 0)]
        words = [name for name in positive if name != "bandwidth"] or positive
        if not words:
            raise WrongUse(
                f"none of {', '.join(law.numbers)} is above 0 by default: name what is to be tuned, and its "
                "range, as --gains NAME=0.1:10"
            )
    return tuple(_gain(law, word) for word in words)


def _gain(law: TunedLaw, word: str) -> Gain:
    """The gain of one word."""
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
        raise VariationError(f"cannot search {name} in {text!r}: a range of factors has to stay above 0")
    return low, high


DEFAULT, TUNED = "default gains", "tuned gains"


@dataclass(frozen=True)
class Task:
    """What is tuned, and for what.

    Attributes:
        scenario: what is run.
        law: whose gains are searched.
        design: of the draws that are tuned on.
        limits: what figures may be.
        minimise: the figure that is minimised.
        of: its worst or its mean.
        fresh: number of fresh draws.
    """

    scenario: Scenario
    law: TunedLaw
    design: Design
    limits: dict[str, float]
    minimise: str
    of: Of
    fresh: int

    @property
    def points(self) -> Points:
        """The draws that are tuned on."""
        return points_of(self.law.scenario, self.design)

    @property
    def fresh_design(self) -> Design | None:
        """Of the fresh draws, with the next seed; `None` where nothing is random."""
        design = dataclasses.replace(self.design, samples=self.fresh, seed=self.design.seed + 1)
        return design if design.is_random or SEED in self.points.names else None

    def fresh_points(self, design: Design) -> Points:
        """The fresh draws; their noise is fresh, too."""
        points, before = points_of(self.law.scenario, design), self.points
        if SEED in points.names and SEED not in {one.name for one in design.variations}:
            points.values[:, points.names.index(SEED)] += before.draw[-1] + 1
        return points

    def tuned(self, tuning: Tuning) -> ScenarioExperiment:
        """The scenario with the gains that were found."""
        own = self.law.scenario
        config = self.law.config(tuning.values)
        return ScenarioExperiment(own.scenario, config, tool_error=own.tool_error, engine=own.engine)


class Side(NamedTuple):
    """What became of one set of gains under some draws.

    Attributes:
        found: its findings.
        failing: number of runs that do not hold.
        figure: of the search, over its runs.
        worst: the worst runs that were done again in PyBullet.
    """

    found: Findings
    failing: int
    figure: float
    worst: list[WorstCase]


class Compared(NamedTuple):
    """Default gains and tuned ones under the same draws."""

    plan: Plan
    default: Side
    tuned: Side


def compared(
    task: Task, tuning: Tuning, points: Points, design: Design, means: Means, tell: Callable[[int], None],
    again: int = 0,
) -> Compared:  # fmt: skip
    """Run the default gains and the tuned ones under the same draws.

    Args:
        task: what was tuned.
        tuning: what was found.
        points: the draws.
        design: which they are of.
        means: how they are run.
        tell: called with the number of runs that are done.
        again: so many of the worst runs of each are done again in PyBullet.
    """
    laws = (
        Law(DEFAULT, task.law.scenario, points),
        Law(TUNED, task.tuned(tuning), points),
    )
    plan = Plan(task.scenario, laws, design, task.limits, task.minimise)
    nominals = [nominal_run(plan, law, means.engine) for law in laws]
    swept = run_all(plan, nominals, means, tell)
    sides = [
        Side(
            findings(one),
            *judged(one.table, task.minimise, task.of),
            worst_of(task.scenario, law, one, again),
        )
        for law, one in zip(laws, swept, strict=True)
    ]
    return Compared(plan, *sides)
