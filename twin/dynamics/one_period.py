"""From the states of a run, each one control period on: what the model says that a plant does."""

from __future__ import annotations

import numpy as np

from twin.drives.drive_step import drive_numbers, drive_steps
from twin.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics, mass_matrix
from twin.robot.robot import Robot


def one_period_on(
    robot: Robot, states: tuple[np.ndarray, ...], tau: np.ndarray, time_step: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where a `twin.AnalyticPlant` would be after some steps from each of N states.

    Args:
        robot: with its payload, gravity and drives.
        states: positions and velocities of the joints, then of the motors in joint units; (N, n) each.
        tau: (N, n) torques of the motors at the joints, in [N m].
        time_step: in [s].
        steps: number of steps.

    Returns:
        Joint positions and velocities (N, n), in [rad, rad/s].
    """
    q, qd, q_motor, qd_motor = (np.array(state, order="C") for state in states)
    drives = robot.active_drives
    if drives is not None:
        numbers, tau = drive_numbers(drives, robot.drive_mode, time_step), np.ascontiguousarray(tau)
    for _ in range(steps if len(q) else 0):
        if drives is None:
            qd += time_step * forward_dynamics(robot, q, qd, tau)
            q += time_step * qd
        else:
            M, h = mass_matrix(robot, q), inverse_dynamics(robot, q, qd, np.zeros(robot.n))
            drive_steps(numbers, M, h, tau, q, qd, q_motor, qd_motor)
    return q, qd
