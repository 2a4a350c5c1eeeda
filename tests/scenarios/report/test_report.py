"""Tables, pictures and result files, from logs whose errors are known."""

import dataclasses
import functools
import json
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import twin
from scenarios.metric import Metric
from scenarios.report.files import draw, write_json, write_junit
from scenarios.report.report import (
    explanations,
    listing,
    scenario_report,
    validation_report,
    validation_total,
)
from scenarios.report.results import Results
from scenarios.running.runs import Run
from scenarios.shell import output
from scenarios.shell.command_line import main
from tests.support.example_logs import made_log, made_up_log, made_up_run, made_up_task, rendered
from tests.support.random_trees import random_urdf
from twin.base.formatting import figure, shorten
from twin.data.logs.figures import joint_error, largest, pose_error, rms, tool_distance

pytestmark = pytest.mark.slow("draws reports")


def test_error_figures_have_their_definition():
    log = made_up_log("pd")
    expected = 0.01 * np.arange(1, 7)
    np.testing.assert_allclose(rms(joint_error(log)), expected, rtol=1e-12)
    np.testing.assert_allclose(largest(joint_error(log)), expected, rtol=1e-12)
    np.testing.assert_allclose(tool_distance(log), np.linalg.norm(pose_error(log)[:, :3], axis=1), rtol=1e-12)
    assert rms(np.array([[3.0], [4.0]]))[0] == pytest.approx(np.sqrt(12.5), rel=1e-15)
    assert np.isnan(largest(np.array([[1.0], [np.nan]])))[0]
    assert joint_error(log)[0, 0] < 0 < log.q[0, 0] - log.q_ref[0, 0]
    np.testing.assert_array_equal(pose_error(log), log.pose_ref - log.pose)
    for size in (rms, largest):  # no sample has no error, not even 0
        np.testing.assert_array_equal(size(np.empty((0, 6))), np.full(6, np.nan))


def test_figures_are_short():
    for value, text in (
        (0.0, "0"), (4.44e-16, "4.44e-16"), (1e-10, "1e-10"), (0.00123, "0.00123"), (5.6e-4, "5.6e-4"),
        (85.23, "85.2"), (12345.6, "1.23e4"), (-0.5, "-0.5"), (8950.0, "8950"), (123456.0, "123456"),
        (1234.5, "1.23e3"), (999.7, "1e3"), (2.5e7, "2.5e7"), (np.nan, "nan"), (np.inf, "inf"),
    ):  # fmt: skip
        assert figure(value) == text


@pytest.mark.parametrize("width", [60, 140])
def test_the_tables_fit_the_page_and_lose_nothing(width):
    runs = [made_up_run(name) for name in ("computed_torque", "pd", "pd_gravity", "pid")]
    text = rendered(scenario_report("A swing.", runs, width), width)
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= width
    for run in runs:
        assert run.setup.controller in text
    assert text.count("0.06 /     0.06") == 4  # joint 6
    assert text.count("12.5, 7 saturated") == 4
    assert text.count("<= 1e-10 passes") == 4
    assert "its reason" not in text


def test_failed_check_is_reported_with_value_place_reason_and_command():
    """A narrow miss is printed with all digits, and the command that repeats the run is one line."""
    broken = Metric("the check", 2.0, "rad", 1.0, "what the loop allows", "joint_3 at t = 0.412 s")
    nan = Metric("the other", np.nan, "rad", None, "its reason")
    narrow = Metric("the third", 1.0 + 1e-9, "", 1.0, "its reason")
    bad = made_up_run("pd", broken, nan, narrow)
    bad = dataclasses.replace(bad, task=bad.task.with_setup(robot="a" * 200))
    text = rendered(scenario_report("A swing.", [made_up_run("pid"), bad], 100))
    sentence = "pd: the check is 2 rad (joint_3 at t = 0.412 s), expected at most 1: what the loop allows"
    assert sentence in text
    assert "pd: the other is nan rad, expected a number: its reason" in text
    assert "pd: the third is 1.000000001, expected at most 1.0: its reason" in text
    assert text.splitlines()[-1] == f"repeat: irb-twin run swing --controller pd --robot {'a' * 200}"


def test_equal_reasons_are_printed_once_and_others_name_their_runs():
    runs = [made_up_run(name, Metric("check", 0.0, "", 1.0, f"because {name}")) for name in ("pd", "pid")]
    more = [*runs, dataclasses.replace(runs[0], task=made_up_task("nod", controller="pd"))]
    told = rendered(explanations(more, 100))
    assert "(swing: pd; nod: pd) because pd; (swing: pid) because pid" in told
    assert rendered(explanations([made_up_run("pd"), made_up_run("pid")], 100)).count("its reason") == 1


def test_validation_counts_checks_and_repeats_what_fails():
    broken = Metric("the other check", 2.0, "m", 1.0, "too far")
    lost = Run(made_up_task(controller="pid", bandwidth=7.0), error="it ran away")
    runs = [made_up_run("pd"), made_up_run("pd_gravity", broken), lost]
    text = rendered(scenario_report("A swing.", [lost, runs[0]], 100))
    assert "pid: did not finish: it ran away\ncause: " in text
    assert "0.06 /     0.06" in text
    text = rendered(validation_report(Results(runs)))
    assert "swing, pd_gravity: the other check is 2 m, expected at most 1: too far" in text
    assert "swing, pid, bandwidth 7.0: did not finish: it ran away" in text
    assert "repeat: irb-twin run swing --controller pid --bandwidth 7.0\n" in text
    total = validation_total(Results(runs[:2]), 1.25, 2)
    assert total == "2 runs, 2 checks in 1.2 s in 2 processes: 1 run fails"
    assert validation_total(Results(runs[:1]), 1.25, 1) == "1 run, 1 checks in 1.2 s: all checks pass"


def test_json_holds_the_figures_and_writes_null_for_what_is_no_number(tmp_path):
    path = tmp_path / "a.json"
    broken = Metric("check", np.nan, "rad", 1.0, "why")
    write_json(Results([made_up_run("pd", broken)]), path)
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    run = document["runs"][0]
    assert document["passes"] is False
    told = {"value": None, "unit": "rad", "limit": 1.0, "passes": False, "why": "why", "where": ""}
    assert run["metrics"] == [{"name": "check", "outcome": "not computed", "span": None, **told}]
    np.testing.assert_allclose(run["joints"]["max_error_rad"], 0.01 * np.arange(1, 7), rtol=1e-12)
    assert run["joints"]["peak_torque_N_m"] == [12.5] * 6
    assert run["joints"]["saturated_samples"] == [0, 7, 0, 0, 0, 0]
    assert run["config"]["controller"] == "pd"
    assert "progress" not in run["config"]


def test_junit_has_a_case_per_check_with_the_reason_of_failure(tmp_path):
    path = tmp_path / "a.xml"
    broken = Metric("check", 2.0, "rad", 1.0, "< & >")
    lost = Run(made_up_task(controller="pid"), seconds=0.1, error="it ran away")
    both = dataclasses.replace(
        made_up_run("pid", broken, dataclasses.replace(broken, name="other")), error="its table failed"
    )
    write_junit(Results([made_up_run("pd"), made_up_run("pd_gravity", broken), lost]), path)
    assert float(ET.parse(path).getroot().attrib["time"]) == pytest.approx(1.1)
    write_junit(Results([both]), tmp_path / "b.xml")
    times = [case.attrib["time"] for case in ET.parse(tmp_path / "b.xml").getroot().iter("testcase")]
    assert sum(map(float, times)) == pytest.approx(both.seconds), "once, with the case of its error"
    cases = list(ET.parse(path).getroot().iter("testcase"))
    assert [case.attrib["name"] for case in cases] == ["the check that holds", "check", "finishes"]
    assert [len(case.findall("failure")) for case in cases] == [0, 1, 1]
    assert cases[1].findall("failure")[0].attrib["message"] == "check is 2 rad, expected at most 1: < & >"
    assert cases[1].attrib["classname"] == "irb140.swing.pd_gravity"


def test_a_picture_is_drawn_for_several_controllers_one_of_which_diverged(tmp_path, small_pictures):
    path, log = tmp_path / "a.png", made_up_log("pd")
    tau = log.tau.copy()
    tau[-1] = np.nan
    short = {name: getattr(log, name)[:1] for name in ("t", "q", "q_ref", "tau")}
    logs = (log, dataclasses.replace(log, tau=tau, tau_demand=tau), dataclasses.replace(log, **short))
    draw([dataclasses.replace(made_up_run(), log=one) for one in logs], path)
    image = imread(path)
    assert image.shape[1] > 900
    assert len(np.unique(image.reshape(-1, image.shape[2]), axis=0)) > 50  # something is on it


# Width of reports: long names, many joints, narrow terminals, and pipes, which have no width.


LONG = [f"shoulder_pan_joint_of_the_left_arm_that_is_mounted_over_the_second_table_{k}" for k in range(1, 13)]
SAME_ENDS = [f"{'front' * 6}_{k}_{'rear' * 6}" for k in range(1, 13)]


@pytest.mark.parametrize("names", [LONG, SAME_ENDS, ["a", "b"], [*LONG, "joint_1"], LONG[:1]])
def test_names_are_cut_to_the_width_and_stay_apart(names):
    for width in (8, 12, 16, 30, 79):
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
    return Run(made_up_task(controller=controller), log, (), 0.5, label=label)


@pytest.mark.parametrize(("width", "names"), [(60, LONG), (80, SAME_ENDS), (100, LONG)])
def test_tables_keep_long_names_apart_and_fit(names, width):
    runs = [long_run(name, names) for name in ("pd", "pid")]
    lines = rendered(scenario_report("A swing.", runs, width), width).splitlines()
    assert max(map(len, lines)) <= width
    rows = [line.split()[0] for line in lines if line.count(" / ") == len(runs) and " tool " not in line]
    assert len(rows) == len(set(rows)) == 12
    torques = lines[next(k for k, line in enumerate(lines) if line.startswith("Peak torque")) :]
    assert all(any(row in line for line in torques) for row in rows)


def test_a_pipe_shows_names_whole_and_a_narrow_page_keeps_long_ones_apart():
    laws = [f"{'a_law_of_my_own_' * 3}{k}" for k in range(8)]
    runs = [long_run("pd", LONG, law) for law in laws]
    text = rendered(scenario_report("A swing.", runs, output.WIDEST), output.WIDEST)
    assert all(f" {name} " in text for name in LONG)
    assert any(all(law in line for law in laws) for line in text.splitlines())
    text = rendered(scenario_report("A swing.", runs, 60), 60)
    assert max(map(len, text.splitlines())) <= 60
    heads = {line.strip() for line in text.splitlines() if line.strip().startswith("a_law")}
    assert len(heads) == len(laws)


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
