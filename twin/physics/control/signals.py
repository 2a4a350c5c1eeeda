"""Signals of a closed loop or a rollout: their rows, limits and record, and when a run has diverged.

The signals are the rows of one array (rows, n), because numba counts references to every array in use.  The
first rows are positions and velocities of the joints, in [rad, rad/s], the demanded torque and the torque
that the motors deliver, in [N m].  Ideal drives without sensors need no more.  Otherwise there follow the
torque that the drives apply to the arm, in [N m], positions and speeds of the motors in joint units, and
their measured values, which the law receives.
"""

import operator
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from twin.base.arrays import Floats, real_array
from twin.base.jit import compiled
from twin.physics.dynamics.equation_of_motion import mass_matrix
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.drives.motors import Sensors, limited_torque, observe, read_force, sensor_numbers
from twin.physics.robot.evaluation import copied
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit
from twin.physics.trajectories.sampling import Samples

Q, QD, DEMAND, TAU, TAU_JOINT, Q_MOTOR, QD_MOTOR, Q_SEEN, QD_SEEN = range(9)
"""Indices of the rows of the signals."""

PLAIN_ROWS, ALL_ROWS = TAU + 1, QD_SEEN + 1
"""Number of rows with ideal drives and no sensors, and number of rows otherwise."""


def other_rows(robot: Robot, sensors: object | None) -> dict[str, int]:
    """Return the rows of the signals that differ from the joint signals, by their names in a log.

    The positions of ideal and rigid motors equal those of the joints.  Without sensors the measured values
    equal those of the motors.
    """
    rows: dict[str, int] = {}
    if robot.active_drives is not None:
        rows["tau_joint"] = TAU_JOINT
    if robot.active_drives is not None and robot.drive_mode == "elastic":
        rows |= {"q_motor": Q_MOTOR, "qd_motor": QD_MOTOR}
    if sensors is not None:
        rows |= {"q_seen": Q_SEEN, "qd_seen": QD_SEEN}
    return rows


def joint_without_torque(demand: np.ndarray, tau: np.ndarray) -> int:
    """Return the first joint whose demand and torque, (n,) each in [N m], are not finite."""
    return int(np.argmax(~np.isfinite(tau) & ~np.isfinite(demand)))


@compiled
def within_twice_the_speed_limits(signals, inverse_speed_limits):
    """Return whether the positions are finite and no joint exceeds twice its speed limit; false for NaN."""
    position, speed = 0.0, 0.0
    for i in range(signals.shape[1]):
        position += signals[Q, i] * signals[Q, i]
        speed += (signals[QD, i] * inverse_speed_limits[i]) ** 2
    return speed <= 4.0 and position < np.inf


@compiled
def limit_torque(signals, limits, coupling):
    """Limit the demand to the torques of the motors, see `MotorLimits`; return whether they are finite."""
    speed = QD_MOTOR if signals.shape[0] > PLAIN_ROWS else QD
    return limited_torque(limits, coupling, signals[DEMAND], signals[speed], signals[TAU])


@compiled
def record_sample(signals, log, k):
    """Write the signals to row k of a log (N, rows, n)."""
    for j in range(log.shape[1]):
        for i in range(signals.shape[1]):
            log[k, j, i] = signals[j, i]


@compiled
def limit_and_record(signals, limits, coupling, log, k):
    """Limit the torque, write the sample to row k of the log (N, rows, n), return whether it is finite."""
    finite = limit_torque(signals, limits, coupling)
    record_sample(signals, log, k)
    return finite


class RunningSensors:
    """Sensors of one run, whose noise, filters and delays continue from part to part.

    The measurements of a run in parts equal those of the whole run, to the bit.

    Attributes:
        sensors: properties of the sensors.

    Args:
        sensors: properties of the sensors.
        n: number of motors.
        samples: number of samples of the run, if known; fewer samples than the delay need less memory.
        run: number of the run in a batch, which selects its noise.
    """

    def __init__(self, sensors: Sensors, n: int, samples: int | None = None, run: int = 0) -> None:
        self.sensors, self._run = sensors, run
        self._past = sensors.past(sensors.delay + 1 if samples is None else samples, n)
        self._n = n
        self.restart()

    def restart(self) -> None:
        """Discard the state of the run; the next run has the same noise."""
        self._past[:] = 0.0
        self._generator = self.sensors.random(self._run)
        self._force_generator = self.sensors.random(self._run, 6)
        self._wrenches: deque[Floats] = deque(maxlen=self.sensors.delay + 1)
        self._k, self._draws = 0, np.zeros((0, self._n))

    def begin(self, samples: int, drives: Drives | None, period: float) -> None:
        """Prepare a part of the run.

        Args:
            samples: number of samples of the part.
            drives: drives of the robot, which have the encoders.
            period: sampling period, in [s].

        Raises:
            RobotError: the sensors are encoders, and those of the robot are unknown.
        """
        self._numbers = sensor_numbers(self.sensors, drives, period)
        shape = (samples, self._n)
        if self.sensors.noise > 0:
            self._draws = self._generator.standard_normal(shape)
        else:
            self._draws = np.broadcast_to(np.zeros(self._n), shape)

    def measure(self, k: int, motors: Floats, measured: Floats) -> None:
        """Fill `measured` with the measurement at sample k of the part; call it once at every sample.

        Args:
            k: index of the sample in the part.
            motors: (2, n) positions and speeds of the motors in joint units, in [rad, rad/s].
            measured: (2, n) output array, in [rad, rad/s].
        """
        observe(self._numbers, self._k, motors, self._draws[k], self._past, measured)
        self._k += 1

    def measured_wrench(self, F: Floats, T_base_tool: Floats, gravity: Floats) -> Floats:
        """Return the measurement of a wrench (6,) on the tool, base axes; call it once at every sample."""
        found, draw = np.empty(6), self._force_generator.standard_normal(6)
        read_force(self.sensors.force_numbers, T_base_tool, gravity, F, draw, found)
        self._wrenches.append(found)
        return self._wrenches[0]


MOST_STEPS = 1_000_000
"""Largest number of plant steps in a control period. A larger number is a mistake and would seem to hang."""


def prepared_table(controller: Any, reference: Samples) -> np.ndarray:
    """Return the table (N, rows, n) that a controller prepares for a reference; without rows if none.

    Raises:
        ValueError: the controller's `prepare` returns something else.
    """
    N, n = reference.q.shape
    prepare = getattr(controller, "prepare", None)
    table: Any = prepare(reference) if callable(prepare) else None
    if table is None:
        return np.zeros((N, 0, n))
    what = f"what prepare() of controller {name_of(controller)!r} returns"
    table = np.array(real_array(table, what), order="C")
    if table.ndim != 3 or table.shape[::2] != (N, n):
        raise ValueError(f"expected {what} to be None or of shape ({N}, rows, {n}), got {table.shape}")
    if not np.all(np.isfinite(table)):
        raise ValueError(f"expected {what} to be finite")
    return table


def checked_reference(reference: Samples, n: int) -> tuple[np.ndarray, ...]:
    """Return copies of the reference's arrays; raise `ValueError` unless they are finite and fit together."""
    names = ("t", "q", "qd", "qdd")
    if not isinstance(reference, Sequence) or len(reference) != len(names):
        made = "as twin.sample(motion, period) makes them"
        raise ValueError(f"expected a reference of samples, {made}, got {reference!r:.60}")
    arrays = tuple(
        np.array(real_array(part, f"reference.{name}")) for name, part in zip(names, reference, strict=True)
    )
    N = len(arrays[0])
    if N == 0:
        raise ValueError("expected a reference of at least one sample")
    for name, array, shape in zip(names, arrays, ((N,), (N, n), (N, n), (N, n)), strict=True):
        if array.shape != shape:
            raise ValueError(f"expected reference.{name} of shape {shape}, got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"expected reference.{name} to be finite")
    return arrays


def whole_steps(steps_per_period: Any) -> int:
    """Return the steps per period; raise `ValueError` unless they are an `int` from 1 to `MOST_STEPS`."""
    try:
        steps = operator.index(steps_per_period)
    except TypeError:
        steps = 0
    if not 1 <= steps <= MOST_STEPS:
        raise ValueError(
            f"expected steps_per_period to be an integer from 1 to {MOST_STEPS}, got {steps_per_period!r}"
        )
    return steps


def check_period(t: np.ndarray, time_step: float, steps_per_period: int) -> None:
    """Raise `ValueError` unless the samples are `steps_per_period` time steps apart."""
    if len(t) < 2:
        return
    period, expected = t[1] - t[0], steps_per_period * time_step
    if not abs(period - expected) <= 1e-9 * expected:
        raise ValueError(
            f"the reference has a period of {period:.6g} s, "
            f"which is not {steps_per_period} steps of {time_step:.6g} s (steps_per_period x time_step)"
        )
    if not np.all(np.abs(np.diff(t) - expected) <= 1e-6 * expected):
        raise ValueError(f"expected reference.t to advance by {expected:.6g} s everywhere")


def name_of(controller: Any) -> str:
    """Return the controller's `name` attribute, or else its function's or class's name."""
    return str(getattr(controller, "name", getattr(controller, "__name__", type(controller).__name__)))


RUNAWAY_SPEED = 20.0
"""Multiple of its speed limit beyond which a joint has run away.

No study of gains or model errors comes near it.  A step of 1 ms still resolves the motion, so that the log
shows how the divergence develops."""

RUNAWAY_ENERGY = 25.0
"""Multiple of the reference energy beyond which a robot has run away.

The reference is the sum of each joint's kinetic energy at its speed limit, taken alone at q = 0.  A heavy
joint reaches this bound long before 20 times its speed limit; a wrist joint hardly contributes to it."""

UNLIMITED_SPEED = 1e3
"""Runaway speed of a joint without a speed limit in its URDF, in [rad/s] or [m/s]."""


class Bounds(NamedTuple):
    """Bounds beyond which the state of a run has diverged.

    Attributes:
        inverse_speed_limits: (n,) 1 / speed limits; `RUNAWAY_SPEED / UNLIMITED_SPEED` where there is none.
        energy: kinetic energy beyond which the robot has run away, in [J].
    """

    inverse_speed_limits: np.ndarray
    energy: float

    @classmethod
    def of(cls, robot: Robot) -> "Bounds":
        """Return the bounds of a robot."""
        limit = np.where(np.isfinite(robot.qd_max), robot.qd_max, UNLIMITED_SPEED / RUNAWAY_SPEED)
        energy = 0.5 * float(np.diag(mass_matrix(robot.arm, np.zeros(robot.n))) @ limit**2)
        return cls(copied(1.0 / limit), RUNAWAY_ENERGY * energy)


def divergence_message(robot: Robot, q: np.ndarray, qd: np.ndarray) -> str:
    """Describe how a state (n,), (n,) diverged: not finite, or run away; return "" if it did not diverge."""
    names = robot.joint_names
    broken = ~(np.isfinite(q) & np.isfinite(qd))
    if broken.any():
        joint = int(np.argmax(broken))
        unit = joint_unit(robot.joint_kinds[joint])
        return f"{names[joint]} is at {q[joint]} {unit} with {qd[joint]} {unit}/s"
    bounds = Bounds.of(robot)
    ratio = np.abs(qd * bounds.inverse_speed_limits)
    joint = int(np.argmax(ratio))
    unit, limit = joint_unit(robot.joint_kinds[joint], "speed"), robot.qd_max[joint]
    fastest = f"{names[joint]} runs away: {qd[joint]:.6g} {unit}, with a limit of {limit:.6g} {unit},"
    if not ratio[joint] <= RUNAWAY_SPEED:
        return fastest
    kinetic = 0.5 * float(qd @ mass_matrix(robot.arm, q) @ qd)
    return "" if kinetic <= bounds.energy else f"{fastest} and a kinetic energy of {kinetic:.6g} J"
