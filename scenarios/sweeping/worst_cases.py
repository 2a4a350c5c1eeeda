"""The worst runs of a sweep, again in PyBullet, as `irb-twin run` does them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scenarios.checks.replay import whole_run_limit
from scenarios.running.registry import repeat_command
from scenarios.running.runs import Run, carry_out
from twin.logs.figures import joint_error
from twin.robot.limits import joint_unit

if TYPE_CHECKING:
    from scenarios.base import Config
    from scenarios.running.registry import Scenario


class WorstCase(NamedTuple):
    """A run of a sweep, and what PyBullet made of it.

    Attributes:
        sample: its row in the table.
        row: of the table.
        command: repeats it alone.
        run: what came of it in PyBullet.
        engine_error: the largest joint error there, in [rad]; infinite where the run ended early.
        apart: what its error differs by from that of the table, in [rad]; NaN where either run ended early.
        limit: what it may differ by: what the loop makes of rounding; infinite where that is not known.
    """

    sample: int
    row: Any
    command: str
    run: Run
    engine_error: float
    apart: float
    limit: float

    @property
    def unit(self) -> str:
        """Unit of the joint error: that of the joint which is furthest off."""
        figures, joint = self.run.figures, self.row["joint_error_joint"] - 1
        return "rad" if figures is None else joint_unit(figures.joint_kinds[joint])

    @property
    def agrees(self) -> bool:
        """Whether PyBullet did what the table says."""
        if self.row["trouble"] or self.ended_early:
            return bool(self.row["trouble"]) == self.ended_early
        return self.apart <= self.limit

    @property
    def ended_early(self) -> bool:
        """Whether the run in PyBullet did."""
        return self.run.error is not None


def worst_case(scenario: Scenario, config: Config, sample: int, row: Any) -> WorstCase:
    """Do a run of a sweep again.

    Args:
        scenario: of the sweep.
        config: its settings, with the values of this run.
        sample: its row in the table.
        row: of the table.
    """
    run = carry_out(scenario, config)
    error, limit = math.inf, math.inf
    if run.error is None and run.log is not None:
        error = float(np.max(np.abs(joint_error(run.log))))
        limit = whole_run_limit(run.log) if "spread" in run.log.arrays else math.inf
    found = float(row["joint_error"])
    apart = abs(error - found) if math.isfinite(error) and math.isfinite(found) else math.nan
    return WorstCase(sample, row, repeat_command(run), run.without_log(), error, apart, limit)
