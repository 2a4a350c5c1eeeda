"""Newton-Euler balances of Norrlöf's report (section 3.2) and of his lecture, right and as printed.

The report gives only the balances, and takes the motion of the links from Jacobians; the lecture has a
recursion for the motion.  The reference is the library's recursion, which uses other quantities (first
moments, and tensors about the joints).
"""

from __future__ import annotations

import numpy as np

from tests.published.items import Finding, Item, computes, rng
from tests.published.norrlof import trees
from tests.published.norrlof.trees import Arm, Array, relative, turned, worst
from twin.multibody import recursions

Motions = list[tuple[Array, ...]]
ARMS = 3
JOINTS = 6
EXTENT = f"{ARMS} random arms of {JOINTS} joints"


def arms(kinds: str = "R") -> list[Arm]:
    """Draw random chains."""
    generator = rng()
    return [trees.chain(generator, JOINTS, kinds) for _ in range(ARMS)]


def local(arm: Arm, q: Array) -> tuple[list[Array], list[Array]]:
    """Return rotations (N, 3, 3) from each link's to its parent's axes, and joint positions (N, 3) there."""
    at, shape = trees.placed(arm, q), (len(q),)
    R = [np.array([[np.broadcast_to(x, shape) for x in row] for row in rows]) for rows in at.R]
    p = [np.array([np.broadcast_to(x, shape) for x in place]) for place in at.p]
    return [np.moveaxis(matrix, -1, 0) for matrix in R], [place.T for place in p]


def back(R: Array, v: Array) -> Array:
    """Return `R^T v` of every sample."""
    return np.einsum("nji,nj->ni", R, v)


def motion_by_jacobians(arm: Arm, q: Array, qd: Array, qdd: Array) -> Motions:
    """Return `a_c, omega, alpha, g` of every link in the link's axes, by section 2 of the report."""
    found = []
    for link, moved in zip(trees.links(arm, q), trees.accelerations(arm, q, qd, qdd), strict=True):
        g = np.broadcast_to(np.array(trees.DOWN), (len(q), 3))
        found.append(tuple(back(link.R, v) for v in (*moved, g)))
    return found


def motion_of_lecture(arm: Arm, q: Array, qd: Array, qdd: Array, printed: str = "") -> Motions:
    """Return `a_c, omega, alpha, g` of every link by the lecture's outward recursion for revolute joints."""
    R, p = local(arm, q)
    world = recursions.world_frames(arm.tree, trees.placed(arm, q))
    R_base = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    w = alpha = a_end = np.zeros((len(q), 3))
    found = []
    for i in range(arm.tree.n):
        R_base = R_base @ R[i]
        z = np.stack([np.broadcast_to(x, (len(q),)) for x in world.z[i]], axis=-1)
        b = back(R_base, z)
        w = back(R[i], w) + b * qd[:, i, None]
        # The printed form lacks the transpose of the rotation from link i to link i - 1.
        propagated = turned(R[i], alpha) if printed == "L-NE-idx" else back(R[i], alpha)
        alpha = propagated + b * qdd[:, i, None] + np.cross(w, b * qd[:, i, None])
        start = back(R[i], a_end)

        _, com, _ = trees.about_centre(arm.tree.inertias[i])
        end = p[i + 1] if i + 1 < arm.tree.n else arm.tree.T_joint_flange[:3, 3]
        a_c, a_end = (start + np.cross(alpha, r) + np.cross(w, np.cross(w, r)) for r in (com, end))
        g = back(R_base, np.broadcast_to(np.array(trees.DOWN), w.shape))
        found.append((a_end if printed == "L-NE-ac" else a_c, w, alpha, g))
    return found


def balanced(
    arm: Arm, q: Array, moved: Motions, printed: str = "", common: Array | None = None
) -> tuple[Array, list[Array]]:
    """Evaluate (3.67) and (3.68) from the last link to the first.

    Args:
        arm: open chain.
        q: joint positions (N, n).
        moved: `a_c, omega, alpha, g` of every link, in the link's axes.
        printed: id of the item whose printed form is used.
        common: force (N, 3) in base axes that (3.68) uses for the f of every link.

    Returns:
        Torque or force along each joint's axis (N, n), and the force on every link, in base axes.
    """
    R, p = local(arm, q)
    R_base = [link.R for link in trees.links(arm, q)]
    f_ahead = tau_ahead = np.zeros((len(q), 3))
    tau, forces = np.zeros(q.shape), []
    for i in reversed(range(arm.tree.n)):
        mass, com, inertia = trees.about_centre(arm.tree.inertias[i])
        a_c, w, alpha, g = moved[i]
        last = i + 1 == arm.tree.n
        f_next = np.zeros(w.shape) if last else turned(R[i + 1], f_ahead)
        tau_next = np.zeros(w.shape) if last else turned(R[i + 1], tau_ahead)
        r_next = np.zeros(w.shape) if last else com - p[i + 1]
        f = f_next + mass * a_c - mass * g  # (3.67)
        acting = f if common is None else back(R_base[i], common)
        spin = alpha if printed == "L-NE-I" else alpha @ inertia
        moment = tau_next - np.cross(acting, com) + np.cross(f_next, r_next)  # (3.68)
        moment = moment + spin + np.cross(w, w @ inertia)
        along = f if arm.tree.kinds[i] == "prismatic" else moment
        tau[:, i] = along @ arm.tree.axes[i]
        forces.insert(0, turned(R_base[i], f))
        f_ahead, tau_ahead = f, moment
    return tau, forces


@computes("N-3.67")
def force_balance(item: Item) -> Finding:
    """Compare the forces along prismatic joints; every other joint is prismatic."""
    errors = []
    for arm in arms("RP"):
        q, qd, qdd = trees.states(JOINTS)
        slides = [kind == "prismatic" for kind in arm.tree.kinds]
        tau, _ = balanced(arm, q, motion_by_jacobians(arm, q, qd, qdd))
        errors.append(relative(tau[:, slides], trees.torques(arm, q, qd, qdd)[:, slides]))
    return Finding(f"{EXTENT}, 3 of them prismatic", worst(*errors))


@computes("N-3.68")
def torque_balance(item: Item) -> Finding:
    """Compare torques with f_i of each link, and with the one common force that gives the least error."""
    right, printed = [], []
    for arm in arms():
        q, qd, qdd = trees.states(JOINTS)
        moved, expected = motion_by_jacobians(arm, q, qd, qdd), trees.torques(arm, q, qd, qdd)
        tau, forces = balanced(arm, q, moved)
        right.append(relative(tau, expected))
        printed.append(min(relative(balanced(arm, q, moved, common=f)[0], expected) for f in forces))
    return Finding(EXTENT, worst(*right), min(printed))


def lecture_error(printed: str = "") -> float:
    """Return the relative error of the lecture's torques."""
    errors = []
    for arm in arms():
        q, qd, qdd = trees.states(JOINTS)
        tau, _ = balanced(arm, q, motion_of_lecture(arm, q, qd, qdd, printed), printed)
        errors.append(relative(tau, trees.torques(arm, q, qd, qdd)))
    return worst(*errors)


@computes("L-NE")
def recursion_of_lecture(item: Item) -> Finding:
    """Check the recursion in its corrected form."""
    return Finding(EXTENT, lecture_error())


@computes("L-NE-I", "L-NE-ac", "L-NE-idx")
def misprinted_step(item: Item) -> Finding:
    """Compare the torques of the corrected form, and of the form with one printed step."""
    return Finding(EXTENT, lecture_error(), lecture_error(printed=item.id))
