"""Dynamic parameters, in which the dynamics of a robot are linear, and the regressor, the matrix of that.

    tau = Y(q, qd, qdd) pi

The parameters `pi` are those of links, rotors and friction.  Every link of the tree has ten in the order of
`Tree.inertias`: its mass, its first moments, and its inertia about the origin of its frame, all in that
frame.  Those of the link with the flange include the payload.  Each active drive (`Robot.with_drives`) has
four parameters.  They are the rotor's inertia at the motor, viscous and Coulomb friction of the shaft with
friction, in joint units, and an offset, which is a constant torque on that shaft.

Static friction above Coulomb friction is not linear in its parameters.  It is replaced by Coulomb friction,
which is correct above some Stribeck speeds.

Source of the parameters: W. Khalil, E. Dombre, "Modeling, Identification and Control of Robots" (2002),
sections 9.3 and 12.3.

In the regressor Y a link moves with the velocity `v` of its frame's origin and the angular velocity `w`.
Newton's and Euler's equations give the force and the moment on it.  The torque of joint j is their power at
unit speed of this joint, for which the link moves with the partial velocities `v_j` and `w_j`.  With the
acceleration `a` of the origin minus gravity, and `h = m c`,

    tau_j = m (v_j . a) + h . (v_j x wd + w x (w x v_j) + a x w_j) + w_j . I wd + (w_j x w) . I w,

all in the link's frame.  This method is independent of the recursion of `multibody/recursions.py`, which
propagates forces back over the tree.  The partial velocities include closed kinematic loops,
`q_tree = G q + g0`.

Source of the method: T. Kane, D. Levinson, "Dynamics: Theory and Applications" (1985), chapter 4; in
first-moment form in C. Atkeson, C. An, J. Hollerbach, Int. J. of Robotics Research 5 (1986).
"""

from __future__ import annotations

from dataclasses import replace
from math import cos, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.jit import compiled
from twin.base.threads import in_chunks
from twin.physics.multibody import recursions
from twin.physics.multibody.tree import frozen
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.drives.friction import AT_REST
from twin.physics.robot.evaluation import WORTH_A_THREAD, copied, joint_vectors
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit

LINK = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""Names of the parameters of a link, in the order of `Tree.inertias`."""

DRIVE = ("rotor inertia", "viscous", "Coulomb", "offset")
"""Names of the parameters of a drive."""

LINK_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
DRIVE_SYMBOLS = ("J", "Fv", "Fc", "F0")


class DynamicParameters(NamedTuple):
    """Dynamic parameters of a robot, with names, symbols and units.

    Attributes:
        values: (p,) vector `pi`.
        names: names such as `link_3 mx` or `drive 2 rotor inertia`.
        symbols: short symbols such as `mx3` or `J2`.
        units: units of the parameters.
    """

    values: Floats
    names: tuple[str, ...]
    symbols: tuple[str, ...]
    units: tuple[str, ...]


def dynamic_parameters(robot: Robot) -> DynamicParameters:
    """Return the parameters `pi` of a robot, in the order of the columns of `twin.dynamics_regressor`.

    Args:
        robot: the robot, payload included, with the drives that act (`Robot.with_drives`).

    Returns:
        Ten parameters per link of the tree, then four per drive unless the drives are ideal.

    Raises:
        RobotError: the masses of the links are unknown.

    Example:
        >>> import twin
        >>> parameters = twin.dynamics.dynamic_parameters(twin.load("two_link"))
        >>> parameters.symbols[10:14], parameters.values[10:14].round(4).tolist()
        (('m2', 'mx2', 'my2', 'mz2'), [1.0, 0.5, 0.0, 0.0])
    """
    drives = robot.active_drives
    values = [robot.inertias.ravel()]
    names = [f"{link} {name}" for link in robot.tree.links for name in LINK]
    symbols = [name + _suffix(link) for link in robot.tree.links for name in LINK]
    units = list(LINK_UNITS) * robot.tree.n
    if drives is not None:
        columns = (drives.rotor_inertia, drives.viscous, drives.coulomb, drives.offset)
        values.append(np.stack(columns, axis=1).ravel())
        names += [f"drive {i + 1} {name}" for i in range(robot.n) for name in DRIVE]
        symbols += [f"{symbol}{i + 1}" for i in range(robot.n) for symbol in DRIVE_SYMBOLS]
        for kind in (robot.tree.kinds[joint] for joint in robot.driven):
            force, speed = joint_unit(kind, "torque"), joint_unit(kind)
            units += ["kg m^2", f"{force} s/{speed}", force, force]
    return DynamicParameters(np.concatenate(values), tuple(names), tuple(symbols), tuple(units))


def with_dynamic_parameters(robot: Robot, pi: ArrayLike) -> Robot:
    """Return the robot with other dynamic parameters, the inverse of `dynamic_parameters`.

    The robot retains its payload, which is subtracted from the parameters of the link with the flange.  The
    masses and moments are not checked for physical consistency, which the prediction of torques does not
    require.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        pi: (p,) parameters in the order of `dynamic_parameters(robot).values`; ideal drives remain unchanged.

    Raises:
        ValueError: the number of parameters is wrong, one is not finite, or a friction or a rotor inertia is
            negative.

    Example:
        >>> import twin
        >>> robot = twin.load("two_link").mounted("wall")  # two level rods of 1 kg and 1 m
        >>> pi = twin.dynamics.dynamic_parameters(robot).values
        >>> twice = twin.dynamics.with_dynamic_parameters(robot, 2 * pi)
        >>> twin.gravity_torque(twice, [0, 0]).round(4).tolist()
        [39.24, 9.81]
    """
    pi = real_array(pi, "pi")
    known = dynamic_parameters(robot)
    if pi.shape != known.values.shape:
        raise ValueError(f"expected pi of shape {known.values.shape}, got {pi.shape}")
    if not np.all(np.isfinite(pi)):
        first = int(np.argmin(np.isfinite(pi)))
        raise ValueError(f"expected pi to be finite, got {pi[first]} of {known.names[first]}")
    link_values, drive_values = np.split(pi, [10 * robot.tree.n])
    inertias, bare = link_values.reshape(-1, 10), robot.bare
    if bare is not None:
        payload = robot.tree.inertias - bare.inertias
        bare = replace(bare, inertias=frozen(inertias - payload))
    tree = replace(robot.tree, inertias=frozen(inertias))
    drives = robot.drives
    if robot.active_drives is not None:
        drives = _with_drive_values(robot.active_drives, drive_values.reshape(-1, len(DRIVE)))
    return replace(robot, tree=tree, bare=bare, drives=drives)


def _suffix(link: str) -> str:
    """Return the suffix of a link's symbols: `3` for `link_3`, `_rod` for `link_rod`."""
    short = link.removeprefix("link_")
    return short if short.isdigit() else f"_{short}"


def _with_drive_values(drives: Drives, values: Floats) -> Drives:
    """Return the drives with other parameters (n, 4); static minus Coulomb friction remains unchanged."""
    rotor_inertia, viscous, coulomb, offset = values.T
    static = coulomb + (drives.static - drives.coulomb)
    return replace(
        drives, rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, static=static, offset=offset
    )


def dynamics_regressor(
    robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qd_friction: ArrayLike | None = None
) -> Floats:
    """Return the matrix `Y` by which a motion's torques are linear in the dynamic parameters, `tau = Y pi`.

    `tau` is the result of `twin.inverse_dynamics`, `pi` that of `twin.dynamics.dynamic_parameters`.
    Coulomb friction of a shaft at rest opposes its acceleration there and here.
    Static friction above Coulomb friction is excluded, because it is not linear in its parameters.  Springs,
    balancers and further friction of drives are excluded, too: `twin.identification.torque_model` has them.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        qdd: (..., n) joint accelerations, in [rad/s^2].
        qd_friction: (..., n) joint velocities at which friction acts, in [rad/s]; `qd` by default.  In a
            simulation it is the velocity after the step, `qd + dt qdd`, with which a shaft comes to rest.

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
    G, drives = robot.embedding, robot.active_drives
    link_columns_end = 10 * robot.tree.n
    Y = np.empty((len(q), robot.n, link_columns_end + (0 if drives is None else 4 * robot.n)))
    tree, gravity = TreeNumbers.of(robot), copied(robot.gravity)
    speed = copied(qd @ G.T)
    tree_motion = [copied(robot.tree_positions(q)), speed, speed, copied(qdd @ G.T)]
    drive_motion = [copied(rows) for rows in (qdd, sliding)]

    def work(part: slice) -> None:
        link_columns(tree, gravity, *(rows[part] for rows in tree_motion), Y[part])
        if drives is not None:
            matrices = copied(drives.motor_matrix), copied(drives.friction_matrix)
            motion = (rows[part] for rows in drive_motion)
            drive_columns(*matrices, *motion, 0.0, qd_friction is None, Y[part, :, link_columns_end:])

    in_chunks(work, len(Y), WORTH_A_THREAD)
    return Y.reshape(*leading, robot.n, Y.shape[-1])


class TreeNumbers(NamedTuple):
    """Tree of a robot for compiled code: n_tree joints, of which n are driven.

    Attributes:
        parents: (n_tree,) indices of the links before, -1 for the base.
        revolute: (n_tree,) whether a joint is revolute.
        T_parent_joint: (n_tree, 4, 4) frames of the joints at zero.
        axes: (n_tree, 3) axes of the joints.
        G, g0: (n_tree, n) and (n_tree,), positions of the tree's joints `G q + g0`.
    """

    parents: np.ndarray
    revolute: np.ndarray
    T_parent_joint: np.ndarray
    axes: np.ndarray
    G: np.ndarray
    g0: np.ndarray

    @classmethod
    def of(cls, robot: Robot) -> TreeNumbers:
        """Return the tree of a robot."""
        tree = robot.tree
        parents = np.array(tree.parents, dtype=np.int64)
        revolute = np.array([kind == "revolute" for kind in tree.kinds])
        arrays = (tree.T_parent_joint, tree.axes, robot.embedding, robot.embedding_offset)
        return cls(parents, revolute, *map(copied, arrays))


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
def mean(a, b):
    """Return the mean of two vectors; the mean of equal ones is exact."""
    return scale(0.5, add(a, b))


@compiled
def fill(w_j, v_j, w, w_v, wd, a, out):
    """Fill the ten columns of one link in the row of joint j; the vectors (3,) are those of the module.

    The angular velocities w and w_v belong to the speeds qd and v of `link_columns`.
    """
    u, u_v = cross(w_j, w), cross(w_j, w_v)
    turning = mean(cross(w, cross(w_v, v_j)), cross(w_v, cross(w, v_j)))
    of_h = add(add(cross(v_j, wd), turning), cross(a, w_j))
    out[0] = dot(v_j, a)
    out[1], out[2], out[3] = of_h
    for row in range(3):
        out[4 + row] = w_j[row] * wd[row] + 0.5 * (u[row] * w_v[row] + u_v[row] * w[row])
    out[7] = product(w_j, wd, u, w, u_v, w_v, 0, 1)
    out[8] = product(w_j, wd, u, w, u_v, w_v, 0, 2)
    out[9] = product(w_j, wd, u, w, u_v, w_v, 1, 2)


@compiled
def product(w_j, wd, u, w, u_v, w_v, x, y):
    """Return the entry of a product of inertia about the axes x and y; the vectors are those of `fill`."""
    spin = u[x] * w_v[y] + u[y] * w_v[x] + u_v[x] * w[y] + u_v[y] * w[x]
    return w_j[x] * wd[y] + w_j[y] * wd[x] + 0.5 * spin


@compiled
def link_columns(tree, gravity, q, qd, v, qdd, Y):
    """Fill the first `10 n_tree` columns of Y (N, n, p), which belong to the links.

    The torques are `M qdd + C(q, qd) v + g`, where C consists of Christoffel symbols.  It is linear in both
    speeds and symmetric, so every product of two speeds is the mean of both orders.

    Args:
        tree: a `TreeNumbers`.
        gravity: (3,) acceleration of gravity, base frame, in [m/s^2].
        q: (N, n_tree) positions of the tree's joints.
        qd: (N, n_tree) speeds.
        v: (N, n_tree) other speeds.
        qdd: (N, n_tree) accelerations.
        Y: (N, n, p) output.
    """
    parents, revolute, T_parent_joint, axes, G = (
        tree.parents,
        tree.revolute,
        tree.T_parent_joint,
        tree.axes,
        tree.G,
    )
    n_tree, n = G.shape
    w, wd, a = np.zeros((n_tree, 3)), np.zeros((n_tree, 3)), np.zeros((n_tree, 3))
    w_v = np.zeros((n_tree, 3))
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

            w_i, u_i, wd_i, a_i = still, still, still, unrotate(R, lifted)
            if up >= 0:
                w_up, u_up, wd_up = vector(w[up]), vector(w_v[up]), vector(wd[up])
                w_i, u_i, wd_i = unrotate(R, w_up), unrotate(R, u_up), unrotate(R, wd_up)
                inward = mean(cross(w_up, cross(u_up, p)), cross(u_up, cross(w_up, p)))
                a_i = unrotate(R, add(vector(a[up]), add(cross(wd_up, p), inward)))
            speed, speed_v = scale(qd[k, i], axis), scale(v[k, i], axis)
            coriolis = mean(cross(w_i, speed_v), cross(u_i, speed))
            if revolute[i]:
                wd_i = add(wd_i, add(scale(qdd[k, i], axis), coriolis))
                w_i, u_i = add(w_i, speed), add(u_i, speed_v)
            else:
                a_i = add(a_i, add(scale(qdd[k, i], axis), scale(2.0, coriolis)))
            for x in range(3):
                w[i, x], w_v[i, x], wd[i, x], a[i, x] = w_i[x], u_i[x], wd_i[x], a_i[x]

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
                fill(w_j, v_j, w_i, u_i, wd_i, a_i, Y[k, j, 10 * i : 10 * i + 10])


@compiled
def drive_columns(N, R, qdd, qd_friction, smooth, starts, Y):
    """Fill the columns of the drives, Y (N, n, 4 n).

    N (n, n) maps joint speeds to the speeds of the rotors, R (n, n) to those of the shafts with friction.
    Below the speed `smooth`, in [rad/s], Coulomb friction is proportional to the speed.  If `starts` is true,
    a shaft at rest rubs against its acceleration.
    """
    n = len(N)
    for k in range(len(Y)):
        for i in range(n):
            turning, sliding, rate = 0.0, 0.0, 0.0
            for j in range(n):
                turning += N[i, j] * qdd[k, j]
                sliding += R[i, j] * qd_friction[k, j]
                rate += R[i, j] * qdd[k, j]
            direction = np.sign(sliding)
            if starts and abs(sliding) <= AT_REST:
                direction = np.sign(rate) if abs(rate) > AT_REST else 0.0
            if abs(sliding) < smooth:
                direction = sliding / smooth
            for j in range(n):
                Y[k, j, 4 * i] = N[i, j] * turning
                Y[k, j, 4 * i + 1] = R[i, j] * sliding
                Y[k, j, 4 * i + 2] = R[i, j] * direction
                Y[k, j, 4 * i + 3] = R[i, j]


@compiled
def regressor(tree, drives, gravity, q, qd, v, a, smooth, Y):
    """Fill the regressor of one sample for two speeds, `Y pi = M a + C(q, qd) v + g` and the drives' torque.

    C consists of Christoffel symbols, so that `dM/dt - 2 C` is skew-symmetric.  The drives' columns are those
    of `dynamics_regressor` at the acceleration a and the speed v, with rotors in joint units.

    Args:
        tree: a `TreeNumbers`.
        drives: a `twin.robot.drives.drive_step.DriveModel`.
        gravity: (3,) acceleration of gravity, base frame, in [m/s^2].
        q: (n,) positions, in [rad].
        qd: (n,) speeds, in [rad/s].
        v: (n,) other speeds, in [rad/s].
        a: (n,) accelerations, in [rad/s^2].
        smooth: speed below which Coulomb friction is proportional to the speed, in [rad/s].
        Y: (n, 10 n_tree + 4 n) output.

    Example:
        >>> robot, Y = twin.load("two_link"), np.zeros((2, 28))
        >>> model = twin.control.control_law.Model.of(robot, 1e-3)
        >>> motion = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 5.0], [0.0, 0.0]])  # q, qd, v, a
        >>> twin.dynamics.regressor.regressor(model.tree, model.drives, model.gravity, *motion, 0.0, Y)
        >>> (Y[:, :20] @ robot.inertias.ravel() - twin.gravity_torque(robot, motion[0])).round(4).tolist()
        [-10.0023, 2.7279]
    """
    G, n_tree, n = tree.G, len(tree.G), len(q)
    motion = np.zeros((4, 1, n_tree))
    for i in range(n_tree):
        motion[0, 0, i] = tree.g0[i]
        for j in range(n):
            motion[0, 0, i] += G[i, j] * q[j]
            motion[1, 0, i] += G[i, j] * qd[j]
            motion[2, 0, i] += G[i, j] * v[j]
            motion[3, 0, i] += G[i, j] * a[j]
    columns, end = Y.reshape((1, *Y.shape)), 10 * n_tree
    link_columns(tree, gravity, motion[0], motion[1], motion[2], motion[3], columns)
    shafts = drives.shafts if len(drives.shafts) > 0 else np.eye(n)
    motors, speeds = a.reshape((1, n)), v.reshape((1, n))
    drive_columns(np.eye(n), shafts, motors, speeds, smooth, False, columns[:, :, end:])
