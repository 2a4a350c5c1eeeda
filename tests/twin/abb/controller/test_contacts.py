"""Contacts of an arm that a program moves: external torques, MotionSup, and the way back."""

import re

import numpy as np
import pytest

import twin
from scenarios.abb.session import Serving
from scenarios.abb.station import Station
from scenarios.setup import Setup
from scenarios.shell.command_line import main
from tests.support.virtual_cell import source
from twin.abb.controller.arm import Supervision
from twin.abb.controller.events import ERROR

SWING = "MoveAbsJ b, v300, fine, tool0; MoveAbsJ c, v300, fine, tool0;"
DOWN = "1.0:1.3 0,0,-80"


@pytest.fixture
def pushed(cell):
    """Return a function that starts a program under a push, with thresholds of the supervision."""

    def start(body, push, thresholds=10.0, stops=True):
        supervision = Supervision(stops=stops, thresholds=[thresholds] * 6)
        return cell(T_ROB1=body, options={"supervision": supervision, "push": push})

    return start


def contacts(live):
    return [line for line in live.lines if line.sentence.startswith("motion supervision: joint_")]


def test_a_push_stops_the_arm_which_goes_back_a_little_on_its_path(pushed):
    live = pushed(SWING, DOWN)
    live.run(2.0)
    [(name, fault)] = live.controller.faults
    [line] = contacts(live)
    assert name == "T_ROB1"
    assert line.sentence == "motion supervision: joint_2: 14.1 N m of external torque, at most 10 N m"
    assert 1.0 < line.t < 1.01
    assert line.sentence in str(fault)
    events = [one.event for one in live.controller.execution.events if one.code == 50204]
    assert {(one.type, one.texts[-1]) for one in events} == {(ERROR, line.sentence)}
    for _ in range(120):
        live.controller.cycle()
    assert live.controller.rests
    log, first = live.log, round(1e3 * line.t)
    way = twin.forward_kinematics(log.robot, log.q_ref)[:, :3, 3]
    stopped = first + int(np.argmax(np.linalg.norm(way[first:] - way[first], axis=1)))
    assert stopped - first == pytest.approx(200, abs=5)  # the ramp
    back = np.linalg.norm(way[-1] - way[stopped])
    assert 3e-3 <= back < 4e-3
    passed = np.linalg.norm(way[:stopped] - way[-1], axis=1)
    assert passed[first:].min() < 1e-3  # on the path
    assert np.abs(log.qd_ref[-1]).max() == 0.0
    assert np.abs(log.qdd_ref[first:]).max() < 6.0
    assert live.controller.supervision.contacts == 1


def test_joints_that_stop_under_a_small_error_of_the_load_are_no_contact(pushed):
    """Their friction holds up to 43 N m then, for 2 N at the tool."""
    live = pushed(f"{SWING} WaitTime 0.2;", "0:20 0,0,-2", thresholds=1.5)
    live.run()
    assert live.controller.faults == []
    assert 0.5 < live.controller.supervision.largest.max() < 1.3


def test_a_push_stops_jogging_which_can_go_on(pushed):
    live = pushed(SWING, "0.2:0.3 0,0,-80")
    live.controller.stop()
    live.run(1.0, until=lambda: live.controller.rests)
    live.controller.set_mode("MANR")
    for angle, joint_1 in ((60.0, 7.3), (-3.0, 4.3)):
        live.controller.jog().move_joints(np.radians([angle, 0, 0, 0, 0, 0]))
        live.run(5.0, until=lambda: live.controller.rests)
        assert np.degrees(live.controller.arm.q[0]) == pytest.approx(joint_1, abs=0.2)
    assert len(contacts(live)) == 1
    assert not live.controller.execution.held
    assert live.controller.faults == []


@pytest.mark.parametrize("stop", ["StopMove; ", ""], ids=["at rest", "while it brakes"])
def test_an_error_handler_continues_on_the_path(pushed, stop):
    handled = f"""{SWING}
ERROR
IF ERRNO = ERR_COLL_STOP THEN TPWrite "met"; {stop}StartMove; RETRY; ENDIF"""
    live = pushed(handled, DOWN)
    live.run()
    assert live.controller.faults == []
    assert [text for text in live.texts if "supervision" not in text] == ["met"]
    assert np.degrees(live.controller.arm.q) == pytest.approx([-30, 20, -20, 15, 50, 30], abs=0.01)
    assert len(contacts(live)) == 1


def test_motion_sup_turns_it_off_and_tunes_it(pushed):
    """Three equal pushes: off, with a threshold of 300 % that none exceeds, and as it is by default."""
    tuned = r"""MotionSup \Off; MoveAbsJ b, v300, fine, tool0;
MotionSup \On\TuneValue:=300; MoveAbsJ c, v300, fine, tool0; MotionSup \On; MoveAbsJ a, v300, fine, tool0;"""
    live = pushed(tuned, "0.5:0.6 0,0,-80; 1.8:1.9 0,0,-80; 2.9:3.0 0,0,-80", 16.0, stops=False)
    live.run()
    [line] = contacts(live)
    assert 2.9 < line.t < 2.95
    assert line.sentence.endswith("at most 16 N m")
    assert live.controller.faults == []
    assert live.controller.supervision.largest[1] > 40.0
    live.controller.unit.level = 0.0
    live.controller.stop()
    live.controller.to_main()
    assert live.controller.unit.level == 100.0


@pytest.mark.parametrize("wrong", [r"\On\TuneValue:=301", r"\On\TuneValue:=0", ""])
def test_motion_sup_takes_1_to_300_percent(cell, wrong):
    live = cell(T_ROB1=f"MotionSup {wrong};")
    live.run(1.0)
    [(_, fault)] = live.controller.faults
    assert r"MotionSup: expected \On, perhaps with \TuneValue of 1 to 300 %, or \Off" in str(fault)


def test_free_motion_has_no_external_torque_and_another_load_is_in_the_model(cell):
    loads = "PERS loaddata part := [3,[0,0,80],[1,0,0,0],0,0,0];"
    body = (
        "MoveAbsJ b, v300, fine, tool0; GripLoad part; MoveAbsJ c, v300, fine, tool0; GripLoad load0; "
        + SWING
    )
    live = cell(loads, {"supervision": Supervision(stops=True, thresholds=[1e-9] * 6)}, T_ROB1=body)
    live.run()
    assert live.controller.faults == []
    assert live.controller.supervision.largest.max() < 1e-10
    assert live.log.payloads is not None


def test_thresholds_of_a_station_are_those_of_its_joints(tmp_path):
    file = tmp_path / "station.toml"
    (tmp_path / "a.mod").write_text("MODULE M\nPROC main()\nWaitTime 1;\nENDPROC\nENDMODULE\n")
    text = '[tasks.T_ROB1]\nmodules = ["a.mod"]\n[supervision]\n'
    file.write_text(f"{text}joint_2 = 40.5\njoint_6 = 3\n")
    controller = Serving(Station.read(file), Setup(drives="rigid"), print)._controller(print)
    assert controller.supervision.thresholds == [np.inf, 40.5, np.inf, np.inf, np.inf, 3]
    controller.close()
    controller.arm.close()
    for line, message in (("joint_7 = 1", "unknown key 'joint_7'"), ("joint_2 = -1", "a number above 0")):
        file.write_text(text + line)
        with pytest.raises(ValueError, match=message):
            Serving(Station.read(file), Setup(drives="rigid"), print)._controller(print)


def test_a_session_without_contact_teaches_the_thresholds_of_its_station(tmp_path, capsys):
    """With encoders the speeds are late, so that free motion has residuals of some newton metres."""
    (tmp_path / "a.mod").write_text(source(SWING))
    file, seen = tmp_path / "station.toml", ("--encoder", "--speed-cutoff", "100")
    file.write_text('cycle = "once"\n[tasks.T_ROB1]\nmodules = ["a.mod"]\n')
    words = ["abb", "serve", str(file), "--lockstep", *seen]
    assert main([*words, "--learn"]) == 0
    learned = Station.read(file).supervision
    assert list(learned) == [f"joint_{k}" for k in range(1, 7)]
    assert 0.5 < min(learned.values()) < max(learned.values()) < 30.0
    assert main([*words, "--supervise"]) == 0
    assert main([*words, "--supervise", "--push", DOWN]) == 1
    assert re.search(r"motion supervision: joint_\d: [\d.]+ N m of external torque", capsys.readouterr().out)
    assert main([*words, "--learn"]) == 2
    assert "expected STATION.toml without a table [supervision]" in capsys.readouterr().err


def test_a_session_that_something_touched_teaches_no_thresholds(tmp_path, capsys):
    (tmp_path / "a.mod").write_text(source(SWING))
    file = tmp_path / "station.toml"
    text = 'cycle = "once"\n[tasks.T_ROB1]\nmodules = ["a.mod"]\n'
    words = ["abb", "serve", str(file), "--lockstep", "--learn"]
    file.write_text(text)
    assert main([*words, "--push", DOWN]) == 1
    assert f"cannot write {file}: --learn: something touched the arm" in capsys.readouterr().err
    assert file.read_text() == text
    file.write_text(f"{text}[supervision]\n")
    assert main(words) == 2
    assert "expected torques of joints, as joint_2 = 40.5, got an empty table" in capsys.readouterr().err


def test_two_sessions_that_learn_leave_one_table(tmp_path, monkeypatch, capsys):
    """The second one finds the table of the first."""
    (tmp_path / "a.mod").write_text("MODULE M\nPROC main()\nWaitTime 0.1;\nENDPROC\nENDMODULE\n")
    file = tmp_path / "station.toml"
    file.write_text('cycle = "once"\n[tasks.T_ROB1]\nmodules = ["a.mod"]\n')
    serve = Serving.serve

    def with_another(serving):
        file.write_text(f"{file.read_text()}[supervision]\njoint_1 = 3\n")
        return serve(serving)

    monkeypatch.setattr(Serving, "serve", with_another)
    assert main(["abb", "serve", str(file), "--lockstep", "--learn"]) == 1
    assert "expected STATION.toml without a table [supervision]" in capsys.readouterr().err
    assert Station.read(file).supervision == {"joint_1": 3}
