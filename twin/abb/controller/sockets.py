"""Sockets of RAPID programs, which are sockets of this machine.

They are bound to the address of the virtual controller, whatever address a program names, and connect to
this machine alone unless a host is allowed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twin.abb.controller.machine import RapidSocket
from twin.abb.controller.tasks import LiveRecorder
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.values import NUM, STATES, STRING
from twin.base.errors import RapidError

TIME_OUT = 60.0
"""Default time-out of SocketAccept, SocketConnect and SocketReceive, in [s]."""

MOST_BYTES, MOST_CHARACTERS = 1024, 80
"""Largest number of bytes of a message, and of characters of a string."""


def _found(given: Arguments, which: int, *statuses: str) -> RapidSocket:
    """Return the socket that stands as an argument.

    Raises:
        RapidError: it is closed, or in another state.
    """
    found = given.opaque(which, RapidSocket, None)
    if found is None or found.status == "closed":
        given.interpreter.raise_error("err_sock_closed", f"{given.name}: {given.name_of(which)} is closed")
    if statuses and found.status not in statuses:
        raise RapidError(
            f"{given.name}: {given.name_of(which)} is {found.status}, expected {' or '.join(statuses)}",
            "value",
        )
    return found


def _address(recorder: LiveRecorder, given: Arguments) -> tuple[str, int]:
    """Return the host and port to which a program sends.

    Raises:
        RapidError: the host is not this machine, and not allowed.
    """
    host, port = given.value(1, STRING), int(given.value(2, NUM))
    network = recorder.network
    if host not in ("127.0.0.1", "localhost", network.bind, *network.allow):
        raise RapidError(f"{given.name}: {host} is not this machine; --allow {host} allows it", "refusal")
    return host, port


def _await(recorder: LiveRecorder, given: Arguments, is_there: Callable[[], bool]) -> None:
    recorder.wait_until(is_there, given.optional("time", NUM, TIME_OUT))
    if not is_there():
        given.interpreter.raise_error("err_sock_timeout", f"{given.name} has waited for its time")


# --------------------------------------------------------------------------------------- instructions


def _create(recorder: LiveRecorder, given: Arguments) -> None:
    before = given.opaque(0, RapidSocket, None)
    if before is not None and before.status != "closed":
        given.interpreter.raise_error("err_sock_not_closed", f"{given.name_of(0)} is {before.status}")
    kind = socket.SOCK_DGRAM if "udp" in given else socket.SOCK_STREAM
    family = socket.AF_INET6 if ":" in recorder.network.bind else socket.AF_INET
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _put(recorder, given, 0, RapidSocket(made))


def _put(recorder: LiveRecorder, given: Arguments, which: int, made: RapidSocket) -> None:
    recorder.sockets = {one for one in recorder.sockets if one.status != "closed"} | {made}
    given.cell(which).value = made


def _bind(recorder: LiveRecorder, given: Arguments) -> None:
    found, network = _found(given, 0, "created"), recorder.network
    port = int(given.value(2, NUM))
    local = network.ports.get(port, 0 if network.free else port)
    try:
        found.socket.bind((network.bind, local))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        given.interpreter.raise_error(
            "err_sock_addr_inuse", f"cannot listen on port {local} of {network.bind} ({reason})"
        )
    found.status, found.port = "bound", port
    if found.is_udp:
        _announce(recorder, found)


def _listen(recorder: LiveRecorder, given: Arguments) -> None:
    found = _found(given, 0, "bound")
    found.socket.listen()
    found.status = "listening"
    _announce(recorder, found)


def _announce(recorder: LiveRecorder, found: RapidSocket) -> None:
    """Publish the port of a socket, once a client can reach it."""
    local = found.socket.getsockname()[1]
    recorder.execution.ports[found.port] = local
    recorder.report(f"port {found.port} is {recorder.network.bind}:{local}")


def _accept(recorder: LiveRecorder, given: Arguments) -> None:
    found = _found(given, 0, "listening")
    while True:
        _await(recorder, given, found.readable)
        try:
            made, sender = found.socket.accept()
            break
        except BlockingIOError:  # the client has gone
            continue
        except OSError:  # another task closed it
            given.interpreter.raise_error("err_sock_closed", f"{given.name_of(0)} was closed")
    _put(recorder, given, 1, RapidSocket(made, "connected"))
    given.give("clientaddress", sender[0])


def _connect(recorder: LiveRecorder, given: Arguments) -> None:
    found = _found(given, 0, "created")
    host, port = _address(recorder, given)
    failure = found.socket.connect_ex((host, port))
    _await(recorder, given, found.writable)
    failure = found.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if failure:
        found.close()
        given.interpreter.raise_error("err_sock_closed", f"nobody listens at {host}:{port}")
    found.status = "connected"


def _message(given: Arguments) -> bytes:
    """Return the bytes that are to be sent."""
    if "str" in given:
        data = given.value("str", STRING).encode("latin-1", "replace")
    elif "rawdata" in given:
        data = given.value("rawdata", "rawbytes") or b""
    elif "data" in given:
        data = bytes(int(one) & 255 for one in given.interpreter.evaluate(given.named["data"].value))
    else:
        raise RapidError(f"{given.name} needs one of \\Str, \\RawData, \\Data", "value")
    return data[: int(given.optional("noofbytes", NUM, float(len(data))))]


def _send(recorder: LiveRecorder, given: Arguments) -> None:
    found, data = _found(given, 0, "connected"), _message(given)
    while data:
        _await(recorder, given, found.writable)
        try:
            data = data[found.socket.send(data) :]
        except BlockingIOError:
            continue
        except OSError:
            found.close()
            given.interpreter.raise_error("err_sock_closed", "the other side closed the connection")


def _send_to(recorder: LiveRecorder, given: Arguments) -> None:
    found = _found(given, 0)
    try:
        found.socket.sendto(_message(given), _address(recorder, given))
    except OSError as error:
        given.interpreter.raise_error("err_sock_closed", f"cannot send: {error.strerror or error}")


def _receive(recorder: LiveRecorder, given: Arguments) -> None:
    found = _found(given, 0, "connected")
    most = MOST_CHARACTERS if "str" in given else MOST_BYTES
    wanted = int(given.optional("readnoofbytes", NUM, 0.0))
    if not 0 <= wanted <= most:
        given.interpreter.raise_error("err_argvalerr", f"ReadNoOfBytes {wanted}, expected 0 to {most}")
    while len(found.received) < max(wanted, 1):
        _await(recorder, given, found.readable)
        try:
            new = found.socket.recv(MOST_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            new = b""
        if not new:
            found.close()
            given.interpreter.raise_error("err_sock_closed", "the other side closed the connection")
        found.received += new
    count = wanted or most
    data, found.received = found.received[:count], found.received[count:]
    _give(given, data)


def _receive_from(recorder: LiveRecorder, given: Arguments) -> None:
    found = _found(given, 0)
    while True:
        _await(recorder, given, found.readable)
        try:
            data, sender = found.socket.recvfrom(MOST_BYTES)
            break
        except BlockingIOError:
            continue
        except OSError as error:
            given.interpreter.raise_error("err_sock_closed", f"cannot receive: {error.strerror or error}")
    _give(given, data)
    for which, value in ((1, sender[0]), (2, float(sender[1]))):
        if which < len(given):
            given.cell(which).value = value


def _give(given: Arguments, data: bytes) -> None:
    """Give what was received to the program."""
    given.give("norecbytes", float(len(data)))
    given.give("str", data[:MOST_CHARACTERS].decode("latin-1"))
    given.give("rawdata", data)
    if "data" in given:
        node: Any = given.named["data"].value
        items = given.interpreter.read(given.interpreter.cell(node))
        items[: len(data)] = [float(one) for one in data[: len(items)]]


def _close(recorder: LiveRecorder, given: Arguments) -> None:
    found = given.opaque(0, RapidSocket, None)
    if found is not None:
        found.close()
        recorder.sockets.discard(found)


def status(recorder: LiveRecorder, given: Arguments) -> float:
    """Return the number of the state of a socket (SocketGetStatus)."""
    found = given.opaque(0, RapidSocket, None)
    return float(STATES.index(f"socket_{'closed' if found is None else found.status}"))


def peek(recorder: LiveRecorder, given: Arguments) -> float:
    """Return the number of bytes that can be received (SocketPeek)."""
    found = _found(given, 0)
    while found.readable():
        try:
            new = b"" if found.is_udp else found.socket.recv(MOST_BYTES)
        except OSError:
            new = b""
        if not new:
            break
        found.received += new
    return float(len(found.received))


INSTRUCTIONS: dict[str, Instruction] = {
    name: Instruction(tuple(arguments.split()), run)  # type: ignore[arg-type]
    for name, arguments, run in (
        ("SocketCreate", "Socket", _create), ("SocketBind", "Socket LocalAddress LocalPort", _bind),
        ("SocketListen", "Socket", _listen), ("SocketAccept", "Socket ClientSocket", _accept),
        ("SocketConnect", "Socket Address Port", _connect), ("SocketSend", "Socket", _send),
        ("SocketSendTo", "Socket RemoteAddress RemotePort", _send_to), ("SocketReceive", "Socket", _receive),
        ("SocketReceiveFrom", "Socket RemoteAddress RemotePort", _receive_from),
        ("SocketClose", "Socket", _close),
    )
}  # fmt: skip
"""Instructions by their names."""
