"""Inverse and forward dynamics, and the matrices of the equation of motion.

    tau = M(q) qdd + C(q, qd) qd + g(q) - J(q)^T F            Aliaga 2019, eq. (2.20) (lost in print), (2.28)

where `F = [f; mu]` is the wrench that acts on the robot at the tool, in base axes.  All terms come from one
recursive Newton-Euler kernel (`multibody/recursions.py`).  Every function takes one sample `(n,)` or a
batch `(..., n)`.

The functions describe the robot that they are given.  Payload, mounting, springs and cylinders belong to it,
and so do its drives (`Robot.with_drives`): with rigid ones the equation is

    tau = (M + A) qdd + C qd + g + R^T F(R qd) - J^T F,

with the rotors' inertia A, which belongs to the mass matrix, and the friction F of the shafts that turn at
`R qd`.  Ideal drives leave the rigid body; `robot.with_drives("ideal")`, in short `robot.arm`, is that of any
robot.  The springs of elastic drives are held relaxed, so that these drives act as rigid ones;
`forward_dynamics` refuses them, because their motors move separately.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array
from twin.base.errors import RobotError
from twin.physics.dynamics.environment import Environment
from twin.physics.robot.drives.drive_step import (
    add_rotors_and_friction,
    drive_numbers,
    drive_steps,
    rigid_accelerations,
    torques_with_drives,
)
from twin.physics.robot.drives.friction import sliding_friction
from twin.physics.robot.evaluation import copied, evaluate, joint_vectors
from twin.physics.robot.robot import Robot


def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None,
) -> np.ndarray:
    """Return the joint torques of a motion: for the arm, its rotors and its friction.

    A shaft at rest has the static friction that opposes its acceleration, and none if it stays at rest.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        qdd: (..., n) joint accelerations, in [rad/s^2].
        wrench: (..., 6) `[f; mu]` on the robot at the tool's origin, base axes, in [N, N m].
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        (..., n) `tau`, in [N m]; the torques at the motor shafts are N^-T tau.

    Example:
        >>> import twin
        >>> robot, still, ahead = twin.load("irb140"), [0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]
        >>> for arm in (robot, robot.with_drives("rigid")):  # which adds the rotor and the friction
        ...     print(twin.inverse_dynamics(arm, still, ahead, ahead)[:1].round(1).tolist())
        [1.8]
        [37.8]

    Source: Featherstone 2008, table 5.1; Aliaga 2019, eq. (2.22)-(2.26) with (2.23) and (2.25) corrected.
    """
    if wrench is None and (tau := robot.single_sample.inverse_dynamics(q, qd, qdd)) is not None:
        if robot.drive_mode != "ideal":
            add_rotors_and_friction(*robot.drive_model, qd, qdd, 0.0, tau.copy(), tau)
        return tau
    q, qd, qdd = joint_vectors(robot, q=q, qd=qd, qdd=qdd)
    tau = evaluate(robot.kernels.inverse_dynamics_batch, (q, qd, qdd), _inertial(robot), (robot.n,))
    if wrench is not None:
        tau = tau - _wrench_torque(robot, q, wrench, T_flange_tool)
    if robot.drive_mode == "ideal":
        return tau
    return evaluate(torques_with_drives, (qd, qdd, tau), robot.drive_model, (robot.n,))


def mass_matrix(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Return the joint-space inertia matrix, whose columns are the torques of unit accelerations.

    It includes the rotors of drives that are not ideal.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].

    Returns:
        (..., n, n), symmetric and positive definite, in [kg m^2].

    Example:
        >>> import twin
        >>> robot = twin.load("two_link")  # two rods of 1 kg and 1 m
        >>> twin.mass_matrix(robot, [0, 0]).round(4).tolist()
        [[2.6667, 0.8333], [0.8333, 0.3333]]
    """
    if (M := robot.single_sample.mass_matrix(q)) is None:
        (q,) = joint_vectors(robot, q=q)
        M = evaluate(robot.kernels.mass_matrix_batch, (q,), _inertial(robot)[:1], (robot.n, robot.n))
    if robot.drive_mode != "ideal":
        M += robot.drive_model.inertia
    return M


def coriolis_matrix(robot: Robot, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
    """Return the Coriolis matrix `C` of Christoffel symbols, for which `Mdot - 2 C` is skew-symmetric.

    Rotors add nothing to it, because their inertia at the joints is constant.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].

    Returns:
        (..., n, n), in [kg m^2/s]; `C qd` is the Coriolis and centrifugal torque.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> C = twin.coriolis_matrix(twin.load("two_link"), [0, np.pi / 2], [1, 2])
        >>> (C @ [1, 2]).round(4).tolist()
        [-4.0, 0.5]

    Source: Norrlöf 1999, Algorithm 2, step 3.
    """
    if (C := robot.single_sample.coriolis_matrix(q, qd)) is not None:
        return C
    q, qd = joint_vectors(robot, q=q, qd=qd)
    return evaluate(robot.kernels.coriolis_matrix_batch, (q, qd), _inertial(robot)[:1], (robot.n, robot.n))


def gravity_torque(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Return the joint torques `g` that hold the robot still against gravity, with springs, without friction.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].

    Returns:
        (..., n), in [N m].

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> loaded = robot.with_payload(twin.Payload(5.0))  # 5 kg at the flange
        >>> q = robot.poses["zero"]
        >>> (twin.gravity_torque(loaded, q) - twin.gravity_torque(robot, q))[1:3].round(2).tolist()
        [-21.83, -21.83]
    """
    if (g := robot.single_sample.gravity_torque(q)) is not None:
        return g
    (q,) = joint_vectors(robot, q=q)
    inertial = _inertial(robot)
    return evaluate(robot.kernels.gravity_torque_batch, (q,), inertial, (robot.n,))


def forward_dynamics(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    wrench: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None,
    *,
    time_step: float = 0.0,
    tau_joint: ArrayLike | None = None,
) -> np.ndarray:
    """Return the joint accelerations under the torques of the motors.

    Friction of rigid drives may hold a joint.  With `time_step` the result is the mean acceleration over a
    step of the engine, which may end with a joint at rest; without it, that of the instant.

    Args:
        robot: the robot, with ideal or rigid drives.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        tau: (..., n) torques of the motors at the joints, in [N m].
        wrench: (..., 6) `[f; mu]` on the robot at the tool's origin, base axes, in [N, N m].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        time_step: length of the step, in [s]; 0 for the instant.
        tau_joint: (..., n) torque of the drives on the arm in the step before, in [N m], for friction that
            grows with it; by default that of an arm that was not accelerated.

    Returns:
        (..., n) `qdd`, in [rad/s^2].

    Raises:
        RobotError: the drives are elastic, or friction that grows with the load has no solution.

    Example:
        >>> import twin
        >>> robot = twin.load("two_link").mounted("wall")  # two level rods of 1 kg and 1 m
        >>> twin.forward_dynamics(robot, [0, 0], [0, 0], [0, 0]).round(4).tolist()  # they fall
        [-12.6129, 16.8171]
    """
    if robot.active_drives is not None:
        return _driven_accelerations(robot, q, qd, tau, wrench, T_flange_tool, time_step, tau_joint)
    if wrench is None and (qdd := robot.single_sample.forward_dynamics(q, qd, tau)) is not None:
        return qdd
    q, qd, tau = joint_vectors(robot, q=q, qd=qd, tau=tau)
    load = tau + _wrench_torque(robot, q, wrench, T_flange_tool)
    inertial = _inertial(robot)
    return evaluate(robot.kernels.forward_dynamics_batch, (q, qd, load), inertial, (robot.n,))


def _driven_accelerations(
    robot: Robot, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None,
    T_flange_tool: ArrayLike | None, time_step: float, tau_joint: ArrayLike | None,
) -> np.ndarray:  # fmt: skip
    """Return the accelerations of a robot with rigid drives, see `forward_dynamics`."""
    require_rigid(robot, "forward_dynamics")
    h = robot.single_sample.bias(q, qd) if wrench is None else None
    if h is None:
        q, qd, tau = joint_vectors(robot, q=q, qd=qd, tau=tau)
        h = inverse_dynamics(robot.arm, q, qd, np.zeros(robot.n), wrench, T_flange_tool)
    else:
        (tau,) = joint_vectors(robot, tau=tau)
    (load,) = (h,) if tau_joint is None else joint_vectors(robot, tau_joint=tau_joint)
    shape = np.broadcast(q, tau, h, load).shape
    M = _rows(mass_matrix(robot.arm, q), (*shape, robot.n)).reshape(-1, robot.n, robot.n)
    h, tau, qd, load = (_rows(values, shape) for values in (h, tau, qd, load))
    numbers = drive_numbers(robot.active_drives, "rigid", time_step)
    qdd = np.empty_like(h)
    if (row := rigid_accelerations(*numbers, M, h, tau, qd, load, qdd)) >= 0:
        raise RobotError(
            f"the friction by load of robot {robot.name!r} has no solution in sample {row}: expected a "
            "smaller coulomb_per_load"
        )
    return qdd.reshape(shape)


def _rows(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy (N, n) of values that are broadcast to a shape (..., n)."""
    rows = np.empty(shape)
    rows[...] = values
    return rows.reshape(-1, shape[-1])


def require_rigid(robot: Robot, what: str) -> None:
    """Raise `RobotError` if the robot has springs in its drives, whose motors move separately."""
    drives = robot.active_drives
    if drives is not None and robot.drive_mode == "elastic" and np.any(np.isfinite(drives.stiffness)):
        raise RobotError(
            f"{what} needs the state of the motors of robot {robot.name!r}, whose drives are elastic: "
            "expected rigid or ideal ones, as robot.with_drives('rigid')"
        )


def energy(robot: Robot, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
    """Return the kinetic plus potential energy; the potential is zero for a mass at the base's origin.

    It includes the rotors of drives that are not ideal.  The springs of elastic drives count as relaxed.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].

    Returns:
        (...,), in [J].

    Example:
        >>> import twin
        >>> robot = twin.load("two_link")  # two rods of 1 kg and 1 m
        >>> round(float(twin.energy(robot, [0, 0], [1, 0])), 4)  # M_11 qd^2 / 2
        1.3333
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    inertial = _inertial(robot)
    potential = evaluate(robot.kernels.potential_energy_batch, (q,), inertial, (1,))[..., 0]
    return potential + 0.5 * np.einsum("...i,...ij,...j", qd, mass_matrix(robot, q), qd)


def _inertial(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return inertias and gravity as arrays of the types for which the kernels are compiled."""
    robot.require_inertia()
    return robot.single_sample.inertias, robot.single_sample.gravity


def _wrench_torque(
    robot: Robot, q: np.ndarray, wrench: ArrayLike | None, T_flange_tool: ArrayLike | None
) -> np.ndarray | float:
    """Return `J^T F`, the joint torques of a wrench at the tool, 0 for `None`."""
    from twin.physics.kinematics.forward import jacobian

    if wrench is None:
        return 0.0
    F = real_array(wrench, "wrench")
    if F.ndim == 0 or F.shape[-1] != 6 or not np.all(np.isfinite(F)):
        raise ValueError(f"expected a finite wrench of shape (..., 6), got {F.shape}")
    try:
        np.broadcast_shapes(F.shape[:-1], q.shape[:-1])
    except ValueError:
        raise ValueError(f"expected a wrench whose shape fits q {q.shape}, got {F.shape}") from None
    return np.einsum("...ji,...j->...i", jacobian(robot, q, T_flange_tool), F)


def reflected_inertia(robot: Robot) -> np.ndarray:
    """Return the contribution of the rotors to the mass matrix.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).

    Returns:
        A (n, n), in [kg m^2]; zeros if the drives are ideal.

    Example:
        >>> import twin
        >>> robot = twin.load("irb1400").with_drives("rigid")
        >>> twin.dynamics.reflected_inertia(robot).diagonal()[:3].round(4).tolist()
        [8.2796, 10.2442, 4.2099]
    """
    drives = robot.active_drives
    return np.zeros((robot.n, robot.n)) if drives is None else drives.reflected_inertia.copy()


def friction_torque(robot: Robot, qd: ArrayLike, tau: ArrayLike | None = None) -> np.ndarray:
    """Return the friction torque of moving joints, which has the sign of their speed.

    It is 0 for a shaft at rest, where the actual friction lies between the two breakaway torques.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        qd: (..., n) joint velocities, in [rad/s].
        tau: (..., n) torques that the drives transmit to the arm, in [N m], for friction that grows with
            them; 0 by default.

    Returns:
        (..., n), in [N m]; zeros if the drives are ideal.

    Example:
        >>> import twin
        >>> robot = twin.load("irb1400").with_drives("rigid")
        >>> twin.friction_torque(robot, [1, -1, 1, 0, 0, 0])[:3].round(4).tolist()  # 32 + 34 for axis 1
        [66.0, -84.0, 46.0]

    Source: P. Obal, P. Gierlak, Acta Mechanica et Automatica 19 (2025).
    """
    (qd,) = joint_vectors(robot, qd=qd)
    drives = robot.active_drives
    if drives is None:
        return np.zeros_like(qd)
    R = drives.friction_matrix
    qd, load = np.broadcast_arrays(qd, np.zeros(robot.n) if tau is None else real_array(tau, "tau"))
    w = np.ascontiguousarray(qd @ R.T).reshape(-1, robot.n)
    F = np.empty_like(w)
    sliding_friction(robot.drive_model.friction, w, copied(load).reshape(w.shape), F)
    return F.reshape(qd.shape) @ R


class PlantState(NamedTuple):
    """State of a plant, and the joint torque that led to it; (..., n) each.

    Attributes:
        q, qd: positions and velocities of the joints, in [rad, rad/s].
        q_motor, qd_motor: positions and velocities of the motors in joint units; equal to `q, qd` for rigid
            drives.
        tau_joint: torque that the drives applied to the arm in the first step of the period, in [N m].
    """

    q: np.ndarray
    qd: np.ndarray
    q_motor: np.ndarray
    qd_motor: np.ndarray
    tau_joint: np.ndarray


def advance_period(
    robot: Robot,
    states: tuple[np.ndarray, ...],
    tau: np.ndarray,
    time_step: float,
    steps: int,
    transmitted: np.ndarray | None = None,
    environment: Environment | None = None,
    t: np.ndarray | None = None,
) -> PlantState:
    """Advance N states by some steps of a `twin.AnalyticPlant`, and return the states after them.

    Args:
        robot: robot with its payload, gravity and drives.
        states: positions and velocities of the joints, then of the motors in joint units; (N, n) each.
        tau: (N, n) torques of the motors at the joints, in [N m].
        time_step: integration step, in [s].
        steps: number of steps.
        transmitted: (N, n) torques of the drives on the arm in the step before, in [N m], for friction that
            grows with them; by default those of a plant that has just been reset.
        environment: what acts on the tool from outside; `None` for nothing.
        t: (N,) times of the states, in [s], for the environment.

    Returns:
        State after the steps, with arrays (N, n).
    """
    q, qd, q_motor, qd_motor = (np.array(state, order="C") for state in states)
    drives = robot.active_drives
    tau = np.array(tau, order="C")
    tau_joint, torque_now = tau, None if transmitted is None else np.array(transmitted, order="C")
    if drives is None:
        q_motor, qd_motor = q, qd
    else:
        numbers = drive_numbers(drives, robot.drive_mode, time_step)
    for step in range(steps if len(q) else 0):
        F = T = None
        if environment is not None and t is not None:
            F, T = environment.wrench(robot, t + step * time_step, q, qd), environment.T_flange_tool
        if drives is None:
            qd += time_step * forward_dynamics(robot, q, qd, tau, F, T)
            q += time_step * qd
        else:
            M, h = mass_matrix(robot.arm, q), inverse_dynamics(robot.arm, q, qd, np.zeros(robot.n), F, T)
            torque_now = h.copy() if torque_now is None else torque_now
            drive_steps(numbers, M, h, tau, q, qd, q_motor, qd_motor, torque_now)
            tau_joint = torque_now.copy() if step == 0 else tau_joint
    return PlantState(q, qd, q_motor, qd_motor, tau_joint)
