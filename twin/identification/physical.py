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
known to a factor of e or so, which is little beside what recordings tell.  Of friction and rotors that the
robot's file does not have, x0 is the size that the free fit gives them; offsets are about 0, with a deviation
of the joint's torque.  Links without masses are as heavy as the free fit's torques.  Both parts are convex:
there is one minimum, whatever the start, and Newton's method finds it.

Sources: P. Wensing, S. Kim, J.-J. Slotine, IEEE Robotics and Automation Letters 3 (2018), on P; T. Lee,
P. Wensing, F. Park, IEEE Trans. on Robotics 36 (2020), on its divergences; S. Boyd, L. Vandenberghe, "Convex
Optimization" (2004), section 9.6, on the damped steps.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats
from twin.dynamics.parameters import DRIVE, with_dynamic_parameters
from twin.errors import IdentificationError
from twin.identification.identify import Identification
from twin.identification.least_squares import JointResiduals, joint_residuals, triangles
from twin.identification.torque_model import TorqueModel
from twin.robot.robot import Robot

FINEST = 1e-8
"""Residuals that are less than this part of a joint's torque count as so much: noise that is none."""

TYPICAL_SIZE, TYPICAL_MASS = 0.1, 1.0
"""In [m] and [kg]: the spread and the mass of a link of which nothing is known."""

THINNEST = 1e-6
"""What a given link that is a point, a rod, or impossible gets in every direction, over its largest."""

FALLS = 10.0
"""By which the weight of the divergence falls from one minimum to the next, down to 1."""

STEPS = 500
"""Newton's, at most, for one minimum; some 5 are needed, 10 for the last, more from a start that is far."""

DOUBT = float(np.e)
"""The factor to which friction and rotors of the given robot are believed, where the free fit tells more."""


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
        deviations: (r,) of the base parameters `found.model.base.K @ pi`, by how curved the minimum is.
    """

    found: Identification
    pi: Floats
    residuals: JointResiduals
    deviations: Floats

    @property
    def growth(self) -> Floats:
        """Residuals (n,) over those of the free solution."""
        return self.residuals.rms / self.found.residuals.rms

    @cached_property
    def beta_of_file(self) -> Floats:
        """The base parameters (r,) that a robot's file has: those without the offsets of torques."""
        return self.found.model.base.K @ np.where(_offsets(self.found.model), 0.0, self.pi)

    @cached_property
    def residuals_of_file(self) -> JointResiduals:
        """Residuals that the parameters of a robot's file leave."""
        return joint_residuals(self.found.reduced, self.beta_of_file)

    @cached_property
    def validation(self) -> JointResiduals | None:
        """Residuals of the parameters of a robot's file on recordings that were kept out."""
        kept_out, model = self.found.kept_out, self.found.model
        return joint_residuals(triangles(model, kept_out), self.beta_of_file) if kept_out else None

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
    given = known[:links].reshape(-1, 10) - carried
    start, unknown = possible_bodies(given), ~np.any(given, axis=1)
    if np.any(unknown):  # as heavy as the torques of the free fit's links
        of_links = base.columns < links
        columns = R[:, :-1][:, of_links]
        free, typical = (
            columns @ found.beta[of_links],
            columns @ (base.K[:, :links] @ start.ravel())[of_links],
        )
        start[unknown] *= np.linalg.norm(free) / np.linalg.norm(typical)
    pi = np.concatenate([(start + carried).ravel(), known[links:]])
    amounts, others = links + np.flatnonzero(~_offsets(model)[links:]), np.flatnonzero(_offsets(model))
    sizes, told = _sizes(found, R)
    pi[amounts] = np.where(known > 0, np.maximum(known, told / DOUBT), sizes)[amounts]
    pi, deviations = _minimum(
        pi, carried, amounts, others, found.residuals.torque_rms, R, base.columns, base.K
    )
    return PhysicalSolution(found, pi, joint_residuals(reduced, base.K @ pi), deviations)


def _offsets(model: TorqueModel) -> np.ndarray:
    """Which of the parameters (p,) are offsets of torques."""
    return np.array([symbol.startswith("F0") for symbol in model.parameters.symbols])


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


def _sizes(found: Identification, R: Floats) -> tuple[Floats, Floats]:
    """The sizes (p,) of parameters that the recordings allow, and the least that they tell (p,).

    A size is the largest that a free sum with the parameter gives it, by its value or its deviation under the
    weights of R (r, r + 1).  The least is two deviations below a value that is alone in its sum, else 0.
    """
    beta, base = found.beta, found.model.base
    share, deviations = np.abs(base.K), np.linalg.norm(np.linalg.inv(R[:, :-1]), axis=1)
    sums = np.maximum(np.abs(beta), deviations)[:, None]
    sizes = np.max(np.divide(sums, share, out=np.zeros_like(share), where=share > 0), axis=0)
    alone, told = np.sum(share > 0, axis=1) == 1, np.zeros_like(sizes)
    told[base.columns[alone]] = np.maximum(beta - 2.0 * deviations, 0.0)[alone]
    return sizes, told


def _minimum(
    pi: Floats,
    carried: Floats,
    amounts: np.ndarray,
    others: np.ndarray,
    sizes: Floats,
    R: Floats,
    columns: np.ndarray,
    K: Floats,
) -> tuple[Floats, Floats]:
    """The minimum that the module tells of, and the deviations (r,) of its base parameters.

    Coordinates are `u = R (beta - beta_0)`, in which the recordings' part is a sphere, and those parameters
    that are not in `columns`, each with the change of these that leaves beta alone.

    Args:
        pi: (p,) the start and what is known, P0 and x0.
        carried: (k, 10) what the links carry that is no part of them.
        amounts: numbers of the parameters that are above 0.
        others: numbers of those that are free, and about 0: offsets of drives.
        sizes: that these may have.
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
            slope, curvature = _divergence(pi, known, carried, inverse_known, amounts, others, sizes)
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
            known_to = scale[:, None] * np.linalg.inv(H * np.outer(scale, scale))[:, :r] * scale[:r]
            return pi, np.sqrt(np.diag(S[columns, :r] @ known_to[:r] @ S[columns, :r].T))
        weight = max(1.0, weight / FALLS)


def _divergence(
    pi: Floats,
    known: Floats,
    carried: Floats,
    inverse_known: Floats,
    amounts: np.ndarray,
    others: np.ndarray,
    sizes: Floats,
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
    slope[others], curvature[others, others] = (pi[others] - known[others]) / sizes**2, 1.0 / sizes**2
    return slope, curvature
