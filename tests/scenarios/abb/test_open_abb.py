"""The server and the logger of open_abb, unchanged: requests as texts, and states while the arm moves."""

import select
import socket

import numpy as np
import pytest

import twin
from scenarios.abb.station import Station
from tests.support.shared_data import shared_folder
from tests.support.virtual_cell import VirtualCell

STATION = """
[tasks.T_ROB1]
modules = ["{0}SERVER.mod"]
[tasks.T_LOG]
kind = "SEMISTATIC"
modules = ["{0}LOGGER.mod"]
[ports]
5000 = 0
5001 = 0
"""


@pytest.mark.shared
def test_the_server_answers_and_the_logger_sends_states_while_the_arm_moves(tmp_path):
    (tmp_path / "station.toml").write_text(
        STATION.format(f"{shared_folder()}/rapid/pevers_rapid/rapid-parser_data_")
    )
    station = Station.read(tmp_path / "station.toml")
    cell = VirtualCell(
        twin.load("irb140").with_drives("rigid"), station.task_settings(), start=np.zeros(6), forever=True,
        network=station.network(None, ()),
    )  # fmt: skip
    cell.run(0.1)
    ports = {
        line.task: int(line.sentence.rpartition(":")[2]) for line in cell.lines if "is 127" in line.sentence
    }
    clients = [
        socket.create_connection(("127.0.0.1", ports[task]), timeout=5.0) for task in ("T_ROB1", "T_LOG")
    ]
    server, logger = clients
    cell.run(1.0)

    def ask(request):
        server.sendall(request)
        cell.run(5.0, until=lambda: bool(select.select([server], [], [], 0.0)[0]))
        return server.recv(200).decode()

    try:
        assert ask(b"00 #") == "0 1 "
        assert ask(b"08 100.0 50.0 50.0 50.0 #") == "8 1 "
        assert ask(b"09 1 0.0 0.0 0.0 #") == "9 1 "  # fine
        logger.recv(100_000)
        assert ask(b"02 20.0 5.0 0.0 0.0 30.0 0.0 #") == "2 1 "
        assert list(map(float, ask(b"04 #").split())) == [4, 1, 20, 5, 0, 0, 30, 0]
        states = [text.split() for text in logger.recv(100_000).decode().split("#") if text.startswith(" 1")]
        angles = [float(one[4]) for one in states]
        assert any(1.0 < angle < 19.0 for angle in angles)
        assert angles == sorted(angles)
    finally:
        for one in clients:
            one.close()
        cell.__exit__()
    assert cell.controller.faults == []
