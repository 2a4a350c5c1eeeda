"""Virtual controller, cycle by cycle: tasks, motion on the path, signals, interrupts."""

import threading
from collections import deque

import numpy as np
import pytest

from scenarios.abb.rapid.program import RapidProgram
from scenarios.setup import Setup
from twin.abb.rapid.signals import Connection, Signals
from twin.base.errors import RapidError, TwinError

pytestmark = pytest.mark.slow("runs sessions of a virtual controller")

LOOP = """WHILE TRUE DO
FOR i FROM 0 TO 5 DO
target.robax := [20 * Sin(60 * i), 10 * Cos(60 * i), 0, 0, 30, 0];
MoveAbsJ target, v400, z20, tool0;
ENDFOR
ENDWHILE"""
TARGET = "VAR jointtarget target := [[0,0,0,0,0,0],[9E9,9E9,9E9,9E9,9E9,9E9]];"
LONG = LOOP.replace("WHILE TRUE DO", "FOR n FROM 1 TO 3 DO").replace("ENDWHILE", "ENDFOR")


def planned_log(tmp_path):
    """Return the log of the program as it is planned at once."""
    setup = Setup(controller="computed_torque", drives="rigid", bandwidth=20.0)
    return RapidProgram(program=str(tmp_path / "T_ROB1.mod")).run(setup).log  # type: ignore[call-arg]


@pytest.mark.parametrize("begin", ["MoveAbsJ b, v500, z50, tool0; MoveAbsJ c, v1000, z10, tool0;", LONG])
def test_a_program_moves_the_arm_as_run_program_does(cell, tmp_path, begin):
    """Also a chain of zones that is too long to be planned at once."""
    live = cell(TARGET, T_ROB1=f"{begin}\nMoveAbsJ a, v400, fine, tool0;", options={"start": np.zeros(6)})
    live.run()
    assert live.controller.faults == []
    log, planned = live.log, planned_log(tmp_path)
    N = len(planned.t) - 1
    assert (5000 if begin is LONG else 500) < N
    assert np.abs(log.q[:N] - planned.q[:N]).max() < 1e-9
    assert np.abs(log.tau[:N] - planned.tau[:N]).max() < 1e-9 * np.abs(planned.tau).max()


def test_fine_points_hold_the_program_and_zones_do_not(cell):
    body = """MoveAbsJ b, v500, z50, tool0; TPWrite "passed"; MoveAbsJ c, v1000, fine, tool0;
    here := CJointT(); TPWrite ValToStr(Round(here.robax.rax_1));"""
    live = cell("VAR jointtarget here;", T_ROB1=body)
    live.run()
    assert live.texts == ["passed", "-30"]
    assert live.lines[0].t == 0.0
    assert live.lines[1].t == pytest.approx(len(live.log.t) * 1e-3, abs=0.009)


def test_the_arm_stops_on_its_path_and_continues(cell):
    live = cell(T_ROB1="MoveAbsJ c, v100, fine, tool0;", options={"start": np.zeros(6)})
    live.run(0.6)
    speed = np.abs(live.log.qd[-1]).max()
    q = live.controller.arm.q.copy()
    live.controller.stop()
    live.run(0.3)
    assert np.abs(live.controller.arm.q - q).max() < 0.15 * speed  # a ramp of 0.2 s, and a cycle
    assert np.abs(live.log.qd[-1]).max() < 1e-6
    assert live.controller.tasks["t_rob1"].state == "running"
    stopped = live.controller.unit.motion.q.copy()
    live.run(0.2)
    assert np.array_equal(stopped, live.controller.unit.motion.q)
    live.controller.execution.override = 0.5
    live.controller.start()
    live.run()
    assert live.controller.execution.has_ended
    path = live.log.q[:, :3] / np.radians([-30.0, 20, -20])  # the three shares are equal on a joint path
    assert np.abs(np.diff(path, axis=1)).max() < 1e-6
    assert np.degrees(live.controller.arm.q) == pytest.approx([-30, 20, -20, 15, 50, 30], abs=1e-3)


def test_tasks_share_persistents_and_a_trap_runs_while_the_arm_moves(cell):
    motion = """CONNECT wake WITH woken; IPers state, wake; MoveAbsJ c, v100, fine, tool0; TPWrite "there";
ENDPROC
TRAP woken
TPWrite "woken " + ValToStr(state);
ENDTRAP
PROC unused()"""
    other = "WaitTime 0.5; state := state + 1; WaitUntil FALSE;"
    live = cell("PERS num state := 6; TASK PERS num mine := 1;", T_ROB1=motion, T_BACK=other)
    live.run()
    assert live.texts == ["woken 7", "there"]
    assert live.lines[0].t == pytest.approx(0.5, abs=0.005)
    assert live.lines[1].t > 1.0


@pytest.mark.parametrize(
    "after", ["WHILE TRUE DO ENDWHILE", "WaitUntil FALSE;", "here := CJointT(); GOTO on;"]
)
def test_a_fly_by_move_is_made_although_none_follows(cell, after):
    live = cell("VAR jointtarget here;", T_ROB1=f"MoveAbsJ b, v1000, z10, tool0; on: {after}")
    live.run(0.8)
    assert np.degrees(live.controller.arm.q)[0] == pytest.approx(20.0, abs=1e-3)


def test_a_move_without_a_zone_ends_at_rest_before_the_next(cell):
    zone = "VAR zonedata none := [FALSE,0,0,0,0,0,0];"
    live = cell(
        zone, T_ROB1="MoveAbsJ b, v1000, none, tool0; WaitUntil TRUE; MoveAbsJ a, v1000, fine, tool0;"
    )
    live.run()
    assert (live.controller.execution.has_ended, live.controller.faults) == (True, [])
    assert np.abs(live.log.q - np.radians([20, 10, -10, 15, 40, -30])).max(axis=1).min() < 1e-4
    assert np.abs(live.log.q - live.log.q_ref).max() < 1e-9


def test_a_function_in_an_expression_moves_the_arm(cell):
    body = """IF moved(b) = 2 TPWrite "moved";
ENDPROC
FUNC num moved(jointtarget to)
MoveAbsJ to, v1000, fine, tool0;
WaitTime 0.1;
RETURN 2;
ENDFUNC
PROC unused()"""
    live = cell(T_ROB1=body)
    live.run()
    assert live.texts == ["moved"]
    assert np.degrees(live.controller.arm.q)[0] == pytest.approx(20.0, abs=1e-3)


def test_a_fault_leaves_other_tasks_running_and_stops_the_motion(cell):
    live = cell(
        "PERS num state := 0;", T_ROB1="MoveAbsJ c, v100, fine, tool0;",
        T_BACK="WaitTime 0.4; state := 1 / state;", T_OTHER='WaitTime 1; TPWrite "alive"; WaitUntil FALSE;',
    )  # fmt: skip
    live.run(1.2)
    assert live.texts[-1] == "alive"
    [(name, fault)] = live.controller.faults
    assert name == "T_BACK"
    assert (fault.line, "1 / 0" in str(fault)) == (8, True)
    assert np.abs(live.log.qd[-1]).max() < 1e-6
    assert abs(np.degrees(live.controller.arm.q[0])) < 29.0
    with pytest.raises(RapidError, match="T_BACK stopped with a fault"):
        live.controller.start()


def test_stop_move_clear_path_and_a_new_path_from_where_the_arm_is(cell):
    body = """CONNECT wake WITH woken; ITimer \\Single, 0.5, wake; MoveAbsJ c, v100, fine, tool0;
TPWrite "went on"; MoveAbsJ b, v1000, fine, tool0;
ENDPROC
TRAP woken
StopMove; ClearPath; StartMove;
ENDTRAP
PROC unused()"""
    live = cell(T_ROB1=body, options={"start": np.zeros(6)})
    live.run()
    assert live.controller.faults == []
    assert live.lines[0].t == pytest.approx(0.7, abs=0.02)
    assert np.degrees(live.log.q[:, 0]).min() > -29.0
    assert np.degrees(live.controller.arm.q)[0] == pytest.approx(20.0, abs=1e-3)
    assert np.abs(np.diff(live.log.q, axis=0)).max() < 0.006  # no jump


def test_a_trap_stores_the_path_moves_and_restores_it(cell):
    body = """CONNECT wake WITH woken; ITimer \\Single, 0.5, wake;
MoveAbsJ c, v100, fine, tool0; TPWrite "there";
ENDPROC
TRAP woken
VAR jointtarget here;
StopMove; SetDO do1, 1; WaitTime 0.1; StorePath; StartMove; here := CJointT(); MoveAbsJ b, v1000, fine, tool0;
TPWrite "aside";
MoveAbsJ here, v1000, fine, tool0; RestoPath; StartMove;
ENDTRAP
PROC unused()"""
    live = cell(T_ROB1=body, options={"start": np.zeros(6)})
    live.run()
    assert live.controller.faults == []
    assert live.texts == ["aside", "there"]  # and no drive lacked torque
    assert live.controller.signals.values["do1"] == 1.0
    assert np.degrees(live.log.q[:, 0]).max() == pytest.approx(20.0, abs=1e-3)
    assert np.degrees(live.controller.arm.q)[0] == pytest.approx(-30.0, abs=1e-3)
    assert np.abs(np.diff(live.log.q, axis=0)).max() < 0.006


def test_signals_pulse_follow_and_release_waits(cell):
    body = """PulseDO \\PLength:=0.1, do1; WaitDI di1, 1; TPWrite "high"; WaitDI di1, 0; TPWrite "low";
    WaitDI di2, 1 \\MaxTime:=0.3;
ERROR
TPWrite "late"; TRYNEXT;"""
    signals = Signals({})
    signals.connections["do1"] = [Connection("di1", 0.2)]
    live = cell(T_ROB1=body, options={"signals": signals})
    live.run()
    assert live.texts == ["high", "low", "late"]
    assert [line.t for line in live.lines] == pytest.approx([0.2, 0.3, 0.6], abs=0.009)


def test_exit_cycle_begins_again_and_moving_the_pointer_runs_undo_handlers(cell):
    body = """Incr n; IF n < 3 ExitCycle;
TPWrite ValToStr(n); MoveAbsJ c, v10, fine, tool0;
UNDO
TPWrite "left";"""
    live = cell(T_ROB1=body)
    live.run(0.5)
    assert live.texts == ["left", "left", "3"]
    live.controller.stop()
    live.run(0.5)
    live.controller.to_main()
    assert live.texts[3:] == ["left"]
    assert live.controller.unit.motion.paths == deque()
    live.controller.start()
    live.run(0.5)
    assert live.texts[4:] == ["left", "left", "3"]


def test_the_program_pointer_moves_between_two_runs_too(cell):
    live = cell("PERS num runs := 0;", T_ROB1="Incr n; runs := n;", options={"forever": True})
    shared = live.controller.tasks["t_rob1"].interpreter.shared
    for _ in range(2):
        live.run(0.1)
        assert shared["runs"].value > 10
        live.controller.stop()
        live.controller.to_main()
        live.controller.start()
        live.run(0.004)
        assert shared["runs"].value == 1  # the variable has its initial value again


def test_stop_waits_for_a_start(cell):
    live = cell(T_ROB1='MoveAbsJ b, v1000, z10, tool0; Stop; TPWrite "on";')
    live.run(3.0)
    assert not live.controller.execution.running
    assert live.texts == ["Stop in line 8"]
    live.controller.start()
    live.run()
    assert live.texts[1:] == ["on"]


def test_zones_in_an_endless_loop_never_stop_the_arm(cell):
    live = cell(TARGET, T_ROB1=LOOP)
    live.run(3.0)
    assert live.controller.faults == []
    log = live.log
    qd = log.q_ref[1:] - log.q_ref[:-1]
    assert np.abs(qd).max(axis=1)[800:].min() > 0.05 * 1e-3
    [path] = live.controller.unit.motion.paths
    assert len(path.segments) <= 17
    assert (np.abs(log.tau) <= live.controller.robot.tau_max).all()
    assert np.abs(log.q - log.q_ref).max() < 1e-9  # no step in the speed, which the motors could not follow


def test_an_output_between_fly_by_points_is_set_when_the_arm_begins_the_move_before(cell, tmp_path):
    body = """MoveAbsJ b, v500, z50, tool0; MoveAbsJ c, v500, z50, tool0; SetDO do1, 1;
    MoveAbsJ b, v500, z50, tool0; MoveAbsJ a, v500, fine, tool0;"""
    live = cell(T_ROB1=body, options={"start": np.zeros(6)})
    live.run(until=lambda: live.controller.signals.values.get("do1"))
    t = live.controller.t
    live.run()
    setup = Setup(controller="computed_torque", drives="rigid", bandwidth=20.0)
    run = RapidProgram(program=str(tmp_path / "T_ROB1.mod")).run(setup)  # type: ignore[call-arg]
    begins = run.performance.plan.starts[1]
    assert begins > 0.1
    assert begins <= t <= begins + 0.012
    N = len(run.log.t)
    assert np.abs(live.log.q[:N] - run.log.q).max() < 1e-9


def in_thread(action):
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_other_threads_are_called_between_the_turns_of_tasks(cell):
    controller = cell(T_ROB1="WHILE TRUE DO Incr n; ENDWHILE").controller
    n = controller.tasks["t_rob1"].interpreter.shared["n"]
    controller.cycle()
    assert controller.call(lambda: n.value) > 0.0  # at once while no cycle runs
    with pytest.raises(ZeroDivisionError):
        controller.call(lambda: 1 / 0)
    read = []

    def client():
        while len(set(read)) < 10:
            read.append(controller.call(lambda: n.value))

    thread = in_thread(client)
    while thread.is_alive():
        controller.cycle()
    assert read == sorted(read)
    caught = []

    def late():
        with pytest.raises(TwinError, match=r"the controller began no cycle within 0.01 s"):
            controller.call(lambda: caught.append("called"), timeout=0.01)
        caught.append("late")

    with controller._calls.lock:  # as a cycle that lasts
        in_thread(late).join()
    controller.cycle()
    assert caught == ["late"]


def test_a_call_is_answered_although_no_further_cycle_comes(cell):
    controller = cell(T_ROB1="i := 1;").controller
    answered = []
    with controller._calls.lock:  # as the last cycle, whose calls are answered already
        thread = in_thread(lambda: answered.append(controller.call(lambda: 1, timeout=2.0)))
        while not controller._calls:
            pass
    thread.join()
    assert answered == [1]


def test_a_move_that_is_stopped_and_started_many_times_stays_on_its_path(cell):
    body = """CONNECT wake WITH woken; ITimer 0.4, wake; MoveAbsJ c, v100, fine, tool0; IDelete wake;
TPWrite ValToStr(n) + ValToStr(IsStopMoveAct(\\FromMoveTask));
ENDPROC
TRAP woken
StopMove \\Quick; Incr n; WaitTime 0.05;
IF IsStopMoveAct(\\FromMoveTask) THEN
IF n MOD 2 = 0 StartMove;
IF n MOD 2 = 1 StartMoveRetry;
ENDIF
ENDTRAP
PROC unused()"""
    live = cell(T_ROB1=body, options={"start": np.zeros(6)})
    live.run()
    assert live.controller.faults == []
    assert live.texts[0].endswith("FALSE")
    assert int(live.texts[0][:-5]) >= 4
    assert live.controller.supervision.saturations == 0
    path = live.log.q[:, :3] / np.radians([-30.0, 20, -20])
    assert np.abs(np.diff(path, axis=1)).max() < 1e-6
    assert np.diff(path[:, 0]).min() > -1e-9  # it never goes back
    assert np.degrees(live.controller.arm.q) == pytest.approx([-30, 20, -20, 15, 50, 30], abs=1e-3)


def test_a_dialog_waits_for_an_answer_or_for_its_time(cell):
    body = """TPReadFK i, "which part", "red", "blue", "", "", "" \\MaxTime:=0.2 \\BreakFlag:=late;
IF late = ERR_TP_MAXTIME TPWrite "late";
TPReadNum n, "how many"; TPWrite "got "\\Num:=n;
TPReadFK i, "which part", "red", "blue", "", "", "" \\MaxTime:=0.2;
ERROR
IF ERRNO = ERR_TP_MAXTIME THEN TPWrite "too late"; TRYNEXT; ENDIF"""
    live = cell("VAR errnum late;", T_ROB1=body)
    live.run(until=lambda: "how many" in live.texts[-1:][0] if live.texts else False)
    late = next(line.t for line in live.lines if "late" in line.sentence)
    assert late == pytest.approx(0.2, abs=0.01)
    live.controller.execution.answer("many")
    live.run(0.1)
    assert "expected a number from the operator, got 'many'" in live.texts[-2]
    live.controller.execution.answer("7")
    live.run()
    assert live.controller.faults == []
    assert live.texts[-3] == "got 7"
    assert live.texts[-1] == "too late"


def test_a_signal_that_the_station_lacks_is_a_line(cell):
    signals = Signals({"other": 1.0}, declared={"gripper": "DO"})
    body = "SetDO griper, 1; SetDO gripper, 1; WaitDI other, 1;"
    live = cell(T_ROB1=body, options={"signals": signals})
    live.run(1.0)
    assert [text for text in live.texts if "signal" in text] == [
        "griper is no signal of the station, did you mean 'gripper'?: made"
    ]


def test_background_tasks_alone_keep_the_controller_running(cell):
    live = cell(T_STATE="WaitTime 0.1; Incr n;")
    live.run(0.5)
    assert live.controller.t == pytest.approx(0.5)
    assert (live.controller.execution.has_ended, live.controller.execution.executing) == (False, False)
