"""Manipulability: ellipsoids of the tool's speeds and forces, and lost motions in singular configurations.

The tool's twist is `V = J qd`, and a wrench F that it exerts costs `tau = J^T F`.  Joint speeds in a unit
ball make twists in an ellipsoid whose axes are the singular directions of J; torques in a unit ball,
wrenches in one with the same axes and the inverse lengths: where the arm moves fast it pushes weakly.

Linear and angular parts have different units, so figures of the whole Jacobian depend on the unit of length;
those of its `"linear"` or `"angular"` rows alone do not.
"""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.physics.kinematics.forward import jacobian
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.robot import Robot
from twin.physics.rotations.linear_maps import singular_values

Part: TypeAlias = Literal["all", "linear", "angular"]

ROWS = {"all": slice(0, 6), "linear": slice(0, 3), "angular": slice(3, 6)}


class Ellipsoid(NamedTuple):
    """An ellipsoid of twists or wrenches, or of their linear or angular parts, m of them.

    Attributes:
        axes: (..., m, m) unit vectors in columns, base axes, from the fastest direction to the slowest.
        lengths: (..., m) of its semi-axes; 0 in a direction that the tool cannot move in, where it can bear
            any force: infinite there.
    """

    axes: Floats
    lengths: Floats


class SingularConfiguration(NamedTuple):
    """Rank of the Jacobian in a configuration, and the lost and idle motions.

    Attributes:
        rank: number of independent motions of the tool.
        values: the singular values of the Jacobian, from the largest to the least.
        lost: (m - rank, m) unit twists, base axes, that the tool cannot make; as wrenches they cost no
            torque.
        idle: (n - rank, n) unit joint motions that do not move the tool.
    """

    rank: int
    values: Floats
    lost: Floats
    idle: Floats


def manipulability_measure(
    robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None = None, *, part: Part = "all"
) -> Floats:
    """Return Yoshikawa's measure `w = sqrt(det(J J^T))`, the product of the singular values.

    The volume of the velocity ellipsoid is proportional to it.  For six joints it is `|det J|`.  It is 0 in
    singular configurations, and everywhere if the arm has fewer joints than the part has directions.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        part: part of the twist, "all", "linear" or "angular".

    Returns:
        (...,) for revolute joints in [m^3] (all and linear) or [1] (angular).

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> q = [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0.5, 0]]  # wrist stretched and bent
        >>> twin.kinematics.manipulability_measure(robot, q).round(4).tolist()
        [0.0, 0.0295]

    Source: Yoshikawa 1985, "Manipulability of robotic mechanisms".
    """
    J = _rows(robot, q, T_flange_tool, part)
    if J.shape[-2] > J.shape[-1]:
        return np.zeros(J.shape[:-2])
    return np.prod(singular_values(J).values, axis=-1)


def velocity_ellipsoid(
    robot: Robot,
    q: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    part: Part = "all",
    speeds: ArrayLike | None = None,
) -> Ellipsoid:
    """Return the ellipsoid of the twists of joint speeds with `sum((qd / speeds)^2) <= 1`.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        part: part of the twist, "all", "linear" or "angular".
        speeds: (n,) in [rad/s], `robot.qd_max` for instance; 1 rad/s each by default.

    Returns:
        lengths in [m/s] or [rad/s].

    Raises:
        ValueError: a speed that is not positive.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> ellipsoid = twin.kinematics.velocity_ellipsoid(robot, robot.poses["test_1"], part="linear")
        >>> ellipsoid.lengths.round(3).tolist()
        [0.556, 0.298, 0.26]
    """
    J = _rows(robot, q, T_flange_tool, part) * _scale(robot, "speeds", speeds)
    found = singular_values(J)
    return Ellipsoid(found.outputs, _padded(found.values, J.shape[-2]))


def force_ellipsoid(
    robot: Robot,
    q: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    *,
    part: Part = "all",
    torques: ArrayLike | None = None,
) -> Ellipsoid:
    """Return the ellipsoid of the tool's wrenches with `sum((tau / torques)^2) <= 1`, the arm at rest.

    With `part` other than "all" the rest of the wrench is 0.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        part: part of the wrench, "all", "linear" or "angular".
        torques: (n,) in [N m], `robot.tau_max` for instance, as if the arm had no weight; 1 N m by default.

    Returns:
        lengths in [N] or [N m], infinite in directions in which the structure bears the load.

    Raises:
        ValueError: a torque that is not positive.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> ellipsoid = twin.kinematics.force_ellipsoid(robot, robot.poses["test_1"], part="linear")
        >>> ellipsoid.lengths.round(3).tolist()
        [1.799, 3.352, 3.843]
    """
    J = _rows(robot, q, T_flange_tool, part) / _scale(robot, "torques", torques)
    found = singular_values(J)
    kept = np.arange(J.shape[-2]) < found.rank[..., None]
    values = _padded(found.values, J.shape[-2])
    return Ellipsoid(found.outputs, np.where(kept, 1.0 / np.where(kept, values, 1.0), np.inf))


def singular_configuration(
    robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None = None, *, part: Part = "all"
) -> SingularConfiguration:
    """Return the rank of the Jacobian in one configuration, and what is lost there.

    Singular values below 1e-12 of the largest count as 0.  An arm of fewer than six joints has lost
    directions everywhere, one of more has idle motions everywhere.

    Args:
        robot: the robot.
        q: (n,) joint angles, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        part: part of the twist, "all", "linear" or "angular".

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> found = twin.kinematics.singular_configuration(robot, robot.poses["zero"])
        >>> found.rank, abs(found.idle).round(4).tolist()  # axes 4 and 6 are in line
        (5, [[0.0, 0.0, 0.0, 0.7071, 0.0, 0.7071]])
    """
    found = singular_values(_rows(robot, joint_vector(robot, "q", q), T_flange_tool, part))
    rank = int(found.rank)
    return SingularConfiguration(rank, found.values, found.outputs[:, rank:].T, found.inputs[:, rank:].T)


def _rows(robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None, part: Part) -> Floats:
    """Return the rows of the Jacobian that belong to a part of the twist."""
    if part not in ROWS:
        raise ValueError(f"unknown part of the twist {part!r}: known are {', '.join(map(repr, ROWS))}")
    return jacobian(robot, q, T_flange_tool)[..., ROWS[part], :]


def _scale(robot: Robot, name: str, values: ArrayLike | None) -> Floats:
    """Return the scale of each joint (n,)."""
    if values is None:
        return np.ones(robot.n)
    scale = joint_vector(robot, name, values)
    if not np.all(scale > 0.0):
        raise ValueError(f"expected {name} above 0, got {scale.tolist()}")
    return scale


def _padded(values: Floats, m: int) -> Floats:
    """Return singular values (..., min(m, n)) with zeros up to m."""
    return np.concatenate([values, np.zeros((*values.shape[:-1], m - values.shape[-1]))], axis=-1)
