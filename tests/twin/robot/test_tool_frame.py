"""The tool of a URDF that does not name it, and frames of any link."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pybullet_data
import pytest

import twin
from tests.support.foreign_urdf import chain, fingers, frame, joint, link, mimic, robot
from tests.support.peers import Pinocchio
from tests.support.random_trees import interpreted
from twin.errors import RobotError, ToolFrameWarning, UnknownNameError
from twin.robot.locking import locked

HAND = frame("link_8", "link_6") + frame("hand", "link_8")
CAMERA = frame("camera", "link_6") + frame("camera_lens", "camera")
PARALLEL = link("rod", 0.5) + joint("rod_joint", "link_1", "rod", axis="0 1 0", inside=mimic("joint_2", -1.0))
GRIPPER = (
    link("knuckle", 0.1)
    + joint("knuckle_joint", "hand", "knuckle", axis="0 1 0")
    + link("pad", 0.1)
    + joint("pad_joint", "knuckle", "pad", axis="0 1 0", inside=mimic("knuckle_joint"))
    + link("other", 0.1)
    + joint("other_joint", "hand", "other", axis="0 1 0", inside=mimic("knuckle_joint", -1.0))
)
TOOLS = [
    (chain(6), "link_6", "the end of the longest chain"),
    (chain(6) + frame("link_8", "link_6"), "link_8", "the end of the longest chain"),
    (chain(6) + HAND + frame("mount", "link_6"), "hand", "the end of the longest chain"),
    (chain(6) + HAND + fingers("hand"), "hand", "the last frame before the gripper of left_finger, right"),
    (chain(6) + HAND + fingers("hand", follows=False), "hand", "the last frame before the gripper"),
    (chain(6) + HAND + fingers("hand", "a", "b"), "hand", "the last frame before the gripper of a, b"),
    (chain(6) + HAND + GRIPPER, "hand", "the last frame before the gripper of knuckle, other"),
    (
        chain(6) + link("jaw", 0.1) + joint("jaw_joint", "link_6", "jaw"),
        "link_6",
        "the last frame before the gripper of jaw",
    ),
    (chain(6) + CAMERA + frame("EndEffector", "link_6"), "EndEffector", "the end of the longest chain"),
    (
        chain(6) + frame("sc", "link_6", "0 0 0") + frame("link_8", "link_6"),
        "link_8",
        "the end of the longest",
    ),
    (chain(6) + frame("left", "link_6") + frame("right", "link_6"), "link_6", "the end of the longest chain"),
    (chain(6) + HAND + frame("a_finger", "hand"), "hand", "the end of the longest chain"),
    (
        chain(6) + frame("link_ee_abc", "link_6") + frame("link_ee", "link_6"),
        "link_ee",
        "the end of the longest",
    ),
    (chain(6) + CAMERA, "link_6", "the end of the longest chain"),
    (chain(6) + PARALLEL, "link_6", "the end of the longest chain; other ends are rod"),
    (chain(3) + PARALLEL, "link_3", "the end of the longest chain; other ends are rod"),
    (fingers("hand") + link("hand"), "left_finger", "the end of the longest chain"),
    (chain(6) + HAND + fingers("hand") + frame("fr3_hand_tcp", "hand"), "fr3_hand_tcp", "which is fixed to"),
    (
        chain(6) + HAND + fingers("hand") + frame("END-EFFECTOR", "link_8"),
        "END-EFFECTOR",
        "which is fixed to",
    ),
    (chain(6) + HAND + fingers("hand") + frame("finger_tip", "hand"), "hand", "the last frame before"),
    (chain(6) + frame("flange", "link_6") + HAND + fingers("hand"), "hand", "the last frame before the gr"),
    (
        chain(6)
        + frame("finger_1", "link_6")
        + frame("finger_tip_1", "finger_1")
        + frame("a_end_effector", "link_6"),
        "a_end_effector",
        "the end of the longest",
    ),
    (chain(6) + frame("cam_link", "link_6") + frame("cam_x", "cam_link"), "link_6", "the end of the longest"),
    (
        chain(6) + frame("tool_plate", "link_6") + frame("hand", "tool_plate") + fingers("hand"),
        "hand",
        "the last frame before",
    ),
    (
        chain(6) + HAND + frame("ee", "link_8") + fingers("hand") + frame("hand_tcp", "hand"),
        "hand_tcp",
        "which is fixed",
    ),
]


@pytest.mark.parametrize(("text", "tool", "why"), TOOLS)
def test_the_tool_is_the_end_of_the_longest_chain_and_no_finger(tmp_path, text, tool, why):
    path = tmp_path / "arm.urdf"
    path.write_text(robot(text))
    with pytest.warns(ToolFrameWarning, match=f"arm: the tool frame is '{tool}', {why}"):
        found = twin.load(path)
    assert found.tool_frame == tool


def test_a_frame_of_the_name_tool0_is_the_tool_without_a_remark(load, recwarn):
    found = load(robot(chain(6), frame("tool0", "link_4"), HAND))
    assert (found.tool_frame, found.tool_reason) == ("tool0", "")
    assert found.tree.flange_joint == 3
    assert not [one for one in recwarn if issubclass(one.category, ToolFrameWarning)]


def test_any_link_can_be_named(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(robot(chain(6), frame("tool0", "link_6"), HAND))
    q = np.linspace(-0.5, 0.8, 6)
    whole = twin.load(path).with_payload(twin.Payload(2.0, [0, 0, 0.1]))
    for name in ("hand", "link_4", "tool0"):
        found = twin.load(path, tool_frame=name)
        expected = twin.forward_kinematics(whole, q, link=name)
        np.testing.assert_allclose(twin.forward_kinematics(found, q), expected, atol=1e-15)
        assert found.tool_frame == name
        moved = whole.with_tool_frame(name)  # the payload goes with the flange
        com = expected[:3, 3] + 0.1 * expected[:3, 2]
        work = twin.energy(moved, q, 0 * q) - twin.energy(found, q, 0 * q)
        np.testing.assert_allclose(work, 2.0 * 9.81 * com[2], rtol=1e-12)
    with pytest.raises(UnknownNameError, match=r"unknown link 'hend' of arm, did you mean 'hand'.*link_1"):
        twin.load(path, tool_frame="hend")
    with pytest.raises(RobotError, match=r"no joint moves link .link_0. of arm, so it"):
        twin.load(path, tool_frame="link_0")


def test_a_tool0_that_no_joint_moves_needs_another_frame(tmp_path):
    path = tmp_path / "ARM.URDF"  # as exporters of other systems write it
    path.write_text(robot(chain(3), frame("tool0", "link_0"), frame("hand", "link_3")))
    with pytest.raises(RobotError, match=r"no joint moves link 'tool0'.*expected .* another --tool-frame"):
        twin.load(path)
    assert twin.load(path, tool_frame="hand").tool_frame == "hand"


def test_a_chain_as_long_as_a_file_may_be(load):
    long = "".join(frame(f"f{k}", f"f{k - 1}" if k else "link_1") for k in range(490))
    assert load(robot(chain(1), long)).tool_frame == "f489"


def test_another_tool_frame_has_no_table_and_no_published_poses(irb140):
    other = irb140.with_tool_frame("link_5")
    assert (other.dh, dict(other.published)) == (None, {})
    assert irb140.with_tool_frame("tool0").dh is irb140.dh
    q = irb140.poses["test_1"]
    T = twin.forward_kinematics(irb140.with_tool_frame("link_6"), q)
    near = twin.inverse_kinematics(irb140.with_tool_frame("link_6"), T, near=q)
    np.testing.assert_allclose(near, q, atol=1e-12)


def test_a_coupled_arm_with_another_tool_frame_has_closed_forms(irb1400):
    q = np.array([0.3, 0.2, -0.1, 0.4, 0.7, -0.2])
    other = irb1400.with_tool_frame("link_6")
    T = twin.forward_kinematics(other, q)
    np.testing.assert_allclose(twin.inverse_kinematics(other, T, near=q), q, atol=1e-12)


def test_all_frames_by_name_are_those_of_pinocchio(load, tmp_path, rng):
    text = robot(chain(6), HAND, CAMERA, fingers("hand", follows=False), frame("floor", "link_0"))
    found = load(text)
    peer = Pinocchio(tmp_path / "robot.urdf", found.joint_names)
    for q in rng.uniform(-2, 2, (3, found.n)):
        for name in found.frames:
            expected = peer.forward_kinematics(q, name)
            np.testing.assert_allclose(
                twin.forward_kinematics(found, q, link=name), expected, rtol=0, atol=1e-12, err_msg=name
            )
    J = twin.jacobian(found, q, link="camera_lens")
    pin.computeJointJacobians(peer.model, peer.data, *peer._reordered(q))
    np.testing.assert_allclose(J, peer.jacobian(q, "camera_lens"), atol=1e-12)
    np.testing.assert_array_equal(twin.jacobian(found, q, link="floor"), np.zeros((6, found.n)))
    np.testing.assert_array_equal(twin.jacobian_dot(found, q, q, link="floor"), np.zeros((6, found.n)))


def test_public_arms_have_the_flange_of_their_maker():
    """Franka's in its ready pose; the last frame of PyBullet's iiwa, stretched out, is on its axis."""
    folder = Path(pybullet_data.getDataPath())
    ready = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4, 0.02])
    panda = interpreted(twin.load(folder / "franka_panda" / "panda.urdf"))
    assert (panda.tool_frame, panda.n) == ("panda_grasptarget", 8)
    flange = twin.forward_kinematics(panda, ready, link="panda_link8")[:3, 3]
    np.testing.assert_allclose(flange, [0.3069, 0, 0.5903], atol=5e-5)
    iiwa = interpreted(twin.load(folder / "kuka_iiwa" / "model.urdf"))
    np.testing.assert_allclose(twin.forward_kinematics(iiwa, np.zeros(7))[:3, 3], [0, 0, 1.261], atol=1e-12)


def test_a_log_keeps_the_tool_frame(tmp_path):
    from tests.support.tasks import run

    path = tmp_path / "arm.urdf"
    path.write_text(robot(chain(3), frame("hand", "link_3"), frame("probe", "link_3")))
    log = run("gravity_hold", duration=0.02, robot=str(path), tool_frame="probe").log
    log.save(tmp_path / "run.npz")
    assert twin.Log.load(tmp_path / "run.npz").robot.tool_frame == "probe"


def test_a_log_of_impossible_bodies_is_read_again(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(robot(chain(2)).replace('izz="0.025"', 'izz="0.25"'))
    arm = interpreted(twin.load(path, unphysical=True))
    samples = twin.sample(twin.hold([0.1, 0.2], 0.01), 1e-3)
    log = twin.run_closed_loop(twin.AnalyticPlant(arm), lambda *_: np.zeros(2), samples)
    log.save(tmp_path / "run.npz")
    again = twin.Log.load(tmp_path / "run.npz").robot
    np.testing.assert_array_equal(again.inertias, arm.inertias)


def test_frames_of_locked_joints_are_those_of_the_last_moving_link(irb140):
    """Their poses are those of the whole arm with the locked joints at 0."""
    q = np.array([0.3, -0.2, 0.4])
    whole, arm = interpreted(irb140), interpreted(locked(irb140, 3))
    for name in irb140.frames:
        expected = twin.forward_kinematics(whole, [*q, 0, 0, 0], link=name)
        np.testing.assert_allclose(twin.forward_kinematics(arm, q, link=name), expected, atol=1e-15)
