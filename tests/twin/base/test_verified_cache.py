"""Files are used only as they were written."""

import hashlib
import os
import time
from contextlib import nullcontext

import pytest

from twin.base.jit import ABANDONED_AFTER, LIST, VerifiedCache, write

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


def test_entries_of_other_processes_are_preserved_and_what_is_damaged_in_use_is_not_listed(folder):
    own, other = VerifiedCache(folder), VerifiedCache(folder)
    (folder / "a.nbc").write_bytes(b"fir#t")
    write(folder / "b.nbi", b"grown")
    write(folder / "c.code", b"third")
    other.add_new()
    write(folder / "d.code", b"fourth")
    own.add_new()
    assert VerifiedCache(folder).read("b.nbi") == b"grown"
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
