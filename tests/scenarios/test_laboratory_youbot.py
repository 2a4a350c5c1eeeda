"""The laboratory's scheme on its own robot: five joints, a saturation, bodies of a data sheet."""

import numpy as np
import pytest

import twin
from scenarios import laboratory
from scenarios.laboratory import Config
from tests.support.dh_tables import plain
from twin.trajectories.closed_loop_inverse import FeedbackLaw

QUICK = {"speed": 0.2, "acceleration": 0.5, "distance": 0.1}


def broken(log):
    return [metric.name for metric in laboratory.metrics(log) if not metric.passes]


@pytest.fixture(scope="module")
def log():
    return laboratory.run(Config(robot="youbot", controller="computed_torque"))


def test_five_joints_hold_orientation_with_tool_down(log):
    assert not broken(log)
    assert np.abs(log.arrays["left_over"]).max() < 1e-12
    error = log.arrays["line_error"]
    np.testing.assert_allclose(error[:, 0], 0.005 * np.exp(-10 * log.t), rtol=0, atol=8e-5)
    assert np.abs(error[:, 3:]).max() < 1e-12
    assert 0.5 < np.max(np.abs(error - log.arrays["decayed_error"]) / (log.arrays["drift_bound"] + 1e-12)) < 1


def test_pd_passes_without_saturation():
    log = laboratory.run(Config(robot="youbot", **QUICK))
    assert log.controller == "pd"
    assert not broken(log)
    assert not log.saturated.any()


def test_five_joints_leave_least_squares_residual_in_other_poses():
    robot = twin.load("youbot")
    law = FeedbackLaw(robot, 10.0)
    q = np.array([0.2, 0.4, 0.9, 0.8, 0.1])
    motion = laboratory.tool_path(robot, q, Config(**QUICK))(np.array(0.3))
    qd = law.speeds(q, motion)
    J_A = twin.kinematics.analytic_jacobian(robot, q)
    left = law.remainder(q, qd, motion)
    assert np.linalg.norm(left) > 0.01
    np.testing.assert_allclose(J_A.T @ left, 0, rtol=0, atol=1e-13)  # least squares


@pytest.mark.parametrize("reference", ["consistent", "continuous"])
def test_saturated_speed_causes_bounded_lag(reference):
    """At 0.2 m/s, cut off at 0.15 m/s: 0.05 m/s left over, so that the tool lags by up to 0.05 / K = 5 mm."""
    settings = {"robot": "youbot", "start_error": 0.0, "reference": reference, **QUICK}
    log = laboratory.run(Config(saturation=0.15, **settings))
    assert not [name for name in broken(log) if name.startswith("inverse")]
    assert np.abs(log.arrays["left_over"]).max() == pytest.approx(0.05, rel=1e-9)
    lag = np.abs(log.arrays["line_error"][:, 1:3]).max(axis=0)
    assert np.all((lag > 5e-4) & (lag < 0.005 + 1e-4))
    if reference == "consistent":
        exact = laboratory.run(Config(**settings))
        assert np.abs(exact.arrays["line_error"]).max() < 1e-4


def test_centres_of_mass_agree_with_data_sheet():
    """Upright, in the base frame: the sheet's centres of mass above and beside the joints."""
    robot = plain("youbot")
    assert sum(robot.tree.inertias[:, 0]) == pytest.approx(1.390 + 1.318 + 0.821 + 0.769 + 0.687)
    heights = np.array([0.11397, 0.155 + 0.10441, 0.29 + 0.05353, 0.29 + 0.1136 - 0.01648])
    ahead = np.array([0.015, -0.00013, -0.00015, 0.0])
    masses = np.array([1.318, 0.821, 0.769, 0.687])
    stretched = twin.gravity_torque(robot, [0, np.pi / 2, 0, 0, 0])
    upright = twin.gravity_torque(robot, np.zeros(5))
    for joint in range(3):  # axes 2, 3, 4; a joint carries the bodies from its own on
        above = [0, 0.155, 0.29][joint]
        lever = masses[joint:] @ (heights[joint:] - above)
        assert stretched[joint + 1] == pytest.approx(-9.81 * lever, rel=1e-12)
        assert upright[joint + 1] == pytest.approx(-9.81 * (masses[joint:] @ ahead[joint:]), rel=1e-9)
    assert np.all(np.abs(stretched) < robot.tau_max)
