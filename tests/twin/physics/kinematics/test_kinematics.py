"""Kinematics of flange, tool and links against the DH table, Pinocchio, and finite differences."""

import numpy as np
import pytest

import twin
from tests.support.dh_arms import T_TOOL, dh_pose, random_poses_of
from tests.support.peers import Pinocchio, largest_relative_error
from tests.support.refusals import refused
from twin.base.errors import UnknownNameError
from twin.physics.kinematics import link_poses, mobility, wrench_torque, wrench_transform
from twin.physics.robot.robot import dh_poses

pytestmark = pytest.mark.slow("solves thousands of poses")


@pytest.fixture(scope="module")
def states(arm):
    rng = np.random.default_rng(4)
    q, _ = random_poses_of(arm, rng, 200)
    return q, rng.uniform(-arm.qd_max, arm.qd_max, q.shape)


def test_urdf_is_the_published_dh_table(arm, states):
    assert np.max(np.abs(twin.forward_kinematics(arm, states[0]) - dh_pose(arm, states[0]))) < 2e-15


def test_flange_and_links_against_pinocchio(arm, states):
    """The whole tree of the URDF; passive joints follow by the embedding, as their speeds do."""
    peer = Pinocchio(arm.urdf, arm.tree.names)
    q, qd = states
    q_tree, qd_tree = arm.tree_positions(q), qd @ arm.embedding.T
    T = np.array([peer.forward_kinematics(sample) for sample in q_tree])
    J = np.array([peer.jacobian(sample) @ arm.embedding for sample in q_tree])
    motion = zip(q_tree, qd_tree, strict=True)
    Jd = np.array([peer.jacobian_dot(*sample) @ arm.embedding for sample in motion])
    assert largest_relative_error(twin.forward_kinematics(arm, q), T) < 1e-12
    assert largest_relative_error(twin.jacobian(arm, q), J) < 1e-12
    assert largest_relative_error(twin.jacobian_dot(arm, q, qd), Jd) < 1e-12
    q = np.clip(q[:6], -2, 2)
    links = twin.kinematics.link_poses(arm, q.reshape(2, 3, arm.n)).reshape(6, -1, 4, 4)
    for found, sample in zip(links, arm.tree_positions(q), strict=True):
        peer.forward_kinematics(sample)
        theirs = [peer.data.oMi[peer.model.getJointId(name)].homogeneous for name in arm.tree.names]
        np.testing.assert_allclose(found, theirs, rtol=0, atol=2e-15)


def test_a_tool_moves_the_pose_and_its_rates(arm, states):
    q, qd = states
    step = 1e-6
    T = twin.forward_kinematics(arm, q) @ T_TOOL
    np.testing.assert_allclose(twin.forward_kinematics(arm, q, T_TOOL), T, atol=1e-15)
    ahead, behind = (twin.forward_kinematics(arm, q + s * step * qd, T_TOOL) for s in (1, -1))
    v = np.einsum("kij,kj->ki", twin.jacobian(arm, q, T_TOOL)[:, :3], qd)
    assert np.max(np.abs((ahead - behind)[:, :3, 3] / (2 * step) - v)) < 1e-8
    ahead, behind = (twin.jacobian(arm, q + s * step * qd, T_TOOL) for s in (1, -1))
    J_dot = twin.jacobian_dot(arm, q, qd, T_TOOL)
    assert np.max(np.abs((ahead - behind) / (2 * step) - J_dot)) < 1e-8
    a = twin.kinematics.acceleration(arm, q, qd, qd, T_TOOL)
    expected = np.einsum("kij,kj->ki", twin.jacobian(arm, q, T_TOOL) + J_dot, qd)
    np.testing.assert_allclose(a, expected, rtol=1e-12, atol=1e-12)


def test_misuse_is_one_clear_sentence(robot):
    refused(
        (lambda r: twin.forward_kinematics(r, np.zeros(5)), r"expected q of shape \(\.\.\., 6\), got \(5,\)"),
        (lambda r: twin.forward_kinematics(r, "home"), "expected q to be real numbers, got text"),
        (lambda r: twin.jacobian(r, [0, 0, np.nan, 0, 0, 0]), r"expected q to be finite, got nan at \[2\]"),
        (lambda r: twin.jacobian_dot(r, np.zeros((2, 6)), np.zeros((3, 6))), r"compatible shapes"),
        (lambda r: twin.forward_kinematics(r, np.zeros(6), 2 * np.eye(4)), "T_flange_tool to be rigid"),
        (lambda r: dh_poses(r.dh, np.zeros(5)), "expected theta of shape (..., 6), got (5,)"),
        given=(robot,),
    )


# Poses, Jacobians, velocities and accelerations of points on links; frames of the world and of objects.


POINT = (0.1, -0.2, 0.3)
T_WORLD_BASE = twin.pose_matrix([0.3, -0.2, 0.8, np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
T_WORLD_OBJECT = twin.pose_matrix([1.0, 0.2, 0.4, 0.5, 0.5, -0.5, 0.5])


@pytest.fixture(scope="module")
def motion():
    return np.random.default_rng(0).uniform(-0.6, 0.6, (3, 6))


@pytest.mark.parametrize(("name", "link"), [("irb140", "link_3"), ("irb1400", "link_rod")])
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
    with pytest.raises(UnknownNameError, match=r"'link_9' of irb140, .*: known are link_1, .*, tool0"):
        twin.jacobian(irb140, q, link="link_9")

    def pose(**place):
        return lambda: twin.forward_kinematics(irb140, q, **place)

    both = "expected link, or link and point, or T_flange_tool alone"
    refused(
        (pose(link="link_1", T_flange_tool=np.eye(4)), both),
        (pose(link="link_1", point=(0.0, 1.0)), "expected point to be 3 finite numbers, got [0.0, 1.0]"),
        (pose(T_world_object=np.eye(3)), "expected T_world_object of shape (4, 4), got (3, 3)"),
    )


# Joint torques of a wrench, and mobility; the transforms of twists and wrenches are in tests/published.


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_joint_torques_do_the_work_of_the_wrench(name):
    robot = twin.load(name)
    rng = np.random.default_rng(6)
    q, qd = rng.uniform(-1, 1, (2, 100, robot.n))
    F, T_tool = rng.normal(size=(100, 6)), twin.pose_matrix([0.1, -0.4, 0.2, 0.5, -0.5, 0.1, 0.7])
    tau = wrench_torque(robot, q, F, T_tool)
    V = np.einsum("kij,kj->ki", twin.jacobian(robot, q, T_tool), qd)
    np.testing.assert_allclose(np.sum(tau * qd, axis=1), np.sum(F * V, axis=1), rtol=0, atol=1e-14)
    # A wrench on the robot is the same as these torques in the equation of motion.
    zeros = np.zeros_like(q)
    pushed = twin.inverse_dynamics(robot, q, zeros, zeros, wrench=F, T_flange_tool=T_tool)
    np.testing.assert_allclose(pushed, twin.gravity_torque(robot, q) - tau, rtol=0, atol=1e-12)
    assert wrench_torque(robot, q[0], F[0], T_tool).shape == (6,)


def test_mobility_of_plain_arms_and_closed_chains():
    assert mobility(6, 6 * [1]) == 6
    assert mobility(0, []) == 0
    assert mobility(3, 4 * [1]) == -2  # a planar four-bar, whose axes are parallel: it has 1


def test_misuse_of_statics_is_one_clear_sentence(robot):
    refused(
        (lambda r: wrench_transform(np.eye(6)), "expected T_AB of shape (..., 4, 4), got (6, 6)"),
        (lambda r: wrench_torque(r, np.zeros(6), np.ones(3)), "expected wrench of shape (..., 6), got (3,)"),
        (lambda r: wrench_torque(r, np.zeros(6), [0, 0, np.nan, 0, 0, 0]), "expected a finite wrench"),
        (lambda r: mobility(-1, [1]), "expected an integer number of moving links, got -1"),
        (lambda r: mobility(2, [1, 6]), "expected joints of 1 to 5 freedoms, got 6"),
        given=(robot,),
    )
