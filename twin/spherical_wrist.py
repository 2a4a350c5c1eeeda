"""The family of arms with a spherical wrist, and their eight solutions in closed form, compiled.

The family is every arm whose Denavit-Hartenberg table, A = Rz(theta) Tz(d) Tx(a) Rx(alpha), reads

    alpha = (-90, 0, +-90, +-90, -alpha_4, 0) degrees,  a = (a1, a2, a3, 0, 0, 0),  d = (d1, 0, 0, d4, 0, d6)

with lengths of any sign, a2 and hypot(a3, d4) not zero. The method is that of Norrlöf 1999,
eqs. (2.27)-(2.50): the wrist centre gives axes 1 to 3, of which 2 and 3 are a planar two-link arm; the
orientation that is left gives axes 4 to 6. Two formulas differ from the printed ones, so that the pose is met
to round-off everywhere: theta_3 comes from half-angle products instead of arccos, which loses half the digits
near full stretch, and theta_6 from the orientation that remains after theta_4 and theta_5, which makes up for
a theta_4 that is ill-defined close to the wrist singularity.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.errors import RobotError
from twin.kernel_cache import compiled

if TYPE_CHECKING:
    from twin.robot import Robot

REACH_TOLERANCE = 1e-12
"""How far out of reach, relative to the arm's length, still counts as rounding of a fully stretched pose.

Forward kinematics and a tool offset leave about 1e-15; the pose is then met to within this tolerance.
"""

SINGULAR_TOLERANCE = 1e-13
"""Below this (sine of axis 5; distance over the arm's length) an angle is undefined and chosen by rule.

It is some hundred roundings wide, and the most by which the pose is then missed.
"""

LIMIT_TOLERANCE = 1e-12
"""An angle beyond its limit by no more than this, in [rad], is rounding and is put onto the limit."""

TURN = 2.0 * math.pi


@lru_cache(maxsize=16)
def arm_constants(robot: "Robot") -> tuple[tuple[float, ...], NDArray[np.float64], NDArray[np.float64]]:
    """Return what the kernel needs of an arm of the family.

    Remembered for the last robots asked for (they are immutable): the checks cost as much as twenty poses.

    Args:
        robot: any robot.

    Returns:
        arm: d1, a1, a2, a3, d4, d6 in [m], sin alpha_3, -sin alpha_4.
        theta0: (6,) DH angles at q = 0, in [rad].
        inverse_S: (6, 6) inverse of the matrix S in theta = S q + theta0, whole numbers.

    Raises:
        RobotError: the robot has no DH table, or one outside the family; the message names the entry.
    """
    dh = robot.dh
    if dh is None:
        raise RobotError(f"robot {robot.name!r} has no DH table, which inverse kinematics needs")
    outside = f"robot {robot.name!r} is outside the family of closed-form inverse kinematics:"
    if len(dh.d) != 6:
        raise RobotError(f"{outside} it has {len(dh.d)} DH rows, expected 6")
    right = math.pi / 2
    allowed = {
        "alpha": ((-right,), (0.0,), (-right, right), (-right, right), (-dh.alpha[3],), (0.0,)),
        "a": (None, None, None, (0.0,), (0.0,), (0.0,)),
        "d": (None, (0.0,), (0.0,), None, (0.0,), None),
    }
    for letter, entries in allowed.items():
        for axis, (value, choices) in enumerate(zip(getattr(dh, letter), entries, strict=True), start=1):
            if choices is None or any(abs(value - choice) <= 1e-12 for choice in choices):
                continue
            unit, scale = ("degrees", 180.0 / math.pi) if letter == "alpha" else ("m", 1.0)
            wanted = " or ".join(f"{choice * scale:g}" for choice in choices)
            raise RobotError(f"{outside} DH {letter}_{axis} is {value * scale:g} {unit}, expected {wanted}")
    for name, length in (("a_2", abs(dh.a[1])), ("hypot(a_3, d_4)", math.hypot(dh.a[2], dh.d[3]))):
        if not length > 0:
            raise RobotError(f"{outside} DH {name} is {length:g} m, expected more than 0")
    # Then a full turn of any DH angle is full turns of joints, and the other way round.
    if not (np.all(np.rint(robot.S) == robot.S) and abs(abs(np.linalg.det(robot.S)) - 1.0) <= 1e-9):
        raise RobotError(f"{outside} S must hold whole numbers and have determinant 1 or -1")
    arm = dh.d[0], dh.a[0], dh.a[1], dh.a[2], dh.d[3], dh.d[5], np.sign(dh.alpha[2]), -np.sign(dh.alpha[3])
    return tuple(map(float, arm)), np.array(dh.theta0), np.rint(np.linalg.inv(robot.S))


@compiled
def solve(T, arm, theta0, inverse_S, theta_free, q_near, q_min, q_max, q):
    """Fill in all solutions of a batch of poses.

    Args:
        T: (N, 4, 4) flange poses, rigid.
        arm: from `arm_constants`.
        theta0: (6,) DH angles at q = 0, in [rad].
        inverse_S: (6, 6) inverse of the matrix S in theta = S q + theta0.
        theta_free: (N, 6) DH angles that axes 1, 2 and 4 take where they are undefined, in [rad].
        q_near: (N, 6) joint angles whose nearest representative modulo 2 pi is wanted, in [rad].
        q_min: (6,) lower joint limits in [rad], minus infinity for none.
        q_max: (6,) upper joint limits in [rad], infinity for none.
        q: (N, 8, 6) joint angles in [rad], the result.
    """
    for sample in range(len(T)):
        _dh_angles(T[sample], arm, theta_free[sample], q[sample])
        for row in range(8):
            _joint_angles(q[sample, row], theta0, inverse_S, q_near[sample], q_min, q_max)


@compiled
def choose_nearest(q, q_near, nearest):
    """Fill in, for each sample, the solution with the least sum of squared joint differences.

    Args:
        q: (N, 8, 6) solutions in [rad], NaN rows for none.
        q_near: (N, 6) joint angles to stay close to, in [rad].
        nearest: (N, 6) the result, NaN where all rows are.
    """
    for sample in range(len(q)):
        nearest[sample] = np.nan
        least = np.inf
        for row in range(8):
            distance = 0.0
            for joint in range(6):
                difference = q[sample, row, joint] - q_near[sample, joint]
                distance += difference * difference
            if distance < least:
                least = distance
                nearest[sample] = q[sample, row]


@compiled
def _dh_angles(T, arm, theta_free, theta):
    """Fill theta (8, 6) with the DH angles of the eight solutions, NaN rows for none."""
    d1, a1, a2, a3, d4, d6, sigma, kappa = arm
    px = T[0, 3] - d6 * T[0, 2]  # wrist centre, Norrlöf eq. (2.28)
    py = T[1, 3] - d6 * T[1, 2]
    height = T[2, 3] - d6 * T[2, 2] - d1
    forearm = math.hypot(a3, d4)
    beta = math.atan2(-sigma * d4, a3)  # direction of the forearm in frame 3, seen in the arm's plane
    length = abs(a2) + forearm
    radius = math.hypot(px, py)

    for rear in range(2):
        side = 1.0 - 2.0 * rear
        theta_1 = math.atan2(side * py, side * px) if radius > SINGULAR_TOLERANCE * length else theta_free[0]
        c1, s1 = math.cos(theta_1), math.sin(theta_1)
        # The arm's plane: x forward from axis 2, y down (axes x and y of DH frame 1).
        x, y = c1 * px + s1 * py - a1, -height
        for elbow in range(2):
            row = 4 * rear + 2 * elbow
            theta_2, phi = _two_link(x, y, a2, forearm, elbow, theta_free[1])
            theta_3 = phi - beta
            _wrist(T, c1, s1, theta_2 + theta_3, sigma, kappa, theta_free[3], theta[row : row + 2])
            for wrist in range(2):
                theta[row + wrist, 0] = theta_1
                theta[row + wrist, 1] = theta_2
                theta[row + wrist, 2] = theta_3
            if math.isnan(phi):
                theta[row : row + 2] = np.nan


@compiled
def _two_link(x, y, a2, forearm, elbow, theta_2_free):
    """Return theta_2 and the bend phi of the forearm against the lower arm; NaN out of reach.

    With `1 - cos phi` and `1 + cos phi` as products, phi keeps the digits near 0 and pi that arccos loses.
    Within rounding of full stretch or fold it is 0 or pi exactly, so that both elbows are the same.
    """
    distance = math.hypot(x, y)
    outer, inner = abs(a2) + forearm, abs(abs(a2) - forearm)
    slack, rounding = REACH_TOLERANCE * outer, SINGULAR_TOLERANCE * outer
    if not inner - slack <= distance <= outer + slack:
        return math.nan, math.nan
    bent = straight = 0.0  # 2 |a2| forearm (1 - cos phi) and 2 |a2| forearm (1 + cos phi), for a2 > 0
    if distance < outer - rounding:
        bent = (outer - distance) * (outer + distance)
    if distance > inner + rounding:
        straight = (distance - inner) * (distance + inner)
    phi = 2.0 * math.atan2(math.sqrt(bent), math.sqrt(straight))
    if a2 < 0.0:
        phi -= math.pi  # the link points along minus x of its own frame
    if elbow == 1 and bent > 0.0 and straight > 0.0:
        phi = -phi
    if distance <= rounding:
        return theta_2_free, phi
    return math.atan2(y, x) - math.atan2(forearm * math.sin(phi), a2 + forearm * math.cos(phi)), phi


@compiled
def _wrist(T, c1, s1, theta_23, sigma, kappa, theta_4_free, theta):
    """Fill axes 4 to 6 of theta (2, 6), from U = R03^T R06 = Rz(theta_4) Ry(kappa theta_5) Rz(theta_6)."""
    c23, s23 = math.cos(theta_23), math.sin(theta_23)
    # The columns of R06 along x (forward) and z (axis 2) of frame 1; its y axis is down, minus the last row.
    x1, x2, x3 = c1 * T[0, 0] + s1 * T[1, 0], c1 * T[0, 1] + s1 * T[1, 1], c1 * T[0, 2] + s1 * T[1, 2]
    z1, z2, z3 = c1 * T[1, 0] - s1 * T[0, 0], c1 * T[1, 1] - s1 * T[0, 1], c1 * T[1, 2] - s1 * T[0, 2]
    u11, u12, u13 = c23 * x1 - s23 * T[2, 0], c23 * x2 - s23 * T[2, 1], c23 * x3 - s23 * T[2, 2]
    u21, u22, u23 = sigma * z1, sigma * z2, sigma * z3
    u33 = sigma * (s23 * x3 + c23 * T[2, 2])
    sine = math.hypot(u13, u23)
    for wrist in range(2):
        sign = kappa * (1.0 - 2.0 * wrist)
        theta_4 = math.atan2(sign * u23, sign * u13) if sine > SINGULAR_TOLERANCE else theta_4_free
        c4, s4 = math.cos(theta_4), math.sin(theta_4)
        theta[wrist, 3] = theta_4
        theta[wrist, 4] = kappa * math.atan2(c4 * u13 + s4 * u23, u33)
        theta[wrist, 5] = math.atan2(c4 * u21 - s4 * u11, c4 * u22 - s4 * u12)


@compiled
def _joint_angles(angles, theta0, inverse_S, q_near, q_min, q_max):
    """Turn DH angles (6,) in place into joint angles: within the limits, nearest to q_near modulo 2 pi."""
    theta = np.empty(6)
    for joint in range(6):
        theta[joint] = angles[joint] - theta0[joint]
    for joint in range(6):
        q = 0.0
        for column in range(6):
            q += inverse_S[joint, column] * theta[column]
        q -= TURN * np.ceil((q - math.pi) / TURN)  # principal value, in (-pi, pi]
        least = np.ceil((q_min[joint] - LIMIT_TOLERANCE - q) / TURN)
        most = np.floor((q_max[joint] + LIMIT_TOLERANCE - q) / TURN)
        if not least <= most:
            angles[:] = np.nan
            return
        turns = min(max(np.rint((q_near[joint] - q) / TURN), least), most)
        angles[joint] = min(max(q + turns * TURN, q_min[joint]), q_max[joint])
