"""How much of a motor is used: all of it exactly where the motor's limit cut the demand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.sample_drives import COUPLING, CURVED, by_motor
from twin.logs.figures import motor_load, speed_load
from twin.robot.drives.motors import MotorLimits, limited_torque


def run_of(robot, rng, samples=400):
    """Return a log of random demands and speeds beyond the motors' limits."""
    drives = robot.active_drives
    motors = MotorLimits.of(drives, robot.tau_max)
    scale = robot.tau_max if drives is None else drives.torque_max
    demand, qd = rng.normal(size=(samples, 6)) * scale, rng.normal(size=(samples, 6)) * 4
    tau = np.empty_like(demand)
    for k in range(samples):
        limited_torque(*motors, demand[k], qd[k], tau[k])
    return SimpleNamespace(robot=robot, tau=tau, tau_demand=demand, qd_motor=qd, qd=qd)


@pytest.mark.parametrize("coupling", [np.eye(6), COUPLING])
def test_a_motor_is_used_in_full_where_its_limit_cut_the_demand(coupling, robot, rng):
    drives = replace(CURVED, coupling=coupling, motor_speed_max=[400.0, 300, 350, 500, 450, 1e9])
    log = run_of(robot.with_drives("rigid", drives), rng)
    load = motor_load(log)
    to_motor = np.linalg.inv(np.diag(drives.ratio) @ coupling).T
    for k in range(len(load)):
        given = by_motor(drives, log.tau_demand[k], log.qd_motor[k])
        np.testing.assert_allclose(log.tau[k], given, rtol=1e-12, atol=1e-12 * abs(given).max())
        own, wanted = to_motor @ given, to_motor @ log.tau_demand[k]
        cut = np.abs(own - wanted) > 1e-9 * np.abs(wanted)
        np.testing.assert_allclose(np.abs(load[k][cut]), 1.0, rtol=1e-9)
        assert np.all(np.abs(load[k][~cut]) < 1.0 + 1e-9)
        turned = np.sign(drives.ratio) * np.sign(wanted)
        assert np.all((np.sign(load[k]) == turned) | (load[k] == 0.0))
    assert 100 < np.count_nonzero(np.abs(load) >= 1 - 1e-9) < load.size - 100


def test_of_ideal_drives_the_limit_is_that_of_the_file(robot, rng):
    log = run_of(robot, rng)
    np.testing.assert_array_equal(motor_load(log), log.tau / robot.tau_max)
    np.testing.assert_array_equal(speed_load(log), log.qd / robot.qd_max)
