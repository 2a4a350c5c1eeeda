"""The two stages of inverse kinematics one by one, in Denavit-Hartenberg angles: Norrlöf's `ikin1`, `ikin2`.

`inverse_kinematics` runs the same compiled code for a whole pose and answers in joint angles.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.kinematics import spherical_wrist
from twin.kinematics.arm_family import arm_constants
from twin.robot.robot import Robot
from twin.spatial.rotations import float_array, rotation_matrices

PRINTED_ORDER = [0, 1, 3, 2]
"""Of the compiled rows, `2 * rear + elbow`: behind axis 1 the elbow that is up is the other one."""


def main_axis_angles(robot: Robot, p_wrist: ArrayLike) -> NDArray[np.float64]:
    """Return the DH angles of the main axes that bring the wrist centre to a point: all four solutions.

    The rows are in the order of the report, after the signs of its eq. (2.33):

    - 0: wrist centre in front of axis 1, elbow up;
    - 1: in front, elbow down;
    - 2: wrist centre behind axis 1, elbow up;
    - 3: behind, elbow down.

    Elbow up is a positive angle in (2.33), where a2 is the length of the lower arm: axis 3 is then above the
    line from axis 2 to the wrist centre, unless the latter is horizontally between axes 1 and 2.

    A row is NaN where the wrist centre is out of its reach; joint limits are not asked. An angle that is
    undefined, theta_1 with the wrist centre on axis 1 or theta_2 with it on axis 2, is that of q = 0.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        p_wrist: (..., 3) wrist centres in the base frame, in [m]; `d6 - d_6 z6` of a flange pose (2.28).

    Returns:
        (..., 4, 3) DH angles theta_1, theta_2, theta_3 in (-pi, pi], in [rad]; `joint_angles` takes six of
        them to the pendant's.

    Raises:
        ValueError: a wrong shape, or a number that is not finite.
        RobotError: the arm has no DH table, or one outside the family.

    Source: Norrlöf 1999, eq. (2.29)-(2.40), his `ikin1`. The second theta_1 is that of (2.38), which the text
    after (2.29) misprints; a1 and d1 are taken off along the arm, not by R01 as in (2.30); and the quotient
    in (2.34) is horizontal over vertical distance from axis 2, an arctan2.
    """
    arm, theta0, _ = arm_constants(robot)
    p_wrist = _finite(float_array(p_wrist, "p_wrist", (3,)), "p_wrist")
    rows = np.array(p_wrist, order="C").reshape(-1, 3)
    theta = np.empty((len(rows), 4, 3))
    spherical_wrist.main_axes(rows, arm, theta0, theta)
    return theta[:, PRINTED_ORDER].reshape(*p_wrist.shape[:-1], 4, 3)


def wrist_axis_angles(robot: Robot, R_36: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the DH angles of the wrist that turn frame 6 so against frame 3: both solutions, and the flag s.

    At a wrist singularity, where axes 4 and 6 are in line, theta_4 is that of q = 0 in both rows, and theta_6
    makes up the rest.

    Args:
        robot: an arm of the family of `inverse_kinematics`.
        R_36: (..., 3, 3) orientations of DH frame 6 in DH frame 3, `R_03.T @ R_06`.

    Returns:
        Two arrays.

        - theta: (..., 2, 3) DH angles theta_4, theta_5, theta_6 in (-pi, pi], in [rad]: row 0 with theta_5 of
          at least 0, row 1 with its opposite.
        - s: (..., 2) of each row: 0 away from the singularity, 1 where only theta_4 + theta_6 is determined
          (theta_5 is 0), -1 where only theta_4 - theta_6 is (theta_5 is pi, or by rounding -pi).

    Raises:
        ValueError: a wrong shape, a number that is not finite, or no rotation within 1e-9.
        RobotError: the arm has no DH table, or one outside the family.

    Source: Norrlöf 1999, eq. (2.43)-(2.50), his `ikin2`. Of (2.48) the second form holds, the first prints
    r11, r21, r31 for r13, r23, r33; and the arccos of (2.50) loses the angle's sign, which arctan2 keeps.
    """
    arm, theta0, _ = arm_constants(robot)
    R_36 = rotation_matrices(R_36, "R_36")
    rows = np.array(R_36, order="C").reshape(-1, 3, 3)
    theta, s = np.empty((len(rows), 2, 3)), np.empty(len(rows), dtype=np.int64)
    spherical_wrist.wrist_axes(rows, arm, theta0, theta, s)
    shape = R_36.shape[:-2]
    return theta.reshape(*shape, 2, 3), np.repeat(s[:, None], 2, axis=1).reshape(*shape, 2)


def _finite(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return the values; `ValueError` names the first of them that is not finite."""
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        where = wrong[0].tolist()
        raise ValueError(f"expected {name} to be finite, got {values[tuple(where)]} at {where}")
    return values
