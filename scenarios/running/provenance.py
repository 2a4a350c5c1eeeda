"""What a result was made with: the version and the commit of this project, and of what it computes with.

Nothing that changes from one run to the next is in it, neither a date nor a time, so that two results of the
same code on the same machine are the same files.
"""

from __future__ import annotations

import json
import math
import platform
import subprocess
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import twin
from scenarios.cli.arguments import fields

if TYPE_CHECKING:
    from scenarios.running.runs import Run
    from twin.logs.log import Log

LIBRARIES = ("numpy", "numba", "pybullet")
ROOT = Path(twin.__file__).parents[1]
LONGEST_WAIT = 5.0  # s, for git


@cache
def provenance() -> dict[str, str]:
    """Name -> version of everything that figures depend on; the commit where the code is a checkout."""
    made_with = {"irb-twin": twin.__version__}
    if told := commit(ROOT):
        made_with["commit"] = told
    made_with["python"] = platform.python_version()
    for name in LIBRARIES:
        try:
            made_with[name] = version(name)
        except PackageNotFoundError:
            made_with[name] = "unknown"
    made_with["platform"] = f"{platform.system()} {platform.machine()}"
    return made_with


def commit(folder: Path) -> str:
    """The commit that a folder is a checkout of, with `+ changes` after it if files differ from it.

    Empty where the folder is no checkout, or git is not there or does not answer.
    """
    if not (folder / ".git").exists():  # not the checkout of somebody in whose folders we are installed
        return ""
    try:
        head = _git(folder, "rev-parse", "HEAD").strip()
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no").strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + " + changes" * bool(changed)


def _git(folder: Path, *words: str) -> str:
    # Without optional locks: reading the status would write git's index.
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_WAIT, check=True)
    return done.stdout


def in_a_line() -> str:
    """All of it in one line: `irb-twin 0.1.0, commit 8a50c7b, python 3.11.7, ...`."""
    return ", ".join(f"{name} {value}" for name, value in provenance().items())


def all_settings(run: Run) -> dict[str, object]:
    """Every setting of a run by name, its defaults, its law's and its changes too, as JSON can have them."""
    found = {name: getattr(run.config, name) for name in fields(type(run.config))}
    found |= {f"law_settings.{name}": value for name, value in run.config.law_settings}
    found |= {f"changes.{name}": value for name, value in run.config.changes}
    return {name: plain(value) for name, value in found.items()}


def plain(value: Any) -> object:
    """A number, a truth, a list of them, nothing, or else a text; JSON has no word for infinity."""
    if isinstance(value, (tuple, list, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, (bool, int, str, type(None))) else str(value)


def stamped(run: Run, log: Log) -> Log:
    """The log of a run that says how it was made: in its arrays, `provenance` and `settings`, as JSON."""
    told = {"provenance": json.dumps(provenance()), "settings": json.dumps(_described(run))}
    return replace(log, arrays={**log.arrays, **{name: np.array(text) for name, text in told.items()}})


def stamp_picture(runs: list[Run], path: Path) -> None:
    """Write the same into a PNG, as its texts `provenance` and `settings`; other pictures are left alone."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    texts = PngInfo()
    texts.add_itxt("provenance", json.dumps(provenance()))
    texts.add_itxt("settings", json.dumps([_described(run) for run in runs]))
    with Image.open(path) as image:
        if image.format == "PNG":
            image.save(path, format="PNG", pnginfo=texts, dpi=image.info.get("dpi"))


def _described(run: Run) -> dict[str, object]:
    return {"scenario": run.scenario, **all_settings(run)}
