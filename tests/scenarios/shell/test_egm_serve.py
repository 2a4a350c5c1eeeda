"""`irb-twin egm serve`: sessions with a client, their output, and their exit status."""

import json
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from scenarios.abb.egm.addresses import addresses, bind_address
from scenarios.abb.egm.serve import passed
from scenarios.abb.egm.serving import Served
from scenarios.shell import process
from scenarios.shell.command_line import main, read
from tests.support.egm_serving import QUICK, Guiding, serve
from tests.support.window_process import passes
from twin.abb.egm import EgmClient, EgmResult, GuidanceSettings, SessionPlan
from twin.data.logs.log import Log

pytestmark = pytest.mark.slow("runs commands")


@pytest.fixture
def client():
    with EgmClient(port=0) as client:
        yield client


def test_serve_prints_events_and_writes_results(client, tmp_path, capsys):
    log, file = tmp_path / "a.npz", tmp_path / "a.json"
    words = ("--lockstep", "--runs", "1", "--pause", "0", "--torque", "always", "--drives", "rigid")
    with Guiding(client, 8.0):
        assert serve(client, *words, "--log", log, "--json", file) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    first, waits, guided, over, *table = (line for line in printed.out.splitlines() if line.strip())
    assert f"sends to 127.0.0.1:{client.port} in lockstep" in first
    assert "MaxSpeedDeviation 90 deg/s" in first
    assert waits.startswith("    0.000 s  joint guidance 1 waits for the first answer")
    assert "s  joint guidance 1 is guided by" in guided
    assert over.endswith("s  joint guidance 1 has ended")
    rows = dict(line.strip().split("   ", 1) for line in table if "   " in line.strip())
    assert rows["completed runs"].strip() == "1 of 1"
    assert rows["time"].strip() == "virtual"
    session = json.loads(file.read_text())["robots"][0]
    assert int(rows["messages sent"]) == session["sent"]
    assert [event["kind"] for event in session["events"]] == ["waiting", "guided", "ended"]
    assert (session["faults"], session["error"]) == ([], "")
    assert session["settings"]["drives"] == "rigid"
    assert session["settings"]["max_speed_deviation"] == 90.0
    made = Log.load(log)
    assert np.degrees(made.q[-1] - made.q[0]) == pytest.approx(np.full(6, 8.0), abs=0.5)
    np.testing.assert_array_equal(session["tau_peak"], np.max(np.abs(made.tau), axis=0))
    assert np.sum(made.arrays["egm_taken"]) == session["counts"]["taken"]
    assert json.loads(str(made.arrays["settings"])) == session["settings"]


def test_run_with_a_fault_exits_with_1(client, capsys):
    with Guiding(client, 270.0):
        assert serve(client, "--lockstep", "--runs", "1", "--pause", "0") == 1
    out = capsys.readouterr().out
    assert "joint guidance 1 stops: 50027 Joint Out of Range: " in out
    assert "fault 50027 Joint Out of Range" in out
    assert "0 of 1" in out


def test_pose_mode_starts_with_a_bent_wrist(client, capsys):
    """The tool moves up by 30 mm from the default start."""

    goal, places = [], []

    def answer(message):
        if not goal:
            goal.append(message.T.copy())
            goal[0][2, 3] += 0.03
        client.send_pose(goal[0])
        places.append(message.T[:3, 3])

    with Guiding(client, answer=answer):
        assert serve(client, "--lockstep", "--runs", "1", "--mode", "pose", "--tool", "0,0,0.1") == 0
    assert np.linalg.norm(places[-1] - goal[0][:3, 3]) < 1e-3
    assert "1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--wait 0.1", "no client answered"),
        ("--lockstep --limit 0.1", "no client answered"),
        ("--bind 127.0.0.1:PORT", "in use"),
    ],
)
def test_missing_client_or_port_exits_with_2(words, told, client, capsys):
    assert serve(client, *words.replace("PORT", str(client.port)).split()) == 2
    assert told in capsys.readouterr().err


@contextmanager
def stopped(*guiding):
    """Send a stop signal to what runs in the block, after all clients have answered."""

    def stop():
        for each in guiding:
            assert each.answered.wait(60.0)
        assert process.take(2)

    thread = threading.Thread(target=stop)
    thread.start()
    yield
    thread.join()
    assert process.take(2) is False, "nothing runs any more"


def test_first_signal_stops_several_robots_gracefully(client, tmp_path, capsys):
    """Each robot has a process, output lines, a table column and a log."""
    with EgmClient(port=0) as second, Guiding(client, 1.0) as one, Guiding(second, -1.0) as other:
        words = ["--robot", "irb140", "irb1600", *QUICK, "--log", str(tmp_path / "a.npz"), "--to"]
        with stopped(one, other):
            places = [f"127.0.0.1:{each.port}" for each in (client, second)]
            assert main(["egm", "serve", *words, *places]) == 128 + 2
    printed = capsys.readouterr().out
    for name, each, sign in (("irb140", client, 1.0), ("irb1600", second, -1.0)):
        assert f"{name}:{each.port}  sends to 127.0.0.1:{each.port} every 4 ms" in printed
        log = Log.load(tmp_path / f"a-{name}_{each.port}.npz")
        assert log.robot.name == name
        assert np.all(sign * (log.q[-1] - log.q[0]) >= 0.0)
        assert np.any(log.q[-1] != log.q[0])
    assert "sent late by more than 1 ms" in printed


def test_first_signal_stops_one_robot_gracefully(client, capsys):
    with Guiding(client, 1.0) as guiding, stopped(guiding):
        assert serve(client) == 128 + 2
    assert "messages sent" in capsys.readouterr().out


@pytest.mark.display
def test_window_shows_the_guided_arm(display):
    """It takes 3 to 5 s of processor time: pictures are drawn without a graphics card."""
    passes(
        """
        import io, contextlib
        from scenarios.shell.command_line import main
        from tests.support.xwindow import Display
        from twin.abb.egm import EgmClient
        with EgmClient(port=0) as client, contextlib.redirect_stdout(io.StringIO()) as printed:
            words = ["--to", f"127.0.0.1:{client.port}", "--gui", "--duration", "0.4"]
            status = main(["egm", "serve", *words])
        assert status == 0, printed.getvalue()
        """,
        display,
    )


# `irb-twin egm`: options, wrong use, and exit statuses.


def test_session_passes_if_all_requested_runs_completed():
    """An interrupted run does not count as completed."""
    for runs, completed, faults, held in (
        (None, 0, (), True), (2, 2, (), True), (2, 1, (), False), (None, 1, ("fault",), False),
    ):  # fmt: skip
        job = SimpleNamespace(plan=SessionPlan(runs=runs))
        served = Served(result=EgmResult(runs=2, completed=completed, faults=faults))
        assert passed(job, served) is held


def test_options_give_addresses_and_every_guidance_setting():
    """The address to bind may lack its port, and each robot gets a client's address."""
    for text, place in (("0.0.0.0", ("0.0.0.0", 0)), ("10.0.0.1:7", ("10.0.0.1", 7)), ("::", ("::", 0)),
                        ("[::1]:7", ("::1", 7)), ("[::1]", ("::1", 0))):  # fmt: skip
        assert bind_address(text) == place
    for line, expected in (
        ("--robot a b c", "127.0.0.1:6510 127.0.0.1:6511 127.0.0.1:6512"),
        ("--robot a b c --to x:70 y:80", "x:70 y:80 y:81"),
        ("--robot a --to [::1]:6510", "[::1]:6510"),
    ):
        found = read(["egm", "serve", *line.split()])[0]
        assert [str(address) for address in addresses(found.to, found.robot)] == expected.split()
    words = "--mode pose --level 0 --lp-filter 50 --axes x,z --no-wait-cond"
    expected = GuidanceSettings(mode="pose", level=0, lp_filter=50.0, axes="x,z", no_wait_cond=True)
    assert read(["egm", "serve", *words.split()])[0].guidance == expected
