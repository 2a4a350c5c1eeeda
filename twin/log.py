"""What happened in a run, sample by sample."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile

from twin.dynamics import forward_dynamics
from twin.errors import TwinError
from twin.kept_robot import found_again, kept
from twin.kinematics import forward_kinematics
from twin.robot import Robot
from twin.rotations import continuous_quaternions, pose_vector
from twin.violations import Violation, violations


@dataclass(frozen=True, eq=False)
class Log:
    """The record of a closed loop: N samples, one a control period, of n joints.

    Attributes:
        robot: the plant's.
        controller: name of the control law.
        time_step: of the engine, in [s].
        steps_per_period: engine steps in a control period.
        t: (N,) time, in [s].
        q_ref, qd_ref, qdd_ref: (N, n) what was asked for, in [rad], [rad/s], [rad/s^2].
        q, qd: (N, n) what the plant did, in [rad], [rad/s].
        tau: (N, n) torques that the joints got from each sample to the next, in [N m]; like `tau_demand` not
            finite in the last sample of a run that ended for that.
        tau_demand: (N, n) torques that the controller demanded, in [N m].
        saturated: (N, n) true where the drive could not deliver them.
        loop_gap: (N,) how far the closed loops came open in the steps up to each sample, at most, in [m].
        pose, pose_ref: (N, 7) the flange, `[x y z a b c d]`, of `q` and `q_ref`; the signs of the quaternions
            are continuous in time and the same in both.  Computed when they are first asked for.
        arrays: what a scenario adds of its own, by name; empty for a bare run.
    """

    robot: Robot
    controller: str
    time_step: float
    steps_per_period: int
    t: np.ndarray
    q_ref: np.ndarray
    qd_ref: np.ndarray
    qdd_ref: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_demand: np.ndarray
    saturated: np.ndarray
    loop_gap: np.ndarray
    arrays: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def pose(self) -> np.ndarray:  # noqa: D102
        return self._poses[0]

    @property
    def pose_ref(self) -> np.ndarray:  # noqa: D102
        return self._poses[1]

    @cached_property
    def _poses(self) -> tuple[np.ndarray, np.ndarray]:
        pose, pose_ref = (pose_vector(forward_kinematics(self.robot, q)) for q in (self.q, self.q_ref))
        for series in (pose, pose_ref):
            series[:, 3:] = continuous_quaternions(series[:, 3:])
        if len(pose) and pose[0, 3:] @ pose_ref[0, 3:] < 0:
            pose[:, 3:] *= -1.0
        return pose, pose_ref

    def model_residuals(self) -> np.ndarray:
        """How far the plant was from the model's prediction at samples 1 to N-1: (N-1, n) in [rad/s].

        Each sample's state is advanced to the next by the robot's forward dynamics, in the engine's steps and
        under the logged torque: round-off if plant and analytic model are the same robot.
        """
        q, qd = self.q[:-1].copy(), self.qd[:-1].copy()
        for _ in range(self.steps_per_period if len(q) else 0):
            qd += self.time_step * forward_dynamics(self.robot, q, qd, self.tau[:-1])
            q += self.time_step * qd
        return self.qd[1:] - qd

    def model_residual(self) -> float | None:
        """The largest of `model_residuals`, in [rad/s]; `None` where there are less than two samples."""
        return float(np.max(np.abs(self.model_residuals()))) if len(self.t) > 1 else None

    def violations(self) -> tuple[Violation, ...]:
        """Where the arm was furthest beyond the ranges and the speed limits of its joints, if it was.

        The engine has no stops at the ends of the ranges, so this is where leaving them shows.
        """
        return violations(self.robot, self.t, self.q, self.qd)

    def range_excess(self) -> np.ndarray:
        """How far each joint went beyond its range (n,), in [rad]; 0 where it stayed inside, or never was.

        The engine has no stops at the ends of the range, so this is where leaving it shows.
        """
        beyond = np.maximum(self.robot.q_min - self.q, self.q - self.robot.q_max)
        return np.max(beyond, axis=0, initial=0.0)

    def identical(self, other: Log) -> bool:
        """Whether two logs agree in every bit of every sample."""
        return (
            all(_same(getattr(self, name), getattr(other, name)) for name in RECORDED)
            and self.arrays.keys() == other.arrays.keys()
            and all(_same(array, other.arrays[name]) for name, array in self.arrays.items())
        )

    def save(self, path: str | Path) -> None:
        """Write a NumPy archive, by custom `.npz`.

        Of the robot it keeps where it came from, its gravity and its payload. A robot that was altered in
        another way, say by `dataclasses.replace(robot, tau_max=...)`, comes back as its file has it.
        """
        content = kept(self.robot)
        content |= {name: getattr(self, name) for name in RECORDED}
        content |= {OWN + name: array for name, array in self.arrays.items()}
        with open(path, "wb") as file:  # given a name, NumPy might append to it
            np.savez(file, **content)

    @staticmethod
    def load(path: str | Path) -> Log:
        """Read what `save` wrote.

        Raises:
            TwinError: the file is missing or is not a log.
            UnknownNameError, RobotError: the robot that it was made with is not there any more.
        """
        try:
            content = np.load(path)
            if not isinstance(content, NpzFile):
                raise ValueError("it holds a single array")
            with content as archive:
                arrays: dict[str, Any] = dict(archive)
            recorded = {name: arrays[name] for name in RECORDED}
            robot = found_again(arrays)
        except OSError as error:
            raise TwinError(f"cannot read the log {path}: {error.strerror or error}") from error
        except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise TwinError(f"{path} is not a log of this program ({error})") from error
        for name, kind in SCALARS.items():
            recorded[name] = kind(recorded[name])
        own = {name.removeprefix(OWN): array for name, array in arrays.items() if name.startswith(OWN)}
        poses = tuple(recorded.pop(name) for name in POSES)
        log = Log(robot=robot, arrays=MappingProxyType(own), **recorded)
        log.__dict__["_poses"] = poses  # where cached_property looks first
        return log


POSES = ("pose", "pose_ref")
RECORDED = (*(item.name for item in fields(Log) if item.name not in ("robot", "arrays")), *POSES)
OWN = "own_"  # before the names of a scenario's own arrays in the archive
SCALARS = {"controller": str, "time_step": float, "steps_per_period": int}


def _same(a: object, b: object) -> bool:
    """Bitwise equality of arrays, equality of scalars."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return a == b
