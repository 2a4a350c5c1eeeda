"""`irb-twin abb serve --rws`: the guide's client, wrong use, and where programs start by themselves."""

import socket
import subprocess
import sys

import pytest

from scenarios.shell.command_line import main
from tests.support.doc_pages import HOUSE, blocks

SERVE = [sys.executable, "-m", "scenarios", "abb", "serve"]


@pytest.fixture
def guide(tmp_path, monkeypatch):
    """Save the files of the guide in the present folder."""
    text = (HOUSE / "docs" / "guides" / "abb_web_services.md").read_text(encoding="utf-8")
    for block in blocks(text):
        if block.saved_as and "/" not in block.saved_as:
            (tmp_path / block.saved_as).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_client_of_the_guide(guide):
    command = [
        *SERVE,
        "station.toml",
        "--rws",
        "0",
        "--log",
        "session.npz",
        "--",
        sys.executable,
        "client.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=guide)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Robot Web Services: http://127.0.0.1:" in done.stdout
    assert "parts: 1.0 gripper: 1" in done.stdout
    assert "faults: []" in done.stdout
    assert "the programs wait for a client that starts them" in done.stdout
    assert (guide / "session.npz").is_file()


PROBE = """
import os, time
from abb_robot_client.rws import RWS
client = RWS(os.environ["IRB_TWIN_RWS"])
end = time.monotonic() + 5
while client.get_rapid_variable("parts") == "0" and time.monotonic() < end:
    time.sleep(0.02)
print("parts", client.get_rapid_variable("parts"), client.get_execution_state().ctrlexecstate)
client.close()
"""


def test_a_station_starts_its_programs(guide):
    """Otherwise they wait, which the client of the guide needs: it moves the program pointer first."""
    (guide / "probe.py").write_text(PROBE)
    station = (guide / "station.toml").read_text()
    (guide / "station.toml").write_text(f'start = "auto"\n{station}')
    command = [*SERVE, "station.toml", "--rws", "0", "--", sys.executable, "probe.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=guide)
    assert "running" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--omnicore"], "--listen, --omnicore, --certificate and --strict need --rws PORT"),
        (["--rws", "70000"], "--rws 70000: expected a port from 0, a free one, to 65535"),
        (["--rws", "0", "--certificate", "x.pem"], "--certificate needs --omnicore"),
        (["--rws", "0", "--omnicore", "--certificate", "x.pem"], "x.pem: expected a PEM file"),
        (["--rws", "0", "--listen", "256.0.0.1"], "--rws 0 at 256.0.0.1:"),
    ],
)
def test_wrong_use_has_one_sentence(guide, capsys, words, sentence):
    assert main(["abb", "serve", "station.toml", *words]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_a_port_in_use_ends_with_one_sentence(guide, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["abb", "serve", "station.toml", "--rws", port]) == 2
    assert f"--rws {port} at 127.0.0.1: Address already in use" in capsys.readouterr().err
