"""Damaged files of the cache, a full disk and processes side by side: slower at worst, never wrong."""

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

PROGRAM = """
from math import pi
from twin.kinematics.joint_turns import principal
from twin.jit import imported

TEXT = '''from twin.jit import cached_njit

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
print(sum(sum(f.stats.cache_hits.values()) for f in (module.sum_of_cubes, principal)))
"""
KEPT = 2
"""What it finds in the cache when all is there."""


def started(cache, before=None):
    # Python would keep the half of a module's byte code, and stumble over it.
    variables = {"XDG_CACHE_HOME": str(cache), "NUMBA_DISABLE_JIT": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | variables, preexec_fn=before,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def found(process):
    """How much a process found in the cache; it must end well."""
    out, error = process.communicate()
    assert process.returncode == 0, error
    return int(out)


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


def zeroed(content, rng):
    start = rng.integers(len(content) // 2)
    return content[:start] + bytes(len(content) // 2) + content[start + len(content) // 2 :]


def flipped(content, rng):
    """A bit in every hundred bytes, and one at least."""
    flips = np.zeros(8 * len(content), dtype=bool)
    flips[rng.choice(flips.size, 1 + len(content) // 100, replace=False)] = True
    return (np.frombuffer(content, np.uint8) ^ np.packbits(flips)).tobytes()


def one_flipped(content, rng):
    place = int(rng.integers(len(content)))
    return content[:place] + bytes([content[place] ^ (1 << int(rng.integers(8)))]) + content[place + 1 :]


def test_damaged_files_are_created_again(cache, rng):
    """Return the cached files of every kind: machine code, its index, modules, and their byte code."""
    for damage in (cut_short, zeroed, flipped, one_flipped):
        whole = files(cache, ".nbc", ".nbi", ".py", ".code")
        assert len(whole) == 8  # two of each of three functions, a module and its code
        for path in whole:
            path.write_bytes(damage(path.read_bytes(), rng))
        assert found(started(cache)) == 0, damage
    assert found(started(cache)) == KEPT


def test_one_kind_of_file_may_be_damaged(cache, rng):
    for kind in (".nbc", ".nbi", ".code", "SHA256SUMS"):
        for path in files(cache, kind):
            path.write_bytes(flipped(path.read_bytes(), rng))
        assert found(started(cache)) == (KEPT if kind == ".code" else 0), kind
    assert found(started(cache)) == KEPT


def test_a_full_disk_is_no_reason_to_fail(tmp_path):
    """It is full from the start, and then only after an index that tells of machine code."""
    for largest in (0, 3000):

        def full(largest=largest):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

        assert found(started(tmp_path, full)) == 0
    assert files(tmp_path, ".nbi")
    assert not files(tmp_path, ".nbc", ".draft")
    assert found(started(tmp_path)) == 0
    assert found(started(tmp_path)) == KEPT


def test_processes_fill_the_cache_side_by_side(tmp_path):
    for process in [started(tmp_path) for _ in range(3)]:
        found(process)
    found(started(tmp_path))  # what two wrote at once may not be on the list
    assert found(started(tmp_path)) == KEPT


def test_a_process_that_is_killed_harms_nobody(tmp_path):
    process = started(tmp_path)
    while process.poll() is None and not files(tmp_path, ".nbi"):
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert found(started(tmp_path)) < KEPT
