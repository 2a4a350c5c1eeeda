"""The files a command writes: checked before the work begins, named apart when there are several."""

from __future__ import annotations

import os
from pathlib import Path

from scenarios.options import WrongUse


def writable(path: Path, suffix: str, option: str) -> Path:
    """Check that a file can be written, without touching it.

    Args:
        path: where to.
        suffix: how its name must end.
        option: the option that asked for it, for the message.

    Raises:
        WrongUse: if it cannot, with the reason.
    """
    if path.suffix.lower() != suffix:
        raise WrongUse(f"{option} {path}: expected a file name that ends in {suffix}")
    if path.is_dir():
        raise WrongUse(f"{option} {path}: is a folder")
    if not path.parent.is_dir():
        raise WrongUse(f"{option} {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise WrongUse(f"{option} {path}: no permission to write there")
    return path


def apart(path: Path, *words: str) -> Path:
    """`run.npz` -> `run-pose_path-pd.npz`: the name of one file among several."""
    return path.with_name("-".join((path.stem, *words)) + path.suffix)
