"""Forces and moments in the joints, against Pinocchio, torques, momentum and the engine's constraint."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.dh_arms import times
from tests.support.peers import Pinocchio
from tests.support.random_trees import interpreted
from twin.base.errors import RobotError, UnknownNameError
from twin.physics.engine.body import world_axes
from twin.physics.kinematics.forward import link_poses
from twin.physics.multibody.tree import frozen

ARMS = ("irb140", "irb1400")
LOAD = twin.Payload(5.0, (0.02, -0.01, 0.1), np.diag([0.02, 0.03, 0.01]))


def motions(robot, count, seed=0):
    """Return random joint angles, speeds and accelerations, (count, n) each, with closed loops unfolded."""
    rng = np.random.default_rng(seed)
    return (scale * rng.uniform(-1, 1, (count, robot.n)) for scale in (0.4, 2.0, 5.0))


@pytest.mark.parametrize("name", ARMS)
def test_wrenches_agree_with_pinocchio(name):
    """Closed loops are opened, so that passive joints bear no pins."""
    robot = replace(twin.load(name), loops=())
    peer = Pinocchio(robot.urdf, robot.tree.names)
    q, qd, qdd = motions(robot, 20)
    motion = robot.tree_positions(q), qd @ robot.embedding.T, qdd @ robot.embedding.T
    joints = [peer.model.getJointId(name) for name in robot.tree.names]
    wrenches = twin.joint_wrenches(robot, q, qd, qdd).joints
    for found, *sample in zip(wrenches, *motion, strict=True):
        peer.inverse_dynamics(*sample)
        expected = [peer.data.f[joint].vector for joint in joints]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


def test_forces_on_every_link_change_its_momentum(irb1400):
    """Parent, children, gravity and the pin act on a link, in base axes."""
    robot = irb1400.with_payload(LOAD)
    q, qd, qdd = (vector[0] for vector in motions(robot, 1))
    tree = robot.tree

    def moments(t):
        T = link_poses(robot, q + qd * t + qdd * t**2 / 2)
        return tree.inertias[:, :1] * T[:, :3, 3] + times(T[:, :3, :3], tree.inertias[:, 1:4])

    dt = 1e-3
    momentum_rates = (moments(dt) - 2 * moments(0.0) + moments(-dt)) / dt**2
    wrenches = twin.joint_wrenches(robot, q, qd, qdd, frame="base")
    forces = wrenches.joints[:, :3] + tree.inertias[:, :1] * robot.gravity
    for child, parent in enumerate(tree.parents):
        if parent >= 0:
            forces[parent] -= wrenches.joints[child, :3]
    for loop in robot.loops:
        first, second = loop.joints
        forces[first] += wrenches.pins[loop.name]
        forces[second] -= wrenches.pins[loop.name]
    np.testing.assert_allclose(forces, momentum_rates, rtol=0, atol=1e-3)


def test_wrench_of_the_foundation_is_that_of_the_first_joint_and_the_weight_of_the_base(irb140):
    """The first joint is moved away from the origin of the base, where that of the built-in arms is."""
    poses = irb140.tree.T_parent_joint.copy()
    poses[0, :3, 3] = 0.1, -0.2, 0.3
    robot = interpreted(replace(irb140, tree=replace(irb140.tree, T_parent_joint=frozen(poses))))
    q, qd, qdd = (vector[0] for vector in motions(robot, 1))
    wrenches = twin.joint_wrenches(robot, q, qd, qdd, frame="base")
    force, moment = wrenches["joint_1"][:3], wrenches["joint_1"][3:]
    base, weight = robot.tree.base_inertia, -robot.tree.base_inertia[0] * robot.gravity
    moment = moment + np.cross(robot.tree.T_parent_joint[0][:3, 3], force)
    moment -= np.cross(base[1:4], robot.gravity)
    expected = np.concatenate([force + weight, moment])
    np.testing.assert_allclose(wrenches.base, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


def test_force_of_the_pin_is_that_of_the_engines_constraint(irb1400):
    """The engine's force across the arm's plane is arbitrary, so that only the other components agree."""
    robot = irb1400.with_payload(LOAD)
    rng = np.random.default_rng(1)
    with twin.Simulation(robot) as simulation:
        client = simulation._client
        for _ in range(20):
            q, qd = rng.uniform(-0.4, 0.4, 6), rng.uniform(-1, 1, 6)
            simulation.reset(q, qd)
            simulation.step(rng.uniform(-200, 200, 6))
            qdd = (simulation.state()[1] - qd) / 1e-3
            across = np.array([-np.sin(q[0]), np.cos(q[0]), 0.0])
            of_world = client.getConstraintState(client.getConstraintUniqueId(0))
            expected = world_axes(robot).T @ of_world
            expected -= across * (across @ expected)
            force = -twin.joint_wrenches(robot, q, qd, qdd).pins["parallelogram"]
            np.testing.assert_allclose(force, expected, rtol=0, atol=1e-7)


def test_joints_are_found_by_their_names_or_links_and_misuse_is_rejected(irb140):
    still = np.zeros((3, 6))
    with pytest.raises(ValueError, match="expected frame 'link' or 'base', got 'tool'"):
        twin.joint_wrenches(irb140, *still, frame="tool")
    wrenches = twin.joint_wrenches(irb140, *still)
    for name in ("joint_2", "link_2", "2"):
        np.testing.assert_array_equal(wrenches[name], wrenches.joints[1])
    with pytest.raises(UnknownNameError, match=r"'joint_7': known are joint_1, .*, link_6"):
        wrenches["joint_7"]
    with pytest.raises(RobotError, match="has no dynamics"):
        twin.joint_wrenches(twin.load("rx90"), *still)
