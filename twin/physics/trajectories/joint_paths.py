"""Joint paths: a tool path by inverse kinematics on one continuous branch.

The pipeline of Aliaga 2019, section 2.2.1.2, without its least-squares detour over the 7-by-6 Jacobian: the
angles in closed form, `J qd = V` for the speeds (eq. 2.18) and `J qdd = Vd - Jd qd` for the accelerations
(eq. 2.19, which prints a plus), with the geometric Jacobian and the tool's twist V.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.errors import (
    BranchError,
    LimitError,
    RobotError,
    SingularityError,
    UnreachableError,
)
from twin.base.formatting import short_repr
from twin.physics.kinematics.forward import jacobian, jacobian_dot, tool_pose
from twin.physics.kinematics.inverse import BRANCHES, arm_constants, inverse_kinematics
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import unit_doubt
from twin.physics.trajectories.sampling import Samples, check_limits, sample_times
from twin.physics.trajectories.tool_paths import ToolMotion, ToolPath

SINGULAR = 1e-3
"""Sines of wrist and elbow, and the wrist centre's distance from axis 1 in [m], must stay above this."""

NEAR_SINGULAR = 0.1
"""Distance from a singularity, as in `singular_distances`, below which figures show it."""

KINDS = (
    ("shoulder", 0, "the wrist centre's distance from axis 1", " m"),
    ("elbow", 2, "the sine of the angle between lower arm and forearm", ""),
    ("wrist", 4, "the sine of the angle between axes 4 and 6", ""),
)
"""Name, DH axis, quantity and its unit."""


def singular_distances(robot: Robot, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
    """Return the distances of an arm with a spherical wrist from its three singularities, and their rates.

    The determinant of its Jacobian is, but for a constant, the product of the three.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        q: (N, 6) joint angles in [rad].
        qd: (N, 6) joint speeds in [rad/s].

    Returns:
        Two arrays.

        - distances: (N, 3) wrist centre from axis 1, positive in front of it, in [m]; sine of the angle
          between lower arm and forearm; sine of theta_5.
        - rates: (N, 3) their time derivatives.

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.joint_paths import singular_distances
        >>> q, qd = [[0, 0, 0, 0, 0.3, 0]], [[0, 0, 0, 0, 1, 0]]
        >>> distances, rates = singular_distances(twin.load("irb140"), q, qd)
        >>> distances[0].round(4).tolist(), round(float(rates[0, 2]), 4)  # sin 0.3 and its rate cos 0.3
        ([0.45, -1.0, 0.2955], 0.9553)
    """
    dh = robot.dh
    assert dh is not None  # inverse kinematics has asked for it
    theta, theta_dot = q @ robot.dh_coupling.T + dh.theta0, qd @ robot.dh_coupling.T
    forearm = np.hypot(dh.a[2], dh.d[3])
    bend = theta[:, 2] + np.arctan2(-np.sin(dh.alpha[2]) * dh.d[3], dh.a[2])
    raised = theta[:, 1] + bend
    distances = [
        dh.a[0] + dh.a[1] * np.cos(theta[:, 1]) + forearm * np.cos(raised),
        np.sin(bend),
        np.sin(theta[:, 4]),
    ]
    rates = [
        -dh.a[1] * np.sin(theta[:, 1]) * theta_dot[:, 1]
        - forearm * np.sin(raised) * (theta_dot[:, 1] + theta_dot[:, 2]),
        np.cos(bend) * theta_dot[:, 2],
        np.cos(theta[:, 4]) * theta_dot[:, 4],
    ]
    return np.column_stack(distances), np.column_stack(rates)


def nearest_singularity(robot: Robot, q: Floats) -> str:
    """Return the nearest of the three singularities as a part of a sentence.

    Args:
        robot: any robot; outside the family of `inverse_kinematics` the text is empty.
        q: (n,) joint angles in [rad].
    """
    try:
        lengths = arm_constants(robot)[0]
    except RobotError:
        return ""
    distances = np.abs(singular_distances(robot, q[None], np.zeros((1, len(q))))[0][0])
    shares = distances / (abs(lengths[2]) + abs(lengths[4]), 1.0, 1.0)
    least = int(np.argmin(shares))
    name, _, what, unit = KINDS[least]
    return f" of the {name} ({what} is {distances[least]:.3g}{unit})"


def check_singularities(robot: Robot, samples: Samples) -> None:
    """Check that a sampled motion meets no singularity and passes none between its samples.

    On one branch of the inverse kinematics the distances do not change their signs: a path through a
    singularity leaves with the sign that it came with, and between two samples it would not be seen. So each
    distance must be more than its rate covers in one period.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        samples: N samples of the motion; `qdd` is not used.

    Raises:
        SingularityError: the message contains the earliest sample's kind, time, joints and distance.

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.joint_paths import check_singularities
        >>> move = twin.quintic([0, 0, 0, 0, 0.1, 0], [0, 0, 0, 0, -0.2, 0], duration=1.0)
        >>> check_singularities(twin.load("irb140"), twin.sample(move, period=0.01))
        Traceback (most recent call last):
            ...
        twin.base.errors.SingularityError: sample 40 at t = 0.4 s: wrist singularity, the sine of the angle
        between axes 4 and 6 is 0.00477 (joint_5 at 0.273186 deg); the motion covers 0.00518 in one sample,
        so it passes through
    """
    distances, rates = singular_distances(robot, samples.q, samples.qd)
    step = np.diff(samples.t).max(initial=0.0)
    near = ~(np.abs(distances) > np.maximum(SINGULAR, np.abs(rates) * step))
    if not near.any():
        return
    k, kind = np.argwhere(near)[0]
    name, axis, what, unit = KINDS[kind]
    value, covered = abs(distances[k, kind]), abs(rates[k, kind]) * step
    need = f"expected at least {SINGULAR:g}{unit}"
    if value > SINGULAR:
        need = f"the motion covers {covered:.3g}{unit} in one sample, so it passes through"
    turning = ", ".join(  # where joints are coupled, several turn one DH axis
        f"{robot.joint_names[i]} at {np.rad2deg(samples.q[k, i]):.6g} deg"
        for i in np.flatnonzero(robot.dh_coupling[axis])
    )
    raise SingularityError(
        f"sample {k} at t = {samples.t[k]:.6g} s: {name} singularity, {what} is {value:.3g}{unit} "
        f"({turning}); {need}"
    )


TURN = 2.0 * np.pi

STEP_TOLERANCE = 0.1, 0.01
"""Tolerance of a joint's step relative to the step by its speeds: as a fraction of the step, and of
what top speed makes. Close to a singularity accelerations change much within a period; a jump is far more."""


@dataclass(frozen=True, eq=False)
class JointPath:
    """A joint trajectory along a tool path; make it with `joint_path`.

    Attributes:
        robot, tool_path, T_flange_tool: as given.
        branch: row of the inverse kinematics' eight solutions that the path stays on.
        checked: the samples at which it was checked, which also tell full turns apart.
    """

    robot: Robot
    tool_path: ToolPath
    T_flange_tool: Floats
    branch: int
    checked: Samples

    __repr__ = short_repr

    @property
    def duration(self) -> float:
        """The time from start to end, in [s]."""
        return self.tool_path.duration

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd), each (..., 6), at the times t (...), in [rad], [rad/s], [rad/s^2]."""
        t = real_array(t, "t")
        times = t.reshape(-1)
        motion = self.tool_path(times)
        q = inverse_kinematics(
            self.robot, motion.T_base_tool, T_flange_tool=self.T_flange_tool, limits=False
        )[:, self.branch]
        nearby = np.searchsorted(self.checked.t, times).clip(max=len(self.checked.t) - 1)
        q = q + TURN * np.rint((self.checked.q[nearby] - q) / TURN)
        qd, qdd = _rates(self.robot, q, motion, self.T_flange_tool)
        return q.reshape(*t.shape, 6), qd.reshape(*t.shape, 6), qdd.reshape(*t.shape, 6)


def joint_path(
    robot: Robot,
    tool_path: ToolPath,
    *,
    near: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None,
    period: float = 1e-3,
) -> JointPath:
    """Return the joint trajectory that takes the tool along a path, checked all the way.

    It starts in the solution nearest to `near` within the joint ranges, and stays on that solution's branch
    (front or rear, elbow, wrist); full turns are counted on from there. To be sampled by
    `twin.trajectories.sampling.sample` or `sample_semi_implicit` like every trajectory.

    Args:
        robot: an arm with a spherical wrist, see `inverse_kinematics`.
        tool_path: pose, twist and twist rate of the tool, at rest at its ends.
        near: (6,) joint angles in [rad]; None for zeros.
        T_flange_tool: (4, 4) pose of the tool in the flange frame; None for the flange itself.
        period: spacing of the samples that are checked, in [s]. A passage between two of them is noticed:
            the distance to each singularity must be more than the arm covers in one period.

    Raises:
        UnreachableError: no joint angles reach the pose of a sample.
        BranchError: the branch ends although others go on, or a joint's step is not what its speed makes.
        SingularityError: the path meets or passes a singularity of wrist, elbow or shoulder.
        LimitError: a joint's position or speed beyond its limit.
        Each names the sample, its time, the joint and the value, and what is valid.
        ValueError: see `sample_times` and `inverse_kinematics`.

    Example:
        >>> import twin
        >>> from twin.physics.trajectories.tool_paths import through_poses
        >>> robot, q = twin.load("irb140"), [[0, 0, 0, 0, 0.3, 0], [0.2, 0, 0, 0, 0.5, 0]]
        >>> path = twin.joint_path(robot, through_poses(twin.forward_kinematics(robot, q)), near=q[0])
        >>> path(path.duration)[0][[0, 4]].round(4).tolist()
        [0.2, 0.5]
    """
    tool = tool_pose(T_flange_tool)
    t = sample_times(tool_path.duration, period)
    motion = tool_path(t)
    solutions = inverse_kinematics(robot, motion.T_base_tool, T_flange_tool=tool, limits=False)
    lost = np.any(np.isnan(solutions), axis=2)
    if lost.all(axis=1).any():
        k = int(np.argmax(lost.all(axis=1)))
        raise UnreachableError(f"{_at(t, k)}: {_out_of_reach(robot, motion.T_base_tool[k], tool)}")

    start = _start(robot, motion.T_base_tool[0], tool, near)
    branch = int(np.nanargmin(np.linalg.norm(np.exp(1j * solutions[0]) - np.exp(1j * start), axis=1)))
    if lost[:, branch].any():
        k = int(np.argmax(lost[:, branch]))
        others = ", ".join(str(row) for row in np.flatnonzero(~lost[k]))
        raise BranchError(
            f"{_at(t, k)}: the branch on which the path starts, {branch} ({BRANCHES[branch]}), "
            f"does not reach the pose; branches {others} do: start near one of them"
        )
    q = solutions[:, branch]
    q[1:] -= TURN * np.cumsum(np.rint(np.diff(q, axis=0) / TURN), axis=0)
    q += TURN * np.rint((start - q[0]) / TURN)

    still = np.zeros_like(q)
    check_singularities(robot, Samples(t, q, still, still))  # first, so that J can be inverted
    samples = Samples(t, q, *_rates(robot, q, motion, tool))
    check_singularities(robot, samples)
    check_limits(robot, samples)
    _check_steps(robot, samples, period)
    return JointPath(robot, tool_path, tool, branch, samples)


def _rates(
    robot: Robot, q: Floats, motion: ToolMotion, T_flange_tool: Floats
) -> tuple[np.ndarray, np.ndarray]:
    """Return speeds and accelerations (N, 6) of the joints for a motion of the tool."""
    J = jacobian(robot, q, T_flange_tool)
    qd = np.linalg.solve(J, motion.twist[..., None])
    J_dot = jacobian_dot(robot, q, qd[..., 0], T_flange_tool)
    qdd = np.linalg.solve(J, motion.twist_rate[..., None] - J_dot @ qd)
    return qd[..., 0], qdd[..., 0]


def _start(robot: Robot, T_base_tool: Floats, tool: Floats, near: ArrayLike | None) -> Floats:
    """Return the solution (6,) of the first pose nearest to `near` within the joint ranges."""
    near = np.zeros(6) if near is None else real_array(near, "near")
    start = inverse_kinematics(robot, T_base_tool, T_flange_tool=tool, near=near)
    _check_angles(robot, near, "near must be joint angles within their ranges")
    if np.isnan(start).any():
        start = inverse_kinematics(robot, T_base_tool, T_flange_tool=tool, near=near, limits=False)
        _check_angles(robot, start, "no solution of the first pose is within the joint ranges: the nearest")
    return start


def _check_angles(robot: Robot, q: Floats, what: str) -> None:
    """Raise LimitError, its message led in by `what`, if the joint angles (6,) are outside their ranges."""
    still = np.zeros((1, 6))
    try:
        check_limits(robot, Samples(np.zeros(1), q[None], still, still))
    except LimitError as error:
        raise LimitError(f"{what}: {error}") from None


def _check_steps(robot: Robot, samples: Samples, period: float) -> None:
    """Raise BranchError where a joint's step differs from what its speeds make of it."""
    step = np.diff(samples.q, axis=0)
    expected = 0.5 * period * (samples.qd[1:] + samples.qd[:-1])
    of_step, of_top_speed = STEP_TOLERANCE
    allowed = of_step * np.abs(step) + of_top_speed * period * robot.qd_max
    jump = ~(np.abs(step - expected) <= allowed)
    if jump.any():
        k, joint = np.argwhere(jump)[0]
        jumped, made = np.rad2deg(step[k, joint]), np.rad2deg(expected[k, joint])
        raise BranchError(
            f"{_at(samples.t, int(k) + 1)}: {robot.joint_names[joint]} jumps by {jumped:.6g} deg from the "
            f"sample before, where its speed makes {made:.6g} deg: the tool path is not continuous, or its "
            "twist is not its derivative"
        )


def _out_of_reach(robot: Robot, T_base_tool: Floats, tool: Floats) -> str:
    """Return by how much the arm does not reach a pose."""
    dh = robot.dh
    assert dh is not None  # inverse kinematics has asked for it
    T_base_flange = T_base_tool @ np.linalg.inv(tool)
    wrist = T_base_flange[:3, 3] - dh.d[5] * T_base_flange[:3, 2]
    distance = np.hypot(np.hypot(wrist[0], wrist[1]) - dh.a[0], wrist[2] - dh.d[0])
    lower, forearm = abs(dh.a[1]), np.hypot(dh.a[2], dh.d[3])
    x, y, z = T_base_tool[:3, 3]
    return (
        f"no joint angles reach the tool pose at x = {x:.6g} m, y = {y:.6g} m, z = {z:.6g} m: its wrist "
        f"centre is {distance:.6g} m from axis 2, the arm reaches {abs(lower - forearm):.6g} to "
        f"{lower + forearm:.6g} m{unit_doubt(T_base_tool[:3, 3], lower + forearm)}"
    )


def _at(t: Floats, k: int) -> str:
    """Return where along the path a fault lies."""
    return f"sample {k} at t = {t[k]:.6g} s"
