"""Scenario as an experiment of a sweep: the quantities that can vary, and the trial of given values."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

import controllers
from scenarios.judging import bounds
from scenarios.judging.motion_range import within_limits
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import ERROR, RATIO, tracking_metrics
from scenarios.metric import Metric
from scenarios.options import fields, kind_of
from scenarios.running import registry
from scenarios.running.registry import Task, scenario_argument_text
from scenarios.running.runs import FRICTION_CHECK, judged
from scenarios.setup import Arms, Setup
from twin.base.errors import UnknownNameError, VariationError, describe_error_with_type
from twin.data.logs.log import Log
from twin.physics.control.control_law import ControlLaw
from twin.physics.dynamics.operational_space import check_contact
from twin.physics.robot import quantities as robot_quantities
from twin.physics.robot.quantities import Quantity, unknown
from twin.physics.robot.robot import Payload, Robot
from twin.physics.trajectories.sampling import Samples
from twin.studies.sweeps.trial import OUTCOME, Judgement, Trial


def law_quantities(setup: Setup, law: Any) -> list[Quantity]:
    """Return the settings of a controller that can vary, with the prefix `law.`."""
    found = []
    for name, value in law_numbers(setup, law).items():
        if isinstance(value, float):
            found.append(Quantity(f"law.{name}", value, "", f"setting of {setup.controller}"))
        else:
            meaning = f"factor on a setting of {setup.controller}, for all joints"
            found.append(Quantity(f"law.{name}", 1.0, "", meaning))
    return found


def law_numbers(setup: Setup, law: Any) -> dict[str, float | np.ndarray]:
    """Return the numeric settings of a controller by name: a number, or one number per joint."""
    values = {name: _setting(setup, law, name) for name in _offered(setup.controller)}
    return {name: value for name, value in values.items() if value is not None}


def nominal_setting(setup: Setup, law: Any, name: str) -> float:
    """Return the value of a setting; 1 for a vector, which is varied by a factor.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: the setting is not numeric.
    """
    value = _required_numbers(setup, law, name)
    return value if isinstance(value, float) else 1.0


def with_law_settings(task: Task, chosen: Mapping[str, float], law_of: Callable[[Task], Any]) -> Task:
    """Return the task with some settings of the controller replaced.

    Args:
        task: the task before.
        chosen: values or factors, by the settings' names.
        law_of: function that makes the controller of a task, whose gains the factors multiply.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: a setting is not numeric.
    """
    for name in sorted(chosen, key=lambda name: name != "bandwidth"):  # other settings are derived from it
        now = _required_numbers(task.setup, law_of(task), name)
        settings = dict(task.setup.law_settings) | {name: varied(now, chosen[name])}
        task = task.with_setup(law_settings=tuple(settings.items()))
    return task


def varied(nominal: float | np.ndarray, value: float) -> float | tuple[float, ...]:
    """Return a varied setting of a controller: a new value, or a vector multiplied by a factor."""
    return tuple((value * nominal).tolist()) if isinstance(nominal, np.ndarray) else float(value)


def _offered(controller: str) -> list[str]:
    """Return the settings of a controller, without the period, which is that of the run."""
    return [name for name in controllers.settings(controller) if name != "period"]


def _required_numbers(setup: Setup, law: Any, name: str) -> Any:
    """Return the value of a setting that can vary: a number, or an array."""
    offered = _offered(setup.controller)
    if name not in offered:
        raise unknown(f"law.{name}", f"controller {setup.controller!r}", [f"law.{one}" for one in offered])
    value = _setting(setup, law, name)
    if value is None:
        raise VariationError(f"law.{name} cannot vary: it is not a numeric setting of {setup.controller!r}")
    return value


def _setting(setup: Setup, law: Any, name: str) -> Any:
    """Return a setting (chosen, default, or derived): a number, or an array; `None` if it is not numeric."""
    known = controllers.defaults(setup.controller) | {"bandwidth": setup.bandwidth}
    value = (known | dict(setup.law_settings)).get(name)
    if value is None:
        value = getattr(getattr(law, "gains", law), name, None)
    if isinstance(value, bool) or not isinstance(value, (int, float, tuple, list, np.ndarray)):
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        return None
    return float(array) if array.ndim == 0 else array.astype(np.float64)


OF_A_TRIAL = {"position beyond the range", "speed / its limit", "samples at the torque limit"}
"""Checks of a run that the figures of a trial judge, too."""

MODEL, LAW = "model.", "law."
"""Prefixes of the names of quantities of the controller's model, and of settings of the controller."""

REFERENCES, OTHERS = 32, 8
"""Number of cached references (20 MB for runs of 4 s), and of cached arms and controllers."""


class ScenarioExperiment:
    """Scenario with one controller, as an `Experiment`; it is pickled as its name and its settings.

    These quantities can vary: every number among the scenario's settings; `payload` and `model_payload`, in
    [kg], and their centres of mass `payload.x`, `.y`, `.z`, in [m]; the quantities of the plant, and with the
    prefix `model.` those of the controller's model, see `twin.robot.quantities`; with the prefix
    `law.` the settings of the controller. A vector setting is varied by a factor, a scalar setting by its
    value.

    Args:
        task: the scenario with the options and settings that do not vary, including the controller.
        tool_error: whether trials compute the tool's error, too.
        loads: whether trials compute the loads on foundation and pins, too.
        engine: whether the engine runs all trials; it also runs controllers that cannot be compiled.
        absent: quantities that vary for other controllers of the sweep, but that this controller lacks; their
            values are ignored.
        metrics: see the property; by default from the run with nominal settings.

    Raises:
        VariationError: the scenario cannot be varied.
        TwinError: the scenario cannot be loaded.
    """

    def __init__(
        self,
        task: Task,
        *,
        tool_error: bool = False,
        loads: bool = False,
        engine: bool = False,
        absent: frozenset[str] = frozenset(),
        metrics: Mapping[str, str] | None = None,
    ) -> None:
        self.task, self.setup, self.engine = task, task.setup, engine
        self.tool_error, self.loads, self.absent, self.not_judged = tool_error, loads, absent, ""
        if metrics is not None:
            self.metrics = metrics
        task.closed_loop()
        kinds = (Setup, type(task.scenario))
        self._items = {name: (kind, item) for kind in kinds for name, item in fields(kind).items()}
        self._robot, self._within_limits = Memoized[Robot](1), Memoized[bool](REFERENCES)
        self._reference, self._arms = Memoized[Samples](REFERENCES), Memoized[Arms](OTHERS)
        self._model, self._law = Memoized[Robot](OTHERS), Memoized[Any](OTHERS)
        self._judging = Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return names and numbers only: another process cannot unpickle a class of a user's file."""
        entry, scenario, setup = self.task
        options = {name: getattr(scenario, name) for name in entry.options}
        word = scenario_argument_text(entry.file, entry.name)
        word = str(Path(word).resolve()) if word.endswith(".py") else word  # valid in any current folder
        settings = dataclasses.replace(setup, progress=None, simulated=None, beside=())
        return {"word": word, "options": options, "setup": settings} | {
            name: getattr(self, name) for name in ("tool_error", "loads", "engine", "absent", "metrics")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        entry = registry.find(state.pop("word"))
        scenario = entry.kind(**entry.given, **state.pop("options"))
        self.__init__(Task(entry, scenario, state.pop("setup")), **state)

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self.task.entry.name

    def quantities(self) -> tuple[Quantity, ...]:
        """Return all quantities that can vary."""
        numbers = [
            Quantity(name, self.nominal(name), "", item.metadata["help"])
            for name, (_, item) in self._items.items()
            if self._kind(name) in (int, float)
        ]
        arms = self._nominal_arms()
        plant, model = arms.values()
        return (
            *numbers,
            *(one for name, robot in arms.items() for one in _payload_quantities(name, robot.payload)),
            *law_quantities(self.setup, self._law_of(self.task)),
            *robot_quantities.quantities(plant),
            *(one._replace(name=MODEL + one.name) for one in robot_quantities.quantities(model)),
        )

    def nominal(self, name: str) -> float:
        """Return a nominal value, see `twin.sweeps.trial.Experiment`; NaN for a setting without one."""
        before, _, rest = name.partition(".")
        if name in self.absent:
            return np.nan
        if name in self._items and name not in PAYLOADS:
            self._require_number(name)
            value = getattr(self._owner(name), name)
            return np.nan if value is None else float(value)
        arms = self._nominal_arms()
        if before in PAYLOADS and rest in ("", *PLACES):
            return _nominal_payload(arms[before].payload, rest)
        if name.startswith(LAW):
            return nominal_setting(self.setup, self._law_of(self.task), rest)
        try:
            if name.startswith(MODEL):
                return robot_quantities.quantity(arms["model_payload"], rest, MODEL).nominal
            return robot_quantities.quantity(arms["payload"], name).nominal
        except UnknownNameError:
            # a column of the drives is also named where it has no effect, which its own message says
            drives = (f"drives.{column}" for column in robot_quantities.COLUMNS)
            known = dict.fromkeys([*(one.name for one in self.quantities()), *drives])
            raise robot_quantities.unknown(name, f"scenario {self.scenario!r}", known) from None

    def law_numbers(self) -> dict[str, float | np.ndarray]:
        """Return the numeric settings of the controller, for nominal values of all varied quantities."""
        return law_numbers(self.setup, self._law_of(self.task))

    def task_of(self, values: Mapping[str, float]) -> Task:
        """Return the task of one trial, from which `repeat_command` makes its command.

        Args:
            values: values by the names of the quantities.

        Raises:
            UnknownNameError, VariationError, ValueError: a quantity does not exist, cannot vary, or cannot
                have this value. Invalid changes of a robot raise only when the robot is made.
        """
        settings = dict[str, Any]()
        loads: dict[str, dict[str, float]] = {name: {} for name in PAYLOADS}
        law, changes = dict[str, float](), dict(self.setup.changes)
        for name, value in values.items():
            before, _, rest = name.partition(".")
            if before in loads and rest in ("", *PLACES):
                loads[before][rest] = float(value)
            elif name in self._items:
                settings[name] = self._number(name, float(value))
            elif name.startswith(LAW):
                law |= {} if name in self.absent else {rest: float(value)}
            else:
                changes[name] = float(value)
        for name, chosen in loads.items():
            if chosen:
                settings[name] = _payload_text(name, self._nominal_arms()[name].payload, chosen)
        options = {name: settings.pop(name) for name in list(settings) if name in self.task.entry.options}
        scenario = dataclasses.replace(self.task.scenario, **options)
        task = self.task._replace(scenario=scenario).with_setup(**settings, changes=tuple(changes.items()))
        scenario.checked(task.setup)
        return with_law_settings(task, law, self._law_of) if law else task

    def trial(self, values: Mapping[str, float]) -> Trial:
        """Return the trial of these values, see `twin.sweeps.trial.Experiment`."""
        return self.trial_of(self.task_of(values))

    def trial_of(self, task: Task) -> Trial:
        """Return the closed loop of a task.

        Its log is judged by the scenario's `metrics` if these have other figures or limits than a trial.
        """
        bounded = task.setup.known_law and not task.setup.law_settings and self._arms_of(task).model is None
        own = self.further_checks - (set() if bounded else {RATIO})
        if not own and not self.metrics and self._keeps_limits(task):
            return self._trial(task)
        return self._trial(task, partial(self._judgement, task), tuple(self.metrics))

    @cached_property
    def metrics(self) -> Mapping[str, str]:
        """Units of the scenario's own metrics by name, which are further figures of its trials."""
        return self._of_nominal[1]

    @cached_property
    def further_checks(self) -> set[str]:
        """Checks of the run with nominal settings that the figures of a trial do not judge.

        Without those that compare the engine with the model. If they cannot be computed from the log of a
        draw, the reason is in `not_judged`.
        """
        return self._of_nominal[0]

    @cached_property
    def _of_nominal(self) -> tuple[set[str], dict[str, str]]:
        """Further checks and further metrics, from the run with nominal settings."""
        from twin.studies.sweeps import evaluation

        checks, own = set[str](), dict[str, str]()

        def note(log: Log) -> Judgement:
            try:
                run = self._run_of(self.task, log)
                checks.update(one.name for one in self._metrics(self.task, run) if one.limit is not None)
                usual = {one.name for one in tracking_metrics(run)} | {*TAKEN, *self._items}
                of_scenario = [one for one in self.task.scenario.metrics(run) if one.name not in usual]
                own.update({one.name: one.unit for one in of_scenario if one.value is not None})
            except Exception as error:
                self.not_judged = f"checks of the scenario ({describe_error_with_type(error)})"
                checks.update(OF_A_TRIAL)
            return Judgement("")

        evaluate = evaluation.engine_outcomes if self.needs_engine else evaluation.outcomes
        nominal = self._trial(self.task, note)
        if evaluate([nominal])[0]["trouble"]:
            return {"checks of the scenario"}, {}  # unknown, since the run ended early
        limited = "joint_error" in self.task.scenario.limits
        exact = {ERROR} if nominal.error_limit < np.inf and not limited else set()
        figures = OF_A_TRIAL | exact | {FRICTION_CHECK}
        return checks - figures - OF_THE_REFERENCE if checks >= OF_A_TRIAL else checks, own

    def _run_of(self, task: Task, log: Log) -> TrackingRun:
        """Return the run of a draw, with its log in place of the engine's."""
        setup = dataclasses.replace(task.setup, simulated=(self._robot_of(task), log))
        with self._judging:  # the user's code may have a state
            found = task.scenario.run(setup)
        assert isinstance(found, TrackingRun)
        return found

    def _metrics(self, task: Task, run: TrackingRun) -> tuple[Metric, ...]:
        """Return the metrics of a run."""
        with self._judging:
            return judged(task, run)

    def _judgement(self, task: Task, log: Log) -> Judgement:
        """Return the first check that a draw fails, or the error of the checks, and its metrics."""
        try:
            found = self._metrics(task, self._run_of(task, log))
        except Exception as error:
            return Judgement(describe_error_with_type(error), (np.nan,) * len(self.metrics))
        values = {one.name: one.value for one in found if one.value is not None}
        failed = next((one.name for one in found if not one.passes), "")
        return Judgement(failed, tuple(values.get(name, np.nan) for name in self.metrics))

    def _trial(
        self,
        task: Task,
        judge: Callable[[Log], Judgement] | None = None,
        metrics: tuple[str, ...] = (),
    ) -> Trial:
        setup, plant = self._adapted(task), task.setup.with_plant_changes(self._arms_of(task).plant)
        law, reference, environment = self._law_of(task), self._reference_of(task), setup.environment
        if environment is not None:
            check_contact(plant, environment, reference.q, setup.time_step)
        if not isinstance(law, ControlLaw):
            law: Any = setup.control_law(self._model_of(task))  # its state must not outlast its run
        exact = environment is None and self._is_exact(task, plant, law)
        return Trial(
            plant=plant,
            controller=law,
            reference=reference,
            sensors=setup.sensors,
            time_step=setup.time_step,
            steps_per_period=setup.steps_per_period,
            T_flange_tool=setup.T_flange_tool if self.tool_error else None,
            loads=self.loads,
            error_limit=bounds.ROUND_OFF if exact else np.inf,
            leaves_limits=bool(task.scenario.leaves_limits),
            judge=judge,
            metrics=metrics,
            environment=environment,
        )

    def _adapted(self, task: Task) -> Setup:
        """Return the setup with what the task adds, see `TrackingScenario.adapted`."""
        return task.closed_loop().adapted(task.setup, self._robot_of(task))

    def _is_exact(self, task: Task, plant: Robot, law: ControlLaw) -> bool:
        """Return whether the tracking error consists of rounding errors only, see `bounds.is_exact`."""
        setup = task.setup
        undisturbed = setup.steps_per_period == 1 and setup.reference == "consistent"
        known = setup.known_law and self._arms_of(task).model is None
        if not (known and not setup.law_settings and undisturbed and setup.sensors is None):
            return False
        return bounds.makes_exact(setup.controller, plant.drive_mode, law.robot.drive_mode)

    @property
    def needs_engine(self) -> bool:
        """Whether the engine runs the trials: it was chosen, or the controller cannot be compiled."""
        return self.engine or not isinstance(self._law_of(self.task), ControlLaw)

    # Parts of a closed loop. Equal keys, which name all that a part depends on, give the same object.

    def _robot_of(self, task: Task) -> Robot:
        return self._robot(_robot_key(task), task.setup.nominal_robot)

    def _reference_key(self, task: Task) -> tuple[Any, ...]:
        motion = task.closed_loop().of_motion()
        return _robot_key(task), motion, task.setup.sampling(motion.needs)

    def _reference_of(self, task: Task) -> Samples:
        _, motion, sampling = key = self._reference_key(task)
        return self._reference(key, lambda: motion.reference(self._robot_of(task), sampling))

    def _keeps_limits(self, task: Task) -> bool:
        """Return whether the reference stays within the ranges and speed limits."""
        robot, reference = self._robot_of(task), self._reference_of(task)
        return self._within_limits(self._reference_key(task), lambda: within_limits(robot, reference))

    def _arms_of(self, task: Task) -> Arms:
        def made() -> Arms:
            return task.closed_loop().constant_arms(self._robot_of(task), task.setup)

        return self._arms(_arms_key(task), made)

    def _model_key(self, task: Task) -> tuple[Any, ...]:
        setup = task.setup
        return _arms_key(task), setup.model_payload, setup.controller_drives, setup.model_changes

    def _model_of(self, task: Task) -> Robot:
        return self._model(self._model_key(task), lambda: task.setup.model_of(self._arms_of(task)))

    def _law_of(self, task: Task) -> Any:
        setup = self._adapted(task)
        key = (
            self._model_key(task), setup.controller, setup.law_settings, setup.bandwidth, setup.period,
            setup.learned, setup.tool, setup.surface,
        )  # fmt: skip
        return self._law(key, lambda: setup.control_law(self._model_of(task)))

    def _nominal_arms(self) -> dict[str, Robot]:
        """Return the plant and the controller's model before any change, by the setting of their payload."""
        nominal = self.task.with_setup(changes=())
        return {"payload": self._arms_of(nominal).plant, "model_payload": self._model_of(nominal)}

    def _owner(self, name: str) -> Any:
        """Return the scenario or the setup, whichever has the setting."""
        return self.task.scenario if name in self.task.entry.options else self.setup

    def _kind(self, name: str) -> type:
        """Return the type of a setting."""
        return kind_of(self._items[name][0], name).type

    def _require_number(self, name: str) -> type:
        """Return the type of a numeric setting.

        Raises:
            VariationError: the setting is not a number.
        """
        kind = self._kind(name)
        if kind not in (int, float):
            what = "a switch" if kind is bool else "a text"
            raise VariationError(f"{name} cannot vary: it is {what}, not a number")
        return kind

    def _number(self, name: str, value: float) -> float:
        """Return the value of a setting, as an integer if its type is `int`."""
        if self._require_number(name) is float:
            return value
        if not value.is_integer():
            raise VariationError(f"{name} must be a whole number, got {value!r}")
        return int(value)


TAKEN = ("draw", "replicate", *(OUTCOME.names or ()))
"""Columns of every table, whose names no metric can have."""

OF_THE_REFERENCE = {"reference beyond the range", "reference speed / its limit"}
"""Checks that all draws with one reference share."""


PAYLOADS = {
    "payload": "the payload at the flange",
    "model_payload": "the payload in the controller's model",
}
PLACES = ("x", "y", "z")


def _payload_quantities(name: str, payload: Payload | None) -> list[Quantity]:
    """Return the quantities of a payload: its mass and its centre of mass; those of no payload are 0."""
    mass, place = (
        f"mass of {PAYLOADS[name]}; its inertia is scaled with it",
        f"centre of mass of {PAYLOADS[name]}",
    )
    return [
        Quantity(name, _nominal_payload(payload, ""), "kg", mass),
        *(
            Quantity(f"{name}.{axis}", _nominal_payload(payload, axis), "m", f"{place}, flange frame")
            for axis in PLACES
        ),
    ]


def _nominal_payload(payload: Payload | None, part: str) -> float:
    """Return the mass, in [kg], or with the name of an axis the centre of mass along it, in [m]."""
    if payload is None:
        return 0.0
    return float(payload.com[PLACES.index(part)]) if part else float(payload.mass)


def _payload_text(name: str, payload: Payload | None, chosen: Mapping[str, float]) -> str:
    """Return the payload in the form of `scenarios.setup.Setup`.

    Args:
        name: name of the setting.
        payload: the nominal payload.
        chosen: mass and coordinates that differ from it, by `""`, `x`, `y`, `z`.

    Raises:
        VariationError: a centre of mass varies, but there is no payload.
    """
    mass = chosen.get("", _nominal_payload(payload, ""))
    if payload is None and "" not in chosen:
        raise VariationError(
            f"{name}.{next(iter(chosen))} cannot vary: there is no payload; set the mass of {name}"
        )
    numbers = [mass, *(chosen.get(axis, _nominal_payload(payload, axis)) for axis in PLACES)]
    if payload is not None and payload.mass > 0:
        inertia = mass / payload.mass * np.asarray(payload.inertia)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
        if any((xx, yy, zz)):
            numbers += [xx, yy, zz, xy, xz, yz]
    return ",".join(map(repr, numbers))


def _robot_key(task: Task) -> tuple[Any, ...]:
    return task.setup.robot, task.setup.mounting, task.setup.drives


def _arms_key(task: Task) -> tuple[Any, ...]:
    return _robot_key(task), task.scenario, task.setup.payload, task.setup.model_payload


T = TypeVar("T")


class Memoized(Generic[T]):
    """Results by their keys, the latest ones.

    Args:
        most: largest number of stored results; the oldest are dropped.
    """

    def __init__(self, most: int) -> None:
        self._stored: deque[tuple[Any, T]] = deque(maxlen=most)
        self._lock = Lock()

    def __call__(self, key: Any, make: Callable[[], T]) -> T:
        """Return the result of this key; make it if it is not stored."""
        with self._lock:
            for known, result in self._stored:
                if known == key:
                    return result
            result = make()
            self._stored.appendleft((key, result))
            return result
