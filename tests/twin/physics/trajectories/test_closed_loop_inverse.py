"""Closed-loop inverse kinematics: its error dynamics, its integration, and what it refuses."""

import numpy as np
import pytest
from scipy.linalg import expm

import twin
from scenarios.laboratory import Laboratory
from tests.support.dh_arms import T_TOOL, fourth_order, times
from tests.support.laboratory_arms import laboratory_arm
from tests.support.refusals import refused
from twin.base.errors import SingularityError, UnreachableError
from twin.physics.kinematics.differential import (
    analytic_jacobian,
    coordinate_rates,
    coordinates_from_pose,
    tool_coordinates,
)
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.trajectories.closed_loop_inverse import (
    FeedbackLaw,
    coordinate_error,
    decayed_error,
    drift_bound,
    error_decay,
    gain_matrix,
    step_decay,
    track,
)
from twin.physics.trajectories.tool_paths import straight_line, through_poses

K = np.diag([20.0, 10, 15, 12, 8, 9]) + 1.5 * np.triu(np.ones((6, 6)), 1)  # not even symmetric


def path_of(robot, T_tool=None, duration=0.5):
    q = np.array([[0.3, -0.4, 0.3, 0.5, 0.8, -0.2, 0.4], [0.6, -0.1, 0.6, 0.3, 1.1, 0.3, 0.1]])[:, : robot.n]
    return q[0], through_poses(twin.forward_kinematics(robot, q, T_tool), durations=duration)


@pytest.fixture(scope="module")
def path(robot):
    return path_of(robot, T_TOOL)[1]


@pytest.fixture
def start(robot):
    return path_of(robot)[0]


def in_angles(motion, kind="zyx"):
    """The coordinates of a motion of the tool, and their rates."""
    x = coordinates_from_pose(motion.T_base_tool, kind)
    return x, coordinate_rates(x, motion.twist, kind)


@pytest.fixture
def arm(request, robot):
    return robot if request.param == "six" else laboratory_arm(request.param)


@pytest.mark.parametrize("kind", ["zyx", "zyz"])
def test_the_law_makes_the_error_die_away(robot, path, kind):
    """Manual, eq. (3.44) and (3.46): `e_dot = xd - J_A qd = -K e`, whatever the error."""
    law = FeedbackLaw(robot, K, T_TOOL, kind)
    motion = path(np.linspace(0, path.duration, 200))
    q = path_of(robot)[0] + np.random.default_rng(5).uniform(-0.3, 0.3, (200, 6))
    qd, error = law.speeds(q, motion), law.error(q, motion.T_base_tool)
    error_rate = in_angles(motion, kind)[1] - times(analytic_jacobian(robot, q, T_TOOL, kind), qd)
    assert np.max(np.abs(error)) > 0.3
    np.testing.assert_allclose(error_rate, -times(K, error), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("arm", "kind"), [("seven", "zyx"), ("youbot", "zyx"), ("six", "quaternion")], indirect=["arm"]
)
def test_coordinates_that_the_joints_cannot_follow_obey_the_law_in_least_squares(arm, kind):
    q, path = path_of(arm)
    law = FeedbackLaw(arm, 10.0, None, kind)
    motion = path(np.linspace(0, path.duration, 20))
    q = q + np.random.default_rng(6).uniform(-0.2, 0.2, (20, arm.n))
    J_A = analytic_jacobian(arm, q, None, kind)
    qd, error = law.speeds(q, motion), law.error(q, motion.T_base_tool)
    x, x_hat = coordinates_from_pose(motion.T_base_tool, kind), tool_coordinates(arm, q, None, kind)
    if kind == "quaternion":
        x[:, 3:] *= np.sign(np.sum(x[:, 3:] * x_hat[:, 3:], axis=1))[:, None]
    missed = coordinate_rates(x, motion.twist, kind) + 10.0 * error - times(J_A, qd)
    of_law = times(np.swapaxes(J_A, 1, 2), missed) if arm.n < J_A.shape[1] else missed
    np.testing.assert_allclose(of_law, 0, rtol=0, atol=1e-11)
    assert (np.max(np.abs(missed)) > 1e-3) == (arm.n < J_A.shape[1])
    idle = np.linalg.svd(J_A)[2][:, 6:]
    np.testing.assert_allclose(times(idle, qd), 0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["zyx", "zyz", "quaternion"])
@pytest.mark.parametrize("arm", ["youbot", "six", "seven"], indirect=True)
def test_accelerations_are_the_derivative_of_the_law(arm, kind):
    q, path = path_of(arm)
    law = FeedbackLaw(arm, 10.0, None, kind)
    t = np.linspace(0.05, 0.45, 9)
    q = q + np.random.default_rng(7).uniform(-0.02, 0.02, (9, arm.n))
    qd = law.speeds(q, path(t))
    found = law.accelerations(q, qd, path(t))
    expected = fourth_order(lambda h: law.speeds(q + h * qd, path(t + h)), 2e-4)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.max(np.abs(found)) ** 2)


def test_a_wrong_start_decays_exponentially(robot, path, start):
    law = FeedbackLaw(robot, K, T_TOOL, "zyz")
    tracked = track(law, path, start + 0.05, 4e-3, integration="runge-kutta")
    t, error = tracked.samples.t, tracked.error
    expected = error_decay(error[0], K, t)
    assert np.max(np.abs(error[0])) > 0.05
    # The integration's own error: halving the step takes a sixteenth of it.
    coarse = np.max(np.abs(error - expected))
    finer = track(law, path, start + 0.05, 2e-3, integration="runge-kutta")
    fine = np.max(np.abs(finer.error - error_decay(error[0], K, finer.samples.t)))
    assert coarse < 3e-7
    assert 13 < coarse / fine < 19
    np.testing.assert_allclose(expected, [error_decay(error[0], K, time) for time in t], rtol=0, atol=1e-15)


def test_euler_steps_are_the_manuals(robot, path, start):
    """Eq. (3.41) to (3.45), written out."""
    law = FeedbackLaw(robot, 25.0, T_TOOL)
    tracked = track(law, path, start + 0.02, 5e-3)
    q = start + 0.02
    for k, t in enumerate(tracked.samples.t):
        np.testing.assert_allclose(tracked.samples.q[k], q, rtol=0, atol=1e-13)
        motion = path(t)
        (x, xd), x_hat = in_angles(motion), tool_coordinates(robot, q, T_TOOL)
        np.testing.assert_allclose(tracked.error[k], x - x_hat, rtol=0, atol=1e-13)
        qd = np.linalg.solve(analytic_jacobian(robot, q, T_TOOL), xd + 25.0 * (x - x_hat))
        np.testing.assert_allclose(tracked.samples.qd[k], qd, rtol=0, atol=1e-12)
        q = q + 5e-3 * qd


def test_errors_of_coordinates():
    x, x_hat = np.array([1.0, 2, 3, 3.1, 0, -3.1]), np.array([0.5, 2, 4, -3.1, 0, 3.1])
    error = coordinate_error(x, x_hat, "zyz")
    np.testing.assert_allclose(error, (0.5, 0, -1, 6.2 - 2 * np.pi, 0, 2 * np.pi - 6.2), rtol=0, atol=1e-15)
    a, b = np.array([0.6, 0.8, 0, 0]), np.array([0.0, 1, 0, 0])
    for sign in (1, -1):
        error = coordinate_error(np.r_[0, 0, 0, sign * a], np.r_[0, 0, 1, b], "quaternion")
        np.testing.assert_allclose(error, np.r_[0, 0, -1, a - b], rtol=0, atol=1e-15)


def test_singularity_on_the_path_is_reported_with_its_time(robot):
    q = np.deg2rad([[10.0, 20, -30, 40, -20, 50], [10.0, 20, -30, 40, 20, 50]])
    path = through_poses(twin.forward_kinematics(robot, q), durations=0.5)
    q_start = np.deg2rad([10.0, 20, -30, 40, 0, 50])
    with pytest.raises(SingularityError, match=r"sample 0 at t = 0 s: the analytic Jacobian has rank 5"):
        track(FeedbackLaw(robot, 10.0), path, q_start, 1e-3)
    upright = through_poses(np.tile(np.eye(4), (2, 1, 1)), durations=0.1)
    with pytest.raises(SingularityError, match=r"sample 0 at t = 0 s: the rates of zyz angles"):
        track(FeedbackLaw(robot, 10.0, None, "zyz"), upright, q[0], 1e-3)


def test_gains_are_matrices_and_as_high_as_the_step_allows(robot, path, start):
    np.testing.assert_array_equal(gain_matrix(3.0, 2), 3 * np.eye(2))
    np.testing.assert_array_equal(gain_matrix([1, 2], 2), np.diag([1.0, 2.0]))
    np.testing.assert_array_equal(gain_matrix(K, 6), K)
    for integration, fits, too_high in (("euler", 99.0, 101.0), ("runge-kutta", 139.0, 140.0)):
        track(FeedbackLaw(robot, fits, T_TOOL), path, start, 0.02, integration=integration)
        told = rf"too high for steps of 0\.02 s: with {integration} .* multiply"
        with pytest.raises(ValueError, match=told):
            track(FeedbackLaw(robot, too_high, T_TOOL), path, start, 0.02, integration=integration)


def test_misuse_is_one_clear_sentence(robot, path):
    refused(
        (lambda r, p: FeedbackLaw(r, 0.0), "expected a gain that is positive definite, in 1/s"),
        (lambda r, p: FeedbackLaw(r, np.ones(7)), "expected a gain of shape (), (6,) or (6, 6), got (7,)"),
        (lambda r, p: track(FeedbackLaw(r, 1.0), p, np.zeros(5), 1e-3), "expected q_start of shape (6,)"),
        (lambda r, p: track(FeedbackLaw(r, 1.0), p, np.zeros(6), 0.0), "expected a positive period in s"),
        (lambda r, p: track(FeedbackLaw(r, 1.0), p, [0] * 6, 1.0, integration="heun"), "integration 'heun'"),
        given=(robot, path),
    )


def test_unreachable_line_is_reported_with_time_and_error_also_by_the_scenario(robot):
    start = robot.poses["test_3"]
    T = np.tile(twin.forward_kinematics(robot, start), (2, 1, 1))
    T[1, :3, 3] += [1.0, -1.0, 0.0]
    line = straight_line(T[0], T[1], speed=0.25, acceleration=0.5)
    told = r"sample \d+ at t = 0\.\d+ s: the joints lost the path, \S+ m off"
    with pytest.raises(UnreachableError, match=told):
        track(FeedbackLaw(robot, 10.0), line, start, 1e-2)
    with pytest.raises(UnreachableError, match="the joints lost the path"):
        Laboratory(distance=1.5, speed=0.5, acceleration=2.0).run()


# Its error due to integration in steps.


GAINS = np.array([20.0, 40.0, 80.0, 10.0, 60.0, 30.0])


def test_the_step_is_the_series_of_the_exponential():
    np.testing.assert_allclose(step_decay(K, 0.01, "euler"), np.eye(6) - 0.01 * K, rtol=0, atol=1e-16)
    series = step_decay(K, 0.01, "runge-kutta")
    np.testing.assert_allclose(series, expm(-0.01 * K), rtol=0, atol=6e-6)  # (K T)^5 / 120
    fifth = np.linalg.matrix_power(-0.01 * K, 5) / 120
    np.testing.assert_allclose(series + fifth, expm(-0.01 * K), rtol=0, atol=3e-7)


@pytest.mark.parametrize(
    ("gains", "kind", "offset"),
    [
        *((GAINS, *sample) for sample in (("zyx", 0.0), ("zyx", 0.001), ("zyz", 0.05))),
        (np.full(6, 950.0), "zyx", 0.001),  # K T = 1.9, where the error changes its sign with every step
    ],
)
def test_the_bound_holds_and_is_near(robot, gains, kind, offset):
    start, path = path_of(robot)
    law = FeedbackLaw(robot, gains, None, kind)
    tracked = track(law, path, start + offset, 2e-3)
    samples = tracked.samples
    N = len(samples.t)
    decayed = decayed_error(law, tracked.error[0], N, 2e-3, "euler")
    expected = [tracked.error[0] * (1 - 2e-3 * gains) ** k for k in range(N)]
    np.testing.assert_allclose(decayed, expected, rtol=1e-12)
    bound = drift_bound(law, samples, path(samples.t), 2e-3, "euler")
    ratio = np.max(np.abs(tracked.error - decayed), axis=0) / bound
    assert np.all(ratio <= 1.0)
    assert np.max(ratio) > 0.3 or gains is not GAINS


def test_what_five_joints_cannot_do_is_in_the_bound():
    five = laboratory_arm("youbot")
    start = np.array([0.3, 0.4, 0.9, 0.8, 0.2])
    T = np.tile(forward_kinematics(five, start), (2, 1, 1))
    T[1, :3, 3] += [0.0, -0.05, -0.03]  # sideways with a tool that is not upright: it has to turn
    path = through_poses(T, durations=[1.0])
    law = FeedbackLaw(five, 10.0)
    tracked = track(law, path, start, 4e-3)
    bound = drift_bound(law, tracked.samples, path(tracked.samples.t), 4e-3, "euler")
    off = np.abs(tracked.error - decayed_error(law, tracked.error[0], len(tracked.error), 4e-3, "euler"))
    assert np.all(off <= bound)
    assert np.max(off) > 1e-2
    assert np.max(np.max(off, axis=0) / bound) > 0.3


def test_what_has_no_such_bound_is_refused(robot):
    start, path = path_of(robot)
    tracked = track(FeedbackLaw(robot, 20.0), path, start, 1e-2)
    motion = path(tracked.samples.t)

    def bound(*law):
        return lambda: drift_bound(FeedbackLaw(robot, *law), tracked.samples, motion, 1e-2, "euler")

    refused(
        (bound(K), "got 'zyx' and another a gain"),
        (bound(20.0, None, "quaternion"), "got 'quaternion' and such a gain"),
        (bound(200.0), "expected a gain that lets errors decay in steps of 0.01 s"),
    )
