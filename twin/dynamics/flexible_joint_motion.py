"""A flexible joint in motion, by the time step of every plant with elastic drives.

The linear model has an exact solution, by its matrix exponential; with friction that sticks there is none.
This is the step that moves the arms, so what is seen here of its accuracy holds of theirs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.drives.drive_step import drive_numbers, drive_step
from twin.drives.drives import Drives
from twin.dynamics.flexible_joint import FlexibleJoint


def simulate_flexible_joint(
    joint: FlexibleJoint,
    tau: ArrayLike,
    time_step: float,
    x: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    coulomb: float = 0.0,
    static: float | None = None,
    stribeck_speed: float = 0.0,
) -> Floats:
    """The motion of a flexible joint under a torque of its motor.

    Errors are of first order in the step.  Friction that is not viscous acts on the motor, and is told on the
    joint's side of the gear, as in `twin.drives.drives.Drives`.

    Args:
        joint: the joint.
        tau: (N,) torque of the motor in each step, in [N m].
        time_step: in [s].
        x: (4,) state `[qm, qm', qa, qa']` at the start, in [rad, rad/s].
        coulomb: friction of the moving motor at small speed, in [N m].
        static: torque at which the motor breaks away, in [N m]; `coulomb` if left out.
        stribeck_speed: see `Drives`, in [rad/s].

    Returns:
        (N + 1, 4) states, the one at the start among them.

    Raises:
        ValueError: a shape is another, a value not finite, the step not above 0, or friction cannot be.
    """
    torques, start = real_array(tau, "tau"), real_array(x, "x")
    if torques.ndim != 1 or not np.all(np.isfinite(torques)):
        raise ValueError(f"expected finite torques tau of shape (N,), got shape {torques.shape}")
    if start.shape != (4,) or not np.all(np.isfinite(start)):
        raise ValueError(f"expected a finite state [qm, qm', qa, qa'] of shape (4,), got {start.tolist()}")
    if not 0 < time_step < np.inf:
        raise ValueError(f"expected a time step above 0 s, got {time_step}")
    r, dt = joint.r, float(time_step)
    drives = Drives(
        ratio=[1 / r],
        rotor_inertia=joint.Jm,
        coulomb=coulomb,
        static=static,
        stribeck_speed=stribeck_speed,
        viscous=joint.fm / r**2,
        stiffness=joint.k,
        damping=joint.d,
    )
    numbers = drive_numbers(drives, "elastic", dt)
    M = np.array([[joint.Ja + dt * joint.fa]])  # so that its friction acts at the speed after the step
    (theta, thetad), (q, qd) = (start[:2, None] * r).copy(), start[2:, None].copy()
    next_qd, next_thetad, torque = np.empty((3, 1))
    found = np.empty((len(torques) + 1, 4))
    found[0] = start
    for k, motor_torque in enumerate(torques):
        at_joint = np.array([motor_torque / r])
        drive_step(numbers, M, joint.fa * qd, at_joint, q, qd, theta, thetad, next_qd, next_thetad, torque)
        qd[:], thetad[:] = next_qd, next_thetad
        q += dt * qd
        theta += dt * thetad
        found[k + 1] = theta[0] / r, thetad[0] / r, q[0], qd[0]
    return found
