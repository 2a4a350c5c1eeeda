"""Sockets and files of programs on a virtual controller, with real clients on this machine."""

import socket
import struct

import pytest

from twin.abb.controller.machine import Network

DATA = """VAR socketdev server; VAR socketdev client; VAR string text; VAR rawbytes raw; VAR num size;
VAR byte bytes{4}; VAR string address; VAR iodev file; PERS num port := 0;"""
SERVE = """SocketCreate server; SocketBind server, "192.168.125.1", 5000; SocketListen server;
SocketAccept server, client \\ClientAddress:=address \\Time:=WAIT_MAX;
"""


def port_of(live):
    """Return the local port of a program that has bound its socket."""
    live.run(until=lambda: any("is 127.0.0.1" in text for text in live.texts))
    port = int(live.texts[-1].rpartition(":")[2])
    assert port != 5000
    return port


@pytest.fixture
def served(cell):
    """Return a function that starts a program with a connected client; it returns both."""
    opened = []

    def serve(body, **more):
        live = cell(DATA, T_ROB1=SERVE + body, options={"network": Network(ports={5000: 0})}, **more)
        opened.append(socket.create_connection(("127.0.0.1", port_of(live)), timeout=5.0))
        opened[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # cycles do not wait for the clock
        return live, opened[-1]

    yield serve
    for one in opened:
        one.close()


def test_strings_bytes_and_raw_bytes_are_sent_and_received(served):
    live, client = served("""SocketReceive client \\Str:=text; SocketSend client \\Str:=text + "!";
        SocketReceive client \\RawData:=raw \\ReadNoOfBytes:=6 \\NoRecBytes:=size;
        PackRawBytes size, raw, RawBytesLen(raw) + 1 \\IntX:=DINT; SocketSend client \\RawData:=raw;
        SocketReceive client \\Data:=bytes; SocketSend client \\Data:=bytes; TPWrite address;""")
    client.sendall(b"hello")
    live.run(0.1)
    assert client.recv(100) == b"hello!"
    client.sendall(b"abc")
    live.run(0.1)
    client.sendall(b"defg")
    live.run(0.1)
    assert live.controller.faults == []
    assert client.recv(100) == b"abcdef" + struct.pack("<i", 6) + b"g\0\0\0"
    assert live.texts[-1] == "127.0.0.1"
    assert live.controller.faults == []


def test_a_port_is_announced_once_a_client_can_connect(cell):
    live = cell(
        DATA,
        T_ROB1="""SocketCreate server; SocketBind server, "192.168.125.1", 5000;
        WaitTime 0.2; SocketListen server; SocketAccept server, client;""",
        options={"network": Network(ports={5000: 0})},
    )
    live.run(0.1)
    assert live.controller.execution.ports == {}
    socket.create_connection(("127.0.0.1", port_of(live)), timeout=5.0).close()
    assert list(live.controller.execution.ports) == [5000]


def test_a_client_that_leaves_and_one_that_is_silent_raise_errors(served):
    live, client = served("""SocketReceive client \\Str:=text \\Time:=0.5;
ERROR
IF ERRNO = ERR_SOCK_TIMEOUT THEN TPWrite "silent"; RETRY; ENDIF
IF ERRNO = ERR_SOCK_CLOSED TPWrite "gone " + ValToStr(SocketGetStatus(client) = SOCKET_CLOSED);
SocketClose server; TRYNEXT;""")
    live.run(0.7)
    assert live.texts[-1] == "silent"
    client.close()
    live.run()
    assert live.texts[-1] == "gone TRUE"
    assert live.controller.execution.has_ended


def test_a_port_in_use_and_another_machine_are_refused(cell):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        live = cell(DATA, T_ROB1=f'SocketCreate server; SocketBind server, "0.0.0.0", {port};')
        live.run()
    assert f"cannot listen on port {port} of 127.0.0.1" in str(live.controller.faults[0][1])
    live = cell(DATA, T_ROB1='SocketCreate client; SocketConnect client, "192.0.2.1", 80;')
    live.run()
    assert "192.0.2.1 is not this machine; --allow 192.0.2.1" in str(live.controller.faults[0][1])


def test_a_program_connects_to_a_server_of_this_machine(cell):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        live = cell(
            DATA,
            T_ROB1=f'SocketCreate client; SocketConnect client, "127.0.0.1", {port};'
            'SocketSend client \\Str:="here"; SocketClose client;',
        )
        live.run()
        made, _ = server.accept()
        with made:
            assert made.recv(10) == b"here"


def test_datagrams(cell):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as partner:
        partner.bind(("127.0.0.1", 0))
        partner.settimeout(5.0)
        port = partner.getsockname()[1]
        live = cell(
            DATA,
            T_ROB1=f"""SocketCreate \\UDP, server; SocketSendTo server, "127.0.0.1", {port} \\Str:="first";
            SocketReceiveFrom server, address, size \\Str:=text; TPWrite text + ValToStr(size = {port});""",
        )
        live.run(0.1)
        data, sender = partner.recvfrom(100)
        partner.sendto(data + b"!", sender)
        live.run()
    assert live.texts[-1] == "first!TRUE"


def test_the_end_closes_every_socket(served):
    live, client = served("SocketReceive client \\Str:=text \\Time:=WAIT_MAX;")
    live.run(0.1)
    live.controller.close()
    assert client.recv(10) == b""


def test_files_stay_in_the_folder(cell, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret.txt").write_text("secret\n")
    body = """Open "HOME:" \\File:="logs/a.txt", file \\Write; Write file, "one"; Close file;
Open "HOME:/logs/a.txt", file \\Append; Write file, "two"; Close file;
Open "TEMP:/logs/a.txt", file \\Read; TPWrite ReadStr(file); TPWrite ReadStr(file); Close file;
Open "HOME:/../secret.txt", file \\Read;
Open "HOME:/../new.txt", file \\Write;
ERROR
IF ERRNO = ERR_FILEOPEN TPWrite "refused"; TRYNEXT;"""
    live = cell(DATA, T_ROB1=body, options={"home": home})
    live.run()
    assert live.texts == ["one", "two", "refused", "refused"]
    assert not (tmp_path / "new.txt").exists()
    assert (home / "logs/a.txt").read_text() == "one\ntwo\n"
