"""Folders of a user's that have the names of our packages: `urdf` hides nothing, others are named."""

import os
import subprocess
import sys

from twin import sibling_packages
from twin.sibling_packages import hidden


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
