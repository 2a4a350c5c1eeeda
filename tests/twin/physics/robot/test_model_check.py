"""The model check reports every fault of a robot file and reports nothing for a sound file."""

import re

import pytest

from tests.support.refusals import edits_refused
from tests.support.small_robots import SOUND
from twin.base.errors import RobotError
from twin.physics.robot.model_check import check_model

ROD, CAN = 'ixx="0.004" iyy="0.03" izz="0.03"', 'xyz="0 0 0.1" rpy'
TURN, AXIS, MOMENTS = 'lower="-1" upper="1"', '<axis xyz="0 0 1"/>', 'ixx="0.004" iyy="0.03"'
BOX, LARGE = '<box size="0.3 0.1 0.1"/>', "link 'one': moments of inertia as of a "
FRAMES = "".join(
    f'<link name="{name}"/>'
    f'<joint name="to_{name}" type="fixed"><parent link="one"/><child link="{name}"/></joint>'
    for name in "ab"
)
PLATE = (
    '<link name="plate"><visual><geometry><sphere radius="0.01"/></geometry></visual></link>'
    '<joint name="glue" type="fixed"><parent link="two"/><child link="plate"/></joint></robot>'
)
BRANCH = (
    '<link name="c"><inertial><mass value="0.1"/>'
    '<inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="to_c" type="continuous"><parent link="base"/><child link="c"/>'
    '<limit velocity="1" effort="1"/></joint></robot>'
)
INERTIAL = SOUND[SOUND.index("<inertial>") : SOUND.index("</inertial>") + 11]
# The text to replace, its replacement, and patterns of the finding and of a second one, if there is one.
FINDINGS = [
    ('xyz="0.15 0 0"/><m', 'xyz="150 0 0"/><m', "error: link 'one': the centre .* by 150 m for a size of"),
    (ROD, 'ixx="4e3" iyy="3e4" izz="3e4"', f"error: {LARGE}far larger"),
    ('"0.3 0 0"', '"300 0 0"', "error: link 'one': a joint lies outside .* 300 m for", "the robot measures"),
    (CAN, 'xyz="0 0 0.9" rpy', "warning: link 'two': the centre of mass lies outside the link, by 0.7"),
    (CAN, 'xyz="0 0 -0.7" rpy', "warning: link 'two': the centre of mass lies outside the link, by 0.7"),
    (CAN, 'xyz="0 0 7" rpy', "error: link 'two': the distance of the centre of mass exceeds the robot's"),
    (ROD, 'ixx="0.01" iyy="0.4" izz="0.4"', f"warning: {LARGE}larger"),
    (ROD, 'ixx="1e-6" iyy="1e-6" izz="1e-6"', f"warning: {LARGE}far smaller .* gyration of 0.000577 m"),
    ('<mass value="1"/>', '<mass value="100"/>', "warning: link 'two': denser than any metal"),
    ('value="3"', 'value="-3"', "error: link 'one' has mass -3 kg, expected"),
    ('value="3"', 'value="nan"', "error: link 'one' has mass nan kg"),
    ('value="3"', 'value="inf"', "error: link 'one' has mass inf kg"),
    (MOMENTS, 'ixx="nan" iyy="0.03"', "error: link 'one' has an inertial .* not finite"),
    (MOMENTS, 'ixx="inf" iyy="0.03"', "error: link 'one' has an inertial .* not finite"),
    (MOMENTS, 'ixx="0.07" iyy="0.03"', "error: link 'one' .* which are impossible"),
    (INERTIAL, "", "warning: link 'one': moved by a joint, but massless", "shapes but no <inertial>"),
    (' velocity="3"', "", "warning: joint 'turn': no speed limit, or 0, assumed to be unlimited"),
    ('effort="50"', 'effort="0"', "warning: joint 'slide': no effort limit, or 0, assumed to be unlimited"),
    (TURN, "", "warning: joint 'turn': no range, assumed to be endless"),
    (TURN, 'lower="2" upper="1"', "error: joint 'turn' has the range 2 to 1"),
    (TURN, 'lower="1" upper="1"', "warning: joint 'turn': the range is a single point"),
    (TURN, 'lower="-180" upper="180"', r"warning: joint 'turn': .* is it in degrees\?"),
    (AXIS, f'{AXIS}<mimic joint="turn"/>', "note: joint 'slide': follows another joint, whose range it has"),
    (AXIS, f'{AXIS}<dynamics damping="2"/>', "note: joint 'slide': damping and friction are ignored"),
    (BOX, '<mesh filename="one.stl"/>', r"warning: mesh 'one\.stl': no such file"),
    (BOX, "<capsule/>", "note: link 'one': shapes of unknown extent"),
    ("</robot>", PLATE, "note: link 'plate': shapes but no <inertial>, assumed massless"),
    (
        "</robot>",
        FRAMES + BRANCH,
        "note: the tool frame is 'two', the end of the longest chain; other ends are c, a, b",
        "note: joint 'to_c' moves freely, but not the tool frame 'two'",
    ),
]


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "arm.urdf"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_a_sound_file_has_no_findings(write):
    check = check_model(write(SOUND))
    assert check.findings == ()
    assert check.sound
    assert check.mass == 4.0
    assert [joint.name for joint in check.moving_joints] == ["turn", "slide"]
    assert [link.name for link in check.massive_links] == ["one", "two"]


def test_each_fault_is_reported_with_nothing_else(write):
    for old, new, *told in FINDINGS:
        assert old in SOUND
        findings = check_model(write(SOUND.replace(old, new, 1))).findings
        found = [f"{severity}: {text}" for severity, text in findings]
        assert len(found) == len(told), found
        assert all(any(re.search(pattern, text) for text in found) for pattern in told), found


def test_the_extent_of_a_link_includes_parts_fixed_to_it(write):
    """A fixed joint turns y of the mast to z of the link, so the mast extends the link by 0.7 m along z."""
    out = SOUND.replace(CAN, 'xyz="0 0 0.6" rpy').replace('iyy="0.004"', 'iyy="0.0041"')
    mast = (
        '<link name="mast"><visual><origin xyz="0 0.35 0"/><geometry><box size="0.1 0.7 0.1"/></geometry>'
        '</visual></link><joint name="glue" type="fixed"><parent link="two"/><child link="mast"/>'
        '<origin rpy="1.5707963267948966 0 0"/></joint></robot>'
    )
    assert [finding.severity for finding in check_model(write(out)).findings] == ["warning"]
    found = check_model(write(out.replace("</robot>", mast))).findings
    assert [finding.severity for finding in found] == ["note"]  # the mast has no mass


def test_a_centre_of_mass_may_lie_a_tenth_outside(write):
    """Shapes are approximate, so the centre of mass may lie outside by a tenth of the link's 0.245 m."""
    for length, count in ((0.09, 0), (0.11, 1)):
        out = 0.2 + length * 0.245
        found = check_model(write(SOUND.replace(CAN, f'xyz="0 0 {out!r}" rpy'))).findings
        assert len(found) == count


def test_a_small_part_fixed_to_a_large_one_has_no_findings(write):
    inertia = '<inertia ixx="4e-7" iyy="4e-7" izz="4e-7" ixy="0" ixz="0" iyz="0"/>'
    small = PLATE.replace("<visual>", f'<inertial><mass value="0.01"/>{inertia}</inertial><visual>')
    assert check_model(write(SOUND.replace("</robot>", small))).findings == ()


def scaled(attributes, factor):
    """Return the sound robot with attributes of these names times a factor."""

    def larger(match):
        return f'{match[1]}="{" ".join(repr(float(word) * factor) for word in match[2].split())}"'

    return re.sub(rf'\b({attributes})="([^"]*)"', larger, SOUND)


def test_masses_in_another_unit_are_an_error(write):
    for factor, told in ((1e3, "denser than any metal, .*in g"), (1e-4, "lighter than air, .*in t")):
        (found,) = check_model(write(scaled("value|i[xyz]{2}", factor))).findings
        assert found.severity == "error"
        assert re.search(told, found.text), found


def test_a_robot_in_millimetres_is_reported(write):
    found = check_model(write(scaled("xyz|size|length|radius", 1000))).findings
    assert any("the robot measures" in told and "are its lengths in mm?" in told for _, told in found)


UNREADABLE = [
    (SOUND, "", "is not well-formed XML"),
    (SOUND, "<robot/>", "has no <link>"),
    ('name="base"', 'name="elsewhere"', "joint 'turn' has the parent 'base', which is no link"),
    ("</robot>", '<link name="isle"/></robot>', "links 'base', 'isle' have no joint, expected one"),
    ('child link="two"', 'child link="one"', "child of joints 'turn' and 'slide'|cannot be read"),
    ('parent link="base"', 'parent link="two"', "joints of links 'one', 'two' form a circle"),
    ('"prismatic"', '"floating"', "joint 'slide' is of type 'floating'"),
    (MOMENTS, 'ixx="a" iyy="0.03"', "'one' has <inertia ixx='a'>, expected a number"),
]


def test_a_file_that_cannot_be_read_raises_one_sentence(tmp_path):
    edits_refused(tmp_path / "arm.urdf", SOUND, UNREADABLE, check_model, RobotError)
    (tmp_path / "folder.urdf").mkdir()
    with pytest.raises(RobotError, match=r"expected a robot file, .*folder\.urdf is a folder"):
        check_model(tmp_path / "folder.urdf")


def test_length_that_is_not_a_number_is_reported_once(write):
    found = check_model(write(SOUND.replace('xyz="0.3 0 0"', 'xyz="nan 0 0"'))).findings
    assert [told for _, told in found] == ["joint 'slide' has an origin that is not finite"]
