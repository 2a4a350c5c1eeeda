"""Sweeps carried out: the same bits whoever does it, and whatever happens to them on the way."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.recfunctions import repack_fields

from tests.support import sweep_experiments
from tests.support.sweep_experiments import COUNT, LIMITS, NAMES, POINTS, Deadly, Fatal, Slow, Swing, points
from twin.base.errors import ClusterError, TwinError, VariationError
from twin.studies.sweeps import evaluation, pools
from twin.studies.sweeps import trial as dependencies
from twin.studies.sweeps.pools import LocalThreads, Processes, pool_for
from twin.studies.sweeps.running import ChunkStore, chunk_size, chunks, columns, remove_chunks, run_points
from twin.studies.sweeps.trial import OUTCOME

pytestmark = pytest.mark.slow("runs sweeps in threads, processes and a cluster")

PROGRAM = """
import sys
from tests.support import sweep_experiments
from tests.support.sweep_experiments import LIMITS, POINTS, Slow
from twin.studies.sweeps.pools import LocalThreads
from twin.studies.sweeps.running import run_points
slow, keep = Slow(sys.argv[1]), sys.argv[2]
def report(done, count):
    print(done, flush=True)
try:
    run_points(slow, POINTS, limits=LIMITS, workers=1, keep=keep, progress=report)
except KeyboardInterrupt:
    print("interrupted", flush=True)
run_points(slow, POINTS, limits=LIMITS, pool=LocalThreads(1), keep=keep, resume=True, progress=report)
"""


@pytest.fixture(scope="module")
def whole():
    """The table of one thread."""
    return run_points(Swing(), POINTS, limits=LIMITS, pool=LocalThreads(1))


@pytest.fixture(scope="module")
def pool():
    """Worker processes for all tests."""
    with Processes(2) as pool:
        yield pool


def test_a_row_is_the_outcome_of_its_point(whole):
    assert whole.dtype.names == ("draw", "replicate", *NAMES, *OUTCOME.names)
    inputs = (POINTS.draw, POINTS.replicate, *POINTS.values.T)
    for name, values in zip(("draw", "replicate", *NAMES), inputs, strict=True):
        assert np.array_equal(whole[name], values)
    outcomes, unmade = repack_fields(whole[list(OUTCOME.names)]), POINTS.values[:, 0] < 0
    assert 0 < np.count_nonzero(unmade) < COUNT
    assert np.array_equal(whole["trouble"] == 4, unmade)
    for place in (*np.flatnonzero(~unmade)[[0, 10, -1]], np.flatnonzero(unmade)[0]):
        trial = Swing().trial(dict(zip(NAMES, POINTS.values[place], strict=True))) if not unmade[place] else 0
        row = evaluation.outcomes([trial])[0] if trial else evaluation.unmade(())
        row["passes"] &= row["joint_error"] <= LIMITS["joint_error"]
        assert outcomes[place].tobytes() == row.tobytes()
    free = run_points(Swing(), POINTS)
    assert 0 < np.count_nonzero(whole["passes"]) < np.count_nonzero(free["passes"])


def test_any_number_of_threads_and_processes_gives_the_same_bits(whole, pool):
    report: list[int] = []
    for settings in (
        {"pool": LocalThreads(3)},
        {"pool": pool, "progress": lambda *done: report.append(done[0])},
    ):
        assert run_points(Swing(), POINTS, limits=LIMITS, **settings).tobytes() == whole.tobytes()
    assert (report[0], report[-1]) == (0, COUNT)
    assert np.all(np.diff(report) > 0)


def test_a_worker_that_is_killed_is_replaced_and_its_chunk_done_again(whole, pool, tmp_path):
    table = run_points(Deadly(str(tmp_path)), POINTS, limits=LIMITS, pool=pool)
    assert (tmp_path / "died").exists()
    assert table.tobytes() == whole.tobytes()


def test_what_ends_a_worker_or_fails_in_it_ends_the_sweep(pool, capfd, monkeypatch):
    """The point is one that kills, raises or warns before anything is computed."""
    one = points(1)
    with pytest.raises(ClusterError, match="the process that ran it was ended by SIGKILL, twice"):
        run_points(Fatal(), one, pool=pool)
    with pytest.raises(ZeroDivisionError, match="a mistake of mine") as caught:
        run_points(sweep_experiments.Faulty(), one, pool=pool)
    assert "sweep_experiments.py" in str(caught.value.__cause__)
    capfd.readouterr()
    with pytest.warns(UserWarning) as given:  # noqa: PT030 - which ones is asked below
        run_points(sweep_experiments.Warned(), points(3), pool=pool)
    assert [str(one.message) for one in given] == ["beware"] * 2  # of the nominal trial, and of the workers
    assert capfd.readouterr().out == "loud\n"
    here = dependencies.surroundings()
    monkeypatch.setattr(dependencies, "surroundings", lambda: here | {"version of numpy": "9.9"})
    with pytest.raises(ClusterError, match=r"began the sweep: version of numpy \(was 9.9, is .*\)"):
        run_points(Swing(), one, pool=pool)


def test_a_sweep_goes_on_after_ctrl_c_and_after_its_driver_was_killed(whole, tmp_path, monkeypatch):
    """The driver is interrupted with workers, killed with threads, and finished here."""
    named = [Path(__file__).parents[3] / name for name in ("__init__.py", "support/sweep_experiments.py")]
    monkeypatch.setattr(dependencies, "user_files", lambda: named)  # this process loaded other tests, too
    keep, made = tmp_path / "kept", tmp_path / "made"
    driver = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(keep)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
    )  # fmt: skip
    assert driver.stdout is not None
    lines = iter(driver.stdout.readline, "")

    def wait_for(done):
        for line in lines:
            if line.strip().isdigit() and int(line) >= done:
                return
        raise AssertionError(driver.stderr and driver.stderr.read())

    wait_for(10)
    began = time.monotonic()
    driver.send_signal(signal.SIGINT)
    assert "interrupted\n" in lines
    assert time.monotonic() - began < 5.0
    (worker,) = {int(pid) for pid in made.read_text().split()} - {driver.pid}
    assert not running(worker)
    at_first = len(list(keep.glob("chunk-*.npy")))
    assert 3 <= at_first < 20
    wait_for(40)
    driver.send_signal(signal.SIGKILL)
    assert driver.wait(timeout=10) == -signal.SIGKILL
    _, said = driver.communicate()
    assert said == ""
    files = sorted(keep.glob("chunk-*.npy"))
    assert at_first < len(files) < 24
    files[0].write_bytes(files[0].read_bytes()[:-8])  # the disk's fault
    made.unlink()
    report = []
    table = run_points(
        Slow(str(tmp_path)), POINTS, limits=LIMITS, keep=keep, resume=True,
        progress=lambda *one: report.append(one),
    )  # fmt: skip
    assert table.tobytes() == whole.tobytes()
    kept = 3 * (len(files) - 1)
    assert report[0] == (kept, COUNT)
    assert len(made.read_text().split()) == 1 + COUNT - kept
    made.unlink()
    again = run_points(Slow(str(tmp_path)), POINTS, keep=keep, resume=True)  # with other limits
    assert len(made.read_text().split()) == 1
    assert np.count_nonzero(again["passes"]) > np.count_nonzero(table["passes"])
    remove_chunks(keep)
    assert not keep.exists()


def running(pid):
    """Whether there is such a process, and it has not ended."""
    stat = Path("/proc", str(pid), "stat")
    return stat.exists() and ") Z " not in stat.read_text()


def test_a_scheduler_runs_the_sweep_or_does_not_answer_or_has_no_workers(whole, monkeypatch):
    import distributed

    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        with monkeypatch.context() as patch:
            patch.setattr(pools, "ANSWER_WITHIN", 0.5)
            with pytest.raises(ClusterError, match=r"had no workers within 0.5 s$"):
                run_points(Swing(), POINTS, scheduler=cluster.scheduler_address)
        cluster.scale(1)
        table = run_points(Swing(), POINTS, limits=LIMITS, scheduler=cluster.scheduler_address)
    assert table.tobytes() == whole.tobytes()
    monkeypatch.setattr(pools, "ANSWER_WITHIN", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as dumb:
        address = f"tcp://127.0.0.1:{dumb.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"^the scheduler {address} does not answer within 0.2 s$"):
            run_points(Swing(), POINTS, scheduler=address)
    for wrong in ("nonsense", "foo://127.0.0.1:1"):
        with pytest.raises(ClusterError, match=f"expected a scheduler as tcp://host:port, got '{wrong}'"):
            run_points(Swing(), POINTS, scheduler=wrong)


def test_wrong_use(monkeypatch):
    for limits, told in (
        ({"jerk": 1.0}, "unknown quantity 'jerk' in limits: known are joint_error, "),
        ({"joint_error": np.nan}, "limit on joint_error to be a number of at least 0, got nan"),
        ({"tool_error": 1.0}, "a limit of tool_error requires T_flange_tool"),
    ):
        with pytest.raises(VariationError, match=told):
            run_points(Swing(), POINTS, limits=limits)
    heavy = POINTS._replace(values=POINTS.values * [-1.0, 1.0] - [9.0, 0.0])
    with pytest.raises(ValueError, match="expected a payload mass of at least 0 kg"):
        run_points(Swing(), heavy)
    monkeypatch.setitem(sys.modules, "distributed", None)
    for settings, told in (
        ({"workers": 0}, "expected at least 1 worker, got 0"),
        ({"workers": 2, "scheduler": "tcp://127.0.0.1:1"}, "got both"),
        ({"scheduler": "tcp://127.0.0.1:1"}, r"pip install 'irb-twin\[cluster\]'"),
    ):
        with pytest.raises((ValueError, ClusterError), match=told):
            pool_for(**settings)
    assert columns(["payload", "duration", "draw"]) == ("payload", "set.duration", "set.draw")
    assert isinstance(pool_for(engine=True), Processes)
    assert isinstance(pool_for(), LocalThreads)


def test_ctrl_c_ends_threads_at_once(tmp_path):
    """The main thread only waits; `SIGINT` is sent to this process as a terminal does."""
    began = []

    def progress(*_):
        began.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_points(Slow(str(tmp_path)), POINTS, pool=LocalThreads(2), progress=progress)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert time.monotonic() - began[0] < 1.0


# Chunks of a sweep: every point once, and those of another sweep are refused.


def test_the_chunks_of_another_sweep_are_refused(tmp_path):
    keep = tmp_path / "kept"
    few = points(8)
    run_points(Swing(), few, keep=keep)
    with pytest.raises(TwinError, match=r"kept contains chunks of a sweep: resume it, or remove the folder$"):
        run_points(Swing(), few, keep=keep)
    for experiment, other, differing in (
        (Swing(), points(8, seed=2), "points"),
        (Swing(), few._replace(names=NAMES[::-1]), "quantities"),
        (Swing("elsewhere"), few, "experiment"),
    ):
        with pytest.raises(TwinError, match=rf"another sweep \(different: {differing}\)"):
            run_points(experiment, other, keep=keep, resume=True)
    store = ChunkStore(keep, json.loads((keep / "sweep.json").read_text()), resume=True)
    store.add(0, np.zeros(2, dtype=OUTCOME))
    assert [number for number, _ in store.finished(chunks(8, 1))] == [1, 2, 3, 4, 5, 6, 7]
    (keep / "sweep.json").write_text("{")
    with pytest.raises(TwinError, match="another sweep"):
        run_points(Swing(), few, keep=keep, resume=True)
    own = tmp_path / "mine"
    own.mkdir()
    (own / "precious").touch()
    with pytest.raises(TwinError, match="files other than a sweep's"):
        run_points(Swing(), few, keep=own, resume=True)
    remove_chunks(own)
    assert (own / "precious").exists()

    class Local(Swing):
        pass

    with pytest.raises(TwinError, match="cannot be stored, because its experiment cannot be pickled"):
        run_points(Local(), few, keep=tmp_path / "third")


def test_chunks_hold_every_point_once():
    for count, steps, engine in ((1, 10, False), (70, 100, False), (6000, 4000, False), (10**6, 10**4, True)):
        size = chunk_size(count, steps, engine=engine)
        parts = chunks(count, size)
        assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
        assert (parts[0].start, parts[-1].stop) == (0, count)
        assert max(part.stop - part.start for part in parts) <= 500
    sizes = {(6000, 4000): 188, (10**6, 10**4): 100, (10**6, 100): 500, (5, 10**8): 1}
    assert {key: chunk_size(*key) for key in sizes} == sizes
    assert [chunk_size(count, 10**4, engine=True) for count in (10**4, 10**6)] == [4, 100]
