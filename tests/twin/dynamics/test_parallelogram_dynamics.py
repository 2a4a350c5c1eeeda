"""The IRB 1400's dynamics, its loop closed: against a solver for loops, and any embedding of any tree.

tests/test_agreement.py compares it with the trees of Pinocchio and MuJoCo, reduced by G.
"""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import twin
from scenarios.checks.motion_range import random_positions
from tests.support.peers import Pinocchio, PinocchioLoops, Reduced, largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from tests.support.sample_loads import BODY
from twin.multibody.tree import frozen


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb1400")


@pytest.fixture(scope="module")
def states(arm):
    """Random positions within all limits, velocities, accelerations, torques."""
    rng = np.random.default_rng(1)
    q = random_positions(arm, rng, 50)
    qd, qdd, tau = rng.uniform(-1, 1, (3, 50, arm.n))
    return q, qd * arm.qd_max, 20 * qdd, tau * arm.tau_max


def rows(function, *vectors):
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def test_the_six_angles_of_the_pendant_and_the_eight_of_the_tree(arm):
    assert arm.joint_names == ("joint_1", "joint_2", "joint_3", "joint_4", "joint_5", "joint_6")
    turns = {f"joint_{k + 1}": row for k, row in enumerate(np.eye(6))}  # in the angles of the teach pendant
    turns |= {
        "joint_elbow": turns["joint_3"] - turns["joint_2"],
        "joint_rod": turns["joint_2"] - turns["joint_3"],
    }
    np.testing.assert_array_equal(arm.embedding, [turns[name] for name in arm.tree.names])
    np.testing.assert_array_equal(arm.embedding_offset, np.zeros(8))
    assert [arm.tree.names[i] for i in arm.passive] == ["joint_elbow", "joint_rod"]
    np.testing.assert_allclose([arm.passive_max, -arm.passive_min], np.deg2rad(75), rtol=1e-15)
    q = np.random.default_rng(0).normal(size=(3, 2, 6))
    np.testing.assert_array_equal(arm.passive_angles(q)[..., 0], q[..., 2] - q[..., 1])
    np.testing.assert_array_equal(arm.passive_angles(q)[..., 1], q[..., 1] - q[..., 2])
    np.testing.assert_array_equal(arm.tree_positions(q)[..., list(arm.driven)], q)


@pytest.mark.parametrize(("where", "payload"), [("floor", None), ("wall", BODY), ("inverted", None)])
def test_closed_loop_solver_of_pinocchio_agrees(arm, states, where, payload):
    """It is told of the loop and of the motors, and finds the passive joints' accelerations itself."""
    robot = arm.mounted(where).with_payload(payload)
    peer = Reduced(arm, PinocchioLoops(arm.urdf, arm.tree.names, arm.loops))
    model = peer.peer.model
    model.gravity.linear[:] = robot.gravity
    if payload is not None:
        flange = model.frames[model.getFrameId("tool0")]
        body = pin.Inertia(payload.mass, payload.com, payload.inertia)
        model.appendBodyToJoint(flange.parentJoint, body, flange.placement)
        peer.peer.data = model.createData()
    q, qd, qdd, tau = states
    # The torques of the drives accelerate the wrist above all; for even accelerations M's condition is 3e6.
    for torques, tolerance in ((tau, 1e-12), (twin.inverse_dynamics(robot, q, qd, qdd), 1e-11)):
        expected = rows(peer.loop_dynamics, q, qd, torques)
        found = twin.forward_dynamics(robot, q, qd, torques) @ arm.embedding.T
        assert largest_relative_error(found, expected) < tolerance


@pytest.mark.parametrize("seed", range(2))
def test_any_embedding_of_any_tree(tmp_path, seed):
    """Weights of all sizes, an offset, joints that follow several others: against the same reduction."""
    rng = np.random.default_rng(seed)
    joints = int(rng.integers(4, 8))
    urdf = tmp_path / "tree.urdf"
    urdf.write_text(random_urdf(rng, joints))
    tree = twin.load(urdf)
    n = joints - 2
    driven = rng.permutation(joints)[:n]
    G = rng.normal(size=(joints, n))
    G[driven] = np.eye(n)
    limits = {name: frozen(np.full(n, np.inf)) for name in ("q_min", "q_max", "qd_max", "tau_max")}
    offset, coupling = frozen(rng.normal(size=joints)), frozen(np.eye(n))
    parts = dict(embedding=frozen(G), embedding_offset=offset, driven=tuple(driven.tolist()))  # noqa: C408
    robot = interpreted(replace(tree, **parts, dh_coupling=coupling, **limits))
    peer = Reduced(robot, Pinocchio(urdf, tree.tree.names))
    q, qd, qdd, tau = rng.normal(size=(4, 5, n))
    np.testing.assert_allclose(robot.tree_positions(q), q @ G.T + offset, rtol=0, atol=1e-14)
    assert set(robot.passive) == set(range(joints)) - set(driven.tolist())
    for function, vectors, tolerance in (
        (twin.inverse_dynamics, (q, qd, qdd), 1e-12),
        (twin.mass_matrix, (q,), 1e-12),
        (twin.coriolis_matrix, (q, qd), 1e-12),
        (twin.gravity_torque, (q,), 1e-12),
        (twin.forward_dynamics, (q, qd, tau), 1e-11),
        (twin.forward_kinematics, (q,), 1e-12),
        (twin.jacobian, (q,), 1e-12),
        (twin.jacobian_dot, (q, qd), 1e-12),
    ):
        expected = rows(getattr(peer, function.__name__), *vectors)
        error = largest_relative_error(function(robot, *vectors), expected)
        assert error < tolerance, (function.__name__, error)
    energy = rows(peer.energy, q, qd)[:, None]
    assert largest_relative_error(twin.energy(robot, q, qd)[:, None], energy) < 1e-12


def test_another_embedding_has_other_kernels(arm):
    """They are kept by what they are made of: G and its offset are folded into them."""
    G, g0 = arm.embedding.copy(), arm.embedding_offset.copy()
    G[2, 1], g0[2] = 1.0, 0.1
    changes = {"embedding": frozen(G), "embedding_offset": frozen(g0), "loops": ()}
    others = [replace(arm, **{name: value}) for name, value in changes.items()]
    assert replace(arm, payload=BODY).kernels is arm.kernels
    assert len({id(robot.kernels) for robot in (arm, *others)}) == 4
    q = np.full(6, 0.2)
    expected = Pinocchio(arm.urdf, arm.tree.names).forward_kinematics(arm.embedding @ q + g0)
    np.testing.assert_allclose(twin.forward_kinematics(others[1], q), expected, rtol=0, atol=1e-14)
