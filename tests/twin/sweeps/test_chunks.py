"""Chunks of a sweep: every point once, and those of another sweep are refused."""

import pytest

from tests.support.sweep_experiments import NAMES, Swing, points
from twin.errors import TwinError
from twin.sweeps.running import chunk_size, chunks, remove_chunks, run_points


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
