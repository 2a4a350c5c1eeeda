"""All solutions of many poses, compiled; where an angle is free, one that lets the rest keep its limits.

At a singularity an angle is undefined and any value of it meets the pose, but the axes behind it turn with
it, and may so be brought into their ranges or out of them.
"""

import math

import numpy as np

from twin.jit import compiled
from twin.kinematics.joint_turns import joint_angles_of, take_solutions
from twin.kinematics.spherical_wrist import AXIS_1_FREE, AXIS_2_FREE, AXIS_4_FREE, dh_angles

NOISE_TOLERANCE = 1e-8
"""Where joint angles to stay close to are given, below this an angle counts as undefined, as there an angle
that is made of noise does harm (elsewhere `twin.kinematics.spherical_wrist.SINGULAR_TOLERANCE`).

A pose of nine decimals, the coarsest that counts as rigid, leaves up to 4e-9: the rounding of the
orientation, and that of the wrist centre over the length of the arm.
"""

FREE_STEPS = 12
"""Where limits forbid a solution with an angle that is free, others are tried: so many to half a turn."""

FREE_AXES = np.array([[0, AXIS_1_FREE], [1, AXIS_2_FREE], [3, AXIS_4_FREE]])
"""Which DH angles may be free, and how that is flagged."""

BLOCK = 32
"""Poses at a time: what is known of them then stays in the processor's nearest memory."""


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
        q_near: (N, 6) joint angles whose nearest representative modulo 2 pi is wanted, in [rad].
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
    """Fill in the solutions of n poses, at most a block, and what a choice of free angles might add to them.

    The arguments are those of `solve`. Where it returns true, free_axes (8 n,) has the flags of
    `_worth_trying`.
    """
    block = 8 * len(T)
    space = np.empty((18, block))  # one piece: a piece takes a hundredth of the time of one pose
    theta, work, near = space[:6], space[6:12], space[12:]
    any_free = dh_angles(T, arm, theta_free, tolerance, work, theta, free_axes)
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
    """Return which of the free angles of a forbidden solution may change that; none where it is out of reach.

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
