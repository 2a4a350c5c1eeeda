from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.processor_times import shared
from twin.errors import BranchError, LimitError, SingularityError, UnreachableError
from twin.kinematics.inverse import inverse_kinematics
from twin.logs.recordings.recording import tool_recording
from twin.rotations.rotations import pose_vector
from twin.trajectories.joint_paths import joint_path
from twin.trajectories.sampling import sample, sample_semi_implicit, semi_implicit_from_positions
from twin.trajectories.tool_paths import ToolMotion, through_poses, through_recording

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
def test_the_tool_path_is_reproduced(name):
    path, tool = path_and_tool(name)
    samples = sample(path, 1e-3)
    T, twist, twist_rate = path.tool_path(samples.t)
    np.testing.assert_allclose(twin.forward_kinematics(ROBOT, samples.q, tool), T, rtol=0, atol=5e-15)
    J = twin.jacobian(ROBOT, samples.q, tool)
    J_dot = twin.jacobian_dot(ROBOT, samples.q, samples.qd, tool)
    np.testing.assert_allclose((J @ samples.qd[..., None])[..., 0], twist, rtol=0, atol=1e-14)
    acceleration = (J @ samples.qdd[..., None] + J_dot @ samples.qd[..., None])[..., 0]
    np.testing.assert_allclose(acceleration, twist_rate, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", PATHS)
def test_speed_and_acceleration_are_the_derivatives(name):
    path, _ = path_and_tool(name)
    h = 1e-4
    t = np.linspace(0, path.duration, 301)
    knots = {"thesis": THERE_AND_BACK.times, "tool": [0, path.duration]}.get(name, np.arange(110) * 0.02)
    t = t[np.all(np.abs(t[:, None] - np.asarray(knots)) > 3 * h, axis=1)]
    _, qd, qdd = path(t)
    at = {k: path(t + k * h) for k in (-2, -1, 1, 2)}
    for i, given, tolerance in ((0, qd, 3e-11), (1, qdd, 3e-9)):
        numeric = (at[-2][i] - 8 * at[-1][i] + 8 * at[1][i] - at[2][i]) / (12 * h)
        np.testing.assert_allclose(given, numeric, rtol=0, atol=tolerance * max(1.0, np.abs(given).max()))


@pytest.mark.parametrize("name", PATHS)
def test_at_rest_at_both_ends_and_held_outside(name):
    path, _ = path_and_tool(name)
    for inside, outside in ((0.0, -1.0), (path.duration, path.duration + 1.0)):
        for t in (inside, outside):
            q, qd, qdd = path(t)
            np.testing.assert_array_equal(q, path(inside)[0])
            assert not qd.any()
            assert not qdd.any()


def test_the_thesis_poses_in_the_order_3_1_2_1_3():
    path = path_and_tool("thesis")[0]
    q = path(THERE_AND_BACK.times)[0]
    np.testing.assert_allclose(q[[0, 1, 3, 4]], [TEST_3, TEST_1, TEST_1, TEST_3], rtol=0, atol=1e-13)
    np.testing.assert_allclose(at(q[2]), POSES[1], rtol=0, atol=1e-14)
    assert path.branch == 0
    samples = sample(path, 1e-3)
    assert np.all((samples.q > ROBOT.q_min) & (samples.q < ROBOT.q_max))
    assert 0.4 < (np.abs(samples.qd) / ROBOT.qd_max).max() < 0.8  # brisk, with room to spare


def test_the_thesis_poses_in_the_order_1_2_3_leave_the_range_of_axis_4():
    with pytest.raises(
        LimitError, match=r"joint_4 would be at -200\.\d+ deg .* at t = \d\.\d+ s .* -200 deg"
    ):
        joint_path(ROBOT, through_poses(POSES), near=TEST_1)


def test_printed_pose_vectors_lead_to_the_printed_angles():
    position_3, quat_3 = (
        [0.651650430407853, -0.143535605813641, 0.481847014812847],
        [0.542604000206256, 0.158528784053503, 0.703280404944469, 0.431098823482308],
    )
    position_1, quat_1 = (
        [0.256169020979862, 0.146951811198975, 0.719041733432580],
        [0.355266700974361, 0.220219321995462, 0.809549214980808, 0.412212433003434],
    )
    printed = [[*position_3, *quat_3], [*position_1, *quat_1]]
    path = joint_path(ROBOT, through_poses(printed), near=TEST_3)
    np.testing.assert_allclose(path(0.0)[0], TEST_3, rtol=0, atol=1e-13)
    np.testing.assert_allclose(path(path.duration)[0], TEST_1, rtol=0, atol=1e-13)


def test_any_times_in_any_shape_agree_with_the_checked_samples():
    path = path_and_tool("thesis")[0]
    np.testing.assert_array_equal(sample(path, 1e-3).q, path.checked.q)
    t = np.random.default_rng(1).uniform(-0.1, path.duration + 0.1, 12)
    for i, whole in enumerate(path(t)):
        assert path(t.reshape(2, 3, 2))[i].shape == (2, 3, 2, 6)
        np.testing.assert_array_equal(path(t.reshape(2, 3, 2))[i].reshape(12, 6), whole)
        for k in range(12):
            np.testing.assert_allclose(path(t[k])[i], whole[k], rtol=0, atol=1e-13)


def test_the_checking_period_does_not_change_the_path():
    coarse = joint_path(ROBOT, THERE_AND_BACK, near=TEST_3, period=0.01)
    t = np.linspace(0, coarse.duration, 999)
    np.testing.assert_array_equal(coarse(t)[0], path_and_tool("thesis")[0](t)[0])


def test_recursion_consistent_samples_keep_to_the_path():
    path = path_and_tool("thesis")[0]
    samples = sample_semi_implicit(path, 1e-3)
    continuous = sample(path, 1e-3)
    np.testing.assert_allclose(samples.q, continuous.q, rtol=0, atol=2e-15)
    np.testing.assert_array_equal(samples.qd[1:], samples.qd[:-1] + 1e-3 * samples.qdd[:-1])
    np.testing.assert_array_equal(samples.q[1:], samples.q[:-1] + 1e-3 * samples.qd[1:])
    assert np.abs(samples.qdd - continuous.qdd).max() < 5e-3
    again = semi_implicit_from_positions(continuous.q, 1e-3)  # it rests before and after
    np.testing.assert_allclose(again.qdd[:-1], samples.qdd[:-1], rtol=0, atol=1e-8)


def test_full_turns_are_counted():
    turn = Rotation.from_rotvec(np.deg2rad(110.0) * np.array([0.0, 0.0, 1.0])).as_matrix()
    start = np.deg2rad([10.0, 20.0, -30.0, 15.0, 60.0, -150.0])
    T = np.tile(at(start), (5, 1, 1))
    for k in range(1, 5):
        T[k, :3, :3] = T[k - 1, :3, :3] @ turn
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


def test_without_near_it_starts_next_to_zero():
    nearest = inverse_kinematics(ROBOT, SHORT(0.0).T_base_tool, T_flange_tool=TOOL, near=np.zeros(6))
    np.testing.assert_array_equal(joint_path(ROBOT, SHORT, T_flange_tool=TOOL)(0.0)[0], nearest)


def test_out_of_reach_names_sample_time_and_distance():
    far = at(HERE)
    far[0, 3] += 0.6
    with pytest.raises(UnreachableError) as error:
        joint_path(ROBOT, through_poses([at(HERE), far], durations=1.0), near=HERE)
    message = str(error.value)
    assert message.startswith("sample ")
    assert "no joint angles reach the tool pose at x = " in message
    assert "from axis 2, the arm reaches 0.02 to 0.74 m" in message
    k = int(message.split()[1])
    t, distance = float(message.split("t = ")[1].split()[0]), float(message.split("is ")[1].split()[0])
    assert t == pytest.approx(k * 1e-3)
    assert 0.74 < distance < 0.745
    with pytest.raises(UnreachableError, match="sample 0 at t = 0 s"):
        joint_path(ROBOT, through_poses([far, at(HERE)], durations=1.0), near=HERE)


def test_a_branch_that_ends_is_named():
    behind = np.deg2rad([0.0, -73.0, -111.0, 0.0, -69.0, 0.0])  # the wrist centre is behind axis 1
    out = at(behind)
    out[0, 3] -= 0.06  # further than the arm reaches backwards, where axis 2 is 0.14 m further away
    with pytest.raises(
        BranchError, match=r"branch on which the path starts, 7 \(wrist centre behind axis 1.*\), does"
    ):
        joint_path(ROBOT, through_poses([at(behind), out], durations=1.0), near=behind)


def through_wrist(offset, duration):
    """Two poses between which axis 5 passes zero, axis 4 turned by `offset` in one of them."""
    q = np.array([0.1, 0.2, -0.3, 0.0, 0.4, 0.2])
    return q, through_poses(at([q, q * [1, 1, 1, 1, -1.3, 1] + offset * np.eye(6)[3]]), durations=duration)


@pytest.mark.parametrize("duration", [0.7, 0.71234, 1.3])
@pytest.mark.parametrize("period", [1e-3, 4e-3])
def test_a_passage_through_the_wrist_singularity(duration, period):
    q, tool_path = through_wrist(0.0, duration)
    with pytest.raises(
        SingularityError, match=r"sample \d+ at t = 0\.\d+ s: wrist singularity, .*joint_5 at"
    ):
        joint_path(ROBOT, tool_path, near=q, period=period)


def test_a_start_in_the_wrist_singularity():
    with pytest.raises(
        SingularityError, match=r"sample 0 at t = 0 s: wrist singularity, .* expected at least 0\.001"
    ):
        joint_path(ROBOT, through_poses([at(np.zeros(6)), at(HERE)]))


def test_near_the_wrist_singularity_axis_4_is_too_fast():
    q, tool_path = through_wrist(0.2, 0.7)
    with pytest.raises(LimitError, match=r"joint_4 would move at .* deg/s .* its limit is 360 deg/s"):
        joint_path(ROBOT, tool_path, near=q)


def test_a_passage_over_axis_1():
    q = np.deg2rad([0.0, -20.0, -20.0, 0.0, -40.0, 0.0])
    across = at(q)
    across[0, 3] *= -1.0
    with pytest.raises(SingularityError, match=r"shoulder singularity, .* m \(joint_1 at"):
        joint_path(ROBOT, through_poses([at(q), across], durations=2.345), near=q)


def test_full_stretch():
    q = np.deg2rad([10.0, 60.0, -60.0, 20.0, 40.0, 0.0])
    stretched = at(np.array([q[0], q[1], -np.pi / 2 + 1e-4, *q[3:]]))
    with pytest.raises(SingularityError, match=r"elbow singularity, .*joint_3 at -89\.9"):
        joint_path(ROBOT, through_poses([at(q), stretched, at(q)], durations=4.0), near=q)


def test_too_fast_names_joint_speed_limit_and_time():
    with pytest.raises(LimitError, match=r"joint_\d would move at .* deg/s \(.* rad/s\) at t = 0\.\d+ s"):
        joint_path(ROBOT, through_poses(POSES[[2, 0]], durations=0.2), near=TEST_3)


def test_a_start_out_of_range_is_named():
    q = np.deg2rad([0.0, 0.0, 0.0, 0.0, 118.0, 0.0])  # axis 5 goes to 115 degrees
    out = inverse_kinematics(ROBOT, at(q))
    assert np.isnan(out).any(axis=1).all()
    with pytest.raises(
        LimitError, match=r"no solution of the first pose is within .*: the nearest: joint_5 .* 118"
    ):
        joint_path(ROBOT, through_poses([at(q), at(HERE)]), near=q * 0.97)


def test_near_in_degrees_is_suspected():
    with pytest.raises(LimitError, match=r"near must be joint angles .*: joint_1 .* are these degrees\?"):
        joint_path(ROBOT, THERE_AND_BACK, near=np.rad2deg(TEST_3))


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


@pytest.mark.parametrize(
    "spoilt", [Altered(jump=0.005), Altered(jump=-1e-3), Altered(twist=0.5), Altered(twist=-1.0)]
)
def test_a_path_that_jumps_or_contradicts_itself_is_refused(spoilt):
    joint_path(ROBOT, Altered(), near=HERE, T_flange_tool=TOOL)
    with pytest.raises(
        BranchError, match=r"sample \d+ at t = .* s: joint_\d jumps by .* deg .* its speed makes"
    ):
        joint_path(ROBOT, spoilt, near=HERE, T_flange_tool=TOOL)


def test_misuse():
    with pytest.raises(ValueError, match="near"):
        joint_path(ROBOT, THERE_AND_BACK, near=np.zeros(5))
    with pytest.raises(ValueError, match="positive period"):
        joint_path(ROBOT, THERE_AND_BACK, period=0.0)
    with pytest.raises(ValueError, match="T_flange_tool"):
        joint_path(ROBOT, THERE_AND_BACK, T_flange_tool=np.eye(3))
