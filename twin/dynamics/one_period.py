"""From the states of a run, each one control period on: what the model says that a plant does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twin.drives.drive_step import drive_numbers, drive_steps
from twin.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics, mass_matrix
from twin.robot.robot import Robot


class PlantState(NamedTuple):
    """The state of a plant, and the torque that led to it; (..., n) each.

    Attributes:
        q, qd: positions and velocities of the joints, in [rad, rad/s].
        q_motor, qd_motor: those of the motors in joint units; of rigid drives they are the joints'.
        tau_joint: torque that the arm got from its drives in the first step of the period, in [N m].
    """

    q: np.ndarray
    qd: np.ndarray
    q_motor: np.ndarray
    qd_motor: np.ndarray
    tau_joint: np.ndarray


def one_period_on(
    robot: Robot, states: tuple[np.ndarray, ...], tau: np.ndarray, time_step: float, steps: int
) -> PlantState:
    """Where a `twin.AnalyticPlant` would be after some steps from each of N states.

    Args:
        robot: with its payload, gravity and drives.
        states: positions and velocities of the joints, then of the motors in joint units; (N, n) each.
        tau: (N, n) torques of the motors at the joints, in [N m].
        time_step: in [s].
        steps: number of steps.

    Returns:
        The state after the steps, with arrays (N, n).
    """
    q, qd, q_motor, qd_motor = (np.array(state, order="C") for state in states)
    drives = robot.active_drives
    tau = np.array(tau, order="C")
    tau_joint, torque_now = tau, np.empty_like(tau)
    if drives is None:
        q_motor, qd_motor = q, qd
    else:
        numbers = drive_numbers(drives, robot.drive_mode, time_step)
    for step in range(steps if len(q) else 0):
        if drives is None:
            qd += time_step * forward_dynamics(robot, q, qd, tau)
            q += time_step * qd
        else:
            M, h = mass_matrix(robot, q), inverse_dynamics(robot, q, qd, np.zeros(robot.n))
            drive_steps(numbers, M, h, tau, q, qd, q_motor, qd_motor, torque_now)
            tau_joint = torque_now.copy() if step == 0 else tau_joint
    return PlantState(q, qd, q_motor, qd_motor, tau_joint)
