"""Encoding and decoding of both messages: units, numbers of joints, required fields."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.egm_messages import Q, doubles, key, part, pose, robot_message, same
from twin.egm.wire import schema
from twin.egm.wire.encoding import decode_robot, decode_sensor, encode_robot, encode_sensor
from twin.egm.wire.messages import MotionState, RobotMessage, SensorMessage
from twin.errors import EgmError

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
def test_robot_message_round_trip(message, euler):
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
def test_sensor_message_round_trip(message, euler):
    data = encode_sensor(message, euler=euler)
    parts = {"joint": ("q", "qd"), "pose": ("T", "twist")}
    for mode, names in parts.items():
        back = decode_sensor(data, len(message.qd), mode)
        expected = {name: getattr(message, name) for name in ("seqno", "tm", *names)}
        for name in vars(message):
            assert same(getattr(back, name), expected.get(name, 0.0 if name == "age" else None), 1e-12), name


@settings(max_examples=30, deadline=None)
@given(vectors(3), st.integers(0, 2**32 - 1), optional(small))
def test_path_correction_round_trip(p, age, seqno):
    message = SensorMessage(seqno, path_correction=p, age=age / 1000.0)
    back = decode_sensor(encode_sensor(message), 6, "path")
    assert same(back.path_correction, p, 1e-15)
    assert (back.age, back.seqno, back.q, back.T) == (age / 1000.0, seqno, None, None)


HEADER = key(1, 0) + b"\x07" + key(3, 0) + b"\x03"  # seqno 7, a correction


def test_bytes_match_the_protobuf_wire_format():
    """The expected bytes follow the protobuf wire format: key, length, content; in deg and mm."""
    degrees = (90.0, -45.0, 22.5, 0.0, 180.0, -135.0)  # exactly representable in radians
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


def test_robot_message_contains_fields_required_by_cpp_client():
    message = schema.Robot.FromString(encode_robot(robot_message()))
    assert message.header.HasField("seqno")
    assert message.header.HasField("tm")
    assert message.header.mtype == 2
    for name in ("feedBack", "planned"):
        feedback = getattr(message, name)
        assert len(feedback.joints.joints) == 6
        assert feedback.cartesian.HasField("pos")
        assert feedback.cartesian.HasField("orient")
        assert not feedback.cartesian.HasField("euler")
        assert feedback.HasField("time")
    for name in ("motorState", "mciState", "mciConvergenceMet", "rapidExecState"):
        assert message.HasField(name)
    for name in ("measuredForce", "torqueRef", "utilizationRate", "testSignals"):
        assert not message.HasField(name)
    assert (message.feedBack.time.sec, message.feedBack.time.usec) == (1, 250000)
    assert message.planned.cartesian.pos.x == 600.0
    assert message.feedBack.joints.joints[0] == pytest.approx(np.degrees(0.1), abs=1e-14)


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


@pytest.mark.parametrize("missing", ["T", "T_planned", "time"])
def test_robot_message_requires_poses_and_time(missing):
    with pytest.raises(ValueError, match="clients require them"):
        encode_robot(robot_message(**{missing: None}))


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        (robot_message(q_planned=Q[:5]), r"joint angles of shape \(6,\)"),
        (robot_message(T=np.full((4, 4), np.nan)), "a pose to be finite"),
        (robot_message(tau=np.full(6, np.inf)), "torques to be finite"),
    ],
)
def test_invalid_robot_message_is_not_encoded(message, pattern):
    with pytest.raises(ValueError, match=pattern):
        encode_robot(message)


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
    assert (back.motors_on, back.state, back.program_runs, back.converged, back.T) == (
        False, MotionState.UNDEFINED, False, False, None,
    )  # fmt: skip
