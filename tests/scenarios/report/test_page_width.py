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
from scenarios.report.page import Logged, _arm, _joints
from scenarios.report.picture import draw
from scenarios.report.report import listing, scenario_report
from scenarios.running.runs import Run
from scenarios.sweeping.execute import WorstCase
from tests.support.example_logs import made_log
from tests.support.example_runs import rendered
from tests.support.random_trees import random_urdf
from tests.support.small_robots import SOUND
from twin.control.closed_loop import divergence_message
from twin.egm import EgmRobot, Mirror, StreamLog
from twin.errors import EgmError, LimitError
from twin.formatting import shorten
from twin.robot.limits import caption_unit, check_position, position_text, shown, violations
from twin.trajectories.sampling import Samples, check_limits

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


# Units of joints: a sliding one is in metres and newtons, and for people in millimetres, everywhere.


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """A joint that turns within 1 rad, and one that slides from 0 to 0.2 m."""
    path = tmp_path_factory.mktemp("slide") / "arm.urdf"
    path.write_text(SOUND, encoding="utf-8")
    return twin.load(path)


def test_texts():
    assert position_text(0.0478, "prismatic") == "47.8 mm (0.0478 m)"
    assert position_text(0.5 * np.pi, "revolute", "/s") == "90 deg/s (1.5708 rad/s)"
    assert shown(0.0478, "prismatic", 2) == "48 mm"
    assert caption_unit(["revolute", "prismatic"]) == "rad (sliding joints: m)"
    assert caption_unit(["prismatic"], "{torque} s/{position}") == "N s/m"
    assert caption_unit(["revolute"] * 2, "{torque}") == "N m"


def test_a_position_beyond_its_range(arm):
    slide = arm.joint_names[1]
    for position, told in (
        (
            [0.0, 0.25],
            rf"^{slide} would be at 250 mm \(0.25 m\), its range is 0 mm \(0 m\) to 200 mm \(0.2 m\)$",
        ),
        ([0.0, 47.8], r"positions are in metres, are these millimetres\?$"),
        ([40.0, 0.1], r"57\.2958 deg \(1 rad\); angles are in radians, are these degrees\?$"),
    ):
        with pytest.raises(LimitError, match=told):
            check_position(arm, np.array(position))


def test_a_speed_beyond_its_limit(arm):
    fast = np.array([0.0, 2.0 * arm.qd_max[1]])
    t, q, qd = 1e-3 * np.arange(3), np.tile([0.0, 0.1], (3, 1)), np.tile(fast, (3, 1))
    with pytest.raises(LimitError, match=rf"would move at {2e3 * arm.qd_max[1]:g} mm/s \("):
        check_limits(arm, Samples(t, q, qd, np.zeros_like(q)))
    (found,) = violations(arm, t, q, qd)
    assert f"moves at {2e3 * arm.qd_max[1]:g} mm/s ({fast[1]:g} m/s)" in str(found)


def test_an_arm_that_diverges(arm):
    assert divergence_message(arm, np.array([0.0, np.nan]), np.zeros(2)).endswith("is at nan m with 0.0 m/s")


def test_the_captions_of_a_report_and_a_page():
    robot = twin.load("figure_7_1")  # one joint turns, two slide
    run = Run("swing", Config(controller="pd"), made_log(robot, np.zeros((3, 3))), (), 0.5)
    text = rendered(scenario_report("A swing.", [run], 100))
    assert "Tracking error, RMS / largest; joints in rad (sliding joints: m), tool" in text
    assert "Peak torque in N m (sliding joints: N), and number" in text
    page = f"{_joints(Logged(run.log, 'pd', 'red'))}{_arm(robot)}"
    lengths, forces = "rad (sliding joints: m)", "N m (sliding joints: N)"
    for caption in (
        f"RMS error [{lengths}]", f"largest error [{lengths}]", f"peak torque [{forces}]",
        f"torque limit at standstill [{forces}]",
    ):  # fmt: skip
        assert caption in page
    assert "speed limit [rad/s (sliding joints: m/s)]" in page


def test_a_case_of_a_sweep(arm):
    class Run:
        figures = None

    case = WorstCase(0, {"joint_error_joint": 2}, "", Run(), 0.0, 0.0, 0.0)
    assert case.unit == "rad"
    Run.figures = type("Figures", (), {"joint_kinds": arm.joint_kinds})
    assert case.unit == "m"


def test_egm_refuses_a_sliding_joint(arm):
    """EGM would send its metres as radians, and read its millimetres as degrees."""
    slide = arm.joint_names[1]
    for make in (Mirror, StreamLog, lambda robot: EgmRobot(robot, None)):
        with pytest.raises(EgmError, match=rf"'arm' cannot use EGM: joint {slide} is prismatic"):
            make(arm)
