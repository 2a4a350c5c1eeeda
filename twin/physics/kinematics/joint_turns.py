"""Conversion of Denavit-Hartenberg angles to joint angles modulo 2 pi, compiled.

Each operation processes all solutions of a block of poses, joint by joint.
"""

import math

import numpy as np

from twin.base.jit import compiled

STEEP = 0.66
"""Slope above which the angle is computed from the diagonal, at 45 degrees."""

# The rational function by which Cephes (S. L. Moshier, 1989, atan.c) continues atan(t) = t + t^3 ... for
# |t| <= 0.66: within two units of the last digit, tests/kinematics/test_joint_turns.py.
P = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
     -1.228866684490136173410e2, -6.485021904942025371773e1)  # fmt: skip
Q = (2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
     4.853903996359136964868e2, 1.945506571482613964425e2)  # fmt: skip


@compiled
def arc_tangents(y, x, angle):
    """Fill in the angles of directions: `atan2(y, x)` in [-pi, pi], and 0 where both are zero.

    Args:
        y: (N,) first components of the directions.
        x: (N,) second components of the directions.
        angle: (N,) the result, in [rad].
    """
    for i in range(len(angle)):
        angle[i] = _arc_tangent(y[i], x[i])


@compiled
def _arc_tangent(y, x):
    """Return the angle of one direction; choices are selects, not branches."""
    across, along = abs(y), abs(x)
    short, long = (along, across) if across > along else (across, along)
    steep = short > STEEP * long
    lengths = short + long if steep else long
    t = np.divide(short - long if steep else short, 1.0 if lengths == 0.0 else lengths)
    z = t * t
    p = ((((P[0] * z + P[1]) * z + P[2]) * z + P[3]) * z + P[4]) * z
    q = ((((z + Q[0]) * z + Q[1]) * z + Q[2]) * z + Q[3]) * z + Q[4]
    angle = t * np.divide(p, q) + t
    angle = angle + 0.25 * math.pi if steep else angle
    angle = 0.5 * math.pi - angle if across > along else angle
    angle = math.pi - angle if x < 0.0 else angle
    return math.copysign(angle, y)


LIMIT_TOLERANCE = 1e-12
"""Largest excess of an angle over its limit, in [rad], that is rounding; it is moved to the limit."""

TURN = 2.0 * math.pi
PER_TURN = 1.0 / TURN  # their product is 1 exactly, so that -pi, too, is rounded to a whole number of turns


@compiled
def joint_angles_of(theta, theta0, inverse_S, q_near, q_min, q_max, out):
    """Fill in the representatives modulo 2 pi of the joint angles: within the limits, nearest to q_near.

    Args:
        theta: (6, N) DH angles, in [rad].
        theta0: (6,) DH angles at q = 0, in [rad].
        inverse_S: (6, 6) inverse of the matrix S in theta = S q + theta0, whole numbers.
        q_near: (6, N) joint angles to stay close to, in [rad].
        q_min: (6,) lower joint limits in [rad], minus infinity for none.
        q_max: (6,) upper joint limits in [rad], infinity for none.
        out: (6, N) joint angles in [rad], the result; NaN where no representative is within the limits.
    """
    for joint in range(6):
        angles = out[joint]
        angles[:] = 0.0
        for axis in range(6):
            if inverse_S[joint, axis] != 0.0:
                _add(inverse_S[joint, axis], theta[axis], theta0[axis], angles)
        _representatives(angles, q_near[joint], q_min[joint], q_max[joint])


@compiled
def _add(factor, theta, theta0, sums):
    """Add factor * (theta - theta0) to sums, both (N,)."""
    for i in range(len(sums)):
        sums[i] += factor * (theta[i] - theta0)


@compiled
def _representatives(angles, near, lower, upper):
    """Turn angles (N,) by full turns in place: into [lower, upper], nearest to near (N,); NaN for none."""
    for i in range(len(angles)):
        q = principal(angles[i])
        least = np.ceil((lower - LIMIT_TOLERANCE - q) * PER_TURN)
        most = np.floor((upper + LIMIT_TOLERANCE - q) * PER_TURN)
        turns = np.rint((near[i] - q) * PER_TURN)
        turns = turns if turns > least else least
        turns = turns if turns < most else most
        q = q + turns * TURN if least <= most else math.nan
        q = lower if q < lower else q
        angles[i] = upper if q > upper else q


@compiled
def principal(angle):
    """Return the representative of an angle modulo 2 pi that lies in (-pi, pi]."""
    return angle - TURN * np.ceil((angle - math.pi) * PER_TURN)


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
                for joint in range(q.shape[2]):
                    nearest[sample, joint] = q[sample, row, joint]


@compiled
def take_solutions(q, folding, solutions):
    """Copy the columns of q to solutions: NaN where any of one is, or if a passive joint is out of range.

    Args:
        q: (6, 8 N) joint angles, in [rad]; column `8 * pose + row`.
        folding: (p, 9) of each passive joint its row of G, its angle at q = 0 and its range, in [rad].
        solutions: (N, 8, 6) joint angles in [rad], the result.
    """
    void = np.zeros(q.shape[1])  # added to a column: 0 or NaN, as branches would be mispredicted
    for joint in range(6):
        _add(0.0, q[joint], 0.0, void)
    for passive in range(len(folding)):
        angles = np.full(q.shape[1], folding[passive, 6])
        for joint in range(6):
            _add(folding[passive, joint], q[joint], 0.0, angles)
        _void_beyond(angles, folding[passive, 7], folding[passive, 8], void)
    for pose in range(len(solutions)):
        for row in range(8):
            column = 8 * pose + row
            for joint in range(6):
                solutions[pose, row, joint] = q[joint, column] + void[column]


@compiled
def _void_beyond(angles, lower, upper, void):
    """Add NaN to void (N,) where angles (N,) are outside their range, and 0 elsewhere."""
    for i in range(len(angles)):
        beyond = max(lower - angles[i], angles[i] - upper)
        void[i] += 0.0 if beyond <= LIMIT_TOLERANCE else math.nan
