"""The eight solutions of an arm with a spherical wrist in closed form, compiled.

For every arm of the family of `twin.arm_family`. The method is that of Norrlöf 1999, eqs. (2.27)-(2.50), in
his two stages: the wrist centre gives axes 1 to 3 (`main_axes`, his `ikin1`), of which 2 and 3 are a planar
two-link arm; the orientation that is left gives axes 4 to 6 (`wrist_axes`, his `ikin2`). Two formulas differ
from the printed ones, so that the pose is met to round-off everywhere: theta_3 comes from half-angle
products instead of arccos, which loses half the digits near full stretch, and theta_6 from the orientation
that remains after theta_4 and theta_5, which makes up for a theta_4 that is ill-defined close to the wrist
singularity.
"""

import math

import numpy as np

from twin.kernel_cache import compiled

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


@compiled
def solve(T, arm, theta0, inverse_S, theta_free, q_near, q_min, q_max, q):
    """Fill in all solutions of a batch of poses.

    Args:
        T: (N, 4, 4) flange poses, rigid.
        arm: from `twin.arm_family.arm_constants`.
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
def main_axes(p_wrist, arm, theta_free, theta):
    """Fill in the four solutions of the main axes for a batch of wrist centres.

    Args:
        p_wrist: (N, 3) wrist centres in the base frame, in [m].
        arm: from `twin.arm_family.arm_constants`.
        theta_free: (6,) DH angles that axes 1 and 2 take where they are undefined, in [rad].
        theta: (N, 4, 3) DH angles in (-pi, pi], the result: rows `2 * rear + elbow`, NaN for none.
    """
    for sample in range(len(p_wrist)):
        _main_axes(p_wrist[sample], arm, theta_free, theta[sample])
        for row in range(4):
            for axis in range(3):
                theta[sample, row, axis] = _principal(theta[sample, row, axis])


@compiled
def wrist_axes(R_36, arm, theta_free, theta, singular):
    """Fill in both solutions of the wrist for a batch of orientations.

    Args:
        R_36: (N, 3, 3) orientations of frame 6 in frame 3.
        arm: from `twin.arm_family.arm_constants`.
        theta_free: (6,) DH angles; that of axis 4 is taken where it is undefined, in [rad].
        theta: (N, 2, 3) DH angles in (-pi, pi], the result: row 0 with theta_5 in [0, pi].
        singular: (N,) whole numbers, the result: 0, or 1 and -1 as `_wrist` returns them.
    """
    for sample in range(len(R_36)):
        R, rows = R_36[sample], theta[sample]
        U = R[0, 0], R[0, 1], R[0, 2], R[1, 0], R[1, 1], R[1, 2], R[2, 2]
        singular[sample] = _wrist(U, arm, theta_free[3], rows)
        for row in range(2):
            for axis in range(3):
                rows[row, axis] = _principal(rows[row, axis])


@compiled
def _dh_angles(T, arm, theta_free, theta):
    """Fill theta (8, 6) with the DH angles of the eight solutions, NaN rows for none."""
    d6 = arm[5]
    # The wrist centre, Norrlöf eq. (2.28).
    p_wrist = T[0, 3] - d6 * T[0, 2], T[1, 3] - d6 * T[1, 2], T[2, 3] - d6 * T[2, 2]
    _main_axes(p_wrist, arm, theta_free, theta[::2])
    for row in range(0, 8, 2):
        if math.isnan(theta[row, 2]):
            theta[row : row + 2] = np.nan
            continue
        U = _wrist_orientation(T, theta[row, 0], theta[row, 1] + theta[row, 2], arm)
        _wrist(U, arm, theta_free[3], theta[row : row + 2, 3:])
        theta[row + 1, :3] = theta[row, :3]


@compiled
def _main_axes(p_wrist, arm, theta_free, theta):
    """Fill the first three columns of theta (4, >= 3), rows `2 * rear + elbow`, NaN rows for none."""
    d1, a1, a2, a3, d4, _, sigma, _ = arm
    px, py, height = p_wrist[0], p_wrist[1], p_wrist[2] - d1
    forearm = math.hypot(a3, d4)
    beta = math.atan2(-sigma * d4, a3)  # direction of the forearm in frame 3, seen in the arm's plane
    length = abs(a2) + forearm
    radius = math.hypot(px, py)

    for rear in range(2):
        side = 1.0 - 2.0 * rear
        theta_1 = math.atan2(side * py, side * px) if radius > SINGULAR_TOLERANCE * length else theta_free[0]
        # The arm's plane: x forward from axis 2, y down (axes x and y of DH frame 1).
        x, y = math.cos(theta_1) * px + math.sin(theta_1) * py - a1, -height
        for elbow in range(2):
            row = 2 * rear + elbow
            theta_2, phi = _two_link(x, y, a2, forearm, elbow, theta_free[1])
            theta[row, 0] = math.nan if math.isnan(phi) else theta_1
            theta[row, 1] = theta_2
            theta[row, 2] = phi - beta


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
def _wrist_orientation(T, theta_1, theta_23, arm):
    """Return what `_wrist` needs of U = R03^T R06, Norrlöf eq. (2.46): first two rows, and u33."""
    sigma = arm[6]
    c1, s1, c23, s23 = math.cos(theta_1), math.sin(theta_1), math.cos(theta_23), math.sin(theta_23)
    # The columns of R06 along x (forward) and z (axis 2) of frame 1; its y axis is down, minus the last row.
    x1, x2, x3 = c1 * T[0, 0] + s1 * T[1, 0], c1 * T[0, 1] + s1 * T[1, 1], c1 * T[0, 2] + s1 * T[1, 2]
    z1, z2, z3 = c1 * T[1, 0] - s1 * T[0, 0], c1 * T[1, 1] - s1 * T[0, 1], c1 * T[1, 2] - s1 * T[0, 2]
    u11, u12, u13 = c23 * x1 - s23 * T[2, 0], c23 * x2 - s23 * T[2, 1], c23 * x3 - s23 * T[2, 2]
    return u11, u12, u13, sigma * z1, sigma * z2, sigma * z3, sigma * (s23 * x3 + c23 * T[2, 2])


@compiled
def _wrist(U, arm, theta_4_free, theta):
    """Fill theta (2, 3) with axes 4 to 6, from U = R36 = Rz(theta_4) Ry(kappa theta_5) Rz(theta_6).

    Returns 0, or at the wrist singularity 1 where only theta_4 + theta_6 is determined (theta_5 = 0) and -1
    where only theta_4 - theta_6 is (theta_5 = pi).
    """
    u11, u12, u13, u21, u22, u23, u33 = U
    kappa = arm[7]
    regular = math.hypot(u13, u23) > SINGULAR_TOLERANCE
    for wrist in range(2):
        sign = kappa * (1.0 - 2.0 * wrist)
        theta_4 = math.atan2(sign * u23, sign * u13) if regular else theta_4_free
        c4, s4 = math.cos(theta_4), math.sin(theta_4)
        theta[wrist, 0] = theta_4
        theta[wrist, 1] = kappa * math.atan2(c4 * u13 + s4 * u23, u33)
        theta[wrist, 2] = math.atan2(c4 * u21 - s4 * u11, c4 * u22 - s4 * u12)
    if regular:
        return 0
    return 1 if u33 > 0.0 else -1


@compiled
def _principal(angle):
    """Return the representative of an angle modulo 2 pi that lies in (-pi, pi]."""
    return angle - TURN * np.ceil((angle - math.pi) / TURN)


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
        q = _principal(q)
        least = np.ceil((q_min[joint] - LIMIT_TOLERANCE - q) / TURN)
        most = np.floor((q_max[joint] + LIMIT_TOLERANCE - q) / TURN)
        if not least <= most:
            angles[:] = np.nan
            return
        turns = min(max(np.rint((q_near[joint] - q) / TURN), least), most)
        angles[joint] = min(max(q + turns * TURN, q_min[joint]), q_max[joint])
