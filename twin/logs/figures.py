"""The figures of a log: a few numbers a joint and of the tool, where the log itself is megabytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from twin.logs.tracking_error import joint_error, largest, pose_error, rms, tool_distance, tool_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.logs.log import Log


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of a log of N samples and n joints.

    Attributes:
        joint_names: of the robot.
        joint_kinds: `revolute` or `prismatic`, a joint each; in [m] for the latter, what is in [rad] below.
        joint_rms, joint_largest: (n,) tracking errors, in [rad].
        worst_joint: name of the joint with the largest error; empty where an error is not a number.
        worst_time: when that error was, in [s].
        peak_torque: (n,) largest torque that the motors brought, in [N m].
        torque_limit: (n,) what the drives can give, in [N m].
        saturated_samples: (n,) samples in which the torque was cut to it.
        first_saturated: (n,) when that was first, in [s]; NaN where it never was.
        peak_speed, speed_limit: (n,) largest speed, and the limit of the robot's file, in [rad/s].
        pose_rms, pose_largest: (7,) errors of the tool `[x y z a b c d]`, in [m] and without unit.
        tool_rms, tool_largest: distance of the tool from where it should be, in [m].
        tool_time: when that was largest, in [s].
        turn_rms, turn_largest: angle between the tool and the wanted orientation, in [rad].
        start, end: times of the first and the last sample, in [s].
        samples: how many there are.
        drives, model_drives: the robot's drives, and those that the controller believed in.
    """

    joint_names: tuple[str, ...]
    joint_kinds: tuple[str, ...]
    joint_rms: NDArray
    joint_largest: NDArray
    worst_joint: str
    worst_time: float
    peak_torque: NDArray
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

    @property
    def joints(self) -> tuple[tuple[str, str], ...]:
        """Name and kind of each joint."""
        return tuple(zip(self.joint_names, self.joint_kinds, strict=True))


def figures_of(log: Log) -> Figures:
    """The figures of a log that has at least one sample."""
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
        peak_torque=largest(log.tau),
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
        model_drives=str(log.arrays.get("model_drives", log.drives)),
    )
