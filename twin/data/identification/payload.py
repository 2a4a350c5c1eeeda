"""Identification of the payload at the flange, and of the gains of drives with a known load.

A payload adds its ten parameters, `m`, `m c` and the inertia about the flange's origin, to the link that has
the flange.  In base parameters, `beta = K pi`, this is `beta_loaded = beta_bare + B phi`, where B are the
columns of K of that link, transformed to the flange.  The triangles of the reduced recordings therefore
suffice to identify the payload, without a further regressor:

- With a run without the payload, the base parameters of the arm and the ten of the payload are fitted to both
  runs together.  Only the geometry of the arm's model is used.
- Without such a run, the arm's model is assumed to be correct, including its friction.

Each joint is weighted by the deviation of its residuals.  The deviations are those of the block bootstrap,
see `twin.identification.deviations`.  They do not contain an error of the torques' scale, such as a gain of
1 % too much, unless the covariance C of the relative scales is given: with the derivative D of the parameters
by the scales of the joints, `D C D^T` is added.  `identify_gains` finds scales.

Source: C. Atkeson, C. An, J. Hollerbach, "Estimation of inertial parameters of manipulator loads and links",
Int. J. of Robotics Research 5 (1986), on the load as the last link's parameters.

A recording of currents, or of torques of uncertain scale, has columns u_j, and the torque is
`tau_j = g_j u_j` with an unknown gain g_j.  A recording without a load leaves the common scale of all gains
open; the known mass of a load determines it.  With the base parameters beta of the arm, the parameters phi of
the load, and the base columns B of a body at the flange,

    u_j = Y_j beta / g_j  without the load,      u_j = Y_j (beta + B phi) / g_j  with it.

Noise is in u_j.  The fit therefore minimises the residuals of u_j, and not those of `g_j u_j`, which would
make gains too small.  It is solved by steps: with the gains of the step before, and the unknown errors e_j,

    g_j u_j = Y_j (beta + B phi) - e_j Y_j (beta_before + B phi_before),      g_j <- g_j / (1 - e_j).

The first step is the linear fit for beta, phi and g of `g_j u_j = Y_j (beta + B phi)`.  What is not known of
the load, its centre or its inertia, is fitted as well.

Source: C. Gaz, A. De Luca, "Payload estimation based on identified coefficients of robot dynamics", IEEE/RSJ
IROS (2017), and M. Gautier, S. Briot, "Global identification of joint drive gains and dynamic parameters of
robots", J. of Dynamic Systems, Measurement, and Control 136 (2014), on gains by a known load.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.errors import IdentificationError
from twin.base.formatting import html_table
from twin.data.identification.deviations import Part, block_covariance, warn_of_repetition, weighted_residuals
from twin.data.identification.identify import (
    Source,
    measured_sources,
    require_options,
    require_sensors,
    with_exact_motors,
    with_load,
)
from twin.data.identification.least_squares import (
    Fit,
    JointResiduals,
    Triangles,
    chosen_min_speed,
    fitted,
    joint_residuals,
    solved,
    triangles,
    without_rest,
)
from twin.data.identification.measurements import Filtering, Measurements
from twin.data.identification.requirements import require_units
from twin.data.identification.torque_model import TorqueModel, friction_of, identifiable
from twin.data.logs.recordings.finding import Finding
from twin.physics.multibody.tree import body_from_parameters, inertial_parameters, transformed_parameters
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.robot import Payload, Robot

NAMES = ("mass", "x", "y", "z", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""Names of the values of a payload, in the order of `--payload`."""

LIGHTEST = 1e-6
"""Smallest mass of a payload, in [kg]; a mass below three deviations is also rejected."""

UNITS = ("kg", *("m",) * 3, *("kg m^2",) * 6)


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """Estimate of the payload at the flange.

    Attributes:
        robot: arm without the payload.
        values: (10,) mass, centre of mass in the flange's frame, and inertia about that centre, as `NAMES`.
        covariance: (10, 10) covariance of the values.
        residuals: residuals of the runs with the payload, with it in the model.
        without: residuals of the same runs, without it in the model.
        bare: whether the arm's parameters were fitted to runs without the payload.
        scaled: whether the covariance contains that of the torques' scale.
        findings: what is wrong with the recordings.
    """

    robot: Robot
    values: Floats
    covariance: Floats
    residuals: JointResiduals
    without: JointResiduals
    bare: bool
    scaled: bool = False
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        mass, deviation = self.values[0], self.deviations[0]
        return f"<PayloadEstimate on {self.robot.name}: {mass:.4g} kg, deviation {deviation:.2g} kg>"

    def _repr_html_(self) -> str:
        """Return a table of mass, centre of mass in [m], and inertia about it in [kg m^2]."""
        rows = zip(NAMES, map(float, self.values), map(float, self.deviations), strict=True)
        return html_table(repr(self)[1:-1], [("SI units", "estimate", "deviation"), *rows])

    @property
    def deviations(self) -> Floats:
        """Standard deviations (10,) of the values."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))  # rounding may be below 0

    @property
    def possible(self) -> bool:
        """Whether a physical body can have this mass and inertia."""
        mass, _, inertia = self._body
        S = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        return bool(mass > 0 and np.linalg.eigvalsh(S)[0] >= 0)

    @property
    def payload(self) -> Payload:
        """Payload; a point mass if noise made the inertia impossible."""
        mass, com, inertia = self._body
        return Payload(mass, com, inertia) if self.possible else Payload(mass, com)

    @property
    def text(self) -> str:
        """Payload in the format of `--payload` and `--model-payload`."""
        return ",".join(f"{x:.10g}" for x in (self.values if self.possible else self.values[:4]))

    @property
    def _body(self) -> tuple[float, Floats, Floats]:
        mass, com, (xx, yy, zz, xy, xz, yz) = float(self.values[0]), self.values[1:4], self.values[4:]
        return mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def identify_payload(
    robot: Robot,
    *loaded: Source,
    bare: Sequence[Source] = (),
    filtering: Filtering | None = None,
    start: float | None = None,
    end: float | None = None,
    min_speed: float | None = None,
    deviations: str = "blocks",
    scale_covariance: ArrayLike | None = None,
    torque_sensors: bool = False,
    progress: Callable[[float], None] | None = None,
) -> PayloadEstimate:
    """Identify the payload at the flange.

    Args:
        robot: arm; its payload, if any, is removed.
        loaded: recordings with the payload.
        bare: recordings of the same arm without it, in any motion.  If there are none, the robot's parameters
            and friction are assumed to be correct.
        filtering: filter settings for measured recordings.
        start: start of the interval that is used, in [s].
        end: end of the interval that is used, in [s].
        min_speed: speed of a shaft below which samples are excluded, in [rad/s], as in `twin.identify`.
        deviations: `"blocks"` or `"white"`, see `twin.identify`.
        scale_covariance: (n, n) covariance of the relative errors of the torques' scale, as
            `GainEstimate.relative_covariance`; by default the scale is assumed to be exact.
        torque_sensors: whether sensors behind the gears measured the torques, as in `twin.identify`.
        progress: callback that receives the fraction done.

    Raises:
        IdentificationError: the recordings do not determine the payload; the message states why.
        ValueError: a setting is invalid.
        RobotError: the masses of the robot's links are not known.

    Example:
        >>> from scenarios.joint_tracking import JointTracking
        >>> from twin.data.identification.payload import identify_payload
        >>> setup = JointTracking.setup(payload="3,0.01,0.02,0.1", drives="rigid")
        >>> log = JointTracking(duration=0.5).run(setup).log
        >>> identify_payload(log.robot, log).values[:4].round(6).tolist()  # mass in [kg], centre in [m]
        [3.0, 0.01, 0.02, 0.1]
    """
    require_options(min_speed, deviations)
    C = None if scale_covariance is None else real_array(scale_covariance, "scale_covariance")
    if C is not None and C.shape != (robot.n, robot.n):
        raise ValueError(f"expected scale_covariance of shape ({robot.n}, {robot.n}), got {C.shape}")
    model, loaded_runs, bare_runs = arm_runs(
        robot, loaded, bare, filtering, start, end, min_speed, torque_sensors
    )
    if not bare:
        require_units(model, loaded_runs)

    known = model.base.K @ model.parameters.values
    B = model.base.K @ flange_columns(model)
    reduced = [triangles(model, loaded_runs, progress)]
    if bare:  # the unknowns are the payload's ten parameters, then the arm's r base parameters
        reduced.append(triangles(model, bare_runs))
        r = len(B)
        parts = [
            Part(loaded_runs, np.hstack([B, np.eye(r)]), np.zeros(r)),
            Part(bare_runs, np.hstack([np.zeros_like(B), np.eye(r)]), np.zeros(r)),
        ]
    else:
        parts = [Part(loaded_runs, B, known)]
    fit, weighted_parts = fitted_parts(reduced, parts)
    if fit.rank < len(fit.beta):
        open_ones = np.abs(fit.directions[-1])
        names = [NAMES[k] for k in np.flatnonzero(open_ones[:10] > 0.1 * open_ones.max())]
        raise undetermined(f"the payload's {', '.join(names)}" if names else "the arm's parameters")
    phi, beta_bare = fit.beta[:10], fit.beta[10:] if bare else known
    residuals = joint_residuals(reduced[0], beta_bare + B @ phi)

    covariance = fit.covariance[:10, :10]
    if deviations == "blocks":
        of_parts = weighted_residuals(model, fit, weighted_parts)
        covariance = block_covariance(model, fit, of_parts)[0][:10, :10]
        warn_of_repetition(of_parts, residuals.percent)
    if not phi[0] > max(LIGHTEST, 3.0 * np.sqrt(covariance[0, 0])):
        raise IdentificationError(
            f"the identified mass is {phi[0]:.3g} kg, with a deviation of {np.sqrt(covariance[0, 0]):.2g} "
            "kg: the recordings show no payload at the flange"
        )
    if C is not None:
        D = by_scales(reduced, weighted_parts, fit)[:10]
        covariance = covariance + D @ C @ D.T
    values, J = payload_values(phi)
    return PayloadEstimate(
        robot=model.robot,
        values=values,
        covariance=J @ covariance @ J.T,
        residuals=residuals,
        without=joint_residuals(reduced[0], beta_bare),
        bare=bool(bare),
        scaled=C is not None,
        findings=run_findings(loaded_runs + bare_runs),
    )


def arm_runs(
    robot: Robot,
    loaded: Sequence[Source],
    bare: Sequence[Source],
    filtering: Filtering | None,
    start: float | None,
    end: float | None,
    min_speed: float | None,
    torque_sensors: bool,
) -> tuple[TorqueModel, list[Measurements], list[Measurements]]:
    """Return the model of the arm without a payload, and the measurements with and without the load.

    The arguments are those of `identify_payload`.
    """
    if not loaded:
        raise ValueError("expected a recording with the payload, got none")
    if not bare:
        robot.require_inertia()
    arm = identifiable(robot.with_payload(None))
    if torque_sensors:
        require_sensors([*loaded, *bare])
    kinds = () if torque_sensors else friction_of(arm)
    model = TorqueModel(arm, friction=kinds, torque_sensors=torque_sensors)
    with_it, without_it = (
        [part.between(start, end) for one in sources for part in measured_sources(one, arm, filtering)]
        for sources in (loaded, bare)
    )
    measured = with_it + without_it
    if not bare and all(one.ideal for one in measured):
        drives = Drives(np.ones(robot.n), np.zeros(robot.n))  # which is what was simulated
        model = TorqueModel(arm.with_drives("rigid", drives))
    model = with_exact_motors(model, measured)
    model_without_load = model.without_load
    speed = chosen_min_speed(model_without_load, measured) if min_speed is None else min_speed
    moving = [without_rest(one, model.robot, speed) for one in measured]
    if model_without_load is not model:
        of_robot = model_without_load.base.K @ model_without_load.parameters.values
        moving = [with_load(model_without_load, of_robot, one) for one in moving]
    return model, moving[: len(with_it)], moving[len(with_it) :]


def run_findings(measured: Sequence[Measurements]) -> tuple[Finding, ...]:
    """Return the findings of all recordings."""
    return tuple(finding for one in measured for finding in one.findings)


def undetermined(what: str) -> IdentificationError:
    """Return the error that the recordings do not determine something, with what would."""
    return IdentificationError(
        f"the recordings do not determine {what}: expected runs in which all of the last joints turn "
        "and the flange is tilted in several directions"
    )


def flange_columns(model: TorqueModel) -> Floats:
    """Return the derivative (p, 10) of all parameters by those of a body at the flange, in its frame."""
    tree = model.robot.tree
    columns = np.zeros((len(model.parameters.values), 10))
    first = 10 * tree.flange_joint
    for k, unit in enumerate(np.eye(10)):
        columns[first : first + 10, k] = transformed_parameters(unit, tree.T_joint_flange)
    return columns


def fitted_parts(reduced: Sequence[Triangles], parts: Sequence[Part]) -> tuple[Fit, list[Part]]:
    """Fit the unknowns (m,) of all parts together to their reduced equations.

    Returns:
        The fit, whose rank may be too small, and the parts with their weights in it.
    """
    oversampling = max(one.oversampling for one in reduced)
    weighted = [
        part._replace(weight=float(np.sqrt(oversampling / one.oversampling)))
        for part, one in zip(parts, reduced, strict=True)
    ]
    rows = []
    for one, part in zip(reduced, weighted, strict=True):
        columns = one.R[:, :, :-1]
        right = one.R[:, :, -1] - columns @ part.known
        rows.append(np.concatenate([columns @ part.columns, right[..., None]], axis=-1) * part.weight)
    counts = np.sum(
        [part.weight**2 * one.counts for one, part in zip(reduced, weighted, strict=True)], axis=0
    )
    return fitted(Triangles(np.concatenate(rows, axis=1), counts, oversampling)), weighted


def by_scales(reduced: Sequence[Triangles], parts: Sequence[Part], fit: Fit) -> Floats:
    """Return the derivative (m, n) of fitted unknowns by the relative scales of the joints' torques."""
    products = np.zeros((len(fit.beta), len(fit.weights)))
    for one, part in zip(reduced, parts, strict=True):
        columns = one.R[:, :, :-1] @ part.columns
        products += np.einsum("jkm,jk->mj", columns, one.R[:, :, -1]) * (part.weight * fit.weights) ** 2
    return fit.spread @ (fit.spread.T @ products)


def payload_values(phi: Floats) -> tuple[Floats, Floats]:
    """Convert parameters about the flange's origin to values (10,) as `NAMES`, with derivatives (10, 10)."""
    mass, com, I = body_from_parameters(phi)  # noqa: E741
    h = phi[1:4]
    J = np.zeros((10, 10))
    J[0, 0] = 1.0
    J[1:4, 0], J[1:4, 1:4] = -com / mass, np.eye(3) / mass
    for row, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)), start=4):
        J[row, row] = 1.0
        # of -(h.h 1 - h h^T)_ij / m
        same = float(i == j)
        J[row, 0] = (same * h @ h - h[i] * h[j]) / mass**2
        J[row, 1:4] -= 2.0 * same * h / mass
        J[row, 1 + i] += h[j] / mass
        J[row, 1 + j] += h[i] / mass
    return np.array([mass, *com, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]), J


CONVERGED = 1e-9
"""Relative change of the gains in the last step."""

STEPS = 50
"""Largest number of steps; about 6 are typical."""


@dataclass(frozen=True, eq=False)
class GainEstimate:
    """Estimate of the gains of the drives.

    Attributes:
        robot: arm without the load.
        gains: (n,) torques per unit of the recorded ones, in [N m] or [N].
        relative_covariance: (n, n) covariance of the gains, each over its value.
        residuals: residuals of the runs with the load, in [N m].
        findings: what is wrong with the recordings.
    """

    robot: Robot
    gains: Floats
    relative_covariance: Floats
    residuals: JointResiduals
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return f"<GainEstimate on {self.robot.name}: {self.text}>"

    def _repr_html_(self) -> str:
        """Return a table of the gains."""
        rows = zip(self.robot.joint_names, map(float, self.gains), map(float, self.deviations), strict=True)
        return html_table(repr(self)[1:-1], [("joint", "gain", "deviation"), *rows])

    @property
    def deviations(self) -> Floats:
        """Standard deviations (n,) of the gains."""
        return np.abs(self.gains) * np.sqrt(np.diag(self.relative_covariance))

    @property
    def text(self) -> str:
        """Gains in the format of `--gains`."""
        return ",".join(f"{gain:.6g}" for gain in self.gains)


def identify_gains(
    robot: Robot,
    *loaded: Source,
    bare: Sequence[Source],
    load: ArrayLike,
    filtering: Filtering | None = None,
    start: float | None = None,
    end: float | None = None,
    min_speed: float | None = None,
    deviations: str = "blocks",
    torque_sensors: bool = False,
    progress: Callable[[float], None] | None = None,
) -> GainEstimate:
    """Identify the gains of the drives, torque per unit of each joint's column, by a known load.

    Args:
        robot: arm; its payload, if any, is removed.  Its masses and friction have no effect.
        loaded: recordings with the known load at the flange; their torques are in any unit.
        bare: recordings of the same arm without it, in any motion.
        load: (1,), (4,) or (10,) what is known of the load: its mass in [kg]; its centre of mass in the
            flange's frame, in [m]; its inertia about that centre, in [kg m^2], as in `NAMES` of
            `twin.identification.payload`.  The rest is fitted.
        filtering: filter settings for measured recordings.
        start: start of the interval that is used, in [s].
        end: end of the interval that is used, in [s].
        min_speed: speed of a shaft below which samples are excluded, in [rad/s], as in `twin.identify`.
        deviations: `"blocks"` or `"white"`, see `twin.identify`.
        torque_sensors: whether sensors behind the gears measured the torques, as in `twin.identify`.
        progress: callback that receives the fraction done.

    Raises:
        IdentificationError: the recordings do not determine the gains; the message states why.
        ValueError: a setting is invalid.

    Example:
        >>> from scenarios.excitation import Excitation
        >>> runs = [Excitation().run(Excitation().setup(robot="irb140", payload=kg)) for kg in ("5", "0")]
        >>> loaded, bare = (run.log for run in runs)
        >>> found = twin.identification.identify_gains(bare.robot, loaded, bare=[bare], load=[5.0])
        >>> found.gains.round(6).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    require_options(min_speed, deviations)
    if not bare:
        raise ValueError("expected a recording without the load, got none")
    known = known_load(load)
    model, loaded_runs, bare_runs = arm_runs(
        robot, loaded, bare, filtering, start, end, min_speed, torque_sensors
    )
    n, r = robot.n, len(model.base.columns)
    B = model.base.K @ flange_columns(model)
    certain, free = B[:, : len(known)] @ known, B[:, len(known) :]
    runs = (loaded_runs, bare_runs)
    reduced = [triangles(model, loaded_runs, progress), triangles(model, bare_runs)]
    arm = [np.hstack([free, np.eye(r)]), np.hstack([np.zeros_like(free), np.eye(r)])]
    of_load = [certain, np.zeros(r)]

    gains, x = _linear(reduced, arm, of_load)
    for _ in range(STEPS):
        scaled = [_scaled(one, gains) for one in reduced]
        parts = []
        for some, columns, fixed in zip(runs, arm, of_load, strict=True):
            errors = -np.eye(n)[:, None, :] * (columns @ x + fixed)[:, None]  # (n, r, n)
            columns = np.concatenate([np.broadcast_to(columns, (n, *columns.shape)), errors], axis=2)
            parts.append(Part(some, columns, fixed))
        fit, parts = fitted_parts(scaled, parts)
        x, e = fit.beta[:-n], fit.beta[-n:]
        if fit.rank < len(fit.beta) or not np.all(e < 1.0):
            raise undetermined("the gains")
        gains = gains / (1.0 - e)
        if np.max(np.abs(e)) < CONVERGED:
            break
    else:
        raise undetermined("the gains")

    covariance = fit.covariance
    if deviations == "blocks":
        measured = [[replace(one, tau=one.tau * gains) for one in some] for some in runs]
        parts = [part._replace(measured=some) for part, some in zip(parts, measured, strict=True)]
        covariance = block_covariance(model, fit, weighted_residuals(model, fit, parts))[0]
    return GainEstimate(
        model.robot,
        gains,
        covariance[-n:, -n:],
        joint_residuals(_scaled(reduced[0], gains), arm[0] @ x + certain),
        run_findings(loaded_runs + bare_runs),
    )


def known_load(load: ArrayLike) -> Floats:
    """Return the known inertial parameters (1,), (4,) or (10,) of a load about the flange's origin.

    Raises:
        ValueError: the load has another number of values, or no mass.
    """
    values = real_array(load, "load")
    if values.shape not in ((1,), (4,), (10,)) or not np.all(np.isfinite(values)) or not values[0] > 0:
        raise ValueError(
            "expected a load as its mass above 0, or as mass, x, y, z, or as these and Ixx, Iyy, Izz, Ixy, "
            f"Ixz, Iyz, in kg, m and kg m^2, got {load!r}"
        )
    mass, x, y, z, xx, yy, zz, xy, xz, yz = np.append(values, np.zeros(10 - len(values)))
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return inertial_parameters(float(mass), np.array([x, y, z]), inertia)[: len(values)]


def _linear(
    reduced: Sequence[Triangles], arm: Sequence[Floats], of_load: Sequence[Floats]
) -> tuple[Floats, Floats]:
    """Fit the gains (n,), and the load and the arm (m,), to equations of which the gains are unknowns."""
    rows = []
    for one, columns, fixed in zip(reduced, arm, of_load, strict=True):
        R, u = one.R[:, :, :-1], one.R[:, :, -1]
        of_gains = -np.eye(len(u))[:, None, :] * u[..., None]
        rows.append(np.concatenate([R @ columns, of_gains, -(R @ fixed)[..., None]], axis=2))
    n = len(reduced[0].R)
    fit = solved(Triangles(np.concatenate(rows, axis=1), reduced[0].counts, 1.0), np.ones(n))
    if fit.rank < len(fit.beta):
        raise undetermined("the gains")
    return fit.beta[-n:], fit.beta[:-n]


def _scaled(reduced: Triangles, gains: Floats) -> Triangles:
    """Return reduced equations whose torques are multiplied by gains (n,)."""
    R = reduced.R.copy()
    R[:, :, -1] *= gains[:, None]
    return reduced._replace(R=R)
