"""Where compiled functions are kept, so that the next process does not compile them again.

numba keeps the machine code of a function beside the file that it comes from.  Functions made from a string
have no file, so a generated module is written to the user's cache folder and imported from there.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

COMPLETE = "COMPLETE = True\n"
"""The last line of every generated module: one that a crash cut short lacks it."""


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function with numba, its machine code kept where anything can be written.

    It lets go of Python's lock while it runs; `options` are numba's.  It may call compiled functions that its
    file imports by name: numba itself would go on with the kept code after a change in their files.
    """
    from numba import njit

    try:
        made: Any = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the home can be written: not kept, then
        return njit(nogil=True, **options)(function)
    if hasattr(made, "py_func"):
        made.sources = _sources(function)
        own_key = made._cache._index_key
        made._cache._index_key = lambda *asked: (*own_key(*asked), made.sources)
    return made


def _sources(function: Callable[..., Any]) -> str:
    """A digest of the files from which a function's own file imports compiled functions; theirs count too."""
    called = {v.py_func: v.sources for v in function.__globals__.values() if hasattr(v, "sources")}
    digest = hashlib.sha256()
    for file, sources in sorted({(f.__code__.co_filename, sources) for f, sources in called.items()}):
        if file != function.__code__.co_filename:
            digest.update(Path(file).read_bytes() + sources.encode())
    return digest.hexdigest()


def imported(name: str, text: Callable[[], str]) -> ModuleType:
    """Import the generated module of that name, writing it first if it is not there whole."""
    if name not in sys.modules:
        path = cache_folder() / f"{name}.py"
        if not path.exists() or not path.read_text(encoding="utf-8").endswith(COMPLETE):
            _write(path, text() + COMPLETE)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


def _write(path: Path, text: str) -> None:
    """Write a file so that another process sees the whole of it or nothing."""
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".draft")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """The user's cache folder for generated modules; one for this process alone if that cannot be written."""
    from platformdirs import user_cache_path

    folder = user_cache_path("irb-twin") / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    own = tempfile.mkdtemp(prefix="irb-twin-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)
