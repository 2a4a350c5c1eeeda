"""What a closed loop drives, and what its controller sees of it: the motors, through sensors."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from twin.control.running_sensors import RunningSensors
from twin.control.signals import Q_MOTOR, Q_SEEN, QD, QD_MOTOR, TAU_JOINT
from twin.drives.sensors import Sensors
from twin.robot.robot import Robot


class Plant(Protocol):
    """What `run_closed_loop` drives: `twin.Simulation` or `twin.AnalyticPlant`; see `DrivenPlant`, too.

    `state` may fill `out` (2, n) or return an array of its own.  `tau` is one array for a whole run, written
    anew for each sample: a plant that keeps it must copy it.
    """

    robot: Robot
    time_step: float
    loop_gap: float

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> None: ...  # noqa: D102
    def state(self, out: np.ndarray | None = None) -> np.ndarray: ...  # noqa: D102
    def step(self, tau: np.ndarray) -> None: ...  # noqa: D102


class DrivenPlant(Plant, Protocol):
    """What a plant offers besides where the drives of its robot are not ideal.

    `tau_joint` (n,) is what the arm got from its drives in the last step, in [N m]; `motor_state` (2, n) are
    positions and speeds of the motors in joint units.
    """

    @property
    def tau_joint(self) -> np.ndarray: ...  # noqa: D102
    def motor_state(self) -> np.ndarray: ...  # noqa: D102


class MotorSide:
    """The motors of a plant and what its controller sees of them, in the signals of a closed loop.

    Attributes:
        seen: (2, n) rows of the signals: positions and speeds as the controller sees them.

    Args:
        plant: whose motors they are.
        sensors: between them and the controller; `None`: it sees them as they are. `RunningSensors` go on
            from where they are.
        signals: (rows, n), all of `twin.control.signals`.
        samples: of the run.
        period: of the samples, in [s].

    Raises:
        ValueError: the drives of the plant's robot are not ideal, and the plant has none.
        RobotError: the sensors are to be encoders, and the robot's are not known.
    """

    def __init__(
        self,
        plant: Plant,
        sensors: Sensors | RunningSensors | None,
        signals: np.ndarray,
        samples: int,
        period: float,
    ) -> None:
        robot = plant.robot
        self._driven, self._elastic = robot.active_drives is not None, robot.drive_mode == "elastic"
        if self._driven and not all(hasattr(plant, name) for name in ("motor_state", "tau_joint")):
            raise ValueError(
                f"the drives of robot {robot.name!r} are {robot.drive_mode}, and this plant has none: "
                f"expected motor_state and tau_joint, or ideal drives, got a {type(plant).__name__}"
            )
        self._plant = cast("DrivenPlant", plant)
        self._state, self._motors = signals[: QD + 1], signals[Q_MOTOR : QD_MOTOR + 1]
        self._tau_joint, self.seen = signals[TAU_JOINT], self._motors
        self._sensors = RunningSensors(sensors, robot.n, samples) if isinstance(sensors, Sensors) else sensors
        if self._sensors is not None:
            self.seen = signals[Q_SEEN:]
            self._sensors.begin(samples, robot.drives, period)

    def look(self, k: int) -> None:
        """Fill the rows of the motors, and what is seen of them, at sample k; to be called at every one."""
        self._motors[:] = self._plant.motor_state() if self._elastic else self._state
        if self._sensors is not None:
            self._sensors.look(k, self._motors, self.seen)

    def feel(self) -> None:
        """Fill the row of the torque that the arm gets, after a step or a reset."""
        if self._driven:
            self._tau_joint[:] = self._plant.tau_joint
