"""A malformed dh.toml is refused in one sentence that names the file, the key and what is valid."""

from contextlib import nullcontext

import pytest

import twin
from twin.errors import RobotError
from urdf import dh_facts
from urdf.schema import FactsError, tomllib

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
    ('title = "An arm"\n', "", "the top level lacks the key 'title'"),
    ('name = "arm"', 'name = "my arm"', "expected a name of letters, digits and _, got 'my arm'"),
    ("d = [0.1, 0.2]", "d = []", "dh.d: expected a list of numbers, one per row, got []"),
    ("a = [0.3, 0]", "a = [nan, 0]", "dh.a: expected finite numbers, got nan"),
    ('"prismatic"', '"screw"', "dh.kinds: expected revolute or prismatic, got 'screw'"),
    ('["revolute", "prismatic"]', '["revolute"]', "dh.kinds: expected 2 kinds, one per row, got 1"),
    ('["turn", "slide"]', '["turn"]', "joints.names: expected 2 names, one per row, got 1"),
    ('["turn", "slide"]', '["turn", "turn"]', "joints.names: expected a list of different names"),
    ("q_min = [-1, 0]\n", "", "expected q_min and q_max together"),
    ("q_max = [1, 0.5]", "q_max = [1, -0.5]", "slide: expected q_min < q_max, got 0 and -0.5"),
    ("qd_max = [2, 1]", "qd_max = [0, 1]", "turn: expected qd_max above 0, got 0"),
    ("[link.2]", "[link.3]", "unknown link.3: expected link.1 to link.2"),
    ("mass = 2.0\n", "", "table [link.1] lacks the key 'mass'"),
    ("[0.1, 0.1, 0.1, 0", "[0.1, 0.1, 0.3, 0", "kg m^2, which are impossible"),
    ("[links]", '[poses.home]\nq = [1]\nsource = "x"\n[links]', "poses.home.q: expected 2 numbers, got 1"),
    ("[links]", "[poses]\nhome = 3\n\n[links]", "expected a table [poses.home], got 3"),
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


@pytest.mark.parametrize(("old", "new", "told"), MALFORMED)
def test_a_malformed_table_is_refused_in_one_sentence(path, old, new, told):
    assert old in TEXT
    path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RobotError) as refused:
        twin.load(path)
    assert told in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_a_body_that_cannot_exist_needs_a_reason_and_a_file_must_exist(path):
    with pytest.raises(RobotError, match=r"cannot read .*none\.toml: No such file"):
        twin.load(path.with_name("none.toml"))
    why = 'source = "ours"\nunphysical = "printed so"\n\n[dh]'
    text = TEXT.replace('source = "ours"\n\n[dh]', why).replace("mass = 2.0\n", "")
    path.write_text(text, encoding="utf-8")
    robot = twin.load(path)
    assert robot.tree.inertias[0, 0] == 0
    assert robot.tree.inertias[0, 4] > 0


WRONG = ("{ a = 1 }", "[1]", "3", "true", "nan", "1" + "0" * 400, "[[]]", '""')


@pytest.mark.parametrize("key", ["name", "title", "source", "dh", "kinds", "d", "names", "mass", "com", "1"])
def test_wrong_values_of_any_key_are_rejected(key):
    """Or are right: a mass of 3 kg is."""
    for wrong in WRONG:
        facts = tomllib.loads(TEXT)
        tables = (facts, facts["dh"], facts["joints"], facts["link"], *facts["link"].values())
        next(table for table in tables if key in table)[key] = tomllib.loads(f"value = {wrong}")["value"]
        with nullcontext() if (key, wrong) == ("mass", "3") else pytest.raises(FactsError):
            dh_facts.check(facts)
