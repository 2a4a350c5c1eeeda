"""Recordings of joint positions, and the motions through them."""

import dataclasses

import numpy as np
import pytest

import twin
from scenarios.running import registry
from tests.support.random_trees import interpreted
from twin.errors import LimitError, RecordingError, UnknownNameError
from twin.trajectories.joint_paths import through_joint_recording

ROBOT = twin.load("irb140")
RNG = np.random.default_rng(13)
TIMES = 100.0 + np.cumsum(RNG.uniform(0.2, 0.5, 9))
ANGLES = 0.3 + 0.1 * np.cumsum(RNG.normal(size=(9, 6)), axis=0)
RECORDED = twin.logs.joint_recording(TIMES, ANGLES, ROBOT)


def same(found, wanted, within=1e-15):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=within)


def test_written_is_read_bit_for_bit(tmp_path):
    twin.write_recording(tmp_path / "path.csv", RECORDED)
    assert (tmp_path / "path.csv").read_text().startswith("t,q1,q2,q3,q4,q5,q6\n")
    for robot in (None, ROBOT):
        read = twin.read_recording(tmp_path / "path.csv", robot)
        np.testing.assert_array_equal(read.t, TIMES)
        np.testing.assert_array_equal(read.q, ANGLES)


def test_samples_are_met_and_it_is_at_rest_at_both_ends_and_held_outside():
    motion = twin.trajectories.recorded_motion(ROBOT, RECORDED)
    assert motion.duration == TIMES[-1] - TIMES[0]
    same(motion(TIMES - TIMES[0])[0], ANGLES)
    for t, place in ((-1.0, 0), (0.0, 0), (motion.duration, -1), (motion.duration + 1.0, -1)):
        q, qd, qdd = motion(t)
        same(q, ANGLES[place])
        assert not qd.any()
        assert not qdd.any()


def test_it_starts_and_stops_within_the_first_and_the_last_interval():
    """Between them the spline's time runs as the recording's, also where the two differ in length."""
    t = np.array([0.0, 0.1, 0.5, 0.9, 1.3])
    motion = through_joint_recording(twin.logs.joint_recording(t, ANGLES[:5]))
    assert (motion.ease_in, motion.ease_out) == (0.1, pytest.approx(0.4, rel=1e-15))
    inside = np.linspace(0.1, 0.9, 33)
    same(motion(inside)[1], motion.position(inside - 0.05, 1), 1e-14)


@pytest.mark.parametrize("samples", [2, 3, 9])
def test_accelerations_are_continuous_and_derivatives_of_the_speeds(samples):
    motion = through_joint_recording(twin.logs.joint_recording(TIMES[:samples], ANGLES[:samples]))
    t, h = np.linspace(0.01, motion.duration - 0.01, 101), 1e-5
    (ahead, speed_ahead, _), (behind, speed_behind, _) = motion(t + h), motion(t - h)
    q, qd, qdd = motion(t.reshape(101, 1))
    assert q.shape == qd.shape == qdd.shape == (101, 1, 6)
    same(qd[:, 0], (ahead - behind) / (2 * h), 1e-8)
    same(qdd[:, 0], (speed_ahead - speed_behind) / (2 * h), 1e-3)
    before, after = (motion(TIMES[:samples] - TIMES[0] + side)[2] for side in (-1e-9, 1e-9))
    same(after, before, 1e-5 * np.abs(motion(np.linspace(0, 1, 50))[2]).max())


def test_it_is_the_same_motion_as_that_of_the_tool_where_the_tool_was_recorded():
    """Two ways to one motion: through the joints' samples, and by inverse kinematics through the tool's."""
    move = twin.quintic([0.1, 0.2, 0.1, 0.3, 0.5, -0.2], [0.4, 0.3, 0.2, 0.1, 0.6, 0.1], 1.0)
    t, times = np.linspace(0, 1, 101), np.linspace(0, 1, 777)
    q = move(t)[0]
    poses = twin.pose_vector(twin.forward_kinematics(ROBOT, q))
    joints = twin.trajectories.recorded_motion(ROBOT, twin.logs.joint_recording(t, q))
    tool = twin.trajectories.recorded_motion(ROBOT, twin.logs.tool_recording(t, poses), near=q[0])
    same(joints(times)[0], tool(times)[0], 1e-6)  # splines, 10 ms apart
    same(joints(times)[0], move(times)[0], 1e-6)


def with_value(k, joint, value):
    q = np.array(ANGLES)
    q[k, joint] = value
    return q


TURNED = with_value(3, 5, ANGLES[2, 5] + 2.2)


def test_faults_of_arrays_are_named():
    for q, robot, told in (
        (TURNED, None, "3, column 'q6': the joint turns by 126.1 deg from the"),
        (with_value(3, 1, 45.0), None, "3, column 'q2': 45 rad is beyond any joint; expected radians, at"),
        (with_value(3, 0, 7.0), ROBOT, "3, column 'q1': 7 rad is beyond any joint; expected radians, at"),
        (with_value(8, 2, np.nan), ROBOT, "8, column 'q3': expected a finite number, got nan"),
    ):
        with pytest.raises(RecordingError, match=f"^the recording, sample {told}"):
            twin.logs.joint_recording(TIMES, q, robot)
        for wrong in (ANGLES[:, :5], ANGLES[:5], 1.0):
            with pytest.raises(ValueError, match=r"q of shape \(N, 6\), got \(9,\) and"):
                twin.logs.joint_recording(TIMES, wrong, ROBOT)


def test_a_motion_beyond_a_range_or_a_speed_is_refused():
    beyond = with_value(8, 1, 2.0)
    for t, q, error, told in (
        (2 * TIMES, beyond, LimitError, r"joint_2 would be at .* at t = \d.* its range is"),
        (0.02 * TIMES, ANGLES, LimitError, r"joint_\d would move at .* its limit is"),
        (TIMES, ANGLES[:, :5], RecordingError, "the recording has 5 joints, robot 'irb140' has 6"),
    ):
        with pytest.raises(error, match=told):
            twin.trajectories.recorded_motion(ROBOT, twin.logs.joint_recording(t, q))


def test_joints_that_slide_are_in_metres(tmp_path):
    robot, path = interpreted(twin.load("rtr")), tmp_path / "path.csv"
    path.write_text("t,q1,q2,q3\n0,100,100,100\n1,90,90,90\n")
    read = twin.read_recording(path, robot, length_unit="mm", angle_unit="deg")
    expected = {"prismatic": [0.1, 0.09], "revolute": np.deg2rad([100, 90])}
    for joint, kind in enumerate(robot.joint_kinds):
        np.testing.assert_allclose(read.q[:, joint], expected[kind], rtol=2e-16, atol=0)
    with pytest.raises(RecordingError, match="100 m is beyond any arm; expected metres, at most 10: are"):
        twin.read_recording(path, robot, angle_unit="deg")


def test_columns_may_have_the_joint_names_of_the_robot(tmp_path):
    """Names that are like ours, but for other joints, are the robot's where all of them are there."""
    names = {f"joint_{k}": f"q{k - 1}" for k in range(1, 7)}
    tree = dataclasses.replace(ROBOT.tree, names=tuple(names.get(name, name) for name in ROBOT.tree.names))
    robot = dataclasses.replace(ROBOT, tree=tree)
    assert robot.joint_names == ("q0", "q1", "q2", "q3", "q4", "q5")
    path = tmp_path / "path.csv"
    for header in ("t,q0,q1,q2,q3,q4,q5", "t,q1,q2,q3,q4,q5,q6"):
        path.write_text(f"{header}\n0,.1,.2,.3,.4,.5,.6\n1,.2,.3,.4,.5,.6,.7\n")
        np.testing.assert_allclose(twin.read_recording(path, robot).q[0], np.arange(1, 7) / 10, rtol=1e-15)


def test_pose_path_follows_recorded_joints_or_a_recorded_tool(tmp_path):
    scenario, path = registry.find("pose_path"), tmp_path / "path.csv"
    q = twin.quintic(ANGLES[0], ANGLES[0] + 0.1, 0.5)(t := np.linspace(0, 0.5, 11))[0]
    poses = twin.pose_vector(twin.forward_kinematics(ROBOT, q, twin.pose_matrix([0, 0, 0.12, 1, 0, 0, 0])))
    joints = np.column_stack([t, np.rad2deg(q)])
    np.savetxt(path, joints, "%.17g", ";", header="Zeit;q1;q2;q3;q4;q5;q6", comments="", encoding="utf-16")
    options = {"csv": str(path), "tool": "0,0,0.12", "payload": "2,0,0,0.06"}
    log = scenario.run(scenario.Config(columns="t=Zeit", angle_unit="deg", **options))
    same(log.q_ref[[0, -1]], q[[0, -1]], 1e-14)
    assert log.robot.payload.mass == 2.0
    tool, names = np.column_stack([t, 1000.0 * poses[:, :3], poses[:, 3:]]), "Time,x,y,z,q1,q2,q3,q4"
    np.savetxt(path, tool, "%.17g", ",", header=names, comments="")
    columns = "t=Time,a=q1,b=q2,c=q3,d=q4"
    log = scenario.run(scenario.Config(columns=columns, length_unit="mm", **options))
    same(log.pose_ref[::50], poses, 1e-12)
    same(log.q_ref[-1], q[-1], 1e-11)
    assert all(metric.passes for metric in scenario.metrics(log))


def test_the_tour_stops_where_the_flange_was_printed_with_any_tool():
    scenario = registry.find("pose_path")
    log = scenario.run(scenario.Config(tool="0.02,-0.03,0.12,0.9,0.1,0.3,0.3"))
    metrics = scenario.metrics(log)
    assert all(metric.passes for metric in metrics)
    assert (metrics[0].name, metrics[0].limit is None) == ("flange at test_3 - printed", False)
    stops = np.flatnonzero(np.abs(log.qd_ref).max(axis=1) < 1e-4)
    tips = log.pose_ref[stops[0] : stops[-1], :3]
    assert np.linalg.norm(tips[0] - twin.forward_kinematics(ROBOT, ROBOT.poses["test_3"])[:3, 3]) > 0.1
    with pytest.raises(UnknownNameError, match="unknown kind of recording 'flange': known are tool, joints"):
        scenario.Config(csv_kind="flange")
    with pytest.raises(ValueError, match="expected a unit of length, m or mm, got 'inch'"):
        scenario.Config(length_unit="inch")
