"""A scenario whose law has fixed gains, which are searched: what the settings file of a law would say.

In a sweep `law.Kp` is a factor on gains that the law derives anew for every draw, where it is told the
payload of that draw.  Gains in a file are the same whatever comes.  So here a factor is one on the gains that
the law derives with nominal values, and they stay what they are in all draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scenarios.base import Config
from scenarios.cli.arguments import WrongUse
from scenarios.sweeping.scenario_experiment import ScenarioExperiment
from twin.errors import VariationError
from twin.sweeps.design import parse_variation
from twin.sweeps.robot_quantities import unknown
from twin.sweeps.trial import Trial
from twin.sweeps.tuning import Gain

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
