"""What the drives of a robot add to its dynamics: the inertia of rotors, and friction.

    tau = (M + A) qdd + C qd + g + R^T F(R qd),    A = N^T J N

`tau` is what the motors bring to the joints, N^T tau_m, and `R qd` are the speeds of the shafts that rub, in
joint units.  Drives that are ideal add nothing.  Springs are not looked at: in elastic joints this is the
torque at which a motion would need no spring to bend, as if they were rigid.

Sources: Norrlöf 1999, eq. (3.60); Ljubljana lab manual, eq. (6.93).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twin.drives.friction import friction_rows, sliding_friction
from twin.dynamics.equation_of_motion import inverse_dynamics
from twin.robot.evaluation import joint_vectors
from twin.robot.robot import Robot


def reflected_inertia(robot: Robot) -> np.ndarray:
    """What the rotors add to the mass matrix.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).

    Returns:
        A (n, n), in [kg m^2]; zeros where drives are ideal.
    """
    drives = robot.active_drives
    return np.zeros((robot.n, robot.n)) if drives is None else drives.reflected_inertia.copy()


def friction_torque(robot: Robot, qd: ArrayLike) -> np.ndarray:
    """What friction takes of the motors' torque while joints move: of the sign of their speed.

    Of a shaft that does not move it is 0, between what breaks it away one way and the other.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        qd: (..., n) joint velocities, in [rad/s].

    Returns:
        (..., n), in [N m]; zeros where drives are ideal.

    Source: P. Obal, P. Gierlak, Acta Mechanica et Automatica 19 (2025).
    """
    (qd,) = joint_vectors(robot, qd=qd)
    drives = robot.active_drives
    if drives is None:
        return np.zeros_like(qd)
    R = drives.friction_matrix
    w = np.ascontiguousarray(qd @ R.T).reshape(-1, robot.n)
    F = np.empty_like(w)
    sliding_friction(friction_rows(drives), w, F)
    return F.reshape(qd.shape) @ R


def drive_inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    T_flange_tool: ArrayLike | None = None,
) -> np.ndarray:
    """Torques that the motors bring to the joints in a motion: the arm's, the rotors' and friction's.

    Args:
        robot: the robot, with the drives that act (`Robot.with_drives`).
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        qdd: (..., n) joint accelerations, in [rad/s^2].
        wrench: (..., 6) `[f; mu]` on the robot at the tool's origin, base axes, in [N, N m].
        T_flange_tool: (4, 4) pose of the tool on the flange.

    Returns:
        (..., n) `tau`, in [N m]; of the motors themselves it is N^-T tau.
    """
    tau = inverse_dynamics(robot, q, qd, qdd, wrench, T_flange_tool)
    drives = robot.active_drives
    if drives is None:
        return tau
    return tau + np.asarray(qdd, dtype=np.float64) @ drives.reflected_inertia + friction_torque(robot, qd)
