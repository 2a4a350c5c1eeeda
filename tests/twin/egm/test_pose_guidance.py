import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.dh_arms import dh_pose
from tests.support.guided_steps import PERIOD, decay, driven
from tests.support.random_trees import random_urdf
from twin.egm.guidance.guidance import GuidanceStop
from twin.egm.guidance.run import Run, make_guidance
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.guidance.tool_steps import displaced_pose, pose_displacement
from twin.egm.wire.messages import SensorMessage
from twin.errors import EgmError
from twin.rotations.euler_angles import matrix_from_axis_angle
from twin.rotations.rotations import pose_matrix

START = np.deg2rad([10.0, 20.0, -15.0, 30.0, 50.0, 20.0])
TOOL = pose_matrix((0.03, -0.02, 0.11, 0.8, 0.6, 0.0, 0.0))
WAY = np.array([0.06, -0.08, 0.05])
AXIS = np.array([0.6, 0.0, -0.8])
FAST = {"mode": "pose", "max_speed_deviation": 1e6}


@pytest.fixture(params=["irb140", "irb1400"])
def arm(request):
    return request.getfixturevalue(request.param)


def guided(robot, q=START, T_flange_tool=TOOL, **settings):
    """Return a guidance that has begun in q."""
    guidance = make_guidance(robot, GuidanceSettings(**FAST | settings), T_flange_tool)
    guidance.begin(q, PERIOD)
    return guidance


def moved(T, way=(0.0, 0.0, 0.0), axis=AXIS, angle=0.0):
    """Return the pose T displaced and rotated about an axis, both in base axes."""
    T = T.copy()
    T[:3, 3] += way
    T[:3, :3] = matrix_from_axis_angle(axis, angle) @ T[:3, :3]
    return T


def pose_of(p, R):
    T = np.eye(4)
    T[:3, 3], T[:3, :3] = p, R
    return T


def poses(robot, q):
    """Compute tool poses from the DH table, independent of the guidance code."""
    return dh_pose(robot, q) @ TOOL


def turned(R, R_start, axis=AXIS):
    """Return the angles of R (N, 3, 3) from R_start about an axis, and the deviation from this axis."""
    D = R @ R_start.T
    sines = 0.5 * np.stack(
        [D[:, 2, 1] - D[:, 1, 2], D[:, 0, 2] - D[:, 2, 0], D[:, 1, 0] - D[:, 0, 1]], axis=1
    )
    angles = np.arctan2(sines @ axis, 0.5 * (np.trace(D, axis1=1, axis2=2) - 1.0))
    return angles, sines - np.outer(np.sin(angles), axis)


def fault_of(call, *arguments):
    with pytest.raises(GuidanceStop) as stop:
        call(*arguments)
    return stop.value.fault


def test_pose_displacement_is_exact_at_every_angle(rng):
    for angle in (0.0, 1e-12, 1e-5, 0.7, 2.0, 3.0, np.pi - 1e-9):
        for _ in range(20):
            axis = rng.normal(size=3)
            way = np.concatenate([rng.normal(size=3), angle * axis / np.linalg.norm(axis)])
            T = pose_matrix(np.concatenate([rng.normal(size=3), Rotation.random(rng=rng).as_quat()]))
            T_moved, found = np.empty((4, 4)), np.empty(6)
            displaced_pose(T, way, T_moved)
            expected = Rotation.from_rotvec(way[3:]).as_matrix() @ T[:3, :3]
            np.testing.assert_allclose(T_moved, pose_of(T[:3, 3] + way[:3], expected), rtol=0, atol=4e-15)
            pose_displacement(T, T_moved, found)
            np.testing.assert_allclose(found, way, rtol=1e-14, atol=2e-15 if angle < 3.0 else 2e-14)


@pytest.mark.parametrize(
    ("settings", "gain", "bandwidth"),
    [
        ({}, 5.0, 20.0),
        ({"level": 0}, 5.0, None),
        ({"position_gain": 20.0, "pos_corr_gain": 0.5, "lp_filter": 2.0}, 10.0, 2.0),
    ],
)
def test_tool_position_equals_closed_form_law(arm, settings, gain, bandwidth):
    guidance, T = guided(arm, **settings), poses(arm, START)
    guidance.take(SensorMessage(T=moved(T, WAY)), START)
    T_way = poses(arm, driven(guidance, START, 800))
    done = 1.0 - decay(gain, bandwidth, 800)
    assert done[-1] > 0.9
    np.testing.assert_allclose(T_way[:, :3, 3], T[:3, 3] + np.outer(done, WAY), rtol=0, atol=1e-12)
    np.testing.assert_allclose(T_way[:, :3, :3], np.broadcast_to(T[:3, :3], (801, 3, 3)), rtol=0, atol=1e-12)


def test_tool_rotation_obeys_the_law_about_a_fixed_axis(arm):
    guidance, T = guided(arm), poses(arm, START)
    guidance.take(SensorMessage(T=moved(T, angle=0.7)), START)
    T_way = poses(arm, driven(guidance, START, 800))
    angles, rest = turned(T_way[:, :3, :3], T[:3, :3])
    np.testing.assert_allclose(angles, 0.7 * (1.0 - decay(5.0, 20.0, 800)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rest, np.zeros((801, 3)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(T_way[:, :3, 3], np.broadcast_to(T[:3, 3], (801, 3)), rtol=0, atol=1e-12)


def test_tool_speed_is_in_sensor_axes_and_needs_no_gain(robot):
    frame = "0.3,0,0,0.5,0.5,0.5,0.5"  # its x, y, z are y, z, x of the base
    guidance, T = guided(robot, pos_corr_gain=0.0, level=0, sensor_frame=frame), poses(robot, START)
    guidance.take(SensorMessage(twist=np.array([0.1, 0.05, 0.02, 0.0, 0.2, 0.0])), START)
    T_way = poses(robot, driven(guidance, START, 500))
    np.testing.assert_allclose(
        T_way[-1, :3, 3] - T[:3, 3], 0.5 * np.array([0.02, 0.1, 0.05]), rtol=0, atol=1e-12
    )
    angles, rest = turned(T_way[:, :3, :3], T[:3, :3], axis=np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(angles, 2e-4 * np.arange(501), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rest, np.zeros((501, 3)), rtol=0, atol=1e-12)
    T_sensor_tool = np.linalg.inv(pose_matrix((0.3, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5))) @ T
    guidance.take(SensorMessage(T=T_sensor_tool), START)  # without a speed, which is then 0
    assert np.all(guidance.speed(START) == 0.0)


def test_tool_pose_is_in_the_sensor_frame(robot):
    sensor = (0.4, 0.0, -0.1, 0.8, 0.0, 0.6, 0.0)
    guidance, T = (
        guided(robot, sensor_frame=",".join(map(str, sensor)), position_gain=20.0),
        poses(robot, START),
    )
    wanted = moved(T, WAY, angle=0.3)
    guidance.take(SensorMessage(T=np.linalg.inv(pose_matrix(sensor)) @ wanted), START)
    q = driven(guidance, START, 2000)[-1]
    np.testing.assert_allclose(poses(robot, q), wanted, rtol=0, atol=1e-12)


def test_unguided_axes_hold_their_start_value(robot):
    frame = "0.1,0.2,0.3,0.5,0.5,0.5,0.5"  # its x, y, z are y, z, x of the base
    guidance = guided(robot, corr_frame=frame, axes="x,z,ry", sensor_frame="0,0,0", position_gain=20.0)
    T = poses(robot, START)
    guidance.take(SensorMessage(T=moved(T, WAY, axis=np.array([0.0, 0.0, 1.0]), angle=0.4)), START)
    T_way = poses(robot, driven(guidance, START, 2000))
    way = T_way[:, :3, 3] - T[:3, 3]
    np.testing.assert_allclose(way[:, 2], np.zeros(2001), rtol=0, atol=1e-12)  # y of the frame
    np.testing.assert_allclose(way[-1, :2], WAY[:2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        turned(T_way[-1:, :3, :3], T[:3, :3], np.array([0.0, 0.0, 1.0]))[0], [0.4], atol=1e-12
    )
    guidance = guided(robot, corr_frame=frame, axes="x,z,rx", sensor_frame="0,0,0")
    guidance.take(SensorMessage(T=moved(T, axis=np.array([0.0, 0.0, 1.0]), angle=0.4)), START)
    assert np.max(np.abs(guidance.speed(START))) < 1e-12
    guidance.take(SensorMessage(twist=np.array([0.0, 0.0, 0.2, 0.3, 0.0, 0.0])), START)
    assert np.max(np.abs(guidance.speed(START))) < 1e-12


@pytest.mark.parametrize("limit", [5.0, 1e6])
def test_tool_moves_straight_to_its_target_under_limits_and_ramps(arm, limit):
    """A ramp or limit reduces each step; guidance extrapolates the remaining share and solves for it."""
    settings = GuidanceSettings(mode="pose", max_speed_deviation=limit, position_gain=20.0)
    run, T = Run(arm, settings, make_guidance(arm, settings, TOOL), START, PERIOD), poses(arm, START)
    run.take(SensorMessage(T=moved(T, WAY)))
    samples = run.samples(1500)
    way = poses(arm, samples.q)[:, :3, 3] - T[:3, 3]
    along = way @ WAY / (WAY @ WAY)
    assert np.all(np.diff(along) >= -1e-12)
    assert along[-1] > (0.3 if limit == 5.0 else 1.0 - 1e-6)
    np.testing.assert_allclose(way, np.outer(along, WAY), rtol=0, atol=1e-9)
    assert np.max(np.abs(samples.qd)) <= np.deg2rad(limit) * (1.0 + 1e-12)


def test_arm_never_changes_its_configuration(arm, rng):
    """Joint angles change by no more than the speed limit allows, for arbitrary references."""
    settings = GuidanceSettings(mode="pose", max_speed_deviation=100.0, ramp_time=0.005, position_gain=20.0)
    run, T = Run(arm, settings, make_guidance(arm, settings, TOOL), START, PERIOD), poses(arm, START)
    q = []
    for _ in range(30):
        run.take(SensorMessage(T=moved(T, rng.uniform(-0.2, 0.2, 3), angle=rng.uniform(-2.0, 2.0))))
        q.append(run.samples(40).q)
    steps = np.diff(np.concatenate(q), axis=0)
    assert np.max(np.abs(steps)) <= np.deg2rad(100.0) * PERIOD * (1.0 + 1e-9)
    assert np.all((np.concatenate(q) >= arm.q_min) & (np.concatenate(q) <= arm.q_max))


SINGULAR = [
    ("irb140", "wrist", np.deg2rad([10.0, 20.0, -15.0, 30.0, 10.0, 0.0])),
    ("irb1400", "wrist", np.deg2rad([10.0, 20.0, -15.0, 30.0, 10.0, 0.0])),
    ("irb140", "elbow", START),  # the joint ranges of the other arm exclude a stretched elbow
    ("irb140", "shoulder", np.deg2rad([0.0, -30.0, -30.0, 0.0, 40.0, 0.0])),
    ("irb1400", "shoulder", np.deg2rad([0.0, -30.0, -30.0, 0.0, 40.0, 0.0])),
]


@pytest.mark.parametrize(("name", "kind", "q"), SINGULAR)
def test_arm_stops_near_a_singularity_and_names_it(request, name, kind, q):
    arm = request.getfixturevalue(name)
    settings = GuidanceSettings(mode="pose", max_speed_deviation=60.0, ramp_time=0.005, pos_corr_gain=0.0)
    run = Run(arm, settings, make_guidance(arm, settings), q, PERIOD)
    twist = np.zeros(6)
    if kind == "wrist":
        twist[3:] = -dh_pose(arm, q)[:3, 1]  # axis 5 for q6 = 0, in the negative direction
    else:
        twist[:3] = {"elbow": (0.3, 0.0, 0.15), "shoulder": (-0.3, 0.0, 0.0)}[kind]
    run.take(SensorMessage(twist=twist))
    for _ in range(60):
        run.samples(100)
        if run.fault is not None:
            break
    assert run.fault is not None
    assert (run.fault.number, run.fault.name) == (50026, "Close to singularity")
    assert kind in run.fault.sentence
    run.samples(500)
    assert np.all(run.qd == 0.0)


def test_unreachable_pose_is_rejected_immediately(arm):
    guidance, T = guided(arm), poses(arm, START)
    fault = fault_of(guidance.take, SensorMessage(T=moved(T, (2.0, 0.0, 0.0))), START)
    assert (fault.number, fault.name) == (50050, "Position outside reach")
    assert f"x = {1e3 * T[0, 3] + 2000.0:.1f}" in fault.sentence
    assert np.max(np.abs(guidance.speed(START))) < 1e-12  # the last reference stays valid


def test_joint_at_range_end_stops_the_arm(arm):
    """The tool rotates about its z axis until a joint is at the end of its range."""
    settings = GuidanceSettings(mode="pose", max_speed_deviation=1e3, ramp_time=0.005, pos_corr_gain=0.0)
    near_end = START.copy()
    near_end[5] = arm.q_max[5] - 0.2
    run = Run(arm, settings, make_guidance(arm, settings), near_end, PERIOD)
    twist = np.zeros(6)
    twist[3:] = 2.0 * dh_pose(arm, near_end)[:3, 2]
    run.take(SensorMessage(twist=twist))
    samples = run.samples(1000)
    assert run.fault is not None
    assert run.fault.number == 50027
    assert np.all(samples.q <= arm.q_max)
    assert samples.q[-1, 5] == pytest.approx(arm.q_max[5], abs=1e-3)


def test_message_of_another_mode_is_a_fault(robot):
    guidance, T = guided(robot), poses(robot, START)
    assert fault_of(guidance.take, SensorMessage(q=START), START).number == 41826
    guidance.take(SensorMessage(), START)
    assert np.max(np.abs(guidance.speed(START))) < 1e-12
    assert "rigid" in fault_of(guidance.take, SensorMessage(T=2.0 * T), START).sentence
    for speed in (np.nan, 1e160):
        assert (
            "below 1e+06" in fault_of(guidance.take, SensorMessage(twist=np.full(6, speed)), START).sentence
        )


def test_pose_converges_within_the_window_of_each_guided_axis(robot):
    frame = "0,0,0,0.9238795325112867,0,0,0.3826834323650898"  # x and y turned by 45 degrees

    def converged(off, angle=0.0, **settings):
        guidance = guided(robot, **settings)
        T = poses(robot, START)
        guidance.take(SensorMessage(T=moved(T, off, angle=angle)), START)
        return guidance.converged(START)

    base = {"sensor_frame": "0,0,0", "sensor_frame_type": "base"}
    assert converged((0.99e-3, 0.99e-3, -0.99e-3))
    assert not converged((1.01e-3, 0.0, 0.0))
    assert not converged((0.99e-3, 0.99e-3, 0.0), corr_frame=frame, **base)  # 1.4 mm along x of the frame
    assert converged((1.4e-3, 0.0, 0.0), corr_frame=frame, **base)
    assert converged((1.4e-3, 0.0, 0.0), axes="y,z")
    assert converged((0.0, 0.0, 0.0), angle=np.deg2rad(0.62))  # 0.5 deg about z
    assert not converged((0.0, 0.0, 0.0), angle=np.deg2rad(0.63))
    assert converged((2e-3, 0.0, 0.0), angle=np.deg2rad(0.63), cond_window_mm=2.1, cond_window=0.6)


def test_seven_joint_arm_obeys_the_law(load):
    robot = load(random_urdf(np.random.default_rng(3), 7, kinds=("revolute",)))
    q = np.linspace(-0.5, 0.7, 7)
    guidance = guided(robot, q)
    T = twin.forward_kinematics(robot, q, TOOL)
    guidance.take(SensorMessage(T=moved(T, WAY, angle=0.3)), q)
    way = twin.forward_kinematics(robot, driven(guidance, q, 60), TOOL)
    done = 1.0 - decay(5.0, 20.0, 60)
    np.testing.assert_allclose(way[:, :3, 3], T[:3, 3] + np.outer(done, WAY), rtol=0, atol=1e-12)


def test_arm_with_few_joints_supports_only_joint_guidance():
    robot = twin.load("two_link")
    with pytest.raises(EgmError, match="six joints or more, robot 'two_link' has 2: use mode joint"):
        make_guidance(robot, GuidanceSettings(mode="pose"))
    guidance = make_guidance(robot, GuidanceSettings())
    guidance.begin(np.zeros(2), PERIOD)
    guidance.take(SensorMessage(q=np.array([0.1, 0.2])), np.zeros(2))
    assert np.all(guidance.speed(np.zeros(2)) > 0.0)


def test_invalid_frames_are_reported_before_a_run(robot):
    with pytest.raises(EgmError, match="sensor_frame: expected a frame"):
        make_guidance(robot, GuidanceSettings(mode="pose", sensor_frame="1,2"))


def test_path_requires_path_mode(robot):
    with pytest.raises(EgmError, match="mode path requires a path"):
        make_guidance(robot, GuidanceSettings(mode="path"))
    with pytest.raises(EgmError, match="mode pose accepts no path"):
        make_guidance(robot, GuidanceSettings(mode="pose"), path="path.csv")
