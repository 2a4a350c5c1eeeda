"""Provenance of a result: version and commit of this project, and versions of its libraries.

The provenance contains no date and no time, so that two results of the same code on the same machine are
identical files.
"""

from __future__ import annotations

import json
import math
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import twin
from scenarios.running.runs import settings_of
from twin.base.version import library_versions

if TYPE_CHECKING:
    from scenarios.running.runs import Run
    from twin.data.logs.log import Log

ROOT = Path(twin.__file__).parents[1]
GIT_TIMEOUT = 5.0  # s


@cache
def provenance() -> dict[str, str]:
    """Return the versions of everything that figures depend on, by name; in a checkout also the commit."""
    versions = {"irb-twin": twin.__version__}
    if head := commit(ROOT):
        versions["commit"] = head
    versions["python"] = platform.python_version()
    versions |= library_versions()
    versions["platform"] = f"{platform.system()} {platform.machine()}"
    return versions


def commit(folder: Path) -> str:
    """Return the commit of a checkout, followed by `+ changes` if tracked files are modified.

    Return "" if the folder is not a checkout, or git is missing or does not answer in time.
    """
    if not (folder / ".git").exists():  # git would also find an unrelated repository in a parent folder
        return ""
    try:
        head = _git(folder, "rev-parse", "HEAD").strip()
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no").strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + " + changes" * bool(changed)


def _git(folder: Path, *arguments: str) -> str:
    # Without this option, reading the status would write git's index.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT, check=True)
    return done.stdout


def provenance_line() -> str:
    """Return the provenance in one line: `irb-twin 0.1.0, commit 8a50c7b, python 3.11.7, ...`."""
    return ", ".join(f"{name} {value}" for name, value in provenance().items())


def all_settings(run: Run) -> dict[str, object]:
    """Return every setting of a run as JSON values by name, also of its controller and its changes."""
    found = {name: value for name, (value, _) in settings_of(run.task).items()}
    found |= {f"law_settings.{name}": value for name, value in run.setup.law_settings}
    found |= {f"changes.{name}": value for name, value in run.setup.changes}
    return {name: json_value(value) for name, value in found.items()}


def json_value(value: Any) -> object:
    """Return a value as JSON stores it: a number, a bool, a list, None, or else a string.

    Infinity and NaN become strings, because JSON has no numbers for them.
    """
    if isinstance(value, (tuple, list, np.ndarray)):
        return [json_value(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, (bool, int, str, type(None))) else str(value)


def stamped(log: Log, settings: Mapping[str, object]) -> Log:
    """Return a log with two more arrays, `provenance` and `settings`, as JSON texts."""
    texts = {"provenance": json.dumps(provenance()), "settings": json.dumps(settings)}
    return replace(log, arrays={**log.arrays, **{name: np.array(text) for name, text in texts.items()}})


def stamp_picture(runs: list[Run], path: Path) -> None:
    """Write provenance and settings into a PNG, as its texts of these names; do nothing for other formats."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    texts = PngInfo()
    texts.add_itxt("provenance", json.dumps(provenance()))
    texts.add_itxt("settings", json.dumps([described(run) for run in runs]))
    with Image.open(path) as image:
        if image.format == "PNG":
            image.save(path, format="PNG", pnginfo=texts, dpi=image.info.get("dpi"))


def described(run: Run) -> dict[str, object]:
    """Return the scenario and every setting of a run as JSON values."""
    return {"scenario": run.scenario, **all_settings(run)}
