"""abb-robot-client 0.4.0, unchanged: every method against a virtual controller."""

import time
from functools import partial

import numpy as np
import pytest
from abb_robot_client.rws import (
    RWS,
    ABBException,
    JointTarget,
    SubscriptionResourcePriority,
    SubscriptionResourceRequest,
    SubscriptionResourceType,
)

from tests.support.refusals import refused
from tests.support.web_services import WebServices, wait_until
from twin.abb.rapid.values import PREDEFINED


@pytest.fixture
def client(served):
    made = RWS(served.url)
    yield made
    served.controller.call(lambda: served.controller.execution.set_motors(True))
    made.close()


def stopped(client):
    return client.get_execution_state().ctrlexecstate == "stopped"


def test_a_program_is_started_watched_and_started_again(served, client):
    assert client.get_operation_mode() == "AUTO"
    assert client.get_controller_state() == "motoron"
    before = client.read_event_log()[0].seqnum
    for k in (1, 2):
        client.resetpp()
        client.start(cycle="once", tasks=["T_ROB1"])
        wait_until(lambda: stopped(client))
        assert client.get_rapid_variable_num("count") == k
    titles = [one.title for one in client.read_event_log() if one.seqnum > before]
    expected = ["Program pointer has been reset", "Program started", "Program stopped"]
    assert titles[::-1] == expected * 2
    assert client.get_digital_io("do1") == 1


def test_a_program_is_stopped_on_its_path_and_continues(served, client):
    client.set_speedratio(10)
    wait_until(lambda: served.controller.unit.motion.rate < 0.11)
    client.resetpp()
    client.start(cycle="once")
    wait_until(lambda: client.get_jointtarget().robax[0] > 0.5)
    assert client.get_tasks()["T_ROB1"].excstate == "star"
    with pytest.raises(ABBException, match="stopped") as caught:
        client.resetpp()
    assert caught.value.code == -1073442809
    with pytest.raises(ABBException, match="the execution runs already"):
        client.start()
    client.stop()
    wait_until(lambda: served.controller.unit.motion.rests)
    assert client.get_tasks()["T_ROB1"].excstate == "stop"
    angle = client.get_jointtarget().robax[0]
    assert 0.4 < angle < 4.5
    client.set_speedratio(100)
    client.start()
    wait_until(lambda: stopped(client))
    assert client.get_jointtarget().robax[0] == pytest.approx(0.0, abs=1e-3)


def test_start_is_refused_with_motors_off_and_motors_off_stop(served, client):
    client.set_controller_state("motoroff")
    assert client.get_controller_state() == "motoroff"
    with pytest.raises(ABBException, match="motors are on"):
        client.start()
    client.set_controller_state("motoron")
    client.resetpp()
    client.start()
    client.set_controller_state("motoroff")
    assert stopped(client)
    with pytest.raises(ABBException, match="expected one of motoron, motoroff"):
        client.set_controller_state("motors")


def test_data_is_read_and_written_as_rapid_writes_it(client):
    client.set_rapid_variable("count", "1E+3")
    assert client.get_rapid_variable("count") == "1000"
    client.set_rapid_variable_num("hidden", -2.5)
    assert client.get_rapid_variable_num("hidden") == -2.5
    for text in ('"a + b"', '"<c> & ""d"""', '"%41"', '""'):
        client.set_rapid_variable("note", text)
        assert client.get_rapid_variable("note") == text
    client.set_rapid_variable("ready", "FALSE")
    assert client.get_rapid_variable("ready") == "FALSE"
    client.set_rapid_variable_num_array("list", [4, 5.5, -6])
    assert client.get_rapid_variable_num_array("list").tolist() == [4, 5.5, -6]
    client.set_rapid_variable("M/table", "[[5,6],[7,8]]")
    assert client.get_rapid_variable("M/table") == "[[5,6],[7,8]]"
    target = JointTarget(np.radians([1, 2, 3, 4, 5, 6]), np.radians([9e9] * 6))
    client.set_rapid_variable_jointtarget("jt", target)
    assert np.degrees(client.get_rapid_variable_jointtarget("jt").robax) == pytest.approx([1, 2, 3, 4, 5, 6])
    client.set_rapid_variable_jointtarget_array("jts", [target])
    [read] = client.get_rapid_variable_jointtarget_array("jts")
    assert np.degrees(read.robax) == pytest.approx([1, 2, 3, 4, 5, 6])
    assert client.get_rapid_variable("M/own") == "1"


NO_VALUE = "expected a value as RAPID writes it"
WRONG = (
    ("count", "TRUE", "count: expected num, got TRUE"), ("count", "1+1", NO_VALUE),
    ("count", "reg1", NO_VALUE), ("count", "1;\nVAR num y := 2", NO_VALUE),
    ("count", "1;\nENDMODULE\nMODULE N", NO_VALUE),
    ("list", "[1,2]", "list is an array of 3"), ("table", "[[1,2],[3]]", "table is an array of 2x2"),
    ("list", "1", "expected an array"), ("jt", "[1,2]", "expected"),
    ("note", f'"{81 * "x"}"', "at most 80 characters"), ("M/a", "1", "a is constant"),
    ("own", "1", "there is no data own"), ("nothing", "1", "there is no data nothing"),
    ("M/x/y", "1", "expected TASK/module/name"),
)  # fmt: skip


def test_wrong_data_is_refused_and_nothing_changes(client):
    before = client.get_rapid_variable("list")
    rows = ((partial(client.set_rapid_variable, name, value), told) for name, value, told in WRONG)
    refused(*rows, error=ABBException)
    assert client.get_rapid_variable("list") == before


def test_persistents_are_searched(client):
    names = {one["name"] for one in client.get_rapid_variables()}
    assert {"count", "own", "table", "tGripper"} <= names
    assert not names & {"hidden", "a"}
    [table] = [one for one in client.get_rapid_variables() if one["name"] == "table"]
    assert (table["dattyp"], table["ndim"], table["dim"]) == ("num", "2", "2 2")


def test_pose_and_joint_angles_are_those_of_the_arm(served, client):
    q = served.controller.arm.q
    assert client.get_jointtarget().robax == pytest.approx(np.degrees(q), abs=1e-6)
    target = client.get_robtarget()
    pose = served.controller.unit.kinematics.target(PREDEFINED["tool0"].value, PREDEFINED["wobj0"].value, q)
    assert target.trans == pytest.approx(pose["trans"].values, abs=1e-3)
    shifted = client.get_robtarget(tool="tGripper", wobj="wobjTableN", coordinate="Wobj")
    assert np.linalg.norm(shifted.trans - target.trans + [400, 0, 0]) == pytest.approx(100.0, abs=1e-3)
    based = client.get_robtarget(tool="tGripper", wobj="wobjTableN", coordinate="Base")
    assert based.trans - shifted.trans == pytest.approx([400, 0, 0], abs=1e-3)
    with pytest.raises(ABBException, match="there is no tooldata none"):
        client.get_robtarget(tool="none")
    with pytest.raises(ABBException, match="expected ROB_1"):
        client.get_jointtarget("ROB_2")


def test_signals_files_users_speed_and_active_tasks(served, client):
    client.set_digital_io("do1", 0)
    assert client.get_digital_io("do1") == 0
    client.set_analog_io("ao1", 2.5)
    assert client.get_analog_io("AO1") == 2.5
    with pytest.raises(ABBException, match="there is no signal none") as caught:
        client.get_digital_io("none")
    assert caught.value.code == -1073445866
    path = f"{client.get_ramdisk_path()}/folder/data.bin"
    content = bytes(range(256)) * 100
    client.upload_file(path, content)
    assert client.read_file(path) == content
    assert (served.home / "folder" / "data.bin").read_bytes() == content
    assert client.list_files("$home/folder") == ["data.bin"]
    client.delete_file(path)
    assert client.list_files("HOME:/folder/") == []
    client.request_rmmp()
    assert client.poll_rmmp()
    client.set_speedratio(40)
    assert client.get_speedratio() == 40.0
    client.set_speedratio(100)
    client.deactivate_task("T_ROB1")
    assert not client.get_tasks()["T_ROB1"].active
    client.start()  # which activates it
    assert client.get_tasks()["T_ROB1"].active
    client.stop()


def test_messages_go_to_a_task_and_back(abb_robot, tmp_path):
    body = """
    VAR rmqslot slot; VAR rmqmessage message; VAR num n; VAR string s;
    PROC main()
      RMQReadWait message; RMQGetMsgData message, n;
      RMQFindSlot slot, "answers";
      n := 2 * n; RMQSendMessage slot, n \\UserDef:=7;
      RMQReadWait message; RMQGetMsgData message, s;
      RMQSendMessage slot, s;
      WaitTime 60;
    ENDPROC
    ENDMODULE"""
    with WebServices(abb_robot, tmp_path, {"T_ROB1": f"MODULE M {body}"}) as served:
        client = RWS(served.url)
        assert client.try_create_ipc_queue("answers")
        assert not client.try_create_ipc_queue("Answers")
        client.start(cycle="once")
        client.send_ipc_message("RMQ_T_ROB1", "num;21", "answers", userdef=3)
        [message] = client.read_ipc_message("answers", timeout=10)
        assert (message.data, message.userdef, message.queue_name) == ("num;42", "7", "RMQ_T_ROB1")
        assert client.read_ipc_message("answers") == []
        heard = []
        kind = SubscriptionResourceType.IpcQueue
        wanted = SubscriptionResourceRequest(kind, SubscriptionResourcePriority.Medium, "answers")
        subscription = client.subscribe([wanted], heard.append)
        wait_until(lambda: any(one.is_open for one in served.services.subscriptions.all))
        client.send_ipc_message("RMQ_T_ROB1", "a <b>", "answers")
        wait_until(lambda: heard)
        assert heard[0].data == "string;&quot;a &lt;b&gt;&quot;"  # the client does not decode XML
        send = partial(client.send_ipc_message, queue_name="answers")
        refused(
            (lambda: send("none", "num;1"), "no queue none"),
            (lambda: send("RMQ_T_ROB1", "num;TRUE"), "expected num"),
            (lambda: send("RMQ_T_ROB1", "num;f(1)"), NO_VALUE), error=ABBException,
        )  # fmt: skip
        subscription.close()
        client.close()


def test_events_come_within_20_ms(served, client):
    kind, medium = SubscriptionResourceType, SubscriptionResourcePriority.Medium
    plain = (kind.ControllerState, kind.ExecutionState, kind.OperationalMode, kind.Elog)
    wanted = [SubscriptionResourceRequest(one, medium) for one in plain]
    wanted.append(SubscriptionResourceRequest(kind.Signal, medium, "ao1"))
    wanted.append(SubscriptionResourceRequest(kind.PersVar, medium, "list"))
    events, times = [], []
    subscription = client.subscribe(wanted, lambda one: events.append((time.perf_counter(), one)))
    wait_until(lambda: any(one.is_open for one in served.services.subscriptions.all))
    for k in range(20):
        began = time.perf_counter()
        client.set_analog_io("ao1", 10.0 + k)
        t, event = wait_until(lambda: events and events.pop())
        assert (event.name, event.lvalue) == ("ao1", f"{10 + k}")
        times.append(t - began)
    assert np.median(times) < 0.02
    client.set_rapid_variable("list", "[7,8,9]")
    client.set_controller_state("motoroff")
    wait_until(lambda: any(getattr(one, "state", "") == "motoroff" for _, one in events))
    client.set_controller_state("motoron")
    client.resetpp()
    client.start(cycle="once")
    wait_until(lambda: stopped(client))
    names = ["VariableValue", "ControllerState", "RAPIDExecutionState", "EventLogEntryEvent"]
    wait_until(lambda: {type(one).__name__ for _, one in events} >= set(names))
    assert "[7,8,9]" in [one.value for _, one in events if hasattr(one, "value")]
    subscription.close()
