"""Adaptive control of Slotine and Li: computed torque whose parameters follow the tracking error.

With the tracking error `e = q_ref - q`, the law is

    v = qd_ref + L e,    a = qdd_ref + L ed,    s = v - qd,
    tau = M a + C v + g + A a + F(v) + Y(q, qd, v, a) d + K s,

with the nominal model, the rotors' inertia A and the drives' friction F, and the changes d of the dynamic
parameters of all links and drives (`twin.dynamics.dynamic_parameters`, with rotors in joint units), which
start at 0.  They follow

    dd/dt = G Y^T s_D.

With the true parameters, `V = (s^T (M + A) s + d~^T G^-1 d~) / 2` falls by `s^T K s`, because `dM/dt - 2 C` is
skew-symmetric for the Christoffel symbols of `twin.dynamics.regressor`.  So s and e vanish, while the
parameters become true only as far as the motion distinguishes them.

Two additions protect the parameters from what they cannot explain.  The dead zone: below `SMOOTH`, static
friction can hold a joint against any torque up to its level Fs, so that `s_D` is s less the part within
`+-Fs / K`.  The bounds: no mass, rotor or friction falls below zero, and none changes by more than `FARTHEST`
times the size that G expects.  Clipping only lowers V, because G is diagonal.

G is the gain times the squares of the expected changes: `SIZES` for links, shares of the model's values for
rotors and friction.  In steps of a period T, adaptation is stable as long as `T Y G Y^T` stays below K.
Therefore each element of G is at most `STEP` of that, for the columns of Y at typical speeds and
accelerations.  Only wrists without rotors, whose inertia is tiny, need this.

Sources: J.-J. Slotine, W. Li, "On the adaptive control of robot manipulators", Int. J. Robotics Research 6(3),
1987, 49-59; the dead zone: J.-J. Slotine, J. Coetsee, "Adaptive sliding controller synthesis for non-linear
systems", Int. J. of Control 43 (1986).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.gains import AdaptiveGains, diagonal_inertia, natural_frequencies, with_chosen
from twin.control.control_law import ControlLaw, Model, compiled_law
from twin.dynamics.regressor import regressor
from twin.robot.drives.drive_step import DriveModel, add_drive_torque
from twin.robot.drives.friction import COULOMB, EXCESS, VISCOUS
from twin.robot.robot import Robot
from twin.trajectories.sampling import Reference, State

SIZES = (3.0, 0.3, 0.03)
"""Expected changes of a link: mass in [kg], first moments in [kg m], moments of inertia in [kg m^2]."""

ROTOR_SHARE, FRICTION_SHARE = 0.3, 0.5
"""Expected changes of rotors and friction, as shares of their values in the model."""

FARTHEST = 5.0
"""Largest change of a parameter, as a multiple of the expected one."""

SMOOTH = 0.02
"""Speed below which Coulomb friction is proportional to the speed, in [rad/s] or [m/s]."""


STATES = 50
"""Number of random states at which the columns of the regressor are sampled."""

STEP = 0.1
"""Largest element of G as a share of its limit of stability."""


@compiled_law
def adaptive(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; see `twin.control.control_law`.

    The parameters are L, K, the gain, and three tables for the dynamic parameters: G, the lower and the
    upper bounds of the changes.  The memory is the torque of the changes, followed by the changes.
    """
    n, links = len(state.q), model.inertias.size
    rows = len(memory) - 1
    L, K, added, changes = parameters[0], parameters[1], memory[0], memory[1:].reshape(-1)
    G, least, most = parameters[3:].reshape((3, rows * n))
    v = reference.qd + L * (reference.q - state.q)
    a = reference.qdd + L * (reference.qd - state.qd)
    s = v - state.qd
    Y = np.empty((n, links + 4 * n))
    regressor(model.tree, model.drives, model.gravity, state.q, state.qd, v, a, SMOOTH, Y)

    tau, inertias = K * s, model.inertias.reshape(-1)
    for i in range(n):
        if abs(state.qd[i]) < SMOOTH and abs(v[i]) < SMOOTH:  # static friction may hold the joint
            dead = (model.drives.friction[COULOMB, i] + model.drives.friction[EXCESS, i]) / K[i]
            s[i] -= min(max(s[i], -dead), dead)
    for j in range(Y.shape[1]):
        slope = 0.0
        for i in range(n):
            slope += Y[i, j] * s[i]
        changes[j] = min(max(changes[j] + model.period * G[j] * slope, least[j]), most[j])
    for i in range(n):
        added[i] = 0.0
        for j in range(links):
            tau[i] += Y[i, j] * inertias[j]
        for j in range(Y.shape[1]):
            added[i] += Y[i, j] * changes[j]
        tau[i] += added[i]
    add_drive_torque(model.drives, v, a, model.period, tau)
    return tau


class Adaptive(ControlLaw):
    """Computed torque that adapts the parameters of links, rotors and friction to the tracking error."""

    name = "adaptive"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        L: ArrayLike | None = None, K: ArrayLike | None = None, gain: ArrayLike = 100.0,
    ) -> None:  # fmt: skip
        """Derive the gains from the bandwidth, except for those that are given.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: omega, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            L: rate at which the error vanishes along s = 0, scalar or (n,), in [1/s]; by default omega.
            K: gain of s, scalar or (n,), in [N m s/rad]; by default omega times the inertia.
            gain: gain of the adaptation, one number, in [1/J s]; 0 for none.

        Raises:
            RobotError: the masses of the links are unknown.
            ValueError: a gain is negative or no number, or the gains of the adaptation differ.
        """
        robot.require_inertia()
        omega = natural_frequencies(bandwidth, robot.n)
        derived = AdaptiveGains(omega, omega * diagonal_inertia(robot), np.full(robot.n, 100.0))
        gains = with_chosen(derived, L=L, K=K, gain=gain)
        if not (np.all(gains.K > 0) and np.all(gains.gain == gains.gain[0]) and gains.gain[0] >= 0):
            raise ValueError(f"expected K above 0 and one gain of 0 or more, got K {gains.K}, gain {gain}")
        known, sizes = parameters_and_sizes(robot)
        inertia = gains.K / gains.L
        columns, inertia_columns = largest_columns(robot, gains.L)
        with np.errstate(divide="ignore"):
            stable = STEP * np.min(inertia[:, None] / (period * columns) ** 2, axis=0)
            farthest = np.min((inertia / (period * gains.L))[:, None] / inertia_columns, axis=0)
        G = np.minimum(gains.gain[0] * sizes**2, stable)
        farthest = np.minimum(FARTHEST * sizes, farthest)
        positive = np.ones(len(known), dtype=bool)
        positive[: 10 * robot.tree.n] = np.arange(10 * robot.tree.n) % 10 == 0
        least = np.where(positive, np.maximum(-known, -farthest), -farthest)
        rows = -(-len(known) // robot.n)
        tables = np.zeros((3, rows * robot.n))
        tables[:, : len(known)] = G, least, farthest
        super().__init__(
            robot, adaptive, (*gains, *tables.reshape(-1, robot.n)),
            memory=1 + rows, period=period, signals={"adaptation": 0},
        )  # fmt: skip

    @property
    def gains(self) -> AdaptiveGains:
        """Gains L, K and that of the adaptation."""
        return AdaptiveGains(*self.parameters[:3])

    @property
    def rows(self) -> dict[str, NDArray]:
        """Gains (n,) by name, without the tables of the dynamic parameters."""
        return self.gains._asdict()

    @property
    def changes(self) -> NDArray:
        """Changes (p,) of the dynamic parameters, ten for each link and four for each drive."""
        return self.memory[1:].reshape(-1)[: 10 * self.robot.tree.n + 4 * self.robot.n]


def parameters_and_sizes(robot: Robot) -> tuple[NDArray, NDArray]:
    """Return the values (p,) of the dynamic parameters in a model, and the sizes (p,) of expected changes."""
    links = robot.inertias
    of_links = np.broadcast_to(np.repeat(SIZES, (1, 3, 6)), links.shape)
    drives = DriveModel.of(robot.active_drives, robot.n)
    of_drives = np.zeros((robot.n, 4))  # rotor in joint units, viscous, Coulomb, offset
    of_drives[:, 0], of_drives[:, 1] = np.diagonal(drives.inertia), drives.friction[VISCOUS]
    of_drives[:, 2] = drives.friction[COULOMB]
    shares = np.array([ROTOR_SHARE, FRICTION_SHARE, FRICTION_SHARE, 0.0])
    values = np.concatenate([links.ravel(), of_drives.ravel()])
    return values, np.concatenate([of_links.ravel(), (shares * of_drives).ravel()])


def largest_columns(robot: Robot, L: NDArray) -> tuple[NDArray, NDArray]:
    """Return the largest magnitudes in the regressor over random states of up to half the joint speeds.

    Args:
        robot: a robot.
        L: (n,) rates, whose products with the speeds are the accelerations, in [1/s].

    Returns:
        All columns (n, p), and those per acceleration of the row's own joint alone (n, p).
    """
    rng, n, model = np.random.default_rng(0), robot.n, Model.of(robot, 1e-3)
    speed = 0.5 * np.where(np.isfinite(robot.qd_max), robot.qd_max, 1.0)
    largest, Y = np.zeros((2, n, 10 * robot.tree.n + 4 * n)), np.empty((n, 10 * robot.tree.n + 4 * n))
    still = np.zeros(n)
    for draw in rng.uniform(-1.0, 1.0, (STATES, 3, n)):
        q, qd, a = np.clip(np.pi * draw[0], robot.q_min, robot.q_max), speed * draw[1], L * speed * draw[2]
        regressor(model.tree, model.drives, model.gravity, q, qd, qd, a, SMOOTH, Y)
        largest[0] = np.maximum(largest[0], np.abs(Y))
        for i in range(n):
            regressor(model.tree, model.drives, 0 * model.gravity, q, still, still, np.eye(n)[i], SMOOTH, Y)
            largest[1, i] = np.maximum(largest[1, i], np.abs(Y[i]))
    return largest[0], largest[1]
