"""Scenario as an experiment of a sweep: the quantities that can vary, and the trial of given values."""

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

import controllers
from scenarios.base import Config, Metric
from scenarios.checks import bounds
from scenarios.checks.closed_loop import Arms
from scenarios.checks.motion_range import within_limits
from scenarios.cli.arguments import fields, kind_of
from scenarios.running import registry
from scenarios.running.diagnosis import FRICTION_CHECK
from scenarios.running.runs import judged
from scenarios.running.tracking_verdict import ERROR, RATIO
from scenarios.sweeping.findings import OF_A_TRIAL
from twin.control.control_law import ControlLaw
from twin.errors import UnknownNameError, VariationError, describe_error_with_type
from twin.logs.log import Log
from twin.robot.robot import Payload, Robot
from twin.sweeps import robot_quantities
from twin.sweeps.robot_quantities import Quantity, unknown
from twin.sweeps.trial import Trial
from twin.trajectories.sampling import Samples

MODEL, LAW = "model.", "law."
"""Prefixes of the names of quantities of the controller's model, and of settings of the controller."""

REFERENCES, OTHERS = 32, 8
"""Number of cached references (20 MB for runs of 4 s), and of cached arms and controllers."""


class ScenarioExperiment:
    """Scenario with one controller, as an `Experiment`; it is pickled as its name and its settings.

    These quantities can vary: every number among the scenario's settings; `payload` and `model_payload`, in
    [kg], and their centres of mass `payload.x`, `.y`, `.z`, in [m]; the quantities of the plant, and with the
    prefix `model.` those of the controller's model, see `twin.sweeps.robot_quantities`; with the prefix
    `law.` the settings of the controller. A vector setting is varied by a factor, a scalar setting by its
    value.

    Args:
        scenario: name of the scenario, or path of its file.
        settings: settings that do not vary, including the controller and `changes`.
        tool_error: whether trials compute the tool's error, too.
        loads: whether trials compute the loads on foundation and pins, too.
        engine: whether the engine runs all trials; it also runs controllers that cannot be compiled.
        absent: quantities that vary for other controllers of the sweep, but that this controller lacks; their
            values are ignored.

    Raises:
        VariationError: the scenario cannot be varied.
        TwinError: the scenario cannot be loaded.
    """

    def __init__(
        self,
        scenario: str,
        settings: Config,
        *,
        tool_error: bool = False,
        loads: bool = False,
        engine: bool = False,
        absent: frozenset[str] = frozenset(),
    ) -> None:
        self.scenario, self.settings, self.engine = scenario, settings, engine
        self.tool_error, self.loads, self.absent, self.not_judged = tool_error, loads, absent, ""
        self._scenario = found = registry.find(scenario)
        make_reference, make_arms = found.require_closed_loop(), found.arms
        self._kinds = {name: kind_of(type(settings), name).type for name in fields(type(settings))}
        self._leaves_limits = bool(found.leaves_limits)
        self._robot = Memoized[Robot](lambda config: config.bare_robot(), 1)
        self._arms = Memoized[Arms](lambda config: make_arms(self._robot(config), config), OTHERS)
        self._reference = Memoized[Samples](
            lambda config: make_reference(self._robot(config), config), REFERENCES
        )
        self._law = Memoized[Any](self._made_law, OTHERS)
        self._within_limits = Memoized[bool](
            lambda config: within_limits(self._robot(config), self._reference(config)), REFERENCES
        )
        self._judging = Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return names and numbers only: another process cannot unpickle a `Config` from a user's file."""
        settings = {
            item.name: getattr(self.settings, item.name)
            for item in dataclasses.fields(self.settings)
            if item.name not in ("progress", "simulated", "beside")
        }
        return {"settings": settings} | {
            name: getattr(self, name) for name in ("scenario", "tool_error", "loads", "engine", "absent")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        settings = registry.find(state["scenario"]).Config(**state["settings"])
        self.__init__(**(state | {"settings": settings}))

    def quantities(self) -> tuple[Quantity, ...]:
        """Return all quantities that can vary."""
        numbers = [
            Quantity(name, self.nominal(name), "", item.metadata["help"])
            for name, item in fields(type(self.settings)).items()
            if self._kinds[name] in (int, float)
        ]
        plant, model = self._nominal_arms()
        return (
            *numbers,
            *(
                one
                for name, robot in (("payload", plant), ("model_payload", model))
                for one in _payload_quantities(name, robot.payload)
            ),
            *_law_quantities(self.settings, self._law(self.settings)),
            *robot_quantities.quantities(plant),
            *(one._replace(name=MODEL + one.name) for one in robot_quantities.quantities(model)),
        )

    def nominal(self, name: str) -> float:
        """Return a nominal value, see `twin.sweeps.trial.Experiment`; NaN for a setting without one."""
        before, _, rest = name.partition(".")
        if name in self.absent:
            return np.nan
        if name in self._kinds and name not in PAYLOADS:
            self._require_number(name)
            value = getattr(self.settings, name)
            return np.nan if value is None else float(value)
        plant, model = self._nominal_arms()
        if before in PAYLOADS and rest in ("", *PLACES):
            robot = plant if before == "payload" else model
            return _nominal_payload(robot.payload, rest)
        if name.startswith(LAW):
            return _nominal_setting(self.settings, self._law(self.settings), rest)
        try:
            if name.startswith(MODEL):
                return robot_quantities.quantity(model, rest, MODEL).nominal
            return robot_quantities.quantity(plant, name).nominal
        except UnknownNameError:
            known = (one.name for one in self.quantities())
            raise robot_quantities.unknown(name, f"scenario {self.scenario!r}", known) from None

    def law_numbers(self) -> dict[str, float | np.ndarray]:
        """Return the numeric settings of the controller, for nominal values of all varied quantities."""
        return _law_numbers(self.settings, self._law(self.settings))

    def config(self, values: Mapping[str, float]) -> Config:
        """Return the settings of one trial, from which `repeat_command` makes its command.

        Args:
            values: values by the names of the quantities.

        Raises:
            UnknownNameError, VariationError, ValueError: a quantity does not exist, cannot vary, or cannot
                have this value. Invalid changes of a robot raise only when the robot is made.
        """
        settings = dict[str, Any]()
        loads: dict[str, dict[str, float]] = {name: {} for name in PAYLOADS}
        law, changes = dict[str, float](), dict(self.settings.changes)
        for name, value in values.items():
            before, _, rest = name.partition(".")
            if before in loads and rest in ("", *PLACES):
                loads[before][rest] = float(value)
            elif name in self._kinds:
                settings[name] = self._number(name, float(value))
            elif name.startswith(LAW):
                law |= {} if name in self.absent else {rest: float(value)}
            else:
                changes[name] = float(value)
        for name, chosen in loads.items():
            if chosen:
                plant, model = self._nominal_arms()
                settings[name] = _payload_text(name, (plant if name == "payload" else model).payload, chosen)
        config = dataclasses.replace(self.settings, **settings, changes=tuple(changes.items()))
        return _with_law_settings(config, law, self._law) if law else config

    def trial(self, values: Mapping[str, float]) -> Trial:
        """Return the trial of these values, see `twin.sweeps.trial.Experiment`."""
        return self.trial_of(self.config(values))

    def trial_of(self, config: Config) -> Trial:
        """Return the closed loop with these settings.

        Its log is judged by the scenario's `metrics` if these have other limits than the figures of a trial.
        """
        bounded = config.known_law and not config.law_settings
        own = self.further_checks - (set() if bounded else {RATIO})
        if not own and self._within_limits(config):
            return self._trial(config)
        return self._trial(config, partial(self._failed_check, config))

    @cached_property
    def further_checks(self) -> set[str]:
        """Checks of the run with nominal settings that the figures of a trial do not judge.

        Without those that compare the engine with the model. If they cannot be computed from the log of a
        draw, the reason is in `not_judged`.
        """
        from twin.sweeps import evaluation

        checks = set[str]()

        def note(log: Log) -> str:
            try:
                checks.update(one.name for one in self._metrics(self.settings, log) if one.limit is not None)
            except Exception as error:
                self.not_judged = f"checks of the scenario ({describe_error_with_type(error)})"
                checks.update(OF_A_TRIAL)
            return ""

        evaluate = evaluation.engine_outcomes if self.needs_engine else evaluation.outcomes
        nominal = self._trial(self.settings, note)
        if evaluate([nominal])[0]["trouble"]:
            return {"checks of the scenario"}  # unknown, since the run ended early
        exact = {ERROR} if nominal.error_limit < np.inf else set()
        figures = OF_A_TRIAL | exact | {FRICTION_CHECK}
        return checks - figures - OF_THE_REFERENCE if checks >= OF_A_TRIAL else checks

    def _metrics(self, config: Config, log: Log) -> tuple[Metric, ...]:
        """Return the checks of a draw, from its log in place of the engine's."""
        run = dataclasses.replace(config, simulated=(self._robot(config), log))
        with self._judging:  # the scenario may have a state
            return judged(self._scenario, config, self._scenario.run(run))

    def _failed_check(self, config: Config, log: Log) -> str:
        """Return the name of the first check that a draw fails, or the error of the checks; "" if none."""
        try:
            return next((one.name for one in self._metrics(config, log) if not one.passes), "")
        except Exception as error:
            return describe_error_with_type(error)

    def _trial(self, config: Config, judge: Callable[[Log], str] | None = None) -> Trial:
        plant, law = config.with_plant_changes(self._arms(config).plant), self._law(config)
        if not isinstance(law, ControlLaw):
            law = self._made_law(config)  # it may have a state, which must not outlast its run
        return Trial(
            plant=plant,
            controller=law,
            reference=self._reference(config),
            sensors=config.sensors,
            time_step=config.time_step,
            steps_per_period=config.steps_per_period,
            T_flange_tool=config.T_flange_tool if self.tool_error else None,
            loads=self.loads,
            error_limit=bounds.ROUND_OFF if self._is_exact(config, plant, law) else np.inf,
            leaves_limits=self._leaves_limits,
            judge=judge,
        )

    def _is_exact(self, config: Config, plant: Robot, law: ControlLaw) -> bool:
        """Return whether the tracking error consists of rounding errors only, see `bounds.is_exact`."""
        undisturbed = config.steps_per_period == 1 and config.reference == "consistent"
        if not (config.known_law and not config.law_settings and undisturbed and config.sensors is None):
            return False
        return bounds.makes_exact(config.controller, plant.drive_mode, law.robot.drive_mode)

    @property
    def needs_engine(self) -> bool:
        """Whether the engine runs the trials: it was chosen, or the controller cannot be compiled."""
        return self.engine or not isinstance(self._law(self.settings), ControlLaw)

    def _made_law(self, config: Config) -> Any:
        """Return the controller with its model."""
        return config.control_law(self._model(config))

    def _model(self, config: Config) -> Robot:
        """Return the controller's model."""
        plant, model = self._arms(config)
        return config.controller_model(plant if model is None else model)

    def _nominal_arms(self) -> tuple[Robot, Robot]:
        """Return the plant and the controller's model before any change."""
        nominal = dataclasses.replace(self.settings, changes=())
        return self._arms(nominal).plant, self._model(nominal)

    def _require_number(self, name: str) -> type:
        """Return the type of a numeric setting.

        Raises:
            VariationError: the setting is not a number.
        """
        kind = self._kinds[name]
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


OF_THE_REFERENCE = {"reference beyond the range", "reference speed / its limit"}
"""Checks that all draws with one reference share."""


PAYLOADS = {
    "payload": "the payload at the flange",
    "model_payload": "the payload in the controller's model",
}
PLACES = ("x", "y", "z")


def _payload_quantities(name: str, payload: Payload | None) -> list[Quantity]:
    """Return the quantities of a payload: its mass and its centre of mass; those of no payload are 0."""
    what = PAYLOADS[name]
    places = [
        Quantity(
            f"{name}.{axis}", _nominal_payload(payload, axis), "m", f"centre of mass of {what}, flange frame"
        )
        for axis in PLACES
    ]
    return [
        Quantity(name, _nominal_payload(payload, ""), "kg", f"mass of {what}; its inertia is scaled with it"),
        *places,
    ]


def _nominal_payload(payload: Payload | None, part: str) -> float:
    """Return the mass, in [kg], or with the name of an axis the centre of mass along it, in [m]."""
    if payload is None:
        return 0.0
    return float(payload.com[PLACES.index(part)]) if part else float(payload.mass)


def _payload_text(name: str, payload: Payload | None, chosen: Mapping[str, float]) -> str:
    """Return the payload in the form of `scenarios.base.Config`.

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


def _law_quantities(config: Config, law: Any) -> list[Quantity]:
    """Return the settings of a controller that can vary, with the prefix `law.`."""
    found = []
    for name, value in _law_numbers(config, law).items():
        if isinstance(value, float):
            found.append(Quantity(f"law.{name}", value, "", f"setting of {config.controller}"))
        else:
            meaning = f"factor on a setting of {config.controller}, for all joints"
            found.append(Quantity(f"law.{name}", 1.0, "", meaning))
    return found


def _law_numbers(config: Config, law: Any) -> dict[str, float | np.ndarray]:
    """Return the numeric settings of a controller by name: a number, or one number per joint."""
    values = {name: _setting(config, law, name) for name in _offered(config.controller)}
    return {name: value for name, value in values.items() if value is not None}


def _nominal_setting(config: Config, law: Any, name: str) -> float:
    """Return the value of a setting; 1 for a vector, which is varied by a factor.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: the setting is not numeric.
    """
    value = _required_numbers(config, law, name)
    return value if isinstance(value, float) else 1.0


def _with_law_settings(
    config: Config, chosen: Mapping[str, float], law_of: Callable[[Config], Any]
) -> Config:
    """Return the configuration with some settings of the controller replaced.

    Args:
        config: the configuration before.
        chosen: values or factors, by the settings' names.
        law_of: function that makes the controller of a configuration, whose gains the factors multiply.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: a setting is not numeric.
    """
    for name in sorted(chosen, key=lambda name: name != "bandwidth"):  # other settings are derived from it
        now = _required_numbers(config, law_of(config), name)
        value = chosen[name] if isinstance(now, float) else tuple((chosen[name] * now).tolist())
        settings = dict(config.law_settings) | {name: value}
        config = dataclasses.replace(config, law_settings=tuple(settings.items()))
    return config


def _offered(controller: str) -> list[str]:
    """Return the settings of a controller, without the period, which is that of the run."""
    return [name for name in controllers.settings(controller) if name != "period"]


def _required_numbers(config: Config, law: Any, name: str) -> Any:
    """Return the value of a setting that can vary: a number, or an array."""
    offered = _offered(config.controller)
    if name not in offered:
        raise unknown(f"law.{name}", f"controller {config.controller!r}", [f"law.{one}" for one in offered])
    value = _setting(config, law, name)
    if value is None:
        raise VariationError(f"law.{name} cannot vary: it is not a numeric setting of {config.controller!r}")
    return value


def _setting(config: Config, law: Any, name: str) -> Any:
    """Return a setting (chosen, default, or derived): a number, or an array; `None` if it is not numeric."""
    known = controllers.defaults(config.controller) | {"bandwidth": config.bandwidth}
    value = (known | dict(config.law_settings)).get(name)
    if value is None:
        value = getattr(getattr(law, "gains", law), name, None)
    if isinstance(value, bool) or not isinstance(value, (int, float, tuple, list, np.ndarray)):
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        return None
    return float(array) if array.ndim == 0 else array.astype(np.float64)


T = TypeVar("T")

DERIVED = ("plant_changes", "model_changes")
"""Properties of `Config` that split `changes`; each is a dependency by itself."""


class Memoized(Generic[T]):
    """Function of settings that is memoized by the settings that it reads.

    The dependencies of a scenario's reference need not be declared: a varied payload does not change the
    reference unless the scenario reads the payload.

    Args:
        make: the function; it reads the attributes of the settings, and nothing else that changes.
        most: largest number of cached results; the oldest are dropped.
    """

    def __init__(self, make: Callable[[Config], T], most: int) -> None:
        self._make = make
        self._cache: deque[tuple[dict[str, Any], T]] = deque(maxlen=most)
        self._lock = Lock()

    def __call__(self, config: Config) -> T:
        """Return the result for these settings: the same object if all settings that were read are equal."""
        with self._lock:
            for read, result in self._cache:
                if all(getattr(config, name) == value for name, value in read.items()):
                    return result
            read = {}
            result = self._make(_watched(config, read))
            self._cache.appendleft((read, result))
            return result


def _watched(config: Config, read: dict[str, Any]) -> Config:
    """Return a copy of the settings that stores in `read` every setting that is read, with its value."""
    watched = object.__new__(_watched_class(config.__class__))
    object.__setattr__(watched, "_watched", (config, read))
    return watched


@cache
def _watched_class(kind: type[Config]) -> type[Config]:
    names = {*(item.name for item in dataclasses.fields(kind)), *DERIVED}

    class Watched(kind):
        def __getattribute__(self, name: str) -> Any:
            config, read = object.__getattribute__(self, "_watched")
            if name == "__class__":
                return kind  # copies must not be watched: copying reads all settings
            for one in names if name == "__dict__" else names & {name}:
                read[one] = getattr(config, one)
            if name in names:
                return read[name]
            return config.__dict__ if name == "__dict__" else super().__getattribute__(name)

    return Watched
