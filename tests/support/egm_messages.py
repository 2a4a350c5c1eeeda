"""Test messages, and functions that write the protobuf wire format byte by byte."""

import struct

import numpy as np
from scipy.spatial.transform import Rotation

from twin.abb.egm.wire.messages import RobotMessage, SensorMessage

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


JOINTS = SensorMessage(1, q=Q)
POSE = SensorMessage(1, T=pose())
PATH = SensorMessage(1, path_correction=np.ones(3))


def same(a, b, tolerance=0.0):
    if a is None or b is None:
        return a is b
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=tolerance, atol=tolerance)


def key(number, wire):
    return bytes([number << 3 | wire])


def part(number, content):
    return key(number, 2) + bytes([len(content)]) + content


def doubles(*values, numbers=None):
    numbers = numbers or [1] * len(values)
    return b"".join(key(n, 1) + struct.pack("<d", value) for n, value in zip(numbers, values, strict=True))
