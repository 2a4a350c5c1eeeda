"""Damaged files of the cache, and a full disk: slower at worst, never wrong."""

import numpy as np
import pytest

from tests.support.forks import NUMBA, Fork

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


ALONE = (".nbc", ".nbi", ".code", "SHA256SUMS")


def test_damaged_files_are_created_again(cache, rng):
    """Machine code, its index, modules, their byte code and the list: all damaged, or one kind of them."""
    kinds = (".nbc", ".nbi", ".py", ".code")
    assert len(files(cache, *kinds)) == 8  # two of each of three functions, a module and its code
    for damage, damaged in ((cut_short, kinds), *((flipped, kind) for kind in ALONE)):
        for path in files(cache, *np.atleast_1d(damaged)):
            path.write_bytes(damage(path.read_bytes(), rng))
        assert found(started(cache)) == (KEPT if damaged == ".code" else 0), damaged
    assert found(started(cache)) == KEPT


def test_a_full_disk_is_no_reason_to_fail(tmp_path):
    """It is full from the start, and then only after an index that tells of machine code."""
    for largest in (0, 3000):
        assert found(started(tmp_path, largest=largest)) == 0
    assert files(tmp_path, ".nbi")
    assert not files(tmp_path, ".nbc", ".draft")
    assert found(started(tmp_path)) == 0
    assert found(started(tmp_path)) == KEPT
    assert found(started(__file__)) == 0, "nothing can be written there"
