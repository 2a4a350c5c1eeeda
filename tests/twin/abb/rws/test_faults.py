"""Faults of clients: passwords, bodies, slow and many connections, paths, names, modules."""

import contextlib
import http.client
import json
import socket
import time
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from tests.support.cpp_client import CppClient, digest, found, text
from tests.support.web_services import PROGRAM, USER, WebServices, wait_until

LIBRARY = "MODULE Library\nPERS num extra:=5;\nPROC helper()\nENDPROC\nENDMODULE\n"
OTHER = (
    "MODULE O\nPERS num secret:=42; LOCAL VAR num deep:=1;\nPROC main()\n WaitTime 1;\nENDPROC\nENDMODULE\n"
)


@pytest.fixture(scope="module")
def served(abb_robot, tmp_path_factory):
    tasks = {"T_ROB1": PROGRAM, "T_OTHER": OTHER}
    with WebServices(abb_robot, tmp_path_factory.mktemp("cell"), tasks) as made:
        yield made


def refused(answer):
    """Return the status of a refusal, its code and its sentence."""
    status, headers, body = answer
    if headers["Content-Type"] == "application/json":
        given = json.loads(body)["_embedded"]["status"]
        return status, int(given["code"]), given["msg"]
    root = ElementTree.fromstring(body)
    return status, int(text(root, "code")), text(root, "msg")


def once(port, method, uri, body=b"", **headers):
    """Return status, headers and body of a request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, uri, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


# ------------------------------------------------------------------------------------------ passwords


def cookies_of(client):
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def test_a_wrong_password_a_replay_and_no_password(served):
    def status(authorization, method="GET", uri="/rw/system"):
        return once(served.port, method, uri, Authorization=authorization)[0]

    challenge = once(served.port, "GET", "/rw/system")[1]["WWW-Authenticate"]
    for user, uri in (((USER[0], "wrong"), "/rw/system"), (("A", "b"), "/x")):
        assert status(digest(challenge, "GET", uri, user=user)) == 401
    right = digest(challenge, "GET", "/rw/system")
    assert [status(right), status(right)] == [200, 401]  # a replay
    following = digest(challenge, "GET", "/rw/system", count="00000002")
    assert status(following, "POST") == 401  # of another method
    assert status(following) == 200
    invented = challenge.replace(challenge.split('nonce="')[1][:8], "00000000")
    assert status(digest(invented, "GET", "/rw/system")) == 401
    for header in ("Digest", 'Digest username="Default User"', "Basic eDp5", "", "\xff"):
        assert status(header) == 401
    assert once(served.port, "GET", "/rw/system", Cookie="ABBCX=1; -http-session-=")[0] == 401
    before = served.controller.execution.motors
    assert (
        once(served.port, "POST", "/rw/panel/ctrlstate?action=setctrlstate", b"ctrl-state=motoroff")[0] == 401
    )
    assert once(served.port, "PUT", "/fileservice/$home/x.txt", b"1")[0] == 401
    assert served.controller.execution.motors == before
    assert not (served.home / "x.txt").exists()


def test_a_body_before_a_401_does_not_spoil_the_connection(served):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    for _ in range(3):
        connection.request("POST", "/rw/panel/ctrlstate?action=setctrlstate", b"ctrl-state=motoron" * 1000)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 401
    connection.close()


# --------------------------------------------------------------------------------------------- bodies


def test_bodies_that_are_missing_too_large_or_of_unknown_size(served, client):
    assert client.post("/rw/panel/speedratio?action=setspeedratio") == 400
    answer = client.request("POST", "/rw/panel/speedratio?action=setspeedratio&json=1", "speed-ratio=x")
    assert refused(answer) == (400, -1073445879, "speed-ratio: expected a number from 0 to 100")
    large = 100 * 2**20
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    cookies = cookies_of(client)
    connection.request("PUT", "/fileservice/$home/large.bin", bytes(large), {"Cookie": cookies})
    answer = connection.getresponse()
    assert answer.status == 413
    assert b"the limit is 67108864" in answer.read()
    connection.close()
    assert not (served.home / "large.bin").exists()
    for headers in ({"Content-Length": "-1"}, {"Content-Length": "x"}, {"Transfer-Encoding": "chunked"}):
        assert once(served.port, "PUT", "/fileservice/$home/a", **headers, Cookie=cookies)[0] == 411


def test_a_file_appears_whole_or_not_at_all(served, client):
    assert client.request("PUT", "/fileservice/$home/whole.txt", "before")[0] == 201
    cookies = cookies_of(client)
    with socket.create_connection(("127.0.0.1", served.port)) as raw:
        head = f"PUT /fileservice/$home/whole.txt HTTP/1.1\r\nHost: x\r\nCookie: {cookies}\r\n"
        raw.sendall(head.encode() + b"Content-Length: 99\r\n\r\nhalf")
    assert client.request("GET", "/fileservice/$home/whole.txt")[2] == b"before"
    assert client.request("PUT", "/fileservice/$home/whole.txt", "after")[0] == 200
    assert client.request("GET", "/fileservice/$home/whole.txt")[2] == b"after"
    assert [one.name for one in served.home.iterdir()] == ["whole.txt"]
    client.request("DELETE", "/fileservice/$home/whole.txt")
    assert client.request("DELETE", "/fileservice/$home/whole.txt")[0] == 404


# ---------------------------------------------------------------------------------------- connections


def test_slow_clients_and_two_hundred_connections_delay_nobody(served, client):
    client.document("/rw/system")
    with contextlib.ExitStack() as stack:
        for k in range(200):
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            raw.sendall(b"GET /rw/sys" if k % 2 else b"")
        wait_until(lambda: len(served.services.connections) >= 201)
        began = time.perf_counter()
        for _ in range(20):
            client.document("/rw/rapid/execution")
        assert (time.perf_counter() - began) / 20 < 0.1
        for _ in range(100):  # further ones are closed at once
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
        raw.settimeout(5.0)
        assert raw.recv(1) == b""
    wait_until(lambda: len(served.services.connections) <= 1)
    client.document("/rw/rapid/execution")


NO_REQUESTS = (
    b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
    b"BREW / HTTP/1.1\r\n\r\n",
    b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
)  # fmt: skip


def test_what_is_no_request_ends_its_connection_alone(served, client):
    for data in NO_REQUESTS:
        with socket.create_connection(("127.0.0.1", served.port)) as raw:
            raw.settimeout(5.0)
            with contextlib.suppress(ConnectionError):
                raw.sendall(data)
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(10_000):
                    pass
        client.document("/rw/rapid/execution")


# ----------------------------------------------------------------------------------------------- paths


OUTSIDE = """$home/../outside.txt $home/%2e%2e/outside.txt HOME:/..%2Foutside.txt HOME:%2F..%2Foutside.txt
    $home/a/../../outside.txt $home/..%5Coutside.txt $home//etc/passwd/../../../outside.txt $home/file_link
    $home/link/outside.txt HOME:/%00 RAMDISK:/../outside.txt TEMP/%252e%252e/outside.txt"""
OTHER_DEVICES = "/etc/passwd %2Fetc%2Fpasswd C:/x file:///etc/passwd .. $home/.. BACKUP:/x"
OTHER_TASKS = "T_ROB1/secret T_ROB1/O/secret T_OTHER/deep T_OTHER/count T_NONE/count secret"


def test_no_path_leaves_the_folder(served, client):
    outside = served.home.parent / "outside.txt"
    outside.write_text("theirs")
    for name, target in (("link", outside.parent), ("file_link", outside)):
        (served.home / name).symlink_to(target)
    for path in OUTSIDE.split():
        assert client.request("GET", f"/fileservice/{path}")[0] in (403, 404)
        assert client.request("PUT", f"/fileservice/{path}", "ours")[0] in (201, 403, 404)
        assert client.request("DELETE", f"/fileservice/{path}")[0] in (204, 403, 404)
        assert outside.read_text() == "theirs", path
        assert {one.name for one in served.home.parent.iterdir()} == {"home", "modules", "outside.txt"}
    for path in OTHER_DEVICES.split():
        assert client.request("GET", f"/fileservice/{path}")[0] in (403, 404), path
    assert client.request("DELETE", "/fileservice/$home")[0] == 403
    assert refused(client.request("GET", "/ctrl/$SECRET"))[2].startswith("there is no variable $SECRET")


# --------------------------------------------------------------------------------- names and texts


def test_symbols_of_another_task_and_local_ones_are_not_found(client):
    data = "/rw/rapid/symbol/data/RAPID"
    assert text(client.document(f"{data}/T_OTHER/secret"), "value") == "42"
    assert text(client.document(f"{data}/t_other/O/DEEP"), "value") == "1"
    for path in OTHER_TASKS.split():
        assert refused(client.request("GET", f"{data}/{path}"))[0] == 400, path


def test_names_and_texts_stay_texts(served, client):
    for name in ('"><span class="value">1</span>', "<x/>", '\\","code":"0', "\x01\x08", "a%00b", "ä€"):
        uri = f"/rw/rapid/symbol/data/RAPID/T_ROB1/{quote(name, safe='%')}"
        status, code, sentence = refused(client.request("GET", uri))
        assert (status, code) == (400, -1073414146)
        assert "there is no data" in sentence
        assert refused(client.request("GET", f"{uri}?json=1"))[:2] == (400, -1073414146)
        served.controller.signals.write(name, 1.0)  # of a station's file
        listed = client.document("/rw/iosystem/signals")
        assert len(listed.findall(".//{*}li")) == len(served.controller.signals.names)
        status, _, body = client.request("GET", "/rw/iosystem/signals?json=1")
        assert name.lower() in [one["name"] for one in json.loads(body)["_embedded"]["_state"]]


def test_an_address_in_a_header_stays_an_address(client):
    client.document("/rw/system")
    cookies = cookies_of(client)
    host = 'x"><script>'
    port = client.connection.port
    content = b"resources=1&1=/rw/elog/0&1-p=1"
    _, headers, body = once(port, "POST", "/subscription", content, Host=host, Cookie=cookies)
    assert "script" not in headers["Location"]
    assert b"<script>" not in body


def test_unknown_resources_methods_and_actions(client):
    assert refused(client.request("GET", "/rw/none"))[:2] == (404, -1073414146)
    assert refused(client.request("DELETE", "/rw/system"))[::2] == (405, "/rw/system takes GET")
    told = refused(client.request("POST", "/rw/rapid/execution?action=x"))[2]
    assert "expected the action start, stop" in told
    assert client.request("POST", "/subscription", "resources=1&1=/rw/none&1-p=1")[0] == 404
    assert client.request("POST", "/subscription", "1=/rw/elog/0")[0] == 400
    for path in ("RAPID/T_ROB1/hidden;value", "RAPID/T_ROB1/nothing;value"):
        body = f"resources=1&1=/rw/rapid/symbol/data/{path}&1-p=1"
        assert client.request("POST", "/subscription", body)[0] in (400, 404)
    assert client.request("DELETE", "/subscription/999")[0] == 404
    assert client.request("GET", "/poll/999")[0] == 404


# ------------------------------------------------------------------------------------ modules, starts


def test_modules_are_loaded_replaced_and_removed(served, client):
    tasks = "/rw/rapid/tasks/T_ROB1?action"
    client.request("PUT", "/fileservice/$home/lib.mod", LIBRARY)
    assert client.post(f"{tasks}=loadmod", "modulepath=HOME:/lib.mod&replace=false") == 204
    assert text(client.document("/rw/rapid/symbol/data/RAPID/T_ROB1/extra"), "value") == "5"
    again = client.request("POST", f"{tasks}=loadmod", "modulepath=$HOME/lib.mod")
    assert refused(again) == (400, -1073442809, "the module Library is loaded already")
    client.request("PUT", "/fileservice/$home/lib.mod", LIBRARY.replace("extra:=5", "extra:=6"))
    assert client.post(f"{tasks}=loadmod", "modulepath=HOME:lib.mod&replace=true") == 204
    assert text(client.document("/rw/rapid/symbol/data/RAPID/T_ROB1/extra"), "value") == "6"
    client.request("PUT", "/fileservice/$home/bad.mod", LIBRARY.replace("ENDPROC", "extra := ;\nENDPROC"))
    status, code, sentence = refused(client.request("POST", f"{tasks}=loadmod", "modulepath=HOME:/bad.mod"))
    assert (status, code) == (400, -1073442803)
    assert sentence.startswith("HOME:/bad.mod, line 4:")
    twice = "MODULE Twice\nVAR num helper2:=5;\nPROC main()\nENDPROC\nENDMODULE\n"
    client.request("PUT", "/fileservice/$home/twice.mod", twice)
    sentence = refused(client.request("POST", f"{tasks}=loadmod", "modulepath=HOME:/twice.mod"))[2]
    assert "main is declared in another module already" in sentence
    assert client.request("POST", f"{tasks}=loadmod", "modulepath=HOME:/none.mod")[0] == 400
    assert client.request("POST", f"{tasks}=loadmod", "modulepath=/etc/passwd")[0] == 404
    assert client.post(f"{tasks}=unloadmod", "module=Library") == 204
    assert client.request("POST", f"{tasks}=unloadmod", "module=Library")[0] == 400
    modules = client.document("/rw/rapid/modules?task=T_ROB1")
    assert [one.text for one in modules.iter() if one.get("class") == "name"] == ["M"]
    for name in ("lib", "bad", "twice"):
        client.request("DELETE", f"/fileservice/$home/{name}.mod")


def test_a_program_is_removed_refused_and_loaded_again(served, client):
    tasks, execution = "/rw/rapid/tasks/T_ROB1?action", "/rw/rapid/execution?action"
    client.request("PUT", "/fileservice/$home/m.mod", PROGRAM)
    assert client.post(f"{tasks}=unloadmod", "module=M") == 204
    sentence = refused(client.request("POST", f"{execution}=start", "cycle=once"))
    assert sentence == (400, -1073442809, "the task T_ROB1 has no procedure main")
    assert client.post(f"{tasks}=loadmod", "modulepath=HOME:/m.mod") == 204
    assert client.post(f"{execution}=start", "cycle=once") == 204
    assert client.post(f"{tasks}=loadmod", "modulepath=HOME:/m.mod&replace=true") == 400
    assert client.post(f"{tasks}=activate") == 400
    wait_until(lambda: not served.controller.execution.executing)
    assert text(client.document("/rw/rapid/symbol/data/RAPID/T_ROB1/count"), "value") == "1"


def test_a_fault_of_a_program_is_an_event_and_resetpp_clears_it(served, client):
    tasks, execution = "/rw/rapid/tasks/T_ROB1?action", "/rw/rapid/execution?action"
    faulty = PROGRAM.replace("Incr count;", "Incr count; count := 1 / 0;")
    client.request("PUT", "/fileservice/$home/m.mod", faulty)
    assert client.post(f"{tasks}=loadmod", "modulepath=HOME:/m.mod&replace=true") == 204
    answer = client.request("POST", f"{execution}=start", "cycle=once")
    assert answer[0] == 204, answer[2]
    wait_until(lambda: not served.controller.execution.executing)
    tasks_now = found(client.document("/rw/rapid/tasks"), "rap-task-li")
    states = {text(one, "name"): text(one, "excstate") for one in tasks_now}
    assert states == {"T_OTHER": "star", "T_ROB1": "stop"}
    events = json.loads(client.request("GET", "/rw/elog/0?json=1")[2])["_embedded"]["_state"]
    fault = next(one for one in events if one["msgtype"] == "3")
    assert all(part in fault["desc"] for part in ("1 / 0", "m.mod line"))
    assert fault["code"] == "40229"
    sentence = refused(client.request("POST", f"{execution}=start", "cycle=once"))[2]
    assert "stopped with a fault: move its program pointer to main" in sentence
    assert client.post(f"{execution}=resetpp") == 204
    assert client.post(f"{execution}=start", "cycle=once") == 204
    wait_until(lambda: not served.controller.execution.executing)


def test_mastership_of_another_session_holds(served, client):
    other = CppClient(served.port)
    assert client.post("/rw/mastership?action=request") == 204
    assert refused(other.request("POST", "/rw/rapid/execution?action=resetpp"))[:2] == (403, -1073445862)
    assert refused(other.request("POST", "/rw/mastership/rapid?action=request"))[:2] == (403, -1073445862)
    assert other.post("/rw/mastership?action=release") == 204  # not theirs
    assert refused(other.request("POST", "/rw/rapid/execution?action=resetpp"))[0] == 403
    client.document("/logout")  # mastership ends with the session
    assert other.post("/rw/rapid/execution?action=resetpp") == 204
    assert other.post("/rw/mastership/rapid?action=request") == 204
    for session in served.services.sessions.all:  # of idle ones, too
        session.used -= 301.0
    assert client.post("/rw/rapid/execution?action=resetpp") == 204
    other.close()


def test_strict_has_the_limits_of_a_controller(abb_robot, tmp_path):
    with WebServices(abb_robot, tmp_path, strict=True) as strict:
        clients = [CppClient(strict.port) for _ in range(71)]
        statuses = [one.request("GET", "/rw/system")[0] for one in clients]
        assert statuses == [200] * 70 + [503]
        rates = [clients[0].request("GET", "/rw/panel/opmode")[0] for _ in range(25)]
        assert rates[:10] == [200] * 10
        assert rates[-1] == 503
        one = clients[1]
        one.post("/rw/panel/ctrlstate?action=setctrlstate", "ctrl-state=motoroff")
        one.post("/rw/panel/ctrlstate?action=setctrlstate", "ctrl-state=motoron")
        assert not strict.controller.execution.motors
        began = time.monotonic()
        wait_until(lambda: strict.controller.execution.motors)
        assert 0.8 < time.monotonic() - began < 3.0
        for client in clients:
            client.close()


def test_sessions_end_after_five_minutes_and_are_bounded(monkeypatch):
    from twin.abb.rws import authentication

    now = [1000.0]
    monkeypatch.setattr(authentication.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(authentication, "MOST_SESSIONS", 10)
    sessions = authentication.Sessions(1)
    made = [sessions.begin() for _ in range(25)]
    assert len(sessions.all) == 10
    cookie = f"ABBCX={made[-1].number}"
    now[0] += 299
    assert sessions.of_cookies(cookie) is made[-1]
    now[0] += 301
    assert sessions.of_cookies(cookie) is None
    made[-2].sockets = 1  # a subscription is open
    assert sessions.of_cookies(f"-http-session-={made[-2].name}") is made[-2]
