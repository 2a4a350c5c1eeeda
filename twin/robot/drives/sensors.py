"""What a controller sees of the motors: encoder counts, noise, speeds that are differences, and delay.

A measurement is made at every sample.  Of a motor's position, in joint units, the noise comes first, then the
encoder, which rounds the motor's angle to whole counts:

    y = N^-1 (2 pi / c) round(c / (2 pi) N (q_motor + noise))

The speed is the true one, or the difference of two positions through a low-pass filter of first order, which
is discretised exactly for an input that is held:

    v+ = v + (1 - exp(-2 pi f T)) ((y+ - y) / T - v)

It starts with the true speed, as the filter of an arm that has been running does.
"""

import operator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twin.errors import RobotError
from twin.jit import compiled
from twin.robot.drives.drives import Drives


@dataclass(frozen=True)
class Sensors:
    """What is between the motors and what a controller sees of them; by default nothing.

    Attributes:
        encoder: round the motors' angles to the counts of `Drives.encoder_counts`.
        noise: standard deviation of white noise in the positions, at the joint, in [rad].
        speed_cutoff: of the low-pass filter behind the differences of positions, in [Hz]; 0: the true speed;
            infinite: the differences as they are.
        delay: whole samples from a measurement to the torque that it leads to; before there is such an early
            one, the first stands for it.
        seed: of the noise; two runs of one seed are the same to the bit.

    Raises:
        ValueError: naming the value, and what is valid.
    """

    encoder: bool = False
    noise: float = 0.0
    speed_cutoff: float = 0.0
    delay: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.encoder, bool | np.bool_):
            raise ValueError(f"expected the sensors' encoder to be true or false, got {self.encoder!r}")
        noise, cutoff = self._number("noise"), self._number("speed_cutoff")
        if not 0 <= noise < np.inf:
            raise ValueError(f"expected the sensors' noise to be at least 0 rad and finite, got {noise}")
        if not cutoff >= 0:
            raise ValueError(f"expected the sensors' speed_cutoff to be at least 0 Hz, got {cutoff}")
        for name in ("delay", "seed"):
            try:
                whole = operator.index(getattr(self, name))
            except TypeError:
                whole = -1
            if whole < 0:
                got = getattr(self, name)
                raise ValueError(f"expected the sensors' {name} to be an integer of at least 0, got {got!r}")

    def _number(self, name: str) -> float:
        """A member as a number, NaN where it is none."""
        value = getattr(self, name)
        if not isinstance(value, float | int | np.floating | np.integer) or isinstance(value, bool):
            raise ValueError(f"expected the sensors' {name} to be a number, got {value!r}")
        return float(value)

    def draws(self, run: int, N: int, n: int) -> np.ndarray:
        """Standard normal numbers (N, n) for a run of a batch, 0 where there is one; zeros without noise."""
        if self.noise == 0:
            return np.broadcast_to(np.zeros(n), (N, n))
        return self.random(run).standard_normal((N, n))

    def random(self, run: int) -> np.random.Generator:
        """Where the noise in a run of a batch comes from; a run by itself is number 0."""
        return np.random.default_rng([self.seed, run])

    def past(self, N: int, n: int) -> np.ndarray:
        """What `observe` keeps of the measurements in a run of N samples, (delay + 1, 2, n) at most."""
        return np.zeros((min(self.delay, max(N - 1, 0)) + 1, 2, n))


class SensorNumbers(NamedTuple):
    """Sensors of n motors as compiled code takes them.

    Attributes:
        noise: in [rad].
        speed_gain: of the low-pass filter, 0 where the speed is the true one.
        period: of the samples, in [s].
        encoder: (2, n, n) from positions in joint units to counts, and back; (2, 0, 0) where nothing is
            rounded.
    """

    noise: float
    speed_gain: float
    period: float
    encoder: np.ndarray


def sensor_numbers(sensors: Sensors, drives: Drives | None, period: float) -> SensorNumbers:
    """What a sample needs to know of the sensors.

    Args:
        sensors: between motors and controller.
        drives: of the robot, whether they act or not, for their encoders.
        period: of the samples, in [s].

    Raises:
        RobotError: there are to be encoders, and the drives or their counts are not known.
    """
    gain = -np.expm1(-2.0 * np.pi * float(sensors.speed_cutoff) * period)
    encoder = _encoder(drives) if sensors.encoder else np.zeros((2, 0, 0))
    return SensorNumbers(float(sensors.noise), float(gain), float(period), encoder)


def _encoder(drives: Drives | None) -> np.ndarray:
    """The maps (2, n, n) from joint units to counts, and back."""
    if drives is None:
        raise RobotError("the robot has no encoders: its drives are not known, for its file has no [drives]")
    if not np.all(drives.encoder_counts > 0):
        axis = int(np.argmin(drives.encoder_counts > 0)) + 1
        raise RobotError(f"the drive of axis {axis} has no encoder: its encoder_counts are 0, or not given")
    counts = drives.encoder_counts[:, None] / (2.0 * np.pi) * drives.motor_matrix
    return np.array([counts, np.linalg.inv(counts)])


@compiled
def observe(sensors, k, motors, draw, past, seen):
    """What the controller sees at sample k; to be called at every one.

    Args:
        sensors: a `SensorNumbers`.
        k: number of the sample.
        motors: (2, n) positions and speeds of the motors in joint units, in [rad, rad/s].
        draw: (n,) standard normal numbers.
        past: see `Sensors.past`.
        seen: (2, n), filled.
    """
    n, slots, counting = motors.shape[1], past.shape[0], sensors.encoder.shape[1] > 0
    now, before, then = k % slots, (k - 1) % slots, max(k - slots + 1, 0) % slots
    for i in range(n):
        position = motors[0, i]
        if sensors.noise > 0.0:
            position += sensors.noise * draw[i]
        seen[0, i] = position
    if counting:
        for i in range(n):
            counts = 0.0
            for j in range(n):
                counts += sensors.encoder[0, i, j] * seen[0, j]
            seen[1, i] = np.rint(counts)
        for i in range(n):
            position = 0.0
            for j in range(n):
                position += sensors.encoder[1, i, j] * seen[1, j]
            seen[0, i] = position
    for i in range(n):
        speed = motors[1, i]
        if sensors.speed_gain > 0.0 and k > 0:
            speed = past[before, 1, i]
            speed += sensors.speed_gain * ((seen[0, i] - past[before, 0, i]) / sensors.period - speed)
        past[now, 0, i], past[now, 1, i] = seen[0, i], speed
    for i in range(n):
        seen[0, i], seen[1, i] = past[then, 0, i], past[then, 1, i]
