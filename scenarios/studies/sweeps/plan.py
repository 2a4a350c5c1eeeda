"""Plan of a sweep: controllers, variations and points, which are checked before anything is run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.base.errors import WrongUse
from twin.physics.robot.quantities import expand_each
from twin.studies.sweeps.design import Design, Points, Variation, parse_variation
from twin.studies.sweeps.running import columns

if TYPE_CHECKING:
    from scenarios.running.registry import Entry
    from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment

LAW = "law."
SEED = "seed"
"""Setting that seeds the measurement noise: every draw has a different seed."""


class Law(NamedTuple):
    """Controller of the sweep: its label, its experiment, and the points to run."""

    label: str
    experiment: ScenarioExperiment
    points: Points

    def present(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the quantities that this controller has."""
        return tuple(name for name in names if name not in self.experiment.absent)


@dataclass(frozen=True)
class SweepPlan:
    """Plan of a sweep.

    Attributes:
        scenario: the scenario to run.
        laws: the controllers, which have the same draws.
        design: the sampling of the draws.
        limits: additional limits of quantities.
        figure: quantity that ranks the worst cases; `None` for the one that has the limit.
    """

    scenario: Entry
    laws: tuple[Law, ...]
    design: Design
    limits: Mapping[str, float]
    figure: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the varied parameters, as columns of the table."""
        return columns(variation.name for variation in self.design.variations)

    @property
    def grid(self) -> tuple[str, ...]:
        """Names of the parameters on a grid."""
        return self._names_of("grid")

    @property
    def decades(self) -> tuple[str, ...]:
        """Names of the parameters that are uniform in the logarithm."""
        return self._names_of("log-uniform")

    def _names_of(self, kind: str) -> tuple[str, ...]:
        named = zip(self.names, self.design.variations, strict=True)
        return tuple(name for name, variation in named if variation.kind == kind)

    @property
    def runs(self) -> int:
        """Number of all runs."""
        return sum(len(law.points.values) for law in self.laws)

    def size_text(self) -> str:
        """Return the number of runs: `2000 draws x 8 grid points x 2 controllers = 32000 runs`."""
        parts = [f"{self.design.draws} draw{'s' * (self.design.draws != 1)}"]
        if self.grid:
            parts.append(f"{self.design.grid_points} grid points")
        if len(self.laws) > 1:
            parts.append(f"{len(self.laws)} controllers")
        return f"{' x '.join(parts)} = {self.runs} runs" if len(parts) > 1 else f"{self.runs} runs"


def variations(words: Sequence[str], experiment: ScenarioExperiment) -> tuple[Variation, ...]:
    """Read the arguments of `--vary`, such as `payload=0:6`; `:each` gives one variation per axis or link.

    Args:
        words: the arguments.
        experiment: the experiment, of whose settings `work_object.x_mm` stands for `work_object_x_mm`.

    Raises:
        WrongUse: there are none, or an argument has no `=`.
        VariationError: a variation has an invalid form.
    """
    if not words:
        raise WrongUse("nothing varies: give --vary, as --vary payload=0:6; --list shows the valid names")
    found, settings = [], experiment.task.entry.options
    for word in words:
        name, sign, text = word.partition("=")
        if not (sign and name and text):
            raise WrongUse(f"--vary {word}: expected NAME=TEXT, as payload=0:6 or drives.coulomb=+-50%")
        setting = name.replace(".", "_")
        found.append((setting if setting in settings else name, text))
    expanded = expand_each(found, experiment.nominal, lambda: [one.name for one in experiment.quantities()])
    return tuple(parse_variation(*one) for one in expanded)


def mark_absent(experiments: Sequence[ScenarioExperiment], names: Iterable[str]) -> None:
    """Set `absent` of each experiment: the settings `law.NAME` that its controller lacks, but another has."""
    for name in (one for one in names if one.startswith(LAW)):
        lacking = [one for one in experiments if name.removeprefix(LAW) not in one.law_numbers()]
        for experiment in lacking if len(lacking) < len(experiments) else ():
            experiment.absent |= {name}


def points_of(experiment: ScenarioExperiment, design: Design) -> Points:
    """Return the points of one controller: all controllers share the draws, but not the nominal values.

    If measurements are noisy, each draw has a different seed, so that the noise is part of the draw. Settings
    that the controller lacks are NaN.

    Raises:
        UnknownNameError: there is no quantity with this name.
        VariationError: the quantity cannot vary, or not in this form.
    """
    names = [variation.name for variation in design.variations]
    absent = experiment.absent.intersection(names)
    points = design.points({name: 1.0 if name in absent else experiment.nominal(name) for name in names})
    points.values[:, [name in absent for name in names]] = np.nan
    noisy = experiment.setup.noise > 0 or "noise" in names
    if not noisy or SEED in names:
        return points
    seeds = experiment.setup.seed + points.draw.astype(float)
    return points._replace(
        names=(*points.names, SEED), values=np.concatenate([points.values, seeds[:, None]], axis=1)
    )


def nominal_values(experiment: ScenarioExperiment, design: Design) -> dict[str, float]:
    """Return the nominal values of all varied quantities that have a number by default."""
    found = {variation.name: experiment.nominal(variation.name) for variation in design.variations}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def values_of(points: Points, place: int) -> dict[str, float]:
    """Return the values of one point, by name."""
    return dict(zip(points.names, points.values[place].tolist(), strict=True))
