"""The models that ignore a loop, against Pinocchio on the tree without lever and rod."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import twin
from tests.support.parts_of_an_arm import with_followers
from tests.support.peers import Pinocchio, Reduced, largest_relative_error
from tests.support.random_trees import random_urdf
from tests.support.sample_loads import BODY
from twin.errors import LimitError, RobotError
from twin.robot.dh import dh_poses
from twin.robot.evaluation import uncompiled
from twin.robot.limits import check_folding, check_position
from twin.robot.loops import open_chain, without_loop_links


@pytest.fixture(scope="module")
def arm():
    return uncompiled(twin.load("irb1400"))


@pytest.fixture
def light(arm):
    """Pinocchio's tree with lever and rod that weigh nothing."""
    peer = Pinocchio(arm.urdf, arm.tree.names)
    for name in ("joint_3", "joint_rod"):
        peer.model.inertias[peer.model.getJointId(name)] = pin.Inertia.Zero()
    peer.data = peer.model.createData()
    return peer


def rows(function, *vectors):
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def agrees(robot, peer, rng):
    q, qd, qdd = rng.uniform(-1, 1, (3, 5, robot.n))
    for function, vectors in (
        (twin.inverse_dynamics, (q, qd, qdd)),
        (twin.mass_matrix, (q,)),
        (twin.coriolis_matrix, (q, qd)),
        (twin.gravity_torque, (q,)),
        (twin.forward_kinematics, (q,)),
        (twin.jacobian, (q,)),
    ):
        expected = rows(getattr(peer, function.__name__), *vectors)
        assert largest_relative_error(function(robot, *vectors), expected) < 1e-12, function.__name__


def test_without_the_mass_of_lever_and_rod(arm, light, rng):
    robot = without_loop_links(arm)
    agrees(uncompiled(robot), Reduced(arm, light), rng)
    lost = {name for i, name in enumerate(arm.tree.links) if not robot.tree.inertias[i].any()}
    assert lost == {"link_lever", "link_rod"}
    assert robot.loops == arm.loops
    assert arm.tree.inertias.all(axis=0)[0], "the true robot keeps its masses"


def test_the_open_chain_is_the_six_joints_up_to_the_flange(arm, light, rng):
    """Pinocchio's own chain, lever and rod locked and weightless."""
    robot = open_chain(arm)
    assert robot.loops == ()
    assert robot.kernels is not arm.kernels
    robot = uncompiled(robot)
    peer = Pinocchio(arm.urdf, robot.tree.names)
    locked = [light.model.getJointId(name) for name in ("joint_3", "joint_rod")]
    peer.model = pin.buildReducedModel(light.model, locked, np.zeros(8))
    peer.data = peer.model.createData()
    chain = ("joint_1", "joint_2", "joint_elbow", "joint_4", "joint_5", "joint_6")
    peer.order = [peer.model.joints[peer.model.getJointId(name)].idx_q for name in chain]
    peer.back = np.argsort(peer.order)
    agrees(robot, peer, rng)


def test_dh_angles_of_the_open_chain_are_its_joint_angles(arm, rng):
    """Uncoupled: forward kinematics by the table, and the closed-form inverse, meet the tree."""
    robot = uncompiled(open_chain(arm))
    np.testing.assert_array_equal(robot.dh_coupling, np.eye(6))
    q = rng.uniform(-1, 1, (20, 6))
    T = twin.forward_kinematics(robot, q)
    theta = twin.kinematics.dh_from_joint_angles(robot, q)
    np.testing.assert_allclose(dh_poses(robot.dh, theta)[:, -1], T, rtol=0, atol=1e-14)
    found = twin.inverse_kinematics(robot, T, near=q, limits=False)
    np.testing.assert_allclose(found, q, rtol=0, atol=1e-9)  # some poses are near singular ones
    np.testing.assert_allclose(twin.forward_kinematics(robot, found), T, rtol=0, atol=1e-14)


def test_the_open_chain_has_no_limit_between_its_arms(arm):
    apart = np.deg2rad([0, -70, 70, 0, 0, 0])
    check_position(open_chain(arm), apart)
    with pytest.raises(LimitError, match="joint_elbow"):
        check_position(without_loop_links(arm), apart)
    for side in (-1, 1):
        check_folding(open_chain(arm), side * np.deg2rad([0, 0, 80, 0, 0, 0]))


def test_payload_and_mounting_stay(arm, rng):
    q = rng.uniform(-1, 1, 6)
    for model in (without_loop_links, open_chain):
        loaded = model(arm.mounted("wall").with_payload(BODY))
        again, bare = model(arm).mounted("wall").with_payload(BODY), model(arm.mounted("wall"))
        for found, expected in ((loaded, again), (loaded.with_payload(None), bare)):
            g, expected = (twin.gravity_torque(uncompiled(one), q) for one in (found, expected))
            np.testing.assert_allclose(g, expected, rtol=1e-14, atol=1e-12)


def test_open_chain_of_a_robot_without_a_loop_is_itself(robot):
    for model in (without_loop_links, open_chain):
        np.testing.assert_array_equal(model(robot).tree.inertias, robot.tree.inertias)
        np.testing.assert_array_equal(model(robot).embedding, robot.embedding)


def test_followers_stay_in_the_open_chain(arm, rng):
    """They move with the same posture as before, and keep their masses."""
    whole = uncompiled(with_followers(arm))
    light, chain, bare = (
        uncompiled(one) for one in (without_loop_links(arm), open_chain(whole), without_loop_links(whole))
    )
    q = rng.uniform(-0.5, 0.5, 6)
    carried = whole.embedding[list(whole.tree.carriers(whole.tree.flange_joint))]
    torques = twin.gravity_torque(bare, q)
    assert np.max(np.abs(torques - twin.gravity_torque(light, q))) > 1.0
    np.testing.assert_allclose(carried.T @ twin.gravity_torque(chain, carried @ q), torques, atol=1e-12)


def test_a_branched_tree_and_dependent_motors_make_no_chain(arm, tmp_path):
    path = tmp_path / "random.urdf"
    path.write_text(random_urdf(np.random.default_rng(1), 6))
    tree = twin.load(path)
    carriers = len(tree.tree.carriers(tree.tree.flange_joint))
    assert carriers < 6
    told = rf"robot 'random' has {carriers} joints from the base to its flange, expected 6"
    with pytest.raises(RobotError, match=told):
        open_chain(tree)
    G = arm.embedding.copy()
    G[arm.tree.names.index("joint_elbow")] = [0, 1, 0, 0, 0, 0]
    with pytest.raises(RobotError, match=r"its 6 motors do not move all joints from the base"):
        open_chain(replace(arm, embedding=G))
