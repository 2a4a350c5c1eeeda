"""What varies in a scenario, and the trial that comes of it."""

from __future__ import annotations

from collections.abc import Mapping

from scenarios.base import Config
from twin.sweeps.robot_quantities import Quantity
from twin.sweeps.trial import Trial


class ScenarioExperiment:
    """A scenario under one control law, as an `Experiment`; it travels by its name and its settings.

    Args:
        scenario: its name, or the path of its file.
        settings: what does not vary, the control law included; `settings.changes` too.
        tool_error: whether trials are to compare the tool's place.

    Raises:
        VariationError: the scenario is none that can vary, or the law one that only the engine can run.
    """

    def __init__(self, scenario: str, settings: Config, *, tool_error: bool = False) -> None:
        self.scenario, self.settings, self.tool_error = scenario, settings, tool_error

    def quantities(self) -> tuple[Quantity, ...]:
        """Everything that can vary: settings of the scenario, of the law, of the robot and the model."""
        raise NotImplementedError

    def nominal(self, name: str) -> float:
        """See `twin.sweeps.trial.Experiment`; NaN where a setting has no number by default."""
        raise NotImplementedError

    def config(self, values: Mapping[str, float]) -> Config:
        """The settings of one trial, as `irb-twin run` takes them: `repeat_command` repeats it by them."""
        raise NotImplementedError

    def trial(self, values: Mapping[str, float]) -> Trial:
        """See `twin.sweeps.trial.Experiment`."""
        raise NotImplementedError
