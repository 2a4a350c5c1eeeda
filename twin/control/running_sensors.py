"""Sensors at work: what they remember of a run, which may come in parts."""

from __future__ import annotations

import numpy as np

from twin.arrays import Floats
from twin.drives.drives import Drives
from twin.drives.sensors import Sensors, observe, sensor_numbers


class RunningSensors:
    """The sensors of one run: its noise, its filters and its delays go on from part to part.

    Parts of a run see what the whole run would have seen, to the bit.

    Attributes:
        sensors: which they are.

    Args:
        n: number of motors.
        samples: of the run, if that is known: fewer than the delay need less memory.
        run: its number in a batch, whose noise it has.
    """

    def __init__(self, sensors: Sensors, n: int, samples: int | None = None, run: int = 0) -> None:
        self.sensors, self._run = sensors, run
        self._past = sensors.past(sensors.delay + 1 if samples is None else samples, n)
        self._n = n
        self.restart()

    def restart(self) -> None:
        """Forget the run; the next one has the noise of the first."""
        self._past[:] = 0.0
        self._generator = self.sensors.random(self._run)
        self._k, self._draws = 0, np.zeros((0, self._n))

    def begin(self, samples: int, drives: Drives | None, period: float) -> None:
        """Be ready for a part of so many samples.

        Args:
            samples: of the part.
            drives: of the robot, for their encoders.
            period: of the samples, in [s].

        Raises:
            RobotError: the sensors are to be encoders, and the robot's are not known.
        """
        self._numbers = sensor_numbers(self.sensors, drives, period)
        shape = (samples, self._n)
        if self.sensors.noise > 0:
            self._draws = self._generator.standard_normal(shape)
        else:
            self._draws = np.broadcast_to(np.zeros(self._n), shape)

    def look(self, k: int, motors: Floats, seen: Floats) -> None:
        """What is seen at sample k of the part; to be called at every one.

        Args:
            k: number of the sample.
            motors: (2, n) positions and speeds of the motors in joint units, in [rad, rad/s].
            seen: (2, n), filled.
        """
        observe(self._numbers, self._k, motors, self._draws[k], self._past, seen)
        self._k += 1
