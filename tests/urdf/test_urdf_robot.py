"""A robot.toml beside a URDF of another maker: what it adds, and how a command writes it."""

import numpy as np
import pytest

import twin
from scenarios.commands.new import beside_urdf
from scenarios.shell.command_line import main
from tests.support.foreign_urdf import chain, fingers, frame, joint, link, robot
from tests.support.refusals import edits_refused
from twin.base.errors import RobotError, UnknownNameError, WrongUse
from twin.physics.robot.evaluation import uncompiled
from urdf.schema import FactsError

TEXT = robot(chain(3), frame("hand", "link_3"), frame("probe", "link_3"))
FACTS = """
name = "mine"
title = "an arm"
urdf = "arm.urdf"
tool_frame = "probe"
source = "test"

[joints]
names = ["joint_1", "joint_2", "joint_3"]
effort = [90, inf, 30]
source = "test"

[rating]
payload = 3.0
reach = 0.8
source = "test"

[poses.up]
q = [0.1, -0.2, 0.3]

[poses.low]
q_deg = [10, 20, 30]

[tour]
poses = ["up", "low"]

[drives]
ratio = [100, 80, 60]
rotor_inertia = [1e-4, 1e-4, 1e-5]
coulomb = [5, 4, 3]
source = { ratio = "test", rotor_inertia = "test", coulomb = "test" }

[spring.one]
joint = 2
stiffness = 20.0
source = "test"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arm.urdf").write_text(TEXT)
    (tmp_path / "robot.toml").write_text(FACTS)
    return tmp_path


def test_tables_of_a_robot_toml_add_to_the_urdf(folder):
    bare, found = uncompiled(twin.load(folder / "arm.urdf")), twin.load(folder)
    assert (found.name, found.tool_frame, found.rating.payload) == ("mine", "probe", 3.0)
    assert found.tau_max.tolist() == [90, np.inf, 30]
    np.testing.assert_array_equal(found.q_max, bare.q_max)
    np.testing.assert_array_equal(found.tree.inertias, bare.tree.inertias)
    np.testing.assert_allclose(found.poses["low"], np.deg2rad([10, 20, 30]))
    q, qd, qdd = np.array([[0.1, 0.2, 0.3], [1.0, -1, 0.5], [2.0, 1, -3]])
    rigid = uncompiled(found.with_drives("rigid"))
    expected = twin.inverse_dynamics(bare, q, qd, qdd) + np.array([0, 20.0 * 0.2, 0])
    expected += np.array([1.0, 0.64, 0.036]) * qdd + np.array([5, 4, 3]) * np.sign(qd)
    np.testing.assert_allclose(twin.inverse_dynamics(rigid, q, qd, qdd), expected, atol=1e-12)
    assert twin.check_model(folder).sound


DH = '[dh]\ntheta0_deg = [0, 0, 0]\nd = [0, 0, 0]\na = [0, 0, 0.1]\nalpha_deg = [0, 0, 0]\nsource = "test"\n'
FAULTS = [
    ("[tour]", f"{DH}[tour]", r"its DH table and arm\.urdf differ by .* in the pose of the flange"),
    ('"joint_3"]', '"joint_4"]', r"joints.names are .*, expected those of arm\.urdf that have a motor"),
    ('urdf = "arm.urdf"', 'urdf = "leg.urdf"', r"no such robot file: .*leg\.urdf"),
    ('"probe"', '"prob"', "unknown link 'prob' of arm, did you mean 'probe'"),
    ("[90, inf, 30]", "[90, inf, 0]", "joint_3: expected q_min < q_max, and qd_max and effort above 0"),
    ("q = [0.1", "q_deg = [1, 2, 3]\nq = [0.1", "poses.up: expected one of q, in rad or m, and q_deg"),
    ("q = [0.1, -0.2, 0.3]\n", "", "poses.up: expected one of q, in rad or m, and q_deg"),
    ("q = [0.1", "q = [9.1", "pose 'up': joint_1 would be at .*, its range is"),
    ("[joints]", "[link.one]\nmass = 1\n[joints]", "unknown key 'link' in the top level"),
    ('poses = ["up"', 'poses = ["ap"', "there is no pose 'ap'"),
]


def test_each_fault_is_one_sentence(folder):
    errors = (RobotError, UnknownNameError, FactsError)
    edits_refused(folder / "robot.toml", FACTS, FAULTS, twin.load, errors)


def test_unphysical_bodies_need_a_reason_in_the_file(folder):
    (folder / "arm.urdf").write_text(TEXT.replace('izz="0.025"', 'izz="0.25"'))
    assert "which are impossible" in twin.load(folder).inertia_fault
    (folder / "robot.toml").write_text(FACTS.replace("[joints]", 'unphysical = "a test"\n[joints]', 1))
    assert twin.load(folder).has_inertia


def test_new_robot_writes_what_is_known_beside_a_urdf(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text(robot(chain(2), frame("hand", "link_2"), fingers("hand")).replace('effort="50"', "", 1))
    assert main(["new", "robot", "--from", str(path)]) == 0
    text = (tmp_path / "robot.toml").read_text()
    assert "# The URDF has no effort of joint_1: inf is no limit." in text
    given, found = twin.load(path, locked={"left_finger_joint": 0.0}), twin.load(tmp_path)
    assert "# The gripper (left_finger_joint) does not move: take [joints.locked] away for that." in text
    assert dict(found.locked) == dict(given.locked)
    assert (found.name, found.tool_frame, found.tool_reason) == ("arm", "hand", "")
    for limits in ("q_min", "q_max", "qd_max", "tau_max"):
        np.testing.assert_array_equal(getattr(found, limits), getattr(given, limits))
    uncommented = text.replace("# [", "[")
    for key in ("payload", "reach", "source", "q", "ratio", "rotor_inertia", "coulomb", "viscous"):
        uncommented = uncommented.replace(f"# {key} =", f"{key} =")
    (tmp_path / "robot.toml").write_text(uncommented)  # the examples in the comments are valid
    assert twin.load(tmp_path).with_drives("rigid").drives.ratio.tolist() == [100.0] * 2
    capsys.readouterr()
    assert main(["new", "robot", "--from", str(path)]) == 2
    assert "robot.toml exists already" in capsys.readouterr().err
    assert main(["new", "controller", "--from", str(path)]) == 2
    assert main(["new", "robot", "Mine", "--from", str(path)]) == 2
    assert main(["new", "robot", "--from", "irb140"]) == 2
    assert "--from irb140: expected a file name that ends in .urdf" in capsys.readouterr().err


def test_missing_masses_are_a_comment_of_the_new_file(tmp_path):
    path = tmp_path / "1st-arm.urdf"
    endless = joint("joint_2", "link_1", "link_2", "continuous", inside="")
    path.write_text(
        '<robot name="1st-arm">' + chain(1, masses=False) + link("link_2", None) + endless + "</robot>"
    )
    ((target, text),) = beside_urdf(path).items()
    assert "# No dynamics: joint 'joint_1' moves no mass" in text
    assert "# Not all joints have a range" in text
    target.write_text(text)
    assert twin.load(tmp_path / "robot.toml").name == "robot_1st_arm"
    with pytest.raises(WrongUse, match="exists already"):
        beside_urdf(path)


def test_a_folder_without_a_robot_is_refused(tmp_path):
    with pytest.raises(RobotError, match=r"expected a folder with a robot.toml, a dh.toml or .*, found none"):
        twin.load(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.urdf").write_text(TEXT)
    with pytest.raises(RobotError, match=r"found a\.urdf, b\.urdf"):
        twin.load(tmp_path)


def test_new_robot_has_a_folder_of_its_name_for_a_urdf_elsewhere(tmp_path, monkeypatch, capsys):
    (tmp_path / "maker").mkdir()
    (tmp_path / "maker" / "arm.urdf").write_text(robot(chain(2)))
    monkeypatch.chdir(tmp_path)
    words = ["new", "robot", "mine", "--from", "maker/arm.urdf"]
    assert main(words) == 0
    assert "irb-twin check-model ./mine/robot.toml" in capsys.readouterr().out
    found = twin.load("mine")
    assert (found.name, found.urdf.resolve()) == ("mine", (tmp_path / "maker" / "arm.urdf").resolve())
    assert main(words) == 2
    assert "mine exists already" in capsys.readouterr().err
    assert main(["new", "robot", "other", "--from", "maker/arm.urdf", "--folder", "mine"]) == 0
    assert twin.load("mine/other").n == 2
