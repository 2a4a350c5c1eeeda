"""What every scenario shares: its settings, and the form of what it claims.

A scenario is one Python file, in this package or anywhere else, that holds

- a docstring: what it shows and what must hold,
- ``Config``: a frozen dataclass that inherits `base.Config`; every field made with `option` becomes an
  option of the command line,
- ``run(config) -> Log``: does it, without printing and without touching files,
- ``metrics(log) -> tuple[Metric, ...]``: pure; what came out, and where each limit comes from,
- optionally ``reference(robot, config) -> Samples``: what the arm is to follow; and where plant or model are
  not simply the robot with its payload, ``arms(robot, config) -> Arms``. Both get the nominal robot, carrying
  nothing; `run` puts them together by `scenarios.checks.closed_loop`. With them a scenario can be swept, and
  its robot changed: ``--with mass=1.1``,
- optionally ``VARIANTS``: further `Config`s that ``irb-twin validate`` runs besides every controller,
- optionally ``suits(robot) -> bool``: whether it can show anything with a robot; ``validate`` asks,
- optionally ``LEAVES_LIMITS``: why the arm is made to leave its ranges or speed limits, in a sentence; every
  other run is judged by whether it kept them,
- optionally ``SIDE_BY_SIDE``: the laws that ``irb-twin run`` runs side by side where none is named,
- optionally ``table(log) -> (caption, rows)``: rows of texts, headings first, which the report shows of the
  first run,
- optionally ``picture(logs, path)``: draws what ``--picture`` asks for, in place of errors and paths.
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
from twin.robot.robot import MOUNTINGS, Payload, Robot  # light: it starts neither compiler nor engine

if TYPE_CHECKING:
    from twin.robot.drives.sensors import Sensors


MOST_STEPS = 1_000_000
"""Engine steps in a control period, as `twin.run_closed_loop` has it, which is not light enough to ask."""


def option(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:
    """Return a field of a `Config` that the command line offers, with its help and, if few, its values."""
    return field(default=default, metadata={"help": help, "choices": choices})


def one_of(value: str, what: str, known: tuple[str, ...]) -> None:
    """Check a word against those that exist.

    Raises:
        UnknownNameError: naming the word and listing the known ones.
    """
    if value not in known:
        raise UnknownNameError(f"unknown {what} {value!r}: known are {', '.join(known)}")


def named_pose(robot: Robot, name: str) -> NDArray:
    """A pose (n,) of the robot by its name, in [rad].

    Raises:
        RobotError: the robot's file names no poses at all, as a URDF never does.
        UnknownNameError: it names others; the message lists them.
    """
    if not robot.poses:
        raise RobotError(
            f"robot {robot.name!r} has no named poses, hence no {name!r}: only a robot.toml or a "
            "dh.toml can name some"
        )
    one_of(name, f"pose of {robot.name}", tuple(robot.poses))
    return robot.poses[name]


def positive(value: float, what: str, unit: str) -> None:
    """Check a setting that must be positive and finite.

    Raises:
        ValueError: naming the setting, its value and its unit.
    """
    if not 0 < value < float("inf"):
        raise ValueError(f"expected a positive, finite {what} in {unit}, got {value}")


@dataclass(frozen=True)
class Config:
    """Settings of every scenario.

    Raises:
        UnknownNameError: for a controller, reference, mounting or drives that do not exist.
        ValueError: for a number that is not positive and finite, or a payload or tool that cannot be.
    """

    robot: str = option("irb140", "name of the robot, or path of its robot.toml or URDF")
    mounting: str = option("floor", "how the base is mounted", tuple(MOUNTINGS))
    controller: str = option("computed_torque", "control law", controllers.NAMES)
    law_settings: tuple[tuple[str, Any], ...] = ()
    """Names and values of the control law's own settings, as `("Kp", 100.0)`; on the command line `--set`."""
    changes: tuple[tuple[str, float], ...] = ()
    """What is not nominal, names and values of `twin.sweeps.robot_quantities`: of the plant alone, or with
    `model.` before them of the controller's model alone; on the command line `--with`."""
    limits: tuple[tuple[str, float], ...] = ()
    """Figures of `twin.sweeps.trial.FIGURES` and the largest values that the run allows them; on the
    command line `--limit`."""
    bandwidth: float = option(20.0, "omega, where the poles of the closed loop lie, in rad/s")
    time_step: float = option(1e-3, "step of the physics engine, in s")
    steps_per_period: int = option(1, "engine steps in a control period, for which a torque is held")
    reference: str = option(
        "consistent",
        "how the reference is sampled: obeying the engine's own recursion, or from the continuous time law",
        ("consistent", "continuous"),
    )
    tool: str | None = option(
        None,
        "tool on the flange, x,y,z,a,b,c,d: m and a unit quaternion; or x,y,z; or its length (default none)",
    )
    payload: str | None = option(
        None,
        "what the flange carries, mass,x,y,z,Ixx,Iyy,Izz,Ixy,Ixz,Iyz: kg, m, kg m^2; or mass,x,y,z; or mass "
        "(default nothing)",
    )
    model_payload: str | None = option(
        None, "payload that the controller believes in, in the same form; 0: none (default the robot's)"
    )
    drives: str = option(
        "ideal",
        "what the drives have: torque limits (ideal), rotors and friction too (rigid), springs too (elastic)",
        MODES,
    )
    model_drives: str | None = option(
        None, "drives that the controller believes in (default the robot's, elastic ones as rigid)", MODES[:2]
    )
    encoder: bool = option(False, "measure positions in whole counts of the motors' encoders")
    noise: float = option(0.0, "standard deviation of what is added to measured positions, in rad")
    speed_cutoff: float = option(
        0.0,
        "cut-off of the filter that makes speeds of positions, in Hz (0: true speeds, inf: no filter)",
    )
    delay: int = option(0, "how many control periods old a measurement is when the controller gets it")
    seed: int = option(0, "seed of everything that is drawn at random")
    gui: bool = option(False, "show the arm in a window, in real time, where it can be touched")
    close_window: bool = option(False, "with --gui: do not keep the window at the end of the run")
    progress: Callable[[float], None] | None = field(default=None, repr=False, compare=False)
    """Called with the fraction done, 0 to 1, now and then; not an option of the command line."""
    beside: tuple[tuple[str, Any], ...] = field(default=(), repr=False, compare=False)
    """Names and logs of runs with other laws, which move as ghosts in the window; no option, either."""

    def __post_init__(self) -> None:
        controllers.require_known(self.controller)
        one_of(self.reference, "reference", ("consistent", "continuous"))
        one_of(self.mounting, "mounting", tuple(MOUNTINGS))
        known_mode(self.drives)
        if self.model_drives is not None:
            one_of(self.model_drives, "drives of a controller's model", MODES[:2])
        positive(self.bandwidth, "bandwidth", "rad/s")
        positive(self.time_step, "time step", "s")
        if not 1 <= self.steps_per_period <= MOST_STEPS:
            raise ValueError(
                f"expected 1 to {MOST_STEPS} engine steps per period, got {self.steps_per_period}"
            )
        if not self.seed >= 0:
            raise ValueError(f"expected a seed of 0 or more, got {self.seed}")
        _ = (
            self.sensors,
            self.T_flange_tool,
            self.carried,
            self.believed_payload,
        )  # which check their settings

    @property
    def period(self) -> float:
        """Control period in [s]."""
        return self.time_step * self.steps_per_period

    @property
    def sensors(self) -> Sensors | None:
        """What the controller measures with; `None` where it is told the truth at once."""
        settings = (self.encoder, self.noise, self.speed_cutoff, self.delay)
        if settings == (False, 0.0, 0.0, 0):
            return None
        from twin.robot.drives.sensors import Sensors  # compiles: not at the module's top

        return Sensors(*settings, seed=self.seed)

    @property
    def T_flange_tool(self) -> NDArray:
        """Pose (4, 4) of the tool in the flange frame; the flange itself where there is none."""
        if self.tool is None:
            return np.eye(4)
        from twin.robot.flange_load import tool_of  # brings scipy: not where there is no tool

        return tool_of(self.tool)

    @property
    def carried(self) -> Payload | None:
        """What the flange carries, if it was given."""
        if self.payload is None:
            return None
        from twin.robot.flange_load import payload_of

        return payload_of(self.payload)

    @property
    def believed_payload(self) -> Payload | None:
        """What the controller believes that the flange carries, if it was given."""
        if self.model_payload is None:
            return None
        from twin.robot.flange_load import payload_of

        return payload_of(self.model_payload)

    def bare_robot(self) -> Robot:
        """The robot with its drives, mounted as asked, carrying nothing.

        Raises:
            RobotError: it has no drives that could be what is asked for.
        """
        import twin  # reads files: not at the module's top

        return twin.load(self.robot).mounted(self.mounting).with_drives(self.drives)

    def loaded(self, robot: Robot) -> Robot:
        """A robot with what it carries, if that was given."""
        return robot if self.carried is None else robot.with_payload(self.carried)

    def load_robot(self) -> Robot:
        """The robot with its drives and its payload, mounted as asked.

        Raises:
            RobotError: it has no drives that could be what is asked for.
        """
        return self.loaded(self.bare_robot())

    def control_law(self, model: Robot) -> Controller:
        """The controller of the settings.

        Args:
            model: the robot that it believes in.

        Raises:
            PluginError: it is not one of ours, and does not load or cannot be made.
            ValueError: it refuses one of its settings.
        """
        usual = {"bandwidth": self.bandwidth, "period": self.period}
        with np.errstate(over="ignore"):  # gains beyond all numbers end the run with a sentence of its own
            return controllers.make(self.controller, model, **(usual | dict(self.law_settings)))

    @property
    def known_law(self) -> bool:
        """Whether it is known how far the law may stray: ours, its gains derived, the plant known to it."""
        return self.our_law and not self.law_settings and self.model_payload is None and not self.changes

    @property
    def our_law(self) -> bool:
        """Whether the control law is one of ours, of which we know that it makes no jumps but at a limit."""
        return self.controller in controllers.NAMES

    @property
    def believed_drives(self) -> str:
        """The drives that the controller is to believe in: the robot's, elastic ones as rigid, by default."""
        return self.model_drives or ("ideal" if self.drives == "ideal" else "rigid")

    def believed_load(self, robot: Robot) -> Robot:
        """A robot with what the controller is to believe that it carries: by default what it does carry."""
        return robot if self.believed_payload is None else robot.with_payload(self.believed_payload)

    def believed(self, robot: Robot) -> Robot:
        """A nominal robot with the drives, the payload and the changes that the controller believes in."""
        return self.changed_model(self.believed_load(robot).with_drives(self.believed_drives))

    def changed_model(self, robot: Robot) -> Robot:
        """A robot with the changes that the controller's model alone has."""
        return _changed(robot, self.model_changes, "model.")

    def actual(self, robot: Robot) -> Robot:
        """A nominal robot with the changes that the plant alone has."""
        return _changed(robot, self.plant_changes)

    @property
    def plant_changes(self) -> tuple[tuple[str, float], ...]:
        """Those of the `changes` that the plant alone has."""
        return tuple(change for change in self.changes if not change[0].startswith("model."))

    @property
    def model_changes(self) -> tuple[tuple[str, float], ...]:
        """Those that the controller's model alone has, without `model.` before their names."""
        own = ((name.partition("model."), value) for name, value in self.changes)
        return tuple((name, value) for (before, prefix, name), value in own if prefix and not before)


def _changed(robot: Robot, changes: tuple[tuple[str, float], ...], before: str = "") -> Robot:
    """The robot with changes, in whose names that stands before."""
    if not changes:
        return robot
    from twin.sweeps.robot_quantities import changed

    return changed(robot, changes, before)
