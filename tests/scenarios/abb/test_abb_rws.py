"""`irb-twin abb serve --rws`: the guide's client, wrong use, and where programs start by themselves."""

import socket
import sys

import pytest

from scenarios.shell.command_line import main
from tests.support.doc_pages import HOUSE, blocks


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


def test_a_station_starts_its_programs(guide, capsys):
    """Otherwise they wait, which the client of the guide needs: it moves the program pointer first."""
    module, station = guide / "pick.mod", guide / "station.toml"
    module.write_text(module.read_text().replace("PROC main()", 'PROC main() TPWrite "begins";'))
    station.write_text(f'start = "auto"\n{station.read_text()}')
    assert main(["abb", "serve", "station.toml", "--rws", "0", "--duration", "0.1"]) == 0
    assert "TPWrite: begins" in capsys.readouterr().out


def test_a_port_in_use_ends_with_one_sentence(guide, command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        err = command(["abb", "serve", "station.toml", "--rws", port], 2).err
    assert err == f"irb-twin: --rws {port} at 127.0.0.1: Address already in use\n"
