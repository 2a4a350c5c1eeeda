"""Loading a robot with passive joints and a loop: what its URDF and its robot.toml must agree on."""

import re

import numpy as np
import pytest

import twin
from tests.support.urdf_files import FILES
from twin.errors import RobotError


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb1400")


@pytest.fixture
def altered(arm, tmp_path):
    """Load a copy of the robot with text replaced in one of its files."""

    def load(file, *replacements):
        for name in ("robot.toml", "irb1400.urdf"):
            text = arm.urdf.with_name(name).read_text()
            for old, new in replacements if name == file else ():
                assert old in text
                text = text.replace(old, new)
            (tmp_path / name).write_text(text)
        return twin.load(tmp_path / "robot.toml")

    return load


def refused(message):
    return pytest.raises(RobotError, match=message)


def test_a_copy_is_the_robot(arm, altered):
    copy = altered("robot.toml")
    np.testing.assert_array_equal(copy.embedding, arm.embedding)
    assert copy.driven == arm.driven
    assert copy.rating == arm.rating == (5.0, 1.44)
    assert copy.tour == arm.tour
    np.testing.assert_array_equal(copy.loops[0].points, arm.loops[0].points)


def test_limits_are_those_of_the_driven_joints(arm):
    """In the order of the pendant, though the tree has the elbow before and the lever after them."""
    np.testing.assert_allclose(arm.q_max, np.deg2rad([170, 70, 70, 150, 115, 300]), rtol=1e-15)
    np.testing.assert_allclose(arm.q_min, np.deg2rad([-170, -70, -65, -150, -115, -300]), rtol=1e-15)
    np.testing.assert_allclose(arm.qd_max, np.deg2rad([120, 120, 120, 280, 280, 280]), rtol=1e-15)
    np.testing.assert_array_equal(arm.tau_max, FILES["irb1400"].facts["joints"]["effort"])
    assert len(set(arm.tau_max)) == 6


def test_a_robot_is_shown_in_one_line(arm):
    joints = "joint_1, joint_2, joint_3, joint_4, joint_5, joint_6"
    assert repr(arm) == f"<Robot irb1400: {joints}>"
    assert repr(arm.with_payload(twin.Payload(5))) == f"<Robot irb1400: {joints}, with 5 kg>"


def test_a_loop_that_does_not_close_at_the_zero_pose(altered):
    with refused(
        r"robot\.toml: loop\.parallelogram is not closed at the zero pose: the point of link\.rod is "
        r"0\.01 m away from that of link\.3"
    ):
        altered("robot.toml", ("[[-0.020, 0, 1.075], [", "[[-0.020, 0, 1.085], ["))


ROWS = {
    "elbow turned round": ("q = [0, -1, 1, 0, 0, 0]", "q = [0, 1, -1, 0, 0, 0]"),
    "rod turned round": ("q = [0, 1, -1, 0, 0, 0]", "q = [0, -1, 1, 0, 0, 0]"),
    "coupling forgotten": ("q = [0, -1, 1, 0, 0, 0]", "q = [0, 0, 1, 0, 0, 0]"),
    "another axis": ("q = [0, 1, -1, 0, 0, 0]", "q = [0.001, 1, -1, 0, 0, 0]"),
}


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_a_row_that_contradicts_the_loop(altered, change):
    with refused(
        r"loop 'parallelogram' does not stay closed: at q = \[.*\] degrees link_rod and link_3 are \S+ m "
        r"apart where they meet at the zero pose, expected less than 1e-09 m; a row q of a passive joint, "
        r"or irb1400\.urdf, is wrong"
    ):
        altered("robot.toml", change)


def test_a_urdf_whose_lever_is_longer_than_the_loop_has_it(altered):
    with refused(r"loop 'parallelogram' does not stay closed: .* link_rod and link_3 are \S+ m apart"):
        altered(
            "irb1400.urdf",
            (
                '<origin xyz="-0.17 0 0" rpy="0 0 0"/>\n    <axis',
                '<origin xyz="-0.18 0 0" rpy="0 0 0"/>\n    <axis',
            ),
        )


def test_a_urdf_that_lacks_a_joint_of_the_facts(altered):
    for name in ("joint_3", "joint_elbow", "joint_rod"):
        with refused(rf"robot\.toml: irb1400\.urdf has no moving joint '{name}', only joint_1, .*joint_6"):
            altered("irb1400.urdf", (f'name="{name}"', 'name="joint_new"'))


def test_urdf_joint_missing_in_the_facts_is_rejected(altered):
    more = """<link name="link_more"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="joint_more" type="continuous"><parent link="link_6"/><child link="link_more"/></joint>
      </robot>"""
    with refused(
        r"joint 'joint_more' of irb1400\.urdf is neither in joints\.names nor has a table "
        r"\[joint\.joint_more\] with its row q"
    ):
        altered("irb1400.urdf", ("</robot>", more))


def test_a_loop_of_a_link_that_the_urdf_lacks(altered):
    with refused(r"no joint of the URDF moves link 'rod' of loop 'parallelogram'"):
        altered("irb1400.urdf", ('"link_rod"', '"link_bar"'))


def test_a_pose_that_folds_the_parallelogram(altered):
    with refused(
        r"robot\.toml: pose 'hanging': joint_elbow \(q3 - q2\) would be at 80 deg .* "
        r"link_rod would be 0\.0295 m from folding parallelogram flat"
    ):
        altered("robot.toml", ("q_deg = [0, 40, 70, 0, -30, 0]", "q_deg = [0, -10, 70, 0, -30, 0]"))


def test_a_coupling_that_the_urdf_does_not_have(altered):
    with refused(r"its DH table and irb1400\.urdf differ by \S+ in the pose of the flange"):
        altered(
            "robot.toml", ("[0, -1, 1, 0, 0, 0],\n    [0, 0, 0, 1", "[0, 0, 1, 0, 0, 0],\n    [0, 0, 0, 1")
        )


def test_every_message_is_one_sentence(altered):
    with refused(re.escape("robot.toml: ")) as caught:
        altered("robot.toml", ROWS["coupling forgotten"])
    assert "\n" not in str(caught.value)
