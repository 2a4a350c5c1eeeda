"""Instructions and functions that are others on a live controller, and that no other test has."""

import time

from twin.abb.rapid.recorder import Operator

DATA = """VAR num unit; VAR string name; VAR bool rob; VAR num axes; PERS bool taken := TRUE;
VAR rmqslot slot; VAR rmqmessage mail; VAR socketdev plug; VAR egmident id; VAR num calls; VAR pos here;"""
MOVING = """ClkStart clock1; WaitTestAndSet taken; TPWrite ValToStr(ClkRead(clock1) > 0.2);
MoveAbsJ b, v1000, fine, tool0; here := CPos(); TPWrite ValToStr(Round(here.x));
SetAO ao1, 2.5; SetGO go1, 5; SetDO do1, 1; InvertDO do1; Set do2; Set do3; Reset do3;
TPWrite ValToStr([AOutput(ao1), GOutput(go1), do1, do2, do3]);
ErrLog 5210, "title", "a", "b", "c", "d"; RemoveDir "HOME:/empty";
SpeedRefresh 30; TPWrite ValToStr(CSpeedOverride()); SpeedRefresh 100;
UIMsgBox "sure"\\Buttons:=btnYesNo\\Result:=n; TPWrite ValToStr(n = resNo);
WHILE GetNextMechUnit(unit, name\\TCPRob:=rob\\NoOfAxes:=axes) DO
TPWrite name + ValToStr(rob) + ValToStr(axes);
ENDWHILE
TPWrite GetSysInfo(\\LanIp) + "|" + GetSysInfo(\\SWVersion) + "|" + GetTaskName();
TPWrite ValToStr([UIClientExist(), TaskRunMec(), TaskRunRob()]) + ValToStr(OpMode() = OP_AUTO);
TPWrite ValToStr(RunMode() = RUN_CONT_CYCLE) + CDate() + ValToStr(StrLen(CTime()));
RMQFindSlot slot, "RMQ_T_ROB1"; RMQSendMessage slot, n; RMQEmptyQueue; RMQGetMessage mail;
StopMove; StopMoveReset; TPWrite "held " + ValToStr(IsStopMoveAct(\\FromMoveTask));
SocketCreate plug; TPWrite "bytes " + ValToStr(SocketPeek(plug));
n := 10 * EGMGetState(id); EGMSetupUC ROB_1, id, "default", "UCdevice"\\Joint;
TPWrite ValToStr([n = 10 * EGM_STATE_DISCONNECTED, EGMGetState(id) = EGM_STATE_CONNECTED]);
SingArea\\Wrist; Break; TPWrite "after";
ERROR
IF ERRNO = ERR_RMQ_NOMSG TPWrite "empty"; TRYNEXT;"""
ASIDE = """Incr calls; IF calls < 600 THEN main; ENDIF
TPWrite ValToStr([TaskRunMec(), TaskRunRob()]) + GetTaskName(); WaitTime 0.3; taken := FALSE; WaitTime 99;"""


def test_what_they_do(cell, tmp_path):
    (tmp_path / "home/empty").mkdir(parents=True)
    options = {"home": tmp_path / "home", "operator": Operator(["sure=no"])}
    live = cell(DATA, options, T_ROB1=MOVING, T_SIDE=ASIDE)
    date = time.strftime("%Y-%m-%d")
    live.run(until=lambda: not live.controller.execution.running)
    assert live.controller.faults == [], str(live.controller.faults)
    assert live.texts == [
        "[FALSE,FALSE]T_SIDE", "TRUE", "525", "[2.5,5,0,1,0]", "ErrLog: 5210titleabcd", "30", "TRUE",
        "ROB_1TRUE6", "127.0.0.1|RobotWare_6.0_virtual|T_ROB1", "[TRUE,TRUE,TRUE]TRUE", f"TRUE{date}8",
        "empty",
        "held FALSE", "bytes 0", "[TRUE,TRUE]",
        "line 27: SingArea (it changes nothing in the plan)",
        "Break in line 27",
    ]  # fmt: skip
    assert not (tmp_path / "home/empty").exists()
    live.controller.start()
    live.run(1.0, until=lambda: live.texts[-1] == "after")
    assert live.texts[-1] == "after"
