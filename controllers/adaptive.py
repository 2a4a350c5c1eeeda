"""Adaptive control of Slotine and Li: computed torque whose parameters follow the tracking error.

With the tracking error `e = q_ref - q`, the law is

    v = qd_ref + L e,    a = qdd_ref + L ed,    s = v - qd,
    tau = M a + C v + g + A a + F + Y(q, qd, v, a) d + K s,

with the nominal model, whose g includes springs, cylinders and columns, the rotors' inertia A, and the
drives' friction F in the coming step.  The changes d of the dynamic parameters of all links and drives
(`twin.dynamics.dynamic_parameters`, with rotors in joint units) start at 0.  They follow

    dd/dt = G Y^T s_D.

With the errors d~ of the changes, `V = (s^T (M + A) s + d~^T G^-1 d~) / 2` falls by `s^T K s`, because
`dM/dt - 2 C` is skew-symmetric for the Christoffel symbols of `twin.dynamics.regressor`.  So s and e vanish,
while the parameters become true only as far as the motion distinguishes them.

Two additions protect the parameters from what they cannot explain.  The dead zone: below `SMOOTH`, static
friction can hold a joint against any torque up to its level Fs, so that `s_D` is s less the part within
`+-Fs / K`.  The bounds: no mass, rotor or friction falls below zero, and none changes by more than `FARTHEST`
times the size that G expects.  Clipping only lowers V, because G is diagonal.

G is the gain times the squares of the expected changes: `SIZES` for links, shares of the model's values for
rotors and friction.  In steps of a period T, two more limits matter where an inertia is tiny, as in a wrist
without rotors.  `T^2 Y G Y^T` must stay below the inertia Mbar, of which each element of G takes at most
`STEP`; the changes are made before the torque, as in semi-implicit Euler.  With a gain of 100, a light arm
without friction oscillates slowly at rest; with the default of 30 it settles.  And no change may let the
feedback's inertia grow beyond `Mbar / (T L)`.

The payload that it found is that for which the other changes of the links would be the smallest, relative to
`SIZES`.  Changes on which no torque depends do not count.

Sources: J.-J. Slotine, W. Li, "On the adaptive control of robot manipulators", Int. J. Robotics Research
6(3), 1987, 49-59; the dead zone: J.-J. Slotine, J. Coetsee, "Adaptive sliding controller synthesis for
non-linear systems", Int. J. of Control 43 (1986).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.gains import AdaptiveGains, diagonal_inertia, natural_frequencies, with_chosen
from twin.physics.control.control_law import ControlLaw, Model, compiled_law
from twin.physics.dynamics.regressor import dynamics_regressor, regressor
from twin.physics.robot.drives.drive_step import add_drive_torque
from twin.physics.robot.drives.friction import COULOMB, EXCESS, VISCOUS
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, State

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

SEEN = 1e-9
"""Smallest singular value of directions that the torque depends on, relative to the largest."""

PAYLOAD = 4
"""Numbers of the payload that was found: mass in [kg] and first moments in the flange's link in [kg m]."""

STEP = 0.1
"""Largest element of G as a share of its limit of stability."""


@compiled_law
def adaptive(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; see `twin.control.control_law`.

    The parameters are L, K, the gain, and tables for the dynamic parameters: G, the lower and the upper
    bounds of the changes, and `payload_matrix`.  The memory is the torque of the changes, the payload, and
    the changes.
    """
    n, links = len(state.q), model.inertias.size
    L, K, added, payload, changes = parameters[0], parameters[1], memory[0], memory[1], memory[2:].reshape(-1)
    tables = parameters[3:].reshape((3 + PAYLOAD, len(changes)))
    p = links + 4 * n
    G, least, most = tables[0, :p], tables[1, :p], tables[2, :p]
    v = reference.qd + L * (reference.q - state.q)
    a = reference.qdd + L * (reference.qd - state.qd)
    s = v - state.qd
    Y = np.empty((n, p))
    regressor(model.tree, model.drives, model.gravity, state.q, state.qd, v, a, SMOOTH, Y)

    tau, inertias = K * s, model.inertias.reshape(-1)
    for i in range(n):
        if abs(state.qd[i]) < SMOOTH and abs(v[i]) < SMOOTH:  # static friction may hold the joint
            dead = (model.drives.friction[COULOMB, i] + model.drives.friction[EXCESS, i]) / K[i]
            s[i] -= min(max(s[i], -dead), dead)
    slope = np.zeros(p)
    for i in range(n):
        slope += Y[i] * s[i]
    changed = changes[:p]
    changed[:] = np.minimum(np.maximum(changed + model.period * G * slope, least), most)
    nominal = np.zeros(p)
    nominal[:links] = inertias
    added[:] = Y @ changed
    beside = np.empty(n)  # springs, cylinders and columns: what remains of links without masses
    model.bias(state.q, state.qd, np.zeros_like(model.inertias), model.gravity, beside)
    tau += Y @ nominal + beside + added
    add_drive_torque(model.drives, state.qd, a, model.period, tau, tau)
    rows = min(n, PAYLOAD)
    payload[:rows] = tables[3 : 3 + rows] @ changes
    return tau


class Adaptive(ControlLaw):
    """Computed torque that adapts the parameters of links, rotors and friction to the tracking error."""

    name = "adaptive"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        L: ArrayLike | None = None, K: ArrayLike | None = None, gain: ArrayLike = 30.0,
    ) -> None:  # fmt: skip
        """Derive the gains from the bandwidth, except for those that are given.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: omega, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            L: rate at which the error vanishes along s = 0, scalar or (n,), in [1/s]; by default omega.
            K: gain of s, scalar or (n,), in [N m s/rad]; by default omega times the inertia.
            gain: gain of the adaptation, one number, in [1/J]; 0 for none.

        Raises:
            RobotError: the masses of the links are unknown.
            ValueError: a gain is negative or no number, or the gains of the adaptation differ.
        """
        robot.require_inertia()
        omega = natural_frequencies(bandwidth, robot.n)
        derived = AdaptiveGains(omega, omega * diagonal_inertia(robot), np.full(robot.n, 30.0))
        gains = with_chosen(derived, L=L, K=K, gain=gain)
        if not (np.all(gains.L > 0) and np.all(gains.K > 0)):
            raise ValueError(f"expected L and K above 0, got {gains.L} and {gains.K}")
        if not (np.all(gains.gain == gains.gain[0]) and gains.gain[0] >= 0):
            raise ValueError(f"expected one gain of 0 or more, got {gain}")
        known, sizes = parameters_and_sizes(robot)
        # A rate beyond that of the samples leads to divergence, which is a result of the run.
        Y, Y_inertia = sampled_regressors(robot, np.minimum(gains.L, 1.0 / period))
        inertia, links = gains.K / gains.L, Y.shape[-1]
        with np.errstate(divide="ignore"):
            stable = STEP * np.min(inertia[:, None] / (period * np.max(np.abs(Y), axis=0)) ** 2, axis=0)
            farthest = np.min((inertia / (period * gains.L))[:, None] / np.max(Y_inertia, axis=0), axis=0)
        G, most = gains.gain[0] * sizes**2, FARTHEST * sizes
        G[:links], most[:links] = np.minimum(G[:links], stable), np.minimum(most[:links], farthest)
        positive = (np.arange(len(known)) >= links) | (np.arange(len(known)) % 10 == 0)
        rows = -(-len(known) // robot.n)
        tables = np.zeros((3 + PAYLOAD, rows * robot.n))
        least = np.where(positive, np.maximum(-known, -most), -most)
        tables[:3, : len(known)] = G, least, most
        tables[3:, :links] = payload_matrix(robot, Y.reshape(-1, links), sizes[:links])
        super().__init__(
            robot, adaptive, (*gains, *tables.reshape(-1, robot.n)),
            memory=2 + rows, period=period, signals={"adaptation": 0, "payload": 1},
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
    def payload(self) -> NDArray:
        """Payload (4,) beside the model's: its mass, in [kg], and its first moments, in [kg m].

        The moments are about the frame of the link with the flange, in its axes.
        """
        tables = self.parameters[3:].reshape(3 + PAYLOAD, -1)
        return tables[3:, : len(self.changes)] @ self.changes

    @property
    def changes(self) -> NDArray:
        """Changes (p,) of the dynamic parameters, ten for each link and four for each drive."""
        return self.memory[2:].reshape(-1)[: 10 * self.robot.tree.n + 4 * self.robot.n]


def parameters_and_sizes(robot: Robot) -> tuple[NDArray, NDArray]:
    """Return the values (p,) of the dynamic parameters in a model, and the sizes (p,) of expected changes."""
    links = robot.inertias
    of_links = np.broadcast_to(np.repeat(SIZES, (1, 3, 6)), links.shape)
    drives = robot.drive_model
    of_drives = np.zeros((robot.n, 4))  # rotor in joint units, viscous, Coulomb, offset
    of_drives[:, 0], of_drives[:, 1] = np.diagonal(drives.inertia), drives.friction[VISCOUS]
    of_drives[:, 2] = drives.friction[COULOMB]
    shares = np.array([ROTOR_SHARE, FRICTION_SHARE, FRICTION_SHARE, 0.0])
    values = np.concatenate([links.ravel(), of_drives.ravel()])
    return values, np.concatenate([of_links.ravel(), (shares * of_drives).ravel()])


def sampled_regressors(robot: Robot, L: NDArray) -> tuple[NDArray, NDArray]:
    """Return the columns of the links in the regressor, at random states of up to half the joint speeds.

    Args:
        robot: a robot.
        L: (n,) rates, whose products with the speeds are the accelerations, in [1/s].

    Returns:
        `STATES` matrices (n, links), and the magnitudes (n, links) of those whose row i belongs to a unit
        acceleration of joint i alone.
    """
    n, arm = robot.n, robot.arm
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (3, STATES, n))
    speed = 0.5 * np.where(np.isfinite(robot.qd_max), robot.qd_max, 1.0)
    q = np.clip(np.pi * draws[0], robot.q_min, robot.q_max)
    Y = dynamics_regressor(arm, q, speed * draws[1], L * speed * draws[2])
    still = np.zeros((STATES, 1, n))
    Y_inertia = dynamics_regressor(arm, q[:, None], still, np.eye(n))
    Y_inertia -= dynamics_regressor(arm, q[:, None], still, still)
    return Y, np.abs(np.einsum("kiij->kij", Y_inertia))


def payload_matrix(robot: Robot, Y: NDArray, sizes: NDArray) -> NDArray:
    """Return the matrix (4, links) from changes of the links to the mass and first moments of a payload.

    Args:
        robot: a robot; the payload is fixed to the link with its flange.
        Y: (N, links) rows of the regressor, which span the changes that matter for the torque.
        sizes: (links,) sizes of expected changes.
    """
    _, values, rows = np.linalg.svd(Y * sizes, full_matrices=False)
    seen = rows[values > SEEN * values[0]]
    flange = slice(10 * robot.tree.flange_joint, 10 * robot.tree.flange_joint + 10)
    of_payload = sizes[flange, None] * (np.linalg.pinv(seen[:, flange]) @ seen)
    return of_payload[:PAYLOAD] / sizes
