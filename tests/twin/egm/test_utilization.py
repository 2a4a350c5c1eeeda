"""Utilization of the motors: above 100 % they deliver less than the demanded torque."""

import numpy as np
import pytest

from twin.egm.guidance.limits import torque_utilization
from twin.robot.drives.drives import Drives
from twin.robot.drives.motors import MotorLimits, limited_torque

COUPLED = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -0.7, 1.0]])


@pytest.mark.parametrize("coupling", [np.eye(3), COUPLED])
def test_utilization_is_100_percent_at_the_motor_limit(coupling, rng):
    drives = Drives(
        ratio=np.array([80.0, -90.0, 50.0]), rotor_inertia=1e-4, coupling=coupling, motor_torque_max=1.5,
        motor_speed_rated=200.0, motor_speed_max=500.0,
    )  # fmt: skip
    motors = MotorLimits.of(drives, drives.torque_max)
    for _ in range(50):
        demand, speed = 100.0 * rng.standard_normal(3), 3.0 * rng.standard_normal(3)
        share = torque_utilization(motors, demand, speed) / 100.0
        if share >= 10.0:
            continue
        tau = np.empty(3)
        for factor, limited in ((0.999, False), (1.001, True)):
            limited_torque(*motors, demand * factor / share, speed, tau)
            assert (not np.array_equal(tau, demand * factor / share)) == limited


def test_utilization_is_the_bounded_maximum_of_samples():
    motors = MotorLimits.of(None, np.array([10.0, np.inf]))
    demand = np.array([[1.0, 5.0], [-4.0, 100.0]])
    assert torque_utilization(motors, demand, np.ones((2, 2))) == 40.0
    assert torque_utilization(motors, 1e9 * demand, np.ones((2, 2))) == 1000.0
    assert torque_utilization(motors, 0.0 * demand, np.ones((2, 2))) == 0.0
    drives = Drives(ratio=np.ones(1), rotor_inertia=0.0, motor_torque_max=1.0, motor_speed_max=2.0)
    motors = MotorLimits.of(drives, drives.torque_max)
    assert torque_utilization(motors, np.array([0.5]), np.array([3.0])) == 1000.0, "no driving torque"
    assert torque_utilization(motors, np.array([-0.5]), np.array([3.0])) == 50.0, "full braking torque"
    assert torque_utilization(motors, np.array([0.0]), np.array([3.0])) == 0.0
