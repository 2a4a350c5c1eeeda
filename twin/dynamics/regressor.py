"""Regressor of a robot's dynamics, the matrix by which joint torques are linear in the dynamic parameters.

    tau = Y(q, qd, qdd) pi

with the parameters `pi` of `twin/dynamics/parameters.py`.  A link moves with the velocity `v` of its frame's
origin and the angular velocity `w`.  Newton's and Euler's equations give the force and the moment on it.  The
torque of joint j is their power at unit speed of this joint, for which the link moves with the partial
velocities `v_j` and `w_j`.  With the acceleration `a` of the origin minus gravity, and `h = m c`,

    tau_j = m (v_j . a) + h . (v_j x wd + w x (w x v_j) + a x w_j) + w_j . I wd + (w_j x w) . I w,

all in the link's frame.  This method is independent of the recursion of `twin/multibody/recursions.py`, which
propagates forces back over the tree.  The partial velocities include closed kinematic loops,
`q_tree = G q + g0`.

Source: T. Kane, D. Levinson, "Dynamics: Theory and Applications" (1985), chapter 4; in first-moment form
in C. Atkeson, C. An, J. Hollerbach, Int. J. of Robotics Research 5 (1986).
"""

from math import cos, sin

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats
from twin.jit import compiled
from twin.multibody import recursions
from twin.robot.evaluation import WORTH_A_THREAD, copied, joint_vectors
from twin.robot.robot import Robot
from twin.threads import in_chunks


def dynamics_regressor(
    robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qd_friction: ArrayLike | None = None
) -> Floats:
    """Return the matrix `Y` by which a motion's torques are linear in the dynamic parameters, `tau = Y pi`.

    `tau` is the result of `twin.drive_inverse_dynamics`, `pi` that of `twin.dynamics.dynamic_parameters`.
    Static friction above Coulomb friction is excluded, because it is not linear in its parameters.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        qdd: (..., n) joint accelerations, in [rad/s^2].
        qd_friction: (..., n) joint velocities at which friction acts, in [rad/s]; `qd` by default.  In a
            simulation it is the velocity after the step, `qd + dt qdd`.

    Returns:
        Y (..., n, p), with ten columns per link of the tree and four per active drive.

    Raises:
        RobotError: the masses of the links are unknown.
        ValueError: a vector has another shape, or is not finite.

    Example:
        >>> import twin
        >>> robot = twin.load("two_link").mounted("wall")  # two level rods of 1 kg and 1 m
        >>> Y = twin.dynamics_regressor(robot, [0, 0], [0, 0], [1, 0])
        >>> (Y @ twin.dynamics.dynamic_parameters(robot).values).round(4).tolist()
        [22.2867, 5.7383]
    """
    robot.require_inertia()
    q, qd, qdd = joint_vectors(robot, q=q, qd=qd, qdd=qdd)
    (sliding,) = (qd,) if qd_friction is None else joint_vectors(robot, qd_friction=qd_friction)
    leading = np.broadcast_shapes(*(v.shape[:-1] for v in (q, qd, qdd, sliding)))
    q, qd, qdd, sliding = (
        np.broadcast_to(v, (*leading, robot.n)).reshape(-1, robot.n) for v in (q, qd, qdd, sliding)
    )
    tree, G, drives = robot.tree, robot.embedding, robot.active_drives
    link_columns_end = 10 * tree.n
    Y = np.empty((len(q), robot.n, link_columns_end + (0 if drives is None else 4 * robot.n)))
    revolute = np.array([kind == "revolute" for kind in tree.kinds])
    fixed = (np.array(tree.parents), revolute, *map(copied, (tree.T_parent_joint, tree.axes, G)))
    tree_motion = [copied(rows) for rows in (robot.tree_positions(q), qd @ G.T, qdd @ G.T)]
    gravity = copied(robot.gravity)
    drive_motion = [copied(rows) for rows in (qdd, sliding)]

    def work(part: slice) -> None:
        link_columns(*fixed, gravity, *(rows[part] for rows in tree_motion), Y[part])
        if drives is not None:
            matrices = copied(drives.motor_matrix), copied(drives.friction_matrix)
            drive_columns(*matrices, *(rows[part] for rows in drive_motion), Y[part, :, link_columns_end:])

    in_chunks(work, len(Y), WORTH_A_THREAD)
    return Y.reshape(*leading, robot.n, Y.shape[-1])


add, scale, dot, cross = map(compiled, (recursions.add, recursions.scale, recursions.dot, recursions.cross))


@compiled
def vector(array):
    """Return the three entries of an array as a tuple."""
    return (array[0], array[1], array[2])


@compiled
def rotated_back(axis, c, s, a):
    """Rotate the vector `a` about an axis by the angle of cosine `c` and sine `-s` (Rodrigues' formula)."""
    along = scale((1.0 - c) * dot(axis, a), axis)
    return add(add(scale(c, a), scale(-s, cross(axis, a))), along)


@compiled
def unrotate(R, a):
    """Return `R^T a`, where `R` is given by its rows."""
    return add(add(scale(a[0], R[0]), scale(a[1], R[1])), scale(a[2], R[2]))


@compiled
def fill(w_j, v_j, w, wd, a, out):
    """Fill the ten columns of one link in the row of joint j; the vectors (3,) are those of the module."""
    u = cross(w_j, w)
    of_h = add(add(cross(v_j, wd), cross(w, cross(w, v_j))), cross(a, w_j))
    out[0] = dot(v_j, a)
    out[1], out[2], out[3] = of_h
    out[4] = w_j[0] * wd[0] + u[0] * w[0]
    out[5] = w_j[1] * wd[1] + u[1] * w[1]
    out[6] = w_j[2] * wd[2] + u[2] * w[2]
    out[7] = w_j[0] * wd[1] + w_j[1] * wd[0] + u[0] * w[1] + u[1] * w[0]
    out[8] = w_j[0] * wd[2] + w_j[2] * wd[0] + u[0] * w[2] + u[2] * w[0]
    out[9] = w_j[1] * wd[2] + w_j[2] * wd[1] + u[1] * w[2] + u[2] * w[1]


@compiled
def link_columns(parents, revolute, T_parent_joint, axes, G, gravity, q, qd, qdd, Y):
    """Fill the first `10 n_tree` columns of Y (N, n, p), which belong to the links.

    `parents`, `revolute`, `T_parent_joint`, `axes` and the embedding G (n_tree, n) describe the tree;
    `q, qd, qdd` (N, n_tree) describe its motion; `gravity` (3,) is in the base frame.
    """
    n_tree, n = G.shape
    w, wd, a = np.zeros((n_tree, 3)), np.zeros((n_tree, 3)), np.zeros((n_tree, 3))
    w_part, v_part = np.zeros((n_tree, n, 3)), np.zeros((n_tree, n, 3))
    moves = np.zeros((n_tree, n), dtype=np.bool_)  # whether joint j of the pendant moves link i
    for i in range(n_tree):
        for j in range(n):
            moves[i, j] = G[i, j] != 0.0 or (parents[i] >= 0 and moves[parents[i], j])
    still, lifted = (0.0, 0.0, 0.0), scale(-1.0, vector(gravity))

    for k in range(len(q)):
        for i in range(n_tree):
            up, T, axis = parents[i], T_parent_joint[i], vector(axes[i])
            R, p = (vector(T[0]), vector(T[1]), vector(T[2])), (T[0, 3], T[1, 3], T[2, 3])
            if revolute[i]:
                c, s = cos(q[k, i]), sin(q[k, i])
                R = (
                    rotated_back(axis, c, s, R[0]),
                    rotated_back(axis, c, s, R[1]),
                    rotated_back(axis, c, s, R[2]),
                )
            else:
                slide = scale(q[k, i], axis)
                p = add(p, (dot(R[0], slide), dot(R[1], slide), dot(R[2], slide)))

            w_i, wd_i, a_i = still, still, unrotate(R, lifted)
            if up >= 0:
                w_up, wd_up = vector(w[up]), vector(wd[up])
                w_i, wd_i = unrotate(R, w_up), unrotate(R, wd_up)
                a_i = unrotate(R, add(vector(a[up]), add(cross(wd_up, p), cross(w_up, cross(w_up, p)))))
            speed = scale(qd[k, i], axis)
            if revolute[i]:
                wd_i = add(wd_i, add(scale(qdd[k, i], axis), cross(w_i, speed)))
                w_i = add(w_i, speed)
            else:
                a_i = add(a_i, add(scale(qdd[k, i], axis), scale(2.0, cross(w_i, speed))))
            for x in range(3):
                w[i, x], wd[i, x], a[i, x] = w_i[x], wd_i[x], a_i[x]

            for j in range(n):
                if not moves[i, j]:
                    Y[k, j, 10 * i : 10 * i + 10] = 0.0
                    continue
                w_j, v_j, share = still, still, scale(G[i, j], axis)
                if up >= 0:
                    w_j = vector(w_part[up, j])
                    v_j = unrotate(R, add(vector(v_part[up, j]), cross(w_j, p)))
                    w_j = unrotate(R, w_j)
                if revolute[i]:
                    w_j = add(w_j, share)
                else:
                    v_j = add(v_j, share)
                for x in range(3):
                    w_part[i, j, x], v_part[i, j, x] = w_j[x], v_j[x]
                fill(w_j, v_j, w_i, wd_i, a_i, Y[k, j, 10 * i : 10 * i + 10])


@compiled
def drive_columns(N, R, qdd, qd_friction, Y):
    """Fill the columns of the drives, Y (N, n, 4 n).

    N (n, n) maps joint speeds to the speeds of the rotors, R (n, n) to those of the shafts with friction.
    """
    n = len(N)
    for k in range(len(Y)):
        for i in range(n):
            turning, sliding = 0.0, 0.0
            for j in range(n):
                turning += N[i, j] * qdd[k, j]
                sliding += R[i, j] * qd_friction[k, j]
            for j in range(n):
                Y[k, j, 4 * i] = N[i, j] * turning
                Y[k, j, 4 * i + 1] = R[i, j] * sliding
                Y[k, j, 4 * i + 2] = R[i, j] * np.sign(sliding)
                Y[k, j, 4 * i + 3] = R[i, j]
