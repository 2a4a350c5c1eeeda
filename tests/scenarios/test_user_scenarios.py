"""Whatever a scenario of one's own does wrong is a failed run, told in a sentence; the others stand."""

import contextlib
import io
import json
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pybullet_data
import pytest

import controllers
import scenarios
import twin
from scenarios.base import Config, Metric
from scenarios.checks.motion_range import finite_range, finite_speed
from scenarios.cli.command_line import main
from scenarios.cli.output import Tally
from scenarios.running import registry
from scenarios.running.runs import run_name
from scenarios.running.validation import Selection, matches, planned
from tests.support import user_scenarios
from twin.errors import RobotError, UnknownNameError
from twin.logs.figures import joint_error

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
    config = "@dataclass(frozen=True)\nclass Config(base.Config):\n    def __post_init__(self):\n        "
    return {
        "import": {"head": statement + "\n"},
        "run": {"run": f"def run(config):\n    {statement}\n"},
        "metrics": {"metrics": f"def metrics(log):\n    {statement}\n"},
        "settings": {"config": f"{config}{statement}\n"},
    }


def run_all(folder, files):
    """Run user files and a good one by one command; return what it printed, and the errors by their names."""
    paths = [user_scenarios.write(folder / f"{name}.py", **parts) for name, parts in files.items()]
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
    assert f"{len(LEAVING) + 1} runs, 2 checks" in printed
    assert printed.count("Peak torque") == 1 + len(WAYS_OUT)  # the good one, and those left after the run


@pytest.mark.parametrize("place", ["import", "run"])
def test_single_run_that_exits_has_status_1(place, tmp_path, command):
    file = user_scenarios.write(tmp_path / "bad.py", **places("raise SystemExit(0)")[place])
    assert "SystemExit" in command(["run", file], 1).out


def setting(line):
    return {"config": f"@dataclass(frozen=True)\nclass Config(base.Config):\n    {line}\n"}


def run(*lines):
    return {"run": "\n    ".join(("def run(config):", *lines)) + "\n"}


def metrics(result):
    return {"metrics": f"def metrics(log):\n    {result}\n"}


def metric(*values):
    return metrics(f"return (Metric({', '.join(values)}),)")


FAULTS = {
    "missing module": ({"head": "import numpee\n"}, "cannot load scenario file .*: ModuleNotFoundError"),
    "syntax": ({"run": "def run(config:\n"}, "cannot load scenario file .*: SyntaxError"),
    "raises": (run("raise KeyError('torque')"), r"\.py, line 13: KeyError: 'torque'"),
    "no log": (run("return None"), "run must return a Log, got None"),
    "odd log": (
        run(
            "from dataclasses import replace", "log = gravity_hold.run(gravity_hold.Config(duration=0.01))",
            "return replace(log, q=log.q[:3])",
        ),
        r"expected q to be float64 of shape \(11, 6\), got float64 of shape \(3, 6\)",
    ),
    "generator": (metrics("yield 3"), "must return a tuple or list, got <generator"),
    "endless": ({"head": "def fail():\n    return fail()\n\nfail()\n"}, "RecursionError"),
    "no metrics": (metrics("return 3"), "must return a tuple or list, got 3"),
    "odd metrics": (metrics("return [3]"), "must return a Metric, got 3"),
    "metrics raise": (metrics("raise ValueError('no')"), r"\.py, line 17: ValueError: no"),
    "text": (metric("'m'", "'fast'", "''", "None", "''"), "value of 'm' to be one real number, got 'fast'"),
    "several": (metric("'m'", "log.q[0]", "''", "None", "''"), "value of 'm' to be one real number"),
    "odd limit": (metric("'m'", "1.0", "''", "'2'", "''"), "limit of 'm' to be one real number, got '2'"),
    "no name": (metric("7", "1.0", "''", "None", "''"), "expected name of 7 to be text, got 7"),
    "same name": (metrics("return 2 * [Metric('m', 1.0, '', None, '')]"), "more than one Metric named 'm'"),
    "default": (setting("speed: float = option('fast', 'x')"), "the default 'fast', which is not float"),
    "default none": (setting("speed: float = option(None, 'x')"), "the default None, which is not float"),
    "annotation": (setting("speed: list = option((), 'x')"), "'speed' is annotated list: the type of an opt"),
    "no annotation": (setting("speed: 'Speed' = option(1.0, 'x')"), "cannot be evaluated: name 'Speed'"),
    "help": (setting("speed: float = option(1.0, 7)"), "has the help 7, which is not text"),
    "name": (setting("json: bool = option(False, 'x')"), "'json' has a name that the command line itself"),
    "variants": ({"head": "VARIANTS = 3\n"}, "VARIANTS must be a tuple of Configs, got 3"),
}  # fmt: skip


def test_fault_of_user_file_is_one_sentence_of_its_run(tmp_path):
    _, errors = run_all(tmp_path, {fault.replace(" ", "_"): parts for fault, (parts, _) in FAULTS.items()})
    for fault, (_, told) in FAULTS.items():
        assert re.search(told, errors[fault.replace(" ", "_")])
    assert "\n" not in "".join(errors.values())


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
    value = user_scenarios.PARTS["metrics"]
    first, second = (
        user_scenarios.write(tmp_path / folder / "nod.py", metrics=value.replace("length", name))
        for folder, name in (("a", "first"), ("b", "second"))
    )
    words = ["--log", str(tmp_path / "x.npz"), "--picture", str(tmp_path / "x.png")]
    text = command(["run", first, f"{tmp_path}/a/../a/nod.py", second, *words]).out
    assert text.index("a-nod: ") < text.index("first") < text.index("b-nod: ") < text.index("second")
    names = [f"x-{name}-nod{end}" for name in "ab" for end in ("-computed_torque.npz", ".png")]
    assert sorted(path.name for path in tmp_path.glob("x*")) == names


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder that the registry takes for its own, and Python for one of the package's."""
    monkeypatch.setattr(registry, "HERE", tmp_path)
    monkeypatch.setattr(scenarios, "__path__", [*scenarios.__path__, str(tmp_path)])
    return tmp_path


@pytest.mark.usefixtures("in_this_process")
def test_package_files_with_an_error_appear_in_the_list_and_fail(package, capsys, command):
    """In this process, because others know another package."""
    user_scenarios.write(package / "broken_syntax.py", config="class Config(:\n")
    user_scenarios.write(package / "broken_exit.py", head="raise SystemExit\n")
    user_scenarios.write(package / "sound.py")
    assert main(["run", "--help"]) == 0
    assert "broken_" in command(["list"]).out
    junit = package / "a.xml"
    assert main(["validate", "--robot", "irb140", "--jobs", "1", "--junit", str(junit)]) == 1
    assert "10 runs, 16 checks" in capsys.readouterr().out
    cases = [case for case in ET.parse(junit).getroot().iter("testcase") if case.find("failure") is not None]
    assert [case.attrib["name"] for case in cases] == ["finishes"] * 2
    assert all("cannot load scenario" in case.find("failure").attrib["message"] for case in cases)


def test_metric_accepts_any_real_number_type():
    for value in (1, np.float32(1.0), np.int64(1), np.array(1.0), True):
        assert Metric("m", value, "", np.float32(2.0), "").value == 1.0
    assert not Metric("m", np.nan, "", None, "").passes


# Runs, output and files of `irb-twin validate`.


VARIANT = "VARIANTS = (Config(controller='pid', bandwidth=9.0),)\n"
RUN = """def run(config):
    return gravity_hold.run(gravity_hold.Config(duration=0.1, controller=config.controller))
"""
METRICS = """def metrics(log):
    import numpy as np
    error = float(np.max(np.abs(log.q_ref - log.q)))
    return (Metric("largest error", error, "rad", 1e-3, "what our gripper can bear"),)
"""


def write_scenario(folder, name="mine.py", **parts):
    return registry.find(user_scenarios.write(folder / name, **parts))


def names(plan):
    return [run_name(scenario.name, config) for scenario, config in plan.runs]


def test_default_plan_has_all_scenarios_with_their_robots():
    plan = planned()
    found = {(scenario.name, config.robot) for scenario, config in plan.runs}
    assert {name for name, _ in found} == set(registry.titles())
    assert {robot for name, robot in found if name == "pose_path"} == set(twin.robot_names())
    assert {robot for name, robot in found if name == "manutec_move"} == {"manutec_r3"}
    assert {robot for name, robot in found if name == "parallelogram"} == {"irb1400"}
    for name, robot in found:
        laws = {config.controller for one, config in plan.runs if (one.name, config.robot) == (name, robot)}
        assert laws >= set(controllers.NAMES)
    assert len(set(names(plan))) == len(plan.runs)


def test_selected_controller_restricts_runs_and_variants(tmp_path):
    mine = write_scenario(tmp_path, config=user_scenarios.PARTS["config"] + VARIANT)
    assert names(planned(["irb140"], [mine], Selection(["pd"]))) == ["irb140, mine, pd"]
    both = ["irb140, mine, pid", "irb140, mine, pid, bandwidth 9.0"]
    assert names(planned(["irb140"], [mine], Selection(["pid"]))) == both
    assert len(planned(["irb140"], [mine]).runs) == len(controllers.NAMES) + 1


def test_setting_applies_to_every_run_and_duplicates_run_once(tmp_path):
    mine = write_scenario(tmp_path, config=user_scenarios.PARTS["config"] + VARIANT)
    selection = Selection((), {"bandwidth": 9.0, "unheard_of": 1}, {"pid": (("Ki", 3.0),)})
    plan = planned(["irb140"], [mine], selection)
    assert len(plan.runs) == len(controllers.NAMES)
    assert {config.bandwidth for _, config in plan.runs} == {9.0}
    assert {config.law_settings for _, config in plan.runs if config.controller == "pid"} == {(("Ki", 3.0),)}


def test_plan_uses_default_robot_of_scenario(tmp_path):
    made_for = (
        "@dataclass(frozen=True)\nclass Config(base.Config):\n    robot: str = option('irb1400', 'x')\n"
    )
    mine = write_scenario(tmp_path, config=made_for)
    assert {config.robot for _, config in planned((), [mine]).runs} == {"irb1400"}
    assert {config.robot for _, config in planned(["irb140"], [mine]).runs} == {"irb140"}
    suits = "def suits(robot):\n    return robot.name == 'irb1400'\n"
    fussy = write_scenario(tmp_path, "fussy.py", config=user_scenarios.PARTS["config"] + suits)
    plan = planned((), [fussy])
    assert {config.robot for _, config in plan.runs} == {"irb1400"}
    assert plan.unsuited == (("fussy", "irb140"), ("fussy", "irb1600"))


def test_unknown_controller_and_invalid_setting_raise(tmp_path):
    with pytest.raises(UnknownNameError, match="pd_gravitas"):
        planned(["irb140"], (), Selection(["pd_gravitas"]))
    with pytest.raises(ValueError, match="bandwidth"):
        planned(["irb140"], [write_scenario(tmp_path)], Selection((), {"bandwidth": -1.0}))


@pytest.mark.parametrize(
    ("texts", "held"),
    [
        (["POSE_path"], True), (["irb140*pd"], True), (["irb1?0"], True), (["irb1400", "bandwidth 30"], True),
        (["irb1400"], False), (["pd*irb140"], False), ([], False),
    ],
)  # fmt: skip
def test_only_matches_part_of_a_name_or_a_pattern(texts, held):
    name = run_name("pose_path", Config(controller="pd", bandwidth=30.0))
    assert name == "irb140, pose_path, pd, bandwidth 30.0"
    assert matches(name, texts) is held


def test_failure_reports_figure_place_cause_and_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    user_scenarios.write(tmp_path / "mine.py", run=RUN, metrics=METRICS)
    words = "validate ./mine.py --robot irb140 --controller pd computed_torque --jobs 1 --bandwidth 21"
    assert main([*words.split(), "--json", "a.json", "--junit", "a.xml", "--markdown", "a.md"]) == 1
    told = capsys.readouterr().out
    (line,) = [one for one in told.splitlines() if one.startswith("irb140, mine, pd, bandwidth 21.0: larg")]
    figure = line.partition(" error is ")[2].partition(" rad")[0]
    assert f"largest joint error is {figure} rad, of joint_" in told
    assert re.search(r", of joint_\d at t = 0\.\d+ s cause: ", " ".join(told.split()))
    assert "cause: the controller or its gains: computed_torque, which knows" in told
    (repeat,) = [line.removeprefix("repeat: ") for line in told.splitlines() if line.startswith("repeat: ")]
    program, *repeated = shlex.split(repeat)
    assert program == "irb-twin"
    assert main(repeated) == 1
    assert f"pd: largest error is {figure} rad" in capsys.readouterr().out

    runs = json.loads((tmp_path / "a.json").read_text())["runs"]
    good, bad = sorted(runs, key=lambda run: not run["passes"])
    assert (bad["repeat"], good["config"]["seed"], good["config"]["bandwidth"]) == (repeat, 0, 21.0)
    suite = ET.parse(tmp_path / "a.xml").getroot()[0]
    properties = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert properties["irb-twin"] == twin.__version__
    assert "bandwidth=21.0" in properties["settings of irb140, mine, pd, bandwidth 21.0"]
    (failure,) = suite.iter("failure")
    assert failure.attrib["message"].startswith(f"largest error is {figure} rad, expected at most 0.001")
    assert repeat in failure.text
    page = (tmp_path / "a.md").read_text()
    assert page.startswith("## irb-twin validate: 1 FAIL\n")
    assert page.index("### Failures") < page.index("| irb140 | mine | pd, bandwidth 21.0 |")
    assert f"`{repeat}`" in page
    assert f"irb-twin {twin.__version__}" in page


def test_empty_plan_is_wrong_use(tmp_path, capsys):
    assert main(["validate", "parallelogram", "--robot", "irb140"]) == 2
    assert "nothing to run: not run, because the scenario does not suit the robot" in capsys.readouterr().err
    assert main(["validate", "gravity_hold", "--only", "no such"]) == 2
    told = "none of 24 runs has that in its name; a name looks like 'irb140, gravity_hold, pd'"
    assert told in capsys.readouterr().err
    assert main(["validate", "--jobs", "0"]) == 2
    assert "expected a whole number above 0, got '0'" in capsys.readouterr().err


def test_tally_prints_remaining_time_without_terminal(capsys):
    now = [0.0]
    bar = SimpleNamespace(add_task=lambda *_, **__: 0, update=lambda *_, **__: None, disable=True)
    tally = Tally(["a", "b", "c", "d"], bar, clock=lambda: now[0])
    assert tally.left() == ""
    for place, seconds in enumerate((20.0, 40.0, 60.0)):
        now[0] = seconds
        tally.begun(place)
        tally.done(place, place != 0)
    assert capsys.readouterr().err == "irb-twin: 2 of 4 done, 1 fails, about 40 s left\n"
    assert tally.line() == "3 of 4 done, 1 fails, about 20 s left"


# Scenarios on robots that are not of this project: URDFs without limits, without poses, of other makers.


FOREIGN = ("gravity_hold", "joint_tracking", "model_agreement")

LIMITLESS = """<robot name="limitless">
<link name="base"/>
<link name="arm">
  <inertial><origin xyz="0 0.1 0.1"/><mass value="2"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
</link>
<link name="carriage">
  <inertial><origin xyz="0.1 0 0"/><mass value="1"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
</link>
<joint name="turn" type="continuous">
  <parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
</joint>
<joint name="slide" type="prismatic">
  <parent link="arm"/><child link="carriage"/><origin xyz="0 0 0.3"/><axis xyz="1 0 0"/>
  <limit effort="0" velocity="0"/>
</joint>
</robot>
"""


@pytest.fixture
def limitless(tmp_path):
    path = tmp_path / "limitless.urdf"
    path.write_text(LIMITLESS, encoding="utf-8")
    return str(path)


@pytest.fixture
def iiwa():
    """The KUKA arm that comes with PyBullet."""
    return str(Path(pybullet_data.getDataPath()) / "kuka_iiwa" / "model.urdf")


SHORT = {
    "gravity_hold": {},
    "joint_tracking": {"duration": 1.0},
    "model_agreement": {"moves": 1, "states": 5, "free_time": 0.1},
}


@pytest.mark.parametrize(
    ("name", "which"), [*((name, "limitless") for name in FOREIGN), ("joint_tracking", "iiwa")]
)
def test_scenario_runs_with_foreign_arm(name, which, request):
    scenario = registry.find(name)
    log = scenario.run(scenario.Config(robot=request.getfixturevalue(which), **SHORT[name]))
    assert [metric.name for metric in scenario.metrics(log) if not metric.passes] == []
    assert np.abs(joint_error(log)).max() < 1e-14
    low, high = finite_range(log.robot)
    assert np.all((low <= log.q_ref) & (log.q_ref <= high))
    assert np.all(np.abs(log.qd_ref) <= finite_speed(log.robot))
    if name != "gravity_hold":
        assert np.all(np.ptp(log.q, axis=0) > 0.1)


@pytest.mark.parametrize("which", ["limitless", "iiwa"])
def test_default_pose_loads_the_joints(which, request):
    scenario = registry.find("gravity_hold")
    log = scenario.run(scenario.Config(robot=request.getfixturevalue(which), controller="pd", duration=1.0))
    assert np.abs(joint_error(log)[-1]).max() > 0.05
    assert all(metric.passes for metric in scenario.metrics(log))


def test_missing_limits_have_default_values_and_existing_ones_stay(limitless, tmp_path, irb140):
    robot = twin.load(limitless)
    np.testing.assert_array_equal(finite_range(robot), [[-np.pi, -0.5], [np.pi, 0.5]])
    np.testing.assert_array_equal(finite_speed(robot), [1.0, 0.5])
    for limit, ends in (('lower="1"', [1.0, 2.0]), ('upper="-1"', [-2.0, -1.0])):
        path = tmp_path / "one.urdf"
        path.write_text(LIMITLESS.replace("<limit ", f"<limit {limit} "), encoding="utf-8")
        assert [end[1] for end in finite_range(twin.load(path))] == ends
    np.testing.assert_array_equal(finite_range(irb140), [irb140.q_min, irb140.q_max])
    np.testing.assert_array_equal(finite_speed(irb140), irb140.qd_max)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gravity_hold", "--pose", "home"], "robot 'limitless' has no named poses, hence no 'home'"),
        (["pose_path"], "robot 'limitless' has no [tour] of poses"),
        (["payload_mismatch"], "robot 'limitless' has no [rating] of payload and reach"),
    ],
)
def test_message_names_missing_parts_of_foreign_robot(words, told, limitless, capsys):
    assert main(["run", *words, "--robot", limitless]) == 2
    assert told in capsys.readouterr().err


def test_validate_runs_suitable_scenarios_only(limitless):
    assert main(["validate", "--robot", limitless, "--controller", "pd", "--jobs", "1"]) == 0
    assert {scenario.name for scenario, _ in planned([limitless]).runs} == set(FOREIGN)
    assert {"pose_path", "payload_mismatch"} < {scenario.name for scenario, _ in planned(["irb140"]).runs}


def test_validate_rejects_robot_without_masses(capsys):
    assert main(["validate", "--robot", "rx90"]) == 2
    assert "robot 'rx90' has no dynamics" in capsys.readouterr().err


def test_validate_writes_failed_and_passed_runs_of_foreign_robot(limitless, tmp_path, monkeypatch, capsys):
    """A scenario that trips over the robot with a `ValueError` is a failed run, and the others are told."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        '"""Trips."""\n'
        "from scenarios.base import Config\n"
        "def run(config):\n    raise ValueError('expected finite center, got [nan nan]')\n"
        "def metrics(log): ...\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(registry, "titles", lambda: {"gravity_hold": "", str(mine): ""})
    results, junit = tmp_path / "v.json", tmp_path / "v.xml"
    words = ["validate", "--robot", limitless, "--controller", "pd", "pd_gravity", "--jobs", "1"]
    assert main([*words, "--json", str(results), "--junit", str(junit)]) == 1
    told = " ".join(capsys.readouterr().out.split())  # where lines break depends on the path
    assert "mine, pd (and 1 other run): did not finish: expected finite center" in told
    runs = json.loads(results.read_text(encoding="utf-8"))["runs"]
    assert [run["passes"] for run in runs] == [True] * 2 + [False] * 2
    assert 'failures="2"' in junit.read_text(encoding="utf-8")


def test_tool_fixed_to_the_base_is_rejected(tmp_path, capsys):
    """A payload would hang on the last link, and the tool's pose would be that of the last link."""
    path = tmp_path / "limitless.urdf"
    still = '<link name="tool0"/><joint name="flange" type="fixed"><parent link="{}"/>'
    still += '<child link="tool0"/></joint>'
    path.write_text(LIMITLESS.replace("</robot>", still.format("base") + "</robot>"), encoding="utf-8")
    sentence = "no joint moves link 'tool0', so no tool"
    with pytest.raises(RobotError, match=sentence):
        twin.load(path)
    assert main(["check-model", str(path)]) == 1
    assert f"error: {sentence}" in capsys.readouterr().out.replace("\n", " ")
    path.write_text(LIMITLESS.replace("</robot>", still.format("arm") + "</robot>"), encoding="utf-8")
    assert twin.load(path).tree.flange_joint == 0
