"""Main axes of the IRB 1400 in Norrlöf's report, (3.39)-(3.61): corrected and printed closed form.

Both are compared with the library's recursion; see `main_axes_printed.py`.  Errors are relative.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.published.items import Finding, Item, computes
from tests.published.norrlof import closed_form, main_axes_printed, trees
from tests.published.norrlof.main_axes_printed import Case, cases
from tests.published.norrlof.trees import Array, relative, worst
from twin.dynamics.equation_of_motion import friction_torque
from twin.robot.drives.drives import Drives
from twin.robot.loading.loading import load

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
    D, g = main_axes_printed.printed_D(c.p, c.q), main_axes_printed.printed_g(c.p, c.q)
    return {"D": D, "C": main_axes_printed.printed_C(c.p, c.q, c.qd), "g": g}


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
    by_jacobians = main_axes_printed.D_by_jacobians
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
        lambda c: asymmetry(c, lambda x: main_axes_printed.printed_D(c.p, x), printed(c)["C"]),
    )


@computes("N-3.39")
def sign_of_gravity(item: Item) -> Finding:
    """Check `V = g^T sum(m r)` (3.56) and its derivatives with g_z upwards, and with g_z downwards."""

    def error(c: Case, gz: float) -> float:
        masses = np.array([c.p.m2, c.p.m3, c.p.m4, c.p.m5])

        def V(x: Array) -> Array:
            return gz * np.einsum("k,kn->n", masses, main_axes_printed.centres(c.p, x)[..., 2])

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
