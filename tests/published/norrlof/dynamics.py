"""Kinetic energy, D'Alembert's principle, Algorithm 2 and the torque on a body in Norrlöf's report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.published.items import SAMPLES, Finding, Item, computes, rng
from tests.published.norrlof import trees
from tests.published.norrlof.trees import Arm, Array, relative, turned, worst
from twin.kinematics.statics import cross_matrix
from twin.multibody.tree import inertial_parameters


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
