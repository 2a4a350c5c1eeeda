"""The bench in a browser: it jogs, and only pages of this machine reach it."""

import os
import re
import signal
import socket
import time
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import pytest
import viser
from viser import _messages
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import twin
from scenarios.bench.jogging import LATEST, PART, jog
from scenarios.setup import Setup
from scenarios.shell.output import announce_page
from tests.support.browser import browser
from tests.support.command_lines import wait
from tests.support.example_logs import irb140_log
from tests.support.forks import Fork
from tests.support.window_process import PREAMBLE
from twin.base.errors import WrongUse
from twin.studies.views.browser import View


@pytest.fixture
def view():
    """A robot without a controller, in a page, with one joint beyond what its slider shows."""
    robot = twin.load("irb1400")
    shown = twin.view(robot, np.r_[robot.q_max[0], np.full(5, 0.1)])
    yield shown
    shown.close()


def sockets_of(view, origin):
    """Return whether the server accepts a web socket of a page from `origin`."""
    address, protocols = view.url.replace("http", "ws"), [f"viser-v{viser.__version__}"]
    try:
        with connect(address, origin=origin, subprotocols=protocols, proxy=None):
            return True
    except InvalidStatus as error:
        return error.response.status_code != 403


def test_only_pages_of_this_machine_may_open_a_socket_and_none_can_ask_for_a_public_address(view):
    port = view.server.get_port()
    for origin in (f"http://127.0.0.1:{port}", f"http://localhost:{port}", "http://localhost:9000", None):
        assert sockets_of(view, origin)
    for origin in ("https://example.com", "http://127.0.0.1.example.com", "null", "http://10.0.0.1"):
        assert not sockets_of(view, origin)
    handlers = view.server._websock_server._incoming_handlers
    assert handlers
    assert not {_messages.ShareUrlRequest, _messages.ShareUrlDisconnect} & handlers.keys()


def test_server_listens_on_the_loopback_only_and_names_a_tunnel_over_ssh(view, monkeypatch, capsys):
    assert view.url.startswith("http://127.0.0.1:")
    known = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    for address in {info[4][0] for info in known} - {"127.0.0.1"} | {"127.0.0.2"}:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, view.server.get_port()), timeout=2).close()
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22")
    announce_page("http://127.0.0.1:8123/")
    assert "ssh -L 8123:127.0.0.1:8123 " in capsys.readouterr().out


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_does_not_exist_is_refused(port):
    with pytest.raises(WrongUse, match="expected one from 0, a free one, to 65535"):
        twin.view(twin.load("irb140"), port=port)


def test_a_port_in_use_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(WrongUse, match="is in use"):
        View(twin.load("irb140"), port=taken.getsockname()[1])


def test_view_shows_positions_and_has_the_ranges_of_the_joints(view):
    np.testing.assert_allclose(view.target[1:], 0.1, atol=np.deg2rad(0.05))
    assert view.target[0] <= twin.load("irb1400").q_max[0]
    view.show(np.full(6, 0.2))
    assert "joint_6: 11.46 deg" in view._text.content
    with pytest.raises(ValueError, match=r"expected q of shape"):
        view.show(np.zeros(5))


def test_arm_follows_the_target_in_real_time(monkeypatch):
    goal = np.array([0.2, 0.1, 0.0, 0.0, 0.1, 0.0])
    monkeypatch.setattr(View, "target", property(lambda view: goal))
    pictures = []
    show = lambda view, q, text="": pictures.append((time.perf_counter(), q, text))  # noqa: E731
    monkeypatch.setattr(View, "show", show)
    q = jog(Setup(drives="rigid"), np.zeros(6), 1.5, 0, lambda url: None)
    np.testing.assert_allclose(q, goal, atol=1e-4)
    late = [picture for picture in pictures if picture[0] > pictures[1][0] + LATEST]  # the first compiles
    assert (len(late) - 1) * PART - LATEST < late[-1][0] - late[0][0] < 5.0
    assert len(pictures) == 1 + round(1.5 / PART)
    assert re.search(r"error of joint_\d: .* deg", pictures[-1][2])


@contextmanager
def started(words):
    """Run a command that shows a page; yield its process and the address of the page."""
    command = f"import sys; sys.argv = ['irb-twin', *{words}]; sys.exit(process.main())"
    process = Fork(command, PREAMBLE)
    try:
        wait(lambda: "\n" in process.read() or not process.running())
        yield process, process.read().split()[0]
    finally:
        process.kill()


@pytest.mark.browser
def test_slider_in_the_page_moves_the_arm(tmp_path):
    words = ["gui", "irb140", "--drives", "rigid", "--browser"]
    with started(words) as (_, url), browser(tmp_path) as open_page:
        page = open_page(url)
        page.wait_for("document.body?.innerText.includes('joint_1: 0.00 deg')")
        page.evaluate("{ const box = document.querySelector('input[type=text]'); box.focus(); box.select() }")
        page.call("Input.insertText", text="25")
        page.wait_for("document.body?.innerText.includes('joint_1: 25.00 deg')")
        assert {urlsplit(address).netloc for address in page.requests()} == {urlsplit(url).netloc}
        assert not page.complaints()


def test_replay_is_served_until_it_is_interrupted(tmp_path):
    irb140_log().save(tmp_path / "run.npz")
    with started(["replay", str(tmp_path / "run.npz"), "--browser"]) as (process, url):
        with urlopen(url) as answer:
            assert answer.read().decode().startswith("<!")
        os.kill(process.pid, signal.SIGINT)
        ended = process.wait(10)
        assert ended.returncode == 130
        assert "Traceback" not in ended.stderr
