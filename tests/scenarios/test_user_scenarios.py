"""A scenario of one's own: what a short class can do, and every fault of it is told in a sentence."""

import ast
import contextlib
import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import scenarios
import twin
from scenarios.judging.agreement import NO_PREDICTION, REPLAY, WHOLE_RUN
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking_verdict import ERROR
from scenarios.metric import Metric
from scenarios.running import registry
from scenarios.running.runs import run_one
from scenarios.shell.command_line import main
from tests.support import user_scenarios

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


def given(words):
    """Status, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    return status, out.getvalue(), err.getvalue()


def results_of(words, folder, status=0):
    """Run a command, and return the runs of its results."""
    found, out, err = given([*words, "--json", str(folder / "a.json")])
    assert found == status, out + err
    return json.loads((folder / "a.json").read_text())["runs"]


def metrics_of(run):
    return {metric["name"]: metric for metric in run["metrics"]}


# What a short class can do.


@pytest.mark.parametrize("text", [NOD, MEASURED, CARRY, BARE])
def test_scenario_is_short_and_imports_two_packages(text):
    assert len(text.splitlines()) <= 30
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {getattr(node, "module", None) or node.names[0].name for node in imports}
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


def test_help_shows_title_options_and_defaults(files):
    status, out, _ = given(["run", files["measured"], "--help"])
    assert status == 0
    text = " ".join(out.split())
    assert "Swing axis 1, and measure how far it is from its end." in text
    assert "largest error at the end, in rad (default 0.01)" in text
    assert "(default irb1600)" in text


@pytest.mark.usefixtures("in_this_process")
def test_scenarios_are_validated(files, tmp_path):
    words = ["validate", files["nod"], files["measured"], files["carry"], "--controller", "pd", "--jobs", "1"]
    runs = results_of([*words, "--robot", "irb140"], tmp_path)
    assert [run["name"] for run in runs] == [
        "irb140, nod, pd", "irb140, measured, pd", "irb140, measured, pd, bandwidth 30.0, tolerance 0.02",
        "irb140, carry, pd",
    ]  # fmt: skip
    assert all(run["passes"] for run in runs)


def swept(file, folder, *words, status):
    """Sweep a scenario over no payload and one of 100 g, and return the rows of its table."""
    words = ["sweep", file, "--vary", "payload=0,0.1", "--worst", "1", "--seed", "1", *words]
    found, out, err = given([*words, "--out", f"{folder}/a.csv"])
    assert found == status, out + err
    with open(folder / "a.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scenarios_are_swept(files, tmp_path):
    rows = swept(files["nod"], tmp_path, "--controller", "pd", "computed_torque", "pid", status=0)
    assert [row["passes"] for row in rows] == ["1"] * 6
    rows = swept(files["measured"], tmp_path, "--tolerance", "1e-9", status=0)
    assert [row["controller"] for row in rows] == ["pd"] * 2 + ["computed_torque"] * 2
    found = [(row["passes"], row["check"]) for row in rows]
    assert found == [("0", "error at the end")] * 2 + [("1", "")] * 2
    status, _, err = given(["sweep", files["carry"], "--vary", "mass=0.9:1.1", "--samples", "4"])
    assert (status, err) == (2, "irb-twin: the payload changes during Carry, and this command needs one\n")


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


@pytest.mark.parametrize("times", ["0.1: None", "0.0: None, 0.3: None, 0.2: None"])
def test_times_of_payloads_begin_with_0_and_increase(times, files, tmp_path):
    text = re.sub(r"return \{.*\}", f"return {{{times}}}", CARRY)
    run = run_one(registry.find(user_scenarios.write_text(tmp_path / "a.py", text)).task({}))
    assert "loads: expected times that begin with 0 s and increase, got [0." in run.error


def test_saved_run_has_equal_metrics_and_is_a_log(files, tmp_path):
    for name in ("nod", "measured", "carry"):
        task = registry.find(files[name]).task({"controller": "pid"})
        run = task.scenario.run(task.setup)
        run.save(tmp_path / "a.npz")
        loaded = TrackingRun.load(tmp_path / "a.npz")
        assert loaded.prediction.rounding.undetermined_from == run.prediction.rounding.undetermined_from
        assert task.scenario.metrics(loaded) == task.scenario.metrics(run)
        assert twin.Log.load(tmp_path / "a.npz").identical(run.log)


# A log alone is judged as far as it goes.


@pytest.mark.usefixtures("in_this_process")
def test_bare_log_is_judged_without_a_prediction(files, tmp_path):
    (run,) = results_of(["run", files["bare"], "--log", str(tmp_path / "a.npz")], tmp_path)
    metrics = metrics_of(run)
    for name in (WHOLE_RUN, REPLAY):
        assert (metrics[name]["value"], metrics[name]["outcome"]) == (None, "not judged")
        assert metrics[name]["why"] == NO_PREDICTION == (
            "not judged: no prediction, use follow(...) or a TrackingScenario"
        )  # fmt: skip
    for name in ("engine - model, one step", "engine - model, every state / its limit",
                 "position beyond the range", "speed / its limit"):  # fmt: skip
        assert metrics[name]["outcome"] == "passes"
    assert run["passes"]
    assert run["tracking"]["verdict"] == "not_judged"
    found = TrackingRun.load(tmp_path / "a.npz")
    assert (found.loop, found.prediction, found.stops) == (None, None, None)


@pytest.mark.usefixtures("in_this_process")
def test_every_report_shows_a_check_that_is_not_judged(files, tmp_path):
    words = ["run", files["bare"], "--explain", "--report", str(tmp_path / "a.html")]
    status, out, err = given(words)
    assert status == 0, err
    assert NO_PREDICTION in " ".join(out.split())
    assert NO_PREDICTION.removeprefix("not judged: ") in (tmp_path / "a.html").read_text(encoding="utf-8")
    words = ["validate", files["bare"], "--robot", "irb140", "--controller", "pd", "--jobs", "1"]
    status, out, err = given([*words, "--junit", f"{tmp_path}/a.xml", "--markdown", f"{tmp_path}/a.md"])
    assert status == 0, out + err
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "a.xml").iter("testcase")}
    assert cases["engine - model, one step"].find("failure") is None


def test_bare_scenario_cannot_be_swept(files):
    status, _, err = given(["sweep", files["bare"], "--vary", "payload=0:1", "--samples", "4"])
    assert status == 2
    assert "scenario 'bare' is no TrackingScenario" in err


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


def test_limit_of_a_class_holds_in_a_sweep(files, tmp_path):
    rows = swept(files["limited"], tmp_path, "--model-payload", "0", status=0)
    assert [(row["passes"], row["check"]) for row in rows] == [("1", ""), ("0", ERROR)]
    assert float(rows[1]["joint_error_rad"]) > 1e-3
    rows = swept(files["nod"], tmp_path, "--model-payload", "0", status=0)
    assert [row["passes"] for row in rows] == ["1", "1"], "without the limit of the class"


def test_limit_of_a_class_holds_in_tuning(files, tmp_path):
    words = ["--samples", "4", "--fresh", "10", "--evaluations", "16", "--vary", "payload=0:0.2"]
    shares = {}
    for name in ("nod", "limited"):
        status, out, err = given(["tune", "pd", files[name], *words, "--json", f"{tmp_path}/{name}.json"])
        assert status in (0, 1), out + err
        fresh = json.loads((tmp_path / f"{name}.json").read_text())["fresh"]
        shares[name] = fresh["default"]["pass_share"]["share"]
    assert shares == {"nod": 1.0, "limited": 0.0}


# What user code does wrong fails its run alone.


WAYS_OUT = [
    "import sys; sys.exit()",
    "import sys; sys.exit('enough')",
    "raise SystemExit(0)",
    "raise type('Stop', (KeyboardInterrupt,), {})()",
    "raise GeneratorExit",
    "raise MemoryError",
    "raise RuntimeError('two\\nlines')",
    "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()",
]


def places(statement):
    """A file for each place at which the statement can stand."""
    return {
        "import": {"head": statement + "\n"},
        "run": {"run": f"def run(self, setup):\n    {statement}\n"},
        "motion": {"motion": f"def motion(self, robot):\n    {statement}\n"},
        "metrics": {"metrics": f"def metrics(self, run):\n    {statement}\n"},
        "options": {"options": f"def __post_init__(self):\n    {statement}\n"},
        "body": {"options": f"{statement}\n"},
    }


def run_all(folder, files):
    """Run user files and a good one by one command; return what it printed, and the errors by their names."""
    paths = [
        user_scenarios.write_text(folder / f"{name}.py", parts)
        if isinstance(parts, str)
        else user_scenarios.write(folder / f"{name}.py", **parts)
        for name, parts in files.items()
    ]
    results, printed = folder / "a.json", io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main(["run", *paths, user_scenarios.write(folder / "good.py"), "--json", str(results)])
    assert status == 1
    runs = {run["scenario"]: run for run in json.loads(results.read_text())["runs"]}
    assert runs.keys() == {*files, "good"}
    good = runs.pop("good")
    assert (good["error"], good["passes"]) == (None, True)
    assert not any(run["passes"] for run in runs.values())
    return printed.getvalue(), {name: run["error"] for name, run in runs.items()}


LEAVING = {
    f"{place}_{number}": (place, statement)
    for number, statement in enumerate(WAYS_OUT)
    for place in places("")
}


def test_user_code_that_exits_fails_its_run_only(tmp_path):
    files = {name: places(statement)[place] for name, (place, statement) in LEAVING.items()}
    printed, errors = run_all(tmp_path, files)
    for name, (_, statement) in LEAVING.items():
        assert f"{name}.py" in errors[name]
        assert statement.split("'")[1] in errors[name] if "type(" in statement else True
        assert "\n" not in errors[name]
    assert printed.count("computed_torque: did not finish: ") == len(LEAVING)
    assert f"{len(LEAVING) + 1} runs, 6 checks" in printed
    assert printed.count("Peak torque") == 1 + len(WAYS_OUT)  # the good one, and those left after the run


@pytest.mark.parametrize("place", ["import", "run"])
def test_single_run_that_exits_has_status_1(place, tmp_path, command):
    file = user_scenarios.write(tmp_path / "bad.py", **places("raise SystemExit(0)")[place])
    assert "SystemExit" in command(["run", file], 1).out


def setting(line):
    return {"options": f"{line}\n"}


def run(*lines):
    return {"run": "\n    ".join(("def run(self, setup):", *lines)) + "\n"}


def metrics(result):
    return {"metrics": f"def metrics(self, run):\n    {result}\n"}


def metric(*values):
    return metrics(f"return (Metric({', '.join(values)}),)")


TWO = user_scenarios.scenario() + "\n\nclass Other(Own):\n    '''Another one.'''\n"
FAULTS = {
    "missing module": ({"head": "import numpee\n"}, "cannot load scenario file .*: ModuleNotFoundError"),
    "syntax": ({"run": "def run(self:\n"}, "cannot load scenario file .*: SyntaxError"),
    "raises": (run("raise KeyError('torque')"), r"\.py, line 14: KeyError: 'torque'"),
    "nothing": (run("return None"), "run must return a Log or a TrackingRun, got None"),
    "odd log": (
        run(
            "from dataclasses import replace",
            "log = super().run(setup).log",
            "return replace(log, q=log.q[:3])",
        ),
        r"expected q to be float64 of shape \(11, 6\), got float64 of shape \(3, 6\)",
    ),
    "no motion": ({"motion": ""}, r"NotImplementedError: Own defines no motion\(self, robot\)"),
    "no run": ({"base": "Scenario"}, r"NotImplementedError: Own defines no run\(self, setup\)"),
    "odd motion": ({"motion": "def motion(self, robot):\n    return 3\n"}, "TypeError|AttributeError"),
    "generator": (metrics("yield 3"), "must return a tuple or list, got <generator"),
    "endless": ({"head": "def fail():\n    return fail()\n\nfail()\n"}, "RecursionError"),
    "no metrics": (metrics("return 3"), "must return a tuple or list, got 3"),
    "odd metrics": (metrics("return [3]"), "must return a Metric, got 3"),
    "metrics raise": (metrics("raise ValueError('no')"), r"\.py, line 14: ValueError: no"),
    "text": (metric("'m'", "'fast'", "''", "None", "''"), "value of 'm' to be one real number, got 'fast'"),
    "several": (metric("'m'", "run.log.q[0]", "''", "None", "''"), "value of 'm' to be one real number"),
    "odd limit": (metric("'m'", "1.0", "''", "'2'", "''"), "limit of 'm' to be one real number, got '2'"),
    "no name": (metric("7", "1.0", "''", "None", "''"), "expected name of 7 to be text, got 7"),
    "same name": (metrics("return 2 * [Metric('m', 1.0, '', None, '')]"), "more than one Metric named 'm'"),
    # of the class
    "no docstring": ({"doc": ""}, "Own has no docstring, whose first line is its title"),
    "two classes": (TWO, r"expected one class that inherits .*Scenario, got Own, Other"),
    "no class": ('"""No scenario."""\n', "expected one class that inherits .*, got none; see docs/guides"),
    "setting": (
        setting("robot = 'irb1600'"),
        r"Own\.robot: robot is a setting of every run; for another default write defaults = \{'robot': ",
    ),
    "setting as option": (
        setting("bandwidth: float = option(9.0, 'in rad/s')"),
        "Own.bandwidth: bandwidth is a setting of every run; .* for an option choose another name",
    ),
    "setting with a type": (setting("seed: int = 3"), "Own.seed: seed is a setting of every run"),
    "no type": (
        setting("angle = option(0.5, 'in rad')"),
        r"Own\.angle: an option needs a type; write angle: float = option\(\.\.\.\)",
    ),
    "no option": (
        setting("angle: float = 0.5"),
        r"Own\.angle: a setting is an option; write angle: float = option\(0\.5, 'what it is, and its un",
    ),
    "default of another class": (
        {"head": "from scenarios.joint_tracking import JointTracking\n", "base": "JointTracking"}
        | setting("duration = 0.1"),
        r"Own\.duration: .* write duration: float = option\(0\.1, 'length of the motion, in s'\)",
    ),
    "name": (setting("json: bool = option(False, 'x')"), "Own.json: json is a name that scenarios use"),
    "name of a hook": (setting("loads: float = option(1.0, 'x')"), "Own.loads: loads is a name that scena"),
    "name of an attribute": (setting("limits: float = option(1.0, 'x')"), "Own.limits: limits is a name th"),
    "default": (setting("speed: float = option('fast', 'x')"), "the default 'fast', which is not float"),
    "default none": (setting("speed: float = option(None, 'x')"), "the default None, which is not float"),
    "default switch": (setting("speed: float = option(True, 'x')"), "the default True, which is not float"),
    "annotation": (setting("speed: list = option((), 'x')"), "Own.speed is annotated list: the type of an "),
    "no annotation": (setting("speed: 'Speed' = option(1.0, 'x')"), "cannot be evaluated: name 'Speed'"),
    "help": (setting("speed: float = option(1.0, 7)"), "has the help 7, which is not text"),
    "choices": (
        setting("word: str = option('a', 'x', choices=(1, 2))"),
        r"Own\.word has the choices \(1, 2\), which are not a tuple of texts",
    ),
    "variants": (setting("variants = 3"), "Own.variants must be a tuple, got 3"),
    "variants of texts": (setting("variants = ('pd',)"), r"variants\[0\] must be a dictionary, got 'pd'"),
    "key of a variant": (setting("variants = ({'angel': 1},)"), r"Own\.variants\[0\]: there is no 'angel'"),
    "key of defaults": (setting("defaults = {'robots': 'x'}"), "Own.defaults: there is no 'robots': known"),
    "key of limits": (
        setting("limits = {'joint_eror': 1}"),
        "Own.limits: there is no 'joint_eror': known are joint_error, ",
    ),
    "limits": (setting("limits = 0.1"), r"Own\.limits must be a dictionary, got 0\.1"),
    "needs": (setting("needs = ('tools',)"), "Own.needs: there is no 'tools': known are tool, payload, seed"),
    "needs a text": (setting("needs = 'tool'"), "Own.needs must be a tuple, got 'tool'"),
    "leaves limits": (setting("leaves_limits = True"), "Own.leaves_limits must be a sentence, got True"),
}  # fmt: skip


def test_fault_of_user_file_is_one_sentence_of_its_run(tmp_path):
    _, errors = run_all(tmp_path, {fault.replace(" ", "_"): parts for fault, (parts, _) in FAULTS.items()})
    for fault, (_, told) in FAULTS.items():
        assert re.search(told, errors[fault.replace(" ", "_")]), (fault, errors[fault.replace(" ", "_")])
    assert "\n" not in "".join(errors.values())


OLD = '''"""Scenario of version 0.2."""

from dataclasses import dataclass
{imports}

@dataclass(frozen=True)
class Config{base}: ...


def run(config): ...


def metrics(log): ...
'''


@pytest.mark.parametrize(
    ("imports", "base"), [("from scenarios import base, gravity_hold\n", "(base.Config)"), ("", "")]
)
@pytest.mark.parametrize("command", ["run", "run --help", "sweep", "validate"])
def test_module_of_the_old_form_is_refused_in_one_sentence(imports, base, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    user_scenarios.write_text(tmp_path / "old.py", OLD.format(imports=imports, base=base))
    name, *others = command.split()
    status, out, err = given([name, "old.py", *others, *(["--vary", "payload=0:1"] * (name == "sweep"))])
    sentence = (
        "'old.py' has the form of version 0.2, with Config, run and metrics: a scenario is now a class, see "
        "docs/guides/own_scenario.md"
    )
    assert (status, out, err) == (2, "", f"irb-twin: {sentence}\n")


def test_rejected_settings_are_wrong_use_and_in_the_results(tmp_path, capsys):
    results = tmp_path / "a.json"
    assert main(["run", "gravity_hold", "--robot", "irb99", "--json", str(results)]) == 2
    assert capsys.readouterr().err.startswith("irb-twin: unknown robot 'irb99'")
    (run,) = json.loads(results.read_text())["runs"]
    assert "unknown robot 'irb99'" in run["error"]


def test_help_prints_per_cent_signs(tmp_path, command):
    own = user_scenarios.write(tmp_path / "own.py", **setting("speed: str = option('50%', '100% sure')"))
    assert "100% sure (default 50%)" in command(["run", own, "--help"]).out


def test_files_of_equal_name_get_unique_names(tmp_path, command, small_pictures):
    first, second = (
        user_scenarios.write(
            tmp_path / folder / "nod.py", metrics=user_scenarios.METRICS.replace("length", name)
        )
        for folder, name in (("a", "first"), ("b", "second"))
    )
    words = ["--log", str(tmp_path / "x.npz"), "--picture", str(tmp_path / "x.png")]
    text = command(["run", first, f"{tmp_path}/a/../a/nod.py", second, *words]).out
    assert text.index("a-nod: ") < text.index("first") < text.index("b-nod: ") < text.index("second")
    names = [f"x-{name}-nod{end}" for name in "ab" for end in ("-computed_torque.npz", ".png")]
    assert sorted(path.name for path in tmp_path.glob("x*")) == names


# The scenarios of this project.


def test_registry_lists_every_file_that_is_a_scenario():
    """A file that runs by itself is one; a base class that two scenarios share is not."""
    runs_itself = "raise SystemExit(run_script(__file__))"
    files = sorted(registry.HERE.glob("*.py"))
    assert tuple(file.stem for file in files if runs_itself in file.read_text()) == registry.BUILT_IN
    for name in registry.BUILT_IN:
        assert registry.find(name).kind.__module__ == f"scenarios.{name}"
        assert registry.find(name).fault is None


def test_listing_the_scenarios_loads_no_compiler_and_no_scipy():
    program = (
        "import importlib, sys; from scenarios.running import registry\n"
        "kinds = [importlib.import_module(f'scenarios.{name}') for name in registry.BUILT_IN]\n"
        "print(len(kinds), sorted({name.partition('.')[0] for name in sys.modules} & {*sys.argv[1:]}))\n"
    )
    heavy = ["numba", "scipy", "pybullet", "matplotlib", "urchin"]
    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True, cwd=registry.HERE
    )
    assert done.stdout == f"{len(registry.BUILT_IN)} []\n"


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
    assert "10 runs, 48 checks" in capsys.readouterr().out
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
    assert Path(tmp_path / "again.npz").stat().st_size > 0
