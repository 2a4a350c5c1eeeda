"""A malformed robot.toml is refused in one sentence, and nothing is written."""

from contextlib import nullcontext
from itertools import product

import pytest

import twin
from tests.support.refusals import edits_refused
from twin.base.errors import RobotError
from urdf import build, dh_facts
from urdf.facts import Joint, check, read, tree
from urdf.schema import FactsError, tomllib

COMMITTED = build.HERE
ROBOTS = ("irb140", "irb1400", "irb1600")

# Of each malformed robot.toml: text to replace, its replacement, and what the one sentence says.
ARM = [
    ("mass = 98.0", "mass = 98.0\nwheels = 4", "unknown key 'wheels' in the top level: known are name"),
    ("d = [0.352, 0, 0, 0.380, 0, 0.065]\n", "", "table [dh] lacks the key 'd'"),
    ("d = [0.352", "d = [nan", "dh.d: expected finite numbers, got NaN"),
    ("d = [0.352", "d = [true", "dh.d: expected finite numbers, got True"),
    ("q_max_deg = [180", "q_max_deg = [-190", "joint_1: expected q_min_deg < q_max_deg, got -180 and -190"),
    ("qd_max_deg_s = [200", "qd_max_deg_s = [0", "joint_1: expected qd_max_deg_s above 0, got 0"),
    ("{ cylinder = 0.160,", "{ cone = 0.160,", "link.base.visual: expected one of box, cylinder, sphere"),
    ("alpha_deg = [-90", "alpha_deg = [-80", "row 1 of [dh] has theta0 = 0 and alpha = -80 degrees: this"),
    ("inertia = [0.239763089", "inertia = [0.9", "link.1: no body has the principal moments"),
    ('color = "orange"', 'color = "mauve"', "color 'mauve', known are orange, grey, steel"),
    ("to = [0, 0, 0.062]", "to = [0, 0, 0]", "a cylinder from [0, 0, 0] to the same point has no length"),
    ("[link.4]", "[link.four]", "expected the tables link.base, link.1, link.2, link.3, link.4"),
    ('"joint_2", "joint_3"', '"joint_2", "joint_2"', "joints.names: expected a list of different names"),
    ('"joint_2"', "'<joint>'", "expected names of letters, digits and _, got '<joint>'"),
    ("[dh]", "[dh", "is not a TOML file"),
    ('name = "irb140"', 'name = "irb1400"', "expected name = 'irb140', got 'irb1400'"),
]
AXIS, ROW = "at = [0.150, 0, 0.475]\naxis = [0, 1, 0]", "q = [0, 1, -1, 0, 0, 0]"
EYES, ENDS = "at = [[-0.020, 0, 1.075], [-0.020, 0, 1.075]]", 'links = ["rod", "3"]'
BOX, HOLLOW = "solid = { box = [0.230, 0.030, 0.060],", "solid = { hollow_box = [0.230, 0.030, 0.060],"
SPARE = "[link.spare]\nsolid = { box = [1, 1, 1], at = [0, 0, 0] }\nvisual = []\ncollision = []\n[link.rod]"
PARALLELOGRAM = [
    ("    [0, 0, 0, 0, 0, 1],\n]", "]", "dh.coupling: expected 6 rows of 6 numbers, got 5"),
    ('parent = "lever"', 'parent = "crank"', "joint.joint_rod.parent: there is no link 'crank', known are"),
    ('child = "rod"', 'child = "base"', "joint_rod.child: no joint moves the base"),
    (AXIS, AXIS.replace("1, 0]", "0.8, 0.6]"), "joint_3.axis: expected a base axis such as [0, -1, 0], got"),
    (ROW, "", "table [joint.joint_rod] lacks the key 'q', which a joint that is not in joints.names needs"),
    ("[-75, 75]", "[75, -75]", "joint_elbow.range_deg: expected lowest < highest, got 75 and -75"),
    ("joint.joint_rod", "joint.joint_tool", "joint_tool is the fixed joint of the flange: expected another"),
    ('child = "rod"', 'child = "lever"', "link.lever is the child of two joints, joint_3 and joint_rod"),
    ("[link.rod]", SPARE, "link.spare is the child of no joint: expected a [joint.<name>] that moves it"),
    ('parent = "1"', 'parent = "rod"', "link.lever, link.rod hang on each other: expected a way from each"),
    ('parent = "2"', 'parent = "lever"', "joint.joint_elbow: link.3 hangs on link.lever, expected link.2"),
    (EYES, EYES.replace("1.075]]", "1.080]]"), "the point of link.rod is 0.005 m away from that of link.3"),
    (EYES, "at = [[-0.020, 0, 1.075]]", "loop.parallelogram.at: expected 2 rows of 3 numbers, got 1"),
    (ENDS, 'links = ["rod", "rod"]', "loop.parallelogram.links: expected two different links, got rod, rod"),
    ("solid = { cyl", "volume_mm3 = 1\nsolid = { cyl", "link.rod has both a solid and volume_mm3"),
    ("com = [0.04852, 0.00481, 0.34461]\n", "", "link.1 lacks the key 'com': expected volume_mm3, com and"),
    (BOX, f"{HOLLOW} wall = 0,", "link.lever.solid.wall: expected a number above 0, got 0"),
    (BOX, f"{HOLLOW} wall = 0.015,", "expected a wall below half the shortest side, 0.030, got 0.015"),
    (BOX, f"{HOLLOW.replace('0.030', '0')} wall = 0.002,", "expected hollow_box sizes above 0, got 0.230, 0"),
    ("flange_tolerance = 5e-5\n", "", "poses.zero: expected flange and flange_tolerance together"),
    ("[rating]", "[[rating]]", "expected a table [rating], got ["),
    ('["example"', '["elsewhere"', "tour.poses: there is no pose 'elsewhere', known are zero, example"),
]
FAULTS = {"irb140": ARM, "irb1400": PARALLELOGRAM}


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A house of robots to be spoilt."""
    for robot in ROBOTS:
        (tmp_path / robot).mkdir()
        (tmp_path / robot / "robot.toml").write_bytes((build.HERE / robot / "robot.toml").read_bytes())
    monkeypatch.setattr(build, "HERE", tmp_path)
    return tmp_path


def test_main_builds_every_robot(house):
    assert build.main([]) == 0
    for robot in ROBOTS:
        urdf = f"{robot}/{robot}.urdf"
        assert (house / urdf).read_bytes() == (COMMITTED / urdf).read_bytes()


@pytest.mark.parametrize("robot", FAULTS)
def test_a_malformed_robot_toml_is_refused_in_one_sentence(house, capsys, robot):
    path = house / robot / "robot.toml"
    text = path.read_text(encoding="utf-8")
    for old, new, told in FAULTS[robot]:
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        assert build.main([robot]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert told in error
        assert error.count("\n") == 1
    assert not path.with_name(f"{robot}.urdf").exists()


def test_the_tree_is_the_chain_and_then_the_others_and_a_circle_is_named():
    facts = read(COMMITTED / "irb1400" / "robot.toml")
    facts["joint"] = dict(reversed(facts["joint"].items()))  # the order in the file does not matter
    chain, others = tree(facts)
    names = ("joint_1", "joint_2", "joint_elbow", "joint_4", "joint_5", "joint_6")
    assert chain == [Joint(*ends) for ends in zip(names, ("base", *"12345"), "123456", strict=True)]
    assert others == [Joint("joint_3", "1", "lever"), Joint("joint_rod", "lever", "rod")]

    facts["joint"]["joint_3"]["parent"] = "rod"
    facts["joint"]["joint_spare"] = {**facts["joint"]["joint_rod"], "parent": "rod", "child": "spare"}
    facts["link"] = {"spare": facts["link"]["rod"], **facts["link"]}
    with pytest.raises(FactsError, match=r"^link\.rod, link\.lever hang on each other: expected a way"):
        check(facts)


# A malformed dh.toml is refused in one sentence that names the file, the key and what is valid.


TEXT = """
name = "arm"
title = "An arm"
source = "ours"

[dh]
theta0_deg = [0, 90]
d = [0.1, 0.2]
a = [0.3, 0]
alpha_deg = [-90, 0]
kinds = ["revolute", "prismatic"]
source = "ours"

[joints]
names = ["turn", "slide"]
q_min = [-1, 0]
q_max = [1, 0.5]
qd_max = [2, 1]
effort = [10, 20]
source = "ours"

[links]
source = "ours"

[link.1]
mass = 2.0
inertia = [0.1, 0.1, 0.1, 0, 0, 0]

[link.2]
mass = 1.0
com = [0, 0, -0.1]
"""
# Of each malformed dh.toml: text to replace, its replacement, and what the one sentence says.
MALFORMED = [
    ('title = "An arm"', "wheels = 4", "unknown key 'wheels' in the top level: known are name"),
    ('name = "arm"', 'name = "my arm"', "expected a name of letters, digits and _, got 'my arm'"),
    ("d = [0.1, 0.2]", "d = []", "dh.d: expected a list of numbers, one per row, got []"),
    ("a = [0.3, 0]", "a = [nan, 0]", "dh.a: expected finite numbers, got nan"),
    ('"prismatic"', '"screw"', "dh.kinds: expected revolute or prismatic, got 'screw'"),
    ('["revolute", "prismatic"]', '["revolute"]', "dh.kinds: expected 2 kinds, one per row, got 1"),
    ("q_min = [-1, 0]\n", "", "expected q_min and q_max together"),
    ('["turn", "slide"]', '["turn"]', "joints.names: expected 2 names, one per row, got 1"),
    ("[link.2]", "[link.3]", "unknown link.3: expected link.1 to link.2"),
    ("mass = 2.0\n", "", "table [link.1] lacks the key 'mass'"),
    ("[0.1, 0.1, 0.1, 0", "[0.1, 0.1, 0.3, 0", "kg m^2, which are impossible"),
    ("[links]", '[poses.home]\nq = [1]\nsource = "x"\n[links]', "poses.home.q: expected 2 numbers, got 1"),
    ('[links]\nsource = "ours"\n', "", "together with [links] and its source"),
    ("[link.2]\nmass = 1.0\ncom = [0, 0, -0.1]\n", "", "joint 'slide' moves no mass"),
    ("[dh]", "[dh", "is not a TOML file"),
]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "my_dh.toml"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_user_dh_table_loads_with_values_in_the_units_of_its_joints(path):
    path.write_text(TEXT + '[poses.home]\nq = [0.5, 0.25]\nsource = "ours"\n', encoding="utf-8")
    robot = twin.load(path)
    assert (robot.name, robot.joint_names, robot.file, robot.urdf) == ("arm", ("turn", "slide"), path, None)
    assert robot.joint_kinds == ("revolute", "prismatic")
    assert [*robot.q_min, *robot.q_max, *robot.qd_max, *robot.tau_max] == [-1, 0, 1, 0.5, 2, 1, 10, 20]
    assert robot.has_inertia
    assert {name: [*q] for name, q in robot.poses.items()} == {"home": [0.5, 0.25]}


def test_a_malformed_table_is_refused_in_one_sentence(path):
    edits_refused(path, TEXT, MALFORMED, twin.load, RobotError)
    with pytest.raises(RobotError, match=f"^{path}"):
        twin.load(path)


def test_a_body_that_cannot_exist_needs_a_reason_and_a_file_must_exist(path):
    with pytest.raises(RobotError, match=r"cannot read .*none\.toml: No such file"):
        twin.load(path.with_name("none.toml"))
    why = 'source = "ours"\nunphysical = "printed so"\n\n[dh]'
    text = TEXT.replace('source = "ours"\n\n[dh]', why).replace("mass = 2.0\n", "")
    path.write_text(text, encoding="utf-8")
    mass, _, _, _, xx, *_ = twin.load(path).tree.inertias[0]
    assert mass == 0 < xx


WRONG = ("{ a = 1 }", "[1]", "3", "true", "nan", "1" + "0" * 400, "[[]]", '""')


def test_wrong_values_of_any_key_are_rejected():
    """Or are right: a mass of 3 kg is."""
    keys = ("name", "title", "source", "dh", "kinds", "d", "names", "mass", "com", "1")
    for key, wrong in product(keys, WRONG):
        facts = tomllib.loads(TEXT)
        tables = (facts, facts["dh"], facts["joints"], facts["link"], *facts["link"].values())
        next(table for table in tables if key in table)[key] = tomllib.loads(f"value = {wrong}")["value"]
        with nullcontext() if (key, wrong) == ("mass", "3") else pytest.raises(FactsError):
            dh_facts.check(facts)
