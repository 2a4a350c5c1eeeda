"""Services that abb-rws-client calls, in both versions: resources, files, signals, logs, subscriptions.

Its calls were run unchanged against the virtual controller; its package is in no registry, so that their
requests stand here, field by field as its code reads them, and the paths of all its calls in a table.
"""

import json
import re
import socket
from contextlib import closing, suppress
from pathlib import Path

import pytest
import requests
import websocket
from requests.auth import HTTPBasicAuth, HTTPDigestAuth

from tests.support.web_services import PROGRAM, USER, WebServices, wait_until
from twin.abb.rapid.signals import Connection, Signals
from twin.abb.rws import server, subscriptions
from twin.abb.rws.exchange import CODES, Condition, Refused

FORM = {1: "application/x-www-form-urlencoded", 2: "application/x-www-form-urlencoded;v=2.0"}
ACCEPT = {1: "*/*", 2: "application/{}+{};v=2.0"}
AUTH = {1: HTTPDigestAuth, 2: HTTPBasicAuth}


class Client:
    """Client of the services of a version, which asks for JSON."""

    def __init__(self, url, version):
        self.url, self.version, self.session = url, version, requests.Session()
        self.session.auth, self.session.trust_env = AUTH[version](*USER), False

    def ask(self, method, path, body=None, media="hal+json"):
        url = self.url + path
        if self.version == 1 and media == "hal+json":
            url += f"{'?&'['?' in path]}json=1"
        headers = {"Accept": ACCEPT[self.version].format(*media.split("+"))}
        if (method != "GET" and not path.startswith("/fileservice")) or method == "POST":
            headers["Content-Type"] = FORM[self.version]
        elif method == "PUT":
            headers["Content-Type"] = "text/plain;v=2.0"
        return self.session.request(method, url, data=body, headers=headers)

    def items(self, path):
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        document = answer.json()
        listed = document.get("_embedded", {})
        return listed.get("_state") or listed.get("resources") or document.get("state") or []

    def send(self, method, path, body=None):
        """Return the status of a request, and the code of its refusal."""
        answer = self.ask(method, path, body)
        document = json.loads(answer.text or "{}") if answer.status_code >= 400 else {}
        return answer.status_code, document.get("_embedded", document).get("status", {}).get("code")

    def act(self, path, action, body=""):
        """Return status and code of an action: in the query of version 1.0, in the path of 2.0."""
        return self.send("POST", f"{path}?action={action}" if self.version == 1 else f"{path}/{action}", body)


@pytest.fixture(scope="module")
def services(abb_robot, tmp_path_factory):
    with (
        WebServices(abb_robot, tmp_path_factory.mktemp("one")) as one,
        WebServices(abb_robot, tmp_path_factory.mktemp("two"), version=2) as two,
    ):
        yield {1: one, 2: two}


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def version(request):
    return request.param


@pytest.fixture
def served(services, version):
    return services[version]


@pytest.fixture
def client(served, version):
    made = Client(served.url, version)
    yield made
    made.session.close()


TASK, UNIT, MOTION = "/rw/rapid/tasks/T_ROB1", "/rw/motionsystem/mechunits/ROB_1", "/rw/motionsystem"
IO, BOTH = "/rw/iosystem", (1, 2)
MAIN = PROGRAM.splitlines().index("PROC main()") + 2
"""Line of the first statement."""

POSE = {"x": 450 + 65 * 3**0.5 / 2, "y": 0, "z": 712 - 65 / 2, "q1": 0.5, "q2": 0, "q3": 3**0.5 / 2, "q4": 0}
"""Flange of the IRB 140, joint 5 at 30 degrees, by the lengths 70, 352, 360, 380 and 65 mm."""

RESOURCES = [
    (BOTH, TASK, "rap-task", {"name": "T_ROB1", "motiontask": "TRUE", "taskstate": "link"}),
    (BOTH, f"{TASK}/pcp", "pcp-info", {
        "modulemame": "M", "routinename": "main", "beginposition": f"{MAIN},3", "endposition": f"{MAIN},17",
    }),
    (BOTH, f"{TASK}/program", "rap-program", {"name": "M", "entrypoint": "main"}),
    (BOTH, f"{TASK}/motion", "rapid-robtarget-li", {"_title": "robtarget"}),
    ((2,), f"{TASK}/structural-changecount", "rap-task-struc-change-count",
     {"change-count": "0", "struc-change-count": "0"}),
    (BOTH, "/ctrl/identity", "ctrl-identity-info",
     {"ctrl-name": "irb-twin", "ctrl-type": "Virtual Controller"}),
    (BOTH, "/ctrl/clock", "ctrl-clock-info", {"datetime": re.compile(r"20\d\d-\d\d-\d\d T \d\d:\d\d:\d\d")}),
    (BOTH, "/rw/system/options", "sys-option-li", {"option": "616-1 PC Interface"}),
    (BOTH, "/rw/system/robottype", "sys-robottype", {"robot-type": "irb140"}),
    (BOTH, "/rw/panel/coldetstate", "pnl-coldetstate", {"coldetstate": "INIT"}),
    (BOTH, f"{IO}/networks", "ios-network-li", {"name": "Local", "pstate": "running", "lstate": "started"}),
    (BOTH, f"{IO}/networks/Local", "ios-network-li", {"name": "Local"}),
    (BOTH, f"{IO}/devices", "ios-device-li", {"_title": "Local/DRV_1", "name": "DRV_1", "lstate": "enabled"}),
    (BOTH, f"{IO}/devices?network=Local", "ios-device-li", {"name": "DRV_1"}),
    (BOTH, f"{IO}/devices/Local/PANEL", "ios-device-li", {"name": "PANEL", "pstate": "running"}),
    (BOTH, f"{UNIT}/baseframe", "ms-mechunit-baseframe",
     {"x": "0", "y": "0", "z": "0", "q1": "1", "q2": "0", "q3": "0", "q4": "0"}),
    (BOTH, f"{UNIT}/cartesian", "ms-mechunit-cartesian", POSE),
    ((1,), f"{UNIT}/cartesian", "ms-mechunit-cartesian", dict.fromkeys(("j1", "j4", "j6", "jx"), "0")),
    ((2,), f"{UNIT}/cartesian", "ms-mechunit-cartesian", dict.fromkeys(("cf1", "cf4", "cf6", "cfx"), "0")),
    (BOTH, f"{UNIT}/axes", "ms-mechunit-axes", {"axes": "6"}),
    (BOTH, f"{UNIT}/axes/6", "ms-mechunit-axisstatus", {"axis-status": "Synchronized"}),
    (BOTH, MOTION, "ms", {"change-count": "0", "mechunit-name": "ROB_1"}),
    ((1,), f"{MOTION}/checkchangecount?changecount=0", "checkchangecount", {"changestate": "FALSE"}),
    ((2,), f"{MOTION}/checkchangecount/1", "check-changecount", {"change-state": "TRUE"}),
    ((1,), f"{MOTION}/errorstate", "ms-errorstate", {"err-state": "HPJ_OK", "err-count": "0"}),
    ((2,), f"{MOTION}/errorstate", "ms-errorstate-li", {"err-state": "HPJ_OK", "err-count": "0"}),
    (BOTH, f"{MOTION}/nonmotionexecution", "ms-nonmotionexecution", {"mode": "OFF"}),
    (BOTH, "/rw/elog", "elog-domain-li", {"_title": "0", "buffsize": "1000"}),
    (BOTH, "/rw/cfg", "cfg-domain-li", {"_title": "SYS"}),
    (BOTH, "/rw/cfg/moc", "cfg-dt-li", {"_title": "MECHANICAL_UNIT"}),
    (BOTH, "/rw/retcode?code=-1073445859", "err-desc",
     {"name": "SYS_CTRL_E_MASTER_REJECT", "code": "-1073445859", "severity": "Error"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "path", "kind", "fields"), [(n, *rest) for numbers, *rest in RESOURCES for n in numbers]
)
def test_a_resource_has_the_fields_that_the_client_reads(services, number, path, kind, fields):
    with closing(Client(services[number].url, number).session) as session:
        client = Client(services[number].url, number)
        client.session = session
        session.auth, session.trust_env = AUTH[number](*USER), False
        first = client.items(path)[0]
        assert first["_type"] == kind
        for name, expected in fields.items():
            if isinstance(expected, re.Pattern):
                assert expected.fullmatch(first[name])
            elif isinstance(expected, str):
                assert first[name] == expected
            else:
                assert float(first[name]) == pytest.approx(expected, abs=1e-4)
        page = client.ask("GET", path, media="xhtml+xml")
        assert page.status_code == 200
        assert f'<li class="{kind}" title="' in page.text
        for name in fields:
            assert name == "_title" or f'<span class="{name}">' in page.text


def test_the_options_of_the_controller_are_an_empty_answer(client, version):
    assert client.ask("GET", "/ctrl/options").status_code == {1: 204, 2: 200}[version]


UNKNOWN = [
    (1, f"{TASK}/structural-changecount", 404, -1073414146),
    (2, f"{UNIT}/axes/7", 400, -1073445879),
    (1, f"{UNIT}/axes/0", 400, -1073445879),
    (1, f"{MOTION}/checkchangecount?changecount=x", 400, -1073445879),
    (2, f"{IO}/networks/None", 404, -1073445866),
    (1, f"{IO}/devices/Local/None", 404, -1073445866),
    (1, "/rw/cfg/none", 404, -1073414146),
    (2, "/rw/elog/9", 404, -1073414146),
    (1, "/rw/retcode?code=5", 404, -1073414146),
    (2, "/rw/rapid/tasks/T_NONE/pcp", 404, -1073445866),
    (1, "/rw/motionsystem/mechunits/ROB_2/cartesian", 404, -1073445866),
]


@pytest.mark.parametrize(("number", "path", "status", "code"), UNKNOWN)
def test_what_is_not_there_has_status_and_code(services, number, path, status, code):
    client = Client(services[number].url, number)
    assert client.send("GET", path) == (status, code)
    client.session.close()


def test_all_codes_of_refusals_have_a_name():
    assert {Refused(one, "").code(number) for one in Condition for number in BOTH} == set(CODES)


def test_the_program_pointer_follows_a_program(served, client, version):
    controller = served.controller
    assert [one["_title"] for one in client.items(f"{TASK}/pcp")] == ["progpointer"]  # nothing moved yet
    client.act("/rw/rapid/execution", "start", "cycle=once")
    wait_until(lambda: controller.unit.line is not None)
    pointers = client.items(f"{TASK}/pcp")
    assert pointers[1]["beginposition"].split(",")[0] in (str(MAIN + 1), str(MAIN + 4))
    assert int(pointers[0]["beginposition"].split(",")[0]) > MAIN
    wait_until(lambda: not controller.execution.executing)
    program, motion = client.items(f"{TASK}/pcp")
    assert program["beginposition"] == f"{MAIN},3"  # it begins anew
    assert motion["beginposition"] == f"{MAIN + 4},3"  # the last move
    assert motion["routinename"] == "main"


def test_a_client_sets_whether_the_program_begins_again_at_its_end(client, version):
    for cycle, now in (("forever", "forever"), ("asis", "forever"), ("once", "once"), ("asis", "once")):
        action = "setcycle" if version == 1 else "cycle"
        assert client.act("/rw/rapid/execution", action, f"cycle={cycle}") == (204, None)
        assert client.items("/rw/rapid/execution")[0]["cycle"] == now


def test_a_task_without_a_program_has_no_pointer(abb_robot, tmp_path, version):
    with WebServices(abb_robot, tmp_path, {"T_ROB1": "MODULE M\nENDMODULE"}, version=version) as empty:
        client = Client(empty.url, version)
        assert client.send("GET", f"{TASK}/pcp") == (400, -1073442783)
        assert client.ask("GET", f"{TASK}/program").status_code == 204
        client.session.close()


def test_the_text_of_a_module_is_saved(served, client, version):
    path, folder, end = {
        1: ("/rw/rapid/modules/M?task=T_ROB1&action=save", "$TEMP", "mod"),
        2: (f"{TASK}/modules/M/save", "TEMP:", "modx"),
    }[version]
    assert client.send("POST", path, f"name=copy&path={folder}") == (204, None)
    assert (served.home / f"copy.{end}").read_text() == PROGRAM
    assert client.send("POST", path, f"name=../copy&path={folder}")[0] == 403
    assert client.send("POST", path, "name=copy&path=/etc")[0] in (400, 404)
    (served.home / f"copy.{end}").unlink()


def change(client, action, path, new, more=""):
    """Return status and code of a change of a file."""
    if client.version == 1:
        return client.send("POST", f"/fileservice/{path}", f"fs-action={action}&fs-newname={new}{more}")
    return client.send("POST", f"/fileservice/{path.replace('$', '')}/{action}", f"fs-newname={new}{more}")


def test_files_are_copied_and_renamed_and_folders_made(served, client):
    home = served.home
    (home / "a.txt").write_text("text")
    assert change(client, "copy", "$HOME/a.txt", "b.txt") == (204, None)
    assert change(client, "copy", "$HOME/a.txt", "b.txt") == (409, -1073445836)
    (home / "a.txt").write_text("new")
    assert (home / "b.txt").read_text() == "text"
    assert change(client, "copy", "$HOME/a.txt", "b.txt", "&fs-overwrite=true") == (204, None)
    assert (home / "b.txt").read_text() == "new"
    assert change(client, "create", "$HOME", "made") == (201, None)
    assert change(client, "create", "$HOME", "made") == (409, -1073445836)
    assert change(client, "copy", "$HOME/a.txt", "/fileservice/$HOME/made/c.txt") == (204, None)
    assert change(client, "copy", "$HOME/made", "other") == (204, None)
    assert change(client, "rename", "$HOME/made", "moved") == (204, None)
    assert change(client, "rename", "$HOME/a.txt", "b.txt") == (409, -1073445836)
    assert change(client, "rename", "$HOME/none.txt", "d.txt")[0] == 404
    found = sorted(str(one.relative_to(home)) for one in home.rglob("*"))
    assert found == ["a.txt", "b.txt", "moved", "moved/c.txt", "other", "other/c.txt"]
    for one in ("a.txt", "b.txt", "moved", "other"):
        client.send("DELETE", f"/fileservice/{'$' if client.version == 1 else ''}HOME/{one}")
    assert not list(home.iterdir())


LEAVING = [
    "../x",
    "../../etc/x",
    "/etc/x",
    "/fileservice/$HOME/../x",
    "a/../../x",
    "out/x",
    "link",
    "..",
    ".",
    "%00",
]


@pytest.mark.parametrize("action", ["copy", "rename", "create"])
def test_no_change_of_a_file_leaves_the_folder(served, client, action, tmp_path):
    home, outside = served.home, tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (home / "f").write_text("mine")
    (home / "a").mkdir()
    (home / "out").symlink_to(outside)
    (home / "link").symlink_to(outside / "new")
    for name in LEAVING:
        source = "$HOME" if action == "create" else "$HOME/f"
        assert change(client, action, source, name)[0] in (400, 403, 404), name
    assert change(client, action, "$HOME/out" if action == "create" else "$HOME/out/secret", "x")[0] == 403
    if action != "create":
        assert change(client, action, "$HOME", "whole")[0] == 403
        assert change(client, action, "$HOME/a", "a/inner")[0] == 403
    found = [sorted(one.name for one in folder.iterdir()) for folder in (outside, home)]
    left = [one.name for one in home.parent.iterdir() if one.name not in ("home", "modules")]
    for one in ("link", "out", "f"):
        (home / one).unlink()
    (home / "a").rmdir()
    assert found == [["secret"], ["a", "f", "link", "out"]]
    assert not left


def test_a_copied_folder_has_links_as_links(served, client, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (served.home / "a").mkdir()
    (served.home / "a" / "link").symlink_to(tmp_path / "secret")
    assert change(client, "copy", "$HOME/a", "b") == (204, None)
    assert (served.home / "b" / "link").is_symlink()
    assert client.ask("GET", "/fileservice/$HOME/b/link").status_code == 403
    for one in ("a", "b"):
        (served.home / one / "link").unlink()
        (served.home / one).rmdir()


def test_a_mode_has_the_names_that_clients_give(served, client, version):
    for name, mode in {"man": "MANR", "auto": "AUTO", "MANF": "MANF", "AUTO": "AUTO"}.items():
        assert client.send("POST", "/rw/panel/opmode", f"opmode={name}") == (204, None)
        assert served.controller.execution.mode == mode
    assert client.send("POST", "/rw/panel/opmode", "opmode=fast") == (400, -1073445879)


SEARCH = {1: f"{IO}/signals?action=signal-search", 2: f"{IO}/signals/signal-search"}
SEARCH_MORE = {1: f"{IO}/signals?action=signal-searchex", 2: f"{IO}/signals/signal-search-ex"}


def test_signals_and_devices_are_searched(client, version):
    def names(path, body):
        document = client.ask("POST", path, body).json()["_embedded"]
        return [one["name"] for one in document.get("_state") or document.get("resources") or ()]

    assert names(SEARCH[version], "name=o1") == ["ao1", "do1"]
    assert names(SEARCH[version], "name=O1&type=DO") == ["do1"]
    assert names(SEARCH[version], "device=none") == []
    assert names(SEARCH_MORE[version], "name=o1&name2=a") == ["ao1"]
    assert names(f"{IO}/devices?action=search", "lstate=enabled") == ["DRV_1", "PANEL"]
    assert names(f"{IO}/devices?action=search", "name=pan&network=Local") == ["PANEL"]
    assert names(f"{IO}/devices?action=search", "lstate=disabled") == []


def test_event_logs_have_domains_and_can_be_cleared(served, client):
    served.controller.call(lambda: served.controller.execution.note(50204, "near", type_=3))
    assert [one["code"] for one in client.items("/rw/elog/5")] == ["50204"]
    assert {one["code"][0] for one in client.items("/rw/elog/0")} == {"1", "5"}
    counts = {one["_title"]: int(one["numevts"]) for one in client.items("/rw/elog")}
    assert counts["5"] == 1
    assert counts["0"] == counts["1"] + 1
    assert client.act("/rw/elog/5", "clear") == (204, None)
    assert client.items("/rw/elog/5") == []
    assert len(client.items("/rw/elog/0")) == counts["1"]
    number = served.controller.execution.events.count
    assert client.act("/rw/elog", "clearall") == (204, None)
    assert client.items("/rw/elog/0") == []
    served.controller.call(lambda: served.controller.execution.note(10002))
    assert client.items("/rw/elog/0")[0]["_title"] == f"/rw/elog/0/{number + 1}"  # numbers go on


# ------------------------------------------------------------------------------------- signals, strict


@pytest.fixture(scope="module")
def strict_services(abb_robot, tmp_path_factory):
    tables = {
        "do_all": {"type": "DO", "access": "All"},
        "do_default": {"type": "DO"},
        "do_read": {"type": "DO", "access": "ReadOnly", "device": "Board1"},
        "di_all": {"type": "DI", "access": "All", "device": "DeviceNet/d652"},
        "do_state": {"type": "DO", "access": "All", "state": "MotorOn"},
        "di_follows": {"type": "DI", "access": "All", "follows": "do_all"},
    }
    made = {}
    for number in BOTH:
        signals = Signals({}, declared={name: one["type"] for name, one in tables.items()})
        signals.tables = tables
        signals.connections["do_all"] = [Connection("di_follows")]
        folder = tmp_path_factory.mktemp(f"strict {number}")
        made[number] = WebServices(abb_robot, folder, version=number, strict=True, signals=signals)
    yield made
    for one in made.values():
        one.__exit__()


def write(client, path, value="lvalue=1"):
    if client.version == 1:
        return client.send("POST", f"{IO}/signals/{path}?action=set", value)
    return client.send("POST", f"{IO}/signals/{path}/set-{'lstate' if 'lstate' in value else 'value'}", value)


REFUSED = [
    ("do_default", 403, -1073445881, "its access level is Default"),
    ("do_read", 403, -1073445881, "its access level is ReadOnly"),
    ("do_state", 403, -1073445881, "it is the state MotorOn of the controller"),
    ("di_follows", 400, -1073438205, "it follows do_all"),
    ("DeviceNet/d652/di_all", 400, -1073438206, "it is an input whose lstate is not simulated"),
    ("Local/DRV_1/do_all", 404, -1073445866, "there is no signal Local/DRV_1/do_all, it is do_all"),
    ("Local/d652/di_all", 404, -1073445866, "it is DeviceNet/d652/di_all"),
]


@pytest.mark.parametrize(("path", "status", "code", "reason"), REFUSED)
def test_strict_services_refuse_signals_with_a_reason(strict_services, version, path, status, code, reason):
    served = strict_services[version]
    client = Client(served.url, version)
    name = path.rpartition("/")[2]
    before = served.controller.signals.values.get(name, 0.0)
    for _ in range(2):  # the hint comes once
        assert write(client, path) == (status, code)
    assert served.controller.signals.values.get(name, 0.0) == before
    assert [reason in line.sentence for line in served.cell.lines if line.task == "rws"].count(True) == 1
    client.session.close()


def test_strict_services_write_what_a_controller_lets_them(strict_services, version):
    served = strict_services[version]
    client, values = Client(served.url, version), served.controller.signals.values
    assert write(client, "do_all") == (204, None)
    assert values["do_all"] == values["di_follows"] == 1.0
    path = "DeviceNet/d652/di_all"
    assert client.items(f"{IO}/signals/{path}")[0]["lstate"] == "not simulated"
    assert write(client, path, "lstate=sometimes") == (400, -1073445879)
    assert write(client, path, "lstate=simulated") == (204, None)
    assert client.items(f"{IO}/signals/di_all")[0]["lstate"] == "simulated"
    assert write(client, path) == (204, None)
    assert values["di_all"] == 1.0
    assert write(client, path, "lstate=not simulated") == (204, None)
    assert write(client, path) == (400, -1073438206)
    listed = {one["name"]: one for one in client.items(f"{IO}/signals")}
    assert listed["do_read"]["_title"] == "Local/Board1/do_read"
    assert listed["do_default"]["write-access-level"] == "Default"
    assert "Board1" in {one["name"] for one in client.items(f"{IO}/devices")}
    assert {one["name"] for one in client.items(f"{IO}/networks")} == {"Local", "DeviceNet"}
    client.session.close()


def test_without_strict_any_path_and_signal_is_written(client):
    assert write(client, "Any/Thing/di1") == (204, None)
    assert client.items(f"{IO}/signals/Other/di1")[0]["lvalue"] == "1"
    assert client.items(f"{IO}/signals/di1")[0]["lstate"] == "simulated"
    assert write(client, "di1", "lvalue=0") == (204, None)


# -------------------------------------------------------------- subscriptions, and clients that come back

PROTOCOLS = {1: "robapi2_subscription", 2: "rws_subscription"}


def subscribed(client, path):
    """Return the number of a new subscription, and its websocket."""
    answer = client.ask("POST", "/subscription", f"resources=1&1={path}&1-p=1")
    assert answer.status_code == 201, answer.text
    assert 'rel="group"' in answer.text
    cookies = "; ".join(f"{one.name}={one.value}" for one in client.session.cookies)
    address, protocols = answer.headers["Location"], [PROTOCOLS[client.version]]
    header = {"Cookie": cookies}
    events = websocket.create_connection(address, subprotocols=protocols, header=header, timeout=5)
    return int(address.rpartition("/")[2]), events


def test_a_subscription_gets_further_resources(served, client):
    served.controller.call(lambda: served.controller.signals.write("do1", 0.0))
    number, events = subscribed(client, f"{IO}/signals/do1;state")
    more = f"resources=1&1={IO}/signals/ao1;state&1-p=1&resources=2&2={IO}/signals/do1;state&2-p=0"
    assert client.send("PUT", f"/subscription/{number}", more) == (200, None)
    assert client.send("PUT", f"/subscription/{number}", "resources=1&1=/rw/none&1-p=1")[0] == 404
    assert client.send("PUT", f"/subscription/{number + 99}", more) == (404, -1073445866)
    served.controller.call(lambda: served.controller.signals.write("ao1", 2.5))
    assert '<span class="lvalue">2.5</span>' in events.recv()
    served.controller.call(lambda: served.controller.signals.write("do1", 1.0))
    assert '<span class="lvalue">1</span>' in events.recv()  # once, although it was given twice
    served.controller.call(lambda: served.controller.signals.write("do1", 0.0))
    assert '<span class="lvalue">0</span>' in events.recv()
    panel = {1: "ctrlstate", 2: "ctrl-state"}[client.version]  # the client names the field of each state
    paths = [
        f"/rw/panel/{panel};ctrlstate",
        *(f"/rw/panel/{one};{one}" for one in ("opmode", "speedratio", "coldetstate")),
    ]
    more = f"resources={len(paths)}&" + "&".join(f"{k}={path}&{k}-p=1" for k, path in enumerate(paths, 1))
    assert client.send("PUT", f"/subscription/{number}", more) == (200, None)
    served.controller.call(lambda: setattr(served.controller.execution, "override", 0.5))
    assert '<span class="speedratio">50</span>' in events.recv()
    served.controller.call(lambda: setattr(served.controller.execution, "override", 1.0))
    assert client.send("DELETE", f"/subscription/{number}") == (200, None)
    events.close()


def test_subscriptions_that_outlive_their_clients_make_room(served, client, monkeypatch):
    monkeypatch.setattr(subscriptions, "MOST_SUBSCRIPTIONS", 3)
    served.controller.call(lambda: served.controller.signals.write("do1", 0.0))
    _, events = subscribed(client, f"{IO}/signals/do1;state")
    for _ in range(5):  # a client that begins again and forgets the one before
        _, lost = subscribed(client, f"{IO}/signals/do1;state")
        lost.close()
        wait_until(lambda: sum(one.is_open for one in served.services.subscriptions.all) == 1)
    assert len(served.services.subscriptions.all) == 3
    served.controller.call(lambda: served.controller.signals.write("do1", 1.0))
    assert '<span class="lvalue">1</span>' in events.recv()
    served.controller.call(lambda: served.controller.signals.write("do1", 0.0))
    events.close()
    client.ask("GET", "/logout")
    wait_until(lambda: not served.services.subscriptions.all)


def test_a_client_goes_on_after_a_restart_of_the_controller(abb_robot, tmp_path, version):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with WebServices(abb_robot, tmp_path / "first", version=version) as first:
        client, port = Client(first.url, version), first.port
        _, events = subscribed(client, f"{IO}/signals/do1;state")
        cookie = client.session.cookies["-http-session-"]
    with suppress(websocket.WebSocketConnectionClosedException):
        assert not events.recv()  # it was closed
    events.shutdown()
    with pytest.raises(requests.ConnectionError):
        client.items("/rw/system")
    with socket.socket() as free:  # the port is free for the next one
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
    with WebServices(abb_robot, tmp_path / "second", version=version, port=port) as second:
        assert client.items("/rw/rapid/tasks")[0]["name"] == "T_ROB1"  # with the cookies of the first one
        assert client.session.cookies["-http-session-"] != cookie
        _, events = subscribed(client, f"{IO}/signals/do1;state")
        second.controller.call(lambda: second.controller.signals.write("do1", 1.0))
        assert '<span class="lvalue">1</span>' in events.recv()
        events.close()
    client.session.close()


# ------------------------------------------------------------------------- all paths of the client's calls

BESIDE = {
    "POST /subscription", "PUT /subscription/{group}", "DELETE /subscription/{group}",
}  # fmt: skip
"""Requests that the server answers without a route."""


def pattern(path):
    """Return the pattern of a route's path that matches the path of a call, whose parts have names, too."""
    names = {True: r"\{\w+\}(/\{\w+\})*", False: r"\{\w+\}"}
    parts = [names["..." in one] if one.startswith("{") else re.escape(one) for one in path.split("/")]
    return "/" + "/".join(parts)


def is_served(number, method, path):
    plain, _, action = path.partition("?action=")
    if f"{method} {plain}" in BESIDE:
        return True
    return any(
        route.method == method
        and re.fullmatch(pattern(route.path_of(number)), plain)
        and (number == 2 or method != "POST" or route.action == action)
        for route in server.ROUTES
    )


def test_the_paths_of_all_calls_of_the_client_are_served():
    lines = (Path(__file__).parent / "paths_of_abb_rws_client.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    assert len(rows) == len({tuple(row[1:]) for row in rows}) > 300
    wrong = [row for row in rows if is_served(int(row[1]), *row[2:]) != (row[0] == "yes")]
    assert not wrong
