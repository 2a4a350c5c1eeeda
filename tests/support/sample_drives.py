"""Drives of six-joint arms with gears, coupling, friction and motor limits."""

from dataclasses import replace

import numpy as np
import pytest

from twin import Drives, Sensors

COUPLING = np.eye(6)
COUPLING[4, 3], COUPLING[5, 3], COUPLING[5, 4] = 0.3, -0.2, 0.5
RUBBING = Drives(
    ratio=[-100, 100, 80, -60, 60, 40],
    rotor_inertia=[2e-4, 7e-4, 3e-4, 2e-5, 3e-5, 4e-5],
    coupling=COUPLING,
    coulomb=[14, 34, 15, 4, 5, 4],
    static=[21, 51, 22, 8, 11, 7],
    stribeck_speed=[0.01, 0.02, 0.0, 0.03, 0.01, 0.02],
    viscous=[9, 22, 7, 1, 1.5, 0.8],
    friction_at=["motor", "joint", "motor", "motor", "joint", "motor"],
)
CURVED = replace(
    RUBBING,
    motor_torque_max=[3.0, 7, 4, 0.7, 1, 1],
    motor_speed_rated=[200.0, 200, 300, 300, 400, 400],
    motor_speed_max=[400.0, 300, 300, 500, 450, np.inf],
)


def by_motor(drives, demand, qd_motor):
    """Limit the demanded joint torques motor by motor, in motor torques and speeds."""
    N = np.diag(drives.ratio) @ drives.coupling
    tau_m, speed = np.linalg.solve(N.T, demand), N @ qd_motor
    for i in range(6):
        limit = drives.motor_torque_max[i]
        rated, top = drives.motor_speed_rated[i], drives.motor_speed_max[i]
        if tau_m[i] * speed[i] > 0 and abs(speed[i]) > rated:
            limit *= max(0.0, (top - abs(speed[i])) / (top - rated)) if top > rated else 0.0
        tau_m[i] = min(max(tau_m[i], -limit), limit)
    return N.T @ tau_m


SLOWLY = pytest.mark.filterwarnings("ignore:steps of .* are too long:twin.errors.DriveWarning")
WRIST = np.eye(6)
WRIST[4, 3], WRIST[5, 3], WRIST[5, 4] = 0.2, -0.3, 0.5
SENSORS = Sensors(encoder=True, noise=1e-5, speed_cutoff=80.0, delay=2, seed=5)


def coupled(robot):
    """Return the robot's drives with a coupled wrist, a rigid joint 2, and joint friction at axes 2 and 4."""
    stiffness = robot.drives.stiffness.copy()
    stiffness[1] = np.inf
    sides = ("motor", "joint", "motor", "joint", "motor", "motor")
    return replace(robot.drives, coupling=WRIST, stiffness=stiffness, friction_at=sides)


def uncoupled(robot):
    """Return the robot with drives that each turn one joint, for formulas of one joint."""
    return replace(robot, drives=replace(robot.drives, coupling=np.eye(robot.n)))


FORMER = {
    "coupling": np.eye(6), "rotor_inertia": [1.8e-4, 7.3e-4, 3e-4, 2.3e-5, 3.5e-5, 3.5e-5],
    "coulomb": [14, 34, 15, 4.0, 5.4, 3.6], "static": [21, 51, 22, 8.0, 11, 7.2],
    "viscous": [8.6, 22, 7.4, 1.1, 1.4, 0.76],
}  # fmt: skip
"""Estimates for the IRB 140 until the record of ABB's virtual controller was found."""
