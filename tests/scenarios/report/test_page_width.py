"""Width of reports: long names, many joints, narrow terminals, and pipes, which have no width."""

import dataclasses
import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import twin
from scenarios.base import Config
from scenarios.cli import output
from scenarios.cli.command_line import main
from scenarios.report.picture import draw
from scenarios.report.report import listing, scenario_report
from scenarios.running.runs import Run
from tests.support.example_logs import made_log
from tests.support.example_runs import rendered
from tests.support.random_trees import random_urdf
from twin.formatting import shorten

LONG = [f"shoulder_pan_joint_of_the_left_arm_that_is_mounted_over_the_second_table_{k}" for k in range(1, 13)]
SAME_ENDS = [f"{'front' * 6}_{k}_{'rear' * 6}" for k in range(1, 13)]


@pytest.mark.parametrize("width", [8, 12, 16, 30, 79])
@pytest.mark.parametrize("names", [LONG, SAME_ENDS, ["a", "b"], [*LONG, "joint_1"], LONG[:1]])
def test_names_are_cut_to_the_width_and_stay_apart(names, width):
    short = shorten(names, width)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= width
    assert all(new == old for new, old in zip(short, names, strict=True) if len(old) <= width)


def test_names_are_cut_where_they_differ_least():
    names = ["left_shoulder_joint_of_the_arm", "right_shoulder_joint_of_the_arm"]
    assert shorten(names, 16) == ["left_s...the_arm", "right_...the_arm"]
    names = [f"arm_of_{k}_{40 * 'x'}" for k in (1, 2)]
    assert shorten(names, 16) == ["arm_of_1...xxxxx", "arm_of_2...xxxxx"]
    names = [f"{20 * 'a'}{k}{20 * 'b'}" for k in range(2)]
    assert shorten(names, 10) == ["1...bbbbbb", "2...bbbbbb"]


@functools.cache
def twelve_joints():
    """A robot of twelve joints."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "arm.urdf")
        file.write_text(random_urdf(np.random.default_rng(5), 12, ("revolute",)), encoding="utf-8")
        return dataclasses.replace(twin.load(file), urdf=None)  # drawn as sticks


def long_run(controller, names, label=""):
    """A run of a robot with twelve joints of these names."""
    robot = twelve_joints()
    robot = dataclasses.replace(robot, tree=dataclasses.replace(robot.tree, names=tuple(names)))
    still = np.zeros((5, 12))
    log = made_log(robot, still, still + 0.1, controller=controller)
    return Run("swing", Config(controller=controller), log, (), 0.5, label=label)


@pytest.mark.parametrize(("width", "names"), [(60, LONG), (80, SAME_ENDS), (100, LONG)])
def test_tables_keep_long_names_apart_and_fit(names, width):
    runs = [long_run(name, names) for name in ("pd", "pid")]
    lines = rendered(scenario_report("A swing.", runs, width), width).splitlines()
    assert max(map(len, lines)) <= width
    rows = [line.split()[0] for line in lines if line.count(" / ") == len(runs) and " tool " not in line]
    assert len(rows) == len(set(rows)) == 12
    torques = lines[next(k for k, line in enumerate(lines) if line.startswith("Peak torque")) :]
    assert all(any(row in line for line in torques) for row in rows)


def test_a_pipe_shows_names_whole_and_all_controllers_abreast():
    laws = [f"a_law_of_my_own_number_{k}_with_a_long_name" for k in range(8)]
    runs = [long_run("pd", LONG, law) for law in laws]
    text = rendered(scenario_report("A swing.", runs, output.WIDEST), output.WIDEST)
    assert all(f" {name} " in text for name in LONG)
    assert any(all(law in line for law in laws) for line in text.splitlines())


def test_labels_too_long_for_the_page_stay_apart():
    laws = [f"{'a_law_of_my_own_' * 5}{k}" for k in range(3)]
    text = rendered(scenario_report("A swing.", [long_run("pd", LONG, law) for law in laws], 60), 60)
    assert max(map(len, text.splitlines())) <= 60
    heads = {line.strip() for line in text.splitlines() if line.strip().startswith("a_law")}
    assert len(heads) == 3


def test_what_is_piped_is_as_wide_as_its_content_and_has_no_blanks_at_the_ends(monkeypatch, capsys, command):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = command(["list"]).out.splitlines()
    assert max(map(len, lines)) > 100
    assert all(line == line.rstrip() for line in lines)
    assert all(len(line.split()) > 1 for line in lines)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["list"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_a_listing_wraps_its_last_column_below_itself():
    rows = [("a", "first", "one two three four five six seven"), ("", "2", "")]
    text = rendered(listing(rows, 32), 32)
    assert text == "a  first  one two three four\n          five six seven\n   2      \n"


def test_files_of_laws_have_names_that_any_disk_takes(tmp_path):
    words = [("my/scenario", "./a b.py:Law"), ("my/scenario", ".\\a b.py:Law"), ("über", "é+1.5")]
    names = [path.name for path in output.apart(tmp_path / "x.npz", words)]
    assert names == ["x-my_scenario-._a_b.py_Law.npz", "x-my_scenario-._a_b.py_Law-2.npz", "x-über-é+1.5.npz"]


def test_a_picture_has_room_for_twelve_long_names(tmp_path, small_pictures):
    draw([long_run("pd", LONG, "a" * 80)], tmp_path / "a.png")
    assert imread(tmp_path / "a.png").shape[1] < 1000
