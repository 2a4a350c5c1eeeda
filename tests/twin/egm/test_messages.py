"""Encoding and decoding of both messages: units, numbers of joints, required fields."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tests.support.egm_messages import Q, doubles, key, part, pose, robot_message, same
from twin.egm.wire import schema
from twin.egm.wire.encoding import decode_robot, decode_sensor, encode_robot, encode_sensor
from twin.egm.wire.messages import MotionState, RobotMessage, SensorMessage
from twin.egm.wire.values import quaternion_from_rows, rows_from_quaternion
from twin.errors import EgmError
from twin.rotations.rotations import quaternion_from_matrix

floats = st.floats(-1e3, 1e3)
small = st.integers(0, 2**32 - 1)
turns = st.tuples(*[st.floats(-3.0, 3.0)] * 3)
poses = st.builds(pose, floats, floats, floats, turns)


def vectors(n):
    return st.lists(floats, min_size=n, max_size=n).map(np.array)


@st.composite
def robot_messages(draw):
    n = draw(st.integers(1, 9))
    return RobotMessage(
        seqno=draw(small), tm=draw(small), q=draw(vectors(n)), q_planned=draw(vectors(n)), T=draw(poses),
        T_planned=draw(poses), time=1e-6 * draw(st.integers(0, 2**40)), motors_on=draw(st.booleans()),
        state=draw(st.sampled_from(MotionState)), program_runs=draw(st.booleans()),
        converged=draw(st.booleans()), utilization=draw(st.none() | floats),
        tau=draw(st.none() | vectors(n)), wrench=draw(st.none() | vectors(6)),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(robot_messages(), st.booleans())
def test_robot_message_round_trip(message, euler):
    data = encode_robot(message, euler=euler)
    assert len(data) <= 1024
    back = decode_robot(data)
    for name in vars(message):
        tolerance = 1e-12 if name in ("q", "q_planned", "T", "T_planned", "time") else 0.0
        assert same(getattr(back, name), getattr(message, name), tolerance), name


@st.composite
def answers(draw):
    n = draw(st.integers(1, 9))
    return SensorMessage(
        draw(st.none() | small), draw(st.none() | small), q=draw(st.none() | vectors(n)), qd=draw(vectors(n)),
        T=draw(st.none() | poses), twist=draw(vectors(6)),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(answers(), st.booleans())
def test_sensor_message_round_trip(message, euler):
    data = encode_sensor(message, euler=euler)
    parts = {"joint": ("q", "qd"), "pose": ("T", "twist")}
    for mode, names in parts.items():
        back = decode_sensor(data, len(message.qd), mode)
        expected = {name: getattr(message, name) for name in ("seqno", "tm", *names)}
        for name in vars(message):
            assert same(getattr(back, name), expected.get(name, 0.0 if name == "age" else None), 1e-12), name


@settings(max_examples=20, deadline=None)
@given(vectors(3), small, st.none() | small)
def test_path_correction_round_trip(p, age, seqno):
    message = SensorMessage(seqno, path_correction=p, age=age / 1000.0)
    back = decode_sensor(encode_sensor(message), 6, "path")
    assert same(back.path_correction, p, 1e-15)
    assert (back.age, back.seqno, back.q, back.T) == (age / 1000.0, seqno, None, None)


HEADER = key(1, 0) + b"\x07" + key(3, 0) + b"\x03"  # seqno 7, a correction


def test_bytes_match_the_protobuf_wire_format():
    """The expected bytes follow the protobuf wire format: key, length, content; in deg and mm."""
    degrees = (90.0, -45.0, 22.5, 0.0, 180.0, -135.0)  # exactly representable in radians
    joints = part(1, HEADER) + part(2, part(1, doubles(*degrees)))
    speeds = part(1, HEADER) + part(3, part(2, doubles(10.0, -20.0, 30.0, 90.0, 0.0, -180.0)))
    correction = part(1, doubles(0.0, 5.0, -2.0, numbers=(1, 2, 3))) + key(2, 0) + b"\x14"
    correction = part(1, key(1, 0) + b"\x07" + key(3, 0) + b"\x04") + part(2, correction)
    joint_speeds = part(1, HEADER) + part(3, part(1, doubles(*degrees)))
    for message, by_hand in (
        (SensorMessage(7, q=np.radians(degrees)), joints),
        (SensorMessage(7, qd=np.radians(degrees)), joint_speeds),
        (SensorMessage(7, twist=np.array([0.01, -0.02, 0.03, np.pi / 2, 0.0, -np.pi])), speeds),
        (SensorMessage(7, path_correction=np.array([0.0, 0.005, -0.002]), age=0.020), correction),
    ):
        assert encode_sensor(message) == by_hand
    assert decode_sensor(joints, 6, "joint").q == pytest.approx(np.radians(degrees), abs=1e-15)
    position_alone = part(3, part(2, doubles(10.0, -20.0, 30.0)))
    assert same(decode_sensor(position_alone, 6, "pose").twist, [0.01, -0.02, 0.03, 0, 0, 0])


@pytest.mark.parametrize("n", [2, 6, 7])
def test_joints_beyond_the_sixth_are_external(n):
    q = np.linspace(-1.0, 1.0, n)
    message = schema.Robot.FromString(encode_robot(robot_message(q, tau=q)))
    assert len(message.feedBack.joints.joints) == min(n, 6)
    assert len(message.feedBack.externalJoints.joints) == max(n - 6, 0)
    assert len(message.torqueRef.joints) == n
    assert message.feedBack.HasField("externalJoints") == (n > 6)
    assert decode_robot(encode_robot(robot_message(q)), n).q == pytest.approx(q, abs=1e-15)
    with pytest.raises(EgmError, match=f"expected measured joint angles of {n + 1} joints, got"):
        decode_robot(encode_robot(robot_message(q)), n + 1)


def test_additional_external_joints_are_ignored():
    track = encode_robot(robot_message(np.append(Q, 0.5)))
    assert decode_robot(track, 6).q == pytest.approx(Q, abs=1e-15)
    assert decode_robot(track).q == pytest.approx(np.append(Q, 0.5), abs=1e-15)


def test_numbers_and_times_wrap_at_2_to_the_32():
    back = decode_robot(encode_robot(robot_message(seqno=2**32 + 3, tm=2**33 + 4, time=0.9999999)))
    assert (back.seqno, back.tm, back.time) == (3, 4, 1.0)


@pytest.mark.parametrize(
    ("changes", "pattern"),
    [
        ({"T": None}, "clients require them"),
        ({"T_planned": None}, "clients require them"),
        ({"time": None}, "clients require them"),
        ({"q_planned": Q[:5]}, r"joint angles of shape \(6,\)"),
        ({"T": np.full((4, 4), np.nan)}, "a pose to be finite"),
        ({"tau": np.full(6, np.inf)}, "torques to be finite"),
    ],
)
def test_invalid_robot_message_is_not_encoded(changes, pattern):
    with pytest.raises(ValueError, match=pattern):
        encode_robot(robot_message(**changes))


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (lambda m: m.ClearField("header"), "with seqno and tm"),
        (lambda m: m.feedBack.ClearField("joints"), "expected measured joint angles of 1 to 6 joints"),
        (lambda m: m.planned.joints.joints.pop(), "expected planned joint angles of 6 joints, got 5"),
        (lambda m: m.feedBack.joints.joints.append(0.0), "expected measured joint angles .* got 7 joints"),
        (lambda m: m.torqueRef.joints.extend([1.0] * 5), "expected torques of 6 values, got 5"),
        (lambda m: setattr(m, "utilizationRate", np.nan), "expected utilizationRate to be finite"),
        (lambda m: setattr(m.feedBack.cartesian.pos, "x", np.inf), "expected a position to be finite"),
    ],
)
def test_malformed_robot_message_raises_egm_error(change, pattern):
    message = schema.Robot.FromString(encode_robot(robot_message()))
    change(message)
    with pytest.raises(EgmError, match=pattern):
        decode_robot(message.SerializePartialToString())


def test_missing_or_unknown_states_are_undefined():
    message = schema.Robot.FromString(encode_robot(robot_message()))
    for name in ("motorState", "mciState", "rapidExecState", "mciConvergenceMet"):
        message.ClearField(name)
    message.feedBack.ClearField("cartesian")
    back = decode_robot(message.SerializeToString() + part(5, key(1, 0) + b"\x09"))
    states = back.motors_on, back.state, back.program_runs, back.converged, back.T
    assert states == (False, MotionState.UNDEFINED, False, False, None)


HALF = np.pi
TURNS = [
    *Rotation.random(200, random_state=1).as_rotvec(),
    *(angle * np.eye(3)[axis] for axis in range(3) for angle in (0.0, HALF / 2, HALF, -HALF, 1e-9)),
    *(HALF * np.array(axis) / np.linalg.norm(axis) for axis in ([1, -1, 0], [-1, 0, 2], [0, 1, -3])),
    *Rotation.from_euler(
        "ZYX", [(z, y, x) for z in (0.3, -2) for y in (1.5707, -HALF / 2) for x in (0, 1.1)]
    ).as_rotvec(),
]


def test_scalar_conversions_equal_array_conversions():
    for R in Rotation.from_rotvec(TURNS).as_matrix():
        quaternion = np.array(quaternion_from_rows(R.tolist()))
        expected = quaternion_from_matrix(R)
        if abs(expected[0]) < 1e-12:  # a half turn has two quaternions
            expected = expected * np.sign(expected @ quaternion)
        assert quaternion == pytest.approx(expected, abs=5e-16)
        assert quaternion[0] >= 0.0
        assert np.array(rows_from_quaternion(*quaternion)) == pytest.approx(R, abs=1e-15)
