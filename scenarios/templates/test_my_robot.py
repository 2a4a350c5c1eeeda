"""Tests of the arm in robot.toml; `python -m pytest my_robot` runs them."""

from pathlib import Path

import numpy as np
import pytest

import twin

FILE = Path(__file__).parent / "robot.toml"


@pytest.fixture(scope="module")
def arm():
    """Return the arm of the file."""
    return twin.load(FILE)


def test_check_model_finds_no_error():
    """Test that `irb-twin check-model` reports no error."""
    assert twin.check_model(FILE).sound


def test_flange_position_agrees_with_the_data_sheet(arm):
    """Test the position in [m] with all joints at zero; take it from your data sheet, not from robot.toml."""
    T_base_flange = twin.forward_kinematics(arm, np.zeros(6))
    np.testing.assert_allclose(T_base_flange[:3, 3], [0.580, 0, 0.850], atol=1e-9)


def test_positive_angles_have_the_directions_of_the_teach_pendant(arm):
    """Test axis 1 (to the left), axis 2 (forward) and axis 3 (down)."""
    x, y, z = twin.forward_kinematics(arm, np.zeros(6))[:3, 3]
    assert twin.forward_kinematics(arm, [0.1, 0, 0, 0, 0, 0])[1, 3] > y
    assert twin.forward_kinematics(arm, [0, 0.1, 0, 0, 0, 0])[0, 3] > x
    assert twin.forward_kinematics(arm, [0, 0, 0.1, 0, 0, 0])[2, 3] < z


def test_mass_agrees_with_the_data_sheet():
    """Test the mass of all links, in [kg]."""
    assert twin.check_model(FILE).mass == pytest.approx(60.0, abs=1e-9)


def test_motors_hold_the_arm_in_every_pose(arm):
    """Test the gravity torques in random poses, without a payload."""
    rng = np.random.default_rng(1)
    q = rng.uniform(arm.q_min, arm.q_max, (1000, 6))
    assert np.all(np.abs(twin.gravity_torque(arm, q)) < arm.tau_max)


def test_engine_and_model_have_equal_accelerations(arm):
    """Compare one step of PyBullet with forward dynamics, from random states, to round-off."""
    rng = np.random.default_rng(2)
    dt = 1e-3
    with twin.Simulation(arm, time_step=dt) as engine:
        for _ in range(20):
            q, qd = rng.uniform(arm.q_min, arm.q_max), rng.uniform(-1, 1, 6)
            tau = twin.inverse_dynamics(arm, q, qd, rng.uniform(-5, 5, 6))
            engine.reset(q, qd)
            engine.step(tau)
            _, qd_after = engine.state()
            expected = twin.forward_dynamics(arm, q, qd, tau)
            np.testing.assert_allclose((qd_after - qd) / dt, expected, rtol=0, atol=1e-9)
