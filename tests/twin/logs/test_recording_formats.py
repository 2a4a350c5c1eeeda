"""Recordings as other programs write them: separators, decimal commas, units, names, Euler angles."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from twin.errors import RecordingError
from twin.logs.recordings.columns import split_unit
from twin.logs.recordings.recording import JointRecording, ToolRecording

ROBOT = twin.load("irb140")
Q = np.array(
    [[0.1, 0.2, 0.1, 0.3, 0.5, -0.2], [0.2, 0.25, 0.15, 0.2, 0.55, -0.1], [0.4, 0.3, 0.2, 0.1, 0.6, 0.1]]
)
T = np.array([0.0, 0.6, 1.3])
POSES = twin.pose_vector(twin.forward_kinematics(ROBOT, Q))
HEADER = "t,x,y,z,a,b,c,d"


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


@pytest.mark.parametrize(
    ("separator", "decimal", "encoding"),
    [(";", ",", "utf-16"), ("\t", ",", "utf-8"), (";", ".", "utf-8-sig"), ("\t", ".", "utf-16")],
)
def test_separators_decimal_commas_and_encodings_give_the_same_bits(
    saved, plain, separator, decimal, encoding
):
    path = saved(HEADER, T, POSES, separator=separator, decimal=decimal, encoding=encoding)
    there, here = twin.read_recording(plain), twin.read_recording(path)
    assert here.t.tobytes() == there.t.tobytes()
    assert here.poses.tobytes() == there.poses.tobytes()


@pytest.mark.parametrize(
    ("label", "quantity", "expected"),
    [
        ("x_mm", "length", ("x", "mm")),
        ("X Pos ( mm )", "length", ("X Pos", "mm")),
        ("x [inch]", "length", ("x", "inch")),
        ("x_inch", "length", ("x_inch", None)),
        ("joint_1", "angle", ("joint_1", None)),
        ("joint_1_rad", "angle", ("joint_1", "rad")),
        ("q1 [°]", "angle", ("q1", "°")),
        ("x_deg", "length", ("x_deg", None)),
        ("t_ms", "time", ("t", "ms")),
        ("_mm", "length", ("_mm", None)),
        ("q_s", "number", ("q_s", None)),
    ],
)
def test_a_unit_stands_behind_the_name(label, quantity, expected):
    assert split_unit(label, quantity) == expected


def test_millimetres_and_degrees_are_metres_and_radians_to_round_off(saved):
    angles = Rotation.from_quat(POSES[:, [4, 5, 6, 3]]).as_euler("ZYX", degrees=True)[:, ::-1]
    header = "t_ms,x[mm],y (mm),z_mm,rx[deg],ry_deg,rz [°]"
    path = saved(header, 1e3 * T, 1e3 * POSES[:, :3], angles, separator=";", decimal=",")
    read = twin.read_recording(path)
    np.testing.assert_array_equal(read.t, T)
    np.testing.assert_allclose(read.poses, POSES, rtol=0, atol=1e-15)
    motion = twin.trajectories.recorded_motion(ROBOT, read, near=Q[0])
    np.testing.assert_allclose(motion(1.3)[0], Q[-1], rtol=0, atol=1e-12)


def test_degrees_of_joints_are_radians_to_round_off(saved):
    radians = saved("t,q1,q2,q3,q4,q5,q6", T, Q)
    names = ",".join(f"{name}_deg" for name in ROBOT.joint_names)
    degrees = saved(f"t[ms],{names}", 1e3 * T, np.rad2deg(Q))
    one, other = (twin.read_recording(path, ROBOT) for path in (radians, degrees))
    assert isinstance(one, JointRecording)
    np.testing.assert_array_equal(other.t, one.t)
    np.testing.assert_allclose(other.q, one.q, rtol=4e-16, atol=0)


def test_given_units_apply_to_columns_without_units(saved):
    """Millimetres are the doubles that metres would be."""
    tool = saved("t,x,y,z[m],a,b,c,d", 1e3 * T, 1e3 * POSES[:, :2], POSES[:, 2:])
    read = twin.read_recording(tool, length_unit="mm", time_unit="ms")
    np.testing.assert_array_equal(read.t, T)
    np.testing.assert_allclose(read.poses, POSES, rtol=0, atol=2e-16)
    joints = saved("t,q1,q2[rad]", T, np.rad2deg(Q[:, 0]), Q[:, 1])
    read = twin.read_recording(joints, angle_unit="deg")
    np.testing.assert_allclose(read.q, Q[:, :2], rtol=4e-16, atol=0)
    still = [[0, 515, 1, -712, 1, 0, 0, 0], [1, 515, 1, -712, 1, 0, 0, 0]]
    read = twin.read_recording(saved(HEADER, still), length_unit="mm")
    np.testing.assert_array_equal(read.poses[:, :3], [[0.515, 0.001, -0.712]] * 2)


@pytest.mark.parametrize(
    "columns",
    [
        {"t": "Time", "x": "X Pos", "y": "Y Pos [mm]", "a": "q1", "b": "q2", "c": "q3", "d": "q4"},
        "t=Time, x=X Pos , y=Y Pos [mm],a=q1,b=q2,c=q3,d=q4",
    ],
)
def test_columns_of_other_names(saved, plain, columns):
    """Among them ABB's names of a quaternion, which are joints' otherwise."""
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


def test_a_name_with_a_separator_in_it_is_put_in_quotes(saved, plain):
    path = saved(HEADER + ",note", T, POSES, T, separator=";")
    path.write_text(path.read_text().replace("note", '"note, or so"'))
    np.testing.assert_array_equal(twin.read_recording(path).poses, twin.read_recording(plain).poses)


TOOL_IN_MM = "t,x_mm,y,z,a,b,c,d\n0,1e5,0,0,1,0,0,0\n1,0,0,0,1,0,0,0\n"
BY_EULER_ANGLES = "t,x,y,z,rx,ry,rz\n0,0,0,0,0,90,0\n1,0,0,0,0,0,0\n"
SIX = {"robot": ROBOT}
FAULTS = [
    ("t;x,y\n", {}, "line 1: the header contains comma and semicolon, either of which could separate"),
    ("t,x\ty\n", {}, "line 1: the header contains comma and tab, either of which"),
    ("t;q1\n0;1,5\n1;1.5\n", {}, "line 3, column 'q1': '1.5' has a decimal point, line 2, column 'q1' a"),
    ("t;q1\n0;1.5\n1;1,5\n", {}, "'1,5' has a decimal comma, line 2, column 'q1' a decimal point; expected"),
    ("t;q1\n0;1.234,5\n", {}, "line 2, column 'q1': expected a number, got '1.234,5'"),
    ("t,q1\n0,0,1,5\n", {}, "line 2: expected 2 values, as many as the header, got 4 (numbers with a"),
    ('t,q1\n0,"1,5"\n', {}, "line 2, column 'q1': expected a number, got '1,5'"),
    ("t,q1[turns]\n", {}, "column 'q1[turns]': expected a unit of angle, rad or deg or °, got 'turns'"),
    ("t,q1[mm]\n", {}, "line 1, column 'q1[mm]': expected a unit of angle"),
    ("t[min],q1\n", {}, "line 1, column 't[min]': expected a unit of time, s or ms, got 'min'"),
    ("t,q1,q1_deg\n", {}, "line 1: more than one column 'q1'"),
    ("time,q1\n", {}, "line 1: no column 't'; expected the header t,q1, got 'time,q1'"),
    ("t,A\n", {"columns": "q1=B"}, "line 1: no column 'q1' (named 'B'); expected the header t,q1"),
    ("t,q1,q2\n", {"columns": "q2=q1"}, "line 1: no column 'q1'; expected the header t,q1,q2"),
    ("t,q1,q2\n", {"columns": "q2=q1,q1=q1"}, "line 1: two of the expected columns are mapped to 'q1'"),
    (TOOL_IN_MM, {}, "line 2, column 'x_mm': 100 m is beyond any arm; expected at most 10 m"),
    (BY_EULER_ANGLES, {}, "column 'ry': 90 rad is beyond any joint; expected radians, at most 25.13: "),
    ("t,x,y,z,q1,q2,q3,q4\n", {}, "line 1: q1 to q4 beside x, y, z could be a quaternion in ABB's notation"),
    ("t,x,y,z,q1,q2,q3,q4\n", SIX, "line 1: no column 'a', 'b', 'c', 'd'; expected"),
    ("t,q1,q2,q3,q4,q5,q6,q7\n", SIX, "expected 6 joints, as many as the robot has, got a column 'q7'"),
    ("t,q1,q2,q3,q4,q5,joint_6\n", SIX, "line 1: no column 'q6'; expected the header t,q1,q2,q3,q4,q5,q6"),
]


@pytest.mark.parametrize(("text", "settings", "told"), FAULTS)
def test_every_fault_of_a_format_is_named(tmp_path, text, settings, told):
    path = tmp_path / "path.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingError) as error:
        twin.read_recording(path, **settings)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"columns": "t"}, "expected columns as 't=Time, x=X Pos', each once: got 't'"),
        ({"columns": "t=A,t=B"}, "each once: 't' is named twice"),
        ({"columns": {"w": "A"}}, "the keys of columns to be among t, x, y, z, a, .* q2 and so on, got 'w'"),
        ({"length_unit": "inch"}, "expected a unit of length, m or mm, got 'inch'"),
        ({"time_unit": "mm"}, "expected a unit of time, s or ms, got 'mm'"),
        ({"kind": "flange"}, "a kind of recording, tool or joints, got 'flange'"),
    ],
)
def test_wrong_settings(plain, settings, told):
    with pytest.raises(ValueError, match=told):
        twin.read_recording(plain, **settings)
