"""Locked joints: Pinocchio's reduced model, the whole arm at rest there, files, logs and the engine."""

import warnings
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import twin
from scenarios.options import locked_joints
from scenarios.setup import Setup
from scenarios.shell.command_line import main
from tests.support.foreign_urdf import chain, fingers, frame, joint, link, mimic, robot
from tests.support.peers import Pinocchio
from tests.support.random_trees import interpreted
from tests.support.refusals import refused
from tests.support.small_robots import one_step_error
from twin.base.errors import IdentificationError, ModelWarning, RobotError, UnknownNameError
from twin.data.identification.robot_file import require_place
from twin.physics.multibody.axis_torques import Spring
from twin.physics.robot import locked
from twin.physics.robot.loops import link_frames
from urdf.schema import FactsError

SLIDE = link("car", 0.7) + joint("slide", "link_2", "car", "prismatic", "0 0.6 0.8", rpy="0.3 0.2 0.1")
ROD = link("rod", 0.5) + joint("rod_joint", "link_1", "rod", axis="0 1 0", inside=mimic("joint_2", -1.0, 0.2))
TEXT = robot(chain(4), frame("hand", "link_4"), fingers("hand"), frame("tcp", "hand"), SLIDE, ROD)
HELD = {"left_finger_joint": 0.3, "joint_2": -0.7, "slide": 0.4}
FOLLOWING = {"right_finger_joint": -0.3, "rod_joint": 0.9}
FACTS = """
name = "mine"
title = "an arm"
urdf = "arm.urdf"
source = "test"

[joints]
names = ["joint_1", "joint_2", "joint_3", "joint_4", "slide"]
source = "test"

[joints.locked]
left_finger_joint = 0.3

[poses.up]
q = [0.1, -0.7, 0.2, 0.3, 0.4]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(TEXT)
    return path


def reduced(path, names):
    """Return Pinocchio's arm with the joints of `HELD` locked, and the finger that follows one of them."""
    peer, at = Pinocchio(path, names), HELD | FOLLOWING
    q, model = np.zeros(peer.model.nq), peer.model
    for name, position in at.items():
        q[model.joints[model.getJointId(name)].idx_q] = position
    peer.model = pin.buildReducedModel(model, [model.getJointId(name) for name in at], q)
    peer.data, peer.order = peer.model.createData(), [0, 1, 2]
    peer.back = peer.order
    return peer


def test_a_locked_arm_is_the_reduced_model_of_pinocchio(file, tmp_path, rng):
    arm = interpreted(twin.load(file, locked=HELD))
    assert arm.joint_names == ("joint_1", "joint_3", "joint_4")
    assert arm.tool_frame == "tcp"
    assert dict(arm.locked) == pytest.approx(HELD | FOLLOWING, rel=1e-15)
    with_load = interpreted(locked(twin.load(file).with_payload(twin.Payload(2.0, [0, 0, 0.1])), HELD))
    words = ["export-model", str(file), "--urdf", str(tmp_path / "fixed.urdf"), "--lock"]
    assert main([*words, *(f"{name}={position}" for name, position in HELD.items())]) == 0
    read = interpreted(twin.load(tmp_path / "fixed.urdf", tool_frame="tcp"))
    peer, written = reduced(file, arm.joint_names), Pinocchio(tmp_path / "fixed.urdf", arm.joint_names)
    for q, qd, qdd in rng.uniform(-2, 2, (3, 3, 3)):
        M, tau = peer.mass_matrix(q), peer.inverse_dynamics(q, qd, qdd)
        for other in (arm, read):
            np.testing.assert_allclose(twin.mass_matrix(other, q), M, rtol=0, atol=1e-12 * M.max())
            np.testing.assert_allclose(twin.inverse_dynamics(other, q, qd, qdd), tau, rtol=0, atol=1e-11)
        np.testing.assert_allclose(written.mass_matrix(q), M, rtol=0, atol=1e-12 * M.max())
        at = link_frames(arm, q)
        for name, (body, T) in arm.frames.items():
            R, p = (np.array(at.R[body]), np.array(at.o[body])) if body >= 0 else (np.eye(3), np.zeros(3))
            T_peer = peer.forward_kinematics(q, name)
            np.testing.assert_allclose(R @ T[:3, :3], T_peer[:3, :3], rtol=0, atol=1e-12)
            np.testing.assert_allclose(R @ T[:3, 3] + p, T_peer[:3, 3], rtol=0, atol=1e-12)
        J = peer.jacobian(q, "tcp")
        lever = 0.1 * peer.forward_kinematics(q, "tcp")[:3, 2]
        added = 2.0 * 9.81 * (J[:3] + np.cross(J[3:].T, lever).T)[2]
        difference = twin.gravity_torque(with_load, q) - twin.gravity_torque(arm, q)
        np.testing.assert_allclose(difference, added, rtol=0, atol=1e-11)
    with twin.Simulation(arm) as simulation:
        assert one_step_error(simulation, rng, 3) < 1e-11


def test_a_locked_arm_is_the_whole_arm_at_rest_there(irb140, load, rng):
    """Springs go with their joints; the lock of the wrist's middle turns what is beyond it; rods move on."""
    rods = load(robot(chain(3), ROD))
    fewer, at = (
        interpreted(locked(rods, {"joint_3": 0.5})),
        np.array([[0.3, -0.4, 0.5], [1, 2, 0], [3, -1, 0]]),
    )
    expected = twin.inverse_dynamics(rods, *at)[:2]
    np.testing.assert_allclose(twin.inverse_dynamics(fewer, *at[:, :2]), expected, rtol=0, atol=1e-13)
    assert (fewer.passive, fewer.passive_max.shape, fewer.followers) == ((2,), (1,), (2,))
    springs = (Spring(1, 300.0, 20.0), Spring(3, 7.0, -2.0))
    whole = interpreted(replace(irb140, tree=replace(irb140.tree, torques=springs)))
    arm, keep = interpreted(locked(whole, {"joint_2": 0.4, "joint_5": -0.9})), [0, 2, 3, 5]
    for q, qd, qdd in rng.uniform(-1, 1, (5, 3, 4)):
        at = np.zeros((3, 6))
        at[:, keep], at[0, [1, 4]] = (q, qd, qdd), (0.4, -0.9)
        expected = twin.inverse_dynamics(whole, *at)[keep]
        np.testing.assert_allclose(twin.inverse_dynamics(arm, q, qd, qdd), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(arm.poses["test_1"], irb140.poses["test_1"][keep])
    np.testing.assert_array_equal(arm.qd_max, irb140.qd_max[keep])


def test_a_robot_toml_and_a_log_keep_locked_joints(file, tmp_path):
    (tmp_path / "robot.toml").write_text(FACTS)
    arm = twin.load(tmp_path)
    assert dict(arm.locked) == {"left_finger_joint": 0.3, "right_finger_joint": -0.3}
    more = twin.load(tmp_path, locked={"joint_2": -0.7, "slide": 0.4})
    np.testing.assert_array_equal(more.poses["up"], [0.1, 0.2, 0.3])
    assert dict(more.locked) == pytest.approx(HELD | FOLLOWING, rel=1e-15)
    require_place(arm, tmp_path / "found")
    with pytest.raises(
        IdentificationError, match=r"does not lock .*joint_2.*expected them in its \[joints.lock"
    ):
        require_place(more, tmp_path / "found")
    words = tuple(f"{name}={position}" for name, position in HELD.items())
    for place, lock in ((file, words), (tmp_path, words[1:])):
        plant = interpreted(Setup(robot=str(place), lock=lock).nominal_robot())
        samples = twin.sample(twin.hold([0.1, 0.2, 0.3], 0.003), 1e-3)
        log = twin.run_closed_loop(twin.AnalyticPlant(plant), lambda *_: np.zeros(3), samples)
        log.save(tmp_path / "run.npz")
        with warnings.catch_warnings():  # that fingers move freely is no longer true
            warnings.simplefilter("error", ModelWarning)
            again = twin.Log.load(tmp_path / "run.npz").robot
        assert (again.joint_names, dict(again.locked)) == (more.joint_names, dict(more.locked))
        np.testing.assert_array_equal(again.inertias, more.inertias)


def test_an_arm_with_a_gripper_is_identified_with_its_fingers_locked(tmp_path, capsys):
    """By `--lock`, and by a robot.toml; the written arm has a fixed gripper."""
    path, t = tmp_path / "arm.urdf", np.arange(0, 4, 0.02)
    path.write_text(robot(chain(2), fingers("link_2")))
    arm = interpreted(twin.load(path, locked={"left_finger_joint": 0.3}))
    phase = 2 * np.pi * np.array([[0.3, 0.5], [0.8, 0.4]]) * t[:, None, None] + [[0, 1], [2, 0]]
    w = 2 * np.pi * np.array([[0.3, 0.5], [0.8, 0.4]])
    q, qd, qdd = (np.sum(0.5 * w**k * np.sin(phase + k * np.pi / 2), axis=1) for k in range(3))
    tau = twin.inverse_dynamics(arm, q, qd, qdd) + 1e-3 * np.random.default_rng(1).normal(size=q.shape)
    table = tmp_path / "measured.csv"
    np.savetxt(table, np.column_stack([t, q, tau]), delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
    toml = FACTS.partition("[poses")[0].replace(', "joint_3", "joint_4", "slide"', "")
    (tmp_path / "robot.toml").write_text(toml)
    words = ["identify", str(table), "--robot"]
    assert main([*words, str(path), "--lock", "finger=0.3"]) == 2
    assert "no joint 'finger' to lock" in capsys.readouterr().err
    assert main([*words, str(tmp_path), "--out", str(tmp_path / "found")]) == 0, capsys.readouterr()
    found = interpreted(twin.load(tmp_path / "found")).with_drives("rigid")
    assert (found.joint_names, dict(found.locked)) == (arm.joint_names, {})
    difference = twin.inverse_dynamics(found, q, qd, qdd) - twin.inverse_dynamics(arm, q, qd, qdd)
    assert np.max(np.abs(difference)) < 0.01


def test_a_joint_without_mass_that_is_locked_leaves_the_dynamics(file, tmp_path):
    """As fingers whose links have no <inertial>: PyBullet's and Pinocchio's arm with them fixed."""
    weightless = fingers("hand").replace(link("left_finger", 0.1), link("left_finger", None))
    weightless = weightless.replace(link("right_finger", 0.1), link("right_finger", None))
    file.write_text(robot(chain(3), frame("hand", "link_3"), weightless))
    whole = twin.load(file)
    assert whole.inertia_fault.startswith("joint 'left_finger_joint' moves no mass; lock it, or give a link")
    with pytest.raises(RobotError, match="has no dynamics: joint 'left_finger_joint' moves no mass"):
        twin.mass_matrix(whole, np.zeros(4))
    bare = tmp_path / "bare.urdf"
    bare.write_text(robot(chain(3), frame("hand", "link_3")))
    arm, q = interpreted(locked(whole, {"left_finger_joint": 0.01})), [0.3, -0.4, 0.5]
    expected = Pinocchio(bare, arm.joint_names).mass_matrix(q)
    np.testing.assert_allclose(twin.mass_matrix(arm, q), expected, rtol=0, atol=1e-13)
    still = locked(whole, {"joint_1": 0.2})
    assert still.inertia_fault == whole.inertia_fault


def test_what_cannot_be_locked(file, irb140, irb1400, tmp_path):
    arm = twin.load(file)
    endless = replace(arm, q_max=np.full(arm.n, np.inf))
    refused(
        (lambda: locked(arm, {"joint_1": 2.5}), "locked at 2.5, expected a position of -2 to 2 rad"),
        (lambda: locked(arm, {"slide": np.nan}), "locked at nan, expected a position of -2 to 2 m"),
        (lambda: locked(endless, {"slide": np.inf}), "slide cannot be locked at inf, expected a position"),
        (lambda: locked(irb1400, {"joint_1": 0.0}), "joints without a motor"),
        (lambda: locked(irb140, {"joint_6": 0.0}).with_drives("rigid"), "only a robot.toml with [joints.loc"),
        (lambda: locked(arm, dict.fromkeys(arm.joint_names[:4], 0.0)), "no joint moves its tool"),
        error=RobotError,
    )
    with pytest.raises(UnknownNameError, match=r"no joint 'joint_5' to lock, did you mean .*: known are"):
        locked(arm, {"joint_5": 0.0})
    with pytest.raises(UnknownNameError, match="'rod_joint' to lock, it follows 'joint_2': known are"):
        locked(arm, {"rod_joint": 0.0})
    with pytest.raises(UnknownNameError, match="'slide' to lock, it is locked: known are joint_1"):
        locked(locked(arm, {"slide": 0.4}), {"slide": 0.5})
    (tmp_path / "robot.toml").write_text(FACTS.replace("= 0.3\n", '= "closed"\n'))
    with pytest.raises((RobotError, FactsError), match=r"joints\.locked\.left_finger_joint: expected a fin"):
        twin.load(tmp_path)
    with pytest.raises(ValueError, match="--lock slide: expected NAME=POSITION, in rad or m"):
        locked_joints(["slide"])
