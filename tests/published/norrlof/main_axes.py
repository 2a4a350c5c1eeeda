"""Main axes of the IRB 1400 in Norrlöf's report: D, C and g as printed and corrected."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tests.published.items import Finding, Item, computes, rng
from tests.published.norrlof import closed_form, trees
from tests.published.norrlof.closed_form import MainAxes
from tests.published.norrlof.trees import Arm, Array, relative, worst
from twin import Drives, friction_torque, load

SETS = 4
"""Number of sets of random parameters, in addition to the robot's parameters."""


class Case(NamedTuple):
    """Set of parameters, states, and results of the recursion."""

    p: MainAxes
    arm: Arm
    q: Array
    qd: Array
    qdd: Array
    D: Array
    D_by_q: Array
    C: Array
    g: Array
    tau: Array


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """Return cases of the robot's and of random parameters; rc4x is zero, as in the printed formulas."""
    generator = rng()
    random = [MainAxes(*generator.uniform(0.1, 2, 9), *generator.uniform(-1, 1, 11)) for _ in range(SETS)]
    found = []
    for p in (closed_form.main_axes_parameters(load("irb1400")), *random):
        p = replace(p, rc4x=0.0)
        arm, (q, qd, qdd) = arm_of(p), trees.states(3)
        D_by_q = trees.gradient(lambda x, arm=arm: trees.inertia_matrix(arm, x), q)
        C = np.einsum("nijp,ni->npj", trees.christoffel_symbols(D_by_q), qd)
        torques = trees.gravity_torques(arm, q), trees.torques(arm, q, qd, qdd)
        found.append(Case(p, arm, q, qd, qdd, trees.inertia_matrix(arm, q), D_by_q, C, *torques))
    return tuple(found)


def arm_of(p: MainAxes) -> Arm:
    """Return the arm that the parameters describe."""
    embedding = np.array(closed_form.EMBEDDING, dtype=float)
    return Arm(closed_form.main_axes_tree(p), embedding, np.zeros(5), (0.0, 0.0, -p.gz))


def angles(q: Array) -> tuple[Array, ...]:
    """Return cosines and sines of theta2 and theta3, and both angles."""
    t2, t3 = q[:, 1], q[:, 2]
    return np.cos(t2), np.sin(t2), np.cos(t3), np.sin(t3), t2, t3


def printed_D(p: MainAxes, q: Array) -> Array:
    """Return D of (3.55) as printed."""
    c2, s2, c3, s3, t2, t3 = angles(q)
    rc2, rc3, rc5 = (x**2 + z**2 for x, z in ((p.rc2x, p.rc2z), (p.rc3x, p.rc3z), (p.rc5x, p.rc5z)))
    D = np.zeros((len(q), 3, 3), dtype=q.dtype)
    of_2 = 2 * p.l1x**2 + rc2 + 4 * p.l1x * p.rc2x * c2 + (p.rc2x**2 - p.rc2z**2) * np.cos(2 * t2)
    of_2 = of_2 + 4 * p.l1x * p.rc2z * s2 + 2 * p.rc2x * p.rc2z * np.sin(2 * t2)
    of_5 = 2 * p.l1x**2 + rc5 + 4 * p.l1x * p.rc5x * c3 + (p.rc5x**2 - p.rc5z**2) * np.cos(2 * t2)
    of_5 = of_5 + 4 * p.l1x * p.rc5z * s2 + 2 * p.rc5x * p.rc5z * np.sin(2 * t3)
    D[:, 0, 0] = p.I1 + p.m4 * (p.l1x + p.l5x * c3 + p.rc4z * s2) ** 2 + p.m2 * of_2 / 2
    D[:, 0, 0] += p.m3 * (p.l1x + p.rc3x * c3 + p.l2z * s2 + p.rc3z * s3) ** 2 + p.m5 * of_5 / 2
    D[:, 1, 1] = p.I2 + p.I4 + p.m2 * rc2 + p.m3 * p.l2z**2 + p.m4 * p.rc4z**2
    D[:, 1, 2] = p.m3 * p.l2z * p.rc3z * np.cos(t2 - t3)
    D[:, 1, 2] += (p.m3 * p.l2z * p.rc3x + p.m4 * p.l5x * p.rc4z) * np.sin(t2 - t3)
    D[:, 2, 1] = D[:, 1, 2]
    D[:, 2, 2] = p.I3 + p.I5 + p.m3 * rc3 + p.m4 * p.l5x**2 + p.m5 * rc5
    return D


def printed_C(p: MainAxes, q: Array, qd: Array) -> Array:
    """Return C of (3.58) as printed."""
    c2, s2, c3, s3, *_ = angles(q)
    C = np.zeros((len(q), 3, 3))
    inner = p.l1x * p.l2z * p.m3 + p.l1x * p.m2 * p.rc2z + p.l1x * p.m4 * p.rc4z
    inner = inner + (p.l2z * p.m3 * p.rc3x + p.l5x * p.m4 * p.rc4z) * c3
    inner += (p.l2z**2 * p.m3 - p.m2 * p.rc2x**2 + p.m2 * p.rc2z**2 + p.m4 * p.rc4z**2) * s2
    inner += p.l2z * p.m3 * p.rc3z * s3
    c12 = p.m2 * p.rc2x * p.rc2z * c2**2 - p.m2 * p.rc2x * s2 * (p.l1x + p.rc2z * s2) + c2 * inner
    c13 = -p.l5x * p.m4 * (p.l1x + p.l5x * c3 + p.rc4z * s2) * s3
    c13 += p.m3 * (p.rc3z * c3 - p.rc3x * s3) * (p.l1x + p.rc3x * c3 + p.l2z * s2 + p.rc3z * s3)
    c13 += p.m5 * (p.rc5z * c3 - p.rc5x * s3) * (p.l1x + p.rc5x * c3 + p.rc5z * s3)
    C[:, 0, 1], C[:, 0, 2] = c12 * qd[:, 0], c13 * qd[:, 0]
    C[:, 1, 0], C[:, 2, 0] = -C[:, 0, 1], -C[:, 0, 2]
    return C


def printed_g(p: MainAxes, q: Array) -> Array:
    """Return g of (3.59) as printed."""
    c2, s2, c3, s3, *_ = angles(q)
    g2 = (-p.m2 * p.rc2z + p.m3 * p.l2z - p.m4 * p.rc4z) * s2 - p.m2 * p.rc2x * c2
    g3 = (-p.m3 * p.rc3z - p.m5 * p.rc5z) * s3 + (-p.m3 * p.rc3x - p.m4 * p.l5x - p.m5 * p.rc5x) * c3
    return p.gz * np.stack([0 * g2, g2, g3], axis=-1)


def centres(p: MainAxes, q: Array) -> Array:
    """Return the centres of mass (4, N, 3) of links 2 to 5 by (3.48)-(3.52), without the height l1z."""
    c2, s2, c3, s3, *_ = angles(q)
    # Components x and z before rotation: those that rotate by theta2, then those that rotate by theta3.
    parts = [
        (p.rc2x, p.rc2z, 0.0, 0.0),
        (0.0, p.l2z, p.rc3x, p.rc3z),
        (p.rc4x, p.rc4z, p.l5x, 0.0),
        (0.0, 0.0, p.rc5x, p.rc5z),
    ]
    found = []
    for x2, z2, x3, z3 in parts:
        out = p.l1x + x2 * c2 + z2 * s2 + x3 * c3 + z3 * s3  # Rot_y
        up = z2 * c2 - x2 * s2 + z3 * c3 - x3 * s3
        found.append(np.stack([np.cos(q[:, 0]) * out, np.sin(q[:, 0]) * out, up], axis=-1))  # Rot_z
    return np.array(found)


def D_by_jacobians(p: MainAxes, q: Array) -> Array:
    """Compute D by (3.54), with the Jacobians (3.53) by complex steps."""
    D = np.tile(np.diag([p.I1, p.I2 + p.I4, p.I3 + p.I5]), (len(q), 1, 1))
    J = trees.gradient(lambda x: centres(p, x), q)
    return D + np.einsum("k,knai,knaj->nij", np.array([p.m2, p.m3, p.m4, p.m5]), J, J)


# Main axes of the IRB 1400 in Norrlöf's report, (3.39)-(3.61): corrected and printed closed form.
#
# Both are compared with the library's recursion; see `py`.  Errors are relative.


Form = Callable[[Case], dict[str, Array]]
ENTRIES = {
    "N-3.55-d11": ("D", (0, 0)),
    "N-3.55-d22": ("D", (1, 1), (1, 2), (2, 1), (2, 2)),
    "N-3.58-c12": ("C", (0, 1), (0, 2), (1, 0), (2, 0)),
    "N-3.58-c23": ("C", (1, 2), (2, 1)),
    "N-3.59-g2": ("g", (1,)),
}
"""Entries that an item states; those of a misprint are wrong as printed, all others right in both forms."""


def finding(*errors: Callable[[Case], float]) -> Finding:
    """Return the largest error of the right form over all sets of parameters, and that of the printed one."""
    extent = f"{len(cases())} sets of parameters, {len(cases()[0].q)} states each"
    return Finding(extent, *(worst(*map(error, cases())) for error in errors))


def motion(C: Array, qd: Array) -> Array:
    """Return `C qd`."""
    return np.einsum("nij,nj->ni", C, qd)


def right(c: Case) -> dict[str, Array]:
    """Return D, C and g of the corrected closed form."""
    D, g = closed_form.mass_matrix(c.p, c.q), closed_form.gravity_torque(c.p, c.q)
    return {"D": D, "C": closed_form.coriolis_matrix(c.p, c.q, c.qd), "g": g}


def printed(c: Case) -> dict[str, Array]:
    """Return D, C and g as printed."""
    D, g = printed_D(c.p, c.q), printed_g(c.p, c.q)
    return {"D": D, "C": printed_C(c.p, c.q, c.qd), "g": g}


def off(form: Form, part: str, *entries: tuple[int, ...]) -> Callable[[Case], float]:
    """Return the error of entries of D, C or g, relative to the largest one, in C to that of all."""
    at = (slice(None), *zip(*entries, strict=True))

    def error(c: Case) -> float:
        expected = getattr(c, part)
        return worst((form(c)[part] - expected)[at]) / worst(expected if part == "C" else expected[at])

    return error


@computes("N-3.53")
def inertia_by_jacobians(item: Item) -> Finding:
    """Compare (3.47)-(3.54) and the closed form with the recursion."""
    by_jacobians = D_by_jacobians
    return finding(lambda c: worst(relative(by_jacobians(c.p, c.q), c.D), relative(right(c)["D"], c.D)))


@computes(*ENTRIES)
def entries_of_matrices(item: Item) -> Finding:
    """Compare the corrected and the printed formula with the recursion."""
    errors = [off(form, *ENTRIES[item.id]) for form in (right, printed)]
    if item.verdict == "misprint":
        return finding(*errors)
    return finding(lambda c: worst(*(error(c) for error in errors)))


@computes("N-3.55-zero")
def zeros_of_D(item: Item) -> Finding:
    """Return the entries that are printed as zero, relative to d11."""
    return finding(
        lambda c: worst(c.D[:, 0, 1:], c.D[:, 1:, 0], right(c)["D"][:, 0, 1:]) / worst(c.D[:, 0, 0])
    )


@computes("N-3.58-c11")
def first_entry_of_C(item: Item) -> Finding:
    """Compare c11 with the Christoffel symbols, and with half the rate of d11."""

    def error(c: Case) -> float:
        rate = trees.rate(lambda x: trees.inertia_matrix(c.arm, x)[:, 0, 0], (c.q, c.qd))
        return worst(off(right, "C", (0, 0))(c), relative(right(c)["C"][:, 0, 0], rate / 2))

    return finding(error, off(printed, "C", (0, 0)))


@computes("N-3.59-g3")
def gravity_of_column_and_upper_arm(item: Item) -> Finding:
    """Check that g1 is zero, and compare both formulas for g3 with the recursion."""

    def error(c: Case) -> float:
        column = worst(c.g[:, 0], printed(c)["g"][:, 0]) / worst(c.g)
        return worst(column, *(off(form, "g", (2,))(c) for form in (right, printed)))

    return finding(error)


@computes("N-skew")
def skew_symmetry(item: Item) -> Finding:
    """Compute the symmetric part of `Ddot - 2 C`; the printed C belongs to the rate of the printed D."""

    def asymmetry(c: Case, D: Callable[[Array], Array], C: Array) -> float:
        N = trees.rate(D, (c.q, c.qd)) - 2 * C
        return worst(N + np.swapaxes(N, 1, 2)) / worst(c.C)

    return finding(
        lambda c: asymmetry(c, lambda x: trees.inertia_matrix(c.arm, x), right(c)["C"]),
        lambda c: asymmetry(c, lambda x: printed_D(c.p, x), printed(c)["C"]),
    )


@computes("N-3.39")
def sign_of_gravity(item: Item) -> Finding:
    """Check `V = g^T sum(m r)` (3.56) and its derivatives with g_z upwards, and with g_z downwards."""

    def error(c: Case, gz: float) -> float:
        masses = np.array([c.p.m2, c.p.m3, c.p.m4, c.p.m5])

        def V(x: Array) -> Array:
            return gz * np.einsum("k,kn->n", masses, centres(c.p, x)[..., 2])

        energy = trees.potential_energy(c.arm, c.q)
        return worst(relative(V(c.q), energy), relative(trees.gradient(V, c.q), right(c)["g"]))

    found = finding(lambda c: error(c, c.p.gz), lambda c: error(c, -c.p.gz))
    return Finding("g_z = +9.81", found.residual, found.printed_residual)


@computes("N-3.41")
def expanded_lagrangian(item: Item) -> Finding:
    """Check (3.41) and (3.42) term by term, their difference against the torque, and c_ijp = c_jip."""

    def error(case: Case) -> float:
        q, qd, qdd = case.q, case.qd, case.qdd

        def momentum(x: Array, xd: Array) -> Array:
            return motion(trees.inertia_matrix(case.arm, x), xd)

        def lagrangian(x: Array) -> Array:
            return trees.kinetic_energy(case.arm, x, qd) - trees.potential_energy(case.arm, x)

        rise = motion(case.D, qdd) + np.einsum("npji,ni,nj->np", case.D_by_q, qd, qd)  # (3.41)
        slope = np.einsum("nijp,ni,nj->np", case.D_by_q, qd, qd) / 2 - case.g  # (3.42)
        symbols = trees.christoffel_symbols(case.D_by_q)
        return worst(
            relative(rise, trees.rate(momentum, (q, qd), (qd, qdd))),
            relative(slope, trees.gradient(lagrangian, q)),
            relative(rise - slope, case.tau),
            relative(symbols, np.swapaxes(symbols, 1, 2)),
        )

    return finding(error)


def moving(c: Case) -> Array:
    """Compute `D qdd + C qd` by the corrected closed form."""
    return motion(right(c)["D"], c.qdd) + motion(right(c)["C"], c.qd)


@computes("N-3.43")
def sign_of_potential(item: Item) -> Finding:
    """Compare the torque with dV/dq added and subtracted."""
    return finding(
        *(lambda c, sign=sign: relative(moving(c) + sign * right(c)["g"], c.tau) for sign in (1, -1))
    )


@computes("N-3.45")
def velocities_in_C(item: Item) -> Finding:
    """Compare C with the sum over i of c_ijp qd_i, and with the sum of the c_ijp alone."""

    def error(c: Case, weights: Array) -> float:
        return relative(
            np.einsum("nijp,ni->npj", trees.christoffel_symbols(c.D_by_q), weights), right(c)["C"]
        )

    return finding(lambda c: error(c, c.qd), lambda c: error(c, np.ones(c.qd.shape)))


@computes("N-3.60")
def equation_of_motion(item: Item) -> Finding:
    """Compare (3.60) with the recursion, and check the power balance with the friction of (3.61)."""
    friction = np.array(item.inputs["f"])
    drives = Drives(ratio=np.ones(3), rotor_inertia=0.0, viscous=friction)
    robot = closed_form.main_axes_robot(load("irb1400")).with_drives("rigid", drives)

    def error(c: Case) -> float:
        tau = moving(c) + right(c)["g"]
        tau_ext = tau + friction_torque(robot, c.qd)

        def total(x: Array, xd: Array) -> Array:
            return trees.kinetic_energy(c.arm, x, xd) + trees.potential_energy(c.arm, x)

        gained = trees.rate(total, (c.q, c.qd), (c.qd, c.qdd))
        lost = np.sum(friction * c.qd**2, axis=-1)
        return worst(relative(tau, c.tau), relative(gained + lost, np.sum(c.qd * tau_ext, axis=-1)))

    return finding(error)
