"""The product without the packages of the extra `abb`: everything else imports and runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.running import registry
from twin.abb.rapid.values import SUFFIXES

ROOT = Path(__file__).parents[1]
WITHOUT_EXTRA = """
import contextlib, importlib, io, json, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("lark", "google", "websockets"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
imported = 0
for package in ("urdf", "twin", "controllers", "scenarios"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.",
                                        onerror=lambda name: None):
        if not module.name.startswith(("twin.abb", "scenarios.abb", "scenarios.templates")) and \\
                not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            imported += 1
from scenarios.running.registry import titles
from scenarios.shell.command_line import main
found = {"imported": imported, "titles": titles()}
for line in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = main(line.split())
    found[line] = status, said.getvalue()
assert not [name for name in sys.modules if name.startswith("twin.abb.")]
print(json.dumps(found))
"""
RUNS = (
    "list", "rapid --help", "run joint_tracking --controller computed_torque --duration 0.1",
    "run gravity_hold --controller pd --duration 0.1",
)  # fmt: skip
NEEDING = (
    "rapid check pick.mod", "rapid export run.npz", "run pick.mod", "egm serve --duration 0.1",
    "egm record run.npz", "abb serve --load T_ROB1=pick.mod --duration 0.1",
)  # fmt: skip


@pytest.mark.slow("imports everything in a new process")
def test_without_the_extra_all_else_works_and_abb_s_commands_name_it(tmp_path):
    """It takes some 8 s of processor time."""
    (tmp_path / "pick.mod").write_text("MODULE m\nPROC main()\nENDPROC\nENDMODULE\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA, *RUNS, *NEEDING],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["imported"] > 200
    assert set(found["titles"]) == set(registry.BUILT_IN)
    assert "cannot be run" not in found["titles"].values()
    for line in RUNS:
        assert found[line][0] == 0, found[line][1]
    for line in NEEDING:
        status, said = found[line]
        assert (status, len(said.strip().splitlines())) == (2, 1), said
        assert "need more packages, lark is missing: pip install 'irb-twin[abb]'" in said


def test_the_registry_knows_the_suffixes_of_modules():
    assert registry.SUFFIXES == SUFFIXES
