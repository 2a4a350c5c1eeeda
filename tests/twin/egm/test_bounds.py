"""Rejection of unsuitable and malformed answers, and detection of repeated and outdated ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.support.egm_messages import JOINTS, PATH, POSE, Q, doubles, key, part, pose, same
from twin.egm.wire import schema
from twin.egm.wire.encoding import decode_sensor, encode_sensor
from twin.egm.wire.messages import SensorMessage
from twin.egm.wire.stream import AnswerSequence, Arrival
from twin.errors import EgmError, EgmModeError

GUIDES = {
    "joint": (JOINTS, SensorMessage(qd=Q), SensorMessage(q=Q, T=pose())),
    "pose": (POSE, SensorMessage(twist=Q), SensorMessage(q=Q, T=pose())),
    "path": (PATH,),
}


@pytest.mark.parametrize("mode", GUIDES)
def test_message_of_another_mode_raises_mode_error(mode):
    for message in GUIDES[mode]:
        decode_sensor(encode_sensor(message), 6, mode)
    this_mode = {id(message) for message in GUIDES[mode]}
    others = [m for messages in GUIDES.values() for m in messages if id(m) not in this_mode]
    for message in others:
        if message.q is not None and message.T is not None and mode != "path":
            continue  # valid in joint mode and in pose mode
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


def changed(message, change):
    wire = schema.Sensor.FromString(encode_sensor(message))
    change(wire)
    return wire.SerializePartialToString()


def quaternion(*u):
    def change(message):
        turn = message.planned.cartesian.orient
        turn.u0, turn.u1, turn.u2, turn.u3 = u

    return change


NAN_POSITION = doubles(np.nan, 0.0, 0.0, numbers=(1, 2, 3))


@pytest.mark.parametrize(
    ("mode", "data", "pattern"),
    [
        ("joint", b"", "expected a message of 1 to 1024 bytes, got 0"),
        ("joint", bytes(1025), "expected a message of 1 to 1024 bytes, got 1025"),
        ("joint", b"GET / HTTP/1.1", "expected an EGM message, got 14 bytes"),
        ("joint", encode_sensor(JOINTS)[:-1], "bytes that cannot be decoded"),
        ("joint", part(9, b"else"), "expected an answer .* got 6 bytes"),
        ("joint", encode_sensor(replace(JOINTS, q=Q[:5])), "joint angles of 6 joints and 0 .* got 5 and 0"),
        ("joint", encode_sensor(replace(JOINTS, q=np.ones(7))), "joint angles of 6 joints .* got 6 and 1"),
        ("joint", encode_sensor(replace(JOINTS, qd=Q[:2])), "joint speeds of 6 joints .* got 2 and 0"),
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
        (
            "path",
            part(1, key(3, 0) + b"\x04") + part(2, part(1, doubles(1.0))),
            "an age in a path correction",
        ),
        ("path", part(2, part(1, NAN_POSITION) + key(2, 0) + b"\x00"), "a path correction to be finite"),
    ],
)
def test_malformed_answer_raises_egm_error(mode, data, pattern):
    with pytest.raises(EgmError, match=pattern) as caught:
        decode_sensor(data, 6, mode)
    assert type(caught.value) is EgmError


def test_quaternion_is_normalised_and_yields_to_euler_angles():
    T = decode_sensor(changed(POSE, quaternion(0.71, 0.0, -0.71, 0.0)), 6, "pose").T
    assert same(T[:3, :3], Rotation.from_euler("y", -np.pi / 2).as_matrix(), 1e-15)
    message = schema.Sensor.FromString(encode_sensor(POSE))
    turn = message.planned.cartesian.euler
    turn.x, turn.y, turn.z = 10.0, 20.0, 30.0
    expected = Rotation.from_euler("ZYX", (30.0, 20.0, 10.0), degrees=True).as_matrix()
    for _ in range(2):
        T = decode_sensor(message.SerializePartialToString(), 6, "pose").T
        assert same(T[:3, :3], expected, 1e-15)
        message.planned.cartesian.ClearField("orient")


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        (SensorMessage(q=np.append(Q, np.nan)), "expected q to be finite"),
        (SensorMessage(T=np.eye(3)), r"expected T of shape \(4, 4\), got \(3, 3\)"),
        (SensorMessage(q=Q, path_correction=np.ones(3)), "a path correction alone"),
        (SensorMessage(path_correction=np.ones(3), age=-0.1), "an age of 0 s or more"),
    ],
)
def test_invalid_answer_is_not_encoded(message, pattern):
    with pytest.raises(ValueError, match=pattern):
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
        ([90, 1, 2, 3, 4, 5], [NEW, OLD, OLD, NEW, NEW, NEW]),  # the sender restarted
        ([90, 3, 2, 4, 91, 5, 6], [NEW, OLD, OLD, OLD, NEW, OLD, OLD]),
    ],
)
def test_sequence_numbers_classify_messages(numbers, arrivals):
    sequence = AnswerSequence()
    assert [sequence.judge(number, b"the same") for number in numbers] == arrivals
    constant = AnswerSequence()
    assert [constant.judge(0, bytes([k])) for k in (1, 2, 2, 1)] == [NEW, NEW, SAME, NEW]
