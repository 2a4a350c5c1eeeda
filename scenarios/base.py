"""Base class of every scenario's settings, and the parts that make a Python file a scenario.

A scenario is one Python file, in this package or anywhere else, that contains

- a docstring: what the scenario shows and what must hold,
- ``Config``: a frozen dataclass that inherits `base.Config`; every field made with `option` becomes an
  option of the command line,
- ``run(config) -> Log``: runs the scenario, without printing and without touching files,
- ``metrics(log) -> tuple[Metric, ...]``: a pure function; computes the figures and checks of a run, each with
  the origin of its limit,
- optionally ``reference(robot, config) -> Samples``: the motion that the arm is to follow,
- optionally ``arms(robot, config) -> Arms``: plant and model, where they are not simply the robot with its
  payload. ``reference`` and ``arms`` both get the nominal robot without a payload, and ``run`` combines them
  by `scenarios.checks.closed_loop`. A scenario with a ``reference`` can be swept, and its robot can be
  changed: ``--with mass=1.1``,
- optionally ``VARIANTS``: further `Config`s that ``irb-twin validate`` runs besides every controller,
- optionally ``suits(robot) -> bool``: whether the scenario is meaningful for a robot; ``validate`` skips the
  robots for which it is false,
- optionally ``LEAVES_LIMITS``: one sentence, why the arm leaves its ranges or speed limits on purpose. In
  every other scenario a joint beyond its range or speed limit is a failed check,
- optionally ``SIDE_BY_SIDE``: the controllers that ``irb-twin run`` compares by default,
- optionally ``table(log) -> (caption, rows)``: rows of texts, headings first; the report prints the tables
  that differ from those of the runs before,
- optionally ``cases(log)``: results of parts of the run for JUnit, see `scenarios.running.runs.Run`,
- optionally ``picture(logs, path)``: draws the picture of ``--picture``, in place of the default one with
  errors and paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import controllers
from controllers import Controller
from scenarios.metric import Metric as Metric
from twin.errors import RobotError, UnknownNameError
from twin.robot.drives.drives import MODES, known_mode
from twin.robot.robot import (
    Payload,
    Robot,
    mounting_gravity,
)  # a light import: starts neither compiler nor engine

if TYPE_CHECKING:
    from twin.learning.learned_input import LearnedInput
    from twin.robot.drives.sensors import Sensors


MOST_STEPS = 1_000_000
"""Largest number of engine steps in a control period.

Equal to the limit of `twin.run_closed_loop`, whose module is too heavy to import here.
"""


def option(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:
    """Return a field of a `Config` that becomes an option of the command line.

    Args:
        default: default value of the option.
        help: help text of the option.
        choices: valid values; empty if any value of the field's type is valid.

    Example:
        >>> from scenarios.base import option
        >>> angle = option(0.5, "travel of axis 5, in rad")
        >>> angle.default, angle.metadata["help"]
        (0.5, 'travel of axis 5, in rad')
    """
    return field(default=default, metadata={"help": help, "choices": choices})


def one_of(value: str, what: str, known: tuple[str, ...]) -> None:
    """Raise an error unless a value is one of the known ones.

    Raises:
        UnknownNameError: the value is unknown; the message lists the known values.
    """
    if value not in known:
        raise UnknownNameError(f"unknown {what} {value!r}: known are {', '.join(known)}")


def named_pose(robot: Robot, name: str) -> NDArray:
    """Return the joint angles (n,) of a named pose of the robot, in [rad].

    Raises:
        RobotError: the robot's file defines no poses; a URDF never does.
        UnknownNameError: the file defines other poses; the message lists them.
    """
    if not robot.poses:
        raise RobotError(
            f"robot {robot.name!r} has no named poses, hence no {name!r}: only a robot.toml or a "
            "dh.toml can define poses"
        )
    one_of(name, f"pose of {robot.name}", tuple(robot.poses))
    return robot.poses[name]


def positive(value: float, what: str, unit: str) -> None:
    """Raise an error unless a setting is positive and finite.

    Raises:
        ValueError: the value is not; the message has the setting's name, value and unit.
    """
    if not 0 < value < float("inf"):
        raise ValueError(f"expected a positive, finite {what} in {unit}, got {value}")


@dataclass(frozen=True)
class Config:
    """Settings of every scenario.

    Raises:
        UnknownNameError: the controller, reference, mounting or drives do not exist.
        ValueError: a number is not positive and finite, or the payload or tool is invalid.

    Example:
        >>> from scenarios.gravity_hold import Config
        >>> config = Config(robot="irb1600", controller="pd", payload="6", duration=0.1)
        >>> config.bare_robot().name, config.bandwidth
        ('irb1600', 20.0)
    """

    robot: str = option("irb140", "name of the robot, or path of its robot.toml or URDF")
    mounting: str = option(
        "floor", "mounting of the base: floor, wall, inverted, or degrees about its y axis"
    )
    controller: str = option("computed_torque", "controller", controllers.NAMES)
    law_settings: tuple[tuple[str, Any], ...] = ()
    """Names and values of the controller's settings, as `("Kp", 100.0)`; on the command line `--set`."""
    changes: tuple[tuple[str, float], ...] = ()
    """Changes of the nominal robot: names and values of `twin.sweeps.robot_quantities`.

    A change applies to the plant alone; with the prefix `model.`, to the controller's model alone. On the
    command line `--with`.
    """
    limits: tuple[tuple[str, float], ...] = ()
    """Figures of `twin.sweeps.trial.FIGURES` and their largest allowed values; on the command line
    `--limit`."""
    bandwidth: float = option(20.0, "bandwidth omega of the closed loop, the distance of its poles, in rad/s")
    time_step: float = option(1e-3, "step of the physics engine, in s")
    steps_per_period: int = option(1, "engine steps in a control period; the torque is constant over them")
    reference: str = option(
        "consistent",
        "sampling of the reference: consistent with the engine's recursion, or from the continuous motion",
        ("consistent", "continuous"),
    )
    tool: str | None = option(
        None,
        "tool on the flange, x,y,z,a,b,c,d: m and a unit quaternion; or x,y,z; or its length (default none)",
    )
    payload: str | None = option(
        None,
        "payload on the flange, mass,x,y,z,Ixx,Iyy,Izz,Ixy,Ixz,Iyz: kg, m, kg m^2; or mass,x,y,z; or mass "
        "(default none)",
    )
    model_payload: str | None = option(
        None, "payload in the controller's model, in the same form; 0: none (default the robot's payload)"
    )
    drives: str = option(
        "ideal",
        "drive model: torque limits (ideal), plus rotors and friction (rigid), plus springs (elastic)",
        MODES,
    )
    model_drives: str | None = option(
        None,
        "drives in the controller's model (default the robot's; elastic ones as rigid, except under "
        "elastic_inverse)",
        MODES,
    )
    learned: str | None = option(
        None, "correct the reference by an input that irb-twin learn wrote for the same motion (default none)"
    )
    encoder: bool = option(False, "round measured positions to whole counts of the motors' encoders")
    noise: float = option(0.0, "standard deviation of the noise on measured positions, in rad")
    speed_cutoff: float = option(
        0.0,
        "cut-off of the filter that derives speeds from positions, in Hz (0: true speeds, inf: no filter)",
    )
    delay: int = option(0, "delay of the measurements, in control periods")
    seed: int = option(0, "seed of every random number")
    gui: bool = option(False, "show the arm in a window, in real time; the arm can be pushed there")
    close_window: bool = option(False, "with --gui: close the window at the end of the run")
    progress: Callable[[float], None] | None = field(default=None, repr=False, compare=False)
    """Function called repeatedly with the fraction done, 0 to 1; not an option of the command line."""
    simulated: Any = field(default=None, repr=False, compare=False)
    """Bare robot and log of a draw of a sweep, which `follow` completes instead of a run in the engine.

    `None` otherwise; not an option of the command line.
    """
    beside: tuple[tuple[str, Any], ...] = field(default=(), repr=False, compare=False)
    """Names and logs of runs with other controllers, shown as ghosts in the window; not an option of the
    command line."""

    def __post_init__(self) -> None:
        controllers.require_known(self.controller)
        one_of(self.reference, "reference", ("consistent", "continuous"))
        mounting_gravity(self.mounting)
        known_mode(self.drives)
        if self.model_drives is not None:
            one_of(self.model_drives, "drives of a controller's model", MODES)
        positive(self.bandwidth, "bandwidth", "rad/s")
        positive(self.time_step, "time step", "s")
        if not 1 <= self.steps_per_period <= MOST_STEPS:
            raise ValueError(
                f"expected 1 to {MOST_STEPS} engine steps per period, got {self.steps_per_period}"
            )
        if not self.seed >= 0:
            raise ValueError(f"expected a seed of 0 or more, got {self.seed}")
        # These properties check the settings that they are made from.
        _ = (
            self.sensors,
            self.T_flange_tool,
            self.plant_payload,
            self.controller_payload,
            self.learned_input,
        )

    @property
    def declares_loads(self) -> bool:
        """Whether the scenario itself declares tool and payload, as a program does."""
        return False

    @property
    def period(self) -> float:
        """Control period in [s]."""
        return self.time_step * self.steps_per_period

    @property
    def sensors(self) -> Sensors | None:
        """Sensors of the controller; `None` if it measures exactly and without delay."""
        settings = (self.encoder, self.noise, self.speed_cutoff, self.delay)
        if settings == (False, 0.0, 0.0, 0):
            return None
        from twin.robot.drives.sensors import Sensors  # imported here because it compiles kernels

        return Sensors(*settings, seed=self.seed)

    @property
    def T_flange_tool(self) -> NDArray:
        """Pose (4, 4) of the tool in the flange frame; the identity without a tool."""
        if self.tool is None:
            return np.eye(4)
        from twin.robot.flange_load import tool_of  # imported here because it loads scipy

        return tool_of(self.tool)

    @property
    def plant_payload(self) -> Payload | None:
        """Payload on the flange of the plant; `None` unless `payload` is set."""
        if self.payload is None:
            return None
        from twin.robot.flange_load import payload_of

        return payload_of(self.payload)

    @property
    def controller_payload(self) -> Payload | None:
        """Payload in the controller's model; `None` unless `model_payload` is set."""
        if self.model_payload is None:
            return None
        from twin.robot.flange_load import payload_of

        return payload_of(self.model_payload)

    @property
    def learned_input(self) -> LearnedInput | None:
        """Input that corrects the reference; `None` unless `learned` is set."""
        if self.learned is None:
            return None
        from twin.learning.learned_input import LearnedInput

        return LearnedInput.load(self.learned)

    def bare_robot(self) -> Robot:
        """Return the robot with its drives and its mounting, without a payload.

        Raises:
            RobotError: the robot's file does not describe the requested drives.
        """
        if self.simulated is not None:
            return self.simulated[0]
        import twin  # imported here because it reads files

        return twin.load(self.robot).mounted(self.mounting).with_drives(self.drives)

    def with_plant_payload(self, robot: Robot) -> Robot:
        """Return a robot with the plant's payload, if one is set."""
        return robot if self.plant_payload is None else robot.with_payload(self.plant_payload)

    def load_robot(self) -> Robot:
        """Return the robot with its drives, its payload and its mounting.

        Raises:
            RobotError: the robot's file does not describe the requested drives.
        """
        return self.with_plant_payload(self.bare_robot())

    def control_law(self, model: Robot) -> Controller:
        """Return the controller of these settings.

        Args:
            model: robot model of the controller.

        Raises:
            PluginError: the controller is a plugin that cannot be loaded or constructed.
            ValueError: the controller rejects one of its settings.
        """
        defaults = {"bandwidth": self.bandwidth, "period": self.period}
        with np.errstate(over="ignore"):  # the run reports gains that overflow
            law = controllers.make(self.controller, model, **(defaults | dict(self.law_settings)))
        if self.learned_input is None:
            return law
        from twin.learning.learned_input import CorrectedController

        return CorrectedController(law, self.learned_input, model.name)

    @property
    def known_law(self) -> bool:
        """Whether a bound of the tracking error may apply.

        True for a built-in controller without a learned input, whose model is the plant.
        """
        exact_model = self.model_payload is None and not self.changes
        return self.builtin_law and self.learned is None and exact_model

    @property
    def builtin_law(self) -> bool:
        """Whether the controller is one of this project; its torque is continuous except at a limit."""
        return self.controller in controllers.NAMES

    @property
    def controller_drives(self) -> str:
        """Drives in the controller's model; by default those of the robot.

        Springs remain only for a controller that uses them.
        """
        if self.model_drives is not None:
            return self.model_drives
        springs = self.drives == "elastic" and self.controller not in controllers.WITH_SPRINGS
        return "rigid" if springs else self.drives

    def with_controller_payload(self, robot: Robot) -> Robot:
        """Return a robot with the payload of the controller's model; unchanged unless one is set."""
        return robot if self.controller_payload is None else robot.with_payload(self.controller_payload)

    def controller_model(self, robot: Robot) -> Robot:
        """Return the controller's model of a nominal robot: with its drives, payload and changes."""
        return self.with_model_changes(
            self.with_controller_payload(robot).with_drives(self.controller_drives)
        )

    def with_model_changes(self, robot: Robot) -> Robot:
        """Return a robot with the changes of the controller's model."""
        return _changed(robot, self.model_changes, "model.")

    def with_plant_changes(self, robot: Robot) -> Robot:
        """Return a nominal robot with the changes of the plant."""
        return _changed(robot, self.plant_changes)

    @property
    def plant_changes(self) -> tuple[tuple[str, float], ...]:
        """Names and values of the `changes` that apply to the plant alone."""
        return tuple(change for change in self.changes if not change[0].startswith("model."))

    @property
    def model_changes(self) -> tuple[tuple[str, float], ...]:
        """Names, without the prefix `model.`, and values of the `changes` of the controller's model alone."""
        parts = ((name.partition("model."), value) for name, value in self.changes)
        return tuple((name, value) for (before, prefix, name), value in parts if prefix and not before)


def _changed(robot: Robot, changes: tuple[tuple[str, float], ...], prefix: str = "") -> Robot:
    """Return the robot with changes; error messages put the prefix before their names."""
    if not changes:
        return robot
    from twin.sweeps.robot_quantities import changed

    return changed(robot, changes, prefix)
