"""Refusals are those of virtual controllers, and what is not simulated is no missing object.

The statuses and codes are those that the client abb-rws-client recorded from RobotWare 6.16 and 7.21.
"""

import json
from urllib.parse import unquote

import pytest
import requests
from requests.auth import HTTPBasicAuth, HTTPDigestAuth

from tests.support.web_services import PROGRAM, USER, WebServices

FORM = {1: "application/x-www-form-urlencoded", 2: "application/x-www-form-urlencoded;v=2.0"}
ACCEPT = {1: "*/*", 2: "application/hal+json;v=2.0"}


@pytest.fixture(scope="module")
def services(abb_robot, tmp_path_factory):
    """Services by their versions."""
    with (
        WebServices(abb_robot, tmp_path_factory.mktemp("one")) as one,
        WebServices(abb_robot, tmp_path_factory.mktemp("two"), version=2) as two,
    ):
        yield {1: one, 2: two}


@pytest.fixture
def ask(services):
    """Function that sends a request in a version and returns the status and the document of the answer."""
    auth = {1: HTTPDigestAuth(*USER), 2: HTTPBasicAuth(*USER)}
    sessions = {version: requests.Session() for version in services}

    def answer(version, method, path, body=None, **headers):
        url = f"{services[version].url}{path}{'?&'['?' in path]}json=1"
        given = {"Accept": ACCEPT[version], **({"Content-Type": FORM[version]} if method == "POST" else {})}
        found = sessions[version].request(
            method, url, data=body, headers=given | headers, auth=auth[version]
        )  # fmt: skip
        return found.status_code, json.loads(found.text or "{}")

    yield answer
    for session in sessions.values():
        session.close()


def status_of(document):
    return document.get("_embedded", document)["status"]


SYMBOL, MODULES = "/rw/rapid/symbol", "/rw/rapid/tasks/T_ROB1/modules"
TASK, START = "/rw/rapid/tasks/T_ROB1", "/rw/rapid/execution"
RECORDED = [
    (1, "GET", f"{SYMBOL}/data/RAPID/T_ROB1/NoMod/noSym", None, 400, -1073414146),
    (1, "GET", f"{MODULES}/NoSuchModule", None, 404, -1073414146),
    (1, "GET", "/rw/iosystem/signals/NoSuchNet/NoSuchDev/NoSuchSig", None, 404, -1073445866),
    (1, "GET", "/fileservice/$HOME/no-such-file.mod", None, 404, -1073414146),
    (1, "POST", f"{TASK}?action=unloadmod", "module=Nothing", 400, -1073442816),
    (1, "POST", f"{TASK}?action=loadmod", "modulepath=$HOME/no.mod", 400, -1073438708),
    (1, "POST", f"{START}?action=start", "cycle=once", 400, -1073442809),
    (1, "GET", "/rw/nothing", None, 404, -1073414146),
    (2, "GET", f"{SYMBOL}/RAPID/T_ROB1/M/no_such/data", None, 404, -1073442816),
    (2, "GET", f"{MODULES}/NoSuchModule", None, 400, -1073442813),
    (2, "GET", "/rw/iosystem/signals/NoSuchNet/NoSuchDev/NoSuchSig", None, 404, -1073445866),
    (2, "GET", "/fileservice/HOME/no-such-file.modx", None, 404, -1073438713),
    (2, "GET", "/fileservice/NOVOL:/NO_SUCH", None, 400, -1073438716),
    (2, "POST", f"{START}/start", "cycle=once", 403, -1073445862),
    (2, "POST", "/rw/panel/speedratio?action=setspeedratio", "speed-ratio=100", 403, -1073445859),
]


@pytest.mark.parametrize(("version", "method", "path", "body", "status", "code"), RECORDED)
def test_a_refusal_has_the_recorded_status_and_a_number_as_code(
    version, method, path, body, status, code, ask, services
):
    services[version].controller.execution.motors = START not in path  # a start is refused without motors
    found, document = ask(version, method, path, body)
    services[version].controller.execution.motors = True
    assert (found, status_of(document)["code"]) == (status, code)


@pytest.mark.parametrize("version", [1, 2])
def test_a_loaded_module_has_its_text_and_a_count_of_changes(version, ask, services):
    def state(path):
        status, document = ask(version, "GET", path)
        assert status == 200
        return (document["_embedded"]["_state"] if version == 1 else document["state"])[0]

    found = state(f"{MODULES}/m")
    assert (found["_type"], found["modname"], found["filename"]) == ("rap-module", "M", "T_ROB1.mod")
    read = f"{MODULES}/m/text" if version == 2 else "/rw/rapid/modules/m?resource=module-text&task=T_ROB1"
    text = state(read)["module-text"]
    assert (unquote(text) if version == 1 else text) == PROGRAM.rstrip()
    assert state(f"{MODULES}/m/changecount")["count"] == "0"
    (services[version].home / "n.mod").write_text("MODULE N\nVAR num one := 1;\nENDMODULE\n")
    load = f"{TASK}?action=loadmod" if version == 1 else f"{TASK}/loadmod?mastership=implicit"
    assert ask(version, "POST", load, "modulepath=HOME:/n.mod")[0] == 204
    assert ask(version, "POST", load, "modulepath=HOME:/n.mod")[0] >= 400  # it is there already
    assert state(f"{MODULES}/m/changecount")["count"] == "1"
    assert ask(version, "POST", load.replace("loadmod", "unloadmod"), "module=N")[0] == 204
    assert state(f"{MODULES}/m/changecount")["count"] == "2"


@pytest.mark.parametrize("version", [1, 2])
def test_a_service_that_is_not_simulated_is_501_and_reported_once(version, ask, services):
    for path in ("/rw/safety", "/ctrl/backup", "/rw/vision", "/ctrl/backup"):
        status, document = ask(version, "GET", path)
        assert status == 501
        assert status_of(document)["msg"] == f"{path} is not simulated"
    lines = [line.sentence for line in services[version].cell.lines if line.task == "rws"]
    assert lines == [
        f"GET {p} is not simulated: status 501" for p in ("/rw/safety", "/ctrl/backup", "/rw/vision")
    ]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PATCH"])
def test_other_methods_are_405(method, ask):
    for path in ("/rw/system", "/logout", "/rw/nothing"):
        status, document = ask(1, method, path)
        assert (status, bool(document)) == (405, method != "HEAD")
    assert ask(1, "GET", "/rw/system")[0] == 200  # the connection and the session go on


def test_a_page_of_another_host_changes_nothing(ask, services):
    set_signal = (1, "POST", "/rw/iosystem/signals/do1?action=set", "lvalue=1")
    for origin in ("http://example.org", "null", f"http://127.0.0.1:{services[1].port + 1}"):
        assert ask(*set_signal, Origin=origin)[0] == 403
        assert services[1].controller.signals.values.get("do1", 0) == 0
        assert ask(1, "GET", "/rw/system", Origin=origin)[0] == 200
    assert ask(*set_signal, Origin=services[1].url)[0] == 204
