"""Robot Web Services 2.0 as a client of OmniCore uses them: TLS, media types, mastership, pages, events."""

import ssl

import pytest
import requests
import websocket

import twin
from tests.support.web_services import USER, WebServices, wait_until
from twin.abb.rws.authentication import tls_context
from twin.base.errors import TwinError

JSON, XML = "application/hal+json;v=2.0", "application/xhtml+xml;v=2.0"
FORM = {"Content-Type": "application/x-www-form-urlencoded;v=2.0"}
TEXT = {"Content-Type": "text/plain;v=2.0"}
COUNT = "/rw/rapid/symbol/RAPID/T_ROB1/M/count"


@pytest.fixture(scope="module")
def served(abb_robot, tmp_path_factory):
    with WebServices(abb_robot, tmp_path_factory.mktemp("cell"), version=2, tls=tls_context(None)) as made:
        yield made


class Client:
    """Session that does not check the certificate, which a controller signs itself."""

    def __init__(self, served):
        self.url, self.session = served.url, requests.Session()
        self.session.verify, self.session.trust_env, self.session.auth = False, False, USER
        self.session.headers["Accept"] = JSON

    def get(self, path, **more):
        return self.session.get(self.url + path, **more)

    def post(self, path, headers=FORM, **form):
        return self.session.post(self.url + path, data=form, headers=headers)

    def value(self, path, name):
        return self.get(path).json()["state"][0][name]


@pytest.fixture
def client(served):
    made = Client(served)
    yield made
    made.session.close()


pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")


def test_a_program_is_started_with_mastership(served, client):
    assert client.value("/rw/system", "rwversion").startswith("7.")
    assert client.value("/rw/panel/ctrl-state", "ctrlstate") == "motoron"
    answer = client.post("/rw/rapid/execution/resetpp")
    assert answer.status_code == 403
    assert answer.json()["status"]["code"] == -1073445859
    assert client.post("/rw/mastership/edit/request").status_code == 204
    assert client.post("/rw/rapid/execution/resetpp").status_code == 204
    assert client.post(f"{COUNT}/data", value="7").status_code == 204
    assert client.post("/rw/mastership/edit/release").status_code == 204
    assert client.post("/rw/rapid/execution/start", cycle="once").status_code == 204
    wait_until(lambda: client.value("/rw/rapid/execution", "ctrlexecstate") == "stopped")
    assert client.value(f"{COUNT}/data", "value") == "8"
    assert client.value(f"{COUNT}/properties", "dattyp") == "num"
    assert client.post("/rw/rapid/execution/resetpp?mastership=implicit").status_code == 204
    assert client.post("/rw/rapid/execution/start", cycle="once").status_code == 204
    assert client.post("/rw/rapid/execution/stop").status_code == 204


def test_media_types_methods_and_passwords(served, client):
    answer = client.get("/rw/system", headers={"Accept": "application/json"})
    assert answer.status_code == 406
    assert client.get("/rw/system", headers={"Accept": XML}).headers["Content-Type"] == XML
    assert client.get("/rw/system").headers["Content-Type"] == JSON
    plain = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/rw/rapid/execution/stop", headers=plain).status_code == 415
    assert client.post("/rw/rapid/execution?action=stop").status_code == 405
    assert client.get("/rw/rapid/symbol/data/RAPID/T_ROB1/M/count").status_code == 404
    stranger = Client(served)
    stranger.session.auth = ("Default User", "wrong")
    answer = stranger.get("/rw/system")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    stranger.session.close()
    once = client.session.cookies.get("-http-session-")
    client.get("/rw/system")
    assert client.session.cookies.get("-http-session-") == once


def test_files_modules_tasks_and_signals(served, client):
    file = client.url + "/fileservice/HOME/n.mod"
    module = b"MODULE N\nPERS num more:=9;\nENDMODULE\n"
    assert client.session.put(file, module, headers={"Content-Type": "text/html"}).status_code == 415
    assert client.session.put(file, module, headers=TEXT).status_code == 201
    assert client.get("/fileservice/$HOME/n.mod").content == module
    load = "/rw/rapid/tasks/T_ROB1/loadmod?mastership=implicit"
    assert client.post(load, modulepath="HOME:/n.mod").status_code == 204
    listed = client.get("/rw/rapid/tasks/T_ROB1/modules").json()["_embedded"]["resources"]
    assert [one["name"] for one in listed] == ["M", "N"]
    assert client.value("/rw/rapid/symbol/RAPID/T_ROB1/N/more/data", "value") == "9"
    unload = "/rw/rapid/tasks/T_ROB1/unloadmod?mastership=implicit"
    assert client.post(unload, module="N").status_code == 204
    assert client.post("/rw/rapid/tasks/deactivate?mastership=implicit", task="T_ROB1").status_code == 204
    assert client.get("/rw/rapid/tasks").json()["_embedded"]["resources"][0]["active"] == "Off"
    assert client.post("/rw/rapid/tasks/activate?mastership=implicit", task="T_ROB1").status_code == 204
    assert client.post("/rw/iosystem/signals/Local/Unit/ao1/set-value", lvalue="1.5").status_code == 204
    assert client.value("/rw/iosystem/signals/ao1", "lvalue") == "1.5"
    names, path = [], "/rw/iosystem/signals?limit=2"
    while path:  # lists come in pages
        page = client.get(path).json()
        names += [one["name"] for one in page["_embedded"]["resources"]]
        following = page["_links"].get("next")
        path = following and f"/rw/iosystem/{following['href']}"
    assert names == sorted(set(names), key=str.lower)
    assert {"ao1", "di1", "do1"} <= set(names)
    found = client.post("/rw/rapid/symbols/search", symtyp="per", blockurl="RAPID/T_ROB1").json()
    assert "count" in {one["name"] for one in found["_embedded"]["resources"]}


def test_pose_speed_mode_events_and_configuration(served, client):
    unit = "/rw/motionsystem/mechunits/ROB_1"
    T = twin.forward_kinematics(served.controller.robot, served.controller.arm.q)
    for name, value in zip("xyz", T[:3, 3], strict=True):
        assert float(client.value(f"{unit}/robtarget", name)) == pytest.approx(1e3 * value, abs=0.01)
    assert float(client.value(f"{unit}/jointtarget", "rax_5")) == pytest.approx(30.0, abs=1e-6)
    assert client.value(unit, "axes") == "6"
    speed = "/rw/panel/speedratio?mastership=implicit"
    assert client.post(speed, **{"speed-ratio": "50"}).status_code == 204
    assert client.value("/rw/panel/speedratio", "speedratio") == "50"
    assert client.post(speed, **{"speed-ratio": "100"}).status_code == 204
    assert client.post("/rw/panel/opmode", opmode="MANR").status_code == 204
    answer = client.post("/rw/rapid/execution/start", cycle="once")
    assert answer.json()["status"]["code"] == -1073445860
    assert client.post("/rw/panel/opmode", opmode="AUTO").status_code == 204
    events = client.get("/rw/elog/0").json()["_embedded"]["resources"]
    assert "10140" in {one["code"] for one in events}
    assert "rob1_6" in client.get("/rw/cfg/moc/arm/instances").text


def test_events_and_the_keep_alive_of_version_2(served, client):
    form = {"resources": ["1", "2"], "1": f"{COUNT}/data;value", "1-p": "1"}
    form |= {"2": "/rw/panel/ctrl-state", "2-p": "0"}
    address = client.session.post(client.url + "/subscription", data=form, headers=FORM).headers["Location"]
    cookies = "; ".join(f"{one.name}={one.value}" for one in client.session.cookies)
    given = {"sslopt": {"cert_reqs": ssl.CERT_NONE}, "header": {"Cookie": cookies}, "timeout": 5}
    with pytest.raises(websocket.WebSocketBadStatusException, match="400"):
        websocket.create_connection(address, subprotocols=["robapi2_subscription"], **given)
    events = websocket.create_connection(address, subprotocols=["rws_subscription"], **given)
    events.send("PING")
    assert events.recv() == "PONG"
    client.post(f"{COUNT}/data?mastership=implicit", value="77")
    event = events.recv()
    assert 'class="rap-value-ev"' in event
    assert '<span class="value">77</span>' in event
    client.post("/rw/panel/ctrl-state", **{"ctrl-state": "motoroff"})
    assert "motoroff" in events.recv()
    events.close()
    client.post("/rw/panel/ctrl-state", **{"ctrl-state": "motoron"})


def test_certificates(tmp_path, monkeypatch):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    with pytest.raises(TwinError, match=r"wrong\.pem: expected a PEM file with a private key"):
        tls_context(wrong)
    with pytest.raises(TwinError, match=r"none\.pem: expected a PEM file"):
        tls_context(tmp_path / "none.pem")
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(TwinError, match="or install `cryptography`"):
        tls_context(None)
