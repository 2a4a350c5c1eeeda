"""Parameters that bodies can have, nearest to what recordings tell.

Least squares knows nothing of bodies: its links may have negative masses, or inertias that no distribution of
mass has.  A link is possible where its pseudo-inertia is positive definite,

    P = [[ integral of r r^T dm,  m c ],
         [ m c^T,                 m   ]],

which is linear in its ten parameters; rotors and friction have to be above 0.  Of such parameters those are
taken that minimise

    (beta - beta_free)^T C^-1 (beta - beta_free) / 2 + sum of D(P, P0),
    D(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4,

with the base parameters beta, the covariance C of the free fit, and the log-det divergence D from the links
P0 of the robot that was given; of numbers above 0 it is `x / x0 - log(x / x0) - 1`.  The first part is what
the residuals rise by, in units of their noise.  The second keeps P from the edge of what is possible, and
directions that no torque depends on as near to P0 as the others let them; it weighs as much as if P0 were
known to a factor of e or so, which is little beside what recordings tell.  Both parts are convex: there is
one minimum, whatever the start, and Newton's method finds it.

Sources: P. Wensing, S. Kim, J.-J. Slotine, IEEE Robotics and Automation Letters 3 (2018), on P; T. Lee,
P. Wensing, F. Park, IEEE Trans. on Robotics 36 (2020), on its divergences; S. Boyd, L. Vandenberghe, "Convex
Optimization" (2004), section 9.6, on the damped steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats
from twin.dynamics.dynamic_parameters import DRIVE, with_dynamic_parameters
from twin.errors import IdentificationError
from twin.identification.identify import Identification
from twin.identification.least_squares import JointResiduals, joint_residuals
from twin.identification.torque_model import SIDES
from twin.robot.robot import Robot

FINEST = 1e-8
"""Residuals that are less than this part of a joint's torque count as so much: noise that is none."""

TYPICAL_SIZE, TYPICAL_MASS = 0.1, 1.0
"""In [m] and [kg]: the spread and the mass of a link of which nothing is known."""

THINNEST = 1e-6
"""What a given link that is a point, a rod, or impossible gets in every direction, over its largest."""

TYPICAL_INERTIA, TYPICAL_FRICTION = 0.01, 1.0
"""At the joint, of a rotor in [kg m^2], of friction in [N m] and [N m s/rad], where the robot tells none."""

FALLS = 10.0
"""By which the weight of the divergence falls from one minimum to the next, down to 1."""

STEPS = 60
"""Newton's, at most, for one minimum; some 5 are needed, some 10 for the last."""


def _basis() -> Floats:
    """The pseudo-inertias (10, 4, 4) of unit parameters, in the order of `Tree.inertias`."""
    E = np.zeros((10, 4, 4))
    E[0, 3, 3] = 1.0
    for i in range(3):
        E[1 + i, i, 3] = E[1 + i, 3, i] = 1.0
        E[4 + i, :3, :3] = 0.5 * np.eye(3)
        E[4 + i, i, i] = -0.5
    for k, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        E[7 + k, i, j] = E[7 + k, j, i] = -1.0
    return E


BASIS = _basis()


def pseudo_inertias(inertias: ArrayLike) -> Floats:
    """The pseudo-inertias of bodies: positive definite ones are those of bodies that can exist.

    Args:
        inertias: (..., 10) inertial parameters `m, m c, I (xx, yy, zz, xy, xz, yz)`, see `Tree.inertias`.

    Returns:
        (..., 4, 4) in [kg m^2], [kg m] and [kg].
    """
    return np.tensordot(np.asarray(inertias, dtype=np.float64), BASIS, axes=1)


@dataclass(frozen=True, eq=False)
class PhysicalSolution:
    """Parameters that the links and drives of an arm can have, and how well they explain the torques.

    Attributes:
        found: the identification with the free solution.
        pi: (p,) all parameters, in the order of `found.model.parameters`; what the robot carries is in them.
        residuals: that they leave.
    """

    found: Identification
    pi: Floats
    residuals: JointResiduals

    @property
    def growth(self) -> Floats:
        """Residuals (n,) over those of the free solution."""
        return self.residuals.rms / self.found.residuals.rms

    @cached_property
    def robot(self) -> Robot:
        """The robot with these parameters, but for offsets and what drives have on their other side."""
        robot = self.found.model.robot
        of_links, of_drives = np.split(
            self.pi[: 10 * robot.tree.n + len(DRIVE) * robot.n], [10 * robot.tree.n]
        )
        of_drives = of_drives.reshape(-1, len(DRIVE)) * (1.0, 1.0, 1.0, 0.0)
        return with_dynamic_parameters(robot, np.concatenate([of_links, of_drives.ravel()]))


def physical_solution(found: Identification) -> PhysicalSolution:
    """The parameters of possible links and drives that explain recordings best.

    Raises:
        IdentificationError: no minimum was found.
    """
    model, reduced = found.model, found.reduced
    base, known, robot = model.base, model.parameters.values, model.robot
    links = 10 * robot.tree.n
    norms = np.maximum(reduced.residual_norms(found.beta), FINEST * reduced.torque_norms)
    count = float(np.sum(reduced.counts))
    noise = norms / np.sqrt(np.maximum(reduced.counts, 1) * (1.0 - found.rank / count))
    weights = 1.0 / np.maximum(noise * np.sqrt(reduced.oversampling), np.finfo(float).tiny)
    width = reduced.R.shape[-1]
    R: Any = np.linalg.qr((reduced.R * weights[:, None, None]).reshape(-1, width), mode="r")[: width - 1]
    carried = np.zeros((robot.tree.n, 10))
    if robot.bare is not None:
        carried = robot.tree.inertias - robot.bare.inertias
    start = possible_bodies(known[:links].reshape(-1, 10) - carried)
    amounts, references = _amounts(found)
    pi = np.concatenate([(start + carried).ravel(), known[links:]])
    pi[amounts] = references
    others = np.setdiff1d(np.arange(links, len(pi)), amounts)
    pi = _minimum(pi, carried, amounts, others, R, base.columns, base.K)
    return PhysicalSolution(found, pi, joint_residuals(reduced, base.K @ pi))


def possible_bodies(inertias: Floats) -> Floats:
    """Bodies (k, 10) that can exist, and are no points or rods: those given, where they are such."""
    possible = np.array(inertias, dtype=np.float64)
    scale = np.diag([1.0 / TYPICAL_SIZE] * 3 + [1.0])
    for row, P in zip(possible, pseudo_inertias(inertias), strict=True):
        values, axes = np.linalg.eigh(scale @ P @ scale)
        least = THINNEST * values[-1] if values[-1] > 0 else TYPICAL_MASS
        if values[0] < least:
            values = np.maximum(values, least)
            back = np.linalg.inv(scale)
            row[:] = _parameters(back @ (axes * values) @ axes.T @ back)
    return possible


def _parameters(P: Floats) -> Floats:
    """The (10,) parameters of a pseudo-inertia (4, 4)."""
    S = P[:3, :3]
    I = np.trace(S) * np.eye(3) - S  # noqa: E741
    return np.array([P[3, 3], *P[:3, 3], I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def _amounts(found: Identification) -> tuple[np.ndarray, Floats]:
    """The parameters that are above 0 beside the links', and what they are known to be about."""
    model = found.model
    drives = model.robot.active_drives
    if drives is None:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    first, n = 10 * model.robot.tree.n, model.robot.n
    places, typical = [], []
    for axis in range(n):
        places += [first + len(DRIVE) * axis + k for k in range(3)]
        typical += [TYPICAL_INERTIA / drives.ratio[axis] ** 2, TYPICAL_FRICTION, TYPICAL_FRICTION]
    first += len(DRIVE) * n
    places += range(first, first + len(SIDES) * len(model.coupled))
    typical += [TYPICAL_INERTIA, TYPICAL_FRICTION, TYPICAL_FRICTION] * len(model.coupled)
    values = model.parameters.values[places]
    return np.array(places), np.where(values > 0, values, typical)


def _minimum(
    pi: Floats,
    carried: Floats,
    amounts: np.ndarray,
    others: np.ndarray,
    R: Floats,
    columns: np.ndarray,
    K: Floats,
) -> Floats:
    """The minimum that the module tells of.

    Coordinates are `u = R (beta - beta_0)`, in which the recordings' part is a sphere, and those parameters
    that are not in `columns`, each with the change of these that leaves beta alone.

    Args:
        pi: (p,) the start and what is known, P0 and x0.
        carried: (k, 10) what the links carry that is no part of them.
        amounts: numbers of the parameters that are above 0.
        others: numbers of those that are free, and about 0: offsets of drives.
        R: (r, r + 1) of the equations, weighted, torques in the last column.
        columns: (r,) of the base parameters.
        K: (r, p) of these.
    """
    r, p = len(columns), len(pi)
    rest = np.setdiff1d(np.arange(p), columns)
    S = np.zeros((p, p))
    S[columns, :r] = np.linalg.inv(R[:, :r])
    S[np.ix_(columns, np.arange(r, p))] = -K[:, rest]
    S[rest, np.arange(r, p)] = 1.0
    target = R[:, r] - R[:, :r] @ (K @ pi)  # of u
    known = pi.copy()
    bodies = slice(0, carried.size)
    inverse_known: Any = np.linalg.inv(pseudo_inertias(known[bodies].reshape(-1, 10) - carried))
    u, weight = np.zeros(r), max(1.0, float(target @ target))
    while True:
        for _ in range(STEPS):
            slope, curvature = _divergence(pi, known, carried, inverse_known, amounts, others)
            gradient = weight * (slope @ S)
            gradient[:r] += u - target
            H = weight * (S.T @ curvature @ S)
            H[np.arange(r), np.arange(r)] += 1.0
            scale = 1.0 / np.sqrt(np.diag(H))
            step = -scale * np.linalg.solve(H * np.outer(scale, scale), scale * gradient)
            size = float(np.sqrt(max(-(gradient @ step), 0.0) / weight))
            step /= 1.0 + (size if size > 0.25 else 0.0)  # which keeps every P possible
            u, pi = u + step[:r], pi + S @ step
            if size < (0.25 if weight > 1 else 1e-6):
                break
        else:
            raise IdentificationError(
                "found no possible links that explain the recordings: the search did not come to an end"
            )
        if weight == 1:
            return pi
        weight = max(1.0, weight / FALLS)


def _divergence(
    pi: Floats,
    known: Floats,
    carried: Floats,
    inverse_known: Floats,
    amounts: np.ndarray,
    others: np.ndarray,
) -> tuple[Floats, Floats]:
    """First and second derivatives (p,), (p, p) of the divergences by the parameters."""
    slope, curvature = np.zeros(len(pi)), np.zeros((len(pi), len(pi)))
    inverses = np.linalg.inv(pseudo_inertias(pi[: carried.size].reshape(-1, 10) - carried))
    for link, (inverse, before) in enumerate(zip(inverses, inverse_known, strict=True)):
        part = slice(10 * link, 10 * link + 10)
        slope[part] = np.einsum("kij,ji->k", BASIS, before - inverse)
        turned = inverse @ BASIS
        curvature[part, part] = np.einsum("kij,lji->kl", turned, turned)
    slope[amounts] = 1.0 / known[amounts] - 1.0 / pi[amounts]
    curvature[amounts, amounts] = 1.0 / pi[amounts] ** 2
    slope[others], curvature[others, others] = pi[others] - known[others], 1.0
    return slope, curvature
