"""Content of the two EGM messages in SI units: the state of a robot, and the answer of its client.

Only the encoded messages use degrees and millimetres, see `twin.egm.wire.encoding`.
"""

from dataclasses import dataclass
from enum import IntEnum

from twin.base.arrays import Floats

MODULUS = 1 << 32
"""Modulus of message numbers and of time stamps in ms."""


class MotionState(IntEnum):
    """State of the instruction that guides the robot (`EgmMCIState`)."""

    UNDEFINED = 0
    ERROR = 1
    STOPPED = 2
    RUNNING = 3


@dataclass(frozen=True, eq=False)
class RobotMessage:
    """Message that a robot sends once a cycle (`EgmRobot`).

    Attributes:
        seqno: sequence number of the message.
        tm: time since the start of the robot's controller, in [ms].
        q: (n,) measured joint angles, in [rad].
        q_planned: (n,) commanded joint angles, in [rad].
        T: (4, 4) measured pose of the tool in the work object, in [m]; `None` if missing.
        T_planned: (4, 4) commanded pose of the tool in the work object, in [m]; `None` if missing.
        time: time of the measurement by the robot's clock, in [s]; `None` if missing.
        motors_on: whether the motors are on.
        state: state of the guided motion.
        program_runs: whether the RAPID program runs.
        converged: whether the robot is within the convergence window of the reference.
        utilization: share of the drives' capacity that the requested motion needs, in [%].  Above 100 the
            robot executes only a part of the motion.
        tau: (n,) motor torques at the joints, in [N m]; `None` if missing.
        wrench: (6,) measured wrench `[f; mu]`, in [N, N m]; `None` if missing.
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
    """Answer of a client to a robot (`EgmSensor`, or `EgmSensorPathCorr` with a `path_correction`).

    Attributes:
        seqno: sequence number of the message; `None` if missing.
        tm: time of the sender, in [ms]; `None` if missing.
        q: (n,) reference joint angles, in [rad].
        qd: (n,) reference joint speeds, in [rad/s].
        T: (4, 4) reference pose of the tool in the sensor frame, in [m].
        twist: (6,) reference speed of the tool `[v; omega]`, in [m/s, rad/s].
        path_correction: (3,) offset from the path in the path frame, in [m].
        age: age of the measurement behind the path correction, in [s].
    """

    seqno: int | None = None
    tm: int | None = None
    q: Floats | None = None
    qd: Floats | None = None
    T: Floats | None = None
    twist: Floats | None = None
    path_correction: Floats | None = None
    age: float = 0.0
