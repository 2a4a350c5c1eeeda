"""A station with a gripper: its file, its events, and its page."""

import json

import numpy as np
import pytest

import twin
from scenarios.abb.background import serving
from scenarios.abb.pendant import Pendant
from scenarios.abb.pendant_page import Scene
from scenarios.abb.station import Station
from twin.base.errors import WrongUse
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.rotations.rotations import matrix_from_quaternion
from twin.studies.views import browser

pytestmark = pytest.mark.slow("serves a station")

ROBOT = twin.load("irb140")
B = np.radians([20.0, 10, -10, 15, 40, -30])
MODULE = """MODULE Pick
PERS tooldata grip:=[TRUE,[[0,0,100],[1,0,0,0]],[0.5,[0,0,50],[1,0,0,0],0,0,0]];
PERS loaddata part:=[2,[0,0,30],[1,0,0,0],0,0,0];
CONST jointtarget a:=[[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST jointtarget b:=[[20,10,-10,15,40,-30],[9E9,9E9,9E9,9E9,9E9,9E9]];
PROC main()
MoveAbsJ a,v1000,fine,grip;
MoveAbsJ b,v1000,fine,grip;
SetDO doGrip,1; GripLoad part;
MoveAbsJ a,v1000,fine,grip;
WaitTime 0.5;
ENDPROC
ENDMODULE
"""
STATION = """cell = "cell.toml"
start = "manual"
cycle = "once"
[tasks.T_ROB1]
modules = ["pick.mod"]
[signals]
doGrip = { type = "DO" }
[gripper]
signal = "doGrip"
within = 0.02
"""
CELL = """[tool]
shapes = [{{ cylinder = 0.03, from = [0, 0, 0], to = [0, 0, 0.08] }}]
[objects.piece]
sphere = 0.02
at = {at}
{mass}
[objects.far]
box = [0.2, 0.3, 0.4]
at = [-0.8, -0.5, 0.2]
[[pairs]]
between = ["tool", "piece"]
may_touch = true
"""


@pytest.fixture
def folder(tmp_path):
    T = forward_kinematics(ROBOT, B)
    cell = CELL.format(at=(T[:3, 3] + 0.13 * T[:3, 2]).tolist(), mass="mass = 2.0")
    for name, text in (("station.toml", STATION), ("cell.toml", cell), ("pick.mod", MODULE)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_of_a_station_shows_the_part_in_the_hand(folder):
    with serving(folder / "station.toml") as running:
        controller, clearance = running.controller, running.controller.supervision.clearance
        pendant = Pendant(running)
        try:
            shown = pendant._shown()
            server = browser.local_server(0)
            scene = Scene(server, shown)
            running.start()
            running.wait_until(lambda: controller.unit.gripper.held == "piece", timeout=60.0)
            for _ in range(2):
                seen = pendant._look()
                scene.show(seen.q, seen)
                expected = {name: vertices for vertices, _, name in clearance.meshes(seen.q)}
                assert len(shown.bodies) == len(expected) == 3
                for handle, (vertices, _, name) in zip(scene._moving[-3:], shown.bodies, strict=True):
                    R = matrix_from_quaternion(handle.wxyz)
                    np.testing.assert_allclose(
                        vertices @ R.T + handle.position, expected[name], atol=1e-6, err_msg=name
                    )
                running.wait_until(lambda: controller.execution.has_ended, timeout=60.0)
            browser.stop(server)
        finally:
            pendant.close()
    assert running.served.is_good
    assert [one.sentence for one in running.lines if "gripper" in one.sentence] == ["gripper: holds piece"]
    assert running.log.payloads.loads[-1, 0] == pytest.approx(2.5)


def read(file):
    station = Station.read(file)
    return station.cell_signals({}), station.surroundings(None)


def test_a_gripper_needs_a_signal_and_a_part(folder):
    for before, after, sentence in (
        (
            'signal = "doGrip"',
            'signal = "doGripp"',
            "gripper.signal: the station has no signal doGripp, did you",
        ),
        ("within = 0.02", "within = 0", "gripper.within: expected a number above 0"),
        ("within", "width", r"unknown key 'width' in table \[gripper\]: known are signal, within"),
        ('cell = "cell.toml"', "", "gripper: the cell has no part, which is an object with a mass"),
        (STATION, STATION.partition("\n")[2].partition("signal =")[0], "gripper: the cell has no part"),
    ):
        (folder / "station.toml").write_text(STATION.replace(before, after), encoding="utf-8")
        with pytest.raises(WrongUse, match=sentence):
            read(folder / "station.toml")


def test_a_part_of_a_station_has_no_surface_which_would_stay_where_the_part_was(folder, command):
    text = (folder / "cell.toml").read_text(encoding="utf-8")
    (folder / "cell.toml").write_text(
        text.replace("mass = 2.0", "mass = 2.0\nstiffness = 2e3"), encoding="utf-8"
    )
    assert (
        "objects.piece: expected a mass, of a part"
        in command(["abb", "serve", str(folder / "station.toml"), "--duration", "0.1"], 2).err
    )


def test_rapid_check_judges_the_part_from_the_move_behind_gripload_on(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    words = ["rapid", "check", "pick.mod", "--cell", "cell.toml", "--json", "r.json"]
    command(words)
    moves = json.loads((folder / "r.json").read_text(encoding="utf-8"))["moves"]
    assert "piece" not in moves[2]["nearest"]["pair"]
    at = (forward_kinematics(ROBOT, np.radians([10.0, 5, -5, 7.5, 35, -15])) @ [0, 0, 0.185, 1])[:3].tolist()
    near = f"[objects.wall]\nsphere = 0.04\nat = {at}\n"
    text = (folder / "cell.toml").read_text(encoding="utf-8")
    (folder / "cell.toml").write_text(text + near, encoding="utf-8")
    assert "FAULT pick.mod, line 10: MoveAbsJ comes too near: piece - wall" in command(words, 1).out
    (folder / "pick.mod").write_text(MODULE.replace(" GripLoad part;", ""), encoding="utf-8")
    out = command(words).out
    assert "remark: no GripLoad with a load: the parts of the cell stay, held ones are not judged" in out
    (folder / "pick.mod").write_text(MODULE.replace("[[20,10", "[[60,10"), encoding="utf-8")
    out = command(words).out
    assert "remark: line 10: gripper: no part within 50 mm, piece at " in out
    assert ": what the load stands for is not judged" in out


def test_a_held_part_is_not_judged_in_a_run(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    command(["run", "gravity_hold", "--duration", "0.05", "--cell", "cell.toml", "--log", "run.npz"])
    sentence = "parts lie where the file places them: a held one is not judged"
    assert sentence in command(["collide", "run.npz", "--cell", "cell.toml"]).out
    text = (folder / "cell.toml").read_text(encoding="utf-8")
    (folder / "cell.toml").write_text(text.replace("mass = 2.0", ""), encoding="utf-8")
    assert sentence not in command(["collide", "run.npz", "--cell", "cell.toml"]).out
