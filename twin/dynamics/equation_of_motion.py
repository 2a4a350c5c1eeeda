"""Forces and motion: inverse and forward dynamics and the matrices of the equation of motion.

    tau = M(q) qdd + C(q, qd) qd + g(q) - J(q)^T F            Aliaga 2019, eq. (2.20) (lost in print), (2.28)

with `F = [f; mu]` the wrench that acts on the robot at the tool, in base axes.  All of it is one recursive
Newton-Euler kernel (`twin/multibody/recursions.py`).  Every function takes one sample `(n,)` or a batch
`(..., n)`; the payload and the mounting are the robot's (`Robot.with_payload`, `Robot.mounted`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array
from twin.robot.evaluation import evaluate, joint_vectors
from twin.robot.robot import Robot


def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None,
) -> np.ndarray:
    """Joint torques of a motion.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        qdd: (..., n) joint accelerations, in [rad/s^2].
        wrench: (..., 6) `[f; mu]` on the robot at the tool's origin, base axes, in [N, N m].
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        (..., n) `tau`, in [N m].

    Source: Featherstone 2008, table 5.1; Aliaga 2019, eq. (2.22)-(2.26) with (2.23) and (2.25) corrected.
    """
    if wrench is None and (tau := robot.single_sample.inverse_dynamics(q, qd, qdd)) is not None:
        return tau
    q, qd, qdd = joint_vectors(robot, q=q, qd=qd, qdd=qdd)
    inertial = _inertial(robot)
    tau = evaluate(robot.kernels.inverse_dynamics_batch, (q, qd, qdd), inertial, (robot.n,))
    return tau - _wrench_torque(robot, q, wrench, T_flange_tool)


def mass_matrix(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Joint-space inertia `M`: its columns are the torques of unit accelerations.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].

    Returns:
        (..., n, n), symmetric and positive definite, in [kg m^2].
    """
    if (M := robot.single_sample.mass_matrix(q)) is not None:
        return M
    (q,) = joint_vectors(robot, q=q)
    return evaluate(robot.kernels.mass_matrix_batch, (q,), _inertial(robot)[:1], (robot.n, robot.n))


def coriolis_matrix(robot: Robot, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
    """The matrix `C` of Christoffel symbols, for which `Mdot - 2 C` is skew-symmetric.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].

    Returns:
        (..., n, n), in [kg m^2/s]; `C qd` is the Coriolis and centrifugal torque.

    Source: Norrlöf 1999, Algorithm 2, step 3.
    """
    if (C := robot.single_sample.coriolis_matrix(q, qd)) is not None:
        return C
    q, qd = joint_vectors(robot, q=q, qd=qd)
    return evaluate(robot.kernels.coriolis_matrix_batch, (q, qd), _inertial(robot)[:1], (robot.n, robot.n))


def gravity_torque(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Torques `g` that hold the robot still.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].

    Returns:
        (..., n), in [N m].
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
) -> np.ndarray:
    """Joint accelerations under joint torques.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        tau: (..., n) joint torques, in [N m].
        wrench: (..., 6) `[f; mu]` on the robot at the tool's origin, base axes, in [N, N m].
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        (..., n) `qdd`, in [rad/s^2].
    """
    if wrench is None and (qdd := robot.single_sample.forward_dynamics(q, qd, tau)) is not None:
        return qdd
    q, qd, tau = joint_vectors(robot, q=q, qd=qd, tau=tau)
    load = tau + _wrench_torque(robot, q, wrench, T_flange_tool)
    inertial = _inertial(robot)
    return evaluate(robot.kernels.forward_dynamics_batch, (q, qd, load), inertial, (robot.n,))


def energy(robot: Robot, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
    """Kinetic plus potential energy; the potential is zero for a mass at the base's origin.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].

    Returns:
        (...,), in [J].
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    inertial = _inertial(robot)
    potential = evaluate(robot.kernels.potential_energy_batch, (q,), inertial, (1,))[..., 0]
    return potential + 0.5 * np.einsum("...i,...ij,...j", qd, mass_matrix(robot, q), qd)


def _inertial(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Inertias and gravity as the kernels have been compiled for, see `twin/robot/single_sample.py`."""
    robot.require_inertia()
    return robot.single_sample.inertias, robot.single_sample.gravity


def _wrench_torque(
    robot: Robot, q: np.ndarray, wrench: ArrayLike | None, T_flange_tool: ArrayLike | None
) -> np.ndarray | float:
    """`J^T F`, the joint torques that a wrench at the tool amounts to."""
    from twin.kinematics.forward import jacobian

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
