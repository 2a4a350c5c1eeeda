"""Motors: torque limits, which decrease with speed, and sensors.

Sensors of motors have encoder counts, noise, speeds from differences, and delay.  A measurement is made at
every sample.  Noise is added to a motor's position, in joint units.  Then the encoder rounds the motor's
angle to whole counts:

    y = N^-1 (2 pi / c) round(c / (2 pi) N (q_motor + noise))

The speed is the true one, or the difference of two positions through a low-pass filter of first order,
discretised exactly for an input that is constant within a sample:

    v+ = v + (1 - exp(-2 pi f T)) ((y+ - y) / T - v)

It starts with the true speed, like the filter of an arm that has been running.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twin.base.arrays import real_array
from twin.base.errors import RobotError
from twin.base.jit import compiled
from twin.physics.robot.drives.drives import Drives


class MotorLimits(NamedTuple):
    """Limits of n motors in joint units, for compiled code.

    Attributes:
        limits: (3, n) torque at standstill in [N m], rated speed and maximum speed in [rad/s].
        coupling: (2, n, n) the drives' coupling R and R^-T; (2, 0, 0) if each motor turns one joint.
    """

    limits: np.ndarray
    coupling: np.ndarray

    @classmethod
    def of(cls, drives: Drives | None, tau_max: np.ndarray) -> MotorLimits:
        """Return the limits of these drives; those of ideal ones, `None`, are `tau_max` (n,), in [N m]."""
        n = len(tau_max)
        alone = np.zeros((2, 0, 0))
        if drives is None:
            endless = np.full(n, np.inf)
            return cls(np.array([tau_max, endless, endless]), alone)
        ratio = np.abs(drives.ratio)
        torque = drives.torque_limits(tau_max)
        limits = [torque, drives.motor_speed_rated / ratio, drives.motor_speed_max / ratio]
        if np.array_equal(drives.coupling, np.eye(n)):
            return cls(np.array(limits), alone)
        return cls(np.array(limits), np.array([drives.coupling, np.linalg.inv(drives.coupling).T]))


def motor_side(coupling: np.ndarray, which: int, values: np.ndarray) -> np.ndarray:
    """Convert speeds (`which` 0) or torques (1) of joints (..., n) to those of motors in joint units."""
    return values @ coupling[which].T if coupling.shape[1] > 0 else values


def torque_shares(motors: MotorLimits, tau: np.ndarray) -> np.ndarray:
    """Return the shares of the motors' torques at standstill (..., n) for torques at the joints (..., n)."""
    torque = np.abs(motor_side(motors.coupling, 1, tau))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(torque == 0.0, 0.0, torque / motors.limits[0])


def available_torque(motors: MotorLimits, torque: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Return the torque limit of motors (..., n) for torques (..., n) at speeds (..., n), in [N m].

    It decreases at high speed, except for braking; see `torque_at_speed`.
    """
    limit, rated, top = motors.limits
    fast = np.abs(speed)
    weaker = (fast > rated) & (top < np.inf) & (torque * speed > 0.0)
    if not np.any(weaker):
        return np.broadcast_to(limit, np.shape(torque))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.clip((top - fast) / (top - rated), 0.0, 1.0)
    return limit * np.where(weaker, left, 1.0)


@compiled
def torque_at_speed(limits, i, torque, speed):
    """Return the torque limit of motor i at a speed; while it brakes, that at standstill."""
    limit, rated, top = limits[0, i], limits[1, i], limits[2, i]
    fast = abs(speed)
    if fast > rated and top < np.inf and torque * speed > 0.0:
        limit = limit * (top - fast) / (top - rated) if fast < top else 0.0
    if torque > limit:
        return limit
    if torque < -limit:
        return -limit
    return torque


@compiled
def limited_torque(limits, coupling, demand, qd_motor, tau):
    """Limit the demand (n,) to the motors' torques, and store it in `tau` (n,), both at the joints, in [N m].

    Args:
        limits: see `MotorLimits`.
        coupling: see `MotorLimits`.
        demand: (n,) demanded torque, in [N m]; NaN remains NaN.
        qd_motor: (n,) speeds of the motors in joint units, in [rad/s].
        tau: (n,) output; equal to the demand, to the bit, if no motor is at its limit.

    Returns:
        True if the torques are finite.
    """
    finite = True
    if coupling.shape[1] > 0:
        limit_together(limits, coupling, demand, qd_motor, tau)
    else:
        for i in range(len(demand)):
            tau[i] = torque_at_speed(limits, i, demand[i], qd_motor[i])
    for i in range(len(demand)):
        finite = finite and abs(tau[i]) < np.inf
    return finite


@compiled
def limit_together(limits, coupling, demand, qd_motor, tau):
    """Apply `limited_torque` to coupled motors, with their torques R^-T demand and speeds R qd."""
    n, limited, beyond = len(demand), np.empty(len(demand)), False
    for i in range(n):
        torque, speed = 0.0, 0.0
        for j in range(n):
            if coupling[1, i, j] != 0.0:  # a NaN affects only the motors that it is coupled to
                torque += coupling[1, i, j] * demand[j]
            speed += coupling[0, i, j] * qd_motor[j]
        limited[i] = torque_at_speed(limits, i, torque, speed)
        beyond = beyond or limited[i] != torque
    for i in range(n):
        tau[i] = 0.0 if beyond else demand[i]
        for j in range(n):
            if beyond and coupling[0, j, i] != 0.0:
                tau[i] += coupling[0, j, i] * limited[j]


@dataclass(frozen=True)
class ForceSensor:
    """Force sensor between the flange and the tool.

    It measures the wrench of the environment and the weight of what is behind it, at the tool's origin.
    Inertia forces of what is behind it are not measured.

    Attributes:
        noise: standard deviation of white noise in the forces, in [N]; that in the moments is a tenth of it,
            in [N m].
        offset: (6,) constant error `[f; mu]` in the axes of the tool, in [N, N m].
        load: (4,) mass of what is behind the sensor, and its centre in the axes of the tool, from its origin,
            in [kg, m].

    Raises:
        ValueError: a number is not finite, or the noise or the mass is negative.

    Example:
        >>> import twin
        >>> sensors = twin.Sensors(force=twin.robot.drives.motors.ForceSensor(load=(0.5, 0.0, 0.0, 0.04)))
        >>> sensors.force_numbers.tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.04]
    """

    noise: float = 0.0
    offset: tuple[float, ...] = (0.0,) * 6
    load: tuple[float, ...] = (0.0,) * 4

    def __post_init__(self) -> None:
        for name, count in (("noise", 1), ("offset", 6), ("load", 4)):
            values = np.atleast_1d(real_array(getattr(self, name), f"{name} of the force sensor"))
            least = -np.inf if name == "offset" else 0.0
            if values.shape != (count,) or not np.all(np.isfinite(values)) or not values[0] >= least:
                raise ValueError(
                    f"expected {name} of the force sensor to be {count} finite numbers"
                    f"{', the first at least 0' * (least == 0.0)}, got {getattr(self, name)!r}"
                )


@dataclass(frozen=True)
class Sensors:
    """Sensors between the motors and the controller; by default ideal.

    Attributes:
        encoder: whether the motors' angles are rounded to the counts of `Drives.encoder_counts`.
        noise: standard deviation of white noise in the positions, at the joint, in [rad].
        speed_cutoff: cut-off frequency of the low-pass filter of the speeds, in [Hz]; 0: the true speed;
            infinite: unfiltered differences.
        delay: delay from a measurement to its torque, in whole samples; the first measurement replaces the
            missing earlier ones.
        force: force sensor behind the flange; by default the wrench on the tool is known exactly.
        seed: seed of the noise; runs with the same seed are identical, to the bit.

    Raises:
        ValueError: a value is invalid; the message contains the value, and what is valid.

    Example:
        >>> import twin
        >>> plant, sensors = twin.AnalyticPlant(twin.load("irb140")), twin.Sensors(noise=1e-5, seed=1)
        >>> reference, law = twin.sample(twin.hold([0] * 6, 1.0), 1e-3), lambda state, wanted: 0 * wanted.q
        >>> log = twin.run_closed_loop(plant, law, reference, sensors=sensors)
        >>> float((log.q_seen - log.q).std()) < 1.1e-5
        True
    """

    encoder: bool = False
    noise: float = 0.0
    speed_cutoff: float = 0.0
    delay: int = 0
    seed: int = 0
    force: ForceSensor | None = None

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
        """Return a member as a number; NaN if it is not one."""
        value = getattr(self, name)
        if not isinstance(value, float | int | np.floating | np.integer) or isinstance(value, bool):
            raise ValueError(f"expected the sensors' {name} to be a number, got {value!r}")
        return float(value)

    def draws(self, run: int, N: int, n: int) -> np.ndarray:
        """Return standard normal numbers (N, n) for a run of a batch, or zeros without noise."""
        if self.noise == 0:
            return np.broadcast_to(np.zeros(n), (N, n))
        return self.random(run).standard_normal((N, n))

    def force_draws(self, run: int, N: int) -> np.ndarray:
        """Return standard normal numbers (N, 6) for the force sensor in a run of a batch."""
        return self.random(run, 6).standard_normal((N, 6))

    def random(self, *run: int) -> np.random.Generator:
        """Return the generator of the noise in a run of a batch; a single run is number 0."""
        return np.random.default_rng([self.seed, *run])

    @property
    def force_numbers(self) -> np.ndarray:
        """Noise, offset (6), mass and centre (3) of the force sensor (11,); empty without one."""
        return np.zeros(0) if (one := self.force) is None else np.array([one.noise, *one.offset, *one.load])

    def past(self, N: int, n: int) -> np.ndarray:
        """Return the buffer of `observe` for past measurements in N samples: at most (delay + 1, 2, n)."""
        return np.zeros((min(self.delay, max(N - 1, 0)) + 1, 2, n))


@compiled
def read_force(sensor, T, gravity, F, draw, measured):
    """Fill the measured wrench (6,) of a force sensor, base axes; the wrench F itself without one.

    Args:
        sensor: (11,) `Sensors.force_numbers`, or (0,).
        T: (4, 4) pose of the tool.
        gravity: (3,) acceleration of gravity, base axes.
        F: (6,) wrench of the environment at the tool's origin, base axes.
        draw: (6,) standard normal numbers.
        measured: (6,) output.
    """
    for i in range(6):
        measured[i] = F[i]
    if len(sensor) == 0:
        return
    arm, mass = np.zeros(3), sensor[7]
    for i in range(3):
        for j in range(3):
            measured[i] += T[i, j] * (sensor[1 + j] + sensor[0] * draw[j])
            measured[3 + i] += T[i, j] * (sensor[4 + j] + 0.1 * sensor[0] * draw[3 + j])
            arm[i] += T[i, j] * sensor[8 + j]
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        measured[i] += mass * gravity[i]
        measured[3 + i] += mass * (arm[a] * gravity[b] - arm[b] * gravity[a])


class SensorNumbers(NamedTuple):
    """Sensors of n motors for compiled code.

    Attributes:
        noise: standard deviation of the noise, in [rad].
        speed_gain: gain of the low-pass filter, 0 for the true speed.
        period: sampling period, in [s].
        encoder: (2, n, n) matrices from positions in joint units to counts, and back; (2, 0, 0) without
            rounding.
    """

    noise: float
    speed_gain: float
    period: float
    encoder: np.ndarray


def sensor_numbers(sensors: Sensors, drives: Drives | None, period: float) -> SensorNumbers:
    """Return the numbers of the sensors for compiled code.

    Args:
        sensors: sensors between motors and controller.
        drives: drives of the robot, active or not, for their encoders.
        period: sampling period, in [s].

    Raises:
        RobotError: encoders are requested, but the drives or their counts are unknown.
    """
    gain = -np.expm1(-2.0 * np.pi * float(sensors.speed_cutoff) * period)
    encoder = _encoder(drives) if sensors.encoder else np.zeros((2, 0, 0))
    return SensorNumbers(float(sensors.noise), float(gain), float(period), encoder)


def _encoder(drives: Drives | None) -> np.ndarray:
    """Return the matrices (2, n, n) from joint units to counts, and back."""
    if drives is None:
        raise RobotError("the robot has no encoders: its file has no table [drives]")
    if not np.all(drives.encoder_counts > 0):
        axis = int(np.argmin(drives.encoder_counts > 0)) + 1
        raise RobotError(f"the drive of axis {axis} has no encoder: its encoder_counts are 0 or missing")
    counts = drives.encoder_counts[:, None] / (2.0 * np.pi) * drives.motor_matrix
    return np.array([counts, np.linalg.inv(counts)])


@compiled
def observe(sensors, k, motors, draw, past, seen):
    """Compute the measurement at sample k; it must be called at every sample.

    Args:
        sensors: a `SensorNumbers`.
        k: number of the sample.
        motors: (2, n) positions and speeds of the motors in joint units, in [rad, rad/s].
        draw: (n,) standard normal numbers.
        past: buffer, see `Sensors.past`.
        seen: (2, n) output.
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
