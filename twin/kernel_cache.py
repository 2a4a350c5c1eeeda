"""Where generated modules are kept, so that numba's machine code for them is found again by the next process.

numba caches functions beside the file that they come from; functions made from a string have no file.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType


def imported(name: str, text: Callable[[], str]) -> ModuleType:
    """Import the module of that name from the cache folder, writing it first if it is not there."""
    if name in sys.modules:
        return sys.modules[name]
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".draft")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text())
        os.replace(draft, path)  # atomic: another process sees the whole module or none
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cache_folder() -> Path:
    """The user's cache folder for generated kernels, or a temporary one where that cannot be written."""
    from platformdirs import user_cache_path

    folder = user_cache_path("irb-twin") / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    folder = (
        Path(tempfile.gettempdir()) / f"irb-twin-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    )
    folder.mkdir(exist_ok=True)
    return folder
