"""Forces and moments in the joints against PyBullet: its inverse dynamics, and its joint sensors."""

from dataclasses import replace

import numpy as np
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation

import twin
from twin.engine.body import create_body, remove_hidden_physics
from twin.multibody.tree import frozen

LOAD = twin.Payload(5.0, (0.02, -0.01, 0.1), np.diag([0.02, 0.03, 0.01]))


@pytest.fixture
def client():
    world = BulletClient(pybullet.DIRECT)
    yield world
    world.disconnect()


def cut_open(robot, joint):
    """Return the arm with six massless joints before a joint: three sliding, three turning, all at 0.

    Their torques are the wrench at the joint, in the axes of the joint's frame.
    """
    tree = robot.tree

    def shifted(index):
        return index if index < joint else index + 6

    added = np.tile(np.eye(4), (6, 1, 1))
    added[0] = tree.T_parent_joint[joint]
    poses = np.insert(tree.T_parent_joint, joint, added, axis=0)
    poses[joint + 6] = np.eye(4)
    parents = [shifted(parent) if parent >= 0 else -1 for parent in tree.parents]
    parents[joint:joint] = [parents[joint], *range(joint, joint + 5)]
    parents[joint + 6] = joint + 5
    names = list(tree.names)
    names[joint:joint] = [f"cut_{k}" for k in range(6)]
    links = list(tree.links)
    links[joint:joint] = [f"nothing_{k}" for k in range(6)]
    whole = replace(
        tree,
        names=tuple(names),
        links=tuple(links),
        kinds=(*tree.kinds[:joint], *["prismatic"] * 3, *["revolute"] * 3, *tree.kinds[joint:]),
        parents=tuple(parents),
        T_parent_joint=frozen(poses),
        axes=frozen(np.insert(tree.axes, joint, np.tile(np.eye(3), (2, 1)), axis=0)),
        inertias=frozen(np.insert(tree.inertias, joint, np.zeros((6, 10)), axis=0)),
        flange_joint=shifted(tree.flange_joint),
    )
    n = whole.n
    return replace(
        robot, tree=whole, embedding=frozen(np.eye(n)), embedding_offset=frozen(np.zeros(n)),
        driven=tuple(range(n)), loops=(), passive_min=frozen([]), passive_max=frozen([]),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["irb140", "irb1600", "irb1400"])
def test_wrenches_are_the_torques_of_an_arm_that_is_cut_open_in_pybullet(name, client, monkeypatch):
    """The pins of the IRB 1400 are taken away on both sides."""
    monkeypatch.setattr("twin.engine.body.require_moved_mass", lambda *_: None)  # nothing moves in the cut
    arm = replace(twin.load(name).with_payload(LOAD), loops=())
    rng = np.random.default_rng(1)
    q, qd, qdd = (scale * rng.uniform(-1, 1, arm.n) for scale in (0.4, 2.0, 5.0))
    wrenches = twin.joint_wrenches(arm, q, qd, qdd)
    q_tree = arm.embedding @ q + arm.embedding_offset
    client.setGravity(*arm.gravity)
    for joint, axis in enumerate(arm.tree.axes):
        body, order = create_body(client, cut_open(arm, joint))
        values = np.array([q_tree, arm.embedding @ qd, arm.embedding @ qdd])
        motion = np.insert(values, [joint] * 6, 0.0, axis=1)
        torques = np.array(client.calculateInverseDynamics(body, *motion[:, np.argsort(order)].tolist()))
        R = Rotation.from_rotvec(q_tree[joint] * axis)
        found = np.concatenate([R.apply(part) for part in wrenches.joints[joint].reshape(2, 3)])
        scale = np.max(np.abs(found))
        np.testing.assert_allclose(torques[order][joint : joint + 6], found, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize(("speed", "wrong"), [(0.0, False), (1.0, True), (2.0, True)])
def test_joint_sensors_of_pybullet_are_right_at_rest_only(speed, wrong, irb140, client):
    """This is why forces of a run are computed and not read from the engine."""
    body, order = create_body(client, irb140)
    remove_hidden_physics(client, body, order)
    client.setGravity(*irb140.gravity)
    client.setTimeStep(1e-3)
    q, qd = np.full(6, 0.3), np.full(6, speed)
    for joint in order:
        client.enableJointForceTorqueSensor(body, joint, True)
        client.resetJointState(body, joint, q[joint], qd[joint])
    tau = twin.gravity_torque(irb140, q)
    client.setJointMotorControlArray(body, order, client.TORQUE_CONTROL, forces=tau.tolist())
    client.stepSimulation()
    sensed = np.linalg.norm([client.getJointState(body, joint)[2][:3] for joint in order], axis=1)
    qdd = twin.forward_dynamics(irb140, q, qd, tau)
    force = np.linalg.norm(twin.joint_wrenches(irb140, q, qd, qdd).joints[:, :3], axis=1)
    difference = np.max(np.abs(sensed - force))
    assert difference > 1.0 if wrong else difference < 1e-9
