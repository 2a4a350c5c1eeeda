import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.dh_arms import fourth_order, times
from tests.support.processor_times import shared
from twin import inverse_kinematics, joint_path, pose_vector, quintic
from twin.base.errors import BranchError, LimitError, SingularityError, UnreachableError
from twin.data.logs.recordings.motions import through_recording
from twin.data.logs.recordings.recording import tool_recording
from twin.physics.trajectories.sampling import Samples, check_limits, sample
from twin.physics.trajectories.tool_paths import ToolMotion, through_poses

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
    with pytest.raises(UnreachableError, match=r"0\.74 m; are these millimetres\?$"):
        joint_path(ROBOT, through_poses([shifted(HERE, 600.0), at(HERE)], durations=1.0), near=HERE)


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
    q[3, 0], qd[1, 5], qd[2, 0] = 4.0, 99.0, 99.0
    in_degrees = np.where(q, 30.0, 0.0)
    outside = (
        r"^joint_4 would be at 206\.265 deg \(3\.6 rad\) at t = 0 s \(sample 0\), "
        r"its range is -200 deg \(-3\.49066 rad\) to 200 deg \(3\.49066 rad\)$"
    )
    for samples, told in (
        (samples_at(q, qd), r"joint_6 would move .*\(sample 1\)"),
        (samples_at(in_degrees, qd), r"joint_1 would be .*\(sample 3\).* are these degrees\?"),
        (samples_at([0, np.nan, 0, 0, 0, 0]), "joint_2 would be at nan"),
        (samples_at([4.0, -34.07, 19.54, 7.62, 38.93, 56.38]), r"joint_1 would be .* are these degrees\?"),
        (samples_at([0, 0, 0, 3.6, 0, 0]), outside),
    ):
        with pytest.raises(LimitError, match=told):
            check_limits(ROBOT, samples)
    with pytest.raises(ValueError, match=r"expected samples.q of shape \(N, 6\), got \(1, 5\)"):
        check_limits(ROBOT, samples_at(np.zeros(5)))
