"""Cache of compiled functions: what makes it out of date, damage, a full disk, owners and lifetime."""

import importlib
import os
import shutil
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np
import platformdirs
import pytest
from numba.extending import is_jitted

from tests.support.forks import NUMBA, Fork
from twin.base import atomic_file, jit
from twin.base.jit import compiled, imported, read, write
from twin.physics.control.control_law import is_compiled
from twin.physics.rotations.rotations import rigidity_error

HEAD = "from twin.base.jit import compiled\n"
INNER = HEAD + "@compiled\ndef inner():\n    return {}\n"
MIDDLE = (
    HEAD + "from twin.physics.rotations.inner import inner\n@compiled\ndef middle():\n    return inner()\n"
)
OUTER = (
    HEAD + "from twin.physics.rotations.middle import middle\n@compiled\ndef outer():\n    return middle()\n"
)


def test_a_change_in_a_file_that_is_called_is_noticed(tmp_path):
    """Also in a room of another package; a change elsewhere compiles nothing."""
    names = ("twin", "twin/base", "twin/physics", "twin/physics/rotations", "controllers")
    for package in (tmp_path / name for name in names):
        package.mkdir()
        (package / "__init__.py").write_text("")
    base, rotations, laws = (tmp_path / name for name in names if name not in ("twin", "twin/physics"))
    for module in (jit, atomic_file):
        shutil.copy(module.__file__, base)
    (rotations / "middle.py").write_text(MIDDLE)
    (laws / "outer.py").write_text(OUTER)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from controllers.outer import outer as f\n"
        "print(f(), sum(f.stats.cache_hits.values()))"
    )
    answers = []
    for value in (1, 2, 2):
        (rotations / "inner.py").write_text(INNER.format(value))
        (base / "errors.py").write_text(f"# change {len(answers)}")
        ended = Fork(program, NUMBA, XDG_CACHE_HOME=str(tmp_path)).wait()
        assert not ended.stderr
        answers.append(ended.stdout.split())
    assert answers == [["1", "0"], ["2", "0"], ["2", "1"]]
    assert not list(tmp_path.glob("*/*.nb?"))  # nothing of it lies where the program is installed


def called(function, found):
    """Add the functions of this project to `found` that a function calls, directly or through others."""
    function = getattr(function, "py_func", function)
    if isinstance(function, FunctionType) and function not in found and of_project(function.__module__):
        found.add(function)
        for name in names_in(function.__code__):
            called(function.__globals__.get(name), found)
    return found


def names_in(code):
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names, *(name for part in inner for name in names_in(part))}


def of_project(name):
    return name.partition(".")[0] in jit.PACKAGES


def test_the_digest_of_a_compiled_function_covers_all_that_it_calls():
    house = Path(jit.__file__).parents[2]
    for file in (file for package in jit.PACKAGES for file in (house / package).rglob("*.py")):
        if (
            "from twin.base.jit import" in (text := file.read_text(encoding="utf-8"))
            or "compiled_law" in text
        ):
            importlib.import_module(".".join(file.relative_to(house).with_suffix("").parts))
    of_modules = [vars(module) for name, module in sys.modules.items() if of_project(name)]
    values = [value for variables in of_modules for value in variables.values()]
    compiled_ones = [v for v in values if is_jitted(v) or (isinstance(v, FunctionType) and is_compiled(v))]
    assert len(compiled_ones) > 100
    covered = {house / "twin" / "physics" / room for room in jit.COMPILED}
    for one in compiled_ones:
        room = Path(getattr(one, "py_func", one).__code__.co_filename).parent
        for function in called(one, set()):
            file = Path(function.__code__.co_filename)
            assert file.parent == room or covered & set(file.parents), f"{one} calls {function}"


PROGRAM = """
import resource, signal
from math import pi
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, ({largest}, most))
from twin.physics.kinematics.spherical_wrist import principal
from twin.base.jit import imported

TEXT = '''from twin.base.jit import cached_njit

@cached_njit()
def cube(x):
    return x * x * x

@cached_njit(nogil=True)
def sum_of_cubes(count):
    total = 0.0
    for i in range(count):
        total += cube(i)
    return total
'''
module = imported("irb_twin_cubes", lambda: TEXT)
assert module.sum_of_cubes(11) == 55.0**2 and abs(principal(7.0) - 7.0 + 2 * pi) < 1e-15
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
print(sum(sum(f.stats.cache_hits.values()) for f in (module.sum_of_cubes, principal)))
"""
KEPT = 2
"""What it finds in the cache when all is there."""


def started(cache, largest=-1):
    """Start the program, on a disk that takes files up to a size in bytes."""
    return Fork(PROGRAM.format(largest=largest), NUMBA, XDG_CACHE_HOME=str(cache))


def found(process):
    """How much a process found in the cache; it must end well."""
    ended = process.wait()
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


def files(cache, *kinds):
    return sorted(path for path in cache.rglob("*") if path.name.endswith(kinds))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Cache that a process has filled; every test restores it."""
    folder = tmp_path_factory.mktemp("cache")
    assert found(started(folder)) == 0
    assert found(started(folder)) == KEPT
    return folder


def cut_short(content, rng):
    return content[: rng.integers(len(content))]


def flipped(content, rng):
    """A bit in every hundred bytes, and one at least."""
    flips = np.zeros(8 * len(content), dtype=bool)
    flips[rng.choice(flips.size, 1 + len(content) // 100, replace=False)] = True
    return (np.frombuffer(content, np.uint8) ^ np.packbits(flips)).tobytes()


def test_damaged_files_are_created_again(cache, rng):
    """Machine code and the byte code of modules: all damaged, or one kind of them."""
    kinds = (".nbc", ".code")
    assert len(files(cache, *kinds)) == 4  # three functions and a module
    for damage, damaged in ((cut_short, kinds), (flipped, ".nbc"), (flipped, ".code")):
        for path in files(cache, *np.atleast_1d(damaged)):
            path.write_bytes(damage(path.read_bytes(), rng))
        assert found(started(cache)) == (KEPT if damaged == ".code" else 0), damaged
    assert found(started(cache)) == KEPT


def test_a_full_disk_is_no_reason_to_fail(tmp_path):
    """It is full from the start, and then only for machine code."""
    for largest in (0, 3000):
        assert found(started(tmp_path, largest=largest)) == 0
    assert files(tmp_path, ".code")
    assert not files(tmp_path, ".nbc", ".draft")
    assert found(started(tmp_path)) == 0
    assert found(started(tmp_path)) == KEPT
    assert found(started(__file__)) == 0, "nothing can be written there"


def test_a_file_is_read_as_it_was_written_and_a_damaged_one_is_removed(tmp_path):
    path = tmp_path / "a.nbc"
    write(path, b"first")
    stored = path.read_bytes()
    assert read(path) == b"first"
    for damaged in (b"", b"first", stored.replace(b"i", b"j"), stored[:-1], stored + b"\0", bytes(32)):
        path.write_bytes(damaged)
        assert read(path) is None
        assert not path.exists()


def test_writers_of_one_file_at_the_same_moment_leave_it_whole(tmp_path):
    path, contents = tmp_path / "a.nbc", [bytes([k]) * 100_000 for k in range(4)]
    write(path, contents[0])
    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, path, content) for _ in range(10) for content in contents]
        while not all(one.done() for one in writing):
            assert read(path) in contents
    assert [file.name for file in tmp_path.iterdir()] == ["a.nbc"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_is_cut_short_leaves_nothing(tmp_path, monkeypatch, error):
    def cut_short(*_):
        raise error

    monkeypatch.setattr(os, "replace", cut_short)
    with nullcontext() if error is OSError else pytest.raises(error):
        write(tmp_path / "a.code", b"first")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_not_read(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    write(tmp_path / "file" / "a.code", b"first")
    assert read(tmp_path / "file" / "a.code") is None


@pytest.fixture
def kernels_folder(tmp_path, monkeypatch):
    """An empty cache, as a process finds it that has used none yet."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    jit._folder.cache_clear()
    yield tmp_path / "irb-twin" / "kernels"
    jit._folder.cache_clear()


def twice(x):
    return 2.0 * x


def test_user_function_is_not_cached_and_options_have_separate_entries(kernels_folder):
    """Nothing is known of what a user's function uses; numba does not separate the options."""
    function = compiled(twice)
    assert function(21.0) == 42.0
    assert function.stats.cache_path is None
    assert not kernels_folder.exists()
    functions = [compiled(rigidity_error, **options) for options in ({}, {}, {"boundscheck": True})]
    assert len({function.stats.cache_path for function in functions}) == 2


TEXT = "from twin.base.jit import cached_njit\n@cached_njit()\ndef twice(x):\n    return 2.0 * x\n"


def test_a_module_is_written_once_for_all_processes_and_only_what_is_compiled_is_reported(
    kernels_folder, monkeypatch
):
    told, texts = [], iter([TEXT])
    monkeypatch.setattr(jit, "on_compiling", told.append)
    for expected in ([True, False], []):
        sys.modules.pop("irb_twin_once", None)
        jit._folder.cache_clear()  # as another process
        module = imported("irb_twin_once", lambda: next(texts))
        assert module.twice(21.0) == 42.0
        assert told == expected
        told.clear()
    assert sum(module.twice.stats.cache_hits.values()) == 1
    assert compiled(twice)(21.0) == 42.0
    assert not told, "a function of the user"


APPLY = "from twin.base.jit import cached_njit\n@cached_njit()\ndef apply(f, x):\n    return f(x)\n"


def test_machine_code_with_the_function_of_an_argument_is_not_stored(kernels_folder):
    """Another function may have its address in the next process."""
    apply = imported("irb_twin_apply", lambda: APPLY).apply
    assert [apply(compiled(twice), 3.0), apply(compiled(lambda x: x - 1.0), 3.0)] == [6.0, 2.0]
    assert not list(kernels_folder.rglob("*.nbc"))


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


@pytest.mark.parametrize("level", ["", "kernels", "kernels/irb_twin_mine"])
def test_code_in_a_folder_that_other_users_can_write_is_not_run_and_a_warning_says_what_to_do(
    level, kernels_folder, monkeypatch
):
    """Nor what lies behind a link, where nothing is removed either."""
    path, elsewhere = kernels_folder.parent / level, kernels_folder.parent.parent / "elsewhere"

    def as_a_new_process(value):
        jit._folder.cache_clear()
        sys.modules.pop("irb_twin_mine", None)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            module = imported("irb_twin_mine", lambda: f"value = {value}\n")
        return module.value != value, [str(one.message) for one in given]

    as_a_new_process(1)
    mode = path.stat().st_mode
    assert as_a_new_process(2) == (True, [])
    path.chmod(mode | 0o020)
    cached, (sentence,) = as_a_new_process(3)
    assert not cached
    assert sentence.endswith(f"other users can write to {path}; run: chmod -R go-w {path}")
    path.chmod(mode)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", of_another_user(path))
        cached, (sentence,) = as_a_new_process(4)
    assert not cached
    assert f"{path} belongs to another user; set XDG_CACHE_HOME" in sentence
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    aged(old := next(elsewhere.rglob("irb_twin_mine"), elsewhere), jit.UNUSED_FOR + 60)
    cached, (sentence,) = as_a_new_process(5)
    assert not cached
    assert sentence.endswith(f"{path} is a symbolic link, expected a folder or file")
    assert old.exists()


def of_another_user(path):
    """Return an `lstat` by which a path belongs to somebody else."""
    lstat = Path.lstat

    def foreign(this):
        status = lstat(this)
        return os.stat_result((*status[:4], status.st_uid + (this == path), *status[5:]))

    return foreign


@pytest.mark.parametrize("fault", ["mode", "owner", "link"])
def test_a_file_that_other_users_could_have_written_is_as_if_absent(fault, tmp_path, monkeypatch):
    path, elsewhere = tmp_path / "a.nbc", tmp_path / "elsewhere"
    write(path, b"first")
    if fault == "mode":
        path.chmod(0o620)
    elif fault == "owner":
        monkeypatch.setattr(Path, "lstat", of_another_user(path))
    else:
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
    assert read(path) is None
    monkeypatch.undo()
    assert not os.path.lexists(path)
    assert read(elsewhere) == (b"first" if fault == "link" else None)


def test_a_umask_that_lets_a_group_write_costs_no_cache_and_one_not_to_be_entered_is_not_used(
    kernels_folder, monkeypatch
):
    before = os.umask(0o002)
    try:
        imported("irb_twin_umask", lambda: TEXT).twice(1.0)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o077 for path in (kernels_folder.parent).rglob("*")} == {0}

    def no_entry(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    for function in ("stat", "lstat", "mkdir"):
        monkeypatch.setattr(os, function, no_entry)
    with pytest.warns(UserWarning, match=r"not cached: .*: Permission denied; set XDG_CACHE_HOME"):
        assert jit._folder("one") is None
