"""The laboratory's scheme: its line, its inverse kinematics by feedback, and what it refuses."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import twin
from scenarios.gravity_hold import held_pose
from scenarios.laboratory import Laboratory
from scenarios.running.runs import run_one
from scenarios.setup import Sampling
from scenarios.velocity_control import VelocityControl
from tests.support import tasks
from tests.support.dh_tables import plain
from twin.base.errors import LimitError, RobotError, UnreachableError
from twin.data.logs.figures import joint_error
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.trajectories.closed_loop_inverse import FeedbackLaw, track

pytestmark = pytest.mark.slow("runs scenarios in the engine")

QUICK: dict[str, Any] = {"speed": 0.3, "acceleration": 1.0, "distance": 0.15}


def laboratory(**settings):
    """Run the scenario with these options and settings."""
    return tasks.run("laboratory", **settings)


def broken(run):
    return [metric.name for metric in Laboratory().metrics(run) if not metric.passes]


@pytest.fixture(scope="module")
def run():
    return laboratory(robot="irb1400", controller="computed_torque")


@pytest.fixture(scope="module")
def log(run):
    return run.log


def test_initial_error_decays_exponentially(run):
    """Eq. (3.46) in the direction across the line; the steps of 1 ms differ from exp(-K t) by K T / (2 e)."""
    log, error = run.log, run.line_error
    np.testing.assert_allclose(error[0], [0.005, 0, 0, 0, 0, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(error[:, 0], 0.005 * np.exp(-10 * log.t), rtol=0, atol=5e-5)
    np.testing.assert_allclose(run.decayed_error[:, 0], 0.005 * 0.99 ** np.arange(len(log.t)))
    assert np.abs(error[-1]).max() < 5e-5
    assert np.abs(run.drift_bound).max() < 2e-4


def test_tool_reference_follows_the_line(run, log):
    """Two equal ways at 0.25 m/s and 0.5 m/s^2: 0.5 s to speed up, 0.0625 m, 0.3 s of cruise."""
    place = log.pose_ref[:, :3] + run.line_error[:, :3]
    start = forward_kinematics(log.robot, held_pose(log.robot, None))
    np.testing.assert_allclose(place[0], start[:3, 3] + [0.005, 0, 0], rtol=0, atol=1e-15)
    way = place[0] - place
    np.testing.assert_allclose(way[:, 0], 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(way[:, 1], way[:, 2], rtol=0, atol=1e-15)
    expected = [0.0, 0.0625, 0.1, 0.1375, 0.2]
    np.testing.assert_allclose(way[[0, 500, 650, 800, 1300], 1], expected, rtol=0, atol=1e-15)
    assert log.t[-1] == 1.3
    np.testing.assert_allclose(log.pose_ref[:, 3:], np.tile(log.pose_ref[0, 3:], (1301, 1)), atol=2e-5)


def test_reference_obeys_engine_recursion(log):
    q, qd, qdd, T = log.q_ref, log.qd_ref, log.qdd_ref, 1e-3
    np.testing.assert_array_equal(qd[1:], qd[:-1] + T * qdd[:-1])
    np.testing.assert_array_equal(q[1:], q[:-1] + T * qd[1:])
    start = held_pose(log.robot, None)
    path = Laboratory().path(log.robot, start, Sampling())
    samples = track(FeedbackLaw(log.robot, 10.0), path, start, T).samples
    np.testing.assert_allclose(q, samples.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(qd[1:], samples.qd[:-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(qd[0], samples.qd[0], rtol=0, atol=1e-12)  # it begins in motion
    np.testing.assert_allclose(qdd[-1], (samples.qd[-1] - samples.qd[-2]) / T, rtol=0, atol=1e-9)
    assert np.abs(joint_error(log)).max() < 1e-14


def test_default_controller_is_pd_which_sags_and_a_low_gain_has_no_drift_metric():
    run = laboratory(gain=1.0, **QUICK)
    assert run.log.controller == "pd"
    assert not broken(run)
    metrics = Laboratory().metrics(run)
    (whole,) = (one for one in metrics if one.name.startswith("largest distance of the tool"))
    assert 0.01 < whole.value < 0.2
    assert not any("drift" in metric.name for metric in metrics)


def test_line_from_the_tool_of_a_urdf_without_closed_form_poses_and_rating_has_drift_only():
    run = laboratory(robot=str(twin.load("irb140").urdf), start_error=0.0, **QUICK)
    assert run.log.robot.dh is None
    assert not broken(run)
    assert run.line_error[0].max() < 1e-15
    assert 1e-6 < np.abs(run.line_error).max() <= run.drift_bound.max()


def test_wrong_decay_or_drift_fails(run):
    """A gain that is off by 2 percent, no feedback at all, or a drift that is twice the bound."""
    assert not broken(run)
    k = np.arange(len(run.log.t))[:, None]
    first = run.line_error[0]
    for factor in (1 - 0.0098, 1 - 0.0102, 1.0):
        other = dataclasses.replace(run, decayed_error=factor**k * first)
        assert "inverse kinematics: error off its decay / bound" in broken(other)
    other = dataclasses.replace(run, line_error=run.line_error + 2 * run.drift_bound)
    assert broken(other) == [
        "inverse kinematics: error off its decay / bound",
        "inverse kinematics: largest drift from the line",
    ]


def test_continuous_reference_from_a_named_pose_integrates_by_runge_kutta():
    run = laboratory(robot="irb1400", pose="left", reference="continuous", time_step=0.002, **QUICK)
    np.testing.assert_array_equal(run.log.q_ref[0], run.log.robot.poses["left"])
    assert not broken(run)
    error = run.line_error
    np.testing.assert_allclose(error[:, 0], 0.005 * np.exp(-10 * run.log.t), rtol=0, atol=1e-10)
    np.testing.assert_allclose(error[:, 1:], 0, rtol=0, atol=1e-10)


def test_laboratory_suits_six_joints_and_youbot():
    names = (*twin.robot_names(), *twin.robot.laboratory_names())
    suited = [name for name in names if Laboratory().suits(twin.load(name))]
    assert suited == [*twin.robot_names(), "manutec_r3", "youbot"]


def test_refusal_names_the_scenarios_that_suit_the_robot():
    others = "excitation, gravity_hold, joint_tracking, model_agreement"
    for robot, named in (
        ("youbot3", f"collision, drive_check, {others}"),
        ("two_link", others.partition(", ")[2]),
    ):
        run = run_one(tasks.task("laboratory", robot=robot))
        assert run.refused
        assert run.error.endswith(f"masses; scenarios that suit {robot}: {named}")
    assert run_one(tasks.task("laboratory", robot="rx90")).error.endswith("the dynamics need masses")


def test_invalid_settings_raise():
    for settings, error, told in (
        ({"robot": "youbot3"}, RobotError, "robot 'youbot3' has 3 joints: the line needs six joints"),
        ({"saturation": np.nan}, ValueError, "expected a saturation above 0 m/s, got nan"),
        ({"distance": 0.1}, LimitError, "a distance of 0.1 m is too short for 0.25 m/s at 0.5 m/s^2"),
        ({"distance": 0.6, "speed": 1.0, "acceleration": 4.0}, UnreachableError, "the joints lost the path"),
        ({"gain": 2500.0}, ValueError, "the gain is too high for steps of 0.001 s: with euler integration"),
        ({"start_error": np.nan}, ValueError, "expected a start error of at least 0 m, got nan"),
        ({"speed": -1.0}, ValueError, "expected a positive, finite tool speed in m/s, got -1.0"),
    ):
        with pytest.raises(error, match=re.escape(told)):
            laboratory(**settings)


# The laboratory's scheme on its own robot: five joints, a saturation, bodies of a data sheet.


QUICK_YOUBOT = {"speed": 0.2, "acceleration": 0.5, "distance": 0.1}


def test_five_joints_hold_orientation_with_tool_down():
    run = laboratory(robot="youbot", **QUICK_YOUBOT)
    assert not broken(run)
    assert not run.log.saturated.any()
    assert np.abs(run.left_over).max() < 1e-12
    error = run.line_error
    np.testing.assert_allclose(error[:, 0], 0.005 * np.exp(-10 * run.log.t), rtol=0, atol=8e-5)
    assert np.abs(error[:, 3:]).max() < 1e-12
    drift = np.abs(error - run.decayed_error)
    assert 0.5 < np.max(drift / (run.drift_bound + 1e-12)) < 1


def test_five_joints_leave_least_squares_residual_in_other_poses():
    robot = twin.load("youbot")
    law = FeedbackLaw(robot, 10.0)
    q = np.array([0.2, 0.4, 0.9, 0.8, 0.1])
    motion = Laboratory(**QUICK_YOUBOT).path(robot, q, Sampling())(np.array(0.3))
    qd = law.speeds(q, motion)
    J_A = twin.kinematics.analytic_jacobian(robot, q)
    left = law.remainder(q, qd, motion)
    assert np.linalg.norm(left) > 0.01
    np.testing.assert_allclose(J_A.T @ left, 0, rtol=0, atol=1e-13)  # least squares


@pytest.mark.parametrize("reference", ["consistent", "continuous"])
def test_saturated_speed_causes_bounded_lag(reference):
    """At 0.2 m/s, cut off at 0.15 m/s: 0.05 m/s left over, so that the tool lags by up to 0.05 / K = 5 mm."""
    settings = {
        "robot": "youbot",
        "start_error": 0.0,
        "reference": reference,
        "time_step": 0.002,
        **QUICK_YOUBOT,
    }
    run = laboratory(saturation=0.15, **settings)
    assert not [name for name in broken(run) if name.startswith("inverse")]
    assert np.abs(run.left_over).max() == pytest.approx(0.05, rel=1e-9)
    lag = np.abs(run.line_error[:, 1:3]).max(axis=0)
    assert np.all((lag > 5e-4) & (lag < 0.005 + 1e-4))


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


@pytest.mark.parametrize("robot", ["irb140", "youbot"])
def test_velocity_control_is_the_pseudo_inverse_of_figure_2_2(robot):
    """The geometric Jacobian of (2.20) at every sample, and the error of the steps that nothing corrects."""
    run = tasks.run("velocity_control", robot=robot, steps_per_period=5, duration=1.0)
    log, velocity = run.log, [-0.01, 0, 0, 0, 0, 0]
    assert not [metric.name for metric in VelocityControl().metrics(run) if not metric.passes]
    J = twin.jacobian(log.robot, log.q_ref[:-1])
    np.testing.assert_allclose(log.qd_ref[1:], np.linalg.pinv(J) @ velocity, rtol=0, atol=1e-13)
    way = twin.forward_kinematics(log.robot, log.q_ref)[:, :3, 3]
    np.testing.assert_allclose(
        way + run.line_error[:, :3] - way[0], log.t[:, None] * velocity[:3], atol=1e-15
    )
    ratio = np.max(np.abs(run.line_error) / (run.drift_bound + 1e-12))
    assert 0.5 < ratio < 1
    grown = np.linalg.norm(run.line_error[-1]) / np.linalg.norm(run.line_error[len(log.t) // 2])
    assert 1.5 < grown < 2.5  # in proportion to the time


def test_velocity_control_by_runge_kutta_has_no_drift_and_refuses_impossible_settings():
    run = tasks.run("velocity_control", reference="continuous", duration=0.2, velocity_z=0.02)
    assert np.abs(run.line_error).max() < 1e-14
    for settings, error, told in (
        ({"velocity_y": np.inf}, ValueError, "expected a finite velocity in m/s"),
        ({"duration": 0.0}, ValueError, "expected a positive, finite duration in s, got 0.0"),
        ({"velocity_x": 1.0, "duration": 0.5}, UnreachableError, "the joints lost the path"),
        ({"robot": "two_link"}, RobotError, "robot 'two_link' has 2 joints"),
    ):
        with pytest.raises(error, match=told):
            tasks.run("velocity_control", **settings)
