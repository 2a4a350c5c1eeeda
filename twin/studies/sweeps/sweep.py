"""Sweep a closed loop over varied quantities, from Python: `twin.sweep`.

These quantities can vary:

- the quantities of the plant, under the names of `twin.robot.quantities`;
- `payload`: mass of the payload at the plant's flange, in kg; its inertia is scaled with it;
- `payload.x`, `payload.y`, `payload.z`: its centre of mass, flange frame, in m;
- the prefix `model.` with any of these names: the same quantity of the controller's model;
- `sensors.noise`, `sensors.speed_cutoff`, `sensors.delay`, `sensors.seed`: see `twin.Sensors`;
- `law.SETTING`: a numeric setting of the controller; for a vector of the axes, such as gains, a factor on it
  with the nominal value 1.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from twin.base.arrays import real_array
from twin.base.errors import UnknownNameError, VariationError
from twin.base.formatting import html_table
from twin.physics.control.control_law import ControlLaw
from twin.physics.robot.drives.motors import Sensors
from twin.physics.robot.quantities import changed, expand_each, quantities, quantity, unknown
from twin.physics.robot.robot import Payload, Robot
from twin.physics.trajectories.sampling import Samples
from twin.studies.sweeps.design import Design, DesignKind, parse_variation
from twin.studies.sweeps.running import Progress, columns, run_points
from twin.studies.sweeps.statistics import (
    Importance,
    Share,
    SobolIndices,
    decisive_figure,
    importances,
    pass_share,
    sobol_indices,
    worst,
)
from twin.studies.sweeps.trial import Trial

MakeLaw = Callable[..., Any]
"""`(model, **settings) -> controller`, as `functools.partial(controllers.make, "pd")`."""

PAYLOAD = ("payload", "payload.x", "payload.y", "payload.z")
SENSED = ("noise", "speed_cutoff", "delay", "seed")
WHOLE = ("delay", "seed")


@dataclass(frozen=True, eq=False)
class RobotExperiment:
    """Robot with a controller and a reference; the docstring of the module lists what can vary.

    Attributes:
        robot: the nominal plant.
        law: function that makes the controller from its model.
        reference: reference at every control period.
        model: the controller's nominal model; `None` for the plant.
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
    loads: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without cached properties."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def nominal_model(self) -> Robot:
        """Nominal model of the controller."""
        return self.robot if self.model is None else self.model

    @cached_property
    def controller(self) -> Any:
        """Nominal controller."""
        return self.law(self.nominal_model)

    def nominal(self, name: str) -> float:
        """Return a nominal value, see `twin.sweeps.trial.Experiment`."""
        if name.startswith("law."):
            setting = self._setting(name)
            return setting if isinstance(setting, float) else 1.0
        if name.startswith("sensors."):
            return float(getattr(self.sensors or Sensors(), self._sensed(name)))
        side, robot = name.removeprefix("model."), self.robot
        if side != name:
            robot = self.nominal_model
        if side in PAYLOAD:
            carried = robot.payload or Payload(0.0)
            return [float(carried.mass), *np.asarray(carried.com).tolist()][PAYLOAD.index(side)]
        try:
            return quantity(robot, side).nominal
        except UnknownNameError:
            raise unknown(name, f"robot {robot.name!r}", self._known()) from None

    def trial(self, values: Mapping[str, float]) -> Trial:
        """Return the trial of these values, see `twin.sweeps.trial.Experiment`."""
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
            loads=self.loads,
        )

    def _controller(self, of_model: Mapping[str, float], of_law: Mapping[str, float]) -> Any:
        """Return the controller with these settings and model; the same object if nothing differs."""
        if not of_model and not of_law and isinstance(self.controller, ControlLaw):
            return self.controller
        settings: dict[str, Any] = {}
        for name, value in of_law.items():
            setting = self._setting(f"law.{name}")
            settings[name] = value if isinstance(setting, float) else value * setting
        return self.law(_changed(self.nominal_model, of_model, "model."), **settings)

    @cached_property
    def _settings(self) -> dict[str, float | np.ndarray]:
        """Nominal numeric settings of the controller: arguments, defaults and gains."""
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
        """Return the nominal value of a setting of the controller."""
        setting = name.removeprefix("law.")
        if setting not in self._settings:
            known = ", ".join(f"law.{one}" for one in self._settings)
            raise UnknownNameError(
                f"the controller has no numeric setting {setting!r}: known are {known or 'none'}"
            )
        return self._settings[setting]

    def _sensed(self, name: str) -> str:
        """Return the field of the sensors that a name refers to."""
        field = name.removeprefix("sensors.")
        if field not in SENSED:
            raise UnknownNameError(
                f"sensors have no number {field!r}: known are {', '.join(f'sensors.{one}' for one in SENSED)}"
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
        """Return the names of all quantities of the arms and the sensors."""
        plant = [*PAYLOAD, *(one.name for one in quantities(self.robot))]
        model = [*PAYLOAD, *(one.name for one in quantities(self.nominal_model))]
        return [*plant, *(f"model.{name}" for name in model), *(f"sensors.{name}" for name in SENSED)]


def _changed(robot: Robot, changes: Mapping[str, float], prefix: str = "") -> Robot:
    """Return the robot with other values of its quantities and of its payload."""
    others = [(name, value) for name, value in changes.items() if name not in PAYLOAD]
    arm = changed(robot, others, prefix) if others else robot
    if len(others) == len(changes):
        return arm
    carried = robot.payload or Payload(0.0)
    mass, com = changes.get("payload", carried.mass), np.array(carried.com, dtype=float)
    for axis, name in enumerate(PAYLOAD[1:]):
        com[axis] = changes.get(name, com[axis])
    # The inertia tensor is scaled with the mass, as for a body of the same size.
    inertia = np.asarray(carried.inertia) * (mass / carried.mass if carried.mass > 0 else 0.0)
    return arm.with_payload(Payload(mass, com, inertia))


@dataclass(frozen=True, eq=False)
class Sweep:
    """Result of a sweep.

    Attributes:
        table: (N,) one row per run: `draw`, `replicate`, the inputs by their names, and the fields of
            `twin.sweeps.trial.OUTCOME`.
        inputs: names of the varied quantities.
        experiment: the experiment.
        design: the sampling design.
        limits: limits of figures.
    """

    table: np.ndarray
    inputs: tuple[str, ...]
    experiment: RobotExperiment
    design: Design
    limits: Mapping[str, float]

    def __repr__(self) -> str:
        """Return a summary with the share of passing runs."""
        share = self.share
        return (
            f"<Sweep of {len(self.table)} runs over {', '.join(self.inputs)}: {share.share:.1%} pass "
            f"({share.low:.1%} to {share.high:.1%})>"
        )

    def _repr_html_(self) -> str:
        """Return a table of the importance of each input for the figure that has the limit."""
        rows = [(one.name, one.explained, one.correlation) for one in self.importance()]
        head = ("input", f"part of the {self.figure.replace('_', ' ')} explained", "rank correlation")
        return html_table(repr(self)[1:-1], [head, *rows])

    @property
    def passes(self) -> np.ndarray:
        """Whether each run passes, (N,)."""
        return self.table["passes"]

    @property
    def share(self) -> Share:
        """Share of passing runs, with its 95 % confidence interval."""
        return pass_share(self.table["passes"], self.table["draw"], self.table["replicate"])

    @property
    def figure(self) -> str:
        """Figure that has the limit; of several the one that most runs exceed; `joint_error` without any."""
        return decisive_figure([self.table], self.limits)

    def importance(self, figure: str | None = None) -> list[Importance]:
        """Return the importance of each input for a figure, or for whether a run `"passes"`, largest first.

        Args:
            figure: name of the figure, see `twin.sweeps.trial.OUTCOME`; by default `Sweep.figure`.

        Raises:
            ValueError: there is no such figure.
        """
        return importances(self.table, columns(self.inputs), figure or self.figure)

    def sobol_indices(self, figure: str | None = None) -> SobolIndices:
        """Return first-order and total Sobol' indices of each input for a figure, with intervals.

        Args:
            figure: name of the figure, see `twin.sweeps.trial.OUTCOME`; by default `Sweep.figure`.

        Raises:
            ValueError: there is no such figure.
        """
        return sobol_indices(self.table, columns(self.inputs), figure or self.figure)

    def worst(self, count: int = 10, figure: str | None = None) -> np.ndarray:
        """Return the indices (count,) of the worst runs in the table; failing runs come first.

        Args:
            count: largest number of runs.
            figure: name of the figure; by default `Sweep.figure`.

        Raises:
            ValueError: there is no such figure.
        """
        return worst(self.table, figure or self.figure, count)

    def trial(self, place: int) -> Trial:
        """Return the closed loop of one row of the table, to run it again.

        Raises:
            TwinError, ValueError: the closed loop cannot be made.
        """
        row = self.table[place]
        named = zip(self.inputs, columns(self.inputs), strict=True)
        return self.experiment.trial({name: float(row[column]) for name, column in named})

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame.

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
    loads: bool = False,
    engine: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    keep: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Run a controller on many arms that differ in uncertain quantities, and return which runs pass.

    Variations change the plant only: the controller's model is `model`, or the nominal plant. Names with the
    prefix `model.` change the controller's model.  A run passes if it did not end early, stayed within the
    ranges and speed limits of its joints, no drive saturated, and no figure exceeded its limit.

        sweep = twin.sweep(
            robot, functools.partial(controllers.make, "pd"), reference,
            {"payload": "0:6", "drives.coulomb": "+-50%", "model.mass": "+-10%", "law.bandwidth": "5:40:8"},
            limits={"joint_error": 0.01},
        )

    Args:
        robot: the nominal plant.
        law: function `(model, **settings) -> controller`. A controller that is not a `twin.ControlLaw`, such
            as a Python function `(state, reference) -> tau`, always runs in PyBullet.
        reference: N samples, one per control period.
        vary: variation of each quantity, by its name: a range `"0:6"`, `"1:100:log"`, `"+-50%"`, `"+-0.5"`, a
            normal distribution `"3~0.5"`, `"~10%"`, or a grid `"5:40:8"`, `"0,2,5"`; with `":each"` behind
            it, as `"+-50%:each"`, each axis or link varies by itself; see `twin.sweeps.design` and, for the
            names, `twin.sweeps.sweep`.
        samples: number of random draws; each is run at every grid point.
        design: sampling of the draws: `"latin"`, `"sobol"` or `"random"`.
        seed: seed of the draws. The sensors have a separate seed, which increases by one per draw.
        limits: limits of figures, see `twin.sweeps.trial.FIGURES`, as `{"joint_error": 0.01}`.
        model: the controller's nominal model.
        sensors: sensors between motors and controller.
        time_step: time step in [s].
        steps_per_period: number of time steps per control period.
        T_flange_tool: (4, 4) pose of the tool whose error is computed, too.
        loads: whether to compute the loads on foundation and pins, too.
        engine: whether to run everything in PyBullet, in worker processes, which takes some hundred times as
            long.
        workers: number of processes on this machine, instead of threads.
        scheduler: address of a running Dask cluster, as `"tcp://host:port"`, instead of threads.
        keep: folder for finished chunks, which `resume` reuses after an interruption; it is not removed.
        resume: whether to reuse the chunks in that folder.  Changes in scenario or controller files that were
            loaded by name are detected, changes in other code of the user are not.
        progress: function that is called with the number of finished runs, and with the number of all runs.

    Returns:
        The table of all runs, the same to the bit for any number of threads, workers and interruptions.

    Raises:
        UnknownNameError: there is no quantity with this name; the message names the nearest ones.
        VariationError: the quantity cannot vary, or not in this form.
        ClusterError: workers do not start, do not answer, or are lost.
        TwinError, ValueError: the nominal closed loop cannot be made, or arguments do not fit together.

    Example:
        >>> import controllers.pid, twin
        >>> robot, still = twin.load("irb140"), twin.sample(twin.hold([0.0] * 6, 0.1), 1e-3)
        >>> law, limits = controllers.pid.PDGravity, {"joint_error": 0.001}
        >>> sweep = twin.sweep(robot, law, still, {"mass": "0.9,1,1.2"}, limits=limits)
        >>> sweep.table["joint_error"].round(4).tolist(), sweep.passes.tolist()
        ([0.0073, 0.0, 0.0117], [False, True, False])
    """
    tool = None if T_flange_tool is None else real_array(T_flange_tool, "T_flange_tool")
    experiment = RobotExperiment(
        robot, law, reference, model, sensors, time_step, steps_per_period, T_flange_tool=tool,
        loads=loads,
    )  # fmt: skip
    expanded = expand_each(vary.items(), experiment.nominal, experiment._known)
    spread = Design(tuple(parse_variation(*one) for one in expanded), samples, design, seed)
    points = spread.points({name: experiment.nominal(name) for name, _ in expanded})
    noisy = "sensors.noise" in vary or (sensors is not None and sensors.noise > 0)
    if noisy and "sensors.seed" not in vary:
        seeds = experiment.nominal("sensors.seed") + points.draw.astype(float)
        names, values = (*points.names, "sensors.seed"), np.column_stack([points.values, seeds])
        points = points._replace(names=names, values=values)
    engine = engine or not isinstance(experiment.controller, ControlLaw)
    table = run_points(
        experiment, points, limits=limits, engine=engine, workers=workers, scheduler=scheduler, keep=keep,
        resume=resume, progress=progress,
    )  # fmt: skip
    return Sweep(table, points.names, experiment, spread, dict(limits or {}))
