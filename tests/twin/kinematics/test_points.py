"""Poses, Jacobians, velocities and accelerations of points on links; frames of the world and of objects."""

import numpy as np
import pytest

import twin
from tests.support.refusals import refused
from twin.errors import UnknownNameError
from twin.kinematics.forward import link_poses

POINT = (0.1, -0.2, 0.3)
T_WORLD_BASE = twin.pose_matrix([0.3, -0.2, 0.8, np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
T_WORLD_OBJECT = twin.pose_matrix([1.0, 0.2, 0.4, 0.5, 0.5, -0.5, 0.5])


@pytest.fixture(scope="module")
def motion():
    return np.random.default_rng(0).uniform(-0.6, 0.6, (3, 6))


@pytest.mark.parametrize(
    ("name", "link"),
    [("irb140", "link_1"), ("irb140", "link_3"), ("irb1400", "link_lever"), ("irb1400", "link_rod")],
)
def test_motion_of_a_point_agrees_with_differences(name, link, motion):
    robot, (q, qd, qdd), h = twin.load(name), motion, 1e-5
    place = {"link": link, "point": POINT}

    def point(t):
        return twin.forward_kinematics(robot, q + qd * t + qdd * t**2 / 2, **place)[:3, 3]

    T = link_poses(robot, q)[robot.tree.links.index(link)]
    np.testing.assert_allclose(point(0.0), T[:3, :3] @ POINT + T[:3, 3], rtol=0, atol=1e-15)
    v, omega = np.split(twin.kinematics.velocity(robot, q, qd, **place), 2)
    np.testing.assert_allclose(v, (point(h) - point(-h)) / (2 * h), rtol=0, atol=1e-9)
    a = twin.kinematics.acceleration(robot, q, qd, qdd, **place)[:3]
    np.testing.assert_allclose(a, (point(h) - 2 * point(0.0) + point(-h)) / h**2, rtol=0, atol=1e-5)
    moved = [twin.forward_kinematics(robot, q + sign * h * qd, **place) for sign in (1, -1)]
    turn = (moved[0][:3, :3] - moved[1][:3, :3]) @ T[:3, :3].T / (2 * h)

    np.testing.assert_allclose(omega, [turn[2, 1], turn[0, 2], turn[1, 0]], rtol=0, atol=1e-9)


def test_poses_in_the_world_and_in_an_object_are_products_of_poses(irb140, motion):
    q = motion
    frames = {"T_world_base": T_WORLD_BASE, "T_world_object": T_WORLD_OBJECT}
    T = twin.forward_kinematics(irb140, q)
    in_object = twin.forward_kinematics(irb140, q, **frames)
    np.testing.assert_allclose(T_WORLD_OBJECT @ in_object, T_WORLD_BASE @ T, rtol=0, atol=1e-15)
    found = twin.inverse_kinematics(irb140, in_object, near=q, **frames)
    np.testing.assert_allclose(found, q, rtol=0, atol=1e-13)


def test_misuse_is_rejected_with_one_sentence(irb140, motion):
    q = motion[0]
    with pytest.raises(UnknownNameError, match=r"'link_9' of irb140: known are link_1, .*, link_6"):
        twin.jacobian(irb140, q, link="link_9")

    def pose(**place):
        return lambda: twin.forward_kinematics(irb140, q, **place)

    both = "expected link, or link and point, or T_flange_tool alone"
    refused(
        (pose(point=POINT), both),
        (pose(link="link_1", T_flange_tool=np.eye(4)), both),
        (pose(link="link_1", point=(0.0, 1.0)), "expected point to be 3 finite numbers, got [0.0, 1.0]"),
        (pose(T_world_object=np.eye(3)), "expected T_world_object of shape (4, 4), got (3, 3)"),
    )
