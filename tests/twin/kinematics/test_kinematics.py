"""Kinematics against the published poses, the DH table, Pinocchio, and finite differences."""

import numpy as np
import pytest

import twin
from tests.support.dh_arms import dh_pose, random_poses_of
from tests.support.peers import Pinocchio, largest_relative_error
from twin.rotations.rotations import pose_vector

# Aliaga 2019, sections 3.1.4.1 and 3.1.2.3: pose [x y z a b c d] of tests 1 and 3, as printed.
PRINTED_POSES = {
    "test_1": [
        0.256169020979862, 0.146951811198975, 0.719041733432580,
        0.355266700974361, 0.220219321995462, 0.809549214980808, 0.412212433003434,
    ],
    "test_3": [
        0.651650430407853, -0.143535605813641, 0.481847014812847,
        0.542604000206256, 0.158528784053503, 0.703280404944469, 0.431098823482308,
    ],
}  # fmt: skip
T_TOOL = np.array([[0.0, 0, 1, 0.05], [1, 0, 0, -0.02], [0, 1, 0, 0.12], [0, 0, 0, 1]])


@pytest.fixture(scope="module")
def states(arm):
    rng = np.random.default_rng(4)
    q, _ = random_poses_of(arm, rng, 200)
    return q, rng.uniform(-arm.qd_max, arm.qd_max, q.shape)


@pytest.mark.parametrize("test", PRINTED_POSES)
def test_published_poses(robot, test):
    pose = pose_vector(twin.forward_kinematics(robot, robot.poses[test]))
    assert np.max(np.abs(pose - PRINTED_POSES[test])) <= 1e-15


def test_urdf_is_the_published_dh_table(arm, states):
    assert np.max(np.abs(twin.forward_kinematics(arm, states[0]) - dh_pose(arm, states[0]))) < 2e-15


def test_against_pinocchio(arm, states):
    """The whole tree of the URDF; passive joints follow by the embedding, as their speeds do."""
    peer = Pinocchio(arm.urdf, arm.tree.names)
    q, qd = states
    q_tree, qd_tree = arm.tree_positions(q), qd @ arm.embedding.T
    T = np.array([peer.forward_kinematics(sample) for sample in q_tree])
    J = np.array([peer.jacobian(sample) @ arm.embedding for sample in q_tree])
    Jd = np.array(
        [peer.jacobian_dot(*sample) @ arm.embedding for sample in zip(q_tree, qd_tree, strict=True)]
    )
    assert largest_relative_error(twin.forward_kinematics(arm, q), T) < 1e-12
    assert largest_relative_error(twin.jacobian(arm, q), J) < 1e-12
    assert largest_relative_error(twin.jacobian_dot(arm, q, qd), Jd) < 1e-12


def test_jacobian_is_the_derivative_of_the_pose(arm, states):
    q, qd = states
    step = 1e-6
    ahead, behind = (twin.forward_kinematics(arm, q + s * step * qd, T_TOOL) for s in (1, -1))
    V = np.einsum("kij,kj->ki", twin.jacobian(arm, q, T_TOOL), qd)
    assert np.max(np.abs((ahead - behind)[:, :3, 3] / (2 * step) - V[:, :3])) < 1e-8
    R, Rdot = twin.forward_kinematics(arm, q, T_TOOL)[:, :3, :3], (ahead - behind)[:, :3, :3] / (2 * step)
    spin = np.einsum("kij,klj->kil", Rdot, R)  # Rdot R^T = [omega]x
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    assert np.max(np.abs(omega - V[:, 3:])) < 1e-8
    rates = np.einsum("kij,kj->ki", twin.kinematics.pose_jacobian(arm, q, T_TOOL), qd)
    difference = (pose_vector(ahead) - pose_vector(behind)) / (2 * step)
    same_sign = np.abs(difference).max(axis=1) < 1e4  # a >= 0 flips the sign where a passes through 0
    assert same_sign.mean() > 0.9
    assert np.max(np.abs(difference - rates)[same_sign]) < 1e-8


def test_jacobian_rate_is_the_derivative_of_the_jacobian(arm, states):
    q, qd = states
    step = 1e-6
    ahead, behind = (twin.jacobian(arm, q + s * step * qd, T_TOOL) for s in (1, -1))
    assert np.max(np.abs((ahead - behind) / (2 * step) - twin.jacobian_dot(arm, q, qd, T_TOOL))) < 1e-8


def test_pose_jacobian_agrees_with_the_geometric_one(arm, states):
    """Quaternion rates and angular velocity carry the same motion: |quat_dot| = |omega| / 2."""
    q, qd = states
    rates = np.einsum("kij,kj->ki", twin.kinematics.pose_jacobian(arm, q), qd)
    V = np.einsum("kij,kj->ki", twin.jacobian(arm, q), qd)
    np.testing.assert_allclose(rates[:, :3], V[:, :3], atol=1e-14)
    np.testing.assert_allclose(
        np.linalg.norm(rates[:, 3:], axis=1), np.linalg.norm(V[:, 3:], axis=1) / 2, rtol=1e-13
    )


def test_tool_composes(arm, states):
    q = states[0]
    expected = twin.forward_kinematics(arm, q) @ T_TOOL
    np.testing.assert_allclose(twin.forward_kinematics(arm, q, T_TOOL), expected, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: twin.forward_kinematics(r, np.zeros(5)), r"expected q of shape \(\.\.\., 6\), got \(5,\)"),
        (lambda r: twin.forward_kinematics(r, 1.0), r"expected q of shape"),
        (
            lambda r: twin.forward_kinematics(r, "home"),
            "expected q to be real numbers, got text",
        ),
        (lambda r: twin.jacobian(r, [0, 0, np.nan, 0, 0, 0]), r"expected q to be finite, got nan at \[2\]"),
        (lambda r: twin.jacobian_dot(r, np.zeros((2, 6)), np.zeros((3, 6))), r"compatible shapes"),
        (lambda r: twin.forward_kinematics(r, np.zeros(6), np.eye(3)), r"T_flange_tool of shape \(4, 4\)"),
        (
            lambda r: twin.forward_kinematics(r, np.zeros(6), 2 * np.eye(4)),
            "T_flange_tool to be rigid",
        ),
        (
            lambda r: twin.inverse_dynamics(r, np.zeros(6), np.zeros(6), np.zeros(6), wrench=[1]),
            r"\(\.\.\., 6\)",
        ),
    ],
)
def test_misuse_is_one_clear_sentence(robot, call, message):
    with pytest.raises(ValueError, match=message):
        call(robot)
