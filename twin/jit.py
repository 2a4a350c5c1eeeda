"""Where compiled functions are kept, so that the next process does not compile them again.

numba keeps the machine code of a function in a folder.  Here that is one of the user's cache that is named
after all that the machine code depends on: what is there never has to be told from what is out of date.  It
may be damaged, and damaged machine code does anything; `twin/verified_cache.py` sees to that.

Where nothing can be written, or no more, functions are compiled without being kept.
"""

import hashlib
import marshal
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from twin.verified_cache import verified_cache, write

PACKAGES = ("twin", "controllers")
"""Ours, whose functions are kept."""

_ONE_AT_A_TIME = threading.Lock()

UNUSED_FOR = 30 * 86400.0
"""Folders that nobody used for so long are removed, in [s]."""


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function with numba; it releases the GIL while it runs.

    If it is one of ours its machine code is kept, for as long as no file of our packages changes: so it may
    use any function and constant of theirs.

    Args:
        function: what is to be compiled.
        options: numba's.
    """
    from numba import config as numba_config
    from numba import njit
    from numba.extending import is_jitted

    config: Any = numba_config
    package = function.__module__.partition(".")[0]
    if package not in PACKAGES:
        return njit(nogil=True, **options)(function)
    sources = source_digest("twin") + source_digest(package)
    digest = hashlib.sha256(sources + repr(sorted(options.items())).encode())
    folder = _folder(f"irb_twin_{digest.hexdigest()[:16]}")
    with _ONE_AT_A_TIME:  # where numba keeps machine code is a setting of the whole process
        usual, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            made = cached_njit(nogil=True, **options)(function)
        finally:
            config.CACHE_DIR = usual
    # Where that folder cannot be written numba takes another one, which is not named after everything.
    elsewhere = (
        is_jitted(made) and made.stats.cache_path and folder not in Path(made.stats.cache_path).parents
    )
    return njit(nogil=True, **options)(function) if elsewhere else made


@lru_cache
def source_digest(package: str) -> bytes:
    """A digest of all files of a package."""
    digest = hashlib.sha256()
    for file in sorted(Path(str(sys.modules[package].__file__)).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.digest()


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of functions whose machine code numba keeps beside their file; `options` are numba's."""
    from numba import njit
    from numba.extending import is_jitted

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            made = njit(cache=True, **options)(function)
        except (RuntimeError, OSError):  # there is no such file, or nothing can be read or written beside it
            return njit(**options)(function)
        if is_jitted(made):
            _keep(made)
        return made

    return decorate


def _keep(made: Any) -> None:
    """Check what is kept of a function, and list what it adds; that the disk is full is no reason to fail."""
    files, numba_compile = verified_cache(Path(made.stats.cache_path)), made.compile

    def compile_and_add(signature: Any) -> Any:
        try:
            return numba_compile(signature)
        except OSError:  # it could not be kept, but it is compiled
            return numba_compile(signature)
        finally:
            files.add_new()

    made.compile = compile_and_add


def imported(name: str, text: Callable[[], str]) -> ModuleType:
    """Import the generated module of that name, writing it first if it is not there whole."""
    if name not in sys.modules:
        module = ModuleType(name)
        exec(_code(name, text), vars(module))
        sys.modules[name] = module
    return sys.modules[name]


def _code(name: str, text: Callable[[], str]) -> CodeType:
    """The code of a generated module, which is read in a hundredth of the time that it takes to make it."""
    folder = _folder(name)
    files = verified_cache(folder)
    path, code_path = folder / f"{name}.py", folder / f"{name}.{sys.implementation.cache_tag}.code"
    as_kept = files.read(code_path.name)
    if as_kept is not None and files.read(path.name) is not None:
        return marshal.loads(as_kept)
    source = text()
    code = compile(source, path, "exec")
    write(path, source.encode())
    write(code_path, marshal.dumps(code))
    files.add_new()
    return code


@cache  # as many as a process uses
def _folder(name: str) -> Path:
    """The folder of that name, marked as used now; where one must be made, those that nobody uses go."""
    from platformdirs import user_cache_path

    folder = user_cache_path("irb-twin") / "kernels" / name
    try:
        os.utime(folder)
    except FileNotFoundError:
        _remove_unused(folder.parent)
    except OSError:  # it cannot be written, but perhaps read
        pass
    return folder


def _remove_unused(parent: Path) -> None:
    """Remove what nobody used for long; a process that just began to, or began long ago, compiles anew."""
    with suppress(OSError):
        for entry in list(parent.iterdir()):
            if entry.stat().st_mtime < time.time() - UNUSED_FOR:
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
