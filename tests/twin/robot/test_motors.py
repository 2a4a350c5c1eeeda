"""What motors make of a demanded torque: limits in the motors' own torques and speeds, coupled or not."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.sample_drives import COUPLING, CURVED, by_motor
from twin.robot.drives.motors import MotorLimits, limited_torque


@pytest.mark.parametrize("coupling", [np.eye(6), COUPLING])
def test_torques_are_limited_at_the_motors(coupling, rng):
    drives = replace(CURVED, coupling=coupling, motor_speed_max=[400.0, 300, 350, 500, 450, 1e9])
    motors, limited = MotorLimits.of(drives, np.ones(6)), 0
    for _ in range(500):
        demand = rng.normal(size=6) * drives.torque_max
        qd_motor = rng.normal(size=6) * 4
        tau = np.empty(6)
        assert limited_torque(*motors, demand, qd_motor, tau)
        np.testing.assert_allclose(tau, by_motor(drives, demand, qd_motor), rtol=1e-10, atol=1e-10)
        limited += not np.array_equal(tau, demand)
    assert 300 < limited <= 500


def test_a_motor_that_has_no_falling_torque_gives_all_to_its_top_speed(rng):
    motors, tau = MotorLimits.of(CURVED, np.ones(6)), np.empty(6)
    demand = np.zeros(6)
    demand[2] = 80.0 * 4.0 * 2
    fastest = np.linalg.solve(COUPLING, np.array([0, 0, 300 / 80, 0, 0, 0]))
    assert limited_torque(*motors, demand, 0.999 * fastest, tau)
    assert tau[2] == 80.0 * 4.0
    assert limited_torque(*motors, demand, 1.001 * fastest, tau)
    assert tau[2] == 0
    assert limited_torque(*motors, -demand, 1.001 * fastest, tau)
    assert tau[2] == -80.0 * 4.0, "braking"


def test_a_motor_without_a_top_speed_keeps_its_limit_at_any_speed():
    drives = replace(CURVED, coupling=np.eye(6))
    motors, tau = MotorLimits.of(drives, np.ones(6)), np.empty(6)
    demand, fast = np.array([0.0, 0, 0, 0, 0, 1e3]), np.full(6, 1e3)
    assert limited_torque(*motors, demand, fast, tau)
    assert tau[5] == 40.0 * 1.0


@pytest.mark.parametrize("coupling", [np.eye(6), COUPLING])
def test_a_demand_within_the_limits_is_met_to_the_bit_and_nan_shows(coupling, rng):
    drives = replace(CURVED, coupling=coupling)
    motors, tau = MotorLimits.of(drives, np.ones(6)), np.empty(6)
    demand = coupling.T @ (rng.uniform(-1, 1, 6) * 0.9 * drives.torque_max)
    assert limited_torque(*motors, demand, np.zeros(6), tau)
    np.testing.assert_array_equal(tau, demand)
    demand[3] = np.nan
    assert not limited_torque(*motors, demand, np.zeros(6), tau)


def test_without_drives_torques_are_cut_at_the_joints_limits(rng):
    tau_max, tau = np.arange(1.0, 7.0), np.empty(6)
    motors = MotorLimits.of(None, tau_max)
    demand = rng.normal(size=6) * 10
    assert limited_torque(*motors, demand, np.full(6, 1e6), tau)
    np.testing.assert_array_equal(tau, np.clip(demand, -tau_max, tau_max))
