"""Sharing samples between threads: all of them done once, the same bits for any number of threads."""

import threading

import numpy as np
import pytest

import twin
from twin.base.threads import VARIABLE, in_chunks, thread_count


def test_the_variable_sets_the_number(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert thread_count() >= 1
    monkeypatch.setenv(VARIABLE, "3")
    assert thread_count() == 3
    for text in ("0", "two", "1.5", "²"):
        monkeypatch.setenv(VARIABLE, text)
        with pytest.raises(ValueError, match=f"expected {VARIABLE} to be a whole number above 0"):
            thread_count()


@pytest.mark.parametrize(("threads", "count", "workers"), [(1, 100, 1), (4, 100, 4), (4, 25, 2), (4, 19, 1)])
def test_every_sample_is_done_once(monkeypatch, threads, count, workers):
    monkeypatch.setenv(VARIABLE, str(threads))
    done = np.zeros(count, dtype=int)
    parts = []

    def work(part):
        done[part] += 1
        parts.append(threading.get_ident())

    in_chunks(work, count, 10)
    np.testing.assert_array_equal(done, 1)
    assert len(parts) == workers


def test_an_error_in_a_thread_comes_out(monkeypatch):
    monkeypatch.setenv(VARIABLE, "2")
    with pytest.raises(ZeroDivisionError):
        in_chunks(lambda part: 1 / (not part.start), 100, 10)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch, robot, rng):
    q, qd, qdd = rng.uniform(-1, 1, (3, 20_001, 6))
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv(VARIABLE, threads)
        results.append(twin.inverse_dynamics(robot, q, qd, qdd).tobytes())
    assert results[0] == results[1] == results[2]
