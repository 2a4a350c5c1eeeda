"""Kinematics against the published poses, the DH table, Pinocchio, and finite differences."""

import numpy as np
import pytest

import twin
from tests.peers import Pinocchio, largest_relative_error

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
def states(robot):
    rng = np.random.default_rng(4)
    shape = (200, robot.n)
    return rng.uniform(robot.q_min, robot.q_max, shape), rng.uniform(-robot.qd_max, robot.qd_max, shape)


def dh_pose(robot, q):
    """The tool pose by the published table: a second, independent computation."""
    T = np.eye(4)
    for theta, d, a, alpha in zip(
        robot.S @ q + robot.dh.theta0, robot.dh.d, robot.dh.a, robot.dh.alpha, strict=True
    ):
        ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        T = T @ np.array(
            [[ct, -ca * st, sa * st, a * ct], [st, ca * ct, -sa * ct, a * st], [0, sa, ca, d], [0, 0, 0, 1]]
        )
    return T


@pytest.mark.parametrize("test", PRINTED_POSES)
def test_published_poses(robot, test):
    from twin.rotations import pose_vector

    pose = pose_vector(twin.forward_kinematics(robot, robot.poses[test]))
    assert np.max(np.abs(pose - PRINTED_POSES[test])) <= 1e-15


def test_urdf_is_the_published_dh_table(robot, states):
    expected = np.array([dh_pose(robot, q) for q in states[0]])
    assert np.max(np.abs(twin.forward_kinematics(robot, states[0]) - expected)) < 2e-15


def test_against_pinocchio(robot, states):
    peer = Pinocchio(robot.urdf, robot.joint_names)
    q, qd = states
    for function, expected, vectors in (
        (twin.forward_kinematics, peer.forward_kinematics, (q,)),
        (twin.jacobian, peer.jacobian, (q,)),
        (twin.jacobian_dot, peer.jacobian_dot, (q, qd)),
    ):
        rows = np.array([expected(*sample) for sample in zip(*vectors, strict=True)])
        assert largest_relative_error(function(robot, *vectors), rows) < 1e-12


def test_jacobian_is_the_derivative_of_the_pose(robot, states):
    from twin.rotations import pose_vector

    q, qd = states
    step = 1e-6
    ahead, behind = (twin.forward_kinematics(robot, q + s * step * qd, T_TOOL) for s in (1, -1))
    V = np.einsum("kij,kj->ki", twin.jacobian(robot, q, T_TOOL), qd)
    assert np.max(np.abs((ahead - behind)[:, :3, 3] / (2 * step) - V[:, :3])) < 1e-8
    R, Rdot = twin.forward_kinematics(robot, q, T_TOOL)[:, :3, :3], (ahead - behind)[:, :3, :3] / (2 * step)
    spin = np.einsum("kij,klj->kil", Rdot, R)  # Rdot R^T = [omega]x
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    assert np.max(np.abs(omega - V[:, 3:])) < 1e-8
    rates = np.einsum("kij,kj->ki", twin.pose_jacobian(robot, q, T_TOOL), qd)
    difference = (pose_vector(ahead) - pose_vector(behind)) / (2 * step)
    same_sign = np.abs(difference).max(axis=1) < 1e4  # a >= 0 flips the sign where a passes through 0
    assert same_sign.mean() > 0.9
    assert np.max(np.abs(difference - rates)[same_sign]) < 1e-8


def test_jacobian_rate_is_the_derivative_of_the_jacobian(robot, states):
    q, qd = states
    step = 1e-6
    ahead, behind = (twin.jacobian(robot, q + s * step * qd, T_TOOL) for s in (1, -1))
    assert np.max(np.abs((ahead - behind) / (2 * step) - twin.jacobian_dot(robot, q, qd, T_TOOL))) < 1e-8


def test_pose_jacobian_agrees_with_the_geometric_one(robot, states):
    """Quaternion rates and angular velocity carry the same motion: |quat_dot| = |omega| / 2."""
    q, qd = states
    rates = np.einsum("kij,kj->ki", twin.pose_jacobian(robot, q), qd)
    V = np.einsum("kij,kj->ki", twin.jacobian(robot, q), qd)
    np.testing.assert_allclose(rates[:, :3], V[:, :3], atol=1e-14)
    np.testing.assert_allclose(
        np.linalg.norm(rates[:, 3:], axis=1), np.linalg.norm(V[:, 3:], axis=1) / 2, rtol=1e-13
    )


def test_tool_composes(robot, states):
    q = states[0]
    expected = twin.forward_kinematics(robot, q) @ T_TOOL
    np.testing.assert_allclose(twin.forward_kinematics(robot, q, T_TOOL), expected, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: twin.forward_kinematics(r, np.zeros(5)), r"expected q of shape \(\.\.\., 6\), got \(5,\)"),
        (lambda r: twin.forward_kinematics(r, 1.0), r"expected q of shape"),
        (
            lambda r: twin.forward_kinematics(r, "home"),
            r"expected q to be numbers .* got 'home'",
        ),
        (lambda r: twin.jacobian(r, [0, 0, np.nan, 0, 0, 0]), r"expected q to be finite, got nan at \[2\]"),
        (lambda r: twin.jacobian_dot(r, np.zeros((2, 6)), np.zeros((3, 6))), r"shapes that fit together"),
        (lambda r: twin.forward_kinematics(r, np.zeros(6), np.eye(3)), r"T_flange_tool of shape \(4, 4\)"),
        (lambda r: twin.forward_kinematics(r, np.zeros(6), 2 * np.eye(4)), r"is not a rotation"),
        (
            lambda r: twin.inverse_dynamics(r, np.zeros(6), np.zeros(6), np.zeros(6), wrench=[1]),
            r"\(\.\.\., 6\)",
        ),
    ],
)
def test_misuse_is_one_clear_sentence(robot, call, message):
    with pytest.raises(ValueError, match=message):
        call(robot)
