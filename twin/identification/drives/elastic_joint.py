"""The two masses of an elastic joint, its spring and its friction, from torque and speed of its motor.

Norrlöf's experiment: one joint is excited, the others stand still, and the parameters are those with which
the linear model of `twin.dynamics.flexible_joint` comes nearest to the measured speed.  That is a prediction-
error method for an output-error model: noise is added to the output, and has no model of its own, so that
the model's simulation under the torques is its prediction.  If the noise is white, the estimate is the most
likely one, whether or not a control law acted, and the deviations are those of a linearisation about it,

    cov = s^2 (J^T J)^-1,    s^2 = |e|^2 / (N - number of all that was fitted).

What the joint did before the data begin is not known, and the mean values say nothing: three numbers of the
state at the start and an offset are fitted along with the parameters.  They enter linearly, so that for every
set of parameters the best of them is found at once (variable projection; the derivatives are those of
Kaufman), and the search goes over the logarithms of the parameters alone.

It starts from the frequency response, at several frequencies of the antiresonance, for the sum of squares has
false minima: a resonance that is put at the wrong place fits nothing, and no small step makes it fit better.

Sources: Norrlöf 1999, section 3.3.2 and Table 3.1; L. Ljung, "System Identification", 2nd ed. 1999, sections
7.2 and 9.4; L. Kaufman, BIT 15 (1975).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.dynamics.flexible_joint import FlexibleJoint
from twin.errors import IdentificationError
from twin.identification.drives.frequency_start import starts
from twin.identification.drives.sampled_joint import SampledJoint, difference_equation, exact, in_steps

PARAMETERS = ("Jm", "Ja", "fm", "k")
"""What is estimated, in this order; after it `d`, if asked for."""

_Sampling: TypeAlias = Callable[[FlexibleJoint], SampledJoint]

LAGS = 3
LINEAR = LAGS + 1
"""Numbers that are fitted beside the parameters: state at the start, and offset."""

SAMPLES = 50
"""The least that are taken for data."""

STEP = 1e-5
"""By which logarithms of parameters differ for derivatives of the coefficients: right to 1e-10."""

FIRST_STEPS, MOST_STEPS = 8, 60
"""Of a search: from each of the starts, to see which is the best, and from there on to the end."""

FACTOR = 100.0
"""By which a parameter may be other than at the start of the search."""


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """What data tell of an elastic joint; p is 4, or 5 with the spring's damping.

    Attributes:
        joint: the joint that was found.
        names: (p,) of `PARAMETERS`, of a `FlexibleJoint`.
        values: (p,) in the units of a `FlexibleJoint`.
        deviations: (p,) standard deviations, in the same units.
        correlation: (p, p) of the errors.
        noise: standard deviation of what the model leaves of the motor's speed, in [rad/s].
        speed: (N,) the motor's speed by the model, with the offset that was fitted, in [rad/s].
        others: sums of squares, over that of the joint, where searches from other starts were given up.
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
        """Values and deviations (4,) of `J_m, J_a, f_m, k` as Norrlöf's Table 3.1 has them.

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
    """Estimate an elastic joint from a record in which it alone was excited.

    The arm's own friction is taken for 0, as in the source.

    Args:
        tau: (N,) torque of the motor, held from each sample to the next, at the motor, in [N m].
        speed: (N,) measured speed of the motor, at the motor, in [rad/s].
        period: between samples, in [s].
        r: angle of the arm for each radian of the motor, one over the gear ratio.
        steps: engine steps in a period, if the record was made by the engine or the analytic plant, so that
            the model goes in such steps; by default the model is that of continuous time.
        damping: estimate the damping of the spring, too; else it is 0.

    Raises:
        IdentificationError: the record is too short or does not excite the joint, or does not tell some
            parameter: its deviation is above its value.
        ValueError: a shape is another, a value not finite, or the period not above 0.
    """
    u, y = _record(tau, speed, period, r, steps)
    names = (*PARAMETERS, "d") if damping else PARAMETERS
    sampled = _sampling(period, steps)
    begun = [_search(u, y, sampled, start, names, FIRST_STEPS) for start in starts(u, y, period, r, damping)]
    if not begun:
        raise IdentificationError("the speed of the motor does not follow its torque: no joint moves so")
    begun.sort(key=lambda found: found.cost)
    best = _search(u, y, sampled, begun[0].joint, names, MOST_STEPS)
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
            f"the record does not tell {names[worst]} of the elastic joint: its deviation is "
            f"{100 * relative[worst]:.3g} % of {values[worst]:.3g}; it takes a torque that excites the joint "
            "below and above its resonance, stronger or for longer"
        )
    return JointEstimate(
        joint=joint,
        names=names,
        values=values,
        deviations=relative * values,
        correlation=correlation,
        noise=float(np.sqrt(cost / freedom)),
        speed=best.speed,
        others=tuple(found.cost / cost for found in begun[1:]),
    )


def simulated_speed(
    joint: FlexibleJoint, tau: ArrayLike, speed: ArrayLike, period: float, *, steps: int | None = None
) -> np.ndarray:
    """The motor's speed (N,) by a joint under the torques of a record, in [rad/s], say to validate it.

    State at the start and offset are those that come nearest to the record; arguments are those of
    `identify_elastic_joint`.
    """
    u, y = _record(tau, speed, period, joint.r, steps)
    return _fitted(u, y, *difference_equation(_sampling(period, steps)(joint))).speed


@dataclass(frozen=True, eq=False)
class _Search:
    """Where a search ended: joint, sum of squares, derivatives (N, p) by logarithms, and speed (N,)."""

    joint: FlexibleJoint
    cost: float
    jacobian: np.ndarray
    speed: np.ndarray


def _record(
    tau: ArrayLike, speed: ArrayLike, period: float, r: float, steps: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Torque (N,), less its mean, and speed (N,), checked."""
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
    """A model beside a record: its speed (N,), that without the offset, and a basis (N, 4) of the rest."""

    speed: np.ndarray
    moving: np.ndarray
    basis: np.ndarray


def _fitted(u: np.ndarray, y: np.ndarray, b: np.ndarray, a: np.ndarray) -> _Fit:
    """The model's speed with the state at the start and the offset that come nearest to the record."""
    from scipy.signal import lfilter

    pulse = np.zeros(len(u))
    pulse[0] = 1.0
    forced, free = lfilter(b, a, u), _lagged(_through(a, pulse), range(LAGS))
    basis, triangle = np.linalg.qr(np.column_stack([free, np.ones(len(u))]))
    weights = np.linalg.solve(triangle, basis.T @ (y - forced))
    moving = forced + free @ weights[:LAGS]
    return _Fit(moving + weights[LAGS], moving, basis)


def _through(a: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """A signal (N,) through the poles of a difference equation."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], a, signal))


def _lagged(signal: np.ndarray, lags: range) -> np.ndarray:
    """The signal, later by each of the lags: (N, number of lags)."""
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
    """The joint with the least sum of squares near a start, by Levenberg and Marquardt's method."""
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

    derivatives: Any = jacobian  # scipy's own types know of its names alone
    end = least_squares(
        residual, first, derivatives, method="lm", xtol=1e-10, ftol=1e-12, gtol=1e-14, max_nfev=most_steps
    )
    return _Search(joint_of(end.x), 2 * float(end.cost), end.jac, end.fun + y)
