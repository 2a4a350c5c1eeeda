"""Main axes of the IRB 1400 in Norrlöf's report, (3.39)-(3.61): corrected and printed closed form.

Both are compared with the library's recursion; see `main_axes_printed.py`.  Errors are relative.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.published.items import Finding, Item, computes
from tests.published.norrlof import closed_form as main_axes
from tests.published.norrlof.closed_form import MainAxes, main_axes_robot
from tests.published.norrlof.main_axes_printed import (
    Case,
    D_by_jacobians,
    cases,
    centres,
    printed_C,
    printed_D,
    printed_g,
)
from tests.published.norrlof.trees import (
    Array,
    christoffel_symbols,
    gradient,
    inertia_matrix,
    kinetic_energy,
    potential_energy,
    rate,
    relative,
    worst,
)
from twin.dynamics.equation_of_motion import friction_torque
from twin.robot.drives.drives import Drives
from twin.robot.loading.loading import load


def worst_case(error: Callable[[Case], float]) -> float:
    """Return the largest error over all sets of parameters."""
    return worst(*(error(case) for case in cases()))


def extent() -> str:
    """Describe the number of parameter sets and states."""
    return f"{len(cases())} sets of parameters, {len(cases()[0].q)} states each"


def motion(C: Array, qd: Array) -> Array:
    """Return `C qd`."""
    return np.einsum("nij,nj->ni", C, qd)


@computes("N-3.53")
def inertia_by_jacobians(item: Item) -> Finding:
    """Compare (3.47)-(3.54) and the closed form with the recursion."""
    return Finding(
        extent(),
        worst_case(
            lambda c: worst(
                relative(D_by_jacobians(c.p, c.q), c.D), relative(main_axes.mass_matrix(c.p, c.q), c.D)
            )
        ),
    )


def of_D(*entries: tuple[int, int]) -> tuple[float, float]:
    """Return the errors of entries of the corrected D and of the printed one."""
    rows, columns = zip(*entries, strict=True)

    def error(D: Callable[[MainAxes, Array], Array]) -> float:
        return worst_case(lambda c: relative(D(c.p, c.q)[:, rows, columns], c.D[:, rows, columns]))

    return error(main_axes.mass_matrix), error(printed_D)


def of_C(*entries: tuple[int, int]) -> tuple[float, float]:
    """Return the errors of entries of the corrected C and of the printed one, over the largest entry of C."""
    rows, columns = zip(*entries, strict=True)

    def error(C: Callable[[MainAxes, Array, Array], Array]) -> float:
        return worst_case(lambda c: worst((C(c.p, c.q, c.qd) - c.C)[:, rows, columns]) / worst(c.C))

    return error(main_axes.coriolis_matrix), error(printed_C)


def of_g(joint: int) -> tuple[float, float]:
    """Return the errors of the corrected g and of the printed one."""

    def error(g: Callable[[MainAxes, Array], Array]) -> float:
        return worst_case(lambda c: relative(g(c.p, c.q)[:, joint], c.g[:, joint]))

    return error(main_axes.gravity_torque), error(printed_g)


@computes("N-3.55-d11")
def first_entry_of_D(item: Item) -> Finding:
    """Compare d11 with the recursion."""
    return Finding(extent(), *of_D((0, 0)))


@computes("N-3.55-d22")
def other_entries_of_D(item: Item) -> Finding:
    """Compare the corrected and the printed formula, which are both right, with the recursion."""
    return Finding(extent(), worst(*of_D((1, 1), (1, 2), (2, 1), (2, 2))))


@computes("N-3.55-zero")
def zeros_of_D(item: Item) -> Finding:
    """Return the entries that are printed as zero, relative to d11."""
    return Finding(
        extent(),
        worst_case(
            lambda c: (
                worst(c.D[:, 0, 1:], c.D[:, 1:, 0], main_axes.mass_matrix(c.p, c.q)[:, 0, 1:])
                / worst(c.D[:, 0, 0])
            )
        ),
    )


@computes("N-3.58-c12")
def entries_of_C(item: Item) -> Finding:
    """Compare the corrected and the printed formula, which are both right, with the recursion."""
    return Finding(extent(), worst(*of_C((0, 1), (0, 2), (1, 0), (2, 0))))


@computes("N-3.58-c11")
def first_entry_of_C(item: Item) -> Finding:
    """Compare c11 with the Christoffel symbols, and with half the rate of d11."""
    half_rate = worst_case(
        lambda c: relative(
            main_axes.coriolis_matrix(c.p, c.q, c.qd)[:, 0, 0],
            rate(lambda x: inertia_matrix(c.arm, x)[:, 0, 0], (c.q, c.qd)) / 2,
        )
    )
    right, printed = of_C((0, 0))
    return Finding(extent(), worst(right, half_rate), printed)


@computes("N-3.58-c23")
def coupling_of_arms_in_C(item: Item) -> Finding:
    """Compare c23 and c32 with the Christoffel symbols."""
    return Finding(extent(), *of_C((1, 2), (2, 1)))


@computes("N-3.59-g2")
def gravity_of_lower_arm(item: Item) -> Finding:
    """Compare g2 with the recursion."""
    return Finding(extent(), *of_g(1))


@computes("N-3.59-g3")
def gravity_of_column_and_upper_arm(item: Item) -> Finding:
    """Check that g1 is zero, and compare both formulas for g3 with the recursion."""
    column = worst_case(lambda c: worst(c.g[:, 0], printed_g(c.p, c.q)[:, 0]) / worst(c.g))
    return Finding(extent(), worst(column, *of_g(2)))


@computes("N-skew")
def skew_symmetry(item: Item) -> Finding:
    """Compute the symmetric part of `Ddot - 2 C`; the printed C belongs to the rate of the printed D."""

    def asymmetry(case: Case, D: Callable[..., Array], C: Array) -> float:
        N = rate(lambda x: D(case, x), (case.q, case.qd)) - 2 * C
        return worst(N + np.swapaxes(N, 1, 2)) / worst(case.C)

    return Finding(
        extent(),
        worst_case(
            lambda c: asymmetry(
                c, lambda case, x: inertia_matrix(case.arm, x), main_axes.coriolis_matrix(c.p, c.q, c.qd)
            )
        ),
        worst_case(lambda c: asymmetry(c, lambda case, x: printed_D(case.p, x), printed_C(c.p, c.q, c.qd))),
    )


@computes("N-3.39")
def sign_of_gravity(item: Item) -> Finding:
    """Check `V = g^T sum(m r)` (3.56) and its derivatives with g_z upwards, and with g_z downwards."""

    def error(case: Case, gz: float) -> float:
        masses = np.array([case.p.m2, case.p.m3, case.p.m4, case.p.m5])

        def V(x: Array) -> Array:
            return gz * np.einsum("k,kn->n", masses, centres(case.p, x)[..., 2])

        library = main_axes.gravity_torque(case.p, case.q)
        return worst(
            relative(V(case.q), potential_energy(case.arm, case.q)), relative(gradient(V, case.q), library)
        )

    return Finding(
        "g_z = +9.81", worst_case(lambda c: error(c, c.p.gz)), worst_case(lambda c: error(c, -c.p.gz))
    )


@computes("N-3.41")
def expanded_lagrangian(item: Item) -> Finding:
    """Check (3.41) and (3.42) term by term, their difference against the torque, and c_ijp = c_jip."""

    def error(case: Case) -> float:
        q, qd, qdd = case.q, case.qd, case.qdd

        def momentum(x: Array, xd: Array) -> Array:
            return motion(inertia_matrix(case.arm, x), xd)

        def lagrangian(x: Array) -> Array:
            return kinetic_energy(case.arm, x, qd) - potential_energy(case.arm, x)

        rise = motion(case.D, qdd) + np.einsum("npji,ni,nj->np", case.D_by_q, qd, qd)  # (3.41)
        slope = np.einsum("nijp,ni,nj->np", case.D_by_q, qd, qd) / 2 - case.g  # (3.42)
        symbols = christoffel_symbols(case.D_by_q)
        return worst(
            relative(rise, rate(momentum, (q, qd), (qd, qdd))),
            relative(slope, gradient(lagrangian, q)),
            relative(rise - slope, case.tau),
            relative(symbols, np.swapaxes(symbols, 1, 2)),
        )

    return Finding(extent(), worst_case(error))


def torque(case: Case) -> tuple[Array, Array]:
    """Compute `D qdd + C qd` and g by the corrected closed form."""
    p, q, qd = case.p, case.q, case.qd
    moving = motion(main_axes.mass_matrix(p, q), case.qdd) + motion(main_axes.coriolis_matrix(p, q, qd), qd)
    return moving, main_axes.gravity_torque(p, q)


@computes("N-3.43")
def sign_of_potential(item: Item) -> Finding:
    """Compare the torque with dV/dq added and subtracted."""
    return Finding(
        extent(),
        worst_case(lambda c: relative(torque(c)[0] + torque(c)[1], c.tau)),
        worst_case(lambda c: relative(torque(c)[0] - torque(c)[1], c.tau)),
    )


@computes("N-3.45")
def velocities_in_C(item: Item) -> Finding:
    """Compare C with the sum over i of c_ijp qd_i, and with the sum of the c_ijp alone."""

    def error(case: Case, weights: Array) -> float:
        summed = np.einsum("nijp,ni->npj", christoffel_symbols(case.D_by_q), weights)
        return relative(summed, main_axes.coriolis_matrix(case.p, case.q, case.qd))

    return Finding(
        extent(), worst_case(lambda c: error(c, c.qd)), worst_case(lambda c: error(c, np.ones(c.qd.shape)))
    )


@computes("N-3.60")
def equation_of_motion(item: Item) -> Finding:
    """Compare (3.60) with the recursion, and check the power balance with the friction of (3.61)."""
    friction = np.array(item.inputs["f"])
    drives = Drives(ratio=np.ones(3), rotor_inertia=0.0, viscous=friction)
    robot = main_axes_robot(load("irb1400")).with_drives("rigid", drives)

    def error(case: Case) -> float:
        moving, held = torque(case)
        tau_ext = moving + held + friction_torque(robot, case.qd)

        def total(x: Array, xd: Array) -> Array:
            return kinetic_energy(case.arm, x, xd) + potential_energy(case.arm, x)

        gained = rate(total, (case.q, case.qd), (case.qd, case.qdd))
        lost = np.sum(friction * case.qd**2, axis=-1)
        return worst(
            relative(moving + held, case.tau),
            relative(gained + lost, np.sum(case.qd * tau_ext, axis=-1)),
        )

    return Finding(extent(), worst_case(error))
