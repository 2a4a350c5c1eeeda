import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import twin
from scenarios import laboratory
from tests.support.dh_arms import T_TOOL, fourth_order, times
from tests.support.laboratory_arms import laboratory_arm
from tests.support.processor_times import shared
from tests.support.refusals import refused
from tests.support.tool_paths import K, path_of
from twin import inverse_kinematics, joint_path, pose_vector, quintic
from twin.errors import BranchError, LimitError, SingularityError, UnreachableError
from twin.kinematics.differential import (
    analytic_jacobian,
    coordinate_rates,
    coordinates_from_pose,
    tool_coordinates,
)
from twin.kinematics.forward import forward_kinematics
from twin.logs.recordings.recording import tool_recording
from twin.trajectories.closed_loop_inverse import (
    FeedbackLaw,
    coordinate_error,
    decayed_error,
    drift_bound,
    error_decay,
    gain_matrix,
    step_decay,
    track,
)
from twin.trajectories.sampling import Samples, check_limits, sample
from twin.trajectories.tool_paths import ToolMotion, straight_line, through_poses, through_recording

ROBOT = twin.load("irb140")
TEST_1 = np.deg2rad([28.79, -34.07, 19.54, 7.62, 38.93, 56.38])
TEST_2 = np.deg2rad([-79.56, -39.46, -144.26, 71.05, 84.59, -62.73])
TEST_3 = np.deg2rad([-16.15, 34.64, -9.11, 113.11, 46.53, -72.67])
POSES = twin.forward_kinematics(ROBOT, [TEST_1, TEST_2, TEST_3])
THERE_AND_BACK = through_poses(POSES[[2, 0, 1, 0, 2]])
TOOL = np.array([[0.0, 0, 1, 0.02], [0, 1, 0, -0.01], [-1, 0, 0, 0.12], [0, 0, 0, 1]])

HERE = np.deg2rad([20.0, 10.0, -20.0, 30.0, 50.0, -40.0])
AWAY = np.deg2rad([-25.0, 25.0, -5.0, 60.0, 65.0, 20.0])
SHORT = through_poses(twin.forward_kinematics(ROBOT, [HERE, AWAY], TOOL))


def recorded_path():
    """Along THERE_AND_BACK from test 3 to test 1, as if recorded every 20 ms."""
    t = np.arange(0.0, THERE_AND_BACK.times[1] + 0.01, 0.02)
    return through_recording(tool_recording(100.0 + t, pose_vector(THERE_AND_BACK(t).T_base_tool)))


def at(q):
    return twin.forward_kinematics(ROBOT, q)


@shared
def path_and_tool(name):
    """The path and its T_flange_tool."""
    if name == "tool":
        return joint_path(ROBOT, SHORT, near=HERE, T_flange_tool=TOOL), TOOL
    return joint_path(ROBOT, THERE_AND_BACK if name == "thesis" else recorded_path(), near=TEST_3), None


PATHS = ("thesis", "tool", "recording")


@pytest.mark.parametrize("name", PATHS)
def test_the_tool_path_is_reproduced_with_its_derivatives_and_at_rest_at_both_ends(name):
    path, tool = path_and_tool(name)
    samples = sample(path, 1e-3)
    np.testing.assert_array_equal(samples.q, path.checked.q)
    T, twist, twist_rate = path.tool_path(samples.t)
    np.testing.assert_allclose(twin.forward_kinematics(ROBOT, samples.q, tool), T, rtol=0, atol=5e-15)
    J = twin.jacobian(ROBOT, samples.q, tool)
    J_dot = twin.jacobian_dot(ROBOT, samples.q, samples.qd, tool)
    np.testing.assert_allclose(times(J, samples.qd), twist, rtol=0, atol=1e-14)
    acceleration = times(J, samples.qdd) + times(J_dot, samples.qd)
    np.testing.assert_allclose(acceleration, twist_rate, rtol=0, atol=1e-13)

    q, qd, qdd = path([-1.0, 0.0, path.duration, path.duration + 1.0])
    np.testing.assert_array_equal(q[[0, 3]], q[[1, 2]])
    assert not qd.any()
    assert not qdd.any()

    h = 1e-4
    t = np.linspace(0, path.duration, 301)
    knots = {"thesis": THERE_AND_BACK.times, "tool": [0, path.duration]}.get(name, np.arange(110) * 0.02)
    t = t[np.all(np.abs(t[:, None] - np.asarray(knots)) > 3 * h, axis=1)]
    _, qd, qdd = path(t)
    numerics = fourth_order(lambda step: np.array(path(t + step)[:2]), h)
    for numeric, given, tolerance in zip(numerics, (qd, qdd), (3e-11, 3e-9), strict=True):
        np.testing.assert_allclose(given, numeric, rtol=0, atol=tolerance * max(1.0, np.abs(given).max()))


def test_the_thesis_poses_in_the_order_3_1_2_1_3():
    path = path_and_tool("thesis")[0]
    q = path(THERE_AND_BACK.times)[0]
    np.testing.assert_allclose(q[[0, 1, 3, 4]], [TEST_3, TEST_1, TEST_1, TEST_3], rtol=0, atol=1e-13)
    np.testing.assert_allclose(at(q[2]), POSES[1], rtol=0, atol=1e-14)
    assert path.branch == 0
    samples = sample(path, 1e-3)
    assert np.all((samples.q > ROBOT.q_min) & (samples.q < ROBOT.q_max))
    assert 0.4 < (np.abs(samples.qd) / ROBOT.qd_max).max() < 0.8  # brisk, with room to spare
    t = np.random.default_rng(1).uniform(-0.1, path.duration + 0.1, 12)
    for whole, shaped, one in zip(path(t), path(t.reshape(2, 3, 2)), path(t[7]), strict=True):
        np.testing.assert_array_equal(shaped, whole.reshape(2, 3, 2, 6))
        np.testing.assert_allclose(one, whole[7], rtol=0, atol=1e-13)


def test_full_turns_are_counted():
    turn = Rotation.from_rotvec(np.deg2rad(110.0) * np.array([0.0, 0.0, 1.0])).as_matrix()
    start = np.deg2rad([10.0, 20.0, -30.0, 15.0, 60.0, -150.0])
    T = np.tile(at(start), (5, 1, 1))
    for k in range(1, 5):
        T[k:, :3, :3] = T[k:, :3, :3] @ turn
    path = joint_path(ROBOT, through_poses(T, durations=0.9), near=start)
    q = path(np.linspace(0, path.duration, 777))[0]
    np.testing.assert_allclose(q[-1], start + np.deg2rad(440.0) * np.eye(6)[5], rtol=0, atol=1e-12)
    assert np.all(np.diff(q[:, 5]) >= -1e-12)
    beyond = start + 2 * np.pi * np.eye(6)[5]  # the same start a turn further ends out of range
    with pytest.raises(LimitError, match="joint_6 would be at 400"):
        joint_path(ROBOT, through_poses(T, durations=0.9), near=beyond)


def test_it_starts_next_to_near_on_that_branch():
    solutions = inverse_kinematics(ROBOT, SHORT(0.0).T_base_tool, T_flange_tool=TOOL)
    branches = np.flatnonzero(~np.isnan(solutions).any(axis=1))
    assert len(branches) >= 3
    for branch in branches:
        try:
            path = joint_path(ROBOT, SHORT, near=solutions[branch] + 0.02, T_flange_tool=TOOL)
        except (LimitError, SingularityError):
            continue  # not every branch goes all the way
        assert path.branch == branch
        np.testing.assert_allclose(path(0.0)[0], solutions[branch], rtol=0, atol=1e-12)


WRIST = np.array([0.1, 0.2, -0.3, 0.0, 0.4, 0.2])
THROUGH = WRIST * [1, 1, 1, 1, -1.3, 1]  # where axis 5 has passed zero
BESIDE = THROUGH + 0.2 * np.eye(6)[3]
OUT = np.deg2rad([0.0, 0.0, 0.0, 0.0, 118.0, 0.0])  # axis 5 goes to 115 degrees
OVER = np.deg2rad([0.0, -20.0, -20.0, 0.0, -40.0, 0.0])
BENT = np.deg2rad([10.0, 60.0, -60.0, 20.0, 40.0, 0.0])
STRETCHED = np.array([*BENT[:2], -np.pi / 2 + 1e-4, *BENT[3:]])
BEHIND = np.deg2rad([0.0, -73.0, -111.0, 0.0, -69.0, 0.0])  # the wrist centre is behind axis 1


def shifted(q, x):
    """Return the pose of joint angles, moved along x."""
    T = at(q)
    T[0, 3] += x
    return T


OVER_AXIS_1 = [at(OVER), shifted(OVER, -2 * at(OVER)[0, 3])]
FURTHER_BACK = [at(BEHIND), shifted(BEHIND, -0.06)]  # than the arm reaches: axis 2 is 0.14 m further away
REFUSED = {  # error and its message, near, poses, and durations
    "range": (LimitError, r"joint_4 .* at -200\.\d+ deg .* s .* -200 deg", TEST_1, POSES, None),
    "speed": (LimitError, r"joint_\d would move at .* at t = 0\.\d+ s", TEST_3, POSES[[2, 0]], 0.2),
    "degrees": (LimitError, r"near must be joint .*: joint_1 .* degrees\?", 99 * HERE, POSES, None),
    "start": (LimitError, r"no solution of the first .*: joint_5 .* 118", OUT * 0.97, at([OUT, HERE]), None),
    "axis 4": (LimitError, r"joint_4 would move .* is 360 deg/s", WRIST, at([WRIST, BESIDE]), 0.7),
    "wrist": (SingularityError, r"s: wrist singularity, .*joint_5 at", WRIST, at([WRIST, THROUGH]), 0.71234),
    "at once": (SingularityError, r"at t = 0 s: wrist .* least 0\.001", None, at([0 * HERE, HERE]), None),
    "shoulder": (SingularityError, r"shoulder singularity, .* m \(joint_1 at", OVER, OVER_AXIS_1, 2.345),
    "elbow": (SingularityError, r"elbow .*joint_3 at -89\.9", BENT, at([BENT, STRETCHED, BENT]), 4.0),
    "branch": (BranchError, r"starts, 7 \(wrist centre behind axis 1.*\), does", BEHIND, FURTHER_BACK, 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_path_that_the_arm_cannot_take_is_refused(name):
    error, message, near, poses, durations = REFUSED[name]
    with pytest.raises(error, match=message):
        joint_path(ROBOT, through_poses(poses, durations=durations), near=near)


def test_out_of_reach_names_sample_time_and_distance():
    poses = [at(HERE), shifted(HERE, 0.6)]
    told = r"sample (\d+) at t = (\S+) s: .* pose at x = .* is (\S+) m from axis 2, the arm .* 0.02 to 0.74 m"
    with pytest.raises(UnreachableError) as error:
        joint_path(ROBOT, through_poses(poses, durations=1.0), near=HERE)
    k, t, distance = map(float, re.fullmatch(told, str(error.value)).groups())
    assert t == pytest.approx(k * 1e-3)
    assert 0.74 < distance < 0.745
    with pytest.raises(UnreachableError, match="sample 0 at t = 0 s"):
        joint_path(ROBOT, through_poses(poses[::-1], durations=1.0), near=HERE)


@dataclass(frozen=True)
class Altered:
    """A tool path spoilt by a jump of the position at half time, or a twist that is not its derivative."""

    jump: float = 0.0
    twist: float = 1.0
    duration: float = SHORT.duration

    def __call__(self, t):
        T, twist, twist_rate = SHORT(t)
        T = T.copy()
        T[..., 2, 3] += self.jump * (np.asarray(t) > 0.5 * self.duration)
        return ToolMotion(T, self.twist * twist, twist_rate)


@pytest.mark.parametrize("spoilt", [Altered(jump=-1e-3), Altered(twist=0.5), Altered(twist=-1.0)])
def test_a_path_that_jumps_or_contradicts_itself_is_refused(spoilt):
    joint_path(ROBOT, Altered(), near=HERE, T_flange_tool=TOOL)
    told = r"sample \d+ at t = .* s: joint_\d jumps by .* deg .* its speed makes"
    with pytest.raises(BranchError, match=told):
        joint_path(ROBOT, spoilt, near=HERE, T_flange_tool=TOOL)


# limits


def samples_at(q, qd=None):
    q = np.atleast_2d(np.asarray(q, dtype=float))
    qd = np.zeros_like(q) if qd is None else np.atleast_2d(np.asarray(qd, dtype=float))
    return Samples(0.5 * np.arange(len(q), dtype=np.float64), q, qd, np.zeros_like(q))


def test_a_motion_on_its_limits_is_allowed():
    check_limits(ROBOT, samples_at([ROBOT.q_min, ROBOT.q_max], [ROBOT.qd_max, -ROBOT.qd_max]))
    check_limits(ROBOT, sample(quintic(ROBOT.q_min, ROBOT.q_max, qd_max=ROBOT.qd_max), 1e-3))


@pytest.mark.parametrize("joint", range(6))
def test_position_and_speed_are_checked_on_both_sides(joint):
    unit = np.eye(6)[joint]
    for q in (ROBOT.q_min - 1e-6, ROBOT.q_max + 1e-6):
        with pytest.raises(LimitError, match=f"joint_{joint + 1} would be at"):
            check_limits(ROBOT, samples_at(unit * q))
    for qd in (ROBOT.qd_max + 1e-6, -ROBOT.qd_max - 1e-6):
        with pytest.raises(LimitError, match=rf"joint_{joint + 1} would move at .* deg/s .* its limit is"):
            check_limits(ROBOT, samples_at(np.zeros(6), unit * qd))


def test_the_earliest_sample_is_named_nan_is_outside_and_degrees_are_suspected_far_outside():
    q, qd = np.zeros((4, 6)), np.zeros((4, 6))
    q[3, 0], qd[1, 5], qd[2, 0] = 9.0, 99.0, 99.0
    outside = (
        r"^joint_4 would be at 206\.265 deg \(3\.6 rad\) at t = 0 s \(sample 0\), "
        r"its range is -200 deg \(-3\.49066 rad\) to 200 deg \(3\.49066 rad\)$"
    )
    for samples, told in (
        (samples_at(q, qd), r"joint_6 would move .*\(sample 1\)"),
        (samples_at([0, np.nan, 0, 0, 0, 0]), "joint_2 would be at nan"),
        (samples_at([4.0, -34.07, 19.54, 7.62, 38.93, 56.38]), r"joint_1 would be .* are these degrees\?"),
        (samples_at([0, 0, 0, 3.6, 0, 0]), outside),
    ):
        with pytest.raises(LimitError, match=told):
            check_limits(ROBOT, samples)
    with pytest.raises(ValueError, match=r"expected samples.q of shape \(N, 6\), got \(1, 5\)"):
        check_limits(ROBOT, samples_at(np.zeros(5)))


# Closed-loop inverse kinematics: its error dynamics, its integration, and what it refuses.


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
        (lambda r, p: FeedbackLaw(r, 1.0, None, "xyz"), "unknown coordinates 'xyz'"),
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
        laboratory.run(laboratory.Config(distance=1.5, speed=0.5, acceleration=2.0))


# Error of closed-loop inverse kinematics due to integration in steps.


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


def test_runge_kutta_follows_the_exponential_far_below_the_bound(robot):
    start, path = path_of(robot)
    law = FeedbackLaw(robot, GAINS)
    tracked = track(law, path, start + 0.001, 2e-3, integration="runge-kutta")
    t = tracked.samples.t
    decayed = decayed_error(law, tracked.error[0], len(t), 2e-3, "runge-kutta")
    exponential = np.exp(-GAINS * t[:, None]) * tracked.error[0]
    np.testing.assert_allclose(decayed, exponential, rtol=0, atol=3e-9)  # a step's (K T)^5 / 120 shows
    bound = drift_bound(law, tracked.samples, path(t), 2e-3, "runge-kutta")
    assert np.all(np.abs(tracked.error - decayed) < 1e-3 * bound)


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
