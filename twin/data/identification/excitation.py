"""Excitation motions for identification: Fourier series, optimised within the limits of a robot.

The torques of a motion are `tau = Y pi`.  How accurately they determine the base parameters follows from the
matrix `W`: the rows of Y in this motion, each divided by the torque limit of its drive, restricted to the
columns of the base parameters.  The condition number of W, with columns scaled to norm 1 because their units
differ, bounds the amplification of noise; the determinant of `W^T W` measures how small the deviations of all
parameters are together.  The search maximises the determinant: it is smooth where the condition number is
not, does not depend on the scaling of columns, and rewards large motions, too.  The condition number is
reported afterwards.

The amplitude of each joint is as large as its range or its speed allows, so that the search varies only the
form of the motions.  Violations of the limits of passive joints and torques are penalised.  At the end all
amplitudes are reduced by a common factor until these limits are respected.

Sources: J. Swevers and others, IEEE Transactions on Robotics and Automation 13 (1997), for the series and the
determinant; M. Gautier, W. Khalil, Int. J. of Robotics Research 11 (1992), for the condition number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.atomic_file import atomic_write
from twin.base.errors import IdentificationError
from twin.data.identification.torque_model import BaseParameters, base_parameters
from twin.physics.dynamics.equation_of_motion import inverse_dynamics
from twin.physics.dynamics.regressor import dynamic_parameters, dynamics_regressor
from twin.physics.robot.evaluation import joint_vector
from twin.physics.robot.robot import Robot

AT_REST = 1e-9
"""Tolerance for a joint at rest at the start: its speed relative to its largest coefficient, and its
acceleration relative to that times `w`.
"""


class FourierBasis(NamedTuple):
    """Relative position, speed and acceleration (N, 2 K) at N times, for unit coefficients `(a, b)`."""

    q: Floats
    qd: Floats
    qdd: Floats


def fourier_basis(t: ArrayLike, period: float, harmonics: int) -> FourierBasis:
    """Return the basis of K = `harmonics` at the times t (N,), in [s]."""
    rates = 2 * np.pi / period * np.arange(1.0, harmonics + 1)
    angle = real_array(t, "t")[:, None] * rates
    sine, cosine = np.sin(angle), np.cos(angle)
    return FourierBasis(
        np.hstack([sine / rates, (1 - cosine) / rates]),
        np.hstack([cosine, sine]),
        np.hstack([-rates * sine, rates * cosine]),
    )


def at_rest_basis(harmonics: int) -> Floats:
    """Return orthonormal directions (2 K, 2 K - 2) of the `(a, b)` of motions that begin at rest."""
    order = np.arange(1.0, harmonics + 1)
    none = np.zeros(harmonics)
    conditions = np.array([[*np.ones(harmonics), *none], [*none, *order]])
    return np.linalg.svd(conditions)[2][2:].T


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """Motion of n joints with K harmonics, see the module; a `Trajectory` that holds before and after it.

    Attributes:
        start: (n,) joint angles at the start and the end, in [rad].
        a, b: (n, K) coefficients of the cosines and sines of the speeds, in [rad/s].
        period: period, in [s].
        periods: number of periods.

    Raises:
        ValueError: shapes do not match, a number is not finite, or the motion does not begin at rest.
    """

    start: Floats
    a: Floats
    b: Floats
    period: float
    periods: int = 1

    def __post_init__(self) -> None:
        for name in ("start", "a", "b"):
            array = np.array(real_array(getattr(self, name), name))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        n, K = self.a.shape if self.a.ndim == 2 else (0, 0)
        if self.start.shape != (n,) or self.b.shape != (n, K) or not n * K:
            raise ValueError(
                f"expected start (n,) and a, b (n, K), got {self.start.shape}, {self.a.shape}, {self.b.shape}"
            )
        if not all(np.all(np.isfinite(array)) for array in (self.start, self.a, self.b)):
            raise ValueError("expected finite start, a and b")
        if not 0 < self.period < np.inf or not self.periods >= 1:
            raise ValueError(
                f"expected a period above 0 s and at least 1 period, got {self.period}, {self.periods}"
            )
        most = np.max(np.abs([self.a, self.b]), axis=(0, 2))
        for what, at_start in (
            ("speed", self.a.sum(axis=1)),
            ("acceleration", self.b @ np.arange(1, K + 1)),
        ):
            moving = ~(np.abs(at_start) <= AT_REST * K**2 * most)
            if moving.any():
                raise ValueError(
                    f"joint {int(np.argmax(moving)) + 1} does not begin at rest: its {what} is not 0"
                )

    @property
    def duration(self) -> float:
        """Duration of all periods, in [s]."""
        return self.period * self.periods

    def __call__(self, t: ArrayLike, /) -> tuple[Floats, Floats, Floats]:
        """Return (q, qd, qdd), each (..., n), at the times t (...), in [rad], [rad/s], [rad/s^2]."""
        t = real_array(t, "t")
        basis = fourier_basis(t.ravel(), self.period, self.a.shape[1])
        coefficients = np.hstack([self.a, self.b]).T
        q, qd, qdd = (part @ coefficients for part in basis)
        at_rest = ((t <= 0.0) | (t >= self.duration)).ravel()
        for part in (q, qd, qdd):
            part[at_rest] = 0.0
        shape = (*t.shape, len(self.start))
        return (self.start + q).reshape(shape), qd.reshape(shape), qdd.reshape(shape)


RANGE_SHARE, SPEED_SHARE, TORQUE_SHARE = 0.9, 0.8, 0.75
"""Largest shares that a motion uses: of the distance from the start to the end of a range, of a speed
limit, and of the drive torque at standstill. Feedback and a real arm need the rest.
"""

HALF_RANGE = {"revolute": np.pi, "prismatic": 0.5}
SPEED = {"revolute": 1.0, "prismatic": 0.5}
"""Limits of joints that have none: distance from the start, in [rad] or [m], and speed, in [rad/s] or
[m/s].
"""

NEAR_END = 0.8
"""Largest distance of a default start from the middle of a range, as a share of half the range."""

MOST_HARMONICS = 20
PENALTY = 10.0
SMOOTH = 0.02
"""Speed, relative to the limit, below which the sign in Coulomb friction is smoothed for numerical
derivatives.
"""
STEP = 1e-5


class Use(NamedTuple):
    """Use of a robot's limits by a motion, and its quality for identification.

    Attributes:
        condition: condition number of the base parameters' regressor, rows over torque limits, columns of
            norm 1.
        range: largest distance from the middle of a range over half the range; 1 is the end.
        folding: the same quantity for passive joints; 0 if there are none.
        speed: largest ratio of speed to limit.
        torque: largest ratio of torque to the drive torque at standstill.
    """

    condition: float
    range: float
    folding: float
    speed: float
    torque: float


def optimal_excitation(
    robot: Robot,
    *,
    period: float = 5.0,
    harmonics: int = 5,
    start: ArrayLike | None = None,
    draws: int = 200,
    iterations: int = 60,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> FourierMotion:
    """Search a motion that determines the base parameters of a robot accurately, within its limits.

    The result is reproducible: it depends only on the arguments.

    Args:
        robot: robot as it is mounted, with its active drives (`Robot.with_drives`).
        period: period of the slowest harmonic, in [s], which is the duration of the motion.
        harmonics: number of harmonics, at least 2.
        start: (n,) joint angles at the start and the end, in [rad]; by default 0, or the middle of a range in
            which 0 is near an end or outside.
        draws: number of random motions, the best of which is improved.
        iterations: number of iterations of the improvement, some 0.1 s each for six joints.
        seed: seed of the random motions.
        progress: callback that receives the fraction done.

    Raises:
        IdentificationError: the start is beyond a limit, or the drives cannot hold the arm there.
        RobotError: the masses of the robot's links are not known.
        ValueError: an argument is out of range.

    Example:
        >>> import twin, twin.identification.excitation as excitation
        >>> robot = twin.load("irb140").with_drives("rigid")
        >>> excitation.optimal_excitation(robot, period=4.0, harmonics=3, draws=5, iterations=0).a.shape
        (6, 3)
    """
    if not 2 <= harmonics <= MOST_HARMONICS:
        raise ValueError(f"expected 2 to {MOST_HARMONICS} harmonics, got {harmonics}")
    if not 0 < period < np.inf:
        raise ValueError(f"expected a period above 0 s, got {period}")
    if not (draws >= 1 and iterations >= 0):
        raise ValueError(f"expected draws from 1 and iterations from 0, got {draws} and {iterations}")
    begin = joint_vector(robot, "start", _default_start(robot) if start is None else start)
    search = _Search(robot, begin, period, harmonics)
    search.require_start()
    x = search.best_of(np.random.default_rng(seed).normal(size=(draws, search.size)))
    if iterations:
        x = search.improved(x, iterations, progress)
    return search.motion(x)


def excitation_use(
    robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, base: BaseParameters | None = None
) -> Use:
    """Return how much of the limits a motion uses, and how well it determines the base parameters.

    Args:
        robot: robot with its active drives.
        q: (N, n) joint angles, in [rad].
        qd: (N, n) joint velocities, in [rad/s].
        qdd: (N, n) joint accelerations, in [rad/s^2].
        base: base parameters; computed by default.

    Example:
        >>> import twin, twin.identification.excitation as excitation
        >>> robot = twin.load("irb140").with_drives("rigid")
        >>> samples = twin.sample(excitation.stored_excitation(robot), 0.01)
        >>> round(float(excitation.excitation_use(robot, samples.q, samples.qd, samples.qdd).speed), 3)
        0.8
    """
    base = base_parameters(robot) if base is None else base
    q, qd, qdd = (np.asarray(part, dtype=np.float64) for part in (q, qd, qdd))
    Y = dynamics_regressor(robot, q, qd, qdd)[..., base.columns] * _row_weights(robot)[:, None]
    W = Y.reshape(-1, len(base.columns))
    norms = np.linalg.norm(W, axis=0)
    values = np.linalg.svd(np.linalg.qr(W / np.where(norms > 0, norms, 1.0), mode="r"), compute_uv=False)
    tau = inverse_dynamics(robot, q, qd, qdd)
    condition = float(values[0] / values[-1]) if values[-1] > 0 else np.inf
    angles = _from_middle(q, robot.q_min, robot.q_max)
    folding = _from_middle(robot.passive_angles(q), robot.passive_min, robot.passive_max)
    speed, torque = np.max(np.abs(qd) / robot.qd_max), np.max(np.abs(tau) / robot.drive_torque_max)
    return Use(condition, angles, folding, float(speed), float(torque))


def _default_start(robot: Robot) -> Floats:
    """Return 0 for joints whose range has 0 in its central 80 %, and the middle of the range for others."""
    half = np.array([HALF_RANGE[kind] for kind in robot.joint_kinds])
    low = np.where(np.isfinite(robot.q_min), robot.q_min, np.minimum(-half, robot.q_max - 2 * half))
    high = np.where(np.isfinite(robot.q_max), robot.q_max, np.maximum(half, low + 2 * half))
    return np.where(np.abs(low + high) < NEAR_END * (high - low), 0.0, (low + high) / 2)


def _from_middle(angles: Floats, low: Floats, high: Floats) -> float:
    """Return the largest distance of angles (N, m) from the middle of ranges (m,); 1 is the end."""
    with np.errstate(invalid="ignore"):
        ratio = np.abs(2 * angles - (high + low)) / (high - low)
    return float(np.max(np.where(np.isfinite(high - low), ratio, 0.0), initial=0.0))


def _row_weights(robot: Robot) -> Floats:
    """Return one over the torque of each drive at standstill; 1 where it has no limit."""
    limit = robot.drive_torque_max
    return 1.0 / np.where(np.isfinite(limit), limit, 1.0)


class _Search:
    """Search over motions of a robot; the variables (n (2 K - 2),) determine their forms, not amplitudes."""

    def __init__(self, robot: Robot, start: Floats, period: float, harmonics: int) -> None:
        self.robot, self.start, self.period, self.harmonics = robot, start, period, harmonics
        self.at_rest = at_rest_basis(harmonics)
        self.size = robot.n * self.at_rest.shape[1]
        # Per period of the fastest harmonic, 20 samples for the regressor and 100 for the limits.
        coarse, fine = (np.arange(m * harmonics) * period / (m * harmonics) for m in (20, 100))
        self.coarse_basis, self.fine_basis = (fourier_basis(t, period, harmonics) for t in (coarse, fine))
        self.base = base_parameters(robot)
        parameters = dynamic_parameters(robot)
        self.pi = parameters.values
        self.coulomb = np.array(
            [k for k, column in enumerate(self.base.columns) if parameters.names[column].endswith("Coulomb")],
            dtype=np.intp,
        )
        self.weights = _row_weights(robot)
        kinds = robot.joint_kinds
        half = np.array([HALF_RANGE[kind] for kind in kinds])
        low = np.where(np.isfinite(robot.q_min), robot.q_min, start - half)
        high = np.where(np.isfinite(robot.q_max), robot.q_max, start + half)
        self.ends = RANGE_SHARE * (low - start), RANGE_SHARE * (high - start)
        self.limit = np.where(np.isfinite(robot.qd_max), robot.qd_max, [SPEED[kind] for kind in kinds])
        self.folded_start = robot.passive_angles(start)
        self.folding = (
            RANGE_SHARE * (robot.passive_min - self.folded_start),
            RANGE_SHARE * (robot.passive_max - self.folded_start),
        )

    def require_start(self) -> None:
        """Raise `IdentificationError` if no motion from the start respects the limits."""
        robot, still = self.robot, np.zeros(self.robot.n)
        for names, (low, high) in (
            (robot.joint_names, self.ends),
            ([robot.tree.names[joint] for joint in robot.passive], self.folding),
        ):
            stuck = ~((low < 0) & (high > 0))
            if stuck.any():
                raise IdentificationError(
                    f"the excitation cannot start where {names[int(np.argmax(stuck))]} is at the end of "
                    "its range or beyond it; give another start"
                )
        share = np.abs(inverse_dynamics(robot, self.start, still, still)) / robot.drive_torque_max
        if not np.all(share < TORQUE_SHARE):
            joint = int(np.argmax(share))
            raise IdentificationError(
                f"at the start of the excitation {robot.joint_names[joint]} needs {share[joint]:.0%} of its "
                f"torque to hold the arm; at most {TORQUE_SHARE:.0%} are allowed; give another start"
            )

    def coefficients(self, X: Floats) -> Floats:
        """Return the coefficients (S, 2 K, n) of forms (S, size), as large as ranges and speeds allow."""
        C = self.at_rest @ np.swapaxes(X.reshape(len(X), self.robot.n, -1), 1, 2)
        use = _share(self.fine_basis.q @ C, *self.ends)
        use = np.maximum(use, np.max(np.abs(self.fine_basis.qd @ C), axis=1) / (SPEED_SHARE * self.limit))
        return C / use[:, None, :]

    def beyond(self, C: Floats, tau: Floats) -> tuple[Floats, Floats]:
        """Return how far passive joints (S, m) and torques (S, n) exceed their limits.

        Args:
            C: (S, 2 K, n) coefficients.
            tau: (S, N, n) torques of their motions.
        """
        torque = np.max(np.abs(tau), axis=1) / (TORQUE_SHARE * self.robot.drive_torque_max)
        passive = self.robot.passive_angles(self.start + self.fine_basis.q @ C) - self.folded_start
        return np.maximum(_share(passive, *self.folding) - 1, 0), np.maximum(torque - 1, 0)

    def cost(self, X: Floats) -> Floats:
        """Return the cost of forms (S, size): the mean logarithm of parameter deviations, plus penalties."""
        C = self.coefficients(X)
        q, qd, qdd = (part @ C for part in self.coarse_basis)
        Y = dynamics_regressor(self.robot, self.start + q, qd, qdd)
        folding, torque = self.beyond(C, Y @ self.pi)
        W = Y[..., self.base.columns] * self.weights[:, None]
        smooth = np.abs(np.tanh(qd / (SMOOTH * self.limit)))
        W[..., self.coulomb] *= smooth[..., None]
        W = W.reshape(len(X), -1, len(self.base.columns))
        norms = np.maximum(np.linalg.norm(W, axis=1), 1e-100)
        W /= norms[:, None, :]
        values = np.maximum(np.linalg.eigvalsh(np.swapaxes(W, 1, 2) @ W), 1e-30)
        information = np.mean(np.log(norms), axis=-1) + 0.5 * np.mean(np.log(values), axis=-1)
        return PENALTY * (np.sum(folding**2, axis=-1) + np.sum(torque**2, axis=-1)) - information

    def best_of(self, X: Floats) -> Floats:
        """Return the form of least cost, scaled to norm 1."""
        parts = np.array_split(X, -(-len(X) // 50))  # limits the memory of their regressors
        best = X[int(np.argmin(np.concatenate([self.cost(part) for part in parts])))]
        return best / np.linalg.norm(best)

    def improved(self, x: Floats, iterations: int, progress: Callable[[float], None] | None) -> Floats:
        """Reduce the cost of a form by a quasi-Newton method with a gradient from finite differences."""
        from scipy.optimize import minimize

        done = 0

        def cost_and_gradient(x: Floats) -> tuple[float, Floats]:
            costs = self.cost(x + STEP * np.vstack([np.zeros(self.size), np.eye(self.size)]))
            return float(costs[0]), (costs[1:] - costs[0]) / STEP

        def count(_: Floats) -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done / iterations)

        found = minimize(
            cost_and_gradient, x, jac=True, method="L-BFGS-B", callback=count, options={"maxiter": iterations}
        )
        return found.x

    def motion(self, x: Floats) -> FourierMotion:
        """Return the motion of a form, reduced until passive joints and torques are within limits."""
        C = self.coefficients(x[None])

        def within_limits(factor: float) -> bool:
            q, qd, qdd = (part @ (factor * C) for part in self.fine_basis)
            tau = inverse_dynamics(self.robot, self.start + q, qd, qdd)
            return not any(np.any(part > 0) for part in self.beyond(factor * C, tau))

        low, high = float(within_limits(1.0)), 1.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if within_limits(middle) else (low, middle)
        if low == 0.0:
            what = (
                f"no excitation with a period of {self.period:g} s keeps {TORQUE_SHARE:.0%} of every torque"
            )
            raise IdentificationError(f"{what} limit: give a longer period, another start or less payload")
        a, b = np.split(low * C[0].T, 2, axis=1)
        return FourierMotion(self.start, a, b, self.period)


def _share(displacement: Floats, low: Floats, high: Floats) -> Floats:
    """Return the largest share (S, m) of the distances to the ends (m,) that displacements (S, N, m) use."""
    return np.maximum(np.max(displacement, axis=1) / high, np.min(displacement, axis=1) / low)


NAME = "excitation.toml"


def stored_excitation(robot: Robot) -> FourierMotion | None:
    """Return the motion in `excitation.toml` beside the robot's file; `None` if there is none.

    Raises:
        IdentificationError: the file is invalid, or its motion has another number of joints.

    Example:
        >>> import twin, twin.identification.excitation as excitation
        >>> excitation.stored_excitation(twin.load("irb140")).period
        5.0
    """
    path = None if robot.file is None else robot.file.parent / NAME
    if path is None or not path.is_file():
        return None
    motion = read_excitation(path)
    if len(motion.start) != robot.n:
        raise IdentificationError(
            f"{path}: the motion has {len(motion.start)} joints, but robot {robot.name!r} has {robot.n}"
        )
    return motion


def write_excitation(motion: FourierMotion, path: str | Path) -> None:
    """Write one period of a motion as TOML, with all digits.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> import twin, twin.identification.excitation as excitation
        >>> motion = excitation.stored_excitation(twin.load("irb140"))
        >>> excitation.write_excitation(motion, "motion.toml")
        >>> bool((excitation.read_excitation("motion.toml").a == motion.a).all())
        True
    """
    lines = [
        "# Excitation motion to identify the dynamic parameters of the robot whose file is beside it.",
        "# Speeds are sums of a cos(k w t) + b sin(k w t), k = 1, 2 ..., w = 2 pi / period: a row per joint,",
        "# in rad/s. The period is in s, the start in rad.",
        "",
        f"period = {motion.period!r}",
        f"start = {motion.start.tolist()!r}",
        *(line for name in ("a", "b") for line in (f"{name} = [", *_rows(getattr(motion, name)), "]")),
        "",
    ]
    with atomic_write(path) as draft:
        draft.write_text("\n".join(lines), encoding="utf-8")


def _rows(array: Floats) -> list[str]:
    return [f"    {row!r}," for row in array.tolist()]


def read_excitation(path: str | Path) -> FourierMotion:
    """Read a motion that `write_excitation` wrote.

    Raises:
        IdentificationError: the file is invalid.
        OSError: the file cannot be read.

    Example:
        >>> import twin, twin.identification.excitation as excitation
        >>> excitation.read_excitation(twin.load("irb140").file.with_name("excitation.toml")).a.shape
        (6, 5)
    """
    from urdf.schema import tomllib

    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        arrays = [np.asarray(content[name], dtype=np.float64) for name in ("start", "a", "b")]
        return FourierMotion(*arrays, period=float(content["period"]))
    except KeyError as error:
        raise IdentificationError(f"{path}: {error.args[0]!r} is missing") from error
    except (ValueError, TypeError) as error:
        raise IdentificationError(f"{path}: {error}") from error
