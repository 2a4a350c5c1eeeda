"""Decoding of arbitrary bytes: the result is a valid message or an `EgmError`, and no memory leaks.

`EGM_FUZZ=1000000 python -m pytest tests/twin/egm/test_any_bytes.py -n 0` tests a million cases.  The number
of a case determines its bytes.
"""

import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.egm_messages import JOINTS, PATH, POSE, Q, robot_message
from twin.egm.wire.encoding import decode_robot, decode_sensor, encode_robot, encode_sensor
from twin.egm.wire.messages import SensorMessage
from twin.errors import EgmError

CASES = int(os.environ.get("EGM_FUZZ", "12000"))
MODES = ("joint", "pose", "path")
SENSOR = [
    *map(encode_sensor, (JOINTS, POSE, PATH, SensorMessage(q=Q, qd=Q), SensorMessage(T=POSE.T, twist=Q))),
    encode_sensor(SensorMessage(3, tm=4, T=POSE.T), euler=True),
]
ROBOT = [encode_robot(robot_message(tau=Q, wrench=Q, utilization=1.0), euler=True)]
ODD = [struct.pack("<d", value) for value in (np.nan, np.inf, -np.inf, 1e308, -0.0, 5e-324)]


def mutated(message, random):
    """Return a message with random changes, deletions, repetitions or insertions."""
    data = bytearray(message)
    for _ in range(random.integers(4)):
        at, kind = int(random.integers(len(data) + 1)), random.integers(8)
        if kind == 0:
            data[at:at] = random.bytes(int(random.integers(1, 9)))
        elif kind == 1:
            del data[at : at + int(random.integers(1, 9))]
        elif kind == 2:
            data[at : at + 8] = ODD[random.integers(len(ODD))]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at:at] = data[at // 2 : at]
        elif at < len(data):
            data[at] ^= 1 << int(random.integers(8))
    return bytes(data)


def cases(seeds, count):
    """Yield test cases: a quarter random bytes, the others mutated messages."""
    random = np.random.default_rng(1)
    for number in range(count):
        if number % 4:
            yield mutated(seeds[random.integers(len(seeds))], random)
        else:
            yield random.bytes(int(random.integers(0, 64 if number % 64 else 2000)))


def memory():
    """Return the resident memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def finite_shapes(message, shapes):
    for name, shape in shapes.items():
        value = getattr(message, name)
        assert value is None or (value.shape == shape and np.isfinite(value).all()), name


def judge_sensor(data, number):
    message = decode_sensor(data, 6, MODES[number % 3])
    pose, others = (4, 4), dict.fromkeys(("q", "qd", "twist"), (6,))
    finite_shapes(message, {"T": pose, "path_correction": (3,), **others})
    if message.T is not None:
        assert np.abs(message.T[:3, :3] @ message.T[:3, :3].T - np.eye(3)).max() < 1e-12


def judge_robot(data, number):
    message = decode_robot(data, 6)
    finite_shapes(message, {"q": (6,), "q_planned": (6,), "T": (4, 4), "tau": (6,), "wrench": (6,)})


@pytest.mark.parametrize(
    ("judge", "seeds", "count"), [(judge_sensor, SENSOR, CASES), (judge_robot, ROBOT, CASES // 4)]
)
def test_arbitrary_bytes_are_decoded_or_raise_egm_error(judge, seeds, count):
    good = sentences = 0
    for number, data in enumerate(cases(seeds, count)):
        if number == count // 5:  # by then all caches are filled
            blocks, before = sys.getallocatedblocks(), memory()
        try:
            judge(data, number)
            good += 1
        except EgmError as error:
            sentences += str(error).count("\n") + 1
    assert good + sentences == count
    assert 0.05 * count < good < 0.6 * count, "cases are neither all malformed nor all valid"
    assert sys.getallocatedblocks() - blocks < 2000
    assert memory() - before < 4.0
