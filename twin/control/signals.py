"""The signals at a sample of a closed loop or a rollout, and what compiled code does with them.

They are one array (rows, n), because numba counts references to every array that it touches: positions and
velocities of the joints, in [rad, rad/s], the torque that the law demands and what the motors make of it, in
[N m].  These are all where drives are ideal and nothing is between them and the law; else there follow the
torque that the arm gets, in [N m], positions and speeds of the motors in joint units, and what of these the
law sees.
"""

import numpy as np

from twin.arrays import Floats
from twin.jit import compiled
from twin.robot.drives.drives import Drives
from twin.robot.drives.motors import limited_torque
from twin.robot.drives.sensors import Sensors, observe, sensor_numbers
from twin.robot.robot import Robot

Q, QD, DEMAND, TAU, TAU_JOINT, Q_MOTOR, QD_MOTOR, Q_SEEN, QD_SEEN = range(9)
"""The rows of the signals."""

PLAIN_ROWS, ALL_ROWS = TAU + 1, QD_SEEN + 1
"""How many rows there are with ideal drives and nothing else, and with any other, or with sensors."""


def other_rows(robot: Robot, sensors: object | None) -> dict[str, int]:
    """The rows of what differs from the joints' own with these drives and sensors, by the names in a log.

    Ideal and rigid motors are where the joints are; without sensors the motors are seen as they are.
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
    """The first joint of which something is demanded that leads to no torque: (n,), (n,) in [N m]."""
    return int(np.argmax(~np.isfinite(tau) & ~np.isfinite(demand)))


@compiled
def within_twice_the_speed_limits(signals, watched):
    """Whether the positions are finite and no joint is above twice its speed limit; not so of NaN."""
    place, speed = 0.0, 0.0
    for i in range(signals.shape[1]):
        place += signals[Q, i] * signals[Q, i]
        speed += (signals[QD, i] * watched[i]) ** 2
    return speed <= 4.0 and place < np.inf


@compiled
def limit_torque(signals, limits, coupling):
    """Limit the demand to what the motors can do, see `MotorLimits`; whether that is finite."""
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
    """`limit_torque`, and write the sample to row k of the log (N, rows, n)."""
    finite = limit_torque(signals, limits, coupling)
    record_sample(signals, log, k)
    return finite


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
