"""Encoding and decoding of both messages, rejection of malformed ones, and order by numbers.

`EGM_FUZZ=1000000 python -m pytest tests/twin/abb/egm/test_messages.py -n 0` decodes a million cases of
arbitrary bytes.
"""

import os
import struct
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tests.support.egm_messages import JOINTS, PATH, POSE, Q, doubles, key, part, pose, robot_message, same
from tests.support.refusals import refused
from twin.abb.egm.wire import schema
from twin.abb.egm.wire.encoding import (
    decode_robot,
    decode_sensor,
    encode_robot,
    encode_sensor,
    quaternion_from_rows,
    rows_from_quaternion,
)
from twin.abb.egm.wire.messages import AnswerSequence, Arrival, MotionState, RobotMessage, SensorMessage
from twin.base.errors import EgmError, EgmModeError
from twin.physics.rotations.rotations import quaternion_from_matrix

floats = st.floats(-1e3, 1e3)
small = st.integers(0, 2**32 - 1)
turns = st.tuples(*[st.floats(-3.0, 3.0)] * 3)
poses = st.builds(pose, floats, floats, floats, turns)


def vectors(n):
    return st.lists(floats, min_size=n, max_size=n).map(np.array)


robot_messages = st.integers(1, 9).flatmap(
    lambda n: st.builds(
        RobotMessage, seqno=small, tm=small, q=vectors(n), q_planned=vectors(n), T=poses, T_planned=poses,
        time=st.integers(0, 2**40).map(lambda microseconds: 1e-6 * microseconds), motors_on=st.booleans(),
        state=st.sampled_from(MotionState), program_runs=st.booleans(), converged=st.booleans(),
        utilization=st.none() | floats, tau=st.none() | vectors(n), wrench=st.none() | vectors(6),
    )
)  # fmt: skip
answers = st.integers(1, 9).flatmap(
    lambda n: st.builds(
        SensorMessage, st.none() | small, st.none() | small, q=st.none() | vectors(n), qd=vectors(n),
        T=st.none() | poses, twist=vectors(6),
    )
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(robot_messages, st.booleans())
def test_robot_message_round_trip(message, euler):
    data = encode_robot(message, euler=euler)
    assert len(data) <= 1024
    back = decode_robot(data)
    for name in vars(message):
        tolerance = 1e-12 if name in ("q", "q_planned", "T", "T_planned", "time") else 0.0
        assert same(getattr(back, name), getattr(message, name), tolerance), name


@settings(max_examples=25, deadline=None)
@given(answers, st.booleans())
def test_sensor_message_round_trip(message, euler):
    data = encode_sensor(message, euler=euler)
    parts = {"joint": ("q", "qd"), "pose": ("T", "twist")}
    for mode, names in parts.items():
        back = decode_sensor(data, len(message.qd), mode)
        expected = {name: getattr(message, name) for name in ("seqno", "tm", *names)}
        for name in vars(message):
            assert same(getattr(back, name), expected.get(name, 0.0 if name == "age" else None), 1e-12), name


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
    if n == 7:  # an additional axis is ignored
        assert decode_robot(encode_robot(robot_message(q)), 6).q == pytest.approx(q[:6], abs=1e-15)


def test_numbers_and_times_wrap_at_2_to_the_32():
    back = decode_robot(encode_robot(robot_message(seqno=2**32 + 3, tm=2**33 + 4, time=0.9999999)))
    assert (back.seqno, back.tm, back.time) == (3, 4, 1.0)


def test_invalid_message_is_not_encoded():
    def robot(**changes):
        return partial(encode_robot, robot_message(**changes))

    def answer(**given):
        return lambda: encode_sensor(SensorMessage(**given))

    refused(
        (robot(T=None), "clients require them"),
        (robot(time=None), "clients require them"),
        (robot(q_planned=Q[:5]), r"joint angles of shape \(6,\)"),
        (robot(T=np.full((4, 4), np.nan)), "a pose to be finite"),
        (robot(tau=np.full(6, np.inf)), "torques to be finite"),
        (answer(q=np.append(Q, np.nan)), "expected q to be finite"),
        (answer(T=np.eye(3)), r"expected T of shape \(4, 4\), got \(3, 3\)"),
        (answer(q=Q, path_correction=np.ones(3)), "a path correction alone"),
        (answer(path_correction=np.ones(3), age=-0.1), "an age of 0 s or more"),
    )


def test_malformed_robot_message_raises_egm_error():
    for change, pattern in (
        (lambda m: m.ClearField("header"), "with seqno and tm"),
        (lambda m: m.feedBack.ClearField("joints"), "expected measured joint angles of 1 to 6 joints"),
        (lambda m: m.planned.joints.joints.pop(), "expected planned joint angles of 6 joints, got 5"),
        (lambda m: m.torqueRef.joints.extend([1.0] * 5), "expected torques of 6 values, got 5"),
        (lambda m: setattr(m, "utilizationRate", np.nan), "expected utilizationRate to be finite"),
        (lambda m: setattr(m.feedBack.cartesian.pos, "x", np.inf), "expected a position to be finite"),
    ):
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


def test_scalar_conversions_equal_array_conversions():
    half_turns = np.pi * np.concatenate([np.eye(3), -np.eye(3)])
    turns = [*Rotation.random(200, random_state=1).as_rotvec(), *half_turns, np.zeros(3), np.full(3, 1e-9)]
    for R in Rotation.from_rotvec(turns).as_matrix():
        quaternion = np.array(quaternion_from_rows(R.tolist()))
        expected = quaternion_from_matrix(R)
        if abs(expected[0]) < 1e-12:  # a half turn has two quaternions
            expected = expected * np.sign(expected @ quaternion)
        assert quaternion == pytest.approx(expected, abs=5e-16)
        assert quaternion[0] >= 0.0
        assert np.array(rows_from_quaternion(*quaternion)) == pytest.approx(R, abs=1e-15)


GUIDES = {
    "joint": (JOINTS, SensorMessage(qd=Q), SensorMessage(q=Q, T=pose())),
    "pose": (POSE, SensorMessage(twist=Q), SensorMessage(q=Q, T=pose())),
    "path": (PATH,),
}


@pytest.mark.parametrize("mode", GUIDES)
def test_message_of_another_mode_raises_mode_error(mode):
    for of_mode, messages in GUIDES.items():
        for message in messages:
            two_modes = message.q is not None and message.T is not None
            if of_mode == mode or (two_modes and mode != "path"):
                decode_sensor(encode_sensor(message), 6, mode)
                continue
            with pytest.raises(EgmModeError, match=f"received a .* in {mode} mode|guided in {mode} mode"):
                decode_sensor(encode_sensor(message), 6, mode)
    assert decode_sensor(encode_sensor(SensorMessage(5)), 6, mode).seqno == 5  # valid, without references


@pytest.mark.parametrize("kind", [None, 0, 3, 4])
def test_message_is_recognised_without_its_header_type(kind):
    for wire, sent, mode in ((schema.SensorPathCorr, PATH, "path"), (schema.Sensor, JOINTS, "joint")):
        message = wire.FromString(encode_sensor(sent))
        message.ClearField("header")
        if kind is not None:
            message.header.mtype = kind
        data = message.SerializeToString()
        if mode == "path":
            assert same(decode_sensor(data, 6, "path").path_correction, np.ones(3))
            with pytest.raises(EgmModeError, match="received a path correction in joint mode"):
                decode_sensor(data, 1, "joint")  # with one joint, x alone would otherwise match
        elif kind != 4:  # a joint message that calls itself a path correction is none
            assert same(decode_sensor(data, 6, "joint").q, Q, 1e-15)


def changed(change):
    wire = schema.Sensor.FromString(encode_sensor(POSE))
    change(wire)
    return wire.SerializePartialToString()


def quaternion(*u):
    def change(message):
        turn = message.planned.cartesian.orient
        turn.u0, turn.u1, turn.u2, turn.u3 = u

    return change


AGELESS = part(1, key(3, 0) + b"\x04") + part(2, part(1, doubles(1.0)))
NAN_POSITION = doubles(np.nan, 0.0, 0.0, numbers=(1, 2, 3))


MALFORMED = (
    ("joint", b"", "expected a message of 1 to 1024 bytes, got 0"),
    ("joint", bytes(1025), "expected a message of 1 to 1024 bytes, got 1025"),
    ("joint", b"GET / HTTP/1.1", "expected an EGM message, got 14 bytes"),
    ("joint", part(9, b"else"), "expected an answer .* got 6 bytes"),
    ("joint", encode_sensor(replace(JOINTS, q=Q[:5])), "joint angles of 6 joints and 0 .* got 5 and 0"),
    ("joint", encode_sensor(replace(JOINTS, q=np.ones(7))), "joint angles of 6 joints .* got 6 and 1"),
    ("joint", part(2, part(1, doubles(*[0.0] * 5, np.nan))), "joint angles to be finite, got nan"),
    ("pose", part(3, part(2, doubles(1.0, 2.0, -np.inf))), "Cartesian speed to be finite, got -inf"),
    ("pose", changed(quaternion(1.0, 0.2, 0.0, 0.0)), "got norm 1.0198"),
    ("pose", changed(quaternion(1e308, 1e308, 1e308, 1e308)), "norm 1 within"),
    ("pose", changed(quaternion(np.nan, 0.0, 0.0, 0.0)), "a quaternion to be finite"),
    ("pose", changed(lambda m: m.planned.cartesian.ClearField("orient")), "got pos alone"),
    ("pose", changed(lambda m: m.planned.cartesian.pos.ClearField("y")), "it has no pos.y"),
    ("path", part(2, part(1, doubles(1.0)) + key(2, 0) + b"\x00"), "no pathCorr.pos.y, pathCorr.pos.z"),
    ("path", AGELESS, "an age in a path correction"),
    ("path", part(2, part(1, NAN_POSITION) + key(2, 0) + b"\x00"), "a path correction to be finite"),
)


def test_malformed_answer_raises_egm_error():
    for mode, data, pattern in MALFORMED:
        with pytest.raises(EgmError, match=pattern) as caught:
            decode_sensor(data, 6, mode)
        assert type(caught.value) is EgmError


def test_quaternion_is_normalised_and_yields_to_euler_angles():
    T = decode_sensor(changed(quaternion(0.71, 0.0, -0.71, 0.0)), 6, "pose").T
    assert same(T[:3, :3], Rotation.from_euler("y", -np.pi / 2).as_matrix(), 1e-15)
    message = schema.Sensor.FromString(encode_sensor(POSE))
    turn = message.planned.cartesian.euler
    turn.x, turn.y, turn.z = 10.0, 20.0, 30.0
    expected = Rotation.from_euler("ZYX", (30.0, 20.0, 10.0), degrees=True).as_matrix()
    for _ in range(2):
        T = decode_sensor(message.SerializePartialToString(), 6, "pose").T
        assert same(T[:3, :3], expected, 1e-15)
        message.planned.cartesian.ClearField("orient")


NEW, SAME, OLD = Arrival.NEW, Arrival.SAME, Arrival.OLD


def test_sequence_numbers_classify_messages():
    for numbers, arrivals in (
        ([0, 1, 2, 3], [NEW] * 4),
        ([5, 5, 6, 5, 6], [NEW, SAME, NEW, OLD, SAME]),
        ([None, None, 3, None], [NEW] * 4),
        ([200, 100, 99, 98, 100], [NEW, OLD, NEW, OLD, NEW]),
        ([2**32 - 1, 0, 2**32 - 1, 1], [NEW, NEW, OLD, NEW]),
        ([90, 1, 2, 3, 4, 5], [NEW, OLD, OLD, NEW, NEW, NEW]),  # the sender restarted
        ([90, 3, 2, 4, 91, 5, 6], [NEW, OLD, OLD, OLD, NEW, OLD, OLD]),
    ):
        sequence = AnswerSequence()
        assert [sequence.judge(number, b"the same") for number in numbers] == arrivals
    constant = AnswerSequence()
    assert [constant.judge(0, bytes([k])) for k in (1, 2, 2, 1)] == [NEW, NEW, SAME, NEW]


SENT = [
    *map(encode_sensor, (JOINTS, POSE, PATH, SensorMessage(q=Q, qd=Q), SensorMessage(T=POSE.T, twist=Q))),
    encode_sensor(SensorMessage(3, tm=4, T=POSE.T), euler=True),
    encode_robot(robot_message(tau=Q, wrench=Q, utilization=1.0), euler=True),
]
ODD = [struct.pack("<d", value) for value in (np.nan, np.inf, -np.inf, 1e308, -0.0, 5e-324)]
CHANGES = st.tuples(st.integers(0, 400), st.integers(0, 9), st.binary(max_size=9) | st.sampled_from(ODD))
SHAPES = dict.fromkeys(("q", "qd", "twist", "q_planned", "tau", "wrench"), (6,))
SHAPES |= {"T": (4, 4), "path_correction": (3,)}


def changed_bytes(data, changes):
    """Return a message with some bytes replaced, removed or inserted."""
    for at, removed, inserted in changes:
        data = data[:at] + inserted + data[at + removed :]
    return data


CHANGED = st.builds(changed_bytes, st.sampled_from(SENT), st.lists(CHANGES, max_size=3))


@settings(max_examples=int(os.environ.get("EGM_FUZZ", "500")), deadline=None)
@given(st.binary(max_size=2000) | CHANGED)
def test_arbitrary_bytes_are_decoded_or_raise_egm_error(data):
    for decode, *mode in ((decode_robot,), *((decode_sensor, mode) for mode in GUIDES)):
        try:
            message = decode(data, 6, *mode)
        except EgmError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        for name, shape in SHAPES.items():
            value = getattr(message, name, None)
            assert value is None or (value.shape == shape and np.isfinite(value).all()), name
        if mode and message.T is not None:
            assert np.abs(message.T[:3, :3] @ message.T[:3, :3].T - np.eye(3)).max() < 1e-12
