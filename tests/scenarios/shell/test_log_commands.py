"""`irb-twin plot` and `irb-twin export` as a user meets them: what is written, what is printed, bad input."""

import csv

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support.example_logs import N, irb140_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two logs, not to be altered."""
    folder = tmp_path_factory.mktemp("logs")
    irb140_log("pd").save(folder / "a.npz")
    irb140_log("pid", error=0.02).save(folder / "b.npz")
    return folder


@pytest.fixture
def logs(folder, tmp_path, monkeypatch):
    """Their paths, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.npz", "b.npz"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return ["a.npz", "b.npz"]


def written(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".npz")


def test_a_picture_of_each_kind_beside_a_single_log_or_where_it_is_wanted(logs, tmp_path):
    joint = ["--joint", "joint_1"]
    assert main(["plot", "a.npz", "--what", "error", "speed", "error", *joint]) == 0
    assert main(["plot", *logs, "--what", "error", "speed", *joint, "--picture", "b.svg"]) == 0
    assert main(["plot", *logs, *joint, "--picture", "c.pdf"]) == 0
    assert written(tmp_path) == ["a-error.png", "a-speed.png", "b-error.svg", "b-speed.svg", "c.pdf"]


def test_logs_or_a_part_of_one_are_drawn_and_their_figures_printed(logs, tmp_path, command):
    printed = command(["plot", *logs, "--what", "torque", "--joint", "joint_2"])
    assert printed.err == ""
    assert str(twin.compare(logs)) in printed.out
    assert written(tmp_path) == ["comparison-torque.png"]
    printed = command(["plot", "a.npz", "--from", "0.51", "--to", "0.53", "--joint", "joint_1"]).out
    assert "time 0.51 to 0.53 s" in printed
    assert "4 of 11, first at 0.51 s" in printed  # not 3: the cut samples are 0.506 to 0.516 s


def test_logs_are_exported_beside_themselves_or_under_a_name(logs, tmp_path, capsys):
    assert main(["export", *logs, "--csv", "--parquet", "all.parquet"]) == 0
    assert written(tmp_path) == ["a.csv", "all-a.parquet", "all-b.parquet", "b.csv"]
    assert capsys.readouterr().out.count("wrote ") == 4
    part = ["--every", "5", "--from", "0.51"]
    assert main(["export", "a.npz", "--csv", "c.csv", *part, "--decimal-comma"]) == 0
    with open("c.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter=";")
    log = irb140_log()
    column = header.index("joint_3_q_rad")
    values = np.array([float(row[column].replace(",", ".")) for row in rows])
    np.testing.assert_array_equal(values, log.q[5::5, 2])
    assert len(rows) == (N - 5) // 5


@pytest.mark.parametrize("command", ["plot", "export --csv"])
def test_what_is_no_log_is_one_sentence(command, logs, tmp_path, capsys):
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "short.npz").write_bytes(whole[: len(whole) // 2])
    with np.load("a.npz") as archive:
        content = dict(archive)
    for name, robot in (("robot", "irb999"), ("file", "/nowhere/mine.urdf")):
        np.savez(f"{name}.npz", **(content | {"robot": np.array(robot)}))
    command, *options = command.split()
    for name, told in {
        "nowhere.npz": "cannot read the log nowhere.npz: No such file",
        "short.npz": "short.npz is not a log of this program",
        "robot.npz": "the robot of the log robot.npz: unknown robot 'irb999'",
        "file.npz": "the robot of the log file.npz: ",
    }.items():
        assert main([command, "a.npz", name, *options]) == 2
        assert told in capsys.readouterr().err
    assert written(tmp_path) == []
