"""The decimal trigonometry and principal axes behind the byte-identical URDF, against numpy and scipy."""

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from urdf import decimal_math


def relative(a, b):
    return np.max(np.abs(np.asarray(a) - b)) / np.max(np.abs(b))


def test_roll_pitch_yaw_of_quarter_turns():
    """Exact, also at a pitch of 90 degrees, where roll and yaw are one turn."""
    for turns in product((-90, 0, 90, 180), repeat=3):
        R = np.round(Rotation.from_euler("xyz", turns, degrees=True).as_matrix())
        with decimal_math.precisely():
            rpy = decimal_math.roll_pitch_yaw([[Decimal(x) for x in row] for row in R.tolist()])
        found = Rotation.from_euler("xyz", np.array(rpy, float)).as_matrix()
        np.testing.assert_allclose(found, R, rtol=0, atol=1e-15)


def test_principal_axes_of_hard_tensors():
    """Diagonal, with equal moments, nearly equal moments, and moments far apart."""
    rng = np.random.default_rng(2)
    for moments in ([1, 2, 3], [2, 2, 2], [1, 1, 1 + 1e-13], [1, 1e6, 1e6], [1e-9, 2e-9, 2e-9]):
        for R in (np.eye(3), *Rotation.random(5, rng=rng).as_matrix()):
            A = R @ np.diag(np.array(moments, float)) @ R.T
            A = (A + A.T) / 2
            with decimal_math.precisely():
                found, axes = decimal_math.principal_axes([[Decimal(x) for x in row] for row in A.tolist()])
                rpy = np.array(decimal_math.roll_pitch_yaw(axes), float)
            rebuilt = Rotation.from_euler("xyz", rpy).as_matrix()
            assert np.linalg.det(np.array(axes, float)) == pytest.approx(1, abs=1e-15)
            assert relative(rebuilt @ np.diag(np.array(found, float)) @ rebuilt.T, A) < 2e-15
