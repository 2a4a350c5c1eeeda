"""Signals at a sample of a closed loop or a rollout, and the compiled functions that process them.

The signals are the rows of one array (rows, n), because numba counts references to every array in use.  The
first rows are positions and velocities of the joints, in [rad, rad/s], the demanded torque and the torque
that the motors deliver, in [N m].  Ideal drives without sensors need no more.  Otherwise there follow the
torque that the drives apply to the arm, in [N m], positions and speeds of the motors in joint units, and
their measured values, which the law receives.
"""

import numpy as np

from twin.base.arrays import Floats
from twin.base.jit import compiled
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.drives.motors import Sensors, limited_torque, observe, sensor_numbers
from twin.physics.robot.robot import Robot

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
