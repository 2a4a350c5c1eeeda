"""What the two messages hold, in SI units: what a robot tells, and what it is answered.

Degrees and millimetres are on the wire alone, see `twin.egm.wire.encoding` and `sensor_message`.
"""

from dataclasses import dataclass
from enum import IntEnum

from twin.arrays import Floats

COUNT = 1 << 32
"""Numbers of messages, and times in ms, begin anew after so many."""


class MotionState(IntEnum):
    """The state of the instruction that guides the robot (`EgmMCIState`)."""

    UNDEFINED = 0
    ERROR = 1
    STOPPED = 2
    RUNNING = 3


@dataclass(frozen=True, eq=False)
class RobotMessage:
    """A message that a robot sends once a cycle (`EgmRobot`).

    Attributes:
        seqno: number of the message.
        tm: time since the robot's controller was started, in [ms].
        q: (n,) measured joint angles, in [rad].
        q_planned: (n,) commanded ones, in [rad].
        T: (4, 4) measured pose of the tool in the work object, in [m]; `None` where it was not told.
        T_planned: (4, 4) the commanded one.
        time: of the measurement, by the clock of the robot, in [s]; `None` where it was not told.
        motors_on: whether its motors are on.
        state: of the guided motion.
        program_runs: whether its program runs.
        converged: whether it has been within the convergence window of the reference.
        utilization: how much of what its drives can give the motion takes, in [%]; above 100 a part of what
            is wanted is not done.
        tau: (n,) torques of the motors at the joints, in [N m]; `None` where they were not told.
        wrench: (6,) measured `[f; mu]`, in [N, N m]; `None` where it was not told.
    """

    seqno: int
    tm: int
    q: Floats
    q_planned: Floats
    T: Floats | None = None
    T_planned: Floats | None = None
    time: float | None = None
    motors_on: bool = True
    state: MotionState = MotionState.RUNNING
    program_runs: bool = True
    converged: bool = False
    utilization: float | None = None
    tau: Floats | None = None
    wrench: Floats | None = None


@dataclass(frozen=True, eq=False)
class SensorMessage:
    """An answer to a robot (`EgmSensor`, or `EgmSensorPathCorr` where `path_correction` is given).

    Attributes:
        seqno: number of the message; `None` where it has none.
        tm: time of the sender, in [ms]; `None` where it was not told.
        q: (n,) joint angles to go to, in [rad].
        qd: (n,) joint speeds, in [rad/s].
        T: (4, 4) pose of the tool to go to, in the sensor's frame, in [m].
        twist: (6,) speed of the tool `[v; omega]`, in [m/s, rad/s].
        path_correction: (3,) distance from the path, in its own axes, in [m].
        age: of what the correction was measured from, in [s].
    """

    seqno: int | None = None
    tm: int | None = None
    q: Floats | None = None
    qd: Floats | None = None
    T: Floats | None = None
    twist: Floats | None = None
    path_correction: Floats | None = None
    age: float = 0.0
