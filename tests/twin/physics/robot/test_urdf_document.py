"""A URDF in circulation: faults that do not matter are passed over, others told in one sentence.

Numbers of exporters: rounded angles, axes and inertias stand for what was rounded.
"""

import math

import numpy as np
import pytest

import twin
from tests.support.foreign_urdf import chain, frame, joint, link, robot
from tests.support.refusals import edits_refused
from tests.support.small_robots import one_step_error
from twin.base.errors import ModelWarning, RobotError
from twin.data.identification.torque_model import base_parameters
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.model_check import check_model
from twin.physics.robot.urdf_document import exact_angle, exact_axis, read_document
from twin.physics.robot.urdf_reader import faults

TEXT = """<robot name="arm">
<link name="base"/>
<link name="one">
  <inertial><origin xyz="0.1 0 0"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>
</link>
<joint name="turn" type="revolute">
  <parent link="base"/><child link="one"/><origin xyz="0 0 0.1" rpy="0 0 0"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" velocity="3" effort="5"/>
</joint>
</robot>"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arm.urdf"


IGNORED = "<transmission><mechanicalReduction>r</mechanicalReduction></transmission>"


HARMLESS = [
    f'<?xml version="0.0" ?>\n{TEXT}',
    f'\n<!-- of mine -->\n<?xml version="1.0"?>\n{TEXT}',
    f"{TEXT}\n\0",
    TEXT.replace("</robot>", f"{IGNORED}</robot>"),
    TEXT.replace('<box size="0.1 0.1 0.1"/>', '<plane normal="0 0 1"/>'),
    TEXT.replace('velocity="3" effort="5"', ""),
    TEXT.replace("<limit", "<safety_controller/><dynamics/><limit"),
    TEXT.replace("<visual>", '<contact><lateral_friction value="much"/></contact><visual>'),
]


def test_what_does_not_matter_is_passed_over_by_the_engine_too(load, rng):
    for text in HARMLESS:
        robot = load(text)
        assert (robot.q_min[0], robot.q_max[0]) == (-1, 1)
        with Simulation(robot) as simulation:
            assert one_step_error(simulation, rng, states=2) < 1e-12


def test_a_small_urdf(load):
    robot = load(TEXT.replace(' effort="5"', ""))
    assert (robot.name, robot.n, robot.joint_names, robot.dh) == ("arm", 1, ("turn",), None)
    assert (robot.qd_max[0], robot.tau_max[0]) == (3, np.inf)
    assert load(TEXT.replace("5", "0")).tau_max[0] == np.inf  # an effort of 0 says nothing
    np.testing.assert_allclose(twin.mass_matrix(robot, [0.3]), [[0.1 + 2 * 0.1**2]], rtol=1e-15)


BODY = TEXT[TEXT.index("<mass") : TEXT.index("</inertial>")]
AGAIN = '<joint name="again" type="fixed"><parent link="base"/><child link="one"/></joint>'
REFUSED = [
    (TEXT, "", "is not well-formed XML"),
    (TEXT, "<mujoco/>", "its root element is <mujoco>, expected <robot>"),
    (TEXT, "<robot name='a'><link name='b'/></robot>", "no joint moves"),
    ("</link>\n<joint", "<joint", "is not well-formed XML: mismatched tag: line 11"),
    ('xyz="0 0 0.1"', 'xyz="0, 0, 0.1"', "joint 'turn' has <origin xyz='0, 0, 0.1'>, expected 3 numbers"),
    ('<link name="one"', '<link name=""', "has a <link> with an empty name"),
    ('<parent link="base"/>', "", "joint 'turn' has no <parent link=...>, expected the name of a link"),
    ('<parent link="base"/>', '<parent link="bace"/>', "'bace', which is no link, did you mean 'base'"),
    ('"revolute"', '"spherical"', "joint 'turn' is of type 'spherical', supported are revolute, continuous"),
    ('child link="one"', 'child link="two"', "two"),
    ("</robot>", f"{AGAIN}</robot>", "link 'one' is the child of joints 'turn' and 'again', expected one"),
    ('lower="-1"', 'lower="2"', "joint 'turn' has the range 2 to 1, expected lower <= upper"),
    ("0 1 0", "0 0 0", "joint 'turn' has an axis of length 0, expected a direction"),
    ("0 1 0", "nan 0 0", "joint 'turn' has axis .nan, nan, nan., expected a direction"),
    ('xyz="0 0 0.1"', 'xyz="inf 0 0"', "joint 'turn' has an origin that is not finite"),
    ('velocity="3"', 'velocity="-3"', "joint 'turn' has the velocity limit -3, expected at least 0"),
    # Numbers that not all readers understand: Python reads the first three, C the last.
    *(('value="2"', f'value="{text}"', "<mass value=.*expected a number") for text in
      ("2\u00a0", "\u0662", "1_0", "2,5", "0x2")),
]  # fmt: skip


IMPOSSIBLE = [
    ('value="2"', 'value="-2"', "link 'one' has mass -2 kg, expected a finite number of at least 0"),
    ('<mass value="2"/>', "", "link 'one' has an <inertial> without mass value, or without one of ixx"),
    ('izz="0.1"', "", "link 'one' has an <inertial> without mass value, or without one of ixx"),
    (BODY, BODY.replace("0.1", "0").replace("2", "0"), "joint 'turn' moves no mass"),
    ('ixx="0.1"', 'ixx="0.3"', r"moments of inertia 0\.1, 0\.1, 0\.3 kg m\^2, which are impossible"),
    ('ixx="0.1"', 'ixx="-0.1"', r"principal moment of inertia of -0\.1"),
    ('ixx="0.1"', 'ixx="inf"', "not finite"),
]  # fmt: skip


def test_an_impossible_body_leaves_the_kinematics(load, path):
    for old, new, told in IMPOSSIBLE:
        assert old in TEXT
        robot = load(TEXT.replace(old, new, 1))
        np.testing.assert_array_equal(twin.forward_kinematics(robot, [0.0])[:3, 3], [0, 0, 0.1])
        assert not robot.has_inertia
        for refused in (lambda: twin.gravity_torque(robot, [0.0]), lambda: Simulation(robot)):  # noqa: B023
            with pytest.raises(RobotError, match=f"robot 'arm' has no dynamics: .*{told}.*unphysical=True"):
                refused()
    path.write_text(TEXT.replace('iyy="0.1"', 'iyy="0.3"'), encoding="utf-8")
    accepted = uncompiled(twin.load(path, unphysical=True))
    np.testing.assert_allclose(twin.mass_matrix(accepted, [0.3]), [[0.3 + 2 * 0.1**2]], rtol=1e-15)


def test_an_invalid_document_is_refused_in_one_sentence(path):
    edits_refused(path, TEXT, REFUSED, twin.load, RobotError)
    with pytest.raises(RobotError, match=str(path)):
        twin.load(path)


def test_joints_that_move_the_same_mass_have_no_dynamics(load):
    """Two coaxial joints with nothing between them: their accelerations are undefined."""
    thin = (
        '<link name="thin"/><joint name="first" type="continuous"><parent link="base"/><child link="thin"/>'
    )
    text = TEXT.replace('<parent link="base"/>', '<parent link="thin"/>').replace(' xyz="0 0 0.1"', "")
    robot = load(text.replace("</robot>", f'{thin}<axis xyz="0 1 0"/></joint></robot>'))
    assert "joints 'first' and 'turn' move the same mass along the same path" in robot.inertia_fault


def test_a_fixed_frame_without_mass_may_have_an_inertia(load):
    """As the bases and flanges of many published files have; it counts, as in PyBullet and Pinocchio."""
    frame = (
        '<link name="flange"><inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
        'iyz="0"/></inertial></link><joint name="fixed" type="fixed"><parent link="one"/>'
        '<child link="flange"/><axis xyz="0 0 0"/></joint></robot>'
    )
    with pytest.warns(ModelWarning, match="link 'flange': an inertia of up to 1 kg m.2 without a mass"):
        framed = load(TEXT.replace("</robot>", frame))
    added = framed.tree.inertias - load(TEXT).tree.inertias
    np.testing.assert_allclose(added, [[0, 0, 0, 0, 1, 1, 1, 0, 0, 0]], rtol=0, atol=1e-15)


def test_rounding_about_nothing_is_no_inertia(load):
    noise = (
        '<link name="dot"><inertial><mass value="1e-9"/>'
        '<inertia ixx="-1e-20" iyy="1e-20" izz="1e-20" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="glue" type="fixed"><parent link="one"/><child link="dot"/></joint></robot>'
    )
    for moment in ("-1e-20", "-1e-8"):  # below a millionth of the arm
        assert load(TEXT.replace("</robot>", noise.replace("-1e-20", moment))).has_inertia
    fault = load(TEXT.replace("</robot>", noise.replace("-1e-20", "-1e-4"))).inertia_fault
    assert "link 'dot' has a principal moment of inertia of -0.0001" in fault


def test_bytes_that_are_no_text_and_entities_are_refused(path):
    entity = f'<!DOCTYPE robot [<!ENTITY a "1">]>{TEXT.replace("""lower="-1""", """lower="&b;""")}'
    encoded = b'<?xml version="1.0" encoding="klingon"?><robot/>'
    for content in (b"\xff\xfe<robot" + bytes(range(256)), encoded, entity.encode()):
        path.write_bytes(content)
        with pytest.raises(RobotError, match="is not well-formed XML"):
            read_document(path)


def test_all_faults_are_found_at_once(path):
    text = TEXT
    for old, new in (('value="2"', 'value="-2"'), ('lower="-1"', 'lower="2"'), ("0 0 0.1", "0 0 nan")):
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    assert faults(read_document(path)) == [
        "link 'one' has mass -2 kg, expected a finite number of at least 0",
        "joint 'turn' has an origin that is not finite",
        "joint 'turn' has the range 2 to 1, expected lower <= upper",
    ]
    follower = FLANGE.replace('"none"', '"2" upper="1"').replace("nobody", "turn").replace("0 0", "0 0 1")
    follower = follower.replace("fixed", "revolute")  # its range is that of its leader
    path.write_text(TEXT.replace("</robot>", follower), encoding="utf-8")
    assert faults(read_document(path)) == []


def test_files_that_would_take_hours_are_refused(path, monkeypatch):
    deep = "<a>" * 10_000 + "</a>" * 10_000
    for where in ("<mass", "<box", "</robot>"):
        path.write_text(TEXT.replace(where, deep + where), encoding="utf-8")
        with pytest.raises(RobotError, match="has elements nested more than 50 deep"):
            twin.load(path)
    path.write_text(TEXT.replace("</robot>", '<link name="x"/>' * 600 + "</robot>"), encoding="utf-8")
    with pytest.raises(RobotError, match="has 602 links, expected at most 500"):
        twin.load(path)
    monkeypatch.setattr("twin.physics.robot.urdf_document.LARGEST", 1000)
    with pytest.raises(RobotError, match="is larger than 0 MB"):
        twin.load(path)


def test_limits_that_exporters_leave_out_are_none(load):
    limit = '<limit lower="-1" upper="1" velocity="3" effort="5"/>'
    assert limit in TEXT
    for given, ends, rates in (
        ("", np.inf, (np.inf, np.inf)),
        ('<limit lower="0" upper="0" velocity="-1" effort="-1"/>', np.inf, (np.inf, np.inf)),
        ('<limit lower="0" upper="0" velocity="2"/>', np.inf, (2, np.inf)),
        ('<limit lower="-1" upper="1" velocity="0" effort="5"/>', 1, (np.inf, 5)),
    ):
        robot = load(TEXT.replace(limit, given))
        assert (robot.q_min[0], robot.q_max[0]) == (-ends, ends)
        assert (robot.qd_max[0], robot.tau_max[0]) == rates


PREFIXED = '<gazebo><sensor:camera name="eye"><a:b c:d="1"/></sensor:camera></gazebo></robot>'


FLANGE = (
    '<link name="flange"/><joint name="glue" type="fixed"><parent link="one"/><child link="flange"/>'
    '<axis xyz="0 0"/><limit lower="none"/><mimic joint="nobody"/></joint></robot>'
)


def test_habits_of_exporters_are_read(load):
    named = TEXT.replace("<robot ", '<robot xmlns="http://www.ros.org" ')
    macro = named.replace("<robot ", '<robot xmlns:xacro="http://x" ')
    for text, end in (
        (TEXT, PREFIXED),
        (named, "</robot>"),
        (macro, f"<xacro:a/>{PREFIXED}"),
        (TEXT, FLANGE),
    ):
        robot = load(text.replace("</robot>", end))
        np.testing.assert_allclose(twin.mass_matrix(robot, [0.3]), [[0.1 + 2 * 0.1**2]], rtol=1e-15)


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
