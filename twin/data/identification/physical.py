"""Physically possible parameters that are nearest to what recordings determine.

Unconstrained least squares may yield negative masses, or inertias that no mass distribution has.  A link is
physically possible if its pseudo-inertia is positive definite,

    P = [[ integral of r r^T dm,  m c ],
         [ m c^T,                 m   ]],

which is linear in its ten parameters; rotor inertia and friction must be above 0.  Among these parameters the
solution minimises

    (beta - beta_free)^T C^-1 (beta - beta_free) / 2 + sum of D(P, P0),
    D(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4,

with the base parameters beta, the covariance C of the unconstrained fit, and the log-det divergence D from
the links P0 of the given robot; for scalars above 0 the divergence is `x / x0 - log(x / x0) - 1`.  The first
part is the increase of the residuals in units of their noise.  The second keeps P away from the boundary of
the possible set, and directions that no torque depends on as near to P0 as the others permit.  Its weight
corresponds to knowing P0 to a factor of about e, which is weak compared with the recordings.  For friction
and rotors that the robot's file does not have, x0 is the size that the unconstrained fit gives them.
Parameters of any sign are centred at their given values: torque offsets with the deviation of the joint's
torque, springs and the like with the size that the recordings permit.  Links without masses are scaled to the
torques of the unconstrained fit.  Both parts are convex, so that there is one minimum for any start, which
Newton's method finds.

Sources: P. Wensing, S. Kim, J.-J. Slotine, IEEE Robotics and Automation Letters 3 (2018), on P; T. Lee,
P. Wensing, F. Park, IEEE Trans. on Robotics 36 (2020), on its divergences; S. Boyd, L. Vandenberghe, "Convex
Optimization" (2004), section 9.6, on the damped steps.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.base.errors import IdentificationError
from twin.data.identification.least_squares import JointResiduals, joint_residuals, triangles
from twin.data.identification.requirements import worse_findings
from twin.data.identification.result import Identification
from twin.data.identification.torque_model import FRICTION, TorqueModel
from twin.data.logs.recordings.finding import Finding, joint_names
from twin.physics.dynamics.regressor import DRIVE, with_dynamic_parameters
from twin.physics.robot.robot import Robot

FINEST = 1e-8
"""Smallest noise of a joint's torque relative to that torque, which replaces residuals near round-off."""

TYPICAL_SIZE, TYPICAL_MASS = 0.1, 1.0
"""Spread in [m] and mass in [kg] of a link without any data."""

THINNEST = 1e-6
"""Smallest relative extent in any direction that replaces that of a given point, rod or impossible link."""

FALLS = 10.0
"""Factor by which the weight of the divergence is reduced from one minimum to the next, down to 1."""

STEPS = 500
"""Largest number of Newton steps for one minimum; about 5 are typical, 10 for the last one, more from a
distant start.
"""

MOST_GROWTH = 1.5
"""Largest ratio of the residuals of a file to those of the free fit."""

ROUNDED = 1e-3
"""Residuals in percent of the torque that do not matter."""

UNCERTAINTY = float(np.e)
"""Factor of uncertainty of the given friction and rotors where the unconstrained fit determines larger
ones.
"""


def _basis() -> Floats:
    """Return the pseudo-inertias (10, 4, 4) of unit parameters, in the order of `Tree.inertias`."""
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
    """Return the pseudo-inertias of bodies; they are positive definite for bodies that can exist.

    Args:
        inertias: (..., 10) inertial parameters `m, m c, I (xx, yy, zz, xy, xz, yz)`, see `Tree.inertias`.

    Returns:
        (..., 4, 4) in [kg m^2], [kg m] and [kg].

    Example:
        >>> from twin.data.identification.physical import pseudo_inertias
        >>> point = [2.0, 0.2, 0, 0, 0, 0.02, 0.02, 0, 0, 0]  # 2 kg at x = 0.1 m
        >>> pseudo_inertias(point)[[0, 3]].round(6).tolist()
        [[0.02, 0.0, 0.0, 0.2], [0.2, 0.0, 0.0, 2.0]]
    """
    return np.tensordot(np.asarray(inertias, dtype=np.float64), BASIS, axes=1)


@dataclass(frozen=True, eq=False)
class PhysicalSolution:
    """Physically possible parameters of an arm, and how well they explain the torques.

    Attributes:
        found: identification with the unconstrained solution.
        pi: (p,) all parameters, in the order of `found.model.parameters`, including the robot's payload.
        residuals: residuals of these parameters.
        deviations: (r,) standard deviations of the base parameters `found.model.base.K @ pi`, from the
            curvature at the minimum, enlarged as those of the unconstrained fit are by noise that lasts.
    """

    found: Identification
    pi: Floats
    residuals: JointResiduals
    deviations: Floats

    @property
    def growth(self) -> Floats:
        """Ratio (n,) of the residuals to those of the unconstrained solution."""
        return self.residuals.rms / self.found.residuals.rms

    @cached_property
    def beta_of_file(self) -> Floats:
        """Base parameters (r,) that a robot's file can represent: those without the second side of drives."""
        of_file = self.pi.copy()
        of_file[self.found.model.sections.sides] = 0.0
        return self.found.model.base.K @ of_file

    @cached_property
    def residuals_of_file(self) -> JointResiduals:
        """Residuals of the parameters that a robot's file can represent."""
        return joint_residuals(self.found.reduced, self.beta_of_file)

    @cached_property
    def validation(self) -> JointResiduals | None:
        """Residuals of the parameters of a robot's file on the validation recordings."""
        kept_out, model = self.found.kept_out, self.found.model
        return joint_residuals(triangles(model, kept_out), self.beta_of_file) if kept_out else None

    @cached_property
    def robot(self) -> Robot:
        """Robot with these parameters, except the second side of drives."""
        model, n = self.found.model, self.found.model.robot.n
        sections = model.sections
        robot = with_dynamic_parameters(model.robot, self.pi[: sections.drives.stop])
        if robot.drives is not None:
            columns = {column: np.zeros(n) for column, _, _ in FRICTION.values()}
            for (kind, drive), value in zip(model.friction, self.pi[sections.friction], strict=True):
                columns[FRICTION[kind][0]][drive] = value
            try:
                robot = replace(robot, drives=replace(robot.drives, **columns))
            except ValueError as error:
                raise IdentificationError(
                    f"{error}: the recordings do not determine it, identify without it (friction)"
                ) from error
        return replace(robot, tree=robot.tree.with_torque_values(self.pi[sections.torques]))


def physical_solution(found: Identification) -> PhysicalSolution:
    """Find the physically possible parameters of links and drives that explain the recordings best.

    Raises:
        IdentificationError: no minimum was found.

    Example:
        >>> import twin
        >>> from scenarios.joint_tracking import JointTracking
        >>> from twin.data.identification.physical import physical_solution
        >>> log = JointTracking(duration=4.0).run(JointTracking.setup(robot="two_link", time_step=0.005)).log
        >>> physical_solution(twin.identify(log.robot, log)).residuals.percent.round(6).tolist()
        [0.0, 0.0]
    """
    model, reduced = found.model, found.weighted
    base, known, robot = model.base, model.parameters.values, model.robot
    links = 10 * robot.tree.n
    norms = np.maximum(reduced.residual_norms(found.beta), FINEST * reduced.torque_norms)
    count = float(np.sum(reduced.counts))
    noise = np.maximum(1.0 / found.fit.weights, norms / np.sqrt(np.maximum(reduced.counts, 1)))
    if reduced is not found.reduced:  # given weights state all noise but for one factor
        noise = np.full(robot.n, np.linalg.norm(norms) / np.sqrt(count - found.rank))
    weights = 1.0 / np.maximum(noise * np.sqrt(reduced.oversampling), np.finfo(float).tiny)
    width = reduced.R.shape[-1]
    R: Any = np.linalg.qr((reduced.R * weights[:, None, None]).reshape(-1, width), mode="r")[: width - 1]
    payload = np.zeros((robot.tree.n, 10))
    if robot.bare is not None:
        payload = robot.tree.inertias - robot.bare.inertias
    given = known[:links].reshape(-1, 10) - payload
    start, unknown = possible_bodies(given), ~np.any(given, axis=1)
    if np.any(unknown):  # scaled to the torques of the links in the unconstrained fit
        of_links = base.columns < links
        columns = R[:, :-1][:, of_links]
        free, typical = (
            columns @ found.beta[of_links],
            columns @ (base.K[:, :links] @ start.ravel())[of_links],
        )
        start[unknown] *= np.linalg.norm(free) / np.linalg.norm(typical)
    pi = np.concatenate([(start + payload).ravel(), known[links:]])
    positive, offsets = links + np.flatnonzero(~_offsets(model)[links:]), np.flatnonzero(_offsets(model))
    sizes, lower_bounds = _sizes(found, R)
    unseen = np.maximum(sizes, FINEST)  # rotors and friction in front of torque sensors have the size 0
    pi[positive] = np.where(known > 0, np.maximum(known, lower_bounds / UNCERTAINTY), unseen)[positive]
    spans = np.maximum(sizes, np.abs(known))
    spans[model.sections.drives][DRIVE.index("offset") :: len(DRIVE)] = found.residuals.torque_rms
    pi, deviations = _minimum(pi, payload, positive, offsets, spans[offsets], R, base.columns, base.K)
    white = np.sqrt(np.diag(found.fit.covariance))
    deviations = deviations * np.divide(found.deviations, white, out=np.ones_like(white), where=white > 0)
    return PhysicalSolution(found, pi, joint_residuals(found.reduced, base.K @ pi), deviations)


def file_findings(solution: PhysicalSolution) -> list[Finding]:
    """Return findings for a file that is worse than the given robot, or than the free fit."""
    found, findings = solution.found, []
    if solution.validation is not None:
        findings += worse_findings(found, solution.validation, ROUNDED)
    growth = solution.residuals_of_file.rms / np.maximum(found.residuals.rms, 1e-300)
    growth[solution.residuals_of_file.percent < ROUNDED] = 0.0
    joints = tuple((np.flatnonzero(growth > MOST_GROWTH) + 1).tolist())
    if joints:
        text = (
            f"possible links leave residuals of {joint_names(joints)} up to {np.max(growth):.3g} times "
            "those of the free fit, which is no arm: the model lacks something, or a column is wrong"
        )
        findings.append(Finding("file", joints, text))
    return findings


def _offsets(model: TorqueModel) -> np.ndarray:
    """Return which of the parameters (p,) have any sign: offsets, differences, springs, a user's columns."""
    any_sign, sections = np.zeros(len(model.parameters.values), dtype=np.bool_), model.sections
    any_sign[sections.drives][DRIVE.index("offset") :: len(DRIVE)] = True
    any_sign[sections.torques] = True
    any_sign[sections.friction] = [kind == "difference" for kind, _ in model.friction]
    return any_sign


def possible_bodies(inertias: Floats) -> Floats:
    """Return bodies (k, 10) that can exist and are no points or rods; possible given bodies are unchanged."""
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
    """Return the parameters (10,) of a pseudo-inertia (4, 4)."""
    S = P[:3, :3]
    I = np.trace(S) * np.eye(3) - S  # noqa: E741
    return np.array([P[3, 3], *P[:3, 3], I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def _sizes(found: Identification, R: Floats) -> tuple[Floats, Floats]:
    """Return the sizes (p,) of parameters that the recordings permit, and their lower bounds (p,).

    A size is the largest value for which a base parameter accounts, by its value or its deviation under the
    weights of R (r, r + 1).  The bound is two deviations below a base parameter that consists of one
    parameter only,
    else 0.
    """
    beta, base = found.beta, found.model.base
    share, deviations = np.abs(base.K), np.linalg.norm(np.linalg.inv(R[:, :-1]), axis=1)
    sums = np.maximum(np.abs(beta), deviations)[:, None]
    sizes = np.max(np.divide(sums, share, out=np.zeros_like(share), where=share > 0), axis=0)
    alone, lower_bounds = np.sum(share > 0, axis=1) == 1, np.zeros_like(sizes)
    lower_bounds[base.columns[alone]] = np.maximum(beta - 2.0 * deviations, 0.0)[alone]
    return sizes, lower_bounds


def _minimum(
    pi: Floats,
    payload: Floats,
    positive: np.ndarray,
    offsets: np.ndarray,
    sizes: Floats,
    R: Floats,
    columns: np.ndarray,
    K: Floats,
) -> tuple[Floats, Floats]:
    """Return the minimum described in the module, and the deviations (r,) of its base parameters.

    The coordinates are `u = R (beta - beta_0)`, in which the recordings' part is a sphere, and the parameters
    that are not in `columns`.  Each of the latter changes the parameters in `columns` such that beta stays
    constant.

    Args:
        pi: (p,) start and known values, P0 and x0.
        payload: (k, 10) payload in the inertias of the links.
        positive: indices of the parameters that are positive scalars.
        offsets: indices of the unbounded parameters centred at 0: offsets of drives.
        sizes: deviations of the latter.
        R: (r, r + 1) weighted triangle of the equations, torques in the last column.
        columns: (r,) indices of the base parameters.
        K: (r, p) matrix of the base parameters.
    """
    r, p = len(columns), len(pi)
    rest = np.setdiff1d(np.arange(p), columns)
    S = np.zeros((p, p))
    S[columns, :r] = np.linalg.inv(R[:, :r])
    S[np.ix_(columns, np.arange(r, p))] = -K[:, rest]
    S[rest, np.arange(r, p)] = 1.0
    target = R[:, r] - R[:, :r] @ (K @ pi)  # of u
    known = pi.copy()
    bodies = slice(0, payload.size)
    inverse_known: Any = np.linalg.inv(pseudo_inertias(known[bodies].reshape(-1, 10) - payload))
    u, weight = np.zeros(r), max(1.0, float(target @ target))
    while True:
        for _ in range(STEPS):
            slope, curvature = _divergence(pi, known, payload, inverse_known, positive, offsets, sizes)
            gradient = weight * (slope @ S)
            gradient[:r] += u - target
            H = weight * (S.T @ curvature @ S)
            H[np.arange(r), np.arange(r)] += 1.0
            scale = 1.0 / np.sqrt(np.diag(H))
            step = -scale * np.linalg.solve(H * np.outer(scale, scale), scale * gradient)
            size = float(np.sqrt(max(-(gradient @ step), 0.0) / weight))
            step /= 1.0 + (size if size > 0.25 else 0.0)  # keeps every P positive definite
            u, pi = u + step[:r], pi + S @ step
            if size < (0.25 if weight > 1 else 1e-6):
                break
        else:
            raise IdentificationError(
                "found no physically possible links that explain the recordings: the search did not converge"
            )
        if weight == 1:
            known_to = scale[:, None] * np.linalg.inv(H * np.outer(scale, scale))[:, :r] * scale[:r]
            return pi, np.sqrt(np.diag(S[columns, :r] @ known_to[:r] @ S[columns, :r].T))
        weight = max(1.0, weight / FALLS)


def _divergence(
    pi: Floats,
    known: Floats,
    payload: Floats,
    inverse_known: Floats,
    positive: np.ndarray,
    offsets: np.ndarray,
    sizes: Floats,
) -> tuple[Floats, Floats]:
    """Return first and second derivatives (p,), (p, p) of the divergences by the parameters."""
    slope, curvature = np.zeros(len(pi)), np.zeros((len(pi), len(pi)))
    inverses = np.linalg.inv(pseudo_inertias(pi[: payload.size].reshape(-1, 10) - payload))
    for link, (inverse, inverse_given) in enumerate(zip(inverses, inverse_known, strict=True)):
        part = slice(10 * link, 10 * link + 10)
        slope[part] = np.einsum("kij,ji->k", BASIS, inverse_given - inverse)
        turned = inverse @ BASIS
        curvature[part, part] = np.einsum("kij,lji->kl", turned, turned)
    slope[positive] = 1.0 / known[positive] - 1.0 / pi[positive]
    curvature[positive, positive] = 1.0 / pi[positive] ** 2
    slope[offsets], curvature[offsets, offsets] = (pi[offsets] - known[offsets]) / sizes**2, 1.0 / sizes**2
    return slope, curvature
