"""Gains of the drives from recordings with and without a known load: torque per unit of each column.

A recording of currents, or of torques of uncertain scale, has columns u_j, and the torque is
`tau_j = g_j u_j` with an unknown gain g_j.  A recording without a load leaves the common scale of all gains
open; the known mass of a load determines it.  With the base parameters beta of the arm, the parameters phi of
the load, and the base columns B of a body at the flange (`twin.identification.payload`),

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
from twin.base.formatting import html_table
from twin.data.identification.deviations import Part, block_covariance, weighted_residuals
from twin.data.identification.identify import Source, require_options
from twin.data.identification.least_squares import (
    JointResiduals,
    Triangles,
    joint_residuals,
    solved,
    triangles,
)
from twin.data.identification.measurements import Filtering
from twin.data.identification.payload import (
    arm_runs,
    fitted_parts,
    flange_columns,
    run_findings,
    undetermined,
)
from twin.data.logs.recordings.finding import Finding
from twin.physics.multibody.tree import inertial_parameters
from twin.physics.robot.robot import Robot

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
