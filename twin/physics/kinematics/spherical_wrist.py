"""The eight solutions of an arm with a spherical wrist in closed form, compiled.

For every arm of the family of `twin.kinematics.inverse.arm_constants`. The method is that of Norrlöf 1999,
eqs. (2.27)-(2.50), in his two stages: the wrist centre gives axes 1 to 3 (`main_axes`, his `ikin1`), of which
2 and 3 are a planar two-link arm; the orientation that is left gives axes 4 to 6 (`wrist_axes`, his `ikin2`).
Two formulas differ from the printed ones, so that the pose is met to round-off everywhere: theta_3 comes from
half-angle products instead of arccos, which loses half the digits near full stretch, and theta_6 from the
orientation that remains after theta_4 and theta_5, which makes up for a theta_4 that is ill-defined close to
the wrist singularity.

An angle is found as a direction (y, x), and the arc tangents of the directions of a block of poses are taken
all at once, which costs a tenth.  The direction of an angle that is undefined is (0, 0).

The wrist centre may lie beside the plane that contains axis 1 and is across axis 2, by the constant offset
b = d_2 + d_3 (Puma). Then `theta_1 = atan2(y, x) - atan2(b, +-sqrt(x^2 + y^2 - b^2))`.

Denavit-Hartenberg angles are converted to joint angles modulo 2 pi.  Each operation processes all solutions
of a block of poses, joint by joint.
"""

import math

import numpy as np

from twin.base.jit import compiled

STEEP = 0.66
"""Slope above which the angle is computed from the diagonal, at 45 degrees."""

# The rational function by which Cephes (S. L. Moshier, 1989, atan.c) continues atan(t) = t + t^3 ... for
# |t| <= 0.66: within two units of the last digit, tests/twin/physics/kinematics/test_spherical_wrist.py.
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


REACH_TOLERANCE = 1e-12
"""Largest excess over the reach, relative to the arm's length, that is rounding of a fully stretched pose.

Forward kinematics and a tool offset leave about 1e-15; the pose is then met to within this tolerance.
"""

SINGULAR_TOLERANCE = 1e-13
"""Below this (sine of axis 5; distance over the arm's length) an angle is undefined and chosen by rule.

It is some hundred roundings wide, and the most by which the pose is then missed.
"""

AXIS_1_FREE, AXIS_2_FREE, AXIS_4_FREE = 1, 2, 4
"""Flags of a solution's undefined angles; several may be set."""


@compiled
def main_axes(p_wrist, arm, theta_free, theta):
    """Fill in the four solutions of the main axes for a batch of wrist centres.

    Args:
        p_wrist: (N, 3) wrist centres in the base frame, in [m].
        arm: from `twin.kinematics.inverse.arm_constants`.
        theta_free: (6,) DH angles that axes 1 and 2 take where they are undefined, in [rad].
        theta: (N, 4, 3) DH angles in (-pi, pi], the result: rows `2 * rear + elbow`, NaN for none.
    """
    y, x, angle = np.empty(8), np.empty(8), np.empty(8)
    for sample in range(len(p_wrist)):
        p = p_wrist[sample]
        _main_directions((p[0], p[1], p[2]), arm, theta_free, SINGULAR_TOLERANCE, y, x, 0)
        arc_tangents(y, x, angle)
        for row in range(4):
            angles = _main_angles(y, x, angle, 0, row, arm, theta_free)
            for axis in range(3):
                theta[sample, row, axis] = principal(angles[axis])


@compiled
def wrist_axes(R_36, arm, theta_free, theta, singular):
    """Fill in both solutions of the wrist for a batch of orientations.

    Args:
        R_36: (N, 3, 3) orientations of frame 6 in frame 3.
        arm: from `twin.kinematics.inverse.arm_constants`.
        theta_free: (6,) DH angles; that of axis 4 is taken where it is undefined, in [rad].
        theta: (N, 2, 3) DH angles in (-pi, pi], the result: row 0 with theta_5 in [0, pi].
        singular: (N,) whole numbers, the result: 0, or 1 and -1 as `_wrist_directions` returns them.
    """
    directions, angle = np.empty((6, 2)), np.empty(2)
    for sample in range(len(R_36)):
        R = R_36[sample]
        U = R[0, 0], R[0, 1], R[0, 2], R[1, 0], R[1, 1], R[1, 2], R[2, 2]
        singular[sample] = _wrist_directions(U, arm, theta_free[3], SINGULAR_TOLERANCE, directions, 0)
        for axis in range(3):
            arc_tangents(directions[axis], directions[3 + axis], angle)
            if axis == 0 and singular[sample] != 0:
                angle[:] = theta_free[3]
            for row in range(2):
                theta[sample, row, axis] = principal(angle[row])


@compiled
def all_dh_angles(T, arm, theta_free, tolerance, directions, theta, free_axes):
    """Fill in the DH angles of all solutions of a block of n poses; return whether any of them is free.

    Args:
        T: (n, 4, 4) flange poses, rigid.
        arm: from `twin.kinematics.inverse.arm_constants`.
        theta_free: (n, 6), or (1, 6) for all poses.
        tolerance: below which an angle counts as undefined.
        directions: (6, 8 n) space for y of three angles and x of three angles.
        theta: (6, 8 n) the result: column `8 * pose + row`, NaN in some of it for no solution.
        free_axes: (8 n,) whole numbers, filled with flags, `AXIS_1_FREE` and so on, only if an angle is free.
    """
    y, x, angle, d6 = directions[0], directions[3], theta[5], arm[3]
    any_free = wrist_free = False
    for pose in range(len(T)):
        R, free = T[pose], theta_free[pose if len(theta_free) > 1 else 0]
        # The wrist centre, Norrlöf eq. (2.28).
        p_wrist = R[0, 3] - d6 * R[0, 2], R[1, 3] - d6 * R[1, 2], R[2, 3] - d6 * R[2, 2]
        main = _main_directions(p_wrist, arm, free, tolerance, y, x, 8 * pose)
        if main != 0:
            if not any_free:
                free_axes[: 8 * len(T)] = 0
            any_free = True
            free_axes[8 * pose : 8 * pose + 8] = main
    arc_tangents(y, x, angle)
    for pose in range(len(T)):
        free = theta_free[pose if len(theta_free) > 1 else 0]
        for row in range(4):
            theta_1, theta_2, theta_3 = _main_angles(y, x, angle, 8 * pose, row, arm, free)
            for column in (8 * pose + 2 * row, 8 * pose + 2 * row + 1):
                theta[0, column], theta[1, column], theta[2, column] = theta_1, theta_2, theta_3
    for column in range(0, 8 * len(T), 2):
        theta_23 = theta[1, column] + theta[2, column]
        U = _wrist_orientation(T[column // 8], theta[0, column], theta_23, arm)
        free = theta_free[column // 8 if len(theta_free) > 1 else 0]
        wrist_free = _wrist_directions(U, arm, free[3], tolerance, directions, column) != 0 or wrist_free
    for axis in range(3):
        arc_tangents(directions[axis], directions[3 + axis], theta[3 + axis])
    for column in range(8 * len(T)):
        if y[column] == 0.0 and x[column] == 0.0:
            theta[3, column] = theta_free[column // 8 if len(theta_free) > 1 else 0, 3]
    if wrist_free and not any_free:
        free_axes[: 8 * len(T)] = 0
    for column in range(8 * len(T) if wrist_free else 0):
        free_axes[column] += AXIS_4_FREE if y[column] == 0.0 and x[column] == 0.0 else 0
    return any_free or wrist_free


@compiled
def _main_directions(p_wrist, arm, theta_free, tolerance, y, x, at):
    """Put eight directions of a wrist centre into y and x from index `at` on.

    They are, in front and behind: theta_1; the wrist centre seen from axis 2 against the horizontal, and
    against the lower arm; and half the bend of the forearm against the lower arm, from the square roots of
    `1 - cos phi` and `1 + cos phi` as products: phi keeps the digits near 0 and pi that arccos loses. Within
    rounding of full stretch or fold it is 0 or pi exactly, so that both elbows are the same.

    Returns the flags of the angles that are undefined, in front or behind.
    """
    d1, a1, a2, forearm, b = arm[0], arm[1], arm[2], arm[4], arm[8]
    px, py, height = p_wrist[0], p_wrist[1], p_wrist[2] - d1
    outer, inner = abs(a2) + forearm, abs(abs(a2) - forearm)
    slack, rounding = REACH_TOLERANCE * outer, SINGULAR_TOLERANCE * outer
    undefined = tolerance * outer
    radius = math.sqrt(px * px + py * py)
    ahead = radius  # along the plane of the arm
    if b != 0.0:
        ahead = math.sqrt(max(radius - abs(b), 0.0) * (radius + abs(b)))
    reached = radius >= abs(b) - slack
    free = AXIS_1_FREE if radius <= undefined else 0
    for rear in range(2):
        side = 1.0 - 2.0 * rear
        if radius > undefined:
            along = side * ahead
            y[at + rear], x[at + rear] = side * py, side * px
            if b != 0.0:
                y[at + rear], x[at + rear] = along * py - b * px, along * px + b * py
        else:
            y[at + rear] = x[at + rear] = 0.0
            along = math.cos(theta_free[0]) * px + math.sin(theta_free[0]) * py
        # The arm's plane: forward and down from axis 2 (axes x and y of DH frame 1).
        forward, down = along - a1, -height
        distance = math.sqrt(forward * forward + down * down)
        bent = straight = 0.0  # the roots of 2 |a2| forearm (1 - cos phi) and 2 |a2| forearm (1 + cos phi)
        if distance < outer - rounding:
            bent = math.sqrt((outer - distance) * (outer + distance))
        if distance > inner + rounding:
            straight = math.sqrt((distance - inner) * (distance + inner))
        if not (reached and inner - slack <= distance <= outer + slack):
            straight = math.nan
        scale = np.divide(forearm if a2 > 0.0 else -forearm, straight * straight + bent * bent)
        cosine, sine = (straight - bent) * (straight + bent), 2.0 * bent * straight
        if distance > undefined:
            y[at + 2 + rear], x[at + 2 + rear] = down, forward
            y[at + 4 + rear], x[at + 4 + rear] = scale * sine, a2 + scale * cosine
        else:
            y[at + 2 + rear] = x[at + 2 + rear] = y[at + 4 + rear] = x[at + 4 + rear] = 0.0
            free |= AXIS_2_FREE
        y[at + 6 + rear], x[at + 6 + rear] = bent, straight
    return free


@compiled
def _main_angles(y, x, angle, at, row, arm, theta_free):
    """Return theta_1 to theta_3 of row `2 * rear + elbow`, from the angles of `_main_directions`."""
    rear, other_elbow = row // 2, row % 2 == 1
    bent, straight = y[at + 6 + rear], x[at + 6 + rear]
    # Each choice selects a value instead of branching, which no processor could predict.
    undefined = y[at + rear] == 0.0 and x[at + rear] == 0.0
    theta_1 = theta_free[0] if undefined else angle[at + rear]
    theta_1 = theta_1 if straight >= 0.0 else math.nan
    against_arm, phi = angle[at + 4 + rear], 2.0 * angle[at + 6 + rear]
    phi = phi - math.pi if arm[2] < 0.0 else phi  # then the link points along minus x of its frame
    side = -1.0 if other_elbow and bent > 0.0 and straight > 0.0 else 1.0
    undefined = y[at + 2 + rear] == 0.0 and x[at + 2 + rear] == 0.0
    theta_2 = theta_free[1] if undefined else angle[at + 2 + rear] - side * against_arm
    return theta_1, theta_2, side * phi - arm[5]


@compiled
def _wrist_orientation(T, theta_1, theta_23, arm):
    """Return the first two rows and u33 of U = R03^T R06, Norrlöf eq. (2.46), for `_wrist_directions`."""
    sigma = arm[6]
    c1, s1, c23, s23 = math.cos(theta_1), math.sin(theta_1), math.cos(theta_23), math.sin(theta_23)
    # The columns of R06 along x (forward) and z (axis 2) of frame 1; its y axis is down, minus the last row.
    x1, x2, x3 = c1 * T[0, 0] + s1 * T[1, 0], c1 * T[0, 1] + s1 * T[1, 1], c1 * T[0, 2] + s1 * T[1, 2]
    z1, z2, z3 = c1 * T[1, 0] - s1 * T[0, 0], c1 * T[1, 1] - s1 * T[0, 1], c1 * T[1, 2] - s1 * T[0, 2]
    u11, u12, u13 = c23 * x1 - s23 * T[2, 0], c23 * x2 - s23 * T[2, 1], c23 * x3 - s23 * T[2, 2]
    return u11, u12, u13, sigma * z1, sigma * z2, sigma * z3, sigma * (s23 * x3 + c23 * T[2, 2])


@compiled
def _wrist_directions(U, arm, theta_4_free, tolerance, directions, at):
    """Put the directions of axes 4 to 6 into columns `at` and `at + 1`: y in rows 0 to 2, x in rows 3 to 5.

    They are those of U = R36 = Rz(theta_4) Ry(kappa theta_5) Rz(theta_6), theta_5 of at least 0 first.

    Returns 0, or at the wrist singularity 1 where only theta_4 + theta_6 is determined (theta_5 = 0) and -1
    where only theta_4 - theta_6 is (theta_5 = pi).
    """
    u11, u12, u13, u21, u22, u23, u33 = U
    kappa = arm[7]
    sine = math.sqrt(u13 * u13 + u23 * u23)
    regular = sine > tolerance
    if regular:
        scale = np.divide(kappa, sine)
        c4, s4 = scale * u13, scale * u23
    else:
        c4, s4 = math.cos(theta_4_free), math.sin(theta_4_free)
        sine = kappa * (c4 * u13 + s4 * u23)
    y6, x6 = c4 * u21 - s4 * u11, c4 * u22 - s4 * u12
    for wrist in range(2):
        column, sign = at + wrist, -1.0 if regular and wrist == 1 else 1.0
        directions[0, column], directions[3, column] = (sign * s4, sign * c4) if regular else (0.0, 0.0)
        directions[1, column], directions[4, column] = sign * sine, u33
        directions[2, column], directions[5, column] = sign * y6, sign * x6
    if regular:
        return 0
    return 1 if u33 > 0.0 else -1


NOISE_TOLERANCE = 1e-8
"""Where joint angles to stay close to are given, below this an angle counts as undefined, as there an angle
that is made of noise does harm (elsewhere `twin.kinematics.spherical_wrist.SINGULAR_TOLERANCE`).

A pose of nine decimals, the coarsest that counts as rigid, leaves up to 4e-9: the rounding of the
orientation, and that of the wrist centre over the length of the arm.
"""

FREE_STEPS = 12
"""Number of values of a free angle per half turn that are tried if limits forbid a solution."""

FREE_AXES = np.array([[0, AXIS_1_FREE], [1, AXIS_2_FREE], [3, AXIS_4_FREE]])
"""DH axes whose angle may be free, and their flags."""

BLOCK = 32
"""Number of poses in a block, whose data fit into the processor's fastest cache."""


@compiled
def solve(T, arm, theta0, inverse_S, limits, theta_free, q_near, folding, tolerance, q):
    """Fill in all solutions of a batch of poses.

    Args:
        T: (N, 4, 4) flange poses, rigid.
        arm: from `twin.kinematics.inverse.arm_constants`.
        theta0: (6,) DH angles at q = 0, in [rad].
        inverse_S: (6, 6) inverse of the matrix S in theta = S q + theta0.
        limits: (2, 6) lower and upper joint limits in [rad], infinite for none.
        theta_free: (N, 6) DH angles that axes 1, 2 and 4 take where they are undefined, in [rad]; of this
            and of q_near one row (1, 6) will do for all poses.
        q_near: (N, 6) joint angles, in [rad]; results are the nearest representatives modulo 2 pi.
        folding: (p, 9) of each passive joint its row of G, its angle at q = 0 and its range, in [rad].
        tolerance: below which an angle counts as undefined, `SINGULAR_TOLERANCE` or `NOISE_TOLERANCE`.
        q: (N, 8, 6) joint angles in [rad], the result, NaN rows for none.
    """
    free_axes = np.empty(8 * min(BLOCK, len(T)), dtype=np.int64)
    for start in range(0, len(T), BLOCK):
        end = min(start + BLOCK, len(T))
        free = theta_free[start:end] if len(theta_free) > 1 else theta_free
        near = q_near[start:end] if len(q_near) > 1 else q_near
        poses, found = T[start:end], q[start:end]
        if _solve_block(
            poses, arm, theta0, inverse_S, limits, free, near, folding, tolerance, found, free_axes
        ):
            for pose in range(end - start):
                flags = free_axes[8 * pose]
                for column in range(8 * pose + 1, 8 * pose + 8):
                    flags |= free_axes[column]
                if flags != 0:
                    own = free[pose if len(free) > 1 else 0], near[pose if len(near) > 1 else 0]
                    one = poses[pose : pose + 1], found[pose], flags
                    _try_free_angles(one, arm, theta0, inverse_S, limits, own, folding, tolerance)


@compiled
def _solve_block(T, arm, theta0, inverse_S, limits, theta_free, q_near, folding, tolerance, q, free_axes):
    """Fill in the solutions of n poses, at most a block, and flag those that other free angles may improve.

    The arguments are those of `solve`. Where it returns true, free_axes (8 n,) has the flags of
    `_worth_trying`.
    """
    block = 8 * len(T)
    space = np.empty((18, block))  # one allocation, as each takes a hundredth of the time of one pose
    theta, work, near = space[:6], space[6:12], space[12:]
    any_free = all_dh_angles(T, arm, theta_free, tolerance, work, theta, free_axes)
    for joint in range(6):
        if len(q_near) == 1:
            near[joint] = q_near[0, joint]
        else:
            for column in range(block):
                near[joint, column] = q_near[column // 8, joint]
    joint_angles_of(theta, theta0, inverse_S, near, limits[0], limits[1], work)
    take_solutions(work, folding, q)
    free_rows = False
    for column in range(block if any_free else 0):
        forbidden = np.isnan(q[column // 8, column % 8, 0])
        if forbidden and free_axes[column] != 0:
            free_axes[column] = _worth_trying(free_axes[column], theta[:, column], work[:, column])
            free_rows = free_rows or free_axes[column] != 0
        else:
            free_axes[column] = 0
    return free_rows


@compiled
def _worth_trying(singular, theta, q):
    """Return the flags of free angles that may make a forbidden solution valid; none if it is out of reach.

    The wrist is singular in every second pose of practice, so that axis 4 is only tried where it is the wrist
    that is out of its range.
    """
    if np.isnan(theta[0]):
        return 0
    main, wrist = q[0] + q[1] + q[2], q[3] + q[4] + q[5]
    of_the_wrist = np.isnan(wrist) and not np.isnan(main)
    return singular if of_the_wrist else singular & (AXIS_1_FREE | AXIS_2_FREE)


@compiled
def _try_free_angles(one, arm, theta0, inverse_S, limits, own, folding, tolerance):
    """Fill in rows of one pose that a limit forbids, by other values of axis 1 or 4 where these are free.

    They are tried in steps of 15 degrees to both sides of the value by rule, nearer ones first, and for
    axis 1 at last those that bring axis 6 into the plane of the arm, where axis 5 turns least and axis 4 not
    at all or by half a turn.

    `one` is the pose (1, 4, 4); its solutions (8, 6), the result; and the flags of what is free. `own` is
    theta_free (6,) and q_near (6,) of the pose. The rest is as in `solve`.
    """
    T, q, flags = one
    free, near = np.empty((1, 6)), np.empty((1, 6))
    for joint in range(6):  # one by one: numba compiles the assignment of a row for some seconds
        near[0, joint] = own[1][joint]
    found, ignored = np.empty((1, 8, 6)), np.empty(8, dtype=np.int64)
    in_plane = math.atan2(T[0, 1, 2], T[0, 0, 2])
    tries = 2 * FREE_STEPS - 1
    for choice in range(len(FREE_AXES)):
        axis, flag = FREE_AXES[choice]
        if not flags & flag:
            continue
        for k in range(tries + 2 if axis == 0 else tries):
            for joint in range(6):
                free[0, joint] = own[0][joint]
            if k < tries:
                steps = (k // 2 + 1) * (1.0 if k % 2 == 0 else -1.0)
                free[0, axis] += steps * math.pi / FREE_STEPS
            else:
                free[0, axis] = in_plane + (k - tries) * math.pi
            _solve_block(T, arm, theta0, inverse_S, limits, free, near, folding, tolerance, found, ignored)
            for row in range(8):
                if np.isnan(q[row, 0]) and not np.isnan(found[0, row, 0]):
                    for joint in range(6):
                        q[row, joint] = found[0, row, joint]
