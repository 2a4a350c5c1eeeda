"""The command `irb-twin` as a user meets it: exit status, what is printed where, what is written."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import controllers
from scenarios.options import fields
from scenarios.running import registry
from scenarios.setup import Setup
from scenarios.shell.settings import TOPICS
from tests.support import user_scenarios
from twin.data.logs.log import Log

pytestmark = pytest.mark.slow("runs commands")

HEAD = """from twin.data.logs.figures import joint_error

"""
OWN = {
    "options": 'swing: float = option(0.1, "how far, in rad")\n',
    "motion": """def motion(self, robot):
    q = robot.poses["zero"]
    return twin.quintic(q, q + self.swing, 0.2)
""",
    "metrics": """def metrics(self, run):
    return (Metric("swing error", abs(joint_error(run.log)).max(), "rad", 1e-10, "mine"),)
""",
}


@pytest.fixture
def scenario_file(tmp_path):
    """A scenario file outside the package."""
    return user_scenarios.write(tmp_path / "mine.py", HEAD, **OWN)


def test_help_of_a_scenario_shows_description_and_settings_each_at_its_place(command):
    text = command(["run", "pose_path", "--help"]).out
    assert "What must hold:" in text
    assert "--csv STR" in text
    assert "--bandwidth FLOAT" in text
    assert "--free-time" not in text
    placed = [name for names in TOPICS.values() for name in names]
    assert sorted(placed) == sorted(set(fields(Setup)) - {"controller"})


@pytest.mark.parametrize(
    ("scenarios", "told"),
    [
        ("", "toml or folder (default irb140)"),
        ("pose_path parallelogram", "(default irb140 in pose_path, irb1400 in parallelogram)"),
        ("gravity_hold parallelogram", "in s (default 4.0 in gravity_hold, 3.0 in parallelogram)"),
        ("laboratory pose_path", "(default pd in laboratory, computed_torque in pose_path)"),
    ],
)
def test_help_shows_defaults_of_the_named_scenarios(scenarios, told, command):
    assert told in " ".join(command(["run", *scenarios.split(), "--help"]).out.split())


@pytest.mark.parametrize(("words", "columns"), [("run laboratory", 60), ("validate", 80), ("", 200)])
def test_help_is_as_wide_as_the_terminal_and_shows_examples_as_they_are(words, columns, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", str(columns))
    text, _, examples = command([*words.split(), "--help"]).out.partition("\nexamples:\n")
    assert max(len(line) for line in text.splitlines() if " " in line.strip()) <= min(columns, 100)
    assert all(line.startswith("  irb-twin ") for line in examples.splitlines())


def test_list_names_everything_with_a_line_each(command):
    text = command(["list"]).out
    for name in ("irb140", *controllers.NAMES, *registry.titles()):
        assert name in text
    assert "Spring and damper at every joint." in text


@pytest.mark.usefixtures("in_this_process", "small_pictures")
def test_a_run_ends_with_tables_and_writes_what_was_asked_for(scenario_file, tmp_path, command):
    log, picture, results = tmp_path / "a.npz", tmp_path / "a.png", tmp_path / "a.json"
    files = ["--log", str(log), "--picture", str(picture), "--json", str(results)]
    printed = command(["run", scenario_file, "--controller", "computed_torque", *files])
    shown = ("mine: ", "joint_6", "tool d", "Peak torque", "swing error", "passes")
    assert [text for text in shown if text not in printed.out] == []
    assert printed.err == ""
    assert len(Log.load(log).t) == 201
    assert picture.read_bytes().startswith(b"\x89PNG")
    document = json.loads(results.read_text(encoding="utf-8"))
    assert document["passes"] is True
    assert document["runs"][0]["config"]["swing"] == 0.1
    assert document["runs"][0]["metrics"][0]["name"] == "swing error"


def test_runs_that_diverge_at_once_are_status_1_and_write_what_there_is(tmp_path, command, small_pictures):
    log, picture, results = tmp_path / "a.npz", tmp_path / "a.png", tmp_path / "a.json"
    files = ["--log", str(log), "--picture", str(picture), "--json", str(results)]
    laws = ("pd", "computed_torque", "adaptive")
    printed = command(["run", "gravity_hold", "--controller", *laws, "--bandwidth", "1e308", *files], 1)
    said = " ".join(printed.out.split())  # whatever the width of the page
    assert printed.err == ""
    assert picture.read_bytes().startswith(b"\x89PNG")
    runs = json.loads(results.read_text(encoding="utf-8"))["runs"]
    for name, run in zip(laws, runs, strict=True):
        assert f"{name}: did not finish: controller {name!r} demands nan N m of joint_" in said
        diverged = np.isnan(Log.load(tmp_path / f"a-gravity_hold-{name}.npz").tau_demand[-1])
        assert diverged.all() or (name == "adaptive" and diverged.any())  # its K is omega, not omega^2
        assert "at t = 0 s" in run["error"]
        assert run["joints"]["max_error_rad"] == [0.0] * 6
        assert [peak is None for peak in run["joints"]["peak_torque_N_m"]] == diverged.tolist()


@pytest.mark.usefixtures("in_this_process")
def test_a_run_that_begins_beyond_reason_is_status_1_and_has_no_log(tmp_path, command):
    """The start exceeds the speed limit by far, so the log has no sample."""
    results = tmp_path / "a.json"
    limitless = """def reference(self, robot, sampling):
    return twin.sample(twin.sines(robot.poses["zero"], 1.0, 1e3, 0.2), 1e-3)
"""
    path = user_scenarios.write(tmp_path / "mine.py", HEAD, **OWN | {"motion": limitless})
    files = ["--log", str(tmp_path / "a.npz"), "--picture", str(tmp_path / "a.png"), "--json", str(results)]
    printed = command(["run", path, *files], 1)
    assert "did not finish: joint_1 runs away: 6283.19 rad/s" in printed.out
    assert printed.err == ""
    assert "runs away" in json.loads(results.read_text(encoding="utf-8"))["runs"][0]["error"]
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == ["a.json", "mine.py"]


@pytest.mark.usefixtures("in_this_process")
def test_validate_writes_junit_and_json_and_prints_failures(scenario_file, tmp_path, monkeypatch, command):
    """One quick scenario stands in for all; it holds under one law of two."""
    monkeypatch.setattr(registry, "BUILT_IN", (scenario_file,))
    junit, results = tmp_path / "a.xml", tmp_path / "a.json"
    words = ["--controller", "pd", "computed_torque", "--junit", str(junit), "--json", str(results)]
    text = command(["validate", "--robot", "irb140", *words], 1).out
    assert "2 runs, 14 checks" in text
    assert "1 run fails" in text
    assert "irb140, mine, pd: swing error is" in text
    root = ET.parse(junit).getroot()
    assert root.attrib["tests"] == "16"
    assert root.attrib["skipped"] == "2"  # its check is of the error, which is not judged
    assert root.attrib["failures"] == "1"
    document = json.loads(results.read_text(encoding="utf-8"))
    assert [run["passes"] for run in document["runs"]] == [False, True]
    assert document["passes"] is False
