"""Start-up and polling of the C++ drivers, field by field as their code reads them, and rwsuis 0.2."""

import socket
import time

import numpy as np
import pytest
from rwsuis.RWS import RWS
from websockets.sync.client import connect

from tests.support.cpp_client import found, text
from tests.support.web_services import wait_until

UNIT_STATES = "tool-name wobj-name payload-name total-payload-name status jog-mode coord-system"
KINDS = "p robtarget count num wide dnum ready bool note string zone zonedata"


def attributes(instance):
    return {one.get("title"): text(one, "value") for one in found(instance, "cfg-ia-t-li")}


def test_start_up_and_polling_of_a_driver(served, client):
    """The thirteen requests of the start, and the eight of each poll, on one connection with one digest."""
    system = client.document("/rw/system")
    [info] = found(system, "sys-system-li")
    version = text(info, "rwversionname")
    assert text(info, "name")
    assert tuple(map(int, version.split(".")[:3])) >= (6, 7, 1)
    assert version.count(".") == 3
    options = [text(one, "option") for one in found(system, "sys-option-li")]
    assert "689-1 Externally Guided Motion (EGM)" in options
    assert text(client.document("/ctrl"), "ctrl-type")

    def instances(name):
        return found(client.document(f"/rw/cfg/{name}/instances"), "cfg-dt-instance-li")

    assert not instances("sys/mechanical_unit_group")
    assert not instances("moc/single")
    [unit] = map(attributes, instances("moc/mechanical_unit"))
    [robot] = map(attributes, instances("moc/robot"))
    assert unit["use_robot"] == unit["name"] == robot["name"] == "ROB_1"
    assert robot["use_robot_type"]
    keys = ("pos_x", "pos_y", "pos_z", *map("orient_u{}".format, range(4)))
    assert [float(robot[f"base_frame_{key}"]) for key in keys] == [0, 0, 0, 1, 0, 0, 0]
    joints = {one["name"]: one for one in map(attributes, instances("MOC/JOINT"))}
    arms = {one["name"]: one for one in map(attributes, instances("moc/arm"))}
    turning = {one.get("title"): attributes(one)["rotating_move"] for one in instances("MOC/TRANSMISSION")}
    for k in range(6):
        joint = joints[robot[f"use_joint_{k}"]]
        assert (joint["logical_axis"], joint["kinematic_axis_number"]) == (str(k + 1), str(k + 1))
        assert turning[joint["use_transmission"]] == "true"
        bounds = [float(arms[joint["use_arm"]][f"{side}_joint_bound"]) for side in ("lower", "upper")]
        ours = served.controller.robot.q_min[k], served.controller.robot.q_max[k]
        assert bounds == pytest.approx(ours, rel=1e-8)
    unit = client.document("/rw/motionsystem/mechunits/ROB_1?resource=static")
    expected = {
        "task-name": "T_ROB1", "type": "TCPRobot", "axes": "6", "axes-total": "6",
        "is-integrated-unit": "NoIntegratedUnit", "has-integrated-unit": "NoIntegratedUnit",
    }  # fmt: skip
    assert {kind: text(unit, kind) for kind in expected} == expected
    unit = client.document("/rw/motionsystem/mechunits/ROB_1?resource=dynamic")
    for kind in UNIT_STATES.split():
        assert text(unit, kind), kind
    assert text(unit, "mode") == "Activated"
    [task] = found(client.document("/rw/rapid/tasks"), "rap-task-li")
    expected = {"name": "T_ROB1", "motiontask": "TRUE", "active": "On", "excstate": "read"}
    assert {kind: text(task, kind) for kind in expected} == expected
    [module] = found(client.document("/rw/rapid/modules?task=T_ROB1"), "rap-module-info-li")
    assert (text(module, "name"), text(module, "type")) == ("M", "ProgMod")
    began = time.perf_counter()
    polled = "panel/ctrlstate panel/opmode rapid/execution motionsystem/mechunits/ROB_1/jointtarget"
    last = [client.document(f"/rw/{uri}") for uri in polled.split()][-1]
    assert time.perf_counter() - began < 4 * 0.4  # the drivers give up after 0.4 s
    axes = [float(text(last, f"rax_{k}")) for k in range(1, 7)]
    assert axes == pytest.approx(np.degrees(served.controller.arm.q), abs=1e-3)
    assert float(text(last, "eax_a")) == 9e9
    assert client.challenges == 1


def test_commands_of_a_driver(served, client):
    data, execution = "/rw/rapid/symbol/data/RAPID/T_ROB1/M", "/rw/rapid/execution?action"
    kinds = KINDS.split()
    for name, kind in zip(kinds[::2], kinds[1::2], strict=True):
        assert text(client.document(f"{data.replace('data', 'properties')}/{name}"), "dattyp") == kind
    target = "[[1,2,3],[1,0,0,0],[0,0,0,0],[9E+9,9E+09,9E9,9E9,9E9,9E9]]"
    assert client.post(f"{data}/p?action=set", f"value={target}") == 204  # nothing encoded: a plus is a plus
    written = target.replace("9E+9,", "9E+09,").replace("9E9", "9E+09")
    assert text(client.document(f"{data}/p"), "value") == written
    assert client.post(f"{data}/note?action=set", 'value="a b"') == 204
    assert text(client.document(f"{data}/note"), "value") == '"a b"'
    assert client.post("/rw/iosystem/signals/do1?action=set", "lvalue=1") == 204
    assert text(client.document("/rw/iosystem/signals/do1"), "lvalue") == "1"
    names = [text(one, "name") for one in found(client.document("/rw/iosystem/signals"), "ios-signal-li")]
    assert {"do1", "DoGrip"} <= {*names}  # as the configuration has them
    assert text(client.document("/rw/iosystem/signals/dogrip"), "name") == "DoGrip"
    assert client.post("/rw/panel/speedratio?action=setspeedratio", "speed-ratio=100") == 204
    assert text(client.document("/rw/panel/speedratio"), "speedratio") == "100"
    for state in ("motoroff", "motoron"):
        assert client.post("/rw/panel/ctrlstate?action=setctrlstate", f"ctrl-state={state}") == 204
    assert client.post(f"{execution}=resetpp") == 204
    start = "regain=continue&execmode=continue&cycle=once&condition=none&stopatbp=disabled&alltaskbytsp=false"
    assert client.post(f"{execution}=start", start) == 204
    assert text(client.document("/rw/rapid/execution"), "ctrlexecstate") == "running"
    assert client.post(f"{execution}=stop", "stopmode=stop") == 204
    assert client.request("PUT", "/fileservice/$home/a.txt", "content")[0] == 201
    assert client.request("GET", "/fileservice//$home/a.txt/")[2] == b"content"
    assert client.request("DELETE", "/fileservice/$home/a.txt")[0] in (200, 204)
    users = "username=Default User&application=ExternalApplication&location=ExternalLocation&ulocale=local"
    assert client.post("/users", users) == 201
    pose = client.document("/rw/motionsystem/mechunits/ROB_1/robtarget?coordinate=Word&tool=tool0&wobj=wobj0")
    for kind in ("x", "y", "z", "q1", "q2", "q3", "q4", "cf1", "cf4", "cf6", "cfx", "eax_a", "eax_f"):
        assert np.isfinite(float(text(pose, kind))), kind
    assert client.challenges == 1
    client.document("/logout")
    client.document("/rw/system")
    assert client.challenges == 2


def test_a_subscription_of_a_driver(served, client):
    resources = "resources=0&0=/rw/iosystem/signals/ao1;state&0-p=1&resources=1&1=/rw/panel/ctrlstate&1-p=0"
    status, headers, _ = client.request("POST", "/subscription", resources)
    assert status == 201
    address = headers["Location"]
    assert address.startswith(f"ws://127.0.0.1:{served.port}/poll/")
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    given = {"subprotocols": ["robapi2_subscription"], "additional_headers": {"Cookie": cookies}}
    with connect(address, **given) as events:
        client.post("/rw/iosystem/signals/ao1?action=set", "lvalue=3.5")
        event = events.recv(timeout=5)
        assert len(event) < 1024  # the driver's buffer
        parts = 'class="ios-signalstate-ev"', '<a href="/rw/iosystem/signals/ao1;state"'
        assert event.index(parts[0]) < event.index(parts[1])
        assert '<span class="lvalue">3.5</span>' in event
        number = address.rpartition("/")[2]
        assert client.request("DELETE", f"/subscription/{number}")[0] == 200
        with pytest.raises(Exception, match="1000"):  # closed by the server
            events.recv(timeout=5)
    assert client.request("DELETE", f"/subscription/{number}")[0] == 404


def test_rwsuis(served, capsys):
    client = RWS(served.url)
    client.motors_on()
    client.set_speed_ratio(100)
    client.set_rapid_variable("ready", "TRUE")
    client.start_RAPID()
    wait_until(lambda: client.get_rapid_variable("ready") == "FALSE")
    client.wait_for_rapid("ready")
    assert client.get_rapid_variable("ready") == "FALSE"
    wait_until(lambda: not client.is_running())
    client.set_robtarget_translation("p", [10, 20, 30])
    client.set_robtarget_rotation_z_degrees("p", 30)
    trans, rot = client.get_robtarget_variables("p")
    assert trans == [10, 20, 30]
    assert np.linalg.norm(rot) == pytest.approx(1.0)
    client.set_rapid_array("list", [1, 2, 3])
    client.set_zonedata("zone", 20)
    client.set_speeddata("speed", 50)
    assert client.get_rapid_variable("speed") == "[50,500,5000,1000]"
    place, _ = client.get_gripper_position()
    assert client.get_gripper_height() == place[2]
    client.request_mastership()
    client.release_mastership()
    client.request_rmmp()
    client.cancel_rmmp()
    client.stop_RAPID()
    client.motors_off()
    assert client.get_controller_state() == "motoroff"
    client.start_RAPID()
    client.motors_on()
    client.session.close()
    out = capsys.readouterr().out
    for sentence in ("motors turned on", "speed ratio to 100", "started from main", "zonedata to z20",
                     "RAPID execution stopped", "Could not start RAPID"):  # fmt: skip
        assert sentence in out


def test_a_websocket_is_pinged_and_a_dead_client_forgotten(served, client, monkeypatch):
    monkeypatch.setattr("twin.abb.rws.subscriptions.PING", 0.05)
    _, headers, _ = client.request("POST", "/subscription", "resources=1&1=/rw/panel/opmode&1-p=1")
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    path = "/" + headers["Location"].split("/", 3)[3]
    with socket.create_connection(("127.0.0.1", served.port)) as raw:
        raw.settimeout(5.0)
        raw.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Cookie: {cookies}\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Protocol: robapi2_subscription\r\n\r\n".encode()
        )
        received = b""
        while b"\x89\x00" not in received:  # a ping
            received += raw.recv(1000)
        assert received.startswith(b"HTTP/1.1 101")
        while raw.recv(1000):  # this client answers none
            pass
    wait_until(lambda: not any(one.is_open for one in served.services.subscriptions.all))
