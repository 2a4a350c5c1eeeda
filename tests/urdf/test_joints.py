"""The tree of links and joints: what a robot.toml says beside its DH table, and how it is refused."""

import sys

import pytest

from urdf import build
from urdf.facts import FactsError, check, read
from urdf.schema import Joint, tree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOML = build.HERE / "irb1400" / "robot.toml"

# Each fault: text of the robot.toml to replace, its replacement, and what the one sentence must say.
FAULTS = {
    "coupling of five rows": (
        "    [0, 0, 0, 0, 0, 1],\n]",
        "]",
        r"dh\.coupling: expected 6 rows of 6 numbers, got 5",
    ),
    "coupling of a short row": (
        "[0, -1, 1, 0, 0, 0],\n",
        "[0, -1, 1, 0, 0],\n",
        r"row 3 of dh\.coupling: expected 6 numbers, got 5",
    ),
    "coupling of words": (
        "    [1, 0, 0, 0, 0, 0],\n",
        '    "none",\n',
        r"row 1 of dh\.coupling: expected 6 numbers, got 'none'",
    ),
    "unknown parent": (
        'parent = "lever"',
        'parent = "crank"',
        r"joint\.joint_rod\.parent: there is no link 'crank', known are base, 1, 2, .* lever, rod",
    ),
    "unknown child": (
        'child = "rod"',
        'child = "bar"',
        r"joint\.joint_rod\.child: there is no link 'bar', known",
    ),
    "base as a child": ('child = "rod"', 'child = "base"', r"joint_rod\.child: no joint moves the base"),
    "inclined joint": (
        "at = [0.150, 0, 0.475]\naxis = [0, 1, 0]",
        "at = [0.150, 0, 0.475]\naxis = [0, 0.8, 0.6]",
        r"joint\.joint_3\.axis: expected a base axis such as \[0, -1, 0\], got \[0, 0\.8, 0\.6\]",
    ),
    "short q": (
        "q = [0, 1, -1, 0, 0, 0]",
        "q = [0, 1, -1]",
        r"joint\.joint_rod\.q: expected 6 numbers, got 3",
    ),
    "passive without q": (
        "q = [0, 1, -1, 0, 0, 0]\n",
        "",
        r"table \[joint\.joint_rod\] lacks the key 'q', which a joint that is not in joints\.names needs",
    ),
    "passive without a range": (
        "q = [0, 1, -1, 0, 0, 0]\nrange_deg = [-75, 75]\n",
        "q = [0, 1, -1, 0, 0, 0]\n",
        r"table \[joint\.joint_rod\] lacks the key 'range_deg'",
    ),
    "driven with q": (
        "at = [0.150, 0, 0.475]\naxis = [0, 1, 0]",
        "at = [0.150, 0, 0.475]\naxis = [0, 1, 0]\nq = [0, 0, 1, 0, 0, 0]",
        r"joint\.joint_3\.q: a motor drives this joint; q is for passive ones",
    ),
    "range upside down": (
        "range_deg = [-75, 75]",
        "range_deg = [75, -75]",
        r"joint\.joint_elbow\.range_deg: expected lowest < highest, got 75 and -75",
    ),
    "joint of a bad name": (
        "[joint.joint_rod]",
        '[joint."<joint>"]',
        r"expected a name of letters, digits and _, got '<joint>'",
    ),
    "joint named as the flange's": (
        "[joint.joint_rod]",
        "[joint.joint_tool]",
        r"joint_tool is the fixed joint of the flange: expected another name",
    ),
    "two parents": (
        'child = "rod"',
        'child = "lever"',
        r"link\.lever is the child of two joints, joint_3 and joint_rod: expected one",
    ),
    "no parent": (
        "[link.rod]",
        "[link.spare]\nsolid = { box = [1, 1, 1], at = [0, 0, 0] }\nvisual = []\ncollision = []\n[link.rod]",
        r"link\.spare is the child of no joint: expected a \[joint\.<name>\] that moves it",
    ),
    "circle": (
        'parent = "1"\nchild = "lever"',
        'parent = "rod"\nchild = "lever"',
        r"link\.lever, link\.rod hang on each other: expected a way from each link to the base",
    ),
    "chain broken": (
        'parent = "2"\nchild = "3"',
        'parent = "lever"\nchild = "3"',
        r"joint\.joint_elbow: link\.3 hangs on link\.lever, expected link\.2, the link before it",
    ),
    "loop that is open": (
        "at = [[-0.020, 0, 1.075], [-0.020, 0, 1.075]]",
        "at = [[-0.020, 0, 1.075], [-0.023, 0, 1.079]]",
        r"loop\.parallelogram is not closed at the zero pose: the point of link\.rod is 0\.005 m away from "
        r"that of link\.3",
    ),
    "loop of one point": (
        "at = [[-0.020, 0, 1.075], [-0.020, 0, 1.075]]",
        "at = [[-0.020, 0, 1.075]]",
        r"loop\.parallelogram\.at: expected 2 rows of 3 numbers, got 1",
    ),
    "loop of one link": (
        'links = ["rod", "3"]',
        'links = ["rod", "rod"]',
        r"loop\.parallelogram\.links: expected two different links, got rod, rod",
    ),
    "loop of an unknown link": (
        'links = ["rod", "3"]',
        'links = ["rod", "7"]',
        r"loop\.parallelogram\.links: there is no link '7', known are base, 1",
    ),
    "loop of no links": (
        'links = ["rod", "3"]',
        "links = [3]",
        r"loop\.parallelogram\.links: expected a list of texts, got \[3\]",
    ),
    "solid and CAD": (
        "solid = { cylinder",
        "volume_mm3 = 1\nsolid = { cylinder",
        r"link\.rod has both a solid and volume_mm3: expected a solid or the CAD's values",
    ),
    "neither solid nor CAD": (
        "com = [0.04852, 0.00481, 0.34461]\n",
        "",
        r"link\.1 lacks the key 'com': expected volume_mm3, com and inertia, or mass, com and",
    ),
    "solid sphere": (
        "solid = { cylinder",
        "solid = { sphere",
        r"link\.rod\.solid: expected one of box, hollow_box, cylinder",
    ),
    "hollow box without walls": (
        "solid = { box = [0.230, 0.030, 0.060],",
        "solid = { hollow_box = [0.230, 0.030, 0.060], wall = 0,",
        r"link\.lever\.solid\.wall: expected a number above 0, got 0",
    ),
    "hollow box of less than walls": (
        "solid = { box = [0.230, 0.030, 0.060],",
        "solid = { hollow_box = [0.230, 0.030, 0.060], wall = -0.002,",
        r"link\.lever\.solid\.wall: expected a number above 0, got -0\.002",
    ),
    "hollow box that is full": (
        "solid = { box = [0.230, 0.030, 0.060],",
        "solid = { hollow_box = [0.230, 0.030, 0.060], wall = 0.015,",
        r"link\.lever\.solid: expected a wall below half the shortest side, 0\.03, got 0\.015",
    ),
    "hollow box without a side": (
        "solid = { box = [0.230, 0.030, 0.060],",
        "solid = { hollow_box = [0.230, 0, 0.060], wall = 0.002,",
        r"link\.lever\.solid: expected hollow_box sizes above 0, got 0\.23, 0, 0\.06",
    ),
    "hollow box of unknown wall": (
        "solid = { box = [0.230, 0.030, 0.060],",
        "solid = { hollow_box = [0.230, 0.030, 0.060],",
        r"table \[link\.lever\.solid\] lacks the key 'wall'",
    ),
    "turned solid": (
        "solid = { box = [0.230, 0.030, 0.060],",
        "solid = { box = [0.230, 0.030, 0.060], rpy_deg = [0, 9, 0],",
        r"unknown key 'rpy_deg' in table \[link\.lever\.solid\]: known are box, at",
    ),
    "no payload": ("payload = 5.0", "payload = 0.0", r"rating\.payload: expected a number above 0, got 0\.0"),
    "pose without tolerance": (
        "flange_tolerance = 5e-5\n",
        "",
        r"poses\.zero: expected flange and flange_tolerance together",
    ),
    "pose of the flange without quaternion": (
        "flange = [0.955, 0, 1.195, 0.7071, 0, 0.7071, 0]",
        "flange = [0.955, 0, 1.195]",
        r"poses\.zero\.flange: expected 7 numbers, got 3",
    ),
    "tour to nowhere": (
        'poses = ["example"',
        'poses = ["elsewhere"',
        r"tour\.poses: there is no pose 'elsewhere', known are zero, example",
    ),
    "links that are no table": ("[rating]", "[[rating]]", r"expected a table \[rating\], got \["),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_in_one_sentence(fault):
    old, new, message = FAULTS[fault]
    text = TOML.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(FactsError, match=message) as refused:
        check(tomllib.loads(text.replace(old, new, 1)))
    assert "\n" not in str(refused.value)


def test_the_tree_is_the_chain_and_then_the_others_parents_first():
    facts = read(TOML)
    facts["joint"] = dict(reversed(facts["joint"].items()))  # the order in the file does not matter
    chain, others = tree(facts)
    assert chain == [
        Joint("joint_1", "base", "1"),
        Joint("joint_2", "1", "2"),
        Joint("joint_elbow", "2", "3"),
        Joint("joint_4", "3", "4"),
        Joint("joint_5", "4", "5"),
        Joint("joint_6", "5", "6"),
    ]
    assert others == [Joint("joint_3", "1", "lever"), Joint("joint_rod", "lever", "rod")]


def test_message_for_a_link_on_a_circle_names_the_circle():
    facts = read(TOML)
    facts["joint"]["joint_3"]["parent"] = "rod"
    facts["joint"]["joint_spare"] = {**facts["joint"]["joint_rod"], "parent": "rod", "child": "spare"}
    facts["link"] = {"spare": facts["link"]["rod"], **facts["link"]}
    with pytest.raises(FactsError, match=r"^link\.rod, link\.lever hang on each other: expected a way"):
        check(facts)


def test_what_a_plain_chain_may_leave_out():
    """Return the facts of an arm described by its DH table alone, without further tables and keys."""
    facts = read(build.HERE / "irb140" / "robot.toml")
    for table in ("rating", "tour"):
        del facts[table]
    for pose in facts["poses"].values():
        for key in ("flange", "flange_tolerance"):
            pose.pop(key, None)
    check(facts)
    assert not {"joint", "loop"} & facts.keys()
    assert "coupling" not in facts["dh"]
