"""EGM in programs of a virtual controller: guidance between moves, faults and their handlers, streams."""

import re
import shutil
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import controllers
import twin
from scenarios.abb.background import serving
from tests.support.egm_wires import Wire
from tests.support.shared_data import shared_folder
from tests.support.virtual_cell import VirtualCell, tasks_of_folder
from twin.abb.controller.egm import EgmDevices, TaskSession
from twin.abb.egm import EgmClient, GuidanceSettings, MotionState, SensorMessage
from twin.abb.egm.guidance.run import Phase
from twin.data.logs.log import parts

pytestmark = pytest.mark.slow("runs sessions of a virtual controller")

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


class Led:
    """Finished programs of a controller with a client in this process.

    Attributes:
        done: result of EGM.
        fault: fault of the task, "" for none.
        messages: messages of the robot.
    """

    def __init__(self, robot, folder, answer, devices=None, seconds=30.0, **more):
        wire = Wire(answer)
        options = {"egm": EgmDevices(lag=0.0) if devices is None else devices, **more}
        with VirtualCell(robot, tasks_of_folder(folder), start=np.zeros(6), **options) as cell:
            cell.controller.egm._channels["ucdevice"] = wire
            cell.run(seconds)
            self.log, self.done = cell.log, cell.controller.egm.done
            self.fault = "".join(str(fault) for _, fault in cell.controller.faults)
            assert cell.controller.execution.has_ended
        self.messages, self.lines = wire.messages, cell.texts


def written(tmp_path, body, handler=""):
    text = f"{HEAD}PROC main()\n{body}\n{handler}ENDPROC\nENDMODULE\n"
    (tmp_path / "T_ROB1.mod").write_text(text)
    return tmp_path


def lines_of(log):
    """Return the lines of the program in the order in which they were run."""
    return list(dict.fromkeys(log.program.line.tolist()))


def completed(robot, folder, answer, **more):
    """Run a program without a fault."""
    made = Led(robot, folder, answer, **more)
    assert made.fault == ""
    return made


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


def test_client_guides_twice_between_moves_with_another_load(abb_robot, tmp_path):
    def client(message):
        guiding.append(message.state is MotionState.RUNNING)
        begun = sum(after and not before for before, after in pairwise(guiding))
        return SensorMessage(message.seqno, q=FIRST if begun < 2 else SECOND)

    guiding = [False]
    body = TWO_RUNS.replace(f"{RUN}MoveAbsJ b", f"{RUN}GripLoad part; MoveAbsJ b", 1)
    made = completed(abb_robot, written(tmp_path, body), client)
    log = made.log
    assert [part.robot.payload.mass for part in parts(log)] == [1.0, 4.0]
    assert log.model_residual() < 1e-10
    assert made.done.completed == 2
    np.testing.assert_allclose(log.q[-1], A, rtol=0, atol=1e-12)
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-12
    assert lines_of(log) == [12, 16, 17, 18, 19]
    for line, target in ((17, FIRST), (19, SECOND)):
        reached = log.q[np.flatnonzero(log.program.line == line)[0] - 1]
        assert np.degrees(np.max(np.abs(reached - target))) < 0.5
    moved = np.flatnonzero(log.program.line == 17)
    assert np.degrees(log.q[moved[-1]]) == pytest.approx([20, 10, -10, 15, 40, -30], abs=0.1)


CALLED = f"work;\nMoveAbsJ b, v1000, fine, tool0;\nERROR\nTRYNEXT;\nENDPROC\nPROC work()\n{DYING}"


@pytest.mark.parametrize(
    ("body", "word", "lines"),
    [
        (DYING, "", [12, 16]),
        (DYING, "TRYNEXT;", [12, 16, 18]),
        (DYING, "RETRY;", [12, 16, 18]),
        (CALLED, "RAISE;", [18, 22, 13]),
    ],
)
def test_handler_of_the_program_or_of_its_caller_gets_the_fault(abb_robot, tmp_path, body, word, lines):
    dying, revived = Dying(0), Dying(5)  # a client that is started again

    def client(message):
        return (revived if word == "RETRY;" and message.tm > 900 else dying)(message)

    made = Led(abb_robot, written(tmp_path, body, word and HANDLER.format(word)), client)
    told = "T_ROB1.mod, line 16: ERR_UDPUC_COMM has no handler: no message from the client"
    assert made.fault == "" if word else told in made.fault
    assert lines_of(made.log) == lines
    assert made.done.completed == (word == "RETRY;")
    assert {one.name for one in made.done.faults} == {"ERR_UDPUC_COMM"}


def test_guidance_without_waiting_goes_on_during_waits_until_egm_stop(abb_robot, tmp_path):
    """A fault during a wait ends the program even if it has a handler."""
    run = SETUP + RUN.replace("EGM_STOP_HOLD", NO_WAIT)
    stop = "EGMStop id, EGM_STOP_HOLD \\RampOutTime:=0.1;\n"
    move = "MoveAbsJ a, v1000, fine, tool0;\n"
    path = written(tmp_path, f"{move}{run}WaitTime 0.4;\n{stop}{move}")
    made = completed(abb_robot, path, sending(q=A, qd=np.full(6, 0.1)))  # never converges
    log = made.log
    assert made.done.completed == 1
    begins = int(np.argmax(log.program.line == 16))
    rests = begins + 100 + int(np.argmax(~log.qd_ref[begins + 100 :].any(axis=1)))
    assert log.t[rests] - log.t[begins] == pytest.approx(0.5, abs=0.012)  # a wait of 0.4 s, and the ramp
    np.testing.assert_allclose(log.q[-1], A, atol=1e-12)
    path = written(tmp_path, f"{run}WaitTime 2;\n{stop}", HANDLER.format("TRYNEXT;"))
    made = Led(abb_robot, path, Dying(0))
    assert "line 16: ERR_UDPUC_COMM: no message" in made.fault


def test_pose_guidance_has_tool_work_object_and_axes_of_the_program(abb_robot, tmp_path):
    body = """MoveAbsJ a, v1000, fine, grip;
EGMSetupUC ROB_1, id, "default", "UCdevice" \\Pose;
EGMActPose id \\Tool:=grip \\WObj:=table1, frame, EGM_FRAME_WOBJ, frame, EGM_FRAME_WOBJ
  \\x:=tight \\MaxSpeedDeviation:=60;
EGMRunPose id, EGM_STOP_HOLD \\x \\CondTime:=0.1 \\RampInTime:=0.05;
"""
    grip = twin.pose_matrix([0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0])
    T = twin.forward_kinematics(abb_robot, A, grip)
    target = T.copy()
    target[:3, 3] += [0.02 - 0.1, 0.03, 0.0]  # the work object is 0.1 m in front; only x is guided
    log = completed(abb_robot, written(tmp_path, body), sending(T=target)).log
    end = twin.forward_kinematics(abb_robot, log.q[-1], grip)
    np.testing.assert_allclose(end[:3, 3] - T[:3, 3], [0.02, 0.0, 0.0], atol=3e-4)
    assert log.robot.payload is not None or log.payloads.loads[-1, 0] == 1.0


def test_path_guidance_corrects_the_lines_of_the_program(abb_robot, tmp_path):
    body = """MoveAbsJ b, v1000, fine, grip;
EGMSetupUC ROB_1, id, "default", "UCdevice" \\PathCorr \\APTR;
EGMActMove id, frame \\SampleRate:=24;
EGMMoveL id, Offs(CRobT(\\Tool:=grip),0,40,0), v100, z5, grip;
EGMMoveC id, Offs(CRobT(\\Tool:=grip),5,60,-10), Offs(CRobT(\\Tool:=grip),0,80,-20), v100, fine, grip;
MoveAbsJ b, v1000, fine, grip;
"""
    path = written(tmp_path, body)
    logs = [
        completed(abb_robot, path, sending(path_correction=np.array([0, 0, z]))).log for z in (0.0, 0.004)
    ]
    assert max(len(log.t) for log in logs) > 1000
    plain, corrected = (twin.forward_kinematics(abb_robot, log.q)[:, :3, 3] for log in logs)
    middle = int(np.mean(np.flatnonzero(logs[1].program.line == 16)))
    apart = np.min(np.linalg.norm(plain - corrected[middle], axis=1))
    assert apart == pytest.approx(0.004, abs=0.0015)


def test_changes_of_the_load_before_the_log_are_forgotten(abb_robot):
    from twin.abb.egm.robot.guided_arm import GuidedArm, standing_samples

    def law(payload):
        return controllers.make("computed_torque", abb_robot.with_payload(payload), period=1e-3)

    arm = GuidedArm(abb_robot, law(None), np.zeros(6), keep=0.02)
    payloads = [None, *(twin.Payload(mass, np.array([0, 0, 0.05]), np.zeros((3, 3))) for mass in (1.0, 2.0))]
    for k in range(12):
        arm.change_load(payloads[k % 3], law(payloads[k % 3]))
        arm.move(standing_samples(np.zeros(6), 4))
        assert len(arm._loads) <= 7
    log = arm.log(np.eye(4), {})
    arm.close()
    masses = [0.0 if part.robot.payload is None else part.robot.payload.mass for part in parts(log)]
    assert masses == [1.0, 2.0, 0.0, 1.0, 2.0]  # the last 20 samples
    assert log.model_residual() < 1e-9


MISUSES = {
    "EGMRunJoint id, EGM_STOP_HOLD \\J1;": "needs EGMSetupUC of id before",
    'EGMSetupUC ROB_1, id, "a", "b";': "needs one of .Joint, .Pose, .PathCorr",
    f"{SETUP}EGMRunJoint id, EGM_STOP_HOLD;": "has no switch .J1 ... .J6",
    f"{SETUP}EGMActJoint id \\J1:=[-1,2];": "expected .-w,w., got .-1,2.",
    f"{SETUP}{RUN.replace('EGM_STOP_HOLD', NO_WAIT)}MoveAbsJ a, v100, fine, tool0;": "EGMStop must stand",
    "EGMStreamStart id;": "EGMStreamStart needs EGMSetupUC of id before",
    'EGMSetupUC ROB_1, id, "a", "b" \\Joint; EGMStop id, EGM_STOP_HOLD;': "EGM of id is not active",
}


@pytest.mark.parametrize("body", MISUSES)
def test_misuse_is_a_fault_with_its_line(abb_robot, tmp_path, body):
    fault = Led(abb_robot, written(tmp_path, body), sending(q=A)).fault
    assert re.search(f"T_ROB1.mod, line .*{MISUSES[body]}", fault), fault


def test_parameters_of_the_station_count_where_the_program_sets_nothing(abb_robot, tmp_path):
    """The gain is the slope of the reached distance; a lag delays its beginning by whole cycles."""
    run = RUN.replace("\\CondTime:=0.1", "\\CondTime:=0.3")
    path = written(tmp_path, f"MoveAbsJ a, v1000, fine, tool0;\n{SETUP}{run}")
    began, slopes = [], []
    for gain, lag in ((5.0, 0.0), (15.0, 12.0)):
        devices = EgmDevices(lag=lag, parameters=GuidanceSettings(position_gain=gain))
        made = completed(abb_robot, path, sending(q=A + 0.02), devices=devices)
        moves = made.log.qd_ref[:, 0] > 0
        begins = np.flatnonzero(made.log.program.line == 16)[0]
        first = begins + int(np.argmax(moves[begins:]))
        began.append(first - begins)
        speed, left = made.log.qd_ref[first + 100, 0], A[0] + 0.02 - made.log.q_ref[first + 100, 0]
        slopes.append(speed / left)
    assert began[1] - began[0] == 12
    np.testing.assert_allclose(slopes, [5.0, 15.0], rtol=0.2)


def test_mode_and_rate_change_from_session_to_session(abb_robot, tmp_path):
    """Messages go out from EGMStreamStart on, while the arm moves, and end with EGMReset."""
    act = f"{SETUP.replace('EGMReset id; EGMGetId id;', '')}"
    body = f"""MoveAbsJ a, v1000, fine, tool0;
EGMSetupUC ROB_1, id, "default", "UCdevice" \\Joint;
EGMStreamStart id \\SampleRate:=8;
MoveAbsJ b, v1000, fine, tool0;
EGMStreamStop id;
MoveAbsJ a, v1000, fine, tool0;
EGMSetupUC ROB_1, id, "default", "UCdevice" \\Pose;
EGMActPose id \\Tool:=tool0, frame, EGM_FRAME_BASE, frame, EGM_FRAME_BASE \\MaxSpeedDeviation:=60;
EGMRunPose id, EGM_STOP_HOLD \\x\\y\\z \\CondTime:=0.1 \\RampInTime:=0.05;
EGMReset id;
{act}{RUN}EGMReset id;
MoveAbsJ b, v1000, fine, tool0;
"""
    T = twin.forward_kinematics(abb_robot, A)

    def client(message):
        sessions_begun[0] += message.seqno == 0
        reference = {"T": goal} if sessions_begun[0] == 2 else {"q": FIRST}
        return SensorMessage(message.seqno, **reference)

    goal = T.copy()
    goal[2, 3] += 0.01
    sessions_begun = [0]
    made = completed(abb_robot, written(tmp_path, body), client)
    assert made.done.completed == 2
    starts = [k for k, message in enumerate(made.messages) if message.seqno == 0]
    assert len(starts) == 3
    sessions = [made.messages[a:b] for a, b in pairwise([*starts, None])]
    assert set(np.diff([one.tm for one in sessions[0][:-1]])) == {8}
    assert set(np.diff([one.tm for one in sessions[1][:-1]])) == {4}
    assert np.ptp([one.q[0] for one in sessions[0]]) > np.radians(19.0)  # the arm moved from a to b
    assert sessions[0][-1].tm < sessions[1][0].tm - 200  # silence while the arm moves back
    assert made.messages[-1].tm < 1e3 * made.log.t[-1] - 150  # silence while the arm moves to b
    assert all(one.program_runs for one in made.messages[:-1])
    told = [text for text in made.lines if "EGM sends to the client every" in text]
    assert told == [f"EGM sends to the client every {ms} ms, receives at port 0" for ms in (8, 4, 4)]


def test_messages_end_with_a_program_that_leaves_the_arm_guided(abb_robot, tmp_path):
    run = RUN.replace("EGM_STOP_HOLD", NO_WAIT)
    path = written(tmp_path, f"MoveAbsJ a, v1000, fine, tool0;\n{SETUP}{run}WaitTime 0.3;\n")
    with VirtualCell(abb_robot, tasks_of_folder(path), egm=EgmDevices(lag=0.0)) as cell:
        cell.controller.egm._channels["ucdevice"] = wire = Wire(sending(q=FIRST))
        cell.run()
        assert wire.messages[-1].state is MotionState.RUNNING
        for _ in range(250):
            cell.controller.cycle()
        assert not wire.messages[-1].program_runs
        assert wire.messages[-1].state is MotionState.STOPPED
        assert cell.controller.egm.session is None
        assert wire.messages[-1].tm < 1e3 * cell.controller.t - 200.0


def test_a_stop_of_the_execution_stops_the_guidance_and_start_begins_it_again(abb_robot, tmp_path):
    path = written(tmp_path, f"MoveAbsJ a, v1000, fine, tool0;\n{SETUP}{RUN}")
    with VirtualCell(abb_robot, tasks_of_folder(path), start=A, egm=EgmDevices(lag=0.0)) as cell:
        controller = cell.controller
        far = A + np.array([0.3, 0, 0, 0, 0, 0])
        controller.egm._channels["ucdevice"] = wire = Wire(sending(q=far))
        cell.run(until=lambda: wire.messages and wire.messages[-1].q[0] > 0.05)
        controller.stop()
        cell.run(until=lambda: controller.rests)
        stopped_at = controller.arm.q[0]
        assert 0.05 < stopped_at < 0.15
        cell.run(0.4)
        assert controller.arm.q[0] == pytest.approx(stopped_at, abs=1e-6)
        assert not wire.messages[-1].program_runs
        assert wire.messages[-1].state is MotionState.STOPPED
        controller.start()
        cell.run()
        assert controller.execution.has_ended
        assert controller.faults == []
        assert controller.arm.q[0] == pytest.approx(far[0], abs=np.radians(0.6))


@pytest.mark.shared
def test_the_program_of_abb_ros2_handles_a_silent_client_and_guides_again(abb_robot, tmp_path):
    """The program calls EGMRunJoint in an endless loop; its error handler goes on with TRYNEXT."""
    folder = shared_folder() / "rapid" / "PickNikRobotics_abb_ros2"
    shutil.copy(folder / "robot_studio_resources_TRob1Main.mod", tmp_path / "T_ROB1.mod")
    with VirtualCell(abb_robot, tasks_of_folder(tmp_path)) as cell:
        done, silent = cell.controller.egm.done, [False]
        guide = sending(q=A + 0.02)
        wire = Wire(lambda message: None if silent[0] else guide(message))
        cell.controller.egm._channels["rob_1"] = wire
        cell.run(until=lambda: cell.controller.arm.q[0] > 0.015)
        silent[0] = True
        cell.run(until=lambda: done.runs == 2)
        silent[0] = False
        cell.run(0.5)
        assert cell.controller.faults == []
        assert [fault.name for fault in done.faults] == ["ERR_UDPUC_COMM"]
        assert "Communication timedout" in cell.texts
        assert done.runs == 2
    assert np.abs(cell.controller.arm.q - A - 0.02).max() < 0.002


def test_messages_say_whether_the_motors_are_on_and_the_mode_is_that_of_the_panel(abb_robot, tmp_path):
    path = written(tmp_path, f"{SETUP}EGMStreamStart id;\nWHILE TRUE DO count := OpMode(); ENDWHILE")
    with VirtualCell(abb_robot, tasks_of_folder(path)) as cell:
        cell.controller.egm._channels["ucdevice"] = wire = Wire(sending(q=A))
        cell.run(0.1)
        count = cell.controller.tasks["t_rob1"].interpreter.shared["count"]
        assert (wire.messages[-1].motors_on, count.value) == (True, 1.0)
        cell.controller.execution.mode = "MANR"
        cell.run(0.1)
        assert count.value == 2.0
        cell.controller.execution.set_motors(False)
        cell.run(0.1)
        assert not wire.messages[-1].motors_on
        assert not wire.messages[-1].program_runs


@pytest.mark.parametrize("run", [None, SimpleNamespace(phase=Phase.STOPPING)])
def test_egm_stop_without_a_guidance_stops_nothing(run):
    session = TaskSession.__new__(TaskSession)
    session._run = run  # a run that stops already has no `end` here
    session.end_guidance(GuidanceSettings())
    assert session._next is None


def test_a_client_on_another_machine_needs_an_address_that_it_reaches(abb_robot, tmp_path):
    made = Led(abb_robot, written(tmp_path, SETUP), sending(q=A), EgmDevices(("192.0.2.1", 6510)))
    assert made.fault == ""  # the wire of the test
    path = written(tmp_path, SETUP.replace("UCdevice", "far"))
    fault = Led(abb_robot, path, sending(q=A), EgmDevices(("192.0.2.1", 6510))).fault
    assert "192.0.2.1:6510 is on another machine: bind must name" in fault


def test_each_session_begins_at_the_time_of_now(tmp_path):
    """The second session begins 1.6 s after the controller; its first two messages are 4 ms apart."""
    stream = "EGMStreamStart id;\nWaitTime 0.2;\nEGMStreamStop id;\n"
    setup = 'EGMGetId id;\nEGMSetupUC ROB_1, id, "default", "UCdevice" \\Joint;\n'
    written(tmp_path, f"{setup}{stream}WaitTime 1.4;\n{stream}WaitTime 0.2;\n")
    with EgmClient(port=0, timeout=60.0) as client:
        (tmp_path / "station.toml").write_text(
            f'[egm]\nto = "127.0.0.1:{client.port}"\n[tasks.T_ROB1]\nmodules = ["T_ROB1.mod"]\n'
        )
        with serving(tmp_path / "station.toml"):
            ahead, sessions = [], []
            while len(sessions) < 2 or len(sessions[1]) < 2:
                message = client.receive()
                if message.seqno == 0:
                    sessions.append([])
                    ahead.append(message.time - time.time())
                sessions[-1].append(message)
    assert [one[1].tm - one[0].tm for one in sessions] == [4, 4]
    assert sessions[1][0].tm > 1500
    assert max(ahead) < 0.5
    assert min(ahead) > -60.0
