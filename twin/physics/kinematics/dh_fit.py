"""Denavit-Hartenberg table of an arm that is known by its URDF.

A URDF may draw frames anywhere and axes in either direction.  The table follows from the joint axes at q = 0,
taken as lines.  The signs of the joints, the offsets of the angles, the pose of the base frame in frame 0 and
that of the flange in frame 6 are free, so that every arm of these proportions has a table of the family:

- axis 2 is perpendicular to axis 1, and axis 3 parallel to axis 2;
- axis 4 is perpendicular to axis 3;
- axes 4, 5 and 6 meet in the wrist centre; 5 is perpendicular to 4 and 6.

Directions are chosen by the geometry, not by the signs in the file.  Axis z0 points from the base's origin to
axis 2, thus up for an arm that stands; x1 points to axis 2, or from there to the wrist centre if axes 1 and 2
meet.  This is the front of the arm.  Axis z3 points to the wrist centre and z5 from there to the flange.

Source: Norrlöf 1999, Algorithm 1; Aliaga 2019, section 2.1.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import RobotError
from twin.physics.kinematics.forward import forward_kinematics, link_poses
from twin.physics.robot.robot import DH, Robot, dh_transforms

ANGLE, LENGTH = 1e-3, 1e-3
"""Largest deviations from the family that count as rounding of a file, in [rad] and as a share of the arm."""

EXACT = 1e-12
"""Largest error of a table that needs no correction of its solutions, in [m] and [1]."""


class FittedDH(NamedTuple):
    """Denavit-Hartenberg table of an arm, with the poses of its base and flange.

    `T_base_flange = T_base_0 A_1(theta_1) ... A_6(theta_6) T_6_flange`, with `theta = signs q_c + theta0` of
    the joints from the base to the flange, which are q unless a parallelogram couples them.

    Attributes:
        dh: the table; its d_2 is the lateral offset of the wrist centre.
        signs: (6,) 1 or -1 for each joint.
        T_base_0: (4, 4) pose of frame 0 in the base frame.
        T_6_flange: (4, 4) pose of the flange in frame 6.
        error: largest deviation of a component of the pose over some configurations, in [m] and [1].
    """

    dh: DH
    signs: Floats
    T_base_0: Floats
    T_6_flange: Floats
    error: float

    @property
    def is_exact(self) -> bool:
        """Whether the table agrees with the URDF to round-off."""
        return self.error <= EXACT


@lru_cache(maxsize=16)
def fitted_dh(robot: Robot) -> FittedDH:
    """Return the Denavit-Hartenberg table that follows from the joint axes of an arm.

    Args:
        robot: arm of six revolute joints from the base to the flange, usually from a URDF.

    Raises:
        RobotError: the arm is outside the family; the message names the axes.

    Example:
        >>> import twin
        >>> table = twin.kinematics.fitted_dh(twin.load("irb140"))
        >>> table.dh.d.round(4).tolist(), table.dh.a.round(4).tolist()
        ([0.352, 0.0, 0.0, 0.38, 0.0, 0.065], [0.07, 0.36, 0.0, 0.0, 0.0, 0.0])
    """
    points, directions = _axes(robot)
    T_flange = forward_kinematics(robot, np.zeros(6))
    wrist, miss = _meeting_point(points[3:], directions[3:])
    size = float(np.sum(np.linalg.norm(np.diff(np.vstack([points, T_flange[:3, 3]]), axis=0), axis=1)))
    _require_family(robot, directions, miss, size)

    # Directions of the z axes, by the geometry.
    u = directions
    origin = points[0] - (u[0] @ points[0]) * u[0]  # of axis 1 the point nearest to the base's origin
    z0 = _towards(u[0], points[1] - origin, np.array([0.0, 0.0, 1.0]), size)
    across = _unit(u[1] - (u[1] @ z0) * z0)
    x1 = _towards(np.cross(across, z0), points[1] - origin, wrist - points[1], size)
    z1 = np.cross(z0, x1)
    arm = points[2] - points[1]
    arm = arm - (arm @ z1) * z1
    a2 = float(np.linalg.norm(arm))
    if not a2 > LENGTH * size:
        raise RobotError(f"{_outside(robot)} axes 2 and 3 are the same line")
    x2 = arm / a2
    elbow = wrist - points[2]
    elbow = elbow - (elbow @ z1) * z1
    z3 = _towards(_unit(u[3] - (u[3] @ z1) * z1), elbow, u[3], size)
    x3 = np.cross(z3, z1)
    z4 = _unit(u[4] - (u[4] @ z3) * z3)
    x4 = np.cross(z3, z4)
    z5 = _towards(_unit(u[5] - (u[5] @ z4) * z4), T_flange[:3, 3] - wrist, T_flange[:3, 2], size)
    x5 = np.cross(z5, z4)
    x0 = _perpendicular(np.array([1.0, 0.0, 0.0]), z0)
    x6 = _perpendicular(T_flange[:3, 0], z5)

    z = np.array([z0, z1, z1, z3, z4, z5])
    x = np.array([x0, x1, x2, x3, x4, x5, x6])
    right = np.pi / 2
    dh = DH(
        theta0=np.array([_turn(x[i], x[i + 1], z[i]) for i in range(6)]),
        d=np.array(
            [
                z0 @ (points[1] - origin),
                z1 @ (wrist - origin),
                0.0,
                z3 @ elbow,
                0.0,
                z5 @ (T_flange[:3, 3] - wrist),
            ]
        ),
        a=np.array([x1 @ (points[1] - origin), a2, x3 @ elbow, 0.0, 0.0, 0.0]),
        alpha=np.array([-right, 0.0, -right, right, -right, 0.0]),
    )
    T_base_0 = np.eye(4)
    T_base_0[:3, :3] = np.column_stack([x0, np.cross(z0, x0), z0])
    T_base_0[:3, 3] = origin
    signs = np.sign(np.einsum("ij,ij->i", u, z))
    return _completed(robot, DH(*(_tidy(column) for column in dh)), signs, _tidy(T_base_0))


def family_dh(robot: Robot) -> tuple[DH, Floats]:
    """Return the DH table and the coupling (6, 6) of a robot, fitted if it has none.

    Raises:
        RobotError: the robot has no table and is outside the family of closed-form inverse kinematics.
    """
    if robot.dh is not None:
        return robot.dh, robot.dh_coupling
    fit = fitted_dh(robot)
    return fit.dh, np.diag(fit.signs) @ _chain(robot)


def _completed(robot: Robot, dh: DH, signs: Floats, T_base_0: Floats) -> FittedDH:
    """Return the table with the pose of the flange at q = 0, and its error over some configurations."""
    coupling = np.diag(signs) @ _chain(robot)

    def pose(q: Floats) -> Floats:
        return T_base_0 @ np.linalg.multi_dot(list(dh_transforms(dh, coupling @ q + dh.theta0)))

    T_6_flange = _tidy(np.linalg.inv(np.asarray(pose(np.zeros(6)))) @ forward_kinematics(robot, np.zeros(6)))
    states = np.random.default_rng(0).uniform(-np.pi, np.pi, (20, 6))
    errors = [np.abs(pose(q) @ T_6_flange - forward_kinematics(robot, q)).max() for q in states]
    return FittedDH(dh, signs, T_base_0, T_6_flange, float(np.max(errors)))


def _axes(robot: Robot) -> tuple[Floats, Floats]:
    """Return a point (6, 3) and the direction (6, 3) of each joint axis at q = 0, in the base frame."""
    _chain(robot)
    tree = robot.tree
    chain = list(tree.carriers(tree.flange_joint))
    T = link_poses(robot, np.zeros(6))[chain]
    return T[:, :3, 3], np.einsum("kij,kj->ki", T[:, :3, :3], tree.axes[chain])


def _chain(robot: Robot) -> Floats:
    """Return the matrix (6, 6) of the angles of the joints from the base to the flange, without offsets.

    Raises:
        RobotError: they are not six independent revolute joints.
    """
    outside, tree = _outside(robot), robot.tree
    chain = list(tree.carriers(tree.flange_joint))
    if robot.n != 6 or len(chain) != 6:
        raise RobotError(
            f"{outside} {len(chain)} joints move its flange and {robot.n} have a motor, expected 6 in a chain"
        )
    for joint in chain:
        if tree.kinds[joint] == "prismatic":
            raise RobotError(f"{outside} joint {tree.names[joint]!r} is prismatic")
    if not np.linalg.matrix_rank(robot.embedding[chain]) == 6:
        raise RobotError(f"{outside} its six motors do not move all six joints from the base to the flange")
    return robot.embedding[chain]


def _meeting_point(points: Floats, directions: Floats) -> tuple[Floats, float]:
    """Return the point nearest to three lines, and its largest distance from one of them."""
    across = np.eye(3) - np.einsum("ki,kj->kij", directions, directions)
    point = np.linalg.lstsq(across.sum(axis=0), np.einsum("kij,kj->i", across, points), rcond=None)[0]
    return point, float(np.max(np.linalg.norm(np.einsum("kij,kj->ki", across, point - points), axis=1)))


def _require_family(robot: Robot, directions: Floats, miss: float, size: float) -> None:
    """Raise `RobotError` unless the axes are parallel and perpendicular as in the family."""
    outside = _outside(robot)
    for i, angle in ((0, 90.0), (1, 0.0), (2, 90.0), (3, 90.0), (4, 90.0)):
        cosine, sine = directions[i] @ directions[i + 1], np.cross(directions[i], directions[i + 1])
        apart = float(np.degrees(np.arctan2(np.linalg.norm(sine), abs(cosine))))
        if not abs(apart - angle) <= np.degrees(ANGLE):
            raise RobotError(
                f"{outside} axes {i + 1} and {i + 2} are {apart:.3g} deg apart, expected {angle:g}"
            )
    if not miss <= LENGTH * size:
        raise RobotError(f"{outside} axes 4, 5, 6 miss one point by {miss:.2g} m, expected a spherical wrist")


def _outside(robot: Robot) -> str:
    return f"robot {robot.name!r} is outside the family of closed-form inverse kinematics:"


def _towards(axis: Floats, first: Floats, second: Floats, size: float) -> Floats:
    """Return the axis or its opposite, towards `first`, or towards `second` if `first` is across it."""
    for vector in (first, second):
        along = float(axis @ vector)
        if abs(along) > 1e-6 * size:
            return axis if along > 0 else -axis
    return axis


def _perpendicular(wanted: Floats, z: Floats) -> Floats:
    """Return the unit vector across z nearest to the wanted one, or any if that is along z."""
    across = wanted - (wanted @ z) * z
    if np.linalg.norm(across) < 1e-3:
        across = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    return _unit(across)


def _unit(vector: Any) -> Floats:
    return vector / np.linalg.norm(vector)


def _turn(start: Floats, end: Floats, z: Floats) -> float:
    """Return the angle about z from one vector to another, both across z, in [rad]."""
    return float(np.arctan2(z @ np.cross(start, end), start @ end))


def _tidy(numbers: Any) -> Floats:
    """Return numbers without rounding errors about zero, so that tables print well; others stay."""
    return np.where(np.abs(numbers) < 1e-14, 0.0, numbers)
