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
from types import CodeType, ModuleType
from typing import Any

import numpy as np

COMPLETE = "COMPLETE = True\n"
"""The last line of every generated module: one that a crash cut short lacks it."""


def compiled(function: Callable[..., Any], layout: str = "", **options: Any) -> Callable[..., Any]:
    """Compile a function with numba, its machine code kept where anything can be written.

    It lets go of Python's lock while it runs; `options` are numba's.  It may use functions and numbers that
    its file imports by name: numba itself would go on with the kept code after a change of those, as of its
    options.  `layout` is for what else its machine code depends on, the order of a tuple's members say.
    """
    from numba import njit

    try:
        made: Any = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the home can be written: not kept, then
        return njit(nogil=True, **options)(function)
    if hasattr(made, "py_func"):
        made.sources = _sources(function, layout, options)
        own_key = made._cache._index_key
        made._cache._index_key = lambda *asked: (*own_key(*asked), made.sources)
    return made


def _sources(function: Callable[..., Any], layout: str, options: dict[str, Any]) -> str:
    """A digest of what numba's own key leaves out: options, layouts, and what the function's file imports."""
    from numba.core.registry import CPUDispatcher

    digest = hashlib.sha256(f"{layout}{sorted(options.items())}".encode())
    for name in sorted(_names(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, CPUDispatcher):
            file = Path(value.py_func.__code__.co_filename)
            content = file.read_bytes() if file.is_file() else value.py_func.__code__.co_code
            digest.update(content + getattr(value, "sources", "").encode())
        elif isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
        elif isinstance(value, (bool, int, float, complex, str, tuple)):
            digest.update(f"{name} {value!r}".encode())
    return digest.hexdigest()


def _names(code: CodeType) -> set[str]:
    """The global names that a function uses, its inner functions' too."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


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
