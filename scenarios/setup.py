"""Setup of a run: robot, controller, drives, sensors, payload, tool, and sampling.

Every scenario runs with a setup.  Commands that run scenarios share its options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import controllers
from controllers import Controller
from scenarios.options import lock_option, locked_joints, one_of, option, package_path_option, positive
from twin.base.errors import RobotError
from twin.physics.robot.drives.drives import MODES, known_mode
from twin.physics.robot.robot import Payload, Robot, mounting_gravity

if TYPE_CHECKING:
    from twin.physics.dynamics.environment import Environment
    from twin.physics.robot.drives.motors import Sensors
    from twin.physics.trajectories.joint_trajectories import Trajectory
    from twin.physics.trajectories.sampling import Samples
    from twin.studies.learning.learning_controller import LearnedInput

REFERENCES = ("consistent", "continuous")
MOST_STEPS = 1_000_000
"""Largest number of engine steps in a control period.

Equal to the limit of `twin.run_closed_loop`, whose module is too heavy to import here.
"""


def named_pose(robot: Robot, name: str) -> NDArray:
    """Return the joint angles (n,) of a named pose of the robot, in [rad].

    Raises:
        RobotError: the robot's file defines no poses; a URDF never does.
        UnknownNameError: the file defines other poses; the message lists them.

    Example:
        >>> import twin
        >>> from scenarios.setup import named_pose
        >>> named_pose(twin.load("irb140"), "test_3").round(3).tolist()
        [-0.282, 0.605, -0.159, 1.974, 0.812, -1.268]
    """
    if not robot.poses:
        raise RobotError(
            f"robot {robot.name!r} has no named poses, hence no {name!r}: only a robot.toml or a "
            "dh.toml can define poses"
        )
    one_of(name, f"pose of {robot.name}", tuple(robot.poses))
    return robot.poses[name]


@dataclass(frozen=True)
class Sampling:
    """Part of a setup that the reference of a scenario may depend on.

    Attributes:
        time_step: step of the physics engine, in [s].
        steps_per_period: engine steps in a control period.
        reference: "consistent" with the engine's recursion, or "continuous".
        tool, payload, seed: those of the setup if the scenario `needs` them; else none, none and 0.
    """

    time_step: float = 1e-3
    steps_per_period: int = 1
    reference: str = "consistent"
    tool: str | None = None
    payload: str | None = None
    seed: int = 0

    @property
    def period(self) -> float:
        """Control period in [s]."""
        return self.time_step * self.steps_per_period

    @property
    def T_flange_tool(self) -> NDArray:
        """Pose (4, 4) of the tool in the flange frame; the identity without a tool."""
        return tool_pose(self.tool)

    def loaded(self, robot: Robot) -> Robot:
        """Return the robot with the payload; the robot itself without one."""
        return robot if self.payload is None else robot.with_payload(payload_of(self.payload))

    def sampled(self, trajectory: Trajectory) -> Samples:
        """Return a trajectory at every control period.

        Example:
            >>> import twin
            >>> from scenarios.setup import Sampling
            >>> samples = Sampling(time_step=0.002).sampled(twin.hold([0] * 6, 0.1))
            >>> samples.q.shape, samples.t[[0, 1, -1]].round(6).tolist()
            ((51, 6), [0.0, 0.002, 0.1])
        """
        from twin.physics.trajectories.sampling import sample, sample_semi_implicit

        take = sample_semi_implicit if self.reference == "consistent" else sample
        return take(trajectory, self.period)


class Arms(NamedTuple):
    """Plant and controller's model of a closed loop, before the changes of the setup.

    Attributes:
        plant: robot with its drives and its payload.
        model: controller's model, before the setup modifies it; `None` for the plant.
        fixed: whether the model stays as it is, whatever the setup says of it.
    """

    plant: Robot
    model: Robot | None = None
    fixed: bool = False

    @property
    def nominal(self) -> Robot:
        """Controller's model before the setup modifies it."""
        return self.plant if self.model is None else self.model


def tool_pose(tool: str | None) -> NDArray:
    """Return the pose (4, 4) of a tool in the flange frame; the identity for `None`."""
    if tool is None:
        return np.eye(4)
    from twin.physics.robot.flange_load import tool_of  # imported here because it loads scipy

    return tool_of(tool)


def payload_of(text: str | None) -> Payload | None:
    """Return the payload of a text, `None` for `None`."""
    if text is None:
        return None
    from twin.physics.robot import flange_load

    return flange_load.payload_of(text)


@dataclass(frozen=True)
class Setup:
    """Setup of a run.

    Raises:
        UnknownNameError: the controller, reference, mounting or drives do not exist.
        ValueError: a number is not positive and finite, or the payload or tool is invalid.

    Example:
        >>> from scenarios.setup import Setup
        >>> setup = Setup(robot="irb1600", controller="pd", payload="6")
        >>> setup.nominal_robot().name, setup.bandwidth
        ('irb1600', 20.0)
    """

    robot: str = option("irb140", "name of the robot, or path of its URDF, robot.toml or folder")
    mounting: str = option(
        "floor", "mounting of the base: floor, wall, inverted, or degrees about its y axis"
    )
    controller: str = option("computed_torque", "controller", choices=controllers.NAMES)
    law_settings: tuple[tuple[str, Any], ...] = ()
    """Names and values of the controller's settings, as `("Kp", 100.0)`; on the command line `--set`."""
    changes: tuple[tuple[str, float], ...] = ()
    """Changes of the nominal robot: names and values of `twin.robot.quantities`.

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
        choices=REFERENCES,
    )
    tool_frame: str | None = option(
        None, "link of the robot whose frame is the flange (default tool0, or the end of the longest chain)"
    )
    package_path: str | None = package_path_option()
    lock: tuple[str, ...] = lock_option()
    unphysical: bool = option(False, "accept bodies in a URDF that cannot exist")
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
    push: str | None = option(
        None,
        "pushes on the tool, as '1.0:2.0 20,10,-30; 2.5:3 0,0,9 tool': start:end in s, Fx,Fy,Fz in N, also "
        "Mx,My,Mz in N m, in base axes or in those of the tool; or a file .csv: t,fx,fy,fz (default none)",
    )
    surface: str | None = option(
        None,
        "surfaces that the tool touches, as 'plane=0,0,1 at=0.5,0,0.3 stiffness=2e4 damping=100 "
        "friction=0.3'; also box=, sphere=, cylinder=; or the file .toml of a cell, whose objects with a "
        "stiffness are touched; several separated by ';' (default none)",
    )
    force_sensor: str | None = option(
        None,
        "force sensor for the controller, as 'noise=0.5 offset=1,0,-2,0,0,0 load=0.4,0,0,0.05': N and N m in "
        "axes of the tool; mass and centre of what is behind it (default exact forces)",
    )
    drives: str = option(
        "ideal",
        "drive model: torque limits (ideal), plus rotors and friction (rigid), plus springs (elastic)",
        choices=MODES,
    )
    model_drives: str | None = option(
        None,
        "drives in the controller's model (default the robot's; elastic ones as rigid, except under "
        "elastic_inverse)",
        choices=MODES,
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
        one_of(self.reference, "reference", REFERENCES)
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
            self.environment,
            locked_joints(self.lock),
        )

    @property
    def period(self) -> float:
        """Control period in [s]."""
        return self.time_step * self.steps_per_period

    @property
    def sensors(self) -> Sensors | None:
        """Sensors of the controller; `None` if it measures exactly and without delay."""
        settings = (self.encoder, self.noise, self.speed_cutoff, self.delay)
        if settings == (False, 0.0, 0.0, 0) and self.force_sensor is None:
            return None
        from twin.physics.dynamics.environment import numbers_by_key
        from twin.physics.robot.drives.motors import (  # imported here because it compiles kernels
            ForceSensor,
            Sensors,
        )
        from urdf.schema import check_table

        force = None
        if self.force_sensor is not None:
            found = numbers_by_key(self.force_sensor)
            check_table("force sensor", found, {"noise?": "signed", "offset?": 6, "load?": 4}, 0)
            force = ForceSensor(**found)
        return Sensors(*settings, seed=self.seed, force=force)

    @property
    def T_flange_tool(self) -> NDArray:
        """Pose (4, 4) of the tool in the flange frame; the identity without a tool."""
        return tool_pose(self.tool)

    @property
    def plant_payload(self) -> Payload | None:
        """Payload on the flange of the plant; `None` unless `payload` is set."""
        return payload_of(self.payload)

    @property
    def controller_payload(self) -> Payload | None:
        """Payload in the controller's model; `None` unless `model_payload` is set."""
        return payload_of(self.model_payload)

    @property
    def environment(self) -> Environment | None:
        """Pushes and surfaces; `None` unless `push` or `surface` is set."""
        if self.push is None and self.surface is None:
            return None
        from twin.physics.dynamics.environment import Environment, pushes, surface

        rows = () if self.push is None else pushes(self.push)
        surfaces = []
        for text in () if self.surface is None else self.surface.split(";"):
            if text.strip().lower().endswith(".toml"):
                from twin.studies.cell.cell import load_cell
                from twin.studies.cell.contact import touched_surfaces

                surfaces += touched_surfaces(load_cell(text.strip()))
            else:
                surfaces.append(surface(text))
        return Environment(rows, surfaces, self.T_flange_tool)

    @property
    def learned_input(self) -> LearnedInput | None:
        """Input that corrects the reference; `None` unless `learned` is set."""
        if self.learned is None:
            return None
        from twin.studies.learning.learning_controller import LearnedInput

        return LearnedInput.load(self.learned)

    def nominal_robot(self) -> Robot:
        """Return the robot with its drives and its mounting, without a payload.

        Raises:
            RobotError: the robot's file does not describe the requested drives.
        """
        if self.simulated is not None:
            return self.simulated[0]
        return self.bare_robot().mounted(self.mounting).with_drives(self.drives)

    def bare_robot(self) -> Robot:
        """Return the robot as its file has it, with its tool frame and its locked joints."""
        import twin  # imported here because it reads files

        given = {"tool_frame": self.tool_frame, "unphysical": self.unphysical}
        return twin.load(self.robot, locked=locked_joints(self.lock), **given)

    def load_robot(self) -> Robot:
        """Return the robot with its drives, its payload and its mounting.

        Raises:
            RobotError: the robot's file does not describe the requested drives.
        """
        robot, payload = self.nominal_robot(), self.plant_payload
        return robot if payload is None else robot.with_payload(payload)

    def sampling(self, needs: Sequence[str] = ()) -> Sampling:
        """Return the part of the setup that a reference depends on.

        Args:
            needs: which of tool, payload and seed it depends on, too.
        """
        more = {name: getattr(self, name) for name in needs}
        return Sampling(self.time_step, self.steps_per_period, self.reference, **more)

    def control_law(self, model: Robot) -> Controller:
        """Return the controller of these settings.

        Args:
            model: robot model of the controller.

        Raises:
            PluginError: the controller is a plugin that cannot be loaded or constructed.
            ValueError: the controller rejects one of its settings.
        """
        defaults: dict[str, Any] = {"bandwidth": self.bandwidth, "period": self.period}
        defaults |= {} if self.tool is None else {"T_flange_tool": self.T_flange_tool}
        if self.environment is not None and len(self.environment.surfaces):
            defaults["surface"] = self.environment.surfaces[0]
        with np.errstate(over="ignore"):  # the run reports gains that overflow
            law = controllers.make(self.controller, model, **(defaults | dict(self.law_settings)))
        if self.learned_input is None:
            return law
        from twin.studies.learning.learning_controller import CorrectedController

        return CorrectedController(law, self.learned_input, model.name)

    @property
    def known_law(self) -> bool:
        """Whether a bound of the tracking error may apply.

        True for a built-in controller without a learned input, whose model the setup leaves the plant.
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

    def controller_model(self, robot: Robot) -> Robot:
        """Return the controller's model of a nominal robot: with its drives, payload and changes."""
        if self.controller_payload is not None:
            robot = robot.with_payload(self.controller_payload)
        return _changed(robot.with_drives(self.controller_drives), self.model_changes, "model.")

    def model_of(self, arms: Arms) -> Robot:
        """Return the controller's model of a closed loop."""
        return arms.nominal if arms.fixed else self.controller_model(arms.nominal)

    def with_plant_changes(self, robot: Robot) -> Robot:
        """Return a nominal robot with the changes of the plant."""
        return _changed(robot, tuple(one for one in self.changes if not one[0].startswith("model.")))

    @property
    def model_changes(self) -> tuple[tuple[str, float], ...]:
        """Names, without the prefix `model.`, and values of the `changes` of the controller's model alone."""
        parts = ((name.partition("model."), value) for name, value in self.changes)
        return tuple((name, value) for (before, prefix, name), value in parts if prefix and not before)


def _changed(robot: Robot, changes: tuple[tuple[str, float], ...], prefix: str = "") -> Robot:
    """Return the robot with changes; error messages put the prefix before their names."""
    if not changes:
        return robot
    from twin.physics.robot.quantities import changed

    return changed(robot, changes, prefix)
