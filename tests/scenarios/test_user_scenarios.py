"""Scenarios of a user, and those of this project: what a short class can do."""

import ast
import csv
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import scenarios
import twin
from scenarios.judging.agreement import NO_PREDICTION, REPLAY, WHOLE_RUN
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import ERROR
from scenarios.metric import Metric
from scenarios.running import registry
from scenarios.running.runs import run_one
from scenarios.shell.command_line import main
from tests.support import user_scenarios
from tests.support.user_scenarios import given

pytestmark = pytest.mark.slow("runs scenarios in the engine")

NOD = '''"""Scenario file of a user."""

from scenarios import TrackingScenario, option
import twin


class Nod(TrackingScenario):
    """Nod with the arm: move axis 5 down and up again."""

    angle: float = option(0.5, "travel of axis 5, in rad")

    def motion(self, robot):
        down = [0, 0, 0, 0, self.angle, 0]
        return twin.sequence(twin.quintic([0] * 6, down, 0.4), twin.quintic(down, [0] * 6, 0.4))
'''
MEASURED = '''"""Scenario file of a user."""

import twin
from scenarios import Metric, TrackingScenario, option, tracking_metrics


class Measured(TrackingScenario):
    """Swing axis 1, and measure how far it is from its end."""

    tolerance: float = option(0.01, "largest error at the end, in rad", motion=False)
    defaults = {"controller": "pd", "robot": "irb1600"}
    side_by_side = ("pd", "computed_torque")
    variants = ({"tolerance": 0.02, "bandwidth": 30.0},)

    def motion(self, robot):
        return twin.quintic([0.0] * 6, [0.1] + [0.0] * 5, 0.3)

    def metrics(self, run):
        error = abs(run.log.q_ref[-1, 0] - run.log.q[-1, 0])
        end = Metric("error at the end", error, "rad", self.tolerance, "the drawing")
        return (*tracking_metrics(run), end)
'''
CARRY = '''"""Scenario file of a user."""

import twin
from scenarios import TrackingScenario


class Carry(TrackingScenario):
    """Turn, and pick up 2 kg on the way."""

    def motion(self, robot):
        return twin.quintic([0.0] * 6, [0.2] * 6, 0.4)

    def loads(self, robot):
        return {0.0: None, 0.2: twin.Payload(2.0, (0.0, 0.0, 0.05))}
'''
BARE = '''"""Scenario file of a user."""

import twin
from scenarios import Scenario


class Bare(Scenario):
    """Hold still in the engine, by a loop of one's own."""

    def run(self, setup):
        robot = setup.load_robot()
        reference = setup.sampling().sampled(twin.hold([0.0] * 6, 0.05))
        with twin.Simulation(robot) as simulation:
            return twin.run_closed_loop(simulation, setup.control_law(robot), reference)
'''
LIMITED = NOD.replace("    angle", '    limits = {"joint_error": 1e-3}\n    angle')
"""A limit between the error of computed torque with and without an unknown payload of 100 g."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of the scenarios above by their names."""
    folder = tmp_path_factory.mktemp("mine")
    texts = {"nod": NOD, "measured": MEASURED, "carry": CARRY, "bare": BARE, "limited": LIMITED}
    return {name: user_scenarios.write_text(folder / f"{name}.py", text) for name, text in texts.items()}


def results_of(words, folder, status=0):
    """Run a command, and return the runs of its results."""
    found, out, err = given([*words, "--json", str(folder / "a.json")])
    assert found == status, out + err
    return json.loads((folder / "a.json").read_text())["runs"]


def metrics_of(run):
    return {metric["name"]: metric for metric in run["metrics"]}


# What a short class can do.


def test_scenarios_are_short_and_import_two_packages():
    for text in (NOD, MEASURED, CARRY, BARE):
        assert len(text.splitlines()) <= 30
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {getattr(node, "module", None) or node.names[0].name for node in nodes}
        assert names <= {"scenarios", "twin"}


def test_scenarios_run_from_the_command_line(files, tmp_path):
    words = ["run", files["nod"], files["measured"], files["carry"], "--angle", "0.2"]
    runs = results_of(words, tmp_path)
    laws = [(run["scenario"], run["config"]["controller"]) for run in runs]
    assert laws == [
        ("nod", "computed_torque"),
        ("measured", "pd"),
        ("measured", "computed_torque"),
        ("carry", "computed_torque"),
    ]
    assert all(run["passes"] for run in runs)
    nod, pd, exact, carry = runs
    assert nod["config"]["angle"] == 0.2
    assert pd["config"]["robot"] == exact["config"]["robot"] == "irb1600"
    for run in (nod, carry):
        assert metrics_of(run)[ERROR]["value"] < 1e-13, "the model has the same payload at every time"
    ends = [metrics_of(run)["error at the end"]["value"] for run in (pd, exact)]
    assert ends[1] < 1e-13 < 1e-5 < ends[0] < 0.01
    for run in runs:
        assert metrics_of(run)[WHOLE_RUN]["outcome"] == metrics_of(run)[REPLAY]["outcome"] == "passes"


def swept(file, folder, *words, status):
    """Sweep a scenario over no payload and one of 100 g, and return the rows of its table."""
    words = ["sweep", file, "--vary", "payload=0,0.1", "--worst", "1", "--seed", "1", *words]
    found, out, err = given([*words, "--out", f"{folder}/a.csv"])
    assert found == status, out + err
    with open(folder / "a.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scenarios_are_swept_with_the_limits_of_their_classes(files, tmp_path):
    rows = swept(files["measured"], tmp_path, "--tolerance", "1e-9", status=0)
    assert [row["controller"] for row in rows] == ["pd"] * 2 + ["computed_torque"] * 2
    found = [(row["passes"], row["check"]) for row in rows]
    assert found == [("0", "error at the end")] * 2 + [("1", "")] * 2
    rows = swept(files["limited"], tmp_path, "--model-payload", "0", status=0)
    assert [(row["passes"], row["check"]) for row in rows] == [("1", ""), ("0", ERROR)]
    assert float(rows[1]["joint_error_rad"]) > 1e-3
    rows = swept(files["nod"], tmp_path, "--model-payload", "0", status=0)
    assert [row["passes"] for row in rows] == ["1", "1"], "without the limit of the class"
    for name, sentence in (
        ("carry", "the payload changes during Carry, and this command needs one\n"),
        ("bare", "scenario 'bare' is no TrackingScenario"),
    ):
        status, _, err = given(["sweep", files[name], "--vary", "mass=0.9:1.1", "--samples", "4"])
        assert (status, sentence in err) == (2, True)


def test_class_can_inherit_a_scenario_and_change_its_default(tmp_path):
    head, option = "from scenarios.joint_tracking import JointTracking\n", "option(0.1, 'in s')"
    text = user_scenarios.scenario(head, "JointTracking", motion="", options=f"duration: float = {option}\n")
    entry = registry.find(user_scenarios.write_text(tmp_path / "own.py", text))
    assert entry.options == ("duration", "speed_fraction")
    assert entry.kind().run().log.t[-1] == 0.1
    assert entry.kind(duration=0.2).run().log.t[-1] == 0.2


def test_payload_that_changes_is_in_the_log(files, tmp_path):
    entry = registry.find(files["carry"])
    run = entry.kind().run()
    assert run.log.payloads.load.tolist() == [0] * 200 + [1] * 201
    assert run.log.payloads.loads[:, 0].tolist() == [0.0, 2.0]
    torque = np.abs(np.diff(run.log.tau[:, 1]))
    assert np.argmax(torque) == 199
    run.save(tmp_path / "a.npz")
    assert twin.Log.load(tmp_path / "a.npz").identical(run.log)


def test_payload_of_the_setup_replaces_those_of_the_plant(files):
    entry = registry.find(files["carry"])
    for settings, error in (
        ({"payload": "2,0,0,0.05"}, True),
        ({"model_payload": "0"}, True),
        ({"payload": "2", "model_payload": "2"}, False),
    ):
        _, scenario, setup = entry.task(settings)
        run = scenario.run(setup)
        masses = [2.0, 2.0] if "payload" in settings else [0.0, 2.0]
        assert run.log.payloads.loads[:, 0].tolist() == masses
        assert not run.loop.known_law
        assert bool(np.abs(run.log.q - run.log.q_ref).max() > 1e-3) is error
        failed = [metric.name for metric in scenario.metrics(run) if not metric.passes]
        assert not [name for name in failed if "engine" in name or "replayed" in name]


def test_times_of_payloads_begin_with_0_and_increase(tmp_path):
    for times in ("0.1: None", "0.0: None, 0.3: None, 0.2: None"):
        text = re.sub(r"return \{.*\}", f"return {{{times}}}", CARRY)
        run = run_one(registry.find(user_scenarios.write_text(tmp_path / "a.py", text)).task({}))
        assert "loads: expected times that begin with 0 s and increase, got [0." in run.error


def test_saved_run_has_equal_metrics_and_is_a_log(files, tmp_path):
    for name in ("measured", "carry"):
        task = registry.find(files[name]).task({"controller": "pid"})
        run = task.scenario.run(task.setup)
        run.save(tmp_path / "a.npz")
        loaded = TrackingRun.load(tmp_path / "a.npz")
        assert loaded.prediction.rounding.undetermined_from == run.prediction.rounding.undetermined_from
        assert task.scenario.metrics(loaded) == task.scenario.metrics(run)
        assert twin.Log.load(tmp_path / "a.npz").identical(run.log)


# A log alone is judged as far as it goes.


@pytest.mark.usefixtures("in_this_process")
def test_bare_log_is_judged_without_a_prediction_and_every_report_says_so(files, tmp_path):
    words = ["--log", f"{tmp_path}/a.npz", "--explain", "--report", f"{tmp_path}/a.html"]
    (run,) = results_of(["run", files["bare"], *words], tmp_path)
    metrics = metrics_of(run)
    for name in (WHOLE_RUN, REPLAY):
        assert (metrics[name]["value"], metrics[name]["outcome"]) == (None, "not judged")
        assert metrics[name]["why"] == NO_PREDICTION == (
            "not judged: no prediction, use follow(...) or a TrackingScenario"
        )  # fmt: skip
    for name in ("engine - model, one step", "engine - model, every state / its limit",
                 "position beyond the range", "speed / its limit"):  # fmt: skip
        assert metrics[name]["outcome"] == "passes"
    assert (run["passes"], run["tracking"]["verdict"]) == (True, "not_judged")
    assert NO_PREDICTION.removeprefix("not judged: ") in (tmp_path / "a.html").read_text(encoding="utf-8")
    found = TrackingRun.load(tmp_path / "a.npz")
    assert (found.loop, found.prediction, found.stops) == (None, None, None)
    words = ["--robot", "irb140", "--controller", "pd", "--jobs", "1", "--junit", f"{tmp_path}/a.xml"]
    results_of(["validate", files["bare"], *words], tmp_path)
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "a.xml").iter("testcase")}
    assert cases["engine - model, one step"].find("failure") is None


# The limits of a class hold in every command.


def test_limit_of_a_class_holds_in_run_and_validate(files, tmp_path):
    for command in (["run"], ["validate", "--robot", "irb140", "--jobs", "1"]):
        words = [command[0], files["limited"], *command[1:], "--controller", "computed_torque", "pd"]
        exact, pd = results_of(words, tmp_path, 1)
        assert (exact["passes"], pd["passes"]) == (True, False)
        assert metrics_of(exact)[ERROR]["limit"] == 1e-10, "a limit never relaxes another one"
        error = metrics_of(pd)[ERROR]
        assert (error["limit"], error["outcome"], error["why"]) == (1e-3, "fails", "limit of the scenario")
        assert pd["tracking"]["verdict"] == "limited"


def test_limit_of_a_class_holds_in_tuning(files, tmp_path):
    words = ["--samples", "4", "--fresh", "10", "--evaluations", "5", "--vary", "payload=0:0.2"]
    shares = {}
    for name in ("nod", "limited"):
        status, out, err = given(["tune", "pd", files[name], *words, "--json", f"{tmp_path}/{name}.json"])
        assert status in (0, 1), out + err
        fresh = json.loads((tmp_path / f"{name}.json").read_text())["fresh"]
        shares[name] = fresh["default"]["pass_share"]["share"]
    assert shares == {"nod": 1.0, "limited": 0.0}


# The scenarios of this project.


def test_registry_lists_every_file_that_is_a_scenario():
    """A file that runs by itself is one; a base class that two scenarios share is not."""
    runs_itself = "raise SystemExit(run_script(__file__))"
    files = sorted(registry.HERE.glob("*.py"))
    assert tuple(file.stem for file in files if runs_itself in file.read_text()) == registry.BUILT_IN
    for name in registry.BUILT_IN:
        assert registry.find(name).kind.__module__ == f"scenarios.{name}"
        assert registry.find(name).fault is None
    assert registry.titles() == {name: registry.find(name).title for name in registry.BUILT_IN}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder that the registry takes for its own, and Python for one of the package's."""
    monkeypatch.setattr(registry, "HERE", tmp_path)
    monkeypatch.setattr(registry, "BUILT_IN", (*registry.BUILT_IN, "broken_exit", "broken_syntax", "sound"))
    monkeypatch.setattr(scenarios, "__path__", [*scenarios.__path__, str(tmp_path)])
    return tmp_path


@pytest.mark.usefixtures("in_this_process")
def test_package_files_with_an_error_appear_in_the_list_and_fail(package, capsys, command):
    """In this process, because others know another package."""
    user_scenarios.write(package / "broken_syntax.py", run="def run(:\n")
    user_scenarios.write(package / "broken_exit.py", head="raise SystemExit\n")
    user_scenarios.write(package / "sound.py")
    assert main(["run", "--help"]) == 0
    assert "broken_" in command(["list"]).out
    junit, words = package / "a.xml", ["broken_exit", "broken_syntax", "sound", "--robot", "irb140"]
    assert main(["validate", *words, "--jobs", "1", "--junit", str(junit)]) == 1
    assert "13 runs, 66 checks" in capsys.readouterr().out
    cases = [case for case in ET.parse(junit).getroot().iter("testcase") if case.find("failure") is not None]
    assert [case.attrib["name"] for case in cases] == ["finishes"] * 2
    assert all("cannot load scenario" in case.find("failure").attrib["message"] for case in cases)


def test_metric_accepts_any_real_number_type():
    for value in (1, np.float32(1.0), np.int64(1), np.array(1.0), True):
        assert Metric("m", value, "", np.float32(2.0), "").value == 1.0
    assert not Metric("m", np.nan, "", None, "").passes


def test_log_of_the_old_form_is_read(files, tmp_path):
    """Version 0.2 kept program, payloads and signals of the controller among its own arrays."""
    log = registry.find(files["nod"]).kind().run().log
    log.save(tmp_path / "new.npz")
    N, n = log.q.shape
    loads = np.zeros((2, 10))
    loads[1, :4] = [2.0, 0.0, 0.0, 0.05]
    old = {
        "q_model": log.q, "spread": np.zeros(N), "known_law": np.array(True),
        "line": np.arange(N) // 100, "file": np.zeros(N, dtype=int), "files": np.array(["pick.mod"]),
        "texts": np.array(["MODULE pick\n  MoveJ home;\n  WaitTime 1;"]),
        "load": (np.arange(N) >= 200).astype(int), "loads": loads, "law_disturbance": np.ones((N, n)),
    }  # fmt: skip
    with np.load(tmp_path / "new.npz") as content:
        np.savez(tmp_path / "old.npz", **content, **{f"own_{name}": array for name, array in old.items()
                                                     if f"own_{name}" not in content})  # fmt: skip
    read = twin.Log.load(tmp_path / "old.npz")
    assert np.array_equal(read.q, log.q)
    assert (read.program.place(0), read.program.place(200)) == ("", "pick.mod line 2")
    assert read.program.text(200) == "pick.mod line 2: MoveJ home;"
    assert [part.robot.payload and part.robot.payload.mass for part in twin.logs.parts(read)] == [None, 2.0]
    assert list(read.law_signals) == ["disturbance"]
    assert read.law_signals["disturbance"].shape == (N, n)
    assert {"q_model", "spread", "known_law"} == set(read.arrays)
    assert read.model_drives == "ideal"
    read.save(tmp_path / "again.npz")
    assert twin.Log.load(tmp_path / "again.npz").identical(read)
