"""The tool along a straight line with the laboratory's trapezoid."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.support.refusals import refused
from twin.errors import LimitError
from twin.trajectories.joint_trajectories import cruising_trapezoid
from twin.trajectories.tool_paths import straight_line

TURN = np.array([0.4, -0.9, 0.6])
START, END = np.tile(np.eye(4), (2, 1, 1))
START[:3, :3] = Rotation.from_rotvec([1.0, 0.2, -0.5]).as_matrix()
START[:3, 3] = 0.4, -0.2, 0.5
END[:3, :3] = Rotation.from_rotvec(TURN).as_matrix() @ START[:3, :3]
END[:3, 3] = 0.5, 0.3, 0.2
PATH = straight_line(START, END, speed=0.25, acceleration=0.4)


def test_positions_are_the_move_of_three_axes_and_the_turn_follows_the_same_law():
    t = np.linspace(-0.1, PATH.duration + 0.1, 301)
    pose, twist, twist_rate = PATH(t)
    p, v, a = cruising_trapezoid(START[:3, 3], END[:3, 3], 0.25, 0.4)(t)
    np.testing.assert_allclose(PATH.duration, 0.5 / 0.25 + 0.625, rtol=1e-14)
    np.testing.assert_allclose(pose[:, :3, 3], p, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist[:, :3], v, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist_rate[:, :3], a, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.abs(twist[:, 1]).max(), 0.25, rtol=1e-14)  # y is the longest way
    s = (pose[:, 1, 3] - START[1, 3]) / (END[1, 3] - START[1, 3])
    turned = Rotation.from_rotvec(TURN * s[:, None]).as_matrix()
    np.testing.assert_allclose(pose[:, :3, :3], turned @ START[:3, :3], rtol=0, atol=1e-14)
    np.testing.assert_allclose(twist[:, 3:], TURN * twist[:, 1:2] / 0.5, rtol=0, atol=1e-14)
    np.testing.assert_allclose(twist_rate[:, 3:], TURN * twist_rate[:, 1:2] / 0.5, rtol=0, atol=1e-14)
    shifted = START + np.outer([0.3, 0.0, -0.3, 0.0], np.eye(4)[3])
    pose, twist, _ = straight_line(START, shifted, speed=0.25, acceleration=0.5)(t.reshape(7, 43))
    np.testing.assert_allclose(pose[..., :3, :3] - START[:3, :3], 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist[..., 3:], 0.0, rtol=0, atol=1e-15)


def test_what_is_no_such_line_is_refused():
    with pytest.raises(LimitError, match=r"a distance of 0\.5 m is too short for 0\.5 m/s at 0\.4 m/s\^2"):
        straight_line(START, END, speed=0.5, acceleration=0.4)
    refused(
        (lambda: straight_line(START, START, speed=0.5, acceleration=0.4), "expected a line of some length"),
        (lambda: straight_line(START, 2 * END, speed=0.25, acceleration=0.4), "poses[1] to be rigid within"),
        (lambda: straight_line(START, END, speed=-0.25, acceleration=0.4), "expected positive speed"),
    )
