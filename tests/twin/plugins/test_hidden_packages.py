"""Folders of a user's that have the names of our packages: `urdf` hides nothing, others are named."""

import os
import subprocess
import sys

import pytest

from twin import sibling_packages
from twin.sibling_packages import hidden


def started(folder, code, *names):
    for name in names:
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


def test_a_urdf_that_was_imported_before_is_named(tmp_path):
    run = started(tmp_path, "import urdf, twin", "urdf")
    assert run.stderr.splitlines()[-1] == (
        f"ImportError: the package urdf of irb-twin is hidden by {tmp_path / 'urdf'}: rename that, "
        "or remove it from Python's path; or import twin before it"
    )


def test_controllers_that_are_hidden_are_wrong_use(tmp_path):
    run = started(tmp_path, "from scenarios.cli.process import main; exit(main())", "controllers")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"irb-twin: the package controllers of irb-twin is hidden by {tmp_path / 'controllers'}: rename "
        "that, or remove it from Python's path\n"
    )


@pytest.mark.parametrize("name", ["urdf", "controllers", "scenarios"])
def test_nothing_is_hidden_here(name):
    assert hidden(name) == ""


def test_a_module_hides_too(tmp_path, monkeypatch):
    (tmp_path / "controllers.py").write_text("")
    monkeypatch.delitem(sys.modules, "controllers", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert f"is hidden by {tmp_path / 'controllers.py'}: rename" in hidden("controllers")
