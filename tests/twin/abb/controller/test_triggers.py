"""Triggers on the way of a move, messages between tasks, traps of errors, and binary files."""

import numpy as np
import pytest

import twin
from tests.support.virtual_cell import titles_of_tasks

DATA = """VAR triggdata ahead; VAR triggdata near; VAR triggdata behind; VAR triggdata late;
VAR triggdata call; VAR num passed; VAR robtarget to;"""
BODY = """CONNECT wake WITH passing;
TriggIO near, 40 \\DOp:=do_near, 1; TriggIO behind, 30 \\Start \\DOp:=do_behind, 1;
TriggIO late, 0.1 \\Time \\DOp:=do_late, 1; TriggInt call, 10, wake;
TriggEquip ahead, 40, 0.1 \\DOp:=do_ahead, 1;
to := Offs(CRobT(), 0, 200, 0);
TriggL to, v200, near \\T2:=behind \\T3:=late \\T4:=call \\T5:=ahead, ZONE, tool0;
MoveL Offs(to, 0, 0, 100), v200, fine, tool0;
ENDPROC
TRAP passing
Incr passed;
ENDTRAP
PROC unused()"""


@pytest.mark.parametrize("zone", ["fine", "z10"])
def test_triggers_act_at_their_places(cell, zone):
    live = cell(DATA, T_ROB1=BODY.replace("ZONE", zone))
    seen = {}

    def watch():
        values = live.controller.signals.values
        for name in ("do_near", "do_behind", "do_late", "do_ahead"):
            if values.get(name):
                seen.setdefault(name, live.controller.t)
        if live.controller.tasks["t_rob1"].interpreter.shared["passed"].value:
            seen.setdefault("call", live.controller.t)

    live.run(until=watch)
    assert live.controller.faults == []
    log = live.log
    places = twin.forward_kinematics(live.controller.robot, log.q)[:, :3, 3]
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1))])
    if zone == "fine":
        end = int(np.argmin(np.abs(way - 0.2)))
        for name, at in (("do_near", 0.16), ("do_behind", 0.03), ("call", 0.19)):
            due = float(np.interp(at, way, log.t))
            assert -1e-3 < seen[name] - due < 0.010, name  # a cycle, or two for a trap
        assert seen["do_near"] - seen["do_ahead"] == pytest.approx(0.1, abs=0.005)  # the equipment's delay
        assert seen["do_late"] == pytest.approx(log.t[end] - 0.1, abs=0.02)
    else:
        order = [name for name, _ in sorted(seen.items(), key=lambda one: one[1])]
        assert order == ["do_behind", "do_ahead", "do_near", "do_late", "call"]
        assert way[round(seen["do_near"] / 1e-3)] == pytest.approx(0.16, abs=0.01)
    assert live.controller.tasks["t_rob1"].interpreter.shared["passed"].value == 1.0


def test_triggers_of_moves_that_are_blended_later_act_once(cell):
    body = """CONNECT wake WITH passing; TriggInt call, 0.001 \\Start, wake; to := CRobT();
FOR i FROM 1 TO 24 DO
TriggL Offs(to, 10 * Sin(30 * i), 3 * i, 0), v100, call, z5, tool0;
ENDFOR
WaitRob \\ZeroSpeed;
ENDPROC
TRAP passing
Incr passed;
ENDTRAP
PROC unused()"""
    live = cell(DATA, T_ROB1=body)
    live.run()
    assert live.controller.faults == []
    assert live.controller.tasks["t_rob1"].interpreter.shared["passed"].value == 24.0


def test_an_output_of_a_move_is_set_where_it_ends(cell):
    body = """MoveAbsJ a, v500, fine, tool0; to := CRobT();
MoveLDO Offs(to, 0, 100, 0), v100, z10, tool0, do1, 1;
MoveL Offs(to, 0, 100, 50), v100, fine, tool0;"""
    live = cell(DATA, T_ROB1=body)
    live.run(until=lambda: live.controller.signals.values.get("do1"))
    y = twin.forward_kinematics(live.controller.robot, live.log.q)[:, 1, 3]
    assert y[-1] - y[0] == pytest.approx(0.1, abs=0.01)


SENDER = """WHILE done = 0 DO
RMQFindSlot slot, "RMQ_T_READER";
words{1} := "part"; words{2} := ValToStr(n); Incr n;
RMQSendMessage slot, words \\UserDef:=n;
WaitTime 0.1;
IF n = 2 RMQSendWait slot, n, answer, words \\ReceiveUserDef:=user \\TimeOut:=1;
IF n = 2 THEN RMQGetMsgData answer, words; done := user; ENDIF
ENDWHILE
RMQFindSlot slot, "RMQ_nobody";
ERROR
IF ERRNO = ERR_RMQ_NAME TPWrite "no queue"; TRYNEXT;"""
READER = """CONNECT wake WITH got; IRMQMessage words, wake;
WHILE TRUE DO WaitTime 10; ENDWHILE
ENDPROC
TRAP got
RMQGetMessage answer; RMQGetMsgHeader answer \\Header:=head \\SenderId:=slot \\UserDef:=user;
RMQGetMsgData answer, words;
TPWrite words{1} + words{2} + head.datatype + ValToStr(head.dim1) + ValToStr(user);
IF user = 2 THEN
RMQReadWait answer \\TimeOut:=2; RMQGetMsgData answer, n; words{1} := "taken";
RMQSendMessage slot, words \\UserDef:=7; TPWrite RMQGetSlotName(slot);
ENDIF
ENDTRAP
PROC unused()"""
RMQ = """VAR rmqslot slot; VAR rmqmessage answer; VAR rmqheader head; VAR string words{2}; VAR num user;
VAR num done;"""


def test_tasks_send_messages_which_traps_get(cell):
    live = cell(RMQ, T_ROB1=SENDER, T_READER=READER)
    live.run(2.0)
    assert live.controller.faults == []
    assert live.texts == ["part0string21", "part1string22", "RMQ_T_ROB1", "no queue"]
    assert live.controller.tasks["t_rob1"].interpreter.shared["words"].value[0] == "taken"
    assert live.controller.tasks["t_rob1"].interpreter.shared["done"].value == 7.0


def test_traps_of_errors_get_their_data_in_other_tasks(cell):
    watch = """CONNECT wake WITH failed; IError COMMON_ERR, TYPE_ERR, wake;
WHILE TRUE DO WaitTime 10; ENDWHILE
ENDPROC
TRAP failed
GetTrapData trapped; ReadErrData trapped, domain, number, kind \\Title:=title \\Str1:=text;
TPWrite ValToStr([domain, number, kind]) + title + " " + text;
ENDTRAP
PROC unused()"""
    data = """VAR trapdata trapped; VAR errdomain domain; VAR num number; VAR errtype kind; VAR string title;
VAR string text;"""
    body = 'ErrWrite \\W, "not counted", ""; WaitTime 0.1; ErrWrite "told", "why"; WaitTime 0.1; n := 1 / 0;'
    live = cell(data, T_ROB1=body, T_WATCH=watch)
    live.run(0.5)
    for _ in range(5):
        live.controller.cycle()
    assert [text for text in live.texts if text.startswith("[")] == [
        "[8,1,3]told why", "[4,229,3]Unhandled error T_ROB1",
    ]  # fmt: skip
    assert titles_of_tasks(live.controller) == ["not counted", "told", "Unhandled error"]


def test_files_are_read_and_written_as_they_are(cell, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "in.bin").write_bytes(bytes(range(256)) * 5 + b"\r\nend")
    data = """VAR iodev file; VAR iodev to; VAR rawbytes raw; VAR num sum; VAR num bytes{3} := [65, 66, 10];
VAR string text;"""
    body = """Open "HOME:/in.bin", file \\Read \\Bin; Open "RAMDISK:" \\File:="out.bin", to \\Write \\Bin;
WHILE TRUE DO
ReadRawBytes file, raw; sum := sum + RawBytesLen(raw); WriteRawBytes to, raw;
ENDWHILE
ERROR
IF ERRNO <> ERR_RANYBIN_EOF RAISE;
Rewind file; text := ReadStrBin(file, 70); TPWrite StrPart(text, 66, 3) + ValToStr(ReadBin(file));
WriteBin to, bytes, 2; WriteStrBin to, "!"; Close to; Close file;
TPWrite ValToStr(sum) + ValToStr(IsFile("HOME:out.bin")) + ValToStr(FileSize("HOME:out.bin"));
RenameFile "HOME:/out.bin", "HOME:/moved.bin"; MakeDir "HOME:/parts";
CopyFile "HOME:/in.bin", "HOME:/parts/b";
RemoveFile "HOME:/in.bin"; TPWrite ValToStr(IsFile("HOME:/in.bin")) + ValToStr(FSSize("HOME:") > 1000);
outside; RETURN;
ENDPROC
PROC outside()
RemoveFile "HOME:/../T_ROB1.mod";
ERROR
IF ERRNO = ERR_FILEACC TPWrite "refused"; TRYNEXT;"""
    live = cell(data, T_ROB1=body, options={"home": home})
    live.run()
    assert live.controller.faults == [], str(live.controller.faults[0][1])
    assert live.texts == ["ABC70", "1285TRUE1288", "FALSETRUE", "refused"]
    assert (home / "moved.bin").read_bytes() == bytes(range(256)) * 5 + b"\r\nendAB!"
    assert (home / "parts/b").read_bytes() == bytes(range(256)) * 5 + b"\r\nend"
    assert (tmp_path / "T_ROB1.mod").exists()


def test_interrupts_do_not_count_while_the_execution_is_stopped(cell):
    body = """CONNECT wake WITH woken; ITimer 0.1, wake; CONNECT safe WITH safely;
ISignalDI \\SingleSafe, di1, 1, safe;
WHILE TRUE DO CONNECT wake WITH woken; WaitTime 0.01; ENDWHILE
ENDPROC
TRAP woken
Incr n;
ENDTRAP
TRAP safely
TPWrite "safe";
ENDTRAP
PROC unused()"""
    live = cell("VAR intnum safe;", T_ROB1=body)
    live.run(0.95)
    interpreter = live.controller.tasks["t_rob1"].interpreter
    n = interpreter.shared["n"].value
    assert n in (9.0, 10.0)
    live.controller.stop()
    for _ in range(500):
        live.controller.cycle()
    live.controller.signals.write("di1", 1.0)
    live.controller.start()
    live.run(0.25)
    assert interpreter.shared["n"].value - n in (2.0, 3.0)
    assert live.texts == ["safe"]
    assert len(interpreter.interrupts.traps) == 2
    assert len(interpreter.interrupts.causes) == 1


def test_the_angle_of_a_motor_is_that_of_its_joint_by_the_gear(cell, abb_robot):
    body = "MoveAbsJ b, v1000, fine, tool0; TPWrite ValToStr(ReadMotor(5)); TPWrite ValToStr(ReadMotor(9));"
    live = cell(T_ROB1=body)
    live.run()
    drives, q = abb_robot.drives, live.controller.arm.q
    assert float(live.texts[0]) == pytest.approx((drives.ratio * (drives.coupling @ q))[4], rel=1e-3)
    assert "there is no axis 9" in str(live.controller.faults[0][1])
