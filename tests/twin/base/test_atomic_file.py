"""Files appear whole or not at all, and one that cannot be written costs nothing else."""

import json
import os
import stat

import pytest

from scenarios.shell.command_line import main
from tests.support.full_disk import disk_full_after
from twin.base.atomic_file import atomic_write


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("good")
    return path


def test_the_old_file_stands_until_the_new_one_is_complete(file):
    with disk_full_after(1000), pytest.raises(OSError, match=r"a\.txt'$"), atomic_write(file) as draft:
        draft.write_text("x" * 2000)
    assert file.read_text() == "good"
    assert list(file.parent.iterdir()) == [file]
    with atomic_write(file) as draft:
        draft.write_text("new")
        assert file.read_text() == "good"
    assert file.read_text() == "new"
    assert list(file.parent.iterdir()) == [file]


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(file):
    mask = os.umask(0o027)
    try:
        with atomic_write(file.with_name("new")) as draft:
            draft.write_text("new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(file.with_name("new").stat().st_mode) == 0o640
    file.chmod(0o604)
    with atomic_write(file) as draft:
        draft.write_text("new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o604


def test_a_link_is_followed(file, tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link"
    link.symlink_to(file)
    with atomic_write(link) as draft:
        draft.write_text("new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    with atomic_write("/dev/null") as draft:
        draft.write_text("new")


def test_a_log_that_does_not_fit_leaves_the_rest_and_is_named(tmp_path, capsys):
    log, picture, results = (tmp_path / name for name in ("a.npz", "a.png", "a.json"))
    words = ["run", "gravity_hold", "--duration", "0.5", "--log", str(log), "--json", str(results)]
    assert main(words) == 0
    before = log.read_bytes()
    results.unlink()
    capsys.readouterr()
    fits = 80_000  # bytes: the results, and what PyBullet reads
    assert len(before) > fits
    with disk_full_after(fits):
        assert main([*words, "--picture", str(picture)]) == 1
    printed = capsys.readouterr()
    told = [f"irb-twin: cannot write {path}: File too large" for path in (log, picture)]
    assert printed.err.splitlines() == told
    assert f"wrote {results}" in printed.out
    assert json.loads(results.read_text())["passes"] is True
    assert log.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.npz"}
