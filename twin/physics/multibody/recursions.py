"""Recursions over a robot's tree: Newton-Euler, composite bodies, forward kinematics, Jacobians.

They work with scalars of any type: floats, or the symbolic scalars of `multibody/trace.py`, from which
`multibody/kernels.py` generates the compiled kernels.  3-vectors are tuples, rotations are tuples of
rows.  Link `i` is the body that joint `i` moves; its frame lies at that joint.  Parent `-1` is the base.

Source: Featherstone 2008, section 5.3, in first-moment form (`h = m c`, inertia about the link's origin),
which is linear in the inertial parameters; Aliaga 2019, section 2.2.2.3, with (2.21), (2.23) and (2.25)
corrected.

The mass matrix follows from the composite rigid body algorithm, and the joint accelerations from its
factorization.  A body is given by `m`, `h = m c` and its inertia about the origin of its frame.

Source: Featherstone 2008, sections 6.2 and 6.5; the factorization `L^T D L` needs no square roots.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from twin.base.errors import RobotError
from twin.physics.multibody.trace import name
from twin.physics.multibody.tree import Loop, Tree

Vector = tuple[Any, Any, Any]
Rotation = tuple[Vector, Vector, Vector]

ZERO: Vector = (0.0, 0.0, 0.0)
UNTURNED: Rotation = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def add(a: Vector, b: Vector) -> Vector:
    """Return `a + b`."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def scale(s: Any, a: Vector) -> Vector:
    """Return `s a`."""
    return (s * a[0], s * a[1], s * a[2])


def dot(a: Vector, b: Vector) -> Any:
    """Return `a . b`."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Return `a x b`."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotate(R: Rotation, a: Vector) -> Vector:
    """Return `R a`."""
    return (dot(R[0], a), dot(R[1], a), dot(R[2], a))


def transpose(R: Rotation) -> Rotation:
    """Return the inverse of a rotation."""
    return ((R[0][0], R[1][0], R[2][0]), (R[0][1], R[1][1], R[2][1]), (R[0][2], R[1][2], R[2][2]))


def compose(A: Rotation, B: Rotation) -> Rotation:
    """Return `A B`."""
    columns = transpose(B)
    return (rotate(columns, A[0]), rotate(columns, A[1]), rotate(columns, A[2]))


def symmetric(I: Any, a: Vector) -> Vector:  # noqa: E741  (the field's letter)
    """Return `I a` for a tensor given as xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = I
    return dot((xx, xy, xz), a), dot((xy, yy, yz), a), dot((xz, yz, zz), a)


class Placement(NamedTuple):
    """Poses of link frames in their parents' frames, `a_parent = R a_link + p`, and axes in link frames."""

    R: list[Rotation]
    p: list[Vector]
    axis: list[Vector]


def placements(tree: Tree, q: list[Any], functions: Any) -> Placement:
    """Return the pose of every link in its parent's frame.

    Args:
        tree: tree of the robot's moving joints.
        q: tree joint positions, one scalar per joint.
        functions: object with `sin` and `cos` for these scalars: a `Trace`, or `math` for floats.
    """
    R: list[Rotation] = []
    p: list[Vector] = []
    axes: list[Vector] = []
    for i in range(tree.n):
        T = tree.T_parent_joint[i].tolist()
        R0: Rotation = (tuple(T[0][:3]), tuple(T[1][:3]), tuple(T[2][:3]))
        p0: Vector = (T[0][3], T[1][3], T[2][3])
        axis: Vector = tuple(tree.axes[i].tolist())
        if tree.kinds[i] == "revolute":
            c, s = functions.cos(q[i]), functions.sin(q[i])
            name(f"q{i + 1}", (c, s), ("cos", "sin"))
            R.append(compose(R0, rotation_about(axis, c, s)))
            p.append(p0)
        else:
            R.append(R0)
            p.append(add(p0, scale(q[i], rotate(R0, axis))))
        axes.append(axis)
    return Placement(R, p, axes)


def rotation_about(axis: Vector, c: Any, s: Any) -> Rotation:
    """Return the rotation about a constant unit axis by the angle of cosine `c` and sine `s` (Rodrigues)."""
    x, y, z = axis

    def entry(a: float, b: float, diagonal: float, skew: float) -> Any:
        return a * b + (diagonal - a * b) * c + skew * s

    return (
        (entry(x, x, 1.0, 0.0), entry(x, y, 0.0, -z), entry(x, z, 0.0, y)),
        (entry(y, x, 0.0, z), entry(y, y, 1.0, 0.0), entry(y, z, 0.0, -x)),
        (entry(z, x, 0.0, -y), entry(z, y, 0.0, x), entry(z, z, 1.0, 0.0)),
    )


class Wrenches(NamedTuple):
    """Force and moment on every link from its parent, about the link's origin and in its axes."""

    f: list[Vector]
    m: list[Vector]


def newton_euler(tree: Tree, at: Placement, qd: Any, qdd: Any, inertias: Any, gravity: Vector) -> list[Any]:
    """Return the force or torque along every joint of a tree (inverse dynamics); see `wrenches`."""
    f, m = wrenches(tree, at, qd, qdd, inertias, gravity)
    return [dot(at.axis[i], m[i] if tree.kinds[i] == "revolute" else f[i]) for i in range(tree.n)]


def wrenches(tree: Tree, at: Placement, qd: Any, qdd: Any, inertias: Any, gravity: Vector) -> Wrenches:
    """Return the forces and moments that move the links of a tree.

    Args:
        tree: tree of the robot's moving joints.
        at: placement of the links.
        qd: joint velocities, one scalar per joint.
        qdd: joint accelerations.
        inertias: per link `m, m c (3), I (xx, yy, zz, xy, xz, yz)` about the link's origin, in its frame.
        gravity: acceleration of gravity, base frame.
    """
    n = tree.n
    w: list[Vector] = []  # angular velocity of each link, in the link's frame
    f: list[Vector] = []  # force on each link from its parent, at the origin and in the axes of its frame
    m: list[Vector] = []  # moment on each link, likewise
    B: list[Rotation] = []  # [wd]x + [w]x[w]x: the acceleration field of the rotating link
    a: list[Vector] = []  # acceleration of each link's origin minus gravity
    wd: list[Vector] = []  # angular acceleration

    for i in range(n):
        parent, axis = tree.parents[i], at.axis[i]
        if parent < 0:
            w_up, wd_up, a_up = ZERO, ZERO, scale(-1.0, gravity)
        else:
            w_up, wd_up = w[parent], wd[parent]
            a_up = add(a[parent], rotate(B[parent], at.p[i]))
        down = transpose(at.R[i])
        w_i, wd_i, a_i = rotate(down, w_up), rotate(down, wd_up), rotate(down, a_up)
        if tree.kinds[i] == "revolute":
            wd_i = add(wd_i, add(scale(qdd[i], axis), cross(w_i, scale(qd[i], axis))))
            w_i = add(w_i, scale(qd[i], axis))
        else:
            a_i = add(a_i, add(scale(qdd[i], axis), scale(2.0, cross(w_i, scale(qd[i], axis)))))
        name(f"w{i + 1}", w_i)
        name(f"wd{i + 1}", wd_i)
        name(f"a{i + 1}", a_i)

        mass, h, I = inertias[i][0], tuple(inertias[i][1:4]), inertias[i][4:10]  # noqa: E741
        x, y, z = w_i
        B_i = (
            (-(y * y + z * z), x * y - wd_i[2], x * z + wd_i[1]),
            (x * y + wd_i[2], -(x * x + z * z), y * z - wd_i[0]),
            (x * z - wd_i[1], y * z + wd_i[0], -(x * x + y * y)),
        )
        f_i = add(scale(mass, a_i), rotate(B_i, h))
        m_i = add(_euler_moment(I, wd_i, w_i, B_i), cross(h, a_i))
        for quantity, item in zip((w, wd, a, B, f, m), (w_i, wd_i, a_i, B_i, f_i, m_i), strict=True):
            quantity.append(item)

    for i in reversed(range(n)):
        name(f"f{i + 1}", f[i])
        name(f"m{i + 1}", m[i])
        parent = tree.parents[i]
        if parent >= 0:
            force = rotate(at.R[i], f[i])
            f[parent] = add(f[parent], force)
            m[parent] = add(m[parent], add(rotate(at.R[i], m[i]), cross(at.p[i], force)))
    return Wrenches(f, m)


def base_wrench(tree: Tree, at: Placement, on_links: Wrenches) -> tuple[Vector, Vector]:
    """Return force and moment of the base on its children, about the origin and in the axes of the base."""
    f, m = ZERO, ZERO
    for i in range(tree.n):
        if tree.parents[i] < 0:
            force = rotate(at.R[i], on_links.f[i])
            f = add(f, force)
            m = add(m, add(rotate(at.R[i], on_links.m[i]), cross(at.p[i], force)))
    return f, m


def _euler_moment(I: Any, wd: Vector, w: Vector, B: Rotation) -> Vector:  # noqa: E741
    """Return Euler's moment `I wd + w x I w`, with products of speeds from `B = [wd]x + [w]x[w]x`."""
    xx, yy, zz, xy, xz, yz = I
    x, y, z = w
    return (
        xx * wd[0] + (zz - yy) * (y * z) - xy * B[2][0] + xz * B[1][0] + yz * (y * y - z * z),
        yy * wd[1] + (xx - zz) * (x * z) - yz * B[0][1] + xy * B[2][1] + xz * (z * z - x * x),
        zz * wd[2] + (yy - xx) * (x * y) - xz * B[1][2] + yz * B[0][2] + xy * (x * x - y * y),
    )


class WorldFrames(NamedTuple):
    """Rotations, origins and joint axes of all link frames, in the base frame."""

    R: list[Rotation]
    o: list[Vector]
    z: list[Vector]


def world_frames(tree: Tree, at: Placement) -> WorldFrames:
    """Return the poses of all link frames in the base frame (forward kinematics)."""
    R: list[Rotation] = []
    o: list[Vector] = []
    for i in range(tree.n):
        parent = tree.parents[i]
        R.append(at.R[i] if parent < 0 else compose(R[parent], at.R[i]))
        o.append(at.p[i] if parent < 0 else add(o[parent], rotate(R[parent], at.p[i])))
        for row, letter in zip(R[i], "xyz", strict=True):
            name(f"R{i + 1}{letter}", row)
        name(f"o{i + 1}", o[i])
    return WorldFrames(R, o, [rotate(R[i], at.axis[i]) for i in range(tree.n)])


def shared_point(loop: Loop, frames: WorldFrames, side: int) -> Vector:
    """Return the position of a loop's shared point, computed from the link of one side, in the base frame."""
    link = loop.joints[side]
    return add(frames.o[link], rotate(frames.R[link], tuple(loop.points[side].tolist())))


def loop_gap(loop: Loop, frames: WorldFrames) -> Vector:
    """Return the gap of a loop: its shared point computed from the first link minus that from the second."""
    return add(shared_point(loop, frames, 0), scale(-1.0, shared_point(loop, frames, 1)))


def tool_frame(tree: Tree, frames: WorldFrames, T_flange_tool: Any) -> tuple[Rotation, Vector]:
    """Return the rotation and the origin of the tool in the base frame."""
    link = tree.flange_joint
    R, p = (frames.R[link], frames.o[link]) if link >= 0 else (UNTURNED, ZERO)
    for T in (tree.T_joint_flange.tolist(), T_flange_tool):
        p = add(p, rotate(R, (T[0][3], T[1][3], T[2][3])))
        R = compose(R, (tuple(T[0][:3]), tuple(T[1][:3]), tuple(T[2][:3])))
    return R, p


def jacobian(tree: Tree, frames: WorldFrames, p: Vector) -> list[tuple[Vector, Vector]]:
    """Return the columns `(v, omega)` of the geometric Jacobian of the point `p` of the flange, base frame.

    They are zero for joints that do not move the flange.

    Source: Norrlöf 1999, eq. (2.51)-(2.65).
    """
    carriers = tree.carriers(tree.flange_joint)
    columns = []
    for i in range(tree.n):
        if i not in carriers:
            columns.append((ZERO, ZERO))
        elif tree.kinds[i] == "revolute":
            arm = add(p, scale(-1.0, frames.o[i]))
            columns.append((cross(frames.z[i], arm), frames.z[i]))
        else:
            columns.append((frames.z[i], ZERO))
    return columns


def jacobian_rate(tree: Tree, frames: WorldFrames, p: Vector, qd: Any) -> list[tuple[Vector, Vector]]:
    """Return the time derivative of `jacobian` at the joint velocities `qd`."""
    w: list[Vector] = []  # angular velocity of each link, base frame
    v: list[Vector] = []  # velocity of each link's origin
    for i in range(tree.n):
        parent = tree.parents[i]
        w_up, v_up, o_up = (ZERO, ZERO, ZERO) if parent < 0 else (w[parent], v[parent], frames.o[parent])
        v_i = add(v_up, cross(w_up, add(frames.o[i], scale(-1.0, o_up))))
        revolute = tree.kinds[i] == "revolute"
        w.append(add(w_up, scale(qd[i], frames.z[i])) if revolute else w_up)
        v.append(v_i if revolute else add(v_i, scale(qd[i], frames.z[i])))
    link = tree.flange_joint
    v_p = ZERO if link < 0 else add(v[link], cross(w[link], add(p, scale(-1.0, frames.o[link]))))

    carriers = tree.carriers(link)
    columns = []
    for i in range(tree.n):
        z_rate = cross(w[i], frames.z[i])
        if i not in carriers:
            columns.append((ZERO, ZERO))
        elif tree.kinds[i] == "revolute":
            arm, arm_rate = add(p, scale(-1.0, frames.o[i])), add(v_p, scale(-1.0, v[i]))
            columns.append((add(cross(z_rate, arm), cross(frames.z[i], arm_rate)), z_rate))
        else:
            columns.append((z_rate, ZERO))
    return columns


def potential_energy(tree: Tree, frames: WorldFrames, inertias: Any, gravity: Vector) -> Any:
    """Return `-g . sum(m r)` over all links, which is zero for a mass at the base's origin."""
    moment = ZERO
    for i in range(tree.n):
        mass, h = inertias[i][0], tuple(inertias[i][1:4])
        moment = add(moment, add(scale(mass, frames.o[i]), rotate(frames.R[i], h)))
    return dot(scale(-1.0, gravity), moment)


def mass_matrix(tree: Tree, at: Placement, inertias: Any) -> list[list[Any]]:
    """Return the joint-space inertia matrix of a tree.

    Args:
        tree: tree of the robot's moving joints.
        at: placement of the links.
        inertias: per link `m, m c (3), I (xx, yy, zz, xy, xz, yz)` about the link's origin, in its frame.
    """
    n = tree.n
    masses = [row[0] for row in inertias]  # of each link with all links beyond it
    moments: list[Vector] = [tuple(row[1:4]) for row in inertias]
    tensors: list[Any] = [tuple(row[4:10]) for row in inertias]
    M: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for i in reversed(range(n)):
        if tree.kinds[i] == "revolute":  # force, and moment about the origin, for a unit acceleration
            force, moment = cross(at.axis[i], moments[i]), symmetric(tensors[i], at.axis[i])
        else:
            force, moment = scale(masses[i], at.axis[i]), cross(moments[i], at.axis[i])
        for j in reversed(tree.carriers(i)):
            M[i][j] = M[j][i] = dot(at.axis[j], moment if tree.kinds[j] == "revolute" else force)
            force = rotate(at.R[j], force)
            moment = add(rotate(at.R[j], moment), cross(at.p[j], force))
        parent = tree.parents[i]
        if parent >= 0:
            h, tensor = _moved(masses[i], moments[i], tensors[i], at.R[i], at.p[i])
            masses[parent] = masses[parent] + masses[i]
            moments[parent] = add(moments[parent], h)
            tensors[parent] = tuple(a + b for a, b in zip(tensors[parent], tensor, strict=True))
    return M


def _moved(mass: Any, h: Vector, tensor: Any, R: Rotation, p: Vector) -> tuple[Vector, Any]:
    """Return a body's first moments and inertia in a frame in which its own frame has the pose `R`, `p`."""
    xx, yy, zz, xy, xz, yz = tensor
    rows = compose(R, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    rotated = [dot(rows[i], R[j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    h = rotate(R, h)
    x, y, z = p
    # Steiner's theorem: h p^T + p h^T + m p p^T = u p^T + p u^T
    u, v, w = add(h, scale(0.5, scale(mass, p)))
    shift = (
        2.0 * (v * y + w * z),
        2.0 * (u * x + w * z),
        2.0 * (u * x + v * y),
        -(u * y + v * x),
        -(u * z + w * x),
        -(v * z + w * y),
    )
    return add(h, scale(mass, p)), tuple(a + b for a, b in zip(rotated, shift, strict=True))


def solve(M: list[list[Any]], load: list[Any], reciprocal: Any) -> list[Any]:
    """Solve `M x = load` for x, with a symmetric positive definite `M`.

    Args:
        M: (n, n) matrix; only its lower triangle is read.
        load: (n,) right-hand side.
        reciprocal: function `1 / x` for scalars of this type.
    """
    n = len(load)
    M, x = [list(row) for row in M], list(load)
    inverse: list[Any] = [0.0] * n
    for k in reversed(range(n)):  # from the last joint, so that zeros between two branches remain zero
        inverse[k] = reciprocal(M[k][k])
        for i in reversed(range(k)):
            factor = M[k][i] * inverse[k]
            for j in range(i + 1):
                M[i][j] = M[i][j] - factor * M[k][j]
            x[i] = x[i] - factor * x[k]
            M[k][i] = factor
    for k in range(n):
        x[k] = x[k] * inverse[k]
        for i in range(k):
            x[k] = x[k] - M[k][i] * x[i]
    return x


ACCEPT = "accept it by --unphysical (unphysical=True)"
"""What a user can do about a robot without dynamics, besides correcting its file."""


def moved_mass_fault(tree: Tree, names: Sequence[str], G: Any, g0: Any) -> str:
    """Return why the mass matrix is singular, "" if it is not.

    Args:
        tree: tree of the robot's moving joints.
        names: n names of the joints with a motor.
        G: (n_tree, n) matrix of the joints of the tree, `q_tree = G q + g0`.
        g0: (n_tree,) offset of it, in [rad].
    """
    generic = G @ (0.1 * np.arange(1, G.shape[1] + 1)) + g0  # a position without symmetries
    at = placements(tree, generic.tolist(), math)
    M = G.T @ np.array(mass_matrix(tree, at, tree.inertias.tolist())) @ G
    for joint, moment in zip(names, np.diag(M), strict=True):
        if not moment > 0:
            return f"joint {joint!r} moves no mass; lock it, or give a link beyond it mass and inertia"
    scale = np.sqrt(np.diag(M))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    if not values[0] > 1e-12:
        first, second = (names[i] for i in sorted(np.argsort(np.abs(vectors[:, 0]))[-2:].tolist()))
        return (
            f"joints {first!r} and {second!r} move the same mass along the same path; "
            "give the link between them mass and inertia"
        )
    return ""


def require_moved_mass(where: str, tree: Tree) -> None:
    """Raise `RobotError` if the mass matrix of a tree is singular; `where` begins the message."""
    if fault := moved_mass_fault(tree, tree.names, np.eye(tree.n), np.zeros(tree.n)):
        raise RobotError(f"{where}: {fault}")
