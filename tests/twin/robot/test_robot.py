"""Loading robots: what is accepted, and the one sentence that refuses what no simulation could mean."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twin
from twin.errors import RobotError, UnknownNameError

IRB140 = twin.load("irb140").urdf.with_name("robot.toml")
URDF = """<robot name="arm">
  <link name="base"/>
  <link name="one">
    <inertial><origin xyz="0.1 0 0"/><mass value="{mass}"/>
      <inertia ixx="{ixx}" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="turn" type="{kind}">
    <parent link="base"/><child link="{child}"/><origin xyz="{origin}"/><axis xyz="{axis}"/>
    <limit lower="{lower}" upper="1" velocity="{velocity}" effort="0"/>
  </joint>
</robot>"""
GOOD = {
    "origin": "0 0 0",
    "axis": "0 0 1",
    "mass": "2",
    "ixx": "0.1",
    "kind": "revolute",
    "child": "one",
    "lower": "-1",
    "velocity": "3",
}


def written(tmp_path, text, name="arm.urdf"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_small_urdf(tmp_path):
    robot = twin.load(written(tmp_path, URDF.format(**GOOD)))
    assert (robot.name, robot.n, robot.joint_names) == ("arm", 1, ("turn",))
    assert robot.tau_max[0] == np.inf  # an effort of 0 says nothing
    assert robot.dh is None
    np.testing.assert_allclose(twin.mass_matrix(robot, [0.3]), [[0.1 + 2 * 0.1**2]], rtol=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": "-2"}, "link 'one' has mass -2 kg, expected a finite number of at least 0"),
        ({"mass": "nan"}, "link 'one' has mass nan kg"),
        ({"mass": "heavy"}, "cannot be read as a URDF: .*heavy"),
        ({"mass": "0"}, "link 'one' has inertia but no mass"),
        ({"ixx": "0.3"}, "principal moments of inertia 0.1, 0.1, 0.3 kg m\\^2, which are impossible"),
        ({"ixx": "-0.1"}, "principal moment of inertia of -0.1"),
        ({"ixx": "inf"}, "not finite"),
        (
            {"kind": "planar"},
            "type 'planar', supported are revolute, continuous, prismatic, fixed",
        ),
        ({"kind": "spinning"}, "spinning"),
        ({"child": "two"}, "two"),
        ({"lower": "2"}, "joint 'turn' has the range 2 to 1, expected lower <= upper"),
        ({"axis": "0 0 0"}, "joint 'turn' has an axis of length 0, expected a direction"),
        ({"axis": "nan 0 0"}, "joint 'turn' has axis .nan, nan, nan., expected a direction"),
        ({"origin": "nan 0 0"}, "joint 'turn' has an origin that is not finite"),
        ({"origin": "inf 0 0"}, "joint 'turn' has an origin that is not finite"),
        ({"velocity": "-3"}, "joint 'turn' has the velocity limit -3, expected at least 0"),
    ],
)
def test_an_impossible_urdf_is_refused(tmp_path, change, message):
    path = written(tmp_path, URDF.format(**GOOD | change))
    with pytest.raises(RobotError, match=message) as caught:
        twin.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot name='a'><link name='b'>", "not well-formed XML"),
        ("", "not well-formed XML"),
        ("<mujoco/>", "its root element is <mujoco>, expected <robot>"),
        ("<robot name='a'><link name='b'/></robot>", "no joint moves"),
        (
            "<robot name='a'><link name='b'/><link name='c'><inertial><mass value='0'/><inertia ixx='0' "
            "ixy='0' ixz='0' iyy='0' iyz='0' izz='0'/></inertial></link><joint name='j' type='continuous'>"
            "<parent link='b'/><child link='c'/></joint></robot>",
            "joint 'j' moves no mass",
        ),
    ],
)
def test_a_malformed_urdf_is_refused(tmp_path, text, message):
    with pytest.raises(RobotError, match=message):
        twin.load(written(tmp_path, text))


def test_a_link_with_two_parents_is_refused(tmp_path):
    joint = '<joint name="again" type="fixed"><parent link="base"/><child link="one"/></joint></robot>'
    text = URDF.format(**GOOD).replace("</robot>", joint)
    with pytest.raises(
        RobotError, match="link 'one' is the child of joints 'turn' and 'again', expected one"
    ):
        twin.load(written(tmp_path, text))


def test_a_missing_file_and_an_unknown_name():
    with pytest.raises(RobotError, match=r"no such robot file: /nowhere/arm\.urdf"):
        twin.load("/nowhere/arm.urdf")
    with pytest.raises(UnknownNameError, match="unknown robot 'irb99': known are irb140"):
        twin.load("irb99")


def test_robot_toml_with_an_unknown_key_or_a_short_row(tmp_path):
    facts = twin.load("irb140").urdf.with_name("robot.toml").read_text()
    with pytest.raises(RobotError, match="unknown key 'colour'"):
        twin.load(written(tmp_path, 'colour = "orange"\n' + facts, "robot.toml"))
    start = facts.index("alpha_deg")
    end = facts.index("\n", start)
    short = facts[:start] + "alpha_deg = [-90, 0, 90]" + facts[end:]
    with pytest.raises(RobotError, match="expected 6 numbers, got 3"):
        twin.load(written(tmp_path, short, "robot.toml"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d = [0.352", "d = [0.452", r"DH table and irb140\.urdf differ by 0\.1 in the pose of the flange"),
        (
            "q_deg = [28.79",
            "q_deg = [288",
            r"pose 'test_1': joint_1 would be at 288 deg .*its range is -180 deg",
        ),
    ],
)
def test_robot_toml_that_contradicts_its_urdf(tmp_path, old, new, message):
    facts = IRB140.read_text()
    assert old in facts
    written(tmp_path, IRB140.with_name("irb140.urdf").read_text(), "irb140.urdf")
    with pytest.raises(RobotError, match=message):
        twin.load(written(tmp_path, facts.replace(old, new), "robot.toml"))


def test_a_fixed_frame_without_mass_may_have_an_inertia(tmp_path):
    """As the bases and flanges of many published files have; it counts for nothing."""
    frame = (
        '<link name="flange"><inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
        'iyz="0"/></inertial></link><joint name="fixed" type="fixed"><parent link="one"/>'
        '<child link="flange"/><axis xyz="0 0 0"/></joint></robot>'
    )
    bare, framed = (URDF.format(**GOOD).replace("</robot>", end) for end in ("</robot>", frame))
    bodies = [twin.load(written(tmp_path, text)).tree.inertias for text in (bare, framed)]
    assert np.array_equal(*bodies)


def test_robot_toml_by_path_is_the_robot_by_name():
    by_name = twin.load("irb140")
    by_path = twin.load(by_name.urdf.with_name("robot.toml"))
    assert np.array_equal(by_name.tree.inertias, by_path.tree.inertias)
    assert np.array_equal(by_name.poses["test_1"], by_path.poses["test_1"])


def test_joints_that_move_the_same_mass_are_refused(tmp_path):
    """Two coaxial joints with nothing between them: their accelerations are undefined."""
    again = (
        '<link name="thin"/><joint name="first" type="continuous"><parent link="base"/><child link="thin"/>'
        '<axis xyz="0 0 1"/></joint></robot>'
    )
    text = URDF.format(**GOOD).replace('<parent link="base"/>', '<parent link="thin"/>')
    with pytest.raises(RobotError, match="joints 'first' and 'turn' move the same mass along the same path"):
        twin.load(written(tmp_path, text.replace("</robot>", again)))


def test_payloads_come_off_to_the_last_bit():
    robot = twin.load("irb140")
    inertia = np.random.default_rng(7).normal(size=(3, 3))
    inertia = np.eye(3) + 1e-3 * inertia @ inertia.T
    loaded = robot.with_payload(twin.Payload(6.0, (0.01, 0.02, 0.08), inertia))
    assert np.array_equal(loaded.with_payload(None).tree.inertias, robot.tree.inertias)
    assert np.array_equal(loaded.with_payload(loaded.payload).tree.inertias, loaded.tree.inertias)
    for seed in range(200):
        R = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
        twin.Payload(1.0, (0, 0, 0), R @ np.diag([1.0, 2.0, 3.0]) @ R.T)  # symmetric but for rounding


def test_payload_and_mounting_are_checked():
    robot = twin.load("irb140")
    with pytest.raises(ValueError, match="payload mass of at least 0 kg, got -1"):
        twin.Payload(-1.0)
    with pytest.raises(ValueError, match="payload mass"):
        twin.Payload(float("nan"))
    with pytest.raises(ValueError, match="no body has the principal moments"):
        twin.Payload(1.0, (0, 0, 0), np.diag([1.0, 1.0, 3.0]))
    with pytest.raises(ValueError, match="payload without mass"):
        twin.Payload(0.0, (0, 0, 0), np.eye(3))
    with pytest.raises(ValueError, match="symmetric"):
        twin.Payload(1.0, (0, 0, 0), [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(UnknownNameError, match="unknown mounting 'ceiling': known are floor, wall, inverted"):
        robot.mounted("ceiling")
    with pytest.raises(ValueError, match="gravity vector of 3 finite numbers"):
        robot.with_gravity([0, 0])


def test_a_robot_is_immutable():
    robot = twin.load("irb140")
    with pytest.raises(ValueError, match="read-only"):
        robot.q_min[0] = 0.0
    with pytest.raises(AttributeError):
        robot.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


NUMBER = re.compile(r"(?<=[ \"=\[])-?\d+(?:\.\d+)?(?:e-?\d+)?(?=[ \",\]\n])")
WORDS = st.sampled_from(["", "nan", "inf", "-1", "0", "1e400", "x", "1 2", '"', "<", "[", "-1e-3", "1e9"])


def damaged(text: str, data: st.DataObject) -> str:
    """The text with a number replaced, a line lost or said twice, or cut short."""
    kind = data.draw(st.sampled_from(["number", "lost", "twice", "cut"]))
    if kind == "number":
        places = list(NUMBER.finditer(text))
        place = places[data.draw(st.integers(0, len(places) - 1))]
        return text[: place.start()] + data.draw(WORDS) + text[place.end() :]
    if kind == "cut":
        return text[: data.draw(st.integers(0, len(text)))]
    lines = text.splitlines(keepends=True)
    line = data.draw(st.integers(0, len(lines) - 1))
    return "".join(
        [*lines[:line], *(lines[line : line + 1] * (2 if kind == "twice" else 0)), *lines[line + 1 :]]
    )


@pytest.mark.parametrize("which", ["urdf", "toml"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_whatever_the_file_a_clear_error_or_a_sound_robot(tmp_path_factory, which, data):
    folder = tmp_path_factory.mktemp("robot")
    urdf, toml = IRB140.with_name("irb140.urdf").read_text(), IRB140.read_text()
    (folder / "irb140.urdf").write_text(damaged(urdf, data) if which == "urdf" else urdf)
    (folder / "robot.toml").write_text(damaged(toml, data) if which == "toml" else toml)
    try:
        robot = twin.load(folder / ("irb140.urdf" if which == "urdf" else "robot.toml"))
    except RobotError as error:
        message = str(error)
    else:
        assert np.all(np.isfinite(robot.tree.inertias))
        assert np.all(np.isfinite(robot.tree.T_parent_joint))
        assert np.all(robot.q_min <= robot.q_max)
        return
    assert str(folder) in message
    assert "\n" not in message


@pytest.mark.parametrize(("degrees", "name"), [(0, "floor"), ("-90", "wall"), (180.0, "inverted")])
def test_mounting_in_degrees_about_the_y_axis_includes_the_named_ones(irb140, degrees, name):
    tilted = irb140.mounted(degrees).gravity
    np.testing.assert_allclose(tilted, irb140.mounted(name).gravity, rtol=0, atol=2e-15)


def test_tilted_base_leans_the_arm_forward(irb140):
    R = twin.rotations.matrix_from_euler([0.0, np.deg2rad(30.0), 0.0], "zyx")
    np.testing.assert_allclose(irb140.mounted("30").gravity, R.T @ irb140.gravity, rtol=0, atol=2e-15)
    for wrong in ("sideways", float("nan")):
        with pytest.raises(
            UnknownNameError, match="known are floor, wall, inverted, and degrees about the base"
        ):
            irb140.mounted(wrong)
