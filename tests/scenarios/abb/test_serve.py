"""`irb-twin egm serve` and `irb-twin abb serve`: sessions with clients, files, output, and exit status."""

import json
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import twin
from scenarios.abb.background import serving
from scenarios.abb.egm.addresses import addresses, bind_address
from scenarios.abb.serve import passed
from scenarios.abb.session import Served, ServedRobot, Serving, saturated
from scenarios.abb.station import EGM, GRIPPER, SIGNAL, STATION, TASK, Station
from scenarios.setup import Setup
from scenarios.shell import process
from scenarios.shell.command_line import main, read
from tests.support.doc_pages import HOUSE, blocks
from tests.support.egm_serving import QUICK, Guiding, serve
from tests.support.example_logs import made_log
from tests.support.window_process import passes
from twin.abb.controller.controller import SYSTEM_OUTPUTS
from twin.abb.egm import EgmClient, EgmResult, GuidanceSettings, SessionPlan
from twin.base.errors import WrongUse
from twin.data.logs.log import Log

pytestmark = pytest.mark.slow("serves robots and stations")


@pytest.fixture
def client():
    with EgmClient(port=0) as client:
        yield client


def test_the_table_says_how_long_the_speed_was_limited(client, capsys):
    """With a gain of 20 1/s, 8 deg are made at 20 deg/s until 1 deg is left."""
    with Guiding(client, 8.0):
        assert serve(client, "--lockstep", "--runs", "1", "--max-speed-deviation", "20") == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "limited by" in line)
    name, value = re.split(r"\s{3,}", row.strip())
    assert name == "limited by MaxSpeedDeviation 20 deg/s"
    limited, guided = re.fullmatch(r"([\d.]+) of ([\d.]+) s guided", value).groups()
    assert 0.3 < float(limited) < 0.5 < float(guided) + 0.1
    assert float(guided) < 1.0


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
    assert "joint guidance 1 has ended by its condition, 0.1 s in its window, guided for " in over
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
        served = ServedRobot(result=EgmResult(runs=2, completed=completed, faults=faults))
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


GOOD = """MODULE M
CONST jointtarget a:=[[5,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
PROC main()
MoveAbsJ a, v1000, fine, tool0;
TPWrite "arrived";
ENDPROC
ENDMODULE
"""


def folder_with(tmp_path, station="", **modules):
    """Write a station and its modules; return the path of its file."""
    for name, text in modules.items():
        (tmp_path / f"{name}.mod").write_text(text)
    (tmp_path / "station.toml").write_text(station)
    return tmp_path / "station.toml"


def test_a_program_runs_once_and_its_log_is_one_like_others(tmp_path, capsys):
    folder_with(tmp_path, good=GOOD)
    log = tmp_path / "s.npz"
    load = f"T_ROB1={tmp_path / 'good.mod'}"
    assert main(["abb", "serve", "--load", load, "--cycle", "once", "--log", str(log)]) == 0
    out = capsys.readouterr().out
    assert "T_ROB1: TPWrite: arrived" in out
    assert "samples at a torque limit" in out
    read = twin.Log.load(log)
    assert np.degrees(read.q[-1, 0]) == pytest.approx(5.0, abs=1e-3)
    assert read.program is not None
    assert read.program.place(-1) == "good.mod line 4"


def test_the_new_station_serves_its_client(tmp_path):
    """At a free port, because another process may use the port of the template."""
    assert main(["new", "station", "cell_1", "--folder", str(tmp_path)]) == 0
    station, client = tmp_path / "cell_1" / "station.toml", tmp_path / "cell_1" / "client.py"
    station.write_text(station.read_text().replace("15000", "0"))
    with serving(station) as controller:
        controller.wait_until(lambda: controller.ports)
        client.write_text(client.read_text().replace("15000", str(controller.ports[5000])))
        done = subprocess.run([sys.executable, client], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "client: there 20.00 gripped\n"), done.stderr
        controller.wait_until(lambda: any("parts: 1" in line.sentence for line in controller.lines))


def test_what_lacked_torque_or_came_near_is_not_good(irb140, tmp_path):
    """Each alone; a sample counts if any drive is at its limit; distances of an arm without shapes do not."""
    for seen in ({}, {"saturations": 1}, {"collisions": 1}, {"contacts": 1}):
        supervision = SimpleNamespace(**{"saturations": 0, "collisions": 0, "contacts": 0} | seen)
        served = Served(1.0, None, (), "", 0, None, None, "PyBullet", supervision, "")
        assert served.is_good == (not seen)
    demand = np.zeros((4, 6))
    demand[1:3, 2] = 1.0
    assert saturated(made_log(irb140, np.zeros((4, 6)), tau_demand=demand)) == 2
    session = Serving(Station.read(folder_with(tmp_path)), Setup(), print)
    assert session._clearance(twin.load("manutec_r3")) is None
    assert "has no <collision> shapes" in session._unjudged


GUIDED = """MODULE Guided
VAR egmident id;
CONST jointtarget a:=[[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
PROC main()
  MoveAbsJ a, v1000, fine, tool0;
  EGMGetId id;
  EGMSetupUC ROB_1, id, "default", "UCdevice" \\Joint \\CommTimeout:=1;
  EGMActJoint id \\Tool:=tool0 \\MaxSpeedDeviation:=90;
  EGMRunJoint id, EGM_STOP_HOLD \\J1\\J2\\J3\\J4\\J5\\J6 \\CondTime:=0.1 \\RampInTime:=0.02;
  EGMReset id;
  MoveAbsJ a, v1000, fine, tool0;
ENDPROC
ENDMODULE
"""


def guided(tmp_path, change, *words):
    """Serve a program with EGM for a client that turns all joints, in lockstep; return the status."""
    station = '[egm.devices]\nUCdevice = "127.0.0.1:{}"\n[tasks.T_ROB1]\nmodules = ["guided.mod"]\n'
    with EgmClient(port=0) as client, Guiding(client, change):
        file = folder_with(tmp_path, station.format(client.port), guided=GUIDED)
        return main(["abb", "serve", str(file), "--cycle", "once", "--lockstep", *words])


def test_a_client_of_egm_guides_the_arm_of_a_program(tmp_path, capsys):
    logs = [tmp_path / name for name in ("a.npz", "b.npz")]
    for log in logs:
        assert guided(tmp_path, 8.0, "--log", str(log)) == 0
    out = capsys.readouterr().out
    assert "joint guidance 1 is guided by 127.0.0.1" in out
    assert "1 of 1" in out
    assert "cycles late" not in out
    first, second = map(twin.Log.load, logs)
    assert np.degrees(first.q[-1]) == pytest.approx([0, 0, 0, 0, 30, 0], abs=1e-9)
    assert [*dict.fromkeys(first.program.line.tolist())] == [5, 9, 11]
    assert first.arrays["egm_taken"].sum() > 50
    np.testing.assert_array_equal(first.q, second.q)  # equal to the bit


def test_a_fault_of_egm_without_a_handler_is_one_of_the_program(tmp_path, capsys):
    assert guided(tmp_path, 270.0) == 1
    out, err = capsys.readouterr()
    assert "guided.mod, line 9: Joint Out of Range: " in err
    assert "fault 50027 Joint Out of Range" in out


def test_the_status_of_the_client_and_a_fault_count(tmp_path, capsys):
    folder_with(tmp_path, good=GOOD, bad=GOOD.replace("TPWrite", "WaitTime 1 / 0; TPWrite"))
    load = ["abb", "serve", "--load", f"T_ROB1={tmp_path / 'good.mod'}"]
    assert main([*load, "--", "sh", "-c", "exit 3"]) == 3
    assert "sh ended with status 3" in capsys.readouterr().err
    assert main([*load, "--duration", "0.1", "--", "sleep", "60"]) == 1
    assert "sleep ended with status -15" in capsys.readouterr().err  # it is asked to end
    assert main([*load[:-1], f"T_ROB1={tmp_path / 'bad.mod'}", "--cycle", "once"]) == 1
    out, err = capsys.readouterr()
    assert "ended with a fault" in out
    assert "FAULT T_ROB1" in err
    assert "line 5: 1 / 0" in err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("robots = 'irb140'", "unknown key 'robots'"),
        ("start = 'later'", "start: unknown 'later'"),
        ("[tasks.T_ROB1]\nmodules = ['a.mod']\nkind = 'NORML'", "tasks.T_ROB1.kind: unknown 'NORML'.*NORMAL"),
        ("[signals.di1]\ntype = 'DX'", "signals.di1.type: unknown 'DX'"),
        ("[signals.do1]\ntype = 'DO'\nstate = 'Motor'", "signals.do1.state: unknown 'Motor'.*MotorOn"),
        ("[signals.do1]\ntype = 'DO'\naccess = 'all'", "signals.do1.access: unknown 'all'.*All"),
        ("[ports]\n5000 = 'x'", "ports.5000: expected numbers"),
        ("[egm]\nport = 6510", "unknown key 'port'"),
        ("[tasks", "is not a TOML file"),
        ("tasks = 1", "tasks: expected tables"),
        ("[tasks]\nT_ROB1 = 1", r"expected a table \[tasks.T_ROB1\]"),
        ("[egm]\nto = 'here'", r"\[egm\]: expected HOST:PORT"),
        ("[egm.devices]\nUCdevice = '1.2.3.4'", r"\[egm\]: expected HOST:PORT"),
        ("[egm.parameters]\nposition_gain = 30", r"\[egm\]: position_gain is 30"),
        ("[egm.parameters]\ngain = 3", r"\[egm\]: .*'gain'"),
    ],
)
def test_an_invalid_station_names_the_key(tmp_path, text, sentence):
    with pytest.raises(WrongUse, match=sentence):
        Station.read(folder_with(tmp_path, text)).egm_devices(None, None)


def test_two_tasks_cannot_move_the_arm_and_none_is_an_error(tmp_path, capsys):
    both = "".join(f"[tasks.{name}]\nmodules = ['good.mod']\nmotion = true\n" for name in ("T_A", "T_B"))
    assert main(["abb", "serve", str(folder_with(tmp_path, both, good=GOOD))]) == 2
    assert "the tasks T_A, T_B move the arm: expected one" in capsys.readouterr().err
    assert main(["abb", "serve", str(folder_with(tmp_path))]) == 2
    assert "the station has no task" in capsys.readouterr().err


def test_the_guide_explains_every_key_of_a_station():
    text = (HOUSE / "docs/guides/abb_controller_live.md").read_text(encoding="utf-8")
    rows = "".join(line for line in text.splitlines(keepends=True) if line.startswith("|"))
    for table in (STATION, EGM, GRIPPER, TASK, SIGNAL):
        for key in table:
            assert f"`{key.rstrip('?')}`" in rows or f"`[{key.rstrip('?')}" in rows, key
    assert all(state in rows for state in SYSTEM_OUTPUTS)


# Robot Web Services: the client of the guide, and where programs start by themselves.


@pytest.fixture
def guide(tmp_path, monkeypatch):
    """Save the files of the guide in the present folder."""
    text = (HOUSE / "docs" / "guides" / "abb_web_services.md").read_text(encoding="utf-8")
    for block in blocks(text):
        if block.saved_as and "/" not in block.saved_as:
            (tmp_path / block.saved_as).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_client_of_the_guide(guide, capfd):
    command = [
        "abb",
        "serve",
        "station.toml",
        "--rws",
        "0",
        "--log",
        "session.npz",
        "--",
        sys.executable,
        "client.py",
    ]
    assert main(command) == 0
    out = capfd.readouterr().out
    for text in (
        "Robot Web Services: http://127.0.0.1:", "the programs wait for a client that starts them",
        "parts: 1.0 gripper: 1", "faults: []",
    ):  # fmt: skip
        assert text in out
    assert (guide / "session.npz").is_file()


def test_a_station_starts_its_programs_and_its_services_outlast_them(guide, capsys):
    """Otherwise they wait, which the client of the guide needs: it moves the program pointer first."""
    station = (guide / "station.toml").read_text()
    (guide / "pick.mod").write_text('MODULE Pick\nPROC main()\nTPWrite "begins";\nENDPROC\nENDMODULE')
    (guide / "station.toml").write_text(f'start = "auto"\ncycle = "once"\n{station}')
    assert main(["abb", "serve", "station.toml", "--rws", "0", "--duration", "0.2"]) == 0
    out = capsys.readouterr().out
    assert "TPWrite: begins" in out
    assert re.search(r"time +0\.2 s", out)


def test_a_port_in_use_ends_with_one_sentence(guide, command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        err = command(["abb", "serve", "station.toml", "--rws", port], 2).err
    assert err == f"irb-twin: --rws {port} at 127.0.0.1: Address already in use\n"
