"""A malformed robot.toml is refused in one sentence, and nothing is written."""

import re

import pytest

from urdf import build
from urdf.facts import FactsError, read

COMMITTED = build.HERE
ROBOTS = ("irb140", "irb1400", "irb1600")


# Each malformed robot.toml: text to replace, its replacement, and what the one sentence must say.
MALFORMED = {
    "unknown key": (
        "mass = 98.0",
        "mass = 98.0\nwheels = 4",
        r"unknown key 'wheels' in the top level: known are n",
    ),
    "unknown key in a table": (
        "q_min_deg",
        "q_least_deg",
        r"unknown key 'q_least_deg' in table \[joints\]: known",
    ),
    "missing key": ("d = [0.352, 0, 0, 0.380, 0, 0.065]\n", "", r"table \[dh\] lacks the key 'd'"),
    "missing table": ("[dh]", "[hd]", r"unknown key 'hd' in the top level"),
    "short row": (
        "[0.352, 0, 0, 0.380, 0, 0.065]",
        "[0.352, 0, 0, 0.380, 0]",
        r"dh\.d: expected 6 numbers, got 5",
    ),
    "long row": (
        "[0.352, 0, 0, 0.380, 0, 0.065]",
        "[0.352, 0, 0, 0.380, 0, 0.065, 0]",
        r"dh\.d: expected 6 numbers, got 7",
    ),
    "short tensor": (", -1.00520828e-05", "", r"link\.base\.inertia: expected 6 numbers, got 5"),
    "a word": ("d = [0.352", 'd = ["tall"', r"dh\.d: expected finite numbers, got tall"),
    "not a number": ("d = [0.352", "d = [nan", r"dh\.d: expected finite numbers, got NaN"),
    "a truth": ("d = [0.352", "d = [true", r"dh\.d: expected finite numbers, got True"),
    "negative mass": ("mass = 98.0", "mass = -98.0", r"mass: expected a number above 0, got -98\.0"),
    "no volume": (
        "volume_mm3 = 12405874.57",
        "volume_mm3 = 0",
        r"volume_mm3: expected a number above 0, got 0",
    ),
    "range upside down": (
        "q_max_deg = [180",
        "q_max_deg = [-190",
        r"joint_1: expected q_min_deg < q_max_deg",
    ),
    "no speed": (
        "qd_max_deg_s = [200",
        "qd_max_deg_s = [0",
        r"joint_1: expected qd_max_deg_s above 0, got 0",
    ),
    "inclined axis": ("alpha_deg = [-90", "alpha_deg = [-80", r"row 1 of \[dh\] .* multiples of 90"),
    "no such body": (
        "inertia = [0.239763089",
        "inertia = [0.9",
        r"link\.1: no body has the principal moments",
    ),
    "colour": ('color = "orange"', 'color = "mauve"', r"color 'mauve', known are orange, grey, steel"),
    "shape": (
        "{ cylinder = 0.160,",
        "{ cone = 0.160,",
        r"link\.base\.visual: expected one of box, cylinder, sphere",
    ),
    "shape's key": ("{ cylinder = 0.160,", "{ cylinder = 0.160, tilt = 3,", r"unknown key 'tilt'"),
    "flat cylinder": ("to = [0, 0, 0.062]", "to = [0, 0, 0]", r"has no length"),
    "missing link": (
        "[link.4]",
        "[link.four]",
        r"expected the tables link\.base, link\.1, .* got .*link\.four",
    ),
    "twins": (
        '"joint_2", "joint_3"',
        '"joint_2", "joint_2"',
        r"joints\.names: expected a list of different names",
    ),
    "one name": (
        'names = ["joint_1", "joint_2", "joint_3", "joint_4", "joint_5", "joint_6"]',
        "names = 6",
        r"joints\.names: expected a list of different names, got 6",
    ),
    "markup": ('"joint_2"', "'<joint>'", r"expected names of letters, digits and _, got '<joint>'"),
    "not TOML": ("[dh]", "[dh", r"is not a TOML file"),
    "wrong name": ('name = "irb140"', 'name = "irb1400"', r"expected name = 'irb140', got 'irb1400'"),
}


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


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_robot_toml_is_refused_in_one_sentence(house, capsys, fault):
    old, new, message = MALFORMED[fault]
    path = house / "irb140" / "robot.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert build.main(["irb140"]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not path.with_name("irb140.urdf").exists()


def test_an_unknown_robot_is_refused(house, capsys):
    assert build.main(["irb99"]) == 2
    assert capsys.readouterr().err == (
        "error: unknown robot 'irb99': known are irb140, irb1400, irb1600, or the path of a robot.toml\n"
    )


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FactsError, match=r"cannot read .*robot\.toml: No such file"):
        read(tmp_path / "robot.toml")
