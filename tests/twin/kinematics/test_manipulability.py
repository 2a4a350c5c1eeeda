"""Manipulability, its ellipsoids, and what singular configurations lose."""

import numpy as np
import pytest

import twin
from tests.support.dh_arms import T_TOOL
from tests.support.laboratory_arms import laboratory_arm
from tests.support.random_trees import random_urdf
from tests.support.refusals import refused
from twin.kinematics.manipulability import (
    force_ellipsoid,
    manipulability_measure,
    singular_configuration,
    velocity_ellipsoid,
)


@pytest.fixture(scope="module")
def states(robot):
    return np.random.default_rng(8).uniform(robot.q_min, robot.q_max, (60, robot.n))


def test_measure_is_the_determinant_and_yoshikawas_root_in_any_shape(robot, states):
    J = twin.jacobian(robot, states, T_TOOL)
    w = manipulability_measure(robot, states, T_TOOL)
    np.testing.assert_allclose(w, np.abs(np.linalg.det(J)), rtol=0, atol=1e-15)
    for part, rows in (("linear", slice(0, 3)), ("angular", slice(3, 6))):
        of_part = np.sqrt(np.linalg.det(J[:, rows] @ np.swapaxes(J[:, rows], 1, 2)))
        found = manipulability_measure(robot, states, T_TOOL, part=part)
        np.testing.assert_allclose(found, of_part, rtol=1e-12)
    q = states[:12].reshape(2, 3, 2, 6)
    np.testing.assert_array_equal(manipulability_measure(robot, q, T_TOOL).ravel(), w[:12])
    moving = velocity_ellipsoid(robot, q, part="linear")
    assert (moving.axes.shape, moving.lengths.shape) == ((2, 3, 2, 3, 3), (2, 3, 2, 3))
    one = velocity_ellipsoid(robot, q[1, 2, 1], part="linear")
    np.testing.assert_array_equal(moving.lengths[1, 2, 1], one.lengths)


@pytest.mark.parametrize("part", ["all", "linear", "angular"])
def test_ellipsoids_hold_what_unit_balls_make(robot, states, part):
    rows = {"all": slice(0, 6), "linear": slice(0, 3), "angular": slice(3, 6)}[part]
    J = twin.jacobian(robot, states, T_TOOL)[:, rows]
    rng = np.random.default_rng(9)
    speeds, torques = robot.qd_max, robot.tau_max
    moving = velocity_ellipsoid(robot, states, T_TOOL, part=part, speeds=speeds)
    pushing = force_ellipsoid(robot, states, T_TOOL, part=part, torques=torques)
    m = J.shape[1]
    products = np.swapaxes(moving.axes, 1, 2) @ moving.axes
    np.testing.assert_allclose(products, np.tile(np.eye(m), (len(J), 1, 1)), rtol=0, atol=3e-15)

    qd = rng.normal(size=(len(J), robot.n))
    qd *= speeds / np.linalg.norm(qd, axis=1)[:, None]
    V = np.einsum("kij,kj->ki", J, qd)
    inside = np.linalg.norm(np.einsum("kji,kj->ki", moving.axes, V) / moving.lengths, axis=1)
    assert np.all(inside <= 1 + 1e-9)
    # Each semi-axis is on the boundary: the least joint speeds that make it have norm 1.
    for i in range(m):
        end = moving.axes[:, :, i] * moving.lengths[:, i : i + 1]
        least = [
            np.linalg.norm(np.linalg.pinv(A * speeds, rcond=1e-14) @ b) for A, b in zip(J, end, strict=True)
        ]
        np.testing.assert_allclose(least, 1, rtol=1e-9)
        F = pushing.axes[:, :, i] * pushing.lengths[:, i : i + 1]
        tau = np.einsum("kji,kj->ki", J, F)
        np.testing.assert_allclose(np.linalg.norm(tau / torques, axis=1), 1, rtol=1e-9)


def test_a_singular_wrist_loses_one_turn_and_one_close_to_it_none(robot):
    q = np.deg2rad([10.0, 20, -30, 40, 0, 50])
    found = singular_configuration(robot, q, T_TOOL)
    assert found.rank == 5
    assert found.values[-1] < 1e-15
    assert manipulability_measure(robot, q, T_TOOL) < 1e-16
    J = twin.jacobian(robot, q, T_TOOL)
    assert np.max(np.abs(found.lost @ J)) < 1e-15
    idle = found.idle[0] * np.sign(found.idle[0, 3])
    np.testing.assert_allclose(idle, (0, 0, 0, 0.5**0.5, 0, -(0.5**0.5)), rtol=0, atol=1e-14)
    assert force_ellipsoid(robot, q, T_TOOL).lengths[-1] == np.inf
    regular = manipulability_measure(robot, q + np.array([0, 0, 0, 0, np.pi / 2, 0]))
    for close in (1e-4, 1e-10):
        q[4] = close
        assert singular_configuration(robot, q).rank == 6
        np.testing.assert_allclose(manipulability_measure(robot, q) / regular, np.sin(close), rtol=1e-5)


def test_a_stretched_arm_with_a_straight_wrist_loses_one_or_two(robot):
    q = np.array([0.3, 0.2, -np.pi / 2, 0.4, 0.0, -0.7])  # lower arm, forearm and axis 6 in one line
    assert singular_configuration(robot, q).rank == 5  # bending the elbow makes up for the turn lost
    q[3] = 0.0  # axis 5 is parallel to axes 2 and 3, which it therefore repeats
    found = singular_configuration(robot, q)
    assert found.rank == 4
    assert found.lost.shape == found.idle.shape == (2, 6)
    assert np.max(np.abs(twin.jacobian(robot, q) @ found.idle.T)) < 1e-15
    # At the wrist centre it cannot move along the line of the two arms: the force from the shoulder out.
    T_wrist = np.eye(4)
    T_wrist[2, 3] = -robot.dh.d[5]
    linear = singular_configuration(robot, q, T_wrist, part="linear")
    wrist = twin.forward_kinematics(robot, q, T_wrist)[:3, 3]
    shoulder = np.array([robot.dh.a[0] * np.cos(q[0]), robot.dh.a[0] * np.sin(q[0]), robot.dh.d[0]])
    outwards = (wrist - shoulder) / np.linalg.norm(wrist - shoulder)
    assert linear.rank == 2
    np.testing.assert_allclose(np.abs(linear.lost[0] @ outwards), 1, rtol=0, atol=1e-14)


def test_arms_with_fewer_and_more_joints(load):
    five = laboratory_arm("youbot")
    q = np.arange(1.0, 6)
    found = singular_configuration(five, q)
    assert (found.rank, found.lost.shape, found.idle.shape) == (5, (1, 6), (0, 5))
    assert manipulability_measure(five, q) == 0.0
    assert manipulability_measure(five, q, part="linear") > 1e-4
    assert velocity_ellipsoid(five, q).lengths[-1] == 0.0
    assert np.isinf(force_ellipsoid(five, q).lengths).tolist() == [False] * 5 + [True]

    eight = load(random_urdf(np.random.default_rng(3), 8, kinds=("revolute",)), "eight.urdf")
    carriers = len(eight.tree.carriers(eight.tree.flange_joint))
    found = singular_configuration(eight, np.linspace(0.1, 0.8, 8))
    assert found.rank == min(6, carriers)
    assert found.idle.shape == (8 - found.rank, 8)


def test_misuse_is_one_clear_sentence(robot):
    q = np.zeros(6)
    refused(
        (lambda: manipulability_measure(robot, q, part="force"), "unknown part of the twist 'force'"),
        (lambda: singular_configuration(robot, [q, q]), "expected q of shape (6,), got (2, 6)"),
        (lambda: velocity_ellipsoid(robot, q, speeds=q), "expected speeds above 0, got"),
        (lambda: force_ellipsoid(robot, q, torques=q - 1), "expected torques above 0, got"),
    )
