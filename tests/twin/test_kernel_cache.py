"""Cache of compiled functions: owners, lifetime, and invalidation by changes of the source.."""

import hashlib
import os
import shutil
import sys
import time
from contextlib import nullcontext

import platformdirs
import pytest

from tests.support.forks import NUMBA, Fork
from twin import atomic_file, jit, verified_cache
from twin.jit import compiled, imported
from twin.rotations.rotations import rigidity_error
from twin.verified_cache import ABANDONED_AFTER, LIST, VerifiedCache, write

HEAD = "from twin.jit import compiled\n"
INNER = HEAD + "@compiled\ndef inner():\n    return {}\n"
MIDDLE = HEAD + "from twin.inner import inner\n@compiled\ndef middle():\n    return inner()\n"
OUTER = HEAD + "from twin.middle import middle\n@compiled\ndef outer():\n    return middle()\n"


def test_a_change_in_a_file_that_is_called_is_noticed(tmp_path):
    """Also in another package of the project."""
    twin, controllers = (tmp_path / name for name in ("twin", "controllers"))
    for package in (twin, controllers):
        package.mkdir()
        (package / "__init__.py").write_text("")
    for module in (jit, verified_cache, atomic_file):
        shutil.copy(module.__file__, twin)
    (twin / "middle.py").write_text(MIDDLE)
    (controllers / "outer.py").write_text(OUTER)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from controllers.outer import outer as f\n"
        "print(f(), sum(f.stats.cache_hits.values()))"
    )
    answers = []
    for value in (1, 2, 2):
        (twin / "inner.py").write_text(INNER.format(value))
        ended = Fork(program, NUMBA, XDG_CACHE_HOME=str(tmp_path)).wait()
        assert not ended.stderr
        answers.append(ended.stdout.split())
    assert answers == [["1", "0"], ["2", "0"], ["2", "1"]]
    assert not list(tmp_path.glob("*/*.nb?"))  # nothing of it lies where the program is installed


@pytest.fixture
def kernels_folder(tmp_path, monkeypatch):
    """An empty cache, as a process finds it that has used none yet."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    jit._folder.cache_clear()
    yield tmp_path / "irb-twin" / "kernels"
    jit._folder.cache_clear()


def test_options_have_separate_cache_entries(kernels_folder):
    """Which numba does not."""
    functions = [compiled(rigidity_error, **options) for options in ({}, {}, {"boundscheck": True})]
    assert len({function.stats.cache_path for function in functions}) == 2


def twice(x):
    return 2.0 * x


def test_user_function_is_not_cached(kernels_folder):
    """Nothing is known of what it uses."""
    function = compiled(twice)
    assert function(21.0) == 42.0
    assert function.stats.cache_path is None
    assert not kernels_folder.exists()


TEXT = "from twin.jit import cached_njit\n@cached_njit()\ndef twice(x):\n    return 2.0 * x\n"


def test_a_module_is_written_once_for_all_processes_and_only_what_is_compiled_is_reported(
    kernels_folder, monkeypatch
):
    told, texts = [], iter([TEXT])
    monkeypatch.setattr(jit, "on_compiling", told.append)
    for expected in ([True, False], []):
        sys.modules.pop("irb_twin_once", None)
        verified_cache.verified_cache.cache_clear()  # as another process
        module = imported("irb_twin_once", lambda: next(texts))
        assert module.twice(21.0) == 42.0
        assert told == expected
        told.clear()
    assert sum(module.twice.stats.cache_hits.values()) == 1
    assert (kernels_folder / "irb_twin_once" / "irb_twin_once.py").read_text() == TEXT
    assert compiled(twice)(21.0) == 42.0
    assert not told, "a function of the user"


def aged(path, seconds):
    at = time.time() - seconds
    os.utime(path, (at, at))


def test_what_nobody_used_for_long_goes_when_something_new_comes(kernels_folder):
    unused, used, of_old = (kernels_folder / name for name in ("unused", "used", "irb_twin_kernels_old.py"))
    for folder in (unused, used):
        folder.mkdir(parents=True)
        (folder / "one.nbc").write_bytes(b"machine code")
        aged(folder, jit.UNUSED_FOR + 60)
    of_old.write_text("")
    aged(of_old, jit.UNUSED_FOR + 60)
    jit._folder("used")
    sys.modules.pop("irb_twin_new", None)
    imported("irb_twin_new", lambda: TEXT)
    assert {path.name for path in kernels_folder.iterdir()} == {"used", "irb_twin_new"}


# Files are used only as they were written.


WRITTEN = {"a.nbc": b"first", "b.nbi": b"second"}


@pytest.fixture
def folder(tmp_path):
    """A folder with two files, both on its list."""
    files = VerifiedCache(tmp_path)
    for name, content in WRITTEN.items():
        write(tmp_path / name, content)
    files.add_new()
    return tmp_path


def present(folder):
    return {path.name for path in folder.iterdir()} - {LIST}


def test_what_is_as_it_was_written_stays_and_what_is_not_on_the_list_is_removed(folder):
    """The list is as `sha256sum` writes it; a process may be killed before it writes it."""
    write(folder / "c.code", b"third")
    files = VerifiedCache(folder)
    assert {name: files.read(name) for name in WRITTEN} == WRITTEN
    assert present(folder) == set(WRITTEN)
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in WRITTEN.items()]
    assert (folder / LIST).read_text() == "".join(lines)


@pytest.mark.parametrize("content", [b"", b"f\0rst"])
def test_what_differs_is_removed(folder, content):
    (folder / "a.nbc").write_bytes(content)
    assert VerifiedCache(folder).read("a.nbc") is None
    assert present(folder) == {"b.nbi"}


@pytest.mark.parametrize("content", [b"", b"\xff\0\n", None])
def test_without_a_list_nothing_stays(folder, content):
    (folder / LIST).unlink() if content is None else (folder / LIST).write_bytes(content)
    VerifiedCache(folder)
    assert present(folder) == set()


def test_rewritten_file_is_recorded_again(folder):
    (folder / "a.nbc").write_bytes(b"damaged")
    files = VerifiedCache(folder)
    write(folder / "a.nbc", b"anew")
    write(folder / "b.nbi", b"grown")
    files.add_new()
    files = VerifiedCache(folder)
    assert (files.read("a.nbc"), files.read("b.nbi")) == (b"anew", b"grown")


def test_entries_of_other_processes_are_preserved_and_what_is_damaged_in_use_is_not_listed(folder):
    own, other = VerifiedCache(folder), VerifiedCache(folder)
    (folder / "a.nbc").write_bytes(b"fir#t")
    write(folder / "c.code", b"third")
    other.add_new()
    write(folder / "d.code", b"fourth")
    own.add_new()
    VerifiedCache(folder)
    assert present(folder) == {"b.nbi", "c.code", "d.code"}


@pytest.mark.parametrize("name", [".x.draft.nbc", "a.nbc.tmp.0123"])
def test_what_a_killed_process_left_half_written_goes_when_it_is_old(folder, name):
    (folder / name).write_bytes(b"hal")
    VerifiedCache(folder)
    assert name in present(folder)  # another process may just be writing it
    old = time.time() - ABANDONED_AFTER - 60
    os.utime(folder / name, (old, old))
    VerifiedCache(folder)
    assert name not in present(folder)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_is_cut_short_leaves_nothing(tmp_path, monkeypatch, error):
    def cut_short(*_):
        raise error

    monkeypatch.setattr(os, "replace", cut_short)
    with nullcontext() if error is OSError else pytest.raises(error):
        assert not write(tmp_path / "a.code", b"first")
    assert present(tmp_path) == set()


def test_unwritable_folder_disables_the_cache(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    files = VerifiedCache(tmp_path / "file")
    assert not write(tmp_path / "file" / "a.code", b"first")
    files.add_new()
    assert files.read("a.code") is None
