"""Default gains and tuned ones under the same draws: those that were tuned on, and fresh ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from scenarios.sweeping.carrying_out import Means, carried_out, nominal_run, worst_of
from scenarios.sweeping.findings import Findings, findings
from scenarios.sweeping.plan import SEED, Law, Plan, points_of
from scenarios.sweeping.scenario_experiment import ScenarioExperiment
from twin.sweeps.tuning import judged

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.sweeping.worst_cases import WorstCase
    from scenarios.tuning.tuned_law import TunedLaw
    from twin.sweeps.design import Design, Points
    from twin.sweeps.tuning import Of, Tuning

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
    swept = carried_out(plan, nominals, means, tell)
    sides = [
        Side(
            findings(one),
            *judged(one.table, task.minimise, task.of),
            worst_of(task.scenario, law, one, again),
        )
        for law, one in zip(laws, swept, strict=True)
    ]
    return Compared(plan, *sides)
