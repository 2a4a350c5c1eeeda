"""A robot.toml of one's own: built from any path, with what may be left out left out."""

import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import scenarios.templates
import twin
from tests.support.urdf_files import FILES, dh_tool_pose
from twin.base.errors import RobotError
from twin.physics.robot.evaluation import uncompiled
from urdf import build, facts

TEMPLATE = Path(scenarios.templates.__file__).parent / "my_robot.toml"
TURNED = """coupling = [
    [-1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0],
    [0, 0, 0, -1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, -1],
]
[rating]
"""


@pytest.fixture
def arm(tmp_path):
    """A robot.toml to be changed: `arm((old, new), ...)` writes it and its URDF, and gives its path."""

    def write(*replacements, build_it=True):
        text = TEMPLATE.read_text(encoding="utf-8")
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / "robot.toml"
        path.write_text(text, encoding="utf-8")
        if build_it:
            assert build.main([str(path)]) == 0
        return path

    return write


def without(key):
    """The replacement that takes the line of a key out."""
    line = next(line for line in TEMPLATE.read_text(encoding="utf-8").splitlines() if line.startswith(key))
    return f"{line}\n", ""


def test_a_file_anywhere_is_built_beside_itself_and_checked(arm, tmp_path, capsys):
    path, built = arm(build_it=False), tmp_path / "my_robot.urdf"
    for use in (twin.load, twin.check_model):
        with pytest.raises(RobotError, match=r"my_robot\.urdf beside it is missing; write it with python -m"):
            use(path)
    assert build.main([str(path), str(tmp_path / "none.toml")]) == 2  # one that is wrong leaves all unwritten
    assert [file.name for file in tmp_path.iterdir()] == ["robot.toml"]
    capsys.readouterr()
    arm()
    assert capsys.readouterr().out == f"wrote {tmp_path / 'my_robot.urdf'}\n"
    assert twin.load(path).name == "my_robot"
    assert "python -m urdf.build robot.toml" in built.read_text(encoding="utf-8")
    assert build.main(["--check", str(path)]) == 0
    arm(("at = [0.500, 0, 0.850]", "at = [0.501, 0, 0.850]"), build_it=False)
    before = built.read_bytes()
    assert build.main(["--check", str(path)]) == 1
    assert "differs, or is missing" in capsys.readouterr().out
    assert built.read_bytes() == before
    assert build.main(["--check"]) == 0  # ours


def test_wrong_use_is_rejected_with_one_sentence(capsys):
    known = f"known are {', '.join(build.robots())}, or the path of a robot.toml"
    for word, told in (
        ("nowhere/robot.toml", "cannot read nowhere/robot.toml: No such file"),
        ("my_dh.toml", "my_dh.toml needs no URDF: load it as it is"),
        ("my_arm", f"unknown robot 'my_arm': {known}"),
        ("--chek", "unrecognized arguments: --chek"),
    ):
        assert build.main([word]) == 2
        error = capsys.readouterr().err
        assert told in error
        assert error.count("\n") == 1


def test_a_urdf_of_other_bodies_is_noticed(arm):
    """A change of robot.toml alone; otherwise the old URDF would go on moving, whatever the file says."""
    path = arm()
    for old, new, told in (
        ("mass = 60.0 ", "mass = 60.1 ", "mass of link_1"),
        ("at = [0.350, 0, 0.850]", "at = [0.351, 0, 0.850]", "centre of mass of link_4"),
        ("hollow_box = [0.260, 0.160, 0.180]", "hollow_box = [0.160, 0.260, 0.180]", "inertia of link_3"),
    ):
        arm((old, new), build_it=False)
        told = rf"the {told} differs from that in my_robot\.urdf; write the URDF"
        with pytest.raises(RobotError, match=told):
            twin.load(path)
    assert build.main([str(path)]) == 0
    assert twin.load(path).n == 6


def test_what_a_link_looks_like_follows_from_its_solid_and_efforts_may_be_left_out(arm, tmp_path):
    link = facts.read(arm())["link"]["1"]
    box = {"box": [0.26, 0.2, 0.3], "at": [0.02, 0, 0.32]}
    assert link["visual"] == [{**box, "color": "orange"}]
    assert link["collision"] == [box]
    urdf = (tmp_path / "my_robot.urdf").read_text(encoding="utf-8")
    assert urdf.count("<visual>") == urdf.count("<collision>") == 7
    cad = "volume_mm3 = 1e6\ncom = [0.5, 0, 0.85]\ninertia = [1e-3, 1e-3, 1e-3, 0, 0, 0]"
    path = arm(without("solid = { hollow_box = [0.090"), ("[link.5]", f"[link.5]\n{cad}"), without("effort"))
    link = facts.read(path)["link"]["5"]
    assert link["visual"] == link["collision"] == []
    assert np.all(np.isinf(twin.load(path).tau_max))
    assert (tmp_path / "my_robot.urdf").read_text(encoding="utf-8").count('effort="0"') == 6


def test_link_masses_equal_shares_by_volume(tmp_path):
    """The IRB 140 told in the other way, its CAD's tensors scaled to the masses: the same URDF."""
    file = FILES["irb140"]
    known = facts.read(file.toml, parse_float=Decimal)
    total = sum(values["volume_mm3"] for values in known["link"].values())
    for values in known["link"].values():
        values["mass"] = known["mass"] * values.pop("volume_mm3") / total
        values["inertia"] = [x * values["mass"] / values["mass_1000"] for x in values["inertia"]]
        del values["mass_1000"], values["mass_printed"]
    del known["mass"]
    facts.check(known)
    path = tmp_path / "irb140.urdf"
    path.write_text(build.urdf(known), encoding="utf-8")
    robot, same = twin.load(path), twin.load("irb140")
    np.testing.assert_allclose(robot.tree.inertias, same.tree.inertias, rtol=1e-14, atol=1e-16)


def test_what_contradicts_itself_is_refused(arm, capsys):
    for old, new, told in (
        ("[link.4]\n", "[link.4]\nmass = 3.0\n", r"link\.4 has a mass, and so has the robot"),
        (*without("mass"), r"link\.base has no mass: expected one in every link, or the robot's"),
        ("alpha_deg = [-90, 0,", "alpha_deg = [-60, 0,", r"multiples of 90.*; a dh\.toml takes any angles"),
        ("[rating]\n", TURNED.replace("[-1, 0,", "[-1, 1,"), r"row 1 of dh\.coupling is -1 1 0 0 0 0: e"),
    ):
        path = arm((old, new), build_it=False)
        assert build.main([str(path)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: {path}: ")
        assert re.search(told, error), error


def test_joint_with_reversed_axis(arm):
    """Signs in the coupling: the flange of an independent product of DH matrices, at q and not at -q."""
    robot = uncompiled(twin.load(arm(("[rating]\n", TURNED))))
    signs = np.array([-1, 1, 1, -1, 1, -1])
    np.testing.assert_array_equal(robot.tree.axes.sum(axis=1), signs)
    dh = facts.read(TEMPLATE)["dh"]
    for q in np.random.default_rng(1).uniform(-2, 2, (20, 6)):
        T = dh_tool_pose(dh, signs * q)
        np.testing.assert_allclose(twin.forward_kinematics(robot, q), T, rtol=0, atol=2e-15)
