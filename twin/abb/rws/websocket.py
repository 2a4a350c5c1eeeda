"""Websocket of a subscription, on a connection that an upgrade turns into one."""

from __future__ import annotations

import socket
import threading
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


def serve_events(
    connection: socket.socket,
    path: str,
    headers: list[tuple[str, str]],
    subscription: Subscription,
    version: int,
) -> None:
    """Answer an upgrade, and send the events of a subscription until the client or the subscription ends.

    Args:
        connection: connection of the client.
        path: path of its request.
        headers: headers of its request.
        subscription: the subscription.
        version: version of the services.
    """
    protocol = ServerProtocol(subprotocols=[PROTOCOLS[version]], max_size=2**16)  # type: ignore[list-item]
    lock = threading.Lock()

    def send() -> None:
        connection.sendall(b"".join(protocol.data_to_send()))

    protocol.receive_data(Upgrade(path, Headers(headers)).serialize())
    for request in protocol.events_received():
        assert isinstance(request, Upgrade)
        protocol.send_response(protocol.accept(request))
    send()
    if protocol.state is not State.OPEN:  # another protocol was asked for
        return
    connection.settimeout(3 * PING)
    sender = threading.Thread(target=_send_events, args=(protocol, lock, send, subscription), daemon=True)
    sender.start()
    try:
        while data := connection.recv(2**16):
            with lock:
                protocol.receive_data(data)
                for frame in protocol.events_received():
                    is_ping = (
                        isinstance(frame, Frame) and frame.opcode is Opcode.TEXT and frame.data == b"PING"
                    )
                    if is_ping and version == 2:
                        protocol.send_text(b"PONG")
                send()
            if protocol.close_expected():
                break
    except OSError:  # the client is gone, or silent for longer than pings take
        pass
    finally:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        subscription.put(b"")  # wakes the sender
        sender.join(PING)


def _send_events(protocol: ServerProtocol, lock: threading.Lock, send, subscription: Subscription) -> None:
    """Send events, and pings where there are none."""
    with suppress(OSError):
        while protocol.state is State.OPEN:
            try:
                event = subscription.events.get(timeout=PING)
            except Empty:
                event = b""
            with lock:
                if protocol.state is not State.OPEN:
                    return
                if event is None:
                    protocol.send_close(1000)
                elif event:
                    protocol.send_text(event)
                else:
                    protocol.send_ping(b"")
                send()
