"""Websocket of a subscription, on a connection that an upgrade turns into one."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from queue import Empty

from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Upgrade
from websockets.protocol import State
from websockets.server import ServerProtocol

from twin.abb.rws.subscriptions import Subscription

PROTOCOLS = {1: "robapi2_subscription", 2: "rws_subscription"}
"""Names of the protocol by the version."""

PING = 10.0
"""Time in [s] after which a ping is sent; C++ clients give up after 40 s without a frame."""

LISTEN = 0.02
"""Time between two looks at what the client sends, in [s]; events go out at once."""


def serve_events(
    connection: socket.socket,
    path: str,
    headers: list[tuple[str, str]],
    subscription: Subscription,
    version: int,
) -> None:
    """Answer an upgrade, and send the events of a subscription until the client or the subscription ends.

    Args:
        connection: connection of the client; one thread reads and writes it, as TLS needs.
        path: path of its request.
        headers: headers of its request.
        subscription: the subscription.
        version: version of the services.
    """
    protocol = ServerProtocol(subprotocols=[PROTOCOLS[version]], max_size=2**16)  # type: ignore[list-item]
    protocol.receive_data(Upgrade(path, Headers(headers)).serialize())
    for request in protocol.events_received():
        assert isinstance(request, Upgrade)
        protocol.send_response(protocol.accept(request))
    connection.sendall(b"".join(protocol.data_to_send()))
    heard = sent = time.monotonic()
    with suppress(OSError):  # the client is gone, or takes nothing
        while protocol.state is State.OPEN and time.monotonic() - heard < 3 * PING:
            try:
                event = subscription.events.get(timeout=LISTEN)
                protocol.send_close(1000) if event is None else protocol.send_text(event)
            except Empty:
                if time.monotonic() - sent > PING:
                    protocol.send_ping(b"")
            if select.select([connection], [], [], 0)[0]:
                heard = time.monotonic()
                connection.settimeout(LISTEN)
                with suppress(TimeoutError):  # a part of TLS that has no data
                    _receive(protocol, connection.recv(2**16), version)
            if data := b"".join(protocol.data_to_send()):
                connection.settimeout(PING)
                connection.sendall(data)
                sent = time.monotonic()
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _receive(protocol: ServerProtocol, data: bytes, version: int) -> None:
    """Take what a client sent; version 2.0 answers the text PING."""
    if not data:
        raise ConnectionError("the client is gone")
    protocol.receive_data(data)
    for frame in protocol.events_received():
        is_ping = isinstance(frame, Frame) and frame.opcode is Opcode.TEXT and frame.data == b"PING"
        if is_ping and version == 2 and protocol.state is State.OPEN:
            protocol.send_text(b"PONG")
