"""The tool along a straight line with the laboratory's trapezoid."""

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

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
T_C, T_F = 0.625, 0.5 / 0.25 + 0.625


def test_positions_are_the_move_of_three_axes():
    t = np.linspace(-0.1, PATH.duration + 0.1, 301)
    pose, twist, twist_rate = PATH(t)
    p, v, a = cruising_trapezoid(START[:3, 3], END[:3, 3], 0.25, 0.4)(t)
    np.testing.assert_allclose(PATH.duration, T_F, rtol=1e-14)
    np.testing.assert_allclose(pose[:, :3, 3], p, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist[:, :3], v, rtol=0, atol=1e-15)
    np.testing.assert_allclose(twist_rate[:, :3], a, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.abs(twist[:, 1]).max(), 0.25, rtol=1e-14)  # y is the longest way


def test_the_turn_follows_the_same_law_about_one_axis():
    t = np.linspace(0, PATH.duration, 301)
    pose, twist, twist_rate = PATH(t)
    s = (pose[:, 1, 3] - START[1, 3]) / (END[1, 3] - START[1, 3])
    turned = Rotation.from_rotvec(TURN * s[:, None]).as_matrix()
    np.testing.assert_allclose(pose[:, :3, :3], turned @ START[:3, :3], rtol=0, atol=1e-14)
    np.testing.assert_allclose(twist[:, 3:], TURN * twist[:, 1:2] / 0.5, rtol=0, atol=1e-14)
    np.testing.assert_allclose(twist_rate[:, 3:], TURN * twist_rate[:, 1:2] / 0.5, rtol=0, atol=1e-14)
    np.testing.assert_allclose(pose[[0, -1]], [START, END], rtol=0, atol=1e-15)


@pytest.mark.parametrize(("begin", "end"), [(0.0, T_C), (T_C, T_F - T_C), (T_F - T_C, T_F)])
def test_twist_and_its_rate_are_the_derivatives(begin, end):
    h = 1e-3
    t = np.linspace(begin + 3 * h, end - 3 * h, 40)
    poses = [PATH(t + k * h).T_base_tool for k in (-2, -1, 1, 2)]
    rate = (poses[0] - 8 * poses[1] + 8 * poses[2] - poses[3]) / (12 * h)
    motion = PATH(t)
    np.testing.assert_allclose(rate[:, :3, 3], motion.twist[:, :3], rtol=0, atol=1e-11)
    spin = rate[:, :3, :3] @ np.swapaxes(motion.T_base_tool[:, :3, :3], 1, 2)
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    np.testing.assert_allclose(omega, motion.twist[:, 3:], rtol=0, atol=1e-11)
    twists = [PATH(t + k * h).twist for k in (-2, -1, 1, 2)]
    rate = (twists[0] - 8 * twists[1] + 8 * twists[2] - twists[3]) / (12 * h)
    np.testing.assert_allclose(rate, motion.twist_rate, rtol=0, atol=1e-11)


def test_at_rest_at_both_ends_and_held_outside():
    for t, T in ((-1.0, START), (PATH.duration, END), (9.0, END)):
        pose, twist, twist_rate = PATH(t)
        np.testing.assert_allclose(pose, T, rtol=0, atol=1e-15)
        assert not twist.any()
        assert not twist_rate.any()


def test_any_shape_of_times_and_a_constant_orientation():
    end = START.copy()
    end[:3, 3] += 0.3, 0.0, -0.3
    path = straight_line(START, end, speed=0.25, acceleration=0.5)
    t = np.linspace(0, path.duration, 24)
    flat, shaped = path(t), path(t.reshape(2, 3, 4))
    for a, b in zip(flat, shaped, strict=True):
        np.testing.assert_array_equal(a, b.reshape(a.shape))
    expected = np.tile(START[:3, :3], (24, 1, 1))
    np.testing.assert_allclose(flat.T_base_tool[:, :3, :3], expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(flat.twist[:, 3:], 0.0, rtol=0, atol=1e-15)


def test_what_is_no_such_line_is_refused():
    with pytest.raises(LimitError, match=r"a distance of 0\.5 m is too short for 0\.5 m/s at 0\.4 m/s\^2"):
        straight_line(START, END, speed=0.5, acceleration=0.4)
    with pytest.raises(ValueError, match=re.escape("expected a line of some length")):
        straight_line(START, START, speed=0.5, acceleration=0.4)
    with pytest.raises(ValueError, match=r"expected poses\[1\] to be rigid within 1e-06"):
        straight_line(START, 1.001 * END, speed=0.25, acceleration=0.4)
    with pytest.raises(ValueError, match="expected positive speed"):
        straight_line(START, END, speed=-0.25, acceleration=0.4)
