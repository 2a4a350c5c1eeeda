"""Guidance of the tool: poses, their frames, corrections of a path, and where it stops."""

from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.dh_arms import dh_pose
from tests.support.guided_steps import PERIOD, START, TOOL, decay, driven, fault_of, poses, same
from tests.support.random_trees import random_urdf
from tests.support.refusals import refused
from twin.abb.egm import GuidanceSettings, SensorMessage
from twin.abb.egm.guidance.run import Phase, Run, make_guidance
from twin.abb.egm.guidance.tool_guidance import (
    base_in_world,
    displaced_pose,
    guidance_frames,
    parse_frame,
    path_axes,
    pose_displacement,
    work_object,
)
from twin.base.errors import EgmError
from twin.data.logs.recordings.motions import recorded_motion, through_recording
from twin.data.logs.recordings.recording import joint_recording, tool_recording, write_recording
from twin.physics.rotations.euler_angles import matrix_from_axis_angle

WAY = np.array([0.06, -0.08, 0.05])
AXIS = np.array([0.6, 0.0, -0.8])
FAST = {"mode": "pose", "max_speed_deviation": 1e6}


def guided(robot, q=START, T_flange_tool=TOOL, **settings):
    """Return a guidance that has begun in q."""
    guidance = make_guidance(robot, GuidanceSettings(**FAST | settings), T_flange_tool)
    guidance.begin(q, PERIOD)
    return guidance


def run_of(robot, q, T_flange_tool=None, **settings):
    settings = GuidanceSettings(mode="pose", **settings)
    return Run(robot, settings, make_guidance(robot, settings, T_flange_tool), q, PERIOD)


def moved(T, way=(0.0, 0.0, 0.0), axis=AXIS, angle=0.0):
    """Return the pose T displaced and rotated about an axis, both in base axes."""
    T = T.copy()
    T[:3, 3] += way
    T[:3, :3] = matrix_from_axis_angle(axis, angle) @ T[:3, :3]
    return T


def turned(R, R_start, axis=AXIS):
    """Return the angles of R (N, 3, 3) from R_start about an axis; assert that the axis is this one."""
    D = R @ R_start.T
    skew = D - np.swapaxes(D, 1, 2)
    sines = 0.5 * np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
    angles = np.arctan2(sines @ axis, 0.5 * (np.trace(D, axis1=1, axis2=2) - 1.0))
    same(sines, np.outer(np.sin(angles), axis))
    return angles


def test_pose_displacement_is_exact_at_every_angle(rng):
    for angle in (0.0, 1e-12, 1e-5, 0.7, 2.0, 3.0, np.pi - 1e-9):
        for _ in range(20):
            axis = rng.normal(size=3)
            way = np.concatenate([rng.normal(size=3), angle * axis / np.linalg.norm(axis)])
            T = twin.pose_matrix(np.concatenate([rng.normal(size=3), Rotation.random(rng=rng).as_quat()]))
            T_moved, found = np.empty((4, 4)), np.empty(6)
            displaced_pose(T, way, T_moved)
            same(T_moved[:3, :3], Rotation.from_rotvec(way[3:]).as_matrix() @ T[:3, :3], 4e-15)
            same(T_moved[:, 3], [*(T[:3, 3] + way[:3]), 1.0], 4e-15)
            pose_displacement(T, T_moved, found)
            np.testing.assert_allclose(found, way, rtol=1e-14, atol=2e-15 if angle < 3.0 else 2e-14)


@pytest.mark.parametrize(
    ("name", "settings", "gain", "bandwidth"),
    [
        ("irb140", {}, 5.0, 20.0),
        ("irb1400", {"level": 0}, 5.0, None),
        ("irb1400", {"position_gain": 20.0, "pos_corr_gain": 0.5, "lp_filter": 2.0}, 10.0, 2.0),
    ],
)
def test_tool_obeys_the_law_in_closed_form_along_a_line_about_an_axis(
    request, name, settings, gain, bandwidth
):
    arm = request.getfixturevalue(name)
    guidance, T = guided(arm, **settings), poses(arm, START)
    guidance.take(SensorMessage(T=moved(T, WAY, angle=0.7)), START)
    T_way = poses(arm, driven(guidance, START, 800))
    done = 1.0 - decay(gain, bandwidth, 800)
    assert done[-1] > 0.9
    same(T_way[:, :3, 3], T[:3, 3] + np.outer(done, WAY))
    same(turned(T_way[:, :3, :3], T[:3, :3]), 0.7 * done)


def test_tool_speed_and_pose_are_in_the_sensor_frame(robot):
    """Speeds need no gain."""
    sensor = (0.3, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5)  # its x, y, z are y, z, x of the base
    T, frame = poses(robot, START), {"sensor_frame": text(sensor)}
    guidance = guided(robot, pos_corr_gain=0.0, level=0, **frame)
    guidance.take(SensorMessage(twist=np.array([0.1, 0.05, 0.02, 0.0, 0.2, 0.0])), START)
    T_way = poses(robot, driven(guidance, START, 500))
    same(T_way[-1, :3, 3] - T[:3, 3], 0.5 * np.array([0.02, 0.1, 0.05]))
    same(turned(T_way[:, :3, :3], T[:3, :3], axis=np.array([0.0, 0.0, 1.0])), 2e-4 * np.arange(501))
    wanted = moved(T, WAY, angle=0.3)
    sent = SensorMessage(T=np.linalg.inv(twin.pose_matrix(sensor)) @ wanted)
    guidance.take(sent, START)  # without a speed, which is then 0
    assert np.all(guidance.speed(START) == 0.0)
    guidance = guided(robot, position_gain=20.0, **frame)
    guidance.take(sent, START)
    same(poses(robot, driven(guidance, START, 2000)[-1]), wanted)


def test_unguided_axes_hold_their_start_value(robot):
    z = np.array([0.0, 0.0, 1.0])
    frame = "0.1,0.2,0.3,0.5,0.5,0.5,0.5"  # its x, y, z are y, z, x of the base
    guidance = guided(robot, corr_frame=frame, axes="x,z,ry", sensor_frame="0,0,0", position_gain=20.0)
    T = poses(robot, START)
    guidance.take(SensorMessage(T=moved(T, WAY, axis=z, angle=0.4)), START)
    T_way = poses(robot, driven(guidance, START, 2000))
    way = T_way[:, :3, 3] - T[:3, 3]
    same(way[:, 2], 0.0)  # y of the frame
    same(way[-1, :2], WAY[:2])
    same(turned(T_way[-1:, :3, :3], T[:3, :3], z), 0.4)
    guidance = guided(robot, corr_frame=frame, axes="x,z,rx", sensor_frame="0,0,0")
    for sent in (
        SensorMessage(T=moved(T, axis=z, angle=0.4)),
        SensorMessage(twist=np.array([0.0, 0.0, 0.2, 0.3, 0.0, 0.0])),
    ):
        guidance.take(sent, START)
        same(guidance.speed(START), 0.0)


@pytest.mark.parametrize(("name", "limit"), [("irb140", 1e6), ("irb1400", 5.0)])
def test_tool_moves_straight_to_its_target_under_limits_and_ramps(request, name, limit):
    """A ramp or limit reduces each step; guidance extrapolates the remaining share and solves for it."""
    arm = request.getfixturevalue(name)
    run = run_of(arm, START, TOOL, max_speed_deviation=limit, position_gain=20.0)
    T = poses(arm, START)
    run.take(SensorMessage(T=moved(T, WAY)))
    samples = run.samples(1000)
    way = poses(arm, samples.q)[:, :3, 3] - T[:3, 3]
    along = way @ WAY / (WAY @ WAY)
    assert np.all(np.diff(along) >= -1e-12)
    assert along[-1] > (0.3 if limit == 5.0 else 1.0 - 1e-6)
    same(way, np.outer(along, WAY), 1e-9)
    assert np.max(np.abs(samples.qd)) <= np.deg2rad(limit) * (1.0 + 1e-12)


def test_arm_never_changes_its_configuration(irb1400, rng):
    """Joint angles change by no more than the speed limit allows, for arbitrary references."""
    run = run_of(irb1400, START, TOOL, max_speed_deviation=100.0, ramp_time=0.005, position_gain=20.0)
    T, parts = poses(irb1400, START), []
    for _ in range(30):
        run.take(SensorMessage(T=moved(T, rng.uniform(-0.2, 0.2, 3), angle=rng.uniform(-2.0, 2.0))))
        parts.append(run.samples(40).q)
    q = np.concatenate(parts)
    assert np.max(np.abs(np.diff(q, axis=0))) <= np.deg2rad(100.0) * PERIOD * (1.0 + 1e-9)
    assert np.all((q >= irb1400.q_min) & (q <= irb1400.q_max))


SINGULAR = [
    ("irb1400", "wrist", np.deg2rad([10.0, 20.0, -15.0, 30.0, 10.0, 0.0])),
    ("irb140", "elbow", START),  # the joint ranges of the other arm exclude a stretched elbow
    ("irb140", "shoulder", np.deg2rad([0.0, -30.0, -30.0, 0.0, 40.0, 0.0])),
]


@pytest.mark.parametrize(("name", "kind", "q"), SINGULAR)
def test_arm_stops_near_a_singularity_and_names_it(request, name, kind, q):
    arm = request.getfixturevalue(name)
    run = run_of(arm, q, max_speed_deviation=60.0, ramp_time=0.005, pos_corr_gain=0.0)
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
    assert (run.fault.number, run.fault.name) == (50026, "Close to singularity")
    assert kind in run.fault.sentence
    run.samples(500)
    assert np.all(run.qd == 0.0)


def test_unreachable_pose_or_message_of_another_mode_is_a_fault(robot):
    guidance, T = guided(robot), poses(robot, START)
    fault = fault_of(guidance, SensorMessage(T=moved(T, (2.0, 0.0, 0.0))))
    assert (fault.number, fault.name) == (50050, "Position outside reach")
    assert f"x = {1e3 * T[0, 3] + 2000.0:.1f}" in fault.sentence
    assert fault_of(guidance, SensorMessage(q=START)).number == 41826
    assert "rigid" in fault_of(guidance, SensorMessage(T=2.0 * T)).sentence
    for speed in (np.nan, 1e160):
        assert "below 1e+06" in fault_of(guidance, SensorMessage(twist=np.full(6, speed))).sentence
    guidance.take(SensorMessage(), START)
    same(guidance.speed(START), 0.0)  # the last reference stays valid


def test_pose_converges_within_the_window_of_each_guided_axis(robot):
    frame = "0,0,0,0.9238795325112867,0,0,0.3826834323650898"  # x and y turned by 45 degrees

    def converged(off, angle=0.0, **settings):
        guidance = guided(robot, **settings)
        guidance.take(SensorMessage(T=moved(poses(robot, START), off, angle=np.deg2rad(angle))), START)
        return guidance.converged(START)

    base = {"sensor_frame": "0,0,0", "sensor_frame_type": "base"}
    assert converged((0.99e-3, 0.99e-3, -0.99e-3))
    assert not converged((1.01e-3, 0.0, 0.0))
    assert not converged((0.99e-3, 0.99e-3, 0.0), corr_frame=frame, **base)  # 1.4 mm along x of the frame
    assert converged((1.4e-3, 0.0, 0.0), corr_frame=frame, **base)
    assert converged((1.4e-3, 0.0, 0.0), axes="y,z")
    assert converged((0.0, 0.0, 0.0), angle=0.62)  # 0.5 deg about z
    assert not converged((0.0, 0.0, 0.0), angle=0.63)
    assert converged((2e-3, 0.0, 0.0), angle=0.63, cond_window_mm=2.1, cond_window=0.6)


def test_seven_joint_arm_obeys_the_law(load):
    robot = load(random_urdf(np.random.default_rng(3), 7, kinds=("revolute",)))
    q = np.linspace(-0.5, 0.7, 7)
    guidance, T = guided(robot, q), twin.forward_kinematics(robot, q, TOOL)
    guidance.take(SensorMessage(T=moved(T, WAY, angle=0.3)), q)
    way = twin.forward_kinematics(robot, driven(guidance, q, 60), TOOL)
    same(way[:, :3, 3], T[:3, 3] + np.outer(1.0 - decay(5.0, 20.0, 60), WAY))


def test_arm_with_few_joints_supports_only_joint_guidance():
    guidance = make_guidance(twin.load("two_link"), GuidanceSettings())
    guidance.begin(np.zeros(2), PERIOD)
    guidance.take(SensorMessage(q=np.array([0.1, 0.2])), np.zeros(2))
    assert np.all(guidance.speed(np.zeros(2)) > 0.0)


def test_guidance_that_an_arm_does_not_support_is_reported_before_a_run(robot):
    def making(arm=robot, path=None, **settings):
        return partial(make_guidance, arm, GuidanceSettings(**settings), path=path)

    few = making(twin.load("two_link"), mode="pose")
    refused(
        (few, "six joints or more, robot 'two_link' has 2: use mode joint"),
        (making(mode="pose", sensor_frame="1,2"), "sensor_frame: expected a frame"),
        (making(mode="pose", corr_frame="1,2,nan"), "corr_frame: .* got '1,2,nan'"),
        (making(mode="pose", corr_frame="1,2,3,1,1,0,0"), "a quaternion of norm 1.41421"),
        (making(mode="pose", corr_frame="500,0,300"), "got 500: are these millimetres"),
        (making(mode="path"), "mode path requires a path"),
        (making(mode="pose", path="path.csv"), "mode pose accepts no path"),
        error=EgmError,
    )


close = partial(same, within=1e-15)
CORR = (0.1, -0.2, 0.3, 0.5, 0.5, 0.5, 0.5)
SENSOR = (0.4, 0.0, -0.1, 0.8, 0.0, 0.6, 0.0)
WOBJ = (0.5, 0.1, 0.2, 0.6, 0.0, 0.0, 0.8)
TOOL0 = twin.pose_matrix((0.3, 0.4, 0.7, 0.0, 0.6, 0.0, 0.8))


def text(values):
    return ",".join(map(str, values))


def frames(robot, **settings):
    return guidance_frames(robot, GuidanceSettings(mode="pose", **settings), TOOL0)


def test_frames_are_relative_to_base_work_object_or_flange(robot):
    found = frames(
        robot, wobj=text(WOBJ), corr_frame=text(CORR), corr_frame_type="wobj",
        sensor_frame=text(SENSOR), sensor_frame_type="tool",
    )  # fmt: skip
    close(found.T_base_wobj, twin.pose_matrix(WOBJ))
    close(found.T_base_corr, twin.pose_matrix(WOBJ) @ twin.pose_matrix(CORR))
    close(found.T_base_sensor, TOOL0 @ twin.pose_matrix(SENSOR))
    close(frames(robot, corr_frame=text(CORR)).T_base_corr, twin.pose_matrix(CORR))
    by_default = frames(robot, corr_frame=text(CORR), corr_frame_type="tool")  # that of the correction
    close(by_default.T_base_sensor, TOOL0 @ twin.pose_matrix(CORR))
    close(frames(robot).T_base_sensor, np.eye(4))
    close(work_object(GuidanceSettings(wobj=text(WOBJ))), twin.pose_matrix(WOBJ))
    close(work_object(GuidanceSettings()), np.eye(4))
    close(parse_frame("1, -2, 3", "wobj"), twin.pose_matrix((1, -2, 3, 1, 0, 0, 0)))


def test_world_z_is_up_by_the_smallest_rotation(robot):
    wall = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    for where, R in (("floor", np.eye(3)), ("wall", wall), ("inverted", np.diag([1.0, -1.0, -1.0]))):
        mounted = robot.mounted(where)
        T_world_base = base_in_world(mounted.gravity)
        close(T_world_base[:3, :3], R)
        found = frames(mounted, corr_frame=text(CORR), corr_frame_type="world")
        close(T_world_base @ found.T_base_corr, twin.pose_matrix(CORR))
    close(base_in_world(np.zeros(3)), np.eye(4))


PATH = {"mode": "path", "level": 2, "position_gain": 20.0, "max_speed_deviation": 1e6}
CHORD = np.array([0.02, 0.09, -0.05])
CORRECTION = np.array([0.3, 5e-3, -2e-3])
"""Correction of the tests; its first component must be ignored."""


def smooth(u):
    u = np.clip(u, 0.0, 1.0)
    return u * u * (3.0 - 2.0 * u)


TIMES = np.linspace(0.0, 1.5, 31)
SHARE = smooth(TIMES / 1.5)


def recording(robot, way, t=TIMES):
    """Return a recording of the tool: the start pose displaced by way (N, 3)."""
    recorded = np.repeat(twin.pose_vector(poses(robot, START))[None], len(t), axis=0)
    recorded[:, :3] += way
    return tool_recording(t, recorded)


def straight(robot):
    return recording(robot, np.outer(SHARE, CHORD))


def curved(robot):
    u = SHARE
    return recording(robot, 0.08 * np.column_stack([np.cos(1.2 * u) - 1.0, np.sin(1.2 * u), 0.3 * u]))


def corrected(robot, path, correction=None, **settings):
    """Return a guidance that has begun, with an optional correction."""
    guidance = make_guidance(robot, GuidanceSettings(**PATH | settings), TOOL, path)
    guidance.begin(guidance.start, PERIOD)
    if correction is not None:
        guidance.take(SensorMessage(path_correction=np.array(correction), age=0.5), guidance.start)
    return guidance


def beside(robot, path, q):
    """Return where the path moves, the offset of the tool in the path frame (K, 3), and its rotation (N,)."""
    motion = through_recording(path)(PERIOD * np.arange(len(q)))
    T = poses(robot, q)
    v = motion.twist[:, :3]
    moves = np.linalg.norm(v, axis=1) > 1e-4
    x = v[moves] / np.linalg.norm(v[moves], axis=1)[:, None]
    y = np.cross(x, motion.T_base_tool[moves, :3, 2])
    y /= np.linalg.norm(y, axis=1)[:, None]
    axes = np.stack([x, y, np.cross(x, y)], axis=1)
    off = np.einsum("kij,kj->ki", axes, (T - motion.T_base_tool)[moves, :3, 3])
    turn = np.max(np.abs((T - motion.T_base_tool)[:, :3, :3]), axis=(1, 2))
    return np.flatnonzero(moves), off, turn


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_correction_follows_the_law_normal_to_a_curved_path(request, name):
    """Limits act on the correction but not on the path; without a correction the arm moves as recorded."""
    arm = request.getfixturevalue(name)
    path = curved(arm)
    guidance, motion = corrected(arm, path), recorded_motion(arm, path, T_flange_tool=TOOL)
    q = driven(guidance, guidance.start, 1501)
    same(q, motion(PERIOD * np.arange(1502))[0])
    assert guidance.ended()
    same(guidance.speed(q[-1]), 0.0, 1e-9)
    same(guidance.programmed(), 0.0, 1e-9)

    guidance = corrected(arm, path, CORRECTION)
    moving, off, turn = beside(arm, path, driven(guidance, guidance.start, 1499))
    done = 1.0 - decay(20.0, 20.0, 1499)[moving]
    assert done[-1] == pytest.approx(1.0, abs=1e-9)
    same(off, np.outer(done, [0.0, 5e-3, -2e-3]))
    same(turn, 0.0)

    def left(speed):
        return min(1.0, 0.02 / (np.max(np.abs(speed)) + 1e-9))

    limited = corrected(arm, path, CORRECTION)
    _, off_limited, turn = beside(arm, path, driven(limited, limited.start, 1499, left))
    soon = np.searchsorted(moving, 150)
    assert 0.0 < off_limited[soon, 1] < 0.8 * off[soon, 1]
    same(off_limited[:, 0], 0.0, 1e-7)  # scaling a step is not exactly linear
    same(turn, 0.0, 1e-7)


def test_path_axes_are_those_of_the_manual():
    """For motion along x with the tool pointing down, -y is to the left of the path, and z is up."""
    down = np.array([[0.0, 0.0, -1.0]])
    same(path_axes(np.array([[0.2, 0.0, 0.0]]), down)[0], np.diag([1.0, 1.0, 1.0]))
    same(path_axes(np.array([[0.0, 0.2, 0.0]]), down)[0].T, [[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    still, go, up = np.zeros(3), np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.0, 0.1])
    v = np.array([still, go, still, up, -1e-5 * go, -go])  # they hold at rest and along z of the tool
    y = path_axes(v, np.tile(down, (6, 1)))[:, :, 1]
    same(y, np.array([[0.0, 1.0, 0.0]] * 5 + [[0.0, -1.0, 0.0]]))


def test_initial_offset_decays_by_the_law(robot):
    path = straight(robot)
    guidance = corrected(robot, path, CORRECTION, level=0)
    q = driven(guidance, guidance.start + 1e-3, 1499)
    moving, off, turn = beside(robot, path, q)
    left = decay(20.0, None, 1499)
    same(off[:, 0], off[0, 0] * left[moving] / left[moving[0]])
    assert turn[0] > 1e-3
    same(turn, turn[0] * left, 1e-5)  # compared by matrix elements: first order only
    same(turn[-1], 0.0)


def test_tool_rounds_a_corner_without_a_jump(robot):
    """The tool rests at the corner.  Only the guided axes are corrected."""
    t = np.linspace(0.0, 3.0, 61)
    way = 0.05 * np.column_stack([smooth(t / 1.2), smooth(t / 1.2 - 1.5), 0.0 * t])
    path = recording(robot, way, t)
    guidance = corrected(robot, path, CORRECTION, level=0, axes="z")
    q = driven(guidance, guidance.start, 2900)
    speed = np.linalg.norm(np.diff(poses(robot, q)[:, :3, 3], axis=0), axis=1) / PERIOD
    assert np.max(speed) < 0.12 + 20.0 * 2.0 * 2e-3  # a jump would be 2 m/s
    same(beside(robot, path, q)[1][-1], [0.0, 0.0, -2e-3], 1e-9)


def test_path_can_be_joint_or_tool_recording_or_file(robot, tmp_path):
    path = straight(robot)
    motion = recorded_motion(robot, path, T_flange_tool=TOOL)
    t = np.linspace(0.0, motion.duration, 301)
    joints = joint_recording(t, motion(t)[0], robot)
    write_recording(tmp_path / "path.csv", joints)
    ends = []
    for given in (path, joints, tmp_path / "path.csv"):
        guidance = corrected(robot, given, CORRECTION)
        same(guidance.start, START)
        ends.append(driven(guidance, guidance.start, 500)[-1])
    same(ends[1:], ends[0], 1e-7)  # joint and tool splines differ between the samples
    same(ends[2], ends[1])


def test_run_ends_at_the_corrected_end_of_the_path_for_any_period(robot):
    path = straight(robot)
    settings = GuidanceSettings(**PATH | {"max_speed_deviation": 10.0, "ramp_time": 0.1})
    guidance = make_guidance(robot, settings, TOOL, path)
    run = Run(robot, settings, guidance, guidance.start, 4e-3)
    run.take(SensorMessage(path_correction=CORRECTION))
    run.samples(374)
    assert run.phase is Phase.GUIDED
    assert guidance.converged(run.q)
    run.samples(100)
    assert (run.phase, run.fault) == (Phase.FINISHED, None)
    T, T_end = poses(robot, run.q), poses(robot, recorded_motion(robot, path, T_flange_tool=TOOL)(1.5)[0])
    assert np.linalg.norm(T[:3, 3] - T_end[:3, 3]) == pytest.approx(np.hypot(5e-3, 2e-3), abs=1e-6)
    assert (T - T_end)[:3, 3] @ CHORD == pytest.approx(0.0, abs=1e-9)


def test_correction_converges_within_its_window_and_is_a_fault_if_invalid(robot):
    guidance = corrected(robot, straight(robot))
    assert fault_of(guidance, SensorMessage(q=START)).number == 41826
    assert "finite" in fault_of(guidance, SensorMessage(path_correction=np.full(3, np.inf))).sentence
    guidance.take(SensorMessage(), START)
    same(guidance.speed(guidance.start), guidance.programmed())
    for correction, converged in (([0.0, 0.9e-3, -0.9e-3], True), ([0.5, 1.1e-3, 0.0], False)):
        guidance.take(SensorMessage(path_correction=np.array(correction)), START)
        assert guidance.converged(guidance.start) == converged


def test_path_that_cannot_be_corrected_is_rejected(robot):
    along = recording(robot, np.outer(0.1 * SHARE, poses(robot, START)[:3, 2]))
    still, two = recording(robot, np.zeros(3)), twin.load("two_link")
    joints = joint_recording([0.0, 1.0], [[0.0, 0.0], [0.1, 0.2]], two)
    making = partial(make_guidance, robot, GuidanceSettings(**PATH), TOOL)
    refused(
        (lambda: making(along), "on this path the tool moves along its z axis only"),
        (lambda: making(still), "on this path the tool stands still"),
        (lambda: make_guidance(two, GuidanceSettings(**PATH), None, joints), "six joints or more"),
        error=EgmError,
    )
    guidance = make_guidance(robot, GuidanceSettings(**PATH), TOOL, straight(robot))
    with pytest.raises(EgmError, match="joint_2 is at 21 deg, the path starts at 20 deg"):
        guidance.begin(START + np.deg2rad([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]), PERIOD)
