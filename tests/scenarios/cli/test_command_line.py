"""The command `irb-twin` as a user meets it: exit status, what is printed where, what is written."""

import json
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import controllers
from scenarios.base import Config
from scenarios.cli.arguments import fields
from scenarios.cli.command_line import main
from scenarios.cli.settings import TOPICS
from scenarios.running import registry
from twin.logs.log import Log

OWN = '''"""A short swing of my own."""

from dataclasses import dataclass

from scenarios import base
from scenarios.base import Metric, option
from scenarios.checks.tracking import follow, sampled
from twin.logs.figures import joint_error


@dataclass(frozen=True)
class Config(base.Config):
    swing: float = option(0.1, "how far, in rad")
    allowed: float = option(1e-10, "the most it may stray, in rad")


def run(config):
    from twin.trajectories.joint_trajectories import quintic

    robot = config.load_robot()
    q = robot.poses["zero"]
    log = follow(config, sampled(config, quintic(q, q + config.swing, 0.2)), robot)
    from scenarios.checks.tracking import with_arrays
    import numpy as np

    return with_arrays(log, allowed=np.array(config.allowed))


def metrics(log):
    return (Metric("swing error", abs(joint_error(log)).max(), "rad", float(log.arrays["allowed"]), "mine"),)
'''


@pytest.fixture
def scenario_file(tmp_path):
    """A scenario file outside the package."""
    path = tmp_path / "mine.py"
    path.write_text(OWN, encoding="utf-8")
    return str(path)


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["list"], ["--help"], ["run", "--help"], ["run", "pose_path", "--help"]])
def test_help_and_list_start_nothing_heavy(words):
    done = python(
        "import sys\n"
        "from scenarios.cli.command_line import main\n"
        f"status = main({words!r})\n"
        "heavy = {'numba', 'urchin', 'pybullet', 'matplotlib', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "sys.exit(status)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "pose_path" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("word", ["--help", "list"])
def test_help_and_list_come_at_once(word):
    """Within 0.4 s of a machine with nothing else to do; here twice as much of the processor is allowed."""
    code = (
        "import contextlib, io, time\n"
        "from scenarios.cli.command_line import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main([{word!r}])\n"
        "print(time.process_time())\n"
    )
    assert min(float(python(code).stdout) for _ in range(3)) < 0.8


def test_help_of_a_scenario_shows_description_and_settings(capsys):
    assert main(["run", "pose_path", "--help"]) == 0
    text = capsys.readouterr().out
    assert "What must hold:" in text
    assert "--csv STR" in text
    assert "--bandwidth FLOAT" in text
    assert "--free-time" not in text


@pytest.mark.parametrize(
    ("scenarios", "told"),
    [
        ([], "toml or URDF (default irb140)"),
        (["pose_path"], "toml or URDF (default irb140)"),
        (["parallelogram"], "toml or URDF (default irb1400)"),
        (
            ["pose_path", "parallelogram"],
            "toml or URDF (default irb140 in pose_path, irb1400 in parallelogram)",
        ),
        (["gravity_hold", "parallelogram"], "in s (default 4.0 in gravity_hold, 3.0 in parallelogram)"),
        ([], "package.module:Law (default computed_torque)"),
        (["laboratory"], "package.module:Law (default pd)"),
        (["laboratory", "pose_path"], "(default pd in laboratory, computed_torque in pose_path)"),
        (["model_agreement", "parallelogram"], "in s (default 1.0 in model_agreement, 0.4 in parallelogram)"),
    ],
)
def test_help_shows_defaults_of_the_named_scenarios(scenarios, told, capsys):
    assert main(["run", *scenarios, "--help"]) == 0
    assert told in " ".join(capsys.readouterr().out.split())


def test_every_setting_has_its_place_in_the_help():
    placed = [name for names in TOPICS.values() for name in names]
    assert sorted(placed) == sorted(set(fields(Config)) - {"controller"})


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("words", [[], ["run"], ["run", "laboratory"], ["list"], ["validate"], ["formulas"]])
def test_help_is_as_wide_as_the_terminal_and_shows_examples_as_they_are(words, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*words, "--help"]) == 0
    text, _, examples = capsys.readouterr().out.partition("\nexamples:\n")
    assert max(len(line) for line in text.splitlines() if " " in line.strip()) <= min(columns, 100)
    assert all(line.startswith("  irb-twin ") for line in examples.splitlines())


def test_list_names_everything_with_a_line_each(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for name in ("irb140", *controllers.NAMES, *registry.titles()):
        assert name in text
    assert "Spring and damper at every joint." in text


def test_a_run_ends_with_tables_and_writes_what_was_asked_for(scenario_file, tmp_path, capsys):
    log, picture, results = tmp_path / "a.npz", tmp_path / "a.png", tmp_path / "a.json"
    files = ["--log", str(log), "--picture", str(picture), "--json", str(results)]
    assert main(["run", scenario_file, "--controller", "computed_torque", *files]) == 0
    printed = capsys.readouterr()
    for text in (
        "A short swing of my own.",
        "joint_6",
        "tool d",
        "Peak torque",
        "swing error",
        "passes",
    ):
        assert text in printed.out
    assert printed.err == ""
    assert len(Log.load(log).t) == 201
    assert picture.read_bytes().startswith(b"\x89PNG")
    document = json.loads(results.read_text(encoding="utf-8"))
    assert document["passes"] is True
    assert document["runs"][0]["config"]["swing"] == 0.1
    assert document["runs"][0]["metrics"][0]["name"] == "swing error"


def test_controllers_stand_side_by_side_and_each_has_its_log(scenario_file, tmp_path, capsys):
    log = tmp_path / "a.npz"
    arguments = [
        "run",
        scenario_file,
        "--controller",
        "pd",
        "computed_torque",
        "--allowed",
        "1",
        "--log",
        str(log),
    ]
    assert main(arguments) == 0
    header = next(line for line in capsys.readouterr().out.splitlines() if " pd" in line)
    assert "computed_torque" in header
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == [
        "a-mine-computed_torque.npz",
        "a-mine-pd.npz",
    ]


def test_a_limit_that_does_not_hold_is_status_1(scenario_file, capsys):
    assert main(["run", scenario_file, "--controller", "pd", "--swing", "0.2"]) == 1
    assert "FAILS" in capsys.readouterr().out


def test_a_run_that_diverges_is_status_1_and_keeps_its_log(scenario_file, tmp_path, capsys):
    log = tmp_path / "a.npz"
    assert main(["run", scenario_file, "--controller", "pd", "--bandwidth", "1500", "--log", str(log)]) == 1
    printed = capsys.readouterr()
    assert "pd: did not finish:" in printed.out
    assert "joint_" in printed.out
    assert printed.err == ""
    assert 0 < len(Log.load(log).t) < 201


@pytest.mark.parametrize("controller", controllers.NAMES)
def test_a_run_that_diverges_at_once_is_status_1_and_writes_what_there_is(
    controller, tmp_path, capsys, small_pictures
):
    log, picture, results = tmp_path / "a.npz", tmp_path / "a.png", tmp_path / "a.json"
    files = ["--log", str(log), "--picture", str(picture), "--json", str(results)]
    assert main(["run", "gravity_hold", "--controller", controller, "--bandwidth", "1e308", *files]) == 1
    printed = capsys.readouterr()
    said = " ".join(printed.out.split())  # whatever the width of the page
    assert f"{controller}: did not finish: controller {controller!r} demands nan N m of joint_" in said
    assert printed.err == ""
    diverged = np.isnan(Log.load(log).tau_demand[-1])
    assert diverged.all() or (controller == "adaptive" and diverged.any())  # its K is omega, not omega^2
    assert picture.read_bytes().startswith(b"\x89PNG")
    run = json.loads(results.read_text(encoding="utf-8"))["runs"][0]
    assert "at t = 0 s" in run["error"]
    assert run["joints"]["max_error_rad"] == [0.0] * 6
    assert [peak is None for peak in run["joints"]["peak_torque_N_m"]] == diverged.tolist()


def test_a_run_that_begins_beyond_reason_is_status_1_and_has_no_log(tmp_path, capsys):
    """The start exceeds the speed limit by far, so the log has no sample."""
    path, results = tmp_path / "mine.py", tmp_path / "a.json"
    start = "sample(sines(q, 1.0, 1e3, 0.2), 1e-3)"
    text = OWN.replace("sampled(config, quintic(q, q + config.swing, 0.2))", start).replace(
        "from twin.trajectories.joint_trajectories import quintic",
        "from twin.trajectories.sampling import sample\n"
        "    from twin.trajectories.joint_trajectories import sines",
    )
    path.write_text(text, encoding="utf-8")
    files = ["--log", str(tmp_path / "a.npz"), "--picture", str(tmp_path / "a.png"), "--json", str(results)]
    assert main(["run", str(path), *files]) == 1
    printed = capsys.readouterr()
    assert "did not finish: joint_1 runs away: 6283.19 rad/s" in printed.out
    assert printed.err == ""
    assert "runs away" in json.loads(results.read_text(encoding="utf-8"))["runs"][0]["error"]
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == ["a.json", "mine.py"]


def test_validate_writes_junit_and_json_and_prints_failures(scenario_file, tmp_path, monkeypatch, capsys):
    """One quick scenario stands in for all; it holds under the laws with a model alone."""
    monkeypatch.setattr(registry, "titles", lambda: {scenario_file: "mine"})
    junit, results = tmp_path / "a.xml", tmp_path / "a.json"
    words = ["--robot", "irb140", "--junit", str(junit), "--json", str(results)]
    assert main(["validate", *words]) == 1
    text = capsys.readouterr().out
    assert "8 runs, 24 checks" in text
    assert "3 runs fail" in text
    assert "irb140, mine, pd: swing error is" in text
    root = ET.parse(junit).getroot()
    assert root.attrib["tests"] == "32"
    assert root.attrib["skipped"] == "8"  # its check is of the error, which is not judged
    assert root.attrib["failures"] == "3"
    document = json.loads(results.read_text(encoding="utf-8"))
    held = [run["passes"] for run in document["runs"]]
    assert np.count_nonzero(held) == 5
    assert document["passes"] is False


@pytest.mark.parametrize("unread", ["| true", ">&-"])
def test_files_are_written_even_if_nobody_reads_what_is_printed(unread, tmp_path):
    code = "import sys; from scenarios.cli.command_line import main; sys.exit(main(sys.argv[1:]))"
    words = f"run gravity_hold --duration 0.01 --json {tmp_path / 'r.json'} {unread}"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {words}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["runs"]
