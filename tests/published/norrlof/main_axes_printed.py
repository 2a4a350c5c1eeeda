"""Main axes of the IRB 1400 in Norrlöf's report: D, C and g as printed, and their reference.

The reference is the library's recursion over the tree of column, arms, lever and rod, with the Christoffel
symbols of its D.  It shares no code with the closed form of `tests/published/norrlof/closed_form.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tests.published.items import rng
from tests.published.norrlof import closed_form, trees
from tests.published.norrlof.closed_form import MainAxes
from tests.published.norrlof.trees import Arm, Array
from twin.robot.loading.loading import load

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
