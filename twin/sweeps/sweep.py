"""Thousands of runs of one loop whose numbers vary, from Python: `twin.sweep`.

These quantities vary:

- the names of `twin.sweeps.robot_quantities`: of the plant;
- `payload`: the mass that the plant carries at its flange, in kg; its inertia goes along;
- `payload.x`, `payload.y`, `payload.z`: its centre of mass, flange frame, in m;
- `model.` before any of these: the same of the controller's model;
- `sensors.noise`, `sensors.speed_cutoff`, `sensors.delay`, `sensors.seed`: see `twin.Sensors`;
- `law.SETTING`: a setting of the law that is a number; where it is a vector of the axes, as gains are, a
  factor on it, 1 where nothing varies.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from twin.arrays import real_array
from twin.control.control_law import ControlLaw
from twin.errors import UnknownNameError, VariationError
from twin.robot.drives.sensors import Sensors
from twin.robot.robot import Payload, Robot
from twin.sweeps.design import Design, DesignKind, parse_variation
from twin.sweeps.robot_quantities import changed, quantities, quantity, unknown
from twin.sweeps.running import Progress, columns, run_points
from twin.sweeps.statistics import Importance, Share, importances, pass_share, worst
from twin.sweeps.trial import Trial
from twin.trajectories.sampling import Samples

MakeLaw = Callable[..., Any]
"""`(model, **settings) -> controller`, as `functools.partial(controllers.make, "pd")`."""

PAYLOAD = ("payload", "payload.x", "payload.y", "payload.z")
SENSED = ("noise", "speed_cutoff", "delay", "seed")
WHOLE = ("delay", "seed")


@dataclass(frozen=True, eq=False)
class RobotExperiment:
    """A robot under a law along a reference; see above for what can vary.

    Attributes:
        robot: the plant, where nothing varies.
        law: makes the controller of its model.
        reference: at every control period.
        model: what the law believes in; the plant where it is `None`.
        sensors, time_step, steps_per_period, T_flange_tool: see `twin.sweeps.trial.Trial`.
    """

    robot: Robot
    law: MakeLaw
    reference: Samples
    model: Robot | None = None
    sensors: Sensors | None = None
    time_step: float = 1e-3
    steps_per_period: int = 1
    T_flange_tool: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What was told, without what was made of it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def believed(self) -> Robot:
        """The robot that the law believes in, where nothing varies."""
        return self.robot if self.model is None else self.model

    @cached_property
    def controller(self) -> Any:
        """The law where nothing varies."""
        return self.law(self.believed)

    def nominal(self, name: str) -> float:
        """See `twin.sweeps.trial.Experiment`."""
        if name.startswith("law."):
            setting = self._setting(name)
            return setting if isinstance(setting, float) else 1.0
        if name.startswith("sensors."):
            return float(getattr(self.sensors or Sensors(), self._sensed(name)))
        side, robot = name.removeprefix("model."), self.robot
        if side != name:
            robot = self.believed
        if side in PAYLOAD:
            carried = robot.payload or Payload(0.0)
            return [float(carried.mass), *np.asarray(carried.com).tolist()][PAYLOAD.index(side)]
        try:
            return quantity(robot, side).nominal
        except UnknownNameError:
            raise unknown(name, f"robot {robot.name!r}", self._known()) from None

    def trial(self, values: Mapping[str, float]) -> Trial:
        """See `twin.sweeps.trial.Experiment`."""
        parts: dict[str, dict[str, float]] = {"": {}, "model": {}, "law": {}, "sensors": {}}
        for name, value in values.items():
            head, _, rest = name.partition(".")
            if head in parts and rest:
                parts[head][rest] = value
            else:
                parts[""][name] = value
        return Trial(
            plant=_changed(self.robot, parts[""]),
            controller=self._controller(parts["model"], parts["law"]),
            reference=self.reference,
            sensors=self._sensors(parts["sensors"]),
            time_step=self.time_step,
            steps_per_period=self.steps_per_period,
            T_flange_tool=self.T_flange_tool,
        )

    def _controller(self, of_model: Mapping[str, float], of_law: Mapping[str, float]) -> Any:
        """The law with other settings, or for another model; one serves all trials where nothing differs."""
        if not of_model and not of_law and isinstance(self.controller, ControlLaw):
            return self.controller
        settings: dict[str, Any] = {}
        for name, value in of_law.items():
            setting = self._setting(f"law.{name}")
            settings[name] = value if isinstance(setting, float) else value * setting
        return self.law(_changed(self.believed, of_model, "model."), **settings)

    @cached_property
    def _settings(self) -> dict[str, float | np.ndarray]:
        """The law's numbers and vectors where nothing varies: what it was told, its defaults, its gains."""
        parameters = inspect.signature(self.law).parameters.values()
        gains: Any = getattr(self.controller, "gains", None)
        values: dict[str, Any] = dict(gains._asdict()) if hasattr(gains, "_asdict") else {}
        values |= {one.name: one.default for one in parameters if isinstance(one.default, (int, float))}
        values |= {
            name: value for name, value in getattr(self.law, "keywords", {}).items() if value is not None
        }
        arrays = {name: np.asarray(value) for name, value in values.items()}
        return {
            name: float(array) if array.ndim == 0 else array.astype(float)
            for name, array in arrays.items()
            if array.dtype.kind in "fiu" and array.ndim <= 1
        }

    def _setting(self, name: str) -> float | np.ndarray:
        """A setting of the law where nothing varies."""
        setting = name.removeprefix("law.")
        if setting not in self._settings:
            known = ", ".join(f"law.{one}" for one in self._settings)
            raise UnknownNameError(
                f"the law has no setting {setting!r} that is a number or a vector; it has {known or 'none'}"
            )
        return self._settings[setting]

    def _sensed(self, name: str) -> str:
        """The field of the sensors that a name stands for."""
        field = name.removeprefix("sensors.")
        if field not in SENSED:
            raise UnknownNameError(
                f"sensors have no number {field!r}: they have {', '.join(f'sensors.{one}' for one in SENSED)}"
            )
        return field

    def _sensors(self, changes: Mapping[str, float]) -> Sensors | None:
        if not changes:
            return self.sensors
        chosen: dict[str, Any] = dict(changes)
        for name in WHOLE:
            if name in chosen:
                if chosen[name] != int(chosen[name]):
                    raise VariationError(f"expected sensors.{name} to be whole, got {chosen[name]:g}")
                chosen[name] = int(chosen[name])
        return replace(self.sensors or Sensors(), **chosen)

    def _known(self) -> list[str]:
        """The names of what can vary of the arms and the sensors."""
        plant = [*PAYLOAD, *(one.name for one in quantities(self.robot))]
        model = [*PAYLOAD, *(one.name for one in quantities(self.believed))]
        return [*plant, *(f"model.{name}" for name in model), *(f"sensors.{name}" for name in SENSED)]


def _changed(robot: Robot, changes: Mapping[str, float], prefix: str = "") -> Robot:
    """The robot with other values of its quantities, and of what it carries."""
    others = [(name, value) for name, value in changes.items() if name not in PAYLOAD]
    arm = changed(robot, others, prefix) if others else robot
    if len(others) == len(changes):
        return arm
    carried = robot.payload or Payload(0.0)
    mass, com = changes.get("payload", carried.mass), np.array(carried.com, dtype=float)
    for axis, name in enumerate(PAYLOAD[1:]):
        com[axis] = changes.get(name, com[axis])
    # Its tensor goes with its mass, as that of a body of the same size does.
    inertia = np.asarray(carried.inertia) * (mass / carried.mass if carried.mass > 0 else 0.0)
    return arm.with_payload(Payload(mass, com, inertia))


@dataclass(frozen=True, eq=False)
class Sweep:
    """What came of a sweep.

    Attributes:
        table: (N,) a row a run: `draw`, `replicate`, the inputs by their names, and the fields of
            `twin.sweeps.trial.OUTCOME`.
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
    def passes(self) -> np.ndarray:
        """(N,) whether each run kept every limit."""
        return self.table["passes"]

    @property
    def share(self) -> Share:
        """The share that holds, with its 95 % confidence interval."""
        return pass_share(self.table["passes"], self.table["draw"], self.table["replicate"])

    def importance(self, figure: str = "joint_error") -> list[Importance]:
        """Which input matters most to a figure, or to whether a run `"passes"`, the first first.

        Args:
            figure: see `twin.sweeps.trial.OUTCOME`.

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
            `twin.sweeps.design` and, for the names, `twin.sweeps.sweep`.
        samples: random draws; each is run at every point of the grid.
        design: how they lie: `"latin"`, `"sobol"` or `"random"`.
        seed: of the draws; that of the sensors is their own, and grows by one a draw.
        limits: on figures, see `twin.sweeps.trial.FIGURES`, as `{"joint_error": 0.01}`.
        model: what the law believes in.
        sensors: between motors and law.
        time_step: in [s].
        steps_per_period: steps in a control period.
        T_flange_tool: (4, 4) the tool whose error is to be found, too.
        engine: run everything in PyBullet, in other processes; some hundred times as long.
        workers: so many processes on this machine, in place of threads.
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
