"""The tool of a URDF that does not name it, and frames of any link."""

from pathlib import Path

import numpy as np
import pybullet_data
import pytest

import twin
from tests.support.foreign_urdf import chain, fingers, frame, joint, link, mimic, robot
from tests.support.peers import Pinocchio
from twin.base.errors import RobotError, ToolFrameWarning, UnknownNameError
from twin.physics.kinematics.forward import link_poses
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.loops import locked

pytestmark = pytest.mark.slow("loads and compiles arms")

HAND = frame("link_8", "link_6") + frame("hand", "link_8")
CAMERA = frame("camera", "link_6") + frame("camera_lens", "camera")
PARALLEL = link("rod", 0.5) + joint("rod_joint", "link_1", "rod", axis="0 1 0", inside=mimic("joint_2", -1.0))
SHORT = "".join(  # as long as the arm, behind fixed frames
    frame(side, "hand") + link(f"{side}_end", 0.1) + joint(f"{side}_turn", side, f"{side}_end")
    for side in ("left", "right")
)
JAW = link("jaw", 0.1) + joint("jaw_joint", "link_6", "jaw")
MOVER = link("gripperMover", 0.1) + joint("jointGripper", "link_6", "gripperMover", axis="0 1 0")
WRIST = link("gripper_link", 0.1) + joint("gripper_roll_joint", "link_5", "gripper_link", axis="1 0 0")
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
    (chain(1) + frame("hand", "link_1") + SHORT, "hand", "the last frame before the gripper of left, right"),
    (chain(6) + JAW, "link_6", "the last frame before the gripper of jaw"),
    (chain(6) + MOVER, "link_6", "the last frame before the gripper of gripperMover"),
    (
        chain(6) + frame("gripper_link", "link_6") + MOVER.replace('"link_6"', '"gripper_link"'),
        "gripper_link",
        "the last frame before the gripper of gripperMover",
    ),
    (chain(5) + WRIST, "gripper_link", "the end of the longest chain"),
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
        "the end of the long",
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


def test_the_tool_is_the_end_of_the_longest_chain_and_no_finger(load):
    for text, tool, why in TOOLS:
        with pytest.warns(ToolFrameWarning, match=f"arm: the tool frame is '{tool}', {why}"):
            assert load(robot(text)).tool_frame == tool
    long = "".join(frame(f"f{k}", f"f{k - 1}" if k else "link_1") for k in range(490))  # as long as it may be
    assert load(robot(chain(1), long)).tool_frame == "f489"


def test_a_frame_of_the_name_tool0_is_the_tool_without_a_remark_if_a_joint_moves_it(load, tmp_path, recwarn):
    found = load(robot(chain(6), frame("tool0", "link_4"), HAND))
    assert (found.tool_frame, found.tool_reason) == ("tool0", "")
    assert found.tree.flange_joint == 3
    assert not [one for one in recwarn if issubclass(one.category, ToolFrameWarning)]
    path = tmp_path / "ARM.URDF"  # as exporters of other systems write it
    path.write_text(robot(chain(3), frame("tool0", "link_0"), frame("hand", "link_3")))
    with pytest.raises(RobotError, match=r"no joint moves link 'tool0'.*expected .* another --tool-frame"):
        twin.load(path)
    assert twin.load(path, tool_frame="hand").tool_frame == "hand"


def test_any_link_can_be_named(load, tmp_path):
    """Frames are Pinocchio's, also with that link as the tool; the payload goes with the flange."""
    ends = frame("hand", "link_2"), frame("tool0", "link_2"), frame("floor", "link_0")
    whole, q = load(robot(chain(2), *ends)), np.array([-0.5, 0.8])
    path = whole.urdf
    peer = Pinocchio(path, whole.joint_names)
    for name in whole.frames:
        expected = peer.forward_kinematics(q, name)
        found = twin.forward_kinematics(whole, q, link=name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15, err_msg=name)
        J = twin.jacobian(whole, q, link=name)
        np.testing.assert_allclose(J, peer.jacobian(q, name), rtol=0, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(J, np.zeros((6, 2)))  # of the floor
    np.testing.assert_array_equal(twin.jacobian_dot(whole, q, q, link="floor"), np.zeros((6, 2)))
    loaded = whole.with_payload(twin.Payload(2.0, [0, 0, 0.1]))
    for name in ("hand", "link_1", "tool0"):
        bare, moved = (
            uncompiled(one) for one in (twin.load(path, tool_frame=name), loaded.with_tool_frame(name))
        )
        T = twin.forward_kinematics(bare, q)
        np.testing.assert_allclose(T, peer.forward_kinematics(q, name), rtol=0, atol=1e-15)
        work = twin.energy(moved, q, 0 * q) - twin.energy(bare, q, 0 * q)
        np.testing.assert_allclose(work, 2.0 * 9.81 * (T @ [0, 0, 0.1, 1])[2], rtol=1e-12)
        assert bare.tool_frame == moved.tool_frame == name
    with pytest.raises(UnknownNameError, match=r"unknown link 'hend' of arm, did you mean 'hand'.*link_1"):
        twin.load(path, tool_frame="hend")
    with pytest.raises(RobotError, match=r"no joint moves link .link_0. of arm, so it"):
        twin.load(path, tool_frame="link_0")


def test_another_tool_frame_has_no_table_and_no_published_poses(irb140):
    other = irb140.with_tool_frame("link_5")
    assert (other.dh, dict(other.published)) == (None, {})
    assert irb140.with_tool_frame("tool0").dh is irb140.dh


def test_arms_with_another_tool_frame_have_closed_forms(irb140, irb1400):
    q = np.array([0.3, 0.2, -0.1, 0.4, 0.7, -0.2])
    for given in (irb140, irb1400):
        other = uncompiled(given.with_tool_frame("link_6"))
        T = twin.forward_kinematics(other, q)
        np.testing.assert_allclose(twin.inverse_kinematics(other, T, near=q), q, atol=1e-12)


def test_public_arms_have_the_flange_of_their_maker():
    """Franka's in its ready pose; the last frame of PyBullet's iiwa, stretched out, is on its axis."""
    folder = Path(pybullet_data.getDataPath())
    ready = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4, 0.02])
    panda = twin.load(folder / "franka_panda" / "panda.urdf")
    assert (panda.tool_frame, panda.n) == ("panda_grasptarget", 8)
    flange = twin.forward_kinematics(uncompiled(panda), ready, link="panda_link8")[:3, 3]
    np.testing.assert_allclose(flange, [0.3069, 0, 0.5903], atol=5e-5)
    iiwa = uncompiled(twin.load(folder / "kuka_iiwa" / "model.urdf"))
    np.testing.assert_allclose(twin.forward_kinematics(iiwa, np.zeros(7))[:3, 3], [0, 0, 1.261], atol=1e-12)


def test_a_log_keeps_the_tool_frame(load, tmp_path):
    """And bodies that are impossible."""
    text = robot(chain(2), frame("hand", "link_2"), frame("probe", "link_2"))
    path = load(text.replace('izz="0.025"', 'izz="0.25"')).urdf
    arm = uncompiled(twin.load(path, unphysical=True, tool_frame="probe"))
    samples = twin.sample(twin.hold([0.1, 0.2], 0.01), 1e-3)
    log = twin.run_closed_loop(twin.AnalyticPlant(arm), lambda *_: np.zeros(2), samples)
    log.save(tmp_path / "run.npz")
    again = twin.Log.load(tmp_path / "run.npz").robot
    assert again.tool_frame == "probe"
    np.testing.assert_array_equal(again.inertias, arm.inertias)


def test_frames_of_locked_joints_are_those_of_the_last_moving_link(irb140):
    """Their poses are those of the whole arm with the locked joints at 0."""
    q = np.array([0.3, -0.2, 0.4])
    for axes in (1, 3):
        arm = locked(irb140, axes)
        whole = link_poses(irb140, [*q[:axes], *np.zeros(6 - axes)])
        part = [*link_poses(arm, q[:axes]), np.eye(4)]  # the base, of index -1, is the last
        for name, (moving, T) in irb140.frames.items():
            if moving >= 0:
                found = part[arm.frames[name].joint] @ arm.frames[name].T
                np.testing.assert_allclose(found, whole[moving] @ T, atol=1e-15)
