"""The law of friction, held against every step of a run: a word that the drives' own solver has no part in.

Engine and model share `twin.drives.drive_step`, so that comparing them cannot find a mistake in it.  Here the
logged speeds give the accelerations, these the torques of rotors, springs and arm, and what remains of the
motors' torque is friction:

    R^T f = tau - A thetadd - T,     T = M qdd + h, the spring's torque where a joint is elastic

A shaft that slides has `f = [Fc + (Fs - Fc) exp(-(w / vs)^2)] sgn(w+) + Fv w+`, with the level at the speed w
before the step and the rest at the speed w+ after it; one at rest has at most that level.  A step has one
solution, so that this is the whole law (`twin.drives.friction`).  Friction at the joint itself acts between
spring and arm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scenarios.metric import Metric
from twin.drives.drives import MOTOR
from twin.logs.figures import place_of_largest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.logs.log import Log

AT_REST = 1e-11
"""[rad/s]: the speed of a shaft that stands, of which two motors that turn together may leave a rounding."""
LIMIT = 5e-11
"""Of the largest torque of rotors, springs, arm and motors. Seen: 6e-13, and 1.1e-11 where the engine
solves a closed loop."""


def friction_metrics(log: Log) -> tuple[Metric, ...]:
    """Return whether the drives kept the law of friction; nothing without drives.

    With several engine steps in a control period the log has no states between, and nothing is judged.
    """
    if log.robot.active_drives is None or log.steps_per_period != 1 or len(log.t) < 2:
        return ()
    error = friction_errors(log)
    return (
        Metric(
            "friction - its law",
            float(np.max(np.abs(error))),
            "",
            LIMIT,
            "over the largest torque: what rotors, springs and arm leave of the motors' torque, against the "
            "law itself, to the rounding of accelerations",
            place_of_largest(log, error),
        ),
    )


def friction_errors(log: Log) -> NDArray:
    """Return by how much friction and springs miss their laws, over the largest torque: (N-1, n).

    Args:
        log: of a run with drives and one engine step in a control period.
    """
    from twin.dynamics.equation_of_motion import inverse_dynamics

    robot, drives, dt = log.robot, log.robot.drives, log.time_step
    assert drives is not None
    q, qd, qd_next = log.q[:-1], log.qd[:-1], log.qd[1:]
    motor, speed, speed_next = log.q_motor[:-1], log.qd_motor[:-1], log.qd_motor[1:]
    arm = inverse_dynamics(robot, q, qd, (qd_next - qd) / dt)
    rotors = (speed_next - speed) / dt @ drives.reflected_inertia
    elastic = np.isfinite(drives.stiffness) & (robot.drive_mode == "elastic")
    at_motor = np.array([side == MOTOR for side in drives.friction_at])
    # Newmark's mean of the twist over the step, and the mean of its speed.
    twist = motor - q + dt / 4 * (speed_next - speed - qd_next + qd)
    twist_speed = (speed_next + speed - qd_next - qd) / 2
    stiffness, damping = np.where(elastic, drives.stiffness, 0.0), np.where(elastic, drives.damping, 0.0)
    T = np.where(elastic, stiffness * twist + damping * twist_speed, arm)
    # Friction at a joint without a spring acts on the motor's side of it, too, but on that joint alone.
    shafts = np.where(at_motor[:, None], drives.coupling, np.eye(robot.n))
    left = np.linalg.solve(shafts.T, (log.tau[:-1] - rotors - T).T).T
    behind_spring = elastic & ~at_motor
    friction = np.where(behind_spring, T - arm, left)
    balance = np.where(behind_spring, left, T - arm)  # 0: no friction acts there
    w, w_next = (
        np.where(at_motor, of_motors @ drives.coupling.T, of_joints)
        for of_motors, of_joints in ((speed, qd), (speed_next, qd_next))
    )
    excess = drives.static - drives.coulomb
    with np.errstate(divide="ignore", invalid="ignore"):  # without an excess there may be no Stribeck speed
        falling = np.where(excess > 0, np.exp(-((w / drives.stribeck_speed) ** 2)), 0.0)
    level = drives.coulomb + excess * falling
    sliding = friction - level * np.sign(w_next) - drives.viscous * w_next
    resting = np.maximum(np.abs(friction) - level, 0.0)
    error = np.where(np.abs(w_next) > AT_REST, sliding, resting)
    largest = np.max(np.abs([log.tau[:-1], rotors, T, arm]))
    return np.where(np.abs(balance) > np.abs(error), balance, error) / largest
