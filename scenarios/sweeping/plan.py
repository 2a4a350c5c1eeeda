"""What a sweep is to run: laws, variations, points; checked before anything is run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scenarios.cli.arguments import WrongUse
from twin.sweeps.design import Design, Points, Variation, parse_variation
from twin.sweeps.running import columns
from twin.sweeps.trial import FIGURES

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.sweeping.scenario_experiment import ScenarioExperiment

SEED = "seed"
"""The setting that noise is drawn from: every draw has one of its own."""


class Law(NamedTuple):
    """A law of the sweep: what it is called, its experiment, and the points to run."""

    label: str
    experiment: ScenarioExperiment
    points: Points


@dataclass(frozen=True)
class Plan:
    """A sweep, before it is run.

    Attributes:
        scenario: what is run.
        laws: each with the same draws.
        design: how the draws lie.
        limits: what figures may be.
        figure: what the worst cases are the worst of.
    """

    scenario: Scenario
    laws: tuple[Law, ...]
    design: Design
    limits: Mapping[str, float]
    figure: str

    @property
    def variations(self) -> tuple[Variation, ...]:
        """What varies."""
        return tuple(self.design.variations)

    @property
    def names(self) -> tuple[str, ...]:
        """Of what varies, as columns of the table."""
        return columns(variation.name for variation in self.variations)

    @property
    def grid(self) -> tuple[str, ...]:
        """Those that lie on a grid."""
        return self._names_of("grid")

    @property
    def decades(self) -> tuple[str, ...]:
        """Those of which each decade is as likely as the next."""
        return self._names_of("log-uniform")

    def _names_of(self, kind: str) -> tuple[str, ...]:
        named = zip(self.names, self.variations, strict=True)
        return tuple(name for name, variation in named if variation.kind == kind)

    @property
    def runs(self) -> int:
        """Number of all runs."""
        return sum(len(law.points.values) for law in self.laws)

    def told(self) -> str:
        """`2000 draws x 8 points of the grid x 2 laws = 32000 runs`."""
        parts = [f"{self.design.draws} draw{'s' * (self.design.draws != 1)}"]
        if self.grid:
            parts.append(f"{self.design.grid_points} points of the grid")
        if len(self.laws) > 1:
            parts.append(f"{len(self.laws)} laws")
        return f"{' x '.join(parts)} = {self.runs} runs" if len(parts) > 1 else f"{self.runs} runs"


def variations(words: Sequence[str]) -> tuple[Variation, ...]:
    """What varies, as `payload=0:6` says it.

    Raises:
        WrongUse: there is nothing, or a word has no `=`.
        VariationError: a text is none of the forms.
    """
    if not words:
        raise WrongUse("say what varies, as --vary payload=0:6; --list tells what can")
    found = []
    for word in words:
        name, sign, text = word.partition("=")
        if not (sign and name and text):
            raise WrongUse(f"--vary {word}: expected NAME=TEXT, as payload=0:6 or drives.coulomb=+-50%")
        found.append(parse_variation(name, text))
    return tuple(found)


def limits(words: Sequence[str]) -> dict[str, float]:
    """What figures may be, as `joint_error=0.01` says it.

    Raises:
        WrongUse: there is no such figure, or no number.
    """
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in FIGURES:
            raise WrongUse(f"--limit {word}: there is no figure {name!r}: known are {', '.join(FIGURES)}")
        try:
            found[name] = float(text)
        except ValueError:
            raise WrongUse(f"--limit {word}: expected FIGURE=NUMBER, as joint_error=0.01") from None
        if not found[name] >= 0:
            raise WrongUse(f"--limit {word}: expected a number of at least 0")
    return found


def points_of(experiment: ScenarioExperiment, design: Design) -> Points:
    """The points of one law: all have the same draws, about the nominal values of its own.

    Where anything is measured with noise, each draw has a seed of its own, so that noise is one of its
    circumstances.

    Raises:
        UnknownNameError: nothing has a quantity of that name.
        VariationError: it cannot vary, or not like that.
    """
    names = [variation.name for variation in design.variations]
    points = design.points({name: experiment.nominal(name) for name in names})
    noisy = experiment.settings.noise > 0 or "noise" in names
    if not noisy or SEED in names:
        return points
    seeds = experiment.settings.seed + points.draw.astype(float)
    return points._replace(
        names=(*points.names, SEED), values=np.concatenate([points.values, seeds[:, None]], axis=1)
    )


def nominal_values(experiment: ScenarioExperiment, design: Design) -> dict[str, float]:
    """The values where nothing varies, of all that has a number by default."""
    found = {variation.name: experiment.nominal(variation.name) for variation in design.variations}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def values_of(points: Points, place: int) -> dict[str, float]:
    """The values of one point by their names."""
    return dict(zip(points.names, points.values[place].tolist(), strict=True))
