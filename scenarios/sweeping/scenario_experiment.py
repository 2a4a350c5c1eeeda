"""What varies in a scenario, and the trial that comes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from scenarios.base import Config
from scenarios.checks import bounds
from scenarios.checks.closed_loop import Arms
from scenarios.cli.arguments import fields, kind_of
from scenarios.running import registry
from scenarios.sweeping import varied_law, varied_payload
from scenarios.sweeping.remembered import Remembered
from twin.control.control_law import ControlLaw
from twin.errors import UnknownNameError, VariationError
from twin.robot.robot import Robot
from twin.sweeps import robot_quantities
from twin.sweeps.robot_quantities import Quantity
from twin.sweeps.trial import Trial
from twin.trajectories.sampling import Samples

MODEL, LAW = "model.", "law."
"""Before the names of quantities of the controller's model, and of settings of the control law."""

REFERENCES, OTHERS = 32, 8
"""Of so many different settings references are kept (20 MB, of runs of 4 s), and arms and laws."""


class ScenarioExperiment:
    """A scenario under one control law, as an `Experiment`; it travels by its name and its settings.

    What can vary: every number among the scenario's settings; `payload` and `model_payload`, in [kg], and
    their centres of mass `payload.x`, `.y`, `.z`, in [m]; the quantities of the plant, and after `model.` of
    the controller's model, see `twin.sweeps.robot_quantities`; after `law.` the law's own settings, of which
    vectors are varied by a factor, and numbers are what they are.

    Args:
        scenario: its name, or the path of its file.
        settings: what does not vary, the control law and `changes` included.
        tool_error: whether trials compare the place of the tool, too.
        engine: whether the engine is to run the trials, which takes laws that cannot be compiled, too.

    Raises:
        VariationError: the scenario is none that can vary.
        TwinError: it does not load.
    """

    def __init__(
        self, scenario: str, settings: Config, *, tool_error: bool = False, engine: bool = False
    ) -> None:
        self.scenario, self.settings, self.tool_error, self.engine = scenario, settings, tool_error, engine
        found = registry.find(scenario)
        make_reference, make_arms = found.require_closed_loop(), found.arms
        self._kinds = {name: kind_of(type(settings), name).type for name in fields(type(settings))}
        self._leaves_limits = bool(found.leaves_limits)
        self._robot = Remembered[Robot](lambda config: config.bare_robot(), 1)
        self._arms = Remembered[Arms](lambda config: make_arms(self._robot(config), config), OTHERS)
        self._reference = Remembered[Samples](
            lambda config: make_reference(self._robot(config), config), REFERENCES
        )
        self._law = Remembered[ControlLaw](self._made_law, OTHERS)

    def __getstate__(self) -> dict[str, Any]:
        """Names and numbers: a `Config` of somebody's file has no place in another process."""
        own = {
            item.name: getattr(self.settings, item.name)
            for item in dataclasses.fields(self.settings)
            if item.name not in ("progress", "beside")
        }
        return {"settings": own} | {
            name: getattr(self, name) for name in ("scenario", "tool_error", "engine")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        settings = registry.find(state["scenario"]).Config(**state["settings"])
        self.__init__(**(state | {"settings": settings}))

    def quantities(self) -> tuple[Quantity, ...]:
        """Everything that can vary."""
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
                for one in varied_payload.quantities(name, robot.payload)
            ),
            *varied_law.quantities(self.settings, self._law(self.settings)),
            *robot_quantities.quantities(plant),
            *(one._replace(name=MODEL + one.name) for one in robot_quantities.quantities(model)),
        )

    def nominal(self, name: str) -> float:
        """See `twin.sweeps.trial.Experiment`; NaN of a setting that has no number by default."""
        before, _, rest = name.partition(".")
        if name in self._kinds and name not in varied_payload.NAMES:
            self._require_number(name)
            value = getattr(self.settings, name)
            return np.nan if value is None else float(value)
        plant, model = self._nominal_arms()
        if before in varied_payload.NAMES and rest in ("", *varied_payload.PLACES):
            robot = plant if before == "payload" else model
            return varied_payload.nominal(robot.payload, rest)
        if name.startswith(LAW):
            return varied_law.nominal(self.settings, self._law(self.settings), rest)
        try:
            if name.startswith(MODEL):
                return robot_quantities.quantity(model, rest, MODEL).nominal
            return robot_quantities.quantity(plant, name).nominal
        except UnknownNameError:
            known = (one.name for one in self.quantities())
            raise robot_quantities.unknown(name, f"scenario {self.scenario!r}", known) from None

    def law_numbers(self) -> dict[str, float | np.ndarray]:
        """The law's own settings that are numbers, or one a joint, with nominal values of all that varies."""
        return varied_law.numbers(self.settings, self._law(self.settings))

    def config(self, values: Mapping[str, float]) -> Config:
        """The settings of one trial, as `irb-twin run` takes them: `repeat_command` repeats it by them.

        Args:
            values: by the names of the quantities.

        Raises:
            UnknownNameError, VariationError, ValueError: there is no such quantity, it cannot vary, or not
                have that value; what is wrong with a change of a robot shows when the robot is made.
        """
        settings = dict[str, Any]()
        loads: dict[str, dict[str, float]] = {name: {} for name in varied_payload.NAMES}
        law, changes = dict[str, float](), dict(self.settings.changes)
        for name, value in values.items():
            before, _, rest = name.partition(".")
            if before in loads and rest in ("", *varied_payload.PLACES):
                loads[before][rest] = float(value)
            elif name in self._kinds:
                settings[name] = self._number(name, float(value))
            elif name.startswith(LAW):
                law[rest] = float(value)
            else:
                changes[name] = float(value)
        for name, chosen in loads.items():
            if chosen:
                plant, model = self._nominal_arms()
                settings[name] = varied_payload.text(
                    name, (plant if name == "payload" else model).payload, chosen
                )
        config = dataclasses.replace(self.settings, **settings, changes=tuple(changes.items()))
        return varied_law.with_settings(config, law, self._law) if law else config

    def trial(self, values: Mapping[str, float]) -> Trial:
        """See `twin.sweeps.trial.Experiment`."""
        return self.trial_of(self.config(values))

    def trial_of(self, config: Config) -> Trial:
        """The closed loop with these settings."""
        plant, law = config.actual(self._arms(config).plant), self._law(config)
        return Trial(
            plant=plant,
            controller=law,
            reference=self._reference(config),
            sensors=config.sensors,
            time_step=config.time_step,
            steps_per_period=config.steps_per_period,
            T_flange_tool=config.T_flange_tool if self.tool_error else None,
            error_limit=bounds.ROUND_OFF if self._is_exact(config, plant, law) else np.inf,
            leaves_limits=self._leaves_limits,
        )

    def _is_exact(self, config: Config, plant: Robot, law: ControlLaw) -> bool:
        """Whether nothing but rounding can come between reference and arm, see `bounds.is_exact`."""
        undisturbed = config.steps_per_period == 1 and config.reference == "consistent"
        if not (config.known_law and undisturbed and config.sensors is None):
            return False
        return bounds.makes_exact(config.controller, plant.drive_mode, law.robot.drive_mode)

    def _made_law(self, config: Config) -> ControlLaw:
        """The control law with its model."""
        law: Any = config.control_law(self._model(config))
        if not (isinstance(law, ControlLaw) or self.engine):
            raise VariationError(
                f"controller {config.controller!r} is no twin.ControlLaw and cannot be compiled: only "
                "the engine can run it (--engine)"
            )
        return law

    def _model(self, config: Config) -> Robot:
        """What the controller believes in."""
        plant, model = self._arms(config)
        return config.believed(plant if model is None else model)

    def _nominal_arms(self) -> tuple[Robot, Robot]:
        """The plant, and what the controller believes in, before any change."""
        nominal = dataclasses.replace(self.settings, changes=())
        return self._arms(nominal).plant, self._model(nominal)

    def _require_number(self, name: str) -> type:
        """What kind of number a setting is.

        Raises:
            VariationError: it is none.
        """
        kind = self._kinds[name]
        if kind not in (int, float):
            what = "on or off" if kind is bool else "a text"
            raise VariationError(f"{name} cannot vary: it is {what}, not a number")
        return kind

    def _number(self, name: str, value: float) -> float:
        """The value of a setting, a whole number where it has to be one."""
        if self._require_number(name) is float:
            return value
        if not value.is_integer():
            raise VariationError(f"{name} is a whole number, got {value!r}")
        return int(value)
