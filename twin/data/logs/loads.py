"""Loads of a run: wrenches in the joints, at the foundation and at pins, and mean torques of the motors.

ABB's data sheets state loads on the foundation as the force and the moment in the base's xy plane and along
its z axis.  These four numbers, and the force at the pins of closed loops, are figures of a run.

The accelerations are those of the plant: with one engine step per control period, the difference of
successive speeds over the step.  The component of each wrench along its joint's axis then equals the logged
torque of the drive, which checks the recursion without forward dynamics.  With several steps per period the
speeds after one step are not known, and the model's forward dynamics give the accelerations.

Source: Norrlöf 1999, section 3.2.2, and his lecture on robot control, "life time estimation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.data.logs.columns import finite_part, first_non_finite
from twin.data.logs.figures import LOADS
from twin.physics.dynamics.equation_of_motion import forward_dynamics
from twin.physics.dynamics.wrenches import Frame, JointWrenches, joint_wrenches

if TYPE_CHECKING:
    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot


class Motion(NamedTuple):
    """Motion of an arm at N finite samples, from a log or a rollout.

    Attributes:
        robot: the arm with its payload.
        q, qd: (N, n) positions and speeds, in [rad], [rad/s].
        tau_joint: (N, n) torques of the drives on the arm in the step after each sample, in [N m].
        time_step: time step of the engine, in [s].
        steps: number of steps per control period.
        wrench: (N, 6) wrench at the tool in the step after each sample, base axes; `None` for none.
        T_flange_tool: (4, 4) pose of the tool on the flange, for the wrench.
    """

    robot: Robot
    q: Floats
    qd: Floats
    tau_joint: Floats
    time_step: float
    steps: int
    wrench: Floats | None = None
    T_flange_tool: Floats | None = None

    @property
    def has_accelerations(self) -> bool:
        """Whether the samples determine the accelerations of the plant."""
        return self.steps == 1 and len(self.q) > 1

    def accelerations(self) -> Floats:
        """Return the accelerations (N, n) in the step after each sample, in [rad/s^2].

        The last sample, which has no step, repeats the one before.
        """
        if not self.has_accelerations:
            return forward_dynamics(
                self.robot.arm, self.q, self.qd, self.tau_joint, self.wrench, self.T_flange_tool
            )
        qdd = np.diff(self.qd, axis=0) / self.time_step
        return np.concatenate([qdd, qdd[-1:]])

    def wrenches(self, frame: Frame = "link") -> JointWrenches:
        """Return the wrenches in all joints, at the base and at pins at each sample."""
        at_tool = self.wrench, self.T_flange_tool
        return joint_wrenches(self.robot, self.q, self.qd, self.accelerations(), *at_tool, frame=frame)


def _motion(log: Log) -> Motion:
    log.require_consistent()
    at_tool = (None, None) if log.surroundings is None else (log.wrench, log.T_flange_tool)
    return Motion(log.robot, log.q, log.qd, log.tau_joint, log.time_step, log.steps_per_period, *at_tool)


def log_wrenches(log: Log, frame: Frame = "link") -> JointWrenches:
    """Return the wrenches in all joints, at the base and at pins at each of the N samples of a log.

    Args:
        log: log of a run, all samples finite; `twin.logs.columns.finite_part` is such a log.
        frame: axes of the joints' wrenches, `"link"` or `"base"`.

    Raises:
        TwinError: the arrays of the log are inconsistent, or its times have gaps.
        RobotError: the masses of the links are unknown.
        ValueError: a sample is not finite.

    Example:
        >>> import twin
        >>> from scenarios.gravity_hold import GravityHold
        >>> log = GravityHold(duration=0.1).run().log
        >>> wrenches = twin.logs.log_wrenches(log)
        >>> round(float(wrenches.base[0, 2]), 2)  # 98 kg weigh on the foundation, in N
        961.38
    """
    if len(pieces := log.parts()) == 1:
        return _motion(log).wrenches(frame)
    found = [_motion(piece).wrenches(frame) for piece in pieces]
    # The last sample of a part is the first of the next one.
    cuts = [slice(-1)] * (len(pieces) - 1) + [slice(None)]

    def joined(arrays: Sequence[Floats]) -> Floats:
        return np.concatenate([array[cut] for array, cut in zip(arrays, cuts, strict=True)])

    joints, base = joined([one.joints for one in found]), joined([one.base for one in found])
    pins = {name: joined([one.pins[name] for one in found]) for name in found[0].pins}
    return replace(found[0], joints=joints, base=base, pins=pins)


def torque_residual(log: Log) -> float | None:
    """Return the largest difference of the wrenches' axis components from the logged torques, in [N m].

    Returns:
        The difference over all samples but the last; `None` if the log has several engine steps per control
        period or a single sample, so that the accelerations of the plant are not known.

    Example:
        >>> import twin
        >>> from scenarios.gravity_hold import GravityHold
        >>> log = GravityHold(duration=0.1).run().log
        >>> twin.logs.torque_residual(log) < 1e-9
        True
    """
    if not _motion(log).has_accelerations:
        return None
    tree, wrenches = log.robot.tree, log_wrenches(log).joints
    revolute = np.array([kind == "revolute" for kind in tree.kinds])
    about_axes = np.where(revolute[:, None], wrenches[..., 3:], wrenches[..., :3])
    along = np.einsum("...ij,ij->...i", about_axes, tree.axes) @ log.robot.embedding
    return float(np.max(np.abs(along - log.tau_joint)[:-1]))


def load_names(robot: Robot) -> tuple[str, ...]:
    """Return the names of the loads that an arm has: none without masses, no force at pins without loops."""
    return tuple(name for name in LOADS if robot.has_inertia and (robot.loops or name != "pin_force"))


def load_magnitudes(robot: Robot, wrenches: JointWrenches) -> dict[str, Floats]:
    """Return the magnitude (N,) of each load of the arm, see `LOADS`, at each sample."""
    base = wrenches.base.T
    pins = [np.linalg.norm(force, axis=-1) for force in wrenches.pins.values()]
    series = [
        np.hypot(base[0], base[1]),
        np.abs(base[2]),
        np.hypot(base[3], base[4]),
        np.abs(base[5]),
        *([np.max(pins, axis=0)] if pins else []),
    ]
    return dict(zip(load_names(robot), series, strict=True))


def load_curves(log: Log) -> dict[str, Floats]:
    """Return the magnitude (N,) of each load of the arm, see `LOADS`, over a log.

    It is NaN from the first sample on that is not finite.

    Raises:
        TwinError: the arrays of the log are inconsistent, or its times have gaps.
    """
    part, curves = finite_part(log), {name: np.full(len(log.t), np.nan) for name in load_names(log.robot)}
    if curves and first_non_finite(part) is None:
        for name, series in load_magnitudes(log.robot, log_wrenches(part)).items():
            curves[name][: len(series)] = series
    return curves


def cubic_mean(torque: Floats) -> Floats:
    """Return the cube root of the mean cubed magnitude over time, (N, n) -> (n,).

    The life of bearings and gears falls with about the third power of their load.
    """
    return np.cbrt(np.mean(np.abs(torque) ** 3, axis=0))
