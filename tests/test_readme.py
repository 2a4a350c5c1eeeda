"""What the README shows works as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import controllers

README = Path(__file__).parents[1] / "README.md"
SCRIPT, SCENARIO = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)


def run(*words, cwd):
    environment = os.environ | {"PYTHONPATH": str(README.parent)}
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_script(tmp_path):
    assert len([line for line in SCRIPT.splitlines() if line]) == 8
    printed = run("-c", SCRIPT, cwd=tmp_path)
    error = re.search(r"1\.000 s, largest joint error (\S+) rad", printed)
    assert error is not None, printed
    assert float(error[1]) <= 1e-10


def test_the_scenario(tmp_path):
    (tmp_path / "nod.py").write_text(SCENARIO, encoding="utf-8")
    command = "from scenarios.commands.command_line import main; import sys; sys.exit(main())"
    words = ("run", "./nod.py", "--controller", *controllers.NAMES, "--picture", "nod.png")
    printed = run("-c", command, *words, cwd=tmp_path)
    assert "The arm nods" in printed
    assert (tmp_path / "nod.png").stat().st_size > 10_000


def test_every_command_of_make_exists():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", README.read_text(encoding="utf-8"), flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target
