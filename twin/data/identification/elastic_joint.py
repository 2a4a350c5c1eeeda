"""Identification of an elastic joint: two masses, spring and friction, from torque and speed of the motor.

Norrlöf's experiment: one joint is excited while the others stand still.  The estimate is the set of
parameters for which the linear model of `twin.dynamics.flexible_joint` comes nearest to the measured speed.
This is a prediction- error method for an output-error model: noise is added to the output and not modelled
further, so that the simulation under the measured torques is the prediction.  For white noise this is the
maximum-likelihood estimate, with or without a controller in the loop.  The deviations follow from a
linearisation about it,

    cov = s^2 (J^T J)^-1,    s^2 = |e|^2 / (N - number of fitted quantities).

The motion before the data is not known, and mean values carry no information: three initial states and an
offset are fitted along with the parameters.  They enter linearly, so that for each set of parameters the best
of them is found at once (variable projection with Kaufman's derivatives), and the search varies only the
logarithms of the parameters.

The search starts from the frequency response, at several frequencies of the antiresonance, because the sum of
squares has local minima: a resonance at the wrong frequency fits nothing, and no small step improves the fit.

Sources: Norrlöf 1999, section 3.3.2 and Table 3.1; L. Ljung, "System Identification", 2nd ed. 1999, sections
7.2 and 9.4; L. Kaufman, BIT 15 (1975).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from twin.base.arrays import real_array
from twin.base.errors import IdentificationError
from twin.physics.dynamics.flexible_joint import FlexibleJoint, velocity_model

PARAMETERS = ("Jm", "Ja", "fm", "k")
"""Estimated parameters, in this order; `d` follows if requested."""


class SampledJoint(NamedTuple):
    """Sampled joint `x[k+1] = A x[k] + B u[k]`, `y = x[0]`, `x = [qm', qa', r qm - qa]`: A (3, 3), B (3,)."""

    A: np.ndarray
    B: np.ndarray


_Sampling: TypeAlias = Callable[[FlexibleJoint], SampledJoint]

LAGS = 3
LINEAR = LAGS + 1
"""Number of linear quantities that are fitted besides the parameters: initial state and offset."""

SAMPLES = 50
"""Smallest number of samples."""

STEP = 1e-5
"""Step of the logarithms for numerical derivatives of the coefficients, which are accurate to 1e-10."""

FIRST_STEPS, MOST_STEPS = 8, 60
"""Largest numbers of search steps: from each start, to select the best, and from there to convergence."""

FACTOR = 100.0
"""Largest factor between a parameter and its value at the start of the search."""


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """Estimate of an elastic joint; p is 4, or 5 with the spring's damping.

    Attributes:
        joint: estimated joint.
        names: (p,) names of the parameters, attributes of a `FlexibleJoint`.
        values: (p,) values in the units of a `FlexibleJoint`.
        deviations: (p,) standard deviations, in the same units.
        correlation: (p, p) correlation of the errors.
        noise: standard deviation of the residual of the motor's speed, in [rad/s].
        speed: (N,) speed of the motor in the model, with the fitted offset, in [rad/s].
        others: sums of squares, relative to that of `joint`, of abandoned searches from other starts.
    """

    joint: FlexibleJoint
    names: tuple[str, ...]
    values: np.ndarray
    deviations: np.ndarray
    correlation: np.ndarray
    noise: float
    speed: np.ndarray
    others: tuple[float, ...]

    def reported(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values and deviations (4,) of `J_m, J_a, f_m, k` in the units of Norrlöf's Table 3.1.

        Its J_a and k are r times those of the arm, see `FlexibleJoint.reported`.
        """
        scale = np.array([1.0, self.joint.r, 1.0, self.joint.r])
        return scale * self.values[:4], abs(scale) * self.deviations[:4]


def identify_elastic_joint(
    tau: ArrayLike,
    speed: ArrayLike,
    period: float,
    r: float,
    *,
    steps: int | None = None,
    damping: bool = False,
) -> JointEstimate:
    """Estimate an elastic joint from a record in which only this joint was excited.

    The friction of the arm itself is assumed to be 0, as in the source.

    Args:
        tau: (N,) torque of the motor, held from each sample to the next, at the motor, in [N m].
        speed: (N,) measured speed of the motor, at the motor, in [rad/s].
        period: time between samples, in [s].
        r: angle of the arm for each radian of the motor, one over the gear ratio.
        steps: engine steps in a period, if the engine or the analytic plant made the record, so that the
            model uses the same steps; by default the model is that of continuous time.
        damping: whether to estimate the damping of the spring, which is 0 otherwise.

    Raises:
        IdentificationError: the record is too short or does not excite the joint, or does not determine a
            parameter: its deviation exceeds its value.
        ValueError: a shape does not match, a value is not finite, or the period is not above 0.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, simulate_flexible_joint
        >>> from twin.data.identification import identify_elastic_joint
        >>> tau = ([2.0] * 100 + [-2.0] * 60) * 3  # N m
        >>> x = simulate_flexible_joint(FlexibleJoint(Jm=1, Ja=2, k=100, fm=3), tau, 0.01)
        >>> identify_elastic_joint(tau, x[:-1, 1], 0.01, r=1.0, steps=1).values.round(6).tolist()
        [1.0, 2.0, 3.0, 100.0]
    """
    u, y = _record(tau, speed, period, r, steps)
    names = (*PARAMETERS, "d") if damping else PARAMETERS
    sampled = _sampling(period, steps)
    searches = [
        _search(u, y, sampled, start, names, FIRST_STEPS) for start in starts(u, y, period, r, damping)
    ]
    if not searches:
        raise IdentificationError("the speed of the motor is not a response to its torque")
    searches.sort(key=lambda found: found.cost)
    best = _search(u, y, sampled, searches[0].joint, names, MOST_STEPS)
    joint, jacobian, cost = best.joint, best.jacobian, best.cost
    freedom = len(u) - len(names) - LINEAR
    triangle = np.linalg.qr(jacobian, mode="r")
    values = np.array([getattr(joint, name) for name in names])
    pivots = np.abs(np.diag(triangle))
    if not np.min(pivots) > 1e-9 * np.max(pivots):
        relative = np.full(len(names), np.inf)
        correlation = np.full((len(names), len(names)), np.nan)
    else:
        root = np.linalg.inv(triangle)
        size = np.linalg.norm(root, axis=1)
        relative = np.sqrt(cost / freedom) * size
        correlation = (root / size[:, None]) @ (root / size[:, None]).T
    if not np.all(relative < 1.0):
        worst = int(np.argmax(relative))
        raise IdentificationError(
            f"the record does not determine {names[worst]} of the elastic joint: its deviation is "
            f"{100 * relative[worst]:.3g} % of {values[worst]:.3g}; excite the joint below and above its "
            "resonance, more strongly or for longer"
        )
    return JointEstimate(
        joint=joint,
        names=names,
        values=values,
        deviations=relative * values,
        correlation=correlation,
        noise=float(np.sqrt(cost / freedom)),
        speed=best.speed,
        others=tuple(found.cost / cost for found in searches[1:]),
    )


def simulated_speed(
    joint: FlexibleJoint, tau: ArrayLike, speed: ArrayLike, period: float, *, steps: int | None = None
) -> np.ndarray:
    """Simulate the motor's speed (N,) under the torques of a record, in [rad/s], for example for validation.

    Initial state and offset are those that come nearest to the record.  The arguments are those of
    `identify_elastic_joint`.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, simulate_flexible_joint
        >>> from twin.data.identification.elastic_joint import simulated_speed
        >>> joint, tau = FlexibleJoint(Jm=1, Ja=2, k=100, fm=3), [2.0] * 100 + [-2.0] * 60
        >>> x = simulate_flexible_joint(joint, tau, 0.01)
        >>> bool(abs(simulated_speed(joint, tau, x[:-1, 1], 0.01, steps=1) - x[:-1, 1]).max() < 1e-9)
        True
    """
    u, y = _record(tau, speed, period, joint.r, steps)
    return _fitted(u, y, *difference_equation(_sampling(period, steps)(joint))).speed


@dataclass(frozen=True, eq=False)
class _Search:
    """Result of a search: joint, sum of squares, derivatives (N, p) by logarithms, and speed (N,)."""

    joint: FlexibleJoint
    cost: float
    jacobian: np.ndarray
    speed: np.ndarray


def _record(
    tau: ArrayLike, speed: ArrayLike, period: float, r: float, steps: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Check torque and speed (N,), and return the torque without its mean and the speed."""
    u, y = real_array(tau, "tau"), real_array(speed, "speed")
    if u.ndim != 1 or u.shape != y.shape:
        raise ValueError(f"expected tau and speed of one shape (N,), got {u.shape} and {y.shape}")
    for name, values in (("tau", u), ("speed", y)):
        if not np.all(np.isfinite(values)):
            first = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"expected finite {name}, got {values[first]} at sample {first}")
    if not 0 < period < np.inf:
        raise ValueError(f"expected a period above 0 s, got {period}")
    if not 0 < abs(r) < np.inf:
        raise ValueError(f"expected r to be a finite number other than 0, got {r}")
    if steps is not None and not steps >= 1:
        raise ValueError(f"expected at least 1 step a period, got {steps}")
    if len(u) < SAMPLES:
        raise IdentificationError(f"a record of {len(u)} samples is too short, expected at least {SAMPLES}")
    for name, values in (("torque", u), ("speed", y)):
        if not np.ptp(values) > 0:
            raise IdentificationError(f"the {name} of the motor is constant: nothing excites the joint")
    return u - np.mean(u), y


def _sampling(period: float, steps: int | None) -> _Sampling:
    return partial(exact, period=period) if steps is None else partial(in_steps, period=period, steps=steps)


class _Fit(NamedTuple):
    """Fit of a model to a record: speed (N,), speed without offset, and a basis (N, 4) of the linear part."""

    speed: np.ndarray
    moving: np.ndarray
    basis: np.ndarray


def _fitted(u: np.ndarray, y: np.ndarray, b: np.ndarray, a: np.ndarray) -> _Fit:
    """Return the model's speed with the initial state and offset that come nearest to the record."""
    from scipy.signal import lfilter

    pulse = np.zeros(len(u))
    pulse[0] = 1.0
    forced, free = lfilter(b, a, u), _lagged(_through(a, pulse), range(LAGS))
    basis, triangle = np.linalg.qr(np.column_stack([free, np.ones(len(u))]))
    weights = np.linalg.solve(triangle, basis.T @ (y - forced))
    moving = forced + free @ weights[:LAGS]
    return _Fit(moving + weights[LAGS], moving, basis)


def _through(a: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """Filter a signal (N,) by the poles of a difference equation."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], a, signal))


def _lagged(signal: np.ndarray, lags: range) -> np.ndarray:
    """Return the signal delayed by each of the lags: (N, number of lags)."""
    found = np.zeros((len(signal), len(lags)))
    for column, lag in enumerate(lags):
        found[lag:, column] = signal[: len(signal) - lag]
    return found


def _search(
    u: np.ndarray,
    y: np.ndarray,
    sampled: _Sampling,
    start: FlexibleJoint,
    names: tuple[str, ...],
    most_steps: int,
) -> _Search:
    """Find the joint with the least sum of squares near a start, by the Levenberg-Marquardt method."""
    from scipy.optimize import least_squares

    first = np.log([getattr(start, name) for name in names])
    room = np.log(FACTOR)

    def joint_of(logarithms: np.ndarray) -> FlexibleJoint:
        values = np.exp(np.clip(logarithms, first - room, first + room)).tolist()
        return replace(start, **dict(zip(names, values, strict=True)))

    def coefficients(logarithms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return difference_equation(sampled(joint_of(logarithms)))

    def residual(logarithms: np.ndarray) -> np.ndarray:
        return _fitted(u, y, *coefficients(logarithms)).speed - y

    def jacobian(logarithms: np.ndarray) -> np.ndarray:
        b, a = coefficients(logarithms)
        fit = _fitted(u, y, b, a)
        of_b, of_a = (_lagged(_through(a, signal), range(1, LAGS + 1)) for signal in (u, fit.moving))
        columns = []
        for step in STEP * np.eye(len(names)):
            more, less = coefficients(logarithms + step), coefficients(logarithms - step)
            db, da = ((high - low)[1:] / (2 * STEP) for high, low in zip(more, less, strict=True))
            columns.append(of_b @ db - of_a @ da)
        found = np.column_stack(columns)
        return found - fit.basis @ (fit.basis.T @ found)

    derivatives: Any = jacobian  # scipy's type stubs accept only the names of methods
    end = least_squares(
        residual, first, derivatives, method="lm", xtol=1e-10, ftol=1e-12, gtol=1e-14, max_nfev=most_steps
    )
    return _Search(joint_of(end.x), 2 * float(end.cost), end.jac, end.fun + y)


SEGMENTS = 4
"""Number of segments of the record, half overlapping, over which the response is averaged."""

ANTIRESONANCES, RATIOS, RATES = 40, 9, 6
"""Sizes of the grid of starts, over the excited frequencies, and for the inertia ratio over:"""
LEAST_RATIO, MOST_RATIO = 0.1, 10.0

MOST = 3
"""Largest number of starts: those that are best for their antiresonance and better than its neighbours."""

EXCITED = 1e-3
"""Smallest power of the torque, relative to its maximum, for which a frequency counts as excited."""

LIGHTLY = 0.02
"""Damping ratio of the spring at which the search for the damping starts."""


def measured_response(
    tau: np.ndarray, speed: np.ndarray, period: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frequencies (F,) in [rad/s], response (F,) in [rad/s per N m], and torque power (F,).

    The response is averaged over segments.  Frequencies that the torque hardly excites are omitted.
    """
    from scipy.signal import csd, welch

    length = 2 * len(tau) // (SEGMENTS + 1)
    f, power = welch(tau, 1 / period, nperseg=length)
    _, both = csd(tau, speed, 1 / period, nperseg=length)
    there = (power > EXCITED * np.max(power)) & (f > 0) & (f < 0.4 / period)
    return 2 * np.pi * f[there], both[there] / power[there], power[there]


def starts(tau: np.ndarray, speed: np.ndarray, period: float, r: float, damping: bool) -> list[FlexibleJoint]:
    """Return at most `MOST` joints as starts of a search, the most likely one first.

    Args:
        tau: (N,) torque of the motor, in [N m].
        speed: (N,) speed of the motor, in [rad/s].
        period: time between samples, in [s].
        r: angle of the arm for each radian of the motor.
        damping: whether the spring has damping.
    """
    omega, response, power = measured_response(tau, speed, period)
    wz = np.geomspace(omega[0], omega[-1], ANTIRESONANCES)
    m = np.geomspace(LEAST_RATIO, MOST_RATIO, RATIOS)
    p = np.geomspace(omega[0], omega[-1], RATES)
    beside = 1.0 - (omega / wz[:, None, None, None]) ** 2
    m_, p_ = m[:, None, None], p[:, None]
    shapes = beside / (p_ * beside + 1j * omega * (beside + m_) / (1.0 + m_))
    explained = np.einsum("zmpf,f->zmp", shapes.conj(), power * response).real
    gain = explained / np.einsum("zmpf,f->zmp", np.abs(shapes) ** 2, power)
    merit = np.where(gain > 0, gain * explained, -np.inf).reshape(ANTIRESONANCES, -1)
    best = np.argmax(merit, axis=1)
    height = merit[np.arange(ANTIRESONANCES), best]
    walled = np.concatenate([[-np.inf], height, [-np.inf]])
    peaks = np.flatnonzero((height >= walled[:-2]) & (height >= walled[2:]) & np.isfinite(height))
    found = []
    for z in peaks[np.argsort(-height[peaks])][:MOST]:
        ratio, rate = np.unravel_index(best[z], (RATIOS, RATES))
        whole = 1.0 / gain[z, ratio, rate]
        Ja = whole * m[ratio] / (1.0 + m[ratio]) / r**2
        k = wz[z] ** 2 * Ja
        d = 2 * LIGHTLY * np.sqrt(k * Ja) if damping else 0.0
        numbers = {"Jm": whole / (1.0 + m[ratio]), "Ja": Ja, "k": k, "fm": p[rate] * whole, "d": d}
        found.append(FlexibleJoint(r=r, **{name: float(value) for name, value in numbers.items()}))
    return found


def exact(joint: FlexibleJoint, period: float) -> SampledJoint:
    """Return the exact sampled model for motor torques that are held for a period, in [s]."""
    model = velocity_model(joint)
    both = np.zeros((4, 4))
    both[:3, :3], both[:3, 3:] = period * model.A, period * model.B
    held = expm(both)
    return SampledJoint(held[:3, :3], held[:3, 3])


def in_steps(joint: FlexibleJoint, period: float, steps: int) -> SampledJoint:
    """Return the sampled model in the steps of engine and analytic plant, several per period, in [s]."""
    r, k, d, dt = joint.r, joint.k, joint.d, period / steps
    # Torque of spring and damper, from the state before the step and from both accelerations in it:
    # T = before @ x + within @ [qm'', qa'']
    before = np.array([d * r, -d, k])
    within = (dt / 2 * d + dt**2 / 4 * k) * np.array([r, -1.0])
    sides = np.array([r, -1.0])
    inertia = np.diag([joint.Jm + dt * joint.fm, joint.Ja + dt * joint.fa]) + np.outer(sides, within)
    friction = np.array([[joint.fm, 0.0, 0.0], [0.0, joint.fa, 0.0]])
    accelerations = np.linalg.solve(inertia, np.column_stack([-np.outer(sides, before) - friction, [1, 0]]))
    one = np.eye(4)
    one[:2] += dt * accelerations
    one[2] += dt * (r * one[0] - one[1])
    whole = np.linalg.matrix_power(one, steps)
    return SampledJoint(whole[:3, :3], whole[:3, 3])


def difference_equation(model: SampledJoint) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients `[0, b1, b2, b3]` and `[1, a1, a2, a3]` of a sampled joint."""
    A, B = model
    minors = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0] + A[0, 0] * A[2, 2] - A[0, 2] * A[2, 0]
    minors += A[1, 1] * A[2, 2] - A[1, 2] * A[2, 1]
    a = np.array([1.0, -np.trace(A), minors, -np.linalg.det(A)])
    y = np.array([B[0], (A @ B)[0], (A @ A @ B)[0]])  # the first three samples of the impulse response
    b = np.array([0.0, y[0], y[1] + a[1] * y[0], y[2] + a[1] * y[1] + a[2] * y[0]])
    return b, a
