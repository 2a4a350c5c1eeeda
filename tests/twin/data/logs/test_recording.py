"""Recordings of tools and joints: formats, one sentence for each fault, and motions through them."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

import twin
from scenarios.pose_path import PosePath
from tests.support.random_trees import interpreted
from tests.support.tasks import executed
from twin.base.errors import LimitError, RecordingError, UnknownNameError
from twin.data.logs.recordings.columns import split_unit
from twin.data.logs.recordings.motions import through_joint_recording
from twin.data.logs.recordings.recording import TOOL_COLUMNS, ToolRecording

HEADER = "t,x,y,z,a,b,c,d"
ROWS = ["0,0.5,0,0.7,1,0,0,0", "0.1,0.51,0,0.7,1,0,0,0", "0.2,0.52,0,0.7,0.5,0.5,0.5,0.5"]


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def with_value(line, column, value):
    """The three good rows, one value replaced; `line` counts from 1, the header's."""
    rows = [row.split(",") for row in ROWS]
    rows[line - 2][TOOL_COLUMNS.index(column)] = value
    return "\n".join([HEADER, *(",".join(row) for row in rows)])


def test_order_of_columns_other_columns_blanks_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path):
    t, poses = twin.read_recording(write(tmp_path / "path.csv", HEADER, *ROWS))
    np.testing.assert_array_equal(t, [0.0, 0.1, 0.2])
    np.testing.assert_array_equal(poses[2], [0.52, 0.0, 0.7, 0.5, 0.5, 0.5, 0.5])
    rows = [" 0,start,0,0,1,0.7,0,0.5,0 ", "", "0,,0,0,-1,0.7,0,0.51,0.1", " , ", "", ""]
    other = "\r\n".join(["\ufeffd, note ,c,b,a,z,y,x,t", *rows])
    (tmp_path / "path.csv").write_bytes(other.encode())
    t_other, poses_other = twin.read_recording(tmp_path / "path.csv")
    np.testing.assert_array_equal(t_other, t[:2])
    np.testing.assert_array_equal(poses_other, poses[:2])


def test_written_is_read_bit_for_bit(tmp_path):
    rng = np.random.default_rng(5)
    t = 1.7e9 + np.cumsum(rng.uniform(0.01, 0.02, 50))
    quats = np.array([1.0, 0, 0, 0]) + 0.1 * np.cumsum(rng.normal(size=(50, 4)), axis=0)
    quats /= np.linalg.norm(quats, axis=1)[:, None]
    recorded = twin.logs.tool_recording(t, np.column_stack([rng.normal(size=(50, 3)), quats]))
    twin.write_recording(tmp_path / "path.csv", recorded)
    assert (tmp_path / "path.csv").read_text().startswith(HEADER + "\n")
    again = twin.read_recording(tmp_path / "path.csv")
    np.testing.assert_array_equal(again.t, t)
    np.testing.assert_allclose(again.poses, recorded.poses, rtol=0, atol=3e-16)  # normalised once more


def test_quaternions_are_made_unit_and_continuous_in_sign(tmp_path):
    rows = ["0,0,0,0,0.707,0,0.707,0", "1,0,0,0,-0.707,0,-0.707,0", "2,0,0,0,-0.866,0,-0.5,0"]
    poses = twin.read_recording(write(tmp_path / "path.csv", HEADER, *rows)).poses
    np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(poses[1, 3:], [np.sqrt(0.5), 0, np.sqrt(0.5), 0], rtol=0, atol=1e-15)
    assert poses[2, 3] > 0.8


def test_files_that_cannot_be_read_or_written(tmp_path):
    (tmp_path / "latin.csv").write_bytes("t,x,y,z,a,b,c,d,höhe\n".encode("latin-1"))
    for path, told in (
        (tmp_path / "none.csv", r"none\.csv: cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "latin.csv", "not text in UTF-8"),
        ("/dev/zero", r"/dev/zero: cannot be read: it is larger than 1e\+08 bytes"),
    ):
        with pytest.raises(RecordingError, match=told):
            twin.read_recording(path)
    with pytest.raises(RecordingError, match="cannot be written"):
        twin.write_recording(tmp_path / "no" / "path.csv", RECORDED)


def test_arrays_are_checked_by_sample():
    poses = np.tile([0.5, 0, 0.7, 1, 0, 0, 0], (3, 1))
    with pytest.raises(RecordingError, match="the recording, sample 2, column 't': time runs backwards"):
        twin.logs.tool_recording([0.0, 1.0, 0.5], poses)
    with pytest.raises(ValueError, match=r"poses of shape \(N, 7\), got \(2,\) and \(3, 7\)"):
        twin.logs.tool_recording([0.0, 1.0], poses)


def test_a_field_without_end_is_one_sentence(tmp_path):
    for value in ("1" * 200_000, "1" * 1000, '"' + "1\n" * 100_000):
        with pytest.raises(RecordingError) as error:
            twin.read_recording(write(tmp_path / "path.csv", with_value(3, "y", value)))
        assert len(str(error.value)) < 300
        assert "\n" not in str(error.value)


numbers = st.one_of(
    st.floats(width=64).map(repr),
    st.integers(-3, 3).map(str),
    st.sampled_from(["", " ", "1e400", "nan", "0.1.2", '"', "1;2", "\0", "x\ry", "²"]),
)

rows = st.lists(st.lists(numbers, min_size=7, max_size=9).map(",".join), max_size=5)
texts = st.builds(
    lambda end, rows: end.join([HEADER, *rows]).encode(), st.sampled_from(["\n", "\r\n", "\r"]), rows
)


poses = arrays(np.float64, 7, elements=st.floats(-1, 1)).filter(lambda p: np.linalg.norm(p[3:]) > 1e-3)


def plausible(recorded):
    """Return a file with these poses, their quaternions normalized."""
    unit = [[*pose[:3], *(pose[3:] / np.linalg.norm(pose[3:]))] for pose in recorded]
    rows = [",".join(repr(float(value)) for value in (0.1 * k, *pose)) for k, pose in enumerate(unit)]
    return "\n".join([HEADER, *rows]).encode()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | texts | st.lists(poses, min_size=2, max_size=4).map(plausible))
def test_any_file_is_read_right_or_refused_in_one_sentence_that_names_it(tmp_path, data):
    path = tmp_path / "path.csv"
    path.write_bytes(data)
    try:
        t, poses = twin.read_recording(path)
    except RecordingError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert len(t) >= 2
    assert poses.shape == (len(t), 7)
    assert np.all(np.diff(t) > 0)
    assert np.all(np.isfinite(poses))
    np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0, rtol=1e-14)
    assert np.all(np.sum(poses[1:, 3:] * poses[:-1, 3:], axis=1) > 0)


ROBOT = twin.load("irb140")
Q = np.array(
    [[0.1, 0.2, 0.1, 0.3, 0.5, -0.2], [0.2, 0.25, 0.15, 0.2, 0.55, -0.1], [0.4, 0.3, 0.2, 0.1, 0.6, 0.1]]
)
T = np.array([0.0, 0.6, 1.3])
POSES = twin.pose_vector(twin.forward_kinematics(ROBOT, Q))


@pytest.fixture
def saved(tmp_path):
    """Function that writes a file of numbers with all their digits."""

    def write(header, *columns, separator=",", decimal=".", encoding="utf-8"):
        path, rows = tmp_path / f"{len(list(tmp_path.iterdir()))}.csv", np.column_stack(columns).tolist()
        lines = [separator.join(repr(value).replace(".", decimal) for value in row) for row in rows]
        text = "\n".join([header.replace(",", separator), *lines])
        path.write_text(text + "\n", encoding=encoding)
        return path

    return write


@pytest.fixture
def plain(saved):
    return saved(HEADER, T, POSES)


def test_separators_decimal_commas_and_encodings_give_the_same_bits(saved, plain):
    there = twin.read_recording(plain)
    for separator, decimal, encoding in ((";", ",", "utf-16"), ("\t", ",", "utf-8"), (";", ".", "utf-8-sig")):
        form = {"separator": separator, "decimal": decimal}
        here = twin.read_recording(saved(HEADER, T, POSES, encoding=encoding, **form))
        assert here.t.tobytes() == there.t.tobytes()
        assert here.poses.tobytes() == there.poses.tobytes()
        noted = saved(HEADER + ",note", T, POSES, T, **form)
        noted.write_text(noted.read_text().replace("note", f'"note{separator} or so"'))
        np.testing.assert_array_equal(twin.read_recording(noted).poses, there.poses)


def test_a_unit_stands_behind_the_name():
    for label, quantity, expected in (
        ("x_mm", "length", ("x", "mm")),
        ("X Pos ( mm )", "length", ("X Pos", "mm")),
        ("x_inch", "length", ("x_inch", None)),
        ("q1 [°]", "angle", ("q1", "°")),
        ("x_deg", "length", ("x_deg", None)),
        ("_mm", "length", ("_mm", None)),
    ):
        assert split_unit(label, quantity) == expected


def test_millimetres_and_degrees_are_metres_and_radians_to_round_off(saved):
    angles = Rotation.from_quat(POSES[:, [4, 5, 6, 3]]).as_euler("ZYX", degrees=True)[:, ::-1]
    header = "t_ms,x[mm],y (mm),z_mm,rx[deg],ry_deg,rz [°]"
    path = saved(header, 1e3 * T, 1e3 * POSES[:, :3], angles, separator=";", decimal=",")
    read = twin.read_recording(path)
    np.testing.assert_array_equal(read.t, T)
    np.testing.assert_allclose(read.poses, POSES, rtol=0, atol=1e-15)
    motion = twin.logs.recorded_motion(ROBOT, read, near=Q[0])
    np.testing.assert_allclose(motion(1.3)[0], Q[-1], rtol=0, atol=1e-12)


def test_given_units_apply_to_columns_without_units(saved):
    tool = saved("t,x,y,z[m],a,b,c,d", 1e3 * T, 1e3 * POSES[:, :2], POSES[:, 2:])
    read = twin.read_recording(tool, length_unit="mm", time_unit="ms")
    np.testing.assert_array_equal(read.t, T)
    np.testing.assert_allclose(read.poses, POSES, rtol=0, atol=2e-16)
    joints = saved("t,q1,q2[rad]", T, np.rad2deg(Q[:, 0]), Q[:, 1])
    read = twin.read_recording(joints, angle_unit="deg")
    np.testing.assert_allclose(read.q, Q[:, :2], rtol=4e-16, atol=0)


def test_columns_of_other_names(saved, plain):
    """Among them ABB's names of a quaternion, which are joints' otherwise."""
    for columns in (
        {"t": "Time", "x": "X Pos", "y": "Y Pos [mm]", "a": "q1", "b": "q2", "c": "q3", "d": "q4"},
        "t=Time, x=X Pos , y=Y Pos [mm],a=q1,b=q2,c=q3,d=q4",
    ):
        header = "Time,X Pos [mm],Y Pos [mm],z (mm),q1,q2,q3,q4,i,j,k,l,m,n,o"
        read = twin.read_recording(saved(header, T, 1e3 * POSES[:, :3], POSES[:, 3:], POSES), columns=columns)
        assert isinstance(read, ToolRecording)
        np.testing.assert_allclose(read.poses, twin.read_recording(plain).poses, rtol=0, atol=3e-16)


def test_header_determines_the_kind_of_recording(saved):
    both = saved(HEADER + ",q1,q2,q3,q4,q5,q6", T, POSES, Q)
    with pytest.raises(RecordingError, match=r"the header contains the tool's pose and .* tool or"):
        twin.read_recording(both, ROBOT)
    np.testing.assert_array_equal(twin.read_recording(both, ROBOT, kind="joints").q, Q)
    np.testing.assert_allclose(twin.read_recording(both, kind="tool").poses, POSES, rtol=0, atol=3e-16)


def test_euler_angles_turn_about_z_first_unless_there_is_a_quaternion(saved, plain):
    beside = saved(HEADER + ",rx,ry,rz", T, POSES, np.full((3, 3), 77.0))
    np.testing.assert_array_equal(twin.read_recording(beside).poses, twin.read_recording(plain).poses)
    path = saved("t,x,y,z,rx,ry,rz", [[k, 0, 0, 0, 0.3, -0.4, 1.1] for k in (0.0, 1.0)])
    turns = (("z", 1.1), ("y", -0.4), ("x", 0.3))
    z, y, x = (Rotation.from_euler(axis, angle).as_matrix() for axis, angle in turns)
    R = twin.rotations.matrix_from_quaternion(twin.read_recording(path).poses[:, 3:])
    np.testing.assert_allclose(R, [z @ y @ x] * 2, rtol=0, atol=4e-16)


TOOL_IN_MM = "t,x_mm,y,z,a,b,c,d\n0,1e5,0,0,1,0,0,0\n1,0,0,0,1,0,0,0\n"
BY_EULER_ANGLES = "t,x,y,z,rx,ry,rz\n0,0,0,0,0,90,0\n1,0,0,0,0,0,0\n"
SIX = {"robot": ROBOT}
FAULTS = [
    ("", {}, f"line 1: no column 't', 'x', 'y', 'z', 'a', 'b', 'c', 'd'; expected the header {HEADER}, got"),
    (HEADER.replace("z,", ""), {}, "(if it has another name, give it in columns: 'z=NAME')"),
    (HEADER.replace(",", "|"), {}, "got 't|x|y|z|a|b|c|d'"),
    (HEADER, {}, ": expected at least 2 samples, got 0"),
    (f"{HEADER}\n{ROWS[0]}\n0.3,1", {}, "line 3: expected 8 values, as many as the header, got 2"),
    (with_value(3, "y", "nan"), {}, "line 3, column 'y': expected a finite number, got nan"),
    (f"{HEADER}\n\n{ROWS[0]}\n\n0.1,0,0,inf,1,0,0,0", {}, "line 5, column 'z': expected a finite number"),
    (with_value(4, "z", "high"), {}, "line 4, column 'z': expected a number, got 'high'"),
    (with_value(4, "z", "١"), {}, "line 4, column 'z': expected a number, got '١'"),
    (with_value(4, "t", "0.05"), {}, "line 4, column 't': time runs backwards, 0.05 s after 0.1 s; expected"),
    (with_value(4, "t", "0.1000001"), {}, "time hardly moves, 0.1000001 s after 0.1 s; expected steps of"),
    (with_value(4, "t", "10.2"), {}, "a step of 10.1 s, the shortest is 0.1 s; expected steps within a "),
    (with_value(4, "t", "1e12"), {}, "1e+12 s is too large for a time; expected seconds, at most 1e+10: are"),
    (with_value(3, "x", "-515"), {}, "line 3, column 'x': -515 m is beyond any arm; expected metres, a"),
    (with_value(3, "a", "0.99"), {}, "columns a,b,c,d: expected a unit quaternion (norm 1 within 0.001"),
    (f"{HEADER}\n0,0,0,0,1,0,0,0\n1,0,0,0,0,0,1,0", {}, "line 3, columns a,b,c,d: the tool turns by 180 deg"),
    ("t;x,y\n", {}, "line 1: the header contains comma and semicolon, either of which could separate"),
    ("t;q1\n0;1,5\n1;1.5\n", {}, "line 3, column 'q1': '1.5' has a decimal point, line 2, column 'q1' a"),
    ("t;q1\n0;1.234,5\n", {}, "line 2, column 'q1': expected a number, got '1.234,5'"),
    ("t,q1\n0,0,1,5\n", {}, "line 2: expected 2 values, as many as the header, got 4 (numbers with a"),
    ('t,q1\n0,"1,5"\n', {}, "line 2, column 'q1': expected a number, got '1,5'"),
    ("t,q1[turns]\n", {}, "column 'q1[turns]': expected a unit of angle, rad or deg or °, got 'turns'"),
    ("t,q1,q1_deg\n", {}, "line 1: more than one column 'q1'"),
    ("t,A\n", {"columns": "q1=B"}, "line 1: no column 'q1' (named 'B'); expected the header t,q1"),
    ("t,q1,q2\n", {"columns": "q2=q1,q1=q1"}, "line 1: two of the expected columns are mapped to 'q1'"),
    (TOOL_IN_MM, {}, "line 2, column 'x_mm': 100 m is beyond any arm; expected at most 10 m"),
    (BY_EULER_ANGLES, {}, "column 'ry': 90 rad is beyond any joint; expected radians, at most 25.13: "),
    ("t,x,y,z,q1,q2,q3,q4\n", {}, "line 1: q1 to q4 beside x, y, z could be a quaternion in ABB's notation"),
    ("t,x,y,z,q1,q2,q3,q4\n", SIX, "line 1: no column 'a', 'b', 'c', 'd'; expected"),
    ("t,q1,q2,q3,q4,q5,joint_6\n", SIX, "line 1: no column 'q6'; expected the header t,q1,q2,q3,q4,q5,q6"),
]


def test_every_fault_of_a_format_is_named(tmp_path):
    path = tmp_path / "path.csv"
    for text, options, told in FAULTS:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(RecordingError, match=re.escape(told)) as error:
            twin.read_recording(path, **options)
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)


def test_wrong_settings(plain):
    for options, told in (
        ({"columns": "t"}, "expected columns as 't=Time, x=X Pos', each once: got 't'"),
        ({"columns": {"w": "A"}}, "the keys of columns to be among t, x, y, z, a, .* q2 and so on, got 'w'"),
        ({"length_unit": "inch"}, "expected a unit of length, m or mm, got 'inch'"),
        ({"kind": "flange"}, "a kind of recording, tool or joints, got 'flange'"),
    ):
        with pytest.raises(ValueError, match=told):
            twin.read_recording(plain, **options)


RNG = np.random.default_rng(13)
TIMES = 100.0 + np.cumsum(RNG.uniform(0.2, 0.5, 9))
ANGLES = 0.3 + 0.1 * np.cumsum(RNG.normal(size=(9, 6)), axis=0)
RECORDED = twin.logs.joint_recording(TIMES, ANGLES, ROBOT)


def same(found, wanted, within=1e-15):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=within)


def test_written_joints_are_read_bit_for_bit(tmp_path):
    twin.write_recording(tmp_path / "path.csv", RECORDED)
    assert (tmp_path / "path.csv").read_text().startswith("t,q1,q2,q3,q4,q5,q6\n")
    for robot in (None, ROBOT):
        read = twin.read_recording(tmp_path / "path.csv", robot)
        np.testing.assert_array_equal(read.t, TIMES)
        np.testing.assert_array_equal(read.q, ANGLES)


def test_samples_are_met_and_it_is_at_rest_at_both_ends_and_held_outside():
    motion = twin.logs.recorded_motion(ROBOT, RECORDED)
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


@pytest.mark.parametrize("samples", [2, 9])
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


def with_angle(k, joint, value):
    q = np.array(ANGLES)
    q[k, joint] = value
    return q


TURNED = with_angle(3, 5, ANGLES[2, 5] + 2.2)


def test_faults_of_arrays_are_named():
    for q, robot, told in (
        (TURNED, None, "3, column 'q6': the joint turns by 126.1 deg from the"),
        (with_angle(3, 1, 45.0), None, "3, column 'q2': 45 rad is beyond any joint; expected radians, at"),
        (with_angle(3, 0, 7.0), ROBOT, "3, column 'q1': 7 rad is beyond any joint; expected radians, at"),
        (with_angle(8, 2, np.nan), ROBOT, "8, column 'q3': expected a finite number, got nan"),
    ):
        with pytest.raises(RecordingError, match=f"^the recording, sample {told}"):
            twin.logs.joint_recording(TIMES, q, robot)
    for wrong in (ANGLES[:, :5], ANGLES[:5], 1.0):
        with pytest.raises(ValueError, match=r"q of shape \(N, 6\), got \(9,\) and"):
            twin.logs.joint_recording(TIMES, wrong, ROBOT)


def test_a_motion_beyond_a_range_or_a_speed_is_refused():
    beyond = with_angle(8, 1, 2.0)
    for t, q, error, told in (
        (2 * TIMES, beyond, LimitError, r"joint_2 would be at .* at t = \d.* its range is"),
        (0.02 * TIMES, ANGLES, LimitError, r"joint_\d would move at .* its limit is"),
        (TIMES, ANGLES[:, :5], RecordingError, "the recording has 5 joints, robot 'irb140' has 6"),
    ):
        with pytest.raises(error, match=told):
            twin.logs.recorded_motion(ROBOT, twin.logs.joint_recording(t, q))


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
    path = tmp_path / "path.csv"
    q = twin.quintic(ANGLES[0], ANGLES[0] + 0.1, 0.5)(t := np.linspace(0, 0.5, 11))[0]
    poses = twin.pose_vector(twin.forward_kinematics(ROBOT, q, twin.pose_matrix([0, 0, 0.12, 1, 0, 0, 0])))
    joints = np.column_stack([t, np.rad2deg(q)])
    np.savetxt(path, joints, "%.17g", ";", header="Zeit;q1;q2;q3;q4;q5;q6", comments="", encoding="utf-16")
    options = {"csv": str(path), "tool": "0,0,0.12", "payload": "2,0,0,0.06"}
    log = executed("pose_path", columns="t=Zeit", angle_unit="deg", **options).log
    same(log.q_ref[[0, -1]], q[[0, -1]], 1e-14)
    assert log.robot.payload.mass == 2.0
    tool, names = np.column_stack([t, 1000.0 * poses[:, :3], poses[:, 3:]]), "Time,x,y,z,q1,q2,q3,q4"
    np.savetxt(path, tool, "%.17g", ",", header=names, comments="")
    columns = "t=Time,a=q1,b=q2,c=q3,d=q4"
    run = executed("pose_path", columns=columns, length_unit="mm", **options)
    log = run.log
    same(log.pose_ref[::50], poses, 1e-12)
    same(log.q_ref[-1], q[-1], 1e-11)
    assert run.passes


def test_the_tour_stops_where_the_flange_was_printed_with_any_tool():
    run = executed("pose_path", tool="0.02,-0.03,0.12,0.9,0.1,0.3,0.3")
    log = run.log
    assert run.passes
    assert (run.metrics[0].name, run.metrics[0].limit is None) == ("flange at test_3 - printed", False)
    stops = np.flatnonzero(np.abs(log.qd_ref).max(axis=1) < 1e-4)
    tips = log.pose_ref[stops[0] : stops[-1], :3]
    assert np.linalg.norm(tips[0] - twin.forward_kinematics(ROBOT, ROBOT.poses["test_3"])[:3, 3]) > 0.1
    with pytest.raises(UnknownNameError, match="unknown kind of recording 'flange': known are tool, joints"):
        PosePath(csv_kind="flange")
    with pytest.raises(ValueError, match="expected a unit of length, m or mm, got 'inch'"):
        PosePath(length_unit="inch")
