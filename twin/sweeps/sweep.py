"""Thousands of runs of one loop whose numbers vary, from Python: `twin.sweep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.arrays import real_array
from twin.sweeps.design import Design, DesignKind
from twin.sweeps.robot_experiment import MakeLaw, RobotExperiment
from twin.sweeps.running import Progress, columns, run_points
from twin.sweeps.statistics import Importance, Share, importances, share_that_holds, worst
from twin.sweeps.variation import parse_variation

if TYPE_CHECKING:
    from twin.drives.sensors import Sensors
    from twin.robot.robot import Robot
    from twin.sweeps.trial import Trial
    from twin.trajectories.sampling import Samples


@dataclass(frozen=True, eq=False)
class Sweep:
    """What came of a sweep.

    Attributes:
        table: (N,) a row a run: `draw`, `replicate`, the inputs by their names, and the fields of
            `twin.sweeps.outcomes.OUTCOME`.
        inputs: the names of what varied.
        experiment: what was run.
        design: where its points lie.
        limits: on figures.
    """

    table: np.ndarray
    inputs: tuple[str, ...]
    experiment: RobotExperiment
    design: Design
    limits: Mapping[str, float]

    def __repr__(self) -> str:
        """Show how much of it holds."""
        share = self.share
        return (
            f"<Sweep of {len(self.table)} runs over {', '.join(self.inputs)}: {share.share:.1%} hold "
            f"({share.low:.1%} to {share.high:.1%})>"
        )

    @property
    def holds(self) -> np.ndarray:
        """(N,) whether each run kept every limit."""
        return self.table["holds"]

    @property
    def share(self) -> Share:
        """The share that holds, with its 95 % confidence interval."""
        return share_that_holds(self.table["holds"], self.table["draw"], self.table["replicate"])

    def importance(self, figure: str = "joint_error") -> list[Importance]:
        """Which input matters most to a figure, or to whether a run `"holds"`, the first first.

        Args:
            figure: see `twin.sweeps.outcomes.OUTCOME`.

        Raises:
            ValueError: there is no such figure.
        """
        return importances(self.table, self.inputs, figure)

    def worst(self, count: int = 10, figure: str = "joint_error") -> np.ndarray:
        """(count,) places in the table of the worst runs: those that do not hold first.

        Raises:
            ValueError: there is no such figure.
        """
        return worst(self.table, figure, count)

    def trial(self, place: int) -> Trial:
        """The closed loop of one row of the table, to be run again and looked at.

        Raises:
            TwinError, ValueError: it cannot be made.
        """
        row = self.table[place]
        named = zip(self.inputs, columns(self.inputs), strict=True)
        return self.experiment.trial({name: float(row[column]) for name, column in named})

    def to_frame(self) -> Any:
        """The table as a table of pandas.

        Raises:
            ImportError: pandas is not installed; it is in the extra `irb-twin[tables]`.
        """
        import pandas

        return pandas.DataFrame({name: self.table[name] for name in self.table.dtype.names or ()})


def sweep(
    robot: Robot,
    law: MakeLaw,
    reference: Samples,
    vary: Mapping[str, str],
    *,
    samples: int = 1000,
    design: DesignKind = "latin",
    seed: int = 0,
    limits: Mapping[str, float] | None = None,
    model: Robot | None = None,
    sensors: Sensors | None = None,
    time_step: float = 1e-3,
    steps_per_period: int = 1,
    T_flange_tool: np.ndarray | Sequence[Sequence[float]] | None = None,
    engine: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    keep: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Run a law on many arms that differ in what is not known of them, and say how many hold.

    What varies changes the plant alone: the law believes in `model`, or in the plant as it is given; names
    that begin with `model.` change that.  A run holds if it was not ended early, stayed within the ranges and
    speed limits of its joints, no drive was saturated, and no figure was beyond its limit.

        sweep = twin.sweep(
            robot, functools.partial(controllers.make, "pd"), reference,
            {"payload": "0:6", "drives.coulomb": "+-50%", "model.mass": "+-10%", "law.bandwidth": "5:40:8"},
            limits={"joint_error": 0.01},
        )

    Args:
        robot: the plant, where nothing varies.
        law: `(model, **settings) -> controller`, a `twin.ControlLaw` unless the engine runs it.
        reference: N samples, one a control period.
        vary: how each quantity varies, by its name: a range `"0:6"`, `"1:100:log"`, `"+-50%"`, `"+-0.5"`, a
            normal distribution `"3~0.5"`, `"~10%"`, or a grid `"5:40:8"`, `"0,2,5"`; see
            `twin.sweeps.variation` and, for the names, `twin.sweeps.robot_experiment`.
        samples: random draws; each is run at every point of the grid.
        design: how they lie: `"latin"`, `"sobol"` or `"random"`.
        seed: of the draws; that of the sensors is their own, and grows by one a draw.
        limits: on figures, see `twin.sweeps.outcomes.FIGURES`, as `{"joint_error": 0.01}`.
        model: what the law believes in.
        sensors: between motors and law.
        time_step: in [s].
        steps_per_period: steps in a control period.
        T_flange_tool: (4, 4) the tool whose error is to be found, too.
        engine: run everything in PyBullet, in other processes; some hundred times as long.
        workers: so many processes on this machine, in place of threads; in the extra `irb-twin[cluster]`.
        scheduler: `"tcp://host:port"` of a Dask cluster that exists, instead.
        keep: folder for what is finished, from which `resume` goes on after an interruption; it stays.
        resume: go on with what is in that folder.  Of your own code, changes in what a scenario or law file
            holds that was loaded by its name are noticed, others are not.
        progress: called with the number of runs that are done, and with that of all.

    Returns:
        The table of all runs, the same to the bit for any number of threads, workers and interruptions.

    Raises:
        UnknownNameError: there is no quantity of that name; the message says which are nearest.
        VariationError: it cannot vary, or not like that.
        ClusterError: workers that do not start, do not answer, or went away.
        TwinError, ValueError: the loop cannot be made where nothing varies; another misfit.
    """
    tool = None if T_flange_tool is None else real_array(T_flange_tool, "T_flange_tool")
    experiment = RobotExperiment(
        robot, law, reference, model, sensors, time_step, steps_per_period, T_flange_tool=tool
    )
    spread = Design(tuple(parse_variation(*one) for one in vary.items()), samples, design, seed)
    points = spread.points({name: experiment.nominal(name) for name in vary})
    noisy = "sensors.noise" in vary or (sensors is not None and sensors.noise > 0)
    if noisy and "sensors.seed" not in vary:
        seeds = experiment.nominal("sensors.seed") + points.draw.astype(float)
        names, values = (*points.names, "sensors.seed"), np.column_stack([points.values, seeds])
        points = points._replace(names=names, values=values)
    table = run_points(
        experiment, points, limits=limits, engine=engine, workers=workers, scheduler=scheduler, keep=keep,
        resume=resume, progress=progress,
    )  # fmt: skip
    return Sweep(table, points.names, experiment, spread, dict(limits or {}))
