"""`irb-twin cell`, `collide`, `reach`, and `--cell` of `run` and `rapid check`."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main

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


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cell.toml").write_text(CELL, encoding="utf-8")
    return tmp_path


def test_cell_lists_frames_and_pairs_and_draws(command):
    out = command(["cell", "cell.toml", "--picture", "cell.png"]).out
    assert "frame bench: origin 500.0, -200.0, 300.0 mm in the world" in out
    assert "tool - post" in out
    with open("cell.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"
    assert "has no pose 'nowhere'" in command(["cell", "cell.toml", "--pose", "nowhere"], 2).err


def test_run_checks_the_distance_with_tool_and_payload(folder, capsys, command):
    assert main([*SHORT, "--log", "run.npz", "--json", "run.json"]) == 0
    log = twin.Log.load("run.npz")
    assert np.allclose(log.T_flange_tool[:3, 3], [0, 0, 0.15])
    assert log.robot.payload.mass == pytest.approx(1.2)
    assert "margin less distance" in capsys.readouterr().out
    out = command(["collide", "run.npz", "--cell", "cell.toml", "--plot", "d.png", "--json", "d.json"]).out
    assert "proven between samples: nowhere below" in out
    assert "passes" in out
    (result,) = json.loads((folder / "d.json").read_text(encoding="utf-8"))
    assert result["outcome"] == "passes"
    assert result["proven"]
    assert result["bound_m"] <= result["distance_m"] + 1e-9
    assert (folder / "d.png").stat().st_size > 1000


def test_a_wall_before_the_arm_fails(folder, capsys):
    (folder / "cell.toml").write_text(CELL + WALL, encoding="utf-8")
    assert main([*SHORT, "--json", "run.json"]) == 1
    (run,) = json.loads((folder / "run.json").read_text(encoding="utf-8"))["runs"]
    (check,) = (one for one in run["metrics"] if one["name"] == "margin less distance")
    assert check["value"] > 0
    assert "wall" in check["where"]
    out = capsys.readouterr().out.replace("\n", " ")
    assert "--controller computed_torque --duration 0.3 --cell cell.toml" in out


def test_unverified_shapes_are_not_judged_and_a_log_with_another_tool_is_refused(folder, command):
    (folder / "post.toml").write_text("[objects.post]\nbox = [0.1, 0.1, 1]\nat = [2.5, 0, 0.5]\n")
    command(["run", "gravity_hold", "--robot", "irb1400", "--duration", "0.05", "--log", "a.npz"])
    out = command(["collide", "a.npz", "--cell", "post.toml"]).out
    assert "not judged" in out
    assert "the shapes of irb1400 are unverified" in out
    said = "was made with a tool at [0, 0, 0] m, cell.toml has tool.tcp at [0, 0, 0.15] m"
    assert said in command(["collide", "a.npz", "--cell", "cell.toml"], 2).err


def test_rapid_check_names_the_line_that_comes_too_near(folder, command):
    text = """MODULE M
        PROC main()
        MoveAbsJ [[0,0,0,0,60,0],[9E9,9E9,9E9,9E9,9E9,9E9]], vmax, fine, tool0;
        MoveAbsJ [[90,0,0,0,60,0],[9E9,9E9,9E9,9E9,9E9,9E9]], vmax, fine, tool0;
        ENDPROC
        ENDMODULE"""
    (folder / "m.mod").write_text(text, encoding="utf-8")
    words = ["rapid", "check", "m.mod", "--cell", "cell.toml", "--junit", "m.xml", "--json", "m.json"]
    out = command(words, 1).out
    assert "nearest" in out.splitlines()[2]
    assert "FAULT m.mod, line 4: MoveAbsJ comes too near: " in out
    assert any(case.find("failure") is not None for case in ET.parse("m.xml").iter("testcase"))
    moves = json.loads((folder / "m.json").read_text(encoding="utf-8"))["moves"]
    assert moves[1]["nearest"]["distance_m"] < 0.02
    (folder / "cell.toml").write_text("margin = 0.02", encoding="utf-8")
    assert main(words) == 0


def test_reach_prints_and_draws(command):
    words = ["--plane", "bench", "--step", "0.4", "--picture", "r.png", "--tool-down"]
    out = command(["reach", "--cell", "cell.toml", *words]).out
    assert "wrist centre of irb140: 810.0 mm in front of axis 1, 670.0 mm behind it, 1092.0 mm high" in out
    assert "of 9 poses can be reached" in out
