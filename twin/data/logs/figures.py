"""Key figures of a log: a few numbers per joint and for the tool, in place of megabytes of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.base.formatting import short_repr
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from twin.data.logs.log import Log


@dataclass(frozen=True, eq=False)
class Figures:
    """Key figures of a log of N samples and n joints.

    Attributes:
        joint_names: names of the joints.
        joint_kinds: `revolute` or `prismatic` for each joint; prismatic joints have [m] in place of [rad]
            below.
        joint_rms, joint_largest: (n,) root mean square and largest tracking errors, in [rad].
        worst_joint: name of the joint with the largest error; empty if an error is not a number.
        worst_time: time of that error, in [s].
        worst_line: line of the program at that time; empty without a program.
        peak_torque: (n,) largest torque of the joints, in [N m].
        peak_motor_torque: (n,) that of the motors, which differs where motors are coupled, at the joints.
        torque_limit: (n,) torque limit of the drives, in [N m].
        saturated_samples: (n,) number of samples in which the torque was cut to its limit.
        first_saturated: (n,) time of the first such sample, in [s]; NaN if there is none.
        peak_speed, speed_limit: (n,) largest speed, and the limit in the robot's file, in [rad/s].
        pose_rms, pose_largest: (7,) errors of the tool `[x y z a b c d]`, in [m] and dimensionless.
        tool_rms, tool_largest: distance of the tool from its reference, in [m].
        tool_time: time of the largest distance, in [s].
        turn_rms, turn_largest: angle between the tool and its reference orientation, in [rad].
        start, end: times of the first and the last sample, in [s].
        samples: number of samples.
        drives, model_drives: drive mode of the robot, and the one in the controller's model.
        pushed: whether a push or a surface may act on the tool.
    """

    joint_names: tuple[str, ...]
    joint_kinds: tuple[str, ...]
    joint_rms: NDArray
    joint_largest: NDArray
    worst_joint: str
    worst_time: float
    worst_line: str
    peak_torque: NDArray
    peak_motor_torque: NDArray
    torque_limit: NDArray
    saturated_samples: NDArray
    first_saturated: NDArray
    peak_speed: NDArray
    speed_limit: NDArray
    pose_rms: NDArray
    pose_largest: NDArray
    tool_rms: float
    tool_largest: float
    tool_time: float
    turn_rms: float
    turn_largest: float
    start: float
    end: float
    samples: int
    drives: str
    model_drives: str
    pushed: bool

    __repr__ = short_repr

    @property
    def joints(self) -> tuple[tuple[str, str], ...]:
        """Name and kind of each joint."""
        return tuple(zip(self.joint_names, self.joint_kinds, strict=True))


def figures_of(log: Log) -> Figures:
    """Compute the key figures of a log with at least one sample."""
    joints, pose, distance, turn = joint_error(log), pose_error(log), tool_distance(log), tool_turn(log)
    sample, joint = np.unravel_index(int(np.argmax(np.abs(joints))), joints.shape)
    known = bool(np.isfinite(joints).all())
    return Figures(
        joint_names=tuple(log.robot.joint_names),
        joint_kinds=tuple(log.robot.joint_kinds),
        joint_rms=rms(joints),
        joint_largest=largest(joints),
        worst_joint=log.robot.joint_names[joint] if known else "",
        worst_time=float(log.t[sample]),
        worst_line=log.program.place(int(sample)) if log.program else "",
        peak_torque=largest(log.tau),
        peak_motor_torque=largest(motor_torque(log)),
        torque_limit=np.array(log.robot.drive_torque_max),
        saturated_samples=log.saturated.sum(axis=0),
        first_saturated=np.where(log.saturated.any(axis=0), log.t[np.argmax(log.saturated, axis=0)], np.nan),
        peak_speed=largest(log.qd),
        speed_limit=np.array(log.robot.qd_max),
        pose_rms=rms(pose),
        pose_largest=largest(pose),
        tool_rms=float(rms(distance)),
        tool_largest=float(largest(distance)),
        tool_time=float(log.t[np.argmax(distance)]),
        turn_rms=float(rms(turn)),
        turn_largest=float(largest(turn)),
        start=float(log.t[0]),
        end=float(log.t[-1]),
        samples=len(log.t),
        drives=log.drives,
        model_drives=log.model_drives,
        pushed=log.surroundings is not None,
    )


POSE_COMPONENTS = ("x", "y", "z", "a", "b", "c", "d")
"""Components of a pose: tool position in [m] and orientation quaternion, scalar first."""


LOADS = {
    "base_force_xy": "N",
    "base_force_z": "N",
    "base_moment_xy": "N m",
    "base_moment_z": "N m",
    "pin_force": "N",
}
"""Loads of a run with their units.

The first four are those of the foundation on the base, in base axes and about the base's origin, with the
base's weight.  `pin_force` is the largest at the pins of closed loops; it is NaN for an arm without any.
"""


def joint_error(log: Log) -> NDArray:
    """Return the tracking error of the joints, reference minus position: (N, n) in [rad].

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.setup import Setup
        >>> from twin.data.logs.figures import joint_error
        >>> log = GravityHold(duration=0.1).run(Setup(controller="pd")).log
        >>> joint_error(log).shape, joint_error(log)[-1].round(4).tolist()
        ((101, 6), [0.0006, -0.025, -0.028, 0.0104, 0.0348, 0.0117])
    """
    return log.q_ref - log.q


def pose_error(log: Log) -> NDArray:
    """Return the pose error, reference minus pose: (N, 7) in [m] and dimensionless.

    The log gives both quaternions the same sign.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.setup import Setup
        >>> from twin.data.logs.figures import pose_error
        >>> log = GravityHold(duration=0.1).run(Setup(controller="pd")).log
        >>> pose_error(log)[-1].round(4).tolist()
        [0.0015, 0.0013, 0.0274, 0.0171, -0.0183, -0.0187, 0.0171]
    """
    return log.pose_ref - log.pose


def tool_distance(log: Log) -> NDArray:
    """Return the distance between the tool and its reference: (N,) in [m].

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from scenarios.setup import Setup
        >>> from twin.data.logs.figures import tool_distance
        >>> distance = tool_distance(GravityHold(duration=0.1).run(Setup(controller="pd")).log)
        >>> distance[[0, -1]].round(5).tolist()
        [0.0, 0.02748]
    """
    return np.linalg.norm(log.pose_ref[:, :3] - log.pose[:, :3], axis=1)


def tool_turn(log: Log) -> NDArray:
    """Return the angle between the tool's orientation and its reference: (N,) in [rad], 0 to pi."""
    return turn_between(log.pose_ref[:, 3:], log.pose[:, 3:])


def turn_between(a: NDArray, b: NDArray) -> NDArray:
    """Return the angle between the orientations of unit quaternions (..., 4): (...,) in [rad], 0 to pi.

    Unit quaternions of rotations that differ by an angle `a` are `2 sin(a / 4)` apart as vectors; q and -q
    are the same orientation.
    """
    distance = np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    return 4.0 * np.arcsin(np.minimum(0.5 * distance, 1.0))


def rms(error: NDArray) -> NDArray:
    """Return the root mean square over time, (N, k) -> (k,); NaN for N = 0.

    Example:
        >>> import numpy as np
        >>> from twin.data.logs.figures import rms
        >>> rms(np.array([[3.0, 1.0], [-3.0, 7.0]])).tolist()
        [3.0, 5.0]
    """
    if len(error) == 0:
        return np.full(error.shape[1:], np.nan)
    return np.sqrt(np.mean(error**2, axis=0))


def largest(error: NDArray) -> NDArray:
    """Return the largest magnitude over time, (N, k) -> (k,); NaN for N = 0 or if a value is NaN.

    Example:
        >>> import numpy as np
        >>> from twin.data.logs.figures import largest
        >>> largest(np.array([[3.0, 1.0], [-4.0, 2.0]])).tolist()
        [4.0, 2.0]
    """
    if len(error) == 0:
        return np.full(error.shape[1:], np.nan)
    return np.max(np.abs(error), axis=0)


def place_of_largest(log: Log, error: NDArray) -> str:
    """Return where an error is largest, as "joint_3 at t = 0.412 s" or "at t = 0.412 s"; "" if it is 0.

    The run of a program also has the line, as "at t = 0.412 s, pick.mod line 12".

    Args:
        log: log of the run.
        error: (N, n) error of the joints, or (N,) of another quantity; NaN counts as larger than any number.
    """
    size = np.where(np.isnan(error), np.inf, np.abs(error))
    if not np.max(size, initial=0.0) > 0:
        return ""
    sample, *joint = np.unravel_index(np.argmax(size), size.shape)
    names = [f"{log.robot.joint_names[k]} " for k in joint]
    where = log.program.place(int(sample)) if log.program else ""
    return "".join(names) + f"at t = {log.t[sample]:.6g} s" + (f", {where}" if where else "")


def unit_of_largest(log: Log, error: NDArray, dimension: str = "position") -> str:
    """Return the unit of the joint whose error (N, n) is largest; it depends on the kind of the joint.

    Args:
        log: log of the run.
        error: (N, n) error of the joints; NaN counts as larger than any number.
        dimension: dimension of the error, see `twin.robot.limits`.
    """
    largest_of_joints = np.max(np.where(np.isnan(error), np.inf, np.abs(error)), axis=0, initial=0.0)
    return joint_unit(log.robot.joint_kinds[int(np.argmax(largest_of_joints))], dimension)


def motor_torque(log: Log) -> NDArray:
    """Return the torque of each motor (N, n), in [N m], referred to the joints."""
    drives = log.robot.active_drives
    if drives is None or np.array_equal(drives.coupling, np.eye(log.robot.n)):
        return log.tau
    return log.tau @ np.linalg.inv(drives.coupling)


def motor_load(log: Log) -> NDArray:
    """Return the torque of each motor over its limit at the current speed: (N, n), with the torque's sign.

    The load is 1 or -1 where the motor is at its limit.  While a motor brakes, and where the drives are
    ideal, the
    limit is that at standstill.  Motor torques are referred to the joints, behind the gear.  Where motors are
    coupled, column k is motor k, which also drives other joints.
    """
    from twin.physics.robot.drives import (
        motors,  # imported here because most uses of a log do not need its compiled functions
    )

    limits = motors.MotorLimits.of(log.robot.active_drives, log.robot.tau_max)
    tau, demand = (motors.motor_side(limits.coupling, 1, torque) for torque in (log.tau, log.tau_demand))
    with np.errstate(invalid="ignore"):
        speed = motors.motor_side(limits.coupling, 0, log.qd_motor)
        available = motors.available_torque(limits, demand, speed)
        # At and above its top speed a motor gives no torque, so that any demand is at the limit.
        return np.where(available > 0.0, tau / np.where(available > 0.0, available, 1.0), np.sign(demand))


def speed_load(log: Log) -> NDArray:
    """Return the speed of each joint divided by its limit: (N, n), with the speed's sign."""
    return log.qd / log.robot.qd_max
