"""What a sweep runs: a trial is one closed loop, an experiment makes one of numbers with names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from twin.control.control_law import ControlLaw
    from twin.drives.sensors import Sensors
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples


class Trial(NamedTuple):
    """One closed loop, before it is run.

    Trials that share their reference, and differ in numbers of plant, controller and noise alone, are run at
    once; so an experiment hands out the same `reference` object wherever it is the same.

    Attributes:
        plant: the arm, with its drives and its payload.
        controller: with its own model.
        reference: at every control period; the run starts on the first sample.
        sensors: between motors and controller; `None` where it sees the motors as they are.
        time_step: in [s].
        steps_per_period: steps in a control period.
        T_flange_tool: (4, 4) the tool whose place is compared; `None` where nobody asks, which is faster.
        error_limit: what the largest joint error may be, in [rad], as far as it is known.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
    """

    plant: Robot
    controller: ControlLaw
    reference: Samples
    sensors: Sensors | None = None
    time_step: float = 1e-3
    steps_per_period: int = 1
    T_flange_tool: np.ndarray | None = None
    error_limit: float = np.inf
    leaves_limits: bool = False


class Experiment(Protocol):
    """What varies, and the trial that comes of it.

    An experiment travels to other processes, and has to give the same trial there: it holds names and
    numbers, and loads what they stand for where it is asked.
    """

    def nominal(self, name: str) -> float:
        """The value of a quantity where nobody varies it, which scaled variations refer to.

        Raises:
            UnknownNameError: nothing has such a quantity; the message names those that are nearest.
            VariationError: it is no number, or cannot be varied here.
        """
        ...

    def trial(self, values: Mapping[str, float]) -> Trial:
        """The closed loop with these values.

        Args:
            values: by the names of the quantities, each absolute, in its own unit.

        Raises:
            TwinError, ValueError: there is no such arm or loop.
        """
        ...
