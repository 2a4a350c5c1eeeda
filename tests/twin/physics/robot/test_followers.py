"""Joints that follow others by `<mimic>`: model, engine and Pinocchio agree."""

import numpy as np
import pinocchio as pin
import pytest

import twin
from tests.support.foreign_urdf import chain, fingers, frame, joint, link, mimic, robot
from twin.base.errors import RobotError
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import link_poses

pytestmark = pytest.mark.slow("loads and compiles arms")

HOLLOW_WRIST = (  # as of painting robots: axes of the wrist turn twice
    link("bend", 0.5)
    + joint("bend_joint", "link_4", "bend", axis="0 0.6 0.8", inside=mimic("joint_4", -1.0, 0.1))
    + link("turn", 0.4)
    + joint("turn_joint", "bend", "turn", axis="1 0 0")
    + link("end", 0.3)
    + joint("end_joint", "turn", "end", axis="0 0.8 -0.6", inside=mimic("bend_joint", 0.5, 0.2))
)
BALANCER = (
    link("cylinder", 5.0)
    + joint("cylinder_joint", "link_1", "cylinder", axis="0 1 0", inside=mimic("joint_2", -0.3, 0.1))
    + link("rod", 2.0)
    + joint("rod_joint", "cylinder", "rod", "prismatic", "1 0 0", inside=mimic("joint_2", 0.2, -0.05))
)
GRIPPER = frame("hand", "link_6") + fingers("hand")
FINGERS = {"right_finger_joint": ("left_finger_joint", -1.0, 0.0)}
LAWS = {
    "gripper": FINGERS,
    "hollow wrist": {"bend_joint": ("joint_4", -1.0, 0.1), "end_joint": ("joint_4", -0.5, 0.25)},
    "balancer": {"cylinder_joint": ("joint_2", -0.3, 0.1), "rod_joint": ("joint_2", 0.2, -0.05)} | FINGERS,
}
"""Leader, factor and offset of each follower, by hand."""

CASES = {
    "gripper": (chain(6) + GRIPPER, 7),
    "hollow wrist": (chain(4) + HOLLOW_WRIST, 5),
    "balancer": (chain(6) + BALANCER + GRIPPER, 7),
}


class Whole:
    """Pinocchio's model of all joints, with the followers put in by hand: `q_tree = G q + g0`."""

    def __init__(self, path, found, laws):
        self.model = pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        self.G, self.g0 = np.zeros((self.model.nv, found.n)), np.zeros(self.model.nv)
        for name in found.tree.names:
            leader, factor, offset = laws.get(name, (name, 1.0, 0.0))
            at = self.model.joints[self.model.getJointId(name)].idx_q
            self.G[at, found.joint_names.index(leader)], self.g0[at] = factor, offset

    def torques(self, q, qd, qdd):
        tree = self.G @ q + self.g0, self.G @ qd, self.G @ qdd
        return self.G.T @ pin.rnea(self.model, self.data, *tree)

    def frame(self, q, name):
        pin.framesForwardKinematics(self.model, self.data, self.G @ q + self.g0)
        return self.data.oMf[self.model.getFrameId(name, pin.FrameType.BODY)].homogeneous


def torques_of_mimic(path, found, *motion):
    """Compute torques with Pinocchio's own model with followers; it knows none that follow a follower."""
    model = pin.buildModelFromUrdf(str(path), mimic=True)
    assert model.nv == found.n
    at = [model.joints[model.getJointId(name)].idx_v for name in found.joint_names]
    theirs = np.empty((3, model.nv))
    theirs[:, at] = motion
    return pin.rnea(model, model.createData(), *theirs)[at]


@pytest.mark.parametrize("case", CASES)
def test_followers_agree_with_pinocchio(load, rng, case):
    text, n = CASES[case]
    found = load(robot(text))
    assert found.n == n
    other = Whole(found.urdf, found, LAWS[case])
    for _ in range(3):
        q, qd, qdd = rng.uniform(-1, 1, (3, n))
        tau = other.torques(q, qd, qdd)
        np.testing.assert_allclose(twin.inverse_dynamics(found, q, qd, qdd), tau, rtol=0, atol=1e-12)
        np.testing.assert_allclose(twin.forward_dynamics(found, q, qd, tau), qdd, rtol=0, atol=1e-10)
        T = {-1: np.eye(4)} | dict(enumerate(link_poses(found, q)))
        for name, at in found.frames.items():
            np.testing.assert_allclose(T[at.joint] @ at.T, other.frame(q, name), rtol=0, atol=1e-12)
    if case == "gripper":
        theirs = torques_of_mimic(found.urdf, found, q, qd, qdd)
        np.testing.assert_allclose(tau, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_engine_holds_followers_to_round_off(load, rng, case):
    """Beside the model's semi-implicit steps, with followers of followers, slides and offsets."""
    text, n = CASES[case]
    found = load(robot(text))
    plant = twin.AnalyticPlant(found, 1e-3)
    with Simulation(found) as engine:
        q, qd = rng.uniform(-0.5, 0.5, (2, n))
        for arm in (plant, engine):
            arm.reset(q, qd)
        np.testing.assert_allclose(engine.tool_pose(), twin.forward_kinematics(found, q), atol=1e-14)
        np.testing.assert_allclose(engine.jacobian(q), twin.jacobian(found, q), atol=1e-14)
        for k in range(50):
            tau = 2.0 * np.sin(0.1 * k + np.arange(n))
            for arm in (plant, engine):
                arm.step(tau)
        np.testing.assert_allclose(engine.state(), plant.state(), rtol=0, atol=1e-9)
        tree = [state[0] for state in engine._client.getJointStates(engine._body, engine._joints)]
        np.testing.assert_allclose(tree, found.tree_positions(engine.state()[0]), rtol=0, atol=1e-13)


def test_limits_of_a_follower_are_those_of_its_leader(load):
    found = load(robot(chain(6), GRIPPER))
    assert found.joint_names[-1] == "left_finger_joint"
    assert np.all(found.passive_max == np.inf)
    assert np.all(found.q_max[:6] == 2.0)


def test_closed_forms_ignore_followers_beside_the_chain(load):
    wrist = "".join(
        link(f"link_{k}") + joint(f"joint_{k}", f"link_{k - 1}", f"link_{k}", axis=axis, xyz=xyz)
        for k, (axis, xyz) in enumerate(
            (("0 0 1", "0 0 0.3"), ("0 1 0", "0.1 0 0.2"), ("0 1 0", "0 0 0.5"),
             ("1 0 0", "0.2 0 0"), ("0 1 0", "0.3 0 0"), ("1 0 0", "0 0 0")), start=1,
        )
    )  # fmt: skip
    balanced = link("link_0") + wrist + BALANCER + frame("flange", "link_6", "0.1 0 0")
    found, q = load(robot(balanced)), np.array([0.3, 0.2, -0.4, 0.5, 0.7, -0.6])
    T = twin.forward_kinematics(found, q)
    np.testing.assert_allclose(twin.inverse_kinematics(found, T, near=q), q, atol=1e-12)


REFUSED = [
    (mimic("joint_9"), "joint 'extra' follows 'joint_9', which is no joint, did you mean 'joint_2'"),
    (mimic("hand_joint"), "joint 'extra' follows 'hand_joint', which is fixed; expected a moving one"),
    (mimic("extra"), "joints extra follow each other, so no motor moves them"),
    (mimic("joint_1", "nan"), "joint 'extra' has a <mimic> of multiplier nan, offset 0: expected finite"),
]


def test_followers_of_nothing_are_refused(load):
    for inside, message in REFUSED:
        extra = link("extra_link") + joint("extra", "link_1", "extra_link", inside=inside)
        with pytest.raises(RobotError, match=message):
            load(robot(chain(2), frame("hand", "link_2"), extra))
