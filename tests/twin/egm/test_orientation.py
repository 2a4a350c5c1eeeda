"""Comparison of scalar orientation conversions with those of `twin.rotations`."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from twin.egm.wire.values import quaternion_from_rows, rows_from_quaternion
from twin.rotations.rotations import quaternion_from_matrix

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
