"""Sessions that a RAPID program leads: moves, guidance between them, faults and their handlers."""

import re
from itertools import pairwise

import numpy as np
import pytest

import controllers
import twin
from tests.support.egm_wires import CycleByCycle, Wire
from twin.egm import GuidanceSettings, MotionState, SensorMessage, SessionPlan
from twin.egm.robot.guided_arm import GuidedArm
from twin.egm.robot.program import GuidedProgram, ProgramSession
from twin.errors import RapidError
from twin.logs.payload_changes import parts

HEAD = """MODULE Guided
VAR egmident id;
PERS tooldata grip:=[TRUE,[[0,0,100],[1,0,0,0]],[1,[0,0,50],[1,0,0,0],0,0,0]];
PERS loaddata part:=[3,[0,0,40],[1,0,0,0],0,0,0];
PERS wobjdata table1:=[FALSE,TRUE,"",[[100,0,0],[1,0,0,0]],[[0,0,0],[1,0,0,0]]];
VAR egm_minmax tight:=[-0.2,0.2];
VAR pose frame:=[[0,0,0],[1,0,0,0]];
VAR num count:=0;
CONST jointtarget a:=[[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST jointtarget b:=[[20,10,-10,15,40,-30],[9E9,9E9,9E9,9E9,9E9,9E9]];
"""
SETUP = """EGMReset id; EGMGetId id;
EGMSetupUC ROB_1, id, "default", "UCdevice" \\Joint \\CommTimeout:=0.2;
EGMActJoint id \\Tool:=grip \\J1:=tight \\MaxSpeedDeviation:=60;
"""
RUN = (
    "EGMRunJoint id, EGM_STOP_HOLD \\J1\\J2\\J3\\J4\\J5\\J6 \\CondTime:=0.1 "
    "\\RampInTime:=0.05 \\RampOutTime:=0.05;\n"
)
NO_WAIT = "EGM_STOP_HOLD \\NoWaitCond"
TWO_RUNS = f"""MoveAbsJ a, v1000, fine, grip;
{SETUP}{RUN}MoveAbsJ b, v1000, fine, grip;
{RUN}MoveAbsJ a, v1000, fine, grip;"""
A = np.radians([0.0, 0, 0, 0, 30, 0])
FIRST, SECOND = (np.radians(q) for q in ([8.0, 5, 0, 0, 30, 0], [25.0, 10, -10, 15, 40, -30]))


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb140").with_drives("rigid")


def written(tmp_path, body, handler=""):
    path = tmp_path / "guided.mod"
    path.write_text(f"{HEAD}PROC main()\n{body}\n{handler}ENDPROC\nENDMODULE\n")
    return path


def program_of(arm, path, **more):
    """Return the program of a file, with computed torque for each payload."""

    def law(payload):
        return controllers.make("computed_torque", arm.with_payload(payload), bandwidth=20.0, period=1e-3)

    return GuidedProgram(twin.rapid.read(path), arm, law, **more)


def lines_of(log):
    """Return the lines of the program in the order in which they were run."""
    return list(dict.fromkeys(log.program.line.tolist()))


def led(program, answer):
    """Run a program with a client in this process; return the finished session and its fault."""
    guided = GuidedArm(program.robot, program.controller_for(None), A)
    made = ProgramSession(
        guided, program.settings(A), None, Wire(answer), CycleByCycle(), SessionPlan(), partner="the client",
        T_flange_tool=np.eye(4), program=program,
    )  # fmt: skip
    fault = None
    try:
        made.serve(lambda: False)
    except RapidError as error:
        fault = error
    guided.close()
    return made, fault


def completed(program, answer):
    """Run a program without a fault; return the session and its log."""
    made, fault = led(program, answer)
    assert fault is None
    return made, made.log()


def sending(**references):
    """Return a client that always sends the same references."""
    return lambda message: SensorMessage(message.seqno, **references)


DYING = f"MoveAbsJ a, v1000, fine, tool0;\n{SETUP}{RUN}count:=1;\nMoveAbsJ a, v1000, fine, tool0;\n"
HANDLER = "ERROR\nIF ERRNO = ERR_UDPUC_COMM THEN\n{}\nENDIF\n"


class Dying:
    """Client that guides and then falls silent.

    Attributes:
        lives: number of instructions that it survives.
    """

    def __init__(self, lives):
        self.lives, self.running = lives, False

    def __call__(self, message):
        running = message.state is MotionState.RUNNING
        self.lives -= self.running and not running
        first, self.running = running and not self.running, running
        if self.lives > 0 or first:
            return SensorMessage(message.seqno, q=FIRST, qd=None if self.lives > 0 else np.full(6, 0.1))
        return None


def test_client_guides_twice_between_moves(arm, tmp_path):
    def client(message):
        guiding.append(message.state is MotionState.RUNNING)
        begun = sum(after and not before for before, after in pairwise(guiding))
        return SensorMessage(message.seqno, q=FIRST if begun < 2 else SECOND)

    guiding = [False]
    made, log = completed(program_of(arm, written(tmp_path, TWO_RUNS)), client)
    assert made.done.completed == 2
    np.testing.assert_allclose(log.q[-1], A, rtol=0, atol=1e-12)
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-12
    assert lines_of(log) == [12, 16, 17, 18, 19]
    for line, target in ((17, FIRST), (19, SECOND)):
        reached = log.q[np.flatnonzero(log.program.line == line)[0] - 1]
        assert np.degrees(np.max(np.abs(reached - target))) < 0.5
    moved = np.flatnonzero(log.program.line == 17)
    assert np.degrees(log.q[moved[-1]]) == pytest.approx([20, 10, -10, 15, 40, -30], abs=0.1)


def test_fault_without_a_handler_ends_the_program_with_its_line(arm, tmp_path):
    made, fault = led(program_of(arm, written(tmp_path, DYING)), Dying(0))
    assert "guided.mod, line 16: ERR_UDPUC_COMM has no handler: no message from the client" in str(fault)
    assert made.log().program.line[-1] == 16


CALLED = f"work;\nMoveAbsJ b, v1000, fine, tool0;\nERROR\nTRYNEXT;\nENDPROC\nPROC work()\n{DYING}"


@pytest.mark.parametrize(
    ("body", "word", "lines"),
    [
        (DYING, "TRYNEXT;", [12, 16, 18]),
        (DYING, "RETURN;", [12, 16]),
        (DYING, "RETRY;", [12, 16, 18]),
        (CALLED, "RAISE;", [18, 22, 13]),
    ],
)
def test_handler_of_the_program_or_of_its_caller_gets_the_fault(arm, tmp_path, body, word, lines):
    dying, revived = Dying(0), Dying(5)  # a client that is started again

    def client(message):
        return (revived if word == "RETRY;" and message.tm > 1500 else dying)(message)

    made, log = completed(program_of(arm, written(tmp_path, body, HANDLER.format(word))), client)
    assert lines_of(log) == lines
    assert made.done.completed == (word == "RETRY;")
    assert {one.name for one in made.done.faults} == {"ERR_UDPUC_COMM"}


def test_guidance_without_waiting_goes_on_during_waits_until_egm_stop(arm, tmp_path):
    """A fault during a wait ends the program even if it has a handler."""
    run = SETUP + RUN.replace("EGM_STOP_HOLD", NO_WAIT)
    stop = "EGMStop id, EGM_STOP_HOLD \\RampOutTime:=0.1;\n"
    move = "MoveAbsJ a, v1000, fine, tool0;\n"
    path = written(tmp_path, f"{move}{run}WaitTime 0.4;\n{stop}{move}")
    made, log = completed(program_of(arm, path), sending(q=A, qd=np.full(6, 0.1)))  # never converges
    assert made.done.completed == 1
    begins = int(np.argmax(log.program.line == 16))
    rests = begins + 100 + int(np.argmax(~log.qd_ref[begins + 100 :].any(axis=1)))
    assert log.t[rests] - log.t[begins] == pytest.approx(0.5, abs=0.012)  # a wait of 0.4 s, and the ramp
    np.testing.assert_allclose(log.q[-1], A, atol=1e-12)
    path = written(tmp_path, f"{run}WaitTime 2;\n{stop}", HANDLER.format("TRYNEXT;"))
    _, fault = led(program_of(arm, path), Dying(0))
    assert "line 16: ERR_UDPUC_COMM: no message" in str(fault)


def test_pose_guidance_has_tool_work_object_and_axes_of_the_program(arm, tmp_path):
    body = """MoveAbsJ a, v1000, fine, grip;
EGMSetupUC ROB_1, id, "default", "UCdevice" \\Pose;
EGMActPose id \\Tool:=grip \\WObj:=table1, frame, EGM_FRAME_WOBJ, frame, EGM_FRAME_WOBJ
  \\x:=tight \\MaxSpeedDeviation:=60;
EGMRunPose id, EGM_STOP_HOLD \\x \\CondTime:=0.1 \\RampInTime:=0.05;
"""
    grip = twin.pose_matrix([0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0])
    T = twin.forward_kinematics(arm, A, grip)
    target = T.copy()
    target[:3, 3] += [0.02 - 0.1, 0.03, 0.0]  # the work object is 0.1 m in front; only x is guided
    _, log = completed(program_of(arm, written(tmp_path, body)), sending(T=target))
    end = twin.forward_kinematics(arm, log.q[-1], grip)
    np.testing.assert_allclose(end[:3, 3] - T[:3, 3], [0.02, 0.0, 0.0], atol=3e-4)
    assert log.robot.payload is not None or log.payloads.loads[-1, 0] == 1.0


def test_path_guidance_corrects_the_lines_of_the_program(arm, tmp_path):
    body = """MoveAbsJ b, v1000, fine, grip;
EGMSetupUC ROB_1, id, "default", "UCdevice" \\PathCorr \\APTR;
EGMActMove id, frame \\SampleRate:=24;
EGMMoveL id, Offs(CRobT(\\Tool:=grip),0,60,0), v100, z5, grip;
EGMMoveL id, Offs(CRobT(\\Tool:=grip),0,120,-20), v100, fine, grip;
MoveAbsJ b, v1000, fine, grip;
"""
    program = program_of(arm, written(tmp_path, body))
    logs = [completed(program, sending(path_correction=np.array([0, 0, z])))[1] for z in (0.0, 0.004)]
    assert max(len(log.t) for log in logs) > 1500
    plain, corrected = (twin.forward_kinematics(arm, log.q)[:, :3, 3] for log in logs)
    middle = int(np.mean(np.flatnonzero(logs[1].program.line == 16)))
    apart = np.min(np.linalg.norm(plain - corrected[middle], axis=1))
    assert apart == pytest.approx(0.004, abs=0.0015)


def test_grip_load_between_two_runs_changes_the_payload(arm, tmp_path):
    body = TWO_RUNS.replace(f"{RUN}MoveAbsJ b", f"{RUN}GripLoad part; MoveAbsJ b", 1)
    _, log = completed(program_of(arm, written(tmp_path, body)), sending(q=FIRST))
    assert [part.robot.payload.mass for part in parts(log)] == [1.0, 4.0]
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-12
    assert log.model_residual() < 1e-10


MISUSES = {
    "EGMRunJoint id, EGM_STOP_HOLD \\J1;": "needs an EGMAct instruction for joint",
    'EGMSetupUC ROB_1, id, "a", "b";': "needs one of .Joint, .Pose, .PathCorr",
    f"{SETUP}EGMRunJoint id, EGM_STOP_HOLD;": "has no switch .J1 ... .J6",
    f"{SETUP}EGMActJoint id \\J1:=[-1,2];": "expected .-w,w., got .-1,2.",
    f"{SETUP}EGMActJoint id \\SampleRate:=8;": "joint every 8 ms after joint every 4 ms: expected one mode",
    f"{SETUP}{RUN.replace('EGM_STOP_HOLD', NO_WAIT)}MoveAbsJ a, v100, fine, tool0;": "EGMStop must stand",
    "MoveAbsJ a, v100, fine, tool0;": "has no EGMActJoint",
    f"{SETUP}EGMStop other, EGM_STOP_HOLD;": "EGM of other is not active",
}


@pytest.mark.parametrize("body", MISUSES)
def test_misuse_is_a_fault_with_its_line(arm, tmp_path, body):
    program = program_of(arm, written(tmp_path, body))
    try:
        _, fault = led(program, sending(q=A))
    except RapidError as error:  # before the first activation
        fault = error
    assert re.search(MISUSES[body], str(fault))


def test_settings_of_the_command_line_are_the_system_parameters(arm, tmp_path):
    given = GuidanceSettings(position_gain=17.0, comm_timeout=9.0)
    found = program_of(arm, written(tmp_path, TWO_RUNS), parameters=given).settings(A)
    assert (found.position_gain, found.comm_timeout, found.max_speed_deviation) == (17.0, 0.2, 60.0)
    assert found.cond_window == "0.2,0.5,0.5,0.5,0.5,0.5"
