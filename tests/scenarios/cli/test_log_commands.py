"""`irb-twin plot` and `irb-twin export` as a user meets them: what is written, what is printed, bad input."""

import csv
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import twin
from scenarios.cli.command_line import main
from tests.support.example_logs import N, irb140_log
from twin.rapid import Limits, check, interpret, read
from twin.rapid.paths import export, stop_times


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


def test_logs_are_drawn_and_their_figures_printed(logs, tmp_path, command):
    printed = command(["plot", *logs, "--what", "torque", "--joint", "joint_2"])
    assert printed.err == ""
    assert "wrote comparison-torque.png" in printed.out
    assert str(twin.compare(logs)) in printed.out
    assert written(tmp_path) == ["comparison-torque.png"]


def test_a_picture_of_each_kind_beside_a_single_log_or_where_it_is_wanted(logs, tmp_path):
    joint = ["--joint", "joint_1"]
    assert main(["plot", "a.npz", "--what", "error", "speed", "error", *joint]) == 0
    assert main(["plot", *logs, "--what", "error", "speed", *joint, "--picture", "b.svg"]) == 0
    assert main(["plot", *logs, *joint, "--picture", "c.pdf"]) == 0
    assert written(tmp_path) == ["a-error.png", "a-speed.png", "b-error.svg", "b-speed.svg", "c.pdf"]


def test_a_part_of_the_run_is_drawn_and_counted(logs, command):
    printed = command(["plot", "a.npz", "--from", "0.51", "--to", "0.53", "--joint", "joint_1"]).out
    assert "time 0.51 to 0.53 s" in printed
    assert "3 of 11, first at 0.51" not in printed  # the cut samples are 0.506 to 0.516 s
    assert "4 of 11, first at 0.51 s" in printed


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


def test_a_file_that_cannot_be_written_is_status_1_and_the_others_are_there(
    logs, tmp_path, monkeypatch, capsys
):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("twin.logs.columns.write_parquet", fail)
    assert main(["export", "a.npz", "--csv", "--parquet"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "wrote a.csv\n"
    assert "cannot write a.parquet: " in printed.err
    assert written(tmp_path) == ["a.csv"]


# `irb-twin cell`, `collide`, `reach`, and `--cell` of `run` and `rapid check`.


CELL = """margin = 0.02
[frames.bench]
at = [0.5, -0.2, 0.3]
[tool]
tcp = { at = [0, 0, 0.15] }
mass = 1.2
com = [0, 0, 0.06]
shapes = [{ cylinder = 0.03, from = [0, 0, 0], to = [0, 0, 0.12] }]
[objects.post]
cylinder = 0.05
from = [0, 0.6, 0]
to = [0, 0.6, 1.5]
[[pairs]]
between = ["tool", "link_4"]
margin = 0.0
"""
WALL = "[objects.wall]\nbox = [0.05, 2, 2]\nat = [0.25, 0, 0.5]\n"
SHORT = ["run", "joint_tracking", "--duration", "0.3", "--cell", "cell.toml"]


@pytest.fixture
def cell_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cell.toml").write_text(CELL, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("cell_folder")
def test_cell_lists_frames_and_pairs_and_draws(command):
    out = command(["cell", "cell.toml", "--picture", "cell.png"]).out
    assert "frame bench: origin 500.0, -200.0, 300.0 mm in the world" in out
    assert "tool - post" in out
    with open("cell.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"
    assert "has no pose 'nowhere'" in command(["cell", "cell.toml", "--pose", "nowhere"], 2).err


def test_run_checks_the_distance_with_tool_and_payload(cell_folder, capsys, command):
    assert main([*SHORT, "--log", "run.npz", "--json", "run.json"]) == 0
    log = twin.Log.load("run.npz")
    assert np.allclose(log.T_flange_tool[:3, 3], [0, 0, 0.15])
    assert log.robot.payload.mass == pytest.approx(1.2)
    assert "margin less distance" in capsys.readouterr().out
    out = command(["collide", "run.npz", "--cell", "cell.toml", "--plot", "d.png", "--json", "d.json"]).out
    assert "proven between samples: nowhere below" in out
    assert "passes" in out
    (result,) = json.loads((cell_folder / "d.json").read_text(encoding="utf-8"))
    assert result["outcome"] == "passes"
    assert result["proven"]
    assert result["bound_m"] <= result["distance_m"] + 1e-9
    assert (cell_folder / "d.png").stat().st_size > 1000


def test_a_wall_before_the_arm_fails(cell_folder, capsys):
    (cell_folder / "cell.toml").write_text(CELL + WALL, encoding="utf-8")
    assert main([*SHORT, "--json", "run.json"]) == 1
    (run,) = json.loads((cell_folder / "run.json").read_text(encoding="utf-8"))["runs"]
    (check,) = (one for one in run["metrics"] if one["name"] == "margin less distance")
    assert check["value"] > 0
    assert "wall" in check["where"]
    out = capsys.readouterr().out.replace("\n", " ")
    assert "--controller computed_torque --duration 0.3 --cell cell.toml" in out


def test_unverified_shapes_are_not_judged(cell_folder, command):
    (cell_folder / "cell.toml").write_text(
        "[objects.post]\nbox = [0.1, 0.1, 1]\nat = [2.5, 0, 0.5]\n", encoding="utf-8"
    )
    command(["run", "gravity_hold", "--robot", "irb1400", "--duration", "0.05", "--log", "a.npz"])
    out = command(["collide", "a.npz", "--cell", "cell.toml"]).out
    assert "not judged" in out
    assert "the shapes of irb1400 are unverified" in out


@pytest.mark.usefixtures("cell_folder")
def test_a_log_with_another_tool_is_refused(capsys):
    assert main(["run", "gravity_hold", "--duration", "0.05", "--log", "a.npz"]) == 0
    assert main(["collide", "a.npz", "--cell", "cell.toml"]) == 2
    said = "was made with a tool at [0, 0, 0] m, cell.toml has tool.tcp at [0, 0, 0.15] m"
    assert said in capsys.readouterr().err


def test_rapid_check_names_the_line_that_comes_too_near(cell_folder, command):
    text = """MODULE M
        PROC main()
        MoveAbsJ [[0,0,0,0,60,0],[9E9,9E9,9E9,9E9,9E9,9E9]], vmax, fine, tool0;
        MoveAbsJ [[90,0,0,0,60,0],[9E9,9E9,9E9,9E9,9E9,9E9]], vmax, fine, tool0;
        ENDPROC
        ENDMODULE"""
    (cell_folder / "m.mod").write_text(text, encoding="utf-8")
    words = ["rapid", "check", "m.mod", "--cell", "cell.toml", "--junit", "m.xml", "--json", "m.json"]
    out = command(words, 1).out
    assert "nearest" in out.splitlines()[2]
    assert "FAULT m.mod, line 4: MoveAbsJ comes too near: " in out
    assert any(case.find("failure") is not None for case in ET.parse("m.xml").iter("testcase"))
    moves = json.loads((cell_folder / "m.json").read_text(encoding="utf-8"))["moves"]
    assert moves[1]["nearest"]["distance_m"] < 0.02
    (cell_folder / "cell.toml").write_text("margin = 0.02", encoding="utf-8")
    assert main(words) == 0


@pytest.mark.usefixtures("cell_folder")
def test_reach_prints_and_draws(command):
    words = ["--plane", "bench", "--step", "0.2", "--picture", "r.png", "--tool-down"]
    out = command(["reach", "--cell", "cell.toml", *words]).out
    assert "wrist centre of irb140: 810.0 mm in front of axis 1, 670.0 mm behind it, 1092.0 mm high" in out
    assert "of 36 poses can be reached" in out


# `irb-twin rapid` prints figures of every move, writes them, and ends with the status of the verdict.


EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"
GOOD = f"""MODULE weld
PROC main()
    MoveAbsJ [[0,20,-20,0,60,0],{EXT}], v500, fine, tool0;
    SetDO torch, 1;
    ConfL \\Off;
    MoveL Offs(CRobT(), 0, 100, 0), v200, z10, tool0;
    MoveL Offs(CRobT(), 0, 0, 50), v200, fine, tool0;
ENDPROC
ENDMODULE
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weld.mod").write_text(GOOD, encoding="utf-8")
    return tmp_path


def test_check_prints_moves_and_writes_files(program, command):
    files = ["--json", "r.json", "--junit", "r.xml", "--markdown", "r.md"]
    lines = command(["rapid", "check", "weld.mod", *files]).out.splitlines()
    assert lines[0] == "weld.mod: main, 3 moves, irb140, rigid drives"
    assert [line.split()[:2] for line in lines[3:6]] == [["3", "MoveAbsJ"], ["6", "MoveL"], ["7", "MoveL"]]
    assert "  line 4: SetDO torch (logged)" in lines
    assert "  line 7: CRobT behind a fly-by point: taken as if the arm had reached it" in lines
    assert "no fault" in lines
    result = json.loads((program / "r.json").read_text(encoding="utf-8"))
    assert result["passes"]
    assert result["fault"] is None
    assert result["time_s"]["by_speed"] <= result["time_s"]["bound"] <= result["time_s"]["estimate"] + 1e-9
    assert [move["line"] for move in result["moves"]] == [3, 6, 7]
    root = ET.parse(program / "r.xml").getroot()
    assert (root.attrib["tests"], root.attrib["failures"]) == ("4", "0")
    assert "| 6 | MoveL | 100 | 200 | z10 |" in (program / "r.md").read_text(encoding="utf-8")


def test_a_fault_has_its_line_and_status_1(program, command):
    bad = GOOD.replace("0, 100, 0", "900, 0, 0")
    (program / "weld.mod").write_text(bad, encoding="utf-8")
    out = command(["rapid", "check", "weld.mod", "--junit", "r.xml"], 1).out
    assert "weld.mod: main, 1 moves" in out
    assert "FAULT weld.mod, line 6: MoveL leaves the reach after" in out
    assert ET.parse(program / "r.xml").getroot().attrib["failures"] == "1"


def test_a_fault_of_the_language_has_status_1(program, capsys):
    (program / "weld.mod").write_text("MODULE weld\nPROC main(\nENDMODULE", encoding="utf-8")
    assert main(["rapid", "check", "weld.mod"]) == 1
    assert "FAULT weld.mod, line 3: the end of the file is not RAPID here" in capsys.readouterr().err


def test_a_folder_is_a_task(program, command):
    task = program / "TASK1"
    move = f"MoveAbsJ [[0,0,0,0,30,0],{EXT}],v100,fine,tool0;"
    for file, name, body in (("PROGMOD/a.mod", "main", "go;"), ("SYSMOD/b.sys", "go", move)):
        text = f"MODULE {file[-5]}\nPROC {name}()\n{body}\nENDPROC\nENDMODULE"
        (task / file).parent.mkdir(parents=True)
        (task / file).write_text(text, encoding="utf-8")
    assert "TASK1: main, 1 moves" in command(["rapid", "check", "TASK1"]).out


def test_export_prints_a_module_that_follows_the_log(program, command):
    command(["run", "joint_tracking", "--duration", "0.2", "--log", "run.npz"])
    words = ["--every", "50", "--speed", "v200", "--zone", "z5", "--name", "Again"]
    text = command(["rapid", "export", "run.npz", *words]).out
    (program / "again.mod").write_text(text, encoding="utf-8")
    log = twin.Log.load("run.npz")
    found = interpret(read("again.mod"), log.robot)
    ends = np.array([segment.q[-1] for segment in found.segments])
    assert np.allclose(ends, log.q[[0, 50, 100, 150, 200]], atol=1e-11)
    assert "MODULE Again" in text
    assert text.count(",v200,z5,") == 4


def test_fit_prints_both_numbers(program, command):
    robot = twin.load("irb140").with_drives("rigid")
    q = np.random.default_rng(4).uniform(-0.5, 0.5, (5, 6))
    (program / "stops.mod").write_text(export(robot, q, speed="v7000", zone="fine"), encoding="utf-8")
    times = stop_times(check(interpret(read("stops.mod"), robot), robot, Limits(share=0.7))[0], 0.1)
    rows = [f"{line},{time:.6f}" for line, time in times.items()]
    (program / "stops.csv").write_text("\n".join(["line,time_s", *rows]), encoding="utf-8")
    words = command(["rapid", "fit", "stops.mod", "--times", "stops.csv"]).out.split()
    assert float(words[1].rstrip(",")) == pytest.approx(0.7, abs=0.01)
    assert float(words[3]) == pytest.approx(0.1, abs=0.01)
