"""Force laws: how an arm pushes on a surface, and how it yields when it is pushed.

All three follow the path that the tool has in the joints' reference.  With the tool's Jacobian J, its error e
(position, and rotation vector of the orientation), its twist V and the measured wrench F of the environment,

Impedance: the tool behaves as a mass on springs, without a force sensor,

    tau = id(a) + J^T (D (V_ref - V) + K e - n F_d),    a: Vd = Vd_ref,

so that `Lambda (Vd - Vd_ref) = D (V_ref - V) + K e - n F_d + F` with the arm's inertia Lambda at the tool.

Admittance: an outer loop around a position loop moves the reference by x, as a client of EGM can do it,

    Md xdd + Dd xd + Kd x = F - n F_d,    tau = id(qdd_ref + Kv ed + Kp e_q) - c J^T F,

where q_ref has moved by the joint angles that move the tool by x, and c is the share of the measured wrench
that the position loop carries at once (a servo loop with an integral carries all of it after a time).

Hybrid: position control along the surface, and force control across it,

    tau = id(a) - J^T F,    a: Vd = Vd_ref + 2 omega (V_ref - V) + omega^2 e  along the surface,
                               n.Vd = -omega_f^2 (F_d + Ki int(F_d - F_n) - F_n) / k - 2 omega_f n.V.

`id(a)` is the motors' torque for an acceleration (`twin.control.control_law.motor_torque`), n the outward
normal of the surface at the tool, F_d the desired force, and k the surface's stiffness.  A force is desired
only where the *reference* is inside the surface: the reference decides when the tool presses, and the law how
hard.  Without a surface, admittance yields to pushes, and hybrid is position control of the tool.

Accelerations of the tool become those of the joints by `qdd = qdd_0 + J^+ (Vd - Jd qd - J qdd_0)`, with the
acceleration qdd_0 of computed torque.  J^+ is the inverse of J with the singular values s inverted to
`s / max(s, SINGULAR)^2`: it is exact away from singular poses, and in a direction that the tool loses there,
joints are under computed torque.  With fewer than six joints, it is the inverse by least squares.

The damping of the impedance follows by double diagonalisation: with `M = L L^T` and `K_q = J^T K J`,
`D_q = 2 zeta L (L^-1 K_q L^-T)^(1/2) L^T` gives each mode the damping ratio zeta.  For six joints this is the
D of K and Lambda.

Drives stick: a joint at rest may hold any torque up to its static friction, which no law here sees.  Normals
are those at the tool's place; the curvature of the surface is not anticipated.

Sources: N. Hogan, "Impedance control", J. of Dynamic Systems, Measurement, and Control 107 (1985), 1-24; the
damping: A. Albu-Schaeffer, C. Ott, U. Frese, G. Hirzinger, "Cartesian impedance control of redundant robots:
recent results with the DLR-light-weight-arms", ICRA 2003, 3704-3709; admittance and hybrid control: B.
Siciliano, L. Sciavicco, L. Villani, G. Oriolo, "Robotics: Modelling, Planning and Control" (2009), chapter 9.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import ArrayLike, NDArray

from controllers.gains import natural_frequencies
from twin.base.arrays import real_array
from twin.physics.control.control_law import ControlLaw, Law, Model, compiled_law, load_memory, motor_torque
from twin.physics.dynamics.environment import COLUMNS, STIFFNESS, TIP, signed_distance
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, State

SINGULAR = 0.02
"""Singular value of J, in [m] and [1], below which a direction of the tool is left to the joints."""
SURFACE, FORCE = 16, 16 + COLUMNS
"""Places among the numbers of a law, behind Kp and Kv and the tool's pose: the surface, and F_d."""
SPRING = (2000.0, 200.0)
"""Default stiffness along and about the axes, in [N/m, N m/rad], if inertia and period allow."""
STIFFEST = 0.125
"""Largest `(omega T)^2` of an oscillation of the arm on the default springs along axes, and about axes."""
STATES = 50
"""Number of random poses at which it is computed."""


class ToolMotion(NamedTuple):
    """Tool of an arm and its reference.

    Attributes:
        T_ref: (4, 4) pose of the reference.
        J, inverse: (6, n) Jacobian J and (n, 6) its inverse J^+.
        error, V, V_ref: (6,) error, twist, and twist of the reference.
        Vd_ref, drift: (6,) acceleration of the reference, and Jd qd of the tool.
        qdd: (n,) acceleration qdd_0 of computed torque.
        normal: (6,) outward normal of the surface, and zeros; 0 unless the reference is inside the surface.
        wrench: (6,) measured wrench; 0 without one.
        numbers: F_d and the other numbers of the law.
    """

    T_ref: NDArray
    J: NDArray
    inverse: NDArray
    error: NDArray
    V: NDArray
    V_ref: NDArray
    Vd_ref: NDArray
    drift: NDArray
    qdd: NDArray
    normal: NDArray
    wrench: NDArray
    numbers: NDArray


@register_jitable
def damped_inverse(J: NDArray) -> NDArray:
    """Return J^+ (n, 6), see the module."""
    U, s, V_T = np.linalg.svd(J, False)
    return (V_T.T * (s / np.maximum(s, SINGULAR) ** 2)) @ U.T


@register_jitable
def pose_difference(T: NDArray, T_from: NDArray) -> NDArray:
    """Return position and rotation vector (6,) from one pose (4, 4) to another; 0 for half a turn."""
    d, R = np.empty(6), T[:3, :3].copy() @ T_from[:3, :3].copy().T
    d[:3] = T[:3, 3] - T_from[:3, 3]
    d[3], d[4], d[5] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    sine = 0.5 * np.sqrt(d[3] ** 2 + d[4] ** 2 + d[5] ** 2)
    angle = np.arctan2(sine, 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0))
    d[3:] *= 0.5 * (angle / sine if sine > 1e-12 else 1.0)
    return d


@register_jitable
def tool_at(model: Model, q: NDArray, qd: NDArray, parameters: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return the pose (4, 4) of the tool, J (6, n) and Jd qd (6,); the third parameters are its numbers."""
    tool, T = parameters[2:].reshape(-1)[:SURFACE].copy().reshape((4, 4)), np.empty((4, 4))
    J, Jd = np.empty((6, len(q))), np.empty((6, len(q)))
    model.tool_pose(q, tool, T)
    model.jacobian(q, tool, J)
    model.jacobian_rate(q, qd, tool, Jd)
    return T, J, Jd @ qd


@register_jitable
def tool_motion(model: Model, state: State, reference: Reference, parameters: NDArray) -> ToolMotion:
    """Return the motion of tool and reference; the first parameters are Kp, Kv, tool and surface."""
    T, J, drift = tool_at(model, state.q, state.qd, parameters)
    T_ref, J_ref, drift_ref = tool_at(model, reference.q, reference.qd, parameters)
    surface, normal, n_ref = parameters[2:].reshape(-1)[SURFACE:FORCE].copy(), np.zeros(6), np.empty(3)
    if surface[STIFFNESS] > 0.0 and signed_distance(surface, T_ref[:3, 3].copy(), n_ref) < surface[TIP]:
        signed_distance(surface, T[:3, 3].copy(), normal[:3])
    V, V_ref, Vd_ref = J @ state.qd, J_ref @ reference.qd, J_ref @ reference.qdd + drift_ref
    qdd = reference.qdd + parameters[1] * (reference.qd - state.qd) + parameters[0] * (reference.q - state.q)
    F = state.wrench if len(state.wrench) == 6 else np.zeros(6)
    return ToolMotion(
        T_ref, J, damped_inverse(J), pose_difference(T_ref, T), V, V_ref, Vd_ref, drift, qdd, normal, F,
        parameters[2:].reshape(-1)[FORCE:],
    )  # fmt: skip


@compiled_law
def impedance(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; the numbers are F_d, zeta, K and D."""
    tool, tau = tool_motion(model, state, reference, parameters), np.empty(len(state.q))
    force, zeta, rate = tool.numbers[0], tool.numbers[1], tool.V_ref - tool.V
    K, D = tool.numbers[2:38].copy().reshape((6, 6)), tool.numbers[38:74].copy().reshape((6, 6))
    qdd = tool.qdd + tool.inverse @ (tool.Vd_ref - tool.drift - tool.J @ tool.qdd)
    motor_torque(model, state.q, state.qd, qdd, memory, tau)
    tau += tool.J.T @ (K @ tool.error + D @ rate - force * tool.normal)
    if zeta > 0.0:
        M = np.empty((len(tau), len(tau)))
        model.arm_inertia(state.q, model.inertias, M)
        L = np.linalg.cholesky(M + model.drives.inertia)
        S = np.linalg.solve(L, tool.J.T.copy())
        squares, Q = np.linalg.eigh(S @ K @ S.T)
        modes = L @ Q
        tau += 2.0 * zeta * (modes * np.sqrt(np.maximum(squares, 0.0))) @ (modes.T @ (tool.inverse @ rate))
    return tau


@compiled_law
def admittance(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; the numbers are F_d, c, Md, Dd and Kd.

    The memory is the offset of the joints and its speed, x and xd, and the load of the drives.
    """
    tool, T, tau = tool_motion(model, state, reference, parameters), model.period, np.empty(len(state.q))
    rows = 2 - (-12 // len(tau))
    offset, speed, x, load = memory[0], memory[1], memory[2:rows].reshape(-1)[:12], memory[rows:]
    qdd = tool.qdd + parameters[0] * offset + parameters[1] * speed - speed / T
    gains = tool.numbers[2:110].copy().reshape((3, 6, 6))
    spring = gains[2] @ x[:6]
    spring -= tool.normal * (tool.normal @ spring)  # across the surface, the force alone decides
    wanting = tool.wrench - tool.numbers[0] * tool.normal - gains[1] @ x[6:] - spring
    x[6:] += T * np.linalg.solve(gains[0], wanting)
    x[:6] += T * x[6:]
    T_moved, J_moved, _ = tool_at(model, reference.q + offset, speed, parameters)
    change = damped_inverse(J_moved) @ (x[:6] - pose_difference(T_moved, tool.T_ref))
    offset += change
    speed[:] = change / T
    motor_torque(model, state.q, state.qd, qdd + speed / T, load, tau)
    return tau - tool.numbers[1] * (tool.J.T @ tool.wrench)


@compiled_law
def hybrid(state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model) -> NDArray:
    """Return the torque; the numbers are F_d, omega, omega_f and Ki.

    The memory is the integral of the force's error, and the load of the drives.
    """
    tool, tau, integral = tool_motion(model, state, reference, parameters), np.empty(len(state.q)), memory[0]
    omega, omega_f, n = tool.numbers[1], tool.numbers[2], tool.normal
    Vd = tool.Vd_ref + 2.0 * omega * (tool.V_ref - tool.V) + omega**2 * tool.error
    if n @ n > 0.0:
        missing = tool.numbers[0] - n @ tool.wrench
        integral += tool.numbers[3] * model.period * missing
        pull = omega_f**2 * (missing + integral[0]) / parameters[2:].reshape(-1)[SURFACE + STIFFNESS]
        Vd -= n * (n @ Vd + pull + 2.0 * omega_f * (n @ tool.V))
    else:
        integral[:] = 0.0
    qdd = tool.qdd + tool.inverse @ (Vd - tool.drift - tool.J @ tool.qdd)
    motor_torque(model, state.q, state.qd, qdd, memory[1:], tau)
    return tau - tool.J.T @ tool.wrench


class ForceLaw(ControlLaw):
    """Force law with its numbers.

    Args:
        robot: the controller's model of the robot, drives included.
        law: the function.
        bandwidth: omega of the joints, scalar or (n,), in [rad/s].
        period: time between two calls, in [s].
        T_flange_tool: (4, 4) pose of the tool on the flange; by default the flange itself.
        surface: (21,) surface, a row of `twin.dynamics.Environment`; by default none.
        memory: rows of the memory, without the load of the drives.
        numbers: numbers of the law by name, in their order, the first one F_d.
        matrices: its matrices (6, 6) by name, behind them.
    """

    def __init__(
        self, robot: Robot, law: Law, bandwidth: ArrayLike, period: float, T_flange_tool: ArrayLike | None,
        surface: ArrayLike | None, memory: int, numbers: dict[str, float], **matrices: NDArray,
    ) -> None:  # fmt: skip
        omega = natural_frequencies(bandwidth, robot.n)
        for name, value in numbers.items():
            number = real_array(value, name)
            if number.ndim > 0 or not 0 <= number < np.inf:
                raise ValueError(f"expected {name} of 0 or more, got {value}")
        tool = np.eye(4) if T_flange_tool is None else numbers_of(T_flange_tool, "T_flange_tool", (4, 4))
        row = np.zeros(COLUMNS) if surface is None else numbers_of(surface, "surface", (COLUMNS,))
        flat = np.concatenate([tool.ravel(), row, list(numbers.values()), np.ravel(list(matrices.values()))])
        table = np.zeros((-(-len(flat) // robot.n), robot.n))
        table.flat[: len(flat)] = flat
        start = np.vstack([np.zeros((memory, robot.n)), load_memory(robot)])
        super().__init__(robot, law, (omega**2, 2 * omega, *table), memory=start, period=period)
        diagonals = {name: np.diag(matrix) for name, matrix in matrices.items() if robot.n == 6}
        self._rows = {name: np.full(robot.n, value) for name, value in numbers.items()} | diagonals

    @property
    def rows(self) -> dict[str, NDArray]:
        """Numbers, repeated for each joint, and diagonals of the matrices for six joints, by name."""
        return self._rows


def numbers_of(value: ArrayLike, name: str, *shapes: tuple[int, ...]) -> NDArray:
    """Return an array of finite numbers of one of some shapes; raise `ValueError` for another."""
    array = real_array(value, name)
    if array.shape not in shapes or not np.all(np.isfinite(array)):
        known = " or ".join(map(str, shapes))
        raise ValueError(f"expected {name} of finite numbers in the shape {known}, got {array.tolist()}")
    return array


def gain_matrix(value: ArrayLike, name: str) -> NDArray:
    """Return a symmetric, positive semidefinite matrix (6, 6), from itself, its diagonal, or two numbers."""
    array = numbers_of(value, name, (2,), (6,), (6, 6))
    matrix = array if array.ndim == 2 else np.diag(np.repeat(array, 6 // len(array)))
    least = np.min(np.linalg.eigvalsh(matrix))
    if not (np.array_equal(matrix, matrix.T) and least >= -1e-12 * np.max(matrix)):
        raise ValueError(f"expected {name} to be symmetric and positive semidefinite, got {array.tolist()}")
    return matrix


def soft_springs(robot: Robot, T_flange_tool: ArrayLike | None, period: float) -> NDArray:
    """Return the default stiffness (2,), which the arm can follow in periods of this length."""
    # Imported here, since kernels of the compiled laws have these names.
    from twin.physics.dynamics.equation_of_motion import mass_matrix
    from twin.physics.kinematics.forward import jacobian

    draws = np.random.default_rng(0).uniform(-np.pi, np.pi, (STATES, robot.n))
    q = np.clip(draws, robot.q_min, robot.q_max)
    J = jacobian(robot, q, T_flange_tool)
    inverse = J @ np.linalg.solve(mass_matrix(robot, q), np.swapaxes(J, -1, -2))  # Lambda^-1
    squares = [np.max(np.linalg.eigvalsh(inverse[:, part, part])) for part in (slice(3), slice(3, 6))]
    return np.minimum(SPRING, STIFFEST / (period**2 * np.maximum(squares, np.finfo(float).tiny)))


class Impedance(ForceLaw):
    """Springs and dampers between the tool and its path, with the arm's own inertia."""

    name = "impedance"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        T_flange_tool: ArrayLike | None = None, surface: ArrayLike | None = None, force: float = 0.0,
        stiffness: ArrayLike | None = None, damping: ArrayLike | None = None, zeta: float = 0.7,
    ) -> None:  # fmt: skip
        """Derive the damping from the stiffness, unless it is given.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: omega of the joints in directions that the tool loses, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            T_flange_tool: (4, 4) pose of the tool on the flange.
            surface: (21,) surface, a row of `twin.dynamics.Environment`.
            force: F_d, a push that is added where the reference is inside the surface, in [N].
            stiffness: K, a matrix (6, 6), its diagonal (6,), or one number along and one about the axes,
                base axes, in [N/m, N m/rad]; by default 2000 and 200, or what the inertia allows.
            damping: D in the same forms, in [N s/m, N m s/rad]; by default by zeta.
            zeta: damping ratio of every mode, without `damping`.

        Raises:
            RobotError: the masses of the links are unknown.
            ValueError: a number is invalid.
        """
        robot.require_inertia()
        chosen = soft_springs(robot, T_flange_tool, period) if stiffness is None else stiffness
        self.stiffness, K = np.asarray(chosen), gain_matrix(chosen, "stiffness")
        D = np.zeros((6, 6)) if damping is None else gain_matrix(damping, "damping")
        numbers = {"force": force, "zeta": zeta if damping is None else 0.0}
        super().__init__(
            robot, impedance, bandwidth, period, T_flange_tool, surface, 0, numbers, stiffness=K, damping=D
        )


class Admittance(ForceLaw):
    """Position loop whose reference yields to the measured wrench as a mass on springs and dampers."""

    name = "admittance"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        T_flange_tool: ArrayLike | None = None, surface: ArrayLike | None = None, force: float = 0.0,
        mass: ArrayLike = (5.0, 0.5), stiffness: ArrayLike = SPRING, damping: ArrayLike | None = None,
        carried: float = 1.0,
    ) -> None:  # fmt: skip
        """Derive the damping from mass and stiffness, unless it is given.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: omega of the position loop, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            T_flange_tool: (4, 4) pose of the tool on the flange.
            surface: (21,) surface, a row of `twin.dynamics.Environment`.
            force: F_d, where the reference is inside the surface, in [N].
            mass: Md, a matrix (6, 6), its diagonal (6,), or one number along and one about the axes, base
                axes, in [kg, kg m^2].
            stiffness: Kd in the same forms, in [N/m, N m/rad]; it does not act across a surface that is
                pressed.
            damping: Dd in the same forms, in [N s/m, N m s/rad]; by default critical, also on the surface.
            carried: share c of the measured wrench that the position loop carries at once.

        Raises:
            ValueError: a number is invalid.
        """
        Md, Kd = gain_matrix(mass, "mass"), gain_matrix(stiffness, "stiffness")
        if not np.min(np.linalg.eigvalsh(Md)) > 0.0:
            raise ValueError(f"expected a mass above 0 along and about every axis, got {mass}")
        touched = 0.0 if surface is None else numbers_of(surface, "surface", (COLUMNS,))[STIFFNESS]
        critical = 2.0 * np.sqrt(np.diag(Md) * np.maximum(np.diag(Kd), np.repeat([touched, 0.0], 3)))
        Dd = gain_matrix(critical if damping is None else damping, "damping")
        memory, numbers = 2 - (-12 // robot.n), {"force": force, "carried": carried}
        given = {"mass": Md, "damping": Dd, "stiffness": Kd}
        super().__init__(
            robot, admittance, bandwidth, period, T_flange_tool, surface, memory, numbers, **given
        )


class HybridForce(ForceLaw):
    """Position control of the tool along a compliant surface, and force control across it."""

    name = "hybrid"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        T_flange_tool: ArrayLike | None = None, surface: ArrayLike | None = None, force: float = 0.0,
        force_bandwidth: float | None = None, integral: float = 5.0,
    ) -> None:  # fmt: skip
        """Derive the gains from the bandwidths.

        Args:
            robot: the controller's model of the robot, drives included.
            bandwidth: omega of the position, scalar or (n,), of which the tool has the least, in [rad/s].
            period: time between two calls, in [s].
            T_flange_tool: (4, 4) pose of the tool on the flange.
            surface: (21,) surface, a row of `twin.dynamics.Environment`.
            force: F_d, where the reference is inside the surface, in [N].
            force_bandwidth: omega_f of the force, in [rad/s]; by default three times that of the position.
            integral: gain Ki of the force's integral, in [1/s]; 0 without one.

        Raises:
            ValueError: a number is invalid.
        """
        omega = float(np.min(natural_frequencies(bandwidth, robot.n)))
        self.force_bandwidth = 3.0 * omega if force_bandwidth is None else force_bandwidth
        omega_f = self.force_bandwidth
        numbers = {"force": force, "bandwidth": omega, "force_bandwidth": omega_f, "integral": integral}
        super().__init__(robot, hybrid, bandwidth, period, T_flange_tool, surface, 1, numbers)
