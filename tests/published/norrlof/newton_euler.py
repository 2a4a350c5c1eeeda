"""Newton and Euler's balances, of Norrlöf's report (section 3.2) and of his lecture, right and as printed.

The report gives the balances alone and takes the motion of the links from Jacobians; the lecture has its own
recursion for it.  What both must give are the torques of the library's recursions, which runs over other
quantities (first moments, and tensors about the joints).
"""

from __future__ import annotations

import numpy as np

from tests.published.items import Finding, Item, computes, rng
from tests.published.norrlof.trees import (
    DOWN,
    Arm,
    Array,
    about_centre,
    accelerations,
    chain,
    links,
    placed,
    relative,
    states,
    torques,
    turned,
    worst,
)
from twin.multibody import recursions

ARMS = 3
JOINTS = 6
TOLD = f"{ARMS} random arms of {JOINTS} joints"


def arms(kinds: str = "R") -> list[Arm]:
    """Random chains."""
    generator = rng()
    return [chain(generator, JOINTS, kinds) for _ in range(ARMS)]


def local(arm: Arm, q: Array) -> tuple[list[Array], list[Array]]:
    """Rotations (N, 3, 3) from each link's axes to its parent's, and where its joint is there (N, 3)."""
    at, shape = placed(arm, q), (len(q),)
    R = [np.array([[np.broadcast_to(x, shape) for x in row] for row in rows]) for rows in at.R]
    p = [np.array([np.broadcast_to(x, shape) for x in place]) for place in at.p]
    return [np.moveaxis(matrix, -1, 0) for matrix in R], [place.T for place in p]


def back(R: Array, v: Array) -> Array:
    """`R^T v` of every sample."""
    return np.einsum("nji,nj->ni", R, v)


def motion_by_jacobians(arm: Arm, q: Array, qd: Array, qdd: Array) -> list[tuple[Array, ...]]:
    """`a_c, omega, alpha, g` of every link in its own axes, as section 2 of the report finds them."""
    found = []
    for link, moved in zip(links(arm, q), accelerations(arm, q, qd, qdd), strict=True):
        g = np.broadcast_to(np.array(DOWN), (len(q), 3))
        found.append(tuple(back(link.R, v) for v in (*moved, g)))
    return found


def motion_of_lecture(
    arm: Arm, q: Array, qd: Array, qdd: Array, printed: str = ""
) -> list[tuple[Array, ...]]:
    """The same by the lecture's recursion from the base outwards, revolute joints."""
    R, p = local(arm, q)
    world = recursions.world_frames(arm.tree, placed(arm, q))
    R_base = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    w = alpha = a_end = np.zeros((len(q), 3))
    found = []
    for i in range(arm.tree.n):
        R_base = R_base @ R[i]
        z = np.stack([np.broadcast_to(x, (len(q),)) for x in world.z[i]], axis=-1)
        b = back(R_base, z)
        w = back(R[i], w) + b * qd[:, i, None]
        # Transposed, the rotation that leads from link i - 1 to link i leads back.
        carried = turned(R[i], alpha) if printed == "L-NE-idx" else back(R[i], alpha)
        alpha = carried + b * qdd[:, i, None] + np.cross(w, b * qd[:, i, None])
        start = back(R[i], a_end)

        _, com, _ = about_centre(arm.tree.inertias[i])
        end = p[i + 1] if i + 1 < arm.tree.n else arm.tree.T_joint_flange[:3, 3]
        a_c, a_end = (start + np.cross(alpha, r) + np.cross(w, np.cross(w, r)) for r in (com, end))
        g = back(R_base, np.broadcast_to(np.array(DOWN), w.shape))
        found.append((a_end if printed == "L-NE-ac" else a_c, w, alpha, g))
    return found


def balanced(
    arm: Arm,
    q: Array,
    moved: list[tuple[Array, ...]],
    printed: str = "",
    common: Array | None = None,
) -> tuple[Array, list[Array]]:
    """(3.67) and (3.68) from the last link to the first.

    Args:
        arm: an open chain.
        q: (N, n) joint positions.
        moved: `a_c, omega, alpha, g` of every link, in its axes.
        printed: the item whose printed form is taken.
        common: (N, 3) in base axes, the force that (3.68) takes for the f of every link.

    Returns:
        What acts along each joint's axis (N, n), and the force on every link, in base axes.
    """
    R, p = local(arm, q)
    R_base = [link.R for link in links(arm, q)]
    f_ahead = tau_ahead = np.zeros((len(q), 3))
    tau, forces = np.zeros(q.shape), []
    for i in reversed(range(arm.tree.n)):
        mass, com, inertia = about_centre(arm.tree.inertias[i])
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
    """The forces along prismatic joints, every other joint being one."""
    errors = []
    for arm in arms("RP"):
        q, qd, qdd = states(JOINTS)
        slides = [kind == "prismatic" for kind in arm.tree.kinds]
        tau, _ = balanced(arm, q, motion_by_jacobians(arm, q, qd, qdd))
        errors.append(relative(tau[:, slides], torques(arm, q, qd, qdd)[:, slides]))
    return Finding(f"{TOLD}, 3 of them prismatic", worst(*errors))


@computes("N-3.68")
def torque_balance(item: Item) -> Finding:
    """With f_i; and with one force for all links, that of whichever link misses least."""
    right, printed = [], []
    for arm in arms():
        q, qd, qdd = states(JOINTS)
        moved, expected = motion_by_jacobians(arm, q, qd, qdd), torques(arm, q, qd, qdd)
        tau, forces = balanced(arm, q, moved)
        right.append(relative(tau, expected))
        printed.append(min(relative(balanced(arm, q, moved, common=f)[0], expected) for f in forces))
    return Finding(TOLD, worst(*right), min(printed))


def lecture_error(printed: str = "") -> float:
    """How far the lecture's torques are from the library's."""
    errors = []
    for arm in arms():
        q, qd, qdd = states(JOINTS)
        tau, _ = balanced(arm, q, motion_of_lecture(arm, q, qd, qdd, printed), printed)
        errors.append(relative(tau, torques(arm, q, qd, qdd)))
    return worst(*errors)


@computes("L-NE")
def recursion_of_lecture(item: Item) -> Finding:
    """All steps, put right."""
    return Finding(TOLD, lecture_error())


@computes("L-NE-I", "L-NE-ac", "L-NE-idx")
def misprinted_step(item: Item) -> Finding:
    """The torques with one step as it is printed, and without."""
    return Finding(TOLD, lecture_error(), lecture_error(printed=item.id))
