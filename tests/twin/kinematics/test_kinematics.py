"""Kinematics of flange, tool and links against the DH table, Pinocchio, and finite differences."""

import numpy as np
import pytest

import twin
from tests.support.dh_arms import T_TOOL, dh_pose, random_poses_of
from tests.support.peers import Pinocchio, largest_relative_error
from tests.support.refusals import refused
from twin.robot.robot import dh_poses


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
        (lambda r: twin.forward_kinematics(r, np.zeros(6), np.eye(3)), r"T_flange_tool of shape \(4, 4\)"),
        (lambda r: twin.forward_kinematics(r, np.zeros(6), 2 * np.eye(4)), "T_flange_tool to be rigid"),
        (lambda r: dh_poses(r.dh, np.zeros(5)), "expected theta of shape (..., 6), got (5,)"),
        given=(robot,),
    )
