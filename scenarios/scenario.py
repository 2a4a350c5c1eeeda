"""Scenario: what an arm is to do, and what must hold.  A scenario is a class; its fields are its options.

    from scenarios import TrackingScenario, option
    import twin

    class Nod(TrackingScenario):
        \"\"\"Nod with the arm: move axis 5 down and up again.\"\"\"

        angle: float = option(0.5, "travel of axis 5, in rad")

        def motion(self, robot):
            down = [0, 0, 0, 0, self.angle, 0]
            return twin.sequence(twin.quintic([0] * 6, down, 1.0), twin.quintic(down, [0] * 6, 1.0))

A file with one such class is a scenario of `irb-twin run ./nod.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as all_fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from scenarios.class_rules import require_attributes, require_options, require_settings
from scenarios.metric import Metric
from scenarios.options import dataclass_transform, fields, one_of, option
from scenarios.setup import Arms, Sampling, Setup
from twin.base.errors import PluginError, VariationError
from twin.physics.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from scenarios.judging.run import TrackingRun
    from twin.data.logs.annotations import LoadChange
    from twin.data.logs.log import Log
    from twin.physics.trajectories.joint_trajectories import Trajectory
    from twin.physics.trajectories.sampling import Samples

ScenarioTable: TypeAlias = tuple[str, Sequence[Sequence[str]]]
"""Caption, and rows of texts, headings first."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(option,))
@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Scenario with its options; a subclass becomes a frozen dataclass.

    A subclass has a docstring (what the scenario shows, and what must hold) and defines `run`, and `metrics`
    if it has figures of its own.

    Attributes:
        defaults: settings of the setup that differ from `Setup` by default, as `{"drives": "rigid"}`.
        limits: largest allowed values of figures of `twin.sweeps.trial.FIGURES`, as `{"joint_error": 0.01}`.
        variants: options and settings of further runs of `irb-twin validate`.
        side_by_side: controllers that `irb-twin run` compares by default.
        leaves_limits: one sentence, why the arm leaves its ranges or speed limits on purpose. In every other
            scenario a joint beyond its range or speed limit is a failed check.
        declares_loads: whether the scenario itself declares tool and payload, as a program does.
        picture: function (logs, path) that draws the picture of `--picture`; `None` for the one with errors
            and paths.
    """

    defaults: ClassVar[Mapping[str, Any]] = {}
    limits: ClassVar[Mapping[str, float]] = {}
    variants: ClassVar[Sequence[Mapping[str, Any]]] = ()
    side_by_side: ClassVar[Sequence[str]] = ()
    leaves_limits: ClassVar[str] = ""
    declares_loads: ClassVar[bool] = False
    picture: ClassVar[Callable[..., None] | None] = None

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        doc = cls.__doc__
        require_settings(cls)
        dataclass(frozen=True, kw_only=True)(cls)
        cls.__doc__ = doc  # in place of the signature that a dataclass without a docstring gets
        require_options(cls)
        require_attributes(cls)

    @classmethod
    def description(cls) -> str:
        """Return the docstring, without its indentation."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def title(cls) -> str:
        """Return the first line of the docstring."""
        return cls.description().partition("\n")[0]

    @classmethod
    def setup(cls, **settings: Any) -> Setup:
        """Return a setup with the defaults of the scenario and these settings."""
        return Setup(**{**cls.defaults, **settings})

    def check(self, setup: Setup) -> None:
        """Raise a ValueError or `TwinError` if the options do not fit the setup."""

    def checked(self, setup: Setup | None) -> Setup:
        """Return a setup that the options fit, by default `self.setup()`.

        Raises:
            TwinError, ValueError: an option is none of its choices, or the options do not fit the setup.
        """
        for name, item in fields(type(self)).items():
            if (value := getattr(self, name)) is not None and item.metadata.get("choices"):
                one_of(value, name, item.metadata["choices"])
        found = self.setup() if setup is None else setup
        self.check(found)
        return found

    def suits(self, robot: Robot) -> bool:
        """Return whether the scenario is meaningful for a robot; `validate` skips other robots."""
        return True

    def run(self, setup: Setup | None = None) -> TrackingRun | Log:
        """Run the scenario, without printing and without touching files; by default with `self.setup()`."""
        raise NotImplementedError(f"{type(self).__name__} defines no run(self, setup)")

    def metrics(self, run: Any) -> Sequence[Metric]:
        """Return the figures and checks of a run, each with the origin of its limit."""
        from scenarios.judging.tracking import tracking_metrics

        return tracking_metrics(run)

    def table(self, run: Any) -> ScenarioTable | None:
        """Return a further table of a run for the report; `None` for none."""
        return None

    def cases(self, run: Any) -> Sequence[tuple[str, str, float, str]]:
        """Return results of parts of a run for JUnit, see `scenarios.running.runs.Run`."""
        return ()


class ClosedLoop(NamedTuple):
    """Reference, plant and controller's model, and payloads of a scenario."""

    reference: Samples
    arms: Arms
    loads: Sequence[LoadChange] = ()


class TrackingScenario(Scenario):
    """Scenario in which the arm follows a motion; it defines `motion`, or `reference`.

    It can be swept, tuned and learned, and its robot can be changed: ``--with mass=1.1``. All hooks get the
    nominal robot, without a payload and without changes.

    Attributes:
        needs: what the motion depends on beside options, robot and sampling: "tool", "payload", "seed".
    """

    needs: ClassVar[Sequence[str]] = ()

    def motion(self, robot: Robot) -> Trajectory:
        """Return the motion of the joints, a function of time."""
        raise NotImplementedError(f"{type(self).__name__} defines no motion(self, robot)")

    def reference(self, robot: Robot, sampling: Sampling) -> Samples:
        """Return the motion at every control period."""
        return sampling.sampled(self._returned("motion", robot))

    def arms(self, robot: Robot, payload: Payload | None) -> Arms:
        """Return plant and controller's model; by default both carry the payload of the setup."""
        return Arms(robot if payload is None else robot.with_payload(payload))

    def loads(self, robot: Robot) -> Mapping[float, Payload | None]:
        """Return the payloads by the times from which plant and model carry them, in [s], the first one 0.

        Empty if the payload does not change. A payload of the setup is what the arm really carries; the
        model then believes these loads, or the model payload of the setup.
        """
        return {}

    def constant_arms(self, robot: Robot, setup: Setup) -> Arms:
        """Return plant and model for commands with one payload per run; they depend on the payloads alone.

        Raises:
            VariationError: the payload changes during a run.
        """
        if self.loads(robot):
            raise VariationError(
                f"the payload changes during {type(self).__name__}, and this command needs one"
            )
        return self.arms(robot, setup.plant_payload)

    def adapted(self, setup: Setup, robot: Robot) -> Setup:
        """Return the setup with what the task adds: surfaces, and settings of the controller."""
        return setup

    def of_motion(self) -> TrackingScenario:
        """Return the scenario with default values of all options that its motion does not depend on.

        Equal results have equal motions, which a sweep computes once.
        """
        hidden = {
            item.name: item.default for item in all_fields(self) if not item.metadata.get("motion", True)
        }
        return replace(self, **hidden)

    def loop(self, setup: Setup) -> ClosedLoop:
        """Return the closed loop of a setup."""
        robot = setup.nominal_robot()
        reference = self.of_motion()._returned("reference", robot, setup.sampling(self.needs))
        loads = load_changes(self._returned("loads", robot), setup)
        return ClosedLoop(reference, self._returned("arms", robot, setup.plant_payload), loads)

    def _returned(self, hook: str, *given: Any) -> Any:
        """Return what a hook returns; raise a PluginError if it returns nothing."""
        if (found := getattr(self, hook)(*given)) is None:
            raise PluginError(f"{type(self).__name__}.{hook} returned None: a return is missing")
        return found

    def run(self, setup: Setup | None = None) -> TrackingRun:
        """Follow the motion; by default with `self.setup()`."""
        from scenarios.judging.following import follow

        setup = self.checked(setup)
        reference, arms, loads = self.loop(setup)
        adapted: Setup = self._returned("adapted", setup, setup.nominal_robot())
        return follow(adapted, reference, arms, loads=loads)


def load_changes(loads: Mapping[float, Payload | None], setup: Setup) -> list[LoadChange]:
    """Return the changes of payloads by times, in [s], at whole control periods.

    Of two payloads in one period the later one remains. A payload of the setup replaces those of the plant.

    Raises:
        PluginError: the first time is not 0, or the times do not increase.
    """
    from twin.data.logs.annotations import LoadChange

    times = list(loads)
    if times and (times[0] != 0 or times != sorted(times)):
        raise PluginError(f"loads: expected times that begin with 0 s and increase, got {times}")
    real = setup.plant_payload
    at = {math.ceil(time / setup.period - 1e-9): one for time, one in loads.items()}
    return [LoadChange(sample, one if real is None else real, one) for sample, one in at.items()]
