"""The guides about robots of one's own work as they stand there, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[1] / "docs" / "guides"
SAVED = r"Save this as `(?P<name>[^`]+)`:\n\n```\w+\n(?P<text>.*?)```"
PYTHON = r"```python\n(?P<code>.*?)```"
CONSOLE = r"```console\n(?P<lines>.*?)```"
COMMAND = "from scenarios.commands.command_line import main; import sys; sys.exit(main())"


@pytest.mark.parametrize("guide", ["robot_toml", "own_robot"])
def test_the_guide(guide, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(GUIDES.parents[1])}

    def run(*words):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout} {done.stderr}"

    text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
    steps = list(re.finditer(f"{SAVED}|{PYTHON}|{CONSOLE}", text, flags=re.S))
    assert len(steps) >= 4
    for step in steps:
        if step["name"]:
            (tmp_path / step["name"]).parent.mkdir(exist_ok=True)
            (tmp_path / step["name"]).write_text(step["text"], encoding="utf-8")
        elif step["code"]:
            run("-c", step["code"])
        for line in (step["lines"] or "").splitlines():
            first, *words = line.split()
            assert first in ("irb-twin", "python"), line
            if words[0] != "validate":  # it takes a minute and more; run by hand for what the guide says
                run(*(["-c", COMMAND] if first == "irb-twin" else []), *words)


def test_every_key_of_a_robot_toml_is_explained():
    from urdf.facts import TABLES

    text = (GUIDES / "robot_toml.md").read_text(encoding="utf-8")
    for pattern, keys in TABLES.items():
        group = pattern.rstrip("?").partition(".")[0]
        assert not group or f"`[{group}" in text, group
        for key in keys:
            assert key == "*" or f"`{key.rstrip('?')}`" in text, key
