import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

import twin
from tests.support.dh_arms import fourth_order
from tests.support.refusals import refused
from twin.base.errors import LimitError, RecordingError, SingularityError
from twin.data.logs.recordings.motions import through_recording
from twin.data.logs.recordings.recording import tool_recording
from twin.physics.rotations.rotations import matrix_from_quaternion, pose_vector
from twin.physics.trajectories.joint_paths import check_singularities, singular_distances
from twin.physics.trajectories.joint_trajectories import cruising_trapezoid, quintic, quintic_law
from twin.physics.trajectories.sampling import Samples, sample
from twin.physics.trajectories.tool_paths import straight_line, through_poses


def poses_at(positions, rotations):
    T = np.zeros((len(positions), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = rotations.as_matrix(), positions, 1.0
    return T


RNG = np.random.default_rng(7)
POSES = poses_at(RNG.uniform(-0.5, 0.5, (4, 3)), Rotation.random(4, RNG))


def turned_on(turns):
    """Return orientations (N), each turned from the one before."""
    rotations = [Rotation.from_rotvec(turns[0])]
    for turn in turns[1:]:
        rotations.append(rotations[-1] * Rotation.from_rotvec(turn))
    return Rotation.concatenate(rotations)


def true_motion(t):
    """A smooth path of 2 s, at rest at both ends, that turns about an axis that itself turns."""
    s = quintic_law(np.asarray(t) / 2.0)[0][..., None]
    position = [0.5, 0.1, 0.6] + s * [0.3, 0.1, -0.2] + 0.05 * np.sin(3 * s)
    turn = Rotation.from_rotvec(s * [0.3, -1.2, 0.8]) * Rotation.from_rotvec(np.sin(2 * s) * [0.5, 0.2, 0.1])
    return position, turn


def recorded(step, duration=2.0):
    t = np.arange(round(duration / step) + 1) * step
    position, rotation = true_motion(t)
    return tool_recording(t, pose_vector(poses_at(position, rotation)))


def random_recording(seed=8, N=12):
    """Not at rest anywhere, at uneven times that do not start at zero, turning by up to 100 degrees."""
    rng = np.random.default_rng(seed)
    turns = rng.normal(size=(N, 3))
    turns *= (rng.uniform(0.1, 1.75, N) / np.linalg.norm(turns, axis=1))[:, None]
    T = poses_at(rng.uniform(-0.5, 0.5, (N, 3)), turned_on(turns))
    return tool_recording(5.0 + np.cumsum(rng.uniform(0.2, 0.9, N)), pose_vector(T))


PATHS = {
    "poses": through_poses(POSES),
    "recording": through_recording(recorded(0.05)),
    "random recording": through_recording(random_recording()),
    "two samples": through_recording(recorded(2.0)),
}
KNOTS = {  # where the third derivative jumps
    "poses": PATHS["poses"].times,
    "recording": np.arange(41) * 0.05,
    "random recording": random_recording().t - random_recording().t[0],
    "two samples": np.array([0.0, 1.0, 2.0]),  # the easing in meets the easing out at half time
}


def angular_velocity(path, t, h):
    """From orientations alone: the rotation from t - h to t + h, extrapolated to fourth order in h."""

    def mean(h):
        before, after = (Rotation.from_matrix(path(t + sign * h).T_base_tool[:, :3, :3]) for sign in (-1, 1))
        return (after * before.inv()).as_rotvec() / (2 * h)

    return (4 * mean(h) - mean(2 * h)) / 3


@pytest.mark.parametrize("name", PATHS)
def test_twist_and_its_rate_are_the_derivatives(name):
    path, h = PATHS[name], 1e-4
    t = np.linspace(0, path.duration, 401)
    t = t[np.all(np.abs(t[:, None] - KNOTS[name]) > 3 * h, axis=1)]
    _, twist, twist_rate = path(t)
    scale, scale_rate = np.abs(twist).max(), np.abs(twist_rate).max()
    linear = fourth_order(lambda step: path(t + step).T_base_tool[:, :3, 3], h)
    np.testing.assert_allclose(twist[:, :3], linear, rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(twist[:, 3:], angular_velocity(path, t, h), rtol=0, atol=1e-8 * scale)
    rate = fourth_order(lambda step: path(t + step).twist, h)
    np.testing.assert_allclose(twist_rate, rate, rtol=0, atol=1e-8 * scale_rate)


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_smooth_rigid_at_rest_at_both_ends_and_held_outside(name):
    path, h = PATHS[name], 1e-7
    T, twist, twist_rate = path([-3.0, 0.0, path.duration, path.duration + 3.0])
    assert not twist.any()
    assert not twist_rate.any()
    np.testing.assert_array_equal(T[[0, 3]], T[[1, 2]])

    t = np.linspace(0, path.duration, 300)
    T = path(t).T_base_tool
    R = T[:, :3, :3]
    np.testing.assert_allclose(R @ np.swapaxes(R, 1, 2) - np.eye(3), 0, rtol=0, atol=2e-15)
    np.testing.assert_allclose(np.linalg.det(R), 1.0, rtol=0, atol=2e-15)
    np.testing.assert_array_equal(T[:, 3], np.tile([0.0, 0, 0, 1], (300, 1)))
    for part, whole, one in zip(path(t.reshape(3, 1, 100)), path(t), path(float(t[5])), strict=True):
        np.testing.assert_allclose(part, whole.reshape(3, 1, 100, *whole.shape[1:]), rtol=0, atol=1e-15)
        np.testing.assert_allclose(one, whole[5], rtol=0, atol=1e-13)

    times = np.array(KNOTS[name])
    before, after = path(times - h), path(times + h)
    jerk = np.abs(np.diff(path(np.linspace(0, path.duration, 20001)).twist_rate, axis=0)).max() * 20000
    assert np.abs(after.twist - before.twist).max() <= 3 * h * np.abs(path(times).twist_rate).max() + 1e-9
    assert np.abs(after.twist_rate - before.twist_rate).max() <= 3 * h * jerk / path.duration + 1e-8 * jerk


def test_a_segment_is_a_straight_line_and_a_slerp_under_one_law():
    path = through_poses(POSES[:2], durations=2.0)
    t = np.linspace(0, 2, 21)
    s = quintic_law(t / 2)[0]
    T = path(t).T_base_tool
    line = POSES[0, :3, 3] + s[:, None] * (POSES[1, :3, 3] - POSES[0, :3, 3])
    np.testing.assert_allclose(T[:, :3, 3], line, rtol=0, atol=1e-15)
    q0, q1 = pose_vector(POSES[:2])[:, 3:]
    q1 = q1 if q0 @ q1 > 0 else -q1
    angle = np.arccos(q0 @ q1)
    slerp = (np.sin((1 - s) * angle)[:, None] * q0 + np.sin(s * angle)[:, None] * q1) / np.sin(angle)
    np.testing.assert_allclose(T[:, :3, :3], matrix_from_quaternion(slerp), rtol=0, atol=1e-14)


def test_speeds_of_the_tool_are_the_ones_asked_for():
    far = POSES.copy()
    far[1, :3, 3] += 3.0  # to and from pose 1 the distance decides, between 2 and 3 the turn
    far[3, :3, 3] = far[2, :3, 3]
    path = through_poses(far, speed=0.4, angular_speed=0.9)
    for k, which in ((0, "v"), (1, "v"), (2, "omega")):
        twist = path(np.linspace(path.times[k], path.times[k + 1], 2001)).twist
        v, omega = np.linalg.norm(twist[:, :3], axis=1).max(), np.linalg.norm(twist[:, 3:], axis=1).max()
        assert v <= 0.4 * (1 + 1e-12)
        assert omega <= 0.9 * (1 + 1e-12)
        np.testing.assert_allclose(v / 0.4 if which == "v" else omega / 0.9, 1.0, rtol=1e-12)


def test_poses_of_six_decimals_and_pose_vectors_of_either_sign_are_taken():
    rounded, vectors = np.round(POSES, 6), pose_vector(POSES)
    vectors[1, 3:] *= -1.0  # the sign of a quaternion says nothing
    t = np.linspace(0, 3, 50)
    expected = through_poses(POSES, durations=1.0)(t)
    for found, other in zip(through_poses(vectors, durations=1.0)(t), expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=0, atol=1e-13)
    R = through_poses(rounded, durations=1.0)(t).T_base_tool[:, :3, :3]
    np.testing.assert_allclose(R, expected.T_base_tool[:, :3, :3], rtol=0, atol=5e-6)
    np.testing.assert_allclose(R @ np.swapaxes(R, 1, 2) - np.eye(3), 0, rtol=0, atol=1e-14)


def test_a_pose_given_twice_takes_no_time():
    path = through_poses(POSES[[0, 0, 1, 1]])
    assert path.times[1] == 0.0
    assert path.times[2] == path.times[3]
    t = np.linspace(0, path.duration, 20)
    expected = through_poses(POSES[:2])(t).T_base_tool
    np.testing.assert_allclose(path(t).T_base_tool, expected, rtol=0, atol=1e-15)
    assert np.all(np.isfinite(path(t).twist_rate))


def test_half_turn_has_either_direction():
    T = poses_at(np.zeros((2, 3)), Rotation.from_rotvec([[0, 0, 0], [0, 0, np.pi]]))
    path = through_poses(T, durations=1.0)
    quarter = np.abs(path(0.5).T_base_tool[:3, :3])
    np.testing.assert_allclose(quarter, [[0, 1, 0], [1, 0, 0], [0, 0, 1]], rtol=0, atol=1e-15)
    np.testing.assert_allclose(path(1.0).T_base_tool, T[1], rtol=0, atol=1e-15)


@pytest.mark.parametrize(("step", "position", "angle"), [(0.05, 2e-6, 2e-5), (0.01, 2e-8, 2e-7)])
def test_between_the_samples_the_true_motion_is_met(step, position, angle):
    samples = recorded(step)
    path, t = through_recording(samples), np.linspace(0, 2, 4001)
    np.testing.assert_allclose(pose_vector(path(samples.t).T_base_tool), samples.poses, rtol=0, atol=2e-15)
    T = path(t).T_base_tool
    true_position, true_rotation = true_motion(t)
    assert np.abs(T[:, :3, 3] - true_position).max() < position
    assert (Rotation.from_matrix(T[:, :3, :3]).inv() * true_rotation).magnitude().max() < angle


def test_misuse_message_states_the_expectation():
    refused(
        (lambda: through_poses(POSES[:1]), "expected at least 2 poses, got 1"),
        (lambda: through_poses(POSES[0]), r"expected poses of shape \(K, 4, 4\) or \(K, 7\), got \(4, 4\)"),
        (lambda: through_poses(pose_vector(POSES) * np.nan), "finite poses"),
        (lambda: through_poses(np.diag([1.001, 1, 1, 1]) @ POSES), r"poses\[0\] to be rigid within 1e-06"),
        (lambda: through_poses(POSES, speed=0.0), "expected positive speeds, got 0.0 m/s"),
        (lambda: through_poses(POSES, durations=[1.0, 0.0, 1.0]), "expected positive, finite durations"),
    )


@settings(max_examples=50, deadline=None)
@given(
    arrays(np.float64, (7, 3), elements=st.floats(-1, 1)),
    arrays(np.float64, (7, 3), elements=st.floats(-1.2, 1.2)),
    st.lists(st.floats(1e-3, 0.1), min_size=7, max_size=7),
)
def test_every_recording_gives_a_smooth_path_or_a_clear_error(positions, turns, steps):
    T = poses_at(positions, turned_on(turns))
    try:
        samples = tool_recording(np.cumsum(steps), pose_vector(T))
        path = through_recording(samples)
    except RecordingError:
        return
    met = path(samples.t - samples.t[0]).T_base_tool
    np.testing.assert_allclose(met, T, rtol=0, atol=1e-12)
    for part in path(np.linspace(0, path.duration, 99)):
        assert np.all(np.isfinite(part))


def test_turns_that_no_spline_follows_smoothly_are_refused(rng):
    turns = rng.normal(size=(41, 3))
    turns *= np.deg2rad(119.0) / np.linalg.norm(turns, axis=1)[:, None]
    T = poses_at(np.zeros((41, 3)), turned_on(turns))
    t = np.cumsum(np.where(rng.random(41) < 0.5, 1.0, 0.011))
    with pytest.raises(RecordingError, match=r"sample \d+: the tool turns by 119 deg .* record more densely"):
        through_recording(tool_recording(t, pose_vector(T)))


# The tool along a straight line with the laboratory's trapezoid.


TURN = np.array([0.4, -0.9, 0.6])
START, END = np.tile(np.eye(4), (2, 1, 1))
START[:3, :3] = Rotation.from_rotvec([1.0, 0.2, -0.5]).as_matrix()
START[:3, 3] = 0.4, -0.2, 0.5
END[:3, :3] = Rotation.from_rotvec(TURN).as_matrix() @ START[:3, :3]
END[:3, 3] = 0.5, 0.3, 0.2
PATH = straight_line(START, END, speed=0.25, acceleration=0.4)


def test_positions_are_the_move_of_three_axes_and_the_turn_follows_the_same_law():
    t = np.linspace(-0.1, PATH.duration + 0.1, 301)
    pose, twist, twist_rate = PATH(t)
    p, v, a = cruising_trapezoid(START[:3, 3], END[:3, 3], 0.25, 0.4)(t)
    np.testing.assert_allclose(PATH.duration, 0.5 / 0.25 + 0.625, rtol=1e-14)
    np.testing.assert_allclose(pose[:, :3, 3], p, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist[:, :3], v, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist_rate[:, :3], a, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.abs(twist[:, 1]).max(), 0.25, rtol=1e-14)  # y is the longest way
    s = (pose[:, 1, 3] - START[1, 3]) / (END[1, 3] - START[1, 3])
    turned = Rotation.from_rotvec(TURN * s[:, None]).as_matrix()
    np.testing.assert_allclose(pose[:, :3, :3], turned @ START[:3, :3], rtol=0, atol=1e-14)
    np.testing.assert_allclose(twist[:, 3:], TURN * twist[:, 1:2] / 0.5, rtol=0, atol=1e-14)
    np.testing.assert_allclose(twist_rate[:, 3:], TURN * twist_rate[:, 1:2] / 0.5, rtol=0, atol=1e-14)
    shifted = START + np.outer([0.3, 0.0, -0.3, 0.0], np.eye(4)[3])
    pose, twist, _ = straight_line(START, shifted, speed=0.25, acceleration=0.5)(t.reshape(7, 43))
    np.testing.assert_allclose(pose[..., :3, :3] - START[:3, :3], 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist[..., 3:], 0.0, rtol=0, atol=1e-15)


def test_what_is_no_such_line_is_refused():
    with pytest.raises(LimitError, match=r"a distance of 0\.5 m is too short for 0\.5 m/s at 0\.4 m/s\^2"):
        straight_line(START, END, speed=0.5, acceleration=0.4)
    refused(
        (lambda: straight_line(START, START, speed=0.5, acceleration=0.4), "expected a line of some length"),
        (lambda: straight_line(START, 2 * END, speed=0.25, acceleration=0.4), "poses[1] to be rigid within"),
        (lambda: straight_line(START, END, speed=-0.25, acceleration=0.4), "expected positive speed"),
    )


# singularities


ROBOT = twin.load("irb140")
DRAWS = np.random.default_rng(9)
Q = DRAWS.uniform(ROBOT.q_min, ROBOT.q_max, (200, 6))
QD = DRAWS.uniform(-ROBOT.qd_max, ROBOT.qd_max, (200, 6))


# Lower arm times forearm.
LENGTHS = {"irb140": 0.36 * 0.38, "irb1400": 0.6 * np.hypot(0.12, 0.72), "irb1600": 0.7 * 0.6}


def test_the_determinant_of_the_jacobian_is_their_product_and_rates_are_their_derivatives(arm):
    distances, rates = singular_distances(arm, Q, QD)
    before, after = (singular_distances(arm, Q + sign * 1e-4 * QD, QD)[0] for sign in (-1, 1))
    np.testing.assert_allclose(rates, (after - before) / 2e-4, rtol=0, atol=3e-6)
    determinant = LENGTHS[arm.name] * np.abs(np.prod(distances, axis=1))
    found = np.abs(np.linalg.det(twin.jacobian(arm, Q)))
    np.testing.assert_allclose(found, determinant, rtol=1e-12, atol=1e-15)


def standing(q):
    return Samples(np.zeros(1), np.array([q]), np.zeros((1, 6)), np.zeros((1, 6)))


def test_of_coupled_joints_all_that_turn_the_axis_are_named_and_nan_is_no_safe_distance(irb1400):
    """The elbow is stretched at q3 - q2 = -80.54 degrees, which is outside its limits."""
    stretched = np.rad2deg(-np.arctan2(0.72, 0.12))
    told = r"elbow singularity, .* \(joint_2 at 70 deg, joint_3 at -10\.5377 deg\); expected at least"
    with pytest.raises(SingularityError, match=told):
        check_singularities(irb1400, standing(np.deg2rad([0.0, 70.0, 70.0 + stretched, 0.0, 30.0, 0.0])))
    with pytest.raises(SingularityError):
        check_singularities(ROBOT, standing(np.full(6, np.nan)))


def test_a_passage_between_samples_is_noticed():
    q = np.array([0.2, 0.1, 0.2, 0.3, 0.5, 0.4])
    move = quintic(q, q * [1, 1, 1, 1, -1.3, 1], 0.5)  # through q5 = 0 at some odd time
    samples = sample(move, 1e-3)
    assert np.abs(np.sin(samples.q[:, 4])).min() > 1e-3
    told = r"wrist singularity, .* covers .* in one sample, so it passes through"
    with pytest.raises(SingularityError, match=told):
        check_singularities(ROBOT, samples)
    check_singularities(ROBOT, sample(quintic(q, q * [1, 1, 1, 1, 0.1, 1], 0.5), 1e-3))
