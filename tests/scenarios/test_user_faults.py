"""Faults in the code of a user fail their run alone, with one sentence."""

import contextlib
import io
import json
import re

import pytest

from scenarios import TrackingScenario, option
from scenarios.running import registry
from scenarios.shell.command_line import main
from tests.support import user_scenarios
from twin.base.errors import PluginError, WrongUse

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


def test_user_code_that_exits_fails_its_run_only(tmp_path):
    leaving = {
        f"{place}_{number}": (parts, statement)
        for number, statement in enumerate(WAYS_OUT)
        for place, parts in places(statement).items()
    }
    printed, errors = run_all(tmp_path, {name: parts for name, (parts, _) in leaving.items()})
    for name, (_, statement) in leaving.items():
        assert f"{name}.py" in errors[name]
        assert statement.split("'")[1] in errors[name] if "type(" in statement else True
        assert "\n" not in errors[name]
    assert printed.count("computed_torque: did not finish: ") == len(leaving)
    assert f"{len(leaving) + 1} runs, 6 checks" in printed
    assert printed.count("Peak torque") == 1 + len(WAYS_OUT)  # the good one, and those left after the run


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
    "raises": (run("raise KeyError('torque')"), r"\.py, line 14: KeyError: 'torque'"),
    "nothing": (run("return None"), "run must return a Log or a TrackingRun, got None"),
    "odd log": (
        run("import dataclasses as d", "log = super().run(setup).log", "return d.replace(log, q=log.q[:3])"),
        r"expected q to be float64 of shape \(11, 6\), got float64 of shape \(3, 6\)",
    ),
    "no motion": ({"motion": ""}, r"NotImplementedError: Own defines no motion\(self, robot\)"),
    "no run": ({"base": "Scenario"}, r"NotImplementedError: Own defines no run\(self, setup\)"),
    "odd motion": ({"motion": "def motion(self, robot):\n    return 3\n"}, "TypeError|AttributeError"),
    "lost motion": ({"motion": "def motion(self, robot):\n    robot\n"}, "Own.motion returned None"),
    "lost setup": (setting("def adapted(self, setup, robot): pass"), "Own.adapted returned None: a return"),
    "lost arms": (setting("def arms(self, robot, payload): pass"), "Own.arms returned None: a return is"),
    "generator": (metrics("yield 3"), "must return a tuple or list, got <generator"),
    "endless": ({"head": "def fail():\n    return fail()\n\nfail()\n"}, "RecursionError"),
    "no metrics": (metrics("return 3"), "must return a tuple or list, got 3"),
    "odd metrics": (metrics("return [3]"), "must return a Metric, got 3"),
    "text": (metric("'m'", "'fast'", "''", "None", "''"), "value of 'm' to be one real number, got 'fast'"),
    "odd limit": (metric("'m'", "1.0", "''", "'2'", "''"), "limit of 'm' to be one real number, got '2'"),
    "no name": (metric("7", "1.0", "''", "None", "''"), "expected name of 7 to be text, got 7"),
    "same name": (metrics("return 2 * [Metric('m', 1.0, '', None, '')]"), "more than one Metric named 'm'"),
    # of the class
    "no docstring": ({"doc": ""}, "Own has no docstring, whose first line is its title"),
    "two classes": (TWO, r"expected one class that inherits .*Scenario, got Own, Other"),
    "no class": ('"""No scenario."""\n', "expected one class that inherits .*, got none; see docs/guides"),
    "setting": (setting("robot = 'irb1600'"), r"Own\.robot: robot is .* write defaults = \{'robot': "),
    "setting as option": (setting("bandwidth: float = option(9.0, 'in rad/s')"), "choose another name"),
    "no type": (setting("angle = option(0.5, 'in rad')"), r"write angle: float = option\(\.\.\.\)"),
    "no option": (setting("angle: float = 0.5"), r"Own\.angle: .* write angle: float = option\(0\.5, 'what"),
    "default of another class": (
        {"head": "from scenarios.joint_tracking import JointTracking\n", "base": "JointTracking"}
        | setting("duration = 0.1"),
        r"Own\.duration: .* write duration: float = option\(0\.1, 'length of the motion, in s'\)",
    ),
    "name": (setting("json: bool = option(False, 'x')"), "Own.json: json is a name that scenarios use"),
    "name of a hook": (setting("loads: float = option(1.0, 'x')"), "Own.loads: loads is a name that scena"),
    "default switch": (setting("speed: float = option(True, 'x')"), "the default True, which is not float"),
    "annotation": (setting("speed: list = option((), 'x')"), "Own.speed is annotated list: the type of an "),
    "no annotation": (setting("speed: 'Speed' = option(1.0, 'x')"), "cannot be evaluated: name 'Speed'"),
    "help": (setting("speed: float = option(1.0, 7)"), "has the help 7, which is not text"),
    "choices": (setting("word: str = option('a', 'x', choices=(1, 2))"), "which are not a tuple of texts"),
    "variants": (setting("variants = 3"), "Own.variants must be a tuple, got 3"),
    "key of limits": (setting("limits = {'joint_eror': 1}"), "no 'joint_eror': known are joint_error"),
    "limits": (setting("limits = 0.1"), r"Own\.limits must be a dictionary, got 0\.1"),
    "needs": (setting("needs = ('tools',)"), "Own.needs: there is no 'tools': known are tool, payload, seed"),
    "leaves limits": (setting("leaves_limits = True"), "Own.leaves_limits must be a sentence, got True"),
}  # fmt: skip


def test_fault_of_user_file_is_one_sentence_of_its_run(tmp_path):
    _, errors = run_all(tmp_path, {fault.replace(" ", "_"): parts for fault, (parts, _) in FAULTS.items()})
    for fault, (_, told) in FAULTS.items():
        assert re.search(told, errors[fault.replace(" ", "_")]), (fault, errors[fault.replace(" ", "_")])
    assert "\n" not in "".join(errors.values())


OLD = """
from scenarios import base

class Config(base.Config):
    pass
"""


def test_module_of_version_0_2_is_refused_with_the_page_of_the_new_form(tmp_path):
    for text in (
        OLD,
        "from scenarios.base import Metric, option",
        "import scenarios.base",
        "class Config: ...",
    ):
        file = user_scenarios.write_text(tmp_path / "nod.py", text)
        with pytest.raises(WrongUse, match=r"version 0\.2.*docs/guides/own_scenario\.md$"):
            registry.find(file)
    with pytest.raises(PluginError, match="basement"):  # another import that fails
        registry.find(user_scenarios.write_text(tmp_path / "nod.py", "from scenarios import basement"))
    with pytest.raises(PluginError, match=r"Nod\.side.*choices=\('left', 'right'\)"):

        class Nod(TrackingScenario):
            """Nod."""

            side: str = option("left", "where the arm starts", ("left", "right"))


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
