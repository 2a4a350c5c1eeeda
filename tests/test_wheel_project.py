"""Run the CI guide in a user's project that has the wheel installed."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow("builds and installs the wheel")

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guides" / "continuous_integration.md"
SAVED = re.findall(r"Save this as `([^`]+)`:\n\n```\w+\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


def run_command(*arguments, cwd, **environment):
    """Run a command without this checkout on Python's path; return its exit status and its output."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(
        [*map(str, arguments)], cwd=cwd, env=inherited | environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Folder with the files of the guide, the wheel, and a virtual environment."""
    folder = tmp_path_factory.mktemp("project")
    source = tmp_path_factory.mktemp("source")
    for name in ("urdf", "twin", "controllers", "scenarios"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    status, output = run_command(sys.executable, "-c", BUILD, folder, cwd=source)
    assert status == 0, output
    for name, text in SAVED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    venv.create(folder / ".venv")
    pip = folder / ".venv" / "bin" / "pip"
    pip.write_text('#!/bin/sh\nexec python -m pip "$@"\n', encoding="utf-8")
    pip.chmod(0o755)
    # The new environment finds pip and the wheel's dependencies where this process has them.
    places = [place for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder / ".venv")}))
    (site / "dependencies.pth").write_text("\n".join(places) + "\n", encoding="utf-8")
    return folder


def steps():
    """Return the commands of the workflow."""
    workflow = dict(SAVED)[".github/workflows/validate.yml"]
    assert len(workflow.splitlines()) <= 17
    steps = yaml.safe_load(workflow)["jobs"]["validate"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_workflow_of_the_guide_passes_and_finds_a_broken_controller(project):
    """It takes 8 s of processor time: the wheel is built and installed, and each step is a new process."""
    path = os.pathsep.join([str(project / ".venv" / "bin"), os.environ["PATH"]])
    summary = project / "step_summary"
    install, *rest = steps()
    assert install.startswith("pip install ")
    options = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    status, output = run_command("bash", "-c", install, cwd=project, PATH=path, **options)
    assert status == 0, output
    for command in rest:
        status, output = run_command(
            "bash", "-c", command, cwd=project, PATH=path, GITHUB_STEP_SUMMARY=str(summary)
        )
        assert status == 0, output
    assert summary.read_text(encoding="utf-8").startswith(
        "## irb-twin validate: every check passes, but not all tracking was judged\n"
    )
    assert "commit" not in summary.read_text(encoding="utf-8").splitlines()[-1]  # no Git checkout
    root = ET.parse(project / "results.xml").getroot()
    assert int(root.attrib["tests"]) > 20
    assert root.attrib["failures"] == "0"
    where = run_command("python", "-c", "import twin; print(twin.__file__)", cwd=project, PATH=path)[1]
    assert where.startswith(str(project / ".venv")), where
    status, output = run_command("irb-twin", "new", "notebooks", "lessons", cwd=project, PATH=path)
    assert status == 0, output
    pages = {page.stem for page in ROOT.glob("scenarios/templates/tutorials/*.md")}
    assert {notebook.stem for notebook in project.glob("lessons/*.ipynb")} == pages

    law = project / "law.py"
    law.write_text(law.read_text().replace("+ self.gain", "- 9 * self.gain"), encoding="utf-8")
    status, output = run_command("bash", "-c", rest[0], cwd=project, PATH=path)
    assert status == 1, output
    assert "irb140, reach, ./law.py:SlidingMode: error at the gripper is" in " ".join(output.split())
