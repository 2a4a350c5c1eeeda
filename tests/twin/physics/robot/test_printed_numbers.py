"""Numbers of exporters: rounded angles, axes and inertias stand for what was rounded."""

import math

import numpy as np
import pytest

import twin
from tests.support.foreign_urdf import chain, frame, joint, link, robot
from twin.data.identification.torque_model import base_parameters
from twin.physics.robot.model_check import check_model
from twin.physics.robot.urdf_document import exact_angle, exact_axis

ANGLES = [
    ("1.5708", 90), ("-1.5708", -90), ("3.14159", 180), ("0.785398", 45), ("1.57", 90), ("3.14", 180),
    ("0.5236", 30), ("0.262", 15), ("1.5707963267949", 90), ("-3.1416e+00", -180), ("1.5707", 90),
    ("3.1415", 180), ("6.2832", 360), ("2.617994", 150), ("+1.571", 90), ("1.570", 90),
]  # fmt: skip
OTHERS = ["0.5", "1", "0.52", "1.6", "1.5705", "1.5710", "0.8", "0", "0.0", "1e-9", "2", "0.79", "nan"]


def test_a_rounded_angle_is_the_multiple_of_15_degrees():
    for word, degrees in ANGLES:
        assert exact_angle(word) == pytest.approx(math.radians(degrees), abs=1e-15), word
    for word in OTHERS:
        np.testing.assert_equal(exact_angle(word), float(word))


def test_rounded_axes_are_exact_directions():
    half, root = 0.5, math.sqrt(0.75)
    for words, expected in (
        ("0.9999 0.0001 0", (1, 0, 0)), ("0.7071 0 -0.7071", (math.sqrt(0.5), 0, -math.sqrt(0.5))),
        ("0.866 0.5 0", (root, half, 0)), ("0 -0.8660 0.5", (0, -root, half)), ("0 0 -1", (0, 0, -1)),
    ):  # fmt: skip
        np.testing.assert_allclose(exact_axis(words.split()), expected, atol=1e-15)
    for words in ("0 1 1", "0.99 0.1 0", "0.6 0.8 0", "0.998 0.06 0", "1 0.001 0", "0.9 0.1 0"):
        assert exact_axis(words.split()) == [float(word) for word in words.split()]


PLATE = '<inertia ixx="0.00123" iyy="0.00456" izz="0.0058" ixy="0" ixz="0" iyz="0"/>'
WRONG = PLATE.replace("0.0058", "0.0068")


def test_moments_that_miss_the_inequality_by_rounding_are_possible(load):
    for inertia, possible in ((PLATE, True), (WRONG, False)):
        body = f'<inertial><mass value="1"/>{inertia}</inertial>'
        found = load(robot(chain(2).replace('name="link_2">', f'name="link_2">{body}', 1)))
        assert found.has_inertia == possible
        assert possible or "principal moments of inertia 0.00123, 0.00456, 0.0068" in found.inertia_fault


def rounded_arm(quarter):
    """Return six axes whose frames are turned by quarter turns, as exporters write them."""
    text = link("link_0")
    for k in range(1, 7):
        text += link(f"link_{k}", 2.0)
        turn = (f"{quarter} 0 0", f"-{quarter} 0 0", "0 0 0")[k % 3]
        text += joint(f"joint_{k}", f"link_{k - 1}", f"link_{k}", axis="0 0 1", xyz="0.1 0 0.2", rpy=turn)
    return robot(text)


def test_a_rounded_quarter_turn_gives_the_base_parameters_of_an_exact_one(load, tmp_path):
    exact, rounded = load(rounded_arm(repr(math.pi / 2))), load(rounded_arm("1.5708"))
    np.testing.assert_array_equal(rounded.tree.T_parent_joint, exact.tree.T_parent_joint)
    assert len(base_parameters(rounded).columns) == len(base_parameters(exact).columns)
    (note,) = [text for _, text in check_model(tmp_path / "robot.urdf").findings if "rounded" in text]
    assert note.startswith("rounded, and read as multiples of 15 degrees: joint 'joint_1': rpy -1.5708; ")


def test_a_body_below_a_millionth_of_the_arm_never_leaves_it_without_dynamics(load):
    dust = (
        '<inertial><mass value="1e-7"/><inertia ixx="-1e-8" iyy="1e-8" izz="3e-8" ixy="0" ixz="0" iyz="0"/>'
    )
    found = load(robot(chain(2), f'<link name="dust">{dust}</inertial></link>', frame_of("dust")))
    assert found.has_inertia
    clean = load(robot(chain(2)), "clean.urdf")
    q = [0.3, -0.4]
    np.testing.assert_allclose(twin.gravity_torque(found, q), twin.gravity_torque(clean, q), atol=1e-5)
    assert np.any(twin.gravity_torque(found, q) != twin.gravity_torque(clean, q))


def frame_of(name):
    return frame(name, "link_2").partition("\n")[2]  # without the link
