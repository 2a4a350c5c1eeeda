"""`EgmRobot` over UDP, in lockstep with its client and by the clock; addresses and rejected arguments."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise

import numpy as np
import pytest

import controllers
import twin
from tests.support.egm_wires import BRISK, CycleByCycle, Wire
from twin import egm
from twin.egm.robot.guided_arm import GuidedArm
from twin.egm.robot.pace import LatenessMeter, Lockstep, RealTime
from twin.egm.robot.program import GuidedProgram, ProgramSession
from twin.egm.wire.channel import UdpChannel
from twin.egm.wire.encoding import encode_sensor
from twin.errors import EgmError, LimitError, RapidError
from twin.logs.payload_changes import LOADS, parts

MESSAGES = 60


def made(robot, port, plan=None, **options):
    law = controllers.make("computed_torque", robot)
    return egm.EgmRobot(robot, law, egm.GuidanceSettings(**BRISK), plan, to=("127.0.0.1", port), **options)


def guided(client, target, messages=MESSAGES):
    """Answer a number of messages."""
    for _ in range(messages):
        client.receive()
        client.send_joints(target)


def lockstep(robot, *targets, meanwhile=lambda arm: None):
    """Guide several robots at the same time, one to each target, and return their results."""
    with egm.virtual_time(20.0), ExitStack() as stack, ThreadPoolExecutor() as pool:
        clients = [stack.enter_context(egm.EgmClient(0)) for _ in targets]
        robots = [stack.enter_context(made(robot, client.port)) for client in clients]
        ends = [pool.submit(guided, *pair) for pair in zip(clients, targets, strict=True)]
        meanwhile(robots[0])
        for end in ends:
            end.result()
    return [arm.result for arm in robots]


def test_lockstep_runs_are_equal_to_the_bit(robot):
    """The run is repeated alone, together with another robot, and with answers of another sender."""
    one, other = np.full(6, 0.1), np.full(6, -0.2)
    (first,) = lockstep(robot, one)
    assert len(first.log.t) == 4 * (MESSAGES + 1), "after each answer there is one more cycle"
    assert first.counts.valid == MESSAGES == first.counts.taken
    assert list(first.log.arrays["egm_seqno"]) == [-1, *range(1, MESSAGES + 1)]
    assert np.abs(first.log.q - first.log.q_ref).max() < 1e-12

    def stranger(arm):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(5):
                sender.sendto(encode_sensor(egm.SensorMessage(7, q=other)), ("127.0.0.1", arm.port))

    again, beside = lockstep(robot, one, other, meanwhile=stranger)
    assert first.log.identical(again.log)
    assert beside.log.q[-1, 0] < -0.01
    assert again.strangers == 5
    (event,) = [each for each in again.events if each.kind == "stranger"]
    assert event.sentence.startswith("ignoring datagrams from 127.0.0.1:")
    assert again.lateness == egm.Lateness()


def test_robot_thread_reports_state_and_ends(robot):
    with egm.EgmClient(0) as client, egm.virtual_time():
        arm = made(robot, client.port, egm.Plan(lag=1000.0), start=np.full(6, 0.1))
        assert arm.state is egm.EgmState.DISCONNECTED
        assert np.array_equal(arm.q, np.full(6, 0.1))
        with arm:
            guided(client, np.zeros(6), 3)
            client.receive()
            assert arm.state is egm.EgmState.RUNNING
            assert arm.log is not None
        assert arm.state is egm.EgmState.DISCONNECTED
        with pytest.raises(EgmError, match=r"has already been run: create a new one"):
            arm.run()


def test_lockstep_without_client_raises_egm_error(robot):
    with egm.EgmClient(0) as client:
        free = client.port
    with egm.virtual_time(0.1):
        with pytest.raises(EgmError, match=r"^no client answered within 0.1 s of real time$"):
            made(robot, free).run()
        with egm.EgmClient(0) as client:
            arm = made(robot, client.port)
            arm.__enter__()
            guided(client, np.zeros(6), 2)
            assert arm.wait()
            with pytest.raises(EgmError, match=r"^no answer to message 2 within 0.1 s of real time, after 2"):
                arm.__exit__()
    with pytest.raises(ValueError, match=r"a positive, finite limit of real time in s, got nan"):
        egm.virtual_time(float("nan")).__enter__()


def test_lockstep_waits_for_a_late_client(robot):
    """Only an undelivered message is sent again."""
    with egm.EgmClient(0) as client:
        port = client.port
    with egm.virtual_time(20.0), made(robot, port) as arm:
        assert not arm.wait(0.05)
        with egm.EgmClient(port) as client:
            numbers = []
            for _ in range(5):
                numbers.append(client.receive().seqno)
                client.send_joints(np.zeros(6))
            client.receive()
    assert numbers == [0, 1, 2, 3, 4]
    assert arm.result.counts.valid == 5


def test_real_time_run_reports_lateness(robot):
    with egm.EgmClient(0) as client:
        arm = made(robot, client.port, egm.Plan(duration=0.3))
        with arm:
            guided(client, np.full(6, 0.1), 70)
            assert arm.wait()
    result = arm.result
    assert result.sent == result.lateness.cycles == 75
    assert result.lateness.worst >= result.lateness.percentile_99 >= result.lateness.median > 0.0
    assert result.counts.taken > 30
    assert result.faults == ()


def test_lateness_is_counted_in_bins():
    meter = LatenessMeter()
    assert str(meter.lateness()) == "no messages were sent by the clock"
    for milliseconds in [0.01] * 97 + [0.5, 2.51, 300.0]:
        meter.add(1e-3 * milliseconds)
    lateness = meter.lateness()
    assert (lateness.cycles, lateness.late, lateness.share) == (100, 2, 0.02)
    found = lateness.median, lateness.percentile_99, lateness.worst
    assert found == pytest.approx((2e-5, 2.52e-3, 0.3))
    assert str(lateness).startswith("2 of 100 messages (2.00%) were more than 1 ms late; median 0.02 ms, 99")


class ToldTheTime:
    """Inbox that stores when it listens, and how often it had listened when it was to catch up."""

    def __init__(self, clock):
        self.clock, self.heard, self.caught_up = clock, [], []

    def listen(self):
        self.heard.append(self.clock[0])

    def catch_up(self):
        self.caught_up.append(len(self.heard))


def test_clock_restarts_after_a_large_delay(monkeypatch):
    """A delay of 0.1 s is made up; after a larger one the clock restarts."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds + 4e-4))
    pace, inbox = RealTime(0.004), ToldTheTime(now)
    pace.begin()
    for busy in (0.001, 0.001, 0.09, 0.001, 0.5, 0.001):
        pace.sending()
        pace.sent(inbox)
        now[0] += busy
        assert pace.wait(inbox, lambda: None, lambda: False)
    lateness = pace.lateness()
    assert inbox.heard[:3] == pytest.approx([0.0, 0.0041, 0.0081])
    assert (lateness.cycles, lateness.late, lateness.restarts) == (6, 3, 1)
    assert lateness.worst == pytest.approx(0.5 + 0.09, abs=0.02), "the clock is set anew after it"
    assert inbox.caught_up == [4, 5, 6], "in the cycles that were late"
    assert not pace.wait(inbox, lambda: None, lambda: True)


def test_endless_answers_do_not_delay_a_stop():
    class Inbox:
        has_answer, capacity = True, 10

        def listen(self, most):
            assert most == 1

    pace = Lockstep(1.0, 1.0)
    inbox = Inbox()
    inbox.counts = type("Counts", (), {"valid": 1})()
    assert [pace.wait(inbox, lambda: None, lambda: True) for _ in range(12)] == [True] * 10 + [False] * 2


def test_invalid_addresses_raise_egm_error():
    channel = UdpChannel(("127.0.0.1", 6510))
    for client, bind, sentence in (
        (("192.0.2.1", 6510), None, "the client 192.0.2.1:6510 is on another machine: bind must name"),
        (("127.0.0.1", 0), None, "expected a destination port of 1 to 65535, got 0"),
        (("no-such-host.invalid", 6510), None, "cannot resolve the address no-such-host.invalid:6510: "),
        (("127.0.0.1", 6510), ("127.0.0.1", channel.port), "Address already in use"),
        (("127.0.0.1", 6510), ("::1", 0), "same IP version as 127.0.0.1:6510 in bind, got "),
    ):
        with pytest.raises(EgmError, match=sentence):
            UdpChannel(client, *([bind] if bind else []))
    channel.close()


def test_robot_rejects_invalid_arguments(robot):
    for plan, options, error, sentence in (
        ({}, {"start": np.full(6, 10.0)}, LimitError, "joint_1 would be at .* at the start"),
        ({}, {"start": np.zeros(5)}, ValueError, "expected start of shape"),
        ({"lag": -1}, {}, EgmError, "expected a lag of 0 to 1000 ms, got -1"),
        ({}, {"time_step": 5e-4, "steps_per_period": 3}, EgmError, "divides the cycle of 4 ms, got 1.5 ms"),
    ):
        with pytest.raises(error, match=sentence):
            made(robot, 6510, egm.Plan(**plan), **options)


# Sessions that a RAPID program leads: moves, guidance between them, faults and their handlers.


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
    return list(dict.fromkeys(log.arrays["line"].tolist()))


def led(program, answer):
    """Run a program with a client in this process; return the finished session and its fault."""
    guided = GuidedArm(program.robot, program.controller_for(None), A)
    made = ProgramSession(
        guided, program.settings(A), None, Wire(answer), CycleByCycle(), egm.Plan(), partner="the client",
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
    return lambda message: egm.SensorMessage(message.seqno, **references)


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
        running = message.state is egm.MotionState.RUNNING
        self.lives -= self.running and not running
        first, self.running = running and not self.running, running
        if self.lives > 0 or first:
            return egm.SensorMessage(message.seqno, q=FIRST, qd=None if self.lives > 0 else np.full(6, 0.1))
        return None


def test_client_guides_twice_between_moves(arm, tmp_path):
    def client(message):
        guiding.append(message.state is egm.MotionState.RUNNING)
        begun = sum(after and not before for before, after in pairwise(guiding))
        return egm.SensorMessage(message.seqno, q=FIRST if begun < 2 else SECOND)

    guiding = [False]
    made, log = completed(program_of(arm, written(tmp_path, TWO_RUNS)), client)
    assert made.done.completed == 2
    np.testing.assert_allclose(log.q[-1], A, rtol=0, atol=1e-12)
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-12
    assert lines_of(log) == [12, 16, 17, 18, 19]
    for line, target in ((17, FIRST), (19, SECOND)):
        reached = log.q[np.flatnonzero(log.arrays["line"] == line)[0] - 1]
        assert np.degrees(np.max(np.abs(reached - target))) < 0.5
    moved = np.flatnonzero(log.arrays["line"] == 17)
    assert np.degrees(log.q[moved[-1]]) == pytest.approx([20, 10, -10, 15, 40, -30], abs=0.1)


def test_fault_without_a_handler_ends_the_program_with_its_line(arm, tmp_path):
    made, fault = led(program_of(arm, written(tmp_path, DYING)), Dying(0))
    assert "guided.mod, line 16: ERR_UDPUC_COMM has no handler: no message from the client" in str(fault)
    assert made.log().arrays["line"][-1] == 16


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
    begins = int(np.argmax(log.arrays["line"] == 16))
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
    assert log.robot.payload is not None or [row[0] for row in log.arrays[LOADS].tolist()][-1] == 1.0


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
    middle = int(np.mean(np.flatnonzero(logs[1].arrays["line"] == 16)))
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
    given = egm.GuidanceSettings(position_gain=17.0, comm_timeout=9.0)
    found = program_of(arm, written(tmp_path, TWO_RUNS), parameters=given).settings(A)
    assert (found.position_gain, found.comm_timeout, found.max_speed_deviation) == (17.0, 0.2, 60.0)
    assert found.cond_window == "0.2,0.5,0.5,0.5,0.5,0.5"
