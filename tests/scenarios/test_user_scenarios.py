"""Whatever a scenario of one's own does wrong is a failed run, told in a sentence; the others stand."""

import contextlib
import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import scenarios
from scenarios.base import Metric
from scenarios.shell.command_line import main
from scenarios.running import registry
from tests.support import user_scenarios

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
