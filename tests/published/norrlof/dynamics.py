"""Norrlöf's report: kinetic energy, D'Alembert's principle, Algorithm 2, and Newton-Euler balances."""

from dataclasses import replace

import numpy as np

from tests.published.items import SAMPLES, Finding, Item, computes, rng
from tests.published.norrlof import trees
from tests.published.norrlof.trees import Arm, Array, relative, turned, worst
from twin.physics.kinematics.differential import cross_matrix
from twin.physics.multibody import recursions
from twin.physics.multibody.tree import inertial_parameters


@computes("N-3.28")
def cross_product_matrix(item: Item) -> Finding:
    """Compare the products of the library's and of the printed matrix with a vector to the cross product."""
    w, r = (np.concatenate([[item.inputs[name]], rng().normal(size=(SAMPLES, 3))]) for name in ("w", "r"))
    printed = cross_matrix(w)
    printed[:, 2, 0] = w[:, 1]
    expected = np.cross(w, r)
    right = cross_matrix(w)
    found, missed = turned(right, r), worst(turned(printed, r) - expected)
    return Finding(found[0], worst(found - expected, right + np.swapaxes(right, 1, 2)), missed)


@computes("N-3.32")
def trace_of_outer_product(item: Item) -> Finding:
    """Check the trace of the outer product of random vectors."""
    a, b = rng().normal(size=(2, SAMPLES, 3))
    outer = np.einsum("ni,nj->nij", b, a)
    return Finding(f"{SAMPLES} pairs", worst(np.trace(outer, axis1=1, axis2=2) - np.sum(a * b, axis=1)))


@computes("N-3.36")
def kinetic_energy_of_body(item: Item) -> Finding:
    """Compare the energy of forty particles that move as one body with that of the body."""
    generator = rng()
    masses, r = generator.uniform(0.1, 2, 40), generator.normal(size=(40, 3))
    r -= masses @ r / np.sum(masses)  # the frame lies in the centre of mass
    particles = [inertial_parameters(m, at, np.zeros((3, 3))) for m, at in zip(masses, r, strict=True)]
    parameters = np.sum(particles, axis=0)
    total, I = parameters[0], trees.tensor(parameters)  # noqa: E741  (3.35)
    v_c, w = generator.normal(size=(2, SAMPLES, 3))
    v = v_c[:, None] + np.cross(w[:, None], r)  # (3.26)
    K = np.einsum("k,nki,nki->n", masses, v, v) / 2  # (3.27)
    translation, rotation = total * np.sum(v_c**2, axis=1) / 2, np.einsum("ni,ij,nj->n", w, I, w) / 2
    S, second_moment = cross_matrix(w), np.einsum("k,ki,kj->ij", masses, r, r)
    by_trace = np.trace(S @ second_moment @ np.swapaxes(S, 1, 2), axis1=1, axis2=2) / 2  # (3.33)
    residual = worst(relative(translation + rotation, K), relative(by_trace, rotation))
    return Finding(f"{SAMPLES} motions of {len(masses)} particles", residual)


def inertia_by_jacobians(bodies: list[trees.Link], printed: bool = False) -> Array:
    """Compute D by (3.38), corrected or as printed; the printed product requires an arm of three joints."""
    D = np.zeros(())
    for body in bodies:
        R, R_T, Jw = body.R, np.swapaxes(body.R, 1, 2), body.Jw
        middle = R_T @ body.inertia @ Jw @ R if printed else R @ body.inertia @ R_T
        D = D + body.mass * np.swapaxes(body.Jv, 1, 2) @ body.Jv + np.swapaxes(Jw, 1, 2) @ middle @ Jw
    return D


def arms(n: int, kinds: str = "R", points: bool = False) -> list[Arm]:
    """Draw three random chains."""
    generator = rng()
    return [trees.chain(generator, n, kinds, points) for _ in range(3)]


@computes("N-3.38")
def inertia_of_arm(item: Item) -> Finding:
    """Compare D with the one computed by unit accelerations."""
    right, printed = [], []
    for arm in arms(3):
        q, *_ = trees.states(3)
        bodies, D = trees.links(arm, q), trees.inertia_matrix(arm, q)
        right.append(relative(inertia_by_jacobians(bodies), D))
        printed.append(relative(inertia_by_jacobians(bodies, printed=True), D))
    return Finding("3 random arms of 3 joints", worst(*right), min(printed))


@computes("N-3.20", "L-inertia2")
def virtual_work(item: Item) -> Finding:
    """Check the motion of particles on an arm, and the joint torques that it requires without gravity."""
    return Finding("3 random arms of 4 particles", worst(*map(_virtual_work, arms(4, "RRP", True))))


def _virtual_work(arm: Arm) -> float:
    q, qd, qdd = trees.states(4)

    def places(x: Array) -> Array:
        return np.array([particle.centre for particle in trees.links(arm, x)])

    def slopes(x: Array) -> Array:
        return np.array([particle.Jv for particle in trees.links(arm, x)])

    def velocities(x: Array) -> Array:
        return np.einsum("knij,nj->kni", slopes(x), qd)

    def momentum(x: Array, xd: Array) -> Array:
        return np.einsum("nij,nj->ni", trees.inertia_matrix(arm, x), xd)

    J, a = slopes(q), np.array([a_c for a_c, *_ in trees.accelerations(arm, q, qd, qdd)])
    work = np.einsum("k,kni,knij->nj", [particle.mass for particle in trees.links(arm, q)], a, J)
    rise = trees.rate(momentum, (q, qd), (qd, qdd))
    slope = trees.gradient(lambda x: trees.kinetic_energy(arm, x, qd), q)
    return worst(
        relative(trees.gradient(places, q), J),  # (3.18)
        relative(trees.gradient(velocities, q), trees.rate(slopes, (q, qd))),  # (3.19)
        relative(work, rise - slope),  # (3.20), (3.21)
        relative(work, trees.torques(arm, q, qd, qdd, gravity=False)),
    )


@computes("N-Alg2")
def algorithm(item: Item) -> Finding:
    """Compare steps 1 to 5, by derivatives, with the recursion; some joints are prismatic."""
    return Finding("3 random arms of 4 joints", worst(*(_algorithm(arm) for arm in arms(4, "RRP"))))


def _algorithm(arm: Arm) -> float:
    q, qd, qdd = trees.states(4)
    D = inertia_by_jacobians(trees.links(arm, q))  # step 1
    D_by_q = trees.gradient(lambda x: inertia_by_jacobians(trees.links(arm, x)), q)
    C = np.einsum("nijp,ni->npj", trees.christoffel_symbols(D_by_q), qd)  # step 3
    g = trees.gradient(lambda x: weight(arm, x), q)  # steps 2 and 4
    tau = np.einsum("nij,nj->ni", D, qdd) + np.einsum("nij,nj->ni", C, qd) + g  # step 5
    return worst(
        relative(tau, trees.torques(arm, q, qd, qdd)),
        relative(weight(arm, q), trees.potential_energy(arm, q)),
    )


def weight(arm: Arm, q: Array) -> Array:
    """Return the potential energy `V = g^T sum(m r)`, with g opposite to gravity."""
    moment = np.sum([body.mass * body.centre for body in trees.links(arm, q)], axis=0)
    return moment @ -np.array(arm.gravity)


@computes("N-3.66")
def torque_on_turning_body(item: Item) -> Finding:
    """Check (3.63), (3.65) and (3.66) by the joint torques of a body on three joints through its centre."""
    return Finding("3 random bodies", worst(*(_torque_on_body(on_a_gimbal(arm)) for arm in arms(3))))


def _torque_on_body(arm: Arm) -> float:
    q, qd, qdd = trees.states(3)
    (*_, body), (*_, (_, w_0, wd_0)) = trees.links(arm, q), trees.accelerations(arm, q, qd, qdd)
    I, R = body.inertia, body.R  # noqa: E741
    w, wd = (np.einsum("nji,nj->ni", R, v) for v in (w_0, wd_0))
    tau_0 = turned(R, wd @ I + np.cross(w, w @ I))  # (3.66)

    def momentum(x: Array, xd: Array) -> Array:
        last = trees.links(arm, x)[-1]
        I_0 = last.R @ last.inertia @ np.swapaxes(last.R, 1, 2)  # (3.65)
        return turned(I_0, np.einsum("nij,nj->ni", last.Jw, xd))

    return worst(
        relative(trees.rate(momentum, (q, qd), (qd, qdd)), tau_0),  # (3.63)
        relative(np.einsum("nij,ni->nj", body.Jw, tau_0), trees.torques(arm, q, qd, qdd)),
    )


def on_a_gimbal(arm: Arm) -> Arm:
    """Return the arm with all axes through the centre of mass of its last link, and other links massless."""
    T, inertias = arm.tree.T_parent_joint.copy(), np.zeros_like(arm.tree.inertias)
    T[:, :3, 3] = 0.0
    mass, _, inertia = trees.about_centre(arm.tree.inertias[-1])
    inertias[-1] = inertial_parameters(mass, np.zeros(3), inertia)
    return arm._replace(tree=replace(arm.tree, T_parent_joint=T, inertias=inertias))


# Newton-Euler balances of Norrlöf's report (section 3.2) and of his lecture, right and as printed.
#
# The report gives only the balances, and takes the motion of the links from Jacobians; the lecture has a
# recursion for the motion.  The reference is the library's recursion, which uses other quantities (first
# moments, and tensors about the joints).


Motions = list[tuple[Array, ...]]
ARMS = 3
JOINTS = 6
EXTENT = f"{ARMS} random arms of {JOINTS} joints"


def balanced_arms(kinds: str = "R") -> list[Arm]:
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
    for arm in balanced_arms("RP"):
        q, qd, qdd = trees.states(JOINTS)
        slides = [kind == "prismatic" for kind in arm.tree.kinds]
        tau, _ = balanced(arm, q, motion_by_jacobians(arm, q, qd, qdd))
        errors.append(relative(tau[:, slides], trees.torques(arm, q, qd, qdd)[:, slides]))
    return Finding(f"{EXTENT}, 3 of them prismatic", worst(*errors))


@computes("N-3.68")
def torque_balance(item: Item) -> Finding:
    """Compare torques with f_i of each link, and with the one common force that gives the least error."""
    right, printed = [], []
    for arm in balanced_arms():
        q, qd, qdd = trees.states(JOINTS)
        moved, expected = motion_by_jacobians(arm, q, qd, qdd), trees.torques(arm, q, qd, qdd)
        tau, forces = balanced(arm, q, moved)
        right.append(relative(tau, expected))
        printed.append(min(relative(balanced(arm, q, moved, common=f)[0], expected) for f in forces))
    return Finding(EXTENT, worst(*right), min(printed))


def lecture_error(printed: str = "") -> float:
    """Return the relative error of the lecture's torques."""
    errors = []
    for arm in balanced_arms():
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
