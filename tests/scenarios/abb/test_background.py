"""Commands for a running virtual controller: from Python, as lines of text, and at the terminal."""

import socket
import sys

import numpy as np
import pytest
import requests
from requests.auth import HTTPDigestAuth
from scipy.spatial.transform import Rotation

from scenarios.abb.background import WORDS, Commands, serving
from scenarios.shell.command_line import main
from tests.support.web_services import USER
from twin.base.errors import RapidError, TwinError
from twin.physics.kinematics.forward import forward_kinematics

pytestmark = pytest.mark.slow("serves stations")

STATION = """
robot = "irb140"
[tasks.T_ROB1]
modules = ["cell.mod"]
[tasks.T_SERVER]
kind = "SEMISTATIC"
modules = ["server.mod"]
[signals]
di_part = { type = "DI" }
[ports]
1025 = 0
"""
CELL = """MODULE M
PERS num parts := 0;
CONST jointtarget a := [[12,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST jointtarget b := [[-5,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
VAR num key;
PROC main()
WaitDI di_part, 1;
MoveAbsJ a, v300, fine, tool0;
TPReadFK key, "Is it good?", "Yes", "No", stEmpty, stEmpty, stEmpty;
parts := parts + key;
MoveAbsJ b, v300, fine, tool0;
WaitDI di_part, 0;
ENDPROC
PROC service()
parts := 100;
Stop;
ENDPROC
ENDMODULE
"""
SERVER = """MODULE M
VAR socketdev server;
VAR socketdev client;
PROC main()
SocketCreate server; SocketBind server, "192.168.125.1", 1025; SocketListen server;
SocketAccept server, client \\Time:=WAIT_MAX; SocketSend client \\Str:="here";
SocketClose client; SocketClose server;
ENDPROC
ENDMODULE
"""


@pytest.fixture
def station(tmp_path):
    for name, text in (("station.toml", STATION), ("cell.mod", CELL), ("server.mod", SERVER)):
        (tmp_path / name).write_text(text)
    return tmp_path / "station.toml"


def test_a_fixture_commands_the_controller_and_reads_its_log(station):
    said = []
    with serving(station) as controller:
        commands = Commands(controller, lambda: said.append("quit"))
        controller.wait_until(lambda: controller.ports)
        with socket.create_connection(("127.0.0.1", controller.ports[1025]), timeout=5.0) as client:
            assert client.recv(10) == b"here"
        controller.signals["di_part"] = 1
        controller.wait_until(lambda: not controller.controller.unit.motion.rests)
        assert commands.run("stop") == "stopped"
        assert commands.run("status").startswith(
            "the execution is stopped, speed 100 %, the arm rests; T_ROB1"
        )
        assert commands.run("speed 80%") == "speed 80 %"
        assert commands.run("start") == "started"
        controller.wait_until(lambda: controller.controller.execution.questions)
        assert "T_ROB1 asks: Is it good?" in commands.run("status")
        assert any("TPReadFK asks: Is it good? (Yes, No)" in line.sentence for line in controller.lines)
        assert commands.run("answer perhaps") == ""
        controller.wait_until(lambda: "expected a number from the operator" in controller.lines[-2].sentence)
        controller.wait_until(lambda: controller.controller.execution.questions)
        controller.answer("no")
        controller.wait_until(lambda: controller.value("T_ROB1", "parts") == 2.0)
        assert "moves while the execution is stopped" in commands.run("main")
        controller.stop()
        assert "there is no procedure nothing to begin with" in commands.run("main nothing")
        assert commands.run("main service") == "the program pointer is at service"
        controller.start()
        controller.wait_until(lambda: not controller.controller.execution.running)
        assert controller.value("T_ROB1", "parts") == 100.0
        assert commands.run("set di_part 0") == "di_part = 0"
        for line, answer in (
            ("answer 1", "no task asks the operator"), ("speed 200", "a speed of 200 %, expected 0 to 100"),
            ("speed", "expected speed PERCENT"), ("set di1", "expected set SIGNAL VALUE"),
            ("set di1 x", "expected a number, got 'x'"), ("stat", "unknown command 'stat'"),
            ("speed 0", "speed 0 %"),
        ):  # fmt: skip
            assert commands.run(line).startswith(answer), line
        assert all(word in commands.run("help") for word in (*WORDS, "quit"))
        assert commands.run("quit") == "ending"
        with pytest.raises(TwinError, match=r"waited 0\.02 s in vain; the last lines: "):
            controller.wait_until(lambda: False, timeout=0.02)
        with pytest.raises(RapidError, match="has no data nothing"):
            controller.value("T_ROB1", "nothing")
        with pytest.raises(TwinError, match="the session has not ended"):
            assert controller.log
    assert said == ["quit"]
    assert controller.served.is_good
    assert np.degrees(controller.log.q[:, 0]).max() == pytest.approx(12.0, abs=1e-3)


def test_an_invalid_module_and_a_fault_are_reported(station):
    (station.parent / "cell.mod").write_text(CELL.replace("WaitDI di_part, 1;", "key := 1 / 0;"))
    with serving(station) as controller:
        controller.wait_until(lambda: controller.faults)
        assert "1 / 0" in controller.faults["T_ROB1"]
    assert not controller.served.is_good
    (station.parent / "cell.mod").write_text("MODULE M\nPROC main()\nIF\nENDPROC\nENDMODULE")
    with pytest.raises(RapidError, match=r"cell\.mod, line 5"), serving(station):
        pass


def test_commands_come_from_the_standard_input_and_answers_from_an_option(station, monkeypatch, capsys):
    text = CELL.replace("parts + key;", "parts + key; TPWrite ValToStr(key);")
    (station.parent / "cell.mod").write_text(text)
    (station.parent / "lines.txt").write_text("set di_part 1\nstatus\n")
    words = ["--commands", "--operator", "good=yes", "--duration", "1"]
    with open(station.parent / "lines.txt") as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        assert main(["abb", "serve", str(station), *words]) == 0
    out = capsys.readouterr().out
    for text in ("di_part = 1\n", "the execution runs, speed 100 %", "TPWrite: 1\n"):
        assert text in out
    assert "asks" not in out


@pytest.mark.filterwarnings("ignore:Unverified HTTPS")
@pytest.mark.parametrize("omnicore", [False, True])
def test_a_client_of_web_services_reaches_the_controller_in_the_background(station, omnicore):
    with serving(station, rws=0, omnicore=omnicore) as running:
        running.set_mode("MANR")
        client = requests.Session()
        client.auth, client.verify = (USER if omnicore else HTTPDigestAuth(*USER)), False
        client.trust_env = False
        accepted = "application/xhtml+xml;v=2.0" if omnicore else "application/xhtml+xml"
        answer = client.get(f"{running.url}/rw/panel/opmode", headers={"Accept": accepted})
        assert answer.status_code == 200
        assert "MANR" in answer.text


def test_typed_commands_jog_and_modify_a_target(station):
    with serving(station) as running:
        say = Commands(running, lambda: None).run
        assert say("jog joint_1 5") == "the arm is jogged in manual mode with motors on"
        assert say("mode manr") == "mode MANR"
        assert say("jog elbow 5").startswith("there is no axis elbow: known are joint_1")
        for huge in ("nan", "1e308"):
            assert say(f"jog x {huge}").endswith(", expected at most 10000 deg or mm")
        assert say("set di1 nan") == "di1 = nan, expected a finite number"
        assert say("jog joint_1 5") == ""
        running.wait_until(lambda: running.controller.rests)
        assert (
            say("modify a") == "CONST jointtarget a := [[5,0,0,0,0,0],[9E+09,9E+09,9E+09,9E+09,9E+09,9E+09]];"
        )
        assert running.value("T_ROB1", "a")["robax"]["rax_1"] == pytest.approx(5.0, abs=1e-9)
        assert say("jog joint_5 20") == ""  # out of the singularity of the wrist
        running.wait_until(lambda: running.controller.rests)
        before = forward_kinematics(running.controller.robot, running.controller.arm.q)
        assert say("jog rz 2") == ""
        running.wait_until(lambda: running.controller.rests)
        after = forward_kinematics(running.controller.robot, running.controller.arm.q)
        turn = Rotation.from_matrix(after[:3, :3] @ before[:3, :3].T).as_rotvec(degrees=True)
        assert turn == pytest.approx([0.0, 0.0, 2.0], abs=1e-6)
        assert after[:3, 3] == pytest.approx(before[:3, 3], abs=1e-9)
        assert say("modify nothing").startswith(
            "there is no robtarget or jointtarget nothing: known are a, b"
        )
        assert say("mode fast") == "the mode FAST, expected AUTO, MANR, MANF"
        assert say("motors off") == "motors off"
        assert say("motors maybe") == "expected motors on or motors off, got 'maybe'"
        assert say("step") == "the execution starts while the motors are on"
