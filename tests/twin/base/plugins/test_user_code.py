"""User code: laws, scenarios and robots of packages, dependencies of a sweep, names that hide others."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import controllers
import twin
from controllers.plugin_controllers import GROUP
from scenarios.running import registry
from scenarios.shell.command_line import main
from tests.support.installed_packages import installed
from tests.support.sweep_experiments import Swing, points
from tests.support.urdf_files import FILES
from twin.base import plugins, sibling_packages
from twin.base.errors import PluginError, TwinError, UnknownNameError
from twin.base.sibling_packages import hidden
from twin.physics.trajectories.sampling import Reference, State
from twin.studies.sweeps import trial as dependencies
from twin.studies.sweeps.running import run_points
from twin.studies.sweeps.trial import MOST_NAMED, differences

pytestmark = pytest.mark.slow("loads a user's files in processes")

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
    (path,) = tmp_path.glob("a*.npz")
    assert np.all(np.isfinite(twin.Log.load(path).tau))


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


MAIN = "from scenarios.shell.process import main; exit(main())"


def test_a_package_that_is_hidden_is_named(tmp_path):
    assert [hidden(name) for name in ("urdf", "controllers", "scenarios")] == ["", "", ""]
    for code, name, status, told in (
        ("import urdf, twin", "urdf", 1, "ImportError: {}; or import twin before it"),
        (MAIN, "controllers", 2, "irb-twin: {}"),
    ):
        run = started(tmp_path, code, name)
        assert (run.returncode, run.stdout) == (status, "")
        where = f"the package {name} of irb-twin is hidden by {tmp_path / name}"
        said = told.format(f"{where}: rename that, or remove it from Python's path")
        assert run.stderr.splitlines()[-1] == said


ONES = Reference(np.ones(6), np.zeros(6), np.zeros(6))
REST = State(0.25, np.zeros(6), np.zeros(6))
SCENARIO = '''
from scenarios.gravity_hold import GravityHold
from scenarios.judging.tracking import error_metrics

def limp(state, reference):
    """No torque at all."""
    return 0.0 * state.q

class Slack(GravityHold):
    """A hold under a law of its own."""

    side_by_side = (f"{__file__}:limp", "pd")
    variants = ({"controller": f"{__file__}:limp", "duration": 0.02},)

    def metrics(self, run):
        return error_metrics(run)
'''


def test_packages_announce_laws(tmp_path, irb140, capfd):
    announced = {"gentle": "gentle_laws:Gentle", "broken": "gentle_laws:Nix"}
    announced |= {"gone": "not_there:X", "pd": "x:Y"}
    law = "import numpy as np\ndef Gentle(state, reference):\n    'Does nothing.'\n    return np.zeros(6)\n"
    with installed(tmp_path, {"gentle_laws.py": law}, {GROUP: announced}):
        assert controllers.plugin_names() == ("broken", "gentle", "gone")
        assert controllers.make("gentle", irb140)(REST, ONES).tolist() == [0.0] * 6
        assert type(controllers.make("pd", irb140)).__name__ == "PD"
        told = "'broken' of package my-things: there is no 'Nix' in it; it defines Gentle"
        with pytest.raises(PluginError, match=f"cannot load controller {told}"):
            controllers.make("broken", irb140)
        with pytest.raises(PluginError, match="'gone' of package my-things: ModuleNotFoundError"):
            controllers.make("gone", irb140)
        words = ["run", "gravity_hold", "--duration", "0.01", "--controller"]
        assert main([*words, "gentle", "gone", "pd"]) == 1
        assert "cannot load controller 'gone' of package my-things" in " ".join(
            capfd.readouterr().out.split()
        )
        second = tmp_path / "second"
        second.mkdir()
        with installed(second, {}, {GROUP: {"gentle": "a:B"}}, name="others"):
            both = "'gentle' of packages (others and my-things|my-things and others): uninstall all of them"
            with pytest.raises(PluginError, match=both):
                controllers.make("gentle", irb140)
    with pytest.raises(UnknownNameError):
        controllers.require_known("gentle")


def test_packages_announce_scenarios(tmp_path, capfd):
    announced = {"slack": "slack_scenario", "broken": "not_there", "pose_path": "slack_scenario"}
    failed = "cannot load scenario 'broken' of package my-things"
    with installed(tmp_path, {"slack_scenario.py": SCENARIO}, {"irb_twin.scenarios": announced}):
        known = registry.known_names()
        assert known[: len(registry.BUILT_IN)] == registry.BUILT_IN
        assert registry.titles(known[len(registry.BUILT_IN) :]) == {
            "broken": f"{failed}: ModuleNotFoundError: No module named 'not_there'",
            "slack": "A hold under a law of its own.",
        }
        assert main(["run", "slack", "broken"]) == 1
        told = " ".join(capfd.readouterr().out.split())
        assert "slack: A hold under a law of its own." in told
        assert "limp pd" in told
        assert failed in told
        assert registry.find("pose_path").file.endswith("scenarios/pose_path.py")
        assert main(["run", "slick"]) == 2
        told = capfd.readouterr().err
        assert "known are collision, constrained_circle, drive_check" in told
        assert "pose_path, broken, pose_path, slack" not in told


OURS = FILES["irb140"]


@pytest.fixture
def package(tmp_path):
    """Folder of a package that announces arms, sound and unsound."""
    urdf = OURS.path.read_text(encoding="utf-8")
    files = {
        "palletizer/robot.toml": OURS.toml.read_text(encoding="utf-8"),
        "table/dh.toml": Path(twin.load("two_link").file).read_text(encoding="utf-8"),
        "broken/__init__.py": "1 / 0",
        **{f"{name}/__init__.py": "" for name in (".", "palletizer", "table", "foreign", "two")},
        **dict.fromkeys(("palletizer/irb140.urdf", "foreign/arm.urdf", "two/a.urdf", "two/b.urdf"), urdf),
    }
    sound = ("palletizer", "table", "foreign")
    entries = {name: f"my_arms.{name}" for name in (*sound, "broken", "two", "gone")}
    entries |= {"empty": "my_arms", "irb140": "my_arms.broken"}
    modules = {f"my_arms/{file}": text for file, text in files.items()}
    with installed(tmp_path, modules, {"irb_twin.robots": entries}, name="my-arms"):
        yield tmp_path / "my_arms"
    for module in [name for name in sys.modules if name.startswith("my_arms")]:
        del sys.modules[module]


def test_they_are_loaded_by_name_unless_it_is_one_of_ours(package):
    assert {"palletizer", "table", "foreign"} <= set(twin.plugins.plugin_robots())
    assert twin.load("palletizer").file == package / "palletizer" / "robot.toml"
    assert twin.load("table").name == "two_link"
    assert twin.load("foreign").urdf == package / "foreign" / "arm.urdf"
    assert twin.load("irb140").file == OURS.toml
    assert "palletizer" not in twin.robot_names()
    with pytest.raises(UnknownNameError, match="palletizer"):
        twin.load("palletiser")


def test_failing_package_is_reported_and_does_not_affect_others(package, capsys):
    for name, told in (
        ("broken", "cannot load robot 'broken' of package my-arms: ZeroDivisionError: division by zero"),
        ("gone", "cannot load robot 'gone' of package my-arms: ModuleNotFoundError"),
        ("empty", "expected 'my_arms' to be a package with a robot.toml, a dh.toml or one .urdf"),
        ("two", "expected 'my_arms.two' to be a package with a robot.toml, a dh.toml or one .urdf"),
    ):
        with pytest.raises(PluginError, match=told.replace(".", r"\.")):
            twin.load(name)
        assert main(["run", "gravity_hold", "--robot", name]) == 1
        assert f"cannot load robot '{name}'" in " ".join(capsys.readouterr().out.split())
        assert twin.load("palletizer").n == 6


def test_they_are_listed_and_run(package, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[:1].strip()][:3] == ["ABB", "laboratory", "installed"]
    told = {line.split()[0]: line for line in (line.removeprefix("installed") for line in lines)}
    assert "ABB IRB 140" in told["palletizer"]
    assert "arm.urdf" in told["foreign"]
    assert "cannot load robot 'broken'" in told["broken"]
    assert sum("irb140 " in line for line in lines) == 1
    run = "run gravity_hold --robot palletizer --controller pd_gravity --duration 0.1"
    assert main(run.split()) == 0
    assert "palletizer" in capsys.readouterr().out
