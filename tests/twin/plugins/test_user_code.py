"""User code: dependencies of a sweep, names that hide others, and controllers that end the process."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from scenarios.cli.command_line import main
from tests.support.sweep_experiments import Swing, points
from twin import plugins, sibling_packages
from twin.errors import PluginError, TwinError
from twin.sibling_packages import hidden
from twin.sweeps import trial as dependencies
from twin.sweeps.running import run_points
from twin.sweeps.trial import MOST_NAMED, differences

LAW = """
import numpy as np
from {helper} import GAIN


def law(state, reference):
    {body}
    return GAIN * (reference.q - state.q)
"""
SHORT = ["joint_tracking", "--duration", "0.1"]


@pytest.fixture
def light_path(monkeypatch, tmp_path):
    """Remove the modules that a test loads, and the folders of its files from the path."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def write_law(folder, helper="consts", body="pass"):
    folder.mkdir(exist_ok=True)
    (folder / "law.py").write_text(LAW.format(helper=helper, body=body))
    (folder / f"{helper}.py").write_text("GAIN = 30.0\n")
    return folder / "law.py"


def refused(keep, few):
    """Return the message of a resumed sweep."""
    with pytest.raises(TwinError) as caught:
        run_points(Swing(), few, keep=keep, resume=True)
    return str(caught.value)


def test_sweep_resumes_only_with_the_same_code_robot_and_versions(tmp_path, monkeypatch, light_path):
    law = write_law(tmp_path / "mine", "numbers_of_mine", "from late_of_mine import LATE")
    late, helper = law.with_name("late_of_mine.py"), law.with_name("numbers_of_mine.py")
    late.write_text("LATE = 1\n")
    controllers.settings(f"{law}:law")
    kept = plugins.user_files()
    assert {law, late, helper} <= set(kept)
    monkeypatch.setattr(dependencies, "user_files", lambda: [late, law, helper])
    keep, few = tmp_path / "kept", points(4)
    whole = run_points(Swing(), few, keep=keep)
    for file in (law, late, helper):
        text = file.read_text()
        file.write_text(f"{text}#\n")
        assert f"(different: code mine/{file.name})" in refused(keep, few)
        file.write_text(text)
    surroundings = dependencies.surroundings() | {"controllers/gains.py": "9.9"}
    with monkeypatch.context() as patch:
        patch.setattr(dependencies, "surroundings", lambda: surroundings)
        assert "different: controllers/gains.py" in refused(keep, few)
    trial = Swing.trial

    def heavier(self, values):
        made = trial(self, values)
        tree = replace(made.plant.tree, inertias=made.plant.tree.inertias * 1.01)
        return made._replace(plant=replace(made.plant, tree=tree))

    with monkeypatch.context() as patch:
        patch.setattr(Swing, "trial", heavier)
        assert "different: robot irb140)" in refused(keep, few)
    flipped = keep / "chunk-000001.npy"
    content = bytearray(flipped.read_bytes())
    content[-60] ^= 1
    flipped.write_bytes(content)
    shutil.copy(keep / "chunk-000003.npy", keep / "chunk-000002.npy")
    assert run_points(Swing(), few, keep=keep, resume=True).tobytes() == whole.tobytes()


def test_what_differs_is_named_in_short():
    before, after = ({"a": 1, "version of x": version} for version in "12")
    assert differences(before, after) == "version of x (was 1, is 2)"
    many = {str(k): k for k in range(MOST_NAMED + 2)}
    assert differences(many, {}) == "0, 1, 2, 3, 4 and 2 more"
    assert differences(many, dict(many)) == ""


def test_helpers_of_one_name_in_two_folders_are_refused(tmp_path, capsys, light_path):
    laws = [write_law(tmp_path / folder) for folder in "AB"]
    words = ["--controller", *(f"{law}:law" for law in laws)]
    for command in (["run", *SHORT], ["validate", *SHORT, "--jobs", "2"]):
        assert main([*command, *words]) == 2
        said = capsys.readouterr().err
        assert all(str(tmp_path / folder / "consts.py") in said for folder in "AB")
    robot = twin.load("irb140")
    controllers.make(f"{laws[0]}:law", robot)
    with pytest.raises(PluginError, match=r"B/law.py imports .*B/consts.py, but .*A/consts.py has the same"):
        controllers.make(f"{laws[1]}:law", robot)
    laws[1].with_name("consts.py").unlink()
    laws[1].write_text("import json\n\n\ndef law(state, reference):\n    return reference.q\n")
    laws[1].with_name("json.py").touch()  # it hides nothing that is installed
    controllers.make(f"{laws[1]}:law", robot)


def test_a_law_that_ends_the_process_is_a_failed_run(tmp_path, monkeypatch, capsys, light_path):
    """The other run of the command is judged, and its log comes back."""
    (tmp_path / "fatal.py").write_text("import os\n\n\ndef law(state, reference):\n    os._exit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "_exit", lambda status: pytest.fail(f"this process was to end with {status}"))
    laws = ["./fatal.py:law", f"{write_law(tmp_path / 'mine')}:law"]
    assert main(["run", *SHORT, "--controller", *laws, "--log", "a.npz", "--json", "a.json"]) == 1
    assert "the process that ran it ended with status 0" in " ".join(capsys.readouterr().out.split())
    fatal, sound = json.loads((tmp_path / "a.json").read_text())["runs"]
    assert "status 0" in fatal["error"]
    assert sound["error"] is None
    assert len(sound["metrics"]) > 2
    (path,) = tmp_path.glob("a*.npz")
    log = twin.Log.load(path)
    assert len(log.t) > 50
    assert np.all(np.isfinite(log.tau))


def started(folder, code, name):
    """Run code in a process that finds a package of this name in the folder; return the process."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("")
    path = os.pathsep.join([str(folder), str(sibling_packages.PROJECT)])
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_robots_are_found_beside_the_package(tmp_path):
    code = "import twin; print(twin.load('irb140').n); from urdf.build import HERE; print(HERE.parent)"
    run = started(tmp_path, code, "urdf")
    assert run.stdout.split() == ["6", str(sibling_packages.PROJECT)], run.stderr


MAIN = "from scenarios.cli.process import main; exit(main())"


def test_a_package_that_is_hidden_is_named(tmp_path):
    for code, name, status, told in (
        ("import urdf, twin", "urdf", 1, "ImportError: {}; or import twin before it"),
        (MAIN, "controllers", 2, "irb-twin: {}"),
    ):
        run = started(tmp_path, code, name)
        assert (run.returncode, run.stdout) == (status, "")
        where = f"the package {name} of irb-twin is hidden by {tmp_path / name}"
        said = told.format(f"{where}: rename that, or remove it from Python's path")
        assert run.stderr.splitlines()[-1] == said


def test_nothing_is_hidden_here_but_by_a_module(tmp_path, monkeypatch):
    assert [hidden(name) for name in ("urdf", "controllers", "scenarios")] == ["", "", ""]
    (tmp_path / "controllers.py").write_text("")
    monkeypatch.delitem(sys.modules, "controllers", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert f"is hidden by {tmp_path / 'controllers.py'}: rename" in hidden("controllers")
