"""Recordings of joint positions, and the motions through them."""

import dataclasses

import numpy as np
import pytest

import twin
from scenarios.running import registry
from twin.errors import LimitError, RecordingError, UnknownNameError
from twin.trajectories.joint_paths import through_joint_recording

ROBOT = twin.load("irb140")
RNG = np.random.default_rng(13)
TIMES = 100.0 + np.cumsum(RNG.uniform(0.2, 0.5, 9))
ANGLES = 0.3 + 0.1 * np.cumsum(RNG.normal(size=(9, 6)), axis=0)
RECORDED = twin.logs.joint_recording(TIMES, ANGLES, ROBOT)


def test_written_is_read_bit_for_bit(tmp_path):
    twin.write_recording(tmp_path / "path.csv", RECORDED)
    assert (tmp_path / "path.csv").read_text().startswith("t,q1,q2,q3,q4,q5,q6\n")
    for robot in (None, ROBOT):
        read = twin.read_recording(tmp_path / "path.csv", robot)
        np.testing.assert_array_equal(read.t, TIMES)
        np.testing.assert_array_equal(read.q, ANGLES)


def test_samples_are_met_at_their_times():
    motion = twin.trajectories.recorded_motion(ROBOT, RECORDED)
    assert motion.duration == TIMES[-1] - TIMES[0]
    np.testing.assert_allclose(motion(TIMES - TIMES[0])[0], ANGLES, rtol=0, atol=1e-15)


def test_it_is_at_rest_at_both_ends_and_held_outside():
    motion = twin.trajectories.recorded_motion(ROBOT, RECORDED)
    for t in (-1.0, 0.0, motion.duration, motion.duration + 1.0):
        q, qd, qdd = motion(t)
        np.testing.assert_allclose(q, ANGLES[0 if t < 1 else -1], rtol=0, atol=1e-15)
        assert not qd.any()
        assert not qdd.any()


def test_it_starts_and_stops_within_the_first_and_the_last_interval():
    """Between them the spline's time runs as the recording's, also where the two differ in length."""
    t = np.array([0.0, 0.1, 0.5, 0.9, 1.3])
    motion = through_joint_recording(twin.logs.joint_recording(t, ANGLES[:5]))
    assert (motion.ease_in, motion.ease_out) == (0.1, pytest.approx(0.4, rel=1e-15))
    inside = np.linspace(0.1, 0.9, 33)
    qd, u = motion(inside)[1], inside - 0.05
    np.testing.assert_allclose(qd, motion.position(u, 1), rtol=0, atol=1e-14)


def test_speeds_and_accelerations_are_the_derivatives():
    motion = through_joint_recording(RECORDED)
    t, h = np.linspace(0.01, motion.duration - 0.01, 101), 1e-5
    (ahead, speed_ahead, _), (behind, speed_behind, _) = motion(t + h), motion(t - h)
    q, qd, qdd = motion(t.reshape(101, 1))
    assert q.shape == qd.shape == qdd.shape == (101, 1, 6)
    np.testing.assert_allclose(qd[:, 0], (ahead - behind) / (2 * h), rtol=0, atol=1e-8)
    np.testing.assert_allclose(qdd[:, 0], (speed_ahead - speed_behind) / (2 * h), rtol=0, atol=1e-3)


@pytest.mark.parametrize("samples", [2, 3, 9])
def test_accelerations_are_continuous_at_the_samples(samples):
    motion = through_joint_recording(twin.logs.joint_recording(TIMES[:samples], ANGLES[:samples]))
    knots = TIMES[:samples] - TIMES[0]
    before, after = (motion(knots + side)[2] for side in (-1e-9, 1e-9))
    np.testing.assert_allclose(
        after, before, rtol=0, atol=1e-5 * np.abs(motion(np.linspace(0, 1, 50))[2]).max()
    )


def test_it_is_the_same_motion_as_that_of_the_tool_where_the_tool_was_recorded():
    """Two ways to one motion: through the joints' samples, and by inverse kinematics through the tool's."""
    move = twin.quintic([0.1, 0.2, 0.1, 0.3, 0.5, -0.2], [0.4, 0.3, 0.2, 0.1, 0.6, 0.1], 1.0)
    t = np.linspace(0, 1, 101)
    q = move(t)[0]
    poses = twin.pose_vector(twin.forward_kinematics(ROBOT, q))
    joints = twin.trajectories.recorded_motion(ROBOT, twin.logs.joint_recording(t, q))
    tool = twin.trajectories.recorded_motion(ROBOT, twin.logs.tool_recording(t, poses), near=q[0])
    times = np.linspace(0, 1, 777)
    np.testing.assert_allclose(joints(times)[0], tool(times)[0], rtol=0, atol=1e-6)  # splines, 10 ms apart
    np.testing.assert_allclose(joints(times)[0], move(times)[0], rtol=0, atol=1e-6)


def with_value(k, joint, value):
    q = np.array(ANGLES)
    q[k, joint] = value
    return q


@pytest.mark.parametrize(
    ("q", "robot", "told"),
    [
        (with_value(3, 5, ANGLES[2, 5] + 2.2), None, "3, column 'q6': the joint turns by 126.1 deg from the"),
        (
            with_value(3, 1, 45.0),
            None,
            "3, column 'q2': 45 rad is beyond any joint; expected radians, at most",
        ),
        (
            with_value(3, 0, 7.0),
            ROBOT,
            "3, column 'q1': 7 rad is beyond any joint; expected radians, at most 6.2",
        ),
        (with_value(8, 2, np.nan), ROBOT, "8, column 'q3': expected a finite number, got nan"),
    ],
)
def test_faults_of_arrays_are_named(q, robot, told):
    with pytest.raises(RecordingError) as error:
        twin.logs.joint_recording(TIMES, q, robot)
    assert str(error.value).startswith("the recording, sample " + told)


@pytest.mark.parametrize("q", [ANGLES[:, :5], ANGLES[:5], ANGLES[0], 1.0, np.zeros((9, 0))])
def test_arrays_of_wrong_shape(q):
    with pytest.raises(ValueError, match=r"q of shape \(N, 6\), got \(9,\) and"):
        twin.logs.joint_recording(TIMES, q, ROBOT)


def test_a_motion_beyond_a_range_or_a_speed_is_refused():
    with pytest.raises(LimitError, match=r"joint_2 would be at .* at t = \d.* its range is"):
        twin.trajectories.recorded_motion(ROBOT, twin.logs.joint_recording(2 * TIMES, with_value(8, 1, 2.0)))
    with pytest.raises(LimitError, match=r"joint_\d would move at .* its limit is"):
        twin.trajectories.recorded_motion(ROBOT, twin.logs.joint_recording(0.02 * TIMES, ANGLES))
    with pytest.raises(RecordingError, match="the recording has 5 joints, robot 'irb140' has 6"):
        twin.trajectories.recorded_motion(ROBOT, twin.logs.joint_recording(TIMES, ANGLES[:, :5]))


def test_joints_that_slide_are_in_metres(tmp_path):
    robot = twin.load("rtr")
    which = robot.joint_kinds.index("prismatic")
    (tmp_path / "path.csv").write_text("t,q1,q2,q3\n0,100,100,100\n1,90,90,90\n")
    read = twin.read_recording(tmp_path / "path.csv", robot, length_unit="mm", angle_unit="deg")
    for joint in range(3):
        expected = [0.1, 0.09] if joint == which else np.deg2rad([100, 90])
        np.testing.assert_allclose(read.q[:, joint], expected, rtol=2e-16, atol=0)
    with pytest.raises(
        RecordingError, match="100 m is beyond any arm; expected metres, at most 10: are these mill"
    ):
        twin.read_recording(tmp_path / "path.csv", robot, angle_unit="deg")


def test_columns_may_have_the_joint_names_of_the_robot(tmp_path):
    """Names that are like ours, but for other joints, are the robot's where all of them are there."""
    names = {f"joint_{k}": f"q{k - 1}" for k in range(1, 7)}
    tree = dataclasses.replace(ROBOT.tree, names=tuple(names.get(name, name) for name in ROBOT.tree.names))
    robot = dataclasses.replace(ROBOT, tree=tree)
    assert robot.joint_names == ("q0", "q1", "q2", "q3", "q4", "q5")
    rows = "0,.1,.2,.3,.4,.5,.6\n1,.2,.3,.4,.5,.6,.7\n"
    path = tmp_path / "path.csv"
    for header in ("t,q0,q1,q2,q3,q4,q5", "t,q1,q2,q3,q4,q5,q6"):
        path.write_text(f"{header}\n{rows}")
        np.testing.assert_allclose(twin.read_recording(path, robot).q[0], np.arange(1, 7) / 10, rtol=1e-15)


@pytest.fixture
def scenario():
    return registry.find("pose_path")


def test_pose_path_follows_joints_with_a_tool_and_a_payload(tmp_path, scenario):
    q = np.rad2deg(ANGLES[:4])
    rows = [
        ";".join(repr(v).replace(".", ",") for v in row) for row in np.column_stack([TIMES[:4], q]).tolist()
    ]
    path = tmp_path / "path.csv"
    path.write_text("Zeit;q1;q2;q3;q4;q5;q6\n" + "\n".join(rows), encoding="utf-16")
    config = scenario.Config(
        csv=str(path), columns="t=Zeit", angle_unit="deg", tool="0,0,0.12", payload="2,0,0,0.06"
    )
    log = scenario.run(config)
    metrics = scenario.metrics(log)
    assert all(metric.passes for metric in metrics)
    assert not any("printed" in metric.name for metric in metrics)
    np.testing.assert_allclose(log.q_ref[0], ANGLES[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(log.q_ref[-1], ANGLES[3], rtol=0, atol=1e-14)
    assert log.robot.payload.mass == 2.0
    held = [metric for metric in metrics if metric.name == "largest joint error"]
    assert held[0].value < 1e-13


def test_pose_path_takes_a_recorded_tool_along_the_recording(tmp_path, scenario):
    T_flange_tool = np.eye(4)
    T_flange_tool[2, 3] = 0.12
    q = twin.quintic(ANGLES[0], ANGLES[0] + 0.1, 0.5)(t := np.linspace(0, 0.5, 11))[0]
    poses = twin.pose_vector(twin.forward_kinematics(ROBOT, q, T_flange_tool))
    poses[:, :3] *= 1000.0
    header = "Time,X Pos,Y Pos,Z Pos,q1,q2,q3,q4\n"
    rows = [",".join(map(repr, row)) for row in np.column_stack([t, poses]).tolist()]
    (tmp_path / "path.csv").write_text(header + "\n".join(rows))
    log = scenario.run(
        scenario.Config(
            csv=str(tmp_path / "path.csv"), length_unit="mm", tool="0.12",
            columns="t=Time,x=X Pos,y=Y Pos,z=Z Pos,a=q1,b=q2,c=q3,d=q4",
        )
    )  # fmt: skip
    poses[:, :3] /= 1000.0
    np.testing.assert_allclose(log.pose_ref[::50], poses, rtol=0, atol=1e-12)
    np.testing.assert_allclose(log.q_ref[-1], q[-1], rtol=0, atol=1e-11)
    assert all(metric.passes for metric in scenario.metrics(log))


def test_the_tour_stops_where_the_flange_was_printed_with_any_tool(scenario):
    log = scenario.run(scenario.Config(tool="0.02,-0.03,0.12,0.9,0.1,0.3,0.3"))
    metrics = scenario.metrics(log)
    assert all(metric.passes for metric in metrics)
    assert [m.name for m in metrics][:2] == ["flange at test_3 - printed", "flange at test_1 - printed"]
    assert metrics[0].limit is not None
    stops = np.flatnonzero(np.abs(log.qd_ref).max(axis=1) < 1e-4)
    tips = log.pose_ref[stops[0] : stops[-1], :3]
    assert np.linalg.norm(tips[0] - twin.forward_kinematics(ROBOT, ROBOT.poses["test_3"])[:3, 3]) > 0.1


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        (
            {"csv_kind": "flange"},
            UnknownNameError,
            "unknown kind of recording 'flange': known are tool, joints",
        ),
        ({"columns": "Zeit"}, ValueError, "expected columns as 't=Time, x=X Pos'"),
        ({"length_unit": "inch"}, ValueError, "expected a unit of length, m or mm, got 'inch'"),
    ],
)
def test_settings_of_pose_path_that_are_none(scenario, settings, error, told):
    with pytest.raises(error, match=told):
        scenario.Config(**settings)
