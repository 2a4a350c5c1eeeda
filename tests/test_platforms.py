"""Systems other than Linux, and Python without PyBullet: what imports, what works, what says why not."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

import twin
from scenarios.shell.command_line import main
from tests.support.doc_pages import blocks
from tests.support.egm_serving import Guiding, serve
from twin.abb.egm import EgmClient
from twin.base import version as versions
from twin.base.errors import TwinError
from twin.data.logs.log import Log
from twin.physics.engine import client as engine

pytestmark = pytest.mark.slow("imports everything in new processes")

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PACKAGES = "pip install pybullet"

IMPORT_EVERYTHING = """
import importlib, os, pkgutil, select, signal, socket, sys
import numba, numpy, scipy.linalg, scipy.optimize, scipy.signal, scipy.spatial, scipy.stats, sympy
import asyncio, concurrent.futures, matplotlib.pyplot, plotly.offline, rich.progress
import multiprocessing.connection
import trimesh, urchin, viser, google.protobuf.descriptor_pool, jinja2, junitparser, lark, platformdirs
import PIL.Image, scipy.interpolate, scipy.integrate, scipy.ndimage

hidden = ("fcntl", "grp", "posix", "pwd", "pty", "resource", "syslog", "termios", "tty", "readline")
sys.modules.update(dict.fromkeys((*hidden, "pybullet", "pybullet_utils", "coal", "pandas"), None))
lacking = {
    os: ("fork", "forkpty", "getpgrp", "geteuid", "getuid", "kill" + "pg", "setsid", "getsid", "set_blocking",
         "register_at_fork", "sched_getaffinity", "wait3", "wait4", "WNOHANG", "waitid", "mkfifo", "nice"),
    signal: ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGCHLD", "setitimer", "alarm", "pause"),
    select: ("poll", "epoll"),
    socket: ("AF_UNIX", "send_fds", "recv_fds", "MSG_WAITALL"),
}
for module, names in lacking.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.platform = sys.argv[1]
found = 0
for package in ("urdf", "twin", "controllers", "scenarios"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if ".templates." not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            found += 1
print(found)
"""


def python(program, *words, **environment):
    """Run a program in a new process; return what it prints."""
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_module_imports_without_pybullet_and_what_only_posix_has():
    assert int(python(IMPORT_EVERYTHING, "win32")) > 250


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
@pytest.mark.parametrize(
    ("system", "machine"),
    [
        ("linux", "x86_64"),
        ("linux", "aarch64"),
        ("darwin", "arm64"),
        ("darwin", "x86_64"),
        ("win32", "AMD64"),
    ],
)
def test_one_package_of_the_engine_is_installed_and_named(system, machine, version, monkeypatch):
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    here = default_environment() | {
        "sys_platform": system, "platform_machine": machine, "python_version": version
    }  # fmt: skip
    chosen = [
        one.name
        for one in map(Requirement, asked)
        if one.name.startswith("pybullet") and one.marker is not None and one.marker.evaluate(here)
    ]
    monkeypatch.setattr(versions.sys, "platform", system)
    monkeypatch.setattr(versions.sys, "version_info", tuple(map(int, version.split("."))))
    monkeypatch.setattr(versions.platform, "machine", lambda: machine)
    package = versions.engine_package()
    monkeypatch.undo()
    assert chosen == [package]


COMMANDS = """
import json, sys
sys.modules["pybullet"] = None
import controllers, twin
from scenarios.shell.command_line import main
arm = twin.load("two_link")
there = twin.quintic([0.0, 0.0], [1.0, -1.0], duration=1.0)
back = twin.quintic([1.0, -1.0], [0.5, 1.0], duration=1.0)
move = twin.sample_semi_implicit(twin.sequence(there, back), 1e-3)
twin.run_closed_loop(twin.AnalyticPlant(arm), controllers.make("pd", arm), move).save("run.npz")
status = [main(line.split()) for line in sys.argv[1:]]
print(json.dumps(status))
"""
PROGRAM = """MODULE pick
PROC main()
  MoveAbsJ [[20,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]],v500,fine,tool0;
ENDPROC
ENDMODULE
"""
WORKING = (
    "list", "formulas two_link", "friction irb140", "rapid check pick.mod", "plot run.npz --picture run.png",
    "mass link.stl --unit m --mass 3", "export run.npz --csv run.csv",
    "export-model two_link --urdf arm.urdf", "identify run.npz --robot two_link",
)  # fmt: skip


def test_what_needs_no_engine_works_without_pybullet(tmp_path):
    import trimesh

    (tmp_path / "pick.mod").write_text(PROGRAM, encoding="utf-8")
    trimesh.creation.box((0.1, 0.2, 0.3)).export(tmp_path / "link.stl")
    program = f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); os.chdir({str(tmp_path)!r})\n{COMMANDS}"
    assert json.loads(python(program, *WORKING).splitlines()[-1]) == [0] * len(WORKING)


def test_sums_name_the_extra_that_brings_sympy(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("twin.physics.dynamics.symbolic")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert main(["formulas", "two_link", "--format", "c"]) == 0
    assert main(["formulas", "two_link"]) == 2
    assert "pip install 'irb-twin[formulas]'" in capsys.readouterr().err


@pytest.fixture
def _absent(monkeypatch):
    monkeypatch.setattr(engine, "pybullet", None)
    monkeypatch.setattr(engine, "_fault", "No module named 'pybullet'", raising=False)


LAW = "import numpy as np\nclass Law:\n    name = 'law'\n    def __init__(self, robot): pass\n"
SWEEP = "joint_tracking --controller pd --vary payload=0:6 --samples 5 --duration 0.2"


@pytest.mark.usefixtures("_absent")
@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("run gravity_hold --controller pd pid", ""), ("validate ./pick.mod --controller pd", ""),
        (f"sweep {SWEEP}", "--worst 0"), ("run pick.mod", ""), ("learn joint_tracking", ""), ("gui", ""),
        ("sweep joint_tracking --controller ./law.py:Law --worst 0 --vary payload=0:6", "twin.ControlLaw"),
        (f"tune pd {SWEEP.replace('--controller pd', '')}", "--worst 0"),
        ("replay run.npz", ""), ("replay run.npz --film run.gif", ""), ("egm serve --gui --duration 1", ""),
    ],
)  # fmt: skip
def test_what_needs_the_engine_names_its_package(line, hint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pick.mod").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "law.py").write_text(
        f"{LAW}    def __call__(self, state, reference): return np.zeros(6)\n", encoding="utf-8"
    )
    arm = twin.load("irb140")
    move = twin.sample_semi_implicit(twin.quintic([0.0] * 6, [0.1] * 6, duration=0.1), 1e-3)
    twin.run_closed_loop(twin.AnalyticPlant(arm), lambda *_: [0.0] * 6, move).save("run.npz")
    assert main(line.split()) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"the physics engine PyBullet (No module named 'pybullet'): {PACKAGES}" in said
    assert hint in said


@pytest.mark.usefixtures("_absent")
def test_a_cell_lets_the_model_take_the_engine_s_place_in_notebooks(monkeypatch):
    guide = (ROOT / "docs" / "guides" / "notebooks.md").read_text(encoding="utf-8")
    (cell,) = (block.text for block in blocks(guide) if "nullcontext" in block.text)
    monkeypatch.setattr(twin, "Simulation", twin.Simulation)
    with pytest.raises(TwinError, match="PyBullet"), twin.Simulation(twin.load("two_link")):
        pass
    exec(cell, {})
    with twin.Simulation(twin.load("two_link"), time_step=2e-3) as arm:
        arm.reset([0.1, 0.2], [1.0, 0.0])
        arm.step([0.0, 0.0])
        assert arm.state()[0][0] != 0.1


def test_packages_of_an_installation_without_pybullet_are_all_others():
    guide = (ROOT / "docs" / "guides" / "install.md").read_text(encoding="utf-8")
    (lines,) = (block.text for block in blocks(guide) if "--no-deps" in block.text)
    named = shlex.split(lines.partition("pip install --no-deps")[0].replace("\\\n", ""))[2:]
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    others = {one.name for one in map(Requirement, asked) if not one.name.startswith("pybullet")}
    assert {Requirement(one).name for one in named} == others


def test_the_extra_of_notebooks_brings_what_lessons_import():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lessons = ROOT.glob("scenarios/templates/tutorials/*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in lessons)
    uses = {"abb": "twin.rapid" in text, "formulas": "tree_dynamics" in text}
    (others,) = (
        Requirement(one).extras
        for one in extras["optional-dependencies"]["notebooks"]
        if one.startswith("irb-twin")
    )
    assert others == {name for name, used in uses.items() if used}


@pytest.mark.usefixtures("_absent")
def test_rollouts_need_no_engine(capsys):
    assert main(f"sweep {SWEEP} --worst 0".split()) == 0
    line = f"tune pd {SWEEP.replace('--controller pd', '')} --gains Kp --worst 0 --evaluations 5 --fresh 5"
    assert main(line.split()) == 0


@pytest.mark.usefixtures("_absent")
def test_egm_is_served_on_the_analytic_model(tmp_path, capsys):
    log, file = tmp_path / "a.npz", tmp_path / "a.json"
    with EgmClient(port=0) as client, Guiding(client, 4.0):
        assert serve(client, "--lockstep", "--runs", 1, "--pause", 0, "--log", log, "--json", file) == 0
    printed = capsys.readouterr().out
    assert "PyBullet is not installed: the analytic model is the arm" in printed.splitlines()[0]
    assert "analytic model: PyBullet is not installed" in printed
    settings = json.loads(file.read_text())["robots"][0]["settings"]
    made = Log.load(log)
    assert settings["plant"] == json.loads(str(made.arrays["settings"]))["plant"] == "analytic model"
    assert abs(made.q[-1] - made.q[0] - 0.0698).max() < 0.01
