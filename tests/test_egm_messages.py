"""Both messages in bytes and back: units, bounds, what clients insist on, which of the forms came."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from twin.egm.wire import schema
from twin.egm.wire.messages import MotionState, RobotMessage, SensorMessage
from twin.egm.wire.robot_message import decode_robot, encode_robot
from twin.egm.wire.sensor_message import decode_sensor, encode_sensor
from twin.egm.wire.sequence import Arrival, Sequence
from twin.errors import EgmError, EgmModeError

Q = np.array([0.1, -0.2, 0.3, -0.4, 0.5, -0.6])


def pose(x=0.5, y=-0.1, z=0.7, turn=(0.3, -0.2, 0.9)):
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    T[:3, 3] = x, y, z
    return T


def robot_message(q=Q, **changes):
    poses = {"T": pose(), "T_planned": pose(0.6)}
    known = {"seqno": 7, "tm": 28, "q": q, "q_planned": q + 0.01, "time": 1.25} | poses
    return RobotMessage(**(known | changes))


def same(a, b, tolerance=0.0):
    if a is None or b is None:
        return a is b
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=tolerance, atol=tolerance)


floats = st.floats(-1e3, 1e3)
small = st.integers(0, 2**32 - 1)
turns = st.tuples(*[st.floats(-3.0, 3.0)] * 3)
poses = st.builds(pose, floats, floats, floats, turns)


def vectors(n):
    return st.lists(floats, min_size=n, max_size=n).map(np.array)


def optional(strategy):
    return st.none() | strategy


robot_messages = st.integers(1, 9).flatmap(
    lambda n: st.builds(
        RobotMessage,
        seqno=small,
        tm=small,
        q=vectors(n),
        q_planned=vectors(n),
        T=poses,
        T_planned=poses,
        time=st.integers(0, 2**40).map(lambda micro: micro * 1e-6),
        motors_on=st.booleans(),
        state=st.sampled_from(MotionState),
        program_runs=st.booleans(),
        converged=st.booleans(),
        utilization=optional(floats),
        tau=optional(vectors(n)),
        wrench=optional(vectors(6)),
    )
)


@settings(max_examples=60, deadline=None)
@given(robot_messages, st.booleans())
def test_what_a_robot_tells_comes_back(message, euler):
    data = encode_robot(message, euler=euler)
    assert len(data) <= 1024
    back = decode_robot(data)
    for name in vars(message):
        tolerance = 1e-12 if name in ("q", "q_planned", "T", "T_planned", "time") else 0.0
        assert same(getattr(back, name), getattr(message, name), tolerance), name


answers = st.integers(1, 9).flatmap(
    lambda n: st.builds(
        SensorMessage,
        seqno=optional(small),
        tm=optional(small),
        q=optional(vectors(n)),
        qd=vectors(n),
        T=optional(poses),
        twist=vectors(6),
    )
)


@settings(max_examples=60, deadline=None)
@given(answers, st.booleans())
def test_what_it_is_answered_comes_back(message, euler):
    data = encode_sensor(message, euler=euler)
    parts = {"joint": ("q", "qd"), "pose": ("T", "twist")}
    for mode, names in parts.items():
        back = decode_sensor(data, len(message.qd), mode)
        expected = {name: getattr(message, name) for name in ("seqno", "tm", *names)}
        for name in vars(message):
            assert same(getattr(back, name), expected.get(name, 0.0 if name == "age" else None), 1e-12), name


@settings(max_examples=30, deadline=None)
@given(vectors(3), st.integers(0, 2**32 - 1), optional(small))
def test_a_path_correction_comes_back(p, age, seqno):
    message = SensorMessage(seqno, path_correction=p, age=age / 1000.0)
    back = decode_sensor(encode_sensor(message), 6, "path")
    assert same(back.path_correction, p, 1e-15)
    assert (back.age, back.seqno, back.q, back.T) == (age / 1000.0, seqno, None, None)


def key(number, wire):
    return bytes([number << 3 | wire])


def part(number, content):
    return key(number, 2) + bytes([len(content)]) + content


def doubles(*values, numbers=None):
    numbers = numbers or [1] * len(values)
    return b"".join(key(n, 1) + struct.pack("<d", value) for n, value in zip(numbers, values, strict=True))


HEADER = key(1, 0) + b"\x07" + key(3, 0) + b"\x03"  # seqno 7, a correction


def test_bytes_are_those_of_the_definition():
    """Written by hand, from the wire format of protobuf: key, length, content; degrees and millimetres."""
    degrees = (90.0, -45.0, 22.5, 0.0, 180.0, -135.0)  # which radians hold exactly
    by_hand = part(1, HEADER) + part(2, part(1, doubles(*degrees)))
    assert encode_sensor(SensorMessage(7, q=np.radians(degrees))) == by_hand
    assert decode_sensor(by_hand, 6, "joint").q == pytest.approx(np.radians(degrees), abs=1e-15)

    speeds = part(1, HEADER) + part(3, part(2, doubles(10.0, -20.0, 30.0, 90.0, 0.0, -180.0)))
    twist = np.array([0.01, -0.02, 0.03, np.pi / 2, 0.0, -np.pi])
    assert encode_sensor(SensorMessage(7, twist=twist)) == speeds
    position_alone = part(3, part(2, doubles(10.0, -20.0, 30.0)))
    assert same(decode_sensor(position_alone, 6, "pose").twist, [0.01, -0.02, 0.03, 0, 0, 0])

    correction = part(1, doubles(0.0, 5.0, -2.0, numbers=(1, 2, 3))) + key(2, 0) + b"\x14"
    by_hand = part(1, key(1, 0) + b"\x07" + key(3, 0) + b"\x04") + part(2, correction)
    message = SensorMessage(7, path_correction=np.array([0.0, 0.005, -0.002]), age=0.020)
    assert encode_sensor(message) == by_hand


def test_what_the_c_client_insists_on_is_in_every_message():
    message = schema.Robot.FromString(encode_robot(robot_message()))
    assert message.header.HasField("seqno")
    assert message.header.HasField("tm")
    assert message.header.mtype == 2
    for name in ("feedBack", "planned"):
        told = getattr(message, name)
        assert len(told.joints.joints) == 6
        assert told.cartesian.HasField("pos")
        assert told.cartesian.HasField("orient")
        assert not told.cartesian.HasField("euler")
        assert told.HasField("time")
    for name in ("motorState", "mciState", "mciConvergenceMet", "rapidExecState"):
        assert message.HasField(name)
    for name in ("measuredForce", "torqueRef", "utilizationRate", "testSignals"):
        assert not message.HasField(name)
    assert (message.feedBack.time.sec, message.feedBack.time.usec) == (1, 250000)
    assert message.planned.cartesian.pos.x == 600.0
    assert message.feedBack.joints.joints[0] == pytest.approx(np.degrees(0.1), abs=1e-14)


@pytest.mark.parametrize("n", [2, 6, 7])
def test_joints_beyond_the_sixth_are_external_ones(n):
    q = np.linspace(-1.0, 1.0, n)
    message = schema.Robot.FromString(encode_robot(robot_message(q, tau=q)))
    assert len(message.feedBack.joints.joints) == min(n, 6)
    assert len(message.feedBack.externalJoints.joints) == max(n - 6, 0)
    assert len(message.torqueRef.joints) == n
    assert message.feedBack.HasField("externalJoints") == (n > 6)
    assert decode_robot(encode_robot(robot_message(q)), n).q == pytest.approx(q, abs=1e-15)
    with pytest.raises(EgmError, match=f"expected measured joint angles of {n + 1} joints, got"):
        decode_robot(encode_robot(robot_message(q)), n + 1)


def test_a_robot_on_a_track_tells_more_than_it_is_asked():
    track = encode_robot(robot_message(np.append(Q, 0.5)))
    assert decode_robot(track, 6).q == pytest.approx(Q, abs=1e-15)
    assert decode_robot(track).q == pytest.approx(np.append(Q, 0.5), abs=1e-15)


def test_numbers_and_times_begin_anew_after_two_to_the_32():
    back = decode_robot(encode_robot(robot_message(seqno=2**32 + 3, tm=2**33 + 4, time=0.9999999)))
    assert (back.seqno, back.tm, back.time) == (3, 4, 1.0)


@pytest.mark.parametrize("missing", ["T", "T_planned", "time"])
def test_a_robot_tells_everything(missing):
    with pytest.raises(ValueError, match="which clients insist on"):
        encode_robot(robot_message(**{missing: None}))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (robot_message(q_planned=Q[:5]), r"joint angles of shape \(6,\)"),
        (robot_message(T=np.full((4, 4), np.nan)), "a pose to be finite"),
        (robot_message(tau=np.full(6, np.inf)), "torques to be finite"),
    ],
)
def test_a_robot_tells_what_is_sound(message, said):
    with pytest.raises(ValueError, match=said):
        encode_robot(message)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.ClearField("header"), "a number and a time"),
        (lambda m: m.feedBack.ClearField("joints"), "expected measured joint angles of 1 to 6 joints"),
        (lambda m: m.planned.joints.joints.pop(), "expected planned joint angles of 6 joints, got 5"),
        (lambda m: m.feedBack.joints.joints.append(0.0), "expected measured joint angles .* got 7 joints"),
        (lambda m: m.torqueRef.joints.extend([1.0] * 5), "expected torques of 6 values, got 5"),
        (lambda m: setattr(m, "utilizationRate", np.nan), "expected utilizationRate to be finite"),
        (lambda m: setattr(m.feedBack.cartesian.pos, "x", np.inf), "expected a position to be finite"),
    ],
)
def test_a_robots_message_that_is_none(change, said):
    message = schema.Robot.FromString(encode_robot(robot_message()))
    change(message)
    with pytest.raises(EgmError, match=said):
        decode_robot(message.SerializePartialToString())


def test_states_that_are_not_told_or_not_known():
    message = schema.Robot.FromString(encode_robot(robot_message()))
    for name in ("motorState", "mciState", "rapidExecState", "mciConvergenceMet"):
        message.ClearField(name)
    message.feedBack.ClearField("cartesian")
    back = decode_robot(message.SerializeToString() + part(5, key(1, 0) + b"\x09"))
    assert (back.motors_on, back.state, back.program_runs, back.converged, back.T) == (
        False, MotionState.UNDEFINED, False, False, None,
    )  # fmt: skip


JOINTS = SensorMessage(1, q=Q)
POSE = SensorMessage(1, T=pose())
PATH = SensorMessage(1, path_correction=np.ones(3))
GUIDES = {
    "joint": (JOINTS, SensorMessage(qd=Q), SensorMessage(q=Q, T=pose())),
    "pose": (POSE, SensorMessage(twist=Q), SensorMessage(q=Q, T=pose())),
    "path": (PATH,),
}


@pytest.mark.parametrize("mode", GUIDES)
def test_a_message_of_another_mode_is_told_from_one_that_is_broken(mode):
    for message in GUIDES[mode]:
        decode_sensor(encode_sensor(message), 6, mode)
    own = {id(message) for message in GUIDES[mode]}
    others = [m for messages in GUIDES.values() for m in messages if id(m) not in own]
    for message in others:
        if message.q is not None and message.T is not None and mode != "path":
            continue  # which guides either
        with pytest.raises(EgmModeError, match=f"came to a robot that is guided in {mode} mode"):
            decode_sensor(encode_sensor(message), 6, mode)
    assert decode_sensor(encode_sensor(SensorMessage(5)), 6, mode).seqno == 5  # alive, and asks for nothing


@pytest.mark.parametrize("kind", [None, 0, 3, 4])
def test_a_path_correction_is_one_whatever_its_header_says(kind):
    message = schema.SensorPathCorr.FromString(encode_sensor(PATH))
    message.ClearField("header")
    if kind is not None:
        message.header.mtype = kind
    data = message.SerializeToString()
    assert same(decode_sensor(data, 6, "path").path_correction, np.ones(3))
    with pytest.raises(EgmModeError, match="a path correction came to a robot"):
        decode_sensor(data, 1, "joint")  # of one joint, which x alone would suit


@pytest.mark.parametrize("kind", [None, 0, 3])
def test_joints_are_joints_whatever_the_header_says(kind):
    message = schema.Sensor.FromString(encode_sensor(JOINTS))
    message.ClearField("header")
    if kind is not None:
        message.header.mtype = kind
    assert decode_sensor(message.SerializeToString(), 6, "joint").q == pytest.approx(Q, abs=1e-15)


def changed(message, change):
    wire = schema.Sensor.FromString(encode_sensor(message))
    change(wire)
    return wire.SerializePartialToString()


def quaternion(*u):
    def change(message):
        turn = message.planned.cartesian.orient
        turn.u0, turn.u1, turn.u2, turn.u3 = u

    return change


@pytest.mark.parametrize(
    ("mode", "data", "said"),
    [
        ("joint", b"", "expected a message of 1 to 1024 bytes, got 0"),
        ("joint", bytes(1025), "expected a message of 1 to 1024 bytes, got 1025"),
        ("joint", b"GET / HTTP/1.1", "14 bytes that are no message of EGM"),
        ("joint", encode_sensor(JOINTS)[:-1], "bytes that are no message of EGM"),
        ("joint", part(9, b"else"), "6 bytes that hold no answer to a robot"),
        ("joint", encode_sensor(replace(JOINTS, q=Q[:5])), "joint angles of 6 joints and 0 .* got 5 and 0"),
        ("joint", encode_sensor(replace(JOINTS, q=np.ones(7))), "joint angles of 6 joints .* got 6 and 1"),
        ("joint", encode_sensor(replace(JOINTS, qd=Q[:2])), "joint speeds of 6 joints .* got 2 and 0"),
        ("joint", encode_sensor(JOINTS) * 2, "got 12 and 0"),
        ("joint", part(2, part(1, doubles(*[0.0] * 5, np.nan))), "joint angles to be finite, got nan"),
        ("pose", part(3, part(2, doubles(1.0, 2.0))), "3 or 6 values, got 2"),
        ("pose", part(3, part(2, doubles(1.0, 2.0, -np.inf))), "Cartesian speed to be finite, got -inf"),
        ("pose", changed(POSE, quaternion(0.0, 0.0, 0.0, 0.0)), "norm 1 within 0.01.*, got norm 0"),
        ("pose", changed(POSE, quaternion(1.0, 0.2, 0.0, 0.0)), "got norm 1.0198"),
        ("pose", changed(POSE, quaternion(1e308, 1e308, 1e308, 1e308)), "norm 1 within"),
        ("pose", changed(POSE, quaternion(np.nan, 0.0, 0.0, 0.0)), "a quaternion to be finite"),
        ("pose", changed(POSE, lambda m: m.planned.cartesian.ClearField("orient")), "got pos alone"),
        ("pose", changed(POSE, lambda m: m.planned.cartesian.ClearField("pos")), "got orient alone"),
        ("pose", changed(POSE, lambda m: m.planned.cartesian.pos.ClearField("y")), "it has no pos.y"),
        ("pose", changed(POSE, lambda m: setattr(m.planned.cartesian.pos, "z", np.inf)), "a position to be"),
        ("path", part(2, part(1, doubles(1.0)) + key(2, 0) + b"\x00"), "no pathCorr.pos.y, pathCorr.pos.z"),
        ("path", part(1, key(3, 0) + b"\x04") + part(2, part(1, doubles(1.0))), "without its age"),
        (
            "path",
            part(2, part(1, doubles(np.nan, 0.0, 0.0, numbers=(1, 2, 3))) + key(2, 0) + b"\x00"),
            "a path correction to be finite",
        ),
    ],
)
def test_an_answer_that_is_none(mode, data, said):
    with pytest.raises(EgmError, match=said) as caught:
        decode_sensor(data, 6, mode)
    assert type(caught.value) is EgmError


def test_a_quaternion_of_few_digits_is_made_unit():
    data = changed(POSE, quaternion(0.71, 0.0, -0.71, 0.0))
    T = decode_sensor(data, 6, "pose").T
    expected = Rotation.from_euler("y", -np.pi / 2).as_matrix()
    assert T[:3, :3] == pytest.approx(expected, abs=1e-15)


def test_euler_angles_count_beside_a_quaternion():
    def change(message):
        turn = message.planned.cartesian.euler
        turn.x, turn.y, turn.z = 10.0, 20.0, 30.0

    expected = Rotation.from_euler("ZYX", (30.0, 20.0, 10.0), degrees=True).as_matrix()
    for change_too in (lambda m: None, lambda m: m.planned.cartesian.ClearField("orient")):
        data = changed(POSE, lambda m: (change(m), change_too(m)))  # noqa: B023
        assert decode_sensor(data, 6, "pose").T[:3, :3] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (SensorMessage(q=np.append(Q, np.nan)), "expected q to be finite"),
        (SensorMessage(T=np.eye(3)), r"expected T of shape \(4, 4\), got \(3, 3\)"),
        (SensorMessage(q=Q, path_correction=np.ones(3)), "a path correction alone"),
        (SensorMessage(path_correction=np.ones(3), age=-0.1), "an age of 0 s or more"),
    ],
)
def test_an_answer_is_sound(message, said):
    with pytest.raises(ValueError, match=said):
        encode_sensor(message)


NEW, SAME, OLD = Arrival.NEW, Arrival.SAME, Arrival.OLD


@pytest.mark.parametrize(
    ("numbers", "arrivals"),
    [
        ([0, 1, 2, 3], [NEW] * 4),
        ([1, 3, 5, 50], [NEW] * 4),
        ([5, 5, 6, 5, 6], [NEW, SAME, NEW, OLD, SAME]),
        ([None, None, 3, None], [NEW] * 4),
        ([200, 100, 99, 98, 100], [NEW, OLD, NEW, OLD, NEW]),
        ([2**32 - 1, 0, 2**32 - 1, 1], [NEW, NEW, OLD, NEW]),
    ],
)
def test_which_of_the_messages_is_new(numbers, arrivals):
    sequence = Sequence()
    assert [sequence.judge(number, b"the same") for number in numbers] == arrivals


def test_a_sender_that_does_not_count_is_heard_all_the_same():
    sequence = Sequence()
    assert [sequence.judge(0, bytes([k])) for k in (1, 2, 2, 1)] == [NEW, NEW, SAME, NEW]
